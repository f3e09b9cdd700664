"""An image that a model or a tool gave, decoded within limits and shown as wide as its place. Used by messages and cards."""

from __future__ import annotations

import asyncio
import base64
import binascii
import math

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QRect, QSize, Qt
from PySide6.QtGui import QImage, QImageReader, QPainter, QPaintEvent, QPixmap, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from desktop.assistant.conversation import Image
from desktop.ui import tasks, theme
from desktop.ui.chat import files
from desktop.ui.chat.widgets import ElidedLabel, flat_button
from desktop.visible_text import visible_line

#: Only these, whatever else Qt could read, and whatever the server says it is.
_FORMATS = {b"png": ".png", b"jpeg": ".jpg", b"gif": ".gif", b"webp": ".webp"}
_MOST_BYTES = 16 * 2**20
_MOST_PIXELS = 40_000_000
#: MiB that Qt may take for decoding one image.
_ALLOCATION_LIMIT = 192
#: Pixels of the picture that is kept: what the largest place needs on a screen of twice the density.
_KEPT = QSize(1600, 1200)
_TALLEST = 400


class ImageView(QWidget):
    """The picture, what it is, and Save."""

    def __init__(self, image: Image, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._image = image
        self._picture = Picture(self)
        self._about = ElidedLabel(self.tr("Image"), tone="muted")
        self._save = flat_button("save", self.tr("Save image as…"))
        self._save.setEnabled(False)
        self._save.clicked.connect(lambda: tasks.start(self._save_as(), on_error=self))
        row = QHBoxLayout()
        row.addWidget(self._about)
        row.addWidget(self._save)
        row.addStretch()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.SPACING // 2)
        layout.addWidget(self._picture)
        layout.addLayout(row)
        self._suffix = ""
        loading = tasks.start(self._load(), on_error=self)
        self.destroyed.connect(loading.cancel)

    async def _load(self) -> None:
        decoded = await asyncio.to_thread(decode, self._image.data)
        if decoded is None:
            kind = visible_line(self._image.mime_type, 40)
            self._about.set_text(self.tr("An image that can't be shown ({kind})").format(kind=kind))
            return
        picture, size, self._suffix = decoded
        self._picture.show_picture(picture, size)
        self._about.set_text(f"{self._suffix[1:].upper()} · {size.width()} × {size.height()}")
        self._picture.setAccessibleName(self.tr("Image, {size}").format(size=self._about.text()))
        self._save.setEnabled(True)

    async def _save_as(self) -> None:
        content = await asyncio.to_thread(base64.b64decode, self._image.data)
        await files.save_as(content, files.safe_name("image", self._suffix), self)


class Picture(QWidget):
    """Draws a picture in its own size, or as large as fits."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._pixmap = QPixmap()
        self._size = QSize()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(0)

    def show_picture(self, picture: QImage, size: QSize) -> None:
        """`size` is that of the original, of which `picture` may be a smaller copy."""
        self._pixmap = QPixmap.fromImage(picture)
        self._size = size
        self._fit()
        self.update()

    def _shown_size(self) -> QSize:
        return self._size.scaled(
            self._size.boundedTo(QSize(max(1, self.width()), _TALLEST)), Qt.AspectRatioMode.KeepAspectRatio
        )

    def _fit(self) -> None:
        if not self._pixmap.isNull():
            self.setFixedHeight(max(1, self._shown_size().height()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._pixmap.isNull():
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        target = QRect(self.rect().topLeft(), self._shown_size())
        if self.layoutDirection() == Qt.LayoutDirection.RightToLeft:
            target.moveRight(self.rect().right())
        painter.drawPixmap(target, self._pixmap)


def decode(data: str) -> tuple[QImage, QSize, str] | None:
    """The picture of Base64 data (scaled down where it is large), its true size, and the suffix of its format.

    None for what is no image of the formats that are shown, or beyond the limits. Takes time: runs in a thread.
    """
    if len(data) > _MOST_BYTES * 4 // 3 + 4:
        return None
    try:
        content = base64.b64decode(data)
    except (binascii.Error, ValueError):
        return None
    QImageReader.setAllocationLimit(_ALLOCATION_LIMIT)
    buffer = QBuffer()
    buffer.setData(QByteArray(content))
    buffer.open(QIODevice.OpenModeFlag.ReadOnly)
    format_ = bytes(QImageReader.imageFormat(buffer).data())
    if format_ not in _FORMATS:
        return None
    reader = QImageReader(buffer, QByteArray(format_))
    reader.setAutoDetectImageFormat(False)
    size = reader.size()
    if not size.isValid() or size.isEmpty() or size.width() * size.height() > _MOST_PIXELS:
        return None
    shrink = min(1.0, _KEPT.width() / size.width(), _KEPT.height() / size.height())
    if shrink < 1:
        reader.setScaledSize(
            QSize(max(1, math.floor(size.width() * shrink)), max(1, math.floor(size.height() * shrink)))
        )
    picture = reader.read()
    return None if picture.isNull() else (picture, size, _FORMATS[format_])
