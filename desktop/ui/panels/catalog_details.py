"""What is known of one entry of the catalog: its words, parameters, claims and schema. The lower half of the catalog panel.

All of it is a server's own text: shown plain, with nothing hidden in it, and bounded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QDateTime, QLocale, Qt, Signal
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QFrame,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from desktop.catalog_entries import CatalogEntry, PromptEntry, ResourceEntry, TemplateEntry, ToolDefinition
from desktop.ui import icons, theme
from desktop.ui.buttons import PrimaryButton
from desktop.ui.chat.approval_panel import claims
from desktop.ui.chat.code_block import CodeView
from desktop.ui.chat.widgets import CopyButton, ElidedLabel, SlimScrollBars, flat_button
from desktop.ui.dialogs.form_schema import resolved
from desktop.ui.flow_layout import FlowLayout
from desktop.ui.labels import PlainLabel
from desktop.ui.messages import tr
from desktop.ui.panels.catalog_rows import identifier, kind_word, label
from desktop.visible_text import visible, visible_line

if TYPE_CHECKING:
    from desktop.host.server_lists import Freshness

_LONGEST_DESCRIPTION = 4000
_LONGEST_SCHEMA = 50_000
_MOST_PARAMETERS = 40
_DEEPEST = 2
_LONGEST_NAME = 120


class EntryDetails(QScrollArea):
    """Signals:
    run_requested(object): A tool is to be run by hand.
    attach_requested(object): A resource or a template is to be attached to the message that is being written.
    prompt_requested(object): A prompt is to be used.
    watch_requested(object): A resource is to be watched.
    """

    run_requested = Signal(object)
    prompt_requested = Signal(object)
    watch_requested = Signal(object)
    attach_requested = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shown: tuple[CatalogEntry, str, Sequence[str]] | None = None
        self._layout = QVBoxLayout()
        self._actions = FlowLayout()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(self.tr("Details"))
        self.viewport().setAutoFillBackground(False)
        SlimScrollBars(self)

    def show_entry(self, entry: CatalogEntry, freshness: Freshness, reasons: Sequence[str] = ()) -> None:
        """`reasons` as in `SearchResult`: why it was found."""
        age = _age(freshness)
        if self._shown is not None and entry is self._shown[0] and (age, reasons) == self._shown[1:]:
            return
        self._shown = entry, age, reasons
        page = QWidget()
        self._layout = QVBoxLayout(page)
        self._layout.setContentsMargins(0, theme.SPACING, theme.SPACING, 0)
        self._layout.setSpacing(theme.SPACING)
        title = ElidedLabel(label(entry), bold=True)
        copy = CopyButton(self.tr("Copy identifier"), lambda: identifier(entry))
        head = QHBoxLayout()
        head.setSpacing(theme.SPACING)
        head.addWidget(title, 1)
        head.addWidget(copy)
        self._layout.addLayout(head)
        self._layout.addWidget(ElidedLabel(visible_line(identifier(entry), 2000), tone="muted", fixed_width_font=True))
        kind = self.tr("{kind} of {server}").format(
            kind=kind_word(entry.kind), server=visible_line(entry.server, _LONGEST_NAME)
        )
        self._layout.addWidget(ElidedLabel(kind, tone="muted"))
        self._actions = FlowLayout()  # in sight, however much there is to say
        self._layout.addLayout(self._actions)
        self._add(age, tone="muted")
        if reasons:
            self._add(self.tr("Found by {reasons}").format(reasons=", ".join(map(_reason, reasons))), tone="muted")
        description = visible(entry.description[:_LONGEST_DESCRIPTION]).strip()
        self._add(description + ("…" if len(entry.description) > _LONGEST_DESCRIPTION else ""))
        match entry:
            case ToolDefinition():
                self._show_tool(entry)
            case ResourceEntry():
                self._add_fact(self.tr("MIME type"), visible_line(entry.mime_type))
                size = QLocale().formattedDataSize(entry.size) if entry.size is not None else ""
                self._add_fact(self.tr("Size"), size)
                self._add_attach(entry)
                self._add_button(QPushButton(self.tr("Watch")), lambda: self.watch_requested.emit(entry))
            case TemplateEntry():
                self._add_fact(self.tr("MIME type"), visible_line(entry.mime_type))
                self._add_list(self.tr("Variables"), [visible_line(each, _LONGEST_NAME) for each in entry.variables])
                self._add_attach(entry)
            case PromptEntry():
                self._add_list(
                    self.tr("Arguments"),
                    [_line(each.name, "", each.required, each.description) for each in entry.arguments],
                )
                self._add_button(PrimaryButton(self.tr("Use…")), lambda: self.prompt_requested.emit(entry))
        self._layout.addStretch(1)
        focused = QApplication.focusWidget()
        if focused is not None and self.isAncestorOf(focused):
            self.setFocus()
        self.setWidget(page)  # which deletes the one before
        page.setAutoFillBackground(False)
        page.show()
        self.verticalScrollBar().setValue(0)
        before: QWidget = self
        for control in page.findChildren(QAbstractButton):
            QWidget.setTabOrder(before, control)  # Qt puts what is made later behind all else in the window
            before = control

    def _show_tool(self, tool: ToolDefinition) -> None:
        lines = list(_parameters(tool.input_schema, tool.input_schema))
        if lines:
            self._add_list(self.tr("Parameters"), lines)
        else:
            self._add(self.tr("The tool takes no arguments."), tone="muted")
        if said := claims(tool):
            self._add_fact(self.tr("The server says"), ", ".join(said))
        self._add_button(PrimaryButton(self.tr("Run…")), lambda: self.run_requested.emit(tool))
        self._layout.addWidget(_Schema(tool.input_schema), 0)

    def _add_attach(self, entry: ResourceEntry | TemplateEntry) -> None:
        text = self.tr("Attach…") if isinstance(entry, TemplateEntry) else self.tr("Attach")
        self._add_button(PrimaryButton(text), lambda: self.attach_requested.emit(entry))

    def _add_button(self, button: QPushButton, press: Callable[[], None]) -> None:
        button.setAutoDefault(False)
        button.clicked.connect(press)
        self._actions.addWidget(button)

    def _add(self, text: str, *, tone: str = "", bold: bool = False) -> None:
        if text:
            self._layout.addWidget(PlainLabel(text, tone=tone, bold=bold, selectable=True))

    def _add_fact(self, name: str, value: str) -> None:
        if value:
            self._add(self.tr("{name}: {value}").format(name=name, value=value))

    def _add_list(self, heading: str, lines: list[str]) -> None:
        if lines:
            self._add(heading, bold=True)
            shown = [*lines[:_MOST_PARAMETERS], *(["…"] if len(lines) > _MOST_PARAMETERS else [])]
            self._add("\n".join(shown))


def _reason(reason: str) -> str:
    """One of `SearchResult.reasons` in the person's words."""
    if reason == "identifier":
        return tr("its identifier")
    if reason == "meaning":
        return tr("its meaning")
    word, _, fields = reason.partition(": ")
    names = {
        "name": tr("name"),
        "title": tr("title"),
        "server": tr("server"),
        "description": tr("description"),
        "parameters": tr("parameters"),
    }
    places = ", ".join(names.get(field, field) for field in fields.split(", "))
    return tr("“{word}” ({places})").format(word=visible_line(word, 60), places=places)


def _age(freshness: Freshness) -> str:
    """Since when an entry is known, and whether its server said so in this run."""
    if freshness.listed_at is None:
        return ""
    listed = QDateTime.fromSecsSinceEpoch(int(freshness.listed_at))
    today = listed.date() == QDateTime.currentDateTime().date()
    time_ = QLocale().toString(listed.time() if today else listed, QLocale.FormatType.ShortFormat)
    if freshness.live:
        return tr("Listed by the server at {time}").format(time=time_)
    return tr("Kept from an earlier run, listed at {time}; the server is asked again before a call").format(time=time_)


class _Schema(QWidget):
    """A schema as JSON, written out when it is asked for."""

    def __init__(self, schema: dict[str, Any]) -> None:
        super().__init__()
        self._schema = schema
        self._view: CodeView | None = None
        self._toggle = flat_button("right", self.tr("Show the schema"), text=self.tr("Schema"))
        self._toggle.setCheckable(True)
        self._toggle.toggled.connect(self._show)
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.addWidget(self._toggle)

    def _show(self, shown: bool) -> None:
        icons.set_icon(self._toggle, "down" if shown else "right")
        if self._view is None:
            text = visible(json.dumps(self._schema, indent=2, ensure_ascii=False))
            self._view = CodeView(wrap=True, parent=self)
            self._view.setAccessibleName(self.tr("Schema"))
            shown_whole = len(text) <= _LONGEST_SCHEMA
            self._view.set_text(
                text if shown_whole else text[:_LONGEST_SCHEMA] + "…", language="json" if shown_whole else ""
            )
            self._layout.addWidget(self._view)
        self._view.setVisible(shown)


def _parameters(schema: dict[str, Any], root: dict[str, Any], prefix: str = "", depth: int = 1) -> Iterator[str]:
    """A line for each parameter, those of objects below their object's; one more than are shown, at most."""
    properties = schema.get("properties")
    listed = schema.get("required")
    required = listed if isinstance(listed, list) else []
    for count, (name, given) in enumerate(properties.items() if isinstance(properties, dict) else ()):
        if count > _MOST_PARAMETERS:
            return
        said = resolved(given, root)
        yield _line(f"{prefix}{name}", _type(said, root), name in required, said.get("description"))
        inner = said if said.get("type") != "array" else resolved(said.get("items"), root)
        if "properties" in inner:
            mark = "[]." if inner is not said else "."
            if depth < _DEEPEST:
                yield from _parameters(inner, root, f"{prefix}{name}{mark}", depth + 1)
            else:
                yield f"{visible_line(prefix + name, _LONGEST_NAME)}{mark}…"


def _type(schema: dict[str, Any], root: dict[str, Any]) -> str:
    if isinstance(choices := schema.get("enum"), list):
        return tr("one of {choices}").format(choices=", ".join(map(str, choices[:8])) + ("…" if choices[8:] else ""))
    kind = schema.get("type")
    if kind == "array" and isinstance(inner := resolved(schema.get("items"), root).get("type"), str):
        return tr("list of {type}").format(type=inner)
    return kind if isinstance(kind, str) else tr("any")


def _line(name: str, kind: str, required: bool, description: object) -> str:
    words = visible_line(description, 200) if isinstance(description, str) else ""
    marks = ", ".join(filter(None, (visible_line(kind, _LONGEST_NAME), tr("required") if required else "")))
    named = visible_line(name, _LONGEST_NAME)
    return "".join(("• ", named, f" ({marks})" if marks else "", f": {words}" if words else ""))
