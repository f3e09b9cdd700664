"""Where the person writes: what is attached, a field that grows, and one button that sends or stops. Used by ``chat_pane.py``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QBuffer, QEvent, QIODevice, QMimeData, QPoint, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QFocusEvent, QImage
from PySide6.QtWidgets import QHBoxLayout, QMenu, QVBoxLayout, QWidget

from desktop.assistant.attachments import LARGEST_IMAGE, ImageSource, look
from desktop.errors import AssistantError, Diagnostic
from desktop.ui import icons, messages, tasks, theme
from desktop.ui.chat import files
from desktop.ui.chat.attachment_chips import Chips, Words
from desktop.ui.chat.completion_popup import CompletionPopup
from desktop.ui.chat.draft import Attached, Content, Draft
from desktop.ui.chat.message_field import LONGEST, MessageField
from desktop.ui.chat.widgets import Card, RoundButton, flat_button
from desktop.ui.labels import PlainLabel
from desktop.visible_text import visible_line

#: Attachments of a message.
MOST_ATTACHED = 20
#: Pixels of the buttons, beside icons of the usual size.
_BUTTON = 34


class Composer(Card):
    """Attributes:
    completions: What is offered while one writes; its sources are added by whoever knows them.

    Signals:
    sent: The person wants to send the `draft`. The composer keeps it until `clear`.
    resource_requested: They want to attach a resource.
    stopped: The person wants the running answer to stop.
    """

    sent = Signal()
    resource_requested = Signal()
    stopped = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("card", "border", parent)
        self._busy = False
        self._is_read = True
        self._chips = Chips(self)  # made in the order in which Tab goes through them
        self._chips.removed.connect(self._removed)
        self._attach = flat_button("attach", self.tr("Attach"), parent=self)
        self._attach.setMinimumHeight(icons.scaled(_BUTTON))
        self._attach.clicked.connect(self._open_menu)
        self._edit = MessageField(self.takes, self)
        self._edit.enter_pressed.connect(self._send)
        self._edit.escape_pressed.connect(self._stop)
        self._edit.textChanged.connect(self._show_state)
        self._edit.paste_cut.connect(self._say_cut)
        self._edit.given.connect(self.take)
        self._edit.focus_changed.connect(self._show_focus)
        self.completions = CompletionPopup(self._edit)
        self._button = RoundButton(_BUTTON)
        self._button.clicked.connect(lambda: self._stop() if self._busy else self._send())
        self._hint = PlainLabel(tone="muted", scale=0.9)
        self._hint.hide()
        row = QHBoxLayout()
        row.setSpacing(theme.SPACING)
        row.addWidget(self._attach, 0, Qt.AlignmentFlag.AlignBottom)
        row.addWidget(self._edit, 1, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self._button, 0, Qt.AlignmentFlag.AlignBottom)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6, 6, 6, 6)
        layout.setSpacing(theme.SPACING // 2)
        layout.addWidget(self._chips)
        layout.addLayout(row)
        layout.addWidget(self._hint)
        self.setAcceptDrops(True)
        self._show_state()

    @property
    def text(self) -> str:
        return self._edit.toPlainText()

    @property
    def draft(self) -> Draft:
        return Draft(self.text, self._chips.attached)

    def set_draft(self, draft: Draft) -> None:
        """Shows a draft, with what could not be read of it."""
        self.set_text(draft.text)
        self._show_attached(draft.attached)

    def attach(self, *contents: Content) -> None:
        """Adds to what is attached, once each."""
        attached = self._chips.attached
        attached += [Attached(each) for each in contents if each not in [known.content for known in attached]]
        self._show_attached(attached[:MOST_ATTACHED])
        if len(attached) > MOST_ATTACHED:
            said = self.tr("A message has at most {count} attachments; the others were left out.")
            self._say(said.format(count=MOST_ATTACHED))

    def takes(self, given: QMimeData) -> bool:
        """Whether something that is dropped or pasted can be attached."""
        return bool(_files(given)) or (given.hasImage() and not given.hasText())

    def take(self, given: QMimeData) -> None:
        """Attaches the files or the image that were dropped or pasted."""
        if files := _files(given):
            tasks.start(self._attach_files(files), on_error=self)
        else:
            image = QImage(given.imageData())
            tasks.start(self._attach_image(image), on_error=self)

    def set_text(self, text: str) -> None:
        self._edit.setPlainText(text)
        self._edit.moveCursor(self._edit.textCursor().MoveOperation.End)

    def clear(self) -> None:
        self._edit.clear()
        self._show_attached([])

    def set_busy(self, busy: bool) -> None:
        """While an answer comes, the button stops it; what is written meanwhile stays."""
        self._busy = busy
        self._say_of_attached()
        self._show_state()

    def set_reads_attached(self, is_read: bool) -> None:
        """Whether what is attached is of use to who answers."""
        self._is_read = is_read
        self._say_of_attached()

    def set_placeholder(self, text: str) -> None:
        self._edit.setPlaceholderText(text)
        self._edit.viewport().update()  # Qt draws it anew only where the cursor blinks
        self._edit.setAccessibleDescription(text)

    def has_focus(self) -> bool:
        return self._edit.hasFocus()

    def _send(self) -> None:
        if self._busy:
            self._say(self.tr("An answer is coming. Stop it (Esc) or wait, then send."))
        elif not self.draft.is_empty:
            self._say("")
            self.sent.emit()

    def _stop(self) -> None:
        if self._busy:
            self.stopped.emit()

    def _show_attached(self, attached: Sequence[Attached]) -> None:
        self._chips.show_attached(attached)
        self._say_of_attached()
        self._show_state()

    def _say_of_attached(self) -> None:
        """What could not be read, or that nothing of it is."""
        attached = self._chips.attached
        unread = self.tr("Guide does not read what is attached. Choose a language model above.")
        self._say(_faults(attached) or ("" if self._is_read or not attached else unread))

    def _removed(self) -> None:
        self._say_of_attached()
        self._show_state()
        if not self._chips.attached:
            self._edit.setFocus()

    def _open_menu(self) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(self.tr("&Files and images…")).triggered.connect(
            lambda: tasks.start(self._choose_files(), on_error=self)
        )
        menu.addAction(self.tr("A &resource of a server…")).triggered.connect(self.resource_requested)
        menu.popup(self._attach.mapToGlobal(QPoint(0, -menu.sizeHint().height())))

    def begin_completion(self, prefix: str) -> None:
        """Writes a prefix as a word of its own, so that what its source offers is shown."""
        cursor = self._edit.textCursor()
        before = self.text[: cursor.position()]
        cursor.insertText(prefix if not before or before[-1].isspace() else f" {prefix}")
        self._edit.setTextCursor(cursor)
        self._edit.setFocus()

    async def _choose_files(self) -> None:
        await self._attach_files(await files.choose(self))
        self._edit.setFocus()

    async def _attach_files(self, paths: Sequence[Path]) -> None:
        """Attaches what can be; says of the first of the others why not."""
        faults: list[str] = []
        for path in paths[:MOST_ATTACHED]:
            try:
                self.attach(await asyncio.to_thread(look, path))
            except AssistantError as error:
                faults.append(_fault(visible_line(path.name, 80), error.diagnostic))
        if faults:
            more = self.tr(" ({count} more could not be attached.)").format(count=len(faults) - 1)
            self._say(faults[0] + (more if faults[1:] else ""))

    async def _attach_image(self, image: QImage) -> None:
        content = await asyncio.to_thread(_encoded, image)
        size = f"{image.width()} × {image.height()}"
        if not content or len(content) > LARGEST_IMAGE:
            limit = LARGEST_IMAGE // 2**20
            self._say(_fault(size, Diagnostic("attachment_too_large", "read", values={"limit": limit})))
        else:
            self.attach(ImageSource(self.tr("Image, {size}").format(size=size), content))

    def _say_cut(self) -> None:
        said = self.tr("What was pasted was cut: a message has at most {count} characters.")
        self._say(said.format(count=f"{LONGEST:,}"))

    def _say(self, text: str) -> None:
        self._hint.setText(text)
        self._hint.setVisible(bool(text))

    def _show_state(self) -> None:
        name = self.tr("Stop (Esc)") if self._busy else self.tr("Send (Enter)")
        self._button.show_action("stop" if self._busy else "send", name)
        self._button.setEnabled(self._busy or not self.draft.is_empty)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._attach.setMinimumHeight(icons.scaled(_BUTTON))

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._edit.setFocus(event.reason())

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if self.takes(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        event.acceptProposedAction()
        self.take(event.mimeData())
        self._edit.setFocus()

    def _show_focus(self, focused: bool) -> None:
        self.set_colors("card", "running" if focused else "border")


def _files(given: QMimeData) -> list[Path]:
    """Files on this computer that are dropped or pasted; none where there are folders alone, which are the window's."""
    urls = given.urls()
    paths = [Path(url.toLocalFile()) for url in urls] if all(url.isLocalFile() for url in urls) else []
    return [] if all(path.is_dir() for path in paths) else paths


def _encoded(image: QImage) -> bytes:
    """The image as PNG; as JPEG where that would be too large."""
    for form in ("PNG", "JPEG"):
        buffer = QBuffer()
        buffer.open(QIODevice.OpenModeFlag.WriteOnly)
        image.save(buffer, form, 90 if form == "JPEG" else -1)  # type: ignore[call-overload]  # the stubs want bytes, Qt takes both
        if 0 < buffer.size() <= LARGEST_IMAGE:
            break
    return bytes(buffer.data().data())


def _faults(attached: Sequence[Attached]) -> str:
    """Of the first of what could not be read, why."""
    return next((_fault(Words.of(each.content).name, each.fault) for each in attached if each.fault is not None), "")


def _fault(name: str, diagnostic: Diagnostic) -> str:
    said = messages.words(diagnostic)
    return f"{name}: {' '.join(filter(None, (said.detail or said.title, said.remedy)))}"
