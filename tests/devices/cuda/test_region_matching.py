"""Asynchronous regions of several lanes: the native rules against the slow ones, and rule by rule."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.cuda import reference
from devices.cuda.helpers import decode, decode_simulation, lanes, ls2, simulate, stats
from devices.cuda.test_proton import file
from effort import some
from lanescope._native import core
from lanescope.devices.cuda.interpret import region_matching
from lanescope.trace import Flag

GOLDEN = Path(__file__).parent / "golden" / "proton_39.bin"


@st.composite
def records(draw):
    """Return (block, lane, launch, key, time, is_end, across), with times that collide, and step back at times."""
    found = []
    number = draw(st.integers(1, 3))
    for lane in range(number * draw(st.integers(1, 3))):
        time = launch = 0
        for _ in range(draw(st.integers(0, 8))):
            time += draw(st.sampled_from([0, 0, 1, 1, 2, -1]))
            launch += draw(st.sampled_from([0, 0, 0, 0, 0, 1]))
            key = draw(st.integers(0, 2)) + 4 * launch
            found.append((lane // number, lane, launch, key, time, draw(st.booleans()), key % 4 < 2))
    return found


@settings(max_examples=some(400))
@given(records(), st.booleans())
def test_native_equals_reference(given_records, by_event):
    columns = np.array(given_records, np.int64).reshape(-1, 7).T
    block, lane, launch, key, time, is_end, across = columns
    pairs, repeated = region_matching.pair(
        block, key, time, lane.astype(np.uint32), launch.astype(np.uint32), is_end != 0,
        across=across != 0, is_lossy=np.zeros(len(key), np.bool_), by_event=by_event,
    )  # fmt: skip
    partner, ambiguous = reference.pair_regions(given_records, by_event=by_event)
    starts = [at for at, row in enumerate(given_records) if not row[5] and partner[at] != -2]
    assert pairs.start.tolist() == starts
    assert pairs.end.tolist() == [partner[at] for at in starts]
    assert pairs.is_ambiguous.tolist() == [ambiguous[at] for at in starts]
    assert repeated.tolist() == [at for at, other in enumerate(partner) if other == -2]
    strays = [at for at, row in enumerate(given_records) if row[5] and partner[at] < 0]
    assert pairs.unmatched.tolist() == sorted(strays + repeated.tolist())


def test_columns_that_are_none_are_refused():
    one, two = np.zeros(1, np.int64), np.zeros(2, np.int64)
    narrow, mask, out = np.array([1, 0], np.uint32), np.zeros(2, np.uint8), np.zeros(2, np.uint8)
    start = np.array([0, 2])
    for starts, key, lane in ((start, one, narrow), (start, two, narrow), (np.array([0, 1]), two, narrow[::-1].copy())):
        with pytest.raises(ValueError, match=r"columns of different|do not lie"):
            core.cuda_pair_regions(starts, key.view(np.uint64), two, lane, narrow, mask, mask, True, False, two, out)


def regions(trace):
    """Return (block, warp, warp of the end, begin, length in cycles) of every asynchronous region."""
    rows = zip(trace.slices.rows(), trace.details["cuda_regions"].rows(), strict=True)
    return [
        (of["block"], of["group"], of["end_group"], row["ts_ticks"], row["dur_ticks"])
        for row, of in rows
        if row["category"] == "async"
    ]


def test_golden_file_of_triton_39():
    trace = decode(GOLDEN.read_bytes(), name="run.bin")
    base = 8_589_934_592
    assert regions(trace) == [
        (0, 0, 2, base + 100, 800),
        (1, 0, 2, base + 100, 200),
        (1, 1, None, base + 150, 50),
        (2, 0, None, base + 100, 300),
    ]
    flows = [(row["block"], row["src_slot"], row["dst_slot"]) for row in trace.details["cuda_flows"].rows()]
    assert [block for block, *_ in flows] == [0, 1]
    slices = {row["id"]: row for row in trace.slices.rows()}
    for flow in trace.flows.rows():
        region = slices[flow["src_slice_id"]]
        assert (flow["src_ts"], flow["dst_ts"]) == (region["ts"], region["ts"] + region["dur"])
        assert flow["src_track_id"] == region["track_id"] != flow["dst_track_id"]
    found = stats(trace)
    assert (found["cuda_start_repeated"], found["cuda_end_unmatched"]) == (1, 1)
    assert "cuda_ambiguous_async_end" not in found
    assert "cuda_corrupt_record" not in found


@pytest.mark.parametrize(("start", "end"), ["be", "xy"])
def test_both_encodings_follow_the_same_rules(start, end):
    warps = [[(start, 1, 100)], [(start, 1, 110)], [(end, 1, 120), (end, 1, 130), (end, 1, 140)]]
    trace = decode(file(warps), name="run.bin")
    # Several starts, one consumer: the oldest first; what comes then closes nothing.
    assert regions(trace) == [(0, 0, 2, 100, 20), (0, 1, 2, 110, 20)]
    assert stats(trace)["cuda_end_unmatched"] == 1
    assert stats(trace)["cuda_ambiguous_async_end"] == 2


def test_one_start_for_several_ends_is_closed_by_the_first():
    trace = decode(file([[("x", 1, 100)], [("y", 1, 140)], [("y", 1, 130)]]), name="run.bin")
    assert regions(trace) == [(0, 0, 2, 100, 30)]
    assert [row["name"] for row in trace.instants.rows()] == ["end event_1?"]


def test_at_one_cycle_the_lower_warp_comes_first():
    trace = decode(file([[("x", 1, 100)], [("y", 1, 100)]]), name="run.bin")
    assert regions(trace) == [(0, 0, 1, 100, 0)]
    trace = decode(file([[("y", 1, 100)], [("x", 1, 100)]]), name="run.bin")
    assert regions(trace) == [(0, 1, None, 100, None)]
    assert [row["flags"] for row in trace.slices.rows()] == [int(Flag.UNFINISHED)]
    assert stats(trace)["cuda_end_unmatched"] == 1


def test_blocks_and_scopes_do_not_mix():
    trace = decode(file([[("x", 1, 100)], [("y", 1, 130)]], sm=(0, 0)), name="run.bin")
    assert [row[-1] for row in regions(trace)] == [None]
    trace = decode(file([[("x", 1, 100)], [("E", 1, 130)]]), name="run.bin")
    assert [row[-1] for row in regions(trace)] == [None]


def test_a_region_over_lanes_is_a_conclusion_where_records_were_lost():
    warps = [[("x", 1, 100)], [("M", 2, 100 + at) for at in range(9)] + [("y", 1, 130)]]
    trace = decode(file(warps, entries=8), name="run.bin")
    assert regions(trace) == [(0, 0, 1, 100, 30)]
    assert [row["quality"] for row in trace.slices.rows()] == ["inferred"]
    assert stats(trace)["cuda_ambiguous_async_end"] == 1
    assert lanes(trace)[0, 1]["dropped"] == 2


@pytest.mark.parametrize("value", range(8))
def test_every_value_of_the_type_is_read_as_the_producer_reads_it(value):
    data = bytearray(file([[("x", 1, 100), ("y", 1, 130)]]))
    at = data.index(np.uint32(4 << 20 | 1 << 23).tobytes())
    for entry in (at, at + 8):
        word = int.from_bytes(data[entry : entry + 4], "little") & ~(7 << 20) | value << 20
        data[entry : entry + 4] = word.to_bytes(4, "little")
    trace = decode(bytes(data), name="run.bin")
    assert len(regions(trace)) == (value in (1, 4, 5, 6, 7))
    assert stats(trace).get("cuda_reserved_bits", 0) == (2 if value > 4 else 0)


def test_tokens_carry_regions_of_ls2_to_other_lanes():
    buffer = ls2([[("b", 3, 100, 5), ("b", 3, 120, 6)], [("e", 3, 150, 6), ("e", 3, 170, 5)]], groups=2)
    trace = decode(buffer)
    rows = [(row["ts"], row["dur"]) for row in trace.slices.rows()]
    assert rows == [(0, 70), (20, 30)]
    assert [row["end_group"] for row in trace.details["cuda_regions"].rows()] == [1, 1]
    assert [row["token"] for row in trace.details["cuda_flows"].rows()] == [5, 6]
    assert "cuda_ambiguous_async_end" not in stats(trace)


def test_no_token_stays_in_its_lane_and_no_token_leaves_its_block():
    trace = decode(ls2([[("b", 3, 100)], [("e", 3, 150)]], groups=2))
    assert stats(trace)["cuda_end_unmatched"] == 1
    trace = decode(ls2([[("b", 3, 100, 5)], [("e", 3, 150, 5)]], groups=1))
    assert stats(trace)["cuda_end_unmatched"] == 1


def test_own_starts_come_before_those_of_other_lanes():
    trace = decode(ls2([[("b", 3, 100, 5)], [("b", 3, 120, 5), ("e", 3, 150, 5), ("e", 3, 170, 5)]], groups=2))
    assert [(row["ts"], row["dur"]) for row in trace.slices.rows()] == [(0, 70), (20, 30)]


def test_within_one_step_of_the_clock_a_start_of_another_lane_comes_first():
    trace = decode(ls2([[("e", 3, 100, 5)], [("b", 3, 100, 5)]], groups=2))
    assert [row["dur"] for row in trace.slices.rows()] == [0]
    trace = decode(ls2([[("e", 3, 100, 5), ("b", 3, 100, 5)], []], groups=2))
    assert [row["dur"] for row in trace.slices.rows()] == [None]


# --- regions of LS2 over lanes: all that can be wrong -------------------------------------------------------------


def ends_of(trace):
    return [(row["dur"], of["group"], of["end_group"]) for row, of in zip(
        trace.slices.rows(), trace.details["cuda_regions"].rows(), strict=True)]  # fmt: skip


def test_an_end_in_another_lane_before_its_only_start_is_named():
    trace = decode(ls2([[("b", 3, 200, 5)], [("e", 3, 150, 5)]], groups=2))
    assert stats(trace) == {"cuda_negative_duration": 1}
    assert ends_of(trace) == [(None, 0, 1)]
    assert trace.slices["flags"].tolist() == [int(Flag.NEGATIVE_DURATION)]
    # An effect before its cause has no arrow.
    assert len(trace.flows) == 0


@pytest.mark.parametrize(
    "rows",
    [
        [[("b", 3, 200, 5)], [("e", 3, 150, 5), ("e", 3, 160, 5)]],  # which of the two ends?
        [[("b", 3, 200, 5), ("b", 3, 210, 5)], [("e", 3, 150, 5)]],  # which of the two starts?
        [[("b", 3, 200, 0)], [("e", 3, 150, 0)]],  # no token
        [[("b", 3, 200, 5)], [("e", 4, 150, 5)]],  # another event
    ],
)
def test_an_early_end_is_joined_with_nothing_where_there_is_a_choice(rows):
    found = stats(decode(ls2(rows, groups=2)))
    assert "cuda_negative_duration" not in found
    assert found["cuda_end_unmatched"] == sum(row[0] == "e" for lane in rows for row in lane)
    assert found["cuda_unfinished_region"] == sum(row[0] == "b" for lane in rows for row in lane)


def test_an_early_end_is_joined_with_nothing_where_records_were_lost():
    full = [("e", 3, 150, 5), *(("I", 1, 160 + at) for at in range(9))]
    found = stats(decode(ls2([[("b", 3, 200, 5)], full], groups=2, capacity=8)))
    assert (found["cuda_end_unmatched"], found["cuda_unfinished_region"]) == (1, 1)
    assert "cuda_negative_duration" not in found


def test_a_token_that_begins_again_while_it_is_open_is_named():
    trace = decode(ls2([[("b", 3, 100, 5), ("b", 3, 120, 5)], [("e", 3, 150, 5), ("e", 3, 170, 5)]], groups=2))
    assert stats(trace)["cuda_ambiguous_async_end"] == 2
    assert set(trace.slices["quality"].tolist()) == {"inferred"}
    # Once it is free again, nothing is ambiguous.
    trace = decode(ls2([[("b", 3, 100, 5), ("b", 3, 160, 5)], [("e", 3, 150, 5), ("e", 3, 170, 5)]], groups=2))
    assert stats(trace) == {}
    assert ends_of(trace) == [(50, 0, 1), (10, 0, 1)]


def test_a_token_of_a_stage_may_end_in_either_lane_by_turns():
    first = [("b", 3, 100, 5), ("b", 3, 160, 5), ("e", 3, 170, 5), ("b", 3, 200, 5)]
    trace = decode(ls2([first, [("e", 3, 150, 5), ("e", 3, 230, 5)]], groups=2))
    assert stats(trace) == {}
    assert ends_of(trace) == [(50, 0, 1), (10, 0, None), (30, 0, 1)]
    # The last one was never ended.
    trace = decode(ls2([first, [("e", 3, 150, 5)]], groups=2))
    assert stats(trace) == {"cuda_unfinished_region": 1}
    assert ends_of(trace) == [(50, 0, 1), (10, 0, None), (None, 0, None)]


def test_an_end_whose_start_is_missing_takes_no_start_that_its_own_lane_ends():
    trace = decode(ls2([[("b", 3, 100, 5), ("e", 3, 150, 5)], [("e", 3, 120, 5)]], groups=2))
    assert ends_of(trace) == [(50, 0, None)]
    assert stats(trace) == {"cuda_end_unmatched": 1}


def test_a_region_over_lanes_lies_on_no_lane():
    begin, end = [("B", 0, 90), ("b", 3, 100, 5), ("E", 0, 110)], [("B", 1, 140), ("e", 3, 150, 5), ("E", 1, 160)]
    trace = decode(ls2([begin, end], groups=2))
    tracks = {row["id"]: row for row in trace.tracks.rows()}
    (region,) = [row for row in trace.slices.rows() if row["category"] == "async"]
    assert (tracks[region["track_id"]]["role"], tracks[region["track_id"]]["nesting"]) == ("async", "free")
    (flow,) = trace.flows.rows()
    (around,) = [row for row in trace.slices.rows() if row["name"] == "event_1"]
    assert (flow["src_track_id"], flow["src_slice_id"]) == (region["track_id"], region["id"])
    assert (flow["dst_track_id"], flow["dst_slice_id"]) == (around["track_id"], around["id"])
    assert flow["dst_ts"] - flow["src_ts"] == 50


def test_probes_of_the_first_version_end_regions_where_they_began():
    words = ls2([[("b", 3, 100, 5)], [("e", 3, 150, 5)]], groups=2)
    assert ends_of(decode(words)) == [(50, 0, 1)]
    words[1] = words[1] & ~np.uint64(0xFF) | np.uint64(1)
    assert (stats(decode(words))["cuda_end_unmatched"], stats(decode(words))["cuda_unfinished_region"]) == (1, 1)


@settings(max_examples=some(40))
@given(st.integers(0, 2**32), st.booleans(), st.booleans(), st.integers(2, 4))
def test_simulated_regions_over_lanes_are_found(seed, payload, clock64, groups):
    simulation = simulate(seed, layout="ls2", across=True, blocks=3, groups=groups, tiles=6, payload=payload,
                          clock64=clock64)  # fmt: skip
    trace = decode_simulation(simulation)
    truth = simulation.truth
    rows = [
        (of["block"], of["group"], of["event_id"], of["end_group"])
        for row, of in zip(trace.slices.rows(), trace.details["cuda_regions"].rows(), strict=True)
        if row["category"] == "async"
    ]
    assert sorted(rows) == sorted((block, group, event, end) for block, group, event, _, _, end in truth["across"])
    assert len(rows) == 3 * 6
    assert not {"cuda_end_unmatched", "cuda_unfinished_region", "cuda_ambiguous_async_end"} & set(stats(trace))
    if not clock64:
        found = sorted((row["ts"], row["dur"]) for row in trace.slices.rows() if row["category"] == "async")
        origin = int(trace.details["cuda_buffers"]["t0_ticks"][0]) - truth["origin_ns"]
        assert found == sorted((row[3] - origin, row[4] - row[3]) for row in truth["across"])


@settings(max_examples=some(60))
@given(st.integers(0, 2**32), st.sampled_from([(0, 0), (1, 0), (2, 0), (0, 1), (0, 2)]), st.booleans())
def test_damage_of_regions_over_lanes_is_counted(seed, damage, overflow):
    """Every start and end is a region's, an unfinished one's or an unmatched one; nothing else and nothing less."""
    # Of a lane that was killed, words after a hole are counted as such and not read.
    unfinished, holes = damage
    simulation = simulate(seed, layout="ls2", across=True, blocks=3, groups=3, tiles=5, unfinished=unfinished,
                          holes=holes, overflow=overflow)  # fmt: skip
    trace = decode_simulation(simulation)
    rows = [row for row in trace.slices.rows() if row["category"] == "async"]
    unfinished_rows = sum(bool(row["flags"] & Flag.UNFINISHED) for row in rows)
    strays = sum(row["category"] == "unmatched_end" and row["name"] == "end fetch?" for row in trace.instants.rows())
    name = next(iter(trace.records))
    kinds = [row["kind"] for row in trace.records[name].rows()]
    assert kinds.count("async_begin") == len(rows)
    assert kinds.count("async_end") == len(rows) - unfinished_rows + strays
    # A region that is certain is one that there was.
    whole = {(block, end - begin) for block, _, _, begin, end, _ in simulation.truth["across"]}
    blocks = dict(zip(trace.details["cuda_regions"]["slice_id"].tolist(),
                      trace.details["cuda_regions"]["block"].tolist(), strict=True))  # fmt: skip
    sure = {(blocks[row["id"]], row["dur"]) for row in rows if row["dur"] is not None and row["quality"] == "exact"}
    assert holes or sure <= whole
