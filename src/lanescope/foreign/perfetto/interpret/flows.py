"""Arrows from the ends that events carry: an id is a chain in time, an end that terminates it frees it.

Source: google/perfetto, src/trace_processor/importers/common/flow_tracker.cc.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]


class Arrows(NamedTuple):
    """Arrows between events.

    Attributes:
        source, destination: int64 [n], events.
        lone: how many ids have an end without another one.
    """

    source: Int64
    destination: Int64
    lone: int


def chains(event: Int64, key: npt.NDArray[np.uint64], role: npt.NDArray[np.uint8], ts: Int64) -> Arrows:
    """Join the ends of each id in order of time, at equal times in that of the file.

    Args:
        event: int64 [n], events, in order of the file.
        key: uint64 [n], ids.
        role: uint8 [n], 1: the id ends here.
        ts: int64 [n], time of each.
    """
    if not len(event):
        return Arrows(event, event, 0)
    order = np.lexsort((ts, key))
    key, role, event = key[order], role[order], event[order]
    is_joined = (key[1:] == key[:-1]) & (role[:-1] == 0)
    source, destination = event[:-1][is_joined], event[1:][is_joined]
    has_next = np.append(is_joined, False)
    has_before = np.insert(is_joined, 0, False)
    return Arrows(source, destination, int(np.count_nonzero(~has_next & ~has_before)))


def from_one(binds: list[tuple[int, int, bool, bool]], ts: Int64) -> Arrows:
    """Join each end of an id with the last start of it before.

    Args:
        binds: event, id, whether it is a start, whether it is an end.
        ts: int64 [events], time of each event.
    """
    source, destination, lone = [], [], 0
    last: dict[int, int] = {}
    used: set[int] = set()
    for event, number, is_start, is_end in sorted(binds, key=lambda bind: int(ts[bind[0]])):
        if is_end and number in last:
            source.append(last[number])
            destination.append(event)
            used.add(number)
        elif is_end:
            lone += 1
        if is_start:
            last[number] = event
    lone += len(last.keys() - used)
    return Arrows(np.array(source, np.int64), np.array(destination, np.int64), lone)
