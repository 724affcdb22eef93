"""LS2xx: flows between lanes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from lanescope.analysis.check.model import CheckContext
from lanescope.common.clock_order import UNKNOWN_ERROR, ClockErrors
from lanescope.common.intervals import Ints, bounds, order
from lanescope.families.rules import Rule, Violation
from lanescope.trace import Column, Flag, Table
from lanescope.trace.column import Mask


def _effect_first(subject: CheckContext) -> Iterator[Violation]:
    """Flows whose effect precedes their cause, by the lane of the effect."""
    flows = subject.trace.flows
    begin, found = 0, []
    for cause, effect in Column.pieces_of(flows.column("src_ts"), flows.column("dst_ts")):  # no other rule reads all
        found.append(np.flatnonzero(effect < cause) + begin)
        begin += len(cause)
    rows = np.concatenate(found)
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
    ends = [flows.values(name) for name in ("src_track_id", "src_ts", "dst_track_id", "dst_ts")]
    error = ClockErrors(subject.trace).between(*ends)
    # A clock that could not be placed is what the rule is about: an unknown error excuses nothing.
    found: Mask = (early <= error) & (error < UNKNOWN_ERROR)
    return found


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
