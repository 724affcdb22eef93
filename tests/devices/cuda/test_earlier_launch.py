"""Buffers that were not cleared between two launches: what the earlier one left is told apart, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from devices.cuda.helpers import (
    accounts,
    buffer,
    decode,
    decode_simulation,
    instants,
    lanes,
    ls2,
    simulate,
    spans,
    stat,
    stats,
)
from devices.cuda.test_simulate import check, scenario
from effort import some
from lanescope.analysis import check as checks
from lanescope.cli import main
from lanescope.devices.cuda.formats.encode import strided
from lanescope.devices.cuda.formats.layout import STAMP_WRAP
from lanescope.devices.cuda.schema import STATS
from lanescope.errors import UsageError
from lanescope.trace import Flag

REPRO = Path(__file__).parent / "repro"
LANE = [("B", 0, 1000), ("E", 0, 1200), ("B", 1, 1300), ("E", 1, 1500)]
HALF = STAMP_WRAP // 2


def shifted(records, by):
    return [(kind, event, time + by) for kind, event, time in records]


def laid_over(new, old, **layout):
    """Return the buffer of one launch, stored into that of another."""
    length = max(1, *(len(records) for records in (*new, *old)))
    slots = 1 + len(new) * (length + 1)
    words, left = (buffer(launch, slots=slots, **layout) for launch in (new, old))
    return np.where(words != 0, words, left)


def codes(trace):
    return {finding.code: finding for finding in checks.run(trace)}


# --- the captures that were answered wrongly ----------------------------------------------------------------------


@pytest.mark.parametrize(("name", "slices", "old"), [("stale", 226, 482), ("stale2", 245, 478)])
def test_a_buffer_that_was_not_cleared_mixes_no_two_launches(name, slices, old):
    data = (REPRO / f"{name}.npy").read_bytes()
    trace = decode(data)
    assert len(trace.slices) == slices
    assert stats(trace)["cuda_stale"] == old
    assert not {"cuda_clock_reversal", "cuda_multiple_writers", "cuda_wrap_ambiguous", "cuda_after_finalize"} & set(
        stats(trace)
    )
    account = accounts(trace)["slot"]
    assert account["lost"] == 0
    assert account["decoded"] + old <= account["decoded"] + account["padding"] == account["total"]
    found = codes(trace)["LS006"]
    assert (found.severity, found.count, found.stat) == ("warning", old, "cuda_stale")
    assert not {"LS002", "LS302", "LS304", "LS401"} & set(codes(trace))
    kept = decode(data, stale="keep")
    launch = kept.details["cuda_regions"]["launch"]
    assert np.count_nonzero(launch == 0) == slices
    assert kept.slices["ts"][launch == 1].max() < kept.slices["ts"][launch == 0].min()
    assert stats(kept)["cuda_stale"] == old
    assert accounts(kept)["slot"]["decoded"] == account["decoded"] + old
    assert "cuda_clock_reversal" not in stats(kept)


# --- any two launches ---------------------------------------------------------------------------------------------


@st.composite
def launches(draw):
    """Return the records of each lane, of the later launch and of the earlier one."""
    count = draw(st.sampled_from([1, 2, 3, 6]))
    tick = draw(st.sampled_from([1, 32, 1024]))
    finalizes = draw(st.booleans())

    def launch(begin, least):
        made = []
        for _ in range(count):
            time, depth, records = begin + tick * draw(st.integers(0, 50)), [], []
            for _ in range(draw(st.integers(least, 20))):
                time += tick * draw(st.integers(0, 40))
                if depth and draw(st.booleans()):
                    records.append(("E", depth.pop(), time))
                else:
                    depth.append(draw(st.integers(0, 3)))
                    records.append(("B", depth[-1], time))
            records += [("E", depth.pop(), time + tick * i) for i in range(len(depth))]
            if finalizes and records:
                records.append(("F", 0, records[-1][2]))
            made.append(records)
        return made

    begin = draw(st.sampled_from([0, 10**9, STAMP_WRAP - 5000, HALF]))
    old = launch(begin, 0)
    end = max((records[-1][2] for records in old if records), default=begin)
    # Up to what is well below half a turn: further apart they may seem to come in the other order.
    new = launch(end + tick * draw(st.sampled_from([1, 2, 100, 10**6 // tick, 2 * 10**9 // tick])), 1)
    return new, old


def rows(trace):
    """Return the slices without what depends on the begin of the trace."""
    origin = int(trace.details["cuda_buffers"]["t0_ticks"][0])
    return [(*row[:3], row[4] % STAMP_WRAP, row[6], row[7]) for row in spans(trace, origin=origin)]


@settings(max_examples=some(300))
@given(launches())
def test_of_any_two_launches_the_later_one_is_left(made):
    new, old = made
    length = max(len(records) for records in (*new, *old))
    slots = 1 + len(new) * (length + 1)
    alone = buffer(new, slots=slots)
    words = laid_over(new, old)
    left = int(np.count_nonzero(words) - np.count_nonzero(alone))
    trace, wanted = decode(words, layout="tirx-v1"), decode(alone, layout="tirx-v1")
    longer = [len(before) > len(records) for records, before in zip(new, old, strict=True)]
    if sum(longer) == 1 < len(new) and "cuda_stale" not in stats(trace):
        # One lane that steps back a little may have another cause; it is not passed over in silence.
        assert stats(trace)["cuda_clock_reversal"] > 0
        return
    assert stats(trace).get("cuda_stale", 0) == left
    assert rows(trace) == rows(wanted)
    assert instants(trace) == instants(wanted)
    assert accounts(trace)["slot"] == accounts(wanted)["slot"]
    assert {name: count for name, count in stats(trace).items() if name != "cuda_stale"} == stats(wanted)
    assert lanes(trace) == lanes(wanted)
    kept = decode(words, layout="tirx-v1", stale="keep")
    assert np.count_nonzero(kept.details["cuda_regions"]["launch"] == 0) == len(wanted.slices)
    assert accounts(kept)["slot"]["decoded"] == accounts(wanted)["slot"]["decoded"] + left
    assert not (kept.slices["flags"] & np.uint32(Flag.CLOCK_SUSPECT | Flag.NEGATIVE_DURATION)).any()


@settings(max_examples=some(200))
@given(launches(), st.integers(0, STAMP_WRAP - 1))
def test_of_any_one_launch_nothing_is_left_out(made, begin):
    # Whatever the counter shows, and with a clock for each lane.
    for launch in made:
        moved = [shifted(records, begin * lane) for lane, records in enumerate(launch)]
        assume(any(moved))
        trace = decode(buffer(moved))
        assert "cuda_stale" not in stats(trace)
        assert lanes(trace).keys() == {(0, lane) for lane, records in enumerate(moved) if records}
        assert accounts(trace)["slot"]["decoded"] == 1 + sum(map(len, moved))


@pytest.mark.parametrize("seed", range(40))
def test_the_truth_of_the_latest_launch_is_found(seed):
    options = scenario(seed)
    # Some room before the launch: a second writer is behind, and a small step of a single lane proves nothing.
    options |= {"stale": 1 + seed % 9, "apart": [2_000_000, 50_000_000, 1_500_000_000][seed % 3]}
    simulation = simulate(seed=seed, **options)
    truth = simulation.truth
    trace = decode_simulation(simulation, launch_ns=10**7)
    old = sum(row[3] for row in truth["stale"])
    assert stats(trace).get("cuda_stale", 0) == old
    check(simulation, trace)
    # Without the length of the launch a lane that was killed may be one that was silent.
    killed = {tuple(row[:2]) for row in truth["unfinished"]}
    if {tuple(row[:2]) for row in truth["stale"]} - killed:
        assert stats(decode_simulation(simulation)).get("cuda_stale", 0) == old


@pytest.mark.parametrize("layout", ["flashinfer1", "flashinfer2", "warpscope"])
@pytest.mark.parametrize("stale", [4, 9])
def test_every_strided_layout_tells_two_launches_apart(layout, stale):
    options = {"layout": layout, "blocks": 9, "tiles": 4, "unfinished": 1}
    simulation = simulate(5, **options, stale=stale)
    alone = decode_simulation(simulate(5, **options, slots=simulation.truth["slots"]))
    trace = decode_simulation(simulation, launch_ns=10**6)
    # A lane that was killed has old records behind its own even where the earlier launch was no longer.
    assert simulation.truth["stale"]
    assert stats(trace)["cuda_stale"] == sum(row[3] for row in simulation.truth["stale"])
    assert rows(trace) == rows(alone)
    # The blocks ran on other SMs then.
    assert [row["sm"] for row in lanes(trace).values()] == [row["sm"] for row in lanes(alone).values()]
    assert "cuda_multiple_sms" not in stats(trace)


def test_more_than_two_launches():
    first, second, third = (shifted(LANE[:count], by) for count, by in ((4, 0), (4, 10_000), (2, 20_000)))
    longest = [*first, ("B", 2, 1600), ("E", 2, 1700)]
    words = laid_over([third, third], [[*second, *longest[4:]]] * 2)
    trace = decode(words)
    assert stats(trace)["cuda_stale"] == 8
    assert [row[2] for row in spans(trace)] == [0, 0]


def laid_in_order(launches):
    """Return the words of one buffer after several launches, the earliest first."""
    length = max(len(records) for launch in launches for records in launch)
    made = [buffer(launch, slots=1 + len(launch) * (length + 1)) for launch in launches]
    words = made[0]
    for later in made[1:]:
        words = np.where(later != 0, later, words)
    return words


def told_apart(trace):
    """Return the names of slices by launch, the latest first."""
    launch = trace.details["cuda_regions"]["launch"].tolist()
    names = trace.slices["name"].tolist()
    return [sorted(name for name, of in zip(names, launch, strict=True) if of == n) for n in range(max(launch) + 1)]


def test_each_of_several_launches_has_a_number_of_its_own():
    first = [(kind, at // 2, 1000 + 100 * at) for at in range(8) for kind in ("BE"[at % 2],)]
    launches = [[shifted(first[:count], by)] * 2 for count, by in ((8, 0), (6, 50_000), (4, 100_000), (2, 150_000))]
    words = laid_in_order(launches)
    assert len(decode(words, layout="tirx-v1").slices) == 2
    kept = decode(words, layout="tirx-v1", stale="keep")
    assert told_apart(kept) == [[f"event_{n}"] * 2 for n in range(4)]
    assert stats(kept) == {"cuda_stale": 12}
    assert [row["launches"] for row in lanes(kept).values()] == [4, 4]
    starts = [kept.slices["ts"][kept.details["cuda_regions"]["launch"] == n].max() for n in range(4)]
    assert starts == sorted(starts, reverse=True)


def test_a_launch_that_left_nothing_in_a_lane_keeps_its_number():
    first = [(kind, at // 2, 1000 + 100 * at) for at in range(8) for kind in ("BE"[at % 2],)]
    second, third = shifted(first[:4], 50_000), shifted(first[:2], 100_000)
    # In the second lane, the third launch wrote as much as the second one.
    words = laid_in_order([[first, first, first], [second, second, second], [third, shifted(second, 50_000), third]])
    kept = decode(words, stale="keep")
    rows = zip(
        kept.details["cuda_regions"]["group"].tolist(), kept.details["cuda_regions"]["launch"].tolist(), strict=True
    )
    assert list(rows) == [
        (0, 0),
        (0, 1),
        (0, 2),
        (0, 2),
        (1, 0),
        (1, 0),
        (1, 2),
        (1, 2),
        (2, 0),
        (2, 1),
        (2, 2),
        (2, 2),
    ]
    assert [row["launches"] for row in lanes(kept).values()] == [3, 2, 3]


@st.composite
def many_launches(draw):
    """Return the records of each lane of several launches of one kernel, the earliest first, each shorter."""
    count, tiles = draw(st.integers(1, 4)), draw(st.integers(3, 9))
    time, found = draw(st.sampled_from([1000, STAMP_WRAP - 50_000, HALF])), []
    while tiles > 0:
        launch = []
        for lane in range(count):
            at = time + 32 * lane
            launch.append([(kind, 0, at + 100 * k + 50 * (kind == "E")) for k in range(tiles) for kind in "BE"])
        found.append(launch)
        time += 100 * tiles + 32 * count + draw(st.sampled_from([2_000_000, 30_000_000]))
        tiles -= draw(st.integers(1, 3))
    return found


@settings(max_examples=some(100))
@given(many_launches())
def test_any_number_of_launches_is_told_apart(launches):
    kept = decode(laid_in_order(launches), stale="keep", launch_ns=10**6)
    launch = kept.details["cuda_regions"]["launch"].tolist()
    lengths = [len(made[0]) // 2 for made in launches][::-1]
    wanted = [length - before for length, before in zip(lengths, [0, *lengths], strict=False)]
    assert [launch.count(n) for n in range(len(launches))] == [n * len(launches[0]) for n in wanted]
    assert set(kept.slices["dur"].tolist()) == {50}
    assert "cuda_clock_reversal" not in stats(kept)


@pytest.mark.parametrize("layout", ["tirx", "flashinfer1", "flashinfer2", "warpscope"])
@pytest.mark.parametrize("launches", [1, 2, 4])
def test_simulated_launches_are_told_apart(layout, launches):
    simulation = simulate(7, layout=layout, blocks=5, tiles=3, stale=5, launches=launches, apart=3_000_000)
    left = [sum(row[3] for row in rows_of) for rows_of in simulation.truth["stale_launches"]]
    assert len(left) == launches
    assert all(left)
    trace = decode_simulation(simulation, launch_ns=10**6)
    assert stats(trace)["cuda_stale"] == sum(left)
    kept = decode_simulation(simulation, launch_ns=10**6, stale="keep")
    launch = kept.details["cuda_regions"]["launch"]
    assert int(np.count_nonzero(launch == 0)) == len(trace.slices)
    assert set(launch.tolist()) == set(range(launches + 1))
    # Each launch is over before the one that follows it begins.
    for later in range(launches):
        assert kept.slices["ts"][launch == later].min() - kept.slices["ts"][launch == later + 1].max() >= 2_900_000


def test_earlier_launches_are_only_simulated_in_a_buffer_that_was_not_cleared():
    with pytest.raises(UsageError, match="--launches requires --stale"):
        simulate(1, launches=2)


def test_parts_of_a_file_tell_launches_apart_as_well(monkeypatch):
    first = [("BE"[at % 2], 0, 1000 + 100 * at) for at in range(12)]
    words = laid_in_order([[shifted(first[: 12 - 2 * n], 50_000 * n)] * 5 for n in range(5)])
    whole = decode(words, stale="keep")
    monkeypatch.setattr("lanescope.devices.cuda.formats.earlier_launch._RECORDS_AT_ONCE", 7)
    monkeypatch.setattr("lanescope.devices.cuda.formats.earlier_launch._AT_ONCE", 10)
    monkeypatch.setattr("lanescope.devices.cuda.decoder.WHOLE_BYTES", 0)
    monkeypatch.setattr("lanescope.devices.cuda.formats.word_source.PIECE_WORDS", 10)
    parted = decode(words, stale="keep")
    assert rows(parted) == rows(whole)
    assert set(parted.details["cuda_regions"]["launch"].tolist()) == set(range(5))


def test_lanes_that_the_latest_launch_never_wrote():
    words = laid_over([shifted(LANE[:2], 5_000_000), [], shifted(LANE, 5_000_000)], [LANE, shifted(LANE, 100), LANE])
    trace = decode(words)
    assert [(row[1], row[2]) for row in spans(trace)] == [(0, 0), (2, 0), (2, 1)]
    assert stats(trace)["cuda_stale"] == 6
    assert lanes(trace).keys() == {(0, 0), (0, 2)}
    kept = decode(words, stale="keep")
    assert lanes(kept)[0, 1]["launches"] == 1
    assert kept.details["cuda_regions"]["launch"].tolist() == [0, 1, 1, 1, 0, 0]


def test_launches_further_apart_than_half_a_turn_are_told_by_ends_behind_a_finalize():
    lane = [("B", 3, 900), *LANE, ("E", 3, 1600), ("F", 0, 1600)]
    new = [("B", 0, 5), ("E", 0, 10), ("F", 0, 20)]
    trace = decode(laid_over([new, shifted(new, 40)], [shifted(lane, 10**9)] * 2))
    assert stats(trace)["cuda_stale"] == 8
    assert [row[2] for row in spans(trace)] == [0, 0]


def test_clocks_of_the_sms_are_not_compared():
    # Stamps are cycles of the SM: the lanes of the third are far below the others' and are of this launch.
    def lane(sm, by):
        return shifted(LANE, sm * 10**8 + by)

    new = [lane(3, 5_000_000), lane(2, 5_000_000), lane(1, 5_000_000)]
    old = [[*lane(3, 0), ("B", 2, 3 * 10**8 + 1600), ("E", 2, 3 * 10**8 + 1700)], lane(2, 0), lane(1, 0)]
    words = laid_over(new, old, blocks=3, groups=1)
    trace = decode(strided.to_flashinfer2(words, num_blocks=3, num_groups=1, sm=np.arange(3)), layout="flashinfer-v2")
    assert stats(trace)["cuda_stale"] == 2
    assert len(trace.slices) == 6


# --- what only looks like it --------------------------------------------------------------------------------------


def test_a_silence_inside_a_region_is_no_second_launch():
    # Three seconds later the stamps are 1.3 s earlier.
    lane = [("B", 0, HALF), ("B", 1, HALF + 10), ("E", 1, HALF + 20), ("E", 0, HALF + 3 * 10**9)]
    trace = decode(buffer([lane, shifted(lane, 7)]))
    assert "cuda_stale" not in stats(trace)
    assert accounts(trace)["slot"]["decoded"] == 9


def test_a_long_launch_may_have_been_silent_between_regions():
    words = laid_over([shifted(LANE, 10**9)], [[*LANE, ("B", 2, 1600), ("E", 2, 1700)]])
    assert stats(decode(words))["cuda_stale"] == 2
    assert "cuda_stale" not in stats(decode(words, launch_ns=4 * 10**9))
    assert stats(decode(words, launch_ns=10**6))["cuda_stale"] == 2


def test_a_small_step_of_one_lane_is_no_second_launch():
    # The lane that begins first, whose clock stands but for one step: all that follows is stamped before the launch.
    lane = [("B", 0, 1000), ("E", 0, 1000), ("B", 1, 1000), ("B", 2, 500), ("E", 2, 500)]
    trace = decode(buffer([lane, shifted(LANE, 900)]))
    assert stats(trace)["cuda_clock_reversal"] == 1
    assert "cuda_stale" not in stats(trace)
    closed = [*lane[:2], *lane[3:]]
    assert "cuda_stale" not in stats(decode(buffer([closed, shifted(LANE, 900)])))


def test_one_lane_whose_clock_steps_back_is_no_second_launch():
    step = [*LANE, *shifted(LANE, -300)]
    trace = decode(buffer([LANE, step, LANE]))
    assert stats(trace)["cuda_clock_reversal"] == 1
    assert "cuda_stale" not in stats(trace)


def test_a_stale_buffer_of_bare_words_is_recognised(tmp_path):
    from lanescope.pipeline import session

    path = tmp_path / "run.bin"
    path.write_bytes((REPRO / "stale.npy").read_bytes()[128:])
    assert len(session.open(path).slices) == 226


def test_parts_of_a_file_give_the_same(monkeypatch):
    simulation = simulate(3, blocks=9, tiles=3, stale=7)
    whole = decode_simulation(simulation)
    monkeypatch.setattr("lanescope.devices.cuda.emit.batches.PART_RECORDS", 400)
    monkeypatch.setattr("lanescope.devices.cuda.formats.earlier_launch._AT_ONCE", 50)
    monkeypatch.setattr("lanescope.devices.cuda.decoder.WHOLE_BYTES", 0)
    monkeypatch.setattr("lanescope.devices.cuda.formats.word_source.PIECE_WORDS", 100)
    for layout in (None, "flashinfer-v2"):
        if layout:
            simulation = simulate(3, blocks=9, tiles=3, stale=7, layout="flashinfer2")
            with monkeypatch.context() as undone:
                undone.setattr("lanescope.devices.cuda.emit.batches.PART_RECORDS", 1 << 20)
                whole = decode_simulation(simulation)
        parted = decode_simulation(simulation)
        assert rows(parted) == rows(whole)
        assert stats(parted) == stats(whole)
        assert stats(whole)["cuda_stale"] > 0


def test_raw_records_say_which_were_read():
    trace = decode((REPRO / "stale.npy").read_bytes())
    table = trace.records["cuda_records"]
    assert len(table) == 978
    assert int(np.count_nonzero(~table["is_read"])) == 482


def test_what_is_asked_for_must_be_known():
    with pytest.raises(UsageError, match="neither drop nor keep"):
        decode(buffer([LANE]), stale="some")


# --- LS2 ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("clock", [0, 1])
@pytest.mark.parametrize("state", [1, 3])
@pytest.mark.parametrize("count", [0, 1, 5, 63, 64, 70])
def test_ls2_lanes_leave_out_what_an_earlier_launch_left(words, clock, state, count):
    old = [("B" if i % 2 == 0 else "E", 0, 1000 + 10 * i) for i in range(100)]
    new = [("I", 1, 5000 + 10 * i) for i in range(count)]
    layout = {"capacity": 128, "words": words, "clock": clock}
    made = ls2([new], states=[state], begin=[4990], **layout)
    left = ls2([old], **layout)
    made[24:] = np.where(made[24:] != 0, made[24:], left[24:])
    trace = decode(made)
    assert len(trace.slices) == 0
    assert trace.instants["ts_ticks"].tolist() == [5000 + 10 * i for i in range(count)]
    # A payload of 0 is not told from an empty word.
    assert stats(trace)["cuda_stale_words"] == 100 - count
    assert accounts(trace)["slot"]["lost"] == 0
    assert codes(trace)["LS006"].count == 100 - count


def test_ls2_lanes_that_were_never_begun():
    left = ls2([[("I", 1, 5000 + 10 * i) for i in range(9)]] * 2)
    left[16:24] = 0
    trace = decode(left)
    assert len(trace.instants) == 9
    assert stats(trace)["cuda_stale_words"] == 9
    assert accounts(trace)["slot"]["lost"] == 0


def test_ls2_words_that_are_no_older_than_their_lane_are_lost():
    words = ls2([[("I", 1, 5000 + 10 * i) for i in range(9)]])
    words[17] = 4  # the count is damaged
    trace = decode(words)
    assert stats(trace)["cuda_uncounted"] == 5
    assert "cuda_stale_words" not in stats(trace)
    assert accounts(trace)["slot"]["lost"] == 5


# --- LS2 rings, full lanes, nothing at all ------------------------------------------------------------------------


def test_a_ring_that_tore_counters_is_healthy():
    trace = decode((REPRO / "l3.npy").read_bytes())
    assert "cuda_corrupt_record" not in stats(trace)
    assert stats(trace)["cuda_torn_counter"] == 2
    assert accounts(trace)["slot"]["lost"] == 0
    assert next(spec.severity for spec in STATS if spec.name == "cuda_torn_counter") == "info"
    hits = [row.stat for row in checks.run(trace) if row.code == "LS002"]
    assert hits == ["cuda_dropped"]


@pytest.mark.parametrize("before", range(5))
def test_a_ring_may_be_torn_at_any_place(before):
    lane = [("I", 0, 10 * (i + 1)) for i in range(before)]
    for i in range(6):
        lane += [("c", 1, 100 + 20 * i, 0, i), ("I", 0, 110 + 20 * i)]
    for capacity in (1, 2, 4, 8):
        trace = decode(ls2([lane], capacity=capacity, ring=True))
        assert "cuda_corrupt_record" not in stats(trace)
        assert "cuda_hole" not in stats(trace)
        assert accounts(trace)["slot"]["lost"] == 0
        assert len(trace.gaps) == 1
        # Positions: all that were offered and of which nothing is shown.
        shown = len(trace.instants) + 2 * len(trace.counters)
        assert trace.gaps["lost_count"][0] == before + 18 - shown


@pytest.mark.parametrize("layout", ["flashinfer1", "flashinfer2"])
def test_a_buffer_that_is_just_full_may_have_lost_something(layout):
    simulation = simulate(1, layout=layout, blocks=4, groups=1, tiles=3)
    words = np.frombuffer(simulation.files["attention.npy"][128:], "<u8")
    # Without the row of empty slots that the simulator leaves behind the last records.
    exact = words[: np.flatnonzero(words)[-1] + 1]
    trace = decode(exact, layout={"flashinfer1": "flashinfer-v1", "flashinfer2": "flashinfer-v2"}[layout])
    assert stats(trace)["cuda_lane_may_be_lost"] == 4
    assert not {"cuda_lane_full", "cuda_dropped_at_least"} & set(stats(trace))
    assert not set(trace.stats["severity"]) & {"data_loss", "error"}
    assert len(trace.gaps) == 0
    assert codes(trace)["LS005"].severity == "notice"
    assert "LS002" not in codes(trace)


def test_a_full_buffer_that_lacks_ends_lost_something():
    trace = decode(buffer([LANE[:3], LANE[:3]], slots=7))
    assert (stats(trace)["cuda_lane_full"], stats(trace)["cuda_dropped_at_least"]) == (2, 2)
    assert "cuda_lane_may_be_lost" not in stats(trace)


def test_a_full_lane_without_the_finalize_of_the_others_lost_something():
    trace = decode(buffer([[*LANE[:2], ("F", 0, 1300)], [*LANE]], slots=8))
    assert stats(trace)["cuda_lane_full"] == 1


def test_a_header_without_records_is_said():
    trace = decode((REPRO / "hdr.npy").read_bytes())
    assert stat(trace, "cuda_no_records")["count"] == 4
    assert codes(trace)["LS004"].severity == "warning"


@pytest.mark.parametrize("verb", ["info", "check", "convert", "summary"])
def test_an_array_of_zeros_is_one_clear_line_and_exit_3(verb, tmp_path, capsys):
    path = tmp_path / "run.npy"
    path.write_bytes((REPRO / "zero.npy").read_bytes())
    assert main([verb, str(path), *(["-o", str(tmp_path / "x.json")] if verb == "convert" else [])]) == 3
    problem, hint = capsys.readouterr().err.splitlines()
    assert "buffer contains only zeros" in problem
    assert "profiling was compiled in" in hint
    assert not (tmp_path / "x.json").exists()


@pytest.mark.parametrize(("verb", "status"), [("info", 0), ("check", 1), ("convert", 0), ("summary", 0)])
def test_a_header_without_records_is_said_in_one_line(verb, status, tmp_path, capsys):
    path = tmp_path / "run.npy"
    path.write_bytes((REPRO / "hdr.npy").read_bytes())
    assert main([verb, str(path), *(["-o", str(tmp_path / "x.json")] if verb == "convert" else [])]) == status
    said = [line for line in capsys.readouterr().err.splitlines() if "without any record" in line]
    assert len(said) == 1
    assert "check that probes are compiled in" in said[0]
