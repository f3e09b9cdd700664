"""Broken, hostile and odd files of servers: none may crash Deskhand, start anything, be overwritten, or hide a bad entry.

``python3 packaging/dev.py test --long config_fuzz [--files 20000] [--seed 0]``. Some files are made by hand, the others are
written at random or are valid ones that were damaged; each number is always the same file. Prints a JSON line for each failure
and a last one with the count; exit status 1 where one failed. The gate runs 500 (``tests/host/test_config_fuzz.py``).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from desktop.errors import AssistantError
from desktop.host.commented_json import NotJson, parse, same_value
from desktop.host.servers_file import add_server, read_configuration, remove_server, set_disabled

CANARY = "canary-31f6"
#: Seconds for one file, whatever it holds, on a busy machine.
_LONGEST = 20.0
#: Bytes; the edits of a longer one would take most of the time, and show nothing more.
_LONGEST_EDITED = 400_000
_SPAWNS = ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.exec", "os.system", "os.startfile")
_HIDDEN = "\x00\x1b\x7f\u200b\u202e\u2066\ufeff\U000e0041"

spawned: list[str] = []

Make = Callable[[Path], None]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    sys.addaudithook(lambda event, _arguments: spawned.append(event) if event in _SPAWNS else None)
    failed = 0
    slowest = 0.0
    made = list(by_hand())
    for number in range(options.files):
        name, make = made[number] if number < len(made) else (f"random {number}", at_random(options.seed, number))
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                examine(Path(folder) / "mcp.json", make)
            except Exception as error:
                failed += 1
                print(json.dumps({"file": name, "error": f"{type(error).__name__}: {error}"[:2000]}), flush=True)
        slowest = max(slowest, time.monotonic() - begun)
    print(json.dumps({"files": options.files, "failed": failed, "slowest": round(slowest, 2)}))
    return 1 if failed else 0


def examine(file: Path, make: Make) -> None:
    """Reads and edits one file. Raises AssertionError, or whatever Deskhand wrongly raises."""
    make(file)
    before = content(file)
    spawned.clear()
    begun = time.monotonic()
    configuration = read_configuration(file, {"SET": "value", "COMMAND": "!touch x"})
    assert time.monotonic() - begun < _LONGEST, "too slow"
    assert content(file) == before, "written by reading"
    for fault in configuration.faults:
        told = f"{fault} {fault.values}"
        assert CANARY not in told, "a value is told"
        assert len(told) < 1000 and "\n" not in str(fault), "not a sentence"
        assert fault.code == "configuration_unreadable" or fault.server is not None
    readable = not any(fault.code == "configuration_unreadable" for fault in configuration.faults)
    if readable and before is not None:
        names = names_in(before)
        known = {each.name for each in configuration.definitions} | {fault.server for fault in configuration.faults}
        assert {name[:80] for name in names} <= known, "an entry is passed over"
    if before is None or len(before) < _LONGEST_EDITED:
        examine_edits(file, readable, sorted({each.name for each in configuration.definitions})[:1])
    assert not spawned, f"started: {spawned}"
    assert {each.name for each in file.parent.iterdir()} <= {"mcp.json", "other"}, "something is left"


def examine_edits(file: Path, readable: bool, names: list[str]) -> None:
    """Each edit either refuses and leaves every byte, or changes what it is about and nothing else."""
    edits: list[tuple[str, Callable[[], None]]] = [
        ("added", lambda: add_server(file, "added", {"command": "x", "args": ["é"]})),
        *((name, lambda name=name: set_disabled(file, name, True)) for name in names),
        *((name, lambda name=name: remove_server(file, name)) for name in names),
    ]
    for name, edit in edits:
        before = content(file)
        others = parsed(before, without=name) if readable else None
        try:
            edit()
        except AssistantError:
            assert content(file) == before, "changed by an edit that was refused"
        else:
            assert readable, "an unreadable file was overwritten"
            after = parsed(content(file), without=name)
            assert before is None or same_value(others, after), "an edit changed something else"


def content(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() and not str(file.resolve()).startswith("/proc/") else None


def parsed(raw: bytes | None, without: str) -> Any:
    """The content of a file but for one server's entries."""
    try:
        value = json.loads(json.dumps(parse((raw or b"{}").decode("utf-8-sig"))))
    except (NotJson, UnicodeDecodeError):
        return None
    for key in ("mcpServers", "servers"):
        section = value.get(key) if isinstance(value, dict) else None
        if isinstance(section, dict):
            section.pop(without, None)
    return value or {"mcpServers": {}}


def names_in(raw: bytes) -> set[str]:
    try:
        value = json.loads(raw.decode("utf-8-sig"))
    except ValueError:  # with comments: no second reader to ask
        return set()
    sections = [value.get(key) for key in ("mcpServers", "servers")]
    return {name for section in sections if isinstance(section, dict) for name in section}


# Files made by hand


def by_hand() -> Iterator[tuple[str, Make]]:
    texts: dict[str, str | bytes] = {
        "empty": "",
        "blank": " \n\t ",
        "null": "null",
        "a list": "[]",
        "a number": "1e999",
        "an open brace": "{",
        "too many braces": '{"mcpServers": {}}}',
        "a section that is a list": '{"mcpServers": []}',
        "a section that is null": '{"mcpServers": null, "servers": 1}',
        "a section in another case": '{"mcpservers": {"a": {"command": "x"}}}',
        "sections of both kinds": '{"mcpServers": {"a": {"command": "x"}}, "servers": {"a": {"url": "https://h"}, "b": 1}}',
        "a section twice": '{"mcpServers": {}, "mcpServers": {"a": {"command": "x"}}}',
        "a name twice": '{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}, "b": {"command": "z"}}}',
        "a field twice": '{"mcpServers": {"a": {"command": "x", "command": "y"}}}',
        "a variable twice": '{"mcpServers": {"a": {"command": "x", "env": {"A": "1", "A": "2"}}}}',
        "NaN": '{"mcpServers": {"a": {"command": "x", "timeoutMs": NaN, "other": [Infinity, -Infinity]}}}',
        "deep lists": "[" * 200_000,
        "deep objects": '{"a":' * 50_000,
        "a deep entry": '{"mcpServers": {"a": ' + '{"b":' * 90 + "1" + "}" * 90 + "}}",
        "a deep unknown": '{"x": ' + "[" * 99 + "]" * 99 + ', "mcpServers": {"a": {"command": "x"}}}',
        "a deep unknown, too deep": '{"x": ' + "[" * 5000 + "]" * 5000 + ', "mcpServers": {}}',
        "a long number": '{"mcpServers": {"a": {"command": "x", "timeoutMs": ' + "9" * 10_000 + "}}}",
        "a long name": json.dumps({"mcpServers": {"a" * 100_000: {"command": "x"}}}),
        "a long value": json.dumps({"mcpServers": {"a": {"command": "x" * 500_000}}}),
        "a mark at the begin": b'\xef\xbb\xbf{"mcpServers": {"a": {"command": "x"}}}',
        "two marks at the begin": b'\xef\xbb\xbf\xef\xbb\xbf{"mcpServers": {}}',
        "UTF-16": '{"mcpServers": {"a": {"command": "x"}}}'.encode("utf-16"),
        "UTF-32": '{"mcpServers": {}}'.encode("utf-32"),
        "Latin-1": '{"mcpServers": {"a": {"command": "é"}}}'.encode("latin-1"),
        "bytes of a program": bytes(range(256)) * 20,
        "zeros": bytes(1000),
        "over a mebibyte": b'{"mcpServers": {}}' + b" " * 2**20,
        "a mebibyte": b'{"mcpServers": {}}' + b" " * (2**20 - 18),
        "a mebibyte of comment": "/*" + "x" * (2**20 - 30) + '*/{"mcpServers": {}}',
        "a mebibyte of stars": "/*" + "*" * (2**20 - 10),
        "a mebibyte of comments": "/**/" * (2**18 - 8) + '{"mcpServers": {}}',
        "a mebibyte of blanks in a line": '{"mcpServers": {"a": {"command": "x"}' + " " * (2**20 - 60) + "}}",
        "a comment without end": '{"mcpServers": {} /* never',
        "a line comment at the end": '{"mcpServers": {}} // end',
        "comments everywhere": '/*1*/{/*2*/"mcpServers"/*3*/:/*4*/{/*5*/"a"/*6*/:{"command":"x"/*7*/,/*8*/}/*9*/,}/*10*/}//11',
        "commas alone": '{"mcpServers": {,}}',
        "two commas": '{"mcpServers": {"a": {"command": "x"},,}}',
        "a comma first": '{"mcpServers": {,"a": {"command": "x"}}}',
        "single quotes": "{'mcpServers': {}}",
        "a key without quotes": "{mcpServers: {}}",
        "a tab in a text": '{"mcpServers": {"a": {"command": "x\ty"}}}',
        "half a surrogate pair": '{"mcpServers": {"a": {"command": "\\ud800"}, "\\udc00": {"command": "x"}}}',
        "an escape of NUL": '{"mcpServers": {"a": {"command": "x\\u0000y", "env": {"A\\u0000": "b"}}}}',
        "ten thousand entries": json.dumps(
            {"mcpServers": {f"s{n}": {"command": "x", "args": [str(n)]} for n in range(10_000)}}
        ),
        "ten thousand bad entries": json.dumps({"mcpServers": {f"s {n}": {"command": "x"} for n in range(10_000)}}),
        "ten thousand times one name": '{"mcpServers": {' + ",".join(['"a": {"command": "x"}'] * 10_000) + "}}",
        "ten thousand variables": json.dumps(
            {"mcpServers": {"a": {"command": "x", "env": {f"V{n}": "${SET}$SET$$" for n in range(10_000)}}}}
        ),
        "many references": json.dumps({"mcpServers": {"a": {"command": "${SET}" * 100_000}}}),
        "open references": json.dumps({"mcpServers": {"a": {"command": "${SET:-" * 100_000}}}),
        "dollars": json.dumps({"mcpServers": {"a": {"command": "x", "env": {"A": "$" * 400_000}}}}),
        "a wild filter": json.dumps({"mcpServers": {"a": {"command": "x", "includeTools": ["*a" * 10_000]}}}),
        "commands for values": json.dumps(
            {"mcpServers": {"a": {"command": "x", "env": {"A": f"!touch {CANARY}; echo", "B": "${COMMAND}"}}}}
        ),
        "hidden characters": json.dumps(
            {"mcpServers": {f"n{c}": {"command": f"c{c}", "env": {f"E{c}": c}, c: c} for c in _HIDDEN}},
            ensure_ascii=False,
        ),
        "names of folders": json.dumps(
            {"mcpServers": {name: {"command": "x"} for name in ("..", "../a", "C:\\a", "CON", "")}}
        ),
        "the built-in server": '{"mcpServers": {"deskhand": {"command": "x"}, "Deskhand": {"command": "x"}}}',
        "addresses": json.dumps({"mcpServers": {f"u{n}": {"url": url} for n, url in enumerate(_ADDRESSES)}}),
    }
    for name, text in texts.items():
        yield name, lambda file, raw=text: void(file.write_bytes(raw if isinstance(raw, bytes) else raw.encode()))
    for field in _FIELDS:
        for value in _VALUES:
            entry = {
                "command" if field not in ("headers", "url", "caFile", "oauth") else "url": "https://h",
                field: value,
            }
            yield f"{field} {value!r}"[:60], written({"mcpServers": {"good": {"command": "x"}, "odd": entry}})
    yield "a folder", lambda file: file.mkdir()
    yield "nothing", lambda _file: None
    if os.name == "posix":
        yield "a pipe", lambda file: os.mkfifo(file)
        yield "a link to itself", lambda file: file.symlink_to(file)
        yield "a link to nothing", lambda file: file.symlink_to(file.with_name("other"))
        yield "a link to a folder", lambda file: file.symlink_to(file.parent)
        yield "a link to a device", lambda file: file.symlink_to("/dev/zero")
        yield "a name in a file", lambda file: void(file.symlink_to("/etc/hostname/mcp.json"))
        yield "a file that may not be read", lambda file: (void(file.write_text("{}")), file.chmod(0))[-1]
    if sys.platform == "linux":
        yield "a file that can't be read", lambda file: file.symlink_to("/proc/self/mem")


_FIELDS = (
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "type",
    "description",
    "disabled",
    "enabled",
    "includeTools",
)
_FIELDS += ("excludeTools", "timeoutMs", "startupTimeoutMs", "toolTimeoutMs", "protocol", "caFile", "start", "oauth")
_VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    10**30,
    "",
    " ",
    CANARY + "\0",
    [],
    [CANARY],
    [1],
    {},
    {"A": CANARY},
)
_ADDRESSES = ("", "http://", "https://[", "https://h:99999", "https://h:-1", "file:///etc/passwd", "javascript:1")
_ADDRESSES += (
    f"https://{CANARY}@h",
    "https://h/\n",
    "http://169.254.169.254/",
    "https://ⓔxample.org",
    "https://h#x",
    "//h",
)


def written(value: Any) -> Make:
    return lambda file: void(file.write_text(json.dumps(value)))


def void(_value: object) -> None:
    return None


# Files made at random


def at_random(seed: int, number: int) -> Make:
    chance = random.Random(f"{seed} {number}")
    raw = text_of(chance, configuration(chance)).encode("utf-8", "surrogatepass")
    if chance.random() < 0.5:
        raw = damaged(chance, raw)
    return lambda file: void(file.write_bytes(raw))


def configuration(chance: random.Random) -> dict[str, Any]:
    servers = {name(chance): entry(chance) for _ in range(chance.randrange(6))}
    found: dict[str, Any] = {chance.choice(("mcpServers", "mcpServers", "servers")): servers}
    for _ in range(chance.randrange(3)):
        found[name(chance)] = value(chance)
    return found


def name(chance: random.Random) -> str:
    return chance.choice(
        ("a", "b", "files", "x-1", "deskhand", "", "a b", "é", "n" * 81, f"h{chance.choice(_HIDDEN)}", "\ud83d")
    )


def entry(chance: random.Random) -> Any:
    if chance.random() < 0.1:
        return value(chance)
    found: dict[str, Any] = (
        {"command": "x"} if chance.random() < 0.6 else {"url": chance.choice(("https://h", *_ADDRESSES))}
    )
    for field in chance.sample(_FIELDS, chance.randrange(5)):
        found[field] = value(chance)
    return found


def value(chance: random.Random, depth: int = 0) -> Any:
    texts = (
        "x",
        "",
        "${SET}",
        "${NOT_SET}",
        "$SET",
        "${keyring:a}",
        "${input:b}",
        "!echo",
        "$!",
        "*",
        "http",
        "auto",
        "launch",
    )
    simple = (None, True, False, 0, 500, 1.5, float("nan"), *texts, chance.choice(_HIDDEN), CANARY + " \n")
    if depth > 2 or chance.random() < 0.6:
        return chance.choice(simple)
    if chance.random() < 0.5:
        return [value(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {
        chance.choice(("A", "B b", "X-Token", "", "é\0")): value(chance, depth + 1) for _ in range(chance.randrange(4))
    }


def text_of(chance: random.Random, value: Any) -> str:
    """JSON with comments and commas as people write them, and some keys twice."""

    def space() -> str:
        return chance.choice(("", "", " ", "\n  ", "\r\n\t", "/* c */", " // c\n"))

    if isinstance(value, dict):
        members = [
            f"{space()}{json.dumps(key)}{space()}:{space()}{text_of(chance, each)}{space()}"
            for key, each in value.items()
        ]
        if members and chance.random() < 0.1:
            members.append(members[0])
        return "{" + ",".join(members) + ("," if members and chance.random() < 0.2 else "") + space() + "}"
    if isinstance(value, list):
        return "[" + ",".join(f"{space()}{text_of(chance, each)}{space()}" for each in value) + space() + "]"
    return json.dumps(value, ensure_ascii=chance.random() < 0.5)


def damaged(chance: random.Random, raw: bytes) -> bytes:
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(raw) + 1)
        match chance.randrange(4):
            case 0:
                raw = raw[:at]
            case 1:
                raw = raw[:at] + bytes([chance.randrange(256)]) + raw[at:]
            case 2:
                raw = raw[:at] + raw[at + chance.randrange(1, 9) :]
            case _:
                raw = raw[:at] + chance.choice((b'"', b"{", b"}", b",", b"/*", b"//", b"\\", b"\\u0000")) + raw[at:]
    return raw


if __name__ == "__main__":
    sys.exit(main())
