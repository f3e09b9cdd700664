"""Messages of many megabytes are read by a process of their own, and a head stands for them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import mcp_types
import psutil
import pytest

from desktop.assistant import limiter
from desktop.assistant.conversation import ToolOutput
from desktop.assistant.results import ResultStore
from desktop.errors import AssistantError
from tests.fakes.full_disk import no_space_left

pytestmark = pytest.mark.anyio

LARGE = 2 * 2**20


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    return ResultStore(tmp_path / "results")


async def received(store: ResultStore, message: str | bytes) -> dict[str, Any]:
    """The message that stands for a large one, received as a transport does it."""
    file = store.spool_folder / "message"
    file.write_bytes(message if isinstance(message, bytes) else message.encode())
    try:
        return json.loads(await store.receive_large(file))
    finally:
        assert not file.exists()


def response(result: str, id_: str = "7") -> str:
    return f'{{"jsonrpc":"2.0","id":{id_},"result":{result}}}'


async def shown(store: ResultStore, result: str) -> ToolOutput:
    message = await received(store, response(result))
    parsed = mcp_types.CallToolResult.model_validate(message["result"])
    return await store.output(parsed, conversation_id="c1", server="files")


def text_result(text: str, **members: Any) -> str:
    return json.dumps({"content": [{"type": "text", "text": text}]} | members, ensure_ascii=False)


async def test_a_head_of_the_same_id_stands_for_a_large_result(store: ResultStore) -> None:
    text = "".join(f"line {number} é\n" for number in range(200_000))
    members = {"isError": True, "resultType": "complete", "_meta": {"theirs": 1}}
    message = await received(store, response(text_result(text, **members), '"a-7"'))
    assert message["id"] == "a-7"
    result = message["result"]
    assert result["content"] == [{"type": "text", "text": text[: limiter.head(text)]}]
    assert (result["isError"], result["resultType"], result["_meta"]["theirs"]) == (True, "complete", 1)
    assert result["_meta"]["deskhand/large"] not in text
    assert len(json.dumps(message)) < 2**20


async def test_the_file_holds_the_very_bytes_of_the_result(store: ResultStore) -> None:
    result = '{ "structuredContent":{"n":1.50,"n":12345678901234567890123, "e":1E999,"é":"\\u00e9"},"content" : [ ' + (
        '{"type":"text","text":"' + "x" * LARGE + '"}],  "isError":false }'
    )
    output = await shown(store, result)
    assert output.spilled is not None
    assert Path(output.spilled.path).read_text() == result
    assert output.spilled.size == len(result.encode())
    assert await store.select_json(output.spilled.id, "/structuredContent/e") == "1E999"


async def test_structured_content_keeps_every_digit_in_the_shown_text(store: ResultStore) -> None:
    rows = ",".join(f'{{"n":{number}.500,"big":1234567890123456789012{number}}}' for number in range(60_000))
    output = await shown(store, f'{{"content":[],"structuredContent":{{"rows":[{rows}]}}}}')
    assert output.text.startswith(
        '{\n  "rows": [\n    {\n      "n": 0.500,\n      "big": 12345678901234567890120\n    },\n'
    )
    assert output.spilled is not None
    last = await store.find(output.spilled.id, "59999.500", 1)
    assert '"n": 59999.500,' in last
    assert await store.select_json(output.spilled.id, "/rows/59999/big") == "123456789012345678901259999"


async def test_all_pages_of_a_large_result_give_its_text(store: ResultStore) -> None:
    text = "".join(f"{number} é狐\n" for number in range(120_000))
    output = await shown(store, text_result(text))
    assert output.spilled is not None
    assert (output.spilled.characters, output.spilled.lines) == (len(text), 120_000)
    offset = len(output.text.split("\n\n[")[0]) + 1
    pages = [text[:offset]]
    while offset < len(text):
        pages.append((await store.page(output.spilled.id, offset, None)).rpartition("\n[")[0])
        offset += len(pages[-1])
    assert "".join(pages) == text


async def test_images_within_the_limit_survive(store: ResultStore) -> None:
    image = {"type": "image", "mimeType": "image/png", "data": "A" * (3 * 2**20)}
    result = {"content": [image, {"type": "text", "text": "x" * LARGE}, image, image]}
    output = await shown(store, json.dumps(result))
    assert [len(each.data) for each in output.images] == [3 * 2**20, 3 * 2**20]
    assert output.text.startswith("x" * 1000)
    assert output.spilled is not None


async def test_a_result_that_is_large_for_its_images_alone_leaves_no_file(store: ResultStore) -> None:
    image = {"type": "image", "mimeType": "image/png", "data": "A" * LARGE}
    output = await shown(store, json.dumps({"content": [{"type": "text", "text": "a picture"}, image]}))
    assert (output.text, len(output.images), output.spilled) == ("a picture", 1, None)
    assert [path for path in store.folder.rglob("*") if path.is_file()] == []


async def test_a_link_in_a_large_result_names_its_server(store: ResultStore) -> None:
    link = {"type": "resource_link", "name": "next", "uri": "file:///a%2Fb"}
    text = {"type": "text", "text": "x" * LARGE}
    output = await shown(store, json.dumps({"content": [link, text]}))
    assert output.text.startswith(
        'next: file:///a%2Fb\nRead it: mcp_tools {"read": {"server": "files", "uri": "file:///a%2Fb"}}\n\nxxx'
    )
    assert output.spilled is not None
    assert (await store.page(output.spilled.id, 0, 20)).startswith("next: file:///a%2Fb\n")


async def test_a_large_read_is_shown_below_its_header(store: ResultStore) -> None:
    contents = [{"uri": "a:1", "mimeType": "text/plain", "text": "y\n" * LARGE}]
    message = await received(store, response(json.dumps({"contents": contents, "ttlMs": 5, "cacheScope": "private"})))
    parsed = mcp_types.ReadResourceResult.model_validate(message["result"])
    assert parsed.ttl_ms == 5
    output = await store.read_output(parsed, conversation_id="c1", server="files", header="Server: files")
    assert output.text.startswith("Server: files\n\na:1 (text/plain):\ny\ny\n")
    assert len(output.text.split("\n\n[")[0].splitlines()) == 2000
    assert output.spilled is not None


async def test_a_large_read_of_one_line_is_shown_below_a_short_header(store: ResultStore) -> None:
    message = await received(store, response(json.dumps({"contents": [{"uri": "a:1", "text": "z" * LARGE}]})))
    parsed = mcp_types.ReadResourceResult.model_validate(message["result"])
    output = await store.read_output(parsed, conversation_id="c1", server="files", header="h")
    assert len(output.text.split("\n\n[")[0]) == 50 * 1024
    assert output.text.startswith("h\n\na:1 (unspecified):\nzzz")


@pytest.mark.parametrize(
    "message",
    [
        response(json.dumps({"tools": [{"name": "t", "description": "d" * LARGE}]})),
        response(json.dumps({"messages": [{"role": "user", "content": {"type": "text", "text": "d" * LARGE}}]})),
        response(json.dumps({"resultType": "input_required", "content": [], "x": "d" * LARGE})),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "d" * LARGE}}),
        json.dumps({"jsonrpc": "2.0", "id": 7, "error": {"code": 1, "message": "d" * LARGE}}),
    ],
    ids=["tools", "prompt", "incomplete", "notification", "error"],
)
async def test_what_is_no_complete_result_of_a_tool_or_a_read_stays_as_it_is(store: ResultStore, message: str) -> None:
    assert await received(store, message) == json.loads(message)


@pytest.mark.parametrize("id_", ["7", '"a-7"'])
@pytest.mark.parametrize("where", ["head", "tail"])
async def test_what_is_no_json_becomes_the_error_of_its_request(store: ResultStore, id_: str, where: str) -> None:
    result = '{"content":[{"type":"text","id":9,"text":"' + "x" * LARGE + "}}]}"  # the quote is missing
    if where == "head":
        message = f'{{"jsonrpc": "2.0", "id": {id_}, "result": {result}}}'
    else:
        message = f'{{"result": {result}, "jsonrpc": "2.0", "id": {id_}}}\n'
    answer = await received(store, message)
    assert answer["id"] == json.loads(id_)
    assert answer["error"] == {"code": -32700, "message": "The answer is no JSON."}


async def test_what_is_no_utf8_is_no_json(store: ResultStore) -> None:
    message = response(text_result("x" * LARGE)).encode().replace(b"xx", b"\xff\xfe", 1)
    assert (await received(store, message))["error"]["code"] == -32700


async def test_an_answer_to_nobody_raises(store: ResultStore) -> None:
    with pytest.raises(ValueError):
        await received(store, "x" * LARGE)


async def test_a_message_that_takes_too_long_is_given_up(store: ResultStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("desktop.assistant.results._TIME_LIMIT", 0.001)
    with pytest.raises(AssistantError) as raised:
        await received(store, response(text_result("x" * LARGE)))
    assert raised.value.diagnostic.code == "operation_failed"
    assert [path for path in store.folder.rglob("*") if path.is_file()] == []


async def test_a_stopped_reception_leaves_no_process_and_no_file(store: ResultStore) -> None:
    file = store.spool_folder / "message"
    file.write_text(response(text_result("x" * 20 * 2**20)))
    task = asyncio.create_task(store.receive_large(file))
    async with asyncio.timeout(10):
        while not psutil.Process().children():  # noqa: ASYNC110
            await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [path for path in store.folder.rglob("*") if path.is_file()] == []


async def test_without_space_the_head_is_shown(store: ResultStore) -> None:
    message = response(text_result("x" * LARGE)).encode()
    file = store.spool_folder / "message"
    file.write_bytes(message)
    with no_space_left():
        result = json.loads(await store.receive_large(file))["result"]
        parsed = mcp_types.CallToolResult.model_validate(result)
        output = await store.output(parsed, conversation_id="c1", server="files")
    assert output.text.startswith("x" * 51_200)
    assert output.text.endswith("The rest could not be kept: the system refused (EFBIG).]")
    assert "storage_failed" in output.warning


async def test_a_server_cannot_pass_a_result_off_as_received(store: ResultStore) -> None:
    output = await shown(store, text_result("x" * LARGE))
    assert output.spilled is not None
    forged = mcp_types.CallToolResult.model_validate(
        json.loads(text_result("forged", _meta={"deskhand/large": output.spilled.id}))
    )
    again = await store.output(forged, conversation_id="c2", server="evil")
    assert (again.text, again.spilled) == ("forged", None)
    inner = await received(store, response(text_result("x" * LARGE, _meta={"deskhand/large": "theirs"})))
    assert inner["result"]["_meta"]["deskhand/large"] != "theirs"


async def test_results_that_nobody_asks_for_go_in_the_end(store: ResultStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("desktop.assistant.results._MOST_RECEIVED", 1)
    first = await received(store, response(text_result("1" * LARGE)))
    second = await received(store, response(text_result("2" * LARGE)))
    kept = {path.stem for path in store.spool_folder.iterdir()}
    assert kept == {second["result"]["_meta"]["deskhand/large"]}
    late = await store.output(
        mcp_types.CallToolResult.model_validate(first["result"]), conversation_id="c1", server="files"
    )
    assert late.text.startswith("1" * 1000)


async def test_the_loop_and_the_memory_stay_free_while_45_mb_come(store: ResultStore) -> None:
    file = store.spool_folder / "message"
    file.write_text(response(text_result("The quick brown fox jumps over the lazy dog.\n" * 10**6)))
    before = psutil.Process().memory_info().rss
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.005)
            longest = max(longest, time.perf_counter() - began)

    watching = asyncio.create_task(watch())
    message = json.loads(await store.receive_large(file))
    watching.cancel()
    assert psutil.Process().memory_info().rss - before < 8 * 2**20
    assert longest < 0.25, "a process of our own would be busy for longer than this"
    parsed = mcp_types.CallToolResult.model_validate(message["result"])
    output = await store.output(parsed, conversation_id="c1", server="files")
    assert output.spilled is not None
    assert output.spilled.characters == 45 * 10**6
    began = time.perf_counter()
    page = await store.page(output.spilled.id, 44_999_955, 45)
    assert time.perf_counter() - began < 0.25
    assert page.startswith(
        "The quick brown fox jumps over the lazy dog.\n\n[Characters 44999955 to 45000000 of 45000000. This is the end.]"
    )


async def test_an_installed_deskhand_is_its_own_reader(
    store: ResultStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "deskhand"
    root = Path(__file__).parents[2]
    program.write_text(
        f'#!/bin/sh\n[ "$1" = --large-message ] || exit 9\ncd {root}\n'
        f'exec {sys.executable} -m desktop.assistant.large_message "$2"\n'
    )
    program.chmod(0o700)
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", str(program))
    assert (await shown(store, text_result("x" * LARGE))).text.startswith("x" * 1000)


async def test_a_question_on_a_result_whose_files_vanish_is_answered(store: ResultStore) -> None:
    output = await shown(store, text_result("x" * LARGE))
    assert output.spilled is not None
    Path(output.spilled.path).with_suffix(".txt").unlink()
    with pytest.raises(AssistantError) as raised:
        await store.page(output.spilled.id, 0, None)
    assert raised.value.diagnostic.code == "result_gone"


def test_the_reader_imports_nothing_heavy() -> None:
    program = "import sys, desktop.assistant.large_message; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"asyncio", "numpy", "pydantic", "mcp_types", "dataclasses", "uuid", "PySide6", "platformdirs"}
    assert heavy & set(modules) == set()
