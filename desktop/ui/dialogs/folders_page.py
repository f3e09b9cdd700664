"""The settings' page of folders: what the person answered about trusting them, and what holds for the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from desktop.ui import tasks, theme
from desktop.ui.chat.widgets import Card
from desktop.ui.dialogs.settings_page import SettingsPage, form_layout
from desktop.ui.fixed_text import FixedText
from desktop.ui.labels import PlainLabel
from desktop.ui.messages import tr
from desktop.ui.settings_change import change
from desktop.visible_text import visible_line

if TYPE_CHECKING:
    from desktop.core import Core
    from desktop.host.trust import Decision


class FoldersPage(SettingsPage):
    def __init__(self, core: Core) -> None:
        super().__init__(core, tr("Folders"))
        self._layout.addWidget(
            PlainLabel(
                tr(
                    "A folder may bring servers of its own. They are used only in folders that you trust; an answer also holds "
                    "for the folders below. What you answered for good, or until Deskhand quits, stands here."
                ),
                tone="muted",
            )
        )
        self._decisions = QVBoxLayout()
        self._decisions.setSpacing(theme.SPACING)
        self._layout.addLayout(self._decisions)
        policy = QComboBox()
        for name, value in ((tr("Ask"), "ask"), (tr("Don't trust them"), "never"), (tr("Trust them"), "always")):
            policy.addItem(name, value)
        policy.setCurrentIndex(policy.findData(core.settings.values.folder_policy))
        policy.currentIndexChanged.connect(lambda: self._choose(policy.currentData()))
        form = form_layout()
        form.addRow(tr("Folders without an &answer"), policy)
        self._layout.addSpacing(theme.SPACING)
        self._layout.addLayout(form)
        self._layout.addStretch(1)
        self._draw()

    def _draw(self) -> None:
        while item := self._decisions.takeAt(0):
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        decisions = self._core.workspace.trust.decisions
        if not decisions:
            self._decisions.addWidget(PlainLabel(tr("No answers yet.")))
        for decision in decisions:
            self._decisions.addWidget(self._row(decision))

    def _row(self, decision: Decision) -> QWidget:
        row = Card("card", "border")
        folder = visible_line(str(decision.folder), 4000)
        revoke = QPushButton(tr("Revoke"))
        revoke.setAccessibleName(tr("Revoke the answer for {folder}").format(folder=folder))
        revoke.clicked.connect(lambda: tasks.start(self._revoke(decision), on_error=self))
        texts = QVBoxLayout()
        texts.setSpacing(theme.SPACING // 2)
        texts.addWidget(FixedText(folder, tr("Folder"), most_lines=8))  # whole: many begin alike
        if decision.trusted:
            answer = tr("Trusted until Deskhand quits") if decision.until_quit else tr("Trusted")
        else:
            answer = tr("Not trusted until Deskhand quits") if decision.until_quit else tr("Not trusted")
        texts.addWidget(PlainLabel(answer, tone="ok" if decision.trusted else "error"))
        layout = QHBoxLayout(row)
        layout.setContentsMargins(*[theme.SPACING] * 4)
        layout.addLayout(texts, 1)
        layout.addWidget(revoke, 0, Qt.AlignmentFlag.AlignTop)
        return row

    def _choose(self, policy: str) -> None:
        change(self._core.settings, self, folder_policy=policy)
        tasks.start(self._core.reload_servers(), on_error=self)

    async def _revoke(self, decision: Decision) -> None:
        try:
            await self._core.revoke_trust(decision.folder)
        finally:
            self._draw()
