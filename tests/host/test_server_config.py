"""Server definitions: what is read, what is refused and how it is told, and what an edit leaves as it was."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop.errors import AssistantError
from desktop.host.server_config import Configuration, ServerDefinition
from desktop.host.server_references import keyring_name, resolve
from desktop.host.servers_file import add_server, read_configuration, remove_server, set_disabled
from desktop.log import redacted, without_secrets

SECRET = "s3cr3t-value"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mcp.json"


def read(
    file: Path, servers: object, environ: Mapping[str, str] | None = None, key: str = "mcpServers"
) -> Configuration:
    file.write_text(json.dumps({key: servers}))
    return read_configuration(file, environ or {})


def only(configuration: Configuration) -> ServerDefinition:
    assert not configuration.faults, [str(fault) for fault in configuration.faults]
    (definition,) = configuration.definitions
    return definition


def fault(configuration: Configuration) -> tuple[str, str, str]:
    """Code, place and reason of the only fault."""
    (fault,) = configuration.faults
    return fault.code, str(fault.values.get("where", "")), str(fault.values.get("reason", ""))


def test_a_missing_file_is_an_empty_configuration_and_stays_missing(file: Path) -> None:
    assert read_configuration(file) == Configuration(path=file)
    assert not file.exists()


def test_a_stdio_server_is_read_with_all_its_fields(file: Path) -> None:
    definition = only(
        read(
            file,
            {
                "files": {
                    "type": "stdio",
                    "command": "${TOOLS}/server",
                    "args": ["--root", "${env:ROOT}", "${NOWHERE:-default}", "$ROOT"],
                    "env": {"TOKEN": "${keyring:token}"},
                    "cwd": "~/work",
                    "description": "My files",
                    "includeTools": ["read_*"],
                    "excludeTools": ["read_secret"],
                    "timeoutMs": 2000,
                    "toolTimeoutMs": 600000,
                    "protocol": "legacy",
                    "start": "launch",
                    "alwaysAllow": ["of another program"],
                }
            },
            {"TOOLS": "/opt", "ROOT": "/data"},
        )
    )
    assert definition == ServerDefinition(
        name="files",
        kind="stdio",
        command="/opt/server",
        args=("--root", "/data", "default", "$ROOT"),
        env={"TOKEN": "${keyring:token}"},
        cwd=os.path.expanduser("~/work"),
        description="My files",
        include_tools=("read_*",),
        exclude_tools=("read_secret",),
        request_time_limit=2,
        startup_time_limit=2,
        call_time_limit=600,
        protocol="legacy",
        start="launch",
    )


@pytest.mark.parametrize("field", ["url", "httpUrl", "serverUrl"])
def test_an_http_server_is_read_whatever_its_field_is_called(file: Path, field: str) -> None:
    definition = only(read(file, {"docs": {field: "https://example.org/mcp", "headers": {"X-Team": "a b"}}}))
    assert (definition.kind, definition.url, definition.headers) == (
        "http",
        "https://example.org/mcp",
        {"X-Team": "a b"},
    )


@pytest.mark.parametrize(
    ("type_", "kind"), [("http", "http"), ("streamable-http", "http"), ("streamableHttp", "http"), ("sse", "sse")]
)
def test_sse_is_used_only_where_the_type_says_so(file: Path, type_: str, kind: str) -> None:
    assert only(read(file, {"docs": {"type": type_, "url": "http://127.0.0.1:1/sse"}})).kind == kind
    assert only(read(file, {"docs": {"url": "http://127.0.0.1:1/sse"}})).kind == "http"


def test_the_shape_of_vs_code_is_read(file: Path) -> None:
    assert only(read(file, {"git": {"command": "git-mcp"}}, key="servers")).name == "git"


@pytest.mark.parametrize(
    ("entry", "disabled"),
    [({"disabled": True}, True), ({"enabled": False}, True), ({"enabled": True}, False), ({}, False)],
)
def test_disabled_and_enabled_are_both_understood(file: Path, entry: dict[str, Any], disabled: bool) -> None:
    assert only(read(file, {"a": {"command": "x", **entry}})).disabled is disabled


def test_comments_and_trailing_commas_are_read(file: Path) -> None:
    file.write_text(
        '\ufeff// my servers\n{"mcpServers": {/* one */ "a": {"command": "x", "args": ["//no comment",],},}}'
    )
    assert only(read_configuration(file)).args == ("//no comment",)


@pytest.mark.parametrize(
    ("entry", "where", "reason"),
    [
        ([], "", "it is not an object"),
        ({}, "", "it needs either `command` or `url`"),
        ({"command": "x", "url": "https://example.org"}, "", "it needs either `command` or `url`"),
        ({"url": "https://a.org", "httpUrl": "https://a.org"}, "", "it needs either `command` or `url`"),
        ({"command": 7}, "command", "it must be text"),
        ({"command": " "}, "command", "it is empty"),
        ({"command": "a\0b"}, "command", "it holds a character that no process takes"),
        ({"command": "x", "args": "y"}, "args", "it must be a list of texts"),
        ({"command": "x", "args": ["y", 1]}, "args[1]", "it must be text"),
        ({"command": "x", "args": ["\ud800"]}, "args[0]", "it holds a character that no process takes"),
        ({"command": "x", "env": ["A=b"]}, "env", "it must be an object"),
        ({"command": "x", "env": {"PORT": 80}}, "env.PORT", "it must be text"),
        ({"command": "x", "env": {"A=B": "c"}}, "env.?", "it is no name of a variable"),
        ({"command": "x", "headers": {"A": "b"}}, "headers", "it is for servers with a `url`"),
        ({"command": "x", "cwd": 1}, "cwd", "it must be text"),
        ({"command": "x", "disabled": "yes"}, "disabled", "it must be true or false"),
        ({"command": "x", "disabled": None}, "disabled", "it must be true or false"),
        ({"command": "x", "description": ""}, "description", "it is empty"),
        ({"command": "x", "timeoutMs": 99}, "timeoutMs", "it must be a whole number from 100 to 600000"),
        ({"command": "x", "timeoutMs": 600001}, "timeoutMs", "it must be a whole number from 100 to 600000"),
        ({"command": "x", "timeoutMs": 100.1}, "timeoutMs", "it must be a whole number from 100 to 600000"),
        ({"command": "x", "timeoutMs": "1000"}, "timeoutMs", "it must be a whole number from 100 to 600000"),
        ({"command": "x", "timeoutMs": True}, "timeoutMs", "it must be a whole number from 100 to 600000"),
        ({"command": "x", "protocol": "2025"}, "protocol", "it must be one of auto, legacy"),
        ({"command": "x", "start": ["demand"]}, "start", "it must be one of demand, launch, manual"),
        ({"command": "x", "type": "http"}, "type", "it does not fit `command`"),
        ({"command": "x", "type": None}, "type", "it must be one of "),
        ({"url": "https://example.org", "type": "stdio"}, "type", "it does not fit `url`"),
        ({"url": "https://example.org", "type": "websocket"}, "type", "it must be one of "),
        ({"url": "https://example.org", "env": {"A": "b"}}, "env", "it is for servers with a `command`"),
        ({"url": "https://example.org", "headers": {"A b": "c"}}, "headers.?", "it is no name of a header"),
        ({"url": "https://example.org", "headers": {"A": "b\r\nc"}}, "headers.A", "it holds a control character"),
        ({"url": "http://192.168.1.2"}, "url", "plain http is for servers on this computer; use https"),
        ({"command": "x", "env": {"A": "! "}}, "env.A", "it has no command behind its `!`"),
        ({"command": "x", "args": ["${keyring:a}"]}, "args[0]", "a reference to a secret may stand in"),
    ],
)
def test_an_entry_that_is_not_valid_is_named_with_its_field_and_the_others_work(
    file: Path, entry: object, where: str, reason: str
) -> None:
    configuration = read(file, {"good": {"command": "x"}, "bad": entry, "fine": {"command": "y"}})
    assert [definition.name for definition in configuration.definitions] == ["good", "fine"]
    code, at, why = fault(configuration)
    assert (code, at, configuration.faults[0].server) == (
        "configuration_invalid",
        f" at {where}" if where else "",
        "bad",
    )
    assert why.startswith(reason)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org",
        "https://user:password@example.org",
        "https://example.org/#part",
        "example.org",
        "https://",
        "https://a b.org",
        "javascript:alert(1)",
        "https://example.org:port",
    ],
)
def test_an_address_that_must_not_be_reached_is_refused(file: Path, url: str) -> None:
    assert fault(read(file, {"a": {"url": url}}))[1] == " at url"


@pytest.mark.parametrize("name", ["", "-a", "a b", "a/b", "../a", "a" * 81, "ä", "a.b", "a\n"])
def test_a_name_that_is_not_valid_is_refused(file: Path, name: str) -> None:
    configuration = read(file, {name: {"command": "x"}, "good": {"command": "x"}})
    assert fault(configuration)[2].startswith("its name must be")
    assert only(Configuration(configuration.definitions)).name == "good"


def test_the_name_of_the_built_in_server_is_reserved(file: Path) -> None:
    assert fault(read(file, {"deskhand": {"command": "x"}}))[2] == "its name is that of the built-in server"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', ""),
        ('{"mcpServers": {"a": {"command": "x", "command": "y"}}}', " at command"),
        ('{"mcpServers": {"a": {"command": "x", "env": {"B": "1", "B": "2"}}}}', " at env.B"),
        ('{"mcpServers": {"a": {"command": "x"}}, "servers": {"a": {"command": "y"}}}', ""),
    ],
)
def test_what_is_given_twice_is_refused_and_not_guessed(file: Path, text: str, where: str) -> None:
    file.write_text(text)
    configuration = read_configuration(file)
    assert configuration.definitions == ()
    assert fault(configuration)[:2] == ("configuration_invalid", where)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", "its JSON is wrong at line 1, column"),
        (b'{"mcpServers": {\n"a": }}', "its JSON is wrong at line 2, column"),
        (b"", "its JSON is wrong"),
        (b"[]", "it is not a JSON object"),
        (b'{"mcpServers": []}', "it has no object `mcpServers`"),
        (b'{"mcpservers": {}}', "it has no object `mcpServers`"),
        (b'{"mcpServers": {}, "mcpServers": {}}', "it gives its servers twice"),
        (b'{"mcpServers": "\xff"}', "it is not UTF-8 text"),
        (b"[" * 100_000, "it is nested too deeply at line 1, column 102"),
        (b'{"mcpServers": {}}' + b" " * 2**20, "it is longer than 1 MiB"),
        (b"\0\0", "its JSON is wrong at line 1, column 1"),
        (b'{"mcpServers": {}} x', "its JSON is wrong at line 1, column 20"),
        (b'{\n  "mcpServers": {\n    "a": {"command": "x" "args": []}\n}}', "its JSON is wrong at line 3, column 26"),
        (b'{"mcpServers": {"a": {"timeoutMs": ' + b"9" * 5000 + b"}}}", "its JSON is wrong at line 1, column 36"),
        ('{"mcpServers": {}}'.encode("utf-16"), "it is not UTF-8 text"),
        (b'{"mcpServers": {/* no end }}', "its JSON is wrong at line 1, column 17"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_so_and_never_written(file: Path, content: bytes, reason: str) -> None:
    file.write_bytes(content)
    configuration = read_configuration(file)
    assert configuration.definitions == ()
    code, _, why = fault(configuration)
    assert code == "configuration_unreadable" and why.startswith(reason)
    for edit in (
        lambda: add_server(file, "a", {"command": "x"}),
        lambda: remove_server(file, "a"),
        lambda: set_disabled(file, "a", True),
    ):
        with pytest.raises(AssistantError) as raised:
            edit()
        assert raised.value.diagnostic.code == "configuration_unreadable"
    assert file.read_bytes() == content


def test_a_folder_or_a_pipe_in_place_of_the_file_is_told_so(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert fault(read_configuration(tmp_path))[2] == "it is no regular file"
    assert fault(read_configuration(tmp_path / "pipe"))[2] == "it is no regular file"


def test_no_fault_repeats_a_value_of_the_file(file: Path) -> None:
    for entry in (
        {"command": SECRET, "url": SECRET},
        {"command": SECRET, "args": [SECRET, 1]},
        {"command": SECRET, "env": {SECRET + " ": SECRET}, "timeoutMs": SECRET},
        {"url": f"https://{SECRET}@example.org"},
        {"url": "https://example.org", "headers": {"A": SECRET + "\n"}},
        {"command": f"${{NOT_SET}} {SECRET}"},
        {"command": "x", "type": SECRET},
    ):
        (each,) = read(file, {"a": entry}).faults
        assert SECRET not in str(each) and SECRET not in repr(each)
    file.write_text(f'{{"mcpServers": {{"a": {SECRET}}}}}')
    assert SECRET not in repr(read_configuration(file))


def test_a_variable_that_is_not_set_is_named(file: Path) -> None:
    for entry in (
        {"command": "${NOT_SET}"},
        {"command": "x", "args": ["a", "${env:NOT_SET}"]},
        {"command": "x", "env": {"A": "$NOT_SET"}},
        {"url": "https://${NOT_SET}/"},
        {"url": "https://example.org", "headers": {"Authorization": "Bearer ${NOT_SET}"}},
    ):
        (each,) = read(file, {"a": entry}).faults
        assert (each.code, each.server, each.values["variable"]) == ("variable_missing", "a", "NOT_SET")
        assert str(each.values["where"]).startswith(" at ") and str(each.values["place"]).startswith(
            " (line 1, column "
        )


def test_what_a_variable_stands_for_is_not_looked_at_again(file: Path) -> None:
    definition = only(read(file, {"a": {"command": "${A}", "args": ["${bad-name}", "$${A}"]}}, {"A": "${B}"}))
    assert (definition.command, definition.args) == ("${B}", ("${bad-name}", "$${B}"))


@pytest.mark.anyio
async def test_values_are_resolved_for_use_and_stay_references_in_the_definition(file: Path) -> None:
    environ = {"TOKEN": "${keyring:x} $TOKEN !", "EMPTY": ""}
    written = {
        "A": "Bearer ${TOKEN}",
        "B": "$TOKEN$$TOKEN$!x",
        "C": "${EMPTY:-none} ${bad-name} $1",
        "D": "${keyring:key}/${input:key}",
    }
    asked: list[str] = []

    async def secret(name: str) -> str | None:
        asked.append(name)
        return SECRET

    definition = only(read(file, {"a": {"command": "x", "env": written}}, environ))
    assert definition.env == written
    assert await resolve("a", definition.env, secret, environ) == {
        "A": "Bearer ${keyring:x} $TOKEN !",
        "B": "${keyring:x} $TOKEN !$TOKEN!x",
        "C": "none ${bad-name} $1",
        "D": f"{SECRET}/{SECRET}",
    }
    assert set(asked) == {keyring_name("a", "key")}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "value", "written", "logged"),
    [
        (
            "DATABASE_URL",
            "postgres://user:pw-canary-1@host/db",
            "no login with pw-canary-1",
            "no login with [redacted]",
        ),
        ("HOOK", "https://host/hook?x=canary-2", "GET https://host/hook?x=canary-2", "GET [redacted]"),
        ("GITHUB_PAT", "canaryletters", "bad canaryletters", "bad [redacted]"),
        ("PLAIN", "canary-3-0123456789", "bad canary-3-0123456789", "bad [redacted]"),
        ("FOLDER", "/home/person/data-1", "no /home/person/data-1", "no /home/person/data-1"),
        (
            "SITE",
            "https://host.example:8080/a/b",
            "at https://host.example:8080/a/b",
            "at https://host.example:8080/a/b",
        ),
        ("MODE", "production", "in production", "in production"),
        ("PORT", "12345678", "port 12345678", "port 12345678"),
    ],
)
async def test_no_log_shows_a_value_that_may_be_secret_whatever_its_name(
    name: str, value: str, written: str, logged: str
) -> None:
    async def secret(_name: str) -> str | None:
        return None

    await resolve("a", {name: value}, secret, {})
    assert redacted(written) == logged


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "value", "text", "sent"),
    [
        ("Authorization", "Bearer canary-4-4444", "it got canary-4-4444", "it got [redacted]"),
        ("API_KEY", "${keyring:key}", "it got canaryofthekeyring", "it got [redacted]"),
        ("URL", "postgres://user:pw-canary-5@host/db", "pw-canary-5", "[redacted]"),
        ("MAX_TOKENS", "10000000", "of 10000000", "of 10000000"),
        ("PASS_THROUGH", "everything", "everything", "everything"),
        ("GREETING", "Hello, wonderful!", "Hello, wonderful!", "Hello, wonderful!"),
    ],
)
async def test_a_model_is_sent_no_secret_of_a_server_and_no_holes_elsewhere(
    name: str, value: str, text: str, sent: str
) -> None:
    async def secret(_name: str) -> str | None:
        return "canaryofthekeyring"

    await resolve("a", {name: value}, secret, {})
    assert without_secrets(text) == sent


@pytest.mark.anyio
@pytest.mark.parametrize(("kept", "code"), [(None, "secret_missing"), ("a\r\nb", "configuration_invalid")])
async def test_a_secret_that_is_missing_or_does_not_fit_is_told_without_its_text(kept: str | None, code: str) -> None:
    async def secret(_name: str) -> str | None:
        return kept

    with pytest.raises(AssistantError) as raised:
        await resolve("a", {"A": "${keyring:key}"}, secret, {})
    assert raised.value.diagnostic.code == code
    assert "a\r\nb" not in str(raised.value)


def test_a_server_reaches_no_secret_of_another_or_of_a_model() -> None:
    assert keyring_name("a", "key") == "server:a:key"
    assert not keyring_name("a", "model:anthropic").startswith("model:")


def test_the_identity_follows_what_is_reached_and_nothing_else(file: Path) -> None:
    def identity(**fields: Any) -> str:
        entry = {"command": "x", "args": ["y"], "env": {"A": "b"}, **fields}
        return only(read(file, {fields.pop("name", "a"): entry}, {"V": "1"})).identity

    base = identity()
    assert identity(type="stdio", description="d", timeoutMs=500, disabled=True, start="manual") == base
    assert len({base, identity(command="z"), identity(args=[]), identity(env={"A": "c"}), identity(cwd="/")}) == 5


@pytest.mark.parametrize(
    ("include", "exclude", "offered"),
    [
        (None, [], {"read_file", "write_file", "read.me"}),
        (["read_*"], [], {"read_file"}),
        (["*file"], ["write*"], {"read_file"}),
        ([], [], set()),
        (["read.*"], [], {"read.me"}),
        (["READ_FILE", "file"], [], set()),
        (None, ["*"], set()),
    ],
)
def test_filters_match_whole_names(include: list[str] | None, exclude: list[str], offered: set[str]) -> None:
    definition = ServerDefinition(
        "a", "stdio", include_tools=None if include is None else tuple(include), exclude_tools=tuple(exclude)
    )
    assert {name for name in ("read_file", "write_file", "read.me") if definition.offers(name)} == offered


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=8,
)
fields = st.dictionaries(
    st.sampled_from(["command", "args", "env", "url", "headers", "type", "disabled", "timeoutMs", "cwd", "start"]),
    json_values | st.sampled_from(["x", "http", "https://example.org", "${A}", ["y"], {"A": "$b"}, 500]),
)


@given(st.dictionaries(st.text(), fields | json_values, max_size=4))
def test_whatever_a_file_holds_each_server_is_either_read_or_named(servers: dict[str, Any]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        configuration = read(Path(folder) / "mcp.json", servers)
    assert len(configuration.definitions) + len(configuration.faults) == len(servers)
    for each in configuration.faults:
        assert str(each)
