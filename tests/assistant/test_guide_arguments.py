"""Guide finds a tool's arguments in a sentence: what follows from it, what is a guess, and what stays open."""

from __future__ import annotations

from typing import Any

import pytest

from desktop.assistant.guide_arguments import Found, find_arguments

TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "number"}
COUNT: dict[str, Any] = {"type": "integer", "minimum": 1, "maximum": 10}


def schema(*required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


ECHO = schema("message", message=TEXT)
TIME = schema("timezone", timezone=TEXT)
CONVERT = schema("source_timezone", "time", "target_timezone", source_timezone=TEXT, time=TEXT, target_timezone=TEXT)
SUM = schema("a", "b", a=NUMBER, b=NUMBER)
READ = schema(
    "path",
    path=TEXT,
    tail={"type": "number", "description": "only the last N lines"},
    head={"type": "number", "description": "only the first N lines"},
)
READ_MANY = schema("paths", paths={"type": "array", "items": TEXT})
WRITE = schema("path", "content", path=TEXT, content=TEXT)
MOVE = schema("source", "destination", source=TEXT, destination=TEXT)
SEARCH = schema("path", "pattern", path=TEXT, pattern=TEXT)
LIST = schema("path", path=TEXT, sortBy={"type": "string", "enum": ["name", "size"]})
LOG = schema(
    "repo_path",
    repo_path=TEXT,
    max_count={"type": "integer", "default": 10},
    start_timestamp={"anyOf": [{"type": "null"}, {"type": "string"}], "description": "ISO 8601"},
    end_timestamp={"type": ["null", "string"], "description": "ISO 8601"},
)
ADD = schema("repo_path", "files", repo_path=TEXT, files={"type": "array", "items": TEXT})
COMMIT = schema("repo_path", "message", repo_path=TEXT, message=TEXT)
BRANCH = schema("repo_path", "branch_name", repo_path=TEXT, branch_name=TEXT, base_branch=TEXT)
RUN = schema(duration={"type": "number", "description": "Duration in seconds"}, steps={"type": "number"})
KIND = schema("kind", kind={"enum": ["error", "success", "debug"]}, includeImage={"type": "boolean"})
FIND = schema("query", query=TEXT, limit=COUNT)
MAIL = schema("to", "subject", to={"type": "string", "format": "email"}, subject=TEXT, dryRun={"type": "boolean"})


def found(wish: str, of: dict[str, Any], label: str = "server tool", description: str = "") -> Found:
    return find_arguments(wish, of, label=label, description=description)


@pytest.mark.parametrize(
    ("wish", "of", "label", "values"),
    [
        ("echo hello world", ECHO, "echo", {"message": "hello world"}),
        ("echo the quick brown fox!", ECHO, "echo", {"message": "the quick brown fox!"}),
        ("repeat after me: the fox", ECHO, "echo", {"message": "the fox"}),
        ("say hello using echo", ECHO, "echo", {"message": "hello"}),
        ('echo "good morning"', ECHO, "echo", {"message": "good morning"}),
        ("echo 1 2 /tmp", ECHO, "echo", {"message": "1 2 /tmp"}),
        ("search my notes for tax invoices?", FIND, "notes search_notes", {"query": "tax invoices"}),
        ("what time is it in Tokyo", TIME, "time get_time", {"timezone": "Asia/Tokyo"}),
        ("timezone Europe/Rome", TIME, "time get_time", {"timezone": "Europe/Rome"}),
        (
            "convert 14:30 from Berlin to New York",
            CONVERT,
            "time convert_time",
            {"source_timezone": "Europe/Berlin", "time": "14:30", "target_timezone": "America/New_York"},
        ),
        (
            "convert 9am to Asia/Tokyo from Europe/London",
            CONVERT,
            "time convert_time",
            {"source_timezone": "Europe/London", "time": "09:00", "target_timezone": "Asia/Tokyo"},
        ),
        (
            "what time is it in Tokyo when it is 10:00 in Berlin",
            CONVERT,
            "time convert_time",
            {"source_timezone": "Europe/Berlin", "time": "10:00", "target_timezone": "Asia/Tokyo"},
        ),
        ("add 2 and 3", SUM, "get-sum", {"a": 2, "b": 3}),
        ("2 + -3.5", SUM, "get-sum", {"a": 2, "b": -3.5}),
        ("sum with b=2 and a=7", SUM, "get-sum", {"a": 7, "b": 2}),
        ("read the file /tmp/notes.txt", READ, "read_file", {"path": "/tmp/notes.txt"}),
        ('read "my notes.txt"', READ, "read_file", {"path": "my notes.txt"}),
        ("first 10 lines of /etc/hosts", READ, "read_file", {"path": "/etc/hosts", "head": 10}),
        ("last 5 lines of /etc/hosts", READ, "read_file", {"path": "/etc/hosts", "tail": 5}),
        ("read a.txt and b.txt", READ_MANY, "read_files", {"paths": ["a.txt", "b.txt"]}),
        ("write 'hello' to /tmp/a.txt", WRITE, "write_file", {"path": "/tmp/a.txt", "content": "hello"}),
        ("path: a.txt, content: buy milk", WRITE, "write_file", {"path": "a.txt", "content": "buy milk"}),
        ("move /tmp/a.txt to /tmp/b", MOVE, "move_file", {"source": "/tmp/a.txt", "destination": "/tmp/b"}),
        ("find *.py in /src", SEARCH, "search_files", {"path": "/src", "pattern": "*.py"}),
        ("files called notes.md below /home", SEARCH, "search_files", {"path": "/home", "pattern": "notes.md"}),
        ("list /tmp sorted by size", LIST, "list_directory", {"path": "/tmp", "sortBy": "size"}),
        ("last 5 commits in /srv/repo", LOG, "git_log", {"repo_path": "/srv/repo", "max_count": 5}),
        ("log of /repo since 2024-01-01", LOG, "git_log", {"repo_path": "/repo", "start_timestamp": "2024-01-01"}),
        ("log of /repo until 2024-01-01", LOG, "git_log", {"repo_path": "/repo", "end_timestamp": "2024-01-01"}),
        ("stage a.py and b.py in /repo", ADD, "git_add", {"repo_path": "/repo", "files": ["a.py", "b.py"]}),
        ("commit with message 'fix' in /repo", COMMIT, "git_commit", {"repo_path": "/repo", "message": "fix"}),
        ("branch called feature-x in /repo", BRANCH, "git_branch", {"repo_path": "/repo", "branch_name": "feature-x"}),
        ("run 10 seconds with 5 steps", RUN, "run", {"duration": 10, "steps": 5}),
        ("an error message without image", KIND, "message", {"kind": "error", "includeImage": False}),
        ("success, with an image", KIND, "message", {"kind": "success", "includeImage": True}),
        ("find cats, limit=5", FIND, "find", {"query": "cats", "limit": 5}),
        ('mail bob@example.com "hi" dry run', MAIL, "mail", {"to": "bob@example.com", "subject": "hi", "dryRun": True}),
    ],
)
def test_what_a_sentence_says_becomes_arguments(
    wish: str, of: dict[str, Any], label: str, values: dict[str, Any]
) -> None:
    assert found(wish, of, label).values == values


@pytest.mark.parametrize(
    ("wish", "of", "values", "guesses"),
    [
        ("read a.txt and b.txt", READ, {}, {"path": "a.txt"}),
        ("list Documents", LIST, {}, {"path": "Documents"}),
        ("switch to branch develop in /repo", BRANCH, {"repo_path": "/repo"}, {"branch_name": "develop"}),
        ("commit the changes in /repo", COMMIT, {"repo_path": "/repo"}, {}),
        ("write a haiku to poem.txt", WRITE, {"path": "poem.txt"}, {}),
        ("find 'x' with 50 results", FIND, {"query": "x"}, {"limit": 50}),
        ("an error or a success", KIND, {}, {"kind": "error"}),
        ("move foo to bar", MOVE, {}, {}),
        ("add 2", SUM, {}, {}),
        ("add 1, 2 and 3", SUM, {}, {}),
    ],
)
def test_what_is_not_sure_is_a_guess_or_stays_open(
    wish: str, of: dict[str, Any], values: dict[str, Any], guesses: dict[str, Any]
) -> None:
    result = found(wish, of, "tool list commit add find")
    assert (result.values, result.guesses) == (values, guesses)


def test_a_required_parameter_takes_its_default_and_an_optional_one_is_left_to_the_tool() -> None:
    of = schema("unit", unit={"type": "string", "default": "km"}, other={"type": "string", "default": "x"})
    assert found("how far", of).values == {"unit": "km"}


def test_an_integer_is_not_made_of_a_fraction() -> None:
    assert found("limit=2.5", schema("limit", limit=COUNT)).values == {}


@pytest.mark.parametrize(
    ("wish", "more_said"),
    [
        ("show the log of /repo", False),
        ("show the latest log of /repo", False),
        ("show the log of /repo for bob", True),
        ("show the log of /repo and /other", True),
    ],
)
def test_it_is_known_whether_more_was_said_than_was_understood(wish: str, more_said: bool) -> None:
    assert found(wish, LOG, "git git_log", "Shows the commit logs").more_said is more_said


@pytest.mark.parametrize(
    "of",
    [
        {},
        {"type": "object", "properties": {"x": True, "y": {"type": "object"}, "": {}}, "required": "x"},
        {
            "properties": {"x": {"enum": [1, None, {}]}, "y": {"type": []}, "z": {"anyOf": [True]}},
            "required": ["x", "q", 3],
        },
        {
            "properties": {"x": {"type": "array", "items": True}, "n": {"type": "number", "minimum": "0"}},
            "required": ["x"],
        },
    ],
)
def test_a_schema_of_any_shape_is_taken_as_it_is(of: dict[str, Any]) -> None:
    found("read /tmp/a with 3 'x' in Berlin", of)
