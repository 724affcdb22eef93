"""Full lanes: what no probe counted is bounded by what the buffer shows, and never passes for complete."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.cuda.declared.test_declared_files import LAYOUT, layout, words
from devices.cuda.helpers import buffer, decode, decode_simulation, gaps, lanes, ls2, simulate, stat, stats
from effort import some
from lanescope import cuda
from lanescope.analysis import check
from lanescope.devices.cuda.formats.layout import RUNNING
from lanescope.devices.cuda.schema import STATS
from lanescope.errors import InputError


def stat_of(name):
    return next(spec for spec in STATS if spec.name == name)


def pairs(count, start=1000):
    """Return the records of ``count`` regions in a row."""
    return [(kind, 0, start + 20 * n + 10 * (kind == "E")) for n in range(count) for kind in "BE"]


# --- siblings -----------------------------------------------------------------------------------------------------


def test_a_full_lane_lacks_what_all_complete_lanes_of_its_group_have():
    # 3 + 1 lanes; the last row of slots ends before the last lane's slot, so it has room for one record less.
    whole = [*pairs(2), ("I", 1, 2000)]
    short = pairs(2)
    trace = decode(buffer([whole] * 3 + [short], blocks=4, slots=1 + 4 * 5 - 1))
    full = [row["is_full"] for row in trace.details["cuda_lanes"].rows()]
    assert full == [True, True, True, True]
    roomy = buffer([whole] * 3 + [short], blocks=4, slots=1 + 4 * 6)
    assert stats(decode(roomy, layout="tirx-v1")) == {}
    # With the same rows, and a slot of the complete lanes left free, they are no longer full themselves.
    cut = buffer([pairs(2)] * 3 + [pairs(2)[:3]], blocks=4, slots=1 + 4 * 5)[: 1 + 4 * 4 - 1]
    trace = decode(cut)
    assert lanes(trace)[3, 0]["is_full"]
    assert lanes(trace)[3, 0]["dropped_at_least"] == 1


def declared(tmp_path, rows, capacity='"8 - 4 * (block == 3)"', blocks=4, more=""):
    found = np.zeros(8 * blocks, np.uint64)
    for lane, k, kind, event, stamp in rows:
        found[8 * lane + k] = kind | event << 1 | stamp << 32
    text = LAYOUT.replace('capacity = "8"', f"capacity = {capacity}\n{more}")
    return cuda.decode(found, layout=layout(tmp_path, text), layout_params={"blocks": blocks})


def region_rows(lane, count):
    return [(lane, k, k % 2, 1 + k // 2, 100 + 10 * k) for k in range(count)]


@pytest.mark.parametrize(
    ("lengths", "least"),
    [
        ((6, 6, 6, 4), 2),  # all complete lanes agree
        ((6, 4, 6, 4), 0),  # they do not
        ((4, 4, 4, 4), 0),  # they are no longer
        ((6, 0, 6, 4), 0),  # too few of them
        ((6, 5, 6, 4), 0),  # one of them has an unfinished region
    ],
)
def test_lengths_of_siblings_bound_a_loss_only_where_they_agree(tmp_path, lengths, least):
    trace = declared(tmp_path, [row for lane, count in enumerate(lengths) for row in region_rows(lane, count)])
    rows = {row["block"]: row for row in trace.details["cuda_lanes"].rows()}
    assert (rows[3]["is_full"], rows[3]["dropped_at_least"], rows[3]["dropped"]) == (True, least, None)
    assert stats(trace).get("cuda_dropped_at_least", 0) == least
    assert stats(trace).get("cuda_lane_full", 0) == bool(least)
    assert stats(trace).get("cuda_lane_may_be_lost", 0) == (not least)
    assert gaps(trace) == ([(3, 0, "overrun", least)] if least else [])


# --- no layout without a count is silently complete ---------------------------------------------------------------


@pytest.mark.parametrize("overflow", ["unchecked", "ring-by-time"])
def test_a_full_lane_of_a_declared_layout_without_a_count_is_named(tmp_path, overflow):
    more = f'overflow = "{overflow}"'
    trace = declared(tmp_path, region_rows(0, 8) + region_rows(1, 6), '"8"', more=more)
    assert stats(trace)["cuda_lane_may_be_lost"] == 1
    assert "LS005" in {finding.code for finding in check.run(trace)}
    assert "at least 0" in stat_of("cuda_lane_may_be_lost").doc


@pytest.mark.parametrize("overflow", ["drop", "ring", "saturated"])
def test_a_layout_file_has_to_declare_how_a_loss_is_counted(tmp_path, overflow):
    with pytest.raises(InputError, match="offered"):
        declared(tmp_path, region_rows(0, 8), '"8"', more=f'overflow = "{overflow}"')


def test_full_pieces_of_a_buffer_whose_records_name_their_lanes_are_named(tmp_path):
    text = LAYOUT.replace(
        "fields = {type = [0, 1], event = [1, 15]", "fields = {type = [0, 1], event = [1, 7], who = [8, 8]"
    ).replace('id = "event"', 'id = "event"\nblock = "who"')
    rows = words(*((0, k, k % 2, 1 | (k // 2 % 2) << 7, 100 + 10 * k) for k in range(8)))
    trace = cuda.decode(rows, layout=layout(tmp_path, text))
    assert len(trace.details["cuda_lanes"]) == 2
    assert stats(trace)["cuda_lane_may_be_lost"] == 1


def test_a_ring_without_a_count_lacks_the_starts_of_its_unmatched_ends(tmp_path):
    rows = [(0, 0, 1, 9, 90), (0, 1, 1, 8, 95), *((0, k, k % 2, 1 + k // 2, 100 + 10 * k) for k in range(2, 8))]
    trace = declared(tmp_path, rows, '"8"', more='overflow = "ring-by-time"')
    assert stats(trace)["cuda_dropped_at_least"] == 2
    assert gaps(trace) == [(0, 0, "overrun", 2)]
    assert trace.gaps["ts"][0] == 0


def test_a_lane_that_was_killed_while_it_was_full_may_have_dropped_records():
    records = [("B", 0, 100), *(("I", 1, 110 + at) for at in range(3))]
    trace = decode(ls2([records], capacity=4, states=[RUNNING]))
    # Its count may lag behind; the region was open when the kernel was killed, which shows no dropped record.
    assert stats(trace)["cuda_lane_may_be_lost"] == 1
    assert not {"cuda_lane_full", "cuda_dropped_at_least"} & set(stats(trace))
    assert stats(decode(ls2([records], capacity=8, states=[RUNNING]))).get("cuda_lane_may_be_lost") is None
    assert stats(decode(ls2([records], capacity=4))).get("cuda_lane_may_be_lost") is None


def test_a_counter_without_room_leaves_the_last_position_of_a_killed_lane_empty():
    # Three records, then a counter that takes two positions: it is dropped, and so is all that follows.
    records = [("I", 1, 100), ("c", 2, 110, 0, 7), ("c", 2, 120, 0, 8), ("I", 1, 130)]
    trace = decode(ls2([records], capacity=4, states=[RUNNING]))
    assert stats(trace)["cuda_lane_may_be_lost"] == 1
    (row,) = lanes(trace).values()
    assert (row["dropped"], row["dropped_at_least"]) == (None, 0)
    counted = decode(ls2([records], capacity=4))
    assert lanes(counted)[0, 0]["dropped"] == 2


# --- the bound holds ----------------------------------------------------------------------------------------------


@settings(max_examples=some(150))
@given(
    st.lists(st.lists(st.sampled_from("BEI"), max_size=14), min_size=2, max_size=8),
    st.integers(1, 10),
    st.booleans(),
    st.integers(0, 3),
)
def test_the_bound_is_never_more_than_what_was_lost(shapes, room, finalizes, uneven):
    made = []
    for shape in shapes:
        # Whole lanes: all regions end.
        time, depth, records = 1000, 0, []
        for kind in shape:
            time += 10
            if kind == "E" and not depth:
                continue
            depth += (kind == "B") - (kind == "E")
            records.append((kind, 0, time))
        records += [("E", 0, time + 10 + at) for at in range(depth)]
        made.append([*records, ("F", 0, 5000)] if finalizes else records)
    count = len(made)
    whole = buffer(made, blocks=count, slots=1 + count * 40)
    cut = whole[: 1 + count * (1 + room) - min(uneven, count - 1)]
    trace = decode(cut)
    found = lanes(trace)
    for number, records in enumerate(made):
        if (number, 0) not in found:
            continue
        row = found[number, 0]
        lost = len(records) - row["records"]
        assert row["dropped"] is None
        siblings = {len(other) for at, other in enumerate(made) if at != number}
        if len(siblings) > 1 or lost:
            # Equal siblings may be longer than a lane that had nothing more to say and ended at its last slot.
            assert row["dropped_at_least"] <= max(lost, 0)
        # What lost anything is full, and named.
        assert not lost or row["is_full"]
    full = sum(row["is_full"] for row in found.values())
    named = stats(trace).get("cuda_lane_full", 0) + stats(trace).get("cuda_lane_may_be_lost", 0)
    assert named == full


@pytest.mark.parametrize("layout_name", ["tirx", "flashinfer1", "flashinfer2", "warpscope"])
def test_simulated_overflows_are_bounded(layout_name):
    simulation = simulate(3, layout=layout_name, blocks=6, tiles=6, overflow=True)
    lost = {(block, group): count for block, group, count in simulation.truth["lost_by_lane"]}
    found = lanes(decode_simulation(simulation))
    assert lost
    for key, row in found.items():
        assert row["dropped_at_least"] <= lost.get(key, 0)
        assert row["is_full"] >= (key in lost)


def test_the_advice_says_at_least():
    from lanescope.devices.cuda.probes.sizing import advice

    lane = [("B", 2, 0), ("B", 0, 10), ("E", 0, 20), ("B", 1, 30), ("E", 1, 40)]
    (line,) = advice(decode(buffer([lane], slots=5)))
    assert "at least 2 records dropped" in line
    (line,) = advice(decode(buffer([pairs(2)], slots=5)))
    assert "at least 0 records dropped" in line


def test_the_stat_of_a_full_lane_is_placed():
    assert stat(decode(buffer([pairs(2)], slots=5)), "cuda_lane_may_be_lost")["first_ts"] == 30
