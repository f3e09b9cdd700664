"""Secrets live in a real Secret Service keyring, and nowhere else."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.desktop_session import keyring, session_bus
from tests.end_to_end.programs import environment

pytestmark = pytest.mark.anyio

PROGRAM = """
import asyncio, json, sys
from desktop.credentials import Credentials
from desktop.errors import AssistantError

async def main():
    credentials, results = Credentials(), []
    for name, *arguments in json.loads(sys.argv[1]):
        try:
            results.append(await getattr(credentials, name)(*arguments))
        except AssistantError as error:
            results.append(error.diagnostic.code)
    print(json.dumps([results, credentials.backend]))

asyncio.run(main())
"""


async def credentials(*calls: tuple[str, ...], **variables: str) -> tuple[list[Any], str | None]:
    """Runs calls of `Credentials` one after the other in a new process: what each gave, and the backend."""
    clean = {name: value for name, value in environment(**variables).items() if name != "DISPLAY"}
    if "DBUS_SESSION_BUS_ADDRESS" not in variables:
        clean["DBUS_SESSION_BUS_ADDRESS"] = "unix:path=/nonexistent"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, json.dumps(calls), env=clean, stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(30):
        output, _ = await process.communicate()
    results, backend = json.loads(output)
    return results, backend


async def test_a_secret_is_kept_across_runs_and_forgotten_when_asked(home: Path) -> None:
    with keyring(home / "keyring") as variables:
        results, backend = await credentials(("set", "model:openai", "sk-é🙂"), ("get", "model:openai"), **variables)
        assert results == [True, "sk-é🙂"]
        assert backend
        results, _ = await credentials(("get", "model:openai"), ("delete", "model:openai"), **variables)
        assert results == ["sk-é🙂", None]
        results, _ = await credentials(("get", "model:openai"), ("delete", "model:openai"), **variables)
        assert results == [None, None]


async def test_without_a_keyring_a_secret_lasts_this_run_only(home: Path) -> None:
    results, backend = await credentials(("set", "model:openai", "sk-canary"), ("get", "model:openai"))
    assert (results, backend) == ([False, "sk-canary"], "")
    results, _ = await credentials(("get", "model:openai"))
    assert results == [None]
    assert not [file for file in home.rglob("*") if file.is_file() and b"sk-canary" in file.read_bytes()]


async def test_a_locked_keyring_is_told_and_what_is_set_lasts_this_run(home: Path) -> None:
    with keyring(home / "keyring", unlocked=False) as variables:
        results, _ = await credentials(("get", "a"), ("set", "a", "secret"), ("get", "a"), **variables)
    assert results == ["credential_store_unavailable", False, "secret"]


@pytest.mark.parametrize(
    "variables",
    [
        {"PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"},
        {"PYTHON_KEYRING_BACKEND": "tests.fakes.plain_keyring.PlainKeyring"},
    ],
    ids=["null", "plain file"],
)
async def test_a_backend_that_is_not_the_systems_gets_no_secret(variables: Mapping[str, str]) -> None:
    with session_bus() as address:
        results, backend = await credentials(
            ("set", "a", "secret"), ("get", "a"), DBUS_SESSION_BUS_ADDRESS=address, **variables
        )
    assert (results, backend) == ([False, "secret"], "")
