"""What may be wrong with a buffer, one case each: a stat, a flag or a gap, never silence."""

from __future__ import annotations

import io
import re
import struct
import tempfile
from pathlib import Path

import numpy as np
import pytest

import lanescope
from devices.cuda.helpers import accounts, buffer, decode, gaps, instants, lanes, ls2, simulate, spans, stat, stats
from lanescope import cuda
from lanescope.devices.cuda.formats.encode import proton as encode_proton
from lanescope.devices.cuda.formats.encode import strided
from lanescope.devices.cuda.formats.layout import STAMP_WRAP
from lanescope.devices.cuda.schema import STATS
from lanescope.errors import InputError, UsageError
from lanescope.source import npy
from lanescope.trace import Flag

LANE = [("B", 0, 1000), ("E", 0, 1200), ("B", 1, 1300), ("E", 1, 1500), ("F", 0, 1600)]
NAMES = "load,compute,store"


def plain(trace):
    """Return (event, begin, end, flags) of the slices."""
    return [(row[2], row[4], row[5], row[7]) for row in spans(trace)]


def many(count=40, tick=32, start=1000):
    """Return a lane with enough different stamps for a resolution."""
    records = [(kind, 0, start + tick * (2 * i + j * (i % 3 + 1))) for i in range(count) for j, kind in enumerate("BE")]
    return [*sorted(records, key=lambda record: record[2]), ("F", 0, start + tick * 1000)]


# --- the header -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (0, "header not written"),
        (1, "invalid header: "),
        (1 << 32, "invalid header: "),
        ((1 << 20) + (2 << 32), "invalid header: "),
        (12 + (1 << 32), "11 slots for 12 lanes"),
    ],
)
def test_bad_header_is_an_input_error_with_a_hint(header, message):
    words = np.zeros(12, np.uint64)
    words[0] = header
    with pytest.raises(InputError, match=message) as error:
        decode(words)
    assert error.value.hint


def test_empty_array():
    with pytest.raises(InputError, match="shorter than its header"):
        decode(np.zeros(0, np.uint64))
    with pytest.raises(InputError, match="shorter than its header"):
        decode(b"1234567")


def test_header_without_records():
    trace = decode(buffer([[]], slots=10))
    assert len(trace.slices) == len(trace.tracks) - 1 == 0
    assert stats(trace) == {"cuda_no_records": 1, "cuda_empty_lane": 1}
    assert accounts(trace)["slot"]["padding"] == 9


@pytest.mark.parametrize(
    ("empty", "blocks", "drawn"),
    [
        ([3], 12, [3]),
        ([0], 12, [0]),
        ([11], 12, [11]),
        ([1], 2, [1]),
        ([2, 5], 20, [2, 5]),
        ([1, 3], 4, []),
        ([], 3, []),
    ],
)
def test_few_empty_lanes_have_a_track(empty, blocks, drawn):
    """Where many lanes are empty, their number is all there is."""
    trace = decode(buffer([[] if block in empty else LANE for block in range(blocks)], blocks=blocks, slots=blocks * 6))
    lanes_of = {row["id"]: row["parent_id"] for row in trace.tracks.rows() if row["kind"] == "lane"}
    names = {track: trace.tracks["name"][parent] for track, parent in lanes_of.items()}
    recorded = {row["track_id"] for row in trace.coverage.rows()}
    assert [names[track] for track in sorted(set(lanes_of) - recorded)] == [f"block {block}" for block in drawn]
    found = [(row["track_id"], row["count"]) for row in trace.stats.rows() if row["name"] == "cuda_empty_lane"]
    expected = [(track, 1) for track in sorted(lanes_of) if names[track] in {f"block {block}" for block in drawn}]
    assert found == (expected or [(None, len(empty))] * bool(empty))


@pytest.mark.parametrize(
    ("empty", "groups", "drawn"),
    [
        ([0, 1, 2], 3, 3),  # a whole block of four
        ([10, 11], 3, 2),
        ([2, 3], 3, 0),  # two blocks of four
        ([1], 12, 1),  # a grid of one block
        ([1, 2], 12, 0),
        ([*range(101)], 101, 0),
    ],
)
def test_empty_lanes_of_few_blocks_have_a_track(empty, groups, drawn):
    count = 2 * groups if groups == 101 else 12
    trace = decode(
        buffer([[] if lane in empty else LANE for lane in range(count)], blocks=count // groups, groups=groups)
    )
    assert len(lanes(trace)) == count - len(empty)
    assert np.count_nonzero(trace.tracks["kind"] == "lane") == count - len(empty) + drawn
    assert stats(trace)["cuda_empty_lane"] == len(empty)


def test_stray_ends_are_found_in_their_lanes():
    stray = [("B", 0, 1000), ("E", 0, 1100), ("E", 1, 1300), ("E", 1, 1400), ("F", 0, 1600)]
    for blocks, is_located in ((100, True), (101, False)):
        trace = decode(buffer([LANE, *[stray] * blocks], blocks=blocks + 1))
        found = [row for row in trace.stats.rows() if row["name"] == "cuda_end_unmatched"]
        assert sum(row["count"] for row in found) == 2 * blocks
        assert [(row["count"], row["first_ts"]) for row in found] == (
            [(2, 300)] * blocks if is_located else [(2 * blocks, 300)]
        )
        tracks = [row["track_id"] for row in found]
        assert tracks == (
            sorted(row["id"] for row in trace.tracks.rows() if row["kind"] == "lane")[1:] if is_located else [None]
        )
        # Slot 0 is the header; the third record of block 1 follows two rows of all lanes.
        assert found[0]["first_offset"] == 128 + 8 * (1 + 2 * (blocks + 1) + 1)


# --- containers -----------------------------------------------------------------------------------------------


def test_raw_words_are_read_like_npy():
    words = buffer([LANE, LANE])
    raw, packed = decode(words.tobytes(), name="run.bin"), decode(words)
    assert spans(raw) == spans(packed)
    assert accounts(raw)["byte"]["padding"] == 0
    assert accounts(packed)["byte"]["padding"] == 128


@pytest.mark.parametrize("dtype", [">u8", "<f8", "<u2", "|b1"])
def test_other_types_are_refused_clearly(dtype):
    data = npy.make(4).replace(b"<u8", dtype.encode()) + bytes(64)
    with pytest.raises(InputError, match=re.escape(f"unsupported .npy type '{dtype}'")):
        decode(data)


@pytest.mark.parametrize("dtype", ["<i8", "<u4", "|u1"])
def test_arrays_that_were_looked_at_as_other_integers(dtype):
    words = buffer([LANE])
    file = io.BytesIO()
    np.save(file, words.view(dtype))
    assert plain(decode(file.getvalue())) == plain(decode(words))


def test_npy_that_is_cut_off():
    words = buffer([LANE])
    trace = decode(strided.to_npy(words)[:-20])
    assert stats(trace)["truncated"] == 3
    assert stats(trace)["cuda_trailing_bytes"] == 4
    assert accounts(trace)["byte"]["lost"] == 4
    assert len(plain(trace)) == 1


def test_npy_with_something_behind():
    trace = decode(strided.to_npy(buffer([LANE])) + b"12345")
    assert stat(trace, "cuda_trailing_bytes")["count"] == 5
    assert stat(trace, "cuda_trailing_bytes")["first_offset"] == 128 + 6 * 8


def test_two_dimensions_in_c_order_are_one_buffer():
    words = buffer([LANE, LANE], slots=12)
    data = strided.to_npy(words).replace(b"(12,), }  ", b"(3, 4), } ")
    assert npy.parse(data).shape == (3, 4)
    assert plain(decode(data)) == plain(decode(words))


def test_header_that_is_not_aligned_to_words():
    words = buffer([LANE])
    text = b"{'descr': '<u8', 'fortran_order': False, 'shape': (6,), }\n"
    data = npy.MAGIC + b"\x01\x00" + len(text).to_bytes(2, "little") + text + words.tobytes()
    assert (10 + len(text)) % 8
    assert plain(decode(data)) == plain(decode(words))


# --- pairing --------------------------------------------------------------------------------------------------


def test_nesting():
    lane = [("B", 2, 10), ("B", 0, 10), ("E", 0, 20), ("B", 1, 20), ("E", 1, 30), ("E", 2, 30), ("F", 0, 40)]
    trace = decode(buffer([lane]), layout="tirx-v1", events=NAMES)
    assert plain(trace) == [(2, 0, 20, 0), (0, 0, 10, 0), (1, 10, 20, 0)]
    assert stats(trace) == {}


def test_reentrant_region_pairs_with_the_innermost():
    trace = decode(buffer([[("B", 0, 100), ("B", 0, 150), ("E", 0, 160), ("E", 0, 200), ("F", 0, 210)]]))
    assert plain(trace) == [(0, 0, 100, 0), (0, 50, 60, 0)]


def test_crossing_regions_are_both_flagged():
    lane = [("B", 2, 0), ("E", 2, 5), ("B", 0, 10), ("B", 1, 20), ("E", 0, 30), ("E", 1, 40), ("F", 0, 50)]
    trace = decode(buffer([lane]))
    assert plain(trace) == [(2, 0, 5, 0), (0, 10, 30, Flag.PARTIAL_OVERLAP), (1, 20, 40, Flag.PARTIAL_OVERLAP)]
    assert stat(trace, "cuda_partial_overlap")["count"] == 2
    assert stat(trace, "cuda_partial_overlap")["first_ts"] == 10


def test_region_that_crosses_several():
    lane = [("B", 3, 0), ("B", 1, 1), ("B", 2, 2), ("E", 3, 3), ("E", 2, 4), ("E", 1, 5), ("F", 0, 6)]
    assert [row[3] for row in plain(decode(buffer([lane])))] == [Flag.PARTIAL_OVERLAP] * 3


def test_end_without_begin_is_an_instant():
    trace = decode(buffer([[("E", 1, 90), *LANE]]), events=NAMES)
    assert instants(trace) == [(0, 0, 1, "end compute?", 0)]
    assert trace.instants["category"].tolist() == ["unmatched_end"]
    assert stat(trace, "cuda_end_unmatched")["first_offset"] == 136
    assert len(plain(trace)) == 2


def test_event_that_is_both_mark_and_stray_end():
    trace = decode(buffer([[("I", 1, 90), ("E", 1, 91), ("F", 0, 95)]]), events=NAMES)
    assert [row[3] for row in instants(trace)] == ["compute", "end compute?"]


def test_end_in_another_group_does_not_close():
    trace = decode(buffer([[("B", 0, 10), ("F", 0, 30)], [("E", 0, 20), ("F", 0, 30)]], blocks=1), layout="tirx-v1")
    assert [row[2] for row in plain(trace)] == [None]
    assert [row[:2] for row in instants(trace)] == [(0, 1)]


def test_open_region_is_seen_until_the_last_stamp_of_its_lane():
    trace = decode(buffer([[("B", 0, 100), ("B", 1, 150), ("E", 1, 180)], LANE], slots=30))
    assert plain(trace)[:2] == [(0, 0, None, Flag.UNFINISHED), (1, 50, 80, 0)]
    row = next(iter(trace.slices.rows()))
    assert (row["dur"], row["dur_ticks"], row["last_known_ts"]) == (None, None, 80)
    region = next(iter(trace.details["cuda_regions"].rows()))
    assert (region["begin_slot"], region["end_slot"]) == (1, None)
    assert stats(trace) == {"cuda_unfinished_region": 1, "cuda_unfinalized_lane": 1}


def test_region_that_finalize_leaves_open():
    trace = decode(buffer([[("B", 0, 100), ("F", 0, 160)]]), layout="tirx-v1")
    assert [row["last_known_ts"] for row in trace.slices.rows()] == [60]
    assert stats(trace) == {"cuda_unfinished_region": 1}


# --- slots ----------------------------------------------------------------------------------------------------


def test_hole_in_a_lane():
    words = buffer([LANE, [("B", 0, 1000), ("E", 0, 1200), *[("I", 2, 1300)] * 2, ("B", 1, 1400), ("E", 1, 1500)]])
    words[1 + 2 * 2 + 1] = words[1 + 3 * 2 + 1] = 0
    trace = decode(words)
    (gap,) = [row for row in trace.gaps.rows() if row["cause"] == "hole"]
    assert (gap["ts"], gap["dur"], gap["lost_count"]) == (200, 200, 2)
    assert gap["first_offset"] == 128 + 8 * 6
    assert stats(trace)["cuda_hole"] == 2
    assert accounts(trace)["slot"]["lost"] == 2
    assert lanes(trace)[0, 1]["missing_slots"] == 2
    assert plain(trace)[-1] == (1, 400, 500, Flag.AFTER_GAP)


def test_pair_over_a_hole_is_inferred():
    words = buffer([[("B", 0, 10), ("E", 0, 20), ("B", 0, 30), ("E", 0, 40), ("F", 0, 50)], LANE])
    words[3] = words[5] = 0
    trace = decode(words)
    assert plain(trace)[0] == (0, 0, 30, Flag.INFERRED_IDENTITY)
    assert trace.slices["quality"][0] == "inferred"


def test_region_open_over_a_hole_is_cut():
    words = buffer([[("B", 0, 10), ("E", 0, 20), ("B", 1, 30), ("E", 1, 40), ("F", 0, 50)], LANE])
    words[3] = 0
    assert plain(decode(words))[0] == (0, 0, None, Flag.UNFINISHED | Flag.TRUNCATED)


def test_lane_that_lost_its_beginning():
    words = buffer([LANE, LANE])
    words[1] = 0
    trace = decode(words)
    assert [(row["ts"], row["dur"], row["lost_count"]) for row in trace.gaps.rows()] == [(200, 0, 1)]
    assert instants(trace)[0][3] == "end event_0?"


def test_word_of_another_lane():
    words = buffer([LANE, LANE], slots=20)
    words[4] ^= np.uint64(1 << 12)
    trace = decode(words)
    assert stat(trace, "cuda_corrupt_record")["count"] == 1
    assert stat(trace, "cuda_corrupt_record")["first_offset"] == 128 + 8 * 4
    assert gaps(trace) == [(0, 1, "bad_bytes", 1)]
    assert accounts(trace)["slot"]["lost"] == 1
    assert lanes(trace)[0, 1]["unreadable"] == 1
    rows = [row for row in trace.records["cuda_records"].rows() if not row["is_read"]]
    assert [(row["slot"], row["word"]) for row in rows] == [(4, int(words[4]))]


def test_unreadable_tail_of_a_lane():
    words = buffer([LANE, LANE, LANE], slots=1 + 3 * 9)
    words[1 + 3 * 6 + 1] = words[1]
    trace = decode(words)
    (gap,) = trace.gaps.rows()
    assert (gap["ts"], gap["dur"], gap["lost_count"], gap["cause"]) == (600, None, 2, "bad_bytes")
    assert accounts(trace)["slot"]["lost"] == 2


def test_lane_of_nothing_but_unreadable_words():
    words = buffer([LANE, LANE, []], slots=1 + 3 * 9)
    words[3] = words[1]
    trace = decode(words)
    assert gaps(trace) == [(0, 2, "bad_bytes", 1)]
    assert trace.gaps["ts"].tolist() == [0]
    lane = lanes(trace)[0, 2]
    assert (lane["records"], lane["first_ts"], lane["last_ts"]) == (0, None, None)


def test_word_between_two_rows():
    words = buffer([LANE, LANE], stride=4)
    words[3] = words[1]
    trace = decode(words)
    assert stats(trace)["cuda_corrupt_record"] == 1
    assert accounts(trace)["slot"]["lost"] == 1
    assert len(trace.gaps) == 0


def test_zero_words_behind_the_last_record_are_filler():
    trace = decode(buffer([LANE, LANE], slots=1000))
    assert accounts(trace)["slot"]["padding"] == 1000 - 1 - 10
    assert stats(trace) == {}


def test_record_at_time_zero_is_a_record():
    trace = decode(buffer([[("B", 1, STAMP_WRAP), ("E", 1, STAMP_WRAP + 5), ("F", 0, STAMP_WRAP + 6)]]))
    assert plain(trace) == [(1, 0, 5, 0)]


def test_begin_of_event_zero_in_lane_zero_at_time_zero_cannot_be_told_from_an_empty_slot():
    lane = [("B", 1, 1), ("E", 1, 2), ("B", 0, STAMP_WRAP), ("E", 0, STAMP_WRAP + 9), ("F", 0, STAMP_WRAP + 10)]
    trace = decode(buffer([lane]))
    assert stats(trace)["cuda_hole"] == 1
    assert stats(trace)["cuda_end_unmatched"] == 1


# --- stride ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stride", [2, 3, 4, 5, 8, 64, 1000])
def test_stride_is_found(stride):
    words = buffer([LANE, LANE], stride=stride)
    trace = decode(words)
    (row,) = trace.details["cuda_buffers"].rows()
    assert (row["stride"], row["stride_source"]) == (stride, "tight" if stride == 2 else "inferred")
    assert plain(trace) == plain(decode(buffer([LANE, LANE])))
    assert ("cuda_stride_inferred" in stats(trace)) == (stride > 2)


def test_stride_is_found_in_spite_of_damage():
    words = buffer([LANE, LANE, LANE], stride=7, slots=80)
    words[1 + 7 + 2] ^= np.uint64(3 << 12)
    trace = decode(words)
    assert trace.details["cuda_buffers"]["stride"].tolist() == [7]
    assert stats(trace)["cuda_corrupt_record"] == 1


def test_given_stride_is_believed():
    trace = decode(buffer([LANE, LANE], stride=5), stride=5)
    assert trace.details["cuda_buffers"]["stride_source"].tolist() == ["given"]
    assert stats(trace) == {}
    wrong = decode(buffer([LANE, LANE], stride=5), stride=4)
    assert stats(wrong)["cuda_corrupt_record"] == 6


def test_given_stride_below_the_number_of_lanes():
    with pytest.raises(UsageError, match="invalid stride 1: too small for 2 lanes"):
        decode(buffer([LANE, LANE]), stride=1)


def test_one_record_a_lane_needs_no_stride():
    trace = decode(buffer([[("I", 1, 5)], [("I", 1, 6)]], slots=50))
    assert len(instants(trace)) == 2
    assert trace.details["cuda_buffers"]["stride"].tolist() == [2]


def test_words_that_fit_no_stride_are_grouped_by_tag():
    words = np.zeros(40, np.uint64)
    words[0] = strided.header_word(1, 2)
    rows = [(lane, 0, kind, 100 + 10 * i) for i, kind in enumerate((0, 1, 0, 1)) for lane in (0, 1)]
    packed = strided.pack(strided.Records(*np.array(rows, np.int64).T))
    words[[2, 5, 9, 14, 20, 27, 33, 38]] = packed
    trace = decode(words)
    assert stats(trace)["cuda_stride_unknown"] == 1
    assert [(row[1], row[4], row[5]) for row in spans(trace)] == [(0, 0, 10), (0, 20, 30), (1, 0, 10), (1, 20, 30)]
    assert trace.details["cuda_buffers"].rows().__next__()["stride"] is None
    assert trace.details["cuda_regions"]["begin_slot"].tolist() == [2, 20, 5, 27]


# --- names ----------------------------------------------------------------------------------------------------


def test_unknown_event_ids_are_named_by_number_and_counted():
    lane = [("B", 0, 1), ("E", 0, 2), ("B", 700, 3), ("E", 700, 4), ("I", 1023, 5), ("F", 0, 6)]
    trace = decode(buffer([lane]), events="load")
    assert [row[3] for row in spans(trace)] == ["load", "event_700"]
    assert [row[3] for row in instants(trace)] == ["event_1023"]
    assert stat(trace, "cuda_unknown_event")["count"] == 2
    assert stat(trace, "cuda_unknown_event")["first_ts"] == 2


def test_without_names_no_event_is_unknown():
    trace = decode(buffer([LANE]), layout="tirx-v1")
    assert [row[3] for row in spans(trace)] == ["event_0", "event_1"]
    assert stats(trace) == {}


# --- full lanes -----------------------------------------------------------------------------------------------


def test_full_lane_with_open_regions_lost_at_least_their_ends():
    lane = [("B", 2, 0), ("B", 0, 10), ("E", 0, 20), ("B", 1, 30), ("E", 1, 40), ("E", 2, 50), ("F", 0, 60)]
    trace = decode(buffer([lane, LANE], slots=1 + 2 * 4))
    assert stats(trace)["cuda_lane_full"] == 1
    assert stats(trace)["cuda_dropped_at_least"] == 2
    doc = next(spec.doc for spec in STATS if spec.name == "cuda_dropped_at_least")
    assert "at least" in doc
    # Nothing proves that the other one, whose regions are closed, lost anything.
    assert stats(trace)["cuda_lane_may_be_lost"] == 1
    assert gaps(trace) == [(0, 0, "overrun", 2)]
    assert [row["dropped_at_least"] for row in trace.details["cuda_lanes"].rows()] == [2, 0]
    assert [row["dropped"] for row in trace.details["cuda_lanes"].rows()] == [None, None]
    counted = decode(ls2([[("I", 1, 100 + at) for at in range(9)]], capacity=4))
    assert [(row["dropped"], row["dropped_at_least"]) for row in lanes(counted).values()] == [(5, 5)]
    assert plain(trace)[0][2:] == (None, Flag.UNFINISHED | Flag.TRUNCATED)


def test_full_lane_that_was_finalized_lost_nothing():
    assert stats(decode(buffer([LANE, LANE]))) == {}


# --- finalize -------------------------------------------------------------------------------------------------

RERUN = [*LANE, ("B", 0, 2000), ("E", 0, 2100), ("F", 0, 2200)]


def test_records_behind_a_finalize_begin_a_further_launch():
    trace = decode(buffer([RERUN]), layout="tirx-v1")
    assert stats(trace) == {"cuda_after_finalize": 3}
    assert trace.details["cuda_regions"]["launch"].tolist() == [0, 0, 1]
    assert lanes(trace)[0, 0]["launches"] == 2
    assert lanes(trace)[0, 0]["finalize_ts"] == 1200


def test_records_behind_a_finalize_can_be_ignored():
    trace = decode(buffer([RERUN]), layout="tirx-v1", after_finalize="ignore")
    assert len(trace.slices) == 2
    assert stats(trace) == {"cuda_after_finalize": 3, "cuda_ignored_after_finalize": 3}
    assert accounts(trace)["slot"]["lost"] == 3


def test_regions_do_not_pair_over_a_finalize():
    trace = decode(buffer([[("B", 0, 10), ("F", 0, 20), ("E", 0, 30), ("F", 0, 40)]]))
    assert [row[2] for row in plain(trace)] == [None]
    assert stats(trace)["cuda_end_unmatched"] == 1


def test_records_behind_a_finalize_that_step_back_a_little():
    # Not of an earlier launch: the step back does not lead before the begin of this one.
    late = [("B", 0, 500), ("E", 0, 1100), ("F", 0, 1150)]
    trace = decode(buffer([[*LANE, *late]]))
    assert stats(trace)["cuda_after_finalize"] == 3
    assert stats(trace)["cuda_clock_reversal"] == 1
    # It lies across the first slice of the present launch, by time only.
    assert [bool(row[3] & Flag.PARTIAL_OVERLAP) for row in plain(trace)] == [True, False, True]
    assert "cuda_multiple_writers" not in stats(trace)


# --- time -----------------------------------------------------------------------------------------------------


def test_region_over_the_wrap():
    near = STAMP_WRAP - 100
    trace = decode(buffer([[("B", 0, near), ("E", 0, near + 300), ("F", 0, near + 400)]]), layout="tirx-v1")
    assert plain(trace) == [(0, 0, 300, 0)]
    assert stats(trace) == {"cuda_wrap": 1, "cuda_wrap_assumed": 1}


def test_lanes_on_both_sides_of_the_wrap():
    near = STAMP_WRAP - 100
    early, late = ([(k, e, t + shift) for k, e, t in LANE] for shift in (near - 1000, near))
    trace = decode(buffer([late, early, late]))
    assert [row[1] for row in plain(trace)] == [1000, 1300, 0, 300, 1000, 1300]


def test_lanes_all_around_the_counter_are_ambiguous():
    turn = STAMP_WRAP // 3
    trace = decode(buffer([[(k, e, t + i * turn) for k, e, t in LANE] for i in range(3)]))
    assert stats(trace)["cuda_wrap_ambiguous"] == 1
    assert all(row[3] & Flag.WRAP_AMBIGUOUS for row in plain(trace))


def test_anchor_decides():
    turn = STAMP_WRAP // 3
    words = buffer([[(k, e, t + i * turn) for k, e, t in LANE] for i in range(3)])
    anchor = 7 * STAMP_WRAP + turn
    trace = decode(words, anchor=anchor)
    assert "cuda_wrap_ambiguous" not in stats(trace)
    assert trace.slices["ts_ticks"].min() == 7 * STAMP_WRAP + turn + 1000
    (anchored,) = trace.anchors.rows()
    assert (anchored["ticks"], anchored["ts"]) == (7 * STAMP_WRAP + turn + 1000, 0)
    assert trace.clocks["name"].tolist() == ["globaltimer_lo", "globaltimer"]
    assert trace.clocks["counter_bits"].tolist() == [32, 64]


def test_long_silence_is_forward_and_ambiguous():
    trace = decode(buffer([[("B", 0, 10), ("E", 0, 10 + 3 * 10**9), ("F", 0, 20 + 3 * 10**9)]]))
    assert plain(trace) == [(0, 0, 3 * 10**9, Flag.WRAP_AMBIGUOUS)]
    assert stats(trace)["cuda_wrap_ambiguous"] == 1


def test_small_step_back_over_the_wrap():
    trace = decode(buffer([[("B", 2, STAMP_WRAP), ("I", 1, STAMP_WRAP - 8), ("E", 2, STAMP_WRAP + 40)]]))
    row = next(iter(trace.slices.rows()))
    assert (row["ts"], row["dur"]) == (8, 40)
    assert stats(trace)["cuda_clock_reversal"] == 1
    assert trace.instants["ts"].tolist() == [0]


def test_step_back_keeps_the_stamps_and_flags_them():
    trace = decode(buffer([[("B", 0, 1000), ("E", 0, 1500), ("B", 1, 1400), ("E", 1, 1600), ("F", 0, 1700)]]))
    assert plain(trace) == [
        (0, 0, 500, Flag.PARTIAL_OVERLAP),
        (1, 400, 600, Flag.PARTIAL_OVERLAP | Flag.CLOCK_SUSPECT),
    ]
    assert stats(trace)["cuda_clock_reversal"] == 1


def test_end_stamped_before_its_begin():
    trace = decode(buffer([[("B", 0, 1000), ("E", 0, 900), ("F", 0, 1100)]]), layout="tirx-v1")
    (row,) = trace.slices.rows()
    assert Flag(row["flags"]) == Flag.NEGATIVE_DURATION | Flag.CLOCK_SUSPECT
    assert (row["ts"], row["dur"], row["dur_ticks"], row["last_known_ts"]) == (100, None, None, None)
    assert trace.details["cuda_regions"]["end_slot"].tolist() == [2]
    assert stats(trace) == {"cuda_negative_duration": 1, "cuda_clock_reversal": 1}


def test_two_writers_in_one_lane():
    lane = [("B", 0, 5000), ("B", 0, 4000), ("E", 0, 5100), ("E", 0, 4100), ("B", 1, 5200), ("E", 1, 4300)]
    trace = decode(buffer([lane, [(k, e, t + 3000) for k, e, t in LANE]]))
    assert stats(trace)["cuda_multiple_writers"] == 1
    assert lanes(trace)[0, 0]["clock_reversals"] == 3


@pytest.mark.parametrize(("tick", "step"), [(1, 1), (32, 32), (1000, 1000), (1024, 1024), (7, 7)])
def test_tick_step(tick, step):
    trace = decode(buffer([many(tick=tick)]))
    assert trace.clocks["resolution_ticks"].tolist() == [step]
    short = {row[7] for row in spans(trace) if row[6] < 2 * step}
    assert short == {Flag.BELOW_RESOLUTION}
    assert {row[7] for row in spans(trace) if row[6] >= 2 * step} <= {Flag(0), Flag.PARTIAL_OVERLAP}


@pytest.mark.parametrize("step", [40, 1000])
@pytest.mark.parametrize("start", [7_000_000, (1 << 32) - 20_000])
def test_a_lane_before_the_others_leaves_the_step_of_the_clock(step, start):
    """Of a distance that is taken for a wrap, a step of 1000 would keep its powers of two only."""
    lanes = [
        [("BE"[at % 2], 1, (first + at * step) % (1 << 32)) for at in range(40)] for first in (start, start - 80_000)
    ]
    assert decode(buffer(lanes, blocks=2)).clocks["resolution_ticks"].tolist() == [step]


def test_few_stamps_tell_no_resolution():
    trace = decode(buffer([LANE]))
    assert not trace.clocks.valid("resolution_ticks")[0]


def test_launch_time_that_contradicts_the_stamps():
    words = buffer([LANE])
    assert stats(decode(words, layout="tirx-v1", launch_ns=10_000)) == {}
    assert stats(decode(words, layout="tirx-v1", launch_ns=3 * 10**9)) == {"cuda_launch_duration_mismatch": 1}
    assert stats(decode(words, layout="tirx-v1", launch_ns=5 * 10**9)) == {
        "cuda_launch_duration_mismatch": 1,
        "cuda_launch_exceeds_wrap": 1,
    }


# --- every stat can be reached --------------------------------------------------------------------------------


def _damaged(*slots):
    words = buffer([LANE, LANE, LANE], slots=40)
    for slot in slots:
        words[slot] ^= np.uint64(5 << 12)
    return words


def _listed():
    words = np.zeros(40, np.uint64)
    words[0] = strided.header_word(1, 1)
    words[[3, 8, 30]] = strided.pack(strided.Records(*np.array([(9, 0, 0, 5)] * 3, np.int64).T))
    return words


def _hole():
    words = buffer([LANE, LANE])
    words[3] = 0
    return words


def _with_word(words, at, value):
    words[at] = value
    return words


def _strange():
    words = ls2([LANE[:4]])
    words[16] = 7
    return words


def _refusing():
    words = ls2([LANE[:4]])
    words[12:14] = 3, 4
    return words


def _stale():
    words = ls2([LANE[:4]])
    words[-1] = 5
    return words


def _uncounted():
    words = ls2([LANE[:4]])
    words[-1] = 5 | 1300 << 32
    return words


def _tail():
    words = ls2([LANE[:4]])
    words[16 + 8 + 3] = 0
    return words


def _two_sms():
    words = strided.to_flashinfer2(
        buffer([LANE[:4]] * 4, groups=2, blocks=2), num_blocks=2, num_groups=2, sm=np.arange(2)
    )
    words[5] ^= np.uint64(1 << 24)
    return words


def _proton(**options):
    return simulate(layout="proton", blocks=2, groups=2, tiles=2, **options).files["attention.bin"]


def _no_block():
    return _proton().replace(b"\xef\xbe\xad\xde", b"\x00\x00\x00\x00", 1)


def _async_39(*types):
    """Return a file of a warp with two starts of one event, whose types are these."""
    lane, time = np.zeros(2, np.int64), np.array([100, 200])
    entries = encode_proton.Entries(lane, lane, np.array(types), lane != 0, time)
    return encode_proton.encode(entries, encode_proton.ProtonSetup(np.zeros(1, np.int64), 1, (0,), 4))[0]


def _contradicting():
    lanes = [[("B", 0, 1000), ("E", 0, 2000)]] * 4
    words = ls2(lanes, begin=[1000] * 4, end=[2000] * 4, clock=1)
    words[16 + 6 :: 72] = 0  # all on one SM
    words[16 + 3 * 72 + 3] += np.uint64(100_000)
    words[16 + 3 * 72 + 5] += np.uint64(100_000)
    return words


def _timeless():
    areas = np.zeros(64, "<u4")
    areas[:4] = 0xDEADBEEF, 0, 0, 64
    areas[4:6] = 4
    areas[6:10] = 1 << 23, 1000, 1 << 31 | 1 << 23, 1100
    header = np.array([1, 4, 44, 44, 256, 1, 1, 2, 256, 1, 0], "<u4")
    return header.tobytes() + areas.tobytes()


def _tileops(count):
    """A buffer of a declared layout: one lane of 12 records that counts so many."""
    words = np.zeros(28, "<i8")
    words[0] = count
    return cuda.decode(words, layout="tileops", layout_params={"max_events": 12})


def _large_npkit():
    """All records of a lane in a file that is too large to be read whole without need."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr("lanescope.devices.cuda.decoder.WHOLE_BYTES", 0)
        path = Path(folder, "run.bin")
        path.write_bytes(struct.pack("<QQQQQQ", 1, 5, 2, 7, 16, 9))
        return lanescope.open(path, "cuda", layout="npkit", layout_params={"gpu_mhz": 1000})


def _nuggets():
    """A region of a layout that stores 24 bits of its length."""
    words = np.array([1 << 40, 5 | 7 << 32 | 1 << 56], np.uint64)
    return decode(words, layout="nuggets-compact", layout_params={"max_events": 1})


REACHED = {
    "cuda_length_assumed": _nuggets,
    "cuda_layout_assumed": lambda: decode(buffer([LANE[:-1]])),
    "cuda_read_whole": _large_npkit,
    "cuda_stride_inferred": lambda: decode(buffer([LANE, LANE], stride=9)),
    "cuda_stride_unknown": lambda: decode(_listed()),
    "cuda_hole": lambda: decode(_hole()),
    "cuda_corrupt_record": lambda: decode(_damaged(5)),
    "cuda_lane_full": lambda: decode(buffer([LANE], slots=4)),
    "cuda_dropped_at_least": lambda: decode(buffer([LANE], slots=4)),
    "cuda_lane_may_be_lost": lambda: decode(buffer([LANE], slots=5)),
    "cuda_unfinished_region": lambda: decode(buffer([LANE[:3]], slots=20)),
    "cuda_end_unmatched": lambda: decode(buffer([LANE[1:]])),
    "cuda_partial_overlap": lambda: decode(buffer([[("B", 2, 0), ("B", 1, 1), ("E", 2, 2), ("E", 1, 3), ("F", 0, 4)]])),
    "cuda_unfinalized_lane": lambda: decode(buffer([LANE, LANE[:4]], slots=30)),
    "cuda_no_records": lambda: decode(buffer([[]], slots=9)),
    "cuda_empty_lane": lambda: decode(buffer([LANE, []], slots=30)),
    "cuda_after_finalize": lambda: decode(buffer([RERUN])),
    "cuda_stale": lambda: decode(buffer([[*LANE, *((kind, event, time - 800) for kind, event, time in LANE)]])),
    "cuda_ignored_after_finalize": lambda: decode(buffer([RERUN]), after_finalize="ignore"),
    "cuda_clock_reversal": lambda: decode(buffer([[("I", 0, 9), ("I", 0, 8)]])),
    "cuda_multiple_writers": lambda: decode(buffer([[("I", 0, 9), ("I", 0, 8), ("I", 0, 9), ("I", 0, 8)]])),
    "cuda_negative_duration": lambda: decode(buffer([[("B", 0, 9), ("E", 0, 8)]])),
    "cuda_wrap": lambda: decode(buffer([[("B", 0, STAMP_WRAP - 1), ("E", 0, STAMP_WRAP + 1)]])),
    "cuda_wrap_ambiguous": lambda: decode(buffer([[("I", 0, 0), ("I", 1, 3 * 10**9)]])),
    "cuda_launch_exceeds_wrap": lambda: decode(buffer([LANE]), launch_ns=STAMP_WRAP),
    "cuda_launch_duration_mismatch": lambda: decode(buffer([LANE]), launch_ns=STAMP_WRAP),
    "cuda_below_resolution": lambda: decode(buffer([many()])),
    "cuda_unknown_event": lambda: decode(buffer([LANE]), events="load"),
    "cuda_unreadable_names": lambda: decode(buffer([LANE]), beside={"run.events.json": b"{"}),
    "cuda_trailing_bytes": lambda: decode(strided.to_npy(buffer([LANE])) + b"1"),
    "cuda_dropped": lambda: decode(ls2([LANE[:4]], capacity=2)),
    "cuda_unallocated_lane": lambda: decode(_refusing()),
    "cuda_missing_tail": lambda: decode(_tail()),
    "cuda_stale_words": lambda: decode(_stale()),
    "cuda_uncounted": lambda: decode(_uncounted()),
    "cuda_torn_counter": lambda: decode(ls2([[("c", 1, 20, 0, 7), ("I", 0, 30)]], capacity=2, ring=True)),
    "cuda_bad_lane_header": lambda: decode(_strange()),
    "cuda_contradictory_header": lambda: decode(_with_word(ls2([LANE[:4]]), 13, 9)),
    "cuda_contradictory_lane": lambda: decode(_with_word(ls2([LANE[:4]]), 16 + 4, 1)),
    "cuda_lane_elsewhere": lambda: decode(_with_word(ls2([LANE[:4]] * 3), 16 + 7, 9)),
    "cuda_other_warp": lambda: decode(_with_word(ls2([LANE[:4]] * 5), 16 + 6, 3 << 16)),
    "cuda_contradictory_counter": lambda: decode(ls2([[("c", 1, 20, 2, 7)]])),
    "cuda_contradictory_block": lambda: decode(
        _proton().replace(b"\xef\xbe\xad\xde\0\0\0\0", b"\xef\xbe\xad\xde\1\0\0\0", 1), name="run.bin", layout="proton"
    ),
    "cuda_bad_block": lambda: decode(_no_block(), name="run.bin", layout="proton"),
    "cuda_start_repeated": lambda: decode(_async_39(4, 4), name="run.bin"),
    "cuda_reserved_bits": lambda: decode(_async_39(4, 5), name="run.bin"),
    "cuda_ambiguous_async_end": lambda: decode(ls2([[("b", 0, 5, 1), ("b", 0, 6, 1), ("e", 0, 7, 1), ("e", 0, 8, 1)]])),
    "cuda_flow_unmatched": lambda: decode(ls2([[("f", 0, 5, 1)]])),
    "cuda_flow_unused": lambda: decode(ls2([[("o", 0, 5, 1)]])),
    "cuda_instants_unreliable": lambda: decode(buffer([[("I", 0, 9)]]), layout="flashinfer-v2"),
    "cuda_multiple_sms": lambda: decode(_two_sms(), layout="flashinfer-v2"),
    "cuda_sm_unknown": lambda: decode(
        simulate(layout="flashinfer2", blocks=4097, groups=1, tiles=1).files["attention.npy"]
    ),
    "cuda_wrap_assumed": lambda: decode(buffer([[("B", 0, STAMP_WRAP - 1), ("E", 0, STAMP_WRAP + 1)]])),
    "cuda_clock_mismatch": lambda: decode(_contradicting()),
    "cuda_rate_estimated": lambda: decode(_proton(), name="run.bin"),
    "cuda_iket_contradicts": lambda: decode(b'{"launches": [{"gridId": -1}], "stringTable": []}', name="a.trace.json"),
    "cuda_iket_unreadable": lambda: decode(b'{"launches": [{"ranges": [{}]}], "stringTable": []}', name="a.trace.json"),
    "cuda_bad_count": lambda: _tileops(13),
    "cuda_unaligned_sms": lambda: decode(_timeless(), name="run.bin"),
}


@pytest.mark.parametrize("name", [spec.name for spec in STATS])
def test_stat_is_reachable(name):
    assert stats(REACHED[name]())[name] > 0


def test_sound_kernel_has_no_stat_above_info():
    simulation = simulate(seed=5, blocks=6, tiles=5)
    trace = decode(strided.to_npy(np.frombuffer(simulation.files["attention.npy"][128:], "<u8")))
    assert set(trace.stats["severity"]) <= {"info"}
