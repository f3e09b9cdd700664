"""What Guide makes of everyday wishes with real servers: the right tool comes first, and a wrong one is never gone on with."""

from __future__ import annotations

import json
import subprocess
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from desktop.assistant.approval import DenyAll
from desktop.assistant.asking import NobodyToAsk
from desktop.assistant.conversation import Choice, Conversation, Text
from desktop.assistant.guide import Guide
from desktop.core import Core
from desktop.paths import Paths
from tests import real_servers

#: Wishes, and what is right: names of tools, or the end of a resource's URI.
WISHES = """
read the file /tmp/notes.txt | read_text_file read_file
Could you show me the contents of /etc/hostname? | read_text_file read_file
cat /etc/passwd | read_text_file read_file
what's in the folder /home/me/docs? | list_directory list_directory_with_sizes directory_tree
ls /tmp | list_directory list_directory_with_sizes directory_tree
write 'hello' to /tmp/a.txt | write_file
save "42" in /tmp/answer.txt | write_file
create a file todo.md with the content 'buy milk' | write_file
make a new directory /tmp/new | create_directory
mkdir /tmp/test | create_directory
could you please create the folder ~/backup for me | create_directory
move /tmp/a.txt to /tmp/b.txt | move_file
rename report.txt to final.txt | move_file
find all *.py files in /src | search_files
look for files called notes.md below /home/me | search_files
how big is /var/log/syslog | get_file_info list_directory_with_sizes
when was /tmp/a.txt last changed | get_file_info
which directories may you access? | list_allowed_directories
show the tree of /src | directory_tree
open the picture /tmp/cat.png | read_media_file
change "foo" to "bar" in the file /tmp/x.txt | edit_file
read a.txt and b.txt | read_multiple_files
list files with their sizes in /tmp | list_directory_with_sizes
git status of /srv/repo | git_status
what changed in /srv/repo that is not staged | git_diff_unstaged
what is staged for commit | git_diff_staged
show the last 5 commits in /srv/repo | git_log
history of the repository /repo | git_log
commit with message 'fix typo' in /srv/repo | git_commit
stage main.py in /repo | git_add
which branches are there in /repo | git_branch
create a branch called feature-x in /repo | git_create_branch
switch to branch develop | git_checkout
check out the branch develop in /home/me/app | git_checkout
unstage everything | git_reset
show the difference between main and develop in /repo | git_diff
show commit abc123 | git_show
what time is it in Tokyo | get_current_time current_time
What's the time? | get_current_time current_time
convert 14:30 from Berlin to New York | convert_time
If it is 9am in London, what time is it in Sydney? | convert_time
echo hello world | echo
please say hello back to me | echo
add 2 and 3 | get-sum
what is 2 + 3 | get-sum
how much is 12 plus 30 | get-sum
show me a tiny picture | get-tiny-image
can you print the environment variables | get-env
start a long running operation of 10 seconds with 5 steps | trigger-long-running-operation
give me 4 resource links | get-resource-links
research quantum computing | simulate-research-query
compress https://example.org/a.txt | gzip-file-as-resource
show an error message example | get-annotated-message
turn on logging | toggle-simulated-logging
get structured content for Chicago | get-structured-content
read the architecture document | architecture.md
search my conversations for invoices | search_conversations
what did we talk about regarding taxes | search_conversations
server status | server_status
are my servers ok? | server_status
""".strip().splitlines()
#: No tool can do these.
UNMET = """
hello
thank you very much
order a pizza
blorf snark
delete my account
delete the file /tmp/a.txt
send an email to bob@example.com saying hi
translate hello to German
turn on the lights
create an issue in the tracker
post a message to slack
multiply 3 by 4
write me a poem about the sea
fix the bug in my code
I love you
Lies die Datei /tmp/a.txt
""".strip().splitlines()


def first(conversation: Conversation) -> tuple[str, bool]:
    """What Guide took the wish for ("" for nothing), and whether it went on without asking which is meant."""
    calls = [call for message in conversation.messages for call in message.tool_calls]
    choice = next(
        (part for message in conversation.messages for part in message.parts if isinstance(part, Choice)), None
    )
    for call in calls:
        arguments: dict[str, Any] = json.loads(call.arguments)
        if "activate" in arguments:
            return arguments["activate"][0].partition(".")[2], True
        if "read" in arguments:
            return arguments["read"].get("uri", arguments["read"].get("template")), True
    if choice is None:
        return "", False
    candidates = calls[-1].details["candidates"]
    labels = {f"{each['title'] or each['name']} · {each['server']}": each for each in candidates}
    best = labels[
        choice.options[0].label.removesuffix(" (resource)").removesuffix(" (template)").removesuffix(" (prompt)")
    ]
    return best["name"], False


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    return tmp_path


@pytest.mark.anyio
async def test_real_servers_and_everyday_wishes(repository: Path, tmp_path: Path, paths: Paths) -> None:
    servers = {
        "everything": real_servers.everything(),
        "filesystem": real_servers.filesystem(tmp_path),
        "git": real_servers.git(repository),
        "time": real_servers.time(),
    }
    config = tmp_path / "mcp.json"
    entries = {name: {"command": command[0], "args": command[1:]} for name, command in servers.items()}
    config.write_text(json.dumps({"mcpServers": entries}))
    core = Core(paths, approver=DenyAll(), asker=NobodyToAsk(), config=config)
    await core.start()
    try:

        async def take(wish: str) -> tuple[str, bool]:
            conversation = Conversation()
            async with aclosing(core.assistant.turn(conversation, Guide(NobodyToAsk()), [Text(wish)])) as events:
                async for _ in events:
                    pass
            return first(conversation)

        wrong: list[tuple[str, str]] = []
        sure = 0
        for line in WISHES:
            wish, _, right = line.partition(" | ")
            name, went_on = await take(wish)
            if not any(name and name.endswith(each) for each in right.split()):
                assert not went_on, f"{wish}: went on with {name}"
                wrong.append((wish, name))
            sure += went_on
        assert len(wrong) <= len(WISHES) // 20, wrong
        assert sure >= 0.7 * len(WISHES)
        for wish in UNMET:
            assert not (await take(wish))[1], wish
    finally:
        await core.close()
