"""Questions put to the person in the conversation. Guide asks; the window draws cards, the terminal asks on its lines."""

from __future__ import annotations

from typing import Any, Protocol

from desktop.assistant.conversation import Choice, Form


class Asker(Protocol):
    """Waits for the person's answer to a question that already is a part of the message. Cancelled by Stop."""

    async def choose(self, choice: Choice) -> int | None:
        """The index of the chosen option; None when the person chose none of them."""
        ...

    async def fill(self, form: Form) -> dict[str, Any] | None:
        """The tool's arguments, valid by the form's schema; None when the person gave up."""
        ...


class NobodyToAsk:
    """Where there is no person: every question stays open, and Guide ends the turn by naming what is missing."""

    async def choose(self, choice: Choice) -> int | None:
        return None

    async def fill(self, form: Form) -> dict[str, Any] | None:
        return None
