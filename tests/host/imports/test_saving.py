"""What is taken over is written whole or not at all, and secrets are told from what is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from desktop.errors import AssistantError
from desktop.host.config_import import read_source
from desktop.host.secret_values import looks_secret, secrets_of, with_references
from desktop.host.servers_file import add_servers, read_entries
from desktop.paths import Paths


def reason(call: Any, *arguments: Any) -> str:
    with pytest.raises(AssistantError) as raised:
        call(*arguments)
    return str(raised.value.diagnostic.values["reason"])


def test_several_servers_are_written_at_once_or_none(paths: Paths) -> None:
    file = paths.servers_file
    assert read_entries(file) == {}
    add_servers(file, {"a": {"command": "x"}, "b": {"url": "https://b.example/"}}, {})
    assert read_entries(file) == {"a": {"command": "x"}, "b": {"url": "https://b.example/"}}
    before = file.read_bytes()
    assert (
        reason(add_servers, file, {"c": {"command": "y"}, "a": {"command": "z"}}, {}) == "a server of that name exists"
    )
    assert reason(add_servers, file, {"c": {"command": "y"}, "d": {"command": 1}}, {}) == "it must be text"
    assert file.read_bytes() == before


def test_only_what_was_seen_is_replaced(paths: Paths) -> None:
    file = paths.servers_file
    add_servers(file, {"a": {"command": "x"}}, {})
    seen = read_entries(file)
    add_servers(file, {"a": {"command": "y"}}, seen)
    assert read_entries(file) == {"a": {"command": "y"}}
    changed = "the server of that name has been changed meanwhile"
    assert reason(add_servers, file, {"a": {"command": "z"}}, seen) == changed
    assert reason(add_servers, file, {"gone": {"command": "z"}}, {"gone": {"command": "z"}}) == changed
    assert read_entries(file) == {"a": {"command": "y"}}


def test_what_was_read_is_what_is_saved(tmp_path: Path, paths: Paths) -> None:
    file = tmp_path / "mcp.json"
    file.write_text('{"mcpServers": {"a": {"command": "reviewed"}}}')
    [group] = read_source(file).groups
    file.write_text('{"mcpServers": {"a": {"command": "changed"}}}')
    add_servers(paths.servers_file, {each.name: each.entry for each in group.candidates}, {})
    assert read_entries(paths.servers_file) == {"a": {"command": "reviewed"}}


def test_deskhand_s_own_file_is_no_source(tmp_path: Path, paths: Paths) -> None:
    add_servers(paths.servers_file, {"a": {"command": "x"}}, {})
    (tmp_path / "link").symlink_to(paths.servers_file)
    for file in (paths.servers_file, tmp_path / "link"):
        with pytest.raises(AssistantError) as raised:
            read_source(file, own_file=paths.servers_file)
        assert raised.value.diagnostic.values["reason"] == "it is Deskhand's own file"


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("API_KEY", "abc", True),
        ("GITHUB_PERSONAL_ACCESS_TOKEN", "x1", True),
        ("DB_PASSWORD", "hunter2", True),
        ("GITHUB_PAT", "abc", True),
        ("Authorization", "Bearer abc", True),
        ("X-Whatever", "Bearer abcdef", True),
        ("ANY", "sk-proj-abcdefghijklmnop", True),
        ("ANY", "ghp_abcdefghijklmnopqrstuvwx", True),
        ("ANY", "xoxb-1234567890-abc", True),
        ("ANY", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.abc", True),
        ("ANY", "postgres://user:hunter2@db.example/x", True),
        ("ANY", "a8f5f167f44f4964e6c998dee827110c", True),
        ("API_KEY", "", False),
        ("MAX_TOKENS", "4096", False),
        ("AUTH_ENABLED", "true", False),
        ("TOKEN_FILE", "~/.config/token", False),
        ("AUTH_URL", "https://login.example/authorize", False),
        ("LOG_LEVEL", "debug", False),
        ("MODEL", "a-very-long-name-of-something-plain", False),
        ("ROOT", "/srv/data/a8f5f167f44f4964e6c998dee827110c", False),
        ("COUNT", "123456789012345678901234567890", False),
    ],
)
def test_secrets_are_told_by_their_name_or_their_form(name: str, value: str, secret: bool) -> None:
    assert looks_secret(name, value) is secret


def test_secrets_become_references_and_the_rest_stays() -> None:
    entry = {
        "command": "x",
        "env": {
            "API_KEY": "pa$$w",
            "OTHER_TOKEN": "${TOKEN}",
            "LEVEL": "debug",
            "SECRET": "$!bang",
            "KEY": "!op read x",
        },
    }
    secrets = secrets_of(entry)
    assert secrets == {"API_KEY": "pa$w", "SECRET": "!bang"}
    assert with_references(entry, secrets)["env"] == {
        "API_KEY": "${keyring:API_KEY}",
        "OTHER_TOKEN": "${TOKEN}",
        "LEVEL": "debug",
        "SECRET": "${keyring:SECRET}",
        "KEY": "!op read x",
    }
    assert json.dumps(entry).count("pa$$w") == 1
    header = {"url": "https://a.example/", "headers": {"X-Api.Key @": "abc"}}
    assert with_references(header, ["X-Api.Key @"])["headers"] == {"X-Api.Key @": "${keyring:X-Api.Key__}"}
