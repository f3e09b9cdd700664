"""What the bytes of a file are: one of the images that models take, or text. Used by ``attachments.py``."""

from __future__ import annotations

import codecs

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def image_type(data: bytes) -> str | None:
    """The MIME type by how the content begins, whatever its name says; None for what is no PNG, JPEG, GIF or WebP."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return None


def text_in(data: bytes) -> str | None:
    """The text of UTF-8, or of UTF-16 that says so by its byte order mark; None for anything else."""
    try:
        text = data.decode("utf-16" if data.startswith(_UTF_16) else "utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text
