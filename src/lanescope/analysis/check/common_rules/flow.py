"""LS2xx: flows between lanes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from lanescope.analysis.check.model import CheckContext
from lanescope.common.intervals import INT64_MAX, Ints, bounds, order
from lanescope.families.rules import Rule, Violation
from lanescope.trace import Flag, Table, Trace
from lanescope.trace.column import Mask

#: How far the rates of two clocks may differ from the declared ones, where no anchors measure them: parts per million.
#: Quartz oscillators are specified to some 20 to 50 each.
DRIFT_PPM = 100


def _effect_first(subject: CheckContext) -> Iterator[Violation]:
    """Flows whose effect precedes their cause, by the lane of the effect."""
    flows = subject.trace.flows
    # Nobody else reads the begins.
    rows = np.flatnonzero(flows.values("dst_ts") < flows.column("src_ts").read_once())
    if not len(rows):
        return
    early = flows.values("src_ts")[rows] - flows.values("dst_ts")[rows]
    # Flows between slices with a suspect clock repeat the finding of another rule.
    reason = np.where(_suspect(subject, flows.take(rows)), 2, 0)
    reason[_excused(subject, flows.take(rows), early)] = 1
    lanes = flows.values("dst_track_id")[rows]
    unit = subject.trace.time.time_unit
    for number, words in enumerate(_REASONS):
        mine = np.flatnonzero(reason == number)
        mine = mine[order(lanes[mine], flows.values("dst_ts")[rows[mine]])]
        for first, last in pairwise(bounds(lanes[mine])):
            some = mine[first:last]
            worst = int(early[some].max())
            yield Violation(
                detail=f"up to {worst} {unit} early{words}",
                table="flows",
                rows=rows[some],
                severity="notice" if words else None,
                track_id=int(lanes[some[0]]),
                ts=int(flows.values("dst_ts")[rows[some[0]]]),
            )


#: Known reasons why an effect precedes its cause.
_REASONS = ("", ", within the clock error", ", caused by a suspect clock")


def _suspect(subject: CheckContext, flows: Table) -> Mask:
    """Return which flows begin or end at a slice whose clock is suspect, bool [n]."""
    found = np.zeros(len(flows), np.bool_)
    suspect = subject.rows_with_flag("slices", Flag.CLOCK_SUSPECT)
    if len(suspect):
        for end in ("src_slice_id", "dst_slice_id"):
            found |= flows.valid(end) & np.isin(flows.values(end), suspect)
    return found


def _excused(subject: CheckContext, flows: Table, early: Ints) -> Mask:
    """Return which flows join two clocks whose errors together allow for ``early``, bool [n]."""
    tracks = subject.trace.tracks
    no_clock = len(subject.trace.clocks)
    clock = np.append(np.where(tracks.valid("clock_id"), tracks.values("clock_id"), no_clock), no_clock)
    src, dst = (clock[np.clip(flows.values(end), -1, len(tracks))] for end in ("src_track_id", "dst_track_id"))
    limits = _ClockErrors(subject.trace)
    error = limits.at(src, flows.values("src_ts")) + limits.at(dst, flows.values("dst_ts"))
    found: Mask = (src != dst) & (early <= error)
    return found


class _ClockErrors:
    """How far timestamps of each clock of a trace may be off; the number of clocks means no clock.

    Args:
        trace: the trace.
    """

    def __init__(self, trace: Trace) -> None:
        count = len(trace.clocks)
        self._fixed = _steps(trace)
        self._first, self._last = np.full(count + 1, INT64_MAX), np.full(count + 1, -INT64_MAX)
        anchors = trace.anchors
        known = (anchors.values("clock_id") >= 0) & (anchors.values("clock_id") < count)
        clock, ts = anchors.values("clock_id")[known], anchors.values("ts")[known]
        stated = np.where(anchors.valid("error_ns"), anchors.values("error_ns"), 0)[known]
        error = np.zeros(count + 1, np.int64)
        np.maximum.at(error, clock, stated)
        self._fixed += error
        np.minimum.at(self._first, clock, ts)
        np.maximum.at(self._last, clock, ts)

    def at(self, clock: Ints, ts: Ints) -> Ints:
        """Return the possible error of timestamps, int64 [n]: stated error, one step, and drift beyond the anchors."""
        first, last = self._first[clock], self._last[clock]
        outside = np.where(first <= last, np.maximum(np.maximum(first - ts, ts - last), 0), 0)
        error: Ints = (
            self._fixed[clock] + outside // 1_000_000 * DRIFT_PPM + outside % 1_000_000 * DRIFT_PPM // 1_000_000
        )
        return error


def _steps(trace: Trace) -> Ints:
    """Return the resolution of each clock, rounded up to ns, and 0 for no clock, int64 [clocks + 1]."""
    clocks = trace.clocks
    steps = np.zeros(len(clocks) + 1, np.int64)
    if trace.time.time_unit != "ns":
        return steps
    rate = clocks.values("frequency_num") / np.maximum(clocks.values("frequency_den"), 1)
    known = np.flatnonzero(clocks.valid("frequency_num") & clocks.valid("frequency_den") & (rate >= 1))
    ticks = np.where(clocks.valid("resolution_ticks"), clocks.values("resolution_ticks"), 1)
    steps[known] = np.ceil(np.clip(ticks[known] * (1e9 / rate[known]), 0, 1e9)).astype(np.int64)
    return steps


RULES = (
    Rule(
        "LS201",
        "effect precedes cause",
        "warning",
        "A flow ends before it starts: work ran before its dispatch, or a wait ended before its signal. One of the two "
        "timestamps is wrong, usually because two clocks are not aligned. The finding is a notice if the errors of "
        "the two clocks cover the difference: stated error, resolution and drift. Or a clock is suspect.",
        "Do not compare timestamps across these lanes at a finer scale. Align the clocks or record anchors closer to "
        "the run.",
        _effect_first,
    ),
)
