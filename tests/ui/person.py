"""What a person does in the window's tests: looks for something by its text, clicks it, waits for what comes."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QPlainTextEdit, QWidget

Found = TypeVar("Found")
Kind = TypeVar("Kind", bound=QWidget)


async def until(condition: Callable[[], Found], time_limit: float = 20) -> Found:
    """Waits until a condition holds, and returns what it gave."""
    deadline = time.monotonic() + time_limit
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come about in time"
        await asyncio.sleep(0.01)
    return found


def seen(widget: QWidget) -> str:
    """The text that a widget and what is in it show, from top to bottom as they were made."""
    texts: list[str] = []
    for each in widget.findChildren(QWidget):
        if not each.isVisible():
            continue
        if isinstance(each, QLabel | QAbstractButton):
            texts.append(each.text())
        elif isinstance(each, QPlainTextEdit):
            texts.append(each.toPlainText())
    return "\n".join(text for text in texts if text)


def button(widget: QWidget, name: str) -> QAbstractButton:
    """The visible button of that text or, for one with an icon alone, that name."""
    [found] = [
        each
        for each in widget.findChildren(QAbstractButton)
        if each.isVisible() and name in (each.text().replace("&", ""), each.accessibleName())
    ]
    return found


def click(widget: QWidget, name: str) -> None:
    found = button(widget, name)
    assert found.isEnabled(), f"{name} can't be pressed"
    QTest.mouseClick(found, Qt.MouseButton.LeftButton)


def windows(kind: type[Kind]) -> list[Kind]:
    """The visible windows of a kind."""
    return [each for each in QApplication.topLevelWidgets() if isinstance(each, kind) and each.isVisible()]


async def opened(kind: type[Kind]) -> Kind:
    """The one window of a kind, once it is there and can be used."""
    return await until(lambda: next((each for each in windows(kind) if each.isEnabled()), None))


def write_servers(path: Path, **entries: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": entries}))


def entries(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())["mcpServers"]
