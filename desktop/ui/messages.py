"""The sentences for what the assistant and the host say in codes: title, detail and remedy, in the person's language.

Used by the chat, the panels and the error box. A code that has no sentence here is shown in the English of
``desktop/errors.py``; ``tests/ui/test_messages.py`` holds that every code has one.
"""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from desktop.errors import Diagnostic
from desktop.visible_text import visible_line


def tr(text: str) -> str:
    """Translates a literal of this package's modules that are no QObject."""
    return QCoreApplication.translate("Deskhand", text)


def message(diagnostic: Diagnostic) -> str:
    """What happened, one sentence."""
    return visible_line(diagnostic.message, 400)


def hint(diagnostic: Diagnostic) -> str:
    """What to do next, or ""."""
    return visible_line(diagnostic.hint, 400)
