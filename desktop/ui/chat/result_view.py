"""What came of a tool call: rows of a search or an activation, the beginning of the result and all of it, images, files.

The body of the tool-call card once the call has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QLocale, Qt
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from desktop import links
from desktop.assistant.conversation import SpilledFile, ToolCall, ToolOutput
from desktop.errors import AssistantError, Diagnostic
from desktop.ui import messages, tasks, theme
from desktop.ui.chat import files, result_text
from desktop.ui.chat.code_block import CodeView
from desktop.ui.chat.image_view import ImageView
from desktop.ui.chat.widgets import CopyButton, ElidedLabel, Glyph, flat_button
from desktop.ui.flow_layout import FlowLayout
from desktop.ui.labels import PlainLabel
from desktop.ui.messages import tr
from desktop.visible_text import visible_line

_PREVIEW_LINES = 6
_PREVIEW_CHARACTERS = 1200
_LINES_OF_A_SECTION = 24
_FEW_ROWS = 8

#: A diagnostic's remedy is a click away: what to do with it.
Remedy = Callable[[Diagnostic], None]


class Rows(QWidget):
    """What `mcp_tools` found or did, as it was then: a glyph, an identifier, a few words."""

    def __init__(self, call: ToolCall, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(theme.SPACING // 2)
        self._rows = _rows(call)
        for row in self._rows[:_FEW_ROWS]:
            self._add(*row)
        if len(self._rows) > _FEW_ROWS:
            text = self.tr("Show all {count}").format(count=len(self._rows))
            self._more = flat_button("down", text, text=text)
            self._more.clicked.connect(self._show_all)
            self._layout.addWidget(self._more)

    def _show_all(self) -> None:
        self._more.hide()
        for row in self._rows[_FEW_ROWS:]:
            self._add(*row)

    def _add(self, icon: str, tone: str, state: str, name: str, words: str) -> None:
        row = QHBoxLayout()
        row.setSpacing(theme.SPACING)
        glyph = Glyph()
        glyph.show_state(icon, tone, state)
        row.addWidget(glyph)
        row.addWidget(ElidedLabel(name))
        row.addWidget(ElidedLabel(words, tone="error" if tone == "error" else "muted"), 1)
        self._layout.addLayout(row)


class Outcome(QWidget):
    """How a call ended, where that has to be said: what the tool reports, what failed, a warning."""

    def __init__(self, output: ToolOutput, *, ran: bool, remedy: Remedy, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.SPACING // 2)
        diagnostic = output.diagnostic
        if output.reported_error:
            layout.addWidget(PlainLabel(self.tr("The tool reports an error:"), tone="warning", bold=True))
        elif diagnostic is not None and diagnostic.code == "cancelled":
            said = self.tr("Stopped. It may have taken effect.") if ran else self.tr("Stopped before it ran.")
            layout.addWidget(PlainLabel(said, tone="muted"))
        elif diagnostic is not None and diagnostic.code == "denied":
            layout.addWidget(PlainLabel(self.tr("Not allowed."), tone="muted"))
        elif diagnostic is not None:
            words = messages.words(diagnostic)
            layout.addWidget(PlainLabel(words.title, tone="error", bold=True))
            for text, tone in ((words.detail, ""), (words.remedy, "muted")):
                if text:
                    layout.addWidget(PlainLabel(text, tone=tone))
            if text := remedy_text(diagnostic):
                button = QPushButton(text)
                button.setAutoDefault(False)
                button.clicked.connect(lambda: remedy(diagnostic))
                layout.addWidget(button, 0, Qt.AlignmentFlag.AlignLeading)
        if output.warning:
            layout.addWidget(PlainLabel(visible_line(output.warning, 400), tone="warning"))


class Preview(QWidget):
    """The first lines of a result."""

    def __init__(self, output: ToolOutput, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        text = "\n".join(section.text for section in result_text.sections(output))
        lines = text[:_PREVIEW_CHARACTERS].split("\n")
        self.is_whole = len(text) <= _PREVIEW_CHARACTERS and len(lines) <= _PREVIEW_LINES
        view = CodeView(wrap=True, most_lines=_PREVIEW_LINES, parent=self)
        view.setAccessibleName(self.tr("Beginning of the result"))
        view.set_text("\n".join(lines[:_PREVIEW_LINES]) + ("" if self.is_whole else " …"))
        layout.addWidget(view)
        self.setVisible(bool(text.strip()))


class WholeResult(QWidget):
    """All of a result's text, as the model got it, JSON laid out and coloured."""

    def __init__(self, output: ToolOutput, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.SPACING)
        for section in result_text.sections(output):
            view = CodeView(wrap=True, most_lines=_LINES_OF_A_SECTION, parent=self)
            view.setAccessibleName(self.tr("Result"))
            view.set_text(section.text, language="json" if section.is_json else "")
            layout.addWidget(view)


class Section(QWidget):
    """A heading with Copy, and what it heads."""

    def __init__(self, title: str, copy: str, text: Callable[[], str], body: QWidget) -> None:
        super().__init__()
        head = QHBoxLayout()
        head.addWidget(PlainLabel(title, tone="muted", wrap=False))
        head.addStretch()
        head.addWidget(CopyButton(copy, text, self))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(head)
        layout.addWidget(body)


class Images(QWidget):
    def __init__(self, output: ToolOutput, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.SPACING)
        for image in output.images:
            layout.addWidget(ImageView(image, self))


class SpilledRow(QWidget):
    """The private file that holds a result whole: its size, Open and Save as."""

    def __init__(self, spilled: SpilledFile, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._spilled = spilled
        self._name = name
        size = QLocale().formattedDataSize(spilled.size)
        lines = QLocale().toString(spilled.lines)
        text = self.tr("The whole result is in a file: {size}, {lines} lines").format(size=size, lines=lines)
        open_ = QPushButton(self.tr("Open"))
        save = QPushButton(self.tr("Save as…"))
        for button in (open_, save):
            button.setAutoDefault(False)
        open_.clicked.connect(lambda: tasks.start(self._open(), on_error=self))
        save.clicked.connect(lambda: tasks.start(self._save(), on_error=self))
        row = FlowLayout(self)
        label = PlainLabel(text, wrap=False)
        label.setMinimumHeight(open_.sizeHint().height())  # its text stands beside the buttons' texts
        row.addWidget(label)
        row.addWidget(open_)
        row.addWidget(save)

    async def _open(self) -> None:
        path = Path(self._spilled.path)
        if not await asyncio.to_thread(path.is_file):
            raise AssistantError("result_gone", operation="storage")
        if not await links.open_path(path):
            raise AssistantError("operation_failed", operation="storage")

    async def _save(self) -> None:
        path = Path(self._spilled.path)
        await files.save_as(path, files.safe_name(self._name, path.suffix or ".json"), self)


def remedy_text(diagnostic: Diagnostic) -> str:
    """What the button of a diagnostic says; "" where there is nothing to click."""
    if diagnostic.code in _SETTINGS_REMEDIES:
        return tr("Open settings")
    if diagnostic.code in _SERVER_REMEDIES and diagnostic.server:
        return tr("Show the server")
    return ""


_SETTINGS_REMEDIES = frozenset({"model_key_missing", "model_key_refused", "model_not_allowed", "model_unknown"})
_SERVER_REMEDIES = frozenset(
    {
        "server_disabled",
        "consent_required",
        "server_not_started",
        "connection_failed",
        "command_not_found",
        "runtime_missing",
        "server_exited",
        "certificate_refused",
        "authentication_required",
        "permission_denied",
        "protocol_error",
        "protocol_unsupported",
        "server_error",
        "configuration_invalid",
        "variable_missing",
        "secret_missing",
        "timeout",
    }
)

_Row = tuple[str, str, str, str, str]


def _rows(call: ToolCall) -> list[_Row]:
    """Icon, tone, state, name and words of each row. The details come from the history: nothing is taken for granted."""
    match call.details.get("operation"):
        case "query":
            found = [_candidate(each) for each in _dictionaries(call.details.get("candidates"))]
            nothing = [("circle", "muted", tr("nothing found"), tr("Nothing found"), "")]
            unsearched = [_not_searched(each) for each in _dictionaries(call.details.get("not_searched"))]
            return [*(found or nothing), *unsearched]
        case "activate":
            return [_activation(each) for each in _dictionaries(call.details.get("rows"))]
        case "read":
            server, uri = str(call.details.get("server", "")), str(call.details.get("uri", ""))
            return [("resource", "muted", tr("resource"), f"{visible_line(server, 80)} · {visible_line(uri, 300)}", "")]
        case "complete":
            values = call.details.get("values")
            shown = [visible_line(str(each), 200) for each in values[:100]] if isinstance(values, list) else []
            return [("circle", "muted", tr("suggestion"), each, "") for each in shown]
    return []


def _candidate(details: dict[str, Any]) -> _Row:
    kind = details.get("kind")
    words = visible_line(str(details.get("description", "")), 300)
    if kind == "tool":
        loaded = details.get("loaded") is True
        state = tr("loaded") if loaded else tr("not loaded")
        return ("dot" if loaded else "circle", "muted", state, visible_line(str(details.get("identifier", ""))), words)
    title = visible_line(str(details.get("title") or details.get("name") or details.get("uri") or ""))
    kinds = {"resource": tr("resource"), "template": tr("template"), "prompt": tr("prompt")}
    named = kinds.get(str(kind), "")
    return ("circle", "muted", named, f"{visible_line(str(details.get('server', '')), 80)} · {title} [{named}]", words)


def _not_searched(details: dict[str, Any]) -> _Row:
    said = _title(details.get("code"))
    return ("close", "error", tr("not searched"), visible_line(str(details.get("server") or ""), 80), said)


def _activation(details: dict[str, Any]) -> _Row:
    name = visible_line(str(details.get("identifier", "")))
    match details.get("state"):
        case "loaded":
            return ("check", "ok", tr("loaded"), name, "")
        case "already loaded":
            return ("dot", "muted", tr("already loaded"), name, tr("already loaded"))
    near = details.get("near")
    nearest = ", ".join(visible_line(str(each), 80) for each in near[:3]) if isinstance(near, list) else ""
    words = _title(details.get("diagnostic"))
    if nearest:
        words += " · " + tr("nearest: {names}").format(names=nearest)
    return ("close", "error", tr("not loaded"), name, words)


def _title(code: Any) -> str:
    try:
        return messages.words(Diagnostic(str(code))).title
    except KeyError:  # of a newer Deskhand
        return ""


def _dictionaries(values: Any) -> list[dict[str, Any]]:
    return [each for each in values if isinstance(each, dict)] if isinstance(values, list) else []
