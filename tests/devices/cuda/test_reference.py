"""The native rules against the slow ones, on everything that hypothesis can think of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.cuda import reference
from effort import some
from lanescope._native import core
from lanescope.devices.cuda.formats.encode import strided
from lanescope.devices.cuda.formats.lanes import STEP_BACK
from lanescope.devices.cuda.formats.layout import STAMP_WRAP, TIRX_RECORD
from lanescope.devices.cuda.formats.tirx import TirxBuffer
from lanescope.trace import Flag

assert STEP_BACK == reference.STEP_BACK


@st.composite
def buffers(draw):
    """Return words and their geometry: mostly sound records, with anything that may happen to them."""
    blocks, groups = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    lanes = blocks * groups
    stride = lanes + draw(st.sampled_from([0, 0, 1, 3]))
    slots = 1 + lanes + draw(st.integers(0, 60))
    words = np.zeros(slots, np.uint64)
    words[0] = strided.header_word(blocks, groups)
    tick = draw(st.sampled_from([1, 32, 7, 1 << 18, 1 << 28]))
    clock = [draw(st.sampled_from([0, 1000, STAMP_WRAP - 64, STAMP_WRAP // 2]))] * stride
    lengths = [draw(st.integers(0, 40)) for _ in range(lanes)]
    moves = draw(st.lists(st.integers(-3, 20), min_size=slots, max_size=slots))
    kinds = draw(st.lists(st.sampled_from([0, 0, 0, 1, 1, 1, 1, 2, 3]), min_size=slots, max_size=slots))
    events = draw(st.lists(st.sampled_from([0, 1, 2, 1023]), min_size=slots, max_size=slots))
    for slot in range(1, slots):
        index, lane = divmod(slot - 1, stride)
        if lane >= lanes or index >= lengths[lane]:
            continue
        clock[lane] = (clock[lane] + moves[slot] * tick) % STAMP_WRAP
        words[slot] = TIRX_RECORD.encode(
            {"kind": kinds[slot], "event": events[slot], "lane": lane, "time": clock[lane]}
        )
    for slot, word in draw(st.dictionaries(st.integers(1, slots - 1), st.integers(0, 2**64 - 1), max_size=4)).items():
        words[slot] = draw(st.sampled_from([0, word, int(words[slot]) ^ (1 << 12)]))
    return words, lanes, stride


@settings(max_examples=some(600))
@given(buffers())
def test_native_equals_reference(given_buffer):
    words, lanes, stride = given_buffer
    buffer = TirxBuffer.read(words, stride=stride)
    decoded = buffer.decode(split=True, step_back=STEP_BACK)
    expected = [reference.decode_lane(words.tolist(), lane, stride) for lane in range(lanes)]

    reference.assert_same(decoded, expected)
    summary = decoded.summary
    assert int(summary["records"].sum()) + buffer.unreadable == np.count_nonzero(words[1:])


def test_core_knows_the_flags_of_the_model():
    assert {name: int(Flag[name]) for name in core.CUDA_FLAGS} == core.CUDA_FLAGS


@pytest.mark.parametrize("shape", ["stairs", "comb", "fence"])
def test_hostile_crossings_stay_linear(shape):
    # Regions that would be marked again and again by a decoder that walks all open ones at every end.
    count = 100_000
    number = np.arange(2 * count)
    half = number >= count
    event = {
        "stairs": np.where(half, 0, 0),
        "comb": np.where(half, number % 2, number % 2),
        "fence": np.where(half, (number - count) % 1000, number % 1000),
    }[shape]
    records = strided.Records(np.zeros(2 * count, np.int64), event, half.astype(np.int64), 1000 + number)
    words, _ = strided.encode(records, num_blocks=1, num_groups=1)
    decoded = TirxBuffer.read(words).decode(split=True, step_back=STEP_BACK)
    assert len(decoded.slices) == count
    crossing = np.count_nonzero(decoded.slices["flags"] & np.uint32(Flag.PARTIAL_OVERLAP))
    assert crossing == {"stairs": 0, "comb": count, "fence": count}[shape]
    # The same with a clock that steps back: judged by time too.
    records.time[-1] -= 5
    words, _ = strided.encode(records, num_blocks=1, num_groups=1)
    assert len(TirxBuffer.read(words).decode(split=True, step_back=STEP_BACK).slices) == count
