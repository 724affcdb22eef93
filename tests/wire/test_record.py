"""Words of bit fields: exact both ways, and every contradiction is refused with its place."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanescope.wire import Field, Record
from lanescope.wire.strategies import values
from wire.formats import DELTA, EVENT_PC, FRAME_SETS, HEADER, LOOP_COUNT, MARKER

RECORDS = (HEADER, MARKER, DELTA, *{id(r): r for frame_set in FRAME_SETS for r in frame_set.records}.values())


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.name}/{record.prefix}")
@given(data=st.data())
def test_values_survive_encode_and_decode(record, data):
    given_values = data.draw(values(record))
    word = record.encode(given_values)
    assert record.matches(word)
    assert record.decode(word) == given_values


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.name}/{record.prefix}")
@given(data=st.data())
def test_every_word_with_the_prefix_survives_decode_and_encode(record, data):
    free = record.bits - len(record.prefix)
    word = record.prefix_bits | data.draw(st.integers(0, (1 << free) - 1))
    assert record.encode(record.decode(word)) == word


def test_known_words():
    assert HEADER.decode(0x00213001) | {} == {
        "packet_id": 1,
        "reserved_low": 0,
        "type": 3,
        "reserved_15": 0,
        "row": 1,
        "column": 1,
        "reserved_high": 0,
        "parity": 0,
    }
    assert HEADER["type"].label(3) == "memtile"
    assert HEADER["type"].label(7) == "7"
    assert MARKER.decode(0x0000_1234_0000_3005) == {"kind": 1, "event": 1, "lane": 3, "time": 0x1234}
    assert DELTA.decode(0xFFE0) == {"low": 0, "step": -1}
    assert EVENT_PC.decode(0xC4000000 | 5 << 18 | 812)["pc"] == 812


def test_reserved_bits_are_kept_and_default_to_their_value():
    word = EVENT_PC.encode({"mask": 1, "pc": 2, "reserved": 9})
    assert EVENT_PC.decode(word)["reserved"] == 9
    assert EVENT_PC.decode(EVENT_PC.encode({"mask": 1, "pc": 2}))["reserved"] == 0


def test_fields_can_be_cut_out_of_arrays():
    words = np.array([0x0000_1234_0000_3005, 0xFFFF_FFFF_FFFF_FFFF], dtype=np.uint64)
    for field in MARKER.fields:
        cut = field.of(words)
        assert cut.dtype == np.uint64
        assert cut.tolist() == [MARKER.decode(int(word))[field.name] for word in words]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"overflow": 2, "count": 0}, r"loop_count\.overflow: 2 does not fit in 1 unsigned bits"),
        ({"overflow": -1, "count": 0}, r"loop_count\.overflow: -1 does not fit"),
        ({"overflow": 0}, r"loop_count\.count: missing value"),
        ({"overflow": 0, "count": 1, "lane": 1}, r"loop_count\.lane: unknown field .choose from overflow, count"),
        ({"overflow": 0, "count": 1.0}, r"loop_count\.count: invalid value 1\.0: expected an integer"),
        ({"overflow": 0, "count": None}, r"loop_count\.count: invalid value None: expected an integer"),
        (7, r"loop_count: invalid value 7: expected a mapping of names to values"),
    ],
)
def test_bad_values_are_refused_with_their_path(wrong, message):
    with pytest.raises(ValueError, match=message):
        LOOP_COUNT.encode(wrong)


@pytest.mark.parametrize(("step", "fits"), [(-1024, True), (1023, True), (-1025, False), (1024, False)])
def test_signed_fields_have_the_range_of_twos_complement(step, fits):
    if fits:
        assert DELTA.decode(DELTA.encode({"low": 0, "step": step}))["step"] == step
    else:
        with pytest.raises(ValueError, match="signed bits"):
            DELTA.encode({"low": 0, "step": step})


@pytest.mark.parametrize("word", [-1, 1 << 32, 0x80000000])
def test_words_of_another_size_or_prefix_are_refused(word):
    assert not LOOP_COUNT.matches(word)
    with pytest.raises(ValueError, match="loop_count"):
        LOOP_COUNT.decode(word)


A = Field("a", lsb=0, width=4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fields": (A, Field("b", lsb=3, width=5))}, r"r\.b: overlaps a at bit 3"),
        ({"fields": (A, Field("b", lsb=5, width=3))}, r"r: bits 4 to 4 are undeclared"),
        ({"fields": (A,)}, r"r: bits 4 to 7 are undeclared"),
        ({"fields": (A, Field("b", lsb=4, width=5))}, r"r\.b: ends at bit 8 of 8"),
        ({"fields": (A, Field("a", lsb=4, width=4))}, r"r\.a: declared twice"),
        ({"fields": (A, Field("b", lsb=4, width=4)), "prefix": "1"}, r"r\.\(prefix\): overlaps b at bit 7"),
        ({"fields": (A,), "prefix": "12"}, "expected 0 and 1 only"),
        (
            {"fields": (A, Field("b", lsb=4, width=4)), "status": "guessed"},
            "unknown status 'guessed' .choose from documented",
        ),
    ],
)
def test_contradictory_records_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Record("r", bits=8, **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "A"}, "invalid field name 'A'"),
        ({"name": "time-ns"}, "invalid field name 'time-ns'"),
        ({"lsb": -1}, "a: lsb -1 and width 1 select no bits"),
        ({"width": 0}, "a: lsb 0 and width 0 select no bits"),
        ({"values": {2: "two"}}, "a: 2 does not fit in 1 unsigned bits"),
        ({"default": 2}, "a: 2 does not fit in 1 unsigned bits"),
        ({"default": 1, "signed": True}, "a: 1 does not fit in 1 signed bits"),
        ({"status": "guessed"}, "a: unknown status 'guessed' .choose from documented"),
    ],
)
def test_contradictory_fields_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Field(**{"name": "a", "lsb": 0, "width": 1, **arguments})


def test_layouts_are_values():
    again = Record("delta", bits=16, fields=DELTA.fields)
    assert again == DELTA
    assert hash(again) == hash(DELTA)
    with pytest.raises(KeyError, match=r"delta\.nothing"):
        DELTA["nothing"]
