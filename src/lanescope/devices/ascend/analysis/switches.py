"""What it costs cores to go from one execution to the next that waits for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class
from lanescope.devices.ascend.analysis.columns import share_column, table_of, time_column
from lanescope.devices.ascend.analysis.executions import TYPES, Executions, by_file, covered, union
from lanescope.trace import ColumnSpec, Table, TableSpec, Trace

Int64 = npt.NDArray[np.int64]

SWITCH = TableSpec(
    "ascend_switch_summary",
    "switches of one core, or of all cores of a type, to an execution that was dispatched before the last one ended",
    (
        ColumnSpec("id", "int64", "row number, dense, types first, then cores"),
        ColumnSpec("group", "utf8", "core type or core"),
        ColumnSpec("count", "int64", "number of switches"),
        time_column("total", "time from the end of an execution to the start of the next"),
        time_column("min", "shortest switch; NULL without one", nullable=True),
        time_column("median", "median switch; NULL without one", nullable=True),
        time_column("max", "longest switch; NULL without one", nullable=True),
        time_column("mean", "mean switch, rounded down; NULL without one", nullable=True),
        time_column(
            "with_ready_task", "part of total in which a task for this type of core was ready and not dispatched"
        ),
        time_column("without_ready_task", "rest of total"),
        time_column(
            "least_core",
            "smallest total of a core with executions: what switches add to the run if cores of this type limit it; "
            "NULL without executions",
            nullable=True,
        ),
        share_column("total as a fraction of the windows of the cores; NULL without a window"),
    ),
)


@frozen_class
class _Core:
    """The switches of a core.

    Attributes:
        kind: its type, name: of its lane.
        length: int64 [switches], nanoseconds.
        during: part of them with a ready task; window: of the cores; nanoseconds.
        has_executions: whether anything ran on it.
    """

    kind: int
    name: str
    length: Int64
    during: int
    window: int
    has_executions: bool


def switches(trace: Trace) -> Table:
    """Return what it costs cores to go from one execution to the next that waits for them."""
    names = trace.tracks.values("name")
    single: list[_Core] = []
    for runs in by_file(trace):
        ready, sent, uses = runs.ready_and_waiting()
        waits = [union(ready[mine], sent[mine]) for mine in uses]
        window = int(runs.ns(runs.window[1] - runs.window[0])[0])
        for lane, kind in zip(runs.lanes.tolist(), runs.lane_kind.tolist(), strict=True):
            begin, end = _switches(runs, lane)
            during = covered(waits[kind], end) - covered(waits[kind], begin) if kind >= 0 else 0 * begin
            length, has_any = runs.ns(end - begin), bool((runs.track == lane).any())
            single.append(_Core(kind, str(names[lane]), length, int(runs.ns(during).sum()), window, has_any))
    by_type = [
        _switch_row(f"all {(*TYPES, 'unknown type')[kind]}", [core for core in single if core.kind == kind])
        for kind in sorted({core.kind for core in single}, key=lambda kind: kind % 3)
    ]
    return table_of(SWITCH, [*by_type, *(_switch_row(core.name, [core]) for core in single)])


def switch_remarks(table: Table) -> Iterable[str]:
    """Yield what a switch takes."""
    rows = [row for row in table.rows() if row["group"].startswith("all ")]
    count, total = sum(row["count"] for row in rows), sum(row["total"] for row in rows)
    if not count:
        yield "no switches: no core had its next dispatch before its execution ended"
        return
    during = sum(row["with_ready_task"] for row in rows) / max(total, 1)
    yield f"a switch takes {total / count:,.0f} ns on average; for {during:.0%} of that, another task was ready"
    least = [row["least_core"] for row in rows if row["least_core"] is not None]
    yield (
        f"switches lengthen the run by {min(least):,} to {sum(least):,} ns: the least total of a core of any type, and "
        "the sum of those of each type"
    )


def _switches(runs: Executions, lane: int) -> tuple[Int64, Int64]:
    """Return start and end of the switches of a core, int64 [n]."""
    mine = slice(*np.searchsorted(runs.track, [lane, lane + 1]))
    start, end, dispatch = runs.start[mine], runs.end[mine], runs.dispatch[mine]
    reach = np.maximum.accumulate(end)[:-1] if len(end) else end
    start, dispatch = start[1:], dispatch[1:]
    is_switch = (dispatch > 0) & (dispatch < reach) & (start >= reach)
    return reach[is_switch], start[is_switch]


def _switch_row(group: str, cores: list[_Core]) -> dict[str, Any]:
    length = np.sort(np.concatenate([core.length for core in cores]))
    count, total, window = len(length), int(length.sum()), sum(core.window for core in cores)
    during = sum(core.during for core in cores)
    return {
        "group": group,
        "count": count,
        "total": total,
        "min": int(length[0]) if count else None,
        "median": int(length[(count - 1) // 2]) if count else None,
        "max": int(length[-1]) if count else None,
        "mean": total // count if count else None,
        "with_ready_task": during,
        "without_ready_task": total - during,
        "least_core": min((int(core.length.sum()) for core in cores if core.has_executions), default=None),
        "share": total / window if window else None,
    }
