"""Rounds of a program, by what is recorded: numbered runs, repeated graphs or submissions, calls in the host's log.

The time from round to round is what a decoder of a language model takes per token.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.devices.ascend.analysis.columns import share_column, table_of, time_column
from lanescope.devices.ascend.analysis.executions import Executions, by_file
from lanescope.devices.ascend.analysis.logged_rounds import logged_rounds, median_of
from lanescope.devices.ascend.interpret.graph import number_mask
from lanescope.trace import ColumnSpec, Table, TableSpec, Trace

Int64 = npt.NDArray[np.int64]

ROUNDS = TableSpec(
    "ascend_round_summary",
    "one round: a numbered run of a records file, one of several executions of the same graph, one repetition of the "
    "order in which functions are submitted, or one call in the log of the host",
    (
        ColumnSpec("id", "int64", "row number, dense, by series, then by start"),
        ColumnSpec("group", "utf8", "number of the run, of the call or of the repetition, from 0; task of the graph"),
        ColumnSpec(
            "series",
            "utf8",
            "the evidence: run; graph and the number of its nodes; order and the functions that repeat; log and the "
            "function that is called; file: no round is recorded, and the row is all of the file",
        ),
        ColumnSpec(
            "executions", "int64", "number of executions; NULL for calls other than that of the file", nullable=True
        ),
        ColumnSpec("tasks", "int64", "number of tasks with executions; NULL like those", nullable=True),
        time_column("start", "time from the first start of all executions, or of the first call, to the first start"),
        time_column("length", "time from the first start to the last end; of a call: on the host"),
        time_column(
            "pause",
            "time from the last end of the previous round of the series; negative if they overlap; NULL for the first",
            nullable=True,
        ),
        time_column("period", "time from the first start of the previous round; NULL for the first", nullable=True),
        time_column("busy", "total of the executions; NULL for calls", nullable=True),
        share_column("busy as a fraction of the length times the number of cores; NULL for a length of 0, or a call"),
        time_column("device", "time of a call on the control CPUs of the device; NULL without a log", nullable=True),
        time_column(
            "effective",
            "time from the start of orchestrator or scheduler to the end of both; NULL if not recorded",
            nullable=True,
        ),
        time_column("orchestrator", "time of the orchestrator; NULL if not recorded", nullable=True),
        time_column("scheduler", "time of the schedulers; NULL if not recorded", nullable=True),
        time_column(
            "device_pause",
            "time on the device from the end of the previous call to the start of this one, by its counter; NULL if "
            "that is not in the log",
            nullable=True,
        ),
    ),
)
#: Columns that only calls have.
_OF_CALLS = ("device", "effective", "orchestrator", "scheduler", "device_pause")
#: Functions of a repeated order that its name lists.
_NAMED = 6


def rounds(trace: Trace) -> Table:
    """Return the rounds of each records file and of the logs; without evidence of any, one row for all of the file."""
    listed: list[dict[str, Any]] = []
    several = len(trace.details["ascend_runs"]) > 1
    files = list(by_file(trace))
    logged = list(logged_rounds(trace, files))
    for runs in files:
        series = _series(trace, runs, several=several)
        if not series and not logged:
            series = [("file", ["0"], np.zeros(len(runs), np.int64))]
        listed += _rounds(runs, series)
    return table_of(ROUNDS, listed + logged)


def rounds_remarks(table: Table) -> Iterable[str]:
    """Yield the time per round of each series, and on what evidence."""
    by_series: dict[str, list[dict[str, Any]]] = {}
    for row in table.rows():
        by_series.setdefault(row["series"], []).append(row)
    for series, listed in by_series.items():
        periods = sorted(row["period"] for row in listed if row["period"] is not None)
        if series == "file":
            yield (
                "no rounds are recorded: runs are not numbered, no graph repeats, and the order of submissions "
                "does not repeat"
            )
        elif series.startswith("log"):
            yield from _logged_remarks(series, listed, periods)
        elif not periods:
            yield "one run: no time per run"
        else:
            half, most = periods[(len(periods) - 1) // 2], periods[min(len(periods) * 9 // 10, len(periods) - 1)]
            word = "run" if series == "run" else "round"
            text = f"time per {word}, from start to start: median {half:,} ns, 90th percentile {most:,} ns, "
            yield text + f"of {len(periods)}" + ("" if series == "run" else f" ({series})")
            early = sum(row["pause"] is not None and row["pause"] < 0 for row in listed)
            if early:
                yield f"{early} of these {len(listed)} rounds started before the previous one ended"
        if series.startswith("order"):
            yield "these rounds are inferred: the functions are submitted in an order that repeats as a whole"


def _logged_remarks(series: str, listed: list[dict[str, Any]], periods: list[int]) -> Iterator[str]:
    lengths = [row["length"] for row in listed]
    device = [row["device"] for row in listed if row["device"] is not None]
    text = f"{len(listed)} " + ("call" if len(listed) == 1 else "calls") + f" ({series})"
    if periods:
        text += f", from start to start: median {median_of(periods):,} ns"
    text += f"; on the host: median {median_of(lengths):,} ns"
    yield text + (f"; on the device: median {median_of(device):,} ns, of {len(device)}" if device else "")


def _rounds(runs: Executions, series: list[tuple[str, list[str], Int64]]) -> Iterator[dict[str, Any]]:
    """Yield the rounds of series: name, names of the rounds, and the round of each execution, -1 for none."""
    origin, lasting = int(runs.start.min()), runs.end - runs.start
    for name, names, number in series:
        found = [
            (int(runs.start[mine].min()), int(runs.end[mine].max()), place, mine)
            for place, mine in _by_value(number)
            if place >= 0
        ]
        found.sort(key=lambda row: row[:3])
        first, last = (np.array([row[column] for row in found], np.int64) for column in range(2))
        busy = runs.ns(np.array([lasting[row[3]].sum() for row in found], np.int64)).tolist()
        start, length = runs.ns(first - origin).tolist(), runs.ns(last - first).tolist()
        pause = [None, *runs.ns(first[1:] - last[:-1]).tolist()]
        period = [None, *runs.ns(np.diff(first)).tolist()]
        for at, (_, _, place, mine) in enumerate(found):
            yield {
                "group": names[place],
                "series": name,
                "executions": len(mine),
                "tasks": len(distinct(runs.task[mine])),
                "start": start[at],
                "length": length[at],
                "pause": pause[at],
                "period": period[at],
                "busy": busy[at],
                "share": busy[at] / (length[at] * len(runs.lanes)) if length[at] else None,
                **dict.fromkeys(_OF_CALLS),
            }


def _series(trace: Trace, runs: Executions, *, several: bool) -> list[tuple[str, list[str], Int64]]:
    """Return the series of rounds of a file by its strongest evidence; ``several``: the trace has other files too."""
    if runs.has_epochs:
        numbers, member = np.unique(runs.epoch, return_inverse=True)
        return [("run", [str(number) for number in numbers.tolist()], member.reshape(-1))]
    tasks = trace.details["ascend_graph_tasks"]
    tasks = tasks.where(tasks.values("input_id") == runs.file)
    return _graphs(tasks, runs) or ([] if several else _order(trace, tasks, runs))


def _graphs(tasks: Table, runs: Executions) -> list[tuple[str, list[str], Int64]]:
    """Return graphs that were executed several times: those whose nodes have the same numbers and types of cores."""
    kind = tasks.column("kind").texts
    ids, names = tasks.values("task_id"), tasks.values("task")
    known = np.flatnonzero(tasks.valid("graph_task_id"))
    if not len(known):
        return []
    known = known[np.argsort(ids[known])]
    at = known[np.minimum(np.searchsorted(ids[known], runs.ids), len(known) - 1)]
    outer = np.where(ids[at] == runs.ids, tasks.values("graph_task_id")[at].astype(np.int64), -1)
    node = (runs.ids & number_mask(runs.ids)).astype(np.int64)
    shapes: dict[tuple[tuple[tuple[int, int], int], ...], list[int]] = {}
    graphs = {int(task): str(name) for task, name in zip(ids[kind == "graph"], names[kind == "graph"], strict=True)}
    members_of = {graph: mine for graph, mine in _by_value(outer) if graph in graphs}
    for graph, mine in members_of.items():
        counted = Counter(zip(node[mine].tolist(), runs.kind[mine].tolist(), strict=True))
        shapes.setdefault(tuple(sorted(counted.items())), []).append(graph)
    found: list[tuple[str, list[str], Int64]] = []
    for shape, members in shapes.items():
        if len(members) > 1:
            number = np.full(len(runs), -1, np.int64)
            for place, graph in enumerate(members):
                number[members_of[graph]] = place
            nodes = len({node for (node, _), _ in shape})
            same = sum(name.startswith(f"graph of {nodes} nodes") for name, *_ in found)
            name = f"graph of {nodes} nodes" + (f" ({same + 1})" if same else "")
            found.append((name, [graphs[graph] for graph in members], number))
    return found


def _by_value(values: Int64) -> Iterator[tuple[int, Int64]]:
    """Yield each value, rising, and the rows that have it, rising; one sort."""
    order = np.argsort(values, kind="stable")
    first = np.flatnonzero(np.diff(values[order], prepend=values[order[:1]] - 1))
    for rows in np.split(order, first[1:]):
        if len(rows):
            yield int(values[rows[0]]), rows


def _order(trace: Trace, tasks: Table, runs: Executions) -> list[tuple[str, list[str], Int64]]:
    """Return the repetitions of the order of submission, if all of it is one of several functions repeated as a whole.

    The order is that of the submits, else that of the numbers of tasks, which count up as tasks are submitted; of tasks
    on several rings they say nothing.
    """
    mine = np.flatnonzero(tasks.valid("functions"))
    ids, functions = tasks.values("task_id")[mine], tasks.values("functions")[mine]
    submits = trace.details["ascend_submits"]
    if len(submits) and np.isin(ids, submits.values("task_id")).all():
        sent, first = np.unique(submits.values("task_id"), return_index=True)
        order = np.argsort(first[np.searchsorted(sent, ids)], kind="stable")
    elif len(distinct((ids >> np.uint64(32)).astype(np.int64))) == 1:
        order = np.argsort(ids, kind="stable")
    else:
        return []
    ids, texts = ids[order], functions[order].tolist()
    length = _period(texts)
    if len(set(texts)) < 2 or length * 2 > len(texts):
        return []
    by_id = np.argsort(ids)
    at = np.minimum(np.searchsorted(ids[by_id], runs.ids), len(ids) - 1)
    number = np.where(ids[by_id][at] == runs.ids, by_id[at] // length, -1)
    named = ", ".join(texts[: min(length, _NAMED)]) + (", ..." if length > _NAMED else "")
    return [(f"order {named}", [str(place) for place in range(len(texts) // length)], number)]


def _period(texts: list[str]) -> int:
    """Return the shortest length whose repetition is the list as a whole; that of the list if nothing repeats."""
    border = [0] * len(texts)
    for at in range(1, len(texts)):
        matched = border[at - 1]
        while matched and texts[at] != texts[matched]:
            matched = border[matched - 1]
        border[at] = matched + (texts[at] == texts[matched])
    length = len(texts) - (border[-1] if border else 0)
    return length if length and len(texts) % length == 0 else len(texts)
