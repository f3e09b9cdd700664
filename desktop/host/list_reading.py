"""Reading a server's lists: all pages, guarded, what is wrong with them told in the state. Used by the connection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from mcp_types import ServerCapabilities

from desktop.catalog_entries import Kind
from desktop.errors import Diagnostic
from desktop.host.diagnostics import known
from desktop.host.lifecycle import Lifecycle
from desktop.host.pages import all_pages
from desktop.host.requester import Requester
from desktop.host.server_config import ServerDefinition
from desktop.host.time_limits import Limits

#: A whole list may take this many times the limit of a page.
_PAGES_TIME = 4


@dataclass(frozen=True, slots=True)
class Keeping:
    """How a list may be kept, of what its server says of all its pages."""

    lifetime: float | None = None
    """Seconds; None where the server doesn't say."""
    on_disk: bool = True
    """False where the list may not be whole."""


class ListReading:
    """Attributes:
    keeping: How a list that was read last may be kept, by kind.
    """

    def __init__(self, definition: ServerDefinition, lifecycle: Lifecycle, requester: Requester) -> None:
        self.keeping: dict[Kind, Keeping] = {}
        self._definition = definition
        self._lifecycle = lifecycle
        self._requester = requester
        self._warnings: dict[Kind, Diagnostic] = {}

    async def read(
        self,
        kind: Kind,
        capability: Callable[[ServerCapabilities], object],
        key: Callable[[Any], str],
        wanted: Callable[[Any], bool] = lambda _: True,
    ) -> list[Any]:
        """What is wanted of all pages of a list, counted in the state. A server that doesn't offer the kind has none of it."""
        limit = self._definition.request_time_limit
        limits = Limits(limit, _PAGES_TIME * limit)
        left_out = 0
        lifetimes: list[float] = []

        async def page(cursor: str | None) -> tuple[list[Any], str | None]:
            nonlocal left_out
            fetched = await self._requester.ask("search", lambda client: client.page(kind, cursor), limits)
            limits.sign_of_life()
            left_out += fetched.left_out
            if fetched.lifetime is not None:
                lifetimes.append(fetched.lifetime)
            return fetched.entries, fetched.next_cursor

        life = await self._lifecycle.lively()
        found: list[Any] = []
        self._warnings.pop(kind, None)
        if capability(life.client.server_capabilities) is not None:
            listed, reason = await all_pages(page, key)
            found = list(filter(wanted, listed))
            if reason is None and left_out:
                reason = f"{left_out} entries are outside the protocol"
            if reason is not None:
                self._warnings[kind] = known(
                    "list_incomplete", "search", self._definition.name, reason=reason
                ).diagnostic
        self.keeping[kind] = Keeping(min(lifetimes, default=None), kind not in self._warnings)
        if self._lifecycle.state.status == "connected":
            counts = {**self._lifecycle.state.counts, kind: len(found)}
            self._lifecycle.publish(
                replace(self._lifecycle.state, counts=counts, warnings=tuple(self._warnings.values()))
            )
        return found
