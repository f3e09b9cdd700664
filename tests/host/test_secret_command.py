"""Values that a command prints: when it runs, what is made of its output, how it fails and ends, and that nothing of it shows."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from desktop import log as desktop_log
from desktop.errors import AssistantError
from desktop.host.consent import Consent
from desktop.host.host import Host
from desktop.host.secret_command import printed_values
from desktop.host.server_config import ServerDefinition
from desktop.host.servers_file import read_configuration
from desktop.paths import Paths
from tests.host.conftest import MakeConnection, children, failure, until
from tests.servers.running import friendly, hostile, http_server

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="the commands are those of a POSIX shell"),
]

CANARY = "canary-5fd1c0"


def with_command(command: str, **more: Any) -> ServerDefinition:
    return ServerDefinition("server", "stdio", command="server", env={"TOKEN": f"!{command}"}, **more)


async def test_what_a_command_prints_is_the_value_without_the_space_around_it() -> None:
    assert await printed_values(with_command(f"printf '  {CANARY} $!x ${{HOME}}\\n\\n'")) == {
        "TOKEN": f"{CANARY} $!x ${{HOME}}"
    }


async def test_several_commands_run_and_ordinary_values_stay_out() -> None:
    definition = ServerDefinition(
        "server", "http", url="https://example.org", headers={"A": "!echo one", "B": "$!echo", "C": "! echo two"}
    )
    assert await printed_values(definition) == {"A": "one", "C": "two"}


async def test_a_command_runs_in_the_servers_folder_with_deskhands_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VAULT_ADDRESS", "https://vault")
    command = 'echo "$PWD $VAULT_ADDRESS"'
    assert await printed_values(with_command(command, cwd=str(tmp_path))) == {"TOKEN": f"{tmp_path} https://vault"}


async def test_the_open_folder_is_no_place_to_find_a_commands_program(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("#!/bin/sh\necho stolen")
    (tmp_path / "token").chmod(0o700)
    with pytest.raises(AssistantError) as raised:
        await printed_values(with_command("./token", folder=str(tmp_path)))
    assert raised.value.diagnostic.values["reason"] == "it ended with status 127"


async def test_a_command_has_a_closed_input_and_its_error_output_is_discarded() -> None:
    command = f"cat; echo {CANARY} >&2; echo value"
    assert await printed_values(with_command(command)) == {"TOKEN": "value"}


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("true", "it prints nothing"),
        ("echo '  '", "it prints nothing"),
        (f"echo {CANARY}; exit 7", "it ended with status 7"),
        (f"echo {CANARY}; kill -9 $$", "it ended with status -9"),
        (f"yes {CANARY}", "it prints more than 64 KiB"),
        (f"printf '{CANARY}\\0x'", "it prints several lines, or a character that no process takes"),
        (f"printf '{CANARY}\\nx'", "it prints several lines, or a character that no process takes"),
        (f"printf '{CANARY}\\377'", "it prints no UTF-8 text"),
        (f"/nowhere/{CANARY}", "it ended with status 127"),
    ],
)
async def test_a_command_that_gives_no_value_is_told_without_a_word_of_it(command: str, reason: str) -> None:
    with pytest.raises(AssistantError) as raised:
        await printed_values(with_command(command))
    diagnostic = raised.value.diagnostic
    assert (diagnostic.code, diagnostic.server) == ("secret_lookup_failed", "server")
    assert diagnostic.values == {"variable": "TOKEN", "reason": reason}
    assert CANARY not in f"{raised.value!r} {raised.value} {raised.value.__cause__!r}"
    assert children() == []


async def test_a_folder_that_is_not_there_fails_before_anything_runs(make: MakeConnection, tmp_path: Path) -> None:
    connection = make([sys.executable], cwd=str(tmp_path / "gone"), env={"A": f"!touch {tmp_path}/ran"})
    assert await failure(connection.connect()) == "configuration_invalid"
    assert not (tmp_path / "ran").exists()


async def test_all_of_a_servers_commands_share_one_time_limit_and_the_whole_group_ends(tmp_path: Path) -> None:
    definition = ServerDefinition(
        "server",
        "stdio",
        command="server",
        env={"A": "!sleep 0.4; echo a", "B": f"!sleep 60 & echo $! > {tmp_path}/pid; sleep 60"},
        request_time_limit=1,
    )
    begun = time.monotonic()
    with pytest.raises(AssistantError) as raised:
        await printed_values(definition)
    assert raised.value.diagnostic.code == "timeout"
    assert 0.9 < time.monotonic() - begun < 5
    await until(lambda: not psutil.pid_exists(int((tmp_path / "pid").read_text())))
    assert children() == []


async def test_a_connection_of_callers_together_runs_a_command_once_and_a_reconnect_again(
    make: MakeConnection, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    connection = make(friendly(), env={"TOKEN": f"!echo once >> {ran}; echo {CANARY}"})
    identity = connection.definition.identity
    await asyncio.gather(connection.connect(), connection.list_tools(), connection.list_prompts())
    assert ran.read_text().count("once") == 1
    await connection.reconnect()
    assert ran.read_text().count("once") == 2
    assert connection.definition.identity == identity


async def test_a_server_that_is_started_again_for_the_older_handshake_runs_its_command_once(
    make: MakeConnection, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    connection = make(hostile("--exit-on-discover"), env={"TOKEN": f"!echo once >> {ran}; echo x"})
    await connection.connect()
    assert ran.read_text() == "once\n"


async def test_the_value_reaches_the_server_and_no_log(make: MakeConnection) -> None:
    code = "import os, sys; print(os.environ['TOKEN'], file=sys.stderr); sys.exit(3)"
    connection = make([sys.executable, "-c", code], env={"TOKEN": f"!echo {CANARY}"})
    assert await failure(connection.connect()) == "server_exited"
    told = f"{connection.state!r} {connection.log.tail(100)} {connection.definition!r}"
    assert CANARY not in told and "[redacted]" in told
    assert CANARY not in desktop_log.redacted(f"token {CANARY}")


async def test_a_header_that_a_command_prints_is_sent(make: MakeConnection) -> None:
    async with http_server(hostile("--unauthorized")) as url:
        connection = make(kind="http", url=url, headers={"Authorization": "!echo Bearer good"})
        await connection.connect()


async def test_closing_ends_a_command_that_runs_and_never_connects(make: MakeConnection, tmp_path: Path) -> None:
    started = tmp_path / "started"
    connection = make(
        [sys.executable, "-c", f"open({str(tmp_path / 'server')!r}, 'w')"],
        env={"TOKEN": f"!echo $$ > {started}; sleep 60; echo x"},
    )
    attempt = asyncio.create_task(failure(connection.connect()))
    await until(lambda: started.exists() and started.read_text().strip())
    await connection.close(for_good=True)
    assert await attempt == "cancelled"
    assert not psutil.pid_exists(int(started.read_text()))
    assert not (tmp_path / "server").exists()
    assert children() == []


async def test_a_command_waits_for_consent_whether_its_server_is_a_program_or_an_address(
    paths: Paths, tmp_path: Path
) -> None:
    paths.config.mkdir(parents=True)
    command = f"!touch {tmp_path}/ran; echo x"
    paths.servers_file.write_text(
        json.dumps(
            {
                "mcpServers": {
                    "program": {"command": sys.executable, "env": {"A": command}, "start": "launch"},
                    "address": {"url": "http://127.0.0.1:9/", "headers": {"A": command}, "start": "launch"},
                }
            }
        )
    )
    host = Host(
        read_configuration(paths.servers_file),
        paths=paths,
        read_large=None,
        builtin=None,
        consent=Consent(tmp_path / "consent.json"),
        backoff=(),
    )
    await host.start()
    for connection in host.connections.values():
        assert connection.state.status == "needs_consent"
        assert await failure(connection.connect()) == "consent_required"
    assert not (tmp_path / "ran").exists()
    await host.give_consent("address")
    await until(lambda: host.connections["address"].state.status == "failed")
    assert (tmp_path / "ran").exists()
    await host.close()


@pytest.mark.parametrize("value", ["!", "!  ", "!a\0b"])
def test_an_exclamation_mark_without_a_command_is_refused(tmp_path: Path, value: str) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"a": {"command": "x", "env": {"A": value}}}}))
    (fault,) = read_configuration(file).faults
    assert fault.values["where"] == " at env.A"


async def test_a_variables_value_that_begins_with_an_exclamation_mark_is_no_command(
    make: MakeConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FROM_OUTSIDE", f"!touch {tmp_path}/ran")
    code = "import os, sys; print(os.environ['A'], os.environ['B'], file=sys.stderr)"
    connection = make([sys.executable, "-c", code], env={"A": "${FROM_OUTSIDE}", "B": "$!touch x"})
    assert connection.definition.secret_commands == {}
    await failure(connection.connect())
    assert not (tmp_path / "ran").exists()


async def test_the_keys_in_deskhands_own_environment_reach_no_server(
    make: MakeConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    code = "import os, sys; print('key' if 'OPENAI_API_KEY' in os.environ else 'none', file=sys.stderr)"
    connection = make([sys.executable, "-c", code], env={"A": "!echo x"})
    await failure(connection.connect())
    assert "none" in str(connection.log.tail(10)) and "OPENAI_API_KEY" in os.environ
