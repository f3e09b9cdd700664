"""What is told of a command before it is allowed: shells, inline code, whole disks, packages without a version."""

from __future__ import annotations

import shlex

import pytest

from desktop.host.command_risks import risks
from desktop.host.server_config import ServerDefinition


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("sh -c 'touch x'", ["shell"]),
        ("/bin/bash -lc x", ["shell"]),
        ("cmd.exe /c x", ["shell"]),
        ("pwsh -Command x", ["shell"]),
        ("bash script.sh", []),
        ("python3 -c 'import os'", ["inline_code"]),
        ("/usr/bin/python3.13 -I -c x", ["inline_code"]),
        ("python -m server -c config", []),
        ("node -e x", ["inline_code"]),
        ("deno eval x", ["inline_code"]),
        ("npx -c 'x y'", ["inline_code", "latest_version"]),
        ("docker run -v /:/host image", ["whole_disk"]),
        ("docker run -v=${HOME}:/h image", ["whole_disk"]),
        ("docker run --volume=/:/host --privileged image", ["privileged", "whole_disk"]),
        ("docker run --mount type=bind,src=/,dst=/host image", ["whole_disk"]),
        ("docker run -v /srv/data:/data -v name:/x image", []),
        ("npx -y @modelcontextprotocol/server-filesystem /", ["latest_version"]),
        ("npx -y @scope/server@1.2.3", []),
        ("npx -y server@latest", ["latest_version"]),
        ("npx -y --package=server@1 run", []),
        ("npx ./local", []),
        ("uvx mcp-server-git", ["latest_version"]),
        ("uvx mcp-server-git==1.0", []),
        ("uvx --from git+https://x.example/y@v1 serena", []),
        ("uvx --python 3.12 mcp-server-git@2", []),
        ("pnpm dlx server", ["latest_version"]),
        ("pnpm install", []),
        ("uv run server.py", []),
        ("npx", []),
        ("weather-server -c x", []),
    ],
)
def test_what_is_told_of_a_command(command: str, expected: list[str]) -> None:
    program, *arguments = shlex.split(command)
    assert risks(ServerDefinition("a", "stdio", command=program, args=tuple(arguments))) == expected


def test_of_an_address_there_is_nothing_to_tell() -> None:
    assert risks(ServerDefinition("a", "http", url="https://a.example/")) == []
