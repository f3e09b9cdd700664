"""One window a user: the second start brings up the first one's window instead. Used by ``app.py``.

A lock file names the process that has the window (a dead one's lock is stale); a local socket that only the user may open takes
what a second start can say: show yourself, and open that folder.
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
#: Bytes, more than a path may have.
_LONGEST_MESSAGE = 16 * 1024


class SingleInstance(QObject):
    """Signals:
    raise_requested: Another start wants the window to come up, and to open a folder unless it is "".
    """

    raise_requested = Signal(str)

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

    def raise_first(self, folder: Path | None = None) -> bool:
        """Asks the one that has the window to show it, and to open a folder; whether it took notice."""
        socket = QLocalSocket()
        socket.connectToServer(self._name)
        if not socket.waitForConnected(_ANSWER_LIMIT):
            return False
        socket.write(os.fsencode(folder.absolute() if folder else "") + b"\0")
        return socket.state() != QLocalSocket.LocalSocketState.ConnectedState or socket.waitForDisconnected(
            _ANSWER_LIMIT
        )

    def release(self) -> None:
        self._server.close()
        self._lock.unlock()

    def _connected(self) -> None:
        while (socket := self._server.nextPendingConnection()) is not None:
            socket.readyRead.connect(lambda socket=socket: self._read(socket))
            socket.disconnected.connect(socket.deleteLater)

    def _read(self, socket: QLocalSocket) -> None:
        said = bytes(socket.peek(_LONGEST_MESSAGE).data())
        if b"\0" in said or len(said) == _LONGEST_MESSAGE:
            socket.disconnectFromServer()
            self.raise_requested.emit(os.fsdecode(said.partition(b"\0")[0]))
