"""A conversation as providers take it: OpenAI's chat messages, which litellm turns into every other provider's form.

Used by ``litellm_model.py`` alone. The same conversation gives the same bytes each time, so that providers' prompt caches keep
working. Not sent: reasoning, notices, and the questions Guide asked (their answers are in the calls that followed).

Nor are the person's secrets that Deskhand knows: keys of models, what is in the keyring, what servers were given in variables and
headers. A tool that prints its environment, or an error that quotes a header, would hand them to the provider, into whatever the
model writes next, and to any server whose text talks the model into passing them on. The model needs none of them: servers get
theirs from Deskhand. So they are masked here, in the one place that everything for a model passes; the person, whose they are,
still sees results as they came.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Sequence
from typing import Any, cast

from desktop.assistant import attachments, prompts
from desktop.assistant.conversation import Attachment, Image, Message, Prompt, Text, ToolCall
from desktop.assistant.language_model import ModelRequest, ToolSpec
from desktop.assistant.schema_projection import Dialect, projected
from desktop.log import without_secrets

_LEGAL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LEGAL_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_MISTRAL_ID = re.compile(r"[A-Za-z0-9]{9}")
#: By a model's name: the first that fits.
_DIALECTS: tuple[tuple[re.Pattern[str], Dialect], ...] = (
    (re.compile(r"(anthropic/|claude-)|(openrouter|vertex_ai|bedrock)/.*claude"), "anthropic"),
    (re.compile(r"(gemini|vertex_ai|openrouter/google)/"), "google"),
    (re.compile(r"(ollama|ollama_chat|lm_studio|hosted_vllm|vllm|llamafile|xinference)/"), "local"),
)
_NO_IMAGES = "[Left out: an image. This model takes none.]"


def to_messages(
    request: ModelRequest, *, provider: str, images: bool, deferred: Collection[str] = ()
) -> list[dict[str, Any]]:
    """The request's messages. `images` False leaves a remark in the place of each image; `deferred` see `deferrable`."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": request.system}] if request.system else []
    ids: set[str] = set()
    for message in request.messages:
        messages += (
            _of_user(message, images)
            if message.role == "user"
            else _of_assistant(message, provider, images, ids, deferred)
        )
    return [_sendable(message) for message in messages]


def to_tools(
    tools: Sequence[ToolSpec], *, dialect: Dialect = "openai", deferred: Collection[str] = ()
) -> list[dict[str, Any]]:
    """The tools, with their schemas as the model takes them; those that are `deferred` are marked so (see `deferrable`)."""
    return [
        {
            "type": "function",
            "function": {
                "name": each.name,
                "description": without_secrets(each.description),
                "parameters": _sendable(_schema(each, dialect)),
            },
        }
        | ({"defer_loading": True} if each.name in deferred else {})
        for each in tools
    ]


def dialect_of(model: str, api_base: str) -> Dialect:
    """What a model takes of a schema, by its name, such as ``openrouter/google/gemini-2.5-pro``.

    At an address of the person's own (`api_base`) is whatever server: that gets the least, unless the name tells.
    """
    for pattern, dialect in _DIALECTS:
        if pattern.match(model.lower()):
            return dialect
    return "local" if api_base else "openai"


def deferrable(request: ModelRequest, tools: Sequence[ToolSpec]) -> frozenset[str]:
    """Names of the tools that Anthropic can put in where their activation's result refers to them.

    A tool marked ``defer_loading`` is no part of the cached beginning of a request, so that an activation leaves all of it good;
    ``tool_reference`` blocks in a result stand for the definitions. A reference to a tool that is not sent is refused.
    """
    offered = {each.name for each in tools}
    calls = [call for message in request.messages for call in message.tool_calls]
    return frozenset(name for call in calls for name in _references(call, offered))


def _schema(tool: ToolSpec, dialect: Dialect) -> dict[str, Any]:
    """`ToolSpec.schema` is OpenAI's; another dialect's comes from the server's own, which says more."""
    if dialect == "openai" or tool.definition is None:
        return tool.schema
    return projected(tool.definition.input_schema, dialect)


def _sendable(value: Any) -> Any:
    """The value without secrets and with whole characters: halves that came in two deltas are joined, a lone one becomes U+FFFD.

    Models send such as escapes of JSON; no request can hold one, so a single one would end the conversation for good.
    """
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            value = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return without_secrets(value)
    if isinstance(value, dict):
        return {key: _sendable(each) for key, each in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_sendable(each) for each in cast("list[Any]", value)]
    return value


def _of_user(message: Message, images: bool) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    for part in message.parts:
        match part:
            case Prompt():
                content += [_text(prompts.for_model(part)), *_images(prompts.images(part), images)]
            case Attachment():
                content += [_text(attachments.for_model(part)), *_images(part.output.images, images)]
            case Text():
                content.append(_text(part.text))
            case Image():
                content += _images([part], images)
            case _:
                pass
    return _user(content)


def _of_assistant(
    message: Message, provider: str, images: bool, ids: set[str], deferred: Collection[str]
) -> list[dict[str, Any]]:
    calls = [(_id(call, message, provider, ids), call) for call in message.tool_calls]
    if not calls and not message.text:
        return []  # an answer that failed before its first word; providers refuse an empty one
    answer: dict[str, Any] = {"role": "assistant"}
    if message.text:
        answer["content"] = message.text
    if calls:
        answer["tool_calls"] = [
            {"id": id_, "type": "function", "function": {"name": _name(call), "arguments": _arguments(call)}}
            for id_, call in calls
        ]
    results = [{"role": "tool", "tool_call_id": id_, "content": _result(call, deferred)} for id_, call in calls]
    # Only some providers take images in a tool's result, all that take images do in a message of the person's.
    shown: list[dict[str, Any]] = []
    for _, call in calls:
        if call.output is not None and call.output.images:
            shown += [_text(f"Images in the result of {_name(call)}:"), *_images(call.output.images, images)]
    return [answer, *results, *_user(shown)]


def _user(content: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if not content:
        return []
    if all(each["type"] == "text" for each in content):
        return [{"role": "user", "content": "\n\n".join(each["text"] for each in content)}]
    return [{"role": "user", "content": content}]


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _images(images: list[Image], taken: bool) -> list[dict[str, Any]]:
    return [
        {"type": "image_url", "image_url": {"url": f"data:{each.mime_type};base64,{each.data}"}}
        if taken
        else _text(_NO_IMAGES)
        for each in images
    ]


def _id(call: ToolCall, message: Message, provider: str, ids: set[str]) -> str:
    """The call's id as the provider takes it, once in a conversation: it may come from another provider, and some local
    servers count from 0 in every answer. Gemini's own are longer, since they carry its signature."""
    legal = _MISTRAL_ID if provider == "mistral" else _LEGAL_ID
    id_ = call.id
    if id_ in ids or (provider not in ("gemini", "vertex_ai") and not legal.fullmatch(id_)):
        id_ = hashlib.sha256(f"{message.id} {call.id}".encode()).hexdigest()[:9]
    ids.add(id_)
    return id_


def _name(call: ToolCall) -> str:
    """Models make up names; providers refuse illegal ones also in what was said before."""
    if _LEGAL_NAME.fullmatch(call.name):
        return call.name
    return re.sub(r"[^A-Za-z0-9_-]", "_", call.name)[:64] or "_"


def _arguments(call: ToolCall) -> str:
    """Arguments that are no JSON object were answered with an error; some providers refuse to see them again."""
    try:
        return call.arguments if isinstance(json.loads(call.arguments), dict) else "{}"
    except (ValueError, RecursionError):
        return "{}"


def _result(call: ToolCall, deferred: Collection[str]) -> str | list[dict[str, Any]]:
    if references := _references(call, deferred):
        return [{"type": "tool_reference", "tool_name": each} for each in references]
    text = call.output.text if call.output is not None else ""
    return text if text.strip() else "(The result is empty.)"


def _references(call: ToolCall, offered: Collection[str]) -> list[str]:
    """The tools that a call activated, where its result says nothing else and all of them are offered; else none."""
    rows: Any = call.details.get("rows")
    if call.state != "done" or not isinstance(rows, list) or "displaced" in call.details:
        return []
    only_loaded = all(
        isinstance(row, dict) and cast("dict[str, Any]", row).get("state") == "loaded"
        for row in cast("list[Any]", rows)
    )
    return list(call.activated) if only_loaded and all(name in offered for name in call.activated) else []
