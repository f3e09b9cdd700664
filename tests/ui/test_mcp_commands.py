"""Typed commands on the real core: what the servers panel does, quoting, completion, and no value in what is answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from desktop.core import Core
from desktop.errors import AssistantError
from desktop.ui.chat.answers import PersonAnswers
from desktop.ui.chat.chat_pane import ChatPane
from desktop.ui.chat.composer import Composer
from desktop.ui.chat.mcp_command_line import Addition, NotUnderstood, addition, split
from desktop.ui.chat.mcp_commands import McpCommands
from desktop.ui.chat.message_field import MessageField
from desktop.ui.dialogs.confirmation import _Confirmation
from desktop.ui.dialogs.import_wizard import ImportWizard
from desktop.ui.dialogs.log_dialog import LogDialog
from desktop.ui.dialogs.server_editor import ServerEditor
from desktop.ui.panels.server_steps import ServerSteps
from tests.servers.running import friendly, http_server
from tests.ui.person import click, entries, opened, seen, until, write_servers

# Words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("  a \t b\nc ", ["a", "b", "c"]),
        (r"'a b' \"c 'd\n'", ["a b", '"c', "d\\n"]),
        (r'"a \"b\" \\ \n $HOME `x`"', [r'a "b" \ \n $HOME `x`']),
        (r"C:\Users\ann\file.exe", [r"C:\Users\ann\file.exe"]),
        (r'"C:\Program Files\x"', [r"C:\Program Files\x"]),
        (r"a\ b it\'s", ["a b", "it's"]),
        ("'' \"\"", ["", ""]),
        ("a'b c'd\"e f\"", ["ab cde f"]),
        (r"'\'", ["\\"]),
        ("--header 'X-Key: a b' ~/x *.py", ["--header", "X-Key: a b", "~/x", "*.py"]),
    ],
)
def test_words_are_taken_apart_as_they_are_quoted(text: str, words: list[str]) -> None:
    assert split(text) == words


@pytest.mark.parametrize("text", ["'canary", '"canary', 'canary "', "canary\\", '"canary\\'])
def test_what_is_not_closed_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(NotUnderstood) as raised:
        split(text)
    assert "canary" not in str(raised.value)


@given(st.lists(st.text(st.characters(exclude_characters="'", codec="utf-8"), max_size=12), max_size=6))
def test_whatever_stands_in_single_quotes_comes_back(words: list[str]) -> None:
    assert split(" ".join(f"'{word}'" for word in words)) == words


# Additions


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("docs https://example.com/mcp", Addition("docs", {"url": "https://example.com/mcp"})),
        (
            "--transport sse --header 'X-A: b c' --header X-B:d docs https://example.com/",
            Addition("docs", {"url": "https://example.com/", "type": "sse", "headers": {"X-A": "b c", "X-B": "d"}}),
        ),
        (
            "--replace --env A=b=c --env B= files -- npx -y server --env X",
            Addition(
                "files",
                {"command": "npx", "args": ["-y", "server", "--env", "X"], "env": {"A": "b=c", "B": ""}},
                replace=True,
            ),
        ),
    ],
)
def test_an_addition_is_options_then_a_name_and_an_address_or_a_command(text: str, asked: Addition) -> None:
    assert addition(split(text)) == asked


@pytest.mark.parametrize(
    "text",
    [
        "canary",
        "canary --",
        "canary https://canary more",
        "--canary docs https://x",
        "--header canary docs https://x",
        "--header 'X: canary' --header 'x: canary' docs https://x",
        "--env canary files -- run",
        "--env A=canary --env A=canary files -- run",
        "--env A=canary docs https://x",
        "--header 'X: canary' files -- run",
        "--transport canary docs https://x",
        "--transport http --transport http docs https://x",
        "--transport http files -- run",
        "--oauth-client-id canary docs https://x",
        "--header",
    ],
)
def test_a_wrong_addition_is_refused_without_repeating_a_value(text: str) -> None:
    with pytest.raises(NotUnderstood) as raised:
        addition(split(text))
    assert "canary" not in str(raised.value)


# Commands


#: What the prompt picker was asked to open with.
_picked: list[tuple[str, str, dict[str, str]]] = []


@pytest.fixture
async def commands(core: Core) -> AsyncIterator[McpCommands]:
    """On two servers: one that answers, and one that is disabled and full of values."""
    async with http_server(friendly()) as url:
        write_servers(
            core.servers_file,
            docs={"url": url, "description": "Notes"},
            off={
                "command": "canary-command",
                "args": ["canary-argument"],
                "env": {"A_KEY": "canary-value"},
                "disabled": True,
            },
        )
        await core.start()
        window = QWidget()
        yield McpCommands(core, ServerSteps(core, window), lambda *asked: _picked.append(asked))
        _picked.clear()


async def labels(commands: McpCommands, written: str) -> list[str]:
    return [offer.label for offer in await commands.offers(written)]


@pytest.mark.anyio
class TestCommands:
    async def test_only_commands_are_taken(self) -> None:
        assert all(map(McpCommands.takes, ("/mcp", "/mcp get x", "/help", "/mcp\tget")))
        assert not any(map(McpCommands.takes, ("/mcpx", "/usr/bin is full", "mcp", " /mcp", "/helpful", "")))

    async def test_the_state_of_all_servers(self, commands: McpCommands) -> None:
        assert (await commands.run("/mcp")).split("\n") == [
            "○ docs – Idle",
            "– off – Disabled",
            "○ deskhand – Idle",
        ]

    async def test_help_lists_every_command(self, commands: McpCommands) -> None:
        text = await commands.run("/help")
        for name in ("add", "remove", "get", "tools", "reload", "enable", "disable", "reconnect", "refresh", "log"):
            assert f"/mcp {name}" in text
        assert "can't be typed yet" in text
        assert await commands.run("/mcp help") == text

    async def test_a_server_is_connected_listed_told_and_left(self, commands: McpCommands, core: Core) -> None:
        told = await commands.run("/mcp reconnect docs")
        assert "State: Connected" in told and "Offers: 9 tools · ≈ " in told and "Description: Notes" in told
        assert "Calls itself: Friendly server" in told
        assert "127.0.0.1" not in told
        assert (await commands.run("/mcp tools docs")).split("\n")[:2] == ["9 tools", "add – Adds two numbers."]
        assert "● docs – Connected – 9 tools · 2 resources" in await commands.run("/mcp refresh")
        assert await commands.run("/mcp disconnect docs") == "docs is not connected any more."
        assert core.host.connections["docs"].state.status == "idle"

    async def test_of_a_disabled_server_everything_but_its_values_is_told(self, commands: McpCommands) -> None:
        told = await commands.run("/mcp get off")
        assert "State: Disabled" in told and "Kind: a program on this computer" in told
        assert "canary" not in told and "A_KEY" not in told
        for action in ("tools", "reconnect", "disconnect", "refresh"):
            with pytest.raises(AssistantError, match="server_disabled"):
                await commands.run(f"/mcp {action} off")

    async def test_a_server_is_enabled_and_disabled(self, commands: McpCommands, core: Core) -> None:
        assert await commands.run("/mcp enable off") == "off is enabled."
        assert core.host.connections["off"].state.status == "needs_consent"
        with pytest.raises(AssistantError, match="consent_required"):
            await commands.run("/mcp reconnect off")
        assert await commands.run("/mcp disable docs") == "docs is disabled."
        assert entries(core.servers_file)["docs"]["disabled"] is True

    async def test_adding_writes_the_definition_keeps_secrets_apart_and_starts_nothing(
        self, commands: McpCommands, core: Core
    ) -> None:
        told = await commands.run(
            "/mcp add --env API_TOKEN=canary-12345 --env MODE=fast mail -- mail-server --root '/my mail'"
        )
        assert told.startswith("mail was added. It starts once you have looked at its command")
        assert "canary" not in told
        assert entries(core.servers_file)["mail"] == {
            "command": "mail-server",
            "args": ["--root", "/my mail"],
            "env": {"API_TOKEN": "${keyring:API_TOKEN}", "MODE": "fast"},
        }
        assert await core.credentials.get("server:mail:API_TOKEN") == "canary-12345"
        assert core.host.connections["mail"].state.status == "needs_consent"
        with pytest.raises(AssistantError) as raised:
            await commands.run("/mcp add --header 'X-Key: canary' mail https://canary.example/")
        assert "--replace replaces it" in str(raised.value) and "canary" not in str(raised.value)
        with pytest.raises(AssistantError, match="configuration_invalid"):  # nothing is kept of what can't be written
            await commands.run("/mcp add --replace --env API_TOKEN=another-12345 mail -- ''")
        assert await core.credentials.get("server:mail:API_TOKEN") == "canary-12345"
        await commands.run("/mcp add --replace mail https://mail.example/")
        assert entries(core.servers_file)["mail"] == {"url": "https://mail.example/"}

    async def test_adding_without_words_opens_the_form(self, commands: McpCommands) -> None:
        adding = asyncio.create_task(commands.run("/mcp add"))
        (await opened(ServerEditor)).reject()
        assert await adding == ""

    async def test_importing_opens_the_wizard(self, commands: McpCommands) -> None:
        importing = asyncio.create_task(commands.run("/mcp import"))
        (await opened(ImportWizard)).reject()
        assert await importing == ""

    async def test_removing_asks_first(self, commands: McpCommands, core: Core) -> None:
        removing = asyncio.create_task(commands.run("/mcp remove off"))
        click(await opened(_Confirmation), "Cancel")
        assert await removing == ""
        removing = asyncio.create_task(commands.run("/mcp remove off"))
        click(await opened(_Confirmation), "Remove")
        assert await removing == "off was removed."
        assert set(entries(core.servers_file)) == {"docs"}
        with pytest.raises(AssistantError, match="server_unknown"):
            await commands.run("/mcp remove deskhand")

    async def test_the_log_opens(self, commands: McpCommands) -> None:
        assert await commands.run("/mcp log docs") == ""
        assert (await opened(LogDialog)).windowTitle() == "Log of docs"

    async def test_the_file_is_read_anew(self, commands: McpCommands, core: Core) -> None:
        write_servers(core.servers_file, other={"url": "https://example.com/"}, bad={"command": 7})
        told = await commands.run("/mcp reload")
        assert "○ other – Idle" in told and "✘ bad – The definition is not valid at command" in told
        assert "docs" not in told

    @pytest.mark.parametrize("command", ["canary", "get", "get a canary", "reload canary", "log 'canary"])
    async def test_a_wrong_command_is_refused_without_repeating_it(self, commands: McpCommands, command: str) -> None:
        with pytest.raises(NotUnderstood) as raised:
            await commands.run(f"/mcp {command}")
        assert "canary" not in str(raised.value)

    async def test_what_may_come_next_is_offered_and_never_a_value(self, commands: McpCommands) -> None:
        assert await labels(commands, "") == ["/mcp prompt", "/mcp", "/help"]
        assert await labels(commands, "m") == ["/mcp prompt", "/mcp"]
        assert await labels(commands, "x") == []
        assert [each.partition(" ")[0] for each in await labels(commands, "mcp re")] == [
            "remove",
            "reload",
            "reconnect",
            "refresh",
        ]
        assert await labels(commands, "mcp enable ") == ["off"]
        assert await labels(commands, "mcp disable ") == ["docs"]
        assert await labels(commands, "mcp get ") == ["docs", "off", "deskhand"]
        assert await labels(commands, "mcp tools D") == ["docs", "deskhand"]
        assert await labels(commands, "mcp add --t") == ["--transport"]
        assert await labels(commands, "mcp add --header X") == []
        assert await labels(commands, "mcp add a -- run -") == []
        assert await labels(commands, "mcp get docs more") == []
        [offer] = await commands.offers("mcp get do")
        assert (offer.insert, offer.detail) == ("/mcp get docs ", "Idle")


@pytest.mark.anyio
async def test_in_the_chat_a_command_is_answered_above_the_composer_and_is_no_message(core: Core) -> None:
    write_servers(core.servers_file, docs={"url": "http://127.0.0.1:9/", "description": "Notes"})
    await core.start()
    pane = ChatPane(core, PersonAnswers())
    pane.resize(700, 500)
    pane.show()
    pane.activateWindow()
    pane.setFocus()
    [composer] = pane.findChildren(Composer)
    [field] = composer.findChildren(MessageField)
    QTest.keyClicks(field, "/mcp get do")
    await until(lambda: composer.completions.labels == ["docs"])
    QTest.keyClick(field, Qt.Key.Key_Tab)
    await until(lambda: field.toPlainText() == "/mcp get docs ")
    QTest.keyClick(field, Qt.Key.Key_Return)
    await until(lambda: "Description: Notes" in seen(pane))
    assert "/mcp get\nOnly you see this." in seen(pane)
    assert field.toPlainText() == ""
    QTest.keyClicks(field, "/mcp canary")
    QTest.keyClick(field, Qt.Key.Key_Return)
    await until(lambda: "There is no such command. /help lists them." in seen(pane))
    assert "canary" not in seen(pane) and "Description" not in seen(pane)
    click(pane, "Close the answer")
    await until(lambda: "There is no such command" not in seen(pane))
    assert pane.conversation.messages == []
    assert await core.history.summaries() == []
    assert not pane.busy


async def test_a_prompt_is_picked_with_what_was_written_of_it(commands: McpCommands) -> None:
    assert await commands.run("/mcp prompt") == ""
    assert await commands.run(r"""/mcp prompt docs "trip plan" city='New York' note="say \"$(id)\"" """) == ""
    assert _picked == [("", "", {}), ("docs", "trip plan", {"city": "New York", "note": 'say "$(id)"'})]
    for wrong in ("/mcp prompt docs x city", "/mcp prompt docs x a=1 a=2", "/mcp prompt docs x =1"):
        with pytest.raises(NotUnderstood):
            await commands.run(wrong)
    with pytest.raises(AssistantError) as caught:
        await commands.run("/mcp prompt none x")
    assert caught.value.diagnostic.code == "server_unknown"
    assert len(_picked) == 2


async def test_the_slash_offers_prompts_first(commands: McpCommands) -> None:
    first, *_ = await commands.offers("")
    assert first.label == "/mcp prompt" and first.take is not None
    first.take()
    assert _picked == [("", "", {})]
