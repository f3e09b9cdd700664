"""Questions that servers put to the person while their tool runs, over the wire in both eras of the protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest

from desktop.errors import AssistantError
from desktop.host.connection import Connection
from desktop.host.elicitation_form import Value
from desktop.host.server_questions import Action, Desk, FormQuestion, PageQuestion
from tests.host.conftest import LONGEST_WAIT, MakeConnection, text, until
from tests.servers.running import asking

pytestmark = pytest.mark.anyio

NAME = {"type": "object", "properties": {"name": {"type": "string", "minLength": 2}}, "required": ["name"]}
FORM = {"mode": "form", "message": "Who are you?", "requestedSchema": NAME}


def page(url: str = "https://example.org/sign", id_: str = "1") -> dict[str, Any]:
    return {"mode": "url", "message": "Sign here", "url": url, "elicitationId": id_}


class Person:
    """Answers with what is given, in order; keeps what was asked. An answer may be an event to wait for first."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[FormQuestion | PageQuestion | str] = []
        self.open = 0
        self.most_open = 0

    async def fill(self, question: FormQuestion) -> Mapping[str, Value] | Literal["decline", "cancel"]:
        return await self._answer(question)

    async def visit(self, question: PageQuestion) -> Action:
        return await self._answer(question)

    async def wait_for_pages(self, server: str) -> bool:
        return await self._answer(f"wait {server}")

    async def _answer(self, question: Any) -> Any:
        self.asked.append(question)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            if isinstance(self.answers[0], asyncio.Event):
                await self.answers.pop(0).wait()
            return self.answers.pop(0)
        finally:
            self.open -= 1


async def ask(connection: Connection, **arguments: Any) -> Any:
    """What the server was answered, or the code of the error."""
    async with asyncio.timeout(LONGEST_WAIT):
        try:
            return json.loads(text(await connection.call_tool("ask", arguments)))
        except AssistantError as error:
            return error.diagnostic.code


@pytest.mark.parametrize("era", [[], ["--modern"]])
async def test_a_form_is_put_to_the_person_and_what_was_entered_reaches_the_server(
    make: MakeConnection, era: list[str]
) -> None:
    person = Person({"name": "Ann"})
    connection = make(asking(*era), desk=Desk(person), name="forms")
    answers = await ask(connection, requests=[FORM])
    assert answers[0] == {"action": "accept", "content": {"name": "Ann"}}
    assert answers[1:] == (["state é"] if era else [])  # given back as it came
    (question,) = person.asked
    assert isinstance(question, FormQuestion)
    assert (question.server, question.message, [each.name for each in question.fields]) == (
        "forms",
        "Who are you?",
        ["name"],
    )


@pytest.mark.parametrize("era", [[], ["--modern"]])
@pytest.mark.parametrize("answer", ["decline", "cancel"])
async def test_declining_and_closing_differ_and_carry_no_values(
    make: MakeConnection, era: list[str], answer: str
) -> None:
    connection = make(asking(*era), desk=Desk(Person(answer)))
    assert (await ask(connection, requests=[FORM]))[0] == {"action": answer}


@pytest.mark.parametrize("era", [[], ["--modern"]])
async def test_questions_come_one_at_a_time_and_all_are_answered(make: MakeConnection, era: list[str]) -> None:
    person = Person(*({"name": f"Ann {number}"} for number in range(3)))
    connection = make(asking(*era), desk=Desk(person))
    answers = await ask(connection, requests=[FORM] * 3)
    assert sorted(each["content"]["name"] for each in answers[:3]) == ["Ann 0", "Ann 1", "Ann 2"]
    assert person.most_open == 1


async def test_two_servers_wait_for_each_other_and_each_question_names_its_server(make: MakeConnection) -> None:
    released = asyncio.Event()
    person = Person(released, {"name": "first"}, {"name": "second"})
    desk = Desk(person)
    one, two = (make(asking(), desk=desk, name=name) for name in ("one", "two"))
    first = asyncio.create_task(ask(one, requests=[FORM]))
    await until(lambda: person.asked)
    second = asyncio.create_task(ask(two, requests=[FORM]))
    await until(lambda: two._questions._pending)
    assert len(person.asked) == 1
    released.set()
    assert (await first)[0]["content"] == {"name": "first"}
    assert (await second)[0]["content"] == {"name": "second"}
    assert [question.server for question in person.asked] == ["one", "two"]  # type: ignore[union-attr]


async def test_more_than_four_questions_of_a_server_are_refused(make: MakeConnection) -> None:
    released = asyncio.Event()
    person = Person(released, *({"name": f"Ann {number}"} for number in range(4)))
    connection = make(asking(), desk=Desk(person))
    asked = asyncio.create_task(ask(connection, requests=[FORM] * 6))
    await until(lambda: len(connection._questions._pending) == 4)
    released.set()
    answers = await asked
    assert sum("code" in each for each in answers) == 2
    assert sum(each.get("action") == "accept" for each in answers) == 4


async def test_the_time_that_a_person_takes_for_an_answer_does_not_count(
    make: MakeConnection,
) -> None:
    released = asyncio.Event()
    person = Person(released, {"name": "Ann"})
    connection = make(asking(), desk=Desk(person), call_time_limit=1.0)
    await connection.connect()
    asked = asyncio.create_task(ask(connection, requests=[FORM]))
    await until(lambda: person.asked)
    asyncio.get_running_loop().call_later(1.7, released.set)
    assert (await asked)[0]["action"] == "accept"


async def test_stopping_the_call_closes_its_question(make: MakeConnection, tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    person = Person(asyncio.Event())
    connection = make(asking("--record", str(record)), desk=Desk(person))
    asked = asyncio.create_task(ask(connection, requests=[FORM]))
    await until(lambda: person.open == 1)
    asked.cancel()
    await asyncio.wait({asked})
    await until(lambda: person.open == 0)
    received = lambda: [json.loads(line) for line in record.read_text().splitlines()]  # noqa: E731
    await until(lambda: any(each.get("result") == {"action": "cancel"} for each in received()))
    assert any(each.get("method") == "notifications/cancelled" for each in received())


async def test_a_server_that_withdraws_its_question_closes_it(make: MakeConnection) -> None:
    person = Person(asyncio.Event())
    connection = make(asking(), desk=Desk(person), call_time_limit=5.0)
    asked = asyncio.create_task(ask(connection, requests=[FORM], cancels=True))
    await until(lambda: not connection._questions._pending and (person.asked or asked.done()))
    assert person.open == 0
    asked.cancel()


async def test_without_anybody_to_ask_the_feature_is_not_declared(make: MakeConnection, tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    connection = make(asking("--record", str(record)))
    answers = await ask(connection, requests=[FORM])
    assert "code" in answers[0]
    capabilities = [json.loads(line)["params"].get("capabilities") for line in record.read_text().splitlines()[:2]]
    assert all("elicitation" not in (each or {}) for each in capabilities)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {f"f{number}": {"type": "string"} for number in range(51)}},
        {"type": "object", "properties": {"a": {"type": "string", "enum": ["x", "x"]}}},
        {"type": "object", "properties": {"a": {"type": "object", "properties": {}}}},
    ],
)
async def test_a_form_that_can_not_be_asked_is_refused_without_a_word_to_the_person(
    make: MakeConnection, schema: dict[str, Any]
) -> None:
    person = Person()
    connection = make(asking(), desk=Desk(person))
    answers = await ask(connection, requests=[{"mode": "form", "message": "x", "requestedSchema": schema}])
    assert (answers[0]["code"], person.asked) == (-32602, [])


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/",
        "https://ann@example.org/",
        "https://google.com@evil.example/",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "nonsense",
        "https://example.org/" + "x" * 4096,
    ],
)
async def test_a_page_that_must_not_be_opened_is_refused_without_a_word_to_the_person(
    make: MakeConnection, url: str
) -> None:
    person = Person()
    connection = make(asking(), desk=Desk(person))
    assert (await ask(connection, requests=[page(url)]))[0]["code"] == -32602
    assert person.asked == []


@pytest.mark.parametrize("era", [[], ["--modern"]])
@pytest.mark.parametrize(
    ("url", "host", "opened"),
    [
        ("https://example.org/a b", "example.org", "https://example.org/a%20b"),
        ("http://127.0.0.1:8080/x", "127.0.0.1:8080", "http://127.0.0.1:8080/x"),
        ("https://аррӏе.com/", "xn--80ak6aa92e.com", "https://xn--80ak6aa92e.com/"),
    ],
)
async def test_a_page_is_shown_with_its_true_host(
    make: MakeConnection, era: list[str], url: str, host: str, opened: str
) -> None:
    person = Person("accept")
    connection = make(asking(*era), desk=Desk(person))
    assert (await ask(connection, requests=[page(url)]))[0]["action"] == "accept"
    (question,) = person.asked
    assert isinstance(question, PageQuestion)
    assert (question.link.host, question.link.url, question.message) == (host, opened, "Sign here")


# Calls that are refused until pages were visited


async def test_pages_that_a_call_needs_are_visited_and_the_call_is_not_repeated(
    make: MakeConnection, tmp_path: Path
) -> None:
    record = tmp_path / "record.jsonl"
    person = Person("accept", "accept", True)
    connection = make(asking("--record", str(record)), desk=Desk(person), name="signs")
    assert await ask(connection, pages=[page(), page(id_="2")]) == "elicitation_completed"
    assert person.asked[2] == "wait signs"
    calls = [line for line in record.read_text().splitlines() if json.loads(line).get("method") == "tools/call"]
    assert len(calls) == 1
    assert connection.state.status == "connected"


async def test_the_server_s_word_that_pages_are_done_with_ends_the_wait(make: MakeConnection) -> None:
    person = Person("accept", asyncio.Event())
    connection = make(asking(), desk=Desk(person))
    assert await ask(connection, pages=[page()], completes=["1", "other"]) == "elicitation_completed"
    assert person.open == 0


async def test_two_calls_may_wait_for_the_same_page_and_stopping_one_leaves_the_other(make: MakeConnection) -> None:
    person = Person("accept", asyncio.Event(), "accept", asyncio.Event())
    connection = make(asking(), desk=Desk(person))
    await connection.connect()
    stopped = asyncio.create_task(ask(connection, pages=[page()]))
    await until(lambda: person.asked[1:])
    stopped.cancel()
    await asyncio.wait({stopped})
    await until(lambda: person.open == 0)
    assert await ask(connection, pages=[page()], completes=["1"]) == "elicitation_completed"


@pytest.mark.parametrize("answers", [["decline"], ["accept", "cancel"], ["accept", "accept", False]])
async def test_a_page_that_is_refused_or_given_up_ends_the_call(make: MakeConnection, answers: list[Any]) -> None:
    person = Person(*answers)
    connection = make(asking(), desk=Desk(person))
    assert await ask(connection, pages=[page(), page(id_="2")]) == "elicitation_declined"
    assert len(person.asked) == len(answers)


@pytest.mark.parametrize(
    "pages",
    [
        [],
        [page(id_=str(number)) for number in range(4)],
        [page(), page()],
        [{**page(), "mode": "form"}],
        [{**page(), "elicitationId": ""}],
        [{**page(), "elicitationId": "x" * 257}],
        [{**page(), "url": "file:///x"}],
        [{**page(), "message": 5}],
        "nonsense",
    ],
)
async def test_a_list_of_pages_outside_the_protocol_is_an_error_without_a_word_to_the_person(
    make: MakeConnection, pages: Any
) -> None:
    person = Person()
    connection = make(asking(), desk=Desk(person))
    assert (await ask(connection, pages=pages), person.asked) == ("protocol_error", [])


async def test_without_anybody_to_ask_a_call_that_needs_a_page_says_so(make: MakeConnection) -> None:
    assert await ask(make(asking()), pages=[page()]) == "elicitation_required"
