"""Builds the assistant and the host and joins them. Used by the window (``app.py``) and the command line (``cli.py``).

The constructor is light, so that the window shows at once; `start` imports the turn, the models and the MCP host in a thread
and builds the rest.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from desktop import processes
from desktop.assistant.approval import Approvals, Approver
from desktop.assistant.asking import Asker
from desktop.assistant.history import History
from desktop.assistant.results import ResultStore
from desktop.credentials import Credentials
from desktop.errors import AssistantError, Diagnostic
from desktop.host.servers_file import set_disabled
from desktop.host.trust import Trust
from desktop.host.workspace import Workspace
from desktop.paths import Paths
from desktop.settings import Settings
from desktop.signals import Signal

if TYPE_CHECKING:
    from desktop.assistant.language_model import LanguageModel
    from desktop.assistant.litellm_model import LitellmModel
    from desktop.assistant.turn import Assistant
    from desktop.host.access import ServerAccess
    from desktop.host.catalog import ServerCatalog
    from desktop.host.host import Host
    from desktop.host.server_questions import Respondent
    from desktop.host.watches import Watches


class Core:
    """All of Deskhand but its window.

    Attributes:
        started: Emitted once, when `start` is through; `host`, `catalog`, `access` and `assistant` exist from then on.
        first_folder: The workspace to begin with; it counts when `start` is called.
        folder_fault: Why that folder could not be opened.
    """

    host: Host
    catalog: ServerCatalog
    access: ServerAccess
    watches: Watches
    assistant: Assistant

    def __init__(
        self,
        paths: Paths,
        *,
        approver: Approver,
        asker: Asker,
        config: Path | None = None,
        respondent: Respondent | None = None,
        searches_by_meaning: bool = False,
    ) -> None:
        """`config` replaces the person's ``mcp.json`` for this run; naming it is consent to start its servers. `respondent`
        answers what servers ask (None: nobody does).
        `searches_by_meaning` has the catalog's entries encoded in the background, where the extra ``semantic`` is installed.
        It's for what stays open: a single command would be over, or find one thing now and another a second later.
        """
        self.paths = paths
        self._config = config
        self.settings = Settings(paths.settings_file)
        self.credentials = Credentials()
        self.history = History(paths.history_file)
        self.results = ResultStore(paths.results)
        self.approvals = Approvals(paths.config / "approvals.json", approver)
        self.workspace = Workspace(
            self.servers_file,
            Trust(paths.data / "trusted_folders.json"),
            lambda: self.settings.values.folder_policy,
            default=None if config else Path.home(),
        )
        self.started: Signal[()] = Signal()
        self._asker = asker
        self._respondent = respondent
        self.first_folder: Path | None = None
        self.folder_fault: Diagnostic | None = None
        self._searches_by_meaning = searches_by_meaning
        self._model: tuple[tuple[str, str, str], LitellmModel] | None = None
        self._ready = asyncio.Event()
        self._reloading = asyncio.Lock()

    @property
    def servers_file(self) -> Path:
        return self._config or self.paths.servers_file

    async def start(self) -> None:
        """Imports and builds what is slow to import, and begins to connect the servers that are to be connected at start.

        What a killed Deskhand left behind (processes, half-written files) is ended and removed.
        """
        sweeps = (asyncio.to_thread(self.results.sweep), asyncio.to_thread(processes.sweep_orphans))
        await asyncio.gather(self.history.open(), *sweeps)
        modules = await asyncio.to_thread(_import_the_rest)
        if self.first_folder is not None:
            try:
                await asyncio.to_thread(self.workspace.open, self.first_folder)
            except AssistantError as error:
                self.folder_fault = error.diagnostic
        configuration = await asyncio.to_thread(self.workspace.read)
        self.host = modules.Host(
            configuration,
            paths=self.paths,
            read_large=self.results.receive_large,
            builtin=modules.builtin_server(self.results, self._search_conversations, self._server_status),
            consent=modules.Consent(self.paths.data / "consent.json", own_allowed=self._config is not None),
            secret=self.credentials.get,
            respondent=self._respondent,
            spool_folder=self.results.spool_folder,
        )
        by_meaning = self._searches_by_meaning and modules.is_installed()
        meanings = modules.Meanings(self.paths.cache / "meanings") if by_meaning else None
        self.catalog = modules.ServerCatalog(
            self.host, cache=modules.ToolCache(self.paths.cache / "tools"), meanings=meanings
        )
        self.access = modules.ServerAccess(self.host, self.catalog)
        self.watches = modules.Watches(self.host, self.paths.data / "watches.json")
        self.assistant = modules.Assistant(
            catalog=self.catalog,
            runner=self.access,
            reader=self.access,
            results=self.results,
            history=self.history,
            approvals=self.approvals,
            tool_calls_per_turn=lambda: self.settings.values.tool_calls_per_turn,
        )
        await self.host.start()
        self._ready.set()
        self.started.emit()

    async def ready(self) -> None:
        """Waits until `start` is through."""
        await self._ready.wait()

    async def open_folder(self, folder: Path | None) -> None:
        """Makes a folder the workspace, or closes it; servers that stay the same keep their connection.

        Raises AssistantError ``folder_unavailable``; the workspace is then as it was.
        """
        await self.ready()
        await asyncio.to_thread(self.workspace.open, folder)
        await self.reload_servers()

    async def decide_trust(self, folder: Path, trusted: bool, *, until_quit: bool) -> None:
        """Answers for a folder whether its servers are used.

        Raises AssistantError ``storage_failed``; the answer then holds until Deskhand quits.
        """
        try:
            await asyncio.to_thread(self.workspace.trust.decide, folder, trusted, until_quit=until_quit)
        finally:
            await self.reload_servers()

    async def revoke_trust(self, folder: Path) -> None:
        """Takes back what was answered for a folder; servers that it brought end at once. Raises like `decide_trust`."""
        try:
            await asyncio.to_thread(self.workspace.trust.revoke, folder)
        finally:
            await self.reload_servers()

    async def reload_servers(self) -> None:
        """Reads the files of servers anew and takes over what changed."""
        await self.ready()
        async with self._reloading:
            await self.host.reload(await asyncio.to_thread(self.workspace.read))

    async def set_disabled(self, name: str, disabled: bool) -> None:
        """Disables or enables a server in the file that it comes from.

        Raises AssistantError: ``server_unknown``, and why the file can't be changed.
        """
        connection = self.host.connections.get(name)
        file = self.workspace.file_of(connection.definition) if connection else self.servers_file
        await asyncio.to_thread(set_disabled, file, name, disabled)
        await self.reload_servers()

    async def language_model(self) -> LanguageModel:
        """The chosen model with its key, or Guide. Raises AssistantError when the keyring is locked."""
        from desktop.assistant.guide import Guide

        values = self.settings.values
        if not values.model:
            return Guide(self._asker)
        return await self.model_named(values.model, values.api_base)

    async def model_named(self, name: str, api_base: str = "") -> LanguageModel:
        """A model as litellm names it, with the key that is kept for its provider or its address.

        The same object while none of them changes: a model remembers which tools its provider refused.
        """
        from desktop.assistant.litellm_model import LitellmModel
        from desktop.assistant.model_list import credential_name

        chosen = (name, api_base, await self.credentials.get(credential_name(name, api_base)) or "")
        if self._model is None or self._model[0] != chosen:
            self._model = chosen, LitellmModel(name, api_base=api_base, api_key=chosen[2])
        return self._model[1]

    async def close(self) -> None:
        """Ends connections and writes what is to be written; bounded, also when `start` is not through."""
        if self._ready.is_set():
            await self.watches.close()
            await self.catalog.close()
            await self.host.close()
        await self.history.close()

    async def _search_conversations(self, query: str) -> list[dict[str, Any]]:
        """What the built-in server's tool of that name finds."""
        found = await self.history.summaries(query, limit=20)
        return [{"title": each.title, "updated": each.updated, "snippet": each.snippet} for each in found]

    def _server_status(self) -> list[dict[str, Any]]:
        """What the built-in server's tool of that name tells."""
        return [
            {
                "server": name,
                "status": connection.state.status,
                "counts": dict(connection.state.counts),
                "failure": str(connection.state.failure.diagnostic) if connection.state.failure else None,
            }
            for name, connection in self.host.connections.items()
        ]


def _import_the_rest() -> Any:
    from types import SimpleNamespace

    import desktop.assistant.guide
    import desktop.assistant.litellm_model  # noqa: F401  # so that the first message need not wait for them
    from desktop.assistant.turn import Assistant
    from desktop.host.access import ServerAccess
    from desktop.host.builtin_server import builtin_server
    from desktop.host.catalog import ServerCatalog
    from desktop.host.consent import Consent
    from desktop.host.host import Host
    from desktop.host.meanings import Meanings
    from desktop.host.sentence_encoder import is_installed
    from desktop.host.tool_cache import ToolCache
    from desktop.host.watches import Watches

    return SimpleNamespace(
        Assistant=Assistant,
        ServerAccess=ServerAccess,
        builtin_server=builtin_server,
        ServerCatalog=ServerCatalog,
        ToolCache=ToolCache,
        Consent=Consent,
        Host=Host,
        Meanings=Meanings,
        is_installed=is_installed,
        Watches=Watches,
    )
