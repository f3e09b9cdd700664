"""Entries of the servers' file: places, paths, limits, and what two ways of writing the same have in common."""

from __future__ import annotations

import copy
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from desktop.errors import AssistantError
from desktop.host.server_config import Configuration, ServerDefinition
from desktop.host.server_entry import definition_of
from desktop.host.servers_file import add_server, read_configuration
from desktop.paths import Paths
from tests.host.conftest import MakeConnection, failure
from tests.servers.running import hostile


def read(file: Path, text: str) -> Configuration:
    file.write_text(text)
    return read_configuration(file, {})


def test_a_fault_names_server_field_reason_line_and_column(tmp_path: Path) -> None:
    text = """{
  // mine
  "mcpServers": {
    "good": {"command": "x"},
    "a": {"command": "x", "args": ["one",
      2]},
    "b": {
      "url": "https://example.org",
      "headers": {"X-A": "1", "X B": "2"}
    },
    "c": {},
    "d": {"command": "${NOT_SET}"},
    "e": {"command": "x"}, "e": {"command": "y"}
  }
}"""
    configuration = read(tmp_path / "mcp.json", text)
    assert [definition.name for definition in configuration.definitions] == ["good"]
    assert [(fault.server, fault.message) for fault in configuration.faults] == [
        ("a", "The server's definition is not valid at args[1] (line 6, column 7): it must be text."),
        ("b", "The server's definition is not valid at headers.? (line 9, column 31): it is no name of a header."),
        ("c", "The server's definition is not valid (line 11, column 5): it needs either `command` or `url`."),
        (
            "d",
            "The environment variable NOT_SET that the definition names at command (line 12, column 11) is not set.",
        ),
        ("e", "The server's definition is not valid (line 13, column 28): its name is given twice."),
    ]


def test_a_type_that_is_written_and_one_that_is_inferred_are_the_same_server(tmp_path: Path) -> None:
    for plain, type_ in (({"command": "x", "args": ["y"]}, "stdio"), ({"url": "https://example.org"}, "http")):
        given: dict[str, Any] = {**plain, "type": type_}
        before = copy.deepcopy(given)
        assert definition_of("a", given, {}) == definition_of("a", plain, {})
        assert definition_of("a", given, {}).identity == definition_of("a", plain, {}).identity
        assert given == before


@pytest.mark.parametrize("field", ["timeoutMs", "startupTimeoutMs", "toolTimeoutMs"])
@pytest.mark.parametrize("value", [99, 600_001, 100.1, 100.0, "1000", True, None, -1, float("nan")])
def test_a_time_limit_is_a_whole_number_of_milliseconds_within_bounds(field: str, value: Any, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    (fault,) = read(file, json.dumps({"mcpServers": {"a": {"command": "x", field: value}}})).faults
    assert fault.values["where"] == f" at {field}"
    for good in (100, 600_000):
        assert not read(file, json.dumps({"mcpServers": {"a": {"command": "x", field: good}}})).faults


def test_the_limit_for_requests_holds_for_start_and_calls_where_they_have_none_of_their_own() -> None:
    def limits(**fields: int) -> tuple[float, float, float]:
        found = definition_of("a", {"command": "x", **fields}, {})
        return found.request_time_limit, found.startup_time_limit, found.call_time_limit

    default = ServerDefinition("a", "stdio")
    assert limits() == (default.request_time_limit, default.startup_time_limit, default.call_time_limit)
    assert limits(timeoutMs=5000) == (5, 5, 5)
    assert limits(timeoutMs=5000, startupTimeoutMs=90_000, toolTimeoutMs=100) == (5, 90, 0.1)


@pytest.mark.anyio
async def test_the_limits_bound_start_and_calls(make: MakeConnection) -> None:
    fields = {"startupTimeoutMs": 300, "protocol": "legacy"}
    slow = definition_of("a", {"command": "x", **fields}, {})
    connection = make(hostile("--slow-start", "60"), startup_time_limit=slow.startup_time_limit, protocol="legacy")
    assert await failure(connection.connect()) == "timeout"
    quick = definition_of("a", {"command": "x", "toolTimeoutMs": 300}, {})
    connection = make(hostile(), call_time_limit=quick.call_time_limit)
    assert await failure(connection.call_tool("silent", {})) == "timeout"


def test_a_file_of_certificates_is_looked_for_beside_the_servers_file(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "link.json").symlink_to(tmp_path / "etc" / "mcp.json")
    for written, meant in (
        ("company.pem", str(tmp_path / "etc" / "company.pem")),
        ("../company.pem", str(tmp_path / "company.pem")),
        ("~/company.pem", os.path.expanduser("~/company.pem")),
        ("/etc/company.pem", "/etc/company.pem"),
    ):
        text = json.dumps({"mcpServers": {"a": {"url": "https://example.org", "caFile": written}}})
        (definition,) = read(tmp_path / "etc" / "mcp.json", text).definitions
        assert definition.ca_file == meant


def test_a_working_folder_is_looked_for_in_deskhands_own(tmp_path: Path) -> None:
    (definition,) = read(tmp_path / "mcp.json", '{"mcpServers": {"a": {"command": "x", "cwd": "work"}}}').definitions
    assert definition.cwd == os.path.abspath("work")


def test_a_definition_that_is_not_valid_is_not_added_even_where_another_hides_it(paths: Paths) -> None:
    paths.config.mkdir(parents=True)
    paths.servers_file.write_text('{"mcpServers": {}, "servers": {"a": {"command": "x"}}}')
    before = paths.servers_file.read_bytes()
    for name, entry in (("a", {"command": "x", "url": "https://h"}), ("b", {"command": "x", "disabled": "no"})):
        with pytest.raises(AssistantError) as raised:
            add_server(paths.servers_file, name, entry, replace=True)
        assert raised.value.diagnostic.code == "configuration_invalid"
    assert paths.servers_file.read_bytes() == before


@pytest.mark.skipif(sys.platform == "win32", reason="modes are those of POSIX")
def test_a_link_in_the_way_is_never_written_through_and_no_mode_is_loosened(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    folder = tmp_path / "config"
    for name in ("mcp.json.tmp", ".mcp.json.tmp", "mcp.json~"):
        folder.mkdir(exist_ok=True)
        (folder / name).symlink_to(victim)
    before = os.umask(0)
    try:
        add_server(folder / "mcp.json", "a", {"command": "x"})
    finally:
        os.umask(before)
    assert victim.read_text() == "mine"
    assert (folder / "mcp.json").stat().st_mode & 0o777 == 0o600


def test_a_default_may_hold_no_brace_and_what_begins_without_end_takes_no_time() -> None:
    text = "${SET:-" * 100_000
    assert definition_of("a", {"command": text}, {}).command == text
    assert definition_of("a", {"command": "${A:-x y}"}, {}).command == "x y"
