"""Host traces of other tools and device captures on one timeline: where each lies, what its group says, what fails.

The clocks of a host are joined over the readings that a Perfetto trace has of them; captures without a common clock lie
side by side on request.
"""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as TraceProto

import lanescope
from foreign.perfetto.made import Maker
from lanescope.analysis import check
from lanescope.errors import MergeError
from lanescope.families import registry
from lanescope.families.options import resolve_options
from lanescope.io import perfetto
from lanescope.testing import assert_consistent
from lanescope.trace.merge import align, merge

UNIX = 1_775_083_550_000_000_000
#: Readings of BOOTTIME, MONOTONIC and Unix time, 1 s apart: the distances change by 40 and by 700 ns.
BOOT, STEP = 5_000_000_000, 1_000_000_000
MONOTONIC_BEHIND, UNIX_AHEAD = 700_000_000, UNIX - BOOT


def boottime(folder: Path, *, readings: int = 2) -> lanescope.Trace:
    """Return a trace that counts on BOOTTIME, with readings of the other clocks of its host."""
    made = Maker()
    made.process(1, 4711, "python3")
    made.thread(2, 4711, 4712, "loader")
    for number in range(readings):
        at = BOOT + STEP * number
        made.snapshot(1, (6, at), (3, at - MONOTONIC_BEHIND + 40 * number), (1, at + UNIX_AHEAD + 700 * number))
    made.slice(BOOT + 1000, BOOT + 51_000, 2, "load")
    return made.read(folder)


def kineto(folder: Path, *, at: int = UNIX, pid: int = 4711) -> lanescope.Trace:
    """Return a trace of the PyTorch profiler that begins at a Unix time."""
    rows = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": pid, "tid": pid, "ts": 0.0, "dur": 20.0},
        {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": pid, "tid": pid, "ts": 30.0, "dur": 5.5},
    ]
    path = folder / "host.json"
    path.write_text(json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": at, "traceEvents": rows}))
    return lanescope.open(path)


def simulated(folder: Path, name: str, options: dict | None = None, **read) -> lanescope.Trace:
    """Return a simulated capture."""
    family = registry.family(name)
    made = family.simulate(resolve_options(family.sim_options, options or {}, what=name), 1)
    folder = folder / name
    folder.mkdir()
    for file, content in made.files.items():
        (folder / file).write_bytes(content)
    return lanescope.open(folder / next(iter(made.files)), family=name, **read)


def roots(trace) -> list[str]:
    return [row["name"] for row in trace.tracks.rows() if row["parent_id"] is None]


def starts(trace) -> dict[str, int]:
    """Return the first time of each name of slices."""
    found: dict[str, int] = {}
    for row in trace.slices.rows():
        found[row["name"]] = min(row["ts"], found.get(row["name"], row["ts"]))
    return found


def test_boottime_joins_unix_time_by_the_nearest_reading_and_states_their_spread(tmp_path):
    base, host = kineto(tmp_path, at=UNIX + STEP + 700), boottime(tmp_path)
    (_, placed) = align([base, host])
    assert (placed.clock, placed.error_ns) == ("unix", None)  # what the profiler converted is not stated
    merged = merge([base, host])
    assert_consistent(merged)
    assert merged.time.epoch_kind == "unix"
    # The reading 1 s later, with its 700 ns, is the nearer one to the profiler's begin.
    assert starts(merged)["load"] + merged.time.epoch_ns == UNIX + 1000 + 700
    assert roots(merged) == ["host", "run (clock unix, unknown error)"]


def test_two_traces_of_one_host_state_the_spread_of_the_readings(tmp_path):
    made = Maker()
    made.snapshot(1, (3, BOOT - MONOTONIC_BEHIND), (1, 7)).primary_trace_clock = 3
    made.slice(BOOT - MONOTONIC_BEHIND + 500, BOOT - MONOTONIC_BEHIND + 900, 9, "on monotonic")
    (tmp_path / "other").mkdir()
    other = made.read(tmp_path / "other")
    assert other.time.epoch_kind == "host_monotonic"
    host = boottime(tmp_path)
    (_, placed) = align([other, host])
    assert (placed.clock, placed.error_ns) == ("host_monotonic of host", 40)
    assert roots(merge([other, host])) == ["run", "run (clock host_monotonic of host, ±40 ns)"]
    (_, alone) = align([other, boottime(tmp_path, readings=1)])
    assert alone.error_ns is None, "one reading does not show how good it is"


def test_a_monotonic_and_a_unix_trace_are_joined_over_the_host_that_read_both_clocks(tmp_path):
    chip = simulated(tmp_path, "ascend", {"format_version": "v3c", "host": True, "tasks": 20})
    assert chip.time.epoch_kind == "host_monotonic"
    base, host = kineto(tmp_path), boottime(tmp_path)
    with pytest.raises(MergeError, match="have no common clock"):
        align([base, chip])
    first, second, _ = align([base, chip, host])
    # Far from the readings, the nearest one counts.
    found = base.time.epoch_ns + second.shift - first.shift
    assert abs(found - (chip.time.epoch_ns + MONOTONIC_BEHIND + UNIX_AHEAD)) <= 740
    merged = merge([base, chip, host])
    assert roots(merged)[1].endswith("(clock host_monotonic of host, unknown error)")


def test_level_zero_lies_beside_the_python_process_that_it_is_of(tmp_path):
    simulated(tmp_path, "levelzero", {"ops": 50})
    (path,) = (tmp_path / "levelzero").iterdir()
    (tmp_path / "run.txt").write_bytes(path.read_bytes().replace(b"vpid: 100,", b"vpid: 4711,"))
    recorded = lanescope.open(tmp_path / "run.txt", start_date="2026-04-01")
    assert recorded.time.epoch_kind == "unix"
    host = kineto(tmp_path, at=recorded.time.epoch_ns + 2000)
    (first, second) = align([host, recorded])
    assert (first.shift, second.shift, second.clock) == (2000, 0, "unix")
    merged = merge([host, recorded])
    assert_consistent(merged)
    groups = {row["id"]: row for row in merged.tracks.rows()}
    processes = [row for row in groups.values() if row["role"] == "process" and "4711" in row["name"]]
    assert len(processes) == 2, "each tool shows its own view of the process"
    assert roots(merged) == ["host", "run (clock unix, unknown error)"]
    assert starts(merged)["aten::mm"] == 2000


# --- without a common clock ------------------------------------------------------------------------------------------

ALONE = ("aie", "ascend", "cuda", "levelzero", "chrome", "kineto", "perfetto")


@pytest.mark.parametrize("names", list(combinations(ALONE, 2)), ids="-".join)
def test_captures_without_a_common_clock_lie_side_by_side_and_say_so(names, tmp_path):
    clock = {"aie": {"frequency": 1_000_000_000}}
    traces = [simulated(tmp_path, name, **clock.get(name, {})) for name in names]
    with pytest.raises(MergeError, match="have no common clock"):
        align(traces)
    merged = merge(traces, side_by_side=True)
    assert_consistent(merged)
    assert [name.rpartition(" (")[2] for name in roots(merged)] == ["time axis 1)", "time axis 2)"]
    assert {row["name"]: row["count"] for row in merged.stats.rows()}["unaligned_capture"] == 1
    assert merged.time.epoch_kind == "first_event"
    # What a viewer shows: the names are in the file, above the tracks of each.
    drawn = tmp_path / "both.pftrace"
    perfetto.write(merged, drawn, compress=False)
    described = [packet.track_descriptor for packet in TraceProto.FromString(drawn.read_bytes()).packet]
    tops = [each.name or each.process.process_name for each in described if each.uuid and not each.parent_uuid]
    assert sorted(name for name in tops if "time axis" in name) == sorted(roots(merged))


@pytest.mark.parametrize("name", ["aie", "ascend", "cuda", "levelzero", "perfetto"])
def test_rules_of_one_profiler_look_at_nothing_else_on_the_timeline(name, tmp_path):
    """What was recorded of a device says nothing of the rows of a host, and rows of others may be called kernels."""
    other = simulated(tmp_path, name, **({"frequency": 1_000_000_000} if name == "aie" else {}))
    merged = merge([kineto(tmp_path), other], side_by_side=True)
    assert {finding.code for finding in check.run(merged) if finding.code.startswith("KINETO")} == set()


def test_rows_of_a_host_are_compared_with_the_record_of_their_own_file(tmp_path):
    """Two ranks that were recorded one after the other: each has a row of its own outside."""
    traces = []
    for rank, at in enumerate((UNIX, UNIX + STEP)):
        rows = [
            {
                "ph": "X",
                "cat": "Trace",
                "name": "span",
                "pid": "Spans",
                "tid": "PyTorch Profiler",
                "ts": 10,
                "dur": 100,
            },
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 100 * rank, "dur": 20},
        ]
        path = tmp_path / f"rank{rank}.json"
        path.write_text(json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": at, "traceEvents": rows}))
        traces.append(lanescope.open(path))
    merged = merge(traces)
    assert [finding.count for finding in check.run(merged) if finding.code == "KINETO104"] == [1, 1]


def test_kernels_of_others_are_no_work_of_the_profiler(tmp_path):
    path = tmp_path / "other.json"
    rows = [{"ph": "X", "cat": "kernel", "name": "k", "pid": 5, "tid": 5, "ts": 3 * at, "dur": 0} for at in range(3)]
    path.write_text(json.dumps(rows))
    merged = merge([kineto(tmp_path), lanescope.open(path, family="chrome")], side_by_side=True)
    assert "KINETO102" not in {finding.code for finding in check.run(merged)}
    assert "KINETO102" in {finding.code for finding in check.run(lanescope.open(path, family="kineto"))}
