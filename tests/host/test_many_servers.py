"""Twenty servers at once, five of them broken in different ways: the others are usable, each broken one says why, and nothing is
left after a quit."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from desktop.host.catalog import ServerCatalog
from desktop.host.consent import Consent
from desktop.host.host import Host
from desktop.host.server_config import Configuration, ServerDefinition
from desktop.paths import Paths
from tests.host.conftest import LONGEST_WAIT, records, text, until
from tests.servers.running import hostile

pytestmark = pytest.mark.anyio

GARBAGE = "import time\nwhile True: print('{ni hao} \\x07 ' * 9, flush=True); time.sleep(0.01)"
BROKEN: dict[str, dict[str, Any]] = {
    "missing": {"command": "no-such-server-anywhere"},
    "exits": {"args": hostile("--exit-at-start", "7")[1:]},
    "hangs": {"args": ["-c", "import sys; print('warming up', file=sys.stderr, flush=True); sys.stdin.read()"]},
    "garbage": {"args": ["-c", GARBAGE]},
    "refused": {"kind": "http", "url": "http://127.0.0.1:9/mcp"},
}
#: Stage, code, exit status, and a part of its last lines.
EXPECTED = {
    "missing": ("start", "command_not_found", None, ""),
    "exits": ("handshake", "server_exited", 7, "fatal: no configuration found"),
    "hangs": ("handshake", "timeout", None, "warming up"),
    "garbage": ("handshake", "timeout", None, "{ni hao} \\x07"),
    "refused": ("handshake", "connection_failed", None, "Connection refused"),
}
HEALTHY = 15
STUBBORN = 3


@pytest.fixture
async def host(paths: Paths, tmp_path: Path) -> AsyncIterator[Host]:
    definitions = [
        ServerDefinition(
            name,
            **{"kind": "stdio", "command": sys.executable, **fields, "args": tuple(fields.get("args", ()))},
            start="launch",
            startup_time_limit=4 if name in ("hangs", "garbage") else 60,
        )
        for name, fields in BROKEN.items()
    ]
    for number in range(HEALTHY):
        switches = ("--ignore-end", "--grandchild", ("group", "session")[number % 2]) if number < STUBBORN else ()
        command = hostile(*switches, "--record", str(tmp_path / f"record{number}"))
        definitions.append(ServerDefinition(f"server{number}", "stdio", command[0], tuple(command[1:]), start="launch"))
    host = Host(
        Configuration(tuple(definitions)), paths=paths, read_large=None, builtin=None, consent=Consent.for_everything()
    )
    yield host
    await host.close()


async def test_broken_servers_keep_nobody_waiting_and_explain_themselves_and_a_quit_leaves_nothing(
    host: Host, tmp_path: Path
) -> None:
    catalog = ServerCatalog(host)
    healthy = [f"server{number}" for number in range(HEALTHY)]
    hanging = {name: host.connections[name] for name in ("hangs", "garbage")}
    async with asyncio.timeout(LONGEST_WAIT):
        await host.start()
        results = await asyncio.gather(*(host.connection(name).call_tool("echo", {"text": name}) for name in healthy))
        assert [text(result) for result in results] == healthy
        await until(lambda: all(each.state.failure for each in hanging.values()))
        found = await catalog.search("echo", kind="tools", limit=20)
    assert {entry.server for entry in found.candidates if entry.name == "echo"} == set(healthy)
    told = {diagnostic.server: diagnostic.code for diagnostic, _ in found.not_searched}
    for name, (stage, code, status, last_lines) in EXPECTED.items():
        state = host.connections[name].state
        assert state.status == "failed" and state.failure is not None, name
        assert (state.failure.stage, state.failure.diagnostic.code, state.failure.exit_status) == (stage, code, status)
        assert last_lines in state.failure.error_output
        assert told[name] == code

    pids = [
        each["pid"]
        for number in range(HEALTHY)
        for event in ("started", "grandchild")
        for each in records(tmp_path / f"record{number}", event)
    ]
    assert len(pids) == HEALTHY + STUBBORN and all(map(psutil.pid_exists, pids))
    await catalog.close()
    begun = time.monotonic()
    await host.close()
    assert time.monotonic() - begun < 6
    await until(lambda: not any(psutil.pid_exists(pid) for pid in pids))


async def test_servers_that_hang_at_the_launch_do_not_hold_up_the_others(paths: Paths) -> None:
    hangs = {**BROKEN["hangs"], "kind": "stdio", "command": sys.executable, "startup_time_limit": 20}
    definitions = [ServerDefinition(f"hangs{number}", **hangs, start="launch") for number in range(4)]
    command = hostile()
    definitions.append(ServerDefinition("healthy", "stdio", command[0], tuple(command[1:]), start="launch"))
    host = Host(
        Configuration(tuple(definitions)), paths=paths, read_large=None, builtin=None, consent=Consent.for_everything()
    )
    try:
        await host.start()
        await until(lambda: host.connections["healthy"].state.status == "connected")
        assert all(host.connections[f"hangs{number}"].state.status == "connecting" for number in range(4))
    finally:
        await host.close()
