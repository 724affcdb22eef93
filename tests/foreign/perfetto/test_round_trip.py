"""Traces of all device families, written by our writer and read back: the rows of the timeline are equal.

What the format has no place for is not compared: roles, nesting, sort keys (the order is), clocks and ticks, coverage,
detail tables, stats; of a flow without an instant at either end its kind; and flows whose effect comes before its
cause, which the writer counts.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import lanescope
from lanescope.families import registry
from lanescope.families.options import resolve_options
from lanescope.io import perfetto
from lanescope.testing import assert_accounted, assert_consistent
from lanescope.trace import Trace

#: Losses, drops and wraps: rows with flags, gaps and unknown ends.
DEVICES = {
    "aie": [{"tiles": 2, "records": 3000, "overruns": 2, "bad_headers": 0.01, "zeros": 40}],
    "ascend": [{}],
    "cuda": [{}],
    "levelzero": [{"lost": 0.05}],
}


def simulated(name: str, options: dict[str, Any], folder) -> Trace:
    family = registry.family(name)
    files = family.simulate(resolve_options(family.sim_options, options, what=name), 3).files
    for file, content in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(content)
    return lanescope.open(folder / next(iter(files)), family=name)


def paths(trace: Trace) -> dict[int, tuple[str, ...]]:
    rows = {row["id"]: row for row in trace.tracks.rows()}

    def path(row) -> tuple[str, ...]:
        above = () if row["parent_id"] is None else path(rows[row["parent_id"]])
        return (*above, row["name"])

    return {track: path(row) for track, row in rows.items()}


def rows_of(trace: Trace, table: str, columns: tuple[str, ...]) -> Counter[tuple[Any, ...]]:
    where = paths(trace)
    return Counter((where[row["track_id"]], *(row[name] for name in columns)) for row in getattr(trace, table).rows())


SLICE = ("ts", "dur", "name", "category", "quality", "flags", "last_known_ts")
INSTANT = ("ts", "name", "category", "quality", "flags")
GAP = ("ts", "dur", "cause", "lost_count", "first_offset")


def flows_of(trace: Trace) -> Counter[Any]:
    where = paths(trace)
    slices = {row["id"]: row for row in trace.slices.rows()}

    def end(row, side) -> Any:
        slice_ = slices.get(row[f"{side}_slice_id"])
        if slice_ is None:
            return (where[row[f"{side}_track_id"]], row[f"{side}_ts"])
        return (where[slice_["track_id"]], slice_["ts"], slice_["dur"], slice_["name"])

    return Counter((end(row, "src"), end(row, "dst")) for row in trace.flows.rows())


def order_of(trace: Trace) -> dict[tuple[str, ...], list[str]]:
    where = paths(trace)
    found: dict[tuple[str, ...], list[str]] = {}
    for row in sorted(trace.tracks.rows(), key=lambda row: (row["sort_key"], row["id"])):
        found.setdefault(where[row["id"]][:-1], []).append(row["name"])
    return found


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize(("name", "options"), [(name, each) for name, many in DEVICES.items() for each in many])
def test_a_trace_comes_back_as_it_was_written(name, options, compress, tmp_path):
    trace = simulated(name, options, tmp_path)
    file = tmp_path / "back.pftrace"
    report = perfetto.write(trace, file, compress=compress)
    back = lanescope.open(file)
    assert_consistent(back)
    assert_accounted(back, lost=0)
    assert back.time == trace.time
    assert rows_of(back, "slices", SLICE) == rows_of(trace, "slices", SLICE)
    assert rows_of(back, "instants", INSTANT) == rows_of(trace, "instants", INSTANT)
    assert rows_of(back, "counters", ("ts", "value")) == rows_of(trace, "counters", ("ts", "value"))
    assert rows_of(back, "gaps", GAP) == rows_of(trace, "gaps", GAP)
    assert order_of(back) == order_of(trace)
    wanted, found = flows_of(trace), flows_of(back)
    assert found.total() == report.flows
    for pair in found - wanted:  # reaches a slice that was running: ends at the moment of its arrival
        assert len(pair[1]) == 2, pair
    kinds = {row["name"]: (row["kind"], row["unit"]) for row in trace.tracks.rows() if row["kind"] == "counter"}
    assert {r["name"]: (r["kind"], r["unit"]) for r in back.tracks.rows() if r["kind"] == "counter"} == kinds
    lost = sum(row["count"] for row in trace.stats.rows() if row["severity"] == "data_loss")
    assert sum(row["count"] for row in back.stats.rows() if row["severity"] == "data_loss") == lost


def test_reading_again_what_was_read_and_written_changes_nothing(tmp_path):
    trace = simulated("cuda", {}, tmp_path)
    once, twice = tmp_path / "1.pftrace", tmp_path / "2.pftrace"
    perfetto.write(trace, once)
    first = lanescope.open(once)
    perfetto.write(first, twice)
    second = lanescope.open(twice)
    assert rows_of(second, "slices", SLICE) == rows_of(first, "slices", SLICE)
    assert flows_of(second) == flows_of(first)
    assert second.time == first.time
