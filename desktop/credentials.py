"""Secrets in the operating system's keyring: keys of models, tokens, values that a server's definition refers to.

Used by the models, the server definitions and sign-in; nothing else imports ``keyring``. Every call runs in a thread with a
time limit, since a locked keyring blocks on a dialog. There is no plain-text fallback: where no keyring of the system's is to be
had, a secret is kept for this run only, and `Credentials.backend` says so.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from desktop.errors import AssistantError
from desktop.log import redact
from desktop.signals import Signal

SERVICE = "deskhand"
#: Backends that belong to the operating system. Others (plain files, null, third-party) are not trusted with secrets.
_SYSTEM_BACKENDS = (
    "keyring.backends.SecretService.",
    "keyring.backends.libsecret.",
    "keyring.backends.kwallet.",
    "keyring.backends.macOS.",
    "keyring.backends.Windows.",
)
#: Seconds. A dialog that asks for the keyring's password needs a person's time.
_TIME_LIMIT = 60.0

Value = TypeVar("Value")


class Credentials:
    """Get, keep and forget secrets by name, such as ``model:anthropic``.

    Attributes:
        backend: The keyring's name, or "" where secrets are kept for this run only. None until the first call.
        changed: Emitted with the name of a secret that was set or deleted, in the caller's thread.
    """

    def __init__(self) -> None:
        self.backend: str | None = None
        self.changed: Signal[str] = Signal()
        self._kept_for_this_run: dict[str, str] = {}

    async def get(self, name: str) -> str | None:
        """The secret, or None. Raises AssistantError ``credential_store_unavailable`` when the keyring is locked or mute."""
        if name in self._kept_for_this_run:
            return self._kept_for_this_run[name]
        secret = await self._call(lambda keyring: keyring.get_password(SERVICE, name), None)
        if secret is not None:
            redact(secret)
        return secret

    async def set(self, name: str, secret: str) -> bool:
        """Keeps a secret; False: for this run only, because there is no keyring or it refused."""
        redact(secret)
        try:
            kept = await self._call(lambda keyring: _set(keyring, name, secret), False)
        except AssistantError:
            kept = False
        if kept:
            self._kept_for_this_run.pop(name, None)
        else:
            self._kept_for_this_run[name] = secret
        self.changed.emit(name)
        return kept

    async def delete(self, name: str) -> None:
        """Forgets a secret; one that is not there is no error. Raises AssistantError ``credential_store_unavailable``."""
        self._kept_for_this_run.pop(name, None)
        await self._call(lambda keyring: _delete(keyring, name), None)
        self.changed.emit(name)

    async def _call(self, use: Callable[[Any], Value], without: Value) -> Value:
        """Runs `use` with the keyring in a thread of its own; `without` where the system has none."""

        def work() -> Value:
            import keyring

            backend = keyring.get_keyring()
            name = f"{type(backend).__module__}."
            if name == "keyring.backends.chainer.":
                backend = max(backend.backends, key=lambda each: each.priority)  # type: ignore[attr-defined]
                name = f"{type(backend).__module__}."
            if not name.startswith(_SYSTEM_BACKENDS):
                self.backend = ""
                return without
            self.backend = str(backend.name)
            return use(backend)

        try:
            async with asyncio.timeout(_TIME_LIMIT):
                return await _in_daemon_thread(work)
        except Exception as error:  # backends raise whatever their library raises: D-Bus, Security, OS errors
            raise AssistantError("credential_store_unavailable", operation="storage") from error


def _set(keyring: Any, name: str, secret: str) -> bool:
    keyring.set_password(SERVICE, name, secret)
    return True


def _delete(keyring: Any, name: str) -> None:
    if keyring.get_password(SERVICE, name) is not None:
        keyring.delete_password(SERVICE, name)


async def _in_daemon_thread(work: Callable[[], Value]) -> Value:
    """Runs `work` in a daemon thread: one that hangs on a dialog must not keep the program from ending, as a pool's would."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Value] = loop.create_future()

    def finish(setter: Callable[[Any], None], value: Any) -> None:
        if not future.done():
            setter(value)

    def body() -> None:
        try:
            setter, value = future.set_result, work()
        except BaseException as error:  # carried to the caller
            setter, value = future.set_exception, error
        with suppress(RuntimeError):  # the loop has closed meanwhile; nobody waits any more
            loop.call_soon_threadsafe(finish, setter, value)

    threading.Thread(target=body, name="keyring", daemon=True).start()
    return await future
