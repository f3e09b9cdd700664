"""All tools of a server are allowed for good with one decision on a call: from the menu of its card to the standing rule."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest
from PySide6.QtWidgets import QMenu

from desktop.assistant.approval import ApprovalRequest
from desktop.assistant.conversation import ToolCall
from desktop.core import Core
from desktop.ui.chat.answers import PersonAnswers
from desktop.ui.chat.approval_panel import ApprovalPanel
from desktop.ui.chat.chat_pane import ChatPane
from tests.servers.running import friendly, http_server
from tests.ui.person import click, until, write_servers

pytestmark = pytest.mark.anyio


async def test_all_tools_that_a_server_has_now_are_allowed_for_good(core: Core) -> None:
    async with http_server(friendly()) as url:
        write_servers(core.servers_file, docs={"url": url}, other={"url": url})
        await core.start()
        answers = core.approvals._approver
        assert isinstance(answers, PersonAnswers)
        pane = ChatPane(core, answers)
        assert not pane.busy
        tools = await core.catalog.tools("docs")
        [other, *_] = await core.catalog.tools("other")
        request = ApprovalRequest("c", ToolCall("1", tools[0].native_name, "{}"), tools[0], {})
        deciding = asyncio.create_task(core.approvals.decide(request))
        await until(lambda: answers.approval("c", "1"))
        panel = ApprovalPanel(request, answers)
        panel.show()
        click(panel, "More decisions")
        [menu] = [each for each in panel.findChildren(QMenu) if each.isVisible()]
        [allow] = [each for each in menu.actions() if each.text() == "Always allow all tools that docs has now"]
        allow.trigger()
        assert await deciding == "once"
        [rule] = core.approvals.rules
        assert (rule.server, rule.tool, rule.allowed) == ("docs", None, True)
        assert {each.name for each in rule.definitions} == {tool.name for tool in tools}
        for tool in tools:
            asked = ApprovalRequest("d", ToolCall("2", tool.native_name, "{}"), tool, {})
            assert await core.approvals.decide(asked) == "always"
        assert not rule.allows(other)
        assert not rule.allows(dataclasses.replace(tools[0], fingerprint="changed"))
        allow.trigger()  # of what is asked no more


async def test_a_changed_definition_is_not_accepted_for_a_whole_server(core: Core) -> None:
    async with http_server(friendly()) as url:
        write_servers(core.servers_file, docs={"url": url})
        await core.start()
        [tool, *_] = await core.catalog.tools("docs")
    before = dataclasses.replace(tool, description="earlier")
    panel = ApprovalPanel(
        ApprovalRequest("c", ToolCall("1", "mcp_tools", "{}"), tool, {}, previous=before), PersonAnswers()
    )
    panel.show()
    click(panel, "More decisions")
    [menu] = [each for each in panel.findChildren(QMenu) if each.isVisible()]
    assert [each.text() for each in menu.actions()] == ["Never allow this tool"]
