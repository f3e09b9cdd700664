"""What people copy from a server's page becomes a definition, and what is none is refused with a reason."""

from __future__ import annotations

from typing import Any

import pytest

from desktop.host.servers_file import add_server, read_configuration
from desktop.paths import Paths
from desktop.ui.dialogs.pasted_server import NotUnderstood, command_line, parse


@pytest.mark.parametrize(
    ("text", "name", "entry"),
    [
        (
            "npx -y @modelcontextprotocol/server-filesystem /home/me/My\\ Files",
            "filesystem",
            {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/me/My Files"]},
        ),
        (
            "uvx mcp-server-git@1.2 --repository .",
            "git",
            {"command": "uvx", "args": ["mcp-server-git@1.2", "--repository", "."]},
        ),
        ("python -m mcp_server_time", "time", {"command": "python", "args": ["-m", "mcp_server_time"]}),
        (
            "$ /opt/tools/github-mcp-server stdio",
            "github",
            {"command": "/opt/tools/github-mcp-server", "args": ["stdio"]},
        ),
        (
            "TOKEN='a b' DEBUG=1 ./weather.py",
            "weather",
            {"command": "./weather.py", "env": {"TOKEN": "a b", "DEBUG": "1"}},
        ),
        ("npx \\\n  server-x \\\n  --flag", "x", {"command": "npx", "args": ["server-x", "--flag"]}),
        ("https://mcp.linear.app/mcp", "linear", {"url": "https://mcp.linear.app/mcp"}),
        ("http://127.0.0.1:8080/mcp", "127-0-0-1", {"url": "http://127.0.0.1:8080/mcp"}),
        ('{"mcpServers": {"docs": {"command": "docs"}}}', "docs", {"command": "docs"}),
        (
            '{"servers": {"docs": {"type": "http", "url": "https://d.example/x"}}}',
            "docs",
            {"type": "http", "url": "https://d.example/x"},
        ),
        ('"docs": {"command": "docs", "args": ["a"]},', "docs", {"command": "docs", "args": ["a"]}),
        ('{"command": "uvx", "args": ["mcp-server-fetch"]}', "fetch", {"command": "uvx", "args": ["mcp-server-fetch"]}),
        ('{"docs": {"command": "docs", /* mine */ "args": ["a",],},}', "docs", {"command": "docs", "args": ["a"]}),
    ],
)
def test_each_usual_shape_is_understood(text: str, name: str, entry: dict[str, Any], paths: Paths) -> None:
    assert parse(text) == {name: entry}
    add_server(paths.servers_file, name, entry)
    assert [each.name for each in read_configuration(paths.servers_file).definitions] == [name]


def test_several_servers_at_once() -> None:
    found = parse('{"mcpServers": {"a": {"command": "x"}, "b": {"url": "https://b.example/"}}}')
    assert list(found) == ["a", "b"]


@pytest.mark.parametrize(
    "text", ['{"a": 1}', "{", '{"mcpServers": {}}', 'say "x', "KEY=value", "https://a.example/ --flag", "{" * 100_000]
)
def test_what_is_no_server_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(NotUnderstood, match=r"\w"):
        parse(text)


def test_a_command_line_reads_back_as_the_same_command() -> None:
    entry = {"command": "a b", "args": ["", "it's", '"x"', "$HOME", "new\nline"]}
    assert next(iter(parse(command_line(entry)).values())) == entry
