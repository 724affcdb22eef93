"""What the schedulers cost: the verdict, switches of cores, idle time by cause, head and tail by function, rounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.devices.ascend.analysis.executions import (
    TYPES,
    Executions,
    by_file,
    covered,
    lanes_without_some,
    union,
)
from lanescope.trace import ColumnSpec, Table, TableSpec, Trace
from lanescope.trace.column import Array, Mask

Int64 = npt.NDArray[np.int64]

#: Shares of the window with idle cores and ready tasks from which a run is bound, or partly bound, by its scheduler.
BOUND, PARTLY_BOUND = 0.25, 0.08
_PERCENTILES = (10, 25, 50, 75, 90, 95, 99)


def _time(name: str, doc: str, *, nullable: bool = False) -> ColumnSpec:
    return ColumnSpec(name, "int64", doc, unit="ns", nullable=nullable)


def _share(doc: str) -> ColumnSpec:
    return ColumnSpec("share", "float64", doc, nullable=True, unit="1")


def _table(spec: TableSpec, listed: list[dict[str, Any]]) -> Table:
    rows = [{"id": number, **row} for number, row in enumerate(listed)]
    return Table.from_arrays(spec, {name: [row[name] for row in rows] for name in spec.names})


# --- verdict ----------------------------------------------------------------------------------------------------------

VERDICT = TableSpec(
    "ascend_overhead_summary",
    "time in which cores idled while tasks were ready and not dispatched",
    (
        ColumnSpec("id", "int64", "row number, dense"),
        ColumnSpec(
            "group",
            "utf8",
            "aic, aiv: idle cores and ready tasks of that type; all types: of every type; any type: some type has "
            "ready tasks, and each such type has idle cores",
        ),
        _time("window", "time from the first start to the last end of all cores"),
        _time("overhead", "time in which the condition holds"),
        _share("overhead as a fraction of the window; NULL without a window"),
    ),
)


def verdict(trace: Trace) -> Table:
    """Return for how long cores idled while tasks were ready; no rows without dispatches and a task graph."""
    sums: dict[str, list[int]] = {}
    for runs in by_file(trace):
        if not runs.has_graph or not (runs.dispatch > 0).any():
            continue
        window = int(runs.ns(runs.window[1] - runs.window[0])[0])
        for group, length in _overhead(runs).items():
            mine = sums.setdefault(group, [0, 0])
            mine[0] += window
            mine[1] += int(runs.ns(length)[0])
    listed = [
        {"group": group, "window": window, "overhead": time, "share": time / window if window else None}
        for group, (window, time) in sums.items()
    ]
    return _table(VERDICT, listed)


def verdict_remarks(table: Table) -> Iterable[str]:
    """Yield the verdict as a sentence."""
    share = next((row["share"] for row in table.rows() if row["group"] == "any type"), None)
    if share is None:
        yield "no verdict: it takes dispatches (level 2) and a task graph (deps.json)"
        return
    name = "scheduler-bound" if share >= BOUND else "partly scheduler-bound" if share >= PARTLY_BOUND else ""
    name = name or "bound by computation or dependencies"
    yield f"verdict: {name}: for {share:.1%} of the time, cores were idle while tasks were ready and not dispatched"


def _overhead(runs: Executions) -> dict[str, int]:
    """Return for how many ticks each condition holds."""
    low, high, uses = runs.ready_and_waiting()
    present = [code for code in range(len(TYPES)) if (runs.kind == code).any()]
    edges = distinct(np.clip(np.concatenate([runs.window, runs.start, runs.end, low, high]), *runs.window))
    if len(edges) < 2:
        return {}
    length = np.diff(edges)
    idle, waits = {}, {}
    for code in present:
        mine = runs.kind == code
        start, end = (np.clip(stamps[mine], *runs.window) for stamps in (runs.start, runs.end))
        running = _level(edges, start, end)
        idle[code] = running < len(distinct(runs.track[mine]))
        waits[code] = _level(edges, low[uses[code]], high[uses[code]]) > 0
    both = {code: idle[code] & waits[code] for code in present}
    held = np.logical_and.reduce([idle[code] | ~waits[code] for code in present])
    found = {TYPES[code]: int(length[both[code]].sum()) for code in present}
    found["all types"] = int(length[np.logical_and.reduce(list(both.values()))].sum())
    found["any type"] = int(length[held & np.logical_or.reduce(list(waits.values()))].sum())
    return found


def _level(edges: Int64, low: Int64, high: Int64) -> Int64:
    """Return how many intervals cover each stretch between edges, int64 [edges - 1]; their ends are edges."""
    steps = np.zeros(len(edges), np.int64)
    np.add.at(steps, np.searchsorted(edges, low), 1)
    np.add.at(steps, np.searchsorted(edges, high), -1)
    return np.cumsum(steps)[:-1]


# --- idle time by cause -----------------------------------------------------------------------------------------------

_CAUSES = ("busy", "launch", "scheduler_late", "no_ready_task", "unknown")
CORE_IDLE = TableSpec(
    "ascend_core_idle_summary",
    "time of one core, or of all cores of a type: busy and the four causes of idle time add up to the window",
    (
        ColumnSpec("id", "int64", "row number, dense, types first, then cores"),
        ColumnSpec("group", "utf8", "core type or core"),
        _time("window", "time from the first start to the last end of all cores"),
        _time("busy", "time with an execution"),
        _time("launch", "idle time in which the next execution was already dispatched to the core"),
        _time("scheduler_late", "other idle time in which a task for this type of core was ready and not dispatched"),
        _time("no_ready_task", "other idle time: no task for this type of core is known to be ready"),
        _time("unknown", "idle time without a known cause: no task graph, dispatch unknown, implausible timestamps"),
        _share("busy time as a fraction of the window; NULL without a window"),
    ),
)


def core_idle(trace: Trace) -> Table:
    """Return why each core was idle, from what it could have run, not from what it ran next; sums by type first."""
    names = trace.tracks.values("name")
    cores = trace.details["ascend_cores"]
    is_doubtful = cores.values("suspect_executions") > 0
    is_doubtful |= lanes_without_some(trace, "ascend_cores", "ascend_tasks", "executions")
    doubtful = set(cores.values("track_id")[is_doubtful].tolist())
    single: list[tuple[int, str, Int64]] = []
    for runs in by_file(trace):
        lanes, parts = _causes(runs, doubtful)
        for lane, kind, row in zip(lanes.tolist(), runs.lane_kind.tolist(), runs.parts_ns(parts), strict=True):
            single.append((kind, str(names[lane]), row))
    by_type = [
        (f"all {(*TYPES, 'unknown type')[kind]}", np.sum([row for code, _, row in single if code == kind], axis=0))
        for kind in sorted({kind for kind, _, _ in single}, key=lambda kind: kind % 3)
    ]
    listed = []
    for group, row in (*by_type, *((name, row) for _, name, row in single)):
        window = int(row.sum())
        parts_of = dict(zip(_CAUSES, row.tolist(), strict=True))
        share = parts_of["busy"] / window if window else None
        listed.append({"group": group, "window": window, **parts_of, "share": share})
    return _table(CORE_IDLE, listed)


def core_idle_remarks(table: Table) -> Iterable[str]:
    """Yield which cause is the largest."""
    rows = [row for row in table.rows() if row["group"].startswith("all ")]
    sums = {name: sum(row[name] for row in rows) for name in _CAUSES[1:]}
    idle = sum(sums.values())
    if idle:
        largest = sorted(sums.items(), key=lambda cause: -cause[1])
        text = ", ".join(f"{name.replace('_', ' ')} {time / idle:.0%}" for name, time in largest)
        yield f"idle time of all cores: {text}"


def _causes(runs: Executions, doubtful: set[int]) -> tuple[Int64, Int64]:
    """Return the cores, and ticks of each in each of ``_CAUSES``, int64 [cores, 5]; they add up to the window."""
    low, high = runs.window
    ready, sent, uses = runs.ready_and_waiting()
    parts = np.zeros((len(runs.lanes), len(_CAUSES)), np.int64)
    waits = [union(ready[mine], sent[mine]) for mine in uses]
    for place, (lane, kind) in enumerate(zip(runs.lanes.tolist(), runs.lane_kind.tolist(), strict=True)):
        mine = slice(*np.searchsorted(runs.track, [lane, lane + 1]))
        start, end = np.clip(runs.start[mine], low, high), np.clip(runs.end[mine], low, high)
        dispatch = runs.dispatch[mine]
        free = np.maximum.accumulate(np.append(low, end))
        gap, until = free, np.append(start, high)
        # The execution that ends a gap, if any, and from where on it was on its way.
        on_its_way = np.append(np.where(dispatch > 0, dispatch, start), high)
        is_gap = until > gap
        gap, until = gap[is_gap], until[is_gap]
        launch = np.clip(on_its_way[is_gap], gap, until)
        knows = np.append(dispatch > 0, True)[is_gap] & (runs.has_graph and kind >= 0 and lane not in doubtful)
        late = np.zeros(len(gap), np.int64)
        if kind >= 0:
            late = covered(waits[kind], launch) - covered(waits[kind], gap)
        before = launch - gap
        parts[place, 0] = high - low - int((until - gap).sum())
        parts[place, 1] = int((until - launch).sum())
        parts[place, 2] = int(late[knows].sum())
        parts[place, 3] = int((before - late)[knows].sum())
        parts[place, 4] = int(before[~knows].sum())
    return runs.lanes, parts


# --- switches ---------------------------------------------------------------------------------------------------------

SWITCH = TableSpec(
    "ascend_switch_summary",
    "switches of one core, or of all cores of a type, to an execution that was dispatched before the last one ended",
    (
        ColumnSpec("id", "int64", "row number, dense, types first, then cores"),
        ColumnSpec("group", "utf8", "core type or core"),
        ColumnSpec("count", "int64", "number of switches"),
        _time("total", "time from the end of an execution to the start of the next"),
        _time("min", "shortest switch; NULL without one", nullable=True),
        _time("median", "median switch; NULL without one", nullable=True),
        _time("max", "longest switch; NULL without one", nullable=True),
        _time("mean", "mean switch, rounded down; NULL without one", nullable=True),
        _time("with_ready_task", "part of total in which a task for this type of core was ready and not dispatched"),
        _time("without_ready_task", "rest of total"),
        _share("total as a fraction of the windows of the cores; NULL without a window"),
    ),
)


def switches(trace: Trace) -> Table:
    """Return what it costs cores to go from one execution to the next that waits for them."""
    names = trace.tracks.values("name")
    single: list[tuple[int, str, Int64, int, int]] = []  # type, name, switches, with a ready task, window
    for runs in by_file(trace):
        ready, sent, uses = runs.ready_and_waiting()
        waits = [union(ready[mine], sent[mine]) for mine in uses]
        window = int(runs.ns(runs.window[1] - runs.window[0])[0])
        for lane, kind in zip(runs.lanes.tolist(), runs.lane_kind.tolist(), strict=True):
            begin, end = _switches(runs, lane)
            during = covered(waits[kind], end) - covered(waits[kind], begin) if kind >= 0 else 0 * begin
            single.append((kind, str(names[lane]), runs.ns(end - begin), int(runs.ns(during).sum()), window))
    by_type = [
        _switch_row(f"all {(*TYPES, 'unknown type')[kind]}", [row for row in single if row[0] == kind])
        for kind in sorted({row[0] for row in single}, key=lambda kind: kind % 3)
    ]
    return _table(SWITCH, [*by_type, *(_switch_row(row[1], [row]) for row in single)])


def switch_remarks(table: Table) -> Iterable[str]:
    """Yield what a switch takes."""
    rows = [row for row in table.rows() if row["group"].startswith("all ")]
    count, total = sum(row["count"] for row in rows), sum(row["total"] for row in rows)
    if not count:
        yield "no switches: no core had its next dispatch before its execution ended"
        return
    during = sum(row["with_ready_task"] for row in rows) / max(total, 1)
    yield f"a switch takes {total / count:,.0f} ns on average; for {during:.0%} of that, another task was ready"


def _switches(runs: Executions, lane: int) -> tuple[Int64, Int64]:
    """Return start and end of the switches of a core, int64 [n]."""
    mine = slice(*np.searchsorted(runs.track, [lane, lane + 1]))
    start, end, dispatch = runs.start[mine], runs.end[mine], runs.dispatch[mine]
    reach = np.maximum.accumulate(end)[:-1] if len(end) else end
    start, dispatch = start[1:], dispatch[1:]
    is_switch = (dispatch > 0) & (dispatch < reach) & (start >= reach)
    return reach[is_switch], start[is_switch]


def _switch_row(group: str, rows: list[tuple[int, str, Int64, int, int]]) -> dict[str, Any]:
    length = np.sort(np.concatenate([row[2] for row in rows]))
    count, total, window = len(length), int(length.sum()), sum(row[4] for row in rows)
    during = sum(row[3] for row in rows)
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
        "share": total / window if window else None,
    }


# --- head and tail ----------------------------------------------------------------------------------------------------


def _percentile_columns(what: str) -> tuple[ColumnSpec, ...]:
    return (
        ColumnSpec("id", "int64", "row number, dense: all functions first, then by descending total"),
        ColumnSpec("group", "utf8", "function name; (all) for all functions"),
        ColumnSpec("count", "int64", f"executions with a known {what}"),
        _time("total", "total"),
        _time("mean", "mean, rounded down"),
        *(_time(f"p{part}", f"{part}th percentile") for part in _PERCENTILES),
        _time("max", "maximum"),
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
            "loops",
            "float64",
            "mean tail in mean iterations of the loop of the core's scheduler thread; NULL if the thread or its "
            "iterations are not recorded",
            nullable=True,
            unit="1",
        ),
    ),
)


def heads(trace: Trace) -> Table:
    """Return percentiles of the exposed heads by function."""
    found = []
    for runs in by_file(trace):
        known = np.flatnonzero(runs.dispatch > 0)
        found.append((runs.name[known], runs.ns(np.maximum(_exposed(runs), 0)[known]), np.zeros(len(known), np.int64)))
    return _by_function(HEAD, found)


def tails(trace: Trace) -> Table:
    """Return percentiles of the tails by function."""
    loops, found = _loops(trace), []
    for runs in by_file(trace):
        known = np.flatnonzero(runs.finish > 0)
        length = runs.ns(np.maximum(runs.finish - runs.end, 0)[known])
        found.append((runs.name[known], length, loops[runs.track[known]]))
    return _by_function(TAIL, found)


def tail_remarks(table: Table) -> Iterable[str]:
    """Yield how many iterations of its scheduler an end waits for."""
    for row in table.rows():
        if row["group"] == "(all)" and row["loops"] is not None:
            yield f"ends are observed after {row['loops']:.1f} iterations of the scheduler's loop, on average"


def _by_function(spec: TableSpec, found: list[tuple[Array, Int64, Int64]]) -> Table:
    """Return percentiles of lengths in ns.

    Args:
        spec: of the table.
        found: names, lengths and iterations of the loop in ns (0: unknown) of executions, [n] each.
    """
    if not sum(len(row[0]) for row in found):
        return _table(spec, [])
    names, length, loop = (np.concatenate([row[column] for row in found]) for column in range(3))
    listed = []
    for name in sorted(set(names.tolist())):
        which = names == name
        listed.append(_spread(name, length[which], loop[which]))
    listed.sort(key=lambda row: -row["total"])
    return _table(spec, [_spread("(all)", length, loop), *listed])


def _exposed(runs: Executions) -> Int64:
    """Return the ticks before each execution that its core could have used for it."""
    since = np.diff(runs.start, prepend=0)
    since[1:] = runs.start[1:] - runs.end[:-1]
    is_first = np.append(True, runs.track[1:] != runs.track[:-1])[: len(runs)]
    head = runs.start - runs.dispatch
    return np.where(is_first, head, np.minimum(head, since))


def _loops(trace: Trace) -> Int64:
    """Return the mean iteration of the thread of each lane of a core in ns, int64 [tracks], 0 where unknown."""
    file_of = trace.tracks.values("input_id")
    threads = {
        (int(file_of[row["track_id"]]), row["thread"]): row["mean_iteration_ns"] or 0
        for row in trace.details["ascend_threads"].rows()
    }
    found = np.zeros(len(trace.tracks), np.int64)
    for row in trace.details["ascend_cores"].rows():
        found[row["track_id"]] = threads.get((int(file_of[row["track_id"]]), row["thread"]), 0)
    return found


def _spread(group: str, length: Int64, loop: Int64) -> dict[str, Any]:
    ordered, known = np.sort(length), loop > 0
    count = len(ordered)
    return {
        "group": group,
        "count": count,
        "total": int(ordered.sum()),
        "mean": int(ordered.sum()) // count,
        **{f"p{p}": int(ordered[min(count * p // 100, count - 1)]) for p in _PERCENTILES},
        "max": int(ordered[-1]),
        "loops": float((length[known] / loop[known]).mean()) if known.any() else None,
    }


# --- rounds -----------------------------------------------------------------------------------------------------------

ROUNDS = TableSpec(
    "ascend_round_summary",
    "one run of the program within a records file",
    (
        ColumnSpec("id", "int64", "row number, dense, by start"),
        ColumnSpec("group", "utf8", "number of the run; the only one of a file that does not number them is 0"),
        ColumnSpec("executions", "int64", "number of executions"),
        ColumnSpec("tasks", "int64", "number of tasks with executions"),
        _time("start", "time from the first start of all runs to the first start"),
        _time("length", "time from the first start to the last end"),
        _time(
            "pause",
            "time from the last end of the previous run; negative if they overlap; NULL for the first",
            nullable=True,
        ),
        _time("period", "time from the first start of the previous run; NULL for the first", nullable=True),
        _time("busy", "total of the executions"),
        _share("busy as a fraction of the length times the number of cores; NULL if the length is 0"),
    ),
)


def rounds(trace: Trace) -> Table:
    """Return the runs of each records file."""
    listed: list[dict[str, Any]] = []
    for runs in by_file(trace):
        listed += _rounds(runs)
    return _table(ROUNDS, listed)


def _rounds(runs: Executions) -> Iterator[dict[str, Any]]:
    numbers, member = np.unique(runs.epoch, return_inverse=True)
    found = []
    for place, number in enumerate(numbers.tolist()):
        mine: Mask = member == place
        tasks = len(distinct(runs.task[mine]))
        found.append((int(runs.start[mine].min()), int(runs.end[mine].max()), number, tasks, mine))
    found.sort(key=lambda row: row[:3])
    origin, before = found[0][0], None
    for first, last, number, tasks, mine in found:
        length, busy = int(runs.ns(last - first)[0]), int(runs.ns((runs.end - runs.start)[mine]).sum())
        yield {
            "group": str(number),
            "executions": int(mine.sum()),
            "tasks": tasks,
            "start": int(runs.ns(first - origin)[0]),
            "length": length,
            "pause": None if before is None else int(runs.ns(first - before[1])[0]),
            "period": None if before is None else int(runs.ns(first - before[0])[0]),
            "busy": busy,
            "share": busy / (length * len(runs.lanes)) if length else None,
        }
        before = first, last


def rounds_remarks(table: Table) -> Iterable[str]:
    """Yield the time per run."""
    periods = sorted(row["period"] for row in table.rows() if row["period"] is not None)
    if not periods:
        yield "one run: no time per run"
        return
    half, most = periods[(len(periods) - 1) // 2], periods[min(len(periods) * 9 // 10, len(periods) - 1)]
    yield f"time per run, from start to start: median {half:,} ns, 90th percentile {most:,} ns, of {len(periods)}"
