"""Assertions about traces; each failure names the row and the table."""

from __future__ import annotations

import numpy as np

from lanescope.analysis.lane_time import LaneTime
from lanescope.analysis.partition import by_state, partition
from lanescope.trace import Table, Trace, accounting
from lanescope.trace.schema import FLOW_KINDS, NESTINGS, QUALITIES, SCOPES, SEVERITIES, TRACK_KINDS

_WORDS = {
    "quality": QUALITIES,
    "severity": SEVERITIES,
    "scope": SCOPES,
    "nesting": NESTINGS,
    ("tracks", "kind"): TRACK_KINDS,
    ("flows", "kind"): FLOW_KINDS,
}


def assert_accounted(trace: Trace, *, lost: int | None = None) -> None:
    """Assert that every input is accounted for to the last byte.

    Args:
        trace: a whole trace; a single batch has no accounting.
        lost: how many bytes must have been lost in all, at all layers; None: any number.
    """
    faults = [fault.text for fault in accounting.imbalances(trace.accounting, trace.inputs)]
    assert not faults, "; ".join(faults)
    if lost is not None:
        found = sum(_bytes_lost(trace, input_id) for input_id in trace.inputs.values("id").tolist())
        assert found == lost, f"{found} bytes were lost, not {lost}"


def _bytes_lost(trace: Trace, input_id: int) -> int:
    """Return how many bytes of the file an input lost."""
    rows = [row for row in trace.accounting.rows() if row["input_id"] == input_id and row["scope"] == "input"]
    return sum(int(row["lost"]) * int(row["unit_bytes"]) for row in rows)


def assert_consistent(trace: Trace) -> None:
    """Assert what holds for every trace, however bad its input.

    Ids are dense, references exist, values under nulls are blank, words are declared ones, and the time of every lane
    is busy, idle or unknown.
    """
    tables = trace.tables()
    for table in tables.values():
        if "id" in table.spec.names and not table.spec.key:
            assert table.values("id").tolist() == list(range(len(table))), f"{table.spec.name}: ids are not dense"
        for column in table.spec.columns:
            where = f"{table.spec.name}.{column.name}"
            values, valid = table.values(column.name), table.valid(column.name)
            assert column.nullable or valid.all(), f"{where}: nulls where none are declared"
            if column.type != "text":  # whose code under a null may stand for anything
                blank = "" if column.type == "utf8" else 0
                assert (values[~valid] == blank).all(), f"{where}: values under nulls"
            if column.references:
                there = len(tables[column.references])
                known = values[valid]
                assert ((known >= 0) & (known < there)).all(), f"{where}: refers to rows that do not exist"
            words = _WORDS.get(column.name) or _WORDS.get((table.spec.name, column.name))
            if words:
                assert set(values.tolist()) <= set(words), f"{where}: {sorted(set(values.tolist()) - set(words))}"
    time = LaneTime(trace)
    first, last = time.window
    spent = by_state(partition(time), len(time.tree))
    assert (spent >= 0).all(), "time below zero"
    assert (spent.sum(axis=1) == last - first).all(), "time of a lane went missing"


def assert_same(one: Trace, other: Trace) -> None:
    """Assert that two traces say the same, row by row; raw records aside."""
    assert one.time == other.time, f"time bases {one.time} and {other.time}"
    mine, theirs = one.tables(), other.tables()
    assert list(mine) == list(theirs), f"tables {list(mine)} and {list(theirs)}"
    for name, table in mine.items():
        assert len(table) == len(theirs[name]), f"{name}: {len(table)} rows and {len(theirs[name])}"
        for column in table.spec.names:
            difference = _first_difference(table, theirs[name], column)
            assert difference is None, (
                f"{name}.{column}, row {difference}: {_row(table, difference)} and {_row(theirs[name], difference)}"
            )


def _first_difference(one: Table, other: Table, column: str) -> int | None:
    mine, theirs = one.values(column), other.values(column)
    same = mine == theirs
    if mine.dtype.kind == "f":
        same |= np.isnan(mine) & np.isnan(theirs)
    different = ~same | (one.valid(column) != other.valid(column))
    return int(np.argmax(different)) if different.any() else None


def _row(table: Table, row: int | None) -> object:
    return None if row is None else next(table.take(np.array([row])).rows())
