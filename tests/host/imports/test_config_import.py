"""Servers of other programs: found where these keep them, read within limits, previewed, and never run by any of it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from desktop.errors import AssistantError
from desktop.host.config_import import Source, find_sources, known_places, read_source
from desktop.host.foreign_document import NotUnderstood, groups_of
from desktop.host.foreign_entry import Candidate, literal, value_itself
from desktop.host.server_references import expand_value
from desktop.host.servers_file import add_server, read_configuration
from desktop.paths import Paths

FILES = Path(__file__).with_name("files")
NAMES = sorted(each.name for each in FILES.iterdir())
BAD_ENTRY: dict[str, Any] = {"command": "x", "surprise": 1}


@pytest.fixture
def marker(tmp_path: Path) -> Iterator[Path]:
    """The file that the commands in the test's files would make; none ever does."""
    file = tmp_path / "marker"
    yield file
    assert not file.exists()


def written(name: str, marker: Path) -> Path:
    file = marker.parent / name
    file.write_text((FILES / name).read_text().replace("@MARKER@", str(marker)))
    return file


def read(name: str, marker: Path, **environ: str) -> dict[str, Candidate]:
    source = read_source(written(name, marker), environ=environ)
    return {each.name: each for group in source.groups for each in group.candidates}


def reason(file: Path) -> str:
    with pytest.raises(AssistantError) as raised:
        read_source(file)
    assert raised.value.diagnostic.code == "import_unreadable"
    return str(raised.value.diagnostic.values["reason"])


def one(entry: object, **section: Any) -> Candidate:
    [group] = groups_of(json.dumps({"mcpServers": {"a": entry}, **section}))
    return group.candidates[0]


# Each program's own file


def test_claude_desktop(marker: Path) -> None:
    found = read("claude_desktop_config.json", marker)
    assert found["filesystem"].entry == {
        "command": "npx",
        "args": ["-y", "@modelcontextprotocol/server-filesystem", "/Users/username/Desktop"],
    }
    assert found["marker"].problem == ""


def test_claude_code_keeps_its_folders_apart(marker: Path) -> None:
    source = read_source(written("claude.json", marker), environ={})
    assert [(group.label, [each.name for each in group.candidates]) for group in source.groups] == [
        ("", ["sentry", "airtable", "signed"]),
        ("/home/me/second", ["marker"]),
    ]
    found = {each.name: each for each in source.groups[0].candidates}
    assert found["airtable"].entry["env"] == {"AIRTABLE_API_KEY": "${AIRTABLE_KEY:-none}"}
    assert found["signed"].problem == "Deskhand does not know the field headersHelper"


def test_cursor(marker: Path, home: Path) -> None:
    found = read("cursor_mcp.json", marker)
    assert found["marker"].problem == "Deskhand does not know the field envFile"
    assert found["remote"].entry == {"url": "http://localhost:3000/sse", "headers": {"API_KEY": "value"}}
    assert found["home"].entry == {"command": f"{home}/bin/server", "args": [str(home)], "env": {"WHERE": str(home)}}


def test_vs_code(marker: Path) -> None:
    found = read("vscode_mcp.json", marker)
    assert found["github"].entry == {"type": "http", "url": "https://api.githubcopilot.com/mcp"}
    assert found["github"].left_out == ("gallery",)
    assert found["perplexity"].entry["env"] == {"PERPLEXITY_API_KEY": "${input:perplexity-key}", "PORT": "8080"}
    assert found["perplexity"].asked == {"perplexity-key": "Perplexity API Key"}
    assert found["sandboxed"].problem == "Deskhand does not know the field sandboxEnabled"
    assert (found["watched"].entry["args"], found["watched"].left_out) == (["${workspaceFolder}/server.js"], ("dev",))
    assert "may stand in `env` and `headers` only" in found["inArgument"].problem
    assert found["strange"].problem == "at args[0]: Deskhand does not know what `${config:editor.fontSize}` stands for"


def test_vs_code_s_settings(marker: Path) -> None:
    assert list(read("vscode_settings.json", marker)) == ["marker"]


def test_codex(marker: Path) -> None:
    found = read("codex_config.toml", marker, LOCAL_TOKEN="x")
    assert found["context7"].entry == {
        "command": "npx",
        "args": ["-y", "@upstash/context7-mcp"],
        "env": {"MY_ENV_VAR": f"$!touch {marker}", "LOCAL_TOKEN": "${LOCAL_TOKEN}", "OTHER_TOKEN": "${OTHER_TOKEN}"},
        "startupTimeoutMs": 20_000,
        "toolTimeoutMs": 45_500,
        "includeTools": ["open", "screenshot"],
    }
    assert found["context7"].missing == ("OTHER_TOKEN",)
    assert found["figma"].entry == {
        "url": "https://mcp.figma.com/mcp",
        "disabled": True,
        "headers": {"X-Figma-Region": "$$us-east-1", "Authorization": "Bearer ${FIGMA_OAUTH_TOKEN}"},
    }
    assert found["scoped"].entry == {"url": "https://mcp.example.com/mcp", "oauth": {"scopes": ["files:read"]}}
    assert found["marker"].problem == "at required: Deskhand has no server that must be there"


def test_lm_studio(marker: Path) -> None:
    assert read("lm_studio_mcp.json", marker)["hf-mcp-server"].entry["headers"] == {
        "Authorization": "Bearer hf_canaryCanaryCanary1234"
    }


def test_goose_s_own_parts_are_no_servers_and_its_secrets_are_asked_for(marker: Path) -> None:
    found = read("goose_config.yaml", marker)
    assert list(found) == ["github", "remote", "marker"]
    assert found["github"].entry == {
        "command": "npx",
        "args": ["-y", "@modelcontextprotocol/server-github"],
        "env": {
            "LOG": f"$!touch {marker}",
            "GITHUB_PERSONAL_ACCESS_TOKEN": "${keyring:GITHUB_PERSONAL_ACCESS_TOKEN}",
        },
        "toolTimeoutMs": 300_000,
    }
    assert list(found["github"].asked) == ["GITHUB_PERSONAL_ACCESS_TOKEN"]
    assert found["remote"].entry["headers"] == {"Authorization": "Bearer ${keyring:REMOTE_TOKEN}"}
    assert found["remote"].entry["disabled"] is True
    assert found["marker"].problem.startswith("Deskhand does not know the field code")


def test_windsurf(marker: Path) -> None:
    found = read("windsurf_mcp_config.json", marker)
    assert found["github-mcp-server"].entry["excludeTools"] == ["delete_file"]
    assert found["github-mcp-server"].missing == ("GITHUB_TOKEN",)
    assert found["remote-http"].entry["serverUrl"] == "https://mcp.example.com/mcp"
    assert (found["marker"].entry["disabled"], found["marker"].left_out) == (True, ("alwaysAllow",))


def test_zed(marker: Path) -> None:
    found = read("zed_settings.json", marker)
    assert found["older"].entry == {"command": "node", "args": ["/srv/x.js"], "env": {"A": "b"}}
    assert found["marker"].problem == ""
    assert "extension of that program" in found["extension"].problem


@pytest.mark.parametrize("name", NAMES)
def test_what_can_be_taken_over_is_valid_in_deskhand_s_own_file(name: str, marker: Path, paths: Paths) -> None:
    taken = [each for each in read(name, marker).values() if not each.problem]
    assert taken
    for each in taken:
        add_server(paths.servers_file, each.name, each.entry)
    environ = {variable: "x" for each in taken for variable in each.missing} | {"workspaceFolder": "/w"}
    assert [each.name for each in read_configuration(paths.servers_file, environ).definitions] == [
        each.name for each in taken
    ]


# What stays literal, what is refused


@pytest.mark.parametrize(
    "value", ["!touch x", "5$ or $HOME", "$$", "$!", "!$", "a$", "pa$$word", "", "!", "${", "$[x]"]
)
def test_a_value_that_is_literal_elsewhere_stays_literal(value: str) -> None:
    if "${" in value:
        assert "without its end" in one({"command": "x", "env": {"A": value}}).problem
        return
    stored = one({"command": "x", "env": {"A": value}}).entry["env"]["A"]
    assert stored == literal(value)
    assert not stored.startswith("!")
    assert expand_value(stored, {"HOME": "wrong", "x": "wrong"}, {}) == value
    assert value_itself(stored) == value


@pytest.mark.parametrize("value", ["!op read x", "$HOME", "${HOME}", "a${keyring:b}", "$$$HOME"])
def test_a_value_that_refers_to_something_has_no_text_of_its_own(value: str) -> None:
    assert value_itself(value) is None


@pytest.mark.parametrize(
    "text",
    ["${command:x.y}", "${file}", "${workspaceFolder:other}", "${input:}", "${", "${A:-${B}}", "${a-b}", "${config:a}"],
)
@pytest.mark.parametrize("place", ["command", "args", "env", "url", "headers"])
def test_variables_that_deskhand_does_not_know_are_refused_wherever_they_stand(text: str, place: str) -> None:
    entry: dict[str, Any] = {"url": f"https://x.example/{text}"} if place == "url" else {"command": "x"}
    if place == "headers":
        entry = {"url": "https://x.example/", "headers": {"A": text}}
    elif place == "args":
        entry["args"] = [text]
    elif place == "env":
        entry["env"] = {"A": text}
    elif place == "command":
        entry["command"] = text
    assert one(entry).problem


def test_an_open_folder_s_variable_stays_and_is_told(tmp_path: Path) -> None:
    entry = {"command": "x", "args": ["${workspaceFolder}/a"]}
    assert one(entry).entry["args"] == ["${workspaceFolder}/a"]
    assert one(entry).missing == ("workspaceFolder",)
    project = tmp_path / "project" / ".cursor" / "mcp.json"
    project.parent.mkdir(parents=True)
    project.write_text(json.dumps({"mcpServers": {"a": entry}}))
    [group] = read_source(project).groups
    assert group.candidates[0].entry["args"] == [f"{tmp_path}/project/a"]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("x", "it is not an object"),
        ({"command": "x", "surprise": 1}, "Deskhand does not know the field surprise"),
        ({"command": "x", "\x1b[31m": 1}, "Deskhand does not know the field ?"),
        ({"command": "x", "env": {"A": ["canary"]}}, "at env.A: it must be text"),
        ({"command": "x", "args": "canary"}, "at args: it must be a list of texts"),
        ({"command": "x", "url": "https://a.example"}, "it needs either `command` or `url`"),
        ({"url": "ftp://canary"}, "at url: it must be an http or https address"),
        ({"url": "http://canary.example/"}, "at url: plain http is for servers on this computer"),
        ({"type": {}, "command": "x"}, "at type: it must be one of"),
        ({"type": "ws", "url": "https://a.example"}, "at type: it must be one of"),
        ({"source": "extension", "settings": {"a": 1}}, "it is an extension of that program"),
        ({"command": "x", "env": {}, "environment": {}}, "at environment: it has both"),
        ({"command": {"path": "x", "more": 1}}, "at command.more: Deskhand does not know the field"),
    ],
)
def test_an_entry_that_cannot_be_taken_over_says_why_and_repeats_no_value(entry: object, problem: str) -> None:
    found = one(entry)
    assert found.problem.startswith(problem)
    assert "canary" not in found.problem


def test_one_bad_entry_does_not_touch_the_others() -> None:
    [group] = groups_of(json.dumps({"mcpServers": {"bad": BAD_ENTRY, "good": {"command": "x"}}}))
    assert [bool(each.problem) for each in group.candidates] == [True, False]


def test_opencode_s_form_is_read() -> None:
    text = (
        '{"mcp": {"a": {"type": "local", "command": ["bun", "x", "y"], "environment": {"A": "b"}, "enabled": false}}}'
    )
    [group] = groups_of(text)
    assert group.candidates[0].entry == {
        "command": "bun",
        "args": ["x", "y"],
        "env": {"A": "b"},
        "enabled": False,
    }
    assert group.candidates[0].problem == ""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("required = true", "at required"),
        ('experimental_environment = "remote"', "Deskhand does not know the field experimental_environment"),
        ('default_tools_approval_mode = "approve"', "Deskhand does not know the field default_tools_approval_mode"),
        ('enabled_tools = ["a*"]', "at enabled_tools: a `*`"),
        ("startup_timeout_sec = 1\nstartup_timeout_ms = 1000", "at startup_timeout_sec: it is given in seconds"),
        ("tool_timeout_sec = nan", "at tool_timeout_sec: it must be a number"),
        ("tool_timeout_sec = inf", "at tool_timeout_sec: it must be a number"),
        ("tool_timeout_sec = 0.0999", "at tool_timeout_sec: it must come to"),
        ("tool_timeout_sec = 601", "at tool_timeout_sec: it must come to"),
        ("tool_timeout_sec = true", "at tool_timeout_sec: it must be a number"),
        ('env = { A = "1" }\nenv_vars = ["A"]', "at env_vars.A: it is given a value elsewhere"),
        ('env_vars = [{ name = "A", source = "remote" }]', "at env_vars: a variable of another computer"),
        ('args = ["${HOME}"]', "at args[0]: a `${` in it is text to that program"),
        ("enabled = 1", "at enabled: it must be true or false"),
    ],
)
def test_codex_refusals(text: str, problem: str) -> None:
    [group] = groups_of(f'[mcp_servers.a]\ncommand = "x"\n{text}\n')
    assert group.candidates[0].problem.startswith(problem)


def test_an_extension_of_goose_without_a_kind_is_refused() -> None:
    [group] = groups_of("extensions:\n  a: {type: {}, cmd: x}\n")
    assert group.candidates[0].problem == "at type: Deskhand does not know this kind of extension"


def test_codex_headers_are_compared_without_case() -> None:
    text = """
        [mcp_servers.a]
        url = "https://a.example/"
        http_headers = { authorization = "Bearer x" }
        bearer_token_env_var = "A"
    """
    [group] = groups_of(text)
    assert group.candidates[0].problem.startswith("at bearer_token_env_var.Authorization: it is given a value")


# Files


def test_limits_of_a_file(tmp_path: Path) -> None:
    large = tmp_path / "large.json"
    large.write_text('{"mcpServers": {}}' + " " * 2**20)
    assert reason(large) == "it is longer than 1 MiB"
    assert reason(tmp_path) in ("it is no regular file", "it is a folder")
    assert reason(tmp_path / "missing") == "there is no such file"
    (tmp_path / "latin").write_bytes(b'{"mcpServers": {"\xe9": {}}}')
    assert reason(tmp_path / "latin") == "it is not UTF-8 text"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no such files here")
@pytest.mark.timeout(10)
def test_a_pipe_is_refused_at_once_and_a_link_is_followed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert reason(tmp_path / "pipe") == "it is no regular file"
    (tmp_path / "link").symlink_to(FILES / "lm_studio_mcp.json")
    assert read_source(tmp_path / "link").count == 2


def test_a_hundred_servers_over_all_groups_and_no_more(tmp_path: Path) -> None:
    def servers(number: int, first: int = 0) -> dict[str, Any]:
        return {f"s{n}": {"command": "x"} for n in range(first, first + number)}

    content = {"mcpServers": servers(51), "projects": {"/a": {"mcpServers": servers(49)}}}
    file = tmp_path / "many.json"
    file.write_text(json.dumps(content))
    assert read_source(file).count == 100
    content["projects"]["/b"] = {"mcpServers": servers(2)}
    file.write_text(json.dumps(content))
    assert reason(file) == "it has 102 servers; 100 can be taken over at once"


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"mcpServers": []}',
        '{"mcpServers": {}}',
        '{"a": ' * 5000,
        "[" * 5000,
        "a = " + "[" * 5000,
        "a: " + "[" * 5000,
        "a: &a [x]\nb: *a",
        "extensions: !!python/object/apply:os.system [touch x]",
        "x: \x00",
        "just words",
        "mcp_servers = 1",
        "canary = {",
    ],
)
def test_what_has_no_servers_is_refused_without_quoting_it(text: str) -> None:
    with pytest.raises(NotUnderstood) as raised:
        groups_of(text)
    assert "canary" not in str(raised.value)


def test_a_name_that_is_given_twice_cannot_be_taken_over() -> None:
    [group] = groups_of('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}')
    assert [each.problem for each in group.candidates] == ["its name is given twice"]


# Places


def test_files_are_found_where_the_programs_keep_them(marker: Path, home: Path) -> None:
    places = {
        "claude_desktop_config.json": ".config/Claude/claude_desktop_config.json",
        "claude.json": ".claude.json",
        "cursor_mcp.json": ".cursor/mcp.json",
        "vscode_mcp.json": ".config/Code/User/mcp.json",
        "vscode_settings.json": ".config/Code/User/settings.json",
        "codex_config.toml": ".codex/config.toml",
        "lm_studio_mcp.json": ".lmstudio/mcp.json",
        "goose_config.yaml": ".config/goose/config.yaml",
        "windsurf_mcp_config.json": ".codeium/windsurf/mcp_config.json",
        "zed_settings.json": ".config/zed/settings.json",
    }
    assert find_sources({}) == []
    for name, place in places.items():
        (home / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(written(name, marker), home / place)
    (home / ".config/VSCodium/User").mkdir(parents=True)
    (home / ".config/VSCodium/User/settings.json").write_text("{}")  # without servers it is not offered
    found: list[Source] = find_sources({})
    assert [(each.program, each.file) for each in found] == [
        ("Claude Desktop", home / places["claude_desktop_config.json"]),
        ("Claude Code", home / places["claude.json"]),
        ("Cursor", home / places["cursor_mcp.json"]),
        ("VS Code", home / places["vscode_mcp.json"]),
        ("VS Code", home / places["vscode_settings.json"]),
        ("Codex", home / places["codex_config.toml"]),
        ("LM Studio", home / places["lm_studio_mcp.json"]),
        ("Goose", home / places["goose_config.yaml"]),
        ("Windsurf", home / places["windsurf_mcp_config.json"]),
        ("Zed", home / places["zed_settings.json"]),
    ]


def test_a_file_of_a_program_that_cannot_be_read_is_found_with_the_reason(home: Path) -> None:
    (home / ".claude.json").write_text('{"mcpServers": {"a": {"command": "x"}}}' + " " * 2**20)
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text("{")
    assert [(each.program, each.count, each.fault) for each in find_sources({})] == [
        ("Claude Code", 0, "it is longer than 1 MiB"),
        ("Cursor", 0, "its JSON is wrong at line 1, column 2"),
    ]


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        ("linux", "/h/.config/Claude/claude_desktop_config.json"),
        ("darwin", "/h/Library/Application Support/Claude/claude_desktop_config.json"),
        ("win32", "/h/AppData/Roaming/Claude/claude_desktop_config.json"),
    ],
)
def test_each_system_has_its_places(platform: str, expected: str) -> None:
    places = {file.as_posix() for _, file in known_places({}, platform=platform, home=Path("/h"))}
    assert expected in places
    assert "/h/.cursor/mcp.json" in places
