"""The golden buffers: exactly their spans, instants, open regions and losses."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest

from devices.cuda.helpers import GOLDEN, decode, instants, lanes, spans, stats
from lanescope.trace import Flag

NAMES = sorted(path.name.removesuffix(".npy") for path in GOLDEN.glob("*.npy"))


def load(name):
    expected = json.loads((GOLDEN / f"{name}.expected.json").read_text())
    return decode((GOLDEN / f"{name}.npy").read_bytes(), events=expected["event_names"]), expected


def origin(expected):
    """Return when the decoder's ts = 0 was: the earliest stamp of the buffer, which may be an open region's."""
    return min(row[4] for key in ("spans", "instants", "open_regions") for row in expected[key])


def test_all_five_are_here():
    assert len(NAMES) == 5


@pytest.mark.parametrize("name", NAMES)
def test_file_is_the_one_that_the_truth_describes(name):
    expected = json.loads((GOLDEN / f"{name}.expected.json").read_text())
    words = np.load(GOLDEN / f"{name}.npy", allow_pickle=False)
    assert hashlib.sha256(words.astype("<u8").tobytes()).hexdigest() == expected["sha256_of_words_le"]


@pytest.mark.parametrize("name", NAMES)
def test_spans(name):
    trace, expected = load(name)
    found = [list(row[:7]) for row in spans(trace, origin=origin(expected)) if row[5] is not None]
    # The truth sorts by event where begins are equal, the decoder keeps the order of the records.
    assert sorted(found) == sorted(expected["spans"])
    assert not any(row[7] & ~Flag.BELOW_RESOLUTION for row in spans(trace) if row[5] is not None)
    assert set(trace.slices["quality"]) == {"exact"}


@pytest.mark.parametrize("name", NAMES)
def test_instants(name):
    trace, expected = load(name)
    assert [list(row) for row in instants(trace, origin=origin(expected))] == expected["instants"]


@pytest.mark.parametrize("name", NAMES)
def test_open_regions(name):
    trace, expected = load(name)
    found = [row for row in spans(trace, origin=origin(expected)) if row[5] is None]
    assert [list(row[:5]) for row in found] == expected["open_regions"]
    assert all(row[7] & Flag.UNFINISHED for row in found)
    assert stats(trace).get("cuda_unfinished_region", 0) == len(found)


@pytest.mark.parametrize("name", NAMES)
def test_finalized_lanes_and_losses(name):
    trace, expected = load(name)
    found = lanes(trace)
    assert sorted(key for key, lane in found.items() if lane["finalize_ts"] is not None) == sorted(
        map(tuple, expected["finalized_lanes"])
    )
    lossy = {(block, group) for block, group, _ in expected["lost_by_lane"]}
    full = {key for key, lane in found.items() if lane["is_full"]}
    if name == "tirx_4x1_unfinished":
        # Lane (3, 0) left without finalize after exactly as many records as it has room for. No decoder can tell that
        # from a dropped finalize, so it is reported as full, with no number of lost records.
        assert full == {(3, 0)}
    else:
        assert full == lossy
    # Where other lanes were finalized a full one lacks that; where none was, nothing shows that anything is missing.
    lacking = full if expected["finalized_lanes"] else set()
    overruns = [row for row in trace.gaps.rows() if row["cause"] == "overrun"]
    assert len(overruns) == len(lacking) == len(trace.gaps)
    assert all(row["lost_count"] is None and row["dur"] is None for row in overruns)
    assert stats(trace).get("cuda_lane_full", 0) == len(lacking)
    assert stats(trace).get("cuda_lane_may_be_lost", 0) == len(full - lacking)


@pytest.mark.parametrize("name", NAMES)
def test_geometry_clock_and_accounting(name):
    trace, expected = load(name)
    (row,) = trace.details["cuda_buffers"].rows()
    for key in ("num_blocks", "num_groups", "stride", "slots"):
        assert row[key] == expected[key]
    assert row["stride_source"] == "tight"
    (clock,) = trace.clocks.rows()
    assert (clock["resolution_ticks"], clock["counter_bits"], clock["frequency_num"]) == (
        expected["tick_ns"],
        32,
        10**9,
    )
    below, slots = trace.accounting.rows()
    assert (below["decoded"], below["padding"], below["lost"]) == (8 * expected["slots"], 128, 0)
    assert slots["decoded"] == 1 + expected["records"]
    assert slots["padding"] == expected["slots"] - 1 - expected["records"]
    assert slots["lost"] == 0
    assert ("cuda_wrap" in stats(trace)) == expected["wraps_32bit"]


def test_smallest_time_is_zero_and_ticks_are_kept():
    trace, expected = load("tirx_2x2_wrap")
    assert trace.slices["ts"].min() == 0
    assert trace.time.epoch_kind == "first_event"
    ticks = trace.slices["ts_ticks"] % (1 << 32)
    begins = [row[4] % (1 << 32) for row in expected["spans"]]
    assert sorted(ticks.tolist()) == sorted(begins)
    assert (trace.slices["dur"] == trace.slices["dur_ticks"]).all()


def test_below_resolution_follows_the_measured_step():
    trace, expected = load("tirx_4x2_nested")
    short = [row for row in expected["spans"] if row[6] < 2 * expected["tick_ns"]]
    flagged = [row for row in spans(trace) if row[7] & Flag.BELOW_RESOLUTION]
    assert len(flagged) == len(short) > 0
    assert stats(trace)["cuda_below_resolution"] == len(short)


def test_suggested_size_of_a_full_buffer():
    trace, expected = load("tirx_3x2_overflow")
    (row,) = trace.details["cuda_buffers"].rows()
    # 16 records a lane and half as much again: more than the 19 that the kernel wrote.
    assert row["suggested_slots"] == 1 + 6 * 24 >= expected["slots_needed"]


def test_tracks_are_device_block_group():
    trace, _ = load("tirx_4x2_nested")
    rows = list(trace.tracks.rows())
    assert [(r["name"], r["kind"], r["role"], r["parent_id"]) for r in rows[:4]] == [
        ("GPU", "group", "device", None),
        ("block 0", "group", "block", 0),
        ("group 0", "lane", "group", 1),
        ("group 1", "lane", "group", 1),
    ]
    assert {r["nesting"] for r in rows if r["kind"] == "lane"} == {"nested"}
    assert {r["clock_id"] for r in rows if r["kind"] == "lane"} == {0}
