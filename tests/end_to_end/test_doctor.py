"""``deskhand doctor`` run as a person runs it: what works, what to do about the rest, and an exit status that tells."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from desktop import __version__
from desktop.paths import Paths
from tests import desktop_session
from tests.end_to_end.programs import deskhand, write_servers

pytestmark = pytest.mark.anyio


async def report(**extra: Any) -> tuple[int, dict[str, dict[str, Any]], str]:
    """Exit status, checks by name, and all that was printed."""
    found = await deskhand("doctor", "--json", **extra)
    assert found.errors == ""
    content = json.loads(found.output)
    assert content["version"] == __version__
    assert content["ok"] == (found.status == 0)
    return found.status, {check["name"]: check for check in content["checks"]}, found.output


async def test_on_a_fresh_computer_it_tells_what_works_and_is_content(paths: Paths) -> None:
    status, checks, _ = await report()
    assert status == 0
    assert checks["Python"]["found"].startswith(sys.version.split()[0])
    for name in ("PySide6-Essentials", "mcp", "litellm", "keyring", "Conversations", "Stored results", "Disk space"):
        assert checks[name]["ok"], name
    assert checks["Window"]["found"] == "Qt's platform “offscreen”"
    assert checks["Model"]["found"] == "none chosen: Guide answers, which is no language model"
    assert "is not there yet; no servers" in checks["Servers"]["found"]
    assert all(bool(check["remedy"]) != check["ok"] for check in checks.values())
    assert [each.name for each in paths.data.iterdir() if each.name.startswith(".doctor")] == []


async def test_a_file_of_servers_that_can_t_be_read_is_told_with_its_place_and_kept(paths: Paths) -> None:
    paths.config.mkdir(parents=True)
    paths.servers_file.write_text('{\n  "mcpServers": {"a": }\n}')
    found = await deskhand("doctor")
    assert found.status == 1
    assert f"✘ Servers ({paths.servers_file})" in found.output
    assert "at line 2, column" in found.output
    assert "Something that Deskhand needs is missing; see ✘." in found.output
    assert paths.servers_file.read_text() == '{\n  "mcpServers": {"a": }\n}'


@pytest.mark.skipif(sys.platform == "win32", reason="programs here are shell scripts")
async def test_each_server_s_program_is_looked_for_and_no_value_is_shown(paths: Paths, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "uvx").write_text("#!/bin/sh\necho uvx 1.2.3\n")
    (tools / "uvx").chmod(0o755)
    canary = {"env": {"TOKEN": "canary-value"}, "args": ["--key", "canary-argument"]}
    write_servers(
        paths.servers_file,
        web={"url": "https://example.com/canary-path?key=canary", "headers": {"X-Key": "canary-header"}},
        off={"command": "anything", "disabled": True},
        there={"command": "uvx", **canary},
        own={"command": str(tools / "mine"), **canary},
        nowhere={"command": "npx", "env": {"PATH": "/nowhere"}, "cwd": str(tmp_path)},
        bad={"command": "x", "args": ["a", 7]},
    )
    status, checks, printed = await report(PATH=f"{tools}:/usr/bin:/bin", SHELL="/bin/false")
    assert status == 0  # of the servers none is Deskhand's own
    assert checks["Server web"]["found"] == "http at example.com"
    assert checks["Server off"]["found"] == "disabled"
    assert checks["Server there"]["found"] == f"uvx uvx 1.2.3 ({tools / 'uvx'}), not allowed to start yet"
    assert checks["Server own"]["remedy"] == "Install it, or give its full path."
    assert checks["Server nowhere"]["found"] == "npx: not found"
    assert checks["Server nowhere"]["remedy"] == "Install Node.js: https://nodejs.org/en/download"
    assert "args[1]" in checks["Server bad"]["found"]
    assert "canary" not in printed


async def test_a_folder_that_can_t_be_written_fails(paths: Paths) -> None:
    paths.config.parent.mkdir(parents=True, exist_ok=True)
    paths.data.write_text("a file where a folder should be")
    status, checks, _ = await report()
    assert status == 1
    assert "can't be written" in checks["Conversations"]["found"]
    assert checks["Settings and servers"]["ok"]


async def test_a_chosen_model_needs_its_key_which_is_never_shown(paths: Paths) -> None:
    paths.config.mkdir(parents=True)
    paths.settings_file.write_text(json.dumps({"model": "anthropic/claude-sonnet-5-5"}))
    status, checks, _ = await report()
    assert status == 1
    assert checks["Model"]["found"] == "anthropic/claude-sonnet-5-5, its key is not there"
    assert checks["Model"]["remedy"] == "Enter its key in the settings under Models."
    status, checks, printed = await report(ANTHROPIC_API_KEY="sk-canary-0123456789")
    assert status == 0
    assert checks["Model"]["found"] == "anthropic/claude-sonnet-5-5, its key in ANTHROPIC_API_KEY"
    assert checks["Keys of models"]["found"] == "Anthropic in ANTHROPIC_API_KEY"
    assert "canary" not in printed


async def test_without_a_screen_the_commands_work_all_the_same() -> None:
    if sys.platform != "linux":
        pytest.skip("screens are the system's own elsewhere")
    status, checks, _ = await report(QT_QPA_PLATFORM="", DISPLAY="", WAYLAND_DISPLAY="")
    assert status == 0
    assert checks["Window"]["found"] == "there is no screen"
    status, checks, _ = await report(QT_QPA_PLATFORM="xcb", DISPLAY=":987654", WAYLAND_DISPLAY="")
    assert status == 1
    assert checks["Window"]["found"] == "Qt can't open one"


@pytest.mark.skipif(shutil.which("gnome-keyring-daemon") is None, reason="GNOME's keyring")
async def test_a_real_keyring_is_tried_and_left_as_it_was(tmp_path: Path) -> None:
    with desktop_session.keyring(tmp_path / "home") as variables:
        _, checks, _ = await report(**variables)
        assert checks["Keyring"]["ok"]
        assert checks["Keyring"]["found"]
        _, checks, _ = await report(**variables, PYTHON_KEYRING_BACKEND="keyring.backends.null.Keyring")
        assert checks["Keyring"]["found"] == "none of the system's"
