"""Conditions under which a comparison fails: ``p99(load) > +5%``."""

from __future__ import annotations

import math
import re
from fnmatch import fnmatchcase
from math import log1p
from typing import NamedTuple

from lanescope.analysis.compare import comparison as words
from lanescope.analysis.compare.comparison import STATISTICS, Comparison, Effect, GroupChange
from lanescope.errors import UsageError

_FORM = re.compile(r"\s*(\w+)\s*\((.*)\)\s*(<|>)\s*([+-]?[0-9]+(?:\.[0-9]+)?)\s*%\s*")


class FailCondition(NamedTuple):
    """A condition on the change of a statistic of some groups.

    Attributes:
        text: as the user wrote it.
        statistic: one of ``STATISTICS``.
        pattern: glob of names of groups, or of whole keys with ``, `` between the columns.
        is_above: whether it fails above the threshold, else below it.
        threshold: a change, 0.05 for 5 %.
    """

    text: str
    statistic: str
    pattern: str
    is_above: bool
    threshold: float

    def matches(self, group: GroupChange) -> bool:
        """Return whether the condition is about a group."""
        return any(fnmatchcase(text, self.pattern) for text in (group.key[0], ", ".join(group.key)))


class Judged(NamedTuple):
    """What a condition came to.

    Attributes:
        failed: groups for which it holds.
        undecided: groups for which it cannot be decided, with the reason.
    """

    failed: tuple[GroupChange, ...]
    undecided: tuple[tuple[GroupChange, str], ...]


def parse_condition(text: str) -> FailCondition:
    """Return the condition that a text describes.

    Raises:
        UsageError: it is none.

    Example:
        >>> parse_condition("p99(load) > +5%")[1:]
        ('p99', 'load', True, 0.05)
    """
    found = _FORM.fullmatch(text)
    if found is None or found[1] not in STATISTICS or not found[2].strip():
        raise UsageError(
            f"invalid condition {text!r}: expected STATISTIC(NAME) > +5%",
            hint="use one of " + ", ".join(STATISTICS) + " and the name of a group, a glob",
        )
    threshold = float(found[4]) / 100
    is_above = found[3] == ">"
    if not math.isfinite(threshold) or (threshold < 0 if is_above else threshold > 0):
        raise UsageError(f"invalid condition {text!r}: expected > +N% or < -N%", hint="use > +5% or < -5%")
    return FailCondition(text, found[1], found[2].strip(), is_above, threshold)


def judge(found: Comparison, condition: FailCondition, *, has_floor: bool) -> Judged:
    """Return the groups for which a condition holds.

    It holds where the change is beyond the threshold, significant at ``alpha`` and as large as the floor.

    Args:
        found: the comparison.
        condition: the condition.
        has_floor: whether the user gave the floor; of a pair of captures nothing else bounds what is usual.

    Raises:
        UsageError: it matches no group, or there are too few runs to decide it.
    """
    if found.method == words.TOO_FEW:
        raise UsageError(
            f"condition {condition.text!r} requires {found.needed} runs per side",
            hint="record more runs, or compare with a baseline of 4 runs",
        )
    if found.method == words.PAIR and not has_floor:
        raise UsageError(
            f"condition {condition.text!r} on one capture per side requires --floor",
            hint="use --floor 5%, or compare with a baseline of 4 runs",
        )
    groups = [group for group in found.groups if condition.matches(group)]
    if not groups:
        raise UsageError(
            f"condition {condition.text!r} matches none of {len(found.groups)} groups",
            hint="check the name against lanescope diff without --fail-if",
        )
    failed: list[GroupChange] = []
    undecided: list[tuple[GroupChange, str]] = []
    for group in groups:
        holds = _holds(found, group, condition)
        if holds is None:
            undecided.append((group, group.reason or "no test of this statistic"))
        elif holds:
            failed.append(group)
    return Judged(tuple(failed), tuple(undecided))


def _holds(found: Comparison, group: GroupChange, condition: FailCondition) -> bool | None:
    """Return whether a condition holds for a group; None if that cannot be decided."""
    if group.verdict in (words.APPEARED, words.VANISHED):
        return condition.is_above == (group.verdict == words.APPEARED)
    effect = group.effects[condition.statistic]
    if effect.change is None:
        return None
    is_beyond = effect.change > condition.threshold if condition.is_above else effect.change < condition.threshold
    is_large = abs(log1p(effect.change)) >= log1p(found.floor)
    if found.method != words.PAIR:
        return None if effect.p is None else is_beyond and is_large and effect.p <= found.alpha
    if condition.statistic in ("mean", "total"):
        return is_beyond and is_large and _differs(found, group.effects)
    return is_beyond and is_large  # counts and percentiles of two captures are facts


def _differs(found: Comparison, effects: dict[str, Effect]) -> bool | None:
    """Return whether the time per slice or the count of a group differs between two captures."""
    mean, count = effects["mean"].p, effects["count"].change
    if count:
        return True
    return None if mean is None else mean <= found.alpha
