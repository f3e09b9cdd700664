"""Resources that are watched, over the wire in both eras of the protocol and over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import psutil
import pytest

from desktop.host.connection import Connection
from tests.host.conftest import MakeConnection, failure, until
from tests.servers.running import changing, http_server

pytestmark = pytest.mark.anyio

BACKOFF = (0.05,) * 5


class Heard:
    """What a connection tells of its watched resources."""

    def __init__(self, connection: Connection) -> None:
        self.updated: list[str] = []
        self.missed: list[str] = []
        connection.subscriptions.updated.connect(self.updated.append)
        connection.subscriptions.missed.connect(self.missed.append)


def state(connection: Connection, uri: str) -> str | None:
    subscription = connection.subscriptions.of(uri)
    return subscription.state if subscription else None


def methods(record: Path) -> list[str]:
    return [json.loads(line).get("method", "") for line in record.read_text().splitlines()]


@pytest.fixture(params=["older", "newer", "http"])
async def connection(request: pytest.FixtureRequest, make: MakeConnection, tmp_path: Path) -> AsyncIterator[Connection]:
    switches = ["--refuse", "state://7", "--record", str(tmp_path / "record.jsonl")]
    if request.param == "http":
        async with http_server(changing("--modern", *switches)) as url:
            connection = make(kind="http", url=url)
            yield connection
            await connection.close()
    else:
        yield make(changing(*(["--modern"] if request.param == "newer" else []), *switches), backoff=BACKOFF)


async def touch(connection: Connection, *uris: str, times: int = 1) -> None:
    for uri in uris:
        await connection.call_tool("touch", {"uri": uri, "times": times})


async def test_a_change_of_a_watched_resource_is_told_and_one_of_another_is_not(connection: Connection) -> None:
    heard = Heard(connection)
    await connection.subscriptions.add("state://1")
    assert state(connection, "state://1") == "watching"
    await touch(connection, "state://2", "state://1")
    await until(lambda: heard.updated)
    await connection.subscriptions.add("state://2")
    await touch(connection, "state://2")
    await until(lambda: "state://2" in heard.updated)
    assert (heard.updated, heard.missed) == (["state://1", "state://2"], [])


async def test_watching_twice_asks_once_and_stopping_tells_the_server(connection: Connection, tmp_path: Path) -> None:
    subscriptions = connection.subscriptions
    await asyncio.gather(subscriptions.add("state://1"), subscriptions.add("state://1"))
    asked = [each for each in methods(tmp_path / "record.jsonl") if "subscri" in each]
    assert asked in (["resources/subscribe"], ["subscriptions/listen"])
    await subscriptions.remove("state://1")
    heard = Heard(connection)
    await touch(connection, "state://1")
    await subscriptions.add("state://2")
    await touch(connection, "state://2")
    await until(lambda: heard.updated)
    assert heard.updated == ["state://2"]
    assert state(connection, "state://1") is None


async def test_what_the_server_does_not_honour_is_refused_and_nothing_stays(connection: Connection) -> None:
    await connection.subscriptions.add("state://1")
    code = await failure(connection.subscriptions.add("state://7"))
    assert code in ("subscriptions_unsupported", "server_error")
    assert state(connection, "state://7") is None
    heard = Heard(connection)
    await touch(connection, "state://1")
    await until(lambda: heard.updated)
    assert state(connection, "state://1") == "watching"


async def test_many_changes_at_once_are_told_as_few(connection: Connection) -> None:
    heard = Heard(connection)
    await connection.subscriptions.add("state://1")
    await touch(connection, "state://1", times=2000)
    await until(lambda: heard.updated)
    await touch(connection, "state://1")
    assert 1 <= len(heard.updated) < 100


async def test_fifty_can_be_watched_and_a_freed_place_is_free(connection: Connection) -> None:
    subscriptions = connection.subscriptions
    await asyncio.gather(*(subscriptions.add(f"state://{number}") for number in range(10, 60)))
    assert await failure(subscriptions.add("state://1")) == "subscription_limit"
    await subscriptions.remove("state://10")
    assert await failure(subscriptions.add("state://7")) in ("subscriptions_unsupported", "server_error")
    await subscriptions.add("state://1")
    assert await failure(subscriptions.add("state://10")) == "subscription_limit"


async def test_what_is_no_uri_is_refused_and_stopping_what_is_not_watched_does_nothing(connection: Connection) -> None:
    assert await failure(connection.subscriptions.add("no uri")) == "resource_invalid"
    await connection.subscriptions.remove("state://1")
    assert connection.state.status == "idle"


@pytest.mark.parametrize("era", [[], ["--modern"]])
async def test_a_watch_survives_its_server_and_says_what_it_may_have_missed(
    make: MakeConnection, era: Sequence[str]
) -> None:
    connection = make(changing(*era), backoff=BACKOFF)
    heard = Heard(connection)
    await connection.subscriptions.add("state://1")
    (process,) = psutil.Process().children()
    process.kill()
    await until(lambda: state(connection, "state://1") == "away")
    await until(lambda: state(connection, "state://1") == "watching")
    await until(lambda: heard.missed)
    await touch(connection, "state://1")
    await until(lambda: heard.updated)
    assert (heard.updated, heard.missed) == (["state://1"], ["state://1"])


async def test_a_watch_over_http_survives_its_server(make: MakeConnection) -> None:
    async with http_server(changing("--modern")) as url:
        connection = make(kind="http", url=url)
        heard = Heard(connection)
        await connection.subscriptions.add("state://1")
        port = int(url.rpartition(":")[2].partition("/")[0])
    await until(lambda: state(connection, "state://1") != "watching")
    async with http_server(changing("--modern"), port=port):
        await until(lambda: state(connection, "state://1") == "watching")
        await until(lambda: heard.missed)
        await touch(connection, "state://1")
        await until(lambda: heard.updated)
        await connection.close()


@pytest.mark.parametrize("era", [[], ["--modern"]])
async def test_a_server_that_tells_of_no_changes_is_not_asked_to(
    make: MakeConnection, era: Sequence[str], tmp_path: Path
) -> None:
    record = tmp_path / "record.jsonl"
    connection = make(changing("--deaf", "--record", str(record), *era))
    assert await failure(connection.subscriptions.add("state://1")) == "subscriptions_unsupported"
    assert not [each for each in methods(record) if "subscri" in each]
