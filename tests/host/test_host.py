"""All servers' connections together: made from the configuration, changed with it, closed at once."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from desktop.host.consent import Consent
from desktop.host.host import Host
from desktop.host.servers_file import read_configuration
from desktop.paths import Paths
from tests import real_servers
from tests.host.conftest import children, failure, records, text, until
from tests.servers.friendly import make_server
from tests.servers.running import hostile

pytestmark = pytest.mark.anyio

MakeHost = Callable[..., Host]


def entry(command: Sequence[str], **fields: Any) -> dict[str, Any]:
    return {"command": command[0], "args": list(command[1:]), **fields}


def write(paths: Paths, **servers: dict[str, Any]) -> Path:
    paths.config.mkdir(parents=True, exist_ok=True)
    paths.servers_file.write_text(json.dumps({"mcpServers": servers}))
    return paths.servers_file


@pytest.fixture
async def make_host(paths: Paths) -> AsyncIterator[MakeHost]:
    """Makes the host of a configuration of servers, as it is written in the person's file."""
    made: list[Host] = []

    def make(consent: Consent | None = None, builtin: Any = None, **servers: dict[str, Any]) -> Host:
        host = Host(
            read_configuration(write(paths, **servers)),
            paths=paths,
            read_large=None,
            builtin=builtin,
            consent=consent or Consent.for_everything(),
            backoff=(0.05,),
        )
        made.append(host)
        return host

    yield make
    await asyncio.gather(*(host.close() for host in made))


async def test_real_servers_of_both_eras_work_side_by_side(make_host: MakeHost, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("hello")
    host = make_host(
        everything=entry(real_servers.everything()),
        files=entry(real_servers.filesystem(tmp_path)),
        clock=entry(real_servers.time()),
        builtin=make_server("deskhand"),
    )
    assert list(host.connections) == ["everything", "files", "clock", "deskhand"]
    results = await asyncio.gather(
        host.connection("everything").call_tool("echo", {"message": "hi"}),
        host.connection("files").call_tool("read_text_file", {"path": str(tmp_path / "note.txt")}),
        host.connection("clock").call_tool("get_current_time", {"timezone": "UTC"}),
        host.connection("deskhand").call_tool("add", {"a": 1, "b": 2}),
    )
    assert [text(result)[:8] for result in results] == ["Echo: hi", "hello", '{\n  "tim', "3.0"]
    assert [connection.state.status for connection in host.connections.values()] == ["connected"] * 4
    await host.close()
    assert children() == []


async def test_servers_for_the_launch_are_connected_then_and_the_others_on_need(
    make_host: MakeHost, tmp_path: Path
) -> None:
    host = make_host(
        first=entry(hostile(), start="launch"),
        broken=entry(hostile("--exit-at-start", "1"), start="launch"),
        later=entry(hostile("--record", str(tmp_path / "record"))),
        off=entry(hostile("--record", str(tmp_path / "record")), start="launch", disabled=True),
    )
    seen: list[tuple[str, str]] = []
    host.state_changed.connect(lambda name: seen.append((name, host.connections[name].state.status)))
    began = time.monotonic()
    await host.start()
    assert time.monotonic() - began < 0.1
    await until(lambda: ("first", "connected") in seen and ("broken", "failed") in seen)
    assert not (tmp_path / "record").exists()
    assert [host.connections[name].state.status for name in ("later", "off")] == ["idle", "disabled"]


async def test_a_name_that_is_not_configured_or_disabled_is_told(make_host: MakeHost) -> None:
    async def connection(name: str) -> None:
        host.connection(name)

    host = make_host(off=entry(hostile(), disabled=True), bad={"command": 7})
    assert await failure(connection("nobody")) == "server_unknown"
    assert await failure(connection("off")) == "server_disabled"
    assert await failure(connection("bad")) == "server_unknown"
    assert [(fault.code, fault.server) for fault in host.faults] == [("configuration_invalid", "bad")]


async def test_a_reload_keeps_what_did_not_change_and_replaces_what_did(make_host: MakeHost, paths: Paths) -> None:
    kept, changed, removed = entry(hostile()), entry(hostile()), entry(hostile())
    host = make_host(kept=kept, changed=changed, removed=removed)
    told: list[None] = []
    host.servers_changed.connect(lambda: told.append(None))
    before = dict(host.connections)
    call = asyncio.create_task(before["kept"].call_tool("wait", {"seconds": 2}))
    await asyncio.gather(*(connection.connect() for connection in before.values()))
    write(paths, new=entry(hostile()), changed=entry(hostile(), description="changed"), kept=kept)
    await host.reload(read_configuration(paths.servers_file))
    assert list(host.connections) == ["new", "changed", "kept"] and len(told) == 1
    assert host.connections["kept"] is before["kept"] and host.connections["changed"] is not before["changed"]
    assert len(children()) == 1
    assert not (await call).is_error  # a call through what was kept went on
    assert await failure(before["removed"].list_tools()) == "server_disabled"
    assert len(await host.connection("changed").list_tools()) > 1


async def test_nothing_starts_before_consent_and_everything_with_that_command_after_it(
    make_host: MakeHost, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    consent = Consent(tmp_path / "consent.json")
    command = entry(hostile("--record", str(record)))
    host = make_host(consent, first={**command, "start": "launch"}, second=command, other=entry(hostile()))
    await host.start()
    assert {connection.state.status for connection in host.connections.values()} == {"needs_consent"}
    assert await failure(host.connection("second").list_tools()) == "consent_required"
    await host.give_consent("first")
    await until(lambda: host.connection("first").state.status == "connected")
    assert [host.connection(name).state.status for name in ("second", "other")] == ["idle", "needs_consent"]
    assert len(records(record, "started")) == 1


async def test_a_command_that_changed_on_disk_needs_consent_again(
    make_host: MakeHost, paths: Paths, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    host = make_host(Consent(tmp_path / "consent.json"), files=entry(hostile()))
    await host.give_consent("files")
    await host.connection("files").connect()
    write(paths, files=entry(hostile("--record", str(record))))
    await host.reload(read_configuration(paths.servers_file))
    assert host.connection("files").state.status == "needs_consent"
    assert await failure(host.connection("files").connect()) == "consent_required"
    assert not record.exists() and children() == []


async def test_closing_ends_stubborn_servers_together_and_nothing_starts_afterwards(
    make_host: MakeHost, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    stubborn = entry(hostile("--ignore-end", "--grandchild", "group", "--record", str(record)))
    slow = entry(hostile("--slow-start", "600", "--ignore-end"), start="launch")
    host = make_host(**{f"stubborn{n}": stubborn for n in range(4)}, slow=slow, idle=entry(hostile()))
    await asyncio.gather(*(host.connection(f"stubborn{n}").connect() for n in range(4)))
    call = asyncio.create_task(host.connection("stubborn0").call_tool("wait", {"seconds": 60}))
    await host.start()
    await until(lambda: len(records(record, "grandchild")) == 4 and len(children()) == 5)
    began = time.monotonic()
    await host.close()
    assert time.monotonic() - began < 6
    assert await failure(call) == "cancelled"
    assert await failure(host.connection("idle").list_tools()) == "server_disabled"
    for each in (*records(record, "started"), *records(record, "grandchild")):
        assert not psutil.pid_exists(each["pid"]) or psutil.Process(each["pid"]).status() == psutil.STATUS_ZOMBIE
    await host.close()


async def test_a_server_killed_under_the_host_is_brought_back(make_host: MakeHost) -> None:
    host = make_host(files=entry(hostile()))
    connection = host.connection("files")
    await connection.connect()
    seen: list[str] = []
    host.state_changed.connect(lambda name: seen.append(host.connections[name].state.status))
    children()[0].kill()
    await until(lambda: seen[-1:] == ["connected"])
    assert seen == ["failed", "failed", "connecting", "connected"]


async def test_each_server_has_a_private_log_of_its_own(make_host: MakeHost, paths: Paths) -> None:
    host = make_host(files=entry(hostile("--stderr", "listening")), other=entry(hostile()))
    await asyncio.gather(*(connection.connect() for connection in host.connections.values()))
    file = paths.logs / "server-files.log"
    await until(lambda: file.exists() and "listening" in file.read_text())
    assert file.stat().st_mode & 0o777 == 0o600
    assert "listening" not in "".join(host.connection("other").log.tail(500))
