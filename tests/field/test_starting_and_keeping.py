"""Starting and keeping servers: what goes wrong in programs of this kind.

A start as from a desktop's menu, with the folders that only the login shell names, is in ``end_to_end/test_bare_start.py``; many
things at once are in ``host/test_races.py``.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE
from pathlib import Path

import psutil
import pytest

from desktop import processes
from desktop.errors import AssistantError
from desktop.host.environment import check_batch_arguments, resolve_command
from tests.field.conftest import MakeDesk, run
from tests.host.conftest import LONGEST_WAIT, failure, records, scripted, text, until
from tests.servers.running import hostile

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]


async def test_a_variable_in_the_definition_removes_none_and_networks_and_languages_are_passed_on(
    make_desk: MakeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = {
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "no_proxy": "localhost",
        "SSL_CERT_DIR": "/etc/ssl/certs",
        "NODE_EXTRA_CA_CERTS": "/etc/ssl/company.pem",
        "LC_ALL": "C.UTF-8",
    }
    for name, value in {**passed, "OPENAI_API_KEY": "canary"}.items():
        monkeypatch.setenv(name, value)
    desk = make_desk(server=run(hostile(), env={"ONE": "1"}), other=run(hostile(), env={"PATH": "/only/here"}))
    seen = json.loads(text(await desk.connection().call_tool("environment", {})))
    assert seen["ONE"] == "1" and {"HOME", "PATH", "USER"} <= set(seen)
    assert set(os.environ["PATH"].split(os.pathsep)) <= set(seen["PATH"].split(os.pathsep))
    assert {name: seen.get(name) for name in passed} == passed
    assert "canary" not in json.dumps(seen)
    other = json.loads(text(await desk.connection("other").call_tool("environment", {})))
    assert other["PATH"] == "/only/here" and other["HTTPS_PROXY"] == passed["HTTPS_PROXY"]


async def test_what_is_no_message_is_in_the_log_and_nothing_is_lost(make_desk: MakeDesk) -> None:
    desk = make_desk(server=run(hostile("--banner")))
    texts = [text(await desk.connection().call_tool("echo", {"text": str(number)})) for number in range(3)]
    assert texts == ["0", "1", "2"] and desk.connection().state.status == "connected"
    strays = [line.text for line in desk.connection().log.lines() if line.kind == "stray"]
    assert "Server v1.0 ready 🚀" in strays and "│ hello  │" in strays


@pytest.mark.parametrize(
    ("command", "stage", "code", "status", "said"),
    [
        (hostile("--exit-at-start", "1"), "handshake", "server_exited", 1, "no configuration found"),
        (
            [sys.executable, "-c", "import os; os.write(2, b'no line end'); os.abort()"],
            "handshake",
            "server_exited",
            -6,
            "end",
        ),
        ([sys.executable, "-c", "print('usage: server [options]')"], "handshake", "server_exited", 0, "usage: server"),
        (
            scripted(initialize={"error": {"code": -32603, "message": "no licence"}}),
            "handshake",
            "server_error",
            None,
            "licence",
        ),
        (["no-such-server"], "start", "command_not_found", None, ""),
    ],
    ids=["exits", "aborts", "prints its usage", "refuses", "is not there"],
)
async def test_a_server_that_fails_says_where_why_and_what_it_said_last(
    make_desk: MakeDesk, command: list[str], stage: str, code: str, status: int | None, said: str
) -> None:
    desk = make_desk(server=run(command))
    assert await failure(desk.connection().connect()) == code
    state = desk.connection().state
    assert state.status == "failed" and state.failure is not None
    assert (state.failure.stage, state.failure.exit_status) == (stage, status)
    assert said in state.failure.error_output or any(said in line.text for line in desk.connection().log.lines())
    assert str(state.failure.diagnostic).startswith(f"server: [{code}] ")


async def test_a_server_that_ends_by_and_by_comes_back_and_no_call_is_sent_twice(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    desk = make_desk(server=run(hostile("--exit-on-call", "3", "--record", str(record))))
    connection = desk.connection()
    assert [text(await connection.call_tool("echo", {"text": each})) for each in "ab"] == ["a", "b"]
    states: list[str] = []
    connection.state_changed.connect(lambda: states.append(connection.state.status))
    assert await failure(connection.call_tool("echo", {"text": "c"})) == "server_exited"
    await until(lambda: connection.state.status == "connected")
    assert states[0] == "failed" and "connecting" in states
    assert text(await connection.call_tool("echo", {"text": "d"})) == "d"
    called = [each["arguments"]["text"] for each in records(record, "call")]
    assert called in (["a", "b", "d"], ["a", "b", "c", "d"])  # whether it noted the third before it ended
    assert len(records(record, "started")) == 2


async def test_a_start_that_takes_longer_than_a_request_may_is_waited_for(make_desk: MakeDesk) -> None:
    desk = make_desk(
        server=run(hostile("--slow-start", "2"), request_time_limit=1, call_time_limit=1, startup_time_limit=30)
    )
    assert text(await desk.connection().call_tool("echo", {"text": "at last"})) == "at last"


async def test_time_in_which_the_window_is_busy_is_not_the_server_s(make_desk: MakeDesk) -> None:
    desk = make_desk(server=run(hostile(), startup_time_limit=4, request_time_limit=1.5))
    connecting = asyncio.create_task(desk.connection().connect())
    await until(lambda: desk.connection().state.status == "connecting")
    time.sleep(5)  # noqa: ASYNC251 - this is the fault
    await connecting
    listing = asyncio.create_task(desk.connection().list_tools())
    await asyncio.sleep(0)
    time.sleep(2)  # noqa: ASYNC251
    assert len(await listing) > 5


OWNER = """
import asyncio, sys
from pathlib import Path
from desktop import processes
from desktop.errors import AssistantError
from desktop.host.environment import check_batch_arguments, resolve_command
processes.OWNER_VARIABLE = "DESKHAND_FIELD_OWNER"
from desktop.host.consent import Consent
from desktop.host.host import Host
from desktop.host.server_config import Configuration, ServerDefinition
from desktop.paths import Paths

async def main():
    servers = [ServerDefinition(f"s{n}", "stdio", command=sys.argv[1], args=tuple(sys.argv[2:])) for n in range(2)]
    host = Host(Configuration(tuple(servers)), paths=Paths.for_user(), read_large=None, builtin=None,
                consent=Consent.for_everything())
    for connection in host.connections.values():
        await connection.connect()
    print("ready", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere nothing tells of a process's owner")
async def test_what_a_killed_deskhand_leaves_is_ended_at_the_next_start_and_nothing_of_a_living_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Servers that take no notice of the end of their input or of SIGTERM, and what they started in a session of its own."""
    monkeypatch.setattr(processes, "OWNER_VARIABLE", "DESKHAND_FIELD_OWNER")  # others' leftovers are not ours to end
    owners: list[asyncio.subprocess.Process] = []
    started: list[list[int]] = []
    try:
        for name in ("killed", "living"):
            record = tmp_path / name
            command = hostile("--ignore-end", "--grandchild", "session", "--record", str(record))
            owner = await processes.start([sys.executable, "-c", OWNER, *command], folder=ROOT, stdout=PIPE)
            owners.append(owner)
            assert owner.stdout is not None
            async with asyncio.timeout(LONGEST_WAIT):
                assert await owner.stdout.readline() == b"ready\n"
            started.append([each["pid"] for each in records(record, "started") + records(record, "grandchild")])
        left, kept = started
        assert len(left) == len(kept) == 4
        owners[0].kill()
        await owners[0].wait()
        assert all(map(psutil.pid_exists, left))
        assert await asyncio.to_thread(processes.sweep_orphans) == 4
        await until(lambda: all(processes.start_time(pid) is None for pid in left))
        assert all(processes.start_time(pid) is not None for pid in kept)
        assert await asyncio.to_thread(processes.sweep_orphans) == 0
    finally:
        for pid in [pid for pids in started for pid in pids]:
            if processes.start_time(pid) is not None:
                os.kill(pid, signal.SIGKILL)
        for owner in owners:
            processes.kill_tree(owner.pid)
            await owner.wait()


async def test_there_is_one_process_of_a_server_however_many_ask_at_once(make_desk: MakeDesk, tmp_path: Path) -> None:
    record = tmp_path / "record"
    desk = make_desk(server=run(hostile("--record", str(record))))
    await asyncio.gather(
        desk.catalog.search("echo"),
        desk.connection().call_tool("echo", {"text": "one"}),
        desk.connection().list_resources(),
        *(desk.connection().connect() for _ in range(20)),
    )
    assert len(records(record, "started")) == 1


def test_a_launcher_of_windows_is_found_by_its_ending_and_takes_no_argument_that_its_interpreter_would_act_on(
    tmp_path: Path,
) -> None:
    launcher = tmp_path / "srv.cmd"
    launcher.touch(0o755)
    variables = {"Path": str(tmp_path), "PATHEXT": ".com;.exe;.cmd"}
    found = resolve_command("srv", variables, None, windows=True)
    assert Path(found).name.lower() == "srv.cmd"
    check_batch_arguments([found, "--root", "my folder"])
    for argument in ("&calc", "%PATH%", 'a"b'):
        with pytest.raises(AssistantError):
            check_batch_arguments([found, argument])


async def test_a_server_that_dies_while_idle_is_not_connected_any_more_before_anybody_asks(make_desk: MakeDesk) -> None:
    desk = make_desk(server=run(hostile()))
    connection = desk.connection()
    await connection.connect()
    for child in psutil.Process().children():
        child.kill()
    await until(lambda: connection.state.status != "connected")
    await until(lambda: connection.state.status == "connected")  # by itself


async def test_a_connection_opened_by_one_task_is_closed_by_another_during_a_call(make_desk: MakeDesk) -> None:
    desk = make_desk(server=run(hostile()))
    await asyncio.create_task(desk.connection().connect())
    call = asyncio.create_task(desk.connection().call_tool("wait", {"seconds": 30}))
    await until(lambda: desk.connection().state.status == "connected")
    await asyncio.create_task(desk.close())
    assert await failure(call) == "cancelled"
    assert not psutil.Process().children()
