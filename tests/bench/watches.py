"""Fifty watches and a storm of 10,000 changes, as fast as the pipe takes them: the longest gap of the window's loop, and memory.

The server says nothing else meanwhile; the window is shown, with the watches panel in front.
"""

from __future__ import annotations

import gc
import sys

from PySide6.QtWidgets import QApplication

from desktop.assistant.approval import AllowAll
from desktop.assistant.asking import NobodyToAsk
from desktop.core import Core
from desktop.ui import event_loop, tasks, theme
from desktop.ui.chat.answers import PersonAnswers
from desktop.ui.main_window import MainWindow
from tests.bench._measuring import gaps, home, report, resident
from tests.end_to_end.programs import write_servers
from tests.servers.running import changing
from tests.ui.person import until

WATCHES = 50
CHANGES = 10_000


async def measure() -> None:
    with home() as paths:
        for era in ("older", "newer"):
            command = changing(*(["--modern"] if era == "newer" else []))
            config = write_servers(paths.config / "bench.json", state={"command": command[0], "args": command[1:]})
            core = Core(paths, approver=AllowAll(), asker=NobodyToAsk(), config=config)
            window = MainWindow(core, PersonAnswers())
            window.resize(1200, 760)
            window.show()
            window.panels.setCurrentWidget(window.watches)
            try:
                await core.start()
                for number in range(WATCHES):
                    await core.watches.add("state", f"state://{number}", f"resource {number}")
                call = core.host.connection("state").call_tool
                await call("touch", {"uri": "state://0", "times": CHANGES // 10})  # what is made once is made
                gc.collect()
                before = resident()
                async with gaps() as found:
                    for number in range(WATCHES):
                        await call("touch", {"uri": f"state://{number}", "times": CHANGES // WATCHES})
                    await until(lambda core=core: all(watch.unseen for watch in core.watches.all))
                gc.collect()
                against = f"nothing ({CHANGES:,} changes of {WATCHES} resources, {era} era)"
                report("watches_gap", found.longest * 1000, "ms", against=against, budget=50)
                report("watches_memory", (resident() - before) / 2**20, "MiB more", against=against)
            finally:
                window.hide()
                await core.close()
                window.deleteLater()
        await tasks.end(5)


def main() -> None:
    application = QApplication(sys.argv[:1])
    theme.apply("light")
    event_loop.run(measure())
    del application


if __name__ == "__main__":
    main()
