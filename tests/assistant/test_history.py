"""Conversations survive: a stop, a kill, a full disk, a lock, a damaged file."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sqlite3
import stat
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from desktop import processes
from desktop.assistant.conversation import (
    Choice,
    ChoiceOption,
    Conversation,
    Form,
    Image,
    Message,
    Notice,
    Reasoning,
    SpilledFile,
    Text,
    ToolCall,
    ToolOutput,
    Usage,
)
from desktop.assistant.history import History
from desktop.errors import AssistantError, Diagnostic
from tests.fakes.full_disk import no_space_left

pytestmark = pytest.mark.anyio


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "data" / "history.db"


@pytest.fixture
async def history(file: Path) -> AsyncIterator[History]:
    opened = History(file)
    await opened.open()
    yield opened
    await opened.close()


def said(history: History, conversation: Conversation, *texts: str) -> list[Message]:
    """Adds messages in turn, the person's first, and saves them."""
    messages: list[Message] = []
    for text in texts:
        role = "assistant" if conversation.messages and conversation.messages[-1].role == "user" else "user"
        messages.append(conversation.add(Message(role, [Text(text)])))
        history.save(conversation, messages[-1])
    return messages


def conversation_with_every_part() -> Conversation:
    output = ToolOutput(
        "result \ud800",
        [Image("image/png", "AAAA")],
        reported_error=True,
        diagnostic=Diagnostic("timeout", "call", "files", {"limit": 3}),
        spilled=SpilledFile("ab", "/tmp/x.json", 5, 4, 1),
    )
    call = ToolCall("1", "mcp__a__b", '{"q": 1', "a", "b", state="failed", output=output, activated=["mcp__a__b"])
    conversation = Conversation(title="All parts")
    conversation.add(Message("user", [Text("Größe 漢字 \x00"), Image("image/png", "AAAA")]))
    parts = [Reasoning("hm"), Text("`code`"), call, Notice(Diagnostic("cancelled"), "info")]
    parts += [
        Choice("Which?", [ChoiceOption("A", "a"), ChoiceOption("B")], 1),
        Form("a", "b", {"type": "object"}, {}, {"x": 1}),
    ]
    conversation.add(Message("assistant", parts, model="m", usage=Usage(1, 2, None, 0.5)))
    return conversation


class TestSaving:
    async def test_what_was_saved_is_loaded_as_it_was(self, history: History) -> None:
        conversation = conversation_with_every_part()
        for message in conversation.messages:
            history.save(conversation, message)
        assert await history.load(conversation.id) == conversation

    async def test_it_is_on_disk_within_100_ms_without_a_flush(self, history: History, file: Path) -> None:
        conversation = Conversation()
        changed = asyncio.Event()
        history.changed.connect(changed.set)
        began = time.perf_counter()
        said(history, conversation, "hello")
        await asyncio.wait_for(changed.wait(), 5)
        assert time.perf_counter() - began < 0.2, "100 ms, and some for a busy machine"
        with closing(sqlite3.connect(file)) as other:
            assert other.execute("SELECT count(*) FROM messages").fetchone() == (1,)

    async def test_many_changes_of_a_message_are_one_write_of_the_last(self, history: History, file: Path) -> None:
        conversation = Conversation()
        (message,) = said(history, conversation, "")
        with closing(sqlite3.connect(file)) as other:
            before = other.execute("PRAGMA data_version").fetchone()
            for number in range(1000):
                message.parts = [Text(f"word {number}")]
                history.save(conversation, message)
            await history.flush()
            assert other.execute("PRAGMA data_version").fetchone() != before
            assert [
                json.loads(row[0])["parts"][0]["text"] for row in other.execute("SELECT content FROM messages")
            ] == ["word 999"]
            assert other.execute("SELECT count(*) FROM message_text").fetchone() == (1,)

    async def test_closing_writes_what_was_saved_last(self, file: Path) -> None:
        history = History(file)
        conversation = Conversation()
        said(history, conversation, "last words")
        await history.close()
        await history.close()
        again = History(file)
        assert (await again.load(conversation.id)).messages[0].text == "last words"
        await again.close()

    async def test_files_are_the_owners_alone(self, history: History, file: Path) -> None:
        said(history, Conversation(), "secret")
        await history.flush()
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in file.parent.iterdir()} == {
            "history.db": 0o600,
            "history.db-wal": 0o600,
            "history.db-shm": 0o600,
        }

    async def test_a_list_is_told_of_news_and_not_of_every_word(self, history: History) -> None:
        conversation = Conversation()
        (message,) = said(history, conversation, "hello")
        await history.flush()
        told: list[str] = []
        history.changed.connect(lambda: told.append("changed"))
        message.parts.append(Text("more"))
        history.save(conversation, message)
        await history.flush()
        assert told == []
        said(history, conversation, "answer")
        await history.flush()
        assert told == ["changed"]


class TestTitles:
    async def test_a_conversation_without_title_is_listed_by_its_first_words(self, history: History) -> None:
        conversation = Conversation()
        said(history, conversation, "Which invoices\nare open? " + "word " * 30, "none")
        (summary,) = await history.summaries()
        assert summary.title.startswith("Which invoices are open? word")
        assert len(summary.title) == 60

    async def test_a_new_title_stays_though_the_conversation_knows_an_old_one(self, history: History) -> None:
        conversation = Conversation(title="old")
        said(history, conversation, "one")
        await history.flush()
        await history.rename(conversation.id, "new")
        said(history, conversation, "two")
        await history.flush()
        assert [each.title for each in await history.summaries()] == ["new"]
        conversation.title = "own"
        history.save_conversation(conversation)
        assert [each.title for each in await history.summaries()] == ["own"]

    async def test_what_a_list_shows_of_an_untitled_one_can_be_renamed(self, history: History) -> None:
        conversation = Conversation()
        said(history, conversation, "one")
        await history.rename(conversation.id, "new \ud800")
        said(history, conversation, "two")
        assert [each.title for each in await history.summaries()] == ["new \\ud800"]


class TestSearch:
    async def test_messages_arguments_results_and_titles_are_found(self, history: History) -> None:
        for number, word in enumerate(["prose", "argument", "outcome", "title"]):
            conversation = Conversation(title="a title 100%" if word == "title" else str(number))
            call = ToolCall("1", "mcp__x__y", '{"q": "argument"}' if word == "argument" else "{}", state="done")
            call.output = ToolOutput("the outcome" if word == "outcome" else "")
            message = Message("user", [Text("some prose here" if word == "prose" else ""), call])
            history.save(conversation, conversation.add(message))
        for word, title in [
            ("prose", "0"),
            ("argument", "1"),
            ("outcome", "2"),
            ("title", "a title 100%"),
            ("100%", "a title 100%"),
        ]:
            assert [each.title for each in await history.summaries(word)] == [title], word

    async def test_the_last_word_is_a_beginning_and_all_words_count(self, history: History) -> None:
        conversation = Conversation(title="t")
        messages = said(history, conversation, "open invoices of March", "Größe")
        (found,) = await history.summaries("march inv")
        assert (found.id, found.message_id) == (conversation.id, messages[0].id)
        assert "invoices of March" in found.snippet
        assert await history.summaries("inv march april") == []
        assert len(await history.summaries("grosse gro")) == 0
        assert len(await history.summaries("gro")) == 1

    async def test_scripts_without_spaces_are_found_by_any_part(self, history: History) -> None:
        said(history, Conversation(title="t"), "请打开三月的发票 file")
        (found,) = await history.summaries("三月的")
        assert found.snippet == "请打开三月的发票 file"
        assert await history.summaries("月三") == []

    async def test_newest_first_within_the_limit(self, history: History) -> None:
        for number in range(5):
            conversation = Conversation(title=str(number))
            said(history, conversation, "same words")
            conversation.updated = 1000.0 + number
        assert [each.title for each in await history.summaries(limit=3)] == ["4", "3", "2"]
        assert [each.title for each in await history.summaries("words", limit=3)] == ["4", "3", "2"]

    @given(query=st.text(max_size=30))
    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    async def test_whatever_is_typed_is_searched_for(self, history: History, query: str) -> None:
        await history.summaries(query)

    @pytest.mark.parametrize(
        "query", ['"', "'", "a*", "NEAR(a b)", "a AND", "- :^(){}", "text:", "%", "\\", "* *", '"a"']
    )
    async def test_no_sign_has_a_meaning_of_its_own(self, history: History, query: str) -> None:
        said(history, Conversation(title="t"), "plain words")
        assert await history.summaries(query) == []


class TestLoading:
    async def test_the_open_branch_is_loaded_and_the_other_is_kept(self, history: History) -> None:
        conversation = Conversation()
        said(history, conversation, "question", "first answer", "next", "last")
        await history.flush()
        conversation.messages = conversation.messages[:1]
        said(history, conversation, "second answer")
        loaded = await history.load(conversation.id)
        assert [each.text for each in loaded.messages] == ["question", "second answer"]
        exported = json.loads(await history.export_json(conversation.id))
        assert len(exported["messages"]) == 5

    async def test_what_a_kill_left_behind_is_made_whole(self, history: History) -> None:
        conversation = Conversation()
        said(history, conversation, "question")
        calls = [ToolCall("1", "mcp__a__b", "{}", "a", "b", state="running"), ToolCall("2", "mcp__a__c", "{}")]
        message = conversation.add(Message("assistant", [Text("I will"), *calls], finished=False))
        history.save(conversation, message)
        loaded = (await history.load(conversation.id)).messages[1]
        assert loaded.finished
        assert [call.state for call in loaded.tool_calls] == ["stopped", "stopped"]
        assert [call.output.text for call in loaded.tool_calls if call.output] == [
            "Stopped before it ended. It was not repeated and may have taken effect.",
            "Stopped before it ran.",
        ]
        assert message.parts[1:] == calls and calls[0].output is None, "what is in memory is left alone"

    async def test_an_unknown_conversation_raises(self, history: History) -> None:
        with pytest.raises(KeyError):
            await history.load("none")
        with pytest.raises(KeyError):
            await history.export_json("none")

    async def test_one_damaged_message_does_not_cost_the_others(
        self, history: History, file: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        conversation = Conversation()
        said(history, conversation, "one", "two", "three")
        await history.flush()
        with closing(sqlite3.connect(file)) as other, other:
            other.execute("UPDATE messages SET content = '{' WHERE id = ?", (conversation.messages[1].id,))
        loaded = await history.load(conversation.id)
        assert [each.text for each in loaded.messages] == ["one", "", "three"]
        assert [type(part) for part in loaded.messages[1].parts] == [Notice]
        assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
            "a message of the history can't be read: JSONDecodeError"
        ]
        caplog.clear()

    async def test_a_head_or_a_parent_that_is_not_there_ends_no_loading(self, history: History, file: Path) -> None:
        conversation = Conversation()
        messages = said(history, conversation, "one", "two", "three")
        await history.flush()
        with closing(sqlite3.connect(file)) as other, other:
            other.execute("UPDATE conversations SET head = 'gone'")
            other.execute("UPDATE messages SET parent_id = ? WHERE id = ?", (messages[2].id, messages[1].id))
        assert [each.text for each in (await history.load(conversation.id)).messages] == ["two", "three"]

    async def test_a_deleted_conversation_is_gone_and_does_not_come_back(self, history: History, file: Path) -> None:
        kept, gone = Conversation(title="kept"), Conversation(title="gone")
        said(history, kept, "same words")
        (message,) = said(history, gone, "same words")
        await history.flush()
        history.save(gone, message)
        await history.delete(gone.id)
        history.save(gone, message)
        assert [each.title for each in await history.summaries()] == ["kept"]
        assert [each.title for each in await history.summaries("words")] == ["kept"]
        with closing(sqlite3.connect(file)) as other:
            assert other.execute("SELECT count(*) FROM messages").fetchone() == (1,)
            assert other.execute("SELECT count(*) FROM message_text").fetchone() == (1,)


class TestExport:
    async def test_markdown_has_all_that_was_said_and_done(self, history: History) -> None:
        conversation = conversation_with_every_part()
        conversation.messages[1].tool_calls[0].output = ToolOutput("``` \u202e fence", [Image("image/png", "AAAA")])
        for message in conversation.messages:
            history.save(conversation, message)
        text = await history.export_markdown(conversation.id)
        for piece in (
            "# All parts\n",
            "## You, ",
            "Größe 漢字 \\x00",
            "![image](data:image/png;base64,AAAA)",
            "## m, ",
            "> hm\n",
            "### a · b (failed)\n",
            '```json\n{"q": 1\n```',
            "````\n``` \\u202E fence\n````",
            "*Stopped.*",
            "Which?\n\n- A\n- **B**",
            'Arguments for a · b\n\n```json\n{\n  "x": 1\n}\n```',
        ):
            assert piece in text, piece

    async def test_json_is_complete(self, history: History) -> None:
        conversation = conversation_with_every_part()
        for message in conversation.messages:
            history.save(conversation, message)
        exported = json.loads(await history.export_json(conversation.id))
        assert (exported["title"], exported["head"]) == ("All parts", conversation.messages[1].id)
        assert exported["messages"][1]["parts"][2]["output"]["text"] == "result \ud800"


class TestFaults:
    async def test_on_a_full_disk_the_conversation_goes_on_in_memory_and_is_written_later(
        self, history: History
    ) -> None:
        conversation = Conversation()
        said(history, conversation, "before")
        await history.flush()
        told = asyncio.Event()
        history.fault_changed.connect(told.set)
        with no_space_left():
            said(history, conversation, "x" * 100_000)
            await asyncio.wait_for(told.wait(), 5)
            assert history.fault is not None
            assert history.fault.code == "storage_failed"
            with pytest.raises(AssistantError):
                await history.flush()
            assert await history.load(conversation.id) is conversation
            assert [each.id for each in await history.summaries()] == [conversation.id]
        told.clear()
        await asyncio.wait_for(told.wait(), 5)  # it is tried again by itself
        assert history.fault is None
        again = History(history.file)
        assert [len(each.text) for each in (await again.load(conversation.id)).messages] == [6, 100_000]
        await again.close()

    async def test_a_history_that_is_locked_is_said_so_and_written_when_it_is_free(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("desktop.assistant.history_database._LOCK_LIMIT", 0.1)
        history = History(file)
        await history.open()
        conversation = Conversation()
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            history_of_another = History(file)
            await history_of_another.open()
            said(history_of_another, conversation, "waiting")
            with pytest.raises(AssistantError) as raised:
                await history_of_another.flush()
            assert "another program is using the history" in raised.value.diagnostic.message
            other.execute("COMMIT")
        await history_of_another.flush()
        assert [each.title for each in await history.summaries()] == ["waiting"]
        await history_of_another.close()
        await history.close()

    @pytest.mark.parametrize("damage", ["garbage", "a page", "the beginning"])
    async def test_a_damaged_file_is_kept_under_another_name_and_a_new_one_begun(self, file: Path, damage: str) -> None:
        history = History(file)
        for number in range(50):
            said(history, Conversation(title=str(number)), "words " * 500)
        await history.close()
        content = bytearray(file.read_bytes())
        if damage == "garbage":
            content = bytearray(b"no database at all")
        elif damage == "a page":
            content[8192:12288] = os.urandom(4096)
        else:
            content[16:4096] = bytes(4080)
        file.write_bytes(content)
        again = History(file)
        conversation = Conversation()
        said(again, conversation, "goes on")
        await again.open()
        assert again.fault is None
        assert again.set_aside is not None
        kept = file.with_name(str(again.set_aside.values["name"]))
        assert kept.read_bytes() == content
        assert kept.name.startswith("history.db.damaged-")
        assert [each.title for each in await again.summaries()] == ["goes on"]
        await again.close()

    async def test_damage_in_the_middle_of_a_conversation_loses_nothing_of_it(self, file: Path) -> None:
        history = History(file)
        conversation = Conversation()
        said(history, conversation, *(f"{number} {'words ' * 500}" for number in range(30)))
        await history.flush()
        with closing(sqlite3.connect(file)) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        size = file.stat().st_size
        with file.open("r+b") as content:
            content.seek(4096)
            content.write(os.urandom(size - 4096))
        said(history, conversation, "one more")
        async with asyncio.timeout(10):
            while history.set_aside is None or history.fault is not None:
                done = asyncio.Event()
                history.fault_changed.connect(done.set)
                await done.wait()
        await history.flush()
        again = History(file)
        assert len((await again.load(conversation.id)).messages) == 31
        await again.close()
        await history.close()

    async def test_a_file_of_a_newer_deskhand_is_left_alone(self, file: Path, caplog: pytest.LogCaptureFixture) -> None:
        file.parent.mkdir()
        with closing(sqlite3.connect(file)) as other:
            other.execute("PRAGMA user_version = 99")
        content = file.read_bytes()
        history = History(file)
        await history.open()
        assert history.fault is not None
        assert "newer Deskhand" in history.fault.message
        said(history, Conversation(), "kept in memory")
        with pytest.raises(AssistantError):
            await history.summaries()
        await history.close()
        assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
            "what was said last could not be written to the history"
        ]
        caplog.clear()
        assert file.read_bytes() == content

    async def test_where_no_folder_can_be_made_a_conversation_goes_on(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        (tmp_path / "file").write_text("")
        history = History(tmp_path / "file" / "history.db")
        await history.open()
        conversation = Conversation()
        said(history, conversation, "hello")
        assert history.fault is not None
        assert await history.load(conversation.id) is conversation
        await history.close()
        caplog.clear()

    async def test_two_processes_write_to_one_history(self, history: History) -> None:
        other = History(history.file)
        await other.open()
        for number in range(20):
            for each in (history, other):
                said(each, Conversation(title=f"{number}"), "words")
            await asyncio.gather(history.flush(), other.flush())
        assert len(await history.summaries()) == 40
        await other.close()


KILLED = """
import asyncio, sys, time
from pathlib import Path
from desktop.assistant.conversation import Conversation, Message, Text, ToolCall
from desktop.assistant.history import History

async def main():
    history = History(Path(sys.argv[1]))
    await history.open()
    conversation = Conversation(id="c1")
    history.save(conversation, conversation.add(Message("user", [Text("go")])))
    call = ToolCall("1", "mcp__a__b", "{}", "a", "b", state="running")
    text = Text("")
    message = conversation.add(Message("assistant", [call, text], finished=False))
    while True:
        text.text += f" {time.monotonic()}"
        history.save(conversation, message)
        print(time.monotonic(), flush=True)
        await asyncio.sleep(0.005)

asyncio.run(main())
"""


@pytest.mark.parametrize("lines", [40, 97, 150])
async def test_a_kill_costs_less_than_250_ms_and_the_conversation_goes_on(file: Path, lines: int) -> None:
    child = await processes.start([sys.executable, "-c", KILLED, str(file)], stdout=PIPE)
    assert child.stdout is not None
    async with asyncio.timeout(30):
        for _ in range(lines):
            await child.stdout.readline()
    child.kill()
    rest = (await child.stdout.read()).split()
    await child.wait()
    killed = float(rest[-1]) if rest else time.monotonic()
    history = History(file)
    await history.open()
    assert history.set_aside is None
    conversation = await history.load("c1")
    answer = conversation.messages[1]
    assert killed - float(answer.text.split()[-1]) < 0.25
    assert answer.finished
    assert [call.state for call in answer.tool_calls] == ["stopped"]
    said(history, conversation, "go on")
    await history.flush()
    assert [each.text for each in (await history.load("c1")).messages][-1] == "go on"
    await history.close()
