"""The commands that are typed in the composer: ``/mcp …`` does what the servers panel does, ``/help`` lists them.

Used by ``commands.py``. What a command answers is for the person alone: it is no part of the conversation.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from desktop.assistant import toolbox
from desktop.catalog_entries import ToolDefinition
from desktop.errors import AssistantError
from desktop.host import servers_file
from desktop.host.secret_values import looks_secret
from desktop.host.server_config import BUILTIN_NAME
from desktop.host.server_references import keyring_name
from desktop.ui import messages
from desktop.ui.chat.completion_popup import Offer
from desktop.ui.chat.mcp_command_line import OPTIONS, Addition, NotUnderstood, addition, split
from desktop.ui.messages import tr
from desktop.ui.panels.server_rows import offer_summary, state_word
from desktop.ui.panels.server_steps import ServerSteps
from desktop.visible_text import visible_line

if TYPE_CHECKING:
    from desktop.core import Core
    from desktop.host.connection import Connection

_COMMAND = re.compile(r"/(?:mcp|help)(?:\s|$)")
#: Tools that are listed.
_MOST_TOOLS = 200
Servers = Callable[["Connection"], bool]
PickPrompt = Callable[[str, str, dict[str, str]], None]


@dataclass(frozen=True, slots=True)
class _Action:
    usage: str
    """What comes after ``/mcp``, the action's name first."""
    explanation: str
    run: Callable[[list[str]], Awaitable[str]]
    servers: Servers | None = None
    """Which servers are offered as its next word; None: it takes none."""
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.usage.partition(" ")[0]


class McpCommands:
    def __init__(self, core: Core, steps: ServerSteps, pick_prompt: PickPrompt) -> None:
        """`pick_prompt` opens the prompt picker with a server, a prompt's name and its arguments, each of which may be empty."""
        self._core = core
        self._pick_prompt = pick_prompt
        self._steps = steps
        self._actions = {action.name: action for action in self._all_actions()}

    @staticmethod
    def takes(text: str) -> bool:
        """Whether what was written is a command; any other text that begins with a slash is a message."""
        return _COMMAND.match(text) is not None

    async def run(self, text: str) -> str:
        """Does what a command says. Returns what to show; "": there is nothing to say, or a window opened.

        Raises NotUnderstood, and AssistantError for what can't be done.
        """
        command, *words = split(text)
        if command == "/help" or words[:1] == ["help"]:
            return self._help()
        await self._core.ready()
        if not words:
            return self._status()
        action = self._actions.get(words[0])
        if action is None:
            raise NotUnderstood(tr("There is no such command. /help lists them."))
        return await action.run(words[1:])

    async def offers(self, written: str) -> Sequence[Offer]:
        """What may come next, for what is written after the slash: commands, actions, servers, options; never values."""
        *before, last = re.split(r"\s+", written)
        if not before:
            pick = Offer(
                "/mcp prompt", tr("Choose a prompt of a server"), "prompt", take=lambda: self._pick_prompt("", "", {})
            )
            commands = (
                pick,
                Offer("/mcp", tr("Servers: state, add, remove, …"), "terminal", "/mcp "),
                Offer("/help", tr("What can be typed here"), "terminal", "/help"),
            )
            return [offer for offer in commands if offer.label.startswith(f"/{last}")]
        if before == ["mcp"]:
            return [
                Offer(each.usage, each.explanation, "terminal", f"/mcp {each.name}{' ' if ' ' in each.usage else ''}")
                for each in self._actions.values()
                if each.name.startswith(last)
            ]
        action = self._actions.get(before[1]) if before[0] == "mcp" else None
        if action is None or not hasattr(self._core, "host"):
            return []
        head = " ".join(before)
        if len(before) == 2 and action.servers is not None:
            return [
                Offer(name, state_word(connection.state)[2], "server", f"/{head} {name} ")
                for name, connection in self._core.host.connections.items()
                if name.lower().startswith(last.lower()) and action.servers(connection)
            ]
        if action.options and "--" not in before and (last.startswith("-") or not last):
            return [Offer(each, "", "", f"/{head} {each} ") for each in action.options if each.startswith(last)]
        return []

    def _all_actions(self) -> Sequence[_Action]:
        def each(_: Connection) -> bool:
            return True

        def enabled(connection: Connection) -> bool:
            return not connection.definition.disabled

        def own(connection: Connection) -> bool:
            return connection.definition.name != BUILTIN_NAME

        def can_be_enabled(connection: Connection) -> bool:
            return connection.definition.disabled

        def can_be_disabled(connection: Connection) -> bool:
            return enabled(connection) and own(connection)

        return (
            _Action(
                "add [--replace] [--transport T] [--header 'N: v'] [--env N=v] NAME URL | NAME -- COMMAND …",
                tr("Adds a server, or opens the form"),
                self._add,
                options=OPTIONS,
            ),
            _Action("remove SERVER", tr("Takes a server out of mcp.json"), self._remove, own),
            _Action("import", tr("Takes over servers of other programs"), self._import),
            _Action("get SERVER", tr("What a server is and offers"), self._get, each),
            _Action("tools SERVER", tr("Lists a server's tools"), self._tools, enabled),
            _Action("reload", tr("Reads mcp.json anew"), self._reload),
            _Action("enable SERVER", tr("Lets a server be used again"), self._enable, can_be_enabled),
            _Action("disable SERVER", tr("Keeps a server from being used"), self._disable, can_be_disabled),
            _Action("reconnect SERVER", tr("Connects anew"), self._reconnect, enabled),
            _Action("disconnect SERVER", tr("Leaves a server until it is needed"), self._disconnect, enabled),
            _Action("refresh [SERVER]", tr("Lists anew what servers offer"), self._refresh, enabled),
            _Action("log SERVER", tr("Opens a server's log"), self._log, each),
            _Action(
                "prompt [SERVER] [NAME] [ARGUMENT=VALUE …]", tr("Chooses a prompt of a server"), self._prompt, enabled
            ),
        )

    # What each does

    def _help(self) -> str:
        lines = [tr("/mcp – the state of all servers")]
        lines += [f"/mcp {each.usage} – {each.explanation}" for each in self._actions.values()]
        lines.append(tr("Words with spaces stand in quotation marks: 'like this'."))
        lines.append(tr("Signing in and watching can't be typed yet."))
        return "\n".join(lines)

    def _status(self) -> str:
        lines: list[str] = []
        for fault in self._core.host.faults:
            lines.append(f"✘ {visible_line(fault.server or 'mcp.json')} – {messages.message(fault)}")
        for name, connection in self._core.host.connections.items():
            glyph, _, word = state_word(connection.state)
            failure = connection.state.failure
            told = messages.message(failure.diagnostic) if failure else offer_summary(connection.state, 0)
            lines.append(" – ".join(filter(None, (f"{glyph} {name}", word, told))))
        return "\n".join(lines)

    async def _add(self, words: list[str]) -> str:
        if not words:
            return self._told(await self._steps.edit(None))
        asked = addition(words)
        if asked.name in self._core.host.connections and not asked.replace:
            reason = "a server of that name exists; --replace replaces it"
            raise AssistantError("configuration_invalid", operation="configuration", reason=reason)
        secrets = _taken_secrets(asked)
        await asyncio.to_thread(
            servers_file.add_server, self._core.servers_file, asked.name, asked.entry, replace=asked.replace
        )
        # Only now: what could not be written leaves no secret behind, and replaces none.
        kept = [await self._core.credentials.set(place, value) for place, value in secrets.items()]
        await self._core.reload_servers()
        said = [self._told(asked.name)]
        if "command" in asked.entry:
            said.append(tr("It starts once you have looked at its command and allowed it in the servers panel."))
        if not all(kept):
            said.append(tr("There is no keyring here: its secrets last for this run only."))
        return " ".join(said)

    def _told(self, added: str) -> str:
        return tr("{server} was added.").format(server=added) if added else ""

    async def _remove(self, words: list[str]) -> str:
        name = _one(words)
        return tr("{server} was removed.").format(server=name) if await self._steps.remove(name) else ""

    async def _import(self, words: list[str]) -> str:
        _none(words)
        return self._told(await self._steps.import_servers())

    async def _get(self, words: list[str]) -> str:
        """Everything but what it is started or reached with: no command, argument, address, variable or header."""
        connection = self._known(_one(words))
        definition, state = connection.definition, connection.state
        kinds = {"stdio": tr("a program on this computer"), "builtin": tr("built in")}
        starts = {"demand": tr("when it is needed"), "launch": tr("when Deskhand starts"), "manual": tr("by hand")}
        counts = offer_summary(state, await self._weight(definition.name))
        rows = [
            (tr("State"), state_word(state)[2]),
            (tr("Kind"), kinds.get(definition.kind, tr("reached over HTTP"))),
            (tr("Calls itself"), visible_line(state.title)),
            (tr("Description"), visible_line(definition.description)),
            (tr("Offers"), counts),
            (tr("Starts"), starts[definition.start]),
            (tr("Time limits"), _limits(connection)),
        ]
        lines = [f"{title}: {value}" for title, value in rows if value]
        if definition.include_tools is not None or definition.exclude_tools:
            lines.append(tr("Some of its tools are left out by its definition."))
        if state.failure is not None:
            failure = state.failure
            lines.append(f"[{failure.diagnostic.code}] {messages.message(failure.diagnostic)}")
            lines.append(messages.hint(failure.diagnostic))
        lines += [messages.message(warning) for warning in state.warnings]
        return "\n".join(filter(None, lines))

    async def _tools(self, words: list[str]) -> str:
        name = _one(words)
        tools = await self._core.catalog.tools(name)
        lines = [tr("{n} tools").format(n=len(tools))]
        lines += [
            " – ".join(filter(None, (visible_line(tool.name), visible_line(tool.title or tool.description, 100))))
            for tool in tools[:_MOST_TOOLS]
        ]
        if len(tools) > _MOST_TOOLS:
            lines.append(tr("… and {n} more; the catalog has all.").format(n=len(tools) - _MOST_TOOLS))
        return "\n".join(lines)

    async def _reload(self, words: list[str]) -> str:
        _none(words)
        await self._core.reload_servers()
        return self._status()

    async def _enable(self, words: list[str]) -> str:
        await self._steps.set_disabled(_one(words), False)
        return tr("{server} is enabled.").format(server=words[0])

    async def _disable(self, words: list[str]) -> str:
        await self._steps.set_disabled(_one(words), True)
        return tr("{server} is disabled.").format(server=words[0])

    async def _reconnect(self, words: list[str]) -> str:
        name = _one(words)
        connection = self._core.host.connection(name)
        if connection.state.status == "needs_consent":
            raise AssistantError("consent_required", operation="connect", server=name)
        await self._steps.reconnect(name)
        return await self._get(words)

    async def _disconnect(self, words: list[str]) -> str:
        await self._steps.disconnect(_one(words))
        return tr("{server} is not connected any more.").format(server=words[0])

    async def _refresh(self, words: list[str]) -> str:
        """Of one server, or of all that are connected; nothing is read or loaded."""
        if len(words) > 1:
            raise NotUnderstood(tr("Name one server, or none for all that are connected."))
        connections = self._core.host.connections
        names = words or [name for name, each in connections.items() if each.state.status == "connected"]
        for name in names:
            await self._steps.refresh(name)
        return await self._get(words) if words else self._status()

    async def _log(self, words: list[str]) -> str:
        self._steps.show_log(_one(words))
        return ""

    async def _prompt(self, words: list[str]) -> str:
        server, name, *rest = [*words, "", ""][: max(2, len(words))]
        arguments: dict[str, str] = {}
        for word in rest:
            argument, sign, value = word.partition("=")
            if not sign or not argument or argument in arguments:
                raise NotUnderstood(tr("Write each argument once, as NAME=VALUE."))
            arguments[argument] = value
        if server:
            self._core.host.connection(server)
        self._pick_prompt(server, name, arguments)
        return ""

    def _known(self, name: str) -> Connection:
        connection = self._core.host.connections.get(name)
        if connection is None:
            raise AssistantError("server_unknown", operation="configuration")
        return connection

    async def _weight(self, server: str) -> int:
        """What the tools that are known weigh, without asking the server."""
        entries = self._core.catalog.entries()
        tools = [each for each in entries if isinstance(each, ToolDefinition) and each.server == server]
        return await asyncio.to_thread(lambda: sum(map(toolbox.weight, tools)))


def _taken_secrets(asked: Addition) -> dict[str, str]:
    """Puts references in place of what looks like a secret, and gives each secret by its name in the keyring."""
    secrets: dict[str, str] = {}
    for values in (asked.entry.get("env", {}), asked.entry.get("headers", {})):
        for name, value in values.items():
            if "${" not in value and looks_secret(name, value):
                reference = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:128]
                secrets[keyring_name(asked.name, reference)] = value
                values[name] = f"${{keyring:{reference}}}"
    return secrets


def _one(words: list[str]) -> str:
    """The server that is named. Raises NotUnderstood."""
    if len(words) != 1:
        raise NotUnderstood(tr("Name one server."))
    return words[0]


def _none(words: list[str]) -> None:
    if words:
        raise NotUnderstood(tr("This command takes nothing more."))


def _limits(connection: Connection) -> str:
    definition = connection.definition
    said = tr("{start:g} s to start, {request:g} s for a request, {call:g} s for a call without a sign of life")
    return said.format(
        start=definition.startup_time_limit, request=definition.request_time_limit, call=definition.call_time_limit
    )
