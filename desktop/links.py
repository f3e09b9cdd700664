"""The only way a URL leaves Deskhand for the person's browser, or a file for its program. Used by the chat, dialogs and sign-in.

A URL comes from servers and models. It is parsed, only http and https go through, and it is handed to the platform's opener
as one argument, never to a shell. Whoever calls has shown the person the host first.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from urllib.parse import urlsplit

from desktop import processes

_CONTROL_OR_SPACE = re.compile(r"[\x00-\x20\x7f-\xa0\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_LONGEST = 4096
_NAME = re.compile(r"[a-z0-9_]([a-z0-9._-]*[a-z0-9_.])?")
#: A name that ends so is a number to browsers, whatever its form: ``2130706433`` and ``0x7f.1`` are 127.0.0.1.
_NUMBER_AT_END = re.compile(r"(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)\.?$")
#: Seconds. An opener that runs on is the browser itself.
_OPENER_LIMIT = 10


@dataclass(frozen=True, slots=True)
class Link:
    """A URL that may be opened, and its host, both as the browser will see them: internationalised names encoded (``xn--``)."""

    url: str
    host: str


def check(url: str) -> Link | None:
    """The link a URL stands for, or None when it must not be opened.

    Refused: other schemes than http and https, no host or none that is clearly a name or an address, a user or password,
    control or space characters, a backslash, more than 4096 characters.
    """
    if len(url) > _LONGEST or _CONTROL_OR_SPACE.search(url) or "\\" in url:
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
        host = _host(parts.hostname or "")
    except ValueError:  # no port number, no address, or a name that can't be encoded
        return None
    if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc:
        return None
    place = host if port is None else f"{host}:{port}"
    if not parts.netloc.isascii():  # what is shown is what is opened, and letters can look like others
        url = parts._replace(netloc=place).geturl()
    return Link(url, place)


async def open_in_browser(link: Link) -> bool:
    """Hands a checked link to the platform's opener; whether it accepted it. The browser lives on when Deskhand ends."""
    return await _hand_over(link.url)


async def open_path(path: Path) -> bool:
    """Hands a file or folder of Deskhand's own, by its absolute path, to its program; whether it was accepted."""
    return await _hand_over(str(path))


async def _hand_over(target: str) -> bool:
    try:
        return await processes.hand_over([*_opener(), target], time_limit=_OPENER_LIMIT) in (0, None)
    except OSError:
        return False


def _host(name: str) -> str:
    """A host as the browser will see it, or "". Raises ValueError for what is neither a name nor an address."""
    if ":" in name and "%" not in name:  # no zones: they name an interface of this computer
        return f"[{IPv6Address(name)}]"
    if not name.isascii():
        import idna

        # As browsers do (UTS 46, non-transitional): Python's own codec names another host for some names, such as faß.de.
        name = idna.encode(name, uts46=True, transitional=False).decode()
    if _NUMBER_AT_END.search(name):
        return str(IPv4Address(name))
    return name if _NAME.fullmatch(name) else ""


def _opener() -> list[str]:
    if sys.platform == "win32":
        folder = os.environ.get("SYSTEMROOT", r"C:\Windows")  # never one that lies in the current folder
        return [rf"{folder}\System32\rundll32.exe", "url.dll,FileProtocolHandler"]
    return ["/usr/bin/open"] if sys.platform == "darwin" else ["xdg-open"]
