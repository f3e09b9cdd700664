"""The resources that the person watches: what changed, since when, and what to do about it. Used by the main window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import (
    QAbstractListModel,
    QDateTime,
    QLocale,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtWidgets import (
    QCheckBox,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from desktop.catalog_entries import ResourceEntry
from desktop.ui import list_rows, messages, tasks, theme
from desktop.ui.chat.widgets import plain_tool_tip
from desktop.ui.dialogs.changed_resource import ChangedResource
from desktop.ui.flow_layout import FlowLayout
from desktop.ui.labels import PlainLabel
from desktop.ui.messages import tr
from desktop.visible_text import visible_line

if TYPE_CHECKING:
    from desktop.core import Core
    from desktop.host.watches import Watch

_Index = QModelIndex | QPersistentModelIndex
#: Milliseconds between two drawings of what changes.
_DRAWN_EVERY = 100


class WatchesPanel(QWidget):
    """Signals:
    attach_requested(object): A watched resource is to be attached to the message that is being written.
    unseen_changed(int): So many watches have changes that the person has not seen.
    """

    attach_requested = Signal(object)
    unseen_changed = Signal(int)

    def __init__(self, core: Core, parent: QWidget | None = None) -> None:
        """Must be made while the event loop runs; kept watches are made again once `core` is ready."""
        super().__init__(parent)
        self._core = core
        self._unseen = 0
        self._texts: dict[tuple[str, str], str] = {}  # what was read of a resource when it was last opened
        self.model = _Watches(self)
        self.view = list_rows.list_view(self.model, list_rows.TwoLines(), self.tr("Watches"))
        self.view.activated.connect(lambda _: self._open())
        self.view.selectionModel().currentChanged.connect(lambda *_: self._show_current())
        self._nothing = PlainLabel(
            self.tr(
                "Nothing is watched. Choose a resource in the catalog and press Watch: you are told when it changes."
            ),
            tone="muted",
        )
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._about = PlainLabel(tone="muted", selectable=True)
        self._open_button = self._button(self.tr("Open what changed"), self._open)
        self._attach_button = self._button(self.tr("Attach"), self._attach)
        self._seen_button = self._button(self.tr("Mark as seen"), self._mark_seen)
        self._stop_button = self._button(self.tr("Stop watching"), self._stop)
        self.keep_box = QCheckBox(self.tr("Keep after a restart"))
        self.keep_box.clicked.connect(self._keep)
        buttons = FlowLayout()
        for button in (self._open_button, self._attach_button, self._seen_button, self._stop_button):
            buttons.addWidget(button)
        self._details = QWidget()
        details = QVBoxLayout(self._details)
        details.setContentsMargins(0, 0, 0, 0)
        details.setSpacing(theme.SPACING)
        details.addWidget(self._about)
        details.addLayout(buttons)
        details.addWidget(self.keep_box)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*[theme.SPACING] * 4)
        layout.setSpacing(theme.SPACING)
        layout.addWidget(self._nothing, 1)
        layout.addWidget(self.view, 1)
        layout.addWidget(self._details)
        self.setMinimumWidth(240)
        self._soon = QTimer(self, singleShot=True, interval=_DRAWN_EVERY)
        self._soon.timeout.connect(self._show)
        self._show_nothing(True)
        tasks.start(self._begin(), on_error=self)

    def watch(self, entry: ResourceEntry) -> None:
        """Watches a resource of the catalog; why that can't be is said."""
        tasks.start(self._watch(entry), on_error=self)

    def show_watch(self, watch: Watch) -> None:
        """Chooses a watch in the list: a notification was clicked."""
        self._show()
        index = self.model.index_of(watch)
        if index.isValid():
            self.view.setCurrentIndex(index)
            self.view.setFocus()

    async def _begin(self) -> None:
        await self._core.ready()
        watches = self._core.watches
        watches.changed.connect(self._draw_soon)
        await watches.start()
        self._show()

    async def _watch(self, entry: ResourceEntry) -> None:
        await self._core.ready()
        self.show_watch(await self._core.watches.add(entry.server, entry.uri, entry.title or entry.name))

    def _draw_soon(self) -> None:
        if not self._soon.isActive():
            self._soon.start()

    def _show(self) -> None:
        watches = self._core.watches.all
        chosen = self._current
        self.model.show_watches(watches)
        index = self.model.index_of(chosen) if chosen is not None else QModelIndex()
        if watches and not index.isValid():
            index = self.model.index(0)
        if index.isValid() and index != self.view.currentIndex():
            self.view.setCurrentIndex(index)
        self._show_nothing(not watches)
        self._show_current()
        unseen = sum(watch.unseen for watch in watches)
        if unseen != self._unseen:
            self._unseen = unseen
            self.unseen_changed.emit(unseen)

    def _show_nothing(self, nothing: bool) -> None:
        self._nothing.setVisible(nothing)
        self.view.setVisible(not nothing)
        self._details.setVisible(not nothing)

    @property
    def _current(self) -> Watch | None:
        return self.model.watch(self.view.currentIndex())

    def _show_current(self) -> None:
        watch = self._current
        if watch is None:
            return
        lines = [
            visible_line(watch.uri, 400),
            self.tr("Watched since {time}").format(time=_time(watch.since)),
        ]
        if watch.changed_at is not None:
            lines.append(self.tr("Changed last at {time}").format(time=_time(watch.changed_at)))
        if watch.missed:
            lines.append(self.tr("The server was away: changes may have been missed."))
        if watch.fault is not None:
            said = messages.words(watch.fault)
            lines.append(" ".join(each for each in (said.detail or said.title, said.remedy) if each))
        self._about.setText("\n".join(lines))
        self._seen_button.setEnabled(watch.unseen or watch.missed)
        self.keep_box.setChecked(watch.kept)

    def _open(self) -> None:
        if (watch := self._current) is not None:
            place = watch.server, watch.uri
            dialog = ChangedResource(
                self._core, watch.server, watch.uri, watch.title, self._texts.get(place), self.window()
            )
            dialog.read.connect(lambda text: self._read(watch, text))
            tasks.start(tasks.opened(dialog), on_error=self)

    def _read(self, watch: Watch, text: str) -> None:
        self._texts[watch.server, watch.uri] = text
        self._core.watches.mark_seen(watch)

    def _attach(self) -> None:
        if (watch := self._current) is not None:
            self.attach_requested.emit(ResourceEntry(watch.server, watch.uri, watch.title or watch.uri))

    def _mark_seen(self) -> None:
        if (watch := self._current) is not None:
            self._core.watches.mark_seen(watch)

    def _stop(self) -> None:
        if (watch := self._current) is not None:
            self._texts.pop((watch.server, watch.uri), None)
            tasks.start(self._core.watches.remove(watch), on_error=self)

    def _keep(self, kept: bool) -> None:
        if (watch := self._current) is not None:
            tasks.start(self._core.watches.keep(watch, kept), on_error=self)

    def _button(self, text: str, press: Any) -> QPushButton:
        button = QPushButton(text)
        button.setAutoDefault(False)
        button.clicked.connect(lambda: press())
        return button


class _Watches(QAbstractListModel):
    """Watches, oldest first."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._watches: Sequence[Watch] = ()

    def show_watches(self, watches: Sequence[Watch]) -> None:
        if list(watches) != list(self._watches):
            self.beginResetModel()
            self._watches = watches
            self.endResetModel()
        elif watches:
            self.dataChanged.emit(self.index(0), self.index(len(watches) - 1))

    def watch(self, index: _Index) -> Watch | None:
        return self._watches[index.row()] if index.isValid() else None

    def index_of(self, watch: Watch) -> QModelIndex:
        return self.index(self._watches.index(watch)) if watch in self._watches else QModelIndex()

    def rowCount(self, parent: _Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._watches)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        watch = self.watch(index)
        if watch is None:
            return None
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return _title(watch)
            case Qt.ItemDataRole.ToolTipRole:
                return plain_tool_tip(visible_line(watch.uri, 400))
            case Qt.ItemDataRole.AccessibleTextRole:
                return f"{_title(watch)}, {_state(watch)}"
            case list_rows.ROW:
                icon, tone = _icon(watch)
                detail = f"{visible_line(watch.server, 80)} · {_state(watch)}"
                return list_rows.Row(icon, _title(watch), detail, tone, bold=watch.unseen)
        return None


def _title(watch: Watch) -> str:
    return visible_line(watch.title or watch.uri, 200)


def _state(watch: Watch) -> str:
    if watch.state == "refused":
        return tr("can't be watched")
    if watch.state == "away":
        return tr("the server is away")
    if watch.state == "pending":
        return tr("asking the server…")
    if watch.missed:
        return tr("changes may have been missed")
    if watch.changed_at is None:
        return tr("not changed")
    return (tr("changed at {time}") if watch.unseen else tr("seen, changed at {time}")).format(
        time=_time(watch.changed_at)
    )


def _icon(watch: Watch) -> tuple[str, str]:
    if watch.state in ("refused", "away"):
        return "warning", "warning"
    return ("eye", "running") if watch.unseen else ("eye", "muted")


def _time(seconds: float) -> str:
    moment = QDateTime.fromSecsSinceEpoch(int(seconds))
    today = moment.date() == QDateTime.currentDateTime().date()
    if today:
        return QLocale().toString(moment.time(), "HH:mm:ss")
    return QLocale().toString(moment, QLocale.FormatType.ShortFormat)
