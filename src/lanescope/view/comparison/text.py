"""Comparisons as rows of tables and as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lanescope.view.formatting import format_count, format_duration
from lanescope.view.tables.columns import Col

if TYPE_CHECKING:
    from lanescope.analysis.compare.comparison import Comparison, Effect, GroupChange

CONDITION_COLUMNS = ("condition", "name", "A", "B", "meaning")
#: Most values of a condition that are listed per side.
_VALUES = 4


def percent(change: float | None) -> str:
    """Return a change as people read it: ``+3.1%``; empty if it is unknown."""
    return "" if change is None else f"{change:+,.1%}"


def interval(effect: Effect) -> str:
    """Return the simultaneous interval of a change; empty if nothing bounds it."""
    return "" if effect.low is None or effect.high is None else f"{effect.low:+,.1%} to {effect.high:+,.1%}"


def condition_rows(found: Comparison) -> Iterator[list[str]]:
    """Yield a row for each condition that differs between the sides."""
    for one in found.conditions:
        yield [one.kind, one.name, _values(one.a), _values(one.b), one.detail]


def _values(values: Sequence[Any]) -> str:
    distinct = list(dict.fromkeys(map(_value, values)))
    return ", ".join(distinct[:_VALUES]) + (f", ... ({len(distinct)})" if len(distinct) > _VALUES else "")


def _value(value: Any) -> str:
    if value is None:
        return "none"
    return f"{value:.1%}" if isinstance(value, float) else str(value)  # numbers that are no counts are shares


def group_columns(found: Comparison, metric: str) -> list[Col]:
    """Return the columns of ``group_rows``."""
    timed = "duration" if found.unit == "ns" else "cycles"
    kind, unit = ("count", "") if metric == "count" else (timed, found.unit)
    sides = [Col(side, kind=kind, unit=unit, priority=3) for side in "AB"]
    effects = [
        Col(name, kind=timed, unit=found.unit, priority=priority)
        for name, priority in (("contribution", 4), ("by count", 6), ("per slice", 6))
    ]
    # What is the same in all rows tells none of them apart.
    telling = [at == 0 or len({group.key[at] for group in found.groups}) > 1 for at in range(len(found.by))]
    keys = [Col(name, kind="text", priority=0 if tells else 6) for name, tells in zip(found.by, telling, strict=True)]
    tested = [Col("interval", kind="plain", priority=5, align="right"), Col("p", kind="ratio", priority=5)]
    change = Col("change", kind="plain", priority=1, align="right")
    verdict = Col("verdict", kind="plain", priority=2)
    return [*keys, verdict, change, *tested, *sides, *effects, Col("note", kind="text")]


def group_rows(found: Comparison, groups: Sequence[GroupChange], metric: str) -> Iterator[list[Any]]:
    """Yield a row for each group: its identity, the verdict, a statistic on both sides, and its contribution."""
    for group in groups:
        effect = group.effects[metric]
        values = [None if value is None else round(value) for value in (effect.a, effect.b)]
        p = None if effect.p is None else round(effect.p, 4)
        row = [*group.key, group.verdict, percent(effect.change) or None, interval(effect) or None, p]
        yield [*row, *values, *group.contribution, group.reason]


def heading(found: Comparison) -> str:
    """Return what was compared, in one line."""
    runs = [format_count(len(side), "run") for side in found.runs]
    methods = {
        "relabeling": f"{found.labelings:,} labelings of the runs",
        "pair": f"{found.labelings:,} resamples of the slices",
        "prediction": "prediction intervals",
        "too_few": "effects only",
    }
    return f"A: {runs[0]}, B: {runs[1]}; {methods[found.method]}, alpha {found.alpha:g}, floor {found.floor:.3g}"


def remarks(found: Comparison) -> Iterator[str]:
    """Yield what is to be read with the table: busy time and span, what was named, and what the method needs."""
    for name, what in (("busy", "busy time"), ("span", "span")):
        effect = found.overall[name]
        if effect.a is None or effect.b is None:
            continue
        one, other = (format_duration(round(value), found.unit) for value in (effect.a, effect.b))
        test = "" if effect.p is None else f" ({interval(effect) or 'no interval'}, p {effect.p:.3g})"
        yield f"{what}: {one} -> {other}, {percent(effect.change)}{test}"
    named = format_count(len(found.named), "group")
    untested = sum(group.verdict == "not tested" for group in found.groups)
    yield f"named: {named} of {len(found.groups)}" + (f"; not tested: {untested}" if untested else "")
    yield from found.notes
