"""The command line does the main job on real input: a scripted model over real HTTP, real MCP servers over stdio and HTTP."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from desktop import __version__
from desktop.paths import Paths
from tests import real_servers
from tests.end_to_end.programs import deskhand, environment, finds_and_calls, write_servers
from tests.fakes.model_server import Answer, Call, ModelServer
from tests.servers.running import hostile

pytestmark = pytest.mark.anyio

ECHO = finds_and_calls("echo a message back", "everything.echo", {"message": "grüße 🙂"})


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def everything_over_http() -> AsyncIterator[str]:
    """The reference server over Streamable HTTP; its address."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        *real_servers.everything(),
        "streamableHttp",
        env=environment(PORT=str(port), HOST="127.0.0.1"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(20):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    await asyncio.sleep(0.05)
                    continue
                writer.close()
                await writer.wait_closed()
                break
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        await process.wait()


def model(server: ModelServer) -> list[str]:
    return ["--model", "openai/scripted", "--api-base", server.address]


async def test_a_model_finds_activates_and_calls_a_tool_over_stdio(tmp_path: Path) -> None:
    config = write_servers(tmp_path / "mcp.json", everything=real_servers.everything())
    async with ModelServer(ECHO) as server:
        found = await deskhand("ask", "echo it", *model(server), "--config", str(config), "--approve", "all")
    assert found.output.strip() == "Looking. \nThe tool said: Echo: grüße 🙂"
    assert found.status == 0
    assert "✔ everything.echo" in found.errors
    assert len(server.requests) == 4
    assert server.requests[0].tools == ["mcp_tools"]
    assert server.requests[3].tools == ["mcp_tools", "mcp__everything__echo"]


async def test_a_model_finds_activates_and_calls_a_tool_over_http() -> None:
    config = Path(Paths.for_user().config / "http.json")
    async with everything_over_http() as address, ModelServer(ECHO) as server:
        write_servers(config, everything=address)
        found = await deskhand("ask", "echo it", *model(server), "--config", str(config), "--approve", "all", "--json")
    assert found.status == 0
    names = [event["event"] for event in found.events]
    assert names[0] == "message_started"
    assert names[-1] == "turn_finished"
    finished = [event["call"] for event in found.events if event["event"] == "tool_call_finished"]
    assert [(call["server"], call["tool"], call["state"]) for call in finished][-1] == ("everything", "echo", "done")
    assert finished[-1]["output"]["text"] == "Echo: grüße 🙂"
    text = "".join(event["text"] for event in found.events if event["event"] == "text_delta")
    assert text.endswith("The tool said: Echo: grüße 🙂")
    assert found.events[-1]["usage"]["input_tokens"] >= 100


async def test_without_a_terminal_calls_are_denied_and_the_model_can_read_it(tmp_path: Path) -> None:
    config = write_servers(tmp_path / "mcp.json", everything=real_servers.everything())
    async with ModelServer(ECHO) as server:
        found = await deskhand("ask", "echo it", *model(server), "--config", str(config))
    assert found.status == 0
    assert "The person did not allow this call" in server.requests[-1].results[-1]
    assert "grüße" not in found.output


async def test_a_secret_that_a_tool_prints_is_masked_for_the_model(tmp_path: Path) -> None:
    environment_ = {"API_TOKEN": "canary-'0123456789'", "MODE": "production"}
    server = {"command": hostile()[0], "args": hostile()[1:], "env": environment_}
    config = write_servers(tmp_path / "mcp.json", hostile=server)
    async with ModelServer(finds_and_calls("environment", "hostile.environment", {})) as model_server:
        found = await deskhand("ask", "show it", *model(model_server), "--config", str(config), "--approve", "all")
    assert found.status == 0
    sent = json.dumps([each.body for each in model_server.requests], ensure_ascii=False)
    assert "canary" not in sent + found.errors
    assert '"API_TOKEN": "[redacted]"' in model_server.requests[-1].results[-1]
    assert '"MODE": "production"' in model_server.requests[-1].results[-1]


async def test_a_wrong_key_is_named_and_not_shown() -> None:
    async with ModelServer(key="sk-right-key-0123456789") as server:
        found = await deskhand("ask", "hello", *model(server), OPENAI_API_KEY="sk-wrong-key-9876543210")
    assert found.status == 1
    assert "[model_key_refused]" in found.errors
    assert "sk-wrong" not in found.errors + found.output


async def test_an_unknown_model_is_named() -> None:
    async with ModelServer(models=["other"]) as server:
        found = await deskhand("ask", "hello", *model(server))
    assert found.status == 1
    assert "[model_unknown]" in found.errors


async def test_a_model_that_is_not_there_is_unreachable() -> None:
    address = f"http://127.0.0.1:{free_port()}/v1"
    found = await deskhand("ask", "hello", "--model", "openai/scripted", "--api-base", address)
    assert found.status == 1
    assert "[model_unreachable]" in found.errors
    assert "Traceback" not in found.errors


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (Call("mcp_tools", "{not json"), "JSON"),
        (Call("mcp__nowhere__nothing", {}), "[tool_unknown]"),
        (Call("mcp_tools", {"query": "x", "activate": ["y"]}), "[usage]"),
    ],
    ids=["bad JSON", "unknown tool", "two operations"],
)
async def test_nonsense_of_a_model_is_answered_and_the_turn_goes_on(call: Call, told: str) -> None:
    async with ModelServer([Answer(calls=[call]), Answer(text="I see.")]) as server:
        found = await deskhand("ask", "go", *model(server), "--approve", "all")
    assert (found.status, found.output.strip()) == (0, "I see.")
    assert told in server.requests[1].results[0]


async def test_endless_calls_come_to_an_end() -> None:
    def script(_: object) -> Answer:
        return Answer(calls=[Call("mcp_tools", {"query": "time"})])

    async with ModelServer(script) as server:
        found = await deskhand("ask", "go", *model(server), "--approve", "all")
    assert "[call_limit]" in found.errors
    assert 50 <= len(server.requests) <= 53


async def test_a_broken_configuration_names_each_bad_entry_and_the_good_ones_work(tmp_path: Path) -> None:
    good = real_servers.everything()
    config = tmp_path / "mcp.json"
    config.write_text(
        json.dumps(
            {
                "mcpServers": {
                    "everything": {"command": good[0], "args": good[1:]},
                    "both": {"command": "x", "url": "http://127.0.0.1/"},
                    "number": {"command": 7},
                }
            }
        )
    )
    before = config.read_bytes()
    found = await deskhand("mcp-tools", '{"query": "everything.echo"}', "--config", str(config))
    assert "everything.echo" in found.output
    assert "both: [configuration_invalid]" in found.errors
    assert "number: [configuration_invalid]" in found.errors
    assert "command" in found.errors
    assert config.read_bytes() == before
    config.write_text('{"mcpServers": {')
    found = await deskhand("mcp-tools", '{"query": "current time"}', "--config", str(config))
    assert "[configuration_unreadable]" in found.errors
    assert "deskhand.current_time" in found.output
    assert config.read_text() == '{"mcpServers": {'


async def test_guide_answers_without_a_model() -> None:
    found = await deskhand("ask", "what time is it in Tokyo", "--approve", "all")
    assert found.status == 0
    assert "Asia/Tokyo" in found.output


async def test_mcp_tools_prints_what_the_model_gets_and_fails_on_usage() -> None:
    found = await deskhand("mcp-tools", '{"query": "time zone now"}')
    assert found.status == 0
    assert "deskhand.current_time" in found.output
    found = await deskhand("mcp-tools", "{}")
    assert found.status == 1
    assert "[usage]" in found.output


async def test_the_version_and_wrong_usage() -> None:
    found = await deskhand("--version")
    assert (found.status, found.output) == (0, f"Deskhand {__version__}\n")
    assert (await deskhand("nonsense")).status == 2
    assert (await deskhand("ask", "")).status == 2
    assert (await deskhand("ask", "x", "--config", "/nowhere/mcp.json")).status == 2


async def test_a_workspace_that_is_not_trusted_is_left_out_with_one_warning(tmp_path: Path, paths: Paths) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / ".mcp.json").write_text("garbage")
    query = ["mcp-tools", '{"query": "current time"}', "--workspace", str(folder)]
    found = await deskhand(*query)
    assert found.status == 0 and "deskhand.current_time" in found.output
    assert [line for line in found.errors.splitlines() if "deskhand: [" in line] == [
        "deskhand: [folder_not_trusted] The folder's own servers are left out: the folder is not trusted. "
        "Open the folder in Deskhand's window and trust it there, if you do."
    ]
    paths.data.mkdir(parents=True, exist_ok=True)
    (paths.data / "trusted_folders.json").write_text(json.dumps({str(tmp_path.resolve()): True}))
    found = await deskhand(*query)
    assert "[configuration_unreadable]" in found.errors and "folder_not_trusted" not in found.errors
    assert (await deskhand("mcp-tools", "{}", "--workspace", str(folder / "gone"))).status == 2


async def test_servers_run_in_the_workspace_and_a_trusted_one_brings_its_own(tmp_path: Path, paths: Paths) -> None:
    folder = tmp_path / "project"
    write_servers(folder / ".mcp.json", files={"command": "./not-agreed-to"})
    own = tmp_path / "own.json"
    write_servers(own, files=real_servers.filesystem(Path(".")))
    paths.data.mkdir(parents=True, exist_ok=True)
    (folder / "note.txt").write_text("in the workspace")
    read = {"activate": ["files.read_text_file"]}
    (paths.data / "trusted_folders.json").write_text(json.dumps({str(folder.resolve()): True}))
    found = await deskhand("mcp-tools", json.dumps(read), "--config", str(own), "--workspace", str(folder))
    assert "consent_required" in found.output  # the folder's own replaces the one of the file that was named
    (folder / ".mcp.json").unlink()
    script = finds_and_calls("read a text file", "files.read_text_file", {"path": "note.txt"})
    async with ModelServer(script) as server:
        found = await deskhand(
            "ask", "read it", *model(server), "--config", str(own), "--workspace", str(folder), "--approve", "all"
        )
    assert "The tool said: in the workspace" in found.output
