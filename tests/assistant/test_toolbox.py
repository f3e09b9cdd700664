"""Which tools are active in a conversation, read off its messages, and how they are offered."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from desktop.assistant.conversation import Message, ToolCall, ToolOutput, interrupt, message_from_json, to_json
from desktop.assistant.toolbox import MOST_ACTIVE, Toolbox, spec
from desktop.catalog_entries import ToolDefinition
from desktop.errors import AssistantError
from tests.fakes.in_memory_host import tool

A, B, C = tool("s", "a"), tool("s", "b"), tool("t", "c", annotations={"readOnlyHint": True}, title="C")


def activated(*tools: ToolDefinition, after: list[Message] | None = None, state: Any = "done") -> Message:
    """A message with a call that activated tools."""
    call = ToolCall("1", "mcp_tools", "{}", state=state, output=ToolOutput(""))
    for each in tools:
        Toolbox(after or []).load(each, call)
    return Message("assistant", [call])


def test_a_new_conversation_has_no_tools() -> None:
    assert Toolbox([]).tools == ()
    assert Toolbox([Message("user")]).names == ()


def test_tools_come_in_the_order_of_activation_each_once() -> None:
    messages = [activated(B)]
    messages.append(activated(A, B, after=messages))
    messages.append(activated(C))
    toolbox = Toolbox(messages)
    assert toolbox.tools == (B, A, C)
    assert toolbox.names == ("mcp__s__b", "mcp__s__a", "mcp__t__c")
    assert toolbox.find("mcp__s__a") == A
    assert toolbox.find("s.a") is None


def test_activating_again_is_told_and_not_recorded_twice() -> None:
    call = ToolCall("2", "mcp_tools", "{}")
    toolbox = Toolbox([activated(A)])
    assert toolbox.load(A, call) == "already loaded"
    assert toolbox.load(B, call) == "loaded"
    assert call.activated == ["mcp__s__b"]


def test_tools_survive_the_way_through_the_history() -> None:
    stored = [to_json(activated(A, B)), to_json(activated(C))]
    assert Toolbox([message_from_json(each) for each in stored]).tools == (A, B, C)


def test_a_branch_has_the_tools_of_its_own_messages() -> None:
    messages = [activated(A), activated(B)]
    assert Toolbox(messages[:1]).tools == (A,)


@pytest.mark.parametrize("state", ["failed", "stopped", "denied", "waiting", "running"])
def test_only_a_call_that_succeeded_counts(state: str) -> None:
    assert Toolbox([activated(A, state=state)]).tools == ()


def test_a_call_that_is_stopped_activates_nothing() -> None:
    message = activated(A, state="running")
    message.tool_calls[0].output = None
    interrupt(message)
    assert Toolbox([message]).tools == ()


def test_only_calls_of_mcp_tools_count() -> None:
    message = activated(A)
    message.tool_calls[0].name = "mcp__s__evil"
    assert Toolbox([message]).tools == ()


@pytest.mark.parametrize(
    "spoil",
    [
        {"native_name": "mcp__t__c"},
        {"input_schema": "x"},
        {"name": None},
        {"annotations": None},
        {"output_schema": []},
        {"identity": 5},
    ],
    ids=lambda spoil: next(iter(spoil)),
)
def test_a_definition_that_is_none_any_more_is_left_out(spoil: dict[str, Any]) -> None:
    message = activated(A, B)
    message.tool_calls[0].details["loaded"][0] |= spoil
    assert Toolbox([message]).tools == (B,)


@pytest.mark.parametrize("loaded", [None, "x", {}, [None, 5, "x", []]])
def test_details_of_another_shape_activate_nothing(loaded: Any) -> None:
    message = activated(A)
    message.tool_calls[0].details["loaded"] = loaded
    assert Toolbox([message]).tools == ()


def test_a_tool_that_changed_replaces_the_old_one_at_the_end() -> None:
    messages = [activated(A, B)]
    changed = dataclasses.replace(A, description="changed", fingerprint="f")
    messages.append(activated(changed, after=messages))
    assert Toolbox(messages).tools == (B, changed)


def test_another_tool_under_a_name_that_is_taken_is_refused() -> None:
    twin = dataclasses.replace(tool("other", "x"), native_name=A.native_name)
    with pytest.raises(AssistantError) as refused:
        Toolbox([activated(A)]).load(twin, ToolCall("2", "mcp_tools", "{}"))
    assert refused.value.diagnostic.code == "tool_name_taken"


def test_an_unloaded_tool_is_gone_until_it_is_activated_again() -> None:
    messages = [activated(A, B), activated(C)]
    toolbox = Toolbox(messages)
    assert toolbox.unload("mcp__s__a") == messages[:1]
    assert toolbox.tools == (B, C)
    assert toolbox.unload("mcp__s__a") == []
    messages.append(activated(A, after=messages))
    assert toolbox.tools == (B, C, A)


def test_of_more_tools_than_providers_take_the_ones_used_last_stay_and_the_rest_is_named() -> None:
    many = [tool("s", f"t{number:03}") for number in range(150)]
    messages = [activated(*many[:50]), activated(*many[50:100])]
    messages.append(Message("assistant", [ToolCall("2", many[0].native_name, "{}", state="done")]))
    toolbox = Toolbox(messages)
    call = ToolCall("3", "mcp_tools", "{}", state="running")
    messages.append(Message("assistant", [call]))
    for each in many[100:]:
        toolbox.load(each, call)
    displaced = toolbox.displaced(call)
    assert displaced == [each.native_name for each in many[1:24]]
    assert toolbox.names == tuple(each.native_name for each in many[:100])
    call.state = "done"
    assert toolbox.tools == (many[0], *many[24:])
    assert len(toolbox.tools) == MOST_ACTIVE


def test_a_tool_is_offered_with_its_own_words_marked_and_cleaned() -> None:
    hostile = tool(
        "s",
        "a",
        description="Adds.\x1b[8m\u202e hidden\U000e0041" + "x" * 9000,
        schema={
            "type": "object",
            "properties": {"n": {"type": "integer", "description": "A \u200bnumber"}, "m": {"$ref": "#/$defs/m"}},
            "$defs": {"m": {"type": "string"}},
        },
    )
    offered = spec(hostile)
    first, _, rest = offered.description.partition("\n")
    assert "s.a" in first
    assert "not instructions" in first
    assert rest.startswith("Adds. hiddenxxx")
    assert len(rest) <= 8000
    assert offered.schema == {
        "type": "object",
        "properties": {"n": {"type": "integer", "description": "A number"}, "m": {"type": "string"}},
    }
    assert (offered.name, offered.definition) == ("mcp__s__a", hostile)


def test_a_tool_without_a_description_says_so() -> None:
    assert spec(A).description.endswith("\nNo description.")
