"""The open folder as servers of the older era ask for it, on the reference server over stdio."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from desktop.host.consent import Consent
from desktop.host.host import Host
from desktop.host.server_config import Configuration, ServerDefinition
from desktop.paths import Paths
from tests import real_servers
from tests.host.conftest import scripted, text, until

pytestmark = pytest.mark.anyio


def configuration(command: list[str], folder: Path | None) -> Configuration:
    definition = ServerDefinition("server", "stdio", command=command[0], args=tuple(command[1:]), protocol="legacy")
    return Configuration((definition,), folder=folder)


@pytest.fixture
async def hosts(paths: Paths) -> AsyncIterator[Any]:
    made: list[Host] = []

    def make(command: list[str], folder: Path | None) -> Host:
        host = Host(
            configuration(command, folder),
            paths=paths,
            read_large=None,
            builtin=None,
            consent=Consent.for_everything(),
        )
        made.append(host)
        return host

    yield make
    await asyncio.gather(*(host.close() for host in made))


async def test_a_server_that_asks_gets_the_open_folder_also_after_another_was_opened(
    hosts: Any, tmp_path: Path
) -> None:
    first, second = tmp_path / "erster Ordner", tmp_path / "zwei"
    command = list(real_servers.everything())
    host = hosts(command, first)
    connection = host.connection("server")

    async def offers_it() -> bool:
        return "get-roots-list" in {tool.name for tool in await connection.list_tools()}

    async def knows_the_second() -> bool:
        return second.as_uri() in text(await connection.call_tool("get-roots-list", {}))

    await until_answered(offers_it)
    assert first.as_uri() in text(await connection.call_tool("get-roots-list", {}))
    await host.reload(configuration(command, second))
    assert host.connection("server") is connection  # it was told, not started anew
    await until_answered(knows_the_second)


async def test_without_a_folder_a_server_is_not_told_that_it_could_ask(hosts: Any) -> None:
    connection = hosts(list(real_servers.everything()), None).connection("server")
    tools = {tool.name for tool in await connection.list_tools()}
    assert "echo" in tools and "get-roots-list" not in tools


async def test_a_change_is_told_to_whom_could_ask_alone(hosts: Any, tmp_path: Path) -> None:
    for folder, told in ((tmp_path, 1), (None, 0)):
        record = tmp_path / f"record {told}"
        command = scripted(record=str(record))
        host = hosts(command, folder)
        await host.connection("server").connect()
        await host.reload(configuration(command, tmp_path / "other"))
        await host.reload(configuration(command, tmp_path / "other"))  # the same folder is no change
        await host.connection("server").list_tools()
        await until(lambda record=record: "tools/list" in record.read_text())
        received = [json.loads(line) for line in record.read_text().splitlines()]
        [declared] = [each["params"]["capabilities"] for each in received if each["method"] == "initialize"]
        assert ("roots" in declared) == bool(told)
        assert [each["method"] for each in received].count("notifications/roots/list_changed") == told


async def until_answered(question: Callable[[], Awaitable[bool]]) -> None:
    """Asks again, bounded, until the server says so: it learns of roots, and of their change, beside other requests."""
    for _ in range(400):
        if await question():
            return
        await asyncio.sleep(0.05)
    pytest.fail("it did not come about in time")
