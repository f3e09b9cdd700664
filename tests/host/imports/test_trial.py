"""A server is tried before it is saved: what it offers, or why it fails; nothing of the trial is left."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from desktop.host.server_config import ServerDefinition
from desktop.host.trial import Outcome, try_out
from tests.host.conftest import children, until
from tests.servers.running import friendly, http_server

pytestmark = pytest.mark.anyio


async def no_secret(_name: str) -> str | None:
    return None


async def tried(definition: ServerDefinition, tmp_path: Path) -> Outcome:
    async with asyncio.timeout(30):
        return await try_out(definition, secret=no_secret, read_large=None, spool_folder=tmp_path / "spool")


def program(*command: str) -> ServerDefinition:
    return ServerDefinition("tried", "stdio", command=command[0], args=command[1:])


def sleepers() -> list[int]:
    """The processes of the server that a test starts; others may end while they are looked at."""
    found: list[int] = []
    for each in children():
        with suppress(psutil.Error):
            if "time.sleep(600)" in " ".join(each.cmdline()):
                found.append(each.pid)
    return found


async def test_a_program_that_works_says_what_it_offers_and_is_ended(tmp_path: Path) -> None:
    outcome = await tried(program(*friendly()), tmp_path)
    assert outcome.failure is None
    assert outcome.counts["tool"] == 9
    assert outcome.counts["prompt"] == 3
    assert (outcome.title, outcome.protocol_version[:2], outcome.seconds > 0) == ("Friendly server", "20", True)
    assert children() == []


async def test_a_server_that_is_reached_by_its_address(tmp_path: Path) -> None:
    async with http_server(friendly()) as url:
        outcome = await tried(ServerDefinition("tried", "http", url=url), tmp_path)
    assert (outcome.failure, outcome.counts["tool"]) == (None, 9)


async def test_a_failure_has_its_stage_code_and_last_lines(tmp_path: Path) -> None:
    code = "import sys; print('no key given', file=sys.stderr); sys.exit(3)"
    failure = (await tried(program(sys.executable, "-c", code), tmp_path)).failure
    assert failure is not None
    assert (failure.diagnostic.code, failure.exit_status) == ("server_exited", 3)
    assert "no key given" in failure.error_output
    missing = (await tried(program("no-such-program-anywhere"), tmp_path)).failure
    assert missing is not None
    assert (missing.stage, missing.diagnostic.code) == ("start", "command_not_found")


async def test_a_cancelled_trial_leaves_no_process(tmp_path: Path) -> None:
    sleeper = program(sys.executable, "-c", "import time; time.sleep(600)")
    task = asyncio.create_task(tried(sleeper, tmp_path))
    await until(sleepers)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sleepers() == []
