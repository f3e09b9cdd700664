"""What servers ask, as the person sees and answers it: forms of every kind of field, and pages to visit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QDialog, QLineEdit, QWidget

from desktop import links
from desktop.host.elicitation_form import fields_of
from desktop.host.server_questions import FormQuestion, PageQuestion
from desktop.ui.dialogs.question_dialogs import FormDialog, PageDialog, WaitDialog
from desktop.ui.server_questions import WindowRespondent
from tests.ui.person import button, click, opened, seen, until, windows

pytestmark = pytest.mark.anyio

EVERY_KIND: dict[str, Any] = {
    "name": {"type": "string", "title": "Your name", "minLength": 2},
    "mail": {"type": "string", "format": "email"},
    "day": {"type": "string", "format": "date"},
    "size": {"type": "number", "minimum": 0, "maximum": 1},
    "count": {"type": "integer", "default": 3},
    "agree": {"type": "boolean"},
    "tone": {"type": "string", "enum": ["f", "s"], "enumNames": ["Formal", "Short"]},
    "tags": {"type": "array", "items": {"anyOf": [{"const": "x", "title": "Ex"}, {"const": "y", "title": "Why"}]}},
}


@pytest.fixture
def respondent(anyio_backend: object) -> Iterator[WindowRespondent]:
    window = QWidget()
    window.resize(900, 600)
    window.show()
    respondent = WindowRespondent()
    respondent.window = window
    yield respondent


def form(required: list[str], **properties: Any) -> FormQuestion:
    schema = {"type": "object", "properties": properties, "required": required}
    return FormQuestion("crm", "Who are you?\n<b>Say it</b>", fields_of(schema))


def page(url: str) -> PageQuestion:
    link = links.check(url)
    assert link is not None
    return PageQuestion("crm", "Sign here", link)


async def ready(dialog: QWidget, name: str) -> None:
    """A question comes unasked: for a moment its buttons do nothing."""
    await until(lambda: button(dialog, name).isEnabled())


def key(pressed: Qt.Key) -> None:
    focused = QApplication.focusWidget()
    assert focused is not None
    QTest.keyClick(focused, pressed)


async def test_a_form_of_every_kind_of_field_is_filled_by_keyboard_alone(respondent: WindowRespondent) -> None:
    answer = asyncio.ensure_future(respondent.fill(form(["name", "agree"], **EVERY_KIND)))
    dialog = await opened(FormDialog)
    await ready(dialog, "Submit")
    assert not dialog.isModal()
    assert "The server crm asks" in seen(dialog) and "<b>Say it</b>" in seen(dialog)
    assert "Never enter passwords" in seen(dialog)
    name, mail, day, size, count = dialog.findChildren(QLineEdit)
    assert (name.accessibleName(), count.text()) == ("Your name, required", "3")
    assert name.hasFocus()
    for line, text in ((name, "Ann"), (mail, "ann@example.org"), (day, "2027-02-28"), (size, "0.5")):
        assert line.hasFocus()
        QTest.keyClicks(line, text)
        key(Qt.Key.Key_Tab)
    key(Qt.Key.Key_Tab)
    agree, tone = dialog.findChildren(QComboBox)
    assert agree.hasFocus()
    key(Qt.Key.Key_Down)
    key(Qt.Key.Key_Tab)
    assert tone.hasFocus()
    key(Qt.Key.Key_Down)
    key(Qt.Key.Key_Tab)
    key(Qt.Key.Key_Space)
    name.setFocus()
    key(Qt.Key.Key_Return)
    assert await answer == {
        "name": "Ann",
        "mail": "ann@example.org",
        "day": "2027-02-28",
        "size": 0.5,
        "count": 3,
        "agree": True,
        "tone": "f",
        "tags": ["x"],
    }


async def test_what_does_not_fit_is_said_at_its_field_and_the_form_stays(respondent: WindowRespondent) -> None:
    answer = asyncio.ensure_future(respondent.fill(form(["name", "agree"], **EVERY_KIND)))
    dialog = await opened(FormDialog)
    await ready(dialog, "Submit")
    name, mail, day, size, count = dialog.findChildren(QLineEdit)
    for line, text in ((mail, "nobody"), (day, "2027-02-30"), (size, "2"), (count, "1.5")):
        line.setText(text)
    click(dialog, "Submit")
    said = seen(dialog)
    for fault in (
        "Enter or choose a value.",
        "Enter an e-mail address.",
        "Enter a day as YYYY-MM-DD.",
        "Enter 1 or less.",
        "Enter a whole number.",
    ):
        assert fault in said
    assert name.hasFocus() and not answer.done()
    assert mail.text() == "nobody"
    for line, text in ((name, "Ann"), (mail, ""), (day, ""), (size, ""), (count, "")):
        line.setText(text)
    dialog.findChildren(QComboBox)[0].setCurrentIndex(1)
    click(dialog, "Submit")
    assert await answer == {"name": "Ann", "agree": False}


@pytest.mark.parametrize(
    ("leave", "said"),
    [
        (lambda dialog: click(dialog, "Decline"), "decline"),
        (lambda dialog: click(dialog, "Cancel"), "cancel"),
        (lambda dialog: QTest.keyClick(dialog, Qt.Key.Key_Escape), "cancel"),
    ],
)
async def test_declining_is_told_from_closing(
    respondent: WindowRespondent, leave: Callable[[QWidget], None], said: str
) -> None:
    answer = asyncio.ensure_future(respondent.fill(form([], name={"type": "string"})))
    leave(await opened(FormDialog))
    assert await answer == said


async def test_a_question_can_be_answered_while_a_dialog_is_open_and_outlives_it(respondent: WindowRespondent) -> None:
    settings = QDialog(respondent.window)
    settings.open()
    answer = asyncio.ensure_future(respondent.fill(form(["name"], name={"type": "string"})))
    dialog = await opened(FormDialog)
    assert dialog.parentWidget() is settings  # nothing else is let through by the window system
    settings.deleteLater()
    again = await until(
        lambda: next((each for each in windows(FormDialog) if each.parentWidget() is not settings), None)
    )
    assert again is not None and again.parentWidget() is respondent.window
    QTest.keyClicks(again.findChildren(QLineEdit)[0], "Ann")
    await ready(again, "Submit")
    click(again, "Submit")
    assert await answer == {"name": "Ann"}


async def test_a_field_that_looks_like_a_secret_has_a_warning(respondent: WindowRespondent) -> None:
    answer = asyncio.ensure_future(respondent.fill(form([], api_key={"type": "string"})))
    dialog = await opened(FormDialog)
    assert "This looks like a secret." in seen(dialog)
    dialog.reject()
    assert await answer == "cancel"


async def test_a_withdrawn_question_closes(respondent: WindowRespondent) -> None:
    answer = asyncio.ensure_future(respondent.fill(form([], name={"type": "string"})))
    await opened(FormDialog)
    answer.cancel()
    await asyncio.wait({answer})
    assert not windows(FormDialog)


async def test_a_page_shows_its_host_and_is_opened_by_the_person_alone(
    respondent: WindowRespondent, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed: list[str] = []

    async def hand_over(command: list[str], *, time_limit: float) -> int:
        handed.append(command[-1])
        return 1 if len(handed) == 1 else 0

    monkeypatch.setattr(links.processes, "hand_over", hand_over)
    answer = asyncio.ensure_future(respondent.visit(page("https://аррӏе.com/" + "x" * 3000)))
    dialog = await opened(PageDialog)
    assert "The page is on xn--80ak6aa92e.com" in seen(dialog)
    assert "The name has letters that can look like others." in seen(dialog)
    await ready(dialog, "Open in browser")
    assert handed == []
    assert dialog.decline_button.hasFocus()
    click(dialog, "Open in browser")
    await until(lambda: "The browser could not be started." in seen(dialog))
    assert not answer.done()
    click(dialog, "Copy address")
    assert QGuiApplication.clipboard().text().startswith("https://xn--80ak6aa92e.com/xxx")
    click(dialog, "Open in browser")
    assert await answer == "accept"
    assert handed[1] == "https://xn--80ak6aa92e.com/" + "x" * 3000


async def test_a_page_of_this_computer_has_a_warning_and_can_be_opened_by_hand(respondent: WindowRespondent) -> None:
    answer = asyncio.ensure_future(respondent.visit(page("http://127.0.0.1:8080/x")))
    dialog = await opened(PageDialog)
    assert "is not encrypted" in seen(dialog)
    click(dialog, "I open it myself")
    assert await answer == "accept"


async def test_the_wait_for_pages_ends_by_done_or_is_given_up(respondent: WindowRespondent) -> None:
    for name, result in (("Done", True), ("Cancel", False)):
        answer = asyncio.ensure_future(respondent.wait_for_pages("crm"))
        dialog = await opened(WaitDialog)
        await ready(dialog, name)
        click(dialog, name)
        assert await answer is result
        await until(lambda: not any(isinstance(each, WaitDialog) for each in QApplication.topLevelWidgets()))
