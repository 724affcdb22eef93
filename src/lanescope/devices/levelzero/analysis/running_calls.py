"""Sums of calls that come piece after piece: what every tally in bounded memory adds up."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lanescope.common.asof_join import Int64, Mask
from lanescope.common.pairing import pair_stack
from lanescope.devices.levelzero.analysis.sums import Sums, sums_of
from lanescope.devices.levelzero.analysis.tally import HOST, RECORDER, TRAFFIC
from lanescope.trace import Dictionary

#: Section and name.
Key = tuple[str, int]


@dataclass(slots=True, eq=False)
class CallEvents:
    """Entries and exits in their order. Arrays are [n].

    Attributes:
        ts: int64, ns.
        thread: int64, any number of the thread.
        name: int64, code of the function.
        is_exit: bool, whether it is a return.
        failed: bool, of a return whether its result is a failure.
        bytes: int64, of an entry the memory that the call accesses, -1: none; None: of no call.
        own: int64, of a return the time of the recorder within the call, -1: not measured; None: of no call.
    """

    ts: Int64
    thread: Int64
    name: Int64
    is_exit: Mask
    failed: Mask
    bytes: Int64 | None = None
    own: Int64 | None = None


class RunningCalls:
    """Pairs entries with exits, and forgets those that are over.

    Memory grows with names, and with calls that have not returned and may still do so.

    Args:
        names: names by code; the recorder's own is added where it is needed.

    Attributes:
        sums: by section and name.
        count: calls that have returned.
        unmatched: returns without a call.
    """

    def __init__(self, names: Dictionary) -> None:
        self.sums: dict[Key, Sums] = {}
        self.count = self.unmatched = 0
        self._names = names
        none = np.empty(0, np.int64)
        #: Time, thread, name and bytes of calls that have not returned.
        self._open: tuple[Int64, Int64, Int64, Int64] = (none, none, none, none)

    def add(self, new: CallEvents) -> None:
        """Add the next events: none is earlier in its thread than those before."""
        begin = len(self._open[0])
        is_exit = np.concatenate([np.zeros(begin, np.bool_), new.is_exit])
        if not len(is_exit):
            return
        ts, thread, name = (
            np.concatenate([kept, column])
            for kept, column in zip(self._open[:3], (new.ts, new.thread, new.name), strict=True)
        )
        size = None
        if new.bytes is not None:
            size = np.concatenate([self._open[3], new.bytes])
        pairs = pair_stack(thread, name, is_exit)
        self.unmatched += len(pairs.unmatched)
        closed = pairs.end >= 0
        start, end = pairs.start[closed], pairs.end[closed]
        self.count += len(start)
        # An exit is an event of this piece: those of the pieces before are entries.
        failed, length = new.failed[end - begin], ts[end] - ts[start]
        if new.own is not None:
            own = new.own[end - begin]
            # Of a call that ends before it begins nothing is known.
            measured = (own >= 0) & (length >= 0)
            length[measured] = np.maximum(length[measured] - own[measured], 0)
            if measured.any():
                recorder = np.full(int(measured.sum()), self._names.code(RECORDER), np.int64)
                self.sum(HOST, recorder, own[measured])
        self.sum(HOST, name[start], length, failed)
        if size is not None:
            touched = (size[start] >= 0) & ~failed
            self.sum(TRAFFIC, name[start[touched]], size[start[touched]])
        kept = self._still_open(thread, start, end, pairs.start[~closed], name)
        none = np.full(len(kept), -1, np.int64)
        self._open = ts[kept], thread[kept], name[kept], none if size is None else size[kept]

    def _still_open(self, thread: Int64, start: Int64, end: Int64, open_: Int64, name: Int64) -> Int64:
        """Return the open calls that may still return; a call that ended around another leaves that one for ever."""
        reach = np.full(len(thread), -1, np.int64)
        reach[start] = end
        by = np.argsort(thread, kind="stable")
        step = np.cumsum(np.diff(thread[by], prepend=thread[by[:1]]) != 0) * (len(thread) + 1)
        furthest = np.empty(len(thread), np.int64)
        furthest[by] = np.maximum.accumulate(reach[by] + step) - step
        left = furthest[open_] > open_
        for code, count in _counted(name[open_[left]]):
            _leave_open(self.sums, code, count)
        return open_[~left]

    def sum(self, section: str, name: Int64, value: Int64, error: npt.NDArray[np.bool_] | None = None) -> None:
        """Add values, int64 [n], to the sums of their names; those below 0 are not known."""
        if not len(name):
            return
        order = np.argsort(name, kind="stable")
        starts = np.flatnonzero(np.diff(name[order], prepend=-1))
        failed = np.zeros(len(name), np.bool_) if error is None else error[order]
        value = value[order]
        for code, made in zip(name[order][starts].tolist(), sums_of(starts, value, value >= 0, failed), strict=True):
            self.sums.setdefault((section, code), Sums()).add(made)

    def now(self) -> dict[Key, Sums]:
        """Return the sums so far; calls that have not returned are open."""
        sums = {key: replace(part) for key, part in self.sums.items()}
        for code, count in _counted(self._open[2]):
            _leave_open(sums, code, count)
        return sums


def _counted(codes: Int64) -> list[tuple[int, int]]:
    counts = np.bincount(codes, minlength=1)
    return [(code, int(counts[code])) for code in np.flatnonzero(counts).tolist()]


def _leave_open(sums: dict[Key, Sums], code: int, count: int) -> None:
    part = sums.setdefault((HOST, code), Sums())
    part.count += count
    part.open += count
