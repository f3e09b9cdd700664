"""The question whether a folder's own servers are used. Opened by ``folders.py``; until it is answered their file is not read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QGridLayout, QPushButton, QVBoxLayout, QWidget

from desktop.ui import theme
from desktop.ui.fixed_text import FixedText
from desktop.ui.labels import PlainLabel
from desktop.visible_text import visible


@dataclass(frozen=True)
class Answer:
    trusted: bool
    until_quit: bool


class TrustDialog(QDialog):
    """Attributes:
    answer: What the person answered; None: nothing, so that it is asked again another time.
    """

    def __init__(self, folder: Path, file: Path, parent: QWidget) -> None:
        super().__init__(parent)
        self.answer: Answer | None = None
        self.setWindowTitle(self.tr("Trust a folder"))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*[2 * theme.SPACING] * 4)
        layout.setSpacing(theme.SPACING)
        layout.addWidget(PlainLabel(self.tr("Do you trust the servers of this folder?"), bold=True, scale=1.1))
        layout.addWidget(FixedText(visible(str(folder)).replace("\n", "\\n"), self.tr("Folder"), most_lines=6))
        name = file.relative_to(folder).as_posix()
        layout.addWidget(
            PlainLabel(
                self.tr(
                    "It has a file of servers, {name}. If you trust the folder, Deskhand reads that file. Its servers then "
                    "take the place of yours of the same name. They get what you and the assistant send them, and the "
                    "environment variables that the file names. They may ask to start programs on your computer; "
                    "you see each command before it runs for the first time."
                ).format(name=name)
            )
        )
        layout.addWidget(
            PlainLabel(
                self.tr("Nothing of the file has been read. Your answer holds for folders in this one too."),
                tone="muted",
            )
        )
        layout.addSpacing(theme.SPACING)
        answers = QGridLayout()
        answers.setSpacing(theme.SPACING)
        for row, (text, answer) in enumerate(
            (
                (self.tr("&Trust"), Answer(trusted=True, until_quit=False)),
                (self.tr("Trust until Deskhand &quits"), Answer(trusted=True, until_quit=True)),
                (self.tr("&Don't trust"), Answer(trusted=False, until_quit=False)),
                (self.tr("Don't trust &until Deskhand quits"), Answer(trusted=False, until_quit=True)),
            )
        ):
            answers.addWidget(self._button(text, answer), row // 2, row % 2)
        layout.addLayout(answers)
        later = QPushButton(self.tr("Decide later"))
        later.clicked.connect(self.reject)
        layout.addWidget(later, 0, Qt.AlignmentFlag.AlignRight)
        later.setDefault(True)
        later.setFocus()
        self.setMinimumWidth(520)

    def _button(self, text: str, answer: Answer) -> QPushButton:
        button = QPushButton(text)
        button.setAutoDefault(False)  # Enter is no answer unless the button has the keyboard
        button.clicked.connect(lambda: self._answer(answer))
        return button

    def _answer(self, answer: Answer) -> None:
        self.answer = answer
        self.accept()
