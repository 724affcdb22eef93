"""The clock of kernels that run without a GPU: Numba's simulator and Triton's interpreter read it for the timer.

Every reading is later than the one before, by a tick, until somebody says otherwise:

    >>> with using(lambda: 42):
    ...     now()
    42
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

TICK_NS = 32
_START_NS = 1_000_000_000
#: Cycles that the simulated multiprocessors count in a nanosecond.
CYCLES_PER_NS = 2


def _counting() -> Callable[[], int]:
    return itertools.count(_START_NS, TICK_NS).__next__


_read: Callable[[], int] = _counting()


def now() -> int:
    """Return the simulated timer, in ns."""
    return _read()


def cycles() -> int:
    """Return the simulated counter of a multiprocessor, in cycles."""
    return _read() * CYCLES_PER_NS


@contextmanager
def using(read: Callable[[], int]) -> Iterator[None]:
    """Let kernels read another clock.

    Args:
        read: returns the time in ns; called from whatever thread the kernel runs in.
    """
    global _read
    before, _read = _read, read
    try:
        yield
    finally:
        _read = before
