"""What the common rules make of the lanes of a buffer, whatever its layout: the columns that the native core fills.

A reader of a layout (``tirx.py``) gives the records of each lane in write order;
``native/core/devices/cuda/lane_decoder.cpp`` turns them into slices, instants and gaps; this module holds the result
and places the lanes on one time axis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.common.wrapping_counters import at_or_after, circular_start
from lanescope.source.disk_arrays import is_memory_limited
from lanescope.trace import Column

I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]
#: A step that stamps share, 0 if there is none, and some of them.
Stamps = tuple[int, list[int]]

#: A lane's clock may seem to step back by the time between two writers' stamps; anything longer has other causes.
STEP_BACK = 1 << 20
#: Columns of a lane's summary, in the core's order.
SUMMARY = (
    "records",
    "first",
    "last",
    "min",
    "max",
    "finalizes",
    "finalize",
    "launches",
    "after_finalize",
    "missing",
    "bad",
    "slices",
    "instants",
    "unmatched",
    "open",
    "negative",
    "backward",
    "wraps",
    "jumps",
    "full",
)

_SLICES = {
    "begin": np.int64,
    "dur": np.int64,
    "flags": np.uint32,  # 0 where the core has nothing to say
    "launch": np.uint32,  # likewise
    "begin_index": np.uint32,
    "end_index": np.uint32,
    "event": np.uint16,
}
_INSTANTS = {
    "tick": np.int64,
    "flags": np.uint32,
    "launch": np.uint32,
    "index": np.uint32,
    "event": np.uint16,
    "is_end": np.uint8,
}
_GAPS = {
    "tick": np.int64,
    "dur": np.int64,
    "lane": np.uint32,
    "index": np.uint32,
    "missing": np.uint32,
    "bad": np.uint32,
}
Columns = dict[str, npt.NDArray[Any]]

#: Most slices of a part whose memory is kept for the next one: parts have about a million records, half of them begins.
MOST_IN_MEMORY = 3 << 18


class Rows:
    """Columns of rows that come lane after lane.

    Attributes:
        columns: by name, [n].
        counts: int64 [lanes], rows of each lane.
        base: number of the first of these lanes.
    """

    def __init__(self, columns: Columns, counts: I64, base: int = 0, used: list[int] | None = None) -> None:
        self.columns = columns
        self.counts = counts
        self.base = base
        self._used = used

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.columns[name]

    @cached_property
    def lane(self) -> U32:
        """The lane of each row, uint32 [n]."""
        return self.to_rows(np.arange(self.base, self.base + len(self.counts), dtype=np.uint32))

    def events(self, where: npt.NDArray[np.bool_] | None = None) -> list[int]:
        """Return the event numbers that occur, sorted; only in the rows under the mask if one is given."""
        if where is None and self._used is not None:
            return self._used
        used = np.zeros(1 << 16, np.bool_)
        used[self["event"] if where is None else self["event"][where]] = True
        return np.flatnonzero(used).tolist()

    def look_up(self, table: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Return a value of the event for each row, int32 [n], from a value for each event, [65536]."""
        found = core.large_memory(4 * len(self)).view(np.int32)
        core.cuda_look_up(self["event"], table, found)
        return found

    def lane_column(self, values: I64) -> Column:
        """Return a value of the lane for each row, a column, from a value for each lane, int64 [lanes]."""
        return Column.repeated((values, self.counts), lambda: self.to_rows(values))

    def to_rows(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return a value of the lane for each row, [n], from a value for each lane, [lanes]."""
        if values.dtype != np.int64:
            return np.repeat(values, self.counts)
        found = np.empty(len(self), np.int64)
        core.cuda_spread(np.ascontiguousarray(values), np.ascontiguousarray(self.counts), found)
        return found


class Outputs:
    """Columns for the core to fill; memory that no row needs is never touched.

    Args:
        lanes: lanes of the grid.
        slices: the most slices that may come.
        instants: the most instants, ends without begin among them.
        gaps: the most gaps.
    """

    def __init__(self, lanes: int, *, slices: int, instants: int, gaps: int) -> None:
        self.sizes = (slices, instants, gaps)
        self.summary = np.zeros((lanes, core.CUDA_SUMMARY_COLUMNS), np.int64)
        self.used = np.zeros(1 << 16, np.uint8)
        # Those of a lane that is longer than any part are on disk, where that is asked for (``source.disk_arrays``).
        self.slices = _columns(_SLICES, slices, core.large_memory if slices <= MOST_IN_MEMORY else _untouched)
        self.slices["flags"].fill(0)
        # Almost always 0, or empty: what comes from the system and is not touched takes no memory.
        self.slices["launch"] = np.zeros(slices, np.uint32)
        self.instants = _columns(_INSTANTS, instants, _untouched)
        self.gaps = _columns(_GAPS, gaps, _untouched)

    def arguments(self) -> tuple[Any, ...]:
        """Return the last arguments of the core's decode functions."""
        tables = (self.slices, self.instants, self.gaps)
        return (*self.sizes, self.summary, self.used, *(column for table in tables for column in table.values()))

    def done(self, result: tuple[int, int, int, int, int, int, Stamps], *, stamp_wrap: int, base: int = 0) -> Decoded:
        """Cut the columns to what was filled; ``base`` is the number of the first lane."""
        slices, instants, gaps, seen, short, step, stamps = result
        summary = dict(zip(SUMMARY, self.summary.T, strict=True))
        return Decoded(
            summary=summary,
            slices=Rows(
                {name: column[:slices] for name, column in self.slices.items()},
                summary["slices"],
                base,
                np.flatnonzero(self.used).tolist(),
            ),
            instants=Rows({n: column[:instants] for n, column in self.instants.items()}, summary["instants"], base),
            gaps={name: column[:gaps] for name, column in self.gaps.items()},
            base=base,
            seen=seen,
            below_resolution=short,
            resolution_ticks=step or None,
            stamps=stamps,
            stamp_wrap=stamp_wrap,
        )


def _room(dtype: npt.DTypeLike, length: int) -> int:
    """Return the bytes that a column takes, such that the next one begins at a cache line."""
    return -(-np.dtype(dtype).itemsize * length // 64) * 64


def _untouched(size: int) -> npt.NDArray[np.uint8]:
    return np.empty(size, np.uint8)


def _columns(
    types: Mapping[str, npt.DTypeLike], length: int, memory: Callable[[int], npt.NDArray[np.uint8]]
) -> Columns:
    """Return columns in one piece of memory, which has huge pages: small ones fault for longer than decoding takes."""
    arena = memory(sum(_room(dtype, length) for dtype in types.values()))
    found: Columns = {}
    for name, dtype in types.items():
        found[name] = arena[: np.dtype(dtype).itemsize * length].view(dtype)
        arena = arena[_room(dtype, length) :]
    return found


@dataclass
class Decoded:
    """The lanes of one buffer.

    Attributes:
        summary: by the names of ``SUMMARY``, int64 [lanes]; stamps in ticks.
        slices: ``begin`` in ticks, unwrapped inside the lane; ``dur`` in ticks, of an open slice the time for which it
            is known to have run; ``flags``, ``launch``, ``begin_index`` and ``end_index`` (positions in the lane),
            ``event``. Lane after lane, by begin record.
        instants: ``tick``, ``flags``, ``launch``, ``index``, ``event``, ``is_end`` (1: an end without begin).
        gaps: ``tick`` of the record before, ``dur`` to the record behind (-1: none is behind), ``lane``, ``index`` of
            the first missing position, ``missing`` positions, ``bad`` unreadable words among them.
        seen: flags that any slice has.
        below_resolution: slices shorter than two steps of the clock.
        resolution_ticks: what the clock counts in; None when the stamps are too few to tell: 16 random ones share a
            factor of 2 by chance once in 32768 buffers.
        stamps: what the core knows of that, to join it with other parts by ``core.cuda_common_step``.
        stamp_wrap: ticks after which a stamp repeats.
        base: number of the first of these lanes; ``gaps`` count them from 0.
    """

    summary: dict[str, I64]
    slices: Rows
    instants: Rows
    gaps: Columns
    seen: int
    below_resolution: int
    resolution_ticks: int | None
    stamps: Stamps
    stamp_wrap: int
    base: int = 0

    def pieces(self, limit: int) -> Iterator[Decoded]:
        """Yield the rows of a lane that is alone, ``limit`` of a kind at a time, in their order.

        The rows of several lanes are one piece, and so are those that are no more than a part may have. Where the
        memory is limited, all lanes of more rows are cut: who draws or writes them has several batches at a time.
        """
        most = limit if is_memory_limited() else max(limit, MOST_IN_MEMORY)
        count = max(len(self.slices), len(self.instants), len(self.gaps["tick"]))
        if len(self.summary["records"]) != 1 or count <= most:
            yield self
            return
        for at in range(0, count, limit):
            slices, instants = (_some(rows, at, at + limit) for rows in (self.slices, self.instants))
            seen = int(np.bitwise_or.reduce(slices["flags"], initial=0))
            gaps = {name: column[at : at + limit].copy() for name, column in self.gaps.items()}
            yield replace(self, summary=dict(self.summary), slices=slices, instants=instants, gaps=gaps, seen=seen)

    def move(self, turns: I64) -> None:
        """Move the ticks of each lane by so many, int64 [lanes]; lanes without records have none to move."""
        if not turns.any():
            return
        used = self.summary["records"] > 0
        for name in ("first", "last", "min", "max", "finalize"):
            self.summary[name] = np.where(used, self.summary[name] + turns, 0)
        self.slices.columns["begin"] += self.slices.to_rows(turns)
        self.instants.columns["tick"] += self.instants.to_rows(turns)
        self.gaps["tick"] += turns[self.gaps["lane"]]


def _some(rows: Rows, first: int, last: int) -> Rows:
    """Return a copy of some rows of one lane."""
    found = {name: column[first:last].copy() for name, column in rows.columns.items()}
    return Rows(found, np.array([len(next(iter(found.values())))], np.int64), rows.base)


def turns_of(summary: Mapping[str, I64], anchor: int | None, stamp_bits: int) -> tuple[I64, bool]:
    """Return by how many ticks the lanes have to move to lie on one axis: the wraps before each lane's first timestamp.

    The first timestamps of a launch follow a reference by less than a wrap period: the anchor, or else the timestamp
    after the largest pause on the circle.

    Args:
        summary: of all lanes.
        anchor: a full reading of the counter, in ticks, at or before the launch.
        stamp_bits: width of the timestamps.

    Returns:
        The distances, int64 [lanes], whole wrap periods; and whether the reference is certain, which it is not when the
        first timestamps are spread over more than half a period.
    """
    used = summary["records"] > 0
    first = summary["first"]
    turns = np.zeros(len(first), np.int64)
    certain = True
    if used.any():
        stamps = first[used]
        if anchor is None:
            start, certain = circular_start(stamps, stamp_bits)
            turns[used] = at_or_after(stamps, start, stamp_bits) - stamps
        else:
            turns[used] = at_or_after(stamps, anchor, stamp_bits) - stamps
        # A step back over the wrap may lead below zero; a counter never does.
        lowest = int((summary["min"] + turns)[used].min())
        if lowest < 0:
            turns[used] += -(lowest >> stamp_bits) << stamp_bits
    return turns, certain
