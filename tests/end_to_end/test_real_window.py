"""A person's first minutes, in the real program on a real screen, by keyboard alone; and what is left when it is killed."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from desktop.paths import Paths
from tests import real_servers
from tests.end_to_end.programs import write_servers
from tests.end_to_end.real_window import calls, messages, real_window, until
from tests.fakes.model_server import Answer, ModelServer

pytestmark = pytest.mark.anyio


def choose_model(paths: Paths, server: ModelServer) -> None:
    paths.config.mkdir(parents=True, exist_ok=True)
    paths.settings_file.write_text(json.dumps({"model": "openai/scripted", "api_base": server.address}))


async def test_on_a_fresh_machine_guide_finds_asks_calls_after_approval_and_shows_the_result(paths: Paths) -> None:
    async with real_window() as window:
        await window.type("what time is it in Tokyo")
        await window.key("Return")
        call = await until(lambda: next((call for call in calls(paths) if call["tool"] == "current_time"), None))
        assert json.loads(call["arguments"]) == {"zone": "Asia/Tokyo"}
        assert call["state"] == "waiting"
        await window.allows(lambda: calls(paths)[-1]["state"] == "done")
        answer = await until(lambda: messages(paths)[-1]["finished"] and messages(paths)[-1])
        assert "Asia/Tokyo" in json.dumps(answer["parts"])


async def test_guide_asks_for_what_a_real_servers_tool_is_missing(paths: Paths, tmp_path: Path) -> None:
    config = write_servers(tmp_path / "mcp.json", everything=real_servers.everything())
    async with real_window("--config", str(config)) as window:
        await window.type("get the sum of two numbers")
        await window.key("Return")
        await until(
            lambda: [part for message in messages(paths) for part in message["parts"] if part["kind"] == "form"]
        )
        await window.type("19")
        await window.key("Tab")
        await window.type("23")
        await window.key("Return")
        await until(lambda: [call for call in calls(paths) if call["server"] == "everything"])
        done = await window.allows(
            lambda: [call for call in calls(paths) if call["server"] == "everything" and call["state"] == "done"]
        )
        assert json.loads(done[0]["arguments"]) == {"a": 19, "b": 23}
        assert "42" in done[0]["output"]["text"]


class TimeSignal(Sequence[str]):
    """An endless answer whose every word is the time at which it is sent (seconds of the machine's monotonic clock)."""

    def __iter__(self) -> Iterator[str]:
        while True:
            yield f"{time.monotonic():.3f} "

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: object) -> str:
        raise IndexError(index)


async def test_a_killed_deskhand_has_kept_all_but_the_last_250_ms_and_goes_on(paths: Paths) -> None:
    async with ModelServer([Answer(text=TimeSignal(), delay=0.02), Answer(text="Going on.")]) as server:
        choose_model(paths, server)
        async with real_window() as window:
            await window.type("what time is it")
            await window.key("Return")
            await until(lambda: len(_answer(paths)) > 1000)
            window.process.send_signal(signal.SIGKILL)
            killed = time.monotonic()
            await window.process.wait()
        kept = float(_answer(paths).split()[-1])
        # 250 ms, and 50 for what is between two words and on its way.
        assert killed - kept < 0.3
        async with real_window() as window:
            async with asyncio.timeout(30):
                while "what time is it" not in window.title:  # the list is filled soon after the window shows
                    await window.key("ctrl+f", "Down", "Return")
                    await asyncio.sleep(0.3)
            await window.key("ctrl+l")
            await window.type("go on")
            await window.key("Return")
            await until(lambda: _answer(paths) == "Going on." and messages(paths)[-1]["finished"])
        assert [message["role"] for message in messages(paths)] == ["user", "assistant", "user", "assistant"]
        sent = server.requests[-1].messages
        assert [message["role"] for message in sent if message["role"] != "system"] == ["user", "assistant", "user"]
        assert f"{kept:.3f}" in sent[-2]["content"]


async def test_a_stopped_deskhand_leaves_no_process(paths: Paths, tmp_path: Path) -> None:
    node, script = real_servers.everything()
    config = write_servers(
        tmp_path / "mcp.json",
        everything={"command": node, "args": [script], "start": "launch"},
        time={"command": real_servers.time()[0], "start": "launch"},
    )
    async with real_window("--config", str(config)) as window:
        program = psutil.Process(window.process.pid)
        children = await until(lambda: len(found := program.children(recursive=True)) >= 2 and found)
    _, alive = psutil.wait_procs(children, timeout=1)
    assert not alive
    assert window.process.returncode == 0


def _answer(paths: Paths) -> str:
    found = messages(paths)
    return "".join(part["text"] for part in found[-1]["parts"] if part["kind"] == "text") if len(found) > 1 else ""
