"""Prefix-coded frames in words: exact both ways on good streams, complete and in step again on bad ones."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanescope.wire import Field, FrameSet, Record
from lanescope.wire.strategies import frames, streams
from wire.formats import EVENT_PC, FRAME_SETS, MODE0, MODE1, MODE2

EACH = pytest.mark.parametrize("frame_set", FRAME_SETS, ids=lambda frame_set: frame_set.name)


def bits_of(words):
    return "".join(f"{word:032b}" for word in words)


def without_filler(frame_set, items):
    return [(record, values) for record, values in items if record is not frame_set[frame_set.padding]]


@EACH
@given(data=st.data())
def test_frames_survive_encode_and_decode(frame_set, data):
    items = data.draw(frames(frame_set))
    found = list(frame_set.decode(frame_set.encode(items)))
    assert not [frame for frame in found if frame.error]
    assert without_filler(frame_set, [(f.record, f.values) for f in found]) == without_filler(frame_set, items)


@EACH
@given(data=st.data())
def test_words_survive_decode_and_encode(frame_set, data):
    words = frame_set.encode(data.draw(frames(frame_set)))
    assert frame_set.encode((frame.record, frame.values) for frame in frame_set.decode(words)) == words


@EACH
@given(data=st.data())
def test_filler_can_be_left_to_the_encoder(frame_set, data):
    """Filler stands in a greedy stream only where the next frame did not fit, so leaving it out loses nothing."""
    words = frame_set.encode(without_filler(frame_set, data.draw(frames(frame_set))))
    items = without_filler(frame_set, [(f.record, f.values) for f in frame_set.decode(words)])
    assert frame_set.encode(items) == words


@EACH
@given(data=st.data())
def test_every_bit_of_any_stream_is_accounted_for(frame_set, data):
    words = data.draw(st.one_of(streams(frame_set), st.lists(st.integers(0, 2**32 - 1), max_size=60)))
    found = list(frame_set.decode(words))
    assert "".join(f"{frame.raw:0{frame.bits}b}" for frame in found) == bits_of(words)
    place = 0
    for frame in found:
        assert (frame.word, frame.bit) == divmod(place, 32)
        place += frame.bits
        assert (frame.record is None) == bool(frame.error)


@EACH
@given(data=st.data())
def test_decoder_is_in_step_at_the_word_after_any_error(frame_set, data):
    words = data.draw(streams(frame_set))
    found = list(frame_set.decode(words))
    for frame, follower in itertools.pairwise(found):
        if frame.error:
            assert (follower.word, follower.bit) == (frame.word + 1, 0)
            rest = list(frame_set.decode(words[follower.word :]))
            assert rest == [f._replace(word=f.word - follower.word) for f in found if f.word >= follower.word]


@EACH
def test_each_code_decodes_to_its_own_frame_or_to_an_error(frame_set):
    """All 256 first bytes against a search through the prefixes, without the lookup table."""
    for byte in range(256):
        code = f"{byte:08b}"
        owners = [record for record in frame_set.records if code.startswith(record.prefix)]
        assert len(owners) <= 1
        assert len(owners) + sum(code.startswith(free) for free in frame_set.unassigned_prefixes) == 1
        frame = next(frame_set.decode([byte << 24, 0]))
        assert frame.record is (owners[0] if owners else None)
        assert frame.error == ("" if owners else "unknown_code")


def test_codes_that_the_specification_leaves_open():
    assert MODE2.unassigned_prefixes[:2] == ("0011", "011")
    open_bytes = {b for b in range(256) if f"{b:08b}".startswith(MODE0.unassigned_prefixes)}
    assert open_bytes == {0xF1, 0xF2, 0xF3, 0xF5, 0xF6, 0xF7, 0xF8, 0xF9, 0xFA, 0xFB, 0xFC, 0xFD}


def test_greedy_rule():
    """Frames of 2, 3 and 1 bytes: the second does not fit behind the first, the last one does behind the second."""
    items = [
        (MODE0["single1"], {"slot": 1, "cycles": 0x155}),
        (MODE0["single2"], {"slot": 2, "cycles": 0x2AAAA}),
        (MODE0["single0"], {"slot": 7, "cycles": 15}),
        (MODE0["sync"], {}),
    ]
    assert MODE0.encode(items) == [0x8555FEFE, 0xAAAAAA7F, 0xFFFEFEFE]
    assert MODE0.encode(items, pad_words=7) == [0x8555FEFE, 0xAAAAAA7F, 0xFFFEFEFE, *[0xFEFEFEFE] * 4]
    assert MODE0.encode([], pad_words=7) == []


def test_two_word_start_is_aligned_by_the_encoder():
    words = MODE0.encode([(MODE0["sync"], {}), (MODE0["start"], {"timer": 0x0012_3456_789A_BCDE})])
    assert words == [0xFFFEFEFE, 0xF0123456, 0x789ABCDE]
    start = list(MODE0.decode(words))[-1]
    assert (start.word, start.bit, start.bits) == (1, 0, 64)
    assert start.values == {"timer": 0x0012_3456_789A_BCDE}


@pytest.mark.parametrize(
    ("frame_set", "words", "expected"),
    [
        (MODE0, [0x00F81122, 0xFF00FEFE], [(0, 0, 8, ""), (0, 8, 24, "unknown_code"), (1, 0, 8, "")]),
        (MODE0, [0x0000A000], [(0, 0, 8, ""), (0, 8, 8, ""), (0, 16, 16, "crosses_word")]),
        (MODE0, [0x00F00000, 0], [(0, 0, 8, ""), (0, 8, 24, "misaligned"), (1, 0, 8, "")]),
        (MODE0, [0xF0000001], [(0, 0, 32, "truncated")]),
        (MODE1, [0xF4000000, 0], [(0, 0, 32, "unknown_code"), (1, 0, 32, "unknown_code")]),
        (MODE2, [0xF2000330, 0x30000000], [(0, 0, 32, ""), (1, 0, 32, "unknown_code")]),
        (MODE2, [0x2222222E], [*[(0, 4 * i, 4, "") for i in range(7)], (0, 28, 4, "crosses_word")]),
    ],
)
def test_bad_bits_become_errors_with_a_place(frame_set, words, expected):
    found = [(f.word, f.bit, f.bits, f.error) for f in frame_set.decode(words)]
    assert found[: len(expected)] == expected


def test_words_may_come_from_any_sequence():
    words = [0xF0123456, 0x789ABCDE, 0xFFFFFFFF]
    raw = np.array(words, dtype="<u4")
    assert list(MODE0.decode(raw)) == list(MODE0.decode(words))
    assert list(MODE0.decode(memoryview(raw.tobytes()).cast("I"))) == list(MODE0.decode(words))


PADDING = Record("padding", bits=8, prefix="11111110")


def byte(name, prefix, bits=8):
    return Record(name, bits=bits, prefix=prefix, fields=(Field("value", lsb=0, width=bits - len(prefix)),))


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ((byte("a", "10"), byte("b", "101"), PADDING), "10 a is a prefix of 101 b"),
        ((byte("a", "10"), byte("b", "10"), PADDING), "10 a is a prefix of 10 b"),
        ((byte("a", "10"), byte("a", "11"), PADDING), "duplicate record name"),
        ((byte("a", "10"),), "padding record 'padding' not found"),
        ((byte("a", "10", bits=12), PADDING), "a: padding of 8 bits cannot fill"),
        ((byte("a", "10", bits=40), PADDING), "a: 40 bits exceed one word and are not a multiple of words"),
        ((byte("a", ""), PADDING), "a: invalid prefix"),
        ((byte("a", "1" * 13, bits=16), PADDING), "a: invalid prefix"),
        ((byte("padding", "10"),), "padding must have no fields"),
    ],
)
def test_ambiguous_frame_sets_are_refused(records, message):
    with pytest.raises(ValueError, match=message):
        FrameSet("set", records, padding="padding")


def test_encoder_refuses_frames_of_another_set():
    with pytest.raises(ValueError, match=r"aie\.mode0: unknown record event_pc"):
        MODE0.encode([(EVENT_PC, {"mask": 1, "pc": 0})])
    with pytest.raises(ValueError, match=r"sync\.cycles: unknown field"):
        MODE0.encode([(MODE0["sync"], {"cycles": 0})])
