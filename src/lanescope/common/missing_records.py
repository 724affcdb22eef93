"""Detection of missing records from the sequence numbers of their producer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lanescope.common.wrapping_counters import unwrap
from lanescope.declaration import frozen_class

if TYPE_CHECKING:
    from lanescope.trace import TraceBuilder

Ints = npt.NDArray[np.integer[Any]]
Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@frozen_class
class Gaps:
    """Gaps in the numbers of records, sorted by group and number.

    A lower bound of what is missing: records before the first or after the last one of a group leave no gap.

    Attributes:
        before: int64 [gaps], the row with the last number before the gap.
        after: int64 [gaps], the row with the first number after it.
        count: int64 [gaps], numbers missing in it, at least 1.
    """

    before: Int64
    after: Int64
    count: Int64

    def __len__(self) -> int:
        return len(self.count)

    @property
    def total(self) -> int:
        """Number of missing records."""
        return int(self.count.sum())

    def between(self, rows: Int64) -> Mask:
        """Return before which of some rows a gap lies, bool [n]: since the row before, or since the first record.

        Args:
            rows: int64 [n], rising; rows among those that have numbers.
        """
        found = np.zeros(len(rows) + 1, np.bool_)
        found[np.searchsorted(rows, self.after)] = True
        return found[:-1]

    def add_gaps(
        self,
        builder: TraceBuilder,
        tracks: Int64,
        ts: Int64,
        offsets: Int64,
        *,
        cause: str,
        stat: str,
        input_id: int = 0,
    ) -> None:
        """Append a gap to every lane that the missing records may concern, and count the records.

        Args:
            builder: where to.
            tracks: int64 [lanes], those lanes.
            ts: int64 [n], the time of each row.
            offsets: int64 [n], the byte offset of each row in the input.
            cause: of the gaps.
            stat: the declared stat that counts missing records.
            input_id: the input.
        """
        if not len(self):
            return
        lanes = len(tracks)
        start, end = ts[self.before], ts[self.after]
        builder.add_stat(
            stat,
            self.total,
            input_id=input_id,
            first_offset=int(offsets[self.after[0]]),
            first_ts=int(start[0]),
        )
        if not lanes:
            return
        builder.append(
            "gaps",
            track_id=np.tile(tracks, len(self)),
            ts=np.repeat(start, lanes),
            dur=np.repeat(np.maximum(end - start, 0), lanes),
            cause=cause,
            lost_count=np.repeat(self.count, lanes),
            input_id=input_id,
            first_offset=np.repeat(offsets[self.after], lanes),
        )


def sequence_gaps(
    counter: Ints,
    *,
    bits: int | None = None,
    period: int | None = None,
    group: Ints | None = None,
    order: Int64 | None = None,
) -> Gaps:
    """Find the gaps in numbers that count all records of a producer by one and wrap.

    Records may be out of order by less than half a period, so a gap of more than half a period cannot be told from
    disorder. Numbers that occur twice leave no gap.

    Args:
        counter: integers [n].
        bits: width of the counter, 2 to 62; or
        period: values after which it wraps, at least 3.
        group: integers [n], the producer of each record; None: one.
        order: int64 [n], the time of each record, which tells a wrap from disorder; None: records are in the order of
            their times.

    Complexity:
        O(n) where records stand by group and number without a gap, else two sorts.

    Example:
        >>> gaps = sequence_gaps(np.array([14, 15, 1, 2]), bits=4)
        >>> gaps.before.tolist(), gaps.after.tolist(), gaps.count.tolist()
        ([1], [2], [1])
    """
    if _is_dense(counter, group):
        none = np.empty(0, np.int64)
        return Gaps(none, none, none)
    producer = np.zeros(len(counter), np.int64) if group is None else group
    by_time = np.argsort(producer, kind="stable") if order is None else np.lexsort((order, producer))
    values = np.empty(len(counter), np.int64)
    half = ((1 << bits if bits is not None else period or 0) - 1) // 2
    values[by_time] = unwrap(counter[by_time], bits=bits, period=period, group=producer[by_time], step_back=half)
    rows = np.lexsort((values, producer))
    step = np.diff(values[rows])
    at = np.flatnonzero((np.diff(producer[rows]) == 0) & (step > 1))
    return Gaps(rows[at], rows[at + 1], step[at] - 1)


def drop_gaps(dropped: Ints, *, bits: int | None = None, period: int | None = None) -> Gaps:
    """Find the gaps in the records of a producer that writes into each how many it has dropped so far.

    What it dropped before its first record leaves no gap: it is the counter of that record, where that starts at 0.

    Args:
        dropped: integers [n], the counter in each record, in the order in which the producer wrote them.
        bits: width of the counter, 1 to 64; or
        period: values after which it wraps.

    Example:
        >>> gaps = drop_gaps(np.array([250, 250, 2, 3]), bits=8)
        >>> gaps.before.tolist(), gaps.after.tolist(), gaps.count.tolist()
        ([1, 2], [2, 3], [8, 1])
    """
    step = np.diff(unwrap(dropped, bits=bits, period=period))
    at = np.flatnonzero(step)
    return Gaps(at, at + 1, step[at])


def _is_dense(counter: Ints, group: Ints | None) -> bool:
    """Return whether rows are grouped and count up one by one, as a producer without losses writes them."""
    follows = counter[1:] == counter[:-1] + 1
    if group is None:
        return bool(follows.all())
    return bool(((group[1:] > group[:-1]) | (follows & (group[1:] == group[:-1]))).all())
