"""Proton's file: any bytes, older versions, and entries that come back as they were."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.cuda.helpers import accounts, decode, instants, lanes, simulate, spans, stats
from effort import some
from lanescope.devices.cuda.formats.encode import proton
from lanescope.devices.cuda.formats.layout import ASYNC, ASYNC_39, MARK, METRIC, SCOPE
from lanescope.errors import InputError


def file(warps, *, sm=(0,), entries=8, times=None, uids=None):
    """Return a file; ``warps`` lists the entries of each as (kind letter, scope, cycles)."""
    letters = {
        "B": (SCOPE, 0), "E": (SCOPE, 1), "b": (ASYNC, 0), "e": (ASYNC, 1), "x": (ASYNC_39, 0), "y": (ASYNC_39, 1),
        "M": (MARK, 0), "V": (METRIC, 0),
    }  # fmt: skip
    rows = [(lane, scope, *letters[kind], time) for lane, warp in enumerate(warps) for kind, scope, time in warp]
    columns = list(np.array(rows, np.int64).reshape(-1, 5).T)
    columns[3] = columns[3].astype(np.bool_)
    count = len(warps) // len(sm)
    setup = proton.ProtonSetup(
        np.array(sm), count if uids is None else max(uids) + 1, tuple(uids or range(count)), entries,
        None if times is None else np.array(times, np.int64),
    )  # fmt: skip
    return proton.encode(proton.Entries(*columns), setup)[0]


WARP = [("B", 1, 1000), ("M", 2, 1100), ("E", 1, 1500)]


def test_an_older_version_has_no_times_and_counts_in_cycles():
    trace = decode(file([WARP, WARP]), name="run.bin")
    assert trace.time.time_unit == "cycles"
    assert [row[4:7] for row in spans(trace)] == [(0, 500, 500)] * 2
    assert [row[4] for row in instants(trace)] == [100, 100]
    assert stats(trace)["cuda_unaligned_sms"] == 1


def test_few_cycles_of_an_older_version_are_not_taken_for_times():
    trace = decode(file([[("x", 1, 104), ("y", 1, 122)]], uids=[1], entries=2), name="run.bin")
    assert [row["dur"] for row in trace.slices.rows()] == [18]


def test_times_and_a_rate_place_the_cycles():
    trace = decode(file([WARP, WARP], times=[[10_000, 10_400, 11_000]]), name="run.bin", clock_mhz=2000.0)
    assert trace.time.time_unit == "ns"
    assert {row[6] for row in spans(trace)} == {250}
    (anchor,) = [row for row in trace.anchors.rows() if trace.clocks["name"][row["clock_id"]] == "clock64"]
    # The records lie somewhere between begin and end of the block.
    assert anchor["error_ns"] >= 75


def test_values_stand_with_the_record_before_them():
    trace = decode(file([[("B", 1, 1000), ("V", 1, 77), ("E", 1, 1500)]]), name="run.bin")
    (region,) = trace.details["cuda_regions"].rows()
    assert (region["payload"], region["end_payload"]) == (77, None)
    assert instants(trace) == []


def test_ring_is_read_from_its_oldest_entry():
    stamps = [3_000_000_001 + 10 * i for i in range(11)]
    trace = decode(file([[("M", 1, stamp) for stamp in stamps]], entries=8), name="run.bin")
    assert [row["ts_ticks"] for row in trace.instants.rows()] == stamps[3:]
    assert lanes(trace)[0, 0]["dropped"] == 3
    assert [row["cause"] for row in trace.gaps.rows()] == ["overrun"]


def test_only_chosen_warps_are_recorded():
    trace = decode(file([WARP, WARP], uids=[1, 5]), name="run.bin")
    assert sorted(lanes(trace)) == [(0, 1), (0, 5)]


def test_narrow_counters_wrap_and_wide_ones_do_not():
    narrow = [("B", 1, (1 << 32) - 100), ("E", 1, 50)]
    assert [row[6] for row in spans(decode(file([narrow]), name="run.bin"))] == [150]
    wide = [("B", 1, (1 << 32) - 100), ("E", 1, (1 << 32) + 50)]
    assert [row[6] for row in spans(decode(file([wide]), name="run.bin"))] == [150]


def test_asynchronous_scopes_may_overlap():
    warp = [("b", 1, 100), ("b", 2, 110), ("e", 1, 120), ("e", 2, 130)]
    trace = decode(file([warp]), name="run.bin")
    assert [(row["ts"], row["dur"], row["flags"]) for row in trace.slices.rows()] == [(0, 20, 0), (10, 20, 0)]


def test_raw_entries_are_those_that_were_stored():
    simulation = simulate(4, layout="proton", blocks=3, groups=2, tiles=4, overflow=True, instants=True)
    trace = decode(simulation.files["attention.bin"], name="run.bin")
    table = trace.records["cuda_proton_entries"]
    assert len(table) == simulation.truth["records"]
    words = np.frombuffer(simulation.files["attention.bin"], "<u4")
    types = {"scope": SCOPE, "async": ASYNC, "mark": MARK, "metric": METRIC}
    for row in table.rows():
        tag, low = int(words[row["slot"]]), int(words[row["slot"] + 1])
        high = row["time"] >> 32 if row["type"] != "metric" else 0
        assert tag == high | types[row["type"]] << 20 | row["scope"] << 23 | int(row["is_end"]) << 31
        assert low == row["time"] & 0xFFFFFFFF


@settings(max_examples=some(200))
@given(st.data())
def test_any_bytes_behind_a_header(data):
    whole = bytearray(file([WARP, WARP, WARP, WARP], sm=(0, 1), times=[[10_000, 10_400, 11_000]] * 2))
    for _ in range(data.draw(st.integers(0, 12))):
        at = data.draw(st.integers(0, len(whole) - 4) if data.draw(st.booleans()) else st.integers(0, 120)) & ~3
        whole[at : at + 4] = data.draw(st.integers(0, 2**32 - 1)).to_bytes(4, "little")
    whole = bytes(whole[: data.draw(st.integers(0, len(whole)) if data.draw(st.booleans()) else st.just(len(whole)))])
    try:
        trace = decode(whole, name="run.bin", layout="proton")
    except InputError:
        return
    assert accounts(trace)["byte"]["total"] == len(whole)
    assert len(trace.slices) == 0 or trace.slices["ts"].min() >= 0


@pytest.mark.parametrize(("word", "value"), [(0, 2), (2, 41), (3, 45), (4, 1), (7, 0), (8, 2), (9, 0), (10, 9)])
def test_headers_that_are_none(word, value):
    data = bytearray(file([WARP]))
    data[4 * word : 4 * word + 4] = value.to_bytes(4, "little")
    with pytest.raises(InputError) as error:
        decode(bytes(data), name="run.bin", layout="proton")
    assert error.value.hint


@pytest.mark.parametrize(("ran", "count"), [(125, 0), (120, 0), (119, 1), (1, 1)])
def test_a_block_counts_no_more_cycles_than_its_time_has(ran, count):
    """500 cycles from the first record to the last: an SM needs 125 ns at least, and the timer has steps of 5 ns."""
    times = [[10_000, 10_000 + 5 * (ran // 5), 11_000], [10_005, 10_505, 11_000]]
    trace = decode(file([WARP, WARP], sm=(0, 1), times=times), name="run.bin")
    assert stats(trace).get("cuda_contradictory_block", 0) == count
