"""Contradictions between sidecar files of the host and the capture, and inside of its log."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from lanescope.devices.ascend.formats.host_phases import SUBMITTING, HostPhases
from lanescope.devices.ascend.formats.layout import HOST_SUBMITS, UPLOADS
from lanescope.devices.ascend.formats.strace import HostLog
from lanescope.devices.ascend.interpret.host_log import walls_of
from lanescope.devices.ascend.interpret.resolve import Interpreter
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]

#: Stat and count.
Found = Iterator[tuple[str, int]]


def found(told: Interpreter) -> Found:
    """Yield what contradicts something else."""
    phases = told.parts.host_file
    if phases is not None:
        yield "ascend_host_phases_unordered", _unordered(phases)
    if phases is not None and len(phases) and not phases.tally.bad_count and told.records.cut is None:
        yield from _phases(told, phases)
    if told.parts.placed_log is not None:
        yield from _spans(told.parts.placed_log.log)


def _phases(told: Interpreter, phases: HostPhases) -> Found:
    """Compare the phases with the lists and numbers of the capture, which are of the same records."""
    if (phases.process != phases.process[0]).any() or (phases.run != phases.run[0]).any():
        return  # of several runs, which is the capture's is not known
    capture = told.records.metadata.get("host_capture")
    pool = capture.get("pool_records") if isinstance(capture, dict) else None
    if type(pool) is int and not phases.dropped:
        yield "ascend_count_contradicts", int(pool != len(phases))
    submits, copies = told.records[HOST_SUBMITS], told.records[UPLOADS]
    names = np.array([*copies.texts, ""], object)[np.where(copies.has("phase"), copies["phase"], len(copies.texts))]
    for rows, is_kind, columns in (
        (submits, phases.are(*SUBMITTING), ("start_host_ns", "end_host_ns", "task_id")),
        (copies, phases.are(*{str(name) for name in names.tolist()}), ("start_host_ns", "end_host_ns", "detail")),
    ):
        if not len(rows) or phases.dropped or told.records.as_read[rows.layout.name].tally.bad_bytes:
            continue
        mine = np.column_stack([rows[name].astype(np.uint64) for name in columns])
        theirs = np.column_stack(
            [values[is_kind].astype(np.uint64) for values in (phases.begin, phases.end, phases.detail)]
        )
        yield "ascend_host_phases_contradict", _apart(mine, theirs)


def _unordered(phases: HostPhases) -> int:
    """Return how many phases begin before one that stands before them: writers sort each thread by start."""
    order = np.lexsort((np.arange(len(phases)), phases.thread, phases.run, phases.process))
    same = np.ones(max(len(phases) - 1, 0), np.bool_)
    for values in (phases.process, phases.run, phases.thread):
        same &= values[order][1:] == values[order][:-1]
    begin = phases.begin[order]
    return int(np.count_nonzero(same & (begin[1:] < begin[:-1])))


def _apart(one: npt.NDArray[np.uint64], other: npt.NDArray[np.uint64]) -> int:
    """Return how many rows of the longer of two tables the other one lacks."""
    one, other = (rows[np.lexsort(rows.T)] for rows in (one, other))
    if one.shape == other.shape and (one == other).all():
        return 0
    mine, theirs = ({tuple(row) for row in rows.tolist()} for rows in (one, other))
    return max(len(mine - theirs), len(theirs - mine), abs(len(one) - len(other)))


def _spans(log: HostLog) -> Found:
    """Compare each span with the one of the same run whose name encloses its own, with its siblings and its line."""
    keys = list(zip(log.process.tolist(), log.run.tolist(), log.name.tolist(), strict=True))
    names = {(process, run, name): row for row, (process, run, name) in enumerate(keys)}
    is_in_run = log.run > 0
    parent = np.full(len(log), -1, np.int64)
    for row in np.flatnonzero(is_in_run).tolist():
        process, run, name = keys[row]
        parent[row] = names.get((process, run, name.rpartition(".")[0]), -1)
    yield "ascend_host_span_unmatched", int(np.count_nonzero(is_in_run & (log.depth > 0) & (parent < 0)))
    end = log.begin + log.length
    wrong = _apart_from_line(log, end) | _overlapping(log, end) | _apart_from_counter(log)
    # What a run does is done in runs only.
    of_runs = {(process, name) for process, run, name in keys if run > 0}
    wrong |= ~is_in_run & np.array([(process, name) in of_runs for process, _, name in keys], np.bool_)
    child = np.flatnonzero(parent >= 0)
    parent = parent[child]
    differs = (log.depth[child] != log.depth[parent] + 1) | (log.function[child] != log.function[parent])
    # Times of the device have an origin of their own; no part is longer than the whole.
    same_clock = log.of_device[child] == log.of_device[parent]
    differs |= log.length[child] > log.length[parent]
    on_host = same_clock & ~log.of_device[child]
    differs |= on_host & ((log.begin[child] < log.begin[parent]) | (end[child] > end[parent]))
    wrong[child] |= differs
    repeated = len(keys) - len({(*key, begin) for key, begin in zip(keys, log.begin.tolist(), strict=True)})
    yield "ascend_host_spans_contradict", int(np.count_nonzero(wrong)) + repeated


def _apart_from_line(log: HostLog, end: Int64) -> Mask:
    """Return the spans whose line was written before they ended, or before the line that precedes it, bool [n].

    A thread writes a line when a span has ended, one after the other.
    """
    told = log.written >= 0
    wrong: Mask = told & ~log.of_device & (end > log.written)
    rows = np.flatnonzero(told)
    rows = rows[np.lexsort((rows, log.thread[rows], log.process[rows]))]
    one, other = rows[:-1], rows[1:]
    same = (log.thread[one] == log.thread[other]) & (log.process[one] == log.process[other])
    wrong[other] |= same & (log.written[other] < log.written[one])
    return wrong


def _apart_from_counter(log: HostLog) -> Mask:
    """Return the spans of devices whose length is not that of the counter's readings, bool [n].

    Writers divide in floating point and cut off what is left: a nanosecond, or a part in 2 to the 50th, may be missing.
    """
    walls, wrong = walls_of(log), np.zeros(len(log), np.bool_)
    for row, ticks, frequency in zip(
        walls.row.tolist(), (walls.end - walls.begin).tolist(), walls.frequency.tolist(), strict=True
    ):
        length = ticks * 1_000_000_000 // frequency
        wrong[row] = abs(int(log.length[row]) - length) > 1 + (length >> 50)
    return wrong


def _overlapping(log: HostLog, end: Int64) -> Mask:
    """Return the spans that begin before another one of their thread and depth has ended, bool [n]."""
    wrong = np.zeros(len(log), np.bool_)
    rows = np.flatnonzero(~log.of_device)
    keys = (log.run, log.depth, log.thread, log.process)
    rows = rows[np.lexsort((end[rows], log.begin[rows], *(key[rows] for key in keys)))]
    one, other = rows[:-1], rows[1:]
    same = np.ones(len(one), np.bool_)
    for key in keys:
        same &= key[one] == key[other]
    # One that is there twice is counted as such.
    same &= (log.begin[other] != log.begin[one]) | (end[other] != end[one])
    wrong[other] |= same & (log.begin[other] < end[one])
    return wrong
