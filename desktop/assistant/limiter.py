"""What of an MCP result enters a conversation: its text and images, and how much of them. The one limiter.

Pure functions, used by the store of results (``results.py``) and, in a process of its own, by the reader of large messages
(``large_message.py``); so it imports little. The result is JSON text throughout: digits and the order of keys stay.
"""

from __future__ import annotations

import binascii
import json
from collections.abc import Sequence
from typing import Any, cast

from desktop import json_text
from desktop.json_text import Reader
from desktop.uris import is_uri
from desktop.visible_text import one_line, plain

#: Of text in one result.
MAX_LINES = 2000
MAX_BYTES = 50 * 1024
#: Of a page of a stored result: what is read of it is itself a result, with lines of ours before and after the page.
PAGE_LINES = 1900
PAGE_BYTES = 46 * 1024
#: Characters of a text's beginning that tell how much of it is shown: as much as fits, and as much again to see whether
#: the line in which that ends is one that fits nowhere.
DECISIVE = 2 * MAX_BYTES + 1
#: Base64 characters of all images in one result.
MAX_IMAGE_CHARACTERS = 8 * 2**20
#: What every provider takes.
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


class Shown:
    """An MCP result as it would be shown if there were no limit on the length of its text.

    Attributes:
        text: Its parts in order, joined by blank lines, without hidden characters.
        blocks: Ranges of the text, in order: start, end, MIME type (may be empty), whether it is the structured content.
        images: MIME type, base64 and URI (of a resource's image, else empty) of each image within the limit.
        complete: False where a part could only be named: audio, other binary data, an image too much.
        has_links: Whether it names resources, which takes the server's name.
        kind: The member that holds its parts: ``content`` of a tool's result, ``contents`` of a read, None: neither.
        others: The text of its other members, such as ``isError``.
    """

    def __init__(self) -> None:
        self.text = ""
        self.blocks: list[tuple[int, int, str, bool]] = []
        self.images: list[tuple[str, str, str]] = []
        self.complete = True
        self.has_links = False
        self.kind: str | None = None
        self.others: dict[str, str] = {}


def shown(reader: Reader, server: str = "") -> Shown:
    """Reads the MCP result that begins at the reader's position, and leaves the reader at its end.

    `server` is named in the calls that read linked resources; without it there are no such calls. Raises ValueError for what
    is no JSON object.
    """
    result = Shown()
    parts: list[object] | None = None
    structured_text, structured = "null", None
    for key in reader.members():
        begin = reader.position
        value = reader.value()
        if key in ("content", "contents") and isinstance(value, list):
            result.kind, parts = key, cast("list[object]", value)
            continue
        text = reader.text[begin : reader.position]
        if key == "structuredContent":
            structured_text, structured = text, value
        else:
            result.others[key] = text
    if parts is not None:
        _Writer(result, server).write(parts, structured_text, structured)
    return result


def head(text: str, lines: int = MAX_LINES, size: int = MAX_BYTES) -> int:
    """How many characters of a text are shown: at most so many lines and bytes (UTF-8).

    Whole lines with their line feed; of a line that alone has more bytes than that, as much as fits.
    """
    start = _prefix(text, size)
    end = 0
    for _ in range(lines):
        line_feed = start.find("\n", end)
        if line_feed < 0:
            break
        end = line_feed + 1
    else:
        return end
    if len(start) == len(text):
        return len(text)
    line = _prefix(text[end : end + size], size)
    is_too_long = "\n" not in line and end + len(line) < len(text)
    return len(start) if is_too_long else end


def count_lines(text: str) -> int:
    """A line feed at the very end begins no further line."""
    return text.count("\n") + (text != "" and not text.endswith("\n"))


def read_call(server: str, uri: str) -> str:
    """The exact call with which the model reads a resource."""
    return f"mcp_tools {json.dumps({'read': {'server': server, 'uri': uri}}, ensure_ascii=False)}"


class _Writer:
    """Writes the parts of a result into a `Shown`."""

    def __init__(self, shown: Shown, server: str) -> None:
        self._shown = shown
        self._server = server
        self._pieces: list[str] = []
        self._length = 0
        self._image_characters = 0

    def write(self, parts: Sequence[object], structured_text: str, structured: object) -> None:
        contents = [cast("dict[str, Any]", part) if isinstance(part, dict) else {} for part in parts]
        texts = [text for each in contents if each.get("type") == "text" and isinstance(text := each.get("text"), str)]
        same = [text for text in texts if structured is not None and _is(text, structured)]
        for content in contents:
            if self._shown.kind == "contents":
                self._resource(content, label=True)
            else:
                self._part(content, same)
        if structured is not None and not same and not _is_wrapped(texts, structured):
            self._add(json_text.respaced(structured_text), "application/json", structured=True)
        if not self._pieces and not self._shown.images:
            self._add("[The result is empty.]", block=False)
        self._shown.text = "\n\n".join(self._pieces)

    def _part(self, part: dict[str, Any], same: Sequence[str]) -> None:
        kind, mime_type, data = part.get("type"), part.get("mimeType"), part.get("data")
        text, resource, uri = part.get("text"), part.get("resource"), part.get("uri")
        if kind == "text" and isinstance(text, str):
            structured = text in same
            self._add(text, "application/json" if structured else "", structured=structured)
        elif kind == "image" and isinstance(data, str) and isinstance(mime_type, str):
            self._image(data, mime_type)
        elif kind == "resource" and isinstance(resource, dict):
            self._resource(cast("dict[str, Any]", resource))
        elif kind == "resource_link" and isinstance(uri, str):
            self._link(str(part.get("title") or part.get("name") or ""), uri)
        else:
            self._placeholder(str(kind or "part of no known kind"), mime_type, data)

    def _resource(self, resource: dict[str, Any], *, label: bool = False) -> None:
        mime_type, uri = str(resource.get("mimeType") or ""), str(resource.get("uri") or "")
        text, blob = resource.get("text"), resource.get("blob")
        if label:
            self._add(f"{one_line(uri, 4096)} ({one_line(mime_type) or 'unspecified'}):", block=False)
        if isinstance(text, str):
            self._add(text, one_line(mime_type), joint="\n" if label else "\n\n")
        elif isinstance(blob, str) and mime_type in IMAGE_TYPES:
            self._image(blob, mime_type, uri)
        else:
            self._placeholder("resource", mime_type, blob)

    def _link(self, name: str, uri: str) -> None:
        self._shown.has_links = True
        line = f"{one_line(name)}: {one_line(uri, 4096)}"
        if self._server and is_uri(uri):
            line += f"\nRead it: {read_call(self._server, uri)}"
        self._add(line, block=False)

    def _image(self, data: str, mime_type: str, uri: str = "") -> None:
        if mime_type not in IMAGE_TYPES or not _is_base64(data):
            self._placeholder("image", mime_type, data)
        elif self._image_characters + len(data) > MAX_IMAGE_CHARACTERS:
            self._placeholder("image", mime_type, data, " beyond the limit")
        else:
            self._image_characters += len(data)
            self._shown.images.append((mime_type, data, uri))

    def _placeholder(self, kind: str, mime_type: object, data: object, why: str = "") -> None:
        self._shown.complete = False
        size = f", {len(data) * 3 // 4} bytes" if isinstance(data, str) else ""
        of_type = f", {one_line(mime_type)}" if isinstance(mime_type, str) and mime_type else ""
        self._add(f"[{one_line(kind)}{of_type}{size}{why}: not shown]", block=False)

    def _add(
        self, text: str, mime_type: str = "", *, structured: bool = False, block: bool = True, joint: str = "\n\n"
    ) -> None:
        text = plain(text)
        if not text:
            return
        if self._pieces and joint == "\n":
            self._pieces[-1] += "\n" + text
            self._length += 1
        else:
            self._length += 2 if self._pieces else 0
            self._pieces.append(text)
        if block:
            self._shown.blocks.append((self._length, self._length + len(text), mime_type, structured))
        self._length += len(text)


def _prefix(text: str, size: int) -> str:
    """As much of a text as fits into so many bytes."""
    return text[:size].encode(errors="replace")[:size].decode(errors="ignore")


def _is(text: str, value: object) -> bool:
    """Whether a text is that string, or that value as JSON."""
    if text == value:
        return True
    try:
        return bool(json_text.parse(text) == value)
    except ValueError:
        return False


def _is_wrapped(texts: Sequence[str], structured: object) -> bool:
    """Whether structured content only repeats the texts under ``result``: so servers made with the Python SDK send what is no
    object, a list as one text an item."""
    if not isinstance(structured, dict) or structured.keys() != {"result"}:  # pyright: ignore[reportUnknownMemberType]
        return False
    wrapped = cast("dict[str, object]", structured)["result"]
    if len(texts) == 1 and _is(texts[0], wrapped):
        return True
    items = cast("list[object]", wrapped) if isinstance(wrapped, list) else []
    return 0 < len(items) == len(texts) and all(map(_is, texts, items))


def _is_base64(data: str) -> bool:
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except ValueError:
        return False
    return True
