"""Deskhand's window in the test's own process, on its real loop, with real servers and models; driven by mouse and keyboard."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QPlainTextEdit, QPushButton, QTextEdit, QWidget

from desktop.assistant.conversation import ToolCall
from desktop.core import Core
from desktop.paths import Paths
from desktop.ui import tasks
from desktop.ui.chat.answers import PersonAnswers
from desktop.ui.main_window import MainWindow
from tests.end_to_end.programs import write_servers
from tests.fakes.model_server import ModelServer

Found = TypeVar("Found")


class Person:
    """Someone before the window: types, presses, clicks, reads, and waits, but never longer than a bound."""

    def __init__(self, core: Core, window: MainWindow) -> None:
        self.core = core
        self.window = window

    async def says(self, text: str) -> None:
        """Types into the composer and sends."""
        self.window.chat.setFocus()
        QTest.keyClicks(self.focused, text)
        self.presses(Qt.Key.Key_Return)

    def presses(self, key: Qt.Key, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        QTest.keyClick(self.focused, key, modifiers)

    async def clicks(self, text: str, time_limit: float = 45) -> None:
        """Clicks the button that bears a text, once it is there."""
        button = await self.waits_for(lambda: self._button(text), time_limit)
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)

    async def waits_for(self, condition: Callable[[], Found], time_limit: float = 45) -> Found:
        """Waits until a condition holds, and returns what it gave."""
        deadline = time.monotonic() + time_limit
        while not (found := condition()):
            assert time.monotonic() < deadline, f"it did not come about; the window shows: {self.sees[-2000:]}"
            await asyncio.sleep(0.01)
        return found

    async def waits_for_the_end(self) -> None:
        await self.waits_for(lambda: not self.window.chat.busy)

    @property
    def focused(self) -> QWidget:
        return QApplication.focusWidget() or self.window

    @property
    def calls(self) -> list[ToolCall]:
        return [call for message in self.window.chat.conversation.messages for call in message.tool_calls]

    @property
    def answer(self) -> str:
        messages = self.window.chat.conversation.messages
        return messages[-1].text if messages and messages[-1].role == "assistant" else ""

    @property
    def sees(self) -> str:
        """All text that the window shows."""
        texts: list[str] = []
        for widget in self.window.findChildren(QWidget):
            if not widget.isVisible():
                continue
            if isinstance(widget, QLabel | QPushButton):
                texts.append(widget.text())
            elif isinstance(widget, QTextEdit | QPlainTextEdit):
                texts.append(widget.toPlainText())
            elif isinstance(text := getattr(widget, "text", None), str):
                texts.append(text)
        return "\n".join(texts)

    def _button(self, text: str) -> QPushButton | None:
        buttons = self.window.findChildren(QPushButton)
        return next((each for each in buttons if each.isVisible() and each.isEnabled() and text in each.text()), None)


@asynccontextmanager
async def deskhand(
    paths: Paths, servers: Mapping[str, Any] | Path, model: ModelServer | None = None
) -> AsyncIterator[Person]:
    """The window, started, with servers (or a file of them) and a model; without one Guide answers."""
    config = servers if isinstance(servers, Path) else write_servers(paths.config / "test.json", **servers)
    answers = PersonAnswers()
    core = Core(paths, approver=answers, asker=answers, config=config)
    if model is not None:
        core.settings.change(model="openai/scripted", api_base=model.address)
    window = MainWindow(core, answers)
    window.resize(1200, 800)
    window.show()
    window.activateWindow()
    try:
        await core.start()
        yield Person(core, window)
    finally:
        window.close()
        await tasks.end(3)
        await core.close()
        window.deleteLater()
