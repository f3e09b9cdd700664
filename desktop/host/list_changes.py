"""Asks servers of the newer protocol era to say when their lists change; older ones say so unasked. Used by the connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mcp import Client, MCPError
from mcp.client.subscriptions import SubscriptionLost
from mcp_types import METHOD_NOT_FOUND
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
"""Seconds before a stream that broke off is opened again; the pause doubles each time it breaks."""


async def listen_for_list_changes(client: Client, missed: Callable[[], None]) -> None:
    """Keeps a stream of change notices open until cancelled, where the server has one; the notices come to the client's
    message handler. `missed` is called when a stream has been opened again: what changed meanwhile is not known."""
    offered = client.server_capabilities
    tools = bool(offered.tools and offered.tools.list_changed)
    prompts = bool(offered.prompts and offered.prompts.list_changed)
    resources = bool(offered.resources and offered.resources.list_changed)
    if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or not (tools or prompts or resources):
        return
    pause = _FIRST_PAUSE
    again = False
    while True:
        try:
            async with client.listen(
                tools_list_changed=tools, prompts_list_changed=prompts, resources_list_changed=resources
            ) as notices:
                if again:
                    missed()
                again = True
                async for _ in notices:
                    pause = _FIRST_PAUSE
        except MCPError as error:
            if error.code == METHOD_NOT_FOUND:
                return
        except SubscriptionLost:
            pass
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
