"""The only way a URL leaves Deskhand for the person's browser, or a file for its program. Used by the chat, dialogs and sign-in.

A URL comes from servers and models. It is parsed, only http and https go through, and it is handed to the platform's opener
as one argument, never to a shell. Whoever calls has shown the person the host first.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from desktop import processes

_CONTROL_OR_SPACE = re.compile(r"[\x00-\x20\x7f-\xa0\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_LONGEST = 4096


@dataclass(frozen=True, slots=True)
class Link:
    """A URL that may be opened. `host` is as the browser will see it: internationalised names encoded (``xn--``)."""

    url: str
    host: str


def check(url: str) -> Link | None:
    """The link a URL stands for, or None when it must not be opened.

    Refused: other schemes than http and https, no host, a user or password, control or space characters, a backslash,
    more than 4096 characters.
    """
    if len(url) > _LONGEST or _CONTROL_OR_SPACE.search(url) or "\\" in url:
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
        host = (
            (parts.hostname or "").encode("idna").decode("ascii")
            if not (parts.hostname or "").isascii()
            else (parts.hostname or "")
        )
    except ValueError:  # no port number, no IPv6 address, or a name that can't be encoded
        return None
    if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc or host.startswith("-"):
        return None
    return Link(url, host if port is None else f"{host}:{port}")


async def open_in_browser(link: Link) -> bool:
    """Hands a checked link to the platform's opener; whether it accepted it within 10 seconds."""
    return await _open(link.url)


async def open_path(path: Path) -> bool:
    """Hands a file or folder of Deskhand's own, by its absolute path, to its program; whether it was accepted within 10 s."""
    return await _open(str(path))


async def _open(target: str) -> bool:
    opener = {"darwin": ["open"], "win32": ["rundll32", "url.dll,FileProtocolHandler"]}.get(sys.platform, ["xdg-open"])
    try:
        finished = await processes.run([*opener, target], time_limit=10, output_limit=0)
    except (OSError, TimeoutError):
        return False
    return finished.status == 0
