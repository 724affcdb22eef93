"""The verdict on each group of slices of two sides of runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import exp, log, log1p

import numpy as np

from lanescope.analysis.compare import comparison as words
from lanescope.analysis.compare.comparison import (
    ALPHA,
    FLOOR,
    STATISTICS,
    Comparison,
    Effect,
    GroupChange,
    check_numbers,
)
from lanescope.analysis.compare.conditions import differing
from lanescope.analysis.compare.contribution import Contribution, Side, contributions
from lanescope.analysis.compare.evidence import Evidence, Tests, logs, tested_groups
from lanescope.analysis.compare.grouping import Key
from lanescope.analysis.compare.one_pair import pair_test
from lanescope.analysis.compare.prediction import FEWEST, prediction_test
from lanescope.analysis.compare.relabeling import relabeling_test, runs_needed, smallest_p
from lanescope.analysis.compare.run_summary import RunSummary
from lanescope.errors import UsageError

#: Statistics that are tested together, as verdicts rest on both; each other one is tested by itself.
_JOINT = ("total", "count")


def compare_runs(
    a: Sequence[RunSummary], b: Sequence[RunSummary], *, alpha: float = ALPHA, floor: float = FLOOR
) -> Comparison:
    """Compare two sides of runs.

    With four runs or more per side, runs are relabeled. One run against four or more is compared with their prediction
    intervals, one against one by what is usual within the captures. Less than that gives effects without verdicts.

    Args:
        a: runs of the first side, at least one.
        b: runs of the second side, at least one.
        alpha: largest chance of naming any group if nothing changed.
        floor: smallest change that is named, 0.01 for 1 %.

    Raises:
        UsageError: a number out of range, a side without runs, or runs of different time units or groupings.
    """
    check_numbers(alpha, floor)
    _refuse_unlike(a, b)
    runs = len(a), len(b)
    tests: Tests = {}
    notes = list(_duplicates(a, b))
    labelings = needed = 0
    if runs == (1, 1) and a[0].sequences is not None and b[0].sequences is not None:
        method = words.PAIR
        tests, labelings = pair_test(a[0], b[0], alpha)
        needed = runs_needed(alpha)
        notes.append(
            f"one capture per side: differences between these two captures; {needed} runs per side show what is usual"
        )
    elif min(runs) == 1 and max(runs) >= FEWEST:
        method = words.PREDICTION
        tests = prediction_test(a, b, alpha)
    elif min(runs) > 1 and smallest_p(*runs) <= alpha:
        method = words.RELABELING
        tests, labelings, is_exact = _relabeled(a, b, alpha)
        if not is_exact:
            notes.append(f"{labelings:,} of all labelings drawn with a fixed seed")
    else:
        method, needed = words.TOO_FEW, runs_needed(alpha)
        notes.append(
            f"too few runs: {runs[0]} against {runs[1]} cannot reach p <= {alpha:g}; record {needed} runs per side"
        )
    sides = _summed(a), _summed(b)
    change, parts = contributions(*sides, runs)
    groups = [_group(key, a, b, tests, method, parts[key], alpha=alpha, floor=floor) for key in parts]
    return Comparison(
        method=method,
        by=a[0].by,
        unit=a[0].unit,
        alpha=alpha,
        floor=floor,
        runs=(tuple(run.name for run in a), tuple(run.name for run in b)),
        conditions=tuple(differing([run.conditions for run in a], [run.conditions for run in b])),
        overall=_overall(a, b, alpha),
        change=change,
        groups=tuple(sorted(groups, key=lambda one: (not one.is_named, -abs(one.contribution.change), one.key))),
        needed=needed,
        labelings=labelings,
        notes=tuple(notes),
    )


def _refuse_unlike(a: Sequence[RunSummary], b: Sequence[RunSummary]) -> None:
    if not a or not b:
        raise UsageError("a side without runs", hint="use lanescope diff A... -- B...")
    first = a[0]
    for run in (*a, *b):
        if run.unit != first.unit:
            raise UsageError(
                f"{run.name} has times in {run.unit}, {first.name} in {first.unit}",
                hint="pass the frequency of the clock as a decode option to all runs, or to none",
            )
        if run.by != first.by:
            raise UsageError(
                f"{run.name} is grouped by {','.join(run.by)}, {first.name} by {','.join(first.by)}",
                hint="use the same --by for all runs",
            )


def _duplicates(a: Sequence[RunSummary], b: Sequence[RunSummary]) -> list[str]:
    """Return a note for each capture that is more than one of the runs."""
    counts = Counter(run.sha256 for run in (*a, *b) if run.sha256)
    names = {run.sha256: run.name for run in (*b, *a)}
    return [
        f"{names[hash]} is specified {count} times: copies of a run are no evidence of how runs vary"
        for hash, count in counts.items()
        if count > 1
    ]


def _summed(runs: Sequence[RunSummary]) -> dict[Key, Side]:
    """Return count and total of each group over the runs of a side."""
    found: dict[Key, Side] = {}
    for run in runs:
        for key, group in run.groups.items():
            slices, total = found.get(key, (0, 0))
            found[key] = Side(slices + group.slices, total + group.total)
    return found


def _relabeled(a: Sequence[RunSummary], b: Sequence[RunSummary], alpha: float) -> tuple[Tests, int, bool]:
    found: Tests = {}
    labelings, is_exact = 0, True
    for statistics in (_JOINT, *((name,) for name in STATISTICS if name not in _JOINT)):
        rows, values = tested_groups((*a, *b), statistics)
        if not rows:
            continue
        tested = relabeling_test(np.array(values), len(a), alpha)
        labelings, is_exact = tested.labelings, tested.is_exact
        columns = (tested.effect.tolist(), tested.half_width.tolist(), tested.p.tolist())
        found |= {row: Evidence(*values) for row, *values in zip(rows, *columns, strict=True)}
    return found, labelings, is_exact


def _overall(a: Sequence[RunSummary], b: Sequence[RunSummary], alpha: float) -> dict[str, Effect]:
    """Return busy time and span of the sides; each with a test of its own where there are enough runs."""
    found = {}
    for name, sides in (
        ("busy", ([run.total for run in a], [run.total for run in b])),
        ("span", ([run.span for run in a], [run.span for run in b])),
    ):
        if not all(map(all, sides)):
            found[name] = Effect(None, None)
            continue
        one, other = ([log(value) for value in side] for side in sides)
        test = None
        if min(len(a), len(b)) > 1 and smallest_p(len(a), len(b)) <= alpha:
            tested = relabeling_test(np.array([[*one, *other]]), len(a), alpha)
            test = Evidence(float(tested.effect[0]), float(tested.half_width[0]), float(tested.p[0]))
        found[name] = _effect(one, other, test)
    return found


def _effect(a: Sequence[float] | None, b: Sequence[float] | None, test: Evidence | None) -> Effect:
    one, other = (None if side is None else sum(side) / len(side) for side in (a, b))
    if one is None or other is None:
        return Effect(None if one is None else _value(one), None if other is None else _value(other))
    change = exp(other - one) - 1
    if test is None:
        return Effect(_value(one), _value(other), change)
    low, high = test.effect - test.half_width, test.effect + test.half_width
    is_bounded = abs(test.half_width) < _MOST
    return Effect(
        _value(one),
        _value(other),
        change,
        exp(low) - 1 if is_bounded else None,
        exp(high) - 1 if is_bounded else None,
        test.p,
    )


def _value(logarithm: float) -> float:
    """Return the number of a logarithm, to the digits that it keeps: a whole number is whole again."""
    return float(f"{exp(logarithm):.14g}")


#: Intervals of logarithms that are wider bound nothing.
_MOST = 50.0


def _group(
    key: Key,
    a: Sequence[RunSummary],
    b: Sequence[RunSummary],
    tests: Mapping[tuple[Key, str], Evidence],
    method: str,
    contribution: Contribution,
    *,
    alpha: float,
    floor: float,
) -> GroupChange:
    occurs = sum(key in run.groups for run in a), sum(key in run.groups for run in b)
    effects = {name: _effect(logs(a, key, name), logs(b, key, name), tests.get((key, name))) for name in STATISTICS}
    found = {name: tests.get((key, name)) for name in STATISTICS}
    if method == words.PAIR and a[0].groups.get(key) == b[0].groups.get(key):
        # Equal numbers need no test, which few slices do not allow.
        return GroupChange(key, words.SAME, "", effects, contribution, occurs)
    verdict, reason = _verdict(occurs, (len(a), len(b)), found, effects, method, alpha=alpha, floor=floor)
    return GroupChange(key, verdict, reason, effects, contribution, occurs)


def _verdict(
    occurs: tuple[int, int],
    runs: tuple[int, int],
    tests: Mapping[str, Evidence | None],
    effects: Mapping[str, Effect],
    method: str,
    *,
    alpha: float,
    floor: float,
) -> tuple[str, str]:
    """Return the verdict on a group, and why it was not tested or what else changed."""
    where = f"in {occurs[0]} of {runs[0]} and {occurs[1]} of {runs[1]} runs"
    if method == words.TOO_FEW:
        return words.UNTESTED, "too few runs" if occurs == runs else f"{where}; too few runs"
    if occurs[0] == 0 and occurs[1] == runs[1]:
        return words.APPEARED, ""
    if occurs[1] == 0 and occurs[0] == runs[0]:
        return words.VANISHED, ""
    if occurs != runs:
        return words.UNTESTED, where
    if method == words.PAIR:
        return _pair_verdict(tests, effects, alpha=alpha, floor=floor)
    total, count = tests["total"], tests["count"]
    if count is None:
        return words.UNTESTED, "no finished slice in some runs"
    counts_differ = count.is_beyond(alpha, floor)
    if total is None:
        if counts_differ:
            return (words.MORE if count.effect > 0 else words.FEWER), "no self time"
        return words.UNTESTED, "no self time"
    mean = tests["mean"]
    if counts_differ:
        if mean is not None and mean.is_beyond(alpha, floor):
            return (words.SLOWER if mean.effect > 0 else words.FASTER), f"count {exp(count.effect) - 1:+.1%}"
        return (words.MORE if count.effect > 0 else words.FEWER), ""
    if total.is_beyond(alpha, floor):
        return (words.SLOWER if total.effect > 0 else words.FASTER), ""
    return words.SAME, ""


def _pair_verdict(
    tests: Mapping[str, Evidence | None], effects: Mapping[str, Effect], *, alpha: float, floor: float
) -> tuple[str, str]:
    """Return the verdict on a group of two captures: counts are facts, times are tested."""
    count, mean = effects["count"].change, tests["mean"]
    parts = [f"count {count:+.1%}"] if count and abs(log1p(count)) >= log1p(floor) else []
    if mean is not None and mean.is_beyond(alpha, floor):
        parts.append(f"time per slice {exp(mean.effect) - 1:+.1%}")
    if parts:
        return words.DIFFERS, ", ".join(parts)
    if mean is None:
        return words.UNTESTED, "too few slices"
    return words.SAME, ""
