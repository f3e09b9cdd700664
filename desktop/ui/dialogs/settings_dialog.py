"""The settings: models and keys, approvals, appearance, stored files, notifications. Opened from the main window.

What is changed holds at once. To add a setting: a field in ``desktop/settings.py`` and a control on one of these pages.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from PySide6.QtCore import QLocale, QSize, Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QScrollArea,
    QSpinBox,
    QStackedWidget,
    QSystemTrayIcon,
    QVBoxLayout,
    QWidget,
)

from desktop import links
from desktop.ui import tasks, theme
from desktop.ui.chat.widgets import Card, ElidedLabel
from desktop.ui.dialogs.confirmation import confirmed
from desktop.ui.dialogs.folders_page import FoldersPage
from desktop.ui.dialogs.models_page import ModelsPage
from desktop.ui.dialogs.settings_page import SettingsPage, form_layout
from desktop.ui.labels import PlainLabel
from desktop.ui.messages import tr
from desktop.ui.settings_change import change
from desktop.visible_text import visible_line

if TYPE_CHECKING:
    from desktop.assistant.approval import Rule
    from desktop.core import Core

_FONT_SIZES = (0, 9, 10, 11, 12, 13, 14, 16, 18, 20, 24)


class SettingsDialog(QDialog):
    def __init__(self, core: Core, parent: QWidget, *, page: int = 0) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Settings"))
        self._names = QListWidget()
        self._names.setAccessibleName(self.tr("Pages"))
        self._names.setFrameShape(QListWidget.Shape.NoFrame)
        self._names.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._pages = QStackedWidget()
        for name, widget in (
            (self.tr("Models"), ModelsPage(core)),
            (self.tr("Approvals"), ApprovalsPage(core)),
            (self.tr("Appearance"), AppearancePage(core)),
            (self.tr("Stored files"), StoredFilesPage(core)),
            (self.tr("Folders"), FoldersPage(core)),
            (self.tr("Notifications"), NotificationsPage(core)),
        ):
            item = QListWidgetItem(name)
            item.setSizeHint(QSize(0, self.fontMetrics().height() + 2 * theme.SPACING))
            self._names.addItem(item)
            area = QScrollArea()
            area.setAccessibleName(name)
            area.setFrameShape(QScrollArea.Shape.NoFrame)
            area.setWidgetResizable(True)
            area.setWidget(widget)
            self._pages.addWidget(area)
        longest = max(
            self.fontMetrics().horizontalAdvance(self._names.item(row).text()) for row in range(self._names.count())
        )
        self._names.setFixedWidth(longest + 4 * theme.SPACING)
        self._names.currentRowChanged.connect(self._pages.setCurrentIndex)
        self._names.setCurrentRow(page)
        buttons = QDialogButtonBox()
        close = buttons.addButton(self.tr("Close"), QDialogButtonBox.ButtonRole.RejectRole)
        close.setAutoDefault(False)  # Enter in a field is no reason to close
        buttons.rejected.connect(self.reject)
        content = QHBoxLayout()
        content.setSpacing(2 * theme.SPACING)
        content.addWidget(self._names)
        content.addWidget(self._pages, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*[2 * theme.SPACING] * 4)
        layout.setSpacing(theme.SPACING)
        layout.addLayout(content, 1)
        layout.addWidget(buttons)
        self.resize(640, 440)


class ApprovalsPage(SettingsPage):
    """Every standing rule, and how many calls a turn may have."""

    def __init__(self, core: Core) -> None:
        super().__init__(core, tr("Approvals"))
        self._layout.addWidget(
            PlainLabel(
                tr(
                    "You are asked before each tool call. What you answered for good stands here, and can be taken back."
                ),
                tone="muted",
            )
        )
        self._rules = QVBoxLayout()
        self._rules.setSpacing(theme.SPACING)
        self._layout.addLayout(self._rules)
        limit = QSpinBox()
        limit.setRange(1, 1000)
        limit.setValue(core.settings.values.tool_calls_per_turn)
        limit.valueChanged.connect(lambda value: change(core.settings, self, tool_calls_per_turn=value))
        form = form_layout()
        form.addRow(tr("Tool calls in a &turn, at most"), limit)
        self._layout.addSpacing(theme.SPACING)
        self._layout.addLayout(form)
        self._layout.addStretch(1)
        core.approvals.changed.connect(self._draw)
        self.destroyed.connect(lambda _=None, draw=self._draw: core.approvals.changed.disconnect(draw))
        self._draw()

    def _draw(self) -> None:
        while item := self._rules.takeAt(0):
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        if self._core.approvals.fault:
            self._rules.addWidget(
                PlainLabel(tr("The file of approvals can't be read: you are asked about every call."), tone="warning")
            )
        elif not self._core.approvals.rules:
            self._rules.addWidget(PlainLabel(tr("No standing rules yet.")))
        for rule in self._core.approvals.rules:
            self._rules.addWidget(self._row(rule))

    def _row(self, rule: Rule) -> QWidget:
        row = Card("card", "border")
        what = visible_line(f"{rule.server} · {rule.tool}" if rule.tool else rule.server, 200)
        revoke = QPushButton(tr("Revoke"))
        revoke.setAccessibleName(tr("Revoke the rule for {tool}").format(tool=what))
        revoke.clicked.connect(lambda: self._core.approvals.revoke(rule))
        texts = QVBoxLayout()
        texts.setSpacing(theme.SPACING // 2)
        texts.addWidget(ElidedLabel(what, bold=True))
        if rule.allowed:
            every = tr("Always allowed: all its tools as they were") if rule.tool is None else tr("Always allowed")
            texts.addWidget(PlainLabel(every, tone="ok"))
            others = QCheckBox(tr("Also after content of other servers"))
            others.setToolTip(tr("Otherwise you are asked when another server's content may have led to the call"))
            others.setChecked(rule.also_after_others)
            others.toggled.connect(lambda on: self._core.approvals.mark(rule, also_after_others=on))
            texts.addWidget(others)
        else:
            texts.addWidget(PlainLabel(tr("Never allowed"), tone="error"))
        layout = QHBoxLayout(row)
        layout.setContentsMargins(*[theme.SPACING] * 4)
        layout.addLayout(texts, 1)
        layout.addWidget(revoke, 0, Qt.AlignmentFlag.AlignTop)
        return row


class AppearancePage(SettingsPage):
    def __init__(self, core: Core) -> None:
        super().__init__(core, tr("Appearance"))
        values = core.settings.values
        scheme = QComboBox()
        for name, value in ((tr("As the system"), "system"), (tr("Light"), "light"), (tr("Dark"), "dark")):
            scheme.addItem(name, value)
        scheme.setCurrentIndex(scheme.findData(values.color_scheme))
        scheme.currentIndexChanged.connect(lambda: change(core.settings, self, color_scheme=scheme.currentData()))
        size = QComboBox()
        for points in sorted({*_FONT_SIZES, values.font_size}):
            size.addItem(tr("{n} points").format(n=points) if points else tr("As the system"), points)
        size.setCurrentIndex(size.findData(values.font_size))
        size.currentIndexChanged.connect(lambda: change(core.settings, self, font_size=size.currentData()))
        form = form_layout()
        form.addRow(tr("&Colours"), scheme)
        form.addRow(tr("&Font size"), size)
        self._layout.addLayout(form)
        self._layout.addStretch(1)


class NotificationsPage(SettingsPage):
    def __init__(self, core: Core) -> None:
        super().__init__(core, tr("Notifications"))
        values = core.settings.values
        self._layout.addWidget(
            PlainLabel(tr("You are told when a watched resource changes while you look elsewhere."), tone="muted")
        )
        pause = QCheckBox(tr("&Pause notifications"))
        pause.setChecked(values.notifications_paused)
        pause.toggled.connect(lambda on: change(core.settings, self, notifications_paused=on))
        tray = QCheckBox(tr("&Keep running in the tray when the window is closed"))
        tray.setChecked(values.close_to_tray)
        tray.toggled.connect(lambda on: change(core.settings, self, close_to_tray=on))
        self._layout.addWidget(pause)
        self._layout.addWidget(tray)
        if not QSystemTrayIcon.isSystemTrayAvailable():
            self._layout.addWidget(PlainLabel(tr("There is no tray here: closing the window quits."), tone="muted"))
        self._layout.addStretch(1)


class StoredFilesPage(SettingsPage):
    """Results that were too large for a conversation."""

    def __init__(self, core: Core) -> None:
        super().__init__(core, tr("Stored files"))
        self._layout.addWidget(
            PlainLabel(
                tr(
                    "Results that are too large for a conversation are kept in private files. They go with their "
                    "conversation, or when you clear them here."
                ),
                tone="muted",
            )
        )
        self._size = PlainLabel(tr("Counting…"))
        self._layout.addWidget(self._size)
        self._layout.addWidget(
            ElidedLabel(visible_line(str(core.paths.results), 400), tone="muted", fixed_width_font=True)
        )
        folder = QPushButton(tr("Open folder"))
        folder.clicked.connect(lambda: tasks.start(self._open_folder(), on_error=self))
        self._clear = QPushButton(tr("Clear…"))
        self._clear.setEnabled(False)
        self._clear.clicked.connect(lambda: tasks.start(self._clear_all(), on_error=self))
        buttons = QHBoxLayout()
        buttons.addWidget(folder)
        buttons.addWidget(self._clear)
        buttons.addStretch(1)
        self._layout.addLayout(buttons)
        self._layout.addStretch(1)
        tasks.start(self._count(), on_error=self)

    async def _count(self) -> None:
        sizes = await asyncio.to_thread(self._core.results.sizes)
        total = QLocale().formattedDataSize(sum(sizes.values()))
        if not sizes:
            text = tr("Nothing is stored.")
        elif len(sizes) == 1:
            text = tr("{size} of 1 conversation").format(size=total)
        else:
            text = tr("{size} of {n} conversations").format(size=total, n=len(sizes))
        self._size.setText(text)
        self._clear.setEnabled(bool(sizes))

    async def _open_folder(self) -> None:
        await asyncio.to_thread(self._core.paths.results.mkdir, parents=True, exist_ok=True, mode=0o700)
        await links.open_path(self._core.paths.results)

    async def _clear_all(self) -> None:
        text = tr("The assistant can't read these results any more. The conversations stay.")
        if await confirmed(self, tr("Clear all stored files?"), text, tr("Clear")):
            for conversation in await asyncio.to_thread(self._core.results.sizes):
                await asyncio.to_thread(self._core.results.delete, conversation)
            await self._count()
