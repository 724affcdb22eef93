"""What is not known of lanes, and what is: gaps, coverage, one row of details for each."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.cuda.emit.trace_assembly import TraceAssembly
from lanescope.devices.cuda.formats.lanes import Decoded
from lanescope.devices.cuda.interpret.loss_bounds import LossBounds, bounds
from lanescope.devices.cuda.schema import LANES
from lanescope.trace import Column

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def bounds_of(making: TraceAssembly) -> LossBounds:
    """Return what the lanes of a buffer lost."""
    is_ring = making.buffer.describe().get("overflow_policy") == "ring"
    return bounds(making.grid, making.summary, is_ring=is_ring)


def add_overrun_gaps(making: TraceAssembly, found: LossBounds) -> None:
    """Add a gap to each lane that dropped records; a lane that is exactly full may have dropped some."""
    summary, lost = making.summary, making.grid.lost
    doubtful = np.flatnonzero(found.may_have_lost)
    if len(doubtful):
        at = making.lane_ns(doubtful[:1], summary["last"][doubtful[:1]]) - making.t0
        making.stats.add("cuda_lane_may_be_lost", len(doubtful), ts=int(at[0]))
    # Where records of a ring are known to be overwritten, the first record of its lane has the gap.
    has_gap = (
        np.zeros(len(summary["full"]), np.int64) if making.buffer.overwritten is None else making.buffer.overwritten
    )
    full = np.flatnonzero(found.has_lost & (has_gap == 0) & making.known)
    if not len(full):
        return
    counted = np.zeros(len(full), np.int64) if lost is None else lost[full]
    exact, least = counted > 0, found.at_least[full]
    is_ring = making.buffer.describe().get("overflow_policy") == "ring"
    at = making.lane_ns(full, summary["first" if is_ring else "last"][full]) - making.t0
    ended = making.extent.ended[full] & exact & (not is_ring)
    making.builder.append(
        "gaps",
        track_id=making.tree.lane[full],
        ts=at,
        dur=np.where(ended, np.maximum(making.end[full] - making.t0 - at, 0), 0),
        dur_valid=ended,
        cause="overrun",
        lost_count=least,
        lost_count_valid=least > 0,
        input_id=making.input_id,
    )
    if not exact.all():
        # What a probe counted itself needs no guess.
        first = int(at[exact.argmin()])
        making.stats.add("cuda_lane_full", int(np.count_nonzero(~exact)), ts=first)
    making.stats.add("cuda_dropped_at_least", int((least - counted).sum()), ts=int(at[(least > counted).argmax()]))


def missing(making: TraceAssembly, decoded: Decoded) -> None:
    """Add a gap for each run of positions without a readable record."""
    rows = decoded.gaps
    lane, index = rows["lane"].astype(np.int64) + decoded.base, rows["index"]
    if not len(lane):
        return
    tick = rows["tick"]
    resumed = rows["dur"] >= 0
    has_time = making.summary["records"][lane] > 0
    ts = np.where(has_time, making.lane_ns(lane, tick) - making.t0, 0)
    dur = making.lane_ns(lane, tick + np.maximum(rows["dur"], 0)) - making.t0 - ts
    absent = rows["missing"].astype(np.int64)
    lost, empty = absent, absent - rows["bad"]
    cause = np.where(rows["bad"] > 0, "bad_bytes", "hole")
    ring = making.buffer.overwritten
    if ring is not None:
        # Position 0 represents all overwritten records, from the start of the lane on.
        overrun = (index == 0) & (ring[lane] > 0)
        assert making.grid.lost is not None
        dropped = making.grid.lost if making.grid.torn is None else making.grid.lost + making.grid.torn
        lost = np.where(overrun, absent - 1 + dropped[lane], absent)
        empty = empty - overrun
        cause = np.where(overrun, "overrun", cause)
        begun = overrun & making.placed[lane]
        dur = np.where(begun, dur + np.maximum(ts - (making.begin[lane] - making.t0), 0), dur)
        ts = np.where(begun, np.minimum(making.begin[lane] - making.t0, ts), ts)
    causes = making.builder.dictionary("gaps", "cause")
    codes = np.zeros(len(cause), np.int32)
    for text in ("bad_bytes", "hole", "overrun"):
        if (cause == text).any():
            codes[cause == text] = causes.code(text)
    making.builder.append(
        "gaps",
        track_id=making.tree.lane[lane],
        ts=ts,
        dur=np.where(resumed, dur, 0),
        dur_valid=resumed,
        cause=codes,
        lost_count=lost,
        input_id=making.input_id,
        first_offset=making.offsets(lane, index),
    )
    if (empty > 0).any():
        at = int((empty > 0).argmax())
        making.stats.add(
            "cuda_hole",
            int(empty.sum()),
            offset=int(making.offsets(lane[at : at + 1], index[at : at + 1])[0]),
            ts=int(rows["tick"][at] - making.t0) if has_time[at] and not making.buffer.in_cycles else None,
        )


def _coverage(making: TraceAssembly, part: slice) -> None:
    """Add when lanes were recorded; of a million lanes nothing is kept that can be computed again."""
    placed, t0, span, lanes = making.placed[part], making.t0, making.span, making.tree.lane[part]
    count = int(np.count_nonzero(placed))
    if count:
        making.builder.append(
            "coverage",
            track_id=Column.derived(count, lambda: lanes[placed]),
            ts=Column.derived(count, lambda: span["begin"][part][placed] - t0),
            dur=Column.derived(count, lambda: (span["end"] - span["begin"])[part][placed]),
        )


def lane_details(making: TraceAssembly, found: LossBounds, part: slice) -> None:
    """Add the coverage and the details of every lane of a part that anything is known of."""
    summary, grid, tree = making.summary, making.grid, making.tree
    _coverage(making, part)
    is_known = making.known[part]
    count = int(np.count_nonzero(is_known))
    if not count:
        return
    known: I64 | slice = part if count == len(is_known) else part.start + np.flatnonzero(is_known)

    def of(column: I64) -> Any:
        """Return the values of the known lanes; what is 0 in all of them is one value for a million lanes."""
        values = column[known]
        return values if values.any() else 0

    has_time = summary["records"][known] > 0
    columns: dict[str, Any] = {}
    for name in ("sm", "warp", "cluster_rank"):
        column = getattr(grid, name)
        if column is not None:
            columns[name] = np.maximum(column[known], 0)
            columns[f"{name}_valid"] = column[known] >= 0
    for name in ("grid_id", "capacity"):
        column = getattr(grid, name)
        columns[name] = None if column is None else of(column)
    for name, column in (("attempted", grid.offered), ("dropped", grid.lost)):
        columns[name] = None if column is None else of(column)
        if column is not None and grid.counted is not None:
            columns[name], columns[f"{name}_valid"] = column[known], grid.counted[known]

    def time(name: str, valid: Mask) -> Column:
        def made() -> I64:
            lanes = np.arange(len(grid), dtype=np.int64)[known]
            return np.where(valid, making.lane_ns(lanes, summary[name][known]) - making.t0, 0)

        return Column.derived(count, made, valid=valid)

    finalized = summary["finalizes"][known] > 0
    making.builder.append(
        LANES.name,
        track_id=tree.lane[known],
        block=of(grid.block),
        group=of(grid.group),
        first_ts=time("first", has_time),
        last_ts=time("last", has_time),
        finalize_ts=time("finalize", finalized) if finalized.any() else None,
        unreadable=of(summary["bad"]),
        unmatched_ends=of(summary["unmatched"]),
        unfinished_regions=of(summary["open"]),
        is_full=summary["full"][known] != 0,
        dropped_at_least=of(found.at_least),
        missing_slots=of(summary["missing"]),
        clock_reversals=of(summary["backward"]),
        **{name: of(summary[name]) for name in ("records", "launches", "wraps")},
        **columns,
    )
