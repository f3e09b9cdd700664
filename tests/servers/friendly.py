#!/usr/bin/env python3
"""A small, well-behaved server on the SDK: what tests use when the server is not what they test.

``python friendly.py`` speaks over stdio; ``--http PORT`` (0: any free one) serves Streamable HTTP and prints its URL on
standard output; ``running.py`` does both. Both protocol eras. ``--name NAME`` changes the server's name, ``--sse`` serves the
older HTTP transport with an event stream for all answers instead.

Tools: ``add(a, b)``, ``echo(text)``, ``slow(steps, seconds)`` with progress, ``picture()`` (a PNG of 2 × 2), ``fail(reason)``,
``now_nothing()`` without arguments, ``rows(count)`` (structured, with an output schema), ``forget(id)`` (claims to be
destructive), ``look(id)`` (claims to be read-only).
Resources: ``notes://today``, ``notes://picture``; template ``cities://{country}/{city}`` with completion, the city depending
on the country. Prompts: ``summary`` (no argument), ``greeting(name, tone?)``, ``travel(country, city, days?)`` with completion.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import socket

import uvicorn
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
    ToolAnnotations,
)
from pydantic import BaseModel

CITIES = {
    "France": ["Lyon", "Marseille", "Paris"],
    "Italy": ["Milan", "Rome", "Turin"],
    "Japan": ["Kyoto", "Osaka", "Tokyo"],
}
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFElEQVR4nGP8z8DAwMDAxMDAwMAAAA0GAQNyfTR7AAAAAElFTkSuQmCC"
)


class Rows(BaseModel):
    count: int
    rows: list[str]


def make_server(name: str) -> MCPServer[object]:
    server: MCPServer[object] = MCPServer(
        name, title="Friendly server", instructions="Use add for sums.", version="1.0"
    )

    @server.tool()
    def add(a: float, b: float) -> float:
        """Adds two numbers."""
        return a + b

    @server.tool()
    def echo(text: str) -> str:
        """Returns the text unchanged."""
        return text

    @server.tool()
    async def slow(ctx: Context, steps: int = 3, seconds: float = 0.3) -> str:
        """Takes its time and reports progress a step at a time."""
        for step in range(steps):
            await asyncio.sleep(seconds / steps)
            await ctx.report_progress(step + 1, steps, f"step {step + 1} of {steps}")
        return f"{steps} steps"

    @server.tool()
    def picture() -> Image:
        """A small picture."""
        return Image(data=PNG, format="png")

    @server.tool()
    def fail(reason: str) -> str:
        """Reports an error of its own."""
        raise ToolError(reason)

    @server.tool()
    def now_nothing() -> str:
        """Takes no argument."""
        return "nothing"

    @server.tool()
    def rows(count: int = 3) -> Rows:
        """Rows of a report, structured."""
        return Rows(count=count, rows=[f"row {number + 1}" for number in range(count)])

    @server.tool(annotations=ToolAnnotations(destructive_hint=True))
    def forget(id: str) -> str:
        """Deletes an entry."""
        return f"forgot {id}"

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def look(id: str) -> str:
        """Shows an entry."""
        return f"entry {id}"

    @server.resource("notes://today", name="today", description="Today's notes", mime_type="text/plain")
    def today() -> str:
        return "Buy milk.\nCall Ann."

    @server.resource("notes://picture", name="picture", mime_type="image/png")
    def picture_file() -> bytes:
        return PNG

    @server.resource("cities://{country}/{city}", name="city", description="A city's page", mime_type="text/markdown")
    def city_page(country: str, city: str) -> str:
        return f"# {city}\n\nA city in {country}."

    @server.prompt()
    def summary() -> str:
        """Summarises the conversation."""
        return "Summarise what we have said so far."

    @server.prompt()
    def greeting(name: str, tone: str = "friendly") -> str:
        """Greets somebody."""
        return f"Greet {name} in a {tone} tone."

    @server.prompt()
    def travel(country: str, city: str, days: str = "3") -> str:
        """Plans a journey."""
        return f"Plan {days} days in {city}, {country}."

    @server.completion()
    async def complete(
        ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion | None:
        if argument.name == "country":
            values = list(CITIES)
        elif argument.name == "city":
            country = ((context and context.arguments) or {}).get("country")
            values = CITIES.get(country, []) if country else [city for cities in CITIES.values() for city in cities]
        elif argument.name == "tone":
            values = ["formal", "friendly", "short"]
        else:
            return None
        values = [value for value in values if value.lower().startswith(argument.value.lower())]
        return Completion(values=values, total=len(values), has_more=False)

    return server


def main() -> None:
    parser = argparse.ArgumentParser(description="A small, well-behaved server.")
    parser.add_argument("--http", type=int, metavar="PORT")
    parser.add_argument("--name", default="friendly")
    parser.add_argument("--sse", action="store_true")
    options = parser.parse_args()
    server = make_server(options.name)
    if options.http is None:
        server.run("stdio")
        return
    listener = socket.create_server(("127.0.0.1", options.http))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/{'sse' if options.sse else 'mcp'}", flush=True)
    app = server.sse_app() if options.sse else server.streamable_http_app()
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
