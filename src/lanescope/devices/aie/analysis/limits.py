"""What an AIE capture cannot prove."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from lanescope.families.limit import Limit
from lanescope.trace import Table, Trace

#: Units that stop on one broadcast stop within so many cycles of each other.
_NEAR = 64
#: The modes of a trace unit.
_EVENT_TIME, _EVENT_PC, _EXECUTION = 0, 1, 2


def _units(trace: Trace, rows: npt.NDArray[np.bool_]) -> list[str]:
    """Return the names of the units with these segments, bool [segments]."""
    segments = trace.details["aie_segments"]
    names = trace.tracks.values("name")
    return [str(names[track]) for track in dict.fromkeys(segments.values("track_id")[rows].tolist())]


def _segments(trace: Trace) -> Table | None:
    return trace.details.get("aie_segments")


def _without_shared_stop(trace: Trace) -> Iterator[str]:
    """Name units in mode 0 whose segment lasts as long as no other one: they were not stopped together."""
    segments = _segments(trace)
    if segments is None:
        return
    timed = (segments.values("mode") == _EVENT_TIME) & segments.valid("dur_cycles")
    stopped = timed & segments.values("has_stop")
    length = segments.values("dur_cycles")
    known = np.sort(length[stopped])
    together = np.searchsorted(known, length + _NEAR, "right") - np.searchsorted(known, length - _NEAR, "left")
    yield from _units(trace, timed & ~(stopped & (together > 1)))


def _without_stop(trace: Trace) -> Iterator[str]:
    segments = _segments(trace)
    if segments is not None:
        yield from _units(trace, ~segments.values("has_stop"))


def _in_mode(*modes: int) -> Callable[[Trace], Iterator[str]]:
    def where(trace: Trace) -> Iterator[str]:
        segments = _segments(trace)
        if segments is not None:
            yield from _units(trace, np.isin(segments.values("mode"), modes))

    return where


def _without_config(trace: Trace) -> Iterator[str]:
    if set(trace.inputs.values("role").tolist()) == {"main"}:
        yield "all slots"


LIMITS = (
    Limit(
        "time-in-stream",
        "That no time is lost or added inside a stream: nothing else in the dump states how long the stream lasted.",
        "Let all trace units stop on one broadcast event: the streams then have to end in the same cycle.",
        _without_shared_stop,
    ),
    Limit(
        "end-of-stream",
        "That the stream is complete: it has no Stop frame.",
        "Stop the trace units before the buffer is read, and give the buffer room for their last frames.",
        _without_stop,
    ),
    Limit(
        "cycles-without-events",
        "When events took place: modes 1 and 2 record no timestamps.",
        "Use mode 0 (event-time) for questions about time.",
        _in_mode(_EVENT_PC, _EXECUTION),
    ),
    Limit(
        "event-names",
        "Which hardware event each slot traces: the dump does not state it.",
        "Keep the configuration or the MLIR of the design next to the dump.",
        _without_config,
    ),
)
