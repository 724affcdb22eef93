"""Entries and exits of API functions -> calls, nested as they ran."""

from __future__ import annotations

import numpy as np

from lanescope.common.asof_join import Int64, Mask
from lanescope.common.pairing import pair_stack
from lanescope.declaration import frozen_class
from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.host_apis import ANSWERS
from lanescope.trace import Table


@frozen_class
class Calls:
    """The calls of all threads, in the order of their entries.

    Attributes:
        entry: int64 [n], row of the entry in ``calls``.
        exit: int64 [n], row of the exit, -1 where it is missing.
        seq: int64 [n], position of the entry in the stream.
        exit_seq: int64 [n], position of the exit; beyond all records where it is missing.
        stray: int64 [m], rows of exits without an entry.
    """

    entry: Int64
    exit: Int64
    seq: Int64
    exit_seq: Int64
    stray: Int64


#: ``exit_seq`` of a call that never returned.
NEVER = np.iinfo(np.int64).max


def match(calls: Table) -> Calls:
    """Pair entries with exits by a stack per thread.

    Where a thread's records are whole this is two sorts. In a thread with missing records an exit closes the innermost
    open call of its function, and the calls inside that one are left open; an exit of a function that is not open is
    stray.

    Args:
        calls: table ``calls`` of the event model, in the order of the stream.
    """
    seq = calls.values("seq")
    pairs = pair_stack(calls.values("thread_id"), calls.codes("function"), calls.values("is_exit"))
    exit_seq = np.append(seq, NEVER)[pairs.end]
    return Calls(pairs.start, pairs.end, seq[pairs.start], exit_seq, pairs.unmatched)


def is_error(results: list[str]) -> Mask:
    """Return which results mean that a function failed, bool [n]; an answer to a question does not."""
    return np.array([result not in (*layout.ANSWERS, *ANSWERS) for result in results], np.bool_)
