"""What a person pastes to add a server, from a page or another program: a command line, a URL, JSON, TOML or YAML of any program,
the command that adds it to another program, a link that installs it. Used by the server editor.

Only what it means is found out; nothing is run, and nothing is opened.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast
from urllib.parse import urlsplit

from desktop.host import command_text, install_link
from desktop.host.foreign_document import LONGEST_TEXT, Group, NotUnderstood, document, groups_in, groups_of
from desktop.host.foreign_entry import Candidate, Entry, candidate, checked, literal

_URL = re.compile(r"https?://", re.IGNORECASE)
#: Words in front of or behind a name that say only that it is a server.
_DECORATION = re.compile(r"(?:^(?:mcp[-_])?server[-_]|^mcp[-_]|[-_]mcp(?:[-_]server)?$|[-_]server$)")
#: Programs and words that run another one, by which no server is called.
_RUNNERS = frozenset(
    """
    npx bunx uvx uv pnpm dlx run exec node deno bun python python3 -m tool docker podman container env cmd sh bash start mcp
    """.split()  # noqa: SIM905
)
#: Their options that a value follows.
_WITH_VALUE = frozenset(
    """
    -e --env --env-file -v --volume --mount --name -p --publish --network --net -w --workdir -u --user --entrypoint --platform
    -l --label --add-host --from --with --package --directory --project --python -h --hostname --cpus -c
    """.split()  # noqa: SIM905
)
_ADD_COMMANDS = frozenset({"claude", "codex", "gemini", "qwen"})
_EDITORS = frozenset({"code", "code-insiders", "codium", "cursor", "windsurf"})


def parse(text: str) -> list[Candidate]:
    """The servers that a text means; a name that can't be guessed is "". Raises NotUnderstood."""
    text = text.strip()
    if len(text) > LONGEST_TEXT:
        raise NotUnderstood("it is longer than 1 MiB")
    if install_link.is_install_link(text):
        return _named(_of_document(install_link.document_of(text)))
    if text.startswith(("{", "//", "/*")) or re.match(r'"[^"]*"\s*:', text):
        return _named(_from_json(text))
    if _URL.match(text):
        if len(text.split()) > 1:
            raise NotUnderstood("a URL has no spaces")
        return [checked(Candidate(_name_of_host(text), {"url": text}))]
    if re.match(r"\[[\w.\"'-]+\]\s*$|(?:extensions|mcpServers)\s*:\s*$", text, re.MULTILINE):
        return _named(_candidates(groups_of(text)))
    return _from_command(text)


def parse_own(text: str) -> list[Candidate]:
    """The same for an entry of Deskhand's own file, which may be shown as JSON to be corrected: its values mean what they mean
    there."""
    text = text.strip()
    return [Candidate("", document(text))] if text.startswith("{") else parse(text)


def command_line(entry: Entry) -> str:
    """The command of an entry as one would type it."""
    words = [str(entry.get("command", "")), *map(str, entry.get("args", ()))]
    # A word with a % as it is would look like a variable of Windows.
    return " ".join(f"'{word}'" if "%" in word and shlex.quote(word) == word else shlex.quote(word) for word in words)


def _candidates(groups: Sequence[Group]) -> list[Candidate]:
    return [each for group in groups for each in group.candidates]


def _from_json(text: str) -> list[Candidate]:
    text = text.rstrip().rstrip(",")
    return _of_document(document("{" + text + "}" if text.startswith('"') else text))


def _of_document(content: dict[str, Any]) -> list[Candidate]:
    """Of a whole file, of one entry, or of entries by name."""
    if _is_entry(content):
        name = content.get("name")
        return [candidate(name if isinstance(name, str) else "", content)]
    if content and all(isinstance(entry, dict) and _is_entry(entry) for entry in content.values()):
        return _named([candidate(name, entry) for name, entry in content.items()])
    try:
        return _candidates(groups_in(content))
    except NotUnderstood:
        if any(key in content for key in ("mcpServers", "servers", "mcp", "context_servers", "extensions")):
            raise
        raise NotUnderstood("there is no server in it: it needs a “command” or a “url”") from None


def _is_entry(content: Any) -> bool:
    command = content.get("command")
    return (
        isinstance(command, str | list)
        or (isinstance(command, dict) and "path" in command)
        or any(isinstance(content.get(key), str) for key in ("url", "httpUrl", "serverUrl"))
    )


def _from_command(text: str) -> list[Candidate]:
    read = command_text.read(text)
    words = read.words
    program = os.path.basename(words[0]).removesuffix(".exe").removesuffix(".cmd")
    if program in _ADD_COMMANDS and words[1:2] == ["mcp"] and words[2:3] in (["add"], ["add-json"]):
        return _named(_from_add_command(words[2], words[3:]))
    if program in _EDITORS and "--add-mcp" in words:
        following = words[words.index("--add-mcp") + 1 :]
        if not following:
            raise NotUnderstood("the JSON behind --add-mcp is missing")
        return _named(_from_json(following[0]))
    return _named([_of_words(words, read.variables)])


def _of_words(words: Sequence[str], variables: dict[str, str], name: str = "") -> Candidate:
    entry: Entry = {"command": words[0]}
    if words[1:]:
        entry["args"] = list(words[1:])
    if variables:
        entry["env"] = variables
    return checked(Candidate(name, entry))


def _from_add_command(kind: str, words: Sequence[str]) -> list[Candidate]:
    """``claude mcp add …`` and its like: options, a name, and a command or an address."""
    rest = list(words)
    names: list[str] = []
    options: dict[str, list[str]] = {}
    while rest:
        word = rest.pop(0)
        if word == "--":
            names += rest
            break
        is_address = len(names) > 1 and bool(_URL.match(names[1]))
        if not word.startswith("-") or (len(names) > 1 and not is_address):
            names.append(word)
            continue
        option, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        key = _ADD_OPTIONS.get(option)
        if key is None:
            raise NotUnderstood(
                f"Deskhand does not know the option {option[:40]}" if option.isascii() else "an option is not known"
            )
        if key in _FLAGS:
            continue
        if not equals and not rest:
            raise NotUnderstood(f"the value of the option {option} is missing")
        options.setdefault(key, []).append(value if equals else rest.pop(0))
        while key == "env" and rest and re.fullmatch(r"[A-Za-z_]\w*=.*", rest[0], re.DOTALL):  # takes several
            options[key].append(rest.pop(0))
    if kind == "add-json":
        if len(names) != 2:
            raise NotUnderstood("it needs a name and the server's JSON")
        return [candidate(names[0], document(names[1]))]
    if not names or (len(names) < 2 and "url" not in options):
        raise NotUnderstood("it needs a name, and a command or an address")
    name, *command = names
    url = options["url"][0] if "url" in options else command[0]
    transport = options.get("type", [""])[0]
    if "url" in options or transport in ("http", "sse") or _URL.match(url):
        if command[1:]:
            raise NotUnderstood("a URL has no spaces")
        entry: Entry = {"type": transport} if transport else {}
        entry["url"] = url
        headers = dict(_pair(each, ":") for each in options.get("header", []))
        if "bearer" in options:
            headers["Authorization"] = f"Bearer ${{{options['bearer'][0]}}}"
        if headers:
            entry["headers"] = headers
        if "client_id" in options:
            entry["oauth"] = {"clientId": options["client_id"][0]}
        found = Candidate(name, entry)
    else:
        found = _of_words(command, dict(_pair(each, "=") for each in options.get("env", [])), name)
    if description := options.get("description"):
        found.entry["description"] = description[0]
    return [checked(found)]


_ADD_OPTIONS = {
    "-t": "type",
    "--transport": "type",
    "-e": "env",
    "--env": "env",
    "-H": "header",
    "--header": "header",
    "-s": "scope",
    "--scope": "scope",
    "--url": "url",
    "--bearer-token-env-var": "bearer",
    "--client-id": "client_id",
    "--description": "description",
    "--trust": "trust",
}
#: Options without a value.
_FLAGS = frozenset({"trust"})


def _pair(text: str, mark: str) -> tuple[str, str]:
    """A name and its value, which stands for itself but for ``${NAME}``."""
    name, found, value = text.partition(mark)
    if not found:
        raise NotUnderstood(f"there is no `{mark}` between a name and its value")
    parts = re.split(r"(\$\{[A-Za-z_]\w*\})", value.strip() if mark == ":" else value)
    return name.strip(), "".join(part if number % 2 else literal(part) for number, part in enumerate(parts))


def _named(found: Sequence[Candidate]) -> list[Candidate]:
    """With a guess where there is no name."""
    return [each if each.name else replace(each, name=_guess(each.entry)) for each in found]


def _guess(entry: Entry) -> str:
    for key in ("url", "httpUrl", "serverUrl"):
        if key in entry:
            return _name_of_host(str(entry[key]))
    arguments: Any = entry.get("args")  # which may not be valid
    given = cast("list[Any]", arguments) if isinstance(arguments, list) else []
    words = [str(entry.get("command", "")), *map(str, given)]
    position = 0
    while position < len(words):
        word = words[position]
        position += 2 if word in _WITH_VALUE and position else 1
        name = re.split(r"[/\\]", word)[-1]
        name = re.sub(r"(?<=.)@.*$|\.(?:exe|cmd|js|mjs|py|git)$|[=<>~:].*$", "", name)
        if name and name.lower() not in _RUNNERS and not name.startswith("-"):
            return _clean(name)
    return ""


def _name_of_host(url: str) -> str:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    parts = [part for part in host.split(".") if part not in ("www", "mcp", "api")]
    return _clean(parts[-2] if len(parts) > 1 and not parts[-1].isdigit() else host)


def _clean(name: str) -> str:
    bare = _DECORATION.sub("", name)
    return re.sub(r"[^A-Za-z0-9_-]+", "-", bare or name).strip("-_")[:80]
