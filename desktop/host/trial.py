"""A connection for a moment, to see whether a server works before it is saved. Used by the server editor.

The person has seen and allowed exactly the definition that is given here. Whatever happens, nothing of it is left: no process, no
connection, no entry in a file.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from desktop.errors import AssistantError
from desktop.host.connection import Connection
from desktop.host.consent import Consent
from desktop.host.large_messages import LargeMessageReader
from desktop.host.remembered import Remembered
from desktop.host.server_config import ServerDefinition
from desktop.host.server_log import ServerLog
from desktop.host.server_references import SecretSource
from desktop.host.server_state import Failure

_SHOWN_LINES = 20


@dataclass(frozen=True)
class Outcome:
    """What a trial found.

    Attributes:
        failure: Why it failed; None: it worked.
        counts: What the server offers, by kind as in the state of a connection.
        seconds: From the start to the end of the lists.
    """

    failure: Failure | None = None
    protocol_version: str = ""
    title: str = ""
    counts: dict[str, int] = field(default_factory=dict[str, int])
    seconds: float = 0


async def try_out(
    definition: ServerDefinition,
    *,
    secret: SecretSource,
    read_large: LargeMessageReader | None,
    spool_folder: Path,
) -> Outcome:
    """Connects, lists what there is, and leaves; a cancelled trial leaves as well, within some 6 seconds."""
    log = ServerLog(None)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="deskhand-trial-") as folder:
        connection = Connection(
            definition,
            log=log,
            consent=Consent.for_everything(),  # of this one definition, by the person who tries it
            legacy_servers=Remembered(Path(folder) / "legacy_servers.json"),
            secret=secret,
            read_large=read_large,
            spool_folder=spool_folder,
            backoff=(),
        )
        try:
            await connection.connect()
            version, title = connection.state.protocol_version, connection.state.title
            lists = (
                connection.list_tools,
                connection.list_resources,
                connection.list_resource_templates,
                connection.list_prompts,
            )
            for each in lists:
                await each()
            return Outcome(None, version, title, dict(connection.state.counts), time.monotonic() - begun)
        except AssistantError as error:
            lines = "\n".join(log.tail(_SHOWN_LINES))
            failure = connection.state.failure or Failure("list", error.diagnostic, error_output=lines)
            return Outcome(failure, seconds=time.monotonic() - begun)
        finally:
            closing = asyncio.ensure_future(connection.close(for_good=True))
            try:
                await asyncio.shield(closing)
            except asyncio.CancelledError:  # cancelled once more: what was started is ended all the same
                await closing
                raise
