"""Commands of the real MCP servers that tests run; ``packaging/dev.py test`` installs them under ``.test-tools``."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

TOOLS = Path(__file__).parents[1] / ".test-tools"
NODE_SERVERS = TOOLS / "node_modules" / ".bin"
PYTHON_SERVERS = TOOLS / "python" / ("Scripts" if sys.platform == "win32" else "bin")


def _command(folder: Path, name: str) -> str:
    command = shutil.which(name, path=str(folder))
    if command is None:
        raise FileNotFoundError(f"{name} is not installed under {TOOLS.name}: run packaging/dev.py test")
    return command


def everything() -> list[str]:
    """Tools, resources, templates, prompts, progress, images: the reference server (older protocol era)."""
    return [_command(NODE_SERVERS, "mcp-server-everything")]


def filesystem(folder: Path) -> list[str]:
    return [_command(NODE_SERVERS, "mcp-server-filesystem"), str(folder)]


def memory() -> list[str]:
    return [_command(NODE_SERVERS, "mcp-server-memory")]


def time() -> list[str]:
    """Newer protocol era."""
    return [_command(PYTHON_SERVERS, "mcp-server-time")]


def git(repository: Path) -> list[str]:
    """Newer protocol era."""
    return [_command(PYTHON_SERVERS, "mcp-server-git"), "--repository", str(repository)]
