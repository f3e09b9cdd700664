"""Which program a command names, without starting anything that the definition brings along."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from desktop.errors import AssistantError
from desktop.host import environment, programs
from desktop.host.environment import LoginShell, resolve_command
from desktop.host.programs import Program, find_program
from desktop.host.runtimes import RUNTIMES, runtime_of
from desktop.links import check

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="programs here are shell scripts"),
]


def program(file: Path, content: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{content}\n")
    file.chmod(0o755)
    return file


@pytest.fixture(autouse=True)
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of programs beside the system's, for a shell that is asked anew."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'tools'}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", "/bin/false")
    monkeypatch.setattr(environment, "_login_shell", LoginShell())
    monkeypatch.setattr(programs, "_versions", dict[tuple[str, float], str]())
    return tmp_path / "tools"


async def test_a_known_program_says_its_version_once(tools: Path) -> None:
    asked = tools.parent / "asked"
    npx = program(tools / "npx", f'echo x >> {asked}\necho "10.8.2"\necho more')
    found = await find_program("npx", {}, None)
    assert found == Program("npx", str(npx), "10.8.2")
    assert str(found) == f"npx 10.8.2 ({npx})"
    assert await find_program("npx", {"SOME": "value"}, None) == found
    assert asked.read_text() == "x\n"


def test_a_path_is_said_once() -> None:
    assert str(Program("/opt/server", "/opt/server")) == "/opt/server"
    assert str(Program("~/server", "/home/ann/server")) == "~/server (/home/ann/server)"


async def test_what_is_not_there_is_said(tools: Path) -> None:
    assert str(await find_program("uvx-of-nobody", {}, None)) == "uvx-of-nobody: not found"


async def test_nothing_is_started_that_the_definition_brings_along(tools: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    program(tools / "npx", "echo 1.0")
    evil = program(tmp_path / "evil" / "npx", f"touch {ran}; echo 6.6.6")
    found = await find_program("npx", {"PATH": str(evil.parent)}, None)
    assert found == Program("npx", str(evil), "")
    assert await find_program(str(evil), {}, None) == Program(str(evil), str(evil), "")
    assert await find_program("./npx", {}, str(evil.parent)) == Program("./npx", f"{evil.parent}/./npx", "")
    other = program(tools / "mail-server", f"touch {ran}")
    assert await find_program("mail-server", {}, None) == Program("mail-server", str(other), "")
    assert not ran.exists()


@pytest.mark.parametrize("content", ["exit 3", "sleep 60", "printf '\\033]0;x\\007\\n'", "yes"])
async def test_a_program_that_fails_hangs_or_babbles_has_no_version_or_a_harmless_one(
    tools: Path, content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "_LONGEST_ANSWER", 0.3)
    npx = program(tools / "npx", content)
    found = await find_program("npx", {}, None)
    assert found.path == str(npx)
    assert found.version in ("", "\\x1B]0;x\\x07")


async def test_a_command_of_a_known_runtime_that_is_missing_says_what_to_install() -> None:
    for command in ("docker-of-nobody", "./npx", "/nowhere/npx"):
        with pytest.raises(AssistantError) as raised:
            resolve_command(command, {"PATH": "/nowhere"}, None)
        assert raised.value.diagnostic.code == "command_not_found"
    with pytest.raises(AssistantError) as raised:
        resolve_command("npx", {"PATH": "/nowhere"}, None)
    assert str(raised.value) == (
        "[runtime_missing] The server's command npx was not found. Install Node.js, which brings it: "
        "https://nodejs.org/en/download. Then connect the server again."
    )


def test_every_runtime_has_a_page_that_may_be_opened() -> None:
    assert all(check(runtime.site) is not None for runtime in RUNTIMES.values())
    assert runtime_of("NPX.cmd") == runtime_of("node")
    assert runtime_of("/usr/bin/npx") is None
