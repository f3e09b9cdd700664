"""One window a user: the second start brings up the first one's window instead. Used by ``app.py``.

A lock file names the process that has the window (a dead one's lock is stale); a local socket that only the user may open takes
the one thing a second start can say: show yourself.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from PySide6.QtCore import QLockFile, QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

#: Milliseconds.
_ANSWER_LIMIT = 3000


class SingleInstance(QObject):
    """Signals:
    raise_requested: Another start wants the window to come up.
    """

    raise_requested = Signal()

    def __init__(self, folder: Path) -> None:
        """`folder` is private and stands for the user: who uses the same one shares a window."""
        super().__init__()
        self._lock = QLockFile(str(folder / "window.lock"))
        self._lock.setStaleLockTime(0)  # held however long the window is open
        name = hashlib.sha256(str(folder).encode()).hexdigest()[:16]
        user = os.getuid() if hasattr(os, "getuid") else os.getlogin()
        self._name = (
            str(Path(tempfile.gettempdir()) / f"deskhand-{user}-{name}") if os.name != "nt" else f"deskhand-{name}"
        )
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._connected)

    def acquire(self) -> bool:
        """Whether this is the user's one window from now on. Where no lock can be made, every start is."""
        if not self._lock.tryLock(0):
            return self._lock.error() != QLockFile.LockError.LockFailedError
        QLocalServer.removeServer(self._name)  # of one that was killed
        self._server.listen(self._name)
        return True

    def raise_first(self) -> bool:
        """Asks the one that has the window to show it; whether it took notice."""
        socket = QLocalSocket()
        socket.connectToServer(self._name)
        return socket.waitForConnected(_ANSWER_LIMIT) and (
            socket.state() != QLocalSocket.LocalSocketState.ConnectedState or socket.waitForDisconnected(_ANSWER_LIMIT)
        )

    def release(self) -> None:
        self._server.close()
        self._lock.unlock()

    def _connected(self) -> None:
        while (socket := self._server.nextPendingConnection()) is not None:
            socket.disconnectFromServer()
            socket.deleteLater()
            self.raise_requested.emit()
