"""Draws the pictures of the README anew: the real program with real servers, on a screen of its own (Linux, Xvfb).

Run it after ``packaging/dev.py test`` has set up the servers: ``.venv/bin/python packaging/screenshots.py``. It needs
ImageMagick, as the tests do. Commands are shown as a person would write them (``npx …``); a folder of small scripts at the front
of the search path runs the installed servers.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from desktop.paths import Paths  # noqa: E402
from tests.end_to_end.real_window import RealWindow, calls, real_window, until  # noqa: E402

PICTURES = ROOT / "resources" / "screenshots"
_SCREEN = "1216x808"  # the window, and the room it leaves for a frame
_LARGEST = 150_000  # bytes

_EVERYTHING = {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-everything"]}
_BILLING = {"command": "billing-server", "args": ["--customers", "all"]}
_SCRIPTS = {
    "npx": f'#!/bin/sh\nexec "{ROOT}/.test-tools/node_modules/.bin/mcp-server-everything"\n',
    "billing-server": "#!/bin/sh\n"
    "echo 'Reading the settings.' >&2\n"
    "echo 'Error: BILLING_API_KEY is not set. Get a key at Settings > API.' >&2\n"
    "exit 3\n",
}


async def main() -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        scripts = home / "bin"
        scripts.mkdir()
        for name, script in _SCRIPTS.items():
            (scripts / name).write_text(script)
            (scripts / name).chmod(0o755)
        os.environ["PATH"] = f"{scripts}:{os.environ['PATH']}"
        async with _window(home / "first", "light", {}) as (window, _):
            await _settled(window)
            await _save(window, "first-run")
        async with _window(home / "failed", "light", {"billing": _BILLING, "everything": _EVERYTHING}) as (window, _):
            await window.key("ctrl+shift+s")
            await window.key("Return")
            await window.key("Down", "Return")  # Connect
            await _settled(window)
            await _save(window, "failed-server")
        async with _window(home / "approval", "light", {"everything": _EVERYTHING}) as (window, paths):
            await _ask(window, paths, "echo Good morning from Deskhand")
            await _save(window, "approval")
            await window.key("ctrl+j", "a")
            await until(lambda: calls(paths)[-1]["state"] == "done")
            await window.key("ctrl+n")
            await _ask(window, paths, "structured content for Chicago")
            await window.key("ctrl+j", "a")
            await until(lambda: calls(paths)[-1]["state"] == "done")
            await _settled(window)
            await _save(window, "result")
        async with _window(home / "dark", "dark", {"everything": _EVERYTHING}) as (window, paths):
            await _ask(window, paths, "echo Good evening from Deskhand")
            await _save(window, "approval-dark")


@asynccontextmanager
async def _window(home: Path, scheme: str, servers: dict[str, object]) -> AsyncIterator[tuple[RealWindow, Paths]]:
    """The program with an empty home; servers that are named on the command line may start."""
    os.environ["DESKHAND_HOME"] = str(home)
    paths = Paths.for_user()
    paths.settings_file.parent.mkdir(parents=True)
    paths.settings_file.write_text(json.dumps({"color_scheme": scheme}))
    arguments: list[str] = []
    if servers:
        file = home / "servers.json"
        file.write_text(json.dumps({"mcpServers": servers}))
        arguments = ["--config", str(file)]
    async with real_window(*arguments, size=_SCREEN) as window:
        await window.click(550, 722)  # the field to write in: the pointer is in nobody's way there
        await _settled(window)
        yield window, paths


async def _ask(window: RealWindow, paths: Paths, text: str) -> None:
    """Writes a message to Guide and waits for the question whether its call may run."""
    before = len(calls(paths))
    await window.type(text)
    await window.key("Return")
    await until(lambda: len(calls(paths)) > before + 2 and calls(paths)[-1]["state"] == "waiting")
    await _settled(window)


async def _settled(window: RealWindow) -> None:
    """Waits until the picture stays as it is for a second, the blinking cursor aside."""
    async with asyncio.timeout(30):
        alike, before = 0, b""
        while alike < 4:
            await asyncio.sleep(0.25)
            await window.screenshot(file := PICTURES / "now.png")
            now = file.read_bytes()
            alike, before = (alike + 1 if abs(len(now) - len(before)) < 100 else 0), now
            file.unlink()


async def _save(window: RealWindow, name: str) -> None:
    file = PICTURES / f"{name}.png"
    await window.screenshot(file)
    options = ["-crop", "1200x760+0+0", "+repage", "-strip", "-define", "png:compression-level=9"]
    await asyncio.to_thread(subprocess.run, ["convert", str(file), *options, str(file)], check=True)
    assert file.stat().st_size <= _LARGEST, f"{name}: {file.stat().st_size} bytes"


if __name__ == "__main__":
    asyncio.run(main())
