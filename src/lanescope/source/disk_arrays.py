"""Large NumPy arrays in unnamed files of the temporary folder: they take disk instead of memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

T = TypeVar("T")

#: Larger arrays are on disk. All that is made of a part of a buffer is smaller.
LARGER_THAN = 8 << 20
#: Where the memory is limited, so are these of arrays that are kept for long. A smaller file is not worth its pages.
_KEPT = 1 << 16
#: Rows of columns that are worked on at a time, see ``in_pieces``.
_PIECE = 1 << 18

#: What takes so many times as much as an array that is just not on disk is small, see ``large_work_on_disk``.
_SMALL = 16

#: From how many bytes on arrays are on disk, of each limit on the memory that this process holds now.
_limits: list[int] = []


@contextmanager
def large_arrays_on_disk(larger_than: int = LARGER_THAN) -> Iterator[None]:
    """Put arrays of more than so many bytes that are made inside the ``with`` on disk, as long as they live.

    They are used like all others. Where the temporary folder (``TMPDIR``) has no room, they are in memory. Other
    threads go on as before.

    Args:
        larger_than: bytes.
    """
    from lanescope._native import core

    arrays = core.DiskArrays(os.fsencode(_folder()), larger_than)
    arrays.enter()
    try:
        yield
    finally:
        arrays.leave()


@contextmanager
def memory_limited(larger_than: int) -> Iterator[None]:
    """Do as ``large_arrays_on_disk``, and have those know that the memory is limited who keep much for long."""
    _limits.append(larger_than)
    try:
        with large_arrays_on_disk(larger_than):
            yield
    finally:
        _limits.remove(larger_than)


def is_memory_limited() -> bool:
    """Return whether the memory of this process is limited, in whatever thread."""
    return bool(_limits)


def room_for_content(size: int) -> npt.NDArray[np.uint8]:
    """Return an array for the content of a file, uint8 [size], of any values; where the memory is limited, on disk."""
    if is_memory_limited():
        import numpy as np

        return np.empty(size, np.uint8)
    from lanescope._native import core

    return core.large_memory(size)


def kept_on_disk() -> AbstractContextManager[None]:
    """Put all but the smallest arrays that are made inside the ``with`` on disk: those that are kept for long."""
    return large_arrays_on_disk(_KEPT)


def large_work_on_disk(size: int) -> AbstractContextManager[None]:
    """Do as ``kept_on_disk`` for work on a capture as a whole, if it is large for a limit on the memory.

    Such work takes a few times the bytes of what it is given, in many arrays none of which is large.

    Args:
        size: bytes of what is given.
    """
    return kept_on_disk() if _limits and size > _SMALL * min(_limits) else nullcontext()


def in_pieces(rows: int) -> Iterator[slice]:
    """Yield pieces of so many rows; where the memory is limited, what is resident of arrays on disk goes after each.

    For work that is as fast as memory: a thread that looks every now and then may come late on a busy machine.
    """
    from lanescope._native import core

    for first in range(0, rows, _PIECE):
        yield slice(first, min(first + _PIECE, rows))
        if rows > _PIECE and is_memory_limited():
            core.forget_disk_pages()


def made_on_disk(rows: Iterator[T]) -> Iterator[T]:
    """Yield what an iterator yields; its own large arrays are on disk, not those of who takes them."""
    while True:
        with large_arrays_on_disk():
            try:
                row = next(rows)
            except StopIteration:
                return
        yield row


def _folder() -> str:
    """Return where temporary files go, as ``tempfile`` has it; it is not tried, as most captures need no such file."""
    named = (os.environ.get(name, "") for name in ("TMPDIR", "TEMP", "TMP"))
    folders = [folder for folder in (*named, "/tmp", "/var/tmp") if folder and os.access(folder, os.W_OK)]
    return tempfile.tempdir or next(iter(folders), os.curdir)
