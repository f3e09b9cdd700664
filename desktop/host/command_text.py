"""Reads a command line as a person copied it from a page, for a shell of POSIX or of Windows, without a shell. Used by
``pasted_text``.

What a shell would have put in stands as Deskhand writes it: ``$NAME`` and ``%NAME%`` become ``${NAME}``, a leading ``~/`` the
home folder. What needs a shell to run is refused.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field

from desktop.host.foreign_document import NotUnderstood

#: A path or a variable as Windows has it, outside of single quotes, or its command interpreter.
_OF_WINDOWS = re.compile(r"(?:^|[\s\"=])(?:[A-Za-z]:\\|\\\\\w)|%[A-Za-z_]\w*%|^\s*cmd(?:\.exe)?\s+/c\s", re.IGNORECASE)
_QUOTED_FOR_POSIX = re.compile(r"""'[^']*'|"'\"""")
_GOES_ON = re.compile(r"[\\^`]\r?\n")
_PROMPT = re.compile(r"\s*(?:\$|>|PS [^>\n]*>|[A-Z]:\\[^>\n]*>)\s+")
_OPERATORS = re.compile(r"&&?|\|\|?|;|\d?>>?(?:&\d|.*)?|<(?!.*>$).*")
_ASSIGNMENT = re.compile(r"(?:\$env:)?([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: Stands for a ``$`` that was quoted, so that it names no variable; no text to run holds NUL.
_LITERAL = "\0"


@dataclass
class CommandText:
    """`words` are the command and its arguments; `variables` what was set before them, as ``env`` of an entry has it."""

    words: list[str]
    variables: dict[str, str] = field(default_factory=dict[str, str])


@dataclass
class _Word:
    text: str = ""
    quoted: bool = False
    """Whether any of it was."""


def read(text: str) -> CommandText:
    """Raises NotUnderstood."""
    if _LITERAL in text:
        raise NotUnderstood("it holds a character that no process takes")
    if prompt := _PROMPT.match(text):
        text = text[prompt.end() :]
    text = _GOES_ON.sub(" ", text)
    windows = _OF_WINDOWS.search(_QUOTED_FOR_POSIX.sub("", text)) is not None
    words = _windows_words(text) if windows else _posix_words(text)
    words, variables = _without_assignments(words)
    if any(not word.quoted and _OPERATORS.fullmatch(word.text) for word in words):
        raise NotUnderstood("it needs a shell: a pipe, a redirection or a second command can't be part of it")
    plain = [word.text.replace(_LITERAL, "$") for word in words]
    if not plain or not plain[0].strip():
        raise NotUnderstood("there is no command in it")
    if (
        windows
        and re.fullmatch(r"cmd(?:\.exe)?", plain[0], re.IGNORECASE)
        and len(plain) > 3
        and plain[1].lower() == "/c"
    ):
        plain = plain[2:]  # programs are found without the interpreter
    return CommandText(plain, variables)


def _without_assignments(words: list[_Word]) -> tuple[list[_Word], dict[str, str]]:
    """The words behind what sets variables for them, and the variables."""
    variables: dict[str, str] = {}
    start = 0
    for position, word in enumerate(words):
        match = _ASSIGNMENT.fullmatch(word.text)
        if match:
            value = match[2]
            if value.startswith("!"):
                value = f"${value}"
            variables[match[1]] = value.replace(_LITERAL, "$$")
            start = position + 1
        elif variables and not word.quoted and word.text in ("&&", ";"):
            start = position + 1
        elif word.quoted or word.text.lower() not in ("env", "export", "set"):
            break
    return (words[start:], variables) if variables else (words, {})


def _posix_words(text: str) -> list[_Word]:
    words: list[_Word] = []
    word: _Word | None = None
    position = 0
    while position < len(text):
        character = text[position]
        if character.isspace():
            word = None
            position += 1
            continue
        if character == ";" and not text[position + 1 : position + 2].strip():
            words.append(_Word(";"))
            word = None
            position += 1
            continue
        if word is None:
            word = _Word()
            words.append(word)
            if text.startswith("~/", position):
                word.text = os.path.expanduser("~")
                position += 1
                continue
        if character == "'":
            end = text.find("'", position + 1)
            if end < 0:
                raise NotUnderstood("a quotation mark is missing")
            word.text += text[position + 1 : end].replace("$", _LITERAL)
            word.quoted = True
            position = end + 1
        elif character == '"':
            position = _double_quoted(text, position + 1, word)
        elif character == "\\" and position + 1 < len(text):
            word.text += text[position + 1].replace("$", _LITERAL)
            word.quoted = True
            position += 2
        else:
            position = _plain(text, position, word)
    return words


def _double_quoted(text: str, position: int, word: _Word) -> int:
    """Adds what stands up to the closing mark, and returns the position behind it."""
    word.quoted = True
    while position < len(text):
        if text[position] == '"':
            return position + 1
        if text[position] == "\\" and text[position + 1 : position + 2] in ("$", "`", '"', "\\"):
            word.text += text[position + 1].replace("$", _LITERAL)
            position += 2
        else:
            position = _plain(text, position, word)
    raise NotUnderstood("a quotation mark is missing")


def _plain(text: str, position: int, word: _Word) -> int:
    """Adds a character or a variable, and returns the position behind it."""
    if text[position] == "`" or text.startswith("$(", position):
        raise NotUnderstood("it needs a shell: a part of it is a command of its own")
    variable = _VARIABLE.match(text, position + 1)
    if text[position] == "$" and variable and not text.startswith("$env:", position):
        word.text += f"${{{variable[0]}}}"
        return variable.end()
    word.text += text[position]
    return position + 1


def _windows_words(text: str) -> list[_Word]:
    """As Windows' own rules have it: only ``"`` quotes, and a backslash is one unless a quotation mark follows."""
    words: list[_Word] = []
    word: _Word | None = None
    quoting = False
    for match in re.finditer(r'(\\*)(")|(\s)|(\\+|[^\s"\\]+)', text):
        backslashes, mark, space, plain = match.groups()
        if space and not quoting:
            word = None
            continue
        if word is None:
            word = _Word()
            words.append(word)
        if mark:
            word.text += "\\" * (len(backslashes) // 2)
            if len(backslashes) % 2:
                word.text += mark
            else:
                quoting = not quoting
                word.quoted = True
        else:
            word.text += space or plain
    if quoting:
        raise NotUnderstood("a quotation mark is missing")
    for word in words:
        word.text = re.sub(r"%([A-Za-z_]\w*)%", r"${\1}", word.text)
    return words
