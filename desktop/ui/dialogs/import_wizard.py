"""Taking over servers of other programs: which file, then each server with what the person decides. Opened from the servers
panel and by dropping a file.

What was read when the file was chosen is what is saved, all of it or nothing. Nothing connects, runs or signs in.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QMimeData, Qt
from PySide6.QtWidgets import (
    QCommandLinkButton,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from desktop.errors import AssistantError
from desktop.host import config_import, servers_file
from desktop.host.bundle import Bundle, is_bundle, read_bundle
from desktop.host.config_import import Source
from desktop.host.server_references import keyring_name
from desktop.ui import error_box, icons, messages, tasks, theme
from desktop.ui.buttons import PrimaryButton
from desktop.ui.chat.widgets import ElidedLabel, button_text, clear
from desktop.ui.dialogs.bundle_dialog import BundleDialog
from desktop.ui.dialogs.import_row import Chosen, ImportRow
from desktop.ui.labels import PlainLabel
from desktop.visible_text import visible_line

if TYPE_CHECKING:
    from desktop.core import Core

#: Of files that may hold servers.
_ENDINGS = (".json", ".toml", ".yaml", ".yml")


class ImportWizard(QDialog):
    """Accepted when servers have been written.

    Attributes:
        saved: The first of them.
    """

    def __init__(self, core: Core, parent: QWidget, source: Source | None = None) -> None:
        """`source` is what to review; None: the person chooses a file."""
        super().__init__(parent)
        self._core = core
        self._given = source
        self._existing: dict[str, Any] = {}
        self._rows: list[ImportRow] = []
        self.saved = ""
        self.setWindowTitle(self.tr("Import servers"))
        self._places = QWidget()
        self._places_layout = QVBoxLayout(self._places)
        self._review = QWidget()
        self._review_layout = QVBoxLayout(self._review)
        for each in (self._places_layout, self._review_layout):
            each.setContentsMargins(0, 0, theme.SPACING, 0)
            each.setSpacing(theme.SPACING)
        self._pages = QStackedWidget()
        for page in (self._places, self._review):
            self._pages.addWidget(_scrolling(page))
        self._fault = PlainLabel(tone="error", selectable=True)
        self._fault.hide()
        buttons = QDialogButtonBox()
        self._back = buttons.addButton(self.tr("Back"), QDialogButtonBox.ButtonRole.ActionRole)
        self._back.setAutoDefault(False)
        self._back.clicked.connect(self._show_places)
        self._import = PrimaryButton("")
        buttons.addButton(self._import, QDialogButtonBox.ButtonRole.AcceptRole)
        buttons.addButton(self.tr("Cancel"), QDialogButtonBox.ButtonRole.RejectRole)
        buttons.accepted.connect(self._save)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*[2 * theme.SPACING] * 4)
        layout.setSpacing(theme.SPACING)
        layout.addWidget(self._pages, 1)
        layout.addWidget(self._fault)
        layout.addWidget(buttons)
        self.resize(600, 560)
        if source is None:
            self._show_places()
        else:
            self._back.hide()
            self._import.setEnabled(False)
            tasks.start(self._open(source), on_error=self)

    # Which file

    def _show_places(self) -> None:
        clear(self._places_layout)
        self._places_layout.addWidget(PlainLabel(self.tr("Servers that other programs have"), bold=True, scale=1.1))
        self._searching = PlainLabel(self.tr("Looking where programs keep their servers…"), tone="muted")
        self._places_layout.addWidget(self._searching)
        self._pages.setCurrentIndex(0)
        self._back.hide()
        self._import.hide()
        self._fault.hide()
        tasks.start(self._find(), on_error=self)

    async def _find(self) -> None:
        found = await asyncio.to_thread(config_import.find_sources)
        readable = [each for each in found if not each.fault]
        if readable:
            said = self.tr("Choose whose servers to look at; nothing is started by it.")
        elif found:
            said = self.tr("No servers that can be read were found. Choose a file if you have one.")
        else:
            said = self.tr("No known program keeps servers here. Choose a file if you have one.")
        self._searching.setText(said)
        buttons: list[QPushButton] = []
        for source in readable:
            title = self.tr("{program}: {n} servers").format(program=source.program, n=source.count)
            place = visible_line(str(source.file), 400)
            buttons.append(QCommandLinkButton(button_text(title), place))
            icons.set_icon(buttons[-1], "file")
            buttons[-1].clicked.connect(lambda _=False, source=source: tasks.start(self._open(source), on_error=self))
        buttons.append(QPushButton(self.tr("Choose a file…")))
        buttons[-1].clicked.connect(self._choose_file)
        for button in buttons:
            button.setAutoDefault(False)
            self._places_layout.addWidget(button)
        for source in found:
            if source.fault:
                said = self.tr("Of {program}, {file} can't be read: {reason}.")
                file = visible_line(str(source.file), 400)
                text = said.format(program=source.program, file=file, reason=source.fault)
                self._places_layout.addWidget(PlainLabel(text, tone="warning", selectable=True))
        self._places_layout.addStretch(1)
        if self._pages.currentIndex() == 0:
            buttons[0].setFocus()

    def _choose_file(self) -> None:
        dialog = QFileDialog(self, self.tr("Choose a file with servers"), str(Path.home()))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilters([self.tr("Servers (*.json *.toml *.yaml *.yml *.mcpb *.dxt)"), self.tr("All files (*)")])
        dialog.fileSelected.connect(lambda name: self.read_file(Path(name)))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def read_file(self, file: Path) -> None:
        """Shows the servers of a file, or why there are none."""
        tasks.start(self._read(file), on_error=self)

    async def _read(self, file: Path) -> None:
        try:
            if is_bundle(file):
                await self._add_bundle(await asyncio.to_thread(read_bundle, file))
                return
            source = await asyncio.to_thread(config_import.read_source, file, own_file=self._core.servers_file)
            await self._open(source)
        except AssistantError as error:
            self._tell(error)

    async def _add_bundle(self, bundle: Bundle) -> None:
        dialog = BundleDialog(self._core, self, bundle)
        if await tasks.opened(dialog):
            self.saved = dialog.saved
            self.accept()

    # What of it

    async def _open(self, source: Source) -> None:
        try:
            self._existing = await asyncio.to_thread(servers_file.read_entries, self._core.servers_file)
        except AssistantError as error:
            self._tell(error)
            return
        self._fault.hide()
        self._back.setVisible(self._given is None)
        self._show_review(source)

    def _show_review(self, source: Source) -> None:
        clear(self._review_layout)
        title = source.program or (visible_line(source.file.name, 80) if source.file else self.tr("Pasted servers"))
        self._review_layout.addWidget(PlainLabel(title, bold=True, scale=1.1))
        if source.file is not None:
            self._review_layout.addWidget(ElidedLabel(visible_line(str(source.file), 400), tone="muted"))
        said = self.tr(
            "Values are copied as they are and stay hidden here. Nothing is started, and other settings stay behind."
        )
        self._review_layout.addWidget(PlainLabel(said, tone="muted"))
        self._rows = []
        for group in source.groups:
            if group.label:
                label = self.tr("For the folder {folder}").format(folder=visible_line(group.label, 120))
                self._review_layout.addWidget(PlainLabel(label, bold=True))
            for candidate in group.candidates:
                row = ImportRow(candidate, self._existing)
                row.changed.connect(self._show_count)
                self._rows.append(row)
                self._review_layout.addWidget(row)
        self._review_layout.addStretch(1)
        self._import.show()
        self._show_count()
        self._pages.setCurrentIndex(1)
        next((row.taken for row in self._rows if row.taken.isEnabled()), self._import).setFocus()

    def _show_count(self) -> None:
        n = sum(row.taken.isChecked() for row in self._rows)
        self._import.setText(self.tr("Import {n} servers").format(n=n) if n != 1 else self.tr("Import 1 server"))
        faults = [(row.name.text().strip(), row.fault()) for row in self._rows if row.fault()]
        self._import.setEnabled(n > 0 and not faults)
        self._fault.hide()
        if faults:  # its row may be out of sight
            name, fault = faults[0]
            self._say(f"{visible_line(name, 40)}: {fault}" if name else fault)

    # Saving

    def _save(self) -> None:
        chosen = [each for row in self._rows if (each := row.chosen()) is not None]
        names = Counter(each.name for each in chosen)
        twice = [name for name, number in names.items() if number > 1]
        if twice:
            self._say(self.tr("Two servers would be called {name}.").format(name=twice[0]))
            return
        self.setEnabled(False)
        tasks.start(self._write(chosen), on_error=self)

    async def _write(self, chosen: list[Chosen]) -> None:
        try:
            await asyncio.to_thread(
                servers_file.add_servers,
                self._core.servers_file,
                {each.name: each.entry for each in chosen},
                {each.name: self._existing[each.name] for each in chosen if each.replaces},
            )
        except AssistantError as error:
            self.setEnabled(True)
            self._tell(error)
            return
        # Only now: what could not be written leaves no secret behind.
        kept = [
            await self._core.credentials.set(keyring_name(each.name, name), value)
            for each in chosen
            for name, value in each.secrets.items()
        ]
        if not all(kept):
            error = AssistantError("credential_store_unavailable", operation="storage")
            error_box.report(error, self.parentWidget())
        self.saved = chosen[0].name
        self.accept()

    def _tell(self, error: AssistantError) -> None:
        words = messages.words(error.diagnostic)
        server = error.diagnostic.server
        self._say(
            " ".join(filter(None, (f"{visible_line(server, 80)}:" if server else "", words.detail, words.remedy)))
        )

    def _say(self, text: str) -> None:
        self._fault.setText(text)
        self._fault.show()


def dropped_servers(data: QMimeData) -> Path | None:
    """The one file that is dragged, if it may hold servers."""
    paths = [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()]
    return paths[0] if len(paths) == 1 and (paths[0].suffix.lower() in _ENDINGS or is_bundle(paths[0])) else None


def _scrolling(page: QWidget) -> QScrollArea:
    area = QScrollArea()
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # it follows the field that has the focus
    area.setFrameShape(QScrollArea.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setWidgetResizable(True)
    area.setWidget(page)
    return area
