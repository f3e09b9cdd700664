"""The scripted model server refuses what the real service refuses, and runs as a program."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Where the program listens, with a script of two rules."""
    script = tmp_path / "script.json"
    answers = [{"result": None, "answer": {"text": ["Hel", "lo"]}}, {"result": "", "answer": {"text": "Done"}}]
    script.write_text(json.dumps({"rules": answers}))
    command = [
        sys.executable,
        "-m",
        "tests.fakes.model_server",
        "--script",
        script,
        "--model",
        "m",
        "--record",
        tmp_path / "record",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        process.terminate()


def answer(address: str, **body: Any) -> Any:
    """The body of the answer, or the message of the error."""
    data = json.dumps({"model": "m", **body}).encode()
    request = urllib.request.Request(f"{address}/chat/completions", data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return json.load(error)["error"]["message"]


USER = {"role": "user", "content": "hi"}
ASKS = {
    "role": "assistant",
    "tool_calls": [{"id": "x", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}
RESULT = {"role": "tool", "tool_call_id": "x", "content": "r"}


def test_it_answers_by_the_script_and_records_requests(address: str, tmp_path: Path) -> None:
    assert answer(address, messages=[USER])["choices"][0]["message"]["content"] == "Hello"
    assert answer(address, messages=[USER, ASKS, RESULT])["choices"][0]["message"]["content"] == "Done"
    recorded = [json.loads(line) for line in (tmp_path / "record").read_text().splitlines()]
    assert [len(each["messages"]) for each in recorded] == [1, 3]


def test_it_refuses_what_the_service_refuses(address: str) -> None:
    assert "did not have response messages: x" in answer(address, messages=[USER, ASKS, USER])
    assert "must be a response to a preceding message" in answer(address, messages=[USER, RESULT])
    assert "expected a string, got null" in answer(address, messages=[USER, {"role": "assistant", "content": None}])
    assert "does not match pattern" in answer(address, messages=[USER], tools=[{"function": {"name": "a b"}}])
    assert "does not exist" in answer(address, model="other", messages=[USER])
