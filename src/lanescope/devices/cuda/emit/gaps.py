"""What is not known of lanes, and what is: gaps, coverage, one row of details for each."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.cuda.emit.trace_assembly import TraceAssembly
from lanescope.devices.cuda.formats.lanes import Decoded
from lanescope.devices.cuda.schema import LANES

I64 = npt.NDArray[np.int64]


def add_overrun_gaps(making: TraceAssembly) -> None:
    """Add a gap after each lane that dropped records; a lane that is exactly full may have dropped some."""
    summary = making.summary
    full = np.flatnonzero(summary["full"])
    lost = making.grid.lost
    exact = np.zeros(len(full), np.bool_) if lost is None else lost[full] > 0
    # A lane that is just full may lack nothing: what shows a loss are open regions, or a finalize that others have.
    lacks = exact | (summary["open"][full] > 0) | ((lost is None) & bool(summary["finalizes"].any()))
    if not lacks.all():
        some = full[~lacks]
        at = making.lane_ns(some[:1], summary["last"][some[:1]]) - making.t0
        making.stats.add("cuda_lane_may_be_lost", len(some), ts=int(at[0]))
    full, exact = full[lacks], exact[lacks]
    if not len(full):
        return
    is_open = summary["open"][full]
    last = making.lane_ns(full, summary["last"][full]) - making.t0
    ended = making.extent.ended[full] & exact
    making.builder.append(
        "gaps",
        track_id=making.tree.lane[full],
        ts=last,
        dur=np.where(ended, np.maximum(making.end[full] - making.t0 - last, 0), 0),
        dur_valid=ended,
        cause="overrun",
        lost_count=np.where(exact, lost[full], is_open) if lost is not None else is_open,
        lost_count_valid=exact | (is_open > 0),
        input_id=making.input_id,
    )
    if not exact.all():
        # What a probe counted itself needs no guess.
        first = int(last[exact.argmin()])
        making.stats.add("cuda_lane_full", int(np.count_nonzero(~exact)), ts=first)
        making.stats.add("cuda_dropped_at_least", int(is_open[~exact].sum()), ts=first)


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


def lane_details(making: TraceAssembly) -> None:
    """Add the coverage and the details of every lane that anything is known of."""
    summary, grid, tree = making.summary, making.grid, making.tree
    used = np.flatnonzero(making.placed)
    if len(used):
        making.builder.add_coverage(tree.lane[used], making.begin[used] - making.t0, making.end[used] - making.t0)
    known = np.flatnonzero(making.known)
    if not len(known):
        return
    has_time = summary["records"][known] > 0

    columns: dict[str, Any] = {}
    for name in ("sm", "warp", "cluster_rank"):
        column = getattr(grid, name)
        if column is not None:
            columns[name] = np.maximum(column[known], 0)
            columns[f"{name}_valid"] = column[known] >= 0
    for name in ("grid_id", "capacity"):
        column = getattr(grid, name)
        columns[name] = None if column is None else column[known]
    for name, column in (("attempted", grid.offered), ("dropped", grid.lost)):
        columns[name] = None if column is None else column[known]
        if column is not None and grid.counted is not None:
            columns[f"{name}_valid"] = grid.counted[known]

    def time(name: str) -> I64:
        return making.lane_ns(known, summary[name][known]) - making.t0

    # Layouts without counts show only which ends a full lane lacks.
    least = grid.lost if grid.lost is not None else np.where(summary["full"] != 0, summary["open"], 0)
    finalized = summary["finalizes"][known] > 0
    making.builder.append(
        LANES.name,
        track_id=tree.lane[known],
        block=grid.block[known],
        group=grid.group[known],
        first_ts=time("first"),
        first_ts_valid=has_time,
        last_ts=time("last"),
        last_ts_valid=has_time,
        finalize_ts=time("finalize"),
        finalize_ts_valid=finalized,
        unreadable=summary["bad"][known],
        unmatched_ends=summary["unmatched"][known],
        unfinished_regions=summary["open"][known],
        is_full=summary["full"][known] != 0,
        dropped_at_least=least[known],
        missing_slots=summary["missing"][known],
        clock_reversals=summary["backward"][known],
        **{name: summary[name][known] for name in ("records", "launches", "wraps")},
        **columns,
    )
