"""What of a result enters a conversation, and what becomes of the rest."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
import threading
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import mcp_types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop import processes
from desktop.assistant import limiter, stored_result
from desktop.assistant.conversation import ToolOutput
from desktop.assistant.results import ResultStore
from desktop.errors import AssistantError
from tests.fakes.full_disk import no_space_left

pytestmark = pytest.mark.anyio

PNG = "iVBORw0KGgo="


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    return ResultStore(tmp_path / "results")


def texts(*parts: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": part} for part in parts]


async def shown(store: ResultStore, content: list[dict[str, Any]], **members: Any) -> ToolOutput:
    result = mcp_types.CallToolResult.model_validate({"content": content} | members)
    return await store.output(result, conversation_id="c1", server="files")


async def read(store: ResultStore, *contents: dict[str, Any], header: str = "Server: files") -> ToolOutput:
    result = mcp_types.ReadResourceResult.model_validate({"contents": contents})
    return await store.read_output(result, conversation_id="c1", server="files", header=header)


def stored(output: ToolOutput) -> Any:
    assert output.spilled is not None
    return json.loads(Path(output.spilled.path).read_bytes())


def files(store: ResultStore) -> list[Path]:
    return [path for path in store.folder.rglob("*") if path.is_file()]


class TestParts:
    async def test_text_image_structured_content_and_error_mark_are_all_kept(self, store: ResultStore) -> None:
        image = {"type": "image", "data": PNG, "mimeType": "image/png"}
        output = await shown(store, [*texts("one"), image, *texts("two")], structuredContent={"n": 1}, isError=True)
        assert output.text == 'one\n\ntwo\n\n{\n  "n": 1\n}'
        assert [(each.mime_type, each.data) for each in output.images] == [("image/png", PNG)]
        assert output.reported_error
        assert output.spilled is None
        assert files(store) == []

    async def test_blocks_say_which_range_is_what(self, store: ResultStore) -> None:
        resource_ = {"type": "resource", "resource": {"uri": "a:b", "mimeType": "text/csv", "text": "a,b"}}
        output = await shown(store, [*texts("é狐"), resource_], structuredContent=[1])
        assert [(output.text[each.start : each.end], each.mime_type, each.structured) for each in output.blocks] == [
            ("é狐", "", False),
            ("a,b", "text/csv", False),
            ("[\n  1\n]", "application/json", True),
        ]

    async def test_a_link_names_the_exact_call_that_reads_it(self, store: ResultStore) -> None:
        link = {"type": "resource_link", "name": "report", "uri": "file:///a%2Fb/ü"}
        output = await shown(store, [link])
        assert output.text.splitlines() == [
            "report: file:///a%2Fb/ü",
            'Read it: mcp_tools {"read": {"server": "files", "uri": "file:///a%2Fb/ü"}}',
        ]

    async def test_a_link_that_is_no_uri_names_no_call(self, store: ResultStore) -> None:
        output = await shown(store, [{"type": "resource_link", "name": "x", "uri": "not a uri"}])
        assert output.text == "x: not a uri"

    @pytest.mark.parametrize(
        ("part", "named"),
        [
            ({"type": "audio", "data": "AAAAAAAA", "mimeType": "audio/wav"}, "[audio, audio/wav, 6 bytes: not shown]"),
            ({"type": "image", "data": "AAAA", "mimeType": "image/bmp"}, "[image, image/bmp, 3 bytes: not shown]"),
            (
                {"type": "image", "data": "no base64!", "mimeType": "image/png"},
                "[image, image/png, 7 bytes: not shown]",
            ),
            (
                {"type": "resource", "resource": {"uri": "a:b", "mimeType": "application/pdf", "blob": "JVBERi0x"}},
                "[resource, application/pdf, 6 bytes: not shown]",
            ),
        ],
    )
    async def test_what_cannot_be_shown_is_named_and_kept(
        self, store: ResultStore, part: dict[str, Any], named: str
    ) -> None:
        output = await shown(store, [*texts("before"), part])
        assert output.text.startswith(f"before\n\n{named}\n\n[")
        assert output.spilled is not None
        assert output.spilled.path in output.text
        assert str(output.spilled.size) in output.text
        data = part.get("data") or part["resource"]["blob"]
        assert data not in output.text
        assert data in json.dumps(stored(output))

    async def test_images_beyond_8_mib_of_base64_are_named_and_smaller_ones_still_shown(
        self, store: ResultStore
    ) -> None:
        sizes = [5 * 2**20, 4 * 2**20, 3 * 2**20]
        images = [{"type": "image", "data": "A" * size, "mimeType": "image/png"} for size in sizes]
        output = await shown(store, images)
        assert [len(each.data) for each in output.images] == [sizes[0], sizes[2]]
        assert "[image, image/png, 3145728 bytes beyond the limit: not shown]" in output.text
        assert len(stored(output)["content"]) == 3

    async def test_an_image_that_a_resource_holds_is_shown(self, store: ResultStore) -> None:
        blob = {"type": "resource", "resource": {"uri": "a:b", "mimeType": "image/png", "blob": PNG}}
        output = await shown(store, [blob])
        assert [each.data for each in output.images] == [PNG]
        assert output.spilled is None

    async def test_hidden_characters_never_reach_the_model(self, store: ResultStore) -> None:
        output = await shown(store, texts("ok\x1b[8mhidden\x1b[0m\u202e"), structuredContent={"a\u202e": "\u200b"})
        assert output.text == 'okhidden\n\n{\n  "a": ""\n}'

    async def test_a_result_without_parts_says_so(self, store: ResultStore) -> None:
        assert (await shown(store, [])).text == "[The result is empty.]"
        assert (await shown(store, texts(""))).text == "[The result is empty.]"

    async def test_a_mismatch_with_the_output_schema_is_a_warning(self, store: ResultStore) -> None:
        output = await shown(store, texts("x"), _meta={"deskhand/schemaMismatch": True})
        assert output.warning == "The result does not fit the tool's output schema."
        assert output.text == "x"


class TestStructuredContent:
    @pytest.mark.parametrize(
        ("parts", "structured"),
        [
            (['{"b":2,  "a": [1.50]}'], {"a": [1.50], "b": 2}),
            (["note", "[1]"], [1]),
            (["hello"], {"result": "hello"}),
            (["3"], {"result": 3}),
            (["a", '{"x": 1}'], {"result": ["a", {"x": 1}]}),
            (["[1, 2]"], {"result": [1, 2]}),
        ],
    )
    async def test_what_a_text_says_already_is_not_shown_twice(
        self, store: ResultStore, parts: list[str], structured: Any
    ) -> None:
        output = await shown(store, texts(*parts), structuredContent=structured)
        assert output.text == "\n\n".join(parts)

    @pytest.mark.parametrize(
        ("parts", "structured"),
        [
            (['{"a": 1}'], {"a": "1"}),
            (['{"a": 1}'], {"a": 1, "b": 2}),
            (["hello"], {"result": "hello", "more": 1}),
            (["a"], {"result": ["a", "b"]}),
            ([], {"result": []}),
        ],
    )
    async def test_what_says_more_is_shown(self, store: ResultStore, parts: list[str], structured: Any) -> None:
        output = await shown(store, texts(*parts), structuredContent=structured)
        assert output.text == "\n\n".join([*parts, json.dumps(structured, indent=2)])
        assert output.blocks[-1].structured

    async def test_structured_content_is_shown_and_kept_as_the_server_wrote_it(self, store: ResultStore) -> None:
        text = '{"price":1.50,"far":1e999,"none":-0,"price":2.0}'
        structured: dict[str, Any] = {"structuredContent": json.loads(text), "_meta": {"deskhand/structuredText": text}}
        output = await shown(store, [], **structured)
        assert output.text == '{\n  "price": 1.50,\n  "far": 1e999,\n  "none": -0,\n  "price": 2.0\n}'
        blob = {"type": "resource", "resource": {"uri": "a:b", "blob": "AAAA"}}
        output = await shown(store, [blob], **structured)
        assert output.spilled is not None
        kept = Path(output.spilled.path).read_text()
        assert f'"structuredContent": {text}' in kept
        assert "deskhand" not in kept

    async def test_large_integers_and_values_beyond_json_do_not_fail(self, store: ResultStore) -> None:
        output = await shown(store, [], structuredContent={"n": 2**200, "x": float("nan"), "y": float("inf")})
        assert output.text == f'{{\n  "n": {2**200},\n  "x": NaN,\n  "y": Infinity\n}}'

    async def test_an_integer_that_python_does_not_write_is_left_out_with_a_warning(self, store: ResultStore) -> None:
        result = mcp_types.CallToolResult(content=[mcp_types.TextContent(text="x")], structured_content=10**5000)
        output = await store.output(result, conversation_id="c1", server="files")
        assert output.text == "x"
        assert output.warning == "The structured content can't be written as JSON."


class TestLimits:
    async def test_3000_lines_become_2000_and_a_private_file_with_all(self, store: ResultStore) -> None:
        text = "\n".join(f"line {number}" for number in range(3000))
        output = await shown(store, texts(text))
        shown_text, closing = output.text.split("\n\n[")
        assert shown_text == "\n".join(f"line {number}" for number in range(2000))
        assert output.spilled is not None
        file = Path(output.spilled.path)
        assert stored(output)["content"] == texts(text)
        assert (output.spilled.size, output.spilled.characters, output.spilled.lines) == (
            file.stat().st_size,
            len(text),
            3000,
        )
        end = len(shown_text) + 1
        for fact in (
            f"first {end} of {len(text)} characters",
            "2000 of 3000 lines",
            str(file),
            str(output.spilled.size),
        ):
            assert fact in closing
        uri = f"result://{output.spilled.id}?offset={end}"
        assert f'mcp_tools {{"read": {{"server": "deskhand", "uri": "{uri}"}}}}' in closing
        assert output.blocks == []

    async def test_files_and_folders_are_the_owners_alone(self, store: ResultStore) -> None:
        output = await shown(store, texts("x" * 60_000))
        assert output.spilled is not None
        for path in files(store):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        for folder in (store.folder, Path(output.spilled.path).parent):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700

    async def test_a_first_line_that_is_too_long_is_cut_between_characters(self, store: ResultStore) -> None:
        output = await shown(store, texts("狐" * 30_000))
        shown_text = output.text.split("\n\n[")[0]
        assert shown_text == "狐" * (50 * 1024 // 3)

    async def test_a_long_line_after_short_ones_is_cut_and_one_that_fits_a_page_is_not(
        self, store: ResultStore
    ) -> None:
        long = await shown(store, texts("title\n" + "x" * 60_000))
        assert long.text.split("\n\n[")[0] == "title\n" + "x" * (50 * 1024 - 6)
        fitting = await shown(store, texts("title\n" + "x" * 50_000 + "\n" + "y" * 50_000))
        assert fitting.text.split("\n\n[")[0] == "title\n" + "x" * 50_000

    @pytest.mark.parametrize("text", ["x" * 50 * 1024, "x\n" * 2000, "\n".join("x" * 2000)])
    async def test_what_just_fits_is_shown_whole(self, store: ResultStore, text: str) -> None:
        output = await shown(store, texts(text))
        assert output.text == text
        assert output.spilled is None
        assert files(store) == []

    @pytest.mark.parametrize("text", ["x" * (50 * 1024 + 1), "x\n" * 2000 + "x", "é" * 25_601])
    async def test_one_more_is_too_much(self, store: ResultStore, text: str) -> None:
        assert (await shown(store, texts(text))).spilled is not None

    async def test_a_text_of_deskhands_own_keeps_the_limits(self, store: ResultStore) -> None:
        output = await store.text_output("word " * 20_000, conversation_id="c1")
        assert output.spilled is not None
        assert len(output.text.encode()) < 51 * 1024
        assert stored(output)["content"][0]["text"] == "word " * 20_000


class TestHead:
    @given(text=st.text(st.sampled_from("ab\né狐👩"), max_size=80), lines=st.integers(1, 6), size=st.integers(4, 20))
    def test_it_is_the_longest_beginning_of_whole_lines_or_of_a_line_that_fits_nowhere(
        self, text: str, lines: int, size: int
    ) -> None:
        end = limiter.head(text, lines, size)
        shown_text = text[:end]
        assert len(shown_text.encode()) <= size
        assert limiter.count_lines(shown_text) <= lines
        assert end == limiter.head(text[: 2 * size + 1], lines, size), "a beginning tells"
        if end == len(text):
            return
        assert end > 0
        rest = text[end:].splitlines(keepends=True)[0]
        if shown_text.endswith("\n"):
            too_much = limiter.count_lines(shown_text) == lines or len((shown_text + rest).encode()) > size
            assert too_much
        else:
            line = (shown_text.rpartition("\n")[2] + rest).removesuffix("\n")
            assert len(line.encode()) > size - len("\n")
            assert len((shown_text + rest[0]).encode()) > size


class TestReads:
    async def test_each_part_is_named_below_the_header(self, store: ResultStore) -> None:
        output = await read(
            store,
            {"uri": "a:1", "mimeType": "text/plain", "text": "one"},
            {"uri": "a:2", "text": "two"},
            {"uri": "a:3", "mimeType": "image/png", "blob": PNG},
        )
        assert output.text == ("Server: files\n\na:1 (text/plain):\none\n\na:2 (unspecified):\ntwo\n\na:3 (image/png):")
        assert [each.data for each in output.images] == [PNG]
        assert [output.text[each.start : each.end] for each in output.blocks] == ["one", "two"]

    async def test_a_resource_without_contents_says_so(self, store: ResultStore) -> None:
        assert (await read(store)).text == "Server: files\n\n[The result is empty.]"

    async def test_the_header_counts_in_the_limit_and_not_in_the_offset(self, store: ResultStore) -> None:
        lines = "".join(f"{number}\n" for number in range(3000))
        output = await read(store, {"uri": "a:1", "text": lines}, header="\n".join("h" * 100))
        shown_text = output.text.split("\n\n[")[0]
        assert len(shown_text.splitlines()) == 2000
        assert output.spilled is not None
        page = await store.page(output.spilled.id, 0, None)
        assert page.startswith("a:1 (unspecified):\n0\n1\n")

    @pytest.mark.parametrize("header", ["h", "h" * 20, "h" * 200])
    async def test_one_long_line_is_shown_below_a_header_of_any_length(self, store: ResultStore, header: str) -> None:
        for size in (51_000, 51_200, 60_000, 200_000):
            output = await read(store, {"uri": "a:1", "text": "x" * size}, header=header)
            shown_text = output.text.split("\n\n[")[0]
            assert shown_text.startswith(f"{header}\n\na:1 (unspecified):\nxxx"), size
            assert len(shown_text) in (50 * 1024, len(header) + 21 + size), size


class TestPages:
    async def test_pages_give_the_whole_text_without_gap_or_overlap(self, store: ResultStore) -> None:
        text = "".join(f"{number} é狐👩 {'x' * (number % 90)}\n" for number in range(9000))
        output = await shown(store, texts(text))
        assert output.spilled is not None
        pieces: list[str] = []
        offset = 0
        while offset < len(text):
            page = await store.page(output.spilled.id, offset, None)
            piece, _, closing = page.rpartition("\n[")
            assert limiter.head(piece, limiter.PAGE_LINES, limiter.PAGE_BYTES) == len(piece)
            assert f"of {len(text)}." in closing
            pieces.append(piece)
            offset += len(piece)
            if offset < len(text):
                assert f'"uri": "result://{output.spilled.id}?offset={offset}"' in closing
        assert closing.endswith("This is the end.]")
        assert "".join(pieces) == text

    @pytest.mark.parametrize(("offset", "length"), [(0, 5), (65_530, 20), (131_071, 3), (199_990, 100)])
    async def test_a_page_has_the_length_that_was_asked_for(self, store: ResultStore, offset: int, length: int) -> None:
        text = "".join(chr(0x4E00 + number % 20_000) for number in range(200_000))
        output = await shown(store, texts(text))
        assert output.spilled is not None
        page = await store.page(output.spilled.id, offset, length)
        assert page.rpartition("\n[")[0] == text[offset : offset + length]

    async def test_a_page_of_another_run_is_found(self, store: ResultStore) -> None:
        output = await shown(store, texts("x" * 60_000))
        assert output.spilled is not None
        again = ResultStore(store.folder)
        assert (await again.page(output.spilled.id, 0, 3)).startswith("xxx\n[Characters 0 to 3 of 60000.")

    @pytest.mark.parametrize(("offset", "length"), [(60_000, None), (-1, None), (0, 0), (0, -1)])
    async def test_a_place_that_is_not_there_is_refused(
        self, store: ResultStore, offset: int, length: int | None
    ) -> None:
        output = await shown(store, texts("x" * 60_000))
        assert output.spilled is not None
        with pytest.raises(AssistantError) as raised:
            await store.page(output.spilled.id, offset, length)
        assert raised.value.diagnostic.message == "The arguments are not valid: the text has 60000 characters."

    @pytest.mark.parametrize("id_", ["0123456789abcdef", "../../etc/passwd", "", "*"])
    async def test_a_result_that_is_gone_is_said_so(self, store: ResultStore, id_: str) -> None:
        for question in (store.page(id_, 0, None), store.find(id_, "x", 1), store.select_json(id_, "")):
            with pytest.raises(AssistantError) as raised:
                await question
            assert raised.value.diagnostic.code == "result_gone"


class TestQuestions:
    async def test_find_gives_offset_line_and_what_stands_there(self, store: ResultStore) -> None:
        text = "".join(f"Entry {number}: é\n" for number in range(3000))
        output = await shown(store, texts(text))
        assert output.spilled is not None
        found = await store.find(output.spilled.id, "entry 2999", 5)
        assert found == f"1 places:\noffset {text.index('Entry 2999')}, line 3000: Entry 2999: é"
        page = await store.page(output.spilled.id, text.index("Entry 2999"), 10)
        assert page.startswith("Entry 2999")

    async def test_find_takes_a_regular_expression_where_the_words_are_not_there(self, store: ResultStore) -> None:
        output = await shown(store, texts("a+b (c\n" * 10_000 + "code 17"))
        assert output.spilled is not None
        assert (await store.find(output.spilled.id, "A+B (C", 2)).startswith(
            "10000 places; the first 2:\noffset 0, line 1"
        )
        assert (await store.find(output.spilled.id, r"^code \d+$", 2)) == (
            "1 places as a regular expression:\noffset 70000, line 10001: code 17"
        )
        assert await store.find(output.spilled.id, "nothing(", 2) == "0 places."

    async def test_a_search_that_takes_too_long_is_ended(
        self, store: ResultStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("desktop.assistant.results._QUESTION_LIMIT", 1.0)
        output = await shown(store, texts("a" * 60_000))
        assert output.spilled is not None
        with pytest.raises(AssistantError) as raised:
            await store.find(output.spilled.id, "(a|aa)+$b", 1)
        assert raised.value.diagnostic.message == "The arguments are not valid: the search takes too long."

    async def test_an_empty_pattern_is_refused(self, store: ResultStore) -> None:
        with pytest.raises(AssistantError):
            await store.find("0123456789abcdef", "", 1)

    async def test_select_leads_into_the_result_the_structured_content_or_a_text(self, store: ResultStore) -> None:
        rows = [{"id": number, "value": number * 1.5} for number in range(9000)]
        output = await shown(store, texts(json.dumps({"inner": [7, 8]})), structuredContent={"rows": rows})
        assert output.spilled is not None
        id_ = output.spilled.id
        assert await store.select_json(id_, "/structuredContent/rows/8999/id") == "8999"
        assert await store.select_json(id_, "/rows/1") == '{\n  "id": 1,\n  "value": 1.5\n}'
        assert await store.select_json(id_, "/inner/1") == "8"
        assert await store.select_json(id_, "/isError") == "false"
        for pointer, reason in [("/rows/9000", "nothing is at /rows"), ("rows", "a pointer begins with /")]:
            with pytest.raises(AssistantError) as raised:
                await store.select_json(id_, pointer)
            assert reason in raised.value.diagnostic.message

    async def test_a_selected_value_that_is_too_long_is_cut(self, store: ResultStore) -> None:
        output = await shown(store, [], structuredContent={"rows": list(range(20_000))})
        assert output.spilled is not None
        selected = await store.select_json(output.spilled.id, "/rows")
        assert selected.splitlines()[1899:] == ["  1898,", "", selected.splitlines()[-1]]
        assert selected.endswith("characters; select a part of it to see the rest.]")


class TestStorage:
    async def test_without_space_the_head_is_shown_and_says_that_the_rest_is_lost(self, store: ResultStore) -> None:
        with no_space_left():
            output = await shown(store, texts("x" * 60_000))
        assert output.text.startswith("x" * 51_200 + "\n\n[Shown: the first 51200 of 60000 characters, 1 of 1 lines.")
        assert output.text.endswith("The rest could not be kept: the system refused (EFBIG).]")
        assert output.warning.startswith("[storage_failed] A file could not be written: the system refused (EFBIG).")
        assert output.spilled is None
        assert output.diagnostic is None
        assert files(store) == []

    async def test_where_no_folder_can_be_made_the_head_is_shown(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        store = ResultStore(tmp_path / "file" / "results")
        output = await shown(store, texts("x" * 60_000))
        assert output.text.startswith("x" * 51_200)
        assert "The rest could not be kept" in output.text
        assert output.spilled is None

    async def test_of_a_read_that_is_stopped_while_it_is_stored_nothing_is_left(
        self, store: ResultStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        begun, may_end = threading.Event(), threading.Event()
        write = stored_result.write_result

        def write_slowly(*arguments: Any) -> None:
            begun.set()
            assert may_end.wait(20)
            write(*arguments)

        monkeypatch.setattr(stored_result, "write_result", write_slowly)
        others = asyncio.all_tasks()
        reading = asyncio.create_task(read(store, {"uri": "a:b", "text": "line\n" * 3000}))
        assert await asyncio.to_thread(begun.wait, 20)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        (work,) = asyncio.all_tasks() - others - {reading}
        may_end.set()
        output = await work
        await asyncio.sleep(0)
        assert output.spilled is not None
        assert files(store) == []

    async def test_where_a_conversation_can_have_no_folder_nothing_is_left_half_done(self, store: ResultStore) -> None:
        store.spool_folder.with_name("c1").write_text("in the way")
        output = await shown(store, texts("x" * 60_000))
        assert "The rest could not be kept" in output.text
        assert [path.name for path in files(store)] == ["c1"]

    async def test_a_folder_goes_with_its_conversation_and_no_other(self, store: ResultStore) -> None:
        kept, gone = (
            await shown(store, texts("x" * 60_000)),
            await store.text_output("y" * 60_000, conversation_id="c2"),
        )
        assert kept.spilled is not None and gone.spilled is not None
        sizes = store.sizes()
        assert sizes.keys() == {"c1", "c2"}
        assert sizes["c1"] > 2 * 60_000
        store.delete("c2")
        assert store.sizes().keys() == {"c1"}
        with pytest.raises(AssistantError):
            await store.page(gone.spilled.id, 0, None)
        assert await store.page(kept.spilled.id, 0, None)

    async def test_no_conversation_id_leads_out_of_the_folder(self, store: ResultStore) -> None:
        for conversation_id in ("../../outside", "/etc", "", "spool-1-1", "x" * 300):
            output = await store.text_output("y" * 60_000, conversation_id=conversation_id)
            assert output.spilled is not None
            assert Path(output.spilled.path).parent.parent == store.folder
            store.delete(conversation_id)
        assert store.sizes() == {}

    async def test_only_what_a_dead_owner_left_is_swept(self, store: ResultStore) -> None:
        own = store.spool_folder
        (own / "half.json").write_text("{")
        program = "from desktop import processes; print(processes.owner_tag(), flush=True); input()"
        child = await processes.start([sys.executable, "-c", program], stdin=PIPE, stdout=PIPE)
        assert child.stdout is not None and child.stdin is not None
        others = store.folder / f"spool-{(await child.stdout.readline()).decode().strip()}"
        others.mkdir()
        (others / "half.json").write_text("{")
        await asyncio.to_thread(store.sweep)
        assert (others / "half.json").exists()
        child.stdin.close()
        await asyncio.wait_for(child.wait(), 10)
        await asyncio.to_thread(store.sweep)
        assert not others.exists()
        assert (own / "half.json").exists()

    async def test_sweeping_and_listing_need_no_folder(self, store: ResultStore) -> None:
        store.sweep()
        assert store.sizes() == {}
        assert processes.owner_tag() in store.spool_folder.name
        assert os.listdir(store.folder) == [store.spool_folder.name]
