"""Evidence that a statistic of a group differs, and the values on which it rests."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, log1p
from typing import NamedTuple, TypeAlias

from lanescope.analysis.compare.grouping import Key
from lanescope.analysis.compare.run_summary import RunSummary


class Evidence(NamedTuple):
    """A tested statistic of a group, as a logarithm of the ratio of the sides.

    Attributes:
        effect: the logarithm.
        half_width: of its simultaneous interval; inf if nothing bounds it.
        p: adjusted p.
    """

    effect: float
    half_width: float
    p: float

    def is_beyond(self, alpha: float, floor: float) -> bool:
        """Return whether it is significant, and as large as the floor."""
        return self.p <= alpha and abs(self.effect) >= log1p(floor)


#: Evidence by group and name of the statistic.
Tests: TypeAlias = dict[tuple[Key, str], Evidence]


def logs(runs: Sequence[RunSummary], key: Key, statistic: str) -> list[float] | None:
    """Return the logarithm of a statistic of a group in each run; None if a run has none, or 0."""
    found = []
    for run in runs:
        value = value_of(run, key, statistic)
        if not value:
            return None
        found.append(log(value))
    return found


def value_of(run: RunSummary, key: Key, statistic: str) -> float | None:
    """Return a statistic of a group in a run; None if the run has none."""
    group = run.groups.get(key)
    if group is None or not group.slices:
        return None
    if statistic == "mean":
        return group.total / group.slices
    value: int | None = getattr(group, "slices" if statistic == "count" else statistic)
    return value


def tested_groups(
    runs: Sequence[RunSummary], statistics: Sequence[str]
) -> tuple[list[tuple[Key, str]], list[list[float]]]:
    """Return the groups and statistics that all runs have, and the logarithms of each, one per run."""
    keys = sorted(set.intersection(*(set(run.groups) for run in runs)))
    rows = {(key, name): values for key in keys for name in statistics if (values := logs(runs, key, name)) is not None}
    return list(rows), list(rows.values())
