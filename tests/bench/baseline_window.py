"""What ``window`` is measured against: an empty PySide6 window of the same panes on the same loop. Prints when it is shown."""

from __future__ import annotations

import asyncio
import sys
import time

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication, QListView, QMainWindow, QSplitter, QTabWidget, QTextBrowser

from desktop.ui import event_loop


class FirstPaint(QObject):
    def __init__(self, painted: asyncio.Event) -> None:
        super().__init__()
        self._painted = painted

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Expose:
            self._painted.set()
        return False


async def main() -> None:
    painted = asyncio.Event()
    window = QMainWindow()
    panes = QSplitter()
    for pane in (QListView(), QTextBrowser(), QTabWidget()):
        panes.addWidget(pane)
    window.setCentralWidget(panes)
    window.resize(1200, 760)
    window.show()
    watcher = FirstPaint(painted)
    window.windowHandle().installEventFilter(watcher)
    await painted.wait()
    print(time.monotonic(), flush=True)


if __name__ == "__main__":
    application = QApplication(sys.argv)
    event_loop.run(main())
