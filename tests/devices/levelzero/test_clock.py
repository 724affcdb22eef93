"""Ticks on the host's clock: exact, wrapping, and never thrown a turn away."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.levelzero.helpers import Script, operations, stats
from lanescope.analysis import check
from lanescope.devices.levelzero.interpret.clock import Clock, mul_div, unwrap
from lanescope.trace import Flag

MS = 1_000_000
S = 1_000_000_000


def clock(host=(0,), ticks=(0,), hz=12_500_000, bits=64, kernel_bits=32, *, is_rounded=False) -> Clock:
    return Clock(
        Fraction(hz),
        is_rounded=is_rounded,
        bits=bits,
        kernel_bits=kernel_bits,
        host_ns=np.array(host, np.int64),
        ticks=np.array(ticks, np.uint64),
    )


def place(made: Clock, start, end, earliest, latest, tolerance=10 * MS):
    columns = [np.array([value], np.uint64) for value in (start, end)]
    windows = [np.array([value], np.int64) for value in (earliest, latest)]
    return made.place(*columns, *windows, tolerance)


numbers = st.one_of(st.integers(0, 100), st.integers(0, (1 << 45) - 1), st.integers(0, (1 << 61) - 1))


@given(st.lists(st.tuples(st.integers(-(1 << 40), 1 << 40), numbers, numbers.map(lambda n: n + 1)), min_size=1))
def test_mul_div_is_exact(rows) -> None:
    rows = [row for row in rows if abs(row[0]) * row[1] // row[2] < 1 << 62] or [(1, 1, 1)]
    values, num, den = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    assert mul_div(values, num, den).tolist() == [v * n // d for v, n, d in rows]


# --- the four defects of the converter that others use ------------------------------------------------------------


def test_a_turn_is_two_to_the_bits_not_one_less() -> None:
    """32 bits, 80 ns: start 100 after a reading of 4294967200 is 196 ticks later, not 195."""
    found = place(clock([0], [4_294_967_200]), 100, 150, 0, MS)
    assert found.begin.tolist() == [196 * 80]
    assert found.length.tolist() == [50]


def test_a_length_over_a_wrap_loses_no_tick() -> None:
    found = place(clock([0], [4_294_967_200]), 4_294_967_290, 50, 0, MS)
    assert found.length.tolist() == [56]
    assert (found.end - found.begin).tolist() == [56 * 80]


def test_64_bits_do_not_wrap() -> None:
    found = place(clock([0], [1000], kernel_bits=64), 1100, 1200, 0, MS)
    assert (found.begin.tolist(), found.length.tolist(), found.flags.tolist()) == ([8000], [100], [0])


def test_jitter_of_a_tick_does_not_add_a_turn() -> None:
    """An operation that seems to begin a little before its submission stays there: no '10 minute' fills."""
    found = place(clock([0], [1_000_000]), 1_000_000 - 1, 1_000_010, 0, MS)
    assert found.begin.tolist() == [-80]
    assert found.flags.tolist() == [0]


def test_the_rate_is_an_exact_ratio() -> None:
    """19.2 MHz are 52.083.. ns a tick; in whole nanoseconds they would be 0.16 % off."""
    made = clock(hz=19_200_000)
    assert made.to_ns(np.array([19_200_000 * 3600])).tolist() == [3600 * S]
    assert made.to_ns(np.array([1, 2, 3])).tolist() == [52, 104, 156]


# --- windows ------------------------------------------------------------------------------------------------------


def test_the_window_chooses_the_turn() -> None:
    turn_ns = (1 << 32) * 80
    found = place(clock([0], [0]), 500, 600, 2 * turn_ns, 2 * turn_ns + MS)
    assert found.begin.tolist() == [2 * turn_ns + 500 * 80]
    assert found.flags.tolist() == [0]


def test_no_turn_fits() -> None:
    """Marked, and left at the turn next to the window, before it or behind it."""
    turn_ns = (1 << 32) * 80
    early = place(clock([0], [0]), (1 << 32) - 1_000_000, 0, 0, MS)
    assert early.begin.tolist() == [-1_000_000 * 80]
    late = place(clock([0], [0]), 1_000_000, 1_000_100, turn_ns, turn_ns + MS)
    assert late.begin.tolist() == [turn_ns + 80_000_000]
    assert (early.flags[0] & Flag.CLOCK_SUSPECT, late.flags[0] & Flag.CLOCK_SUSPECT) == (Flag.CLOCK_SUSPECT,) * 2


def test_a_window_longer_than_a_turn_is_ambiguous() -> None:
    made = clock(kernel_bits=16)
    found = place(made, 10, 20, 0, 20 * MS, tolerance=0)
    assert found.begin.tolist() == [800]
    assert found.flags.tolist() == [Flag.WRAP_AMBIGUOUS]


def test_an_end_before_the_begin() -> None:
    found = place(clock(), 100, 90, 0, MS)
    assert (found.flags.tolist(), found.has_length.tolist()) == ([Flag.NEGATIVE_DURATION], [False])


def test_below_resolution() -> None:
    assert place(clock(), 100, 101, 0, MS).flags.tolist() == [Flag.BELOW_RESOLUTION]
    assert place(clock(), 100, 102, 0, MS).flags.tolist() == [0]


@pytest.mark.parametrize("bits", [8, 31, 32, 36, 61, 62, 63, 64])
def test_any_width(bits) -> None:
    """Near a wrap of the counter, whatever its width."""
    mask = (1 << bits) - 1
    reading = mask - 3
    made = clock([0], [reading], bits=bits, kernel_bits=bits)
    found = place(made, (reading + 10) & mask, (reading + 15) & mask, 0, 10_000, tolerance=100)
    assert (found.begin.tolist(), found.length.tolist()) == ([800], [5])
    assert not found.flags[0] & Flag.CLOCK_SUSPECT


def test_widths_that_differ() -> None:
    """Readings of 40 bits, timestamps of 32: compared modulo the smaller."""
    reading = (7 << 32) + 100
    found = place(clock([0], [reading], bits=40, kernel_bits=32), 150, 160, 0, MS)
    assert found.begin.tolist() == [50 * 80]


raw = st.integers(0, (1 << 64) - 1)


@given(raw, raw, st.integers(0, 1 << 50), st.integers(0, 1 << 50), st.sampled_from((8, 32, 36, 63, 64)))
def test_garbage_never_fails(start, end, earliest, wait, bits) -> None:
    found = place(
        clock([0, S, 2 * S], [5, 12_500_005, 25_000_005], bits=bits, kernel_bits=bits),
        start,
        end,
        earliest,
        earliest + wait,
    )
    assert found.end[0] >= found.begin[0]
    assert abs(int(found.begin[0])) <= 1 << 60


@given(
    st.lists(st.integers(0, 10**12), min_size=2, max_size=40, unique=True).map(sorted),
    st.sampled_from((8, 32, 64)),
    st.sampled_from((12_500_000, 19_200_000, 24_000_000, 1_000_000_000)),
)
def test_conversion_is_monotone(moments, bits, hz) -> None:
    host = np.arange(0, 12 * S, 100 * MS)
    ticks = (host * (hz * (1 + 30e-6)) / S).astype(np.uint64) & np.uint64((1 << bits) - 1)
    made = clock(host.tolist(), ticks.tolist(), hz=hz, bits=bits, kernel_bits=bits)
    times = made.to_ns(made.to_ticks(np.array(moments)))
    assert (np.diff(times) >= 0).all()


# --- readings -----------------------------------------------------------------------------------------------------


def test_readings_are_unwrapped_and_interpolated() -> None:
    """A clock that runs 100 ppm fast, read every 100 ms, wrapping every 1.3 s: times are right between readings."""
    hz, host = 12_500_000, np.arange(0, 10 * S, 100 * MS)
    true_ticks = host * (hz // 100) // (S // 100) * 10_001 // 10_000
    made = clock(host.tolist(), (true_ticks & 0xFFFFFF).tolist(), bits=24, kernel_bits=24)
    middle = 5 * S + 50 * MS
    ticks = middle * (hz // 100) // (S // 100) * 10_001 // 10_000
    found = place(made, ticks & 0xFFFFFF, (ticks + 5) & 0xFFFFFF, middle - MS, middle + MS)
    assert abs(int(found.begin[0]) - middle) <= 160
    assert made.pairs.suspect == 0


def test_contradicting_readings_are_left_out() -> None:
    host = np.arange(20) * 100 * MS
    ticks = host // 80
    ticks[7] += 50_000_000
    pairs = unwrap(host, ticks.astype(np.uint64), Fraction(12_500_000), 64)
    assert pairs.suspect == 1
    assert 700 * MS not in pairs.ns.tolist()


def test_many_readings_are_thinned() -> None:
    """Readings at every Append say more about their jitter than about the rate; how much is stated."""
    host = np.arange(0, S, 10_000)
    ticks = (host + np.random.default_rng(1).integers(-500, 500, len(host))) // 80 + 1000
    pairs = unwrap(host, ticks.astype(np.uint64), Fraction(12_500_000), 64)
    assert len(pairs.ns) <= 11
    assert (np.diff(pairs.ns) >= 50 * MS).all()
    assert 400 <= pairs.error_ns <= 2000


def test_rounded_rate_is_an_estimate_until_it_is_measured(tmp_path) -> None:
    """52 ns is 52.083.. rounded: with one reading times are estimates, with two they are measured."""
    for readings in (1, 2):
        script = Script().device(resolution=52).immediate(1)
        script.pair(1000)
        script.now += 200 * MS
        if readings == 2:
            script.pair(1000 + 200_001_000 * 192 // 10_000)
        tick = 1000 + (script.now - 12 * 3600 * S) * 192 // 10_000
        script.append("Barrier", 0x4).result(0x4, tick + 100, tick + 200)
        trace = script.open(tmp_path)
        row = operations(trace)[0]
        assert row["quality"] == ("estimated" if readings == 1 else "exact")
        assert ("levelzero_rounded_clock_rate" in stats(trace)) == (readings == 1)


def test_exact_frequency_from_the_newer_structure(tmp_path) -> None:
    script = Script().device(resolution=19_200_000, stype="ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2")
    trace = script.immediate(1).pair(0).append("Barrier", 0x4).result(0x4, 192, 384).open(tmp_path)
    row = operations(trace)[0]
    assert (row["dur"], row["dur_ticks"], row["quality"]) == (10_000, 192, "exact")
    assert next(trace.clocks.rows())["frequency_num"] == 19_200_000


def test_suspect_operation_is_a_finding(tmp_path) -> None:
    script = Script().device().immediate(1).pair(0)
    script.append("Barrier", 0x4).result(0x4, 1 << 30, (1 << 30) + 10)
    trace = script.open(tmp_path)
    row = operations(trace)[0]
    assert row["flags"] & Flag.CLOCK_SUSPECT
    assert "LS304" in [finding.code for finding in check.run(trace)]


def test_contradicting_reading_is_counted(tmp_path) -> None:
    script = Script(step=200 * MS).device().immediate(1)
    for ticks in (0, 2_500_000, 4_000_000_000, 7_500_000):
        script.pair(ticks)
    trace = script.append("Barrier", 0x4).result(0x4).open(tmp_path)
    assert stats(trace)["levelzero_inconsistent_clock_pair"] == 1
    assert len(trace.anchors) == 3


def test_no_reading_no_time(tmp_path) -> None:
    trace = Script().device().immediate(1).append("Barrier", 0x4).result(0x4, 7, 17).open(tmp_path)
    row = operations(trace)[0]
    assert (row["ts"], row["dur"], row["quality"]) == (row["submit_ts"], 10, "estimated")
    assert stats(trace)["levelzero_unanchored_clock"] == 1
