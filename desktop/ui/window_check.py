"""Whether Qt can open windows here, and whether there is a tray. Run by ``deskhand doctor`` in a process of its own: Qt ends the
process where it can't.
"""

from __future__ import annotations

import json

from PySide6.QtWidgets import QApplication, QSystemTrayIcon


def main() -> None:
    """Prints one JSON object: ``platform`` (Qt's plugin), ``tray``."""
    application = QApplication(["deskhand"])
    print(json.dumps({"platform": application.platformName(), "tray": QSystemTrayIcon.isSystemTrayAvailable()}))
