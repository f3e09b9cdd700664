"""What people copy from a page or from another program becomes a definition, and what is none is refused with a reason."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from desktop.host.foreign_document import NotUnderstood
from desktop.host.foreign_entry import Candidate
from desktop.host.pasted_text import command_line, parse, parse_own
from desktop.host.servers_file import add_server, read_configuration
from desktop.paths import Paths

GITHUB = {"type": "http", "url": "https://api.githubcopilot.com/mcp/"}


def one(text: str) -> Candidate:
    [found] = parse(text)
    return found


def base64_of(value: object, *, url_safe: bool = False) -> str:
    encode = base64.urlsafe_b64encode if url_safe else base64.b64encode
    return encode(json.dumps(value).encode()).decode()


@pytest.mark.parametrize(
    ("text", "name", "entry"),
    [
        # Command lines
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
        (
            "export TOKEN='pa$$w' HOST=$NAME\nset A=b && env C=d npx weather",
            "weather",
            {"command": "npx", "args": ["weather"], "env": {"TOKEN": "pa$$$$w", "HOST": "${NAME}", "A": "b", "C": "d"}},
        ),
        (
            '$env:KEY="!x"; npx weather',
            "weather",
            {"command": "npx", "args": ["weather"], "env": {"KEY": "$!x"}},
        ),
        ("npx \\\n  server-x \\\n  --flag", "x", {"command": "npx", "args": ["server-x", "--flag"]}),
        (
            "docker run -i --rm -e GITHUB_TOKEN -v /srv:/data ghcr.io/github/github-mcp-server",
            "github",
            {
                "command": "docker",
                "args": [
                    "run",
                    "-i",
                    "--rm",
                    "-e",
                    "GITHUB_TOKEN",
                    "-v",
                    "/srv:/data",
                    "ghcr.io/github/github-mcp-server",
                ],
            },
        ),
        (
            "uvx --from git+https://github.com/oraios/serena serena start-mcp-server",
            "serena",
            {
                "command": "uvx",
                "args": ["--from", "git+https://github.com/oraios/serena", "serena", "start-mcp-server"],
            },
        ),
        (
            r'"C:\Program Files\Weather\weather.exe" --root "C:\My Docs\\" --name "a \"b\"" %USERNAME%',
            "weather",
            {
                "command": r"C:\Program Files\Weather\weather.exe",
                "args": ["--root", "C:\\My Docs\\", "--name", 'a "b"', "${USERNAME}"],
            },
        ),
        ("cmd /c npx -y weather-mcp", "weather", {"command": "npx", "args": ["-y", "weather-mcp"]}),
        (
            'npx mcp-remote https://a.example/?a=1&b=2 --header "X: $TOKEN"',
            "remote",
            {"command": "npx", "args": ["mcp-remote", "https://a.example/?a=1&b=2", "--header", "X: ${TOKEN}"]},
        ),
        # Addresses
        ("https://mcp.linear.app/mcp", "linear", {"url": "https://mcp.linear.app/mcp"}),
        ("http://127.0.0.1:8080/mcp", "127-0-0-1", {"url": "http://127.0.0.1:8080/mcp"}),
        # JSON of any shape
        ('{"mcpServers": {"docs": {"command": "docs"}}}', "docs", {"command": "docs"}),
        ('"mcpServers": {"docs": {"command": "docs"}}', "docs", {"command": "docs"}),
        (
            '{"servers": {"docs": {"type": "http", "url": "https://d.example/x"}}}',
            "docs",
            {"type": "http", "url": "https://d.example/x"},
        ),
        ('{"mcp": {"servers": {"docs": {"command": "docs"}}}}', "docs", {"command": "docs"}),
        (
            '{"context_servers": {"docs": {"command": {"path": "docs", "args": []}}}}',
            "docs",
            {"command": "docs", "args": []},
        ),
        ('"docs": {"command": "docs", "args": ["a"]},', "docs", {"command": "docs", "args": ["a"]}),
        ('{"command": "uvx", "args": ["mcp-server-fetch"]}', "fetch", {"command": "uvx", "args": ["mcp-server-fetch"]}),
        ('{"name": "mine", "command": "x"}', "mine", {"command": "x"}),
        ('{"docs": {"command": "docs", /* mine */ "args": ["a",],},}', "docs", {"command": "docs", "args": ["a"]}),
        (
            '{"docs": {"command": "docs", "env": {"A": "!op read x"}}}',
            "docs",
            {"command": "docs", "env": {"A": "$!op read x"}},
        ),
        # TOML and YAML
        ('[mcp_servers.docs]\ncommand = "docs"\n', "docs", {"command": "docs"}),
        (
            "extensions:\n  docs:\n    type: stdio\n    cmd: docs\n    args: [a]\n",
            "docs",
            {"command": "docs", "args": ["a"]},
        ),
        # What adds it to another program
        ("claude mcp add docs -- npx -y docs --flag", "docs", {"command": "npx", "args": ["-y", "docs", "--flag"]}),
        (
            "claude mcp add -s user --env A=1 B=$x -e C=!y docs -- npx docs",
            "docs",
            {"command": "npx", "args": ["docs"], "env": {"A": "1", "B": "${x}", "C": "$!y"}},
        ),
        (
            'claude mcp add --transport http sentry https://mcp.sentry.dev/mcp --header "Authorization: Bearer $w"',
            "sentry",
            {"type": "http", "url": "https://mcp.sentry.dev/mcp", "headers": {"Authorization": "Bearer ${w}"}},
        ),
        (
            """claude mcp add-json weather '{"type":"stdio","command":"w","env":{"A":"!x"}}'""",
            "weather",
            {"type": "stdio", "command": "w", "env": {"A": "$!x"}},
        ),
        ("codex mcp add c7 --env A=b -- npx -y c7", "c7", {"command": "npx", "args": ["-y", "c7"], "env": {"A": "b"}}),
        (
            "codex mcp add figma --url https://mcp.figma.com/mcp --bearer-token-env-var FIGMA",
            "figma",
            {"url": "https://mcp.figma.com/mcp", "headers": {"Authorization": "Bearer ${FIGMA}"}},
        ),
        ("gemini mcp add -t sse docs https://d.example/sse", "docs", {"type": "sse", "url": "https://d.example/sse"}),
        (
            """code --add-mcp '{"name":"docs","command":"uvx","args":["d"]}'""",
            "docs",
            {"command": "uvx", "args": ["d"]},
        ),
        # Links
        ("vscode:mcp/install?" + quote(json.dumps({"name": "github", **GITHUB})), "github", GITHUB),
        ("vscode-insiders:mcp/install?" + quote(json.dumps({"name": "github", **GITHUB})), "github", GITHUB),
        (
            "https://insiders.vscode.dev/redirect/mcp/install?name=github&config=" + quote(json.dumps(GITHUB)),
            "github",
            GITHUB,
        ),
        (
            "https://vscode.dev/redirect?url="
            + quote("vscode:mcp/install?" + quote(json.dumps({"name": "github", **GITHUB}))),
            "github",
            GITHUB,
        ),
        ("cursor://anysphere.cursor-deeplink/mcp/install?name=github&config=" + base64_of(GITHUB), "github", GITHUB),
        ("https://cursor.com/en/install-mcp?name=github&config=" + quote(base64_of(GITHUB)), "github", GITHUB),
        ("lmstudio://add_mcp?name=github&config=" + base64_of(GITHUB, url_safe=True).rstrip("="), "github", GITHUB),
        (
            "goose://extension?cmd=npx&arg=-y&arg=%40a%2Fdocs&id=docs&name=Docs&description=About&timeout=300",
            "docs",
            {"command": "npx", "args": ["-y", "@a/docs"], "description": "About"},
        ),
    ],
)
def test_each_usual_shape_is_understood(text: str, name: str, entry: dict[str, Any], paths: Paths) -> None:
    found = one(text)
    assert (found.name, found.entry, found.problem) == (name, entry, "")
    add_server(paths.servers_file, name, entry)
    environ: dict[str, str] = dict.fromkeys(("NAME", "TOKEN", "USERNAME", "x", "w", "FIGMA"), "v")
    assert [each.name for each in read_configuration(paths.servers_file, environ).definitions] == [name]


def test_several_servers_at_once() -> None:
    found = parse('{"mcpServers": {"a": {"command": "x"}, "b": {"url": "https://b.example/"}}}')
    assert [each.name for each in found] == ["a", "b"]


def test_a_link_says_what_has_to_be_entered() -> None:
    config = {
        "name": "docs",
        "command": "docs",
        "env": {"KEY": "${input:key}"},
        "inputs": [{"id": "key", "type": "promptString", "description": "Your key", "password": True}],
    }
    assert one("vscode:mcp/install?" + quote(json.dumps(config))).asked == {"key": "Your key"}
    link = "goose://extension?cmd=npx&arg=docs&name=docs&env=API_KEY%3DYour%20key"
    assert list(one(link).asked) == ["API_KEY"]
    assert one(link).entry["env"] == {"API_KEY": "${keyring:API_KEY}"}


def test_a_link_s_arguments_are_kept_to_the_last_character() -> None:
    arguments = ["-c", "x" * 4000, "\u202egnp.exe", "; rm -rf ~", "two\nlines", ""]
    link = "cursor://anysphere.cursor-deeplink/mcp/install?name=a&config=" + quote(
        base64_of({"command": "sh", "args": arguments})
    )
    assert one(link).entry["args"] == arguments


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 1}', "there is no server in it"),
        ("{", "its JSON is wrong at line 1, column 2"),
        ('{"mcpServers": {}}', "it has no servers"),
        ('say "x', "a quotation mark is missing"),
        ("say 'x", "a quotation mark is missing"),
        (r'C:\x.exe "y', "a quotation mark is missing"),
        ("KEY=value", "there is no command in it"),
        ("", "there is no command in it"),
        ("https://a.example/ --flag", "a URL has no spaces"),
        ("{" * 100_000, "its JSON is"),
        ("a\0b", "it holds a character"),
        ("curl https://x.example | sh", "it needs a shell"),
        ("npx a && npx b", "it needs a shell"),
        ("npx $(cat x)", "it needs a shell"),
        ("npx `cat x`", "it needs a shell"),
        ('npx "$(cat x)"', "it needs a shell"),
        ("npx a > file", "it needs a shell"),
        ("claude mcp add", "it needs a name"),
        ("claude mcp add x", "it needs a name"),
        ("claude mcp add --dangerous x -- y", "Deskhand does not know the option --dangerous"),
        ("claude mcp add x -- ", "it needs a name"),
        ("claude mcp add --env", "the value of the option --env is missing"),
        ("code --add-mcp", "the JSON behind --add-mcp is missing"),
        ("vscode:mcp/install?x", "the link's configuration can't be read"),
        ("vscode:extension/x", "the link's configuration can't be read"),
        ("cursor://anysphere.cursor-deeplink/mcp/install?name=x&config=%%%", "the link's configuration can't be read"),
        ("goose://extension?name=x", "the link names no server"),
        ("lmstudio://other", "the link names no server"),
        ("vscode:mcp/install?" + "x" * 2**17, "the link is longer than 64 KiB"),
        ("x" * (2**20 + 1), "it is longer than 1 MiB"),
    ],
)
@pytest.mark.timeout(20)
def test_what_is_no_server_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(NotUnderstood) as raised:
        parse(text)
    assert str(raised.value).startswith(reason)


def test_an_entry_with_fields_of_other_types_has_a_problem_and_no_fault_of_ours() -> None:
    for entry in ({"command": "x", "args": 1}, {"command": "x", "transport": {}}, {"command": "x", "env": 1}):
        [found] = parse(json.dumps(entry))
        assert found.problem


def test_nothing_that_is_pasted_is_run(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    command = f"sh -c 'touch {marker}'"
    link = f"goose://extension?cmd=sh&arg=-c&arg={quote(f'touch {marker}')}&name=x"
    texts = [
        command,
        f"A='!touch {marker}' x",
        json.dumps({"x": {"command": "sh", "args": ["-c", f"touch {marker}"], "env": {"A": f"!touch {marker}"}}}),
        f"claude mcp add x -- {command}",
        link,
    ]
    for text in texts:
        assert parse(text)
    assert not marker.exists()


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "a b", "args": ["", "it's", '"x"', "$HOME", "new\nline", "${HOME}/x", "~/y", "&&", "A=b"]},
        {"command": r"C:\My Programs\x.exe", "args": [r"D:\a", "say 'hi' C:\\x", "%A%"]},
    ],
)
def test_a_command_line_reads_back_as_the_same_command(entry: dict[str, Any]) -> None:
    assert one(command_line(entry)).entry == entry


def test_a_home_folder_is_put_in_where_a_shell_would(home: Path) -> None:
    assert one("npx files ~/Documents '~/x' a~/b").entry["args"] == ["files", f"{home}/Documents", "~/x", "a~/b"]


def test_values_of_deskhand_s_own_entry_mean_what_they_mean_in_its_file() -> None:
    entry = {"command": "x", "env": {"A": "!op read x", "B": "$HOME"}}
    [found] = parse_own(json.dumps(entry))
    assert found.entry == entry
