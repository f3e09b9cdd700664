"""What an activation makes a provider bill again of what it was sent before, in each provider's form.

A provider's cache holds a request's beginning up to the first difference; what the request before had beyond that is billed
again. The conversation is that of ``tests/assistant/test_request_prefix.py``: ten turns, three activations.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from itertools import pairwise, takewhile
from pathlib import Path

import pytest

from tests.assistant.test_request_prefix import ACTIVATIONS, FORMS, TURNS, Desk, Parts, parts_of, script
from tests.bench._measuring import report
from tests.bench.tokens import TOKENIZER, count
from tests.fakes.model_server import ModelServer


async def sent(form: str) -> list[Parts]:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        async with ModelServer(list(script())) as server:
            desk = Desk(form, server, Path(folder), patch)
            for turn in range(TURNS):
                await desk.say(f"Turn {turn}: «go»")
            await desk.history.close()
            return [parts_of(each) for each in server.requests]


def billed_again(earlier: Parts, later: Parts) -> str:
    """What of the earlier request is not a beginning of the later one."""
    before, after = ([*each.tools, each.system, *each.messages] for each in (earlier, later))
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
    return "".join(before[same:])


async def main() -> None:
    for form in FORMS:
        requests = await sent(form)
        again = [billed_again(*pair) for pair in pairwise(requests)]
        lost = [each for each in again if each]
        whole = statistics.mean(count("".join([*each.tools, each.system, *each.messages])) for each in requests)
        report(
            f"request_prefix {form}",
            sum(map(count, lost)) / len(ACTIVATIONS),
            "tokens billed again an activation",
            against=f"{whole:.0f} tokens of a request in the mean, {TOKENIZER}",
            bytes=sum(len(each.encode()) for each in lost) // len(ACTIVATIONS),
            times=len(lost),
        )


if __name__ == "__main__":
    asyncio.run(main())
