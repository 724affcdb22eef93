"""Which other values the lines of sidecar files could have: what else in the capture bounds each of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from lanescope.devices.ascend.formats.host_phases import MOST_PROCESS
from lanescope.families.field_sites import DROPPED, EXCHANGED, Possible, PossibleChange, Value, each, never

_NESTS = "a time at which the phases of its thread nest, in their order"
_PROCESS = "another process: no log names it"
_RUN = "another number of the run: no log has its spans"
_RING = "between the positions before and after it in its ring, and within the capacity"
_SPAN = "a time inside of what is around it, next to its siblings, before its line was written"
_UNCOUNTED = "spans are not counted, and nothing is inside of this one"
_OTHER_CORE = "rows of two cores, which are collected in any order"
_LINE = re.compile(
    rb"(?:\[mono_ns=(\d+)\])?[^\n]*\[STRACE\][^\n]* pid=(\d+) tid=(\d+) inv=(\d+) hid=\w+"
    rb" depth=(\d+) name=(\S+) ts=(\d+) dur=(\d+)([^\n]*)"
)
_POSITIONS = ("task_window", "heap", "dep_pool")

Rows = Sequence[dict[str, Any]]


def _of_rows(rows: Rows, name: str, fits: Callable[[Rows, int], bool], reason: str) -> Possible:
    """Say that values of a field are possible where all of the changed rows fit the others."""

    def possible(values: Mapping[int, Value]) -> str:
        made = list(rows)
        for index, value in values.items():
            if not isinstance(value, int) or not 0 <= value < 1 << 62:
                return ""
            made[index] = made[index] | {name: value}
        return reason if all(fits(made, index) for index in values) else ""

    return possible


def possible_phases(content: bytes, records: bytes, *, has_log: bool) -> Mapping[tuple[str, str], Possible]:
    """Return the fields of phases of the host that could have other values.

    Args:
        content: the file of phases.
        records: the file of records, which has submissions and copies, too.
        has_log: whether a log of the host is there.
    """
    runs = [json.loads(line) for line in content.splitlines() if line.strip()]
    rows = [row for run in runs for row in run["records"]]

    def fits(made: Rows, index: int) -> bool:
        row = made[index]
        begin, end = row["start_ns"], row["end_ns"]
        # Submissions and copies are in the records as well.
        if row["detail"] or b'"%b"' % row["phase"].encode() in records or "submit" in row["phase"] or begin > end:
            return False
        for place, other in enumerate(made):
            if place == index or other["tid"] != row["tid"]:
                continue
            is_ordered = other["start_ns"] <= begin if place < index else other["start_ns"] >= begin
            is_apart = other["end_ns"] <= begin or other["start_ns"] >= end
            is_inside = begin <= other["start_ns"] and other["end_ns"] <= end
            is_around = other["start_ns"] <= begin and end <= other["end_ns"]
            if not is_ordered or not (is_apart or is_inside or is_around):
                return False
        return True

    found = {("host_phases", name): _of_rows(rows, name, fits, _NESTS) for name in ("start_ns", "end_ns")}
    if len(runs) == 1 and not has_log:
        for name, most, reason in (("pid", MOST_PROCESS, _PROCESS), ("inv", (1 << 31) - 1, _RUN)):
            found["host_phases run", name] = _between(1, most, reason)
    return found


def _between(least: int, most: int, reason: str) -> Possible:
    return each(lambda _, value: reason if isinstance(value, int) and least <= value <= most else "")


def possible_positions(content: bytes) -> Mapping[tuple[str, str], Possible]:
    """Return which positions of resources are possible at the boundaries of scopes."""
    run, *rows = (json.loads(line) for line in content.splitlines() if line.strip())

    def made_for(resource: str) -> Callable[[Rows, int], bool]:
        tail, head = f"{resource}_start", f"{resource}_end"

        def fits(made: Rows, index: int) -> bool:
            row = made[index]
            ring = row["ring"]
            if not 0 <= row[head] - row[tail] <= run[f"{resource}_max"][ring]:
                return False
            same = [other for other in made if other["ring"] == ring]
            return all(one[name] <= other[name] for name in (tail, head) for one, other in pairwise(same))

        return fits

    return {
        ("scope", f"{resource}_{side}"): _of_rows(rows, f"{resource}_{side}", made_for(resource), _RING)
        for resource in _POSITIONS
        for side in ("start", "end")
    }


def _spans(content: bytes) -> list[dict[str, Any]]:
    names = ("written", "pid", "tid", "inv", "depth", "name", "ts", "dur")
    found = []
    for match in _LINE.finditer(content):
        row: dict[str, Any] = dict(zip(names, match.groups()[:-1], strict=True))
        row = {name: value if name == "name" or value is None else int(value) for name, value in row.items()}
        found.append(row | {"of_device": b"clk=dev" in match[9]})
    return found


def _parent(name: bytes) -> bytes:
    return name.rpartition(b".")[0]


def _span_fits(made: Rows, index: int) -> bool:
    row = made[index]
    begin, end = row["ts"], row["ts"] + row["dur"]
    if not row["of_device"] and row["written"] is not None and end > row["written"]:
        return False
    for place, other in enumerate(made):
        if place == index or (other["pid"], other["inv"]) != (row["pid"], row["inv"]):
            continue
        is_child, is_parent = _parent(other["name"]) == row["name"], other["name"] == _parent(row["name"])
        if (is_child and other["dur"] > row["dur"]) or (is_parent and row["dur"] > other["dur"]):
            return False
        if row["of_device"] or other["of_device"] or other["tid"] != row["tid"]:
            continue
        first, last = other["ts"], other["ts"] + other["dur"]
        if is_child and not begin <= first <= last <= end:
            return False
        if is_parent and not first <= begin <= end <= last:
            return False
        if other["depth"] == row["depth"] and first < end and begin < last:
            return False
    return True


def possible_spans(content: bytes) -> Mapping[tuple[str, str], Possible]:
    """Return which times are possible for the spans of a log."""
    rows = _spans(content)
    return {("span", name): _of_rows(rows, name, _span_fits, _SPAN) for name in ("ts", "dur")}


def possible_change(record: str, content: bytes) -> PossibleChange:
    """Return which changes to whole lines leave a sound file."""
    if record == "span":
        rows = _spans(content)
        return lambda change, index: _UNCOUNTED if change == DROPPED and _is_leaf(rows, index) else ""
    if record == "counter":
        names, *lines = (line.split(b",") for line in content.splitlines() if line)
        cores = [line[names.index(b"core_id")] for line in lines]

        def possible(change: str, index: int) -> str:
            is_other = change == EXCHANGED and index + 1 < len(cores) and cores[index] != cores[index + 1]
            return _OTHER_CORE if is_other else ""

        return possible
    return never


def _is_leaf(rows: Rows, index: int) -> bool:
    row = rows[index]
    return row["depth"] > 0 and not any(
        _parent(other["name"]) == row["name"] and (other["pid"], other["inv"]) == (row["pid"], row["inv"])
        for other in rows
    )
