"""Deskhand's own log: one rotated file, which holds no secret. Set up by ``app.py``, and without the file by ``cli.py``; secrets
are named by who handles them.

Everything that is logged passes one formatter, tracebacks too, which replaces each registered secret and what looks like one.
What is sent to a model loses the registered ones alone (`without_secrets`): a log may lose an innocent word, a conversation must
not, since the model would work with what is left.
"""

from __future__ import annotations

import json
import logging
import os
import re
from logging.handlers import RotatingFileHandler
from pathlib import Path

from desktop.paths import private_folder

FILE_NAME = "deskhand.log"
_FILE_SIZE = 1024 * 1024
_OLD_FILES = 3
#: Shorter ones would blank out ordinary words.
_SHORTEST_SECRET = 6
_LOOKS_SECRET = re.compile(
    r"(?i)(\bbearer\s+|[?&]code="
    r"|\b(?:authorization|api[-_]?key|(?:access|refresh|id)_token|client_secret|password)[\"']?\s*[=:]\s*[\"']?(?:(?:bearer|basic)\s+)?)"
    r"(?!\[redacted\])[^\s\"'&,;}]{4,}"
)
#: One of these is in whatever looks secret: a quick look first, since a server may write megabytes to its error output.
_CLUES = ("bearer", "code=", "authorization", "key", "token", "secret", "password")
#: Libraries that log URLs, arguments or bodies at INFO and DEBUG.
_TALKATIVE = ("asyncio", "httpcore", "httpx", "httpcore2", "httpx2", "mcp", "openai", "LiteLLM", "urllib3")

#: Each as it is and in the forms in which texts quote it; whether it is certain to be a secret.
_secrets: dict[str, bool] = {}


def redact(secret: str, *, certain: bool = True) -> None:
    """Keeps a secret out of everything that is logged from now on, as it is and as ``repr`` and JSON show it.

    One that is `certain` is kept out of what models are sent, too.
    """
    if len(secret) >= _SHORTEST_SECRET:
        for form in (secret, repr(secret)[1:-1], json.dumps(secret)[1:-1]):
            _secrets[form] = certain or _secrets.get(form, False)


def redacted(text: str) -> str:
    """The text without the secrets that are registered, and without what looks like one."""
    text = _without(text, list(_secrets))
    lower = text.lower()
    if not any(clue in lower for clue in _CLUES):
        return text
    return _LOOKS_SECRET.sub(r"\1[redacted]", text)


def without_secrets(text: str) -> str:
    """The text without what is certain to be a secret: the person's keys, what the keyring holds, what a server was given."""
    return _without(text, [secret for secret, certain in list(_secrets.items()) if certain])


def _without(text: str, secrets: list[str]) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "[redacted]")
    return text


def start(folder: Path) -> None:
    """Logs INFO and above of all threads to a file in `folder` (private, four files of 1 MiB at most), warnings to standard
    error too. Raises OSError when the file can't be made."""
    file = _PrivateFile(
        private_folder(folder) / FILE_NAME, maxBytes=_FILE_SIZE, backupCount=_OLD_FILES, encoding="utf-8"
    )
    file.setFormatter(_Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    start_console()
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    root.addHandler(file)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)


def start_console() -> None:
    """Logs warnings and above to standard error; the command line has no other log."""
    console = logging.StreamHandler()
    console.setLevel(logging.WARNING)
    console.setFormatter(_Formatter("deskhand: %(message)s"))
    logging.getLogger().addHandler(console)


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record))


class _PrivateFile(RotatingFileHandler):
    def _open(self):  # type: ignore[no-untyped-def]  # the base class's own type is not public
        return open(  # the handler closes it
            self.baseFilename,
            self.mode,
            encoding=self.encoding,
            errors=self.errors,
            opener=lambda path, flags: os.open(path, flags, 0o600),
        )
