"""Hashes of what is read, made meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanescope._native import core

if TYPE_CHECKING:
    import queue
    import threading


class Digest:
    """SHA-256 of pieces that come one after another.

    Args:
        beside: hash in a thread of its own while the caller works on the pieces, unless the caller may have one core
            only; fast decoders cost no more than this.
        behind: how many pieces hashing may lie behind; None: as many as come.
    """

    def __init__(self, *, beside: bool, behind: int | None = None) -> None:
        from hashlib import sha256

        self._hash = sha256(usedforsecurity=False)
        self._thread: threading.Thread | None = None
        if beside and core.allowed_threads() > 1:
            import queue
            import threading

            self._pieces: queue.SimpleQueue[memoryview | None] = queue.SimpleQueue()
            self._room = None if behind is None else threading.Semaphore(behind)
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while (piece := self._pieces.get()) is not None:
            self._hash.update(piece)
            if self._room is not None:
                self._room.release()

    def add(self, piece: memoryview) -> None:
        """Take in a piece, which must stay as it is until it is hashed: until ``behind`` more have been added."""
        if self._thread is None:
            self._hash.update(piece)
            return
        if self._room is not None:
            self._room.acquire()
        self._pieces.put(piece)

    def end(self) -> None:
        """Mark the end of the pieces."""
        if self._thread is not None:
            self._pieces.put(None)

    @property
    def hex(self) -> str:
        """The digest of all pieces, hexadecimal."""
        if self._thread is not None:
            self._thread.join()
        return self._hash.hexdigest()
