"""Contradictions between sidecar files of the host and the capture, and inside of its log."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from lanescope.devices.ascend.formats.host_phases import SUBMITTING, HostPhases
from lanescope.devices.ascend.formats.layout import HOST_SUBMITS, UPLOADS
from lanescope.devices.ascend.formats.strace import HostLog
from lanescope.devices.ascend.interpret.resolve import Interpreter

Int64 = npt.NDArray[np.int64]

#: Stat and count.
Found = Iterator[tuple[str, int]]


def found(told: Interpreter) -> Found:
    """Yield what contradicts something else."""
    phases = told.parts.host_file
    if phases is not None and len(phases) and not phases.bad_lines and told.records.cut is None:
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
    kinds = phases.phase.astype(str)
    submits, copies = told.records[HOST_SUBMITS], told.records[UPLOADS]
    names = np.array([*copies.texts, ""], object)[np.where(copies.has("phase"), copies["phase"], len(copies.texts))]
    for rows, is_kind, columns in (
        (submits, np.isin(kinds, SUBMITTING), ("start_host_ns", "end_host_ns", "task_id")),
        (copies, np.isin(kinds, sorted({str(name) for name in names})), ("start_host_ns", "end_host_ns", "detail")),
    ):
        if not len(rows) or phases.dropped or told.records.as_read[rows.layout.name].tally.bad_bytes:
            continue
        mine = np.column_stack([rows[name].astype(np.uint64) for name in columns])
        theirs = np.column_stack(
            [values[is_kind].astype(np.uint64) for values in (phases.begin, phases.end, phases.detail)]
        )
        yield "ascend_host_phases_contradict", _apart(mine, theirs)


def _apart(one: npt.NDArray[np.uint64], other: npt.NDArray[np.uint64]) -> int:
    """Return how many rows of the longer of two tables the other one lacks."""
    one, other = (rows[np.lexsort(rows.T)] for rows in (one, other))
    if one.shape == other.shape and (one == other).all():
        return 0
    mine, theirs = ({tuple(row) for row in rows.tolist()} for rows in (one, other))
    return max(len(mine - theirs), len(theirs - mine), abs(len(one) - len(other)))


def _spans(log: HostLog) -> Found:
    """Compare each span with the one of the same run whose name encloses its own."""
    keys = list(zip(log.process.tolist(), log.run.tolist(), log.name.tolist(), strict=True))
    names = {(process, run, name): row for row, (process, run, name) in enumerate(keys)}
    is_in_run = log.run > 0
    parent = np.full(len(log), -1, np.int64)
    for row in np.flatnonzero(is_in_run & (log.depth > 0)).tolist():
        process, run, name = keys[row]
        parent[row] = names.get((process, run, name.rpartition(".")[0]), -1)
    yield "ascend_host_span_unmatched", int(np.count_nonzero(is_in_run & (log.depth > 0) & (parent < 0)))
    child = np.flatnonzero(parent >= 0)
    parent = parent[child]
    end = log.begin + log.length
    wrong = (log.depth[child] != log.depth[parent] + 1) | (log.function[child] != log.function[parent])
    # Times of the device have an origin of their own; no part is longer than the whole.
    same_clock = log.of_device[child] == log.of_device[parent]
    wrong |= log.length[child] > log.length[parent]
    on_host = same_clock & ~log.of_device[child]
    wrong |= on_host & ((log.begin[child] < log.begin[parent]) | (end[child] > end[parent]))
    repeated = len(keys) - len({(*key, begin) for key, begin in zip(keys, log.begin.tolist(), strict=True)})
    yield "ascend_host_spans_contradict", int(np.count_nonzero(wrong)) + repeated
