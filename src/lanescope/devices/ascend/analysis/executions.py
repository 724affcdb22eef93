"""Executions of each records file of a trace as columns in ticks, for reports that need exact sums."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.declaration import frozen_class
from lanescope.trace import Trace, ticks_to_ns
from lanescope.trace.column import Array, Mask

Int64 = npt.NDArray[np.int64]

#: Types of cores, as their codes.
TYPES = ("aic", "aiv")


@frozen_class
class Executions:
    """Executions of one records file, columns of [n] in the order (core, start, end).

    Executions without a known end, and those far from all others, are left out. Stamps are int64 ticks of the device
    counter, 0 where unknown.

    Attributes:
        file: the input.
        track: int64, lane of the core.
        kind: int64, code in ``TYPES``, -1 for an unknown type.
        ids: uint64, task ids.
        task: int64, dense number of its task, for each run of the file.
        name: object, name of the function.
        epoch: int64, run of the file, 0 where there is one.
        dispatch, start, end, finish, ready: stamps; ready is the last end of the producers with executions.
        ready_is_exact: bool, whether all producers have executions.
        window: the window of the cores, see ``ascend_cores``: first and last tick.
        lanes: int64 [cores], all cores; lane_kind: int64 [cores], their types.
        frequency: ticks per second.
        has_graph: whether dependencies are recorded.
        has_epochs: whether runs of the file are numbered.
    """

    file: int
    track: Int64
    kind: Int64
    ids: npt.NDArray[np.uint64]
    task: Int64
    name: Array
    epoch: Int64
    dispatch: Int64
    start: Int64
    end: Int64
    finish: Int64
    ready: Int64
    ready_is_exact: Mask
    window: tuple[int, int]
    lanes: Int64
    lane_kind: Int64
    frequency: Fraction
    has_graph: bool
    has_epochs: bool

    def __len__(self) -> int:
        return len(self.track)

    def ns(self, ticks: Int64 | int) -> Int64:
        """Return lengths in nanoseconds at the nominal frequency, int64 [n]."""
        return ticks_to_ns(np.atleast_1d(np.asarray(ticks, np.int64)), self.frequency)

    def parts_ns(self, parts: Int64) -> Int64:
        """Return parts of lengths in nanoseconds, int64 [rows, parts]; they add up to their sum in nanoseconds."""
        return np.diff(self.ns(np.cumsum(parts, 1).reshape(-1)).reshape(parts.shape), prepend=0)

    def ready_and_waiting(self) -> tuple[Int64, Int64, list[Mask]]:
        """Return from where and up to where tasks were ready and not dispatched, and which types of cores they use.

        int64 [m] each, and bool [m] by type. Of several executions of a task the first dispatch counts. Tasks without
        a recorded producer, and tasks of unknown dispatch, are in none.
        """
        count = int(self.task.max(initial=-1)) + 1
        dispatch, ready = np.full(count, np.iinfo(np.int64).max), np.zeros(count, np.int64)
        sent = self.dispatch > 0
        np.minimum.at(dispatch, self.task[sent], self.dispatch[sent])
        np.maximum.at(ready, self.task, self.ready)
        waits = np.flatnonzero((ready > 0) & (dispatch > ready) & (dispatch < np.iinfo(np.int64).max))
        uses = []
        for code in range(len(TYPES)):
            mine = np.zeros(count, np.bool_)
            mine[self.task[self.kind == code]] = True
            uses.append(mine[waits])
        low, high = self.window
        return np.clip(ready[waits], low, high), np.clip(dispatch[waits], low, high), uses


def by_file(trace: Trace) -> Iterator[Executions]:
    """Yield the executions of each records file with executions."""
    tasks, cores, slices = trace.details["ascend_tasks"], trace.details["ascend_cores"], trace.slices
    at = tasks.values("slice_id")
    track = slices.values("track_id")[at].astype(np.int64)
    file_of = trace.tracks.values("input_id").astype(np.int64)
    start, length = slices.values("ts_ticks")[at], slices.values("dur_ticks")[at]
    known = slices.valid("ts_ticks")[at] & slices.valid("dur_ticks")[at]
    stamps = {name: np.where(tasks.valid(f"{name}_ticks"), tasks.values(f"{name}_ticks"), 0) for name in _STAMPS}
    is_exact = tasks.column("ready_quality").texts == "exact"
    epoch = np.where(tasks.valid("run_epoch"), tasks.values("run_epoch"), 0).astype(np.int64)
    text = slices.column("name")
    names = np.array(text.dictionary.texts if text.dictionary else [""], object)[text.values[at]]
    lanes, first = cores.values("track_id").astype(np.int64), cores.values("window_start_ticks")
    kinds = np.array([_code(row["core_type"]) for row in cores.rows()], np.int64)
    kind_of = np.full(len(trace.tracks), -1, np.int64)
    kind_of[lanes] = kinds
    doubtful = np.zeros(len(trace.tracks), np.bool_)
    doubtful[lanes] = cores.values("suspect_executions") > 0
    graphs = {row["input_id"] for row in trace.details["ascend_runs"].rows() if row["edges"] is not None}
    for file in distinct(file_of[lanes]).tolist():
        here = np.flatnonzero(file_of[lanes] == file)
        low = int(first[here[0]])
        window = low, low + int(cores.values("window_ticks")[here[0]])
        inside = known & (file_of[track] == file) & (start <= window[1]) & (start + length >= window[0])
        # On the lanes of executions that are far away, whatever reaches beyond the window is one of those.
        inside &= ~doubtful[track] | ((start >= window[0]) & (start + length <= window[1]))
        rows = np.flatnonzero(inside)
        if not len(rows):
            continue
        rows = rows[np.lexsort((start[rows] + length[rows], start[rows], track[rows]))]
        _, task = np.unique(
            np.column_stack([epoch[rows], tasks.values("task_id")[rows].view(np.int64)]), axis=0, return_inverse=True
        )
        yield Executions(
            file=file,
            track=track[rows],
            kind=kind_of[track[rows]],
            ids=tasks.values("task_id")[rows],
            task=task.reshape(-1),
            name=names[rows],
            epoch=epoch[rows],
            start=start[rows],
            end=start[rows] + length[rows],
            ready_is_exact=is_exact[rows],
            window=window,
            lanes=lanes[here],
            lane_kind=kinds[here],
            frequency=frequency_of(trace, int(lanes[here[0]])),
            has_graph=file in graphs,
            has_epochs=bool(tasks.valid("run_epoch")[rows].any()),
            **{name: values[rows] for name, values in stamps.items()},
        )


_STAMPS = ("dispatch", "finish", "ready")


def _code(text: str) -> int:
    return TYPES.index(text) if text in TYPES else -1


def frequency_of(trace: Trace, track: int | None = None) -> Fraction:
    """Return the ticks per second of the clock of a lane, or of the device of a trace of one file; 1 GHz if unknown."""
    clocks = {row["id"]: row for row in trace.clocks.rows()}
    if track is None:
        clock = next((row for row in clocks.values() if row["name"] == "syscnt"), None)
    else:
        clock = clocks.get(int(trace.tracks.values("clock_id")[track]))
    if clock is None or not clock["frequency_num"]:
        return Fraction(1_000_000_000)
    return Fraction(clock["frequency_num"], clock["frequency_den"])


def union(low: Int64, high: Int64) -> tuple[Int64, Int64]:
    """Return the union of intervals as disjoint ones that do not touch, rising; empty intervals are left out."""
    low, high = low[high > low], high[high > low]
    order = np.argsort(low, kind="stable")
    low, reach = low[order], np.maximum.accumulate(high[order])
    is_first = np.append(True, low[1:] > reach[:-1])[: len(low)]
    first = np.flatnonzero(is_first)
    return low[first], reach[np.append(first[1:], len(low)) - 1] if len(first) else reach[:0]


def covered(pieces: tuple[Int64, Int64], at: Int64) -> Int64:
    """Return how much of disjoint rising intervals lies before each instant, int64 [n]."""
    low, high = pieces
    if not len(low):
        return np.zeros(len(at), np.int64)
    before = np.concatenate([[0], np.cumsum(high - low)])
    place = np.searchsorted(low, at, "right")
    inside = np.where(place > 0, np.minimum(at, high[place - 1]) - low[place - 1], 0)
    found: Int64 = before[np.maximum(place - 1, 0)] + inside
    return found


def lanes_without_some(trace: Trace, lanes: str, rows: str, counted: str) -> Mask:
    """Return which lanes have fewer slices in the trace than were recorded, bool [rows of ``lanes``].

    A trace without suspect slices has such lanes: what these slices covered is unknown, not idle.

    Args:
        trace: the trace.
        lanes: table of the lanes.
        rows: table of their slices.
        counted: column of ``lanes`` with the number of slices that were recorded.
    """
    table, at = trace.details[lanes], trace.details[rows].values("slice_id")
    there = np.bincount(trace.slices.values("track_id")[at], minlength=len(trace.tracks))
    found: Mask = there[table.values("track_id")] < table.values(counted)
    return found
