"""Contract test of rules of ``check``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from lanescope.analysis import check
from lanescope.analysis.check.engine import assess
from lanescope.families.plugin_rules import verify
from lanescope.trace import Trace
from lanescope.trace.trace import SHARED

if TYPE_CHECKING:
    from lanescope.families import Rule, Violation

#: Tables of which a part is cut off and judged by itself.
_EVENTS = ("slices", "instants", "counters")


def check_rule(rule: Rule, *, violating: Iterable[Trace] = (), sound: Iterable[Trace] = ()) -> None:
    """Assert what ``lanescope check`` relies on in a rule.

    * It has a title, a description and help; it finds something in each violating trace, and nothing in sound ones.
    * Its violations name tables, rows, lanes and inputs that the trace has.
    * A rule of scope ``rows`` finds the same rows in parts of a trace.

    Args:
        rule: the rule.
        violating: traces that it must object to.
        sound: traces that it must not object to.

    Raises:
        AssertionError: with what is wrong.
        TypeError: a violation is of the wrong kind.
        ValueError: a violation names what the trace does not have.
    """
    assert rule.title, f"rule {rule.code} lacks a title"
    assert rule.description, f"rule {rule.code} lacks a description"
    assert rule.help, f"rule {rule.code} lacks help"
    for trace in violating:
        assert _violations(rule, trace), f"rule {rule.code} finds nothing in a violating trace"
    for trace in sound:
        found = _violations(rule, trace)
        assert not found, f"rule {rule.code} finds {found[0].detail or found[0]} in a sound trace"


def _violations(rule: Rule, trace: Trace) -> list[Violation]:
    context = check.CheckContext(trace)
    found = list(rule.check(context))
    verify(found, trace)
    assess(context, rule, found)
    if rule.scope == "rows":
        parts = [_rows(rule, *part) for part in _halves(trace)]
        together = set().union(*parts)
        alone = _rows(rule, trace, {})
        assert together == alone, f"rule {rule.code} finds {sorted(together ^ alone)} only in a part, or in the whole"
    return found


def _rows(rule: Rule, trace: Trace, first: dict[str, int]) -> set[tuple[str, int]]:
    """Return the rows that a rule objects to, by table, as they stand in the whole trace."""
    found = list(rule.check(check.CheckContext(trace)))
    rows = ((one.table, row) for one in found if one.table in _EVENTS for row in one.rows.tolist())
    return {(table, row + first.get(table, 0)) for table, row in rows}


def _halves(trace: Trace) -> list[tuple[Trace, dict[str, int]]]:
    """Return the trace in two parts, each with the position of its first rows; other tables are empty."""
    tables = trace.tables()
    middle = {name: len(tables[name]) // 2 for name in _EVENTS}
    parts = []
    for first, last in (({}, middle), (middle, {name: len(tables[name]) for name in _EVENTS})):
        events = {name: tables[name].take(np.arange(first.get(name, 0), last[name])) for name in _EVENTS}
        shared = {name: tables[name] for name in SHARED}
        details = {name: table.take(np.arange(0)) for name, table in trace.details.items()}
        parts.append((Trace(trace.time, {**shared, **events}, details), first))
    return parts
