"""Sums of calls, operations or sizes that have one name: what every tally of this family adds up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lanescope.common.asof_join import Int64, Mask
from lanescope.trace import ColumnSpec

#: The columns of sums.
SUMS = (
    ColumnSpec("count", "int64", "number of calls, operations or copies, including failed ones"),
    ColumnSpec("errors", "int64", "number of failed calls or operations"),
    ColumnSpec("open", "int64", "number without a known duration; excluded from all other columns except count"),
    ColumnSpec("total", "int64", "total duration in ns; total size in bytes for section traffic"),
    ColumnSpec("average", "float64", "mean value; NULL without values", nullable=True),
    ColumnSpec("min", "int64", "minimum value; NULL without values", nullable=True),
    ColumnSpec("max", "int64", "maximum value; NULL without values", nullable=True),
)
#: A column of sums holds no more.
_LARGEST = (1 << 63) - 1


@dataclass(slots=True)
class Sums:
    """Sums of one name.

    Attributes:
        count: calls, operations or sizes.
        errors: those that failed; they add nothing to the others.
        open: those without a known value; nor do they.
        total: ns, or bytes.
        min: the same, None without a value.
        max: the same.
    """

    count: int = 0
    errors: int = 0
    open: int = 0
    total: int = 0
    min: int | None = None
    max: int | None = None

    def add(self, other: Sums) -> None:
        """Add others."""
        self.count += other.count
        self.errors += other.errors
        self.open += other.open
        self.total += other.total
        if other.min is not None and other.max is not None:
            self.min = other.min if self.min is None else min(self.min, other.min)
            self.max = other.max if self.max is None else max(self.max, other.max)

    @property
    def average(self) -> float | None:
        """Mean of the values, None without any."""
        counted = self.count - self.errors - self.open
        return self.total / counted if counted else None

    @property
    def stored(self) -> int:
        """The total as a column holds it: 63 bits at most."""
        return min(self.total, _LARGEST)


def sums_of(starts: Int64, value: Int64, known: Mask, error: Mask) -> list[Sums]:
    """Return the sums of each of several groups.

    Args:
        starts: int64 [groups], first row of each; the rows of one stand together.
        value: int64 [n], ns or bytes.
        known: bool [n], whether the value is known.
        error: bool [n], whether the call or operation failed.
    """
    if not len(starts):
        return []
    usable = known & ~error
    counted = np.add.reduceat(usable, starts, dtype=np.int64)
    errors = np.add.reduceat(error, starts, dtype=np.int64)
    sizes = np.diff(np.append(starts, len(value)))
    least = np.minimum.reduceat(np.where(usable, value, np.iinfo(np.int64).max), starts)
    most = np.maximum.reduceat(np.where(usable, value, np.iinfo(np.int64).min), starts)
    totals = _totals(np.where(usable, value, 0), starts)
    columns = (column.tolist() for column in (sizes, errors, sizes - counted - errors, least, most))
    return [
        Sums(count, failed, unknown, total, *((low, high) if count > failed + unknown else (None, None)))
        for total, count, failed, unknown, low, high in zip(totals, *columns, strict=True)
    ]


def _totals(values: Int64, starts: Int64) -> list[int]:
    """Return exact sums: of sizes they may exceed 63 bits, so they are added as floats first."""
    if float(values.astype(np.float64).sum()) < 2.0**62:
        return [int(total) for total in np.add.reduceat(values, starts)]
    high, low = np.add.reduceat(values >> 32, starts), np.add.reduceat(values & 0xFFFFFFFF, starts)
    return [(int(h) << 32) + int(lo) for h, lo in zip(high, low, strict=True)]
