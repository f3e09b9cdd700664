"""The main job in the window, by mouse and keyboard: real servers, a scripted model over real HTTP, and what goes wrong."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractSpinBox, QLineEdit

from desktop.paths import Paths
from tests import real_servers
from tests.end_to_end.programs import finds_and_calls
from tests.end_to_end.window import Person, deskhand
from tests.fakes.model_server import Answer, Call, ModelServer, Request
from tests.servers.running import hostile
from tests.ui.conftest import anyio_backend, no_window_left  # noqa: F401  # the window's loop

pytestmark = pytest.mark.anyio

ECHO = finds_and_calls("echo a message back", "everything.echo", {"message": "round"})
Script = Callable[[Request], Answer]


def then(first: Script, *further: Answer) -> Script:
    """A script for the first turn, and an answer for each further one."""
    said: list[str] = []

    def script(request: Request) -> Answer:
        if request.user not in said:
            said.append(request.user)
        return first(request) if len(said) == 1 else further[len(said) - 2]

    return script


def calling(tool: str, arguments: dict[str, Any]) -> Script:
    """A model that activates a tool (``server.name``) and calls it, then says what it got."""
    native = "mcp__{}__{}".format(*tool.split(".", 1))

    def script(request: Request) -> Answer:
        match request.results:
            case []:
                return Answer(calls=[Call("mcp_tools", {"activate": [tool]})])
            case [_]:
                return Answer(calls=[Call(native, arguments)])
            case _:
                return Answer(text=["It said: ", request.results[-1]])

    return script


def records(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


async def goes_on(person: Person) -> None:
    """A further turn works."""
    await person.says("and now?")
    await person.waits_for_the_end()
    assert person.answer == "Fine."


async def test_a_call_allowed_with_the_mouse_runs_and_its_result_is_shown(paths: Paths) -> None:
    async with (
        ModelServer(then(ECHO, Answer(text="Fine."))) as model,
        deskhand(paths, {"everything": real_servers.everything()}, model) as person,
    ):
        await person.says("echo it")
        await person.clicks("Allow once")
        await person.waits_for_the_end()
        assert [call.state for call in person.calls] == ["done", "done", "done"]
        assert person.answer == "The tool said: Echo: round"
        await person.waits_for(lambda: "The tool said: Echo: round" in person.sees)
        assert person.window.chat.conversation.title == "echo it"
        await goes_on(person)


async def test_a_call_denied_with_the_keyboard_gives_the_model_a_refusal(paths: Paths, tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with (
        ModelServer(then(calling("hostile.echo", {"text": "x"}), Answer(text="Fine."))) as model,
        deskhand(paths, {"hostile": hostile("--record", str(log))}, model) as person,
    ):
        await person.says("echo it")
        await person.waits_for(lambda: "Allow once" in person.sees)
        person.presses(Qt.Key.Key_J, Qt.KeyboardModifier.ControlModifier)
        person.presses(Qt.Key.Key_D)
        await person.waits_for_the_end()
        assert person.calls[-1].state == "denied"
        assert "The person did not allow this call" in model.requests[-1].results[-1]
        assert not [each for each in records(log) if each["event"] == "call"]
        await goes_on(person)


async def test_stop_while_an_answer_streams(paths: Paths) -> None:
    def first(_: Request) -> Answer:
        return Answer(text=["word "] * 10_000, delay=0.01)

    async with ModelServer(then(first, Answer(text="Fine."))) as model, deskhand(paths, {}, model) as person:
        await person.says("talk")
        await person.waits_for(lambda: len(person.answer) > 50)
        person.presses(Qt.Key.Key_Escape)
        stopped = time.monotonic()
        await person.waits_for_the_end()
        assert time.monotonic() - stopped < 1
        await model.wait_for(lambda: model.disconnects == 1)
        assert person.answer.startswith("word word")
        await goes_on(person)


async def test_stop_while_a_call_waits_for_approval(paths: Paths, tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with (
        ModelServer(then(calling("hostile.echo", {"text": "x"}), Answer(text="Fine."))) as model,
        deskhand(paths, {"hostile": hostile("--record", str(log))}, model) as person,
    ):
        await person.says("echo it")
        await person.waits_for(lambda: "Allow once" in person.sees)
        person.presses(Qt.Key.Key_Escape)
        await person.waits_for_the_end()
        assert person.calls[-1].state == "stopped"
        await person.waits_for(lambda: "Allow once" not in person.sees)
        await goes_on(person)
        assert not [each for each in records(log) if each["event"] == "call"]


async def test_stop_during_a_call_reaches_the_server(paths: Paths, tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with (
        ModelServer(then(calling("hostile.wait", {"seconds": 60}), Answer(text="Fine."))) as model,
        deskhand(paths, {"hostile": hostile("--record", str(log))}, model) as person,
    ):
        await person.says("wait")
        await person.clicks("Allow once")
        await person.waits_for(lambda: [each for each in records(log) if each["event"] == "call"])
        person.presses(Qt.Key.Key_Escape)
        await person.waits_for_the_end()
        sent = [each for each in records(log) if each["event"] == "call"]
        cancelled = await person.waits_for(lambda: [each for each in records(log) if each["event"] == "cancelled"])
        assert cancelled[0]["requestId"] == sent[0]["id"]
        assert person.calls[-1].state == "stopped"
        await goes_on(person)
        result = model.requests[-1].messages
        assert "may have taken effect" in json.dumps(result)


async def test_a_server_killed_while_idle_is_red_at_once_and_comes_back(paths: Paths) -> None:
    servers = {
        "everything": {
            "command": real_servers.everything()[0],
            "args": real_servers.everything()[1:],
            "start": "launch",
        }
    }
    async with deskhand(paths, servers) as person:
        connection = person.core.host.connection("everything")
        await person.waits_for(lambda: connection.state.status == "connected")
        seen: list[tuple[float, str]] = []
        connection.state_changed.connect(lambda: seen.append((time.monotonic(), connection.state.status)))
        (child,) = [each for each in psutil.Process().children() if "mcp-server-everything" in " ".join(each.cmdline())]
        killed = time.monotonic()
        child.send_signal(signal.SIGKILL)
        await person.waits_for(lambda: connection.state.status != "connected")
        assert seen[0][1] == "failed"
        assert seen[0][0] - killed < 0.1
        await person.waits_for(lambda: connection.state.status == "connected", 30)
        new = [each for each in psutil.Process().children() if "mcp-server-everything" in " ".join(each.cmdline())]
        assert [each.pid for each in new] != [child.pid]
        assert len(new) == 1


async def test_a_server_killed_during_a_call_is_told_and_nothing_is_sent_again(paths: Paths, tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with (
        ModelServer(then(calling("hostile.wait", {"seconds": 60}), Answer(text="Fine."))) as model,
        deskhand(paths, {"hostile": hostile("--record", str(log))}, model) as person,
    ):
        connection = person.core.host.connection("hostile")
        await person.says("wait")
        await person.clicks("Allow once")
        await person.waits_for(lambda: [each for each in records(log) if each["event"] == "call"])
        os.kill(next(each["pid"] for each in records(log) if each["event"] == "started"), signal.SIGKILL)
        await person.waits_for_the_end()
        assert person.calls[-1].state == "failed"
        assert "[server_exited]" in person.answer
        assert "may have taken effect" in person.answer
        await goes_on(person)
        await person.waits_for(lambda: connection.state.status == "connected", 30)
        assert len([each for each in records(log) if each["event"] == "call"]) == 1


@pytest.mark.parametrize("tool", ["huge_text", "huge_structured"])
async def test_a_result_of_45_megabytes_goes_to_a_file_and_can_be_read_on(paths: Paths, tool: str) -> None:
    async with (
        ModelServer(then(calling(f"hostile.{tool}", {"megabytes": 45}), Answer(text="Fine."))) as model,
        deskhand(paths, {"hostile": hostile()}, model) as person,
    ):
        await person.says("get it all")
        await person.clicks("Allow once")
        await person.waits_for(lambda: not person.window.chat.busy, 90)
        output = person.calls[-1].output
        assert output is not None and output.spilled is not None and output.diagnostic is None
        file = Path(output.spilled.path)
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.stat().st_size == output.spilled.size > 45_000_000
        assert json.loads(file.read_bytes())["content"]
        assert len(output.text.encode()) < 60 * 1024
        assert f"result://{output.spilled.id}" in model.requests[-1].results[-1]
        page = await person.core.access.read("deskhand", f"result://{output.spilled.id}?offset=40000000&length=1000")
        assert str(output.spilled.characters) in page.contents[0].text.replace(",", "")  # type: ignore[union-attr]
        await goes_on(person)


async def test_a_broken_configuration_names_its_bad_entries_in_the_panel(paths: Paths, tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    node, script = real_servers.everything()
    good = {"command": node, "args": [script]}
    config.write_text(json.dumps({"mcpServers": {"good": good, "bad": {"command": 7}}}))
    before = config.read_bytes()
    async with (
        ModelServer(finds_and_calls("echo", "good.echo", {"message": "x"})) as model,
        deskhand(paths, config, model) as person,
    ):
        await person.waits_for(lambda: "bad" in person.sees and "command" in person.sees)
        await person.says("echo it")
        await person.clicks("Allow once")
        await person.waits_for_the_end()
        assert person.answer == "The tool said: Echo: x"
    assert config.read_bytes() == before


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Answer(status=401, message="bad", code="invalid_api_key"), "key"),
        (Answer(status=404, message="The model `x` does not exist.", code="model_not_found"), "not known"),
        (Answer(status=429, message="slow"), "Too many requests"),
        (Answer(text=["half "], ending="disconnect"), "broke off"),
    ],
    ids=["wrong key", "unknown model", "rate limit", "broken stream"],
)
async def test_what_a_model_refuses_is_told_in_the_conversation(paths: Paths, answer: Answer, told: str) -> None:
    async with ModelServer(then(lambda _: answer, Answer(text="Fine."))) as model, deskhand(paths, {}, model) as person:
        await person.says("hello")
        await person.waits_for_the_end()
        await person.waits_for(lambda: told in person.sees)
        await goes_on(person)


async def test_guide_calls_a_real_servers_tool_after_asking_for_what_is_missing(paths: Paths) -> None:
    async with deskhand(paths, {"everything": real_servers.everything()}) as person:
        await person.says("get the sum of two numbers")
        await person.waits_for(lambda: isinstance(person.focused, QLineEdit | QAbstractSpinBox))
        for text in ("19", "23"):
            for character in text:
                person.presses(Qt.Key(ord(character)))
            person.presses(Qt.Key.Key_Tab if text == "19" else Qt.Key.Key_Return)
        await person.clicks("Allow once")
        await person.waits_for_the_end()
        assert "42" in person.answer
