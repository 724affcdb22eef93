"""Words from fields and back: the layout as data, the encoder, and the decoder's raw records agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.cuda.helpers import GOLDEN, decode, simulate
from lanescope.devices.cuda.formats.encode import strided
from lanescope.devices.cuda.formats.layout import (
    KINDS,
    LAYOUTS,
    SHORT_NAMES,
    TIRX_HEADER,
    TIRX_MAX_LANES,
    TIRX_RECORD,
    TIRX_V1,
)
from lanescope.devices.cuda.formats.raw_records import strided_records
from lanescope.devices.cuda.formats.tirx import TirxBuffer
from lanescope.wire.strategies import values


@given(st.lists(values(TIRX_RECORD), max_size=50))
def test_pack_is_the_reference_codec(fields):
    columns = (np.array([f[name] for f in fields], np.int64) for name in ("lane", "event", "kind", "time"))
    assert strided.pack(strided.Records(*columns)).tolist() == [TIRX_RECORD.encode(f) for f in fields]


@given(values(TIRX_HEADER))
def test_header_word(fields):
    assert strided.header_word(fields["num_blocks"], fields["num_groups"]) == TIRX_HEADER.encode(fields)


def test_full_times_lose_their_upper_bits():
    word = strided.pack(strided.Records(*(np.array([value], np.int64) for value in (3, 2, 1, (5 << 32) + 7))))
    assert TIRX_RECORD.decode(int(word[0])) == {"kind": 1, "event": 2, "lane": 3, "time": 7}


@pytest.mark.parametrize(("lane", "event", "kind"), [(1 << 20, 0, 0), (0, 1 << 10, 0), (0, 0, 4), (-1, 0, 0)])
def test_what_does_not_fit_is_refused(lane, event, kind):
    with pytest.raises(ValueError, match="values exceed"):
        strided.pack(strided.Records(*(np.array([value], np.int64) for value in (lane, event, kind, 0))))


@given(st.lists(st.integers(0, 5), max_size=60))
def test_positions_count_within_lanes(lanes):
    seen: dict[int, int] = {}
    expected = []
    for lane in lanes:
        expected.append(seen.get(lane, 0))
        seen[lane] = expected[-1] + 1
    assert strided.positions(np.array(lanes, np.int64)).tolist() == expected


@given(st.lists(st.one_of(st.just(0), st.integers(0, 2**64 - 1)), min_size=6, max_size=80))
def test_raw_records_restore_any_buffer(body):
    words = np.array([strided.header_word(3, 2), *body], np.uint64)
    table = strided_records(words, TirxBuffer.read(words), TIRX_V1, 0)
    again = strided.restore(table, num_blocks=3, num_groups=2, slots=len(words))
    assert (again == words).all()


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.npy")), ids=lambda path: path.stem)
def test_golden_files_are_restored_byte_by_byte(path):
    trace = decode(path.read_bytes())
    geometry = next(trace.details["cuda_buffers"].rows())
    words = strided.restore(
        trace.records["cuda_records"], **{key: geometry[key] for key in ("num_blocks", "num_groups", "slots")}
    )
    assert strided.to_npy(words) == path.read_bytes()


def test_encoding_what_was_decoded_gives_the_simulated_file():
    data = simulate(seed=9, blocks=5, tiles=3, stride=17).files["attention.npy"]
    trace = decode(data)
    geometry = next(trace.details["cuda_buffers"].rows())
    table = trace.records["cuda_records"]
    columns = (table["lane"], table["event_id"], table.codes("kind"), table["time"])
    words, stored = strided.encode(
        strided.Records(*(column.astype(np.int64) for column in columns)),
        **{key: geometry[key] for key in ("num_blocks", "num_groups", "stride", "slots")},
    )
    assert stored.all()
    assert strided.to_npy(words) == data


def test_probe_that_checks_its_bounds_drops_what_has_no_room():
    records = strided.Records(*np.array([[0] * 5, [1] * 5, [2] * 5, range(5)], np.int64))
    words, stored = strided.encode(records, num_blocks=1, num_groups=1, slots=4)
    assert stored.tolist() == [True, True, True, False, False]
    assert len(words) == 4


def test_layouts_declare_every_bit():
    assert TIRX_MAX_LANES == 1 << 20
    for records in LAYOUTS.values():
        for record in records:
            assert sorted(bit for f in record.fields for bit in range(f.lsb, f.lsb + f.width)) == list(
                range(record.bits)
            )
    assert set(SHORT_NAMES.values()) >= set(LAYOUTS)
    assert sorted(KINDS) == [0, 1, 2, 3]
