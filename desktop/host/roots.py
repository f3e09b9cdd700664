"""The open folder as servers of older protocol revisions may ask for it: ``roots/list``. Used by the host and its connections.

Roots are deprecated, so only what such servers need is here. A server that is connected while no folder is open is not told that
it could ask.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import anyio
from mcp.client.session import ListRootsFnT
from mcp_types import ListRootsResult, Root, RootsListChangedNotification
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import FileUrl

from desktop.host.sdk_client import SdkClient


class Roots:
    """Attributes:
    folder: The open folder; None: there is none.
    """

    def __init__(self) -> None:
        self.folder: Path | None = None

    @property
    def callback(self) -> ListRootsFnT | None:
        """What the SDK's client answers with; None where nothing is to be declared."""
        return None if self.folder is None else self._answer

    async def _answer(self, context: object) -> ListRootsResult:
        """The folder as it is when it is asked for, which may be none by then."""
        if self.folder is None:
            return ListRootsResult(roots=[])
        return ListRootsResult(roots=[Root(uri=FileUrl(self.folder.as_uri()), name=self.folder.name)])


async def tell_of_change(client: SdkClient) -> None:
    """Says that another folder is open, to a server that can ask for it; the newer era has no such notice."""
    if client.list_roots_callback is not None and client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):  # the server is just going
            await client.session.send_notification(RootsListChangedNotification())
