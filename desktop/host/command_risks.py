"""What a person should know of a command before allowing it, because its words alone don't say it. Used where consent is asked.

Nothing is refused for it: many a server is started so. A wrapper is looked through no further than its own options.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Literal

from desktop.host.server_config import ServerDefinition

Risk = Literal["shell", "inline_code", "whole_disk", "privileged", "latest_version"]

_SHELLS = frozenset("sh bash dash zsh ksh fish cmd powershell pwsh".split())  # noqa: SIM905
_SHELL_OPTIONS = re.compile(r"-[a-z]*c|/[ck]|-(?:command|encodedcommand|ec?)", re.IGNORECASE)
#: Options with which a program runs what stands behind them.
_INLINE = {
    "python": frozenset({"-c"}),
    "node": frozenset({"-e", "--eval", "-p", "--print"}),
    "deno": frozenset({"eval"}),
    "bun": frozenset({"-e", "--eval"}),
    "perl": frozenset({"-e", "-E"}),
    "ruby": frozenset({"-e"}),
    "php": frozenset({"-r"}),
    "npx": frozenset({"-c", "--call"}),
    "osascript": frozenset({"-e"}),
}
_CONTAINERS = frozenset({"docker", "podman", "nerdctl"})
_MOUNT = re.compile(
    r"(?:--volume=|-v=?|--mount=)?(?:.*(?:source|src)=)?(/|~/?|[A-Za-z]:[/\\]?|\$\{(?:HOME|USERPROFILE)\})(?:[:,].*)"
)
#: Runners that fetch a package, the words before it that belong to them, and their options that a value follows.
_FETCHING = {
    "npx": (),
    "bunx": (),
    "uvx": (),
    "pipx": ("run",),
    "pnpm": ("dlx",),
    "yarn": ("dlx",),
    "uv": ("tool", "run"),
}
_WITH_VALUE = frozenset({"--registry", "--python", "-p", "--with", "--index", "--index-url", "--cache", "--prefix"})
_NAMES_PACKAGE = frozenset({"--package", "--from", "--spec"})


def risks(definition: ServerDefinition) -> list[Risk]:
    """In the order of their weight."""
    if definition.kind != "stdio":
        return []
    program = re.sub(r"\.(?:exe|cmd|bat)$", "", os.path.basename(definition.command.replace("\\", "/")).lower())
    program = "python" if re.fullmatch(r"python[\d.]*w?|pypy[\d.]*", program) else program
    arguments = definition.args
    found: list[Risk] = []
    if program in _SHELLS and any(map(_SHELL_OPTIONS.fullmatch, arguments)):
        found.append("shell")
    if _options(arguments) & _INLINE.get(program, frozenset()):
        found.append("inline_code")
    if program in _CONTAINERS:
        if "--privileged" in arguments:
            found.append("privileged")
        if any(map(_MOUNT.fullmatch, arguments)):
            found.append("whole_disk")
    if program in _FETCHING and (package := _package(program, arguments)) and not _has_version(package):
        found.append("latest_version")
    return found


def _options(arguments: Sequence[str]) -> set[str]:
    """The options of the program itself: those before its first other word."""
    options: set[str] = set()
    for word in arguments:
        if not word.startswith("-"):
            return options | {word}
        options.add(word.partition("=")[0])
    return options


def _package(program: str, arguments: Sequence[str]) -> str:
    """What is fetched, as it is named; "" where that can't be told."""
    words = list(arguments)
    for word in _FETCHING[program]:
        if words[:1] != [word]:
            return ""
        words.pop(0)
    while words:
        word = words.pop(0)
        option, equals, value = word.partition("=")
        if option in _NAMES_PACKAGE or (program == "npx" and option == "-p"):
            return value if equals else words[0] if words else ""
        if option in _WITH_VALUE and not equals and words:
            words.pop(0)
        elif not word.startswith("-"):
            return word
    return ""


def _has_version(package: str) -> bool:
    """Whether a package's name fixes its version, or is no name: a path, an address with a revision."""
    if package.startswith((".", "/", "~")):
        return True
    _, at, version = package.lstrip("@").rpartition("@")
    return (bool(at) and version not in ("", "latest", "next", "beta")) or "==" in package
