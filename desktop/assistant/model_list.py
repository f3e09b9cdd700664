"""Which language models there are to choose from: providers with their keys, and models that run on this computer.

Used by the model picker, the settings, ``core.py`` and ``litellm_model.py``. Names are litellm's: ``provider/model``.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

from desktop.visible_text import one_line

_PROBE_LIMIT = 0.5
"""Seconds for one local server."""
_LARGEST_LIST = 2**20
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class Provider:
    prefix: str
    """What names of its models begin with, before the slash."""
    title: str
    key_variable: str
    """The environment variable whose key is used where none is in the keyring."""
    address: str
    """Where requests go, whatever the environment says; empty: the person enters it."""
    suggestions: tuple[str, ...] = ()
    """A few of its models, to begin with; every name can be entered."""

    @property
    def credential(self) -> str:
        """The name of its key in the keyring."""
        return f"model:{self.prefix}"


ANTHROPIC = Provider(
    "anthropic",
    "Anthropic",
    "ANTHROPIC_API_KEY",
    "https://api.anthropic.com",
    ("anthropic/claude-sonnet-5-5", "anthropic/claude-opus-5-5", "anthropic/claude-haiku-5-5"),
)
OPENAI = Provider(
    "openai",
    "OpenAI",
    "OPENAI_API_KEY",
    "https://api.openai.com/v1",
    ("openai/gpt-5.4", "openai/gpt-5.5", "openai/gpt-5.4-mini"),
)
#: An address that speaks OpenAI's protocol: a server of the person's own, or of their company. The key belongs to the address.
OPENAI_COMPATIBLE = Provider("openai", "OpenAI-compatible address", "", "")
PROVIDERS = (
    ANTHROPIC,
    OPENAI,
    Provider(
        "gemini",
        "Google",
        "GEMINI_API_KEY",
        "https://generativelanguage.googleapis.com/v1beta",
        ("gemini/gemini-pro-latest", "gemini/gemini-flash-latest", "gemini/gemini-flash-lite-latest"),
    ),
    Provider(
        "mistral",
        "Mistral",
        "MISTRAL_API_KEY",
        "https://api.mistral.ai/v1",
        ("mistral/mistral-large-latest", "mistral/mistral-medium-latest", "mistral/mistral-small-latest"),
    ),
    Provider(
        "openrouter",
        "OpenRouter",
        "OPENROUTER_API_KEY",
        "https://openrouter.ai/api/v1",
        ("openrouter/anthropic/claude-sonnet-4.5", "openrouter/openai/gpt-5", "openrouter/openrouter/auto"),
    ),
    OPENAI_COMPATIBLE,
)


def provider_of(name: str) -> Provider | None:
    """The provider that a model's name belongs to: by its prefix, or by what its bare name begins with."""
    prefix, slash, _ = name.partition("/")
    if slash:
        return next((each for each in PROVIDERS if each.prefix == prefix and each.address), None)
    if name.startswith("claude-"):
        return ANTHROPIC
    return OPENAI if name.startswith(("gpt-", "o1", "o3", "o4", "chatgpt-")) else None


def needs_key(name: str, api_base: str) -> bool:
    """Whether a model can't be asked without a key. An address of the person's own may do without."""
    return not api_base and provider_of(name) is not None


def credential_name(name: str, api_base: str) -> str:
    """The name in the keyring of the key for a model: bound to its provider or to the very host (scheme, name, port) of
    `api_base`, so that a key is never sent to another."""
    if api_base:
        parts = urlsplit(api_base)
        return f"model:{parts.scheme}://{parts.netloc.rpartition('@')[2].lower()}"
    provider = provider_of(name)
    return provider.credential if provider else f"model:{name.partition('/')[0]}"


def is_loopback(api_base: str) -> bool:
    """Whether an address is on this computer."""
    return urlsplit(api_base).hostname in _LOOPBACK


@dataclass(frozen=True, slots=True)
class LocalModel:
    name: str
    api_base: str
    title: str


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A program that serves models on this computer, and where it lists them."""

    title: str
    port: int
    list_path: str = "/v1/models"


LOCAL_SERVERS = (
    LocalServer("Ollama", 11434, "/api/tags"),
    LocalServer("LM Studio", 1234),
    LocalServer("llama.cpp", 8080),
)


async def find_local_models(servers: Sequence[LocalServer] = LOCAL_SERVERS) -> list[LocalModel]:
    """The models that local servers offer, in the servers' order. Takes at most half a second; asks 127.0.0.1 alone."""
    found = await asyncio.gather(*(_models_of(server) for server in servers))
    return [model for models in found for model in models]


async def _models_of(server: LocalServer) -> list[LocalModel]:
    try:
        async with asyncio.timeout(_PROBE_LIMIT):
            content = json.loads(await _fetch(server.port, server.list_path))
    except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, RecursionError):
        return []  # nothing there, or something else than a server of models
    return [
        LocalModel(f"openai/{name}", f"http://127.0.0.1:{server.port}/v1", f"{name} · {server.title}")
        for name in _names(content)
    ]


async def _fetch(port: int, path: str) -> bytes:
    """The body of a page of this computer: no proxy, no redirect, at most 1 MiB. Raises ValueError for any other answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        # HTTP/1.0: the body ends with the connection, never in chunks.
        writer.write(f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nAccept: application/json\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if not re.match(rb"HTTP/1\.[01] 200 ", head):
            raise ValueError("not a list of models")
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)\r\n", head)
        if length and int(length[1]) <= _LARGEST_LIST:  # the server may keep the connection all the same
            return await reader.readexactly(int(length[1]))
        body = b""
        while len(body) <= _LARGEST_LIST and (chunk := await reader.read(2**16)):
            body += chunk
        if len(body) > _LARGEST_LIST:
            raise ValueError("too long")
        return body
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def _names(content: Any) -> list[str]:
    """Names in Ollama's or OpenAI's form of a list. One with hidden characters could not be told from another: left out."""
    if not isinstance(content, dict):
        return []
    lists = cast("dict[str, Any]", content)
    listed: Any = lists.get("models") or lists.get("data")
    if not isinstance(listed, list):
        return []
    rows = [cast("dict[str, Any]", each) for each in cast("list[Any]", listed) if isinstance(each, dict)]
    names = [each.get("name") or each.get("id") for each in rows]
    return [name for name in names if isinstance(name, str) and name and name == one_line(name, 200)]
