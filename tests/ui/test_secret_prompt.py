"""What a definition asks for by name is asked of the person once and kept in the keyring, for that server alone."""

from __future__ import annotations

import json

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit

from desktop.core import Core
from desktop.host.server_references import keyring_name
from desktop.ui.dialogs.secret_prompt import SecretPrompt
from desktop.ui.panels.servers_panel import ServersPanel
from tests.servers.running import friendly
from tests.ui.person import button, click, opened, seen, until, windows

pytestmark = pytest.mark.anyio


async def panel_with(core: Core) -> ServersPanel:
    command = friendly()
    core.servers_file.parent.mkdir(parents=True)
    entry = {"command": command[0], "args": command[1:], "env": {"A": "${input:token}", "B": "x ${keyring:other}"}}
    inputs = [{"id": "token", "description": "Token of the\u202e service", "password": True}, {"id": 7}, "odd"]
    core.servers_file.write_text(json.dumps({"inputs": inputs, "servers": {"a": entry}}))
    panel = ServersPanel(core)
    panel.resize(320, 700)
    panel.show()
    await core.start()
    await until(lambda: "Allow to start" in seen(panel))
    click(panel, "Allow to start")
    await until(lambda: "Enter it…" in seen(panel))
    return panel


async def test_secrets_are_asked_for_once_kept_and_the_server_connects(core: Core) -> None:
    panel = await panel_with(core)
    assert "The secret token that the definition refers to is not in the keyring." in seen(panel)
    click(panel, "Enter it…")
    prompt = await opened(SecretPrompt)
    await until(lambda: "other" in seen(prompt))
    assert "Token of the" in seen(prompt) and "\u202e" not in seen(prompt)
    fields = prompt.findChildren(QLineEdit)
    assert [field.accessibleName() for field in fields] == ["token", "other"]
    assert {field.echoMode() for field in fields} == {QLineEdit.EchoMode.Password}
    assert not button(prompt, "Keep and connect").isEnabled()
    QTest.keyClicks(fields[0], "canary-1")
    QTest.keyClicks(fields[1], "canary-2")
    QTest.keyClick(fields[1], Qt.Key.Key_Return)
    await until(lambda: core.host.connections["a"].state.status == "connected")
    assert await core.credentials.get(keyring_name("a", "token")) == "canary-1"
    assert await core.credentials.get(keyring_name("b", "token")) is None
    assert "canary" not in core.servers_file.read_text()
    await core.host.connections["a"].reconnect()
    assert core.host.connections["a"].state.status == "connected" and not windows(SecretPrompt)


async def test_what_is_no_password_is_seen_and_a_default_need_only_be_accepted(core: Core) -> None:
    command = friendly()
    core.servers_file.parent.mkdir(parents=True)
    entry = {"command": command[0], "args": command[1:], "env": {"A": "${input:region}", "B": "${input:key}"}}
    inputs = [{"id": "region", "type": "promptString", "default": "eu"}, {"id": "key", "default": 7, "password": True}]
    core.servers_file.write_text(json.dumps({"inputs": inputs, "servers": {"a": entry}}))
    panel = ServersPanel(core)
    panel.show()
    await core.start()
    await core.host.give_consent("a")
    panel._server_step("a", "secrets")
    prompt = await opened(SecretPrompt)
    await until(lambda: "key" in seen(prompt))
    region, key = prompt.findChildren(QLineEdit)
    normal, password = QLineEdit.EchoMode.Normal, QLineEdit.EchoMode.Password
    assert [(each.echoMode(), each.text()) for each in (region, key)] == [(normal, "eu"), (password, "")]
    QTest.keyClicks(key, "canary-1")
    click(prompt, "Keep and connect")
    await until(lambda: core.host.connections["a"].state.status == "connected")
    assert await core.credentials.get(keyring_name("a", "region")) == "eu"


async def test_cancelling_keeps_nothing_and_changes_nothing(core: Core) -> None:
    panel = await panel_with(core)
    click(panel, "Enter it…")
    prompt = await opened(SecretPrompt)
    await until(lambda: "other" in seen(prompt))
    QTest.keyClicks(prompt.findChildren(QLineEdit)[0], "canary-1")
    QTest.keyClick(prompt, Qt.Key.Key_Escape)
    await until(lambda: not windows(SecretPrompt))
    assert await core.credentials.get(keyring_name("a", "token")) is None
    assert core.host.connections["a"].state.status == "failed"
