"""Which URLs may leave for the browser, and how they go."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from pathlib import Path

import pytest

from desktop import links, processes

posix = pytest.mark.skipif(sys.platform != "linux", reason="xdg-open")


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://example.com", "example.com"),
        ("http://example.com/a?b=c#d", "example.com"),
        ("HTTPS://Example.COM/Path", "example.com"),
        ("https://example.com:8443/", "example.com:8443"),
        ("http://127.0.0.1:7777/callback", "127.0.0.1:7777"),
        ("http://[::1]:80/", "[::1]:80"),
        ("http://[2001:DB8:0::1]/", "[2001:db8::1]"),
        ("http://localhost:3000", "localhost:3000"),
        ("https://bücher.example/straße", "xn--bcher-kva.example"),
        ("https://faß.de", "xn--fa-hia.de"),
        ("https://аррӏе.com", "xn--80ak6aa92e.com"),
        ("https://ａｂｃ.com", "abc.com"),
        ("https://example.com/%action", "example.com"),
        ("https://a.example/$(calc)`id`'&", "a.example"),
    ],
)
def test_an_http_address_may_be_opened_and_its_host_is_as_the_browser_sees_it(url: str, host: str) -> None:
    opened = re.sub(r"(?<=://)[^/:]*[^\x00-\x7f][^/:]*", host, url)  # what is shown is what is opened
    assert links.check(url) == links.Link(opened, host)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "//example.com",
        "javascript:alert(1)",
        "file:///bin/sh",
        "smb://host/share",
        "ms-msdt:/id",
        "data:text/html,x",
        "mailto:a@example.com",
        "-remote",
        " https://example.com",
        "https://example.com/\n-x",
        "https://example.com/a b",
        "https://exam\tple.com",
        "https://example.com/\u202egnp",
        "https://example.com\u200b.evil.example",
        "https://user:password@example.com",
        "https://google.com@evil.example",
        "https:\\\\example.com",
        "https://example.com\\@evil.example",
        "http:///path",
        "http://",
        "http:example.com",
        "https://-oProxyCommand=x",
        "https://example.com:99999",
        "https://example.com:port",
        "https://ex%61mple.com",
        "https://exa$mple.com",
        "https://[::1",
        "https://[fe80::1%25eth0]/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0x7f.1/",
        "http://127.1/",
        "http://1.2.3.4.5/",
        "https://☃.net",
        "https://example.com/" + "a" * 4096,
    ],
)
def test_what_is_no_clear_http_address_is_refused(url: str) -> None:
    assert links.check(url) is None


def opener(folder: Path, script: str) -> None:
    program = folder / "xdg-open"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def read(file: Path) -> str:
    return file.read_text() if file.exists() else ""


@posix
@pytest.mark.anyio
async def test_the_url_is_one_argument_of_the_opener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opener(tmp_path, f'printf "%s\\n" "$#" "$1" > {tmp_path}/seen')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    link = links.check("https://example.com/?a=1&b=$(touch${IFS}x);'\"")
    assert link is not None
    assert await links.open_in_browser(link)
    assert (tmp_path / "seen").read_text() == f"1\n{link.url}\n"


@posix
@pytest.mark.anyio
async def test_an_opener_that_fails_or_is_missing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not await links.open_in_browser(links.Link("https://example.com", "example.com"))
    opener(tmp_path, "exit 3")
    assert not await links.open_in_browser(links.Link("https://example.com", "example.com"))


@posix
@pytest.mark.anyio
async def test_a_browser_that_the_opener_started_lives_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opener(tmp_path, f"sleep 600 & echo $! > {tmp_path}/pid")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert await links.open_in_browser(links.Link("https://example.com", "example.com"))
    browser = int((tmp_path / "pid").read_text())
    try:
        assert processes.start_time(browser) is not None
    finally:
        os.kill(browser, 9)


@posix
@pytest.mark.anyio
async def test_an_opener_that_becomes_the_browser_is_not_waited_for_and_not_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "_OPENER_LIMIT", 0.2)
    opener(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 600")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    started = time.monotonic()
    assert await links.open_in_browser(links.Link("https://example.com", "example.com"))
    assert time.monotonic() - started < 5
    async with asyncio.timeout(5):
        while not (told := read(tmp_path / "pid")):  # noqa: ASYNC110 - no event tells of a stranger's file
            await asyncio.sleep(0.005)
    browser = int(told)
    assert processes.start_time(browser) is not None
    os.kill(browser, 9)
