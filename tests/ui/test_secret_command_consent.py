"""Consent to commands that print values: whole, before the first run, for programs and addresses alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from desktop.core import Core
from desktop.ui.panels.servers_panel import ServersPanel
from tests.servers.running import friendly
from tests.ui.person import click, seen, until, write_servers

pytestmark = pytest.mark.anyio


async def panel_with(core: Core) -> ServersPanel:
    panel = ServersPanel(core)
    panel.resize(320, 700)
    panel.show()
    await core.start()
    await until(lambda: "Allow to start" in seen(panel))
    return panel


async def test_the_whole_command_is_shown_and_hidden_characters_with_it(core: Core, tmp_path: Path) -> None:
    command = f"pass show {'x' * 300}; touch {tmp_path}/ran\u202e # {' ' * 400} rm -rf ~"
    program = friendly()
    write_servers(core.servers_file, a={"command": program[0], "args": program[1:], "env": {"TOKEN": f"!{command}"}})
    panel = await panel_with(core)
    text = seen(panel)
    assert "Command for the value of TOKEN" in text and "rm -rf ~" in text and f"touch {tmp_path}/ran" in text
    assert "\u202e" not in text
    assert not (tmp_path / "ran").exists()


async def test_an_address_whose_header_a_command_prints_asks_and_tells_where_it_goes(
    core: Core, tmp_path: Path
) -> None:
    write_servers(
        core.servers_file,
        a={"url": "http://127.0.0.1:9/mcp", "headers": {"X-Key": f"!touch {tmp_path}/ran; echo x"}, "start": "launch"},
    )
    panel = await panel_with(core)
    text = seen(panel)
    assert "sends what it prints to http://127.0.0.1:9/mcp" in text and "Command for the value of X-Key" in text
    assert not (tmp_path / "ran").exists()
    click(panel, "Allow to start")
    await until(lambda: "Failed" in seen(panel))
    assert (tmp_path / "ran").exists()
