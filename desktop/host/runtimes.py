"""The programs that servers are usually started with, and how they are had. Used when a command is looked for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Runtime:
    """What brings a program, and the page that says how to install it."""

    title: str
    site: str


_NODE = Runtime("Node.js", "https://nodejs.org/en/download")
_UV = Runtime("uv", "https://docs.astral.sh/uv/getting-started/installation/")
_PYTHON = Runtime("Python", "https://www.python.org/downloads/")
_BUN = Runtime("Bun", "https://bun.com/docs/installation")
RUNTIMES: dict[str, Runtime] = {
    "npx": _NODE,
    "node": _NODE,
    "npm": _NODE,
    "uvx": _UV,
    "uv": _UV,
    "python": _PYTHON,
    "python3": _PYTHON,
    "pipx": Runtime("pipx", "https://pipx.pypa.io/stable/installation/"),
    "bun": _BUN,
    "bunx": _BUN,
    "deno": Runtime("Deno", "https://docs.deno.com/runtime/getting_started/installation/"),
    "docker": Runtime("Docker", "https://docs.docker.com/get-started/get-docker/"),
    "podman": Runtime("Podman", "https://podman.io/docs/installation"),
    "java": Runtime("Java", "https://adoptium.net/installation/"),
    "dotnet": Runtime(".NET", "https://dotnet.microsoft.com/download"),
}


def runtime_of(command: str) -> Runtime | None:
    """What brings the program of that name; None for a path, and for a name that is not known."""
    name = command.lower()
    for ending in (".cmd", ".exe", ".bat"):
        name = name.removesuffix(ending)
    return RUNTIMES.get(name)
