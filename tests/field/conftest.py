"""A host with the catalog and the access over it, as the window has them, for servers that misbehave as in the field."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from desktop.host.access import ServerAccess
from desktop.host.catalog import ServerCatalog
from desktop.host.connection import Connection
from desktop.host.consent import Consent
from desktop.host.host import Host
from desktop.host.server_config import Configuration, ServerDefinition
from desktop.paths import Paths


class Desk:
    """Servers by name; those with a ``url`` are reached over HTTP."""

    def __init__(self, paths: Paths, servers: dict[str, dict[str, Any]]) -> None:
        definitions = [
            ServerDefinition(name, "http" if "url" in fields else "stdio", **fields) for name, fields in servers.items()
        ]
        self.host = Host(
            Configuration(tuple(definitions)),
            paths=paths,
            read_large=None,
            builtin=None,
            consent=Consent.for_everything(),
            backoff=(0.05, 0.1),
        )
        self.catalog = ServerCatalog(self.host)
        self.access = ServerAccess(self.host, self.catalog)
        self._closed = False

    def connection(self, name: str = "server") -> Connection:
        return self.host.connection(name)

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await self.catalog.close()
        await self.host.close()


MakeDesk = Callable[..., Desk]


def run(command: Sequence[str], **fields: Any) -> dict[str, Any]:
    """The fields of a definition that runs a command."""
    return {"command": command[0], "args": tuple(command[1:]), **fields}


@pytest.fixture
async def make_desk(paths: Paths) -> AsyncIterator[MakeDesk]:
    made: list[Desk] = []

    def make(**servers: dict[str, Any]) -> Desk:
        made.append(Desk(paths, servers))
        return made[-1]

    yield make
    await asyncio.gather(*(desk.close() for desk in made))
