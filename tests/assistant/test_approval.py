"""Who may run what: decisions, standing rules, and the file they live in."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import stat
import sys
from pathlib import Path

import pytest

from desktop.assistant.approval import AllowAll, ApprovalRequest, Approvals, Decision, DenyAll, Rule
from desktop.assistant.conversation import ToolCall
from desktop.catalog_entries import ToolDefinition
from tests.fakes.in_memory_host import tool

pytestmark = pytest.mark.anyio

SEND = tool("mail", "send", description="Sends a message")
CHANGED = tool("mail", "send", description="Sends a message to everyone")
LIST = tool("mail", "list", annotations={"readOnlyHint": True})


class Person:
    def __init__(self, *decisions: Decision) -> None:
        self.decisions = list(decisions)
        self.asked: list[ApprovalRequest] = []

    async def decide(self, request: ApprovalRequest) -> Decision:
        self.asked.append(request)
        return self.decisions.pop(0)


def request(
    definition: ToolDefinition = SEND,
    *,
    conversation: str = "c",
    others: tuple[str, ...] = (),
    previous: ToolDefinition | None = None,
) -> ApprovalRequest:
    call = ToolCall("1", definition.native_name, "{}")
    return ApprovalRequest(conversation, call, definition, {}, frozenset(others), previous)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config" / "approvals.json"


async def test_every_call_is_asked_about_whatever_the_server_claims(file: Path) -> None:
    person = Person("once", "once", "deny", "once")
    approvals = Approvals(file, person)
    assert await approvals.decide(request(LIST)) == "once"
    assert await approvals.decide(request(LIST)) == "once"
    assert await approvals.decide(request(SEND)) == "deny"
    assert await approvals.decide(request(SEND)) == "once"
    assert not file.exists()


async def test_a_decision_for_the_conversation_holds_there_for_that_definition_and_is_not_kept(file: Path) -> None:
    person = Person("conversation", "deny", "deny", "deny")
    approvals = Approvals(file, person)
    assert await approvals.decide(request()) == "conversation"
    assert await approvals.decide(request()) == "conversation"
    assert len(person.asked) == 1
    assert await approvals.decide(request(conversation="other")) == "deny"
    assert await approvals.decide(request(CHANGED)) == "deny"
    approvals.end_conversation("c")
    assert await approvals.decide(request()) == "deny"
    assert approvals.rules == ()
    assert await Approvals(file, DenyAll()).decide(request()) == "deny"


async def test_always_is_kept_in_a_private_file_and_holds_after_a_restart(file: Path) -> None:
    approvals = Approvals(file, Person("always"))
    changes: list[int] = []
    approvals.changed.connect(lambda: changes.append(len(approvals.rules)))
    assert await approvals.decide(request()) == "always"
    assert changes == [1]
    if sys.platform != "win32":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    again = Approvals(file, DenyAll())
    assert again.rules == (Rule("mail", "send", True, (SEND,)),)
    assert await again.decide(request()) == "always"
    assert await again.decide(request(LIST)) == "deny"


@pytest.mark.parametrize(
    "change",
    [
        {"description": "Other words"},
        {"schema": {"type": "object", "properties": {"to": {"type": "string"}}}},
        {"annotations": {"destructiveHint": True}},
    ],
    ids=["description", "schema", "annotations"],
)
async def test_a_changed_definition_voids_always(file: Path, change: dict[str, object]) -> None:
    approvals = Approvals(file, Person("always", "deny"))
    await approvals.decide(request())
    changed = tool("mail", "send", **({"description": SEND.description} | change))  # type: ignore[arg-type]
    assert await approvals.decide(request(changed)) == "deny"
    assert await approvals.decide(request()) == "always"


async def test_a_server_that_was_reconfigured_has_other_tools(file: Path) -> None:
    approvals = Approvals(file, Person("always", "deny"))
    await approvals.decide(request())
    assert await approvals.decide(request(dataclasses.replace(SEND, identity="another command"))) == "deny"


async def test_a_tool_of_the_same_name_on_another_server_is_another_tool(file: Path) -> None:
    approvals = Approvals(file, Person("always", "deny"))
    await approvals.decide(request())
    twin = dataclasses.replace(SEND, server="post")
    assert await approvals.decide(request(twin)) == "deny"


async def test_content_of_another_server_makes_a_standing_rule_ask_again_unless_it_was_marked_otherwise(
    file: Path,
) -> None:
    person = Person("always", "deny", "always")
    approvals = Approvals(file, person)
    await approvals.decide(request())
    assert await approvals.decide(request(others=("web",))) == "deny"
    assert person.asked[-1].other_servers == {"web"}
    assert await approvals.decide(request(others=("web",))) == "always"
    assert [rule.also_after_others for rule in approvals.rules] == [False]
    assert len(person.asked) == 3
    approvals.mark(approvals.rules[0], also_after_others=True)
    assert await Approvals(file, DenyAll()).decide(request(others=("web",))) == "always"


async def test_a_whole_server_is_allowed_as_it_is_now(file: Path) -> None:
    approvals = Approvals(file, Person("deny", "deny"))
    approvals.allow_server("mail", [SEND, LIST])
    assert await approvals.decide(request(LIST)) == "always"
    assert await approvals.decide(request(SEND)) == "always"
    assert await approvals.decide(request(CHANGED)) == "deny"
    assert await approvals.decide(request(tool("mail", "new"))) == "deny"
    assert Approvals(file, DenyAll()).rules == (Rule("mail", None, True, (SEND, LIST)),)


async def test_never_is_kept_and_holds_for_every_definition_of_the_tool_and_over_a_rule_for_the_server(
    file: Path,
) -> None:
    approvals = Approvals(file, Person("never"))
    assert await approvals.decide(request()) == "deny"
    approvals.allow_server("mail", [SEND, LIST])
    again = Approvals(file, AllowAll())
    assert await again.decide(request()) == "deny"
    assert await again.decide(request(CHANGED)) == "deny"
    assert await again.decide(request(LIST)) == "always"


async def test_a_revoked_rule_asks_again(file: Path) -> None:
    approvals = Approvals(file, Person("always", "deny"))
    await approvals.decide(request())
    changes: list[None] = []
    approvals.changed.connect(lambda: changes.append(None))
    rule = approvals.rules[0]
    approvals.revoke(rule)
    approvals.revoke(rule)
    assert (approvals.rules, len(changes)) == ((), 1)
    assert await approvals.decide(request()) == "deny"
    assert Approvals(file, DenyAll()).rules == ()


async def test_a_change_keeps_what_another_deskhand_wrote_meanwhile(file: Path) -> None:
    one, other = Approvals(file, Person("always")), Approvals(file, Person("always"))
    await one.decide(request(SEND))
    await other.decide(request(LIST))
    assert [rule.tool for rule in Approvals(file, DenyAll()).rules] == ["list", "send"]


@pytest.mark.parametrize(
    "content",
    [
        b'{"rules": [',
        b"\xff\xfe",
        b"[]",
        b'{"rules": [{"server": "mail", "tool": "send", "allowed": true, "definitions": [{"server": "mail"}]}]}',
        b'{"rules": [{"server": "mail", "tool": 5, "allowed": true, "definitions": []}]}',
        b"[" * 100_000,
    ],
    ids=["cut", "no text", "another shape", "half a definition", "wrong type", "deep"],
)
async def test_a_file_that_cannot_be_read_gives_no_rules_and_is_kept_aside(
    file: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    file.parent.mkdir()
    file.write_bytes(content)
    approvals = Approvals(file, Person("deny", "always"))
    assert "could not be read" in caplog.text
    assert b"mail" not in caplog.text.encode()
    caplog.clear()
    assert approvals.fault
    assert await approvals.decide(request()) == "deny"
    assert file.read_bytes() == content
    assert await approvals.decide(request()) == "always"
    assert file.with_name("approvals.json.unreadable-1").read_bytes() == content
    assert json.loads(file.read_bytes())["rules"][0]["tool"] == "send"


async def test_a_rule_that_cannot_be_written_holds_for_this_run(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    file.parent.write_bytes(b"a file where the folder should be")
    approvals = Approvals(file, Person("always"))
    caplog.clear()
    assert await approvals.decide(request()) == "always"
    assert "hold for this run only" in caplog.text
    caplog.clear()
    assert await approvals.decide(request()) == "always"


async def test_calls_of_one_tool_at_a_time_are_asked_about_and_one_answer_may_settle_the_rest(file: Path) -> None:
    answered: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
    asked: list[ApprovalRequest] = []

    class Slow:
        async def decide(self, request: ApprovalRequest) -> Decision:
            asked.append(request)
            return await answered

    approvals = Approvals(file, Slow())
    same = [asyncio.create_task(approvals.decide(request())) for _ in range(3)]
    another = asyncio.create_task(approvals.decide(request(LIST)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [each.tool for each in asked] == [SEND, LIST]
    same[1].cancel()
    answered.set_result("conversation")
    assert await same[0] == "conversation"
    assert await same[2] == "conversation"
    assert await another == "conversation"
    assert len(asked) == 2


async def test_a_change_is_put_to_the_person_once_and_always_renews_the_rule(file: Path) -> None:
    person = Person("always", "deny", "always")
    approvals = Approvals(file, person)
    assert approvals.previous(SEND, None) is None
    await approvals.decide(request(SEND))
    assert approvals.previous(SEND, None) is None
    assert approvals.previous(CHANGED, None) == SEND
    assert not await approvals.accept(request(CHANGED, previous=SEND))
    assert approvals.previous(CHANGED, None) == SEND
    assert await approvals.accept(request(CHANGED, previous=SEND))
    assert approvals.previous(CHANGED, SEND) is None
    again = Approvals(file, DenyAll())
    assert again.previous(CHANGED, None) is None
    assert again.rules == (Rule("mail", "send", True, (CHANGED,)),)


async def test_a_change_that_was_accepted_without_always_is_asked_about_at_each_call(file: Path) -> None:
    approvals = Approvals(file, Person("once", "deny"))
    assert approvals.previous(CHANGED, SEND) == SEND
    assert await approvals.accept(request(CHANGED, previous=SEND))
    assert approvals.previous(CHANGED, SEND) is None
    assert await approvals.decide(request(CHANGED)) == "deny"


async def test_a_run_without_questions_changes_no_rules(file: Path) -> None:
    assert await Approvals(file, AllowAll()).decide(request()) == "once"
    assert not file.exists()


async def test_a_change_can_be_refused_for_good(file: Path) -> None:
    approvals = Approvals(file, Person("never"))
    assert not await approvals.accept(request(CHANGED, previous=SEND))
    assert await Approvals(file, AllowAll()).decide(request(CHANGED)) == "deny"
