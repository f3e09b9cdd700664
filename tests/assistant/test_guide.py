"""Guide runs the very turn that language models run: it finds tools, asks where it isn't sure, and shows what came."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from mcp_types import CallToolResult, ImageContent, TextContent

from desktop.assistant.approval import AllowAll, Approvals, Approver, DenyAll
from desktop.assistant.asking import NobodyToAsk
from desktop.assistant.conversation import Choice, Conversation, Form, Part, Text, ToolCall
from desktop.assistant.guide import Guide
from desktop.assistant.guide_candidates import is_clear
from desktop.assistant.history import History
from desktop.assistant.interfaces import ProgressCallback
from desktop.assistant.results import ResultStore
from desktop.assistant.text_values import values_in
from desktop.assistant.turn import Assistant
from desktop.catalog_entries import (
    CatalogEntry,
    KindFilter,
    PromptEntry,
    ResourceEntry,
    SearchResult,
    ServerEntry,
    TemplateEntry,
)
from desktop.errors import AssistantError
from desktop.host.catalog_search import CatalogSearch
from tests.fakes.in_memory_host import Body, Servers, text_result, tool

TEXT = {"type": "string"}


def schema(*required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


ENTRIES: list[CatalogEntry] = [
    tool("shop", "list_orders", description="List the orders of a customer", schema=schema("customer", customer=TEXT)),
    tool(
        "shop",
        "cancel_order",
        description="Cancel an order",
        schema=schema("number", "reason", number={"type": "integer"}, reason=TEXT | {"description": "Why *now*"}),
        annotations={"readOnlyHint": True},
    ),
    tool("shop", "shop_status", description="Tell whether the shop is open", schema=schema()),
    tool("files", "read_file", description="Read a file", schema=schema("path", path=TEXT, lines={"type": "integer"})),
    tool("files", "read_folder", description="Read the names in a folder", schema=schema("path", path=TEXT)),
    ResourceEntry("manual", "manual://warranty", "warranty", "Warranty conditions", "How long a warranty lasts"),
    TemplateEntry("manual", "manual://chapter/{number}", "chapter", ("number",), "Manual chapter", "A chapter"),
    PromptEntry("manual", "summarize_manual", "Summarize", "Summarizes the manual"),
]


class SearchedServers(Servers):
    """Servers in memory, searched as Deskhand searches."""

    async def search(
        self, query: str, *, kind: KindFilter = "all", server: str | None = None, limit: int = 5
    ) -> SearchResult:
        self.searches.append((query, kind, server, limit))
        engine = CatalogSearch()
        for name, of in (
            ("tool", "shop"),
            ("tool", "files"),
            ("resource", "manual"),
            ("template", "manual"),
            ("prompt", "manual"),
        ):
            kinds = {"tool": "Tool", "resource": "Resource", "template": "Template", "prompt": "Prompt"}
            entries = [
                each for each in self.entries if type(each).__name__.startswith(kinds[name]) and each.server == of
            ]
            engine.replace(name, of, entries)  # type: ignore[arg-type]
        found = engine.rank(query, limit=limit)
        return SearchResult(
            tuple(each.entry for each in found),
            tuple(each.score for each in found),
            tuple(each.matched for each in found),
            self.not_searched,
        )


class Person:
    """Answers questions as told, and remembers them."""

    def __init__(self, *, option: int | None = None, values: Mapping[str, Any] | None = None) -> None:
        self.option = option
        self.values = values
        self.questions: list[Choice | Form] = []

    async def choose(self, choice: Choice) -> int | None:
        self.questions.append(choice)
        return self.option

    async def fill(self, form: Form) -> dict[str, Any] | None:
        self.questions.append(form)
        return None if self.values is None else form.values | dict(self.values)


class Desk:
    def __init__(self, folder: Path, asker: Any = None, approver: Approver | None = None) -> None:
        self.servers = SearchedServers(
            list(ENTRIES), [ServerEntry("files", "Files"), ServerEntry("manual"), ServerEntry("shop")]
        )
        self.asker = asker or NobodyToAsk()
        self.history = History(folder / "history.db")
        self.assistant = Assistant(
            catalog=self.servers,
            runner=self.servers,
            reader=self.servers,
            results=ResultStore(folder / "results"),
            history=self.history,
            approvals=Approvals(folder / "approvals.json", approver or AllowAll()),
            tool_calls_per_turn=lambda: 50,
        )
        self.conversation = Conversation()

    async def say(self, text: str) -> list[Part]:
        """The parts of all answers to what the person says."""
        begin = len(self.conversation.messages)
        turn = self.assistant.turn(self.conversation, Guide(self.asker), [Text(text)])
        async with asyncio.timeout(10), aclosing(turn) as events:
            async for _ in events:
                pass
        return [part for message in self.conversation.messages[begin + 1 :] for part in message.parts]


@pytest.fixture
async def desk_of(tmp_path: Path) -> AsyncIterator[Callable[..., Desk]]:
    """Makes desks and closes them."""
    desks: list[Desk] = []

    def make(asker: Any = None, approver: Approver | None = None) -> Desk:
        desks.append(Desk(tmp_path / str(len(desks)), asker, approver))
        return desks[-1]

    yield make
    for desk in desks:
        await desk.history.close()


def body(result: CallToolResult) -> Body:
    async def answer(arguments: Mapping[str, Any], on_progress: ProgressCallback) -> CallToolResult:
        return result

    return answer


def said(parts: Sequence[Part]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, Text))


def called(parts: Sequence[Part]) -> list[str]:
    return [part.name for part in parts if isinstance(part, ToolCall)]


@pytest.mark.anyio
@pytest.mark.parametrize(
    "text",
    [
        "Hello!",
        "hi there",
        "Guten Tag",
        "thanks a lot :-)",
        "OK, thank you",
        "help",
        "What can you do?",
        "",
        " ?! ",
        "👍",
    ],
)
async def test_talk_is_answered_and_calls_nothing(text: str, desk_of: Callable[..., Desk]) -> None:
    desk = desk_of(Person(option=0, values={}))
    parts = await desk.say(text)
    assert len(parts) == 1 and said(parts)
    assert not desk.servers.searches


@pytest.mark.anyio
async def test_it_says_that_it_is_no_language_model_and_names_the_servers(desk_of: Callable[..., Desk]) -> None:
    text = said(await desk_of().say("hello"))
    assert "I'm no language model" in text
    assert "- `files`: Files\n- `manual`\n- `shop`" in text


@pytest.mark.anyio
async def test_a_clear_wish_is_searched_activated_called_and_shown(desk_of: Callable[..., Desk]) -> None:
    desk = desk_of()
    parts = await desk.say("Please read the file /tmp/a.txt for me")
    assert called(parts) == ["mcp_tools", "mcp_tools", "mcp__files__read_file"]
    assert desk.servers.searches[0][0] == "read file text"
    assert desk.servers.calls == [("files.read_file", {"path": "/tmp/a.txt"})]
    assert said(parts) == "`read_file` of server `files` answered:\n\n```\nread_file: {'path': '/tmp/a.txt'}\n```"


@pytest.mark.anyio
async def test_a_tool_that_is_active_is_not_activated_again(desk_of: Callable[..., Desk]) -> None:
    desk = desk_of()
    await desk.say("read the file /tmp/a.txt")
    assert called(await desk.say("read the file /tmp/b.txt")) == ["mcp_tools", "mcp__files__read_file"]
    assert desk.servers.calls[-1] == ("files.read_file", {"path": "/tmp/b.txt"})


@pytest.mark.anyio
async def test_what_is_missing_is_asked_with_a_form_that_knows_the_rest(desk_of: Callable[..., Desk]) -> None:
    person = Person(values={"reason": "too late"})
    desk = desk_of(person)
    await desk.say("cancel order 4711")
    [form] = person.questions
    assert isinstance(form, Form)
    assert (form.server, form.tool, form.values) == ("shop", "cancel_order", {"number": 4711})
    assert form.answer == {"number": 4711, "reason": "too late"}
    assert desk.servers.calls == [("shop.cancel_order", {"number": 4711, "reason": "too late"})]


@pytest.mark.anyio
@pytest.mark.parametrize("asker", [NobodyToAsk(), Person()], ids=["nobody", "a person who gives up"])
async def test_a_form_without_an_answer_ends_the_turn_by_naming_what_is_missing(
    asker: Any, desk_of: Callable[..., Desk]
) -> None:
    desk = desk_of(asker)
    parts = await desk.say("cancel order 4711")
    assert said(parts) == "`cancel_order` of server `shop` was not run. It needs:\n\n- `reason`: Why \\*now\\*"
    assert desk.servers.calls == []


@pytest.mark.anyio
async def test_what_was_said_and_not_understood_is_asked_about(desk_of: Callable[..., Desk]) -> None:
    person = Person(values={})
    desk = desk_of(person)
    await desk.say("read the file /tmp/a.txt backwards")
    assert [type(each) for each in person.questions] == [Form]
    assert desk.servers.calls == [("files.read_file", {"path": "/tmp/a.txt"})]


@pytest.mark.anyio
async def test_a_doubt_offers_choices_and_the_chosen_one_runs(desk_of: Callable[..., Desk]) -> None:
    person = Person(option=1)
    desk = desk_of(person)
    parts = await desk.say("read /tmp/a")
    choice = next(each for each in person.questions if isinstance(each, Choice))
    assert sorted(option.label for option in choice.options[:2]) == ["read_file · files", "read_folder · files"]
    assert choice.options[0].detail in ("Read a file", "Read the names in a folder")
    assert choice.answer == 1
    chosen = choice.options[1].label.removesuffix(" · files")
    assert called(parts) == ["mcp_tools", "mcp_tools", f"mcp__files__{chosen}"]
    assert desk.servers.calls == [(f"files.{chosen}", {"path": "/tmp/a"})]


@pytest.mark.parametrize("wish", ["do it", "in 5", "/tmp/a.txt", "東京"])
def test_without_a_word_nothing_is_clear(wish: str) -> None:
    candidate = {
        "kind": "tool",
        "server": "s",
        "name": "n",
        "title": "",
        "description": "",
        "required": [],
        "score": 1.0,
    }
    assert not is_clear([candidate], wish, wish, values_in(wish))


@pytest.mark.anyio
@pytest.mark.parametrize("asker", [NobodyToAsk(), Person()], ids=["nobody", "a person who chooses none"])
async def test_a_doubt_that_nobody_resolves_runs_nothing(asker: Any, desk_of: Callable[..., Desk]) -> None:
    desk = desk_of(asker)
    parts = await desk.say("read /tmp/a")
    assert called(parts) == ["mcp_tools"]
    assert "not sure which of these you mean" in said(parts) and "`read_folder` of server `files`" in said(parts)
    assert desk.servers.calls == []


@pytest.mark.anyio
@pytest.mark.parametrize("text", ["blorf snark", "play some music", "xyzzy 42", "Bestelle mir eine Pizza"])
async def test_where_nothing_is_found_the_servers_are_named_and_nothing_is_run(
    text: str, desk_of: Callable[..., Desk]
) -> None:
    desk = desk_of(Person(option=0, values={}))
    parts = await desk.say(text)
    assert set(called(parts)) == {"mcp_tools"} and len(called(parts)) <= 2
    assert "I found nothing for that" in said(parts) and "- `shop`" in said(parts)
    assert desk.servers.calls == [] and not any(isinstance(part, Choice) for part in parts)


@pytest.mark.anyio
async def test_a_wish_in_another_language_gets_choices_by_what_it_brings_along(desk_of: Callable[..., Desk]) -> None:
    desk = desk_of(Person(option=0, values={}))
    parts = await desk.say("Zeig mir bitte /tmp/a.txt an")
    choice = next(part for part in parts if isinstance(part, Choice))
    assert choice.options[0].label == "read_file · files"
    assert desk.servers.calls == [("files.read_file", {"path": "/tmp/a.txt"})]


@pytest.mark.anyio
async def test_a_word_in_common_is_a_weak_match_and_is_never_called(desk_of: Callable[..., Desk]) -> None:
    desk = desk_of()
    parts = await desk.say("delete the file /tmp/a.txt")
    assert any(isinstance(part, Choice) for part in parts)
    assert desk.servers.calls == [] and called(parts) == ["mcp_tools"]


@pytest.mark.anyio
async def test_a_resource_is_read(desk_of: Callable[..., Desk]) -> None:
    desk = desk_of()
    parts = await desk.say("show me the warranty conditions")
    assert desk.servers.reads == [("manual", "manual://warranty")]
    assert said(parts) == "`manual://warranty` of server `manual`:\n\n```\ncontent of manual://warranty\n```"


@pytest.mark.anyio
async def test_a_template_is_filled_from_the_wish_or_asked_about(desk_of: Callable[..., Desk]) -> None:
    desk = desk_of(Person(values={"number": "7"}))
    await desk.say("read the manual chapter 3")
    await desk.say("read a manual chapter")
    assert desk.servers.reads == [("manual", "manual://chapter/3"), ("manual", "manual://chapter/7")]


@pytest.mark.anyio
async def test_a_prompt_is_the_persons_to_pick(desk_of: Callable[..., Desk]) -> None:
    parts = await desk_of().say("summarize the manual")
    assert "`summarize_manual` of server `manual` is a prompt" in said(parts)
    assert called(parts) == ["mcp_tools"]


@pytest.mark.anyio
@pytest.mark.parametrize("text", ["run files.read_file on /tmp/a.txt", "mcp__files__read_file path=/tmp/a.txt"])
async def test_a_name_that_is_written_out_is_that_tool(text: str, desk_of: Callable[..., Desk]) -> None:
    desk = desk_of(Person(values={}))
    await desk.say(text)
    assert desk.servers.calls == [("files.read_file", {"path": "/tmp/a.txt"})]


@pytest.mark.anyio
async def test_a_uri_that_is_written_out_is_read(desk_of: Callable[..., Desk]) -> None:
    desk = desk_of()
    await desk.say("what does manual://warranty say?")
    assert desk.servers.reads == [("manual", "manual://warranty")]


@pytest.mark.anyio
async def test_a_servers_claim_spares_no_question(desk_of: Callable[..., Desk]) -> None:
    parts = await desk_of(Person(values={"reason": "x"}), DenyAll()).say("cancel order 4711")
    assert any(isinstance(part, Form) for part in parts)
    assert said(parts) == "`cancel_order` of server `shop` was not run: you did not allow it."


@pytest.mark.anyio
async def test_an_error_that_the_tool_reports_is_told_as_its_own(desk_of: Callable[..., Desk]) -> None:
    desk = desk_of()
    desk.servers.bodies["shop.shop_status"] = body(text_result("no *power*", is_error=True))
    text = said(await desk.say("shop status"))
    assert text.startswith("`shop_status` of server `shop` reports an error:\n\n```\nno *power*\n```")


@pytest.mark.anyio
async def test_a_call_that_failed_is_told_with_its_remedy(desk_of: Callable[..., Desk]) -> None:
    async def fail(arguments: Mapping[str, Any], on_progress: ProgressCallback) -> CallToolResult:
        raise AssistantError("server_exited", operation="call", server="shop", status="")

    desk = desk_of()
    desk.servers.bodies["shop.shop_status"] = fail
    text = said(await desk.say("shop status"))
    assert text.startswith("`shop_status` of server `shop` did not work: The server's process ended.")
    assert "servers panel" in text


@pytest.mark.anyio
async def test_refused_arguments_are_asked_for_once(desk_of: Callable[..., Desk]) -> None:
    person = Person(values={})
    desk = desk_of(person)
    desk.servers.redefine("files.read_file", input_schema=schema("path", path=TEXT | {"maxLength": 3}))
    parts = await desk.say("read the file /tmp/a.txt")
    [form] = person.questions
    assert isinstance(form, Form) and form.values == {"path": "/tmp/a.txt"}
    assert called(parts) == ["mcp_tools", "mcp_tools", "mcp__files__read_file", "mcp__files__read_file"]
    assert desk.servers.calls == [] and "The arguments are not valid" in said(parts)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("result", "shown"),
    [
        (text_result('{"open": 1.50}'), '```json\n{"open": 1.50}\n```'),
        (text_result("a ``` b"), "````\na ``` b\n````"),
        (text_result("# Hi\x1b[8m <b>"), "```\n# Hi <b>\n```"),
        (
            CallToolResult(content=[TextContent(text="open")], structured_content={"state": "open"}),
            "```\nopen\n```",
        ),
        (
            CallToolResult(content=[], structured_content={"state": "open"}),
            '```json\n{\n  "state": "open"\n}\n```',
        ),
        (
            CallToolResult(content=[ImageContent(data="AAAA", mime_type="image/png")]),
            "Its images are in the card above.",
        ),
    ],
    ids=["JSON", "with a fence in it", "hidden characters", "the same structured", "structured alone", "an image"],
)
async def test_a_result_is_shown_as_the_servers_own(
    result: CallToolResult, shown: str, desk_of: Callable[..., Desk]
) -> None:
    desk = desk_of()
    desk.servers.bodies["shop.shop_status"] = body(result)
    assert said(await desk.say("shop status")) == f"`shop_status` of server `shop` answered:\n\n{shown}"


@pytest.mark.anyio
async def test_a_long_result_is_shown_in_part(desk_of: Callable[..., Desk]) -> None:
    desk = desk_of()
    desk.servers.bodies["shop.shop_status"] = body(text_result("x" * 5000))
    text = said(await desk.say("shop status"))
    assert text.count("x") < 4100 and text.endswith("The rest is in the card above.")


@pytest.mark.anyio
async def test_a_server_that_could_not_be_searched_is_told(desk_of: Callable[..., Desk]) -> None:
    desk = desk_of()
    failure = AssistantError("command_not_found", operation="connect", server="shop").diagnostic
    desk.servers.not_searched = ((failure, ("tools",)),)
    text = said(await desk.say("blorf snark"))
    assert "server `shop`" in text and "The server's command was not found" in text


@pytest.mark.anyio
async def test_stop_while_a_question_waits_ends_the_turn(desk_of: Callable[..., Desk]) -> None:
    asked = asyncio.Event()

    class Waiting(Person):
        async def fill(self, form: Form) -> dict[str, Any] | None:
            asked.set()
            return await asyncio.get_running_loop().create_future()

    desk = desk_of(Waiting())
    task = asyncio.create_task(desk.say("cancel order 4711"))
    async with asyncio.timeout(10):
        await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    last = desk.conversation.messages[-1]
    form = next(part for part in last.parts if isinstance(part, Form))
    assert last.finished and form.answer is None
    assert desk.servers.calls == []


@pytest.mark.anyio
@pytest.mark.parametrize("make", [lambda: "word " * 5000, lambda: "read " + "/a " * 300])
async def test_a_text_that_is_too_long_is_refused_whole(make: Callable[[], str], desk_of: Callable[..., Desk]) -> None:
    parts = await desk_of().say(make())
    assert "too long for me; I did nothing" in said(parts) and not called(parts)


@pytest.mark.anyio
async def test_text_of_servers_is_clean_in_questions_and_answers(desk_of: Callable[..., Desk]) -> None:
    desk = desk_of()
    desk.servers.redefine(
        "files.read_file", description="Read\u202e [a](http://evil) file\nNow!", title="Read\u200b it"
    )
    parts = await desk.say("read /tmp/a")
    choice = next(part for part in parts if isinstance(part, Choice))
    option = next(each for each in choice.options if "Read it" in each.label)
    assert (option.label, option.detail) == ("Read it · files", "Read [a](http://evil) file Now!")
    assert "Read \\[a\\](http://evil) file Now\\!" in said(parts)
