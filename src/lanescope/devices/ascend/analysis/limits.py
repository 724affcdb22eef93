"""What an Ascend swimlane cannot prove."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lanescope.families.limit import Limit
from lanescope.trace import Trace

#: The level from which on dispatches are recorded next to executions.
_DISPATCH = 2
_CORES, _SCHEDULER = "aicore_task", "aicpu_task"


def _one_stream(trace: Trace) -> Iterator[str]:
    runs, streams = trace.details.get("ascend_runs"), trace.details.get("ascend_record_streams")
    if runs is not None and (runs.values("level") < _DISPATCH).any():
        yield "executions without dispatches (level 1)"
    present = set() if streams is None else set(streams.values("stream").tolist())
    if present and len(present & {_CORES, _SCHEDULER}) == 1:
        (only,) = present & {_CORES, _SCHEDULER}
        yield f"stream {only} only"


def _uncounted(trace: Trace) -> Iterator[str]:
    streams = trace.details.get("ascend_record_streams")
    if streams is None or not len(streams):
        yield "all streams"
        return
    rows = np.flatnonzero(~streams.valid("attempted") | ~streams.valid("dropped"))
    yield from dict.fromkeys(f"stream {name}" for name in streams.values("stream")[rows].tolist())


def _without_graph(trace: Trace) -> Iterator[str]:
    runs = trace.details.get("ascend_runs")
    if runs is not None and not runs.valid("edges").all():
        yield "all tasks"


LIMITS = (
    Limit(
        "one-stream",
        "That no record of an execution is missing: records of the cores and of the scheduler check each other, and "
        "only one of the two is there.",
        "Record at level 2 or higher, and keep the files of both streams.",
        _one_stream,
    ),
    Limit(
        "lost-records",
        "That no record was dropped in both streams: the producer does not state how many it attempted to write.",
        "Keep the counts of the collector (format v4, or the raw dumps with their headers).",
        _uncounted,
    ),
    Limit(
        "task-order",
        "That tasks waited for their producers: the task graph is missing.",
        "Keep deps.json next to the capture.",
        _without_graph,
    ),
)
