"""Icons that servers give their tools, resources and prompts. Used by the catalog's rows and details.

They come as data with the lists (``host/admission.py``), never from an address. Only PNG, JPEG and WebP are decoded, by what
they are and not by what the server calls them, and only small ones: it is done while a row is drawn.
"""

from __future__ import annotations

import base64
import binascii
from functools import lru_cache

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QSize
from PySide6.QtGui import QIcon, QImageReader, QPixmap

_FORMATS = (b"png", b"jpeg", b"webp")
_WIDEST = 256
"""Pixels of an image's longer side."""


@lru_cache(maxsize=1000)
def icon_of(data: str) -> QIcon | None:
    """The icon that Base64 data is, or None for what is none within the limits."""
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
    buffer = QBuffer()
    buffer.setData(QByteArray(content))
    buffer.open(QIODevice.OpenModeFlag.ReadOnly)
    format_ = bytes(QImageReader.imageFormat(buffer).data())
    if format_ not in _FORMATS:
        return None
    reader = QImageReader(buffer, QByteArray(format_))
    reader.setAutoDetectImageFormat(False)
    size = reader.size()
    if not size.isValid() or size.isEmpty() or size.expandedTo(QSize(_WIDEST, _WIDEST)) != QSize(_WIDEST, _WIDEST):
        return None
    image = reader.read()
    return None if image.isNull() else QIcon(QPixmap.fromImage(image))
