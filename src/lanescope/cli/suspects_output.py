"""Totals of summaries with and without suspect rows, as text and as JSON values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from lanescope.cli.console import echo
from lanescope.view.formatting import escape, format_count, format_duration

if TYPE_CHECKING:
    from lanescope import Table, Trace
    from lanescope.analysis.plausibility.suspect_totals import SuspectSum
    from lanescope.analysis.plausibility.thresholds import Thresholds
    from lanescope.analysis.plausibility.without_suspects import Change

#: Rows of a table whose totals are printed with and without suspect rows, at most.
_CHANGES = 8


class Suspects(NamedTuple):
    """What suspect rows make of totals.

    Attributes:
        changes: totals that differ without them.
        slices: how many slices are suspect.
        rules: codes of the rules that suspect something.
        total: codes of those that suspect all slices.
    """

    changes: Sequence[Change] = ()
    slices: int = 0
    rules: tuple[str, ...] = ()
    total: tuple[str, ...] = ()


def of_groups(table: Table, by: str, limit: int, suspects: Mapping[str, Sequence[SuspectSum]]) -> Suspects:
    """Return which totals of groups differ without suspect slices.

    Args:
        table: the sums.
        by: the column with the groups.
        limit: number of groups that count, the first ones; 0: all.
        suspects: suspect slices by group.
    """
    if not suspects:
        return Suspects()
    from lanescope.analysis.plausibility.profile import WORTH_TELLING
    from lanescope.analysis.plausibility.without_suspects import Change

    found = []
    for row in list(table.rows())[: limit or None]:
        group, total = row[by], row["total"]
        for rules, slices, length in suspects.get(group, ()):
            if abs(length) > WORTH_TELLING * max(abs(total), abs(total - length)):
                found.append(Change(rules, {by: group}, "total", total, total - length, slices))
    by_rule: Counter[str] = Counter()
    for sums in suspects.values():
        for one in sums:
            if len(one.rules) == 1:
                by_rule[one.rules[0]] += one.slices
    every = sum(row["count"] + row["unfinished"] for row in table.rows())
    whole = tuple(rule for rule in sorted(by_rule) if by_rule[rule] == every)
    return Suspects(found, sum(sums[-1].slices for sums in suspects.values()), tuple(sorted(by_rule)), whole)


def of_tables(
    trace: Trace,
    tables_of: Callable[[Trace, Any], Sequence[Table]],
    thresholds: Thresholds | None,
    codes: Sequence[str] | None,
) -> Suspects:
    """Return which totals of tables differ without the rows that plausibility rules suspect.

    Args:
        trace: the trace.
        tables_of: makes the tables of a summary: of this trace, and None; or of one without suspect rows, and the
            slices that it has, bool [slices].
        thresholds: of the rules; None: the defaults.
        codes: rules that count; None: all.
    """
    from lanescope.analysis.plausibility.without_suspects import (
        busy_changes,
        changes,
        suspect_rows,
        without_suspects,
    )

    found: list[Change] = []
    known = set()
    suspects = suspect_rows(trace, thresholds, codes)
    if not suspects:
        return Suspects()
    tables = tables_of(trace, None)
    for suspect in suspects:
        others = tables_of(without_suspects(trace, suspect), ~suspect.slices)
        for table, other in zip(tables, others, strict=True):
            has_both = "suspect" in table.spec.names
            compared = busy_changes if has_both else partial(changes, unit=trace.time.time_unit)
            for one in compared(table, other, rules=suspect.rules):
                # What one rule suspects may be all that changes a total.
                place = id(table), *one.row.values(), one.column, one.total, one.without
                if place not in known:
                    found.append(one)
                known.add(place)
    whole = tuple(one.rules[0] for one in suspects if len(one.rules) == 1 and one.slices.all())
    return Suspects(found, int(suspects[-1].slices.sum()), suspects[-1].rules, whole)


def print_suspects(suspects: Suspects, unit: str) -> None:
    """Print totals with and without suspect rows, one line per row of the table."""
    by_row: dict[str, dict[tuple[tuple[str, ...], int | None], list[str]]] = {}
    if suspects.total:
        every = format_count(suspects.slices, "slice")
        echo(f"all {every} are suspect ({', '.join(suspects.total)}): no total holds; run 'lanescope check'")
    for one in suspects.changes:
        if not set(suspects.total).isdisjoint(one.rules):
            continue
        name = ", ".join(str(value) for value in one.row.values() if value not in (None, ""))
        rest = "none" if one.without is None else format_duration(one.without, unit)
        totals = by_row.setdefault(name, {}).setdefault((one.rules, one.slices), [])
        totals.append(f"{one.column} {format_duration(one.total, unit)} -> {rest}")
    for name, by_rules in list(by_row.items())[:_CHANGES]:
        parts = []
        for (rules, slices), totals in by_rules.items():
            what = "suspect rows" if slices is None else format_count(slices, "suspect slice")
            parts.append(f"without {what} ({', '.join(rules)}) {', '.join(totals)}")
        echo(f"{escape(name)}: {', '.join(parts)}")
    if len(by_row) > _CHANGES:
        echo(f"... {format_count(len(by_row) - _CHANGES, 'more row')} change (use --json)")
    if by_row:
        echo("run 'lanescope check' for locations")
    elif suspects.slices and not suspects.total:
        what = f"{format_count(suspects.slices, 'suspect slice')} ({', '.join(suspects.rules)})"
        echo(f"{what}: without them no total changes by more than 1%; run 'lanescope check'")


def described(suspects: Suspects, unit: str) -> dict[str, Any]:
    """Return totals with and without suspect rows as JSON values; nothing where there are no such rows."""
    if not suspects.slices and not suspects.changes:
        return {}
    listed = []
    for rules, row, column, total, without, slices in suspects.changes:
        totals: dict[str, Any]
        if slices is None:
            totals = {"column": column, "total": total, "total_without": without}
        else:
            totals = {"suspect_slices": slices, f"total_{unit}": total, f"total_without_{unit}": without}
        listed.append({**row, "rules": list(rules), **totals})
    return {"suspects": listed, "suspect_slices": suspects.slices}
