"""Consent to commands: what it covers, what asks again, and how it is remembered."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from desktop.errors import AssistantError
from desktop.host.consent import Consent
from desktop.host.remembered import Remembered
from desktop.host.server_config import ServerDefinition

COMMAND = ServerDefinition("a", "stdio", command="server", args=("-y", "x"), env={"A": "b"}, cwd="/")


def test_a_command_is_refused_until_consent_is_given_and_stays_allowed_after_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "consent.json"
    consent = Consent(file)
    assert not consent.given(COMMAND)
    consent.give(COMMAND)
    assert consent.given(COMMAND) and Consent(file).given(COMMAND)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "changed",
    [
        replace(COMMAND, command="server "),
        replace(COMMAND, args=("-y", "y")),
        replace(COMMAND, args=("-y x",)),
        replace(COMMAND, env={"A": "c"}),
        replace(COMMAND, env={"A": "b", "LD_PRELOAD": "x"}),
        replace(COMMAND, cwd=None),
    ],
)
def test_any_change_of_what_runs_asks_again(tmp_path: Path, changed: ServerDefinition) -> None:
    consent = Consent(tmp_path / "consent.json")
    consent.give(COMMAND)
    assert not consent.given(changed)


def test_what_does_not_run_asks_nothing(tmp_path: Path) -> None:
    consent = Consent(tmp_path / "consent.json")
    consent.give(COMMAND)
    assert consent.given(replace(COMMAND, name="b", description="d", call_time_limit=1, disabled=True))
    assert consent.given(ServerDefinition("c", "http", url="https://example.org"))
    assert consent.given(ServerDefinition("deskhand", "builtin"))


def test_an_address_asks_only_where_a_header_is_what_a_command_prints_and_again_when_that_or_its_goal_changes(
    tmp_path: Path,
) -> None:
    consent = Consent(tmp_path / "consent.json")
    server = ServerDefinition("a", "http", url="https://example.org", headers={"A": "!pass show a"})
    assert not consent.given(server)
    consent.give(server)
    assert consent.given(server) and consent.given(replace(server, description="d"))
    assert not consent.given(replace(server, headers={"A": "!pass show b"}))
    assert not consent.given(replace(server, url="https://evil.example.org"))
    assert consent.given(replace(server, url="https://evil.example.org", headers={"A": "$!pass show a"}))


def test_naming_a_configuration_is_consent_to_all_of_it() -> None:
    consent = Consent.for_everything()
    assert consent.given(COMMAND)
    consent.give(COMMAND)


@pytest.mark.parametrize("content", ["", "{", '{"a": 1}', "[1, null]", "[" * 100_000])
def test_a_damaged_file_allows_nothing(tmp_path: Path, content: str) -> None:
    file = tmp_path / "consent.json"
    file.write_text(content)
    consent = Consent(file)
    assert not consent.given(COMMAND)
    consent.give(COMMAND)
    assert Consent(file).given(COMMAND)


def test_consent_that_cannot_be_written_holds_for_this_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    consent = Consent(tmp_path / "file" / "consent.json")
    with pytest.raises(AssistantError) as raised:
        consent.give(COMMAND)
    assert raised.value.diagnostic.code == "storage_failed"
    assert consent.given(COMMAND)


def test_the_file_holds_fingerprints_alone_and_forgets_the_oldest(tmp_path: Path) -> None:
    file = tmp_path / "remembered.json"
    remembered = Remembered(file)
    for number in range(1002):
        remembered.add(str(number))
    remembered.discard("1001")
    assert json.loads(file.read_text()) == [str(number) for number in range(1, 1001)]
    assert "1001" not in Remembered(file) and "1000" in Remembered(file)
