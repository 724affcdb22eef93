"""Random access to an input file, and what a file that changes while it is read costs: one error."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NoReturn

from lanescope.errors import InputError, os_reason

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

RUN_AGAIN = "run again after the writer has finished"


class Reader:
    """Random access to a file, independent of its source.

    Args:
        descriptor: of the open file; it is closed with this object.
        path: what messages call it.
        reached: one number, where the latest read ended; it is kept up to date.
        opened: size and time of the file when it was opened; None: it is our own, and still written.
    """

    def __init__(self, descriptor: int, path: str, reached: list[int], opened: tuple[int, int] | None = None) -> None:
        self._descriptor, self._path, self._reached, self._opened = descriptor, path, reached, opened

    def __del__(self) -> None:
        os.close(self._descriptor)

    def at(self, offset: int, size: int) -> npt.NDArray[np.uint8]:
        """Return ``size`` bytes from ``offset`` on, uint8 [size].

        Raises:
            InputError: reading fails, or the file has become shorter or was written over.
        """
        import numpy as np

        found = np.empty(size, np.uint8)
        view, done = memoryview(found.data), 0
        while done < size:
            try:
                count = os.preadv(self._descriptor, [view[done:]], offset + done)
            except OSError as error:
                fail(self._path, error)
            if not count:
                raise InputError(
                    f"{self._path}: file became shorter while it was read: {size - done} bytes missing",
                    hint=RUN_AGAIN,
                )
            done += count
        if self._opened is not None:
            check_unchanged(self._descriptor, self._opened, self._path)
        self._reached[0] = offset + size
        return found


def state_of(descriptor: int) -> tuple[int, int]:
    """Return what tells that a file was written to: its size, and when that was last."""
    found = os.fstat(descriptor)
    return found.st_size, found.st_mtime_ns


def check_unchanged(descriptor: int, opened: tuple[int, int], path: str) -> None:
    """Raise if a file was written over since it was opened: a part may have been read before, and a part after.

    What is appended stays unseen.
    """
    size, written = state_of(descriptor)
    if size == opened[0] and written != opened[1]:
        raise InputError(f"{path}: file changed while it was read", hint=RUN_AGAIN)


def fail(path: str, error: OSError) -> NoReturn:
    """Raise the one error that names a path and the reason why it cannot be read."""
    raise InputError(f"cannot read {path!r}: {os_reason(error)}", hint="check the path") from None
