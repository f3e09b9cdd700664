"""From the start of the process to the window on the screen, against an empty PySide6 window of the same panes (Xvfb)."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench._measuring import report
from tests.desktop_session import display, end

RUNS = 7
#: Deskhand as it is started, but for a line that says when its window is on the screen.
DESKHAND = """
import sys, time
from desktop import app, cli
painted = app._painted
async def told(window):
    await painted(window)
    print(time.monotonic(), flush=True)
app._painted = told
sys.exit(cli.main([]))
"""


def main() -> None:
    baseline = [sys.executable, str(Path(__file__).with_name("baseline_window.py"))]
    deskhand = [sys.executable, "-c", DESKHAND]
    with display() as name, tempfile.TemporaryDirectory() as home:
        variables = os.environ | {"DISPLAY": name, "QT_QPA_PLATFORM": "xcb", "DESKHAND_HOME": home}
        for command in (baseline, deskhand):  # once for the disk's sake
            seconds_to_show(command, variables)
        pairs = [(seconds_to_show(deskhand, variables), seconds_to_show(baseline, variables)) for _ in range(RUNS)]
    ours, bare = (statistics.median(times) for times in zip(*pairs, strict=True))
    against = "an empty PySide6 window of the same panes on the same loop"
    report("window", ours / bare, "ratio", against=against, budget=1.5, seconds=round(ours, 3), baseline=round(bare, 3))


def seconds_to_show(command: list[str], variables: dict[str, str]) -> float:
    started = time.monotonic()
    process = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        return float(process.stdout.readline()) - started
    finally:
        end(process)


if __name__ == "__main__":
    main()
