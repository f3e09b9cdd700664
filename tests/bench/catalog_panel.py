"""The catalog panel with 10,000 entries: the longest gap of the loop while somebody types, filters and scrolls.

Offscreen, by Qt's own events; with ``--window`` on a screen of its own (Xvfb), by the keys and the wheel of that (xdotool).
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

from PySide6.QtCore import QPoint
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from desktop.assistant.approval import AllowAll
from desktop.assistant.asking import NobodyToAsk
from desktop.catalog_entries import CatalogEntry, ToolDefinition
from desktop.core import Core
from desktop.ui import event_loop, tasks, theme
from desktop.ui.panels.catalog_panel import CatalogPanel
from tests.bench._measuring import Gaps, gaps, home, report
from tests.desktop_session import display

COUNT = 10_000
QUERY = "list open invoices of a customer"
NOUNS = (
    "invoice",
    "customer",
    "ticket",
    "branch",
    "calendar",
    "measurement",
    "document",
    "mailbox",
    "forecast",
    "order",
)
VERBS = ("list", "open", "delete", "create", "export", "compare", "merge", "archive", "watch", "send")


def tool(number: int) -> ToolDefinition:
    verb, noun = VERBS[number % 10], NOUNS[number // 10 % 10]
    schema = {"type": "object", "properties": {"id": {"type": "string", "description": f"Which {noun}"}}}
    name = f"{verb}_{noun}_{number}"
    text = f"{verb.title()}s the {noun} of a customer, number {number}."
    return ToolDefinition("large", name, f"mcp__large__{name}", text, schema, str(number), "")


async def settled(panel: CatalogPanel) -> None:
    if panel._searching is not None:
        await asyncio.wait_for(panel._searching, 30)


class Offscreen:
    """Hands that send Qt's events."""

    def __init__(self, panel: CatalogPanel) -> None:
        self.panel = panel

    async def type(self, text: str) -> None:
        for letter in text:
            QTest.keyClicks(self.panel.search_box, letter)
            await asyncio.sleep(0.06)

    async def scroll(self) -> None:
        bar = self.panel.view.verticalScrollBar()
        for step in range(100):
            bar.setValue(bar.maximum() * step // 100)
            await asyncio.sleep(0.016)


class OnScreen(Offscreen):
    """Hands at the X server's keyboard and mouse."""

    async def type(self, text: str) -> None:
        self.panel.activateWindow()
        self.panel.focus_search()
        await self._xdotool("type", "--delay", "60", "--", text)

    async def scroll(self) -> None:
        place = self.panel.view.viewport().mapToGlobal(QPoint(100, 100))
        await self._xdotool(
            "mousemove", str(place.x()), str(place.y()), "click", "--repeat", "100", "--delay", "16", "5"
        )

    async def _xdotool(self, *arguments: str) -> None:
        process = await asyncio.create_subprocess_exec("xdotool", *arguments)
        if await asyncio.wait_for(process.wait(), 60):
            raise subprocess.CalledProcessError(process.returncode or 1, "xdotool")


async def measure(hands_of: type[Offscreen]) -> None:
    with home() as paths:
        core = Core(paths, approver=AllowAll(), asker=NobodyToAsk())
        panel = CatalogPanel(core)
        panel.resize(320, 760)
        panel.show()
        hands = hands_of(panel)
        await core.start()
        known: list[CatalogEntry] = [tool(number) for number in range(COUNT)]
        core.catalog.entries = lambda: known  # what the panel shows; the ranking gets the same below
        core.catalog._search.replace("tool", "large", known)
        await core.catalog.search_known("invoice")  # indexed in the catalog's thread, as when a server was listed
        try:
            async with gaps() as found:
                panel._catalog_changed()
                await settled(panel)
                _report("shown", found)
                await hands.type(QUERY)
                assert panel.search_box.text() == QUERY
                await settled(panel)
                _report("typing", found)
                panel.search_box.clear()
                await settled(panel)
                for kind in (1, 2, 3, 0):
                    panel.kind_box.setCurrentIndex(kind)
                    await settled(panel)
                _report("filtering", found)
                await hands.scroll()
                assert panel.view.verticalScrollBar().value() > 0
                _report("scrolling", found)
        finally:
            await tasks.end(5)
            await core.close()


def _report(what: str, found: Gaps) -> None:
    report(f"catalog_panel_{what}", found.longest * 1000, "ms", against="the longest gap of the loop", budget=50)
    found.longest = 0.0


def main(hands_of: type[Offscreen]) -> None:
    QApplication([])
    theme.apply("light")
    event_loop.run(measure(hands_of))


if __name__ == "__main__":
    if "--window" in sys.argv:
        with display() as name:
            os.environ.update(DISPLAY=name, QT_QPA_PLATFORM="xcb")
            main(OnScreen)
    else:
        main(Offscreen)
