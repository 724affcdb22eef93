"""A limit on the memory of this process: work that needs more ends with a clear error instead of the whole machine's.

What streams holds the limit by itself: batches, and what a sink keeps of them, do not grow with the capture. The rest
(see ``pipeline.run``) may need more. Its large arrays are files of the temporary folder; whether what is left still is
too much is found out by measuring, as no family can tell before it has decoded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from lanescope.errors import UsageError

if TYPE_CHECKING:
    from lanescope.trace import Trace

#: Smallest limit: interpreter and libraries take most of it.
LEAST = 192 << 20
#: Left for what is allocated between two measurements and until the process has ended, bytes: up to 17 MiB were seen of
#: what the least limit is enough for.
_RESERVE = 16 << 20
#: At least this share of the limit, one of so many: what needs more allocates more at a time, of 512 MiB 30 MiB.
_RESERVE_SHARE = 16
#: Larger arrays than this share of the limit, one of so many, are on disk.
_LARGE_SHARE = 128
#: Bytes of a slice and of what is with it in a trace, about.
_SLICE = 250
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


@contextmanager
def limited(limit: int | None, message: str, status: int) -> Iterator[None]:
    """End this process when its resident set comes close to a limit; what it has not finished is removed.

    Args:
        limit: most bytes; None: no limit.
        message: written to standard error then.
        status: its exit status then.

    Raises:
        UsageError: the system does not tell the resident set.
    """
    if limit is None:
        yield
        return
    from lanescope._native import core
    from lanescope.io import atomic_file
    from lanescope.source.disk_arrays import memory_limited

    allowed = limit - max(_RESERVE, limit // _RESERVE_SHARE)
    try:
        core.limit_memory(allowed, message.encode("utf-8", "surrogateescape"), status)
    except RuntimeError:
        raise UsageError("--memory requires /proc", hint="remove --memory on this system") from None
    try:
        with (
            atomic_file.watched(
                lambda path: core.keep_unfinished(os.fsencode(path), is_unfinished=True),
                lambda path: core.keep_unfinished(os.fsencode(path), is_unfinished=False),
            ),
            memory_limited(limit // _LARGE_SHARE),
        ):
            yield
    finally:
        core.limit_memory(0, b"", 0)


def analyzed_on_disk(*traces: Trace) -> AbstractContextManager[None]:
    """Have all but the smallest arrays on disk that analyses of whole traces make, if these are large for the limit."""
    from lanescope.source.disk_arrays import large_work_on_disk

    wholes = [trace if trace.origin is None else trace.origin.whole for trace in traces]
    return large_work_on_disk(_SLICE * sum(len(whole.slices) for whole in wholes))
