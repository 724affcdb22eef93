"""Comparison of two sides of runs: which groups of slices differ, by how much, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lanescope.analysis.compare.conditions import ConditionDifference
from lanescope.analysis.compare.contribution import Contribution
from lanescope.analysis.compare.grouping import Key
from lanescope.errors import UsageError

ALPHA, FLOOR = 0.05, 0.01

#: Smaller values of alpha are out of reach of the labelings and resamples that are tried.
_LEAST_ALPHA, _MOST_ALPHA = 0.001, 0.5

#: Statistics of a group: time of all its slices, their number, mean time, and two percentiles of their durations.
STATISTICS = ("total", "count", "mean", "median", "p99")
#: Ways to compare: relabeling of runs; one capture with one other; one run with several (prediction intervals); only
#: effects, as there are too few runs.
RELABELING, PAIR, PREDICTION, TOO_FEW = "relabeling", "pair", "prediction", "too_few"

#: Verdicts about a group. Of one pair of captures only ``DIFFERS``: nothing tells what is usual between runs.
SLOWER, FASTER, MORE, FEWER = "slower", "faster", "more", "fewer"
APPEARED, VANISHED, DIFFERS = "appeared", "vanished", "differs in these two captures"
SAME, UNTESTED = "no difference found", "not tested"
#: Verdicts that name a group.
NAMED = (SLOWER, FASTER, MORE, FEWER, APPEARED, VANISHED, DIFFERS)


def check_numbers(alpha: float, floor: float) -> None:
    """Refuse numbers with which nothing can be decided.

    Raises:
        UsageError: alpha or floor is out of range.
    """
    if not _LEAST_ALPHA <= alpha <= _MOST_ALPHA:
        raise UsageError(
            f"invalid alpha {alpha:g}: expected {_LEAST_ALPHA:g} to {_MOST_ALPHA:g}", hint="use --alpha 0.05"
        )
    if not 0 <= floor < 1:
        raise UsageError(f"invalid floor {floor:g}: expected a share below 1", hint="use 0.01 for 1 %")


class Effect(NamedTuple):
    """A statistic of a group, or of all, on both sides.

    Attributes:
        a: geometric mean over the runs of the first side; None if a run has none, or 0.
        b: that of the second side.
        change: ``b / a - 1``; None if one of them is None.
        low: lower end of the simultaneous interval of the change; None if it is unknown or unbounded.
        high: its upper end.
        p: adjusted p; None if it was not tested.
    """

    a: float | None
    b: float | None
    change: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None


class GroupChange(NamedTuple):
    """A group of slices on both sides.

    Attributes:
        key: its identity, one text per column of ``Comparison.by``.
        verdict: one of the verdicts of this module.
        reason: why it was not tested, or how often it occurs; empty if the verdict says all.
        effects: by name of the statistic.
        contribution: to the change of the total.
        runs: in how many runs of either side it occurs.
    """

    key: Key
    verdict: str
    reason: str
    effects: dict[str, Effect]
    contribution: Contribution
    runs: tuple[int, int]

    @property
    def is_named(self) -> bool:
        """Whether the comparison names this group."""
        return self.verdict in NAMED


@dataclass(frozen=True, slots=True)
class Comparison:
    """Result of a comparison.

    Attributes:
        method: ``relabeling``, ``pair``, ``prediction`` or ``too_few``.
        by: columns of the identity of groups.
        unit: time unit.
        alpha: largest chance of naming anything if nothing changed.
        floor: smallest change that is named.
        runs: names of the runs of either side.
        conditions: what differs in how the sides were recorded; read it first.
        overall: ``busy`` (self time of all slices) and ``span`` of a run; each tested by itself.
        change: change of the mean busy time per run, the sum of all contributions.
        groups: all groups, the named ones first, then by size of the contribution.
        needed: runs per side that a verdict needs; 0 if there are enough.
        labelings: how many labelings or resamples the test rests on.
        notes: what a reader must know of the method in this case, a sentence each.
    """

    method: str
    by: tuple[str, ...]
    unit: str
    alpha: float
    floor: float
    runs: tuple[tuple[str, ...], tuple[str, ...]]
    conditions: tuple[ConditionDifference, ...]
    overall: dict[str, Effect]
    change: int
    groups: tuple[GroupChange, ...]
    needed: int = 0
    labelings: int = 0
    notes: tuple[str, ...] = field(default=())

    @property
    def named(self) -> tuple[GroupChange, ...]:
        """The groups that the comparison names."""
        return tuple(group for group in self.groups if group.is_named)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON document ``lanescope.diff/1``."""
        return {
            "method": self.method,
            "by": list(self.by),
            "unit": self.unit,
            "alpha": self.alpha,
            "floor": self.floor,
            "runs": {"a": list(self.runs[0]), "b": list(self.runs[1])},
            "runs_needed": self.needed or None,
            "labelings": self.labelings or None,
            "notes": list(self.notes),
            "conditions": [each._asdict() for each in self.conditions],
            "overall": {name: effect._asdict() for name, effect in self.overall.items()},
            "change": self.change,
            "groups": [
                {
                    "key": dict(zip(self.by, group.key, strict=True)),
                    "verdict": group.verdict,
                    "reason": group.reason,
                    "runs": {"a": group.runs[0], "b": group.runs[1]},
                    "effects": {name: effect._asdict() for name, effect in group.effects.items()},
                    "contribution": group.contribution._asdict(),
                }
                for group in self.groups
            ],
        }
