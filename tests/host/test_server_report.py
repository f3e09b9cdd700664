"""A report about a server: what its authors need, and nothing that is the person's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from desktop import log as own_log
from desktop.errors import Diagnostic
from desktop.host.server_config import ServerDefinition
from desktop.host.server_log import ServerLog
from desktop.host.server_report import report
from desktop.host.server_state import Failure, ServerState

FAILED = ServerState(
    "failed", Failure("handshake", Diagnostic("server_exited", values={"status": " with status 3"}), 3)
)


def test_it_names_versions_state_failure_and_last_lines_and_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_log, "_secrets", dict[str, bool]())
    own_log.redact("canary-of-the-keyring")
    log = ServerLog(None)
    log.feed(b"starting\ncan't use canary-of-the-keyring ``` in /x\n")
    log.note_request("initialize", 1, 0.5, 120, "connection_failed")
    definition = ServerDefinition(
        "mailer",
        "stdio",
        command=str(Path.home() / "tools" / "mail-server"),
        args=("--root", "canary-argument"),
        env={"MAIL_TOKEN": "canary-variable"},
        cwd="/canary-folder",
    )
    text = report(definition, FAILED, log.lines())
    assert "- Deskhand: " in text and "- System: " in text
    assert "- Server: mailer\n- Kind: stdio\n" in text
    assert "- Reached by: mail-server with 2 arguments and 1 environment variables\n" in text
    assert "Failure at stage “handshake”" in text
    assert "[server_exited] The server's process ended with status 3." in text
    assert "- Exit status: 3\n" in text
    assert "stderr   starting\n" in text and "stderr   can't use [redacted] ``` in /x\n" in text
    assert "request  initialize #1 500 ms, 120 B, connection_failed\n" in text
    assert text.endswith("\n````\n")  # longer than the fence that the server wrote
    assert "canary" not in text


def test_of_a_remote_server_it_names_the_origin_alone() -> None:
    definition = ServerDefinition(
        "docs", "http", url="https://user:canary@example.com:8443/canary/mcp?key=canary", headers={"X-Key": "canary"}
    )
    text = report(definition, ServerState("connected", protocol_version="2026-07-28", counts={"tool": 3}), [])
    assert "- Reached by: https://example.com:8443 with 1 headers\n" in text
    assert "- Protocol: 2026-07-28\n- State: connected\n- Offers: 3 tools\n" in text
    assert "canary" not in text


def test_the_home_folder_is_shortened_wherever_it_is_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "ann"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "ann"))
    log = ServerLog(None)
    log.feed(f"reading {tmp_path / 'ann' / 'notes.txt'}\n".encode())
    text = report(ServerDefinition("s", "builtin"), ServerState("idle"), log.lines())
    assert str(Path("~") / "notes.txt") in text and "ann" not in text
