"""Twenty servers in the window, five of them broken, three that don't want to end."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from desktop.paths import Paths
from tests.end_to_end.programs import finds_and_calls
from tests.end_to_end.window import deskhand
from tests.fakes.model_server import ModelServer
from tests.host.conftest import records, until
from tests.host.test_many_servers import BROKEN, EXPECTED
from tests.servers.running import hostile
from tests.ui.conftest import anyio_backend, no_window_left  # noqa: F401  # the window's loop

pytestmark = pytest.mark.anyio
HEALTHY, STUBBORN = 15, 3
SHOWN = (
    "The server's command was not found",
    "The server's process ended with status 7",
    "fatal: no configuration found",
    "The server did not answer in time",
    "warming up",
    "nothing answers at its address",
)


async def test_the_window_uses_the_healthy_shows_why_the_others_fail_and_quits_in_six_seconds(
    paths: Paths, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    servers: dict[str, Any] = {name: {"command": sys.executable, **entry} for name, entry in BROKEN.items()}
    servers["refused"] = {"url": BROKEN["refused"]["url"]}
    for number in range(HEALTHY):
        switches = ("--ignore-end", "--grandchild", "session") if number < STUBBORN else ()
        command = hostile(*switches, "--record", str(record))
        servers[f"server{number}"] = {"command": command[0], "args": command[1:]}
    for entry in servers.values():
        entry |= {"start": "launch"}
    for name in ("hangs", "garbage"):
        servers[name] |= {"startupTimeoutMs": 4000}
    model = ModelServer(finds_and_calls("server14.echo", "server14.echo", {"text": "round"}))
    async with model:
        async with deskhand(paths, servers, model) as person:
            connections = person.core.host.connections
            await person.waits_for(
                lambda: all(connections[f"server{number}"].state.status == "connected" for number in range(HEALTHY))
            )
            await person.says("Echo round, please")
            await person.clicks("Allow once")
            await person.waits_for_the_end()
            assert "round" in person.answer
            for name, (_, code, _, _) in EXPECTED.items():
                await person.waits_for(lambda name=name: connections[name].state.failure)
                failure = connections[name].state.failure
                assert failure is not None and failure.diagnostic.code == code
            for words in SHOWN:
                await person.waits_for(lambda words=words: words in person.sees)
            pids = [each["pid"] for event in ("started", "grandchild") for each in records(record, event)]
            assert len(pids) == HEALTHY + STUBBORN and all(map(psutil.pid_exists, pids))
            begun = time.monotonic()
        assert time.monotonic() - begun < 6
    await until(lambda: not any(map(psutil.pid_exists, pids)))
