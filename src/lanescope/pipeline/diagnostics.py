"""What a trace, or the last batch of a decode, says about data that is missing or unclear."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lanescope.declaration import frozen_class
from lanescope.families import registry
from lanescope.families.family import Family
from lanescope.trace import Trace
from lanescope.trace.stats import AMBIGUOUS, CORE_STATS, NO_RECORDS, counted, reported_by


def losses(trace: Trace) -> dict[str, int]:
    """Return what was lost, by name: stats of severity ``data_loss`` and ``error``, then units of the accounting."""
    return _stats(trace, lambda row: str(row["name"]), "data_loss", "error") | _lost_units(trace)


def described_losses(trace: Trace) -> dict[str, int]:
    """Return what was lost, for people: what stats of severity ``data_loss`` count, then units of the accounting."""
    return _stats(trace, counted, "data_loss") | _lost_units(trace)


def described_contradictions(trace: Trace) -> dict[str, int]:
    """Return what stats of severity ``error`` count, for people."""
    return _stats(trace, counted, "error")


def _stats(trace: Trace, text: Callable[[Mapping[str, Any]], str], *severities: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in trace.stats.rows():
        if row["severity"] in severities:
            found[text(row)] = found.get(text(row), 0) + row["count"]
    return found


def _lost_units(trace: Trace) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in trace.accounting.rows():
        if row["lost"]:
            key = f"{row['unit']}s lost" + (" before they were written" if row["scope"] == "producer" else "")
            found[key] = found.get(key, 0) + row["lost"]
    return found


def ambiguous_meanings(trace: Trace) -> dict[str, int]:
    """Return what stats about records with an ambiguous identity or meaning count, for people."""
    found: dict[str, int] = {}
    for row in trace.stats.rows():
        if reported_by(row) == AMBIGUOUS:
            found[counted(row)] = found.get(counted(row), 0) + row["count"]
    return found


@frozen_class
class Empty:
    """An input without records.

    Attributes:
        path: of the input.
        number: count of the stat that says so.
        meaning: of the stat.
    """

    path: str
    number: int
    meaning: str


def empty_inputs(trace: Trace) -> Iterator[Empty]:
    """Yield the inputs that hold no records."""
    for row in trace.stats.rows():
        if row.get("rule") == NO_RECORDS:
            file = list(trace.inputs.rows("path", "family"))[row["input_id"]]
            yield Empty(file["path"], row["count"], stat_meanings(registry.family(file["family"]))[row["name"]])


def stat_meanings(family: Family | None) -> dict[str, str]:
    """Return what each stat that a family may count means, by name; None: those that any family may count."""
    return {spec.name: spec.doc for spec in (*CORE_STATS, *(() if family is None else family.stats))}
