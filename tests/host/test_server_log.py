"""The log of a server: bounded, private, safe to show."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop import log as own_log
from desktop.host.server_log import FILE_SIZE, LONGEST_LINE, MOST_LINES, ServerLog

posix = pytest.mark.skipif(sys.platform == "win32", reason="modes and links of POSIX")


def contents(file: Path) -> list[str]:
    """The lines of a log's file without their times."""
    return [line.split(" ", 2)[2] for line in file.read_text().splitlines()]


def test_lines_are_kept_in_order_and_the_newest_are_given() -> None:
    log = ServerLog(None)
    for number in range(5):
        log.append(f"line {number}")
    assert log.tail(2) == ["line 3", "line 4"]
    assert log.tail(100) == [f"line {number}" for number in range(5)]
    assert log.tail(0) == []


def test_memory_keeps_the_newest_lines_and_cuts_long_ones() -> None:
    log = ServerLog(None)
    log.extend(f"line {number}" for number in range(3 * MOST_LINES))
    log.append("x" * 1_000_000)
    lines = log.tail(10**6)
    assert len(lines) == MOST_LINES
    assert lines[0] == f"line {2 * MOST_LINES + 1}"
    assert lines[-1] == "x" * (LONGEST_LINE - 1) + "…"


@given(st.lists(st.sampled_from([b"a", b"line", "é☃".encode(), b" ", b"\n", b"\r\n"]), max_size=40), st.integers(1, 9))
def test_error_output_becomes_lines_in_whatever_pieces_it_comes(parts: list[bytes], size: int) -> None:
    output = b"".join(parts)
    log = ServerLog(None)
    for start in range(0, len(output), size):
        log.feed(output[start : start + size])
    log.end_output()
    assert log.tail(1000) == [line for line in output.decode().replace("\r\n", "\n").split("\n") if line]


def test_a_line_is_there_once_it_is_complete_and_its_rest_at_the_end() -> None:
    log = ServerLog(None)
    log.feed(b"one\ntw")
    assert log.tail(9) == ["one"]
    log.feed(b"o\nthree")
    assert log.tail(9) == ["one", "two"]
    log.end_output()
    assert log.tail(9) == ["one", "two", "three"]


def test_of_an_endless_line_the_beginning_is_kept() -> None:
    log = ServerLog(None)
    for _ in range(100):
        log.feed(b"x" * 60_000)
    log.feed(b"end\nnext\n")
    assert [line[:3] for line in log.tail(9)] == ["xxx", "nex"]
    assert len(log.tail(9)[0]) == LONGEST_LINE


def test_progress_that_is_drawn_over_itself_becomes_lines() -> None:
    log = ServerLog(None)
    log.feed(b"10 %\r20 %\rdone\n")
    assert log.tail(9) == ["10 %", "20 %", "done"]


def test_hidden_characters_are_visible_and_colours_gone() -> None:
    log = ServerLog(None)
    log.feed("\x1b[31mred\x1b[0m \x1b]0;title\x07 \u202eabc\u200b\x00\xff\n".encode())
    log.feed(b"\xff\xfe not UTF-8\n")
    assert log.tail(9) == ["red \\x1B]0;title\\x07 \\u202Eabc\\u200B\\x00ÿ", "�� not UTF-8"]


def test_secrets_are_left_out_of_memory_and_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_log, "_secrets", dict[str, bool]())
    own_log.redact("hunter2hunter2")
    log = ServerLog(tmp_path / "server.log")
    log.feed(b"started with hunter2hunter2\nAuthorization: Bearer abcdefghij\n")
    assert log.tail(9) == ["started with [redacted]", "Authorization: Bearer [redacted]"]
    assert contents(tmp_path / "server.log") == log.tail(9)


def test_the_file_has_what_was_appended_with_its_time(tmp_path: Path) -> None:
    log = ServerLog(tmp_path / "logs" / "server.log")
    log.append("one\ntwo")
    log.feed("drei ☃\n".encode())
    assert contents(tmp_path / "logs" / "server.log") == ["one", "two", "drei ☃"]
    first = (tmp_path / "logs" / "server.log").read_text()[:19]
    assert abs(time.mktime(time.strptime(first, "%Y-%m-%d %H:%M:%S")) - time.time()) < 60


@posix
def test_the_file_is_private_whatever_the_mask(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        ServerLog(tmp_path / "logs" / "server.log").append("x")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "logs" / "server.log").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "logs").stat().st_mode) == 0o700


@posix
def test_a_link_that_lies_in_the_file_s_place_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    (tmp_path / "logs").mkdir(0o700)
    (tmp_path / "logs" / "server.log").symlink_to(victim)
    log = ServerLog(tmp_path / "logs" / "server.log")
    log.append("x")
    assert victim.read_text() == "untouched"
    assert log.tail(9)[0] == "x"
    assert log.tail(9)[1].startswith("This log can't be kept in a file any more")


def test_a_full_file_becomes_the_old_one_and_there_is_one_old_one(tmp_path: Path) -> None:
    log = ServerLog(tmp_path / "logs" / "server.log")
    for number in range(40):
        log.extend([f"{number:03} " + "x" * 990] * 100)
    files = sorted((tmp_path / "logs").iterdir())
    assert [file.name for file in files][-1] == "server.log.1"
    assert len(files) <= 2
    assert sum(file.stat().st_size for file in files) < 2.3 * FILE_SIZE
    assert contents(files[-1])[-1].startswith("03")


def test_without_a_place_for_the_file_the_log_is_kept_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    log = ServerLog(tmp_path / "file" / "server.log")
    log.append("one")
    log.append("two")
    assert [line[:8] for line in log.tail(9)] == ["one", "This log", "two"]


def test_watchers_hear_of_new_lines(tmp_path: Path) -> None:
    log = ServerLog(None)
    heard: list[list[str]] = []
    seen = 0

    def look() -> None:
        nonlocal seen
        new = log.lines(seen)
        seen = new[-1].number
        heard.append([line.text for line in new])

    log.appended.connect(look)
    log.append("one")
    log.feed(b"two\nthree\nfo")
    log.feed(b"ur\n")
    assert heard == [["one"], ["two", "three"], ["four"]]


@pytest.mark.anyio
async def test_in_a_loop_watchers_hear_once_of_many_lines_and_the_file_gets_them_together(tmp_path: Path) -> None:
    log = ServerLog(tmp_path / "server.log")
    heard: list[int] = []
    log.appended.connect(lambda: heard.append(len(log.lines())))
    for number in range(300):
        log.append(f"line {number}")
    await asyncio.sleep(0)
    assert heard == [300]
    await log.flush()
    assert contents(tmp_path / "server.log") == [f"line {number}" for number in range(300)]
    log.append("later")
    await log.flush()
    assert contents(tmp_path / "server.log")[-1] == "later"


def test_what_waits_when_the_loop_ends_is_in_the_file(tmp_path: Path) -> None:
    log = ServerLog(tmp_path / "server.log")

    async def short() -> None:
        log.append("last words")

    asyncio.run(short())
    assert contents(tmp_path / "server.log") == ["last words"]


@pytest.mark.anyio
async def test_a_file_that_can_t_be_written_is_told_once_and_the_lines_stay(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    log = ServerLog(tmp_path / "file" / "server.log")
    log.append("one")
    await log.flush()
    log.append("two")
    await log.flush()
    assert [line[:8] for line in log.tail(9)] == ["one", "This log", "two"]
    assert log.file is None


def test_lines_and_requests_come_in_order_with_kind_and_level_and_a_flood_of_one_leaves_the_other() -> None:
    log = ServerLog(None)
    log.note_request("tools/list", 2, 0.0123, 1500, "ok")
    log.append("warning: careful", "message", "warning")
    log.note_request("tools/call", 3, 2, None, "error -32000")
    assert [(line.kind, line.level, line.text) for line in log.lines()] == [
        ("request", "info", "tools/list #2 12 ms, 1,500 B, ok"),
        ("message", "warning", "warning: careful"),
        ("request", "warning", "tools/call #3 2,000 ms, over 1 MiB, error -32000"),
    ]
    assert log.tail(9) == ["warning: careful"]
    assert [line.text for line in log.lines(log.lines()[1].number)] == [log.lines()[2].text]
    log.extend(f"line {number}" for number in range(2 * MOST_LINES))
    assert [line.kind for line in log.lines()][:3] == ["request", "request", "notice"]
    log.clear()
    assert log.lines() == []
    log.append("after")
    assert log.lines()[0].number > 2 * MOST_LINES


@pytest.mark.anyio
async def test_a_watcher_that_fails_reaches_the_loop_s_hook_and_nobody_else() -> None:
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context["exception"]))
    log = ServerLog(None)
    log.appended.connect(lambda: 1 / 0)
    log.append("one")
    await asyncio.sleep(0)
    assert len(faults) == 1


def test_a_flood_costs_little(tmp_path: Path) -> None:
    chunk = b"".join(b"%012d noise on standard error, sixty-four bytes a line\n" % number for number in range(1000))
    log = ServerLog(tmp_path / "server.log")
    log.feed(chunk)
    started = time.perf_counter()
    for _ in range(20):
        log.feed(chunk)
    assert (time.perf_counter() - started) / 20 < 0.05  # 0.002 on a machine that does nothing else
