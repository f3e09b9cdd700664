"""What is wrong with a server, as text to paste into a report to its authors or ours. Used by the log's window.

It names programs and places, never values: no arguments, no variables' or headers' values, no paths of URLs, and the home folder
as ``~``. The lines of a log have been redacted when they came.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path, PurePath
from urllib.parse import urlsplit

from desktop import __version__
from desktop.host.programs import Program
from desktop.host.server_config import ServerDefinition
from desktop.host.server_log import LogLine
from desktop.host.server_state import ServerState
from desktop.log import redacted

_LINES = 60
_MARKS = {"output": "stderr", "stray": "stdout", "notice": "deskhand", "request": "request"}


def report(
    definition: ServerDefinition, state: ServerState, lines: Sequence[LogLine], program: Program | None = None
) -> str:
    """Markdown. `program` is what the command names, where that was looked for."""
    facts = [
        ("Deskhand", __version__),
        ("System", f"{platform.system()} {platform.release()} ({platform.machine()})"),
        ("Python, PySide6, mcp", f"{platform.python_version()}, {_version('PySide6-Essentials')}, {_version('mcp')}"),
        ("Server", definition.name),
        ("Kind", definition.kind),
        ("Reached by", reached_by(definition)),
        ("Program", str(program or "")),
        ("Protocol", state.protocol_version),
        ("State", state.status),
        ("Offers", ", ".join(f"{count} {kind}s" for kind, count in state.counts.items())),
    ]
    text = ["## Report about an MCP server", "", *(f"- {name}: {value}" for name, value in facts if value)]
    failure = state.failure
    if failure is not None:
        text += ["", f"### Failure at stage “{failure.stage}”", "", f"- {failure.diagnostic}"]
        if failure.exit_status is not None:
            text.append(f"- Exit status: {failure.exit_status}")
    told = [log_line(line) for line in lines[-_LINES:]]
    # A server may write fences, too: ours is longer than any of them.
    fence = "`" * max(3, 1 + max((_longest_run(line) for line in told), default=0))
    text += ["", f"### Last {len(told)} lines of its log", "", f"{fence}text", *told, fence]
    return redacted(_without_home("\n".join(text))) + "\n"


def log_line(line: LogLine) -> str:
    """A line as the log's window shows it: the time, where it is from, its text."""
    mark = line.level if line.kind == "message" else _MARKS[line.kind]
    return f"{time.strftime('%H:%M:%S', time.localtime(line.time))} {mark:8} {line.text}"


def reached_by(definition: ServerDefinition) -> str:
    """The program or the origin, and what is left out of it in numbers."""
    if definition.kind == "builtin":
        return ""
    if definition.kind == "stdio":
        given = [f"{len(definition.args)} arguments", f"{len(definition.env)} environment variables"]
        return f"{PurePath(definition.command.replace(chr(92), '/')).name} with {' and '.join(given)}"
    parts = urlsplit(definition.url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]} with {len(definition.headers)} headers"


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"


def _without_home(text: str) -> str:
    home = os.path.expanduser("~")
    return text.replace(home, "~") if len(Path(home).parts) > 1 else text


def _longest_run(text: str) -> int:
    """Of backquotes."""
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest
