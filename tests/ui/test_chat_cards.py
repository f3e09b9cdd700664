"""Cards in the conversation: tool calls in every state, decisions, questions; with real clicks and keys."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest
from mcp_types import CallToolResult
from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QPoint, Qt
from PySide6.QtGui import QColor, QGuiApplication, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QLineEdit, QMenu, QProgressBar, QWidget

from desktop import processes
from desktop.assistant import stored_definitions
from desktop.assistant.approval import ApprovalRequest, Decision
from desktop.assistant.conversation import (
    Block,
    Choice,
    ChoiceOption,
    Form,
    Image,
    SpilledFile,
    ToolCall,
    ToolOutput,
    part_from_json,
)
from desktop.assistant.results import ResultStore
from desktop.catalog_entries import ToolDefinition
from desktop.errors import Diagnostic
from desktop.ui.chat.answers import PersonAnswers
from desktop.ui.chat.call_title import call_title
from desktop.ui.chat.code_block import CodeView
from desktop.ui.chat.files import safe_name
from desktop.ui.chat.image_view import ImageView, Picture, decode
from desktop.ui.chat.question_cards import ChoiceCard, FormCard, OptionButton
from desktop.ui.chat.result_text import Section, sections
from desktop.ui.chat.stack_layout import StackLayout
from desktop.ui.chat.tool_call_card import ToolCallCard
from desktop.ui.chat.widgets import ElidedLabel
from tests.ui.person import button, click, opened, seen, until

pytestmark = pytest.mark.anyio

TOOL = ToolDefinition(
    "billing",
    "list_invoices",
    "mcp__billing__list_invoices",
    "Lists <b>invoices</b>.\u202e",
    {"type": "object", "properties": {"customer": {"type": "string"}}},
    "fingerprint",
    "identity",
    annotations={"readOnlyHint": True, "destructiveHint": True, "openWorldHint": True},
)


def native(arguments: str = '{"customer": "ACME"}', **more: Any) -> ToolCall:
    return ToolCall("call-1", TOOL.native_name, arguments, "billing", "list_invoices", **more)


def ended(output: ToolOutput, state: Any = "done", call: ToolCall | None = None) -> ToolCall:
    call = call or native()
    call.state, call.output, call.started, call.finished = state, output, time.time() - 1.5, time.time()
    return call


def card(call: ToolCall, answers: PersonAnswers | None = None) -> ToolCallCard:
    made = ToolCallCard(
        call, "conversation", answers or PersonAnswers(), lambda diagnostic: remedies.append(diagnostic)
    )
    made.resize(500, 200)
    made.show()
    return made


remedies: list[Diagnostic] = []


class Asked:
    """A decision that is waited for, with its card."""

    def __init__(self, **more: Any) -> None:
        self.answers = PersonAnswers()
        self.call = native()
        self.request = ApprovalRequest("conversation", self.call, TOOL, {"customer": "ACME"}, **more)
        self.task = asyncio.get_running_loop().create_task(self.answers.decide(self.request))
        self.card = card(self.call, self.answers)

    async def decided(self) -> Decision:
        decision = await asyncio.wait_for(self.task, 5)
        assert not self.card.waits
        return decision


async def asked(**more: Any) -> Asked:
    made = Asked(**more)
    await until(lambda: "May this call run?" in seen(made.card))
    return made


# Titles


@pytest.mark.parametrize(
    ("name", "arguments", "title", "summary"),
    [
        ("mcp_tools", '{"query": "open invoices"}', "mcp discover · open invoices", ""),
        ("mcp_tools", '{"query": "x", "server": "docs"}', "mcp discover · x · docs", ""),
        ("mcp_tools", '{"activate": ["a.b"]}', "mcp activate", ""),
        ("mcp_tools", '{"read": {"server": "a", "uri": "x://y"}}', "mcp read", ""),
        (
            "mcp_tools",
            '{"complete": {"server": "a", "template": "x://{b}", "argument": {"name": "b", "value": ""}}}',
            "mcp complete",
            "a · b",
        ),
        ("mcp_tools", '{"query": 1}', "mcp tools", "query=1"),
        ("unknown", "no json \u202e", "unknown", "no json \\u202E"),
    ],
)
def test_a_call_is_titled_by_what_it_does(name: str, arguments: str, title: str, summary: str) -> None:
    said = call_title(ToolCall("1", name, arguments))
    assert (said.name, said.summary) == (title, summary)


def test_a_native_call_shows_server_tool_and_arguments_on_one_line() -> None:
    said = call_title(native('{"customer": "ACME\\nGmbH", "list": [1, 2], "long": "' + "x" * 500 + '"}'))
    assert said.name == "billing · list_invoices"
    assert said.summary.startswith("customer=ACME GmbH list=[1, 2] long=xxx")
    assert len(said.summary) <= 160


# States


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("waiting", "waiting"),
        ("running", "running"),
        ("done", "done"),
        ("stopped", "stopped"),
        ("denied", "not allowed"),
    ],
)
async def test_the_state_is_in_the_name_for_screen_readers(state: Any, said: str) -> None:
    assert card(native(state=state)).accessibleName() == f"billing · list_invoices, {said}"


async def test_progress_is_shown_while_the_call_runs() -> None:
    call = native(state="running", started=time.time() - 3, progress=0.25, progress_message="a quarter \u202e")
    made = card(call)
    bar = made.findChild(QProgressBar)
    assert bar is not None
    assert bar.isVisible()
    assert bar.value() == bar.maximum() / 4
    assert "a quarter \\u202E" in seen(made)
    assert "3 s" in seen(made)
    ended(ToolOutput("done"), call=call)
    made.refresh()
    assert not bar.isVisible()


async def test_an_error_that_the_tool_reports_is_told_from_a_call_that_failed() -> None:
    reported = card(ended(ToolOutput("no such customer\x1b[31m", reported_error=True), "failed"))
    assert "The tool reports an error:" in seen(reported)
    assert "no such customer\\x1B[31m" in seen(reported)
    assert "the tool reports an error" in reported.accessibleName()
    failed = card(
        ended(ToolOutput("English for the model", diagnostic=Diagnostic("timeout", "call", "billing")), "failed")
    )
    assert "No answer in time" in seen(failed)
    assert "English for the model" not in seen(failed)
    remedies.clear()
    click(failed, "Show the server")
    assert [each.server for each in remedies] == ["billing"]


async def test_a_stopped_call_says_whether_it_may_have_taken_effect() -> None:
    output = ToolOutput("x", diagnostic=Diagnostic("cancelled", "call", "billing"))
    assert "It may have taken effect" in seen(card(ended(output, "stopped")))
    before = native(state="stopped")
    before.output = output
    assert "Stopped before it ran." in seen(card(before))


async def test_a_result_is_shown_in_its_beginning_and_unfolds_to_all_of_it() -> None:
    text = json.dumps({"rows": [{"number": number} for number in range(20)], "exact": 1.10}).replace("1.1", "1.10")
    call = ended(ToolOutput(text, blocks=[Block(0, len(text), "application/json")]))
    made = card(call)
    [preview] = [view for view in made.findChildren(CodeView) if view.isVisible()]
    assert preview.toPlainText().startswith('{\n  "rows": [\n')
    assert preview.toPlainText().endswith("…")
    click(made, "Show details")
    await until(lambda: not preview.isVisible() and "Arguments" in seen(made))
    shown = [view.toPlainText() for view in made.findChildren(CodeView) if view.isVisible()]
    assert shown[0] == '{\n  "customer": "ACME"\n}'
    assert '"exact": 1.10' in shown[1]
    click(made, "Copy result")
    assert QGuiApplication.clipboard().text() == text
    click(made, "Copy arguments")
    assert QGuiApplication.clipboard().text() == call.arguments
    click(made, "Hide details")
    assert preview.isVisible()


async def test_the_head_line_and_enter_unfold_too() -> None:
    made = card(ended(ToolOutput("text")))
    QTest.mouseClick(made, Qt.MouseButton.LeftButton, pos=QPoint(200, 15))
    await until(lambda: "Arguments" in seen(made))
    made.setFocus()
    QTest.keyClick(made, Qt.Key.Key_Return)
    assert "Arguments" not in seen(made)


async def test_candidates_of_a_search_are_rows_with_a_glyph_for_loaded() -> None:
    call = ToolCall("1", "mcp_tools", '{"query": "x"}')
    call.details = {
        "operation": "query",
        "candidates": [
            {"kind": "tool", "identifier": "a.b", "server": "a", "name": "b", "description": "does b", "loaded": True},
            {"kind": "tool", "identifier": "a.<i>c</i>\u202e", "description": "does c", "loaded": False},
            {"kind": "resource", "server": "docs", "uri": "x://y", "name": "Guide", "title": "", "description": ""},
            "not a row",
        ],
        "not_searched": [{"server": "warehouse", "code": "authentication_required", "catalogs": ["tools"]}],
    }
    made = card(ended(ToolOutput("text for the model"), call=call))
    text = seen(made)
    for part in ("a.b", "does b", "a.<i>c</i>\\u202E", "docs · Guide [resource]", "warehouse", "Sign-in needed"):
        assert part in text
    assert "text for the model" not in text
    states = [
        each.accessibleName() for each in made.findChildren(QWidget) if each.isVisible() and each.accessibleName()
    ]
    assert "loaded" in states
    assert "not loaded" in states


async def test_many_rows_come_when_they_are_asked_for() -> None:
    call = ToolCall("1", "mcp_tools", '{"query": "x"}')
    rows = [{"kind": "tool", "identifier": f"a.tool{number}", "loaded": False} for number in range(50)]
    call.details = {"operation": "query", "candidates": rows}
    made = card(ended(ToolOutput("x"), call=call))
    assert "a.tool49" not in seen(made)
    click(made, "Show all 50")
    await until(lambda: "a.tool49" in seen(made))


async def test_an_activation_says_what_was_loaded_and_why_not() -> None:
    call = ToolCall("1", "mcp_tools", '{"activate": ["a.b", "a.x"]}')
    call.details = {
        "operation": "activate",
        "rows": [
            {"identifier": "a.b", "state": "loaded", "diagnostic": None, "near": []},
            {"identifier": "a.x", "state": "not loaded", "diagnostic": "tool_unknown", "near": ["a.y"]},
            {"identifier": "a.z", "state": "not loaded", "diagnostic": "a code of a newer Deskhand", "near": []},
        ],
        "loaded": [stored_definitions.to_json(TOOL)],
    }
    text = seen(card(ended(ToolOutput("x"), call=call)))
    assert "a.b" in text
    assert "No such tool · nearest: a.y" in text
    assert "a.z" in text


# Images and files


def png(width: int, height: int, color: str = "#336699") -> str:
    image = QImage(width, height, QImage.Format.Format_RGB32)
    image.fill(QColor(color))
    content = QByteArray()
    buffer = QBuffer(content)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")
    return base64.b64encode(bytes(content.data())).decode()


async def test_an_image_is_shown_in_the_card() -> None:
    made = card(ended(ToolOutput("a chart", images=[Image("image/png", png(300, 100))])))
    view = made.findChild(ImageView)
    assert view is not None
    await until(lambda: "PNG · 300 × 100" in seen(view))
    picture = view.findChild(Picture)
    assert picture is not None
    await until(lambda: picture.height() == 100)
    assert picture.grab().toImage().pixelColor(150, 50).name() == "#336699"


@pytest.mark.parametrize(
    "data",
    [
        "not base64 !",
        base64.b64encode(b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>").decode(),
        base64.b64encode(b"<html>").decode(),
        base64.b64encode(
            b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR\0\0\xea\x60\0\0\xea\x60\x08\x06\0\0\0" + b"\0" * 50
        ).decode(),
        "A" * 25_000_000,
    ],
    ids=["no base64", "SVG", "HTML", "60000 x 60000 pixels", "too many bytes"],
)
async def test_what_is_no_image_within_the_limits_is_not_decoded(data: str) -> None:
    assert decode(data) is None


async def test_a_large_image_is_kept_small() -> None:
    decoded = decode(png(6000, 3000))
    assert decoded is not None
    picture, size, suffix = decoded
    assert (size.width(), size.height(), suffix) == (6000, 3000, ".png")
    assert (picture.width(), picture.height()) == (1600, 800)


async def test_an_image_that_can_not_be_shown_says_so() -> None:
    made = card(ended(ToolOutput("x", images=[Image("image/svg+xml", "AAAA")])))
    await until(lambda: "An image that can't be shown (image/svg+xml)" in seen(made))


async def test_a_stored_result_opens_and_is_saved_under_a_safe_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []

    async def hand_over(command: list[str], *, time_limit: float) -> int:
        commands.append(command)
        return 0

    monkeypatch.setattr(processes, "hand_over", hand_over)
    file = tmp_path / "result.json"
    file.write_text('{"all": true}')
    spilled = SpilledFile("id", str(file), 3_456_789, 3_400_000, 45_000)
    call = native()
    call.tool = "../../evil\u202e.exe"
    made = card(ended(ToolOutput("head", spilled=spilled), call=call))
    assert "lines" in seen(made)
    click(made, "Open")
    await until(lambda: commands)
    assert commands[0][-1] == str(file)
    click(made, "Save as…")
    dialog = await opened(QFileDialog)
    assert [Path(each).name for each in dialog.selectedFiles()] == ["billing-_evil_exe.json"]
    target = tmp_path / "saved.json"
    edit = dialog.findChild(QLineEdit)
    assert edit is not None
    edit.setText(str(target))
    click(dialog, "Save")
    await until(target.exists)
    await until(lambda: target.read_text() == '{"all": true}')


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("../../.bashrc", "bashrc.json"),
        ("C:\\x", "C_x.json"),
        ("CON", "file.json"),
        ("a\0b", "ab.json"),
        ("", "file.json"),
        ("x" * 300, "x" * 80 + ".json"),
        ("foo.txt\u202egpj.exe", "foo_txtgpj_exe.json"),
        (".desktop", "desktop.json"),
    ],
)
def test_a_name_is_never_a_path(name: str, safe: str) -> None:
    assert safe_name(name, ".json") == safe


# Text of results


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (ToolOutput('{"a":1}'), [Section('{\n  "a": 1\n}', True)]),
        (ToolOutput('{"a":1}', blocks=[Block(0, 7, "text/plain")]), [Section('{"a":1}', False)]),
        (ToolOutput('{"a":1}\n{"b":2}'), [Section('{"a":1}\n{"b":2}', False)]),
        (ToolOutput("12"), [Section("12", False)]),
        (ToolOutput("12", blocks=[Block(0, 2, structured=True)]), [Section("12", True)]),
        (ToolOutput('{"a":1,"a":2}'), [Section('{\n  "a": 1,\n  "a": 2\n}', True)]),
        (
            ToolOutput('text\n{"a":1}', blocks=[Block(0, 4), Block(5, 12, "application/vnd.x+json; charset=utf-8")]),
            [Section("text", False), Section('{\n  "a": 1\n}', True)],
        ),
        (ToolOutput("abc", blocks=[Block(2, 9), Block(1, 2)]), [Section("abc", False)]),
        (ToolOutput("{broken"), [Section("{broken", False)]),
        (ToolOutput("one\n\ntwo", blocks=[Block(0, 3), Block(5, 8)]), [Section("one\n\ntwo", False)]),
        (ToolOutput('{"x": "\u202e"}'), [Section('{\n  "x": "\\u202E"\n}', True)]),
        (ToolOutput("[" * 200 + "]" * 200), [Section("[" * 200 + "]" * 200, True)]),
    ],
)
def test_parts_that_are_json_are_laid_out(output: ToolOutput, expected: list[Section]) -> None:
    assert sections(output) == expected


def array(length: int) -> str:
    return f"[{','.join(['1'] * length)}]"


@pytest.mark.parametrize("text", [array(2100), f'["{"x" * 52_000}"]', "[" * 101 + "]" * 101])
def test_json_that_is_too_long_or_too_deep_to_be_laid_out_stays_as_it_is(text: str) -> None:
    (section,) = sections(ToolOutput(text))
    assert section.text == text


@pytest.mark.parametrize(("count", "is_json"), [(2, True), (3, False)])
def test_json_that_is_too_long_together_stays_as_it_is(count: int, is_json: bool) -> None:
    text = "\n\n".join([array(900)] * count)
    blocks = [Block(start, start + 1801) for start in range(0, len(text), 1803)]
    found = sections(ToolOutput(text, blocks=blocks))
    assert [section.is_json for section in found] == ([True] * count if is_json else [False])
    assert "".join("".join(section.text for section in found).split()) == "".join(text.split())


def test_no_token_of_json_is_changed_when_it_is_laid_out() -> None:
    tokens = ["1.50", "1e999", "-0", "12345678901234567890123", "9" * 5000, '"\\u00e9\\/"']
    text = '{"a":[' + ",".join(tokens) + '],"a":0.10}'
    (section,) = sections(ToolOutput(text, blocks=[Block(0, len(text), structured=True)]))
    assert section.text.split() == ["{", '"a":', "[", *(f"{each}," for each in tokens[:-1]), tokens[-1], "],",
                                    '"a":', "0.10", "}"]  # fmt: skip


async def test_json_that_was_cut_stays_plain_and_its_file_is_offered(tmp_path: Path) -> None:
    content = {"content": [{"type": "text", "text": array(40_000)}, {"type": "text", "text": '{"a":1}'}]}
    output = await ResultStore(tmp_path).output(
        CallToolResult.model_validate(content), conversation_id="c", server="billing"
    )
    assert [section.is_json for section in sections(output)] == [False]
    shown = card(ended(output))
    assert output.spilled is not None
    assert str(output.spilled.path) in output.text
    assert "The whole result is in a file" in seen(shown)


async def test_a_call_that_an_older_deskhand_stored_is_still_shown() -> None:
    call = part_from_json(
        {"kind": "tool_call", "id": "1", "name": "mcp__billing__list", "arguments": "{}", "state": "done",
         "output": {"text": '{"a":1.50}'}}
    )  # fmt: skip
    assert isinstance(call, ToolCall)
    assert '"a": 1.50' in seen(card(call))


@pytest.mark.parametrize("width", [0, 1, 2, 10, 80, 300])
async def test_no_row_is_drawn_beyond_a_card_of_any_width(width: int) -> None:
    wide = "請求書を一覧表示する🧾" * 12
    candidates = [{"kind": "tool", "identifier": f"会計.{wide}", "description": wide, "loaded": True}]
    details = {"operation": "query", "candidates": candidates, "not_searched": [{"server": wide, "code": "timeout"}]}
    call = ToolCall("1", "mcp_tools", json.dumps({"query": wide}), details=details)
    shown = card(ended(ToolOutput("found"), call=call))
    room = max(width, shown.minimumSizeHint().width())
    shown.resize(width, 300)
    await until(lambda: shown.width() == room)
    for label in shown.findChildren(ElidedLabel):
        right = label.mapTo(shown, QPoint(label.width(), 0)).x()
        assert right <= shown.width(), f"{label.text()[:20]} ends at {right} of {shown.width()}"
    assert shown.minimumSizeHint().width() <= 300


# Decisions


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("Allow once (a)", "once"),
        ("Allow in this conversation (s)", "conversation"),
        ("Always allow this tool", "always"),
        ("Deny (d)", "deny"),
    ],
)
async def test_a_button_decides(text: str, decision: Decision) -> None:
    waiting = await asked()
    click(waiting.card, text)
    assert await waiting.decided() == decision


@pytest.mark.parametrize(("key", "decision"), [("a", "once"), ("s", "conversation"), ("d", "deny")])
async def test_a_key_decides_on_the_focused_card(key: str, decision: Decision) -> None:
    waiting = await asked()
    waiting.card.setFocus()
    QTest.keyClicks(waiting.card, key)
    assert await waiting.decided() == decision


async def test_never_is_behind_more() -> None:
    waiting = await asked()
    click(waiting.card, "More decisions")
    [menu] = [each for each in waiting.card.findChildren(QMenu) if each.isVisible()]
    assert [each.text() for each in menu.actions()][1:] == ["Never allow this tool"]
    menu.actions()[1].trigger()
    assert await waiting.decided() == "never"


@pytest.mark.parametrize("modifier", [Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.AltModifier])
async def test_a_shortcut_is_no_decision(modifier: Qt.KeyboardModifier) -> None:
    waiting = await asked()
    QTest.keyClick(waiting.card, Qt.Key.Key_A, modifier)
    assert waiting.card.waits
    click(waiting.card, "Deny (d)")
    await waiting.decided()


async def test_a_question_does_not_take_the_focus() -> None:
    window = QWidget()
    field = QWidget(window)
    field.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    window.show()
    window.activateWindow()
    field.setFocus()
    waiting = await asked()
    assert window.focusWidget() is field
    click(waiting.card, "Deny (d)")
    await waiting.decided()


async def test_what_the_server_says_is_shown_as_its_claim_and_hidden_characters_are_marked() -> None:
    waiting = await asked(other_servers=frozenset({"web\u202e"}))
    text = seen(waiting.card)
    assert "The server describes it: “Lists <b>invoices</b>.\\u202E”" in text
    assert "The server says: it only reads, it reaches out to other systems. Deskhand can't check that." in text
    assert "Content of web\\u202E is in this conversation" in text
    assert waiting.card.accessibleName() == "billing · list_invoices, waits for your decision"
    click(waiting.card, "Deny (d)")
    await waiting.decided()


async def test_a_question_in_a_narrow_column_is_as_high_as_its_buttons_need() -> None:
    waiting = await asked()
    column = QWidget()
    StackLayout(column).addWidget(waiting.card)
    column.resize(360, 700)
    column.show()
    await until(lambda: waiting.card.width() == 360 and waiting.card.height() == waiting.card.heightForWidth(360))
    assert waiting.card.height() > waiting.card.sizeHint().height()
    click(waiting.card, "Deny (d)")
    await waiting.decided()


async def test_the_arguments_shown_are_the_very_ones_that_are_sent_and_all_of_them() -> None:
    answers = PersonAnswers()
    call = native('{"a": 1, "a": 2}')
    arguments = {"a": 2, "hidden": "x\u200by", "long": "z" * 100_000, "end": "the end"}
    request = ApprovalRequest("conversation", call, TOOL, arguments)
    task = asyncio.get_running_loop().create_task(answers.decide(request))
    made = card(call, answers)
    [view] = await until(lambda: [each for each in made.findChildren(CodeView) if each.isVisible()])
    assert view.text.startswith('{\n  "a": 2,\n  "hidden": "x\\u200By",\n  "long": "zzz')
    assert len(view.text) < 40_000
    while "the end" not in view.text:
        [more] = [each for each in seen(made).split("\n") if each.startswith("Show more")]
        click(made, more)
    assert "Show more" not in seen(made)
    assert json.loads(view.text.replace("\\u200B", "\u200b")) == arguments
    click(made, "Deny (d)")
    assert await task == "deny"


async def test_a_changed_tool_shows_what_changed() -> None:
    changed = ToolDefinition(
        "billing",
        "list_invoices",
        TOOL.native_name,
        "Lists invoices and sends them.",
        TOOL.input_schema,
        "f2",
        "identity",
    )
    answers = PersonAnswers()
    call = ToolCall("1", "mcp_tools", '{"activate": ["billing.list_invoices"]}')
    request = ApprovalRequest("conversation", call, changed, {}, previous=TOOL)
    task = asyncio.get_running_loop().create_task(answers.decide(request))
    made = card(call, answers)
    await until(lambda: "Accept (a)" in seen(made))
    assert "billing.list_invoices has changed. Accept the change?" in seen(made)
    [view] = [each for each in made.findChildren(CodeView) if each.isVisible()]
    assert "-Lists <b>invoices</b>.\\u202E\n+Lists invoices and sends them." in view.text
    assert '-    "readOnlyHint": true' in view.text
    assert "Allow in this conversation" not in seen(made)
    made.setFocus()
    QTest.keyClicks(made, "s")
    assert made.waits
    QTest.keyClicks(made, "a")
    assert await task == "once"


async def test_a_cancelled_question_is_withdrawn() -> None:
    waiting = await asked()
    waiting.task.cancel()
    await until(lambda: not waiting.card.waits)
    assert "May this call run?" not in seen(waiting.card)
    waiting.answers.answer_approval(waiting.request, "always")  # too late: without effect
    assert waiting.task.cancelled()


async def test_calls_of_two_conversations_with_one_id_are_told_apart() -> None:
    answers = PersonAnswers()
    one, other = native(), native()
    tasks = [
        asyncio.get_running_loop().create_task(answers.decide(ApprovalRequest(conversation, call, TOOL, {})))
        for conversation, call in (("conversation", one), ("another", other))
    ]
    made = card(one, answers)
    await until(lambda: "Allow once (a)" in seen(made))
    click(made, "Allow once (a)")
    assert await tasks[0] == "once"
    await asyncio.sleep(0)
    assert not tasks[1].done()
    tasks[1].cancel()
    await asyncio.wait(tasks)


# Guide's questions


class Question:
    """A question that is open, with its card."""

    def __init__(self, part: Choice | Form) -> None:
        self.answers = PersonAnswers()
        ask = self.answers.choose(part) if isinstance(part, Choice) else self.answers.fill(part)
        self.task = asyncio.get_running_loop().create_task(ask)
        self.part = part
        make = ChoiceCard if isinstance(part, Choice) else FormCard
        self.card = make(part, self.answers)  # type: ignore[arg-type]
        self.card.resize(500, 300)
        self.card.show()

    async def answered(self) -> Any:
        answer = await asyncio.wait_for(self.task, 5)
        self.part.answer = answer
        self.card.refresh()
        assert not self.card.is_open
        return answer


async def choice(count: int = 3) -> Question:
    question = Question(Choice("Which one?", [ChoiceOption(f"option {number}", "detail") for number in range(count)]))
    await until(lambda: "None of these" in seen(question.card))
    return question


async def test_a_clicked_option_is_the_answer_and_stays_as_a_summary() -> None:
    question = await choice()
    QTest.mouseClick(button(question.card, "2 option 1"), Qt.MouseButton.LeftButton)
    assert await question.answered() == 1
    await until(lambda: "✔ option 1" in seen(question.card))
    assert not [each for each in question.card.findChildren(OptionButton) if each.isVisible()]


@pytest.mark.parametrize(("key", "answer"), [(Qt.Key.Key_3, 2), (Qt.Key.Key_Escape, None)])
async def test_keys_choose(key: Qt.Key, answer: int | None) -> None:
    question = await choice()
    question.card.focus_question()
    QTest.keyClick(question.card.focusWidget() or question.card, key)
    assert await question.answered() == answer


async def test_arrows_walk_and_enter_chooses() -> None:
    question = await choice()
    window = question.card.window()
    question.card.focus_question()
    for _ in range(2):
        QTest.keyClick(window.focusWidget(), Qt.Key.Key_Down)
    QTest.keyClick(window.focusWidget(), Qt.Key.Key_Up)
    QTest.keyClick(window.focusWidget(), Qt.Key.Key_Return)
    assert await question.answered() == 1


async def test_a_number_without_an_option_is_no_answer() -> None:
    question = await choice(2)
    QTest.keyClick(question.card, Qt.Key.Key_7)
    assert question.card.is_open
    click(question.card, "None of these")
    assert await question.answered() is None
    await until(lambda: "None chosen" in seen(question.card))


async def test_options_show_text_as_it_is() -> None:
    question = Question(Choice("Which & <b>what</b>\u202e?", [ChoiceOption("<i>a</i> && b", "x")]))
    await until(lambda: "None of these" in seen(question.card))
    assert "Which & <b>what</b>\\u202E?" in seen(question.card)
    assert button(question.card, "1 <i>a</i> && b")
    question.task.cancel()
    await until(lambda: not question.card.is_open)


async def test_a_form_is_filled_and_stays_as_a_summary() -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    }
    question = Question(Form("weather", "forecast", schema, {"days": 3}))
    await until(lambda: "Continue" in seen(question.card))
    assert "Arguments for weather · forecast" in seen(question.card)
    question.card.focus_question()
    focused = question.card.window().focusWidget()
    assert focused is not None
    QTest.keyClicks(focused, "Oslo")
    QTest.keyClick(focused, Qt.Key.Key_Return)
    assert await question.answered() == {"city": "Oslo", "days": 3}
    await until(lambda: "city: Oslo" in seen(question.card) and "days: 3" in seen(question.card))


async def test_a_form_that_is_given_up_says_so() -> None:
    question = Question(Form("a", "b", {"type": "object", "properties": {"x": {"type": "string"}}}, {}))
    await until(lambda: "Give up" in seen(question.card))
    click(question.card, "Give up")
    assert await question.answered() is None
    await until(lambda: "Not filled in" in seen(question.card))
