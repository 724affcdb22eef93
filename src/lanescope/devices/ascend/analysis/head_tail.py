"""Head and tail of the executions by function, as percentiles, and the tail in iterations of the scheduler's loop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class
from lanescope.devices.ascend.analysis.columns import table_of, time_column
from lanescope.devices.ascend.analysis.executions import Executions, by_file
from lanescope.trace import ColumnSpec, Table, TableSpec, Trace
from lanescope.trace.column import Array, Mask

Int64 = npt.NDArray[np.int64]

_PERCENTILES = (10, 25, 50, 75, 90, 95, 99)


def _percentile_columns(what: str) -> tuple[ColumnSpec, ...]:
    return (
        ColumnSpec("id", "int64", "row number, dense: all functions first, then by descending total"),
        ColumnSpec("group", "utf8", "function name; (all) for all functions"),
        ColumnSpec("count", "int64", f"executions with a known {what}"),
        time_column("total", "total"),
        time_column("mean", "mean, rounded down"),
        *(time_column(f"p{part}", f"{part}th percentile") for part in _PERCENTILES),
        time_column("max", "maximum"),
    )


HEAD = TableSpec(
    "ascend_head_summary",
    "exposed heads of the executions of one function: from dispatch, or from the end of the previous execution of the "
    "core if that is later, to start; 0 if negative",
    _percentile_columns("head"),
)
TAIL = TableSpec(
    "ascend_tail_summary",
    "tails of the executions of one function: from end to observed end; 0 if negative",
    (
        *_percentile_columns("tail"),
        ColumnSpec(
            "loops_min",
            "float64",
            "mean number of iterations of the loop of the core's scheduler thread that started after the end, up to "
            "the one that observed it; at least so many by the recorded iterations; NULL if they are not recorded",
            nullable=True,
            unit="1",
        ),
        ColumnSpec(
            "loops_max",
            "float64",
            "the same, at most: iterations without records may lie before or after the end; NULL if not recorded",
            nullable=True,
            unit="1",
        ),
        ColumnSpec(
            "loops",
            "float64",
            "mean tail in mean iterations of the loop of the core's scheduler thread; NULL if the thread or its "
            "iterations are not recorded",
            nullable=True,
            unit="1",
        ),
    ),
)
#: The phase that observes ends, and its name in older captures.
_OBSERVING = ("complete", "poll")


@frozen_class
class _Lengths:
    """Heads or tails of executions, [n].

    Attributes:
        name: object, function.
        length: int64 nanoseconds.
        loop: int64 nanoseconds, mean iteration of the scheduler's loop, 0 where unknown.
        low, high: int64, iterations that a tail lasts, at least and at most; -1 where unknown.
    """

    name: Array
    length: Int64
    loop: Int64
    low: Int64
    high: Int64

    def where(self, mask: Mask) -> _Lengths:
        """Return those of some executions."""
        return _Lengths(self.name[mask], self.length[mask], self.loop[mask], self.low[mask], self.high[mask])


def heads(trace: Trace) -> Table:
    """Return percentiles of the exposed heads by function."""
    found = []
    for runs in by_file(trace):
        known = np.flatnonzero(runs.dispatch > 0)
        none = np.full(len(known), -1, np.int64)
        length = runs.ns(np.maximum(_exposed(runs), 0)[known])
        found.append(_Lengths(runs.name[known], length, np.zeros(len(known), np.int64), none, none))
    return _by_function(HEAD, found)


def tails(trace: Trace) -> Table:
    """Return percentiles of the tails by function."""
    loops, found = _loops(trace), []
    for runs in by_file(trace):
        known = np.flatnonzero(runs.finish > 0)
        length = runs.ns(np.maximum(runs.finish - runs.end, 0)[known])
        low, high = (count[known] for count in _iterations(trace, runs))
        found.append(_Lengths(runs.name[known], length, loops[runs.track[known]], low, high))
    return _by_function(TAIL, found)


def tail_remarks(table: Table) -> Iterable[str]:
    """Yield how many iterations of its scheduler an end waits for."""
    for row in table.rows():
        if row["group"] == "(all)" and row["loops"] is not None:
            yield f"ends are observed after {row['loops']:.1f} iterations of the scheduler's loop of mean duration"
        if row["group"] == "(all)" and row["loops_min"] is not None:
            low, high = row["loops_min"], row["loops_max"]
            yield f"by the recorded numbers of the iterations: after {low:.1f} to {high:.1f}, on average"
        if row["group"] == "(all)" and row["loops"] is None:
            yield "no tail in iterations: phases of the schedulers are not recorded (level 3)"


def _by_function(spec: TableSpec, found: list[_Lengths]) -> Table:
    """Return percentiles of lengths by function, all of them first."""
    if not sum(len(part.name) for part in found):
        return table_of(spec, [])
    parts = _Lengths(*(np.concatenate([getattr(part, name) for part in found]) for name in _COLUMNS))
    listed = [_spread(name, parts.where(parts.name == name)) for name in sorted(set(parts.name.tolist()))]
    listed.sort(key=lambda row: -row["total"])
    return table_of(spec, [_spread("(all)", parts), *listed])


_COLUMNS = ("name", "length", "loop", "low", "high")


def _exposed(runs: Executions) -> Int64:
    """Return the ticks before each execution that its core could have used for it."""
    since = np.diff(runs.start, prepend=0)
    since[1:] = runs.start[1:] - runs.end[:-1]
    is_first = np.append(True, runs.track[1:] != runs.track[:-1])[: len(runs)]
    head = runs.start - runs.dispatch
    return np.where(is_first, head, np.minimum(head, since))


def _loops(trace: Trace) -> Int64:
    """Return the mean iteration of the thread of each lane of a core in ns, int64 [tracks], 0 where unknown."""
    threads = {row["track_id"]: row["mean_iteration_ns"] or 0 for row in trace.details["ascend_threads"].rows()}
    found = np.zeros(len(trace.tracks), np.int64)
    for lane, thread in _threads(trace).items():
        found[lane] = threads[thread]
    return found


def _threads(trace: Trace) -> dict[int, int]:
    """Return the lane of the scheduler thread by the lane of each core of known thread."""
    file_of = trace.tracks.values("input_id").tolist()
    lanes = {
        (file_of[row["track_id"]], row["thread"]): row["track_id"] for row in trace.details["ascend_threads"].rows()
    }
    found = {
        row["track_id"]: lanes.get((file_of[row["track_id"]], row["thread"]))
        for row in trace.details["ascend_cores"].rows()
    }
    return {lane: thread for lane, thread in found.items() if thread is not None}


def _iterations(trace: Trace, runs: Executions) -> tuple[Int64, Int64]:
    """Return in how many iterations of the loop each end was observed, at least and at most, int64 [n], -1 unknown.

    An iteration without records leaves only its number: between two records it is not known which one an end fell into.
    """
    low, high = np.full((2, len(runs)), -1, np.int64)
    phases, slices = trace.details["ascend_phases"], trace.slices
    known = np.flatnonzero(phases.valid("loop_iter") & (phases.values("loop_iter") > 0))
    at = phases.values("slice_id")[known]
    track, begin = slices.values("track_id")[at], slices.values("ts_ticks")[at]
    end = begin + np.where(slices.valid("dur_ticks")[at], slices.values("dur_ticks")[at], 0)
    number = phases.values("loop_iter")[known].astype(np.int64)
    is_observing = np.isin(slices.column("name").texts[at], _OBSERVING)
    threads = _threads(trace)
    thread_of = np.array([threads.get(lane, -1) for lane in runs.lanes.tolist()], np.int64)
    mine = thread_of[np.searchsorted(runs.lanes, runs.track)]
    for thread in sorted(set(threads.values())):
        rows, records = np.flatnonzero((mine == thread) & (runs.finish > 0)), np.flatnonzero(track == thread)
        records = records[np.argsort(begin[records], kind="stable")]
        passes = records[is_observing[records]]
        if not len(rows) or not len(passes):
            continue
        seen = np.searchsorted(begin[passes], runs.finish[rows], side="right") - 1
        last = number[passes[np.maximum(seen, 0)]]
        before = np.searchsorted(begin[records], runs.end[rows], side="right") - 1
        first = np.where(before >= 0, number[records[np.maximum(before, 0)]], 1)
        following = records[np.minimum(before + 1, len(records) - 1)]
        later = np.where(before + 1 < len(records), number[following], last)
        reach = np.maximum.accumulate(end[records])[np.maximum(before, 0)]
        later = np.where((before >= 0) & (reach >= runs.end[rows]), first, later)
        fits = (seen >= 0) & (runs.finish[rows] <= end[passes[np.maximum(seen, 0)]]) & (first <= last)
        low[rows[fits]] = np.maximum(last - later, 0)[fits]
        high[rows[fits]] = (last - first)[fits]
    return low, high


def _spread(group: str, parts: _Lengths) -> dict[str, Any]:
    ordered, known = np.sort(parts.length), parts.loop > 0
    count, counted = len(ordered), parts.low >= 0
    return {
        "group": group,
        "count": count,
        "total": int(ordered.sum()),
        "mean": int(ordered.sum()) // count,
        **{f"p{p}": int(ordered[min(count * p // 100, count - 1)]) for p in _PERCENTILES},
        "max": int(ordered[-1]),
        "loops_min": float(parts.low[counted].mean()) if counted.any() else None,
        "loops_max": float(parts.high[counted].mean()) if counted.any() else None,
        "loops": float((parts.length[known] / parts.loop[known]).mean()) if known.any() else None,
    }
