"""What measurements share: a line of output, the longest gap of a loop, and Deskhand without its window."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

from desktop.assistant.approval import AllowAll
from desktop.assistant.asking import NobodyToAsk
from desktop.core import Core
from desktop.paths import Paths
from tests.end_to_end.programs import write_servers


def report(name: str, figure: float, unit: str, *, against: str, budget: float | None = None, **more: Any) -> None:
    """Prints a figure as one JSON line; `against` says what it is measured against."""
    line = {"name": name, "figure": round(figure, 3), "unit": unit, "against": against, "budget": budget}
    print(json.dumps(line | more), flush=True)


class Gaps:
    """The longest time in seconds that the running loop did not come round to a task that wants to run every 5 ms."""

    longest = 0.0

    async def watch(self) -> None:
        before = time.perf_counter()
        while True:
            await asyncio.sleep(0.005)
            now = time.perf_counter()
            self.longest = max(self.longest, now - before - 0.005)
            before = now


@asynccontextmanager
async def gaps() -> AsyncIterator[Gaps]:
    """Watches the running loop."""
    found = Gaps()
    task = asyncio.create_task(found.watch())
    try:
        await asyncio.sleep(0.1)
        found.longest = 0.0
        yield found
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@contextmanager
def home() -> Iterator[Paths]:
    """Folders of the measurement's own."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DESKHAND_HOME"] = folder
        yield Paths.for_user()


@asynccontextmanager
async def core(paths: Paths, servers: Mapping[str, Any]) -> AsyncIterator[Core]:
    """Deskhand without its window, started, with these servers; every call is allowed."""
    config = write_servers(paths.config / "bench.json", **servers)
    started = Core(paths, approver=AllowAll(), asker=NobodyToAsk(), config=config)
    try:
        await started.start()
        yield started
    finally:
        await started.close()


def resident() -> int:
    """Bytes of memory that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
