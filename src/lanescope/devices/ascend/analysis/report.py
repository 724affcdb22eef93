"""Sums that only this family has: phases and threads of the schedulers, idle time of cores, setups, functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.intervals import Intervals, known_extents, union
from lanescope.devices.ascend.analysis import head_tail, overhead_report, rounds, switches
from lanescope.devices.ascend.analysis.executions import lanes_without_some
from lanescope.devices.ascend.formats.layout import EARLY_KINDS
from lanescope.errors import UsageError
from lanescope.trace import Column, ColumnSpec, Table, TableSpec, Trace
from lanescope.trace.column import Array, Mask

Int64 = npt.NDArray[np.int64]

#: Kinds of phases of which the device does not record the short ones: their sums are lower bounds.
_AT_LEAST = ("resolve", "fanout")
_PAUSE = "(nothing recorded)"


def summarize(by: str, trace: Trace) -> Table:
    """Return one of ``SUMMARIES``.

    Raises:
        UsageError: the trace holds nothing of this family.
    """
    if "ascend_tasks" not in trace.details:
        raise UsageError("trace contains no Ascend tasks", hint="use --by name, lane, device or category")
    return SUMMARIES[by](trace)


# --- schedulers -------------------------------------------------------------------------------------------------------


def _spread(unit: str) -> tuple[ColumnSpec, ...]:
    return (
        ColumnSpec("total", "int64", "total duration", unit=unit),
        ColumnSpec("min", "int64", "minimum duration; NULL without records", nullable=True, unit=unit),
        ColumnSpec("median", "int64", "median duration; NULL without records", nullable=True, unit=unit),
        ColumnSpec("p99", "int64", "99th percentile of the duration; NULL without records", nullable=True, unit=unit),
        ColumnSpec("max", "int64", "maximum duration; NULL without records", nullable=True, unit=unit),
    )


_PHASE_COLUMNS = (
    ColumnSpec("role", "utf8", "outer, inner (inside an outer one), marker, idle; empty for an unknown kind"),
    ColumnSpec("count", "int64", "number of records; number of pauses for idle"),
    ColumnSpec(
        "tasks", "int64", "total of tasks_processed, with a kind-specific meaning; NULL if not recorded", nullable=True
    ),
    *_spread("ns"),
    ColumnSpec(
        "share",
        "float64",
        "fraction of the windows of the threads, with a total of 1 for outer kinds and idle; NULL without a window",
        nullable=True,
        unit="1",
    ),
    ColumnSpec(
        "at_least", "bool", "whether the sums are lower bounds: the device does not record walks shorter than 1 us"
    ),
)
PHASES = TableSpec(
    "ascend_phase_summary",
    "phases of one kind on all scheduler threads",
    (
        ColumnSpec("id", "int64", "row number, dense, by descending total"),
        ColumnSpec("group", "utf8", "phase kind"),
        *_PHASE_COLUMNS,
    ),
)
THREAD_PHASES = TableSpec(
    "ascend_thread_phase_summary",
    "phases of one kind on one scheduler thread",
    (
        ColumnSpec("id", "int64", "row number, dense, by thread, then by descending total"),
        ColumnSpec("group", "utf8", "scheduler thread"),
        ColumnSpec("kind", "utf8", "phase kind"),
        *_PHASE_COLUMNS,
    ),
)


def phases(trace: Trace, *, by_thread: bool = False) -> Table:
    """Return the phases summed by kind, or by thread and kind, and what no phase covers. Linear but for one sort."""
    rows, threads = trace.details["ascend_phases"], trace.details["ascend_threads"]
    slices = trace.slices
    at = rows.values("slice_id")
    kind, texts = _codes(slices.column("name"), at)
    role, roles = _codes(rows.column("role"), None)
    length = np.where(slices.valid("dur")[at], slices.values("dur")[at], 0)
    lanes = threads.values("track_id")
    lane = np.searchsorted(np.sort(lanes), slices.values("track_id")[at]) if by_thread else np.zeros(len(at), np.int64)
    window = threads.values("window_ns")[np.argsort(lanes)] if by_thread else [threads.values("window_ns").sum()]
    names = [trace.tracks.values("name")[track] for track in np.sort(lanes).tolist()] if by_thread else [""]

    key = lane * max(len(texts), 1) + kind
    groups, first, member = np.unique(key, return_index=True, return_inverse=True)
    spread = _spreads(member, length, len(groups))
    tasks = np.zeros(len(groups), np.int64)
    known = ~np.isin(np.array([texts[k] for k in kind[first].tolist()], object), ("dummy_task",))
    np.add.at(tasks, member, rows.values("tasks_processed").astype(np.int64))
    listed: list[dict[str, Any]] = []
    for number in range(len(groups)):
        name, mine = texts[kind[first[number]]], int(lane[first[number]])
        listed.append(
            {
                "lane": mine,
                "kind": name,
                "role": roles[role[first[number]]],
                "tasks": int(tasks[number]) if known[number] else None,
                **{column: values[number] for column, values in spread.items()},
                "share": spread["total"][number] / window[mine] if window[mine] else None,
                "at_least": name in _AT_LEAST,
            }
        )
    listed += _pauses(threads, by_thread=by_thread)
    listed.sort(key=lambda row: (row["lane"], -row["total"], row["kind"]))
    spec = THREAD_PHASES if by_thread else PHASES
    for number, row in enumerate(listed):
        row |= {"id": number, "group": names[row["lane"]] if by_thread else row["kind"]}
    return _table(spec, listed)


def _pauses(threads: Table, *, by_thread: bool) -> list[dict[str, Any]]:
    order = np.argsort(threads.values("track_id"))
    window, idle, pauses = (threads.values(name)[order] for name in ("window_ns", "idle_ns", "pauses"))
    longest = threads.values("longest_pause_ns")[order]
    parts = [slice(n, n + 1) for n in range(len(threads))] if by_thread else [slice(None)] if len(threads) else []
    return [
        {
            "lane": number,
            "kind": _PAUSE,
            "role": "idle",
            "count": int(pauses[part].sum()),
            "tasks": None,
            "total": int(idle[part].sum()),
            "min": None,
            "median": None,
            "p99": None,
            "max": int(longest[part].max()) if pauses[part].sum() else None,
            "share": idle[part].sum() / window[part].sum() if window[part].sum() else None,
            "at_least": False,
        }
        for number, part in enumerate(parts)
    ]


SCHEDULERS = TableSpec(
    "ascend_scheduler_summary",
    "time of one scheduler thread",
    (
        ColumnSpec("id", "int64", "row number, dense, by thread"),
        ColumnSpec("group", "utf8", "scheduler thread"),
        ColumnSpec("records", "int64", "number of recorded phases"),
        ColumnSpec("iterations", "int64", "iterations of the loop; NULL if not recorded", nullable=True),
        ColumnSpec("working", "int64", "iterations with records; NULL if not recorded", nullable=True),
        ColumnSpec("loop", "int64", "mean duration of an iteration; NULL without iterations", nullable=True, unit="ns"),
        ColumnSpec("window", "int64", "time from the first record to the end of the last", unit="ns"),
        ColumnSpec("busy", "int64", "time in phases", unit="ns"),
        ColumnSpec("staging", "int64", "time in phases of early dispatch", unit="ns"),
        ColumnSpec("idle", "int64", "time between phases", unit="ns"),
        ColumnSpec("unknown", "int64", "time next to phases with implausible timestamps", unit="ns"),
        ColumnSpec(
            "suspect", "int64", "time of phases with implausible timestamps (LS501), not in busy or window", unit="ns"
        ),
        ColumnSpec(
            "share", "float64", "busy time as a fraction of the window; NULL without a window", nullable=True, unit="1"
        ),
        ColumnSpec("pauses", "int64", "number of pauses between phases"),
        ColumnSpec("longest_pause", "int64", "longest pause", unit="ns"),
        ColumnSpec("pop_hit", "int64", "pops of ready queues that returned a task"),
        ColumnSpec("pop_miss", "int64", "pops of ready queues that returned no task"),
        ColumnSpec("hit_rate", "float64", "hits as a fraction of all pops; NULL without pops", nullable=True, unit="1"),
        ColumnSpec("dispatched", "int64", "subtasks published when ready"),
        ColumnSpec(
            "staged_early",
            "int64",
            "subtasks published by early dispatch, before their producers ended; with dispatched, all subtasks",
        ),
        ColumnSpec("completed", "int64", "finished subtasks that were observed"),
        ColumnSpec("resolved_at_least", "int64", "visited consumers in walks of 1 us or more"),
    ),
)


def schedulers(trace: Trace) -> Table:
    """Return where the time of each scheduler thread went."""
    listed, slices = [], trace.slices
    at = trace.details["ascend_phases"].values("slice_id")
    at = at[np.isin(slices.column("name").texts[at].astype(str), EARLY_KINDS) & slices.valid("dur")[at]]
    staging = np.zeros(len(trace.tracks), np.int64)
    np.add.at(staging, slices.values("track_id")[at], slices.values("dur")[at])
    role = trace.details["ascend_phases"].values("role")
    threads = _lane_sums(trace, "ascend_threads", "ascend_phases", "records", (role == "outer") | (role == ""))
    for number, row in enumerate(sorted(threads, key=lambda row: row["track_id"])):
        pops = row["pop_hit"] + row["pop_miss"]
        listed.append(
            {
                "id": number,
                "group": trace.tracks.values("name")[row["track_id"]],
                "working": row["working_iterations"],
                "loop": row["mean_iteration_ns"],
                "longest_pause": row["longest_pause_ns"],
                **{name: row[f"{name}_ns"] for name in ("window", "busy", "idle", "unknown", "suspect")},
                "share": row["busy_ns"] / row["window_ns"] if row["window_ns"] else None,
                "staging": int(staging[row["track_id"]]),
                "hit_rate": row["pop_hit"] / pops if pops else None,
                **{
                    name: row[name]
                    for name in (
                        *("records", "iterations", "pauses", "pop_hit", "pop_miss", "dispatched", "staged_early"),
                        *("completed", "resolved_at_least"),
                    )
                },
            }
        )
    return _table(SCHEDULERS, listed)


# --- cores ------------------------------------------------------------------------------------------------------------

_PARTS = ("busy", "dependency", "submit", "dispatch", "propagation", "setup", "unknown", "trailing_idle")
CORES = TableSpec(
    "ascend_core_summary",
    "time of one core, or of all cores of a type: busy and the idle parts add up to the window",
    (
        ColumnSpec("id", "int64", "row number, dense, types first, then cores"),
        ColumnSpec("group", "utf8", "core type or core"),
        ColumnSpec("executions", "int64", "number of executions"),
        ColumnSpec("window", "int64", "time from the first start to the last end of all cores", unit="ns"),
        *(ColumnSpec(name, "int64", f"see `ascend_cores.{name}_ns`", unit="ns") for name in _PARTS),
        ColumnSpec(
            "suspect",
            "int64",
            "time of executions with implausible timestamps (LS501), not in busy or window",
            unit="ns",
        ),
        ColumnSpec(
            "share", "float64", "busy time as a fraction of the window; NULL without a window", nullable=True, unit="1"
        ),
    ),
)


def cores(trace: Trace) -> Table:
    """Return where the time of each core went, sums by type first."""
    rows = _lane_sums(trace, "ascend_cores", "ascend_tasks", "executions")
    names = trace.tracks.values("name")
    columns = ("executions", "window", *_PARTS, "suspect")

    def line(group: str, mine: list[dict[str, Any]]) -> dict[str, Any]:
        sums = {name: sum(int(row.get(f"{name}_ns", row.get(name, 0))) for row in mine) for name in columns}
        return {"group": group, **sums, "share": sums["busy"] / sums["window"] if sums["window"] else None}

    by_type: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_type.setdefault(row["core_type"] or "unknown type", []).append(row)
    listed = [line(f"all {kind}", mine) for kind, mine in sorted(by_type.items())]
    listed += [line(str(names[row["track_id"]]), [row]) for row in sorted(rows, key=lambda row: row["track_id"])]
    for number, row in enumerate(listed):
        row["id"] = number
    return _table(CORES, listed)


def _lane_sums(trace: Trace, lanes: str, rows: str, counted: str, is_work: Mask | None = None) -> list[dict[str, Any]]:
    """Return the rows of a table of lanes; busy time that only slices covered which are gone is unknown.

    Args:
        trace: the trace, perhaps without suspect slices.
        lanes: table of the lanes.
        rows: table of their slices.
        counted: column of ``lanes`` with the number of slices that were recorded.
        is_work: bool [rows], slices that count as busy; None: all.
    """
    is_less = lanes_without_some(trace, lanes, rows, counted).tolist()
    listed = list(trace.details[lanes].rows())
    if not any(is_less):
        return listed
    at = trace.details[rows].values("slice_id")
    track, begin, end = known_extents(trace.slices).take(at if is_work is None else at[is_work])
    for row in (row for row, less in zip(listed, is_less, strict=True) if less):
        # What is longer than the window is far from all others: it never was in busy.
        mine = (track == row["track_id"]) & (end - begin <= row["window_ns"])
        left = union(Intervals(track[mine], begin[mine], end[mine]))
        busy = min(int((left.end - left.begin).sum()), row["busy_ns"])
        row |= {"busy_ns": busy, "unknown_ns": row["unknown_ns"] + row["busy_ns"] - busy}
    return listed


# --- functions --------------------------------------------------------------------------------------------------------

FUNCTIONS = TableSpec(
    "ascend_function_summary",
    "executions of one function",
    (
        ColumnSpec("id", "int64", "row number, dense, by descending total"),
        ColumnSpec("group", "utf8", "function name"),
        ColumnSpec("count", "int64", "number of executions"),
        ColumnSpec("total", "int64", "total duration", unit="ns"),
        ColumnSpec("duration", "float64", "mean duration; NULL if unknown", nullable=True, unit="ns"),
        ColumnSpec(
            "latency", "float64", "mean time from dispatch to finish; NULL if unknown", nullable=True, unit="ns"
        ),
        ColumnSpec(
            "exec_share",
            "float64",
            "durations as a fraction of the latencies; NULL if unknown",
            nullable=True,
            unit="1",
        ),
        ColumnSpec("head", "float64", "mean time from dispatch to start; NULL if unknown", nullable=True, unit="ns"),
        ColumnSpec(
            "propagation", "float64", "mean time from dispatch to receive; NULL if unknown", nullable=True, unit="ns"
        ),
        ColumnSpec(
            "local_setup",
            "float64",
            "mean time from receive to start without waits; NULL if unknown",
            nullable=True,
            unit="ns",
        ),
        ColumnSpec(
            "gate_wait", "float64", "mean wait for producers on the core; NULL if unknown", nullable=True, unit="ns"
        ),
        ColumnSpec("tail", "float64", "mean time from end to finish; NULL if unknown", nullable=True, unit="ns"),
    ),
)


def functions(trace: Trace) -> Table:
    """Return how the time of the executions of each function splits, on average."""
    tasks = trace.details["ascend_tasks"]
    name, texts = _codes(trace.slices.column("name"), tasks.values("slice_id"))
    groups, member = np.unique(name, return_inverse=True)
    count = np.bincount(member, minlength=len(groups))

    def sums(values: Array, valid: Mask) -> tuple[Int64, Int64]:
        total = np.zeros(len(groups), np.int64)
        np.add.at(total, member[valid], values[valid])
        return total, np.bincount(member[valid], minlength=len(groups))

    means = {}
    for column in ("duration", "head", "propagation", "local_setup", "gate_wait", "tail"):
        means[column] = sums(tasks.values(f"{column}_ns"), tasks.valid(f"{column}_ns"))
    both = tasks.valid("dispatch_ts") & tasks.valid("finish_ts")
    latency = sums(tasks.values("finish_ts") - tasks.values("dispatch_ts"), both)
    lasting, _ = sums(tasks.values("duration_ns"), both & tasks.valid("duration_ns"))
    listed: list[dict[str, Any]] = []
    for number, code in enumerate(groups.tolist()):
        row = {"group": texts[code], "count": int(count[number]), "total": int(means["duration"][0][number])}
        for column, (total, known) in {**means, "latency": latency}.items():
            row[column] = float(total[number] / known[number]) if known[number] else None
        row["exec_share"] = float(lasting[number] / latency[0][number]) if latency[0][number] > 0 else None
        listed.append(row)
    return _table(FUNCTIONS, _ranked(listed))


SETUPS = TableSpec(
    "ascend_setup_summary",
    "local setups of one function",
    (
        ColumnSpec("id", "int64", "row number, dense, by descending total"),
        ColumnSpec("group", "utf8", "function name"),
        ColumnSpec("count", "int64", "executions with a known setup"),
        *_spread("ns"),
        ColumnSpec("longest", "utf8", "execution with the longest setup; NULL without one", nullable=True),
        ColumnSpec(
            "of_head",
            "float64",
            "setups as a fraction of the times from dispatch to start; NULL if unknown",
            nullable=True,
            unit="1",
        ),
        ColumnSpec(
            "of_core",
            "float64",
            "setups as a fraction of setups and executions; NULL if unknown",
            nullable=True,
            unit="1",
        ),
        ColumnSpec("share", "float64", "fraction of all setups; NULL if unknown", nullable=True, unit="1"),
    ),
)


def setups(trace: Trace) -> Table:
    """Return the local setups of each function, and which execution had the longest."""
    tasks = trace.details["ascend_tasks"]
    known = np.flatnonzero(tasks.valid("local_setup_ns"))
    name, texts = _codes(trace.slices.column("name"), tasks.values("slice_id")[known])
    setup, duration, head = (tasks.values(f"{column}_ns")[known] for column in ("local_setup", "duration", "head"))
    has_head = tasks.valid("head_ns")[known]
    groups, member = np.unique(name, return_inverse=True)
    spread = _spreads(member, setup, len(groups))
    lasting, heads, joined = np.zeros((3, len(groups)), np.int64)
    np.add.at(lasting, member, duration)
    np.add.at(heads, member[has_head], head[has_head])
    np.add.at(joined, member[has_head], setup[has_head])
    longest = np.full(len(groups), -1)
    longest[member[np.argsort(setup, kind="stable")]] = np.argsort(setup, kind="stable")
    total = int(spread["total"].sum())
    listed: list[dict[str, Any]] = []
    for number, code in enumerate(groups.tolist()):
        mine = int(spread["total"][number])
        on_core = mine + int(lasting[number])
        listed.append(
            {
                "group": texts[code],
                **{column: values[number] for column, values in spread.items()},
                "longest": tasks.take(known[longest[number : number + 1]]).values("label")[0],
                "of_head": float(joined[number] / heads[number]) if heads[number] > 0 else None,
                "of_core": mine / on_core if on_core else None,
                "share": mine / total if total else None,
            }
        )
    return _table(SETUPS, _ranked(listed))


SUMMARIES: Mapping[str, Callable[[Trace], Table]] = {
    "phase": phases,
    "thread-phase": lambda trace: phases(trace, by_thread=True),
    "scheduler": schedulers,
    "core": cores,
    "function": functions,
    "setup": setups,
    "overhead": overhead_report.verdict,
    "core-idle": overhead_report.core_idle,
    "switch": switches.switches,
    "head": head_tail.heads,
    "tail": head_tail.tails,
    "round": rounds.rounds,
}
_REMARKS: Mapping[str, Callable[[Table], Iterable[str]]] = {
    "overhead": overhead_report.verdict_remarks,
    "core-idle": overhead_report.core_idle_remarks,
    "switch": switches.switch_remarks,
    "tail": head_tail.tail_remarks,
    "round": rounds.rounds_remarks,
}


def remarks_on(by: str, table: Table) -> Iterable[str]:
    """Return sentences that say what one of ``SUMMARIES`` means."""
    return _REMARKS[by](table) if by in _REMARKS else ()


# --- arithmetic -------------------------------------------------------------------------------------------------------


def _codes(column: Column, rows: Int64 | None) -> tuple[Int64, list[str]]:
    values = column.values if rows is None else column.values[rows]
    return values.astype(np.int64), list(column.dictionary.texts) if column.dictionary else []


def _spreads(member: Int64, length: Int64, groups: int) -> dict[str, Int64]:
    """Return count, total and spread of the lengths of each group, int64 [groups] each; no group is empty."""
    order = np.lexsort((length, member))
    ordered = length[order]
    count = np.bincount(member, minlength=groups)
    first = np.cumsum(count) - count

    def rank(part: int, of: int) -> Int64:
        found: Int64 = ordered[first + np.maximum(-(-count * part // of), 1) - 1]
        return found

    total = np.add.reduceat(ordered, first) if len(ordered) else np.zeros(groups, np.int64)
    spread = {"min": rank(0, 1), "median": rank(1, 2), "p99": rank(99, 100), "max": rank(1, 1)} if groups else {}
    return {"count": count, "total": total, **spread}


def _ranked(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    listed.sort(key=lambda row: (-row["total"], row["group"]))
    return [{"id": number, **row} for number, row in enumerate(listed)]


def _table(spec: TableSpec, listed: list[dict[str, Any]]) -> Table:
    return Table.from_arrays(spec, {name: [row[name] for row in listed] for name in spec.names})
