"""Unwrapped counters against plain loops over Python's integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.cuda.test_reference import buffers
from effort import some
from lanescope.common.wrapping_counters import at_or_after, circular_start, nearest, unwrap
from lanescope.devices.cuda.formats.lanes import STEP_BACK
from lanescope.devices.cuda.formats.layout import TIRX_RECORD
from lanescope.devices.cuda.formats.tirx import TirxBuffer

BITS = st.sampled_from([1, 3, 8, 32, 56, 62, 63, 64])


def signed(value: int) -> int:
    """Return the int64 with the same lowest 64 bits."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


@st.composite
def counters(draw):
    """Return raw values, their groups, the period, and the longest step back."""
    bits = draw(BITS)
    period = 1 << bits if bits > 62 or draw(st.booleans()) else draw(st.integers(1, 1 << bits))
    step_back = draw(st.integers(0, min(period - 1, 1 << 20)))
    near = st.one_of(st.integers(0, min(period - 1, 5)), st.integers(max(period - 5, 0), period - 1))
    raw = draw(st.lists(st.one_of(near, st.integers(0, period - 1)), max_size=30))
    group = draw(st.lists(st.integers(-1, 2), min_size=len(raw), max_size=len(raw)))
    return np.array(raw, np.uint64), np.array(group, np.int64), period, step_back


def by_hand(raw, group, period, step_back):
    last: dict[int, int] = {}
    found = []
    for value, lane in zip(raw.tolist(), group.tolist(), strict=True):
        if lane in last:
            step = (value - last[lane]) % period
            value = last[lane] + (step - period if period - step <= step_back else step)
        last[lane] = value
        found.append(signed(value))
    return found


@settings(max_examples=some(600))
@given(counters(), st.booleans())
def test_unwrap_is_a_loop(counter, has_groups):
    raw, group, period, step_back = counter
    is_power = period & (period - 1) == 0 and period > 1
    width = {"bits": period.bit_length() - 1} if is_power else {"period": period}
    lanes = group if has_groups else np.zeros(len(raw), np.int64)
    found = unwrap(raw, **width, group=group if has_groups else None, step_back=step_back)
    assert found.tolist() == by_hand(raw, lanes, period, step_back)
    assert found.dtype == np.int64


@given(st.lists(st.integers(0, 1 << 70), min_size=1, max_size=20), st.sampled_from([8, 32, 48]))
def test_unwrap_restores_counters_that_advance_by_less_than_a_period(steps, bits):
    true = np.cumsum([step % (1 << bits) for step in steps])
    found = unwrap(true % (1 << bits), bits=bits)
    assert (found - found[0]).tolist() == (true - true[0]).tolist()


def test_unwrap_needs_a_width():
    with pytest.raises(TypeError, match="bits or period"):
        unwrap(np.array([1, 2]))


@settings(max_examples=some(400))
@given(BITS, st.lists(st.tuples(st.integers(0, (1 << 64) - 1), st.integers(-(1 << 40), 1 << 40)), max_size=20))
def test_places_of_a_value(bits, rows):
    raw = np.array([value % (1 << bits) for value, _ in rows], np.uint64)
    wanted = np.array([place for _, place in rows], np.int64)
    later, near = at_or_after(raw, wanted, bits), nearest(raw, wanted, bits)
    for value, place, found, close in zip(raw.tolist(), wanted.tolist(), later.tolist(), near.tolist(), strict=True):
        ahead = (value - place) % (1 << bits)
        assert found == signed(place + ahead)
        assert close == signed(place + ahead - (1 << bits if 2 * ahead >= 1 << bits else 0))


def test_one_floor_for_all():
    assert at_or_after(np.array([1, 7], np.uint32), 12, 3).tolist() == [17, 15]
    assert nearest(np.array([1, 7], np.uint32), 12, 3).tolist() == [9, 15]


@given(st.lists(st.integers(0, 63), max_size=12))
def test_start_on_the_circle(raw):
    start, is_certain = circular_start(np.array(raw, np.int64), 6)
    if not raw:
        assert (start, is_certain) == (0, True)
        return
    arcs = {value: min((value - other) % 64 or 64 for other in raw) for value in raw}
    assert start == min(value for value in raw if arcs[value] == max(arcs.values()))
    assert is_certain == (arcs[start] > 32)


@settings(max_examples=some(300))
@given(buffers())
def test_native_lanes_unwrap_alike(given_buffer):
    """Where no stamp jumps so far that the native rules call it ambiguous."""
    words, lanes, stride = given_buffer
    summary = TirxBuffer.read(words, stride=stride).decode(split=True, step_back=STEP_BACK).summary
    for lane in range(lanes):
        records = [TIRX_RECORD.decode(word) for word in words[1 + lane :: stride].tolist() if word]
        stamps = np.array([record["time"] for record in records if record["lane"] == lane], np.int64)
        if summary["jumps"][lane] or summary["bad"][lane] or not len(stamps):
            continue
        found = unwrap(stamps, bits=32, step_back=STEP_BACK)
        assert summary["records"][lane] == len(stamps)
        expected = [found[0], found[-1], found.min(), found.max()]
        assert [summary[name][lane] for name in ("first", "last", "min", "max")] == expected
