"""LS502, LS504, LS506, LS508, LS509 and LS510: each finds what was changed and where, and nothing in sound traces."""

import re
from dataclasses import replace

import numpy as np
import pytest

from effort import some
from lanescope.analysis import check
from lanescope.analysis.plausibility.siblings import deviation, group_sizes, median_of_others
from lanescope.analysis.plausibility.thresholds import LoneGapThresholds, SilentLaneThresholds, Thresholds
from lanescope.trace import TimeBase, TraceBuilder
from plausibility import captures, odd
from plausibility.columns import Columns
from plausibility.lies import LIES

CODES = ("LS502", "LS504", "LS506", "LS508", "LS509", "LS510")


def kernel(seed=0, **options):
    """Blocks of load, compute and store, all alike."""
    return odd.even(np.random.default_rng(seed), **{"blocks": 10, "records": 40, **options})


def found(trace, *select, thresholds=None):
    """(code, severity, lane) of each finding of these rules."""
    findings = check.run(trace, select=select or CODES, thresholds=thresholds)
    return [(finding.code, finding.severity, finding.location.track) for finding in findings]


def columns(made):
    """The columns of a kernel, and the ids of its lanes by path."""
    mine = Columns.of(made.trace())
    names, parents = mine.trace.tracks.values("name"), mine.trace.tracks.values("parent_id")
    kinds = mine.trace.tracks.values("kind")
    return mine, {f"{names[parents[lane]]}/{names[lane]}": lane for lane in range(len(names)) if kinds[lane] == "lane"}


def evidence(trace, code):
    (finding,) = check.run(trace, select=[code])
    return finding, finding.evidence.ids


# --- statistics ---------------------------------------------------------------------------------------------------


def test_median_of_the_others_is_what_numpy_says_of_the_others():
    rng = np.random.default_rng(3)
    for _ in range(some(100)):
        size = int(rng.integers(1, 40))
        values, key = rng.integers(-50, 50, size), rng.integers(0, 6, size)
        for value, expected, group, at in zip(values, median_of_others(values, key), key, range(size), strict=True):
            others = values[(key == group) & (np.arange(size) != at)]
            assert (np.isnan(expected) and not len(others)) or expected == np.median(others), value
        assert group_sizes(key).tolist() == [int(np.count_nonzero(key == one)) for one in key]
    assert median_of_others(np.empty(0, np.int64), np.empty(0, np.int64)).tolist() == []


def test_deviation_has_a_least_value():
    assert deviation(np.array([1, 2, 3]), 0.0) == (2.0, 1.4826)
    assert deviation(np.array([7, 7, 9]), 0.5) == (7.0, 0.5)


# --- LS502 --------------------------------------------------------------------------------------------------------


def step(made, lane, row, length):
    """The kernel with the records of a lane from some row on later by ``length``."""
    made.lanes[lane].pauses[row] += length
    return made.trace()


@pytest.mark.parametrize("seed", range(4))
def test_ls502_a_step_of_the_clock_of_one_lane(seed):
    made = kernel(seed)
    extent = int((made.lanes[3, "load"].lengths + made.lanes[3, "load"].pauses).sum())
    trace = step(made, (3, "load"), 25, 2 * extent)
    assert found(trace) == [("LS502", "warning", "GPU/block 3/load")]
    finding, rows = evidence(trace, "LS502")
    assert re.search(r"the lane ends late by (0\.9|1\.0)\d of it", finding.detail)
    mine = np.flatnonzero(trace.slices.values("track_id") == finding.location.track_id)
    assert rows.tolist() == mine[25:].tolist()


def test_ls502_before_the_gap_where_the_lane_starts_early():
    made = kernel()
    extent = int((made.lanes[3, "load"].lengths + made.lanes[3, "load"].pauses).sum())
    made.lanes[3, "load"].start -= 2 * extent
    trace = step(made, (3, "load"), 10, 2 * extent)
    finding, rows = evidence(trace, "LS502")
    assert "starts early" in finding.detail
    mine = np.flatnonzero(trace.slices.values("track_id") == finding.location.track_id)
    assert rows.tolist() == mine[:10].tolist()


def test_ls502_a_short_gap_is_a_notice_and_a_known_one_is_none():
    made = kernel()
    extent = int((made.lanes[3, "load"].lengths + made.lanes[3, "load"].pauses).sum())
    trace = step(made, (3, "load"), 25, extent // 2)
    assert found(trace) == [("LS502", "notice", "GPU/block 3/load")]
    assert found(trace, thresholds=Thresholds(lone_gaps=LoneGapThresholds(min_extent=0.9))) == []
    (finding,) = check.run(trace, select=["LS502"])
    builder = TraceBuilder(TimeBase())
    gap = builder.track("gap", kind="lane", role="warp")
    builder.append("gaps", track_id=gap, ts=finding.location.ts, dur=extent, cause="overrun")
    tables = trace.tables()
    gaps = builder.finish().gaps
    lane = finding.location.track_id
    made_gaps = type(gaps).from_arrays(
        gaps.spec, {**{name: gaps[name].tolist() for name in gaps.spec.names}, "track_id": [lane]}
    )
    assert found(type(trace)(trace.time, {**tables, "gaps": made_gaps})) == []


def test_ls502_a_gap_that_siblings_share_is_none():
    made = kernel()
    for lane in made.lanes.values():
        lane.pauses[20] += 1_000_000
    assert found(made.trace()) == []


def test_ls502_one_record_long_after_the_rest_is_a_notice():
    made = kernel()
    extent = int((made.lanes[3, "load"].lengths + made.lanes[3, "load"].pauses).sum())
    made.lanes[3, "load"].lengths[-1] = 10
    trace = step(made, (3, "load"), 39, 2 * extent)
    assert ("LS502", "notice", "GPU/block 3/load") in found(trace)


# --- LS504 --------------------------------------------------------------------------------------------------------


def without(made, *lanes):
    mine, ids = columns(made)
    gone = [ids[lane] for lane in lanes]
    return mine.kept(~np.isin(mine.lane, gone)).to_trace()


def test_ls504_a_block_without_one_of_its_lanes():
    trace = without(kernel(), "block 4/compute")
    (finding,) = check.run(trace, select=CODES)
    assert (finding.code, finding.severity, finding.location.track) == ("LS504", "warning", "GPU/block 4")
    assert finding.detail.startswith("no compute with records: each of 9 others like GPU/block 4 has one, with 40")
    assert finding.count == 1


@pytest.mark.parametrize("place", [0, 9])
def test_ls504_the_first_and_the_last_block_as_well(place):
    assert found(without(kernel(), f"block {place}/load")) == [("LS504", "warning", f"GPU/block {place}")]


def flat(counts, *, leave_out=(), names="core {}"):
    """Cores of one device with so many records each, in turn."""
    builder = TraceBuilder(TimeBase())
    device = builder.track("NPU", kind="group", role="device")
    for number, count in enumerate(counts):
        if number in leave_out:
            continue
        lane = builder.track(names.format(number), kind="lane", role="core", parent=device)
        if count:
            ts = np.arange(count) * 1000 + 7 * number
            builder.append("slices", track_id=lane, ts=ts, dur=np.full(count, 700), name="mma")
    return builder.finish()


def test_ls504_a_core_without_a_record():
    assert found(flat([30] * 5 + [0] + [30] * 4)) == [("LS504", "warning", "NPU/core 5")]
    assert ("LS504", "notice", "NPU/core 4") in found(flat([30, 10, 27, 33, 0, 25, 31, 38]))
    assert found(flat([30, 6, 90, 12, 0, 33, 11, 70])) == []
    assert found(flat([2] * 5 + [0] + [2] * 4)) == []


def test_ls504_the_last_thread_may_have_another_duty():
    assert found(flat([34, 44, 40, 0])) == [("LS504", "notice", "NPU/core 3")]


def test_ls504_every_second_core_is_unused():
    assert found(flat([30, 0] * 6)) == []


def test_ls504_a_number_without_a_lane():
    trace = flat([30] * 12, leave_out=(7,))
    (finding,) = check.run(trace, select=CODES)
    assert (finding.code, finding.severity, finding.location.track) == ("LS504", "warning", "NPU")
    assert finding.detail == "no lane 7 among 11 siblings like NPU/core 0, each of which has 30 or more records"
    assert found(flat([30] * 12, leave_out=(7, 8, 9))) == []
    assert found(flat([30] * 12, leave_out=(7,), names="queue 0x{}fffffff")) == []


@pytest.mark.parametrize("seed", range(3))
def test_ls504_a_lane_that_ends_early_or_starts_late(seed):
    mine, ids = columns(kernel(seed))
    lane = ids["block 4/compute"]
    rows = mine.rows(lane)
    for gone, word in ((rows[20:], "early"), (rows[:20], "late")):
        left = np.ones(len(mine.ts), np.bool_)
        left[gone] = False
        trace = mine.kept(left).to_trace()
        (finding,) = check.run(trace, select=CODES)
        assert (finding.code, finding.severity, finding.location.track) == ("LS504", "warning", "GPU/block 4/compute")
        assert word in finding.detail
        assert "with 20 records: the others have 40 or more" in finding.detail
        assert len(finding.evidence.ids) == 20


def test_ls504_records_missing_in_the_middle():
    mine, ids = columns(kernel())
    rows = mine.rows(ids["block 4/compute"])
    left = np.ones(len(mine.ts), np.bool_)
    left[rows[15:25]] = False
    (finding,) = check.run(mine.kept(left).to_trace(), select=CODES)
    assert (finding.code, finding.severity) == ("LS504", "notice")
    assert finding.detail == "30 records: 9 of 10 siblings have 40 each"
    limits = Thresholds(silent_lanes=SilentLaneThresholds(count_difference=0.3))
    assert found(mine.kept(left).to_trace(), thresholds=limits) == []


# --- LS506 --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [-1, 1])
def test_ls506_a_lane_off_its_brothers(sign):
    mine, ids = columns(kernel())
    far = sign * mine.span // 2
    trace = mine.moved(ids["block 4/compute"], lambda ts: ts + far).to_trace()
    (finding,) = check.run(trace, select=CODES)
    assert (finding.code, finding.severity, finding.location.track) == ("LS506", "warning", "GPU/block 4/compute")
    assert "off the lanes next to it" in finding.detail
    assert len(finding.evidence.ids) == 40


def test_ls506_siblings_alone_give_a_notice_and_the_next_wave_none():
    mine, ids = columns(odd.Kernel({(n, "load"): lane for (n, role), lane in kernel().lanes.items() if role == "load"}))
    for share, expected in ((0.6, [("LS506", "notice", "GPU/block 4/load")]), (1.2, [])):
        far = int(share * mine.span)
        assert found(mine.moved(ids["block 4/load"], lambda ts, far=far: ts + far).to_trace(), "LS506") == expected


# --- LS508 --------------------------------------------------------------------------------------------------------


def test_ls508_records_on_a_lane_of_another_kind():
    mine, ids = columns(kernel())
    rows = mine.rows(ids["block 4/load"])[10:13]
    lane = mine.lane.copy()
    lane[rows] = ids["block 7/store"]
    finding, ids_found = evidence(replace(mine, lane=lane).to_trace(), "LS508")
    assert (finding.severity, finding.location.track, finding.count) == ("warning", "GPU/block 7/store", 3)
    assert finding.detail == ("3 of 43 records have names that elsewhere only lanes like GPU/block #/load have: load")
    assert ids_found.tolist() == sorted(rows.tolist())


def test_ls508_two_lanes_exchanged():
    mine, ids = columns(kernel())
    one, two = ids["block 4/load"], ids["block 4/compute"]
    number = np.arange(len(mine.trace.tracks))
    number[[one, two]] = two, one
    trace = replace(mine, lane=number[mine.lane]).to_trace()
    assert found(trace, "LS508") == [
        ("LS508", "warning", "GPU/block 4/load"),
        ("LS508", "warning", "GPU/block 4/compute"),
    ]


def test_ls508_names_that_keep_to_no_kind_say_nothing():
    mine, ids = columns(kernel())
    name = np.zeros(len(mine.name), np.int64)
    rows = mine.rows(ids["block 4/load"])[10:13]
    name[rows] = 1
    assert found(replace(mine, name=name).to_trace(), "LS508") == []


# --- LS509 --------------------------------------------------------------------------------------------------------


def test_ls509_one_record_that_decides():
    made = kernel(blocks=4, records=400)
    made.lanes[3, "load"].lengths[20] = 3_500_000
    trace = made.trace()
    (finding,) = check.run(trace, select=["LS509"])
    assert finding.severity == "notice"
    assert finding.detail.startswith("1 record of 1,600 of 'load': ")
    (row,) = finding.evidence.ids
    assert int(trace.slices.values("dur")[row]) == 3_500_000


@pytest.mark.parametrize("seed", range(3))
def test_ls509_a_clock_that_steps_within_a_slice(seed):
    made = kernel(seed)
    extent = int((made.lanes[3, "load"].lengths + made.lanes[3, "load"].pauses).sum())
    made.lanes[3, "load"].lengths[20] += 2 * extent
    trace = made.trace()
    (finding,) = check.run(trace, select=CODES)
    assert (finding.code, finding.severity, finding.location.track) == ("LS509", "notice", "GPU/block 3/load")
    assert re.search(r"times as long as on 9 siblings, makes the lane end late by (0\.9|1\.0)\d of it", finding.detail)
    (row,) = finding.evidence.ids
    assert int(trace.slices.values("dur")[row]) > 2 * extent
    made.lanes[3, "load"].lengths[20] -= extent
    assert found(made.trace()) == []


def test_ls509_a_wait_that_the_others_share_is_a_phase():
    made = kernel(records=120)
    for lane in made.lanes.values():
        lane.lengths[50] = 1000 * 2000
    assert found(made.trace()) == []


def test_ls509_rows_that_ls501_suspects_are_left_out():
    made = kernel()
    made.lanes[3, "load"].lengths[20] = 1 << 40
    assert found(made.trace(), "LS509") == []
    assert found(made.trace(), "LS501") == [("LS501", "warning", "GPU/block 3/load")]


# --- LS510 --------------------------------------------------------------------------------------------------------


def recorders(stops, *, quality="exact", start=0):
    builder = TraceBuilder(TimeBase(time_unit="cycles"))
    for number, stop in enumerate(stops):
        tile = builder.track(f"tile {number}", kind="group", role="tile")
        lane = builder.track("trace", kind="lane", role="trace", parent=tile)
        slot = builder.track("slot 0", kind="lane", role="slot", parent=tile)
        builder.append("instants", track_id=lane, ts=[start, stop], name=["Start", "Stop"], quality=quality)
        builder.append("slices", track_id=slot, ts=[start + 5], dur=[11], name="slot 0")
    return builder.finish()


def test_ls510_a_recorder_that_ends_elsewhere():
    trace = recorders([200_000, 200_000, 200_011, 150_000])
    (finding,) = check.run(trace, select=CODES)
    assert (finding.code, finding.severity, finding.location.track) == ("LS510", "warning", "tile 3/trace")
    assert finding.detail == "ends 50000 cycles before the common stop of 3 of 4 recorders"
    assert finding.evidence.ids.tolist() == [3]
    assert found(recorders([200_000, 150_000, 200_000])) == [("LS510", "notice", "tile 1/trace")]


@pytest.mark.parametrize(
    "trace",
    [
        recorders([200_000, 200_000, 200_000, 200_000]),
        recorders([200_000, 150_000, 170_000, 200_000, 100_000]),
        recorders([200_000, 150_000]),
        recorders([60, 61, 62, 900]),
        recorders([200_000, 200_000, 200_000, 150_000], quality="estimated"),
    ],
    ids=["together", "each alone", "too few", "at the start", "estimated"],
)
def test_ls510_what_proves_nothing(trace):
    assert found(trace) == []


def test_ls510_a_packet_that_is_lost_on_the_way(tmp_path):
    from lanescope.devices.aie.formats.layout import PACKET_WORDS
    from lanescope.families import registry
    from lanescope.families.options import resolve_options
    from lanescope.pipeline import session

    family = registry.family("aie")
    given = {"tiles": 4, "records": 600, "shared_stop": True, "zeros": 0}
    options = resolve_options(family.sim_options, given, what="simulator")
    for seed in range(some(12, 3)):
        data = family.simulate(options, seed).files["trace.bin"]
        (tmp_path / "trace.bin").write_bytes(data)
        assert found(session.open(tmp_path / "trace.bin"), "LS510") == []
        size = 4 * PACKET_WORDS
        at = len(data) // size // 2 * size
        (tmp_path / "trace.bin").write_bytes(data[:at] + data[at + size :])
        assert [code for code, _, _ in found(session.open(tmp_path / "trace.bin"), "LS510")] == ["LS510"]


# --- all of them --------------------------------------------------------------------------------------------------


def test_what_ls501_suspects_is_reported_once():
    mine, ids = columns(kernel())
    trace = mine.moved(ids["block 4/compute"], lambda ts: ts + 1000 * mine.span).to_trace()
    assert found(trace, "LS5") == [("LS501", "warning", "GPU/block 4/compute")]


@pytest.mark.parametrize("family", captures.FAMILIES)
def test_evidence_is_on_the_lane_of_the_finding(family):
    mine = Columns.of(captures.simulated(family, 77))
    seen = set()
    for number, lie in enumerate(LIES):
        changed = lie.make(mine, np.random.default_rng([77, number]))
        if changed is None:
            continue
        trace = changed.to_trace()
        for finding in check.run(trace, select=CODES):
            seen.add(finding.code)
            ids = finding.evidence.ids
            assert (np.diff(ids) > 0).all()
            if finding.location.track_id is not None and finding.code not in ("LS510", "LS504"):
                assert set(trace.slices.values("track_id")[ids].tolist()) == {finding.location.track_id}
            assert finding.count > 0
            assert finding.help
    assert seen
