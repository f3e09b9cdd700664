"""Models to choose from: providers and their keys, and what runs on this computer."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from desktop.assistant.model_list import (
    LOCAL_SERVERS,
    PROVIDERS,
    LocalModel,
    LocalServer,
    credential_name,
    find_local_models,
    is_loopback,
    needs_key,
    provider_of,
)
from tests.fakes.model_server import ModelServer


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("anthropic/claude-sonnet-5-5", "Anthropic"),
        ("claude-sonnet-5-5", "Anthropic"),
        ("openai/gpt-5.4", "OpenAI"),
        ("gpt-5.4", "OpenAI"),
        ("gemini/gemini-pro-latest", "Google"),
        ("mistral/mistral-large-latest", "Mistral"),
        ("openrouter/anthropic/claude-sonnet-4.5", "OpenRouter"),
        ("groq/llama", None),
        ("guide", None),
    ],
)
def test_a_models_name_tells_its_provider(name: str, title: str | None) -> None:
    provider = provider_of(name)
    assert (provider and provider.title) == title


def test_suggested_names_are_models_that_take_tools() -> None:
    names = [name for provider in PROVIDERS for name in provider.suggestions if provider.prefix != "openrouter"]
    package = importlib.util.find_spec("litellm")
    assert package is not None and package.origin is not None
    table = json.loads(Path(package.origin).with_name("model_prices_and_context_window_backup.json").read_text())
    known = [table.get(name) or table[name.partition("/")[2]] for name in names]
    assert len(names) == 12
    assert all(each["supports_function_calling"] for each in known)


def test_a_key_belongs_to_a_provider_or_to_the_very_host_of_an_address() -> None:
    assert credential_name("anthropic/claude-sonnet-5-5", "") == "model:anthropic"
    assert credential_name("gpt-5.4", "") == "model:openai"
    assert credential_name("groq/llama", "") == "model:groq"
    at_home = credential_name("openai/x", "https://models.example.org:8443/v1")
    assert at_home == credential_name("openai/y", "https://Models.example.org:8443/other")
    others = (
        "https://models.example.org/v1",
        "http://models.example.org:8443/v1",
        "https://models.example.com:8443/v1",
    )
    assert at_home not in {credential_name("openai/x", each) for each in (*others, "")}


def test_only_a_providers_own_models_need_a_key() -> None:
    assert needs_key("openai/gpt-5.4", "")
    assert not needs_key("openai/llama", "http://127.0.0.1:8080/v1")
    assert not needs_key("groq/llama", "")


def test_only_addresses_of_this_computer_are_loopback() -> None:
    assert (
        is_loopback("http://127.0.0.1:8080/v1") and is_loopback("http://[::1]:1/") and is_loopback("http://localhost")
    )
    assert (
        not is_loopback("http://127.0.0.1.example.org/v1")
        and not is_loopback("")
        and not is_loopback("http://192.168.0.2")
    )


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@pytest.mark.anyio
async def test_models_of_local_servers_are_found_in_the_servers_order() -> None:
    async with ModelServer(models=["llama3.2:3b", "qwen3"]) as ollama, ModelServer(models=["phi-4"]) as studio:
        found = await find_local_models(
            [
                LocalServer("Ollama", ollama.port, "/api/tags"),
                LocalServer("Nothing there", free_port()),
                LocalServer("LM Studio", studio.port),
            ]
        )
    assert found == [
        LocalModel("openai/llama3.2:3b", ollama.address, "llama3.2:3b · Ollama"),
        LocalModel("openai/qwen3", ollama.address, "qwen3 · Ollama"),
        LocalModel("openai/phi-4", studio.address, "phi-4 · LM Studio"),
    ]


async def found_at(answer: Callable[[asyncio.StreamWriter], None]) -> list[str]:
    """The names found at a server that writes what `answer` writes and then keeps the connection open."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            answer(writer)
            await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        async with asyncio.timeout(5):
            return [model.name for model in await find_local_models([LocalServer("x", port)])]


def page(body: bytes, status: str = "200 OK") -> Callable[[asyncio.StreamWriter], None]:
    return lambda writer: writer.write(
        b"HTTP/1.1 %b\r\ncontent-length: %d\r\n\r\n%b" % (status.encode(), len(body), body)
    )


@pytest.mark.anyio
@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"[1, 2]",
        b'{"data": 3}',
        b'{"data": [3, {"id": 4}, {}]}',
        b"[" * 100_000,
        b'{"models": [{"name": "a\\u202eb"}]}',
        b" " * (2**20 + 1),
    ],
    ids=["a page", "a list", "no list", "rows without names", "deep", "hidden characters", "too long"],
)
async def test_what_is_no_list_of_models_is_passed_over(body: bytes) -> None:
    assert await found_at(page(body)) == []


@pytest.mark.anyio
async def test_a_server_that_says_no_or_nothing_or_garbage_is_passed_over() -> None:
    assert await found_at(page(b'{"data": [{"id": "m"}]}')) == ["openai/m"]
    assert await found_at(page(b'{"data": [{"id": "m"}]}', "401 No")) == []
    assert await found_at(lambda writer: None) == []
    assert await found_at(lambda writer: writer.write(b"SSH-2.0\r\n\r\n")) == []


def test_the_known_local_servers_are_asked_at_their_own_ports() -> None:
    assert [(each.title, each.port) for each in LOCAL_SERVERS] == [
        ("Ollama", 11434),
        ("LM Studio", 1234),
        ("llama.cpp", 8080),
    ]
