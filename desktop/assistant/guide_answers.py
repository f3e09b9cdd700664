"""What Guide says, in Markdown. Used by Guide alone.

Text of a server is shown as its own: in a code block, or as a quotation where the server says that it is Markdown.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence

from desktop.assistant.conversation import Form, ToolCall, ToolOutput
from desktop.assistant.guide_candidates import Candidate
from desktop.assistant.guide_parameters import parameters
from desktop.assistant.guide_wish import Talk
from desktop.visible_text import one_line, plain

#: Of a result, characters in the answer; the card of the call holds all of it.
_SHOWN = 4000
_ABOUT_ME = (
    "I'm Guide: I find and run the tools of your servers. I'm no language model, so I don't converse: say what you want done,"
    " in a few words."
)
_EXAMPLES = "For example: “what time is it in Tokyo”, “search my conversations for invoices”."
_MODEL = "To converse, choose a language model at the top of the window."


def talk(kind: Talk, servers: Mapping[str, str]) -> str:
    match kind:
        case "hello":
            return f"Hello! {_ABOUT_ME} {_EXAMPLES}\n\n{_listed(servers)}"
        case "thanks":
            return "You're welcome. Say what you want done next."
        case "help":
            return f"{_ABOUT_ME} {_EXAMPLES}\n\n{_listed(servers)}\n\n{_MODEL}"


def nothing_found(servers: Mapping[str, str]) -> str:
    return "\n\n".join(
        (
            "I found nothing for that. I'm no language model and search for words: an action and an object work best.",
            _listed(servers),
            "A server that can do it is added in the servers panel.",
        )
    )


def prompt_used() -> str:
    return f"A prompt is written for a language model, and I am none; I did nothing. {_MODEL}"


def too_long() -> str:
    return f"That is too long for me; I did nothing. I find and run tools by a few words. {_MODEL}"


def none_chosen(options: Sequence[Candidate]) -> str:
    names = "\n".join(f"- {_name(each)}: {_prose(each['description'])}" for each in options)
    return f"Nothing was run, since I'm not sure which of these you mean:\n\n{names}\n\nSay it in other words, or name the tool."


def prompt(candidate: Candidate) -> str:
    return f"{_name(candidate)} is a prompt. Prompts are yours to use: type `/` in the message field and pick it there."


def unanswered(form: Form, missing: Sequence[str]) -> str:
    """Names what a tool still needs, or else what more it takes than was understood."""
    known = {each.name: str(each.schema.get("description") or "no description") for each in parameters(form.schema)}
    names = missing or [name for name in known if name not in form.values]
    lines = [f"- {_code(name)}: {_prose(known.get(name, 'no description'))}" for name in names]
    what = "It needs:" if missing else "It also takes:"
    text = f"{_code(form.tool)} of server {_code(form.server)} was not run."
    return "\n".join([f"{text} {what}\n", *lines]) if lines else text


def result(call: ToolCall) -> str:
    """What a call brought: the result, what the tool says went wrong, or why it failed."""
    output = call.output or ToolOutput("")
    if output.diagnostic is not None:
        return failed(call)
    who = f"{_code(call.tool or call.details.get('uri', ''))} of server {_code(call.server)}"
    if output.reported_error:
        advice = "Say it again with other words or values, or run the tool by hand in the catalog."
        return f"{who} reports an error:\n\n{_shown(output, blocks_only=False)}\n\n{advice}"
    is_read = not call.tool  # what Deskhand says above a resource is for models
    parts = [f"{who}:" if is_read else f"{who} answered:", _shown(output, blocks_only=is_read)]
    if output.images:
        parts.append("Its images are in the card above.")
    if output.spilled is not None:
        parts.append(f"The complete result is a file of {output.spilled.size:,} bytes; open it from the card above.")
    if output.warning:
        parts.append(_prose(output.warning))
    return "\n\n".join(filter(None, parts))


def failed(call: ToolCall) -> str:
    """Why a call failed, and what to do."""
    diagnostic = call.output.diagnostic if call.output is not None else None
    what = f"{_code(call.tool)} of server {_code(call.server)}" if call.tool else "That"
    if diagnostic is None:
        return f"{what} did not work."
    if diagnostic.code == "denied":
        return f"{what} was not run: you did not allow it."
    where = f" (server {_code(diagnostic.server)})" if diagnostic.server and not call.tool else ""
    return f"{what} did not work{where}: {_prose(diagnostic.message)} {_prose(diagnostic.hint)}".rstrip()


def _listed(servers: Mapping[str, str]) -> str:
    if not servers:
        return "No servers are connected."
    return "Your servers:\n\n" + "\n".join(
        f"- {_code(name)}{': ' + _prose(about) if about else ''}" for name, about in servers.items()
    )


def _shown(output: ToolOutput, *, blocks_only: bool) -> str:
    """The result's text by its parts, at most so much of it as an answer should hold."""
    text = output.text[:_SHOWN]
    # Structured content says again what a text beside it says.
    texts = [block for block in output.blocks if not block.structured] or output.blocks
    kinds = {block.start: block.mime_type for block in texts}
    left_out = {block.start for block in output.blocks} - kinds.keys()
    borders = sorted(
        {0, len(text), *(at for block in output.blocks for at in (block.start, block.end) if at < len(text))}
    )
    pieces = [
        _piece(text[start:end], kinds.get(start, ""))
        for start, end in itertools.pairwise(borders)
        if start in kinds or not (blocks_only or start in left_out)
    ]
    if len(output.text) > _SHOWN:
        pieces.append("The rest is in the card above.")
    return "\n\n".join(filter(None, pieces))


def _piece(text: str, mime_type: str) -> str:
    text = plain(text).strip("\n")
    if not text.strip():
        return ""
    if mime_type.startswith("text/markdown"):
        return "\n".join(f"> {line}" for line in text.splitlines())
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{'json' if _is_json(text) else ''}\n{text}\n{fence}"


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False


def _name(candidate: Candidate) -> str:
    return f"{_code(candidate['name'])} of server {_code(candidate['server'])}"


def _code(name: str) -> str:
    return f"`{one_line(name, 100).replace('`', '´')}`"


def _prose(text: str) -> str:
    """A server's words within a sentence: nothing in them is Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>#|~!])", r"\\\1", one_line(text))
