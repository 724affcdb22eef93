"""A limit on the memory of this process: work that needs more ends with a clear error instead of the whole machine's.

What streams holds the limit by itself: batches, and what a sink keeps of them, do not grow with the capture. The rest
(see ``pipeline.run``) may need more; it is found out by measuring, as no family can tell before it has decoded.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lanescope.errors import UsageError

#: Smallest limit: interpreter and libraries take most of it.
LEAST = 192 << 20
#: How often the resident set is measured, s.
_EVERY_S = 0.005
_STATM = Path("/proc/self/statm")
_SUFFIXES = {"KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40, "": 0}


def parse_size(text: str) -> int:
    """Return the bytes of ``512MiB``, ``2GiB`` or ``100000000``.

    Raises:
        UsageError: it is not a size.
    """
    number = text.rstrip("KMGTiB")
    shift = _SUFFIXES.get(text[len(number) :])
    if shift is None or not (number.isascii() and number.isdecimal() and len(number) < 16):
        raise UsageError(f"invalid size {text!r}: expected 512MiB, 2GiB or bytes")
    return int(number) << shift


def parse_limit(text: str) -> int:
    """Return the bytes of a limit on memory.

    Raises:
        UsageError: it is not a size, or less than ``LEAST``.
    """
    size = parse_size(text)
    if size < LEAST:
        raise UsageError(f"--memory {text} is too small", hint=f"use --memory {LEAST >> 20}MiB or more")
    return size


def resident() -> int:
    """Return the resident set of this process, bytes."""
    return int(_STATM.read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def limited(limit: int | None, ended: Callable[[int], None]) -> Iterator[None]:
    """Watch the resident set of this process in a thread of its own.

    Args:
        limit: most bytes; None: no limit.
        ended: called in that thread with the resident set once it is larger; has to end the process.

    Raises:
        UsageError: the system does not tell the resident set.
    """
    if limit is None:
        yield
        return
    if not _STATM.exists():
        raise UsageError("--memory requires /proc", hint="remove --memory on this system")
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_EVERY_S):
            size = resident()
            if size > limit:
                ended(size)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
