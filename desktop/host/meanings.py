"""What the catalog's entries mean, as vectors: made in the background, kept by the content of the entries. Used by the search.

A search asks what there is and never waits: as long as a vector of the catalog is missing, it ranks by words alone.
"""

# pyright: reportUnknownMemberType=false
# (numpy's own annotations are incomplete to a strict checker)

from __future__ import annotations

import hashlib
import logging
import os
import queue
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from desktop.catalog_entries import CatalogEntry
from desktop.host.search_words import name_words
from desktop.host.sentence_encoder import DIMENSIONS, MODEL_HASH, EncoderMissingError, SentenceEncoder, Vectors
from desktop.paths import private_folder

#: Entries of a catalog beyond which it is ranked by words alone: looking through them takes too long while somebody types.
MOST_ENTRIES = 20_000
_LONGEST_DESCRIPTION = 600
#: Entries at a time: what is found is kept soon.
_AT_ONCE = 64
#: Of the file; one with more holds mostly what no server offers any more, and is begun anew.
_MOST_RECORDS = 60_000
_RECORD = np.dtype([("digest", "V16"), ("vector", "<f2", (DIMENSIONS,))])

_log = logging.getLogger(__name__)


def text_of(entry: CatalogEntry) -> str:
    """What is encoded: without the server's name, so that vectors don't depend on what the person called it."""
    return f"{' '.join(name_words(entry.name))}: {entry.description[:_LONGEST_DESCRIPTION]}"


def digest_of(text: str) -> bytes:
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=16).digest()


class Meanings:
    """Vectors of texts, made by a thread of their own. Safe to use from several threads.

    Attributes:
        ready: Set while no text waits to be encoded.
    """

    def __init__(self, folder: Path) -> None:
        """`folder` is a private one for the vectors; it is made when it is missing."""
        self.ready = threading.Event()
        self._folder = folder
        self._vectors: dict[bytes, Vectors] = {}
        self._waiting: queue.SimpleQueue[dict[bytes, str] | None] = queue.SimpleQueue()
        self._encoder: SentenceEncoder | None = None
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="sentence encoder", daemon=True)
        self._thread.start()

    def want(self, texts: Mapping[bytes, str]) -> None:
        """Has texts, by their digests, encoded soon."""
        if self._thread.is_alive():
            self.ready.clear()
            self._waiting.put(dict(texts))

    def of(self, digests: Sequence[bytes]) -> Vectors | None:
        """The vectors of these texts, a row each; None as long as one is missing, or when there are too many."""
        if len(digests) > MOST_ENTRIES:
            return None
        vectors = [self._vectors.get(each) for each in digests]
        found = [each for each in vectors if each is not None]
        return np.stack(found) if found and len(found) == len(vectors) else None

    def of_query(self, query: str) -> Vectors | None:
        """The vector of a query: some milliseconds."""
        encoder = self._encoder
        return encoder.encode([query])[0] if encoder is not None else None

    def close(self) -> None:
        """Ends the thread; waits at most for what it is encoding."""
        self._stopped = True
        self._waiting.put(None)
        self._thread.join(5)

    def _run(self) -> None:
        if sys.platform == "linux":
            with suppress(OSError):  # of this thread alone: whatever the person does comes first
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 15)
        try:
            encoder = SentenceEncoder()
        except EncoderMissingError as error:
            _log.info("the search ranks by words alone: %s", error)
            return
        self._vectors.update(self._read())
        self._encoder = encoder
        while (texts := self._waiting.get()) is not None:
            missing = [(digest, text) for digest, text in texts.items() if digest not in self._vectors]
            for start in range(0, min(len(missing), MOST_ENTRIES), _AT_ONCE):
                if self._stopped:
                    return
                some = missing[start : start + _AT_ONCE]
                made = dict(
                    zip((digest for digest, _ in some), encoder.encode([text for _, text in some]), strict=True)
                )
                self._vectors.update(made)
                self._keep(made.items())
            if self._waiting.empty():
                self.ready.set()

    @property
    def _file(self) -> Path:
        return self._folder / f"vectors-{MODEL_HASH[:12]}.bin"

    def _read(self) -> dict[bytes, Vectors]:
        """What earlier runs kept. A file that is not what it should be counts as none."""
        try:
            flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
            with open(self._file, "rb", opener=lambda path, _: os.open(path, flags)) as file:
                content = file.read((_MOST_RECORDS + 1) * _RECORD.itemsize)
            if len(content) > _MOST_RECORDS * _RECORD.itemsize:
                self._file.unlink()
                return {}
            if beyond := len(content) % _RECORD.itemsize:  # the last one was cut short: others are to follow whole ones
                os.truncate(self._file, len(content) - beyond)
        except OSError:
            return {}
        records = np.frombuffer(content, _RECORD, len(content) // _RECORD.itemsize)
        vectors = records["vector"].astype(np.float32)
        lengths = np.linalg.norm(vectors, axis=1)
        whole = np.abs(lengths - 1) < 0.01  # whatever else the file holds
        return {
            bytes(records["digest"][place]): vectors[place] / lengths[place]
            for place in map(int, np.flatnonzero(whole))
        }

    def _keep(self, made: Iterable[tuple[bytes, Vectors]]) -> None:
        """Appends to the file; one that can't be written costs the next run its time, no more."""
        pairs = list(made)
        records = np.zeros(len(pairs), _RECORD)
        records["digest"] = [np.void(digest) for digest, _ in pairs]
        records["vector"] = [vector for _, vector in pairs]
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        try:
            private_folder(self._folder)
            with open(self._file, "ab", opener=lambda path, _: os.open(path, flags, 0o600)) as file:
                file.write(records.tobytes())
        except OSError as error:
            _log.info("vectors could not be kept: %s", error.strerror)
