"""Launches in several buffers: of one GPU by its clock, of several by the host's clock, or side by side."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.cuda.declared.test_declared_files import LAYOUT, layout
from devices.cuda.helpers import decode, decode_simulation, ls2, simulate
from effort import some
from lanescope import MergeError, cuda
from lanescope import merge as merged_of
from lanescope.devices.cuda.formats.layout import STAMP_WRAP
from lanescope.trace import Flag
from lanescope.trace.merge import align


def axes(traces, **options):
    return [(one.axis, one.shift) for one in align(traces, **options)]


# --- one GPU ------------------------------------------------------------------------------------------------------


@settings(max_examples=some(30))
@given(st.integers(0, 2**32), st.lists(st.integers(0, 10**12), min_size=1, max_size=4, unique=True))
def test_launches_of_one_gpu_lie_where_its_timer_puts_them(seed, begins):
    """Of LS2: the whole timer, so any distance is certain."""
    made = [decode(ls2([[("B", 0, at), ("E", 0, at + 100 + seed % 7)]])) for at in begins]
    merged = merged_of(made)
    assert sorted(merged.slices["ts"].tolist()) == [at - min(begins) for at in sorted(begins)]
    assert "unaligned_capture" not in merged.stats["name"].tolist()
    assert not (merged.slices["flags"] & np.uint32(Flag.WRAP_AMBIGUOUS)).any()


def test_a_buffer_that_is_used_again_for_fewer_records_holds_one_launch_each_time():
    """The same buffer, dumped after each of two launches; the second one is shorter, and it was not cleared."""
    long, short = (simulate(seed, blocks=3, tiles=tiles) for seed, tiles in ((1, 6), (2, 3)))
    first = np.frombuffer(long.files["attention.npy"][128:], "<u8")
    later = simulate(2, blocks=3, tiles=3, stale=6)
    again = decode_simulation(later)
    assert len(again.slices) == len(decode_simulation(short).slices)
    assert "cuda_stale" in again.stats["name"].tolist()
    merged = merged_of([decode(first), again])
    assert len(merged.slices) == len(decode(first).slices) + len(again.slices)
    kinds = set(merged.stats["name"].tolist())
    assert not {"cuda_clock_reversal", "cuda_multiple_writers"} & kinds


def test_launches_over_a_wrap_of_the_timer_are_placed_by_the_nearest_one():
    early = decode(_tirx(STAMP_WRAP - 1000), launch_ns=1000)
    late = decode(_tirx(500), launch_ns=1000)
    assert axes([early, late]) == [(0, 0), (0, 1500)]
    merged = merged_of([early, late])
    ambiguous = merged.slices["flags"] & np.uint32(Flag.WRAP_AMBIGUOUS) != 0
    assert ambiguous.tolist() == [False, True]
    certain = [decode(_tirx(STAMP_WRAP - 1000), anchor=0), decode(_tirx(500), anchor=3 * STAMP_WRAP)]
    assert axes(certain) == [(0, 0), (0, 2 * STAMP_WRAP + 1500)]


def _tirx(begin):
    from devices.cuda.helpers import buffer

    return buffer([[("B", 0, begin % STAMP_WRAP), ("E", 0, (begin + 64) % STAMP_WRAP)]])


# --- the clock of a declared layout decides -----------------------------------------------------------------------


def declared(tmp_path, begin, clock, rate=""):
    text = LAYOUT.replace("fields = {type = [0, 1], event = [1, 15], stamp = [32, 32]}",
                          "fields = {type = [0, 1], event = [1, 7], sm = [8, 4], stamp = [16, 48]}")  # fmt: skip
    text = text.replace("bits = 32", f"bits = 48\n{clock}").replace('time = "stamp"', f'time = "stamp"{rate}')
    words = np.zeros(16, np.uint64)
    for lane in range(2):
        for k in range(2):
            words[8 * lane + k] = k | 5 << 1 | lane << 8 | (begin + 10 * lane + 100 * k) << 16
    return cuda.decode(words, layout=layout(tmp_path, text))


@pytest.mark.parametrize(
    "clock", ['unit = "ns"', 'unit = "cycles"\nacross = "device"', 'unit = "ticks"\nacross = "device"\nhz = 100000000']
)
def test_counters_of_the_whole_device_join_its_launches(tmp_path, clock):
    traces = [declared(tmp_path, begin, clock) for begin in (50_000, 20_000)]
    scale = 10 if "hz" in clock else 1
    found = axes(traces)
    assert [shift for _, shift in found] == [30_000 * scale, 0]
    merged = merged_of(traces)
    assert sorted(merged.slices["ts"].tolist()) == [0, 10 * scale, 30_000 * scale, 30_010 * scale]


def test_counters_of_sms_join_no_launches(tmp_path):
    clock, sm = 'unit = "cycles"\nacross = "sm"', '\nsm = "sm"'
    traces = [declared(tmp_path, begin, clock, sm) for begin in (50_000, 20_000)]
    with pytest.raises(MergeError, match="no common clock") as refused:
        merged_of(traces)
    assert "--side-by-side" in refused.value.hint
    assert axes(traces, side_by_side=True) == [(0, 0), (1, 0)]
    merged = merged_of(traces, side_by_side=True)
    roots = [row["name"] for row in merged.tracks.rows() if row["parent_id"] is None]
    assert roots == ["buffer (time axis 1)", "buffer (time axis 2)"]


# --- several GPUs -------------------------------------------------------------------------------------------------


def gpus(*numbers, **options):
    return [decode_simulation(simulate(5 + n, layout="ls2", blocks=2, tiles=2, gpu=n, **options)) for n in numbers]


def test_gpus_are_joined_by_the_anchors_of_the_host():
    traces = gpus(0, 1, 2)
    found = align(traces)
    assert [one.axis for one in found] == [0, 0, 0]
    assert {one.clock for one in found} == {"", "unix"}
    # Their timers differ by 777 s each; on the host's clock the launches lie within a millisecond.
    assert max(one.shift for one in found) < 10**6
    assert all(one.error_ns for one in found[1:])


def test_gpus_without_anchors_lie_side_by_side():
    def bare(n):
        simulation = simulate(5 + n, layout="ls2", blocks=2, tiles=2, gpu=n)
        words = np.frombuffer(simulation.files["attention.npy"][128:], "<u8").copy()
        words[6:12] = 0
        return words

    again = bare(0)
    again[4] = 9  # another launch
    traces = [decode(bare(0)), decode(bare(1)), decode(again)]
    with pytest.raises(MergeError, match="no common clock"):
        merged_of(traces)
    # The first and the last are of one GPU.
    assert [axis for axis, _ in axes(traces, side_by_side=True)] == [0, 1, 0]
    merged = merged_of(traces, side_by_side=True)
    assert merged.stats["name"].tolist().count("unaligned_capture") == 1
