"""What a trace, or the last batch of a decode, says about data that is missing or unclear."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any

from lanescope.declaration import frozen_class
from lanescope.errors import MissingDependencyError, UsageError
from lanescope.families import registry
from lanescope.families.family import Family
from lanescope.trace import Trace
from lanescope.trace.stats import AMBIGUOUS, CORE_STATS, NO_RECORDS, counted, reported_by


def losses(trace: Trace) -> dict[str, int]:
    """Return what was lost, by name: stats of severity ``data_loss`` and ``error``, then units of the accounting."""
    return _stats(trace, lambda row: str(row["name"]), "data_loss", "error") | _lost_units(trace)


def described_losses(trace: Trace) -> dict[str, int]:
    """Return what was lost, for people: what stats of severity ``data_loss`` count, then units of the accounting.

    Units that a stat counts as well, as it declares, are in its number only.
    """
    stats = [row for row in trace.stats.rows() if row["severity"] == "data_loss"]
    units = dict(_units_counted(trace))
    left = {}
    for row in trace.accounting.rows():
        if row["lost"] and row["scope"] != "producer":
            counted_too = sum(
                stat["count"]
                for stat in stats
                if stat["input_id"] == row["input_id"]
                and any(fnmatchcase(row["unit"], unit) for unit in units.get(stat["name"], ()))
            )
            left[row["id"]] = max(row["lost"] - counted_too, 0)
    return _stats(trace, counted, "data_loss") | _lost_units(trace, left)


def _units_counted(trace: Trace) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the stats of the families of a trace with the units that they count as lost."""
    for name in sorted(set(trace.inputs.values("family").tolist())):
        with suppress(UsageError, MissingDependencyError):  # a family that is not here, of a folder of Parquet files
            yield from ((stat.name, stat.lost_units) for stat in registry.family(name).stats if stat.lost_units)


def described_contradictions(trace: Trace) -> dict[str, int]:
    """Return what stats of severity ``error`` count, for people."""
    return _stats(trace, counted, "error")


def _stats(trace: Trace, text: Callable[[Mapping[str, Any]], str], *severities: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in trace.stats.rows():
        if row["severity"] in severities:
            found[text(row)] = found.get(text(row), 0) + row["count"]
    return found


def _lost_units(trace: Trace, left: Mapping[int, int] = {}) -> dict[str, int]:
    """Return the lost units of the accounting by name; ``left``: how many of a row to count, else all."""
    found: dict[str, int] = {}
    for row in trace.accounting.rows():
        if lost := left.get(row["id"], row["lost"]):
            key = f"{row['unit']}s lost" + (" before they were written" if row["scope"] == "producer" else "")
            found[key] = found.get(key, 0) + lost
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


def meanings_of(trace: Trace) -> dict[str, str]:
    """Return what the stats of a trace mean, whichever families decoded it."""
    found = stat_meanings(None)
    for name in dict.fromkeys(trace.inputs.values("family").tolist()):
        # A folder of Parquet files may be of a family that is not installed here.
        with suppress(UsageError, MissingDependencyError):
            found |= stat_meanings(registry.family(name))
    return found


def stat_meanings(family: Family | None) -> dict[str, str]:
    """Return what each stat that a family may count means, by name; None: those that any family may count."""
    return {spec.name: spec.doc for spec in (*CORE_STATS, *(() if family is None else family.stats))}
