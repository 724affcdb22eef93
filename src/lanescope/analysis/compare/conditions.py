"""Conditions under which a run was recorded: coverage, losses, clocks, configuration; and which of them differ.

A run that lost records, or was recorded on another clock, looks faster or slower without being so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from lanescope.analysis.lane_time import LaneTime
from lanescope.common.intervals import total_length
from lanescope.trace import Flag, Trace

#: Kinds of conditions, the most consequential first.
KINDS = ("losses", "coverage", "clocks", "configuration")
#: Kind -> name -> value, of one run.
Conditions: TypeAlias = Mapping[str, Mapping[str, str | int | float]]

#: Shares of recorded time that differ by less are the same.
_SAME_SHARE = 0.01


class ConditionDifference(NamedTuple):
    """A condition that differs between two sides.

    Attributes:
        kind: one of ``KINDS``.
        name: what differs.
        a: distinct values of the runs of the first side, sorted; None for a run without the condition.
        b: those of the second side.
        detail: what it does to a comparison, one clause.
    """

    kind: str
    name: str
    a: tuple[str | int | float | None, ...]
    b: tuple[str | int | float | None, ...]
    detail: str


_DETAILS = {
    "losses": "what was lost has no time: totals are too low",
    "coverage": "time that was not recorded has no slices: totals are too low",
    "clocks": "times of different clocks differ without a change of the work",
    "configuration": "runs of different configurations do different work",
}


def conditions_of(trace: Trace, time: LaneTime, losses: Mapping[str, int]) -> Conditions:
    """Return the conditions under which a run was recorded.

    Args:
        trace: the trace.
        time: the times of its lanes.
        losses: what it lost, by name.
    """
    return {
        "losses": {**dict(sorted(losses.items())), **dict(_without_end(trace))},
        "coverage": _coverage(trace, time),
        "clocks": dict(_clocks(trace)),
        "configuration": dict(sorted(_configuration(trace).items())),
    }


def _coverage(trace: Trace, time: LaneTime) -> dict[str, float]:
    """Return the shares of the lanes' time that were recorded, and that were in gaps."""
    lanes = time.tree.lanes
    begin, end = time.window
    span = (end - begin) * len(lanes)
    if not span:
        return {}
    count = len(time.tree)
    missing = int(total_length(time.uncovered, count)[lanes].sum())
    gaps = int(total_length(time.gaps, count)[lanes].sum())
    found = {"recorded share": round(1 - missing / span, 6)}
    return found | ({"share in gaps": round(gaps / span, 6)} if gaps else {})


def _clocks(trace: Trace) -> Iterator[tuple[str, str]]:
    """Yield the frequency and resolution of each clock; clocks of the same device have the same name in all runs."""
    seen: Counter[str] = Counter()
    for row in trace.clocks.rows():
        seen[row["name"]] += 1
        name = row["name"] + (f" ({seen[row['name']]})" if seen[row["name"]] > 1 else "")
        frequency = "unknown"
        if row["frequency_num"] is not None:
            frequency = f"{row['frequency_num']}/{row['frequency_den'] or 1} Hz"
        yield f"{name} frequency", frequency
        if row["resolution_ticks"] is not None:
            yield f"{name} resolution", f"{row['resolution_ticks']} ticks"


def _configuration(trace: Trace) -> dict[str, str | int]:
    found: dict[str, str | int] = {}
    for row in trace.inputs.rows():
        if row["role"] == "main":
            found["format"] = f"{row['family']}/{row['format']}"
            found["options"] = row["options"]
    kinds, roles = trace.tracks.values("kind").tolist(), trace.tracks.values("role").tolist()
    counts = Counter(role for kind, role in zip(kinds, roles, strict=True) if kind == "lane")
    found |= {f"lanes of kind {role or '(none)'}": count for role, count in counts.items()}
    if any(name.startswith("window_") for name in trace.stats.values("name").tolist()):
        found["window"] = "part of the timeline"
    return found


def _without_end(trace: Trace) -> Iterator[tuple[str, int]]:
    """Yield how many slices have no end, or no true one."""
    slices = trace.slices
    for name, count in (
        ("unfinished slices", len(slices) - int(slices.valid("dur").sum())),
        ("truncated slices", int((slices.values("flags") & np.uint32(Flag.TRUNCATED) > 0).sum())),
    ):
        if count:
            yield name, count


def differing(a: Sequence[Conditions], b: Sequence[Conditions]) -> list[ConditionDifference]:
    """Return the conditions that differ between the sides, the most consequential first.

    A condition differs if the sets of values of the sides differ. Counts and shares, which vary from run to run, differ
    if the ranges of the sides do not overlap; shares by one percentage point and by the range of a side at least.
    """
    found = []
    for kind in KINDS:
        names = dict.fromkeys(name for run in (*a, *b) for name in run.get(kind, {}))
        for name in names:
            sides = [[run.get(kind, {}).get(name) for run in side] for side in (a, b)]
            if _differ(kind, *sides):
                one, other = (tuple(sorted(set(side), key=_order)) for side in sides)
                found.append(ConditionDifference(kind, name, one, other, _DETAILS[kind]))
    return found


def _order(value: str | int | float | None) -> tuple[bool, float, str]:
    is_number = isinstance(value, int | float)
    return value is not None, float(value) if isinstance(value, int | float) else 0.0, "" if is_number else str(value)


def _differ(kind: str, a: Sequence[str | int | float | None], b: Sequence[str | int | float | None]) -> bool:
    if any(isinstance(value, str) for value in (*a, *b)):
        return set(a) != set(b)
    # What a run has not, it has none of.
    one, other = ([float(value or 0) for value in side] for side in (a, b))
    apart = max(min(one) - max(other), min(other) - max(one))
    if kind != "coverage":
        return apart > 0
    usual = max(max(one) - min(one), max(other) - min(other))
    return apart >= max(_SAME_SHARE, usual)
