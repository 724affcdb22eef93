"""What the schedulers cost: the verdict, and the idle time of cores by cause."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.devices.ascend.analysis.columns import share_column, table_of, time_column
from lanescope.devices.ascend.analysis.executions import (
    TYPES,
    Executions,
    by_file,
    covered,
    lanes_without_some,
    union,
)
from lanescope.devices.ascend.analysis.readiness import Waiting, waiting
from lanescope.trace import ColumnSpec, Table, TableSpec, Trace
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]

#: Shares of the window with idle cores and ready tasks from which a run is bound, or partly bound, by its scheduler.
BOUND, PARTLY_BOUND = 0.25, 0.08

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
        time_column("window", "time from the first start to the last end of all cores"),
        time_column(
            "overhead",
            "time in which the condition holds; a task counts as ready when its producers with executions have ended, "
            "one without such producers never",
        ),
        time_column(
            "at_most",
            "time in which the condition may hold: submitted tasks without producers, nodes of graphs and tasks of "
            "which it is not known when they became ready count too",
        ),
        share_column("overhead as a fraction of the window; NULL without a window"),
        share_column("at_most as a fraction of the window; NULL without a window", "share_at_most"),
    ),
)


def verdict(trace: Trace) -> Table:
    """Return for how long cores idled while tasks were ready; no rows without dispatches and a task graph."""
    sums: dict[str, list[int]] = {}
    for runs in by_file(trace):
        if not runs.has_graph or not (runs.dispatch > 0).any():
            continue
        window = int(runs.ns(runs.window[1] - runs.window[0])[0])
        for group, lengths in _overhead(runs, waiting(trace, runs)).items():
            mine = sums.setdefault(group, [0, 0, 0])
            mine[0] += window
            mine[1] += int(runs.ns(lengths[0])[0])
            mine[2] += int(runs.ns(lengths[1])[0])
    listed = [
        {
            "group": group,
            "window": window,
            "overhead": least,
            "at_most": most,
            "share": least / window if window else None,
            "share_at_most": most / window if window else None,
        }
        for group, (window, least, most) in sums.items()
    ]
    return table_of(VERDICT, listed)


def verdict_remarks(table: Table) -> Iterable[str]:
    """Yield the verdict as a sentence."""
    row = next((row for row in table.rows() if row["group"] == "any type"), None)
    if row is None or row["share"] is None:
        yield "no verdict: it takes dispatches (level 2) and a task graph (deps.json)"
        return
    least, most = row["share"], row["share_at_most"]
    by = "" if _bound(most) == _bound(least) else " by the producers that have executions"
    yield (
        f"verdict: {_bound(least)}{by}: for {least:.1%} of the time, cores were idle while tasks were ready and not "
        "dispatched"
    )
    if most > least:
        changes = f", which would be {_bound(most)}" if by else ""
        yield (
            f"at most {most:.1%}{changes}: if tasks without producers count from their submission, and those of "
            "unknown readiness, such as nodes of graphs, as ready"
        )


def _bound(share: float) -> str:
    if share >= BOUND:
        return "scheduler-bound"
    return "partly scheduler-bound" if share >= PARTLY_BOUND else "bound by computation or dependencies"


def _overhead(runs: Executions, waits: Waiting) -> dict[str, tuple[int, int]]:
    """Return for how many ticks each condition holds, at least and at most."""
    low, high, uses = runs.ready_and_waiting()
    present = [code for code in range(len(TYPES)) if (runs.kind == code).any()]
    more = [*waits.known, *waits.possible]
    stamps = [np.array(runs.window), runs.start, runs.end, low, high, *(stamp for pieces in more for stamp in pieces)]
    edges = distinct(np.clip(np.concatenate(stamps), *runs.window))
    if len(edges) < 2:
        return {}
    length = np.diff(edges)
    idle, sure, maybe = {}, {}, {}
    for code in present:
        mine = runs.kind == code
        start, end = (np.clip(stamps[mine], *runs.window) for stamps in (runs.start, runs.end))
        running = _level(edges, start, end)
        idle[code] = running < len(distinct(runs.track[mine]))
        sure[code] = _level(edges, low[uses[code]], high[uses[code]]) > 0
        maybe[code] = sure[code] | (_level(edges, *waits.known[code]) + _level(edges, *waits.possible[code]) > 0)

    def both(waits: dict[int, Mask]) -> dict[int, Mask]:
        return {code: idle[code] & waits[code] for code in present}

    least, most = both(sure), both(maybe)
    # What waits for certain has idle cores of its type, and something waits, or may wait, for idle cores.
    held = np.logical_and.reduce([idle[code] | ~sure[code] for code in present])

    def ticks(mask: Mask) -> int:
        return int(length[mask].sum())

    found = {TYPES[code]: (ticks(least[code]), ticks(most[code])) for code in present}
    for group, combine in (("all types", np.logical_and), ("any type", np.logical_or)):
        lowest, highest = (combine.reduce(list(one.values())) for one in (least, most))
        found[group] = ticks(lowest & held), ticks(highest & held)
    return found


def _level(edges: Int64, low: Int64, high: Int64) -> Int64:
    """Return how many intervals cover each stretch between edges, int64 [edges - 1]; their ends are edges."""
    steps = np.zeros(len(edges), np.int64)
    np.add.at(steps, np.searchsorted(edges, low), 1)
    np.add.at(steps, np.searchsorted(edges, high), -1)
    return np.cumsum(steps)[:-1]


def withheld(trace: Trace) -> dict[str, float]:
    """Return the share of the time of all cores of a type in which idle ones could have run tasks known to be ready.

    Of many idle cores and few ready tasks only as many count as there are tasks. Tasks without producers are ready from
    their submission on, where it is recorded.
    """
    sums: dict[str, list[int]] = {}
    for runs in by_file(trace):
        known = waiting(trace, runs).known
        for code in {code for code in runs.kind.tolist() if 0 <= code < len(TYPES)}:
            mine = runs.kind == code
            stamps = [np.clip(found, *runs.window) for found in (runs.start[mine], runs.end[mine], *known[code])]
            edges = distinct(np.concatenate([np.array(runs.window), *stamps]))
            cores = len(distinct(runs.track[mine]))
            idle = cores - _level(edges, stamps[0], stamps[1])
            used = np.minimum(idle, _level(edges, stamps[2], stamps[3]))
            found = sums.setdefault(TYPES[code], [0, 0])
            found[0] += int((used * np.diff(edges)).sum())
            found[1] += cores * int(runs.window[1] - runs.window[0])
    return {name: lost / time for name, (lost, time) in sums.items() if time}


# --- idle time by cause -----------------------------------------------------------------------------------------------

_CAUSES = ("busy", "launch", "scheduler_late", "no_ready_task", "unknown")
CORE_IDLE = TableSpec(
    "ascend_core_idle_summary",
    "time of one core, or of all cores of a type: busy and the four causes of idle time add up to the window",
    (
        ColumnSpec("id", "int64", "row number, dense, types first, then cores"),
        ColumnSpec("group", "utf8", "core type or core"),
        time_column("window", "time from the first start to the last end of all cores"),
        time_column("busy", "time with an execution"),
        time_column("launch", "idle time in which the next execution was already dispatched to the core"),
        time_column(
            "scheduler_late", "other idle time in which a task for this type of core was ready and not dispatched"
        ),
        time_column("no_ready_task", "other idle time: no task for this type of core is known to be ready"),
        time_column(
            "unknown", "idle time without a known cause: no task graph, dispatch unknown, implausible timestamps"
        ),
        share_column("busy time as a fraction of the window; NULL without a window"),
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
        lanes, parts = _causes(runs, waiting(trace, runs), doubtful)
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
    return table_of(CORE_IDLE, listed)


def core_idle_remarks(table: Table) -> Iterable[str]:
    """Yield which cause is the largest."""
    rows = [row for row in table.rows() if row["group"].startswith("all ")]
    sums = {name: sum(row[name] for row in rows) for name in _CAUSES[1:]}
    idle = sum(sums.values())
    if idle:
        largest = sorted(sums.items(), key=lambda cause: -cause[1])
        text = ", ".join(f"{name.replace('_', ' ')} {time / idle:.0%}" for name, time in largest)
        yield f"idle time of all cores: {text}"


def _causes(runs: Executions, waits: Waiting, doubtful: set[int]) -> tuple[Int64, Int64]:
    """Return the cores, and ticks of each in each of ``_CAUSES``, int64 [cores, 5]; they add up to the window."""
    low, high = runs.window
    parts = np.zeros((len(runs.lanes), len(_CAUSES)), np.int64)
    known = [union(*pieces) for pieces in waits.known]
    either = [
        union(*(np.concatenate(ends) for ends in zip(one, other, strict=True)))
        for one, other in zip(waits.known, waits.possible, strict=True)
    ]
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
        late, maybe = np.zeros((2, len(gap)), np.int64)
        if kind >= 0:
            late = covered(known[kind], launch) - covered(known[kind], gap)
            maybe = covered(either[kind], launch) - covered(either[kind], gap) - late
        before = launch - gap
        parts[place, 0] = high - low - int((until - gap).sum())
        parts[place, 1] = int((until - launch).sum())
        parts[place, 2] = int(late[knows].sum())
        parts[place, 3] = int((before - late - maybe)[knows].sum())
        parts[place, 4] = int(before[~knows].sum() + maybe[knows].sum())
    return runs.lanes, parts
