"""Slices from pairs of records, with the flags of unfinished, negative and inferred ones."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lanescope.trace.schema import Flag

Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class PairedRecords(Protocol):
    """Pairs of records, as ``lanescope.common.pairing`` makes them; arrays are [pairs].

    Attributes:
        start: int64, record that starts the slice.
        end: int64, record that ends it, -1: none.
        unmatched: int64 [m], records without a partner.
        is_ambiguous: bool, whether the pair was concluded.
        is_cut: bool, whether ``end`` is only the last record before others that are missing.
    """

    @property
    def start(self) -> Int64: ...  # noqa: D102
    @property
    def end(self) -> Int64: ...  # noqa: D102
    @property
    def unmatched(self) -> Int64: ...  # noqa: D102
    @property
    def is_ambiguous(self) -> Mask: ...  # noqa: D102
    @property
    def is_cut(self) -> Mask: ...  # noqa: D102


def columns(
    pairs: PairedRecords, ts: Int64, ts_ticks: Int64 | None, flags: Any, last_known_ts: Int64 | None
) -> dict[str, Any]:
    """Return the columns of times and flags; arguments as ``TraceBuilder.add_pairs`` has them."""
    start, end = pairs.start, pairs.end
    is_open = end < 0
    is_negative = ~is_open & (ts[end] < ts[start])
    is_known = ~is_open & ~is_negative
    latest = np.full(len(start), ts.max()) if last_known_ts is None else last_known_ts
    found = np.zeros(len(start), np.uint32) | np.asarray(flags, np.uint32)
    for mask, flag in (
        (is_open, Flag.UNFINISHED),
        (pairs.is_cut, Flag.TRUNCATED),
        (is_negative, Flag.NEGATIVE_DURATION),
        (pairs.is_ambiguous, Flag.INFERRED_IDENTITY),
    ):
        found[mask] |= np.uint32(flag)
    made = {
        "ts": ts[start],
        "dur": np.where(is_known, ts[end] - ts[start], 0),
        "dur_valid": is_known,
        "flags": found,
        "last_known_ts": np.where(is_open, np.maximum(latest, ts[start]), 0),
        "last_known_ts_valid": is_open,
    }
    if ts_ticks is not None:
        made["ts_ticks"] = ts_ticks[start]
        made["dur_ticks"] = np.where(is_known, ts_ticks[end] - ts_ticks[start], 0)
        made["dur_ticks_valid"] = is_known
    return made
