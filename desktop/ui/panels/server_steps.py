"""What can be done with a server: the steps behind the buttons and menus of the servers panel and behind the ``/mcp`` commands.

Each raises AssistantError where it can't be done; whoever starts one shows it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtWidgets import QFileDialog, QWidget

from desktop import links
from desktop.errors import AssistantError
from desktop.host import servers_file
from desktop.host.bundle import is_bundle, read_bundle
from desktop.host.server_config import BUILTIN_NAME
from desktop.host.server_references import keyring_name, secret_names
from desktop.host.workspace import secret_name
from desktop.ui import error_box, tasks
from desktop.ui.dialogs.bundle_dialog import BundleDialog
from desktop.ui.dialogs.confirmation import confirmed
from desktop.ui.dialogs.import_wizard import ImportWizard
from desktop.ui.dialogs.log_dialog import LogDialog
from desktop.ui.dialogs.secret_prompt import SecretPrompt
from desktop.ui.dialogs.server_editor import ServerEditor
from desktop.ui.messages import tr
from desktop.ui.panels import server_details

if TYPE_CHECKING:
    from desktop.core import Core
    from desktop.host.connection import Connection


class ServerSteps:
    def __init__(self, core: Core, parent: QWidget) -> None:
        """`parent` is a widget of the window that dialogs belong to."""
        self._core = core
        self._parent = parent

    async def allow(self, name: str) -> None:
        """Allows a server's command, as it is now, to start, and connects it."""
        await self._core.host.give_consent(name)
        await self.reconnect(name)

    async def reconnect(self, name: str) -> None:
        """Connects anew and lists what is offered; why that failed is in the server's state."""
        connection = self._core.host.connection(name)
        with suppress(AssistantError):
            await connection.reconnect()
            await self._core.catalog.refresh(name)  # so that it says what it offers

    async def enter_secrets(self, name: str) -> None:
        """Asks once for each secret that a server refers to and the keyring doesn't have, keeps it there, and connects anew."""
        connection = self._of_file(name)
        definition = connection.definition
        described = await asyncio.to_thread(servers_file.read_inputs, self._file_of(connection))
        places: dict[str, str] = {}
        for value in (*definition.env.values(), *definition.headers.values()):
            for secret in secret_names(value):
                place = secret_name(definition.workspace, keyring_name(name, secret))
                if await self._core.credentials.get(place) is None:
                    places[secret] = place
        if places:
            asked = {secret: described.get(secret, servers_file.Input()) for secret in places}
            prompt = SecretPrompt(name, asked, self._parent.window())
            if not await tasks.opened(prompt):
                return
            values = prompt.values()
            kept = [await self._core.credentials.set(places[secret], value) for secret, value in values.items()]
            if not all(kept):
                error = AssistantError("credential_store_unavailable", operation="storage")
                error_box.report(error, self._parent.window())
        await self.reconnect(name)

    async def disconnect(self, name: str) -> None:
        """Leaves a server, or gives up connecting it, until it is needed again."""
        await self._core.host.connection(name).close()

    async def refresh(self, name: str) -> None:
        """Lists everything that a server offers anew."""
        await self._core.catalog.refresh(name)

    async def edit(self, name: str | None, file: Path | None = None) -> str:
        """Opens the editor for a server, or for a new one. Returns the name it was saved under, or "".

        `file` is the one the server stands in, where that is not told by the server that works under its name.
        """
        connection = self._core.host.connections.get(name or "")
        if file is None and connection is not None:
            file = self._file_of(connection)
        editor = ServerEditor(self._core, name, self._parent.window(), file)
        if not await tasks.opened(editor):
            return ""
        saved = editor.saved
        await self._core.reload_servers()
        return saved

    async def import_servers(self, file: Path | None = None) -> str:
        """Opens the import of other programs' servers, or of a file's. Returns the first name that was saved, or ""."""
        window = self._parent.window()
        dialog: ImportWizard | BundleDialog
        if file is not None and is_bundle(file):
            dialog = BundleDialog(self._core, window, await asyncio.to_thread(read_bundle, file))
        else:
            dialog = ImportWizard(self._core, window)
            if file is not None:
                dialog.read_file(file)
        if not await tasks.opened(dialog):
            return ""
        saved = dialog.saved
        await self._core.reload_servers()
        return saved

    async def duplicate(self, name: str) -> str:
        """Adds a copy of a server, disabled, with its secrets, and opens it in the editor. Returns the copy's name."""
        connection = self._of_file(name)
        file = self._file_of(connection)
        entry = dict(await asyncio.to_thread(servers_file.read_entry, file, name))
        entry.pop("enabled", None)
        entry["disabled"] = True
        taken = set(self._core.host.connections)
        copy = next(each for number in range(2, 10_000) if (each := f"{name[:70]}-{number}") not in taken)
        definition = connection.definition
        for value in (*definition.env.values(), *definition.headers.values()):
            for secret in secret_names(value):
                kept = secret_name(definition.workspace, keyring_name(name, secret))
                if (value := await self._core.credentials.get(kept)) is not None:
                    where = secret_name(definition.workspace, keyring_name(copy, secret))
                    await self._core.credentials.set(where, value)
        await asyncio.to_thread(servers_file.add_server, file, copy, entry)
        await self._core.reload_servers()
        return await self.edit(copy) or copy

    async def set_disabled(self, name: str, disabled: bool) -> None:
        await self._core.set_disabled(name, disabled)

    async def remove(self, name: str) -> bool:
        """Takes a server out of its file once the person has confirmed it; whether it was."""
        file = self._file_of(self._of_file(name))
        question = tr("Remove {server}?").format(server=name)
        text = tr("Its definition is taken out of {file}. Conversations and stored results stay.")
        if not await confirmed(self._parent, question, text.format(file=file.name), tr("Remove")):
            return False
        await asyncio.to_thread(servers_file.remove_server, file, name)
        await self._core.reload_servers()
        return True

    def show_log(self, name: str) -> None:
        """Opens the log's window, also of a disabled server."""
        LogDialog.open_for(self._known(name), self._parent)

    async def show_file(self, name: str) -> None:
        """Opens the file that a server stands in in the program for such files."""
        await links.open_path(self._file_of(self._known(name)))

    async def show_installation(self, name: str) -> None:
        """Opens the page that says how the program of a server's command is installed."""
        await server_details.show_installation(self._known(name).definition.command)

    async def choose_certificates(self, name: str) -> None:
        """Has the person choose a file of certificates to trust for a server, writes it down and connects anew."""
        file = self._file_of(self._of_file(name))
        dialog = QFileDialog(self._parent.window(), tr("Certificates to trust for {server}").format(server=name))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilters([tr("Certificates (*.pem *.crt *.cer)"), tr("All files (*)")])
        if not await tasks.opened(dialog):
            return
        [chosen] = dialog.selectedFiles()
        entry: dict[str, Any] = await asyncio.to_thread(servers_file.read_entry, file, name)
        entry["caFile"] = str(Path(chosen))
        await asyncio.to_thread(servers_file.add_server, file, name, entry, replace=True)
        await self._core.reload_servers()
        await self.reconnect(name)

    def _known(self, name: str) -> Connection:
        """Raises AssistantError ``server_unknown``."""
        connection = self._core.host.connections.get(name)
        if connection is None:
            raise AssistantError("server_unknown", operation="configuration", server=name)
        return connection

    def _of_file(self, name: str) -> Connection:
        """The same for a server that stands in a file: the built-in one does not."""
        if name == BUILTIN_NAME:
            raise AssistantError("server_unknown", operation="configuration", server=name)
        return self._known(name)

    def _file_of(self, connection: Connection) -> Path:
        return self._core.workspace.file_of(connection.definition)
