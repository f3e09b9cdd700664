"""The cached share in the chat's header, from what a provider sends over HTTP to what is shown."""

from __future__ import annotations

from typing import Any

import pytest

from desktop.assistant import litellm_model
from desktop.assistant.litellm_model import LitellmModel
from desktop.assistant.model_list import Provider
from desktop.core import Core
from desktop.ui.chat.answers import PersonAnswers
from desktop.ui.chat.chat_pane import ChatPane
from tests.fakes.model_server import Answer, ModelServer
from tests.ui.person import seen, until

pytestmark = pytest.mark.anyio

ANTHROPIC = "anthropic/claude-sonnet-4-5"
OPENAI = "openai/gpt-4o"


def anthropic(fresh: int, read: int, created: int) -> dict[str, int]:
    """Anthropic counts what is fresh, read from its cache and written to it, each for itself."""
    return {
        "input_tokens": fresh,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": created,
        "output_tokens": 20,
    }


def openai(sent: int, cached: int | None) -> dict[str, Any]:
    """OpenAI counts all that was sent, and how much of that was cached; others don't tell the latter."""
    usage: dict[str, Any] = {"prompt_tokens": sent, "completion_tokens": 20, "total_tokens": sent + 20}
    return usage if cached is None else usage | {"prompt_tokens_details": {"cached_tokens": cached}}


@pytest.mark.parametrize(
    ("name", "usages"),
    [
        (ANTHROPIC, [anthropic(100, 0, 900), anthropic(100, 900, 0)]),
        (OPENAI, [openai(1000, 0), openai(1000, 900)]),
        (OPENAI, [openai(1000, None), openai(1000, 450)]),
    ],
    ids=["Anthropic", "OpenAI", "OpenAI-shaped, once without a word on caches"],
)
async def test_the_share_is_that_of_all_tokens_that_were_sent(
    core: Core, name: str, usages: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = [Answer(text=["Hi"], usage=usage) for usage in usages]
    async with ModelServer(script, key="key") as server:
        path = "" if name == ANTHROPIC else "/v1"
        provider = Provider(name.partition("/")[0], "", "", server.address.removesuffix("/v1") + path)
        monkeypatch.setattr(litellm_model, "provider_of", lambda _: provider)
        model = LitellmModel(name, api_key="key")

        async def chosen() -> LitellmModel:
            return model

        monkeypatch.setattr(core, "language_model", chosen)
        pane = ChatPane(core, PersonAnswers())
        pane.resize(1000, 500)
        pane.show()
        await core.start()
        for number in (1, 2):
            pane.send("Hello")
            # The first one waits for the import of litellm as well.
            await until(lambda number=number: len(pane.conversation.messages) == 2 * number and not pane.busy, 60)
    assert "2.0k tokens · < $0.01 · 45 % cached" in seen(pane)
