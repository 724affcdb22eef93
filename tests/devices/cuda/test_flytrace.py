"""The JSON of FlyDSL's tracer, written as its host code writes it."""

from __future__ import annotations

import json

import pytest

import lanescope
from devices.cuda.helpers import json_file, stats
from lanescope.errors import InputError

EPOCH = 1 << 52
FILE = {"format": "flytrace.raw.v1", "backend": "rocm", "arch": "gfx942", "clock_hz": 100_000_000}


def event(name, kind, tick, **more):
    return {"name": name, "kind": kind, "payload": None, "site": 0, "tick": EPOCH + tick, "ordinal": 0, **more}


def wave(events, *, block=(0, 0, 0), number=0, end=1000, attempted=None, kernel="gemm", **more):
    return {
        "kernel": kernel,
        "block": block,
        "wave": number,
        "epoch": EPOCH,
        "end_tick": EPOCH + end,
        "events": events,
        "attempted_events": len(events) if attempted is None else attempted,
        "overflow": attempted is not None,
        **more,
    }


def opened(tmp_path, waves, *, hz=100_000_000, **more):
    return lanescope.open(json_file(tmp_path, {**FILE, "clock_hz": hz, "waves": waves, **more}))


def slices(trace):
    return [(row["name"], row["ts"], row["dur"]) for row in trace.slices.rows()]


def test_all_kinds_of_records_become_regions_and_marks(tmp_path):
    events = [
        event("outer", "push", 10, payload=-7),
        event("copy", "range_start", 20, range_id=3),
        event("inner", "push", 30),
        event("", "pop", 40),
        event("here", "mark", 45),
        event("copy", "range_end", 50, range_id=3),
        event("", "pop", 60),
        event("first", "boundary", 70),
        event("second", "boundary", 80),
        event("", "end", 95),
    ]
    trace = opened(tmp_path, [wave(events, number=5, hardware={"cu": 11})])
    assert trace.inputs.values("format").tolist() == ["flytrace-json"]
    assert sorted(slices(trace)) == [
        ("copy", 200, 300),
        ("first", 700, 100),
        ("inner", 300, 100),
        ("outer", 100, 500),
        ("second", 800, 150),
    ]
    assert [(row["name"], row["ts"]) for row in trace.instants.rows()] == [("here", 450)]
    rows = {trace.slices.values("name")[row["slice_id"]]: row for row in trace.tables()["cuda_iket_ranges"].rows()}
    assert (rows["outer"]["payload"], rows["outer"]["payload_type"]) == ("-7", "int32")
    assert {(row["warp"], row["sm"], row["kernel"]) for row in rows.values()} == {(5, 11, "gemm")}
    [clock] = trace.clocks.rows()
    assert (clock["name"], clock["frequency_num"] // clock["frequency_den"]) == ("s_memrealtime", 100_000_000)
    assert trace.slices.values("ts_ticks").min() == EPOCH + 10
    assert not stats(trace)


def test_losses_are_counted_and_named(tmp_path):
    waves = [
        wave([event("a", "push", 10), event("b", "push", 20)], attempted=9),
        wave([event("", "pop", 10), event("x", "range_end", 30), event("c", "mark", 5000)], block=(3, 1, 0)),
        {"kernel": "gemm"},
    ]
    trace = opened(tmp_path, waves)
    assert stats(trace) == {
        "cuda_dropped": 7,
        "cuda_unfinished_region": 2,
        "cuda_end_unmatched": 2,
        "cuda_corrupt_record": 2,
    }
    assert [row["dur"] for row in trace.slices.rows()] == [None, None]


def test_what_is_lost_is_in_the_accounting(tmp_path):
    bad = wave([event("a", "mark", 10), event("late", "mark", 5000), event("b", "mark", 20)], attempted=8)
    content = json_file(tmp_path, {**FILE, "waves": [bad, {"kernel": "gemm"}, 5]})
    trace = lanescope.open(content)
    lost = sum(len(json.dumps(part)) for part in (bad["events"][1], {"kernel": "gemm"}, 5))
    in_file, dropped = trace.accounting.rows()
    size = content.stat().st_size
    assert (in_file["total"], in_file["decoded"], in_file["lost"]) == (size, size - lost, lost)
    assert [dropped[name] for name in ("scope", "unit", "total", "lost")] == ["producer", "record", 8, 5]
    assert stats(trace) == {"cuda_corrupt_record": 3, "cuda_dropped": 5}


@pytest.mark.parametrize("change", [{"attempted_events": 1}, {"overflow": True}, {"attempted_events": 5}])
def test_counts_that_contradict_the_records_are_counted(change, tmp_path):
    made = wave([event("a", "mark", 10), event("b", "mark", 20)]) | change
    assert stats(opened(tmp_path, [made]))["cuda_iket_contradicts"] == 1


@pytest.mark.parametrize("order", [("waves", "clock_hz", "format"), ("clock_hz", "format", "waves")])
def test_files_are_recognized_in_any_order_of_their_keys(order, tmp_path):
    waves = [wave([event("a", "mark", 10)], number=number) for number in range(400)]
    content = {**FILE, "waves": waves}
    path = json_file(tmp_path, {name: content[name] for name in order}, indent=4)
    assert path.stat().st_size > 1 << 16
    assert len(lanescope.open(path).instants) == 400


def test_blocks_of_kernels_have_tracks_of_their_own(tmp_path):
    waves = [
        wave([event("a", "mark", 1)], block=(x, y, 0), number=number, kernel=kernel)
        for kernel in ("gemm", "norm")
        for x in (0, 2)
        for y in (0, 1)
        for number in (0, 1)
    ]
    trace = opened(tmp_path, waves)
    names = trace.tracks.values("name").tolist()
    assert names.count("gemm") == names.count("norm") == 1
    assert sum(name == "wave 1" for name in names) == 8
    assert {"block 0", "block 2", "block 3", "block 5"} <= set(names)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"format": "flytrace.raw.v1", "clock_hz": 100', "invalid JSON"),
        ('{"format": "flytrace.raw.v1", "waves": []}', "lacks clock_hz or waves"),
        ('{"format": "flytrace.raw.v1", "clock_hz": 0, "waves": []}', "lacks clock_hz or waves"),
        ('{"format": "flytrace.raw.v1", "clock_hz": 100, "waves": {}}', "lacks clock_hz or waves"),
    ],
)
def test_other_content_is_refused_in_a_line(content, problem, tmp_path):
    with pytest.raises(InputError, match=problem):
        lanescope.open(json_file(tmp_path, content))
