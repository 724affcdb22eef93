"""Stats counted in any order and added to a trace in the order of their declarations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lanescope.trace.stats import CORE_STATS

if TYPE_CHECKING:
    from lanescope.trace import StatSpec, TraceBuilder

Int64 = npt.NDArray[np.int64]
#: Offsets or times by row: an array, or a function for what is costly to know of all rows.
OfRow = npt.NDArray[np.integer[Any]] | Callable[[int], int]


class _Count:
    def __init__(self, count: int, offset: int | None, ts: int | None) -> None:
        self.count, self.offset, self.ts = count, offset, ts


class StatTally:
    """Counts stats with the place of the first, per lane where that is known.

    The order in which stats are emitted does not depend on the order in which they were met, so that it is the same
    however an input is cut into parts. The place is that of the first call: parts are counted in their order, whoever
    decoded them.

    Args:
        specs: the stats of the family; the core stats follow them.
    """

    def __init__(self, specs: Sequence[StatSpec]) -> None:
        self._order = {spec.name: place for place, spec in enumerate((*specs, *CORE_STATS))}
        self._counts: dict[tuple[str, int | None], _Count] = {}

    def add(
        self,
        name: str,
        count: int = 1,
        *,
        offset: int | None = None,
        ts: int | None = None,
        track: int | None = None,
        by_offset: bool = False,
    ) -> None:
        """Count a stat; a count of 0 counts nothing.

        Args:
            name: of a declared stat.
            count: how often.
            offset: byte offset of the first in the input.
            ts: time of the first.
            track: the track that it concerns.
            by_offset: the first is that of the lowest offset, where several calls count each part of the input.
        """
        if not count:
            return
        before = self._counts.get((name, track))
        if before is None:
            self._counts[name, track] = _Count(count, offset, ts)
            return
        before.count += count
        if by_offset and offset is not None and before.offset is not None and offset < before.offset:
            before.offset, before.ts = offset, ts

    def add_times(self, name: str, ts: Int64) -> None:
        """Count a stat at each of some times, int64 [n], the first one first."""
        self.add(name, len(ts), ts=int(ts[0]) if len(ts) else None)

    def add_rows(
        self,
        name: str,
        rows: npt.NDArray[Any],
        *,
        offset: OfRow | None = None,
        ts: OfRow | None = None,
        track: Int64 | None = None,
        by_offset: bool = False,
    ) -> None:
        """Count rows, with the place of the first; with ``track`` those of each track on their own.

        Args:
            name: of a declared stat.
            rows: bool [n], which rows to count; or their numbers, int64 [m], the first one first.
            offset: [n], byte offset of each row, or a function of a row.
            ts: [n], time of each row, or a function of a row.
            track: int64 [n], the track of each row.
            by_offset: as ``add`` takes it, without ``track``.
        """
        is_mask = rows.dtype == np.bool_
        count = int(np.count_nonzero(rows)) if is_mask else len(rows)
        if not count:
            return
        if track is None:
            row = int(rows.argmax() if is_mask else rows[0])
            self.add(name, count, offset=_at(offset, row), ts=_at(ts, row), by_offset=by_offset)
            return
        found = np.flatnonzero(rows) if is_mask else rows
        tracks, first, counts = np.unique(track[found], return_index=True, return_counts=True)
        for of, row, number in zip(tracks.tolist(), found[first].tolist(), counts.tolist(), strict=True):
            self.add(name, number, offset=_at(offset, row), ts=_at(ts, row), track=of)

    def emit(self, builder: TraceBuilder, input_id: int | None, *, zero: int = 0) -> None:
        """Add everything that was counted to a trace, in the order of the declarations.

        Args:
            builder: where to.
            input_id: the input that it was counted in.
            zero: what the times of the trace count from, on the scale of those given.
        """
        for (name, track), found in sorted(self._counts.items(), key=lambda item: self._order[item[0][0]]):
            ts = None if found.ts is None else found.ts - zero
            builder.add_stat(
                name, found.count, track_id=track, input_id=input_id, first_offset=found.offset, first_ts=ts
            )


def _at(values: OfRow | None, row: int) -> int | None:
    if values is None:
        return None
    return values(row) if callable(values) else int(values[row])
