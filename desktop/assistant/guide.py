"""Guide, the embedded default: finds and runs tools without a language model, and says so.

It runs the very turn that language models run, deterministically: search with the person's words, activate the tool, fill its
arguments from the text, ask for the rest, call it, show the result. Where the search leaves a doubt it asks which tool is meant;
a weak match is never called. Used by ``core.py`` where no model is chosen, and by the command line.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from desktop.assistant import guide_answers as answers
from desktop.assistant.asking import Asker
from desktop.assistant.conversation import Choice, ChoiceOption, Form, Message, Part, Prompt, ToolCall, new_id
from desktop.assistant.events import PartAdded, PartChanged, TextDelta
from desktop.assistant.guide_arguments import find_arguments
from desktop.assistant.guide_candidates import Candidate, is_clear, is_worth_offering, ranked
from desktop.assistant.guide_parameters import parameters
from desktop.assistant.guide_wish import is_english, query_for, talk, wish_in, words_by_values
from desktop.assistant.language_model import AnswerFinished, ModelEvent, ModelRequest, ToolCallRequested, ToolSpec
from desktop.assistant.text_values import values_in
from desktop.assistant.toolbox import MCP_TOOLS
from desktop.visible_text import one_line

#: Characters of a wish, and values in it. More is refused, so that nothing is cut on its way into an argument.
_LONGEST_WISH, _MOST_VALUES = 10_000, 200
_LONGEST_QUERY = 500
_CANDIDATES = 8
_OPTIONS = 5
#: A candidate whose score is less than this part of the best one's is no option.
_WORTH_SHOWING = 0.3
_IDENTIFIER = re.compile(r"(?<![\w.])(?:mcp__[\w-]+|[\w-]+\.[\w./-]*\w)")
_COMMON_SCHEMES = ("http", "https", "ftp", "file", "mailto", "data")


@dataclass(frozen=True, slots=True)
class _Question:
    """Something to ask the person, and what follows once it is answered."""

    part: Choice | Form
    then: Callable[[], _Next]


#: What Guide does next: say something and end the turn, call a tool, or ask.
_Next = TextDelta | ToolCallRequested | _Question


class Guide:
    """A `LanguageModel` that is none. It keeps nothing: where a turn stands, the conversation tells."""

    title = "Guide"
    context_window = None

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The turn's next step: questions to the person, then a call or the text that ends the turn."""
        following = _Step(request).next()
        while isinstance(following, _Question):
            yield PartAdded(following.part)
            await self._ask(following.part)
            yield PartChanged(following.part)
            following = following.then()
        yield following
        yield AnswerFinished()

    async def _ask(self, part: Choice | Form) -> None:
        if isinstance(part, Form):
            part.answer = await self._asker.fill(part)
        else:
            answer = await self._asker.choose(part)
            part.answer = answer if answer is not None and 0 <= answer < len(part.options) else None


class _Step:
    """Where the turn stands, read from the conversation, and what comes next."""

    def __init__(self, request: ModelRequest) -> None:
        messages = request.messages
        at = max((index for index, message in enumerate(messages) if message.role == "user"), default=-1)
        self._tools = request.tools
        self._servers = _servers(request.tools)
        self._text = messages[at].text if at >= 0 else ""
        self._has_prompt = at >= 0 and any(isinstance(part, Prompt) for part in messages[at].parts)
        self._wish = wish_in(self._text[:_LONGEST_WISH])
        self._values = values_in(self._wish)
        self._parts = _parts(messages[at + 1 :])

    def next(self) -> _Next:
        call = next((part for part in reversed(self._parts) if isinstance(part, ToolCall)), None)
        if len(self._text) > _LONGEST_WISH or len(self._values) > _MOST_VALUES:
            return TextDelta(answers.too_long())
        if self._has_prompt and not self._text.strip():
            return TextDelta(answers.prompt_used())
        if call is None:
            kind = talk(self._text)
            return self._search() if kind is None else TextDelta(answers.talk(kind, self._servers))
        match call.details.get("operation") if call.name == MCP_TOOLS else None:
            case "query":
                return self._choose(call)
            case "activate":
                tool = self._tool(call.details["rows"][0]["identifier"])
                return TextDelta(answers.failed(call)) if tool is None else self._fill(tool)
            case _:
                return self._show(call)

    def _search(self, *searched: str) -> _Next:
        """Searches for what the wish names exactly, else for its words, then for all of it, at last for what its values tell."""
        for query in (
            self._named(),
            query_for(self._wish, self._values),
            one_line(self._wish, _LONGEST_QUERY),
            self._told(),
        ):
            if query and query not in searched:
                return _call(MCP_TOOLS, {"query": query, "limit": _CANDIDATES})
        return TextDelta(answers.nothing_found(self._servers))

    def _told(self) -> str:
        """What the values of a wish in another language than English tell of it."""
        return "" if is_english(self._wish) else words_by_values(self._values)

    def _named(self) -> str:
        """A tool's identifier or a resource's URI that stands in the wish, or ""."""
        for match in _IDENTIFIER.finditer(self._wish):
            if match[0].startswith("mcp__") or match[0].partition(".")[0] in self._servers:
                return match[0]
        for value in self._values:
            if value.kind == "url" and str(value.value).partition(":")[0].lower() not in _COMMON_SCHEMES:
                return str(value.value)
        return ""

    def _choose(self, call: ToolCall) -> _Next:
        """Goes on with what is clearly meant, or asks."""
        query = str(json.loads(call.arguments)["query"])
        candidates = [
            each
            for each in ranked(call.details["candidates"], self._wish, self._values)
            if is_worth_offering(each, self._wish, query, self._values)
        ]
        if not candidates:
            searches = [part for part in self._parts if isinstance(part, ToolCall)]
            if call.output is not None and call.output.diagnostic is not None:
                return TextDelta(answers.failed(call))
            return self._search(*(json.loads(each.arguments)["query"] for each in searches))
        if query != self._told() and is_clear(candidates, self._wish, query, self._values):
            return self._use(candidates[0])
        worth = _WORTH_SHOWING * candidates[0]["score"]
        options = [each for each in candidates[:_OPTIONS] if each["score"] >= worth]
        question = "Which of these do you mean?" if len(options) > 1 else "Do you mean this?"
        choice = Choice(question, [_option(each) for each in options])

        def then() -> _Next:
            return (
                TextDelta(answers.none_chosen(options)) if choice.answer is None else self._use(options[choice.answer])
            )

        return _Question(choice, then)

    def _use(self, chosen: Candidate) -> _Next:
        match chosen["kind"]:
            case "tool":
                tool = self._tool(chosen["identifier"])
                return _call(MCP_TOOLS, {"activate": [chosen["identifier"]]}) if tool is None else self._fill(tool)
            case "resource":
                return _call(MCP_TOOLS, {"read": {"server": chosen["server"], "uri": chosen["uri"]}})
            case "template":
                return self._expand(chosen)
            case _:
                return TextDelta(answers.prompt(chosen))

    def _expand(self, template: Candidate) -> _Next:
        names: list[str] = template["variables"]
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {name: {"type": "string"} for name in names},
            "required": names,
        }
        found = find_arguments(self._wish, schema, label=f"read {template['name']} {template['title']}", description="")

        missing = [name for name in names if name not in found.values]

        def read(arguments: dict[str, Any]) -> _Next:
            target = {"server": template["server"], "template": template["template"], "arguments": arguments}
            return _call(MCP_TOOLS, {"read": target})

        if not missing:
            return read(found.values)
        return _question(
            Form(template["server"], template["name"], schema, found.guesses | found.values), missing, read
        )

    def _fill(self, tool: ToolSpec) -> _Next:
        """Calls the tool with what the wish gives, or asks for what is missing, or what was said and not understood."""
        assert tool.definition is not None
        definition = tool.definition
        label = f"{definition.server} {definition.name} {definition.title}"
        found = find_arguments(self._wish, tool.schema, label=label, description=definition.description)
        unfilled = [each for each in parameters(tool.schema) if each.name not in found.values]
        missing = [each.name for each in unfilled if each.required]
        if not missing and not (found.more_said and unfilled):
            return _call(tool.name, found.values)
        return self._ask_for(tool, found.guesses | found.values, missing)

    def _ask_for(self, tool: ToolSpec, values: dict[str, Any], missing: Sequence[str]) -> _Next:
        assert tool.definition is not None
        form = Form(tool.definition.server, tool.definition.name, tool.definition.input_schema, values)
        return _question(form, missing, lambda arguments: _call(tool.name, arguments))

    def _show(self, call: ToolCall) -> _Next:
        """The result; where the arguments were refused, first a question for better ones, unless they came from one."""
        diagnostic = call.output.diagnostic if call.output is not None else None
        tool = self._tool(call.name)
        asked = any(isinstance(part, Form) for part in self._parts)
        if tool is not None and diagnostic is not None and diagnostic.code == "arguments_invalid" and not asked:
            return self._ask_for(tool, json.loads(call.arguments), ())
        return TextDelta(answers.result(call))

    def _tool(self, name: str) -> ToolSpec | None:
        """An active tool, by its identifier or its native name."""
        active = (tool for tool in self._tools if tool.definition is not None)
        return next(
            (tool for tool in active if name in (tool.name, tool.definition and tool.definition.identifier)), None
        )


def _question(form: Form, missing: Sequence[str], use: Callable[[dict[str, Any]], _Next]) -> _Question:
    def then() -> _Next:
        return TextDelta(answers.unanswered(form, missing)) if form.answer is None else use(form.answer)

    return _Question(form, then)


def _servers(tools: Sequence[ToolSpec]) -> dict[str, str]:
    """Names and descriptions of the servers, from the directory in the description of ``mcp_tools``."""
    listed = tools[0].description.partition("\nServers:\n")[2] if tools else ""
    lines = (line.partition(": ") for line in listed.splitlines())
    return {name: about for name, _, about in lines if name}


def _parts(messages: Sequence[Message]) -> list[Part]:
    return [part for message in messages for part in message.parts]


def _option(candidate: Candidate) -> ChoiceOption:
    kind = "" if candidate["kind"] == "tool" else f" ({candidate['kind']})"
    label = one_line(candidate["title"] or candidate["name"], 100)
    return ChoiceOption(f"{label} · {candidate['server']}{kind}", one_line(candidate["description"]))


def _call(name: str, arguments: dict[str, Any]) -> ToolCallRequested:
    return ToolCallRequested(new_id(), name, json.dumps(arguments, ensure_ascii=False))
