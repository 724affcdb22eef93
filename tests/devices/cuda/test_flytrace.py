"""The JSON of FlyDSL's tracer, written as its host code writes it."""

from __future__ import annotations

import json

import pytest

import lanescope
from devices.cuda.helpers import stats
from lanescope.errors import InputError

EPOCH = 1 << 52


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
    path = tmp_path / "run.json"
    content = {"format": "flytrace.raw.v1", "backend": "rocm", "arch": "gfx942", "clock_hz": hz, "waves": waves, **more}
    path.write_text(json.dumps(content) + "\n")
    return lanescope.open(path)


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
    path = tmp_path / "run.json"
    path.write_text(content)
    with pytest.raises(InputError, match=problem):
        lanescope.open(path)
