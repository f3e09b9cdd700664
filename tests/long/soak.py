"""Half an hour of scripted turns with five real servers in the window: memory, timers, tasks, descriptors, processes stay flat.

``python3 packaging/dev.py test --long soak [--minutes 30]``. Prints a JSON line every half minute and a verdict; exit status 1
where something grew. The gate runs one minute of it (``tests/end_to_end/test_long_runs.py``).
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import psutil
from PySide6.QtWidgets import QApplication

from desktop.core import Core
from desktop.paths import Paths
from desktop.processes import start
from desktop.ui import event_loop, tasks
from desktop.ui.chat.answers import PersonAnswers
from desktop.ui.chat.approval_panel import ApprovalPanel
from desktop.ui.main_window import MainWindow
from tests import real_servers
from tests.end_to_end.programs import ROOT, write_servers

#: What a person says, and what the tool's result must hold.
TURNS = (
    ('use everything.echo with {"message": "round and round"}', "Echo: round and round"),
    ('use everything.get-sum with {"a": 19, "b": 23}', "42"),
    ('use filesystem.list_directory with {"path": "FOLDER"}', "note.txt"),
    ("use memory.read_graph with {}", "entities"),
    ('use time.get_current_time with {"timezone": "Asia/Tokyo"}', "Asia/Tokyo"),
    ('use git.git_status with {"repo_path": "FOLDER"}', "branch"),
)
#: Activate what is named, call it, then speak of it at length.
SCRIPT = {
    "rules": [
        {
            "user": r"use (?P<tool>\S+) with ",
            "result": None,
            "answer": {"calls": [{"name": "mcp_tools", "arguments": {"activate": ["{{tool}}"]}, "pieces": 3}]},
        },
        {
            "user": r"with (?P<arguments>\{.*\})",
            "result": r"call it as (?P<native>mcp__\S+)",
            "answer": {"calls": [{"name": "{{native}}", "arguments": "{{arguments}}", "pieces": 4}]},
        },
        {
            "answer": {
                "reasoning": ["Well. "],
                "text": ["Here it is, with **care**. "] * 60 + ["\n```python\nprint(1)\n```\n"],
            }
        },
    ]
}
CONVERSATION = 12
"""Turns after which a new conversation begins."""


async def main(minutes: float) -> int:
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"DESKHAND_HOME": home, "HOME": home}
        folder = Path(home) / "work"
        folder.mkdir()
        (folder / "note.txt").write_text("a note")
        await asyncio.to_thread(subprocess.run, ["git", "init", "-q", folder], check=True)
        servers = {
            "everything": real_servers.everything(),
            "filesystem": real_servers.filesystem(folder),
            "memory": real_servers.memory(),
            "time": real_servers.time(),
            "git": real_servers.git(folder),
        }
        async with model_server(Path(home)) as address, window(servers, address) as (core, shown):
            return await run(core, shown, folder, minutes * 60)


async def run(core: Core, shown: MainWindow, folder: Path, seconds: float) -> int:
    began = time.monotonic()
    samples: list[dict[str, Any]] = []
    turn = 0
    while time.monotonic() - began < seconds or len(samples) < 4:
        said, expected = TURNS[turn % len(TURNS)]
        if turn % CONVERSATION == 0:
            shown.chat.new_conversation()
        stopped = turn % 7 == 6
        shown.chat.send(said.replace("FOLDER", str(folder)))
        await answered(shown, stop=stopped)
        results = [
            call.output.text
            for message in shown.chat.conversation.messages
            for call in message.tool_calls
            if call.output
        ]
        if not stopped:
            assert expected in results[-1], results[-1]
        turn += 1
        if time.monotonic() - began > min(30, seconds / 6) * (len(samples) + 1):
            samples.append(sample(time.monotonic() - began, turn))
            print(json.dumps(samples[-1]), flush=True)
    return verdict(samples)


async def answered(shown: MainWindow, *, stop: bool) -> None:
    """Waits until the turn is over, allowing its calls by the card's button; stops it once text streams, if wanted."""
    async with asyncio.timeout(60):
        while shown.chat.busy:
            last = shown.chat.conversation.messages[-1] if shown.chat.conversation.messages else None
            for panel in shown.chat.findChildren(ApprovalPanel):
                if panel.isVisible():
                    panel.decide("once")
            if stop and last is not None and last.role == "assistant" and len(last.text) > 200:
                shown.chat.stop()
                stop = False
            await asyncio.sleep(0.03)


def sample(seconds: float, turns: int) -> dict[str, Any]:
    gc.collect()
    loop: Any = asyncio.get_running_loop()
    process = psutil.Process()
    memory = process.memory_full_info()
    return {
        "seconds": round(seconds),
        "turns": turns,
        "unique_memory_mib": round(memory.uss / 2**20, 1),
        "tasks": len(asyncio.all_tasks()),
        "timers": sum(not timer.cancelled() for timer in loop._scheduled),
        "descriptors": process.num_fds(),
        "processes": len(process.children(recursive=True)),
        "threads": process.num_threads(),
        "widgets": len(QApplication.allWidgets()),
    }


def verdict(samples: list[dict[str, Any]]) -> int:
    """Compares the middle of the run with its end: what comes at the beginning (imports, caches) is no leak."""
    middle, end = samples[len(samples) // 2 : len(samples) // 2 + 2], samples[-2:]
    grown = {}
    for name, allowed in (
        ("unique_memory_mib", 12),
        ("tasks", 6),
        ("timers", 6),
        ("descriptors", 6),
        ("processes", 0),
        ("threads", 4),
        ("widgets", 400),  # a conversation's cards come and go
    ):
        growth = min(each[name] for each in end) - max(each[name] for each in middle)
        if growth > allowed:
            grown[name] = growth
    print(
        json.dumps({"verdict": "grew" if grown else "flat", "grown": grown, "turns": samples[-1]["turns"]}), flush=True
    )
    return 1 if grown else 0


@asynccontextmanager
async def model_server(home: Path) -> AsyncIterator[str]:
    """The scripted model in a process of its own, whose memory is not Deskhand's."""
    script = home / "script.json"
    script.write_text(json.dumps(SCRIPT))
    command = [sys.executable, "-m", "tests.fakes.model_server", "--script", str(script), "--port", "0"]
    process = await start(command, folder=ROOT, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        port = int(await process.stdout.readline())
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def window(servers: dict[str, list[str]], address: str) -> AsyncIterator[tuple[Core, MainWindow]]:
    """Deskhand's window with these servers, and a model at an address chosen."""
    paths = Paths.for_user()
    config = write_servers(paths.config / "soak.json", **servers)
    answers = PersonAnswers()
    core = Core(paths, approver=answers, asker=answers, config=config)
    core.settings.change(model="openai/scripted", api_base=address)
    shown = MainWindow(core, answers)
    shown.show()
    try:
        await core.start()
        yield core, shown
    finally:
        shown.close()
        await tasks.end(3)
        await core.close()
        shown.deleteLater()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    options = parser.parse_args()
    application = QApplication([])
    sys.exit(event_loop.run(main(options.minutes)))
