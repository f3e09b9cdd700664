"""The built-in server ``deskhand``: a real MCP server in this process, behind the same catalog and approval as all others.

Used by the core, which gives it to the host. It offers what Deskhand itself knows: stored results, earlier conversations, the
time, the state of the servers; so a first conversation works before any server is configured.

It is built on the SDK's plain server: the convenient one (``MCPServer``) takes over the logging of the whole program.
"""

from __future__ import annotations

import asyncio
import datetime
import time
import zoneinfo
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import parse_qsl

from jsonschema import Draft202012Validator
from mcp.server import Server, ServerRequestContext
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)

from desktop import __version__
from desktop.errors import AssistantError
from desktop.host.catalog_search import near_names
from desktop.host.server_config import BUILTIN_NAME

_TEMPLATE = "result://{id}{?offset,length}"
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_Context = ServerRequestContext[Any, Any]


class StoredResults(Protocol):
    """The results that are kept in files because they are too large for a conversation. Raises AssistantError."""

    async def page(self, id: str, offset: int, length: int | None) -> str: ...

    async def find(self, id: str, pattern: str, limit: int) -> str: ...

    async def select_json(self, id: str, pointer: str) -> str: ...


#: Gets a query; returns conversations, newest first: ``title``, ``updated`` (seconds since the epoch), ``snippet``.
ConversationSearch = Callable[[str], Awaitable[Sequence[Mapping[str, Any]]]]
#: Returns the configured servers: ``server``, ``status``, ``counts`` by kind, ``failure`` (a text or None).
ServerStatus = Callable[[], Sequence[Mapping[str, Any]]]


def builtin_server(
    results: StoredResults, search_conversations: ConversationSearch, server_status: ServerStatus
) -> Server[Any]:
    """The server, for the SDK's client to connect to in memory."""
    offers = _Offers(results, search_conversations, server_status)
    return Server(
        BUILTIN_NAME,
        version=__version__,
        title="Deskhand",
        on_list_tools=offers.list_tools,
        on_call_tool=offers.call_tool,
        on_list_resources=offers.list_resources,
        on_list_resource_templates=offers.list_templates,
        on_read_resource=offers.read_resource,
    )


class _Failure(Exception):
    """What a tool reports as its error; the text is for the model and the person."""


class _Offers:
    def __init__(
        self, results: StoredResults, search_conversations: ConversationSearch, server_status: ServerStatus
    ) -> None:
        self._results = results
        self._search_conversations = search_conversations
        self._server_status = server_status
        self._zones: set[str] | None = None
        self._run: dict[str, Callable[..., Awaitable[str]]] = {
            "find_in_result": results.find,
            "select_json": results.select_json,
            "current_time": self._current_time,
            "search_conversations": self._conversations,
            "server_status": self._servers,
        }

    async def list_tools(self, _context: _Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=_TOOLS)

    async def call_tool(self, _context: _Context, params: CallToolRequestParams) -> CallToolResult:
        try:
            text, is_error = await self._called(params.name, params.arguments or {}), False
        except AssistantError as error:
            text, is_error = f"{error.diagnostic.message} {error.diagnostic.hint}".strip(), True
        except _Failure as failure:
            text, is_error = str(failure), True
        return CallToolResult(content=[TextContent(text=text)], is_error=is_error)

    async def list_resources(self, _context: _Context, _params: PaginatedRequestParams | None) -> ListResourcesResult:
        return ListResourcesResult(resources=[])

    async def list_templates(
        self, _context: _Context, _params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(
            resource_templates=[
                ResourceTemplate(
                    uri_template=_TEMPLATE,
                    name="stored_result",
                    title="Stored result",
                    description="The text of a result that was too large for the conversation, page by page. The cut result "
                    "names its id; each page names the exact read for the next. offset and length count characters.",
                    mime_type="text/plain",
                )
            ]
        )

    async def read_resource(self, _context: _Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        """A page of a stored result. That it is gone, or that the range is wrong, is what is read: an error has no text."""
        try:
            text = await self._page(params.uri)
        except AssistantError as error:
            text = f"{error.diagnostic.message} {error.diagnostic.hint}".strip()
        return ReadResourceResult(contents=[TextResourceContents(uri=params.uri, text=text, mime_type="text/plain")])

    async def _called(self, name: str, arguments: dict[str, Any]) -> str:
        tool = next((tool for tool in _TOOLS if tool.name == name), None)
        if tool is None:
            raise _Failure("There is no such tool.")
        validator: Any = Draft202012Validator(tool.input_schema)
        for fault in validator.iter_errors(arguments):
            raise _Failure(f"The arguments are not valid: {fault.message}.")
        defaults = {
            key: schema["default"] for key, schema in tool.input_schema["properties"].items() if "default" in schema
        }
        return await self._run[name](**{**defaults, **arguments})

    async def _page(self, uri: str) -> str:
        rest = uri.removeprefix("result://")
        id_, _, query = rest.partition("?")
        given = dict(parse_qsl(query, keep_blank_values=True))
        try:
            offset = int(given.pop("offset", "0"))
            length = int(given.pop("length")) if "length" in given else None
        except ValueError:
            offset, length = -1, None
        if rest == uri or given or offset < 0:
            raise AssistantError(
                "arguments_invalid", operation="read", reason=f"the URI is not of the form {_TEMPLATE}"
            )
        return await self._results.page(id_, offset, length)

    async def _current_time(self, zone: str) -> str:
        if not zone:
            now = datetime.datetime.now().astimezone()
            return _told(now, "this computer's time zone")
        if zone.upper() in ("UTC", "GMT", "Z"):
            return _told(datetime.datetime.now(datetime.UTC), "UTC")
        if self._zones is None:
            self._zones = await asyncio.to_thread(zoneinfo.available_timezones)
        name = _zone(zone, self._zones)
        return _told(datetime.datetime.now(await asyncio.to_thread(zoneinfo.ZoneInfo, name)), name)

    async def _conversations(self, query: str) -> str:
        found = await self._search_conversations(query)
        if not found:
            return "No conversation has these words."
        return "\n\n".join(
            f"{time.strftime('%Y-%m-%d %H:%M', time.localtime(each['updated']))} {each['title']}\n{each['snippet']}".strip()
            for each in found
        )

    async def _servers(self) -> str:
        lines: list[str] = []
        for each in self._server_status():
            counts = [f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in each["counts"].items()]
            line = ", ".join([f"{each['server']}: {each['status'].replace('_', ' ')}", *counts])
            lines.append(f"{line}. {each['failure']}" if each["failure"] else line)
        return "\n".join(lines)


def _zone(asked: str, zones: set[str]) -> str:
    """The IANA name of a time zone that is asked for by it, in any case, or by its city. Raises _Failure with what is near."""
    wanted = asked.strip().replace(" ", "_").casefold()
    named = [zone for zone in sorted(zones) if zone.casefold() == wanted]
    in_city = [zone for zone in sorted(zones) if zone.rpartition("/")[2].casefold() == wanted]
    if named or len(in_city) == 1:
        return (named or in_city)[0]
    if not zones:
        raise _Failure("This computer has no data of time zones; only UTC and its own time zone can be told.")
    near = in_city[:3] or near_names(
        wanted, [(name, zone) for zone in zones for name in (zone, zone.rpartition("/")[2])]
    )
    known = f"Nearly so named: {', '.join(near)}." if near else "Give an IANA name such as Europe/Berlin."
    raise _Failure(f"There is no time zone of that name. {known}")


def _told(now: datetime.datetime, zone: str) -> str:
    return f"{_DAYS[now.weekday()]}, {now.isoformat(timespec='seconds')} ({zone}, {now.tzname()})"


def _tool(name: str, title: str, description: str, **parameters: dict[str, Any]) -> Tool:
    """A tool that only reads. A parameter without a default is required."""
    return Tool(
        name=name,
        title=title,
        description=description,
        input_schema={
            "type": "object",
            "properties": parameters,
            "required": [key for key, schema in parameters.items() if "default" not in schema],
            "additionalProperties": False,
        },
        annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )


def _text(title: str, description: str, longest: int, **more: Any) -> dict[str, Any]:
    return {"type": "string", "title": title, "description": description, "maxLength": longest, **more}


_ID = _text("Result", "The id of a stored result, as the cut result names it: the part after result://", 64)
_TOOLS = [
    _tool(
        "find_in_result",
        "Find in a stored result",
        "Finds text in a result that was too large for the conversation and is stored. Returns the places with their offsets, "
        "from which the result can be read on.",
        id=_ID,
        pattern=_text(
            "Text to find",
            "Looked for as it stands, ignoring case; if it is nowhere, as a regular expression (Python's)",
            1000,
            minLength=1,
        ),
        limit={
            "type": "integer",
            "title": "Most places",
            "description": "How many places to return",
            "minimum": 1,
            "maximum": 100,
            "default": 20,
        },
    ),
    _tool(
        "select_json",
        "Select from a stored JSON result",
        "Returns one value out of a stored result that is JSON, with every digit as it was.",
        id=_ID,
        pointer=_text(
            "JSON pointer",
            "RFC 6901, for instance /items/0/name; empty for the whole. Leads into the complete MCP result, else into its "
            "structured content, else into a text of it that is JSON",
            4096,
        ),
    ),
    _tool(
        "current_time",
        "Current time",
        "Tells the date, weekday and time now, in any time zone of the world.",
        zone=_text(
            "Time zone",
            "IANA name such as Europe/Berlin, or a city that names one; empty for this computer's own",
            100,
            default="",
        ),
    ),
    _tool(
        "search_conversations",
        "Search earlier conversations",
        "Searches the person's earlier conversations with the assistant by words; returns dates, titles and excerpts.",
        query=_text("Words", "What to look for", 500, minLength=1),
    ),
    _tool(
        "server_status",
        "Status of the servers",
        "Tells which MCP servers are configured, whether each is connected, what it offers, and why one failed.",
    ),
]
