"""Runs ``deskhand`` as a process of its own, as a person's shell would."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fakes.model_server import Answer, Call, Request

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Finished:
    status: int
    output: str
    errors: str

    @property
    def events(self) -> list[dict[str, Any]]:
        """The lines of ``--json``."""
        return [json.loads(line) for line in self.output.splitlines()]


def environment(**extra: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "default"} | extra


async def deskhand(*arguments: str, input_: str | None = None, time_limit: float = 60, **extra: str) -> Finished:
    """Runs ``deskhand`` to its end; standard input is no terminal. The process is ended at the time limit (seconds)."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "desktop",
        *arguments,
        env=environment(**extra),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(time_limit):
            output, errors = await process.communicate((input_ or "").encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return Finished(process.returncode, output.decode(), errors.decode())


def write_servers(file: Path, **servers: list[str] | Mapping[str, Any] | str) -> Path:
    """A configuration file: a list is a command, a string an address, anything else the definition itself."""
    definitions = {
        name: {"command": entry[0], "args": list(entry[1:])}
        if isinstance(entry, list)
        else {"url": entry}
        if isinstance(entry, str)
        else dict(entry)
        for name, entry in servers.items()
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"mcpServers": definitions}))
    return file


def finds_and_calls(query: str, tool: str, arguments: dict[str, Any]) -> Any:
    """A model that searches, activates `tool` (``server.name``), calls it and repeats its result."""
    native = "mcp__{}__{}".format(*tool.split(".", 1))

    def script(request: Request) -> Answer:
        match request.results:
            case []:
                return Answer(text=["Looking. "], calls=[Call("mcp_tools", {"query": query}, pieces=3)])
            case [found] if tool in found:
                return Answer(calls=[Call("mcp_tools", {"activate": [tool]}, pieces=5)])
            case [_, _] if native in request.tools:
                return Answer(calls=[Call(native, arguments, pieces=4)])
            case [_, _, result]:
                return Answer(text=["The tool said: ", result], usage={"prompt_tokens": 100, "completion_tokens": 7})
            case _:
                return Answer(text=["I could not find it."])

    return script
