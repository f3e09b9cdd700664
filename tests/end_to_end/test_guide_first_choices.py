"""What Guide takes first for a person's wish, among the tools of five real servers and the built-in one.

The wishes were written by someone who had not seen how Guide works, before it was tried on any of them.
"""

from __future__ import annotations

import json
import subprocess
from contextlib import aclosing
from pathlib import Path

import pytest

from desktop.assistant.approval import DenyAll
from desktop.assistant.conversation import Choice, Conversation, Form, Text
from desktop.assistant.guide import Guide
from desktop.core import Core
from desktop.paths import Paths
from tests import real_servers
from tests.end_to_end.programs import write_servers

pytestmark = pytest.mark.anyio

#: A wish, and the tools of which each would be right.
WISHES = (
    ("show me the files in FOLDER", "filesystem.list_directory"),
    ("read the file notes.txt", "filesystem.read_text_file filesystem.read_file"),
    ("create a folder called drafts", "filesystem.create_directory"),
    ("rename report.txt to report-old.txt", "filesystem.move_file"),
    ("find all python files under the src folder", "filesystem.search_files"),
    ("how big are the files in this directory?", "filesystem.list_directory_with_sizes filesystem.get_file_info"),
    ("when was notes.txt last modified?", "filesystem.get_file_info"),
    ("draw the folder structure as a tree", "filesystem.directory_tree"),
    ('write "hello" into greeting.txt', "filesystem.write_file"),
    ("which directories am I allowed to access?", "filesystem.list_allowed_directories"),
    ("replace foo by bar in config.ini", "filesystem.edit_file"),
    ("show the commit history", "git.git_log"),
    ("what has changed but is not staged yet?", "git.git_diff_unstaged"),
    ("what's the status of the repository?", "git.git_status"),
    ("make a new branch named feature-x", "git.git_create_branch"),
    ("switch to branch main", "git.git_checkout"),
    ("commit the staged changes with the message 'fix typo'", "git.git_commit"),
    ("list all branches", "git.git_branch"),
    ("stage README.md", "git.git_add"),
    ("what did commit abc123 change?", "git.git_show"),
    ("what time is it in New York?", "time.get_current_time deskhand.current_time"),
    ("convert 14:30 from Berlin to Tokyo time", "time.convert_time"),
    ("add 3 and 4", "everything.get-sum"),
    ("echo hello world", "everything.echo"),
    ("show me the environment variables", "everything.get-env"),
    ("give me a tiny image", "everything.get-tiny-image"),
    ("are my servers connected?", "deskhand.server_status"),
    ("search my old conversations for invoices", "deskhand.search_conversations"),
    ("compare the current branch with main", "git.git_diff"),
    ("unstage everything", "git.git_reset"),
)
NOT_WISHES = (
    "hello",
    "Good morning!",
    "thanks a lot!",
    "ok, great",
    "asdf qwer zxcv",
    "what is the meaning of life",
    "book a table for two tonight",
    "???",
)


class Onlooker:
    """Sees what the person is asked, and answers nothing."""

    def __init__(self) -> None:
        self.choices: list[Choice] = []

    async def choose(self, choice: Choice) -> int | None:
        self.choices.append(choice)
        return None

    async def fill(self, form: Form) -> None:
        return None


async def turn(core: Core, onlooker: Onlooker, wish: str) -> Conversation:
    conversation = Conversation()
    async with aclosing(core.assistant.turn(conversation, Guide(onlooker), [Text(wish)])) as events:
        async for _ in events:
            pass
    return conversation


def first_choice(conversation: Conversation, labels: dict[str, str]) -> str | None:
    """The tool (``server.name``) that was activated or stood first among the options; None: nothing of a tool."""
    for message in conversation.messages:
        for part in message.parts:
            if isinstance(part, Choice):
                return labels.get(part.options[0].label, part.options[0].label)
            if part.kind == "tool_call" and part.details.get("operation") == "activate":
                return json.loads(part.arguments)["activate"][0]
    return None


def repository(folder: Path) -> None:
    folder.mkdir()
    subprocess.run(["git", "init", "-q", folder], check=True)


async def test_the_first_choice_is_right_for_24_of_30_wishes_and_small_talk_calls_nothing(
    paths: Paths, tmp_path: Path
) -> None:
    folder = tmp_path / "work"
    repository(folder)
    servers = {
        "everything": real_servers.everything(),
        "filesystem": real_servers.filesystem(folder),
        "time": real_servers.time(),
        "git": real_servers.git(folder),
    }
    onlooker = Onlooker()
    config = write_servers(tmp_path / "mcp.json", **servers)
    core = Core(paths, approver=DenyAll(), asker=onlooker, config=config)
    try:
        await core.start()
        labels = {
            f"{tool.title or tool.name} · {tool.server}": tool.identifier
            for server in (*servers, "deskhand")
            for tool in await core.catalog.tools(server)
        }
        wrong: list[tuple[str, str | None]] = []
        for wish, right in WISHES:
            found = first_choice(await turn(core, onlooker, wish.replace("FOLDER", str(folder))), labels)
            if found not in right.split():
                wrong.append((wish, found))
        assert len(wrong) <= 6, wrong
        print(f"right: {len(WISHES) - len(wrong)} of {len(WISHES)}; wrong: {wrong}")
        for said in NOT_WISHES:
            onlooker.choices.clear()
            conversation = await turn(core, onlooker, said)
            tools = [call for message in conversation.messages for call in message.tool_calls if call.server]
            assert not tools, said
            assert first_choice(conversation, labels) is None, said
            assert len(conversation.messages[-1].text) > 40, said
    finally:
        await core.close()
