"""Searches over real servers of a configuration in the person's file: what is missing is named, once, and in words of ours."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from desktop.errors import AssistantError
from desktop.host.catalog import ServerCatalog
from desktop.host.consent import Consent
from desktop.host.host import Host
from desktop.host.servers_file import read_configuration
from desktop.paths import Paths
from tests.host.conftest import scripted

pytestmark = pytest.mark.anyio

CANARY = "canary-7f3a"
MakeCatalog = Callable[..., ServerCatalog]


@pytest.fixture
async def make(paths: Paths) -> AsyncIterator[MakeCatalog]:
    """Makes the catalog of servers by name: each the command of a server, or an entry as it is written in the file."""
    hosts: list[Host] = []
    catalogs: list[ServerCatalog] = []

    def make(**servers: Any) -> ServerCatalog:
        entries = {
            name: {"command": given[0], "args": given[1:]} if isinstance(given, list) else given
            for name, given in servers.items()
        }
        paths.servers_file.parent.mkdir(parents=True, exist_ok=True)
        paths.servers_file.write_text(json.dumps({"mcpServers": entries}))
        configuration = read_configuration(paths.servers_file)
        hosts.append(
            Host(
                configuration, paths=paths, read_large=None, builtin=None, consent=Consent.for_everything(), backoff=()
            )
        )
        catalogs.append(ServerCatalog(hosts[-1]))
        return catalogs[-1]

    yield make
    for catalog in catalogs:
        await catalog.close()
    await asyncio.gather(*(host.close() for host in hosts))


def methods(record: Path) -> list[str]:
    return [json.loads(line)["method"] for line in record.read_text().splitlines()]


async def test_a_fault_of_the_configuration_is_told_with_each_search_without_its_value(make: MakeCatalog) -> None:
    catalog = make(good=scripted(), bad={"command": 7, "env": {"TOKEN": CANARY}})
    found = await catalog.search("good.tool")
    assert [entry.name for entry in found.candidates] == ["tool"]
    (warning,) = found.warnings
    assert "bad" in warning and CANARY not in warning
    assert (await catalog.search("tool", server="good")).warnings == ()


async def test_a_list_that_fails_leaves_the_others_and_the_servers_words_are_nowhere(make: MakeCatalog) -> None:
    error = {"error": {"code": -32000, "message": CANARY}}
    catalog = make(half=scripted(resources_list=error), whole=scripted())
    found = await catalog.search("scripted")
    assert [(entry.server, entry.name) for entry in found.candidates] == [("half", "tool"), ("whole", "tool")]
    ((diagnostic, catalogs),) = found.not_searched
    assert (diagnostic.server, catalogs) == ("half", ("resources",))
    assert CANARY not in f"{diagnostic} {found}"


async def test_a_server_that_can_not_be_connected_is_named_once_for_all_its_lists(make: MakeCatalog) -> None:
    catalog = make(gone=scripted(initialize="exit", server_discover="exit"), whole=scripted())
    found = await catalog.search("scripted")
    assert [entry.server for entry in found.candidates] == ["whole"]
    ((diagnostic, catalogs),) = found.not_searched
    assert diagnostic.server == "gone"
    assert set(catalogs) == {"tools", "resources", "templates", "prompts"}


async def test_a_server_without_tools_is_searched_and_not_asked_for_any(make: MakeCatalog, tmp_path: Path) -> None:
    record = tmp_path / "record"
    offers = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"resources": {}},
        "serverInfo": {"name": "x", "version": "1"},
    }
    page = {"resources": [{"uri": "doc://start", "name": "start"}]}
    catalog = make(docs=scripted(initialize=offers, resources_list=page, record=str(record)))
    found = await catalog.search("start")
    assert [entry.name for entry in found.candidates] == ["start"]
    assert (found.not_searched, found.warnings) == ((), ())
    assert not {"tools/list", "prompts/list"} & set(methods(record))


async def test_two_first_searches_at_the_same_time_connect_once_and_agree(make: MakeCatalog, tmp_path: Path) -> None:
    record = tmp_path / "record"
    catalog = make(server=scripted(record=str(record)))
    first, second = await asyncio.gather(catalog.search("scripted"), catalog.search("scripted"))
    assert first == second and len(first.candidates) == 1
    assert [methods(record).count(each) for each in ("initialize", "tools/list")] == [1, 1]


@pytest.mark.parametrize("name", ["__class__", "toString", "Server"])
async def test_a_name_that_no_server_has_is_unknown_and_nobody_is_asked(
    make: MakeCatalog, tmp_path: Path, name: str
) -> None:
    record = tmp_path / "record"
    catalog = make(server=scripted(record=str(record)))
    with pytest.raises(AssistantError) as raised:
        await catalog.search("tool", server=name)
    assert raised.value.diagnostic.code == "server_unknown"
    assert not record.exists()


async def test_a_search_for_an_exact_name_in_any_spelling_calls_and_reads_nothing(
    make: MakeCatalog, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    catalog = make(server=scripted(record=str(record)))
    for query in ("server.tool", "mcp__server__tool", "SERVER.TOOL"):
        (found,) = (await catalog.search(query)).candidates
        assert found.name == "tool"
    assert not {"tools/call", "resources/read", "prompts/get"} & set(methods(record))
