"""Records of earlier launches in buffers whose records are whole regions at absolute times, and are not counted.

A host that does not clear such a buffer leaves behind the records of a lane what an earlier launch has stored there. A
launch is over before the next one begins. So in these lanes all regions from some position on end before any region
at the positions before it begins, and what is left in all lanes ends before the latest launch begins in any of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from lanescope.declaration import frozen_class
from lanescope.devices.cuda.formats.declared.declaration import Declaration
from lanescope.devices.cuda.formats.declared.direct import CORE_BITS
from lanescope.devices.cuda.formats.declared.geometry import Geometry
from lanescope.devices.cuda.formats.declared.records import UNREADABLE, Records
from lanescope.devices.cuda.formats.lanes import I64

#: The position from which on a lane holds no record of an earlier launch: none.
NEVER = np.iinfo(np.int64).max


@frozen_class
class EarlierRegions:
    """What earlier launches left.

    Attributes:
        cuts: int64 [lanes], the first position of each lane that holds a record of one; ``NEVER`` where none does.
        records: how many there are.
        first_slot: slot of the first of them.
    """

    cuts: I64
    records: int
    first_slot: int


def is_alike(declaration: Declaration, geometry: Geometry) -> bool:
    """Return whether lanes are lists of regions at absolute times of one clock, none of them counted."""
    clock = declaration.clock
    is_absolute = clock.bits > CORE_BITS and clock.across == "device" and declaration.record.empty is not None
    is_list = declaration.is_spans and declaration.positions == "sequence" and declaration.overflow in _LISTS
    return is_absolute and is_list and (geometry.offered is None or bool((geometry.offered < 0).all()))


_LISTS = ("unchecked", "drop")


def find(parts: Iterable[Records], launch_ns: int | None) -> EarlierRegions | None:
    """Return what earlier launches left; None: nothing that could be told from records of the latest one.

    Args:
        parts: the records of all lanes, in order.
        launch_ns: how long the launch took by the host's clock, if that is known.
    """
    lanes = [lane for records in parts for lane in _lanes(records)]
    tails = [lane.tail_end for lane in lanes if lane.cut != NEVER]
    if not tails:
        return None
    over = max(tails)
    is_two = all(over < lane.head_begin for lane in lanes if lane.cut != NEVER)
    span = max(lane.end for lane in lanes) - min(lane.begin for lane in lanes)
    if not is_two or (launch_ns is not None and span <= launch_ns):
        return None
    found = []
    for lane in lanes:
        if lane.cut == NEVER and lane.end <= over:
            # The latest launch has not stored anything in this lane.
            found.append((0, lane.records, lane.first_slot))
        elif lane.cut == NEVER and lane.begin < over:
            return None
        else:
            found.append((lane.cut, lane.behind, lane.cut_slot))
    slots = [slot for _, records, slot in found if records]
    return EarlierRegions(np.array([cut for cut, *_ in found], np.int64), sum(n for _, n, _ in found), min(slots))


@frozen_class
class _Lane:
    """A lane: its readable records, and those from the cut on."""

    cut: int
    begin: int
    end: int
    head_begin: int
    tail_end: int
    records: int
    behind: int
    first_slot: int
    cut_slot: int


def _lanes(records: Records) -> Iterator[_Lane]:
    assert records.end is not None
    for begin, end in zip(records.start[:-1].tolist(), records.start[1:].tolist(), strict=True):
        rows = begin + np.flatnonzero(records.kind[begin:end] < UNREADABLE)
        if not len(rows):
            yield _Lane(NEVER, NEVER, NEVER, NEVER, 0, 0, 0, 0, 0)
            continue
        starts, ends = records.begin[rows], np.maximum(records.begin[rows], records.end[rows])
        cut = _cut(starts, ends)
        low, high, first = int(starts.min()), int(ends.max()), int(records.slot[rows[0]])
        if cut is None:
            yield _Lane(NEVER, low, high, NEVER, 0, len(rows), 0, first, 0)
        else:
            head, tail, at = int(starts[:cut].min()), int(ends[cut:].max()), int(rows[cut])
            yield _Lane(at - begin, low, high, head, tail, len(rows), len(rows) - cut, first, int(records.slot[at]))


def _cut(starts: I64, ends: I64) -> int | None:
    """Return the first record from which on all end before any of those before it begins; None: there is none."""
    if len(starts) < 2 or bool((starts[1:] >= starts[:-1]).all()):
        return None
    before, behind = np.minimum.accumulate(starts)[:-1], np.maximum.accumulate(ends[::-1])[::-1][1:]
    found = np.flatnonzero(behind < before)
    return int(found[0]) + 1 if len(found) else None


def leave_out(records: Records, cuts: I64) -> None:
    """Take away the records of lanes from a position on.

    Args:
        records: of the lanes.
        cuts: int64 [lanes].
    """
    counts = np.diff(records.start)
    kept = np.minimum(counts, cuts)
    position = np.arange(len(records.kind)) - np.repeat(records.start[:-1], counts)
    rows = np.flatnonzero(position < np.repeat(kept, counts))
    places = records.byte[rows]
    for name in ("begin", "end", "kind", "event", "payload", "payload2", "token"):
        column = getattr(records, name)
        if column is not None:
            setattr(records, name, column[rows])
    records.start = np.concatenate(([0], np.cumsum(kept))).astype(np.int64)
    # The last position of such a lane is not one of the latest launch.
    records.is_full = records.is_full & (kept == counts)
    records.places = lambda: places
    for name in ("byte", "slot"):
        records.__dict__.pop(name, None)
