"""What the person watches: changes, what they have not seen, servers that go and come back, and what is kept."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psutil
import pytest

from desktop.host.consent import Consent
from desktop.host.host import Host
from desktop.host.server_config import Configuration, ServerDefinition
from desktop.host.watches import Watch, Watches
from desktop.paths import Paths
from tests.host.conftest import failure, until
from tests.servers.running import changing

pytestmark = pytest.mark.anyio


def definition(name: str, *switches: str, disabled: bool = False) -> ServerDefinition:
    command = changing(*switches)
    return ServerDefinition(name, "stdio", command=command[0], args=tuple(command[1:]), disabled=disabled)


Make = Callable[..., "Both"]


class Both:
    """A host with its watches; keeps what was noticed."""

    def __init__(self, paths: Paths, *definitions: ServerDefinition) -> None:
        self.host = Host(
            Configuration(definitions),
            paths=paths,
            read_large=None,
            builtin=None,
            consent=Consent.for_everything(),
            backoff=(0.05,) * 5,
        )
        self.watches = Watches(self.host, paths.data / "watches.json")
        self.noticed: list[str] = []
        self.closed = False
        self.watches.noticed.connect(lambda watch: self.noticed.append(f"{watch.server} {watch.uri}"))

    async def touch(self, server: str, uri: str) -> None:
        await self.host.connection(server).call_tool("touch", {"uri": uri})

    async def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        await self.watches.close()
        await self.host.close()


@pytest.fixture
async def make(paths: Paths) -> AsyncIterator[Make]:
    made: list[Both] = []

    def make(*definitions: ServerDefinition) -> Both:
        made.append(Both(paths, *definitions))
        return made[-1]

    yield make
    for each in made:
        await each.close()


async def test_a_change_is_unseen_until_the_person_has_looked(make: Make) -> None:
    both = make(definition("a"), definition("b"))
    watch = await both.watches.add("a", "state://1", "One")
    assert (watch.state, watch.unseen, watch.changed_at) == ("watching", False, None)
    assert await both.watches.add("a", "state://1", "again") is watch
    await both.touch("b", "state://1")
    await both.touch("a", "state://1")
    await until(lambda: both.noticed)
    assert both.noticed == ["a state://1"]
    assert watch.unseen and watch.changed_at is not None and watch.changed_at >= watch.since
    both.watches.mark_seen(watch)
    assert not watch.unseen
    await both.watches.remove(watch)
    await both.touch("a", "state://1")
    assert (both.watches.all, len(both.noticed)) == ([], 1)


async def test_a_watch_that_is_refused_is_none(make: Make) -> None:
    both = make(definition("a", "--deaf"))
    assert await failure(both.watches.add("a", "state://1", "One")) == "subscriptions_unsupported"
    assert await failure(both.watches.add("none", "state://1", "One")) == "server_unknown"
    assert both.watches.all == []


async def test_a_server_that_died_may_have_changes_that_were_missed(make: Make) -> None:
    both = make(definition("a"))
    watch = await both.watches.add("a", "state://1", "One")
    for process in psutil.Process().children():
        process.kill()
    await until(lambda: watch.state == "away")
    await until(lambda: watch.state == "watching" and watch.missed)
    assert watch.unseen and both.noticed == []


async def test_a_server_that_is_defined_anew_is_watched_anew_and_one_that_goes_is_away(make: Make) -> None:
    both = make(definition("a"))
    watch = await both.watches.add("a", "state://1", "One")
    await both.host.reload(Configuration((definition("a", "--modern"),)))
    await until(lambda: watch.state == "watching" and both.host.connections["a"].subscriptions.of("state://1"))
    await both.touch("a", "state://1")
    await until(lambda: both.noticed)
    await both.host.reload(Configuration(()))
    await until(lambda: watch.state == "away")
    assert watch.fault is not None and watch.fault.code == "server_unknown"


async def test_a_kept_watch_is_made_again_at_the_next_start(make: Make, paths: Paths) -> None:
    first = make(definition("a"))
    watch = await first.watches.add("a", "state://1", "One")
    await first.watches.add("a", "state://2", "Two")
    await first.watches.keep(watch, True)
    await first.close()
    second = make(definition("a"))
    await second.watches.start()
    (again,) = second.watches.all
    assert (again.uri, again.title, again.kept, again.missed) == ("state://1", "One", True, True)
    await until(lambda: again.state == "watching")
    await second.touch("a", "state://1")
    await until(lambda: second.noticed)
    await second.watches.remove(again)
    assert json.loads((paths.data / "watches.json").read_text()) == []


async def test_a_kept_watch_of_a_server_that_can_not_be_had_waits_and_says_why(make: Make, paths: Paths) -> None:
    _keep(paths.data / "watches.json", [{"server": "a", "uri": "state://1", "title": "One"}])
    both = make(definition("a", disabled=True))
    await both.watches.start()
    (watch,) = both.watches.all
    await until(lambda: watch.state == "away" and watch.fault)
    assert watch.fault is not None and watch.fault.code == "server_disabled"
    await both.host.reload(Configuration((definition("a"),)))
    await until(lambda: watch.state == "watching")


@pytest.mark.parametrize(
    "content", ["", "{", "[1, null, {}]", '[{"server": "a", "uri": "no uri", "title": ""}]', "[" * 9999]
)
async def test_a_file_of_kept_watches_that_is_not_ours_is_empty(make: Make, paths: Paths, content: str) -> None:
    (paths.data).mkdir(parents=True, exist_ok=True)
    (paths.data / "watches.json").write_text(content)
    both = make(definition("a"))
    await both.watches.start()
    assert both.watches.all == []


async def test_a_watch_that_can_not_be_kept_says_so_and_goes_on(make: Make, paths: Paths) -> None:
    both = make(definition("a"))
    watch: Watch = await both.watches.add("a", "state://1", "One")
    paths.data.mkdir(parents=True, exist_ok=True)
    (paths.data / "watches.json").mkdir()
    assert await failure(both.watches.keep(watch, True)) == "storage_failed"
    assert (watch.kept, watch.state) == (False, "watching")


def _keep(file: Path, kept: list[dict[str, str]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(kept))
