"""The path of processors with AVX-512 says of any packets what the one of every processor says."""

import numpy as np
import pytest

import lanescope
from devices.aie import test_truth
from effort import some
from lanescope._native import core
from lanescope.devices.aie.formats import encode

pytestmark = pytest.mark.skipif(not core.AieTimeline.HAS_WIDE_PATH, reason="the processor has no AVX-512 with VBMI")
simulated = test_truth.simulated


class PlainTimeline(core.AieTimeline):
    """One that decodes as every processor can."""

    def __init__(self, tick_limit):
        super().__init__(tick_limit, is_plain=True)


def decoded(words, *, is_plain):
    """Everything that comes of words: slices, notes, the counts of the segments and of words."""
    scanner, timeline = core.AieScanner(), core.AieTimeline(1 << 60, is_plain=is_plain)
    none = np.empty(0, np.int64)
    entries = np.empty((2 * len(words) + 16, 4), np.int32)
    _, count = scanner.scan(words, True, 0, none, entries)
    rows = 8 * core.AieTimeline.SLICE_ROOM + 16 * len(words)  # Repeats may write more than frames do
    slices = [np.zeros(rows, dtype) for dtype in (np.int64, np.int64, np.uint32)]
    points = [
        np.zeros(core.AieTimeline.POINT_ROOM + 8 * len(words), t) for t in (np.int64, np.int64, np.uint32, np.uint32)
    ]
    events = np.zeros((core.AieTimeline.EVENT_ROOM + 16 * len(words), core.AIE_EVENT_COLUMNS), np.int64)
    done, written, _, noted = timeline.decode(words, entries[:count], 0, none, *slices, *points, events)
    assert done == count
    segments = np.empty((timeline.segment_count, core.AIE_SEGMENT_COLUMNS), np.int64)
    timeline.segments(segments)
    found = [column[:written].tobytes() for column in slices]
    return written, [*found, events[:noted].tobytes(), segments.tobytes(), timeline.words]


def judged_alike(words):
    """Return how many slices there are, which both paths made alike."""
    wide, plain = (decoded(words, is_plain=is_plain) for is_plain in (False, True))
    assert wide == plain
    return wide[0]


def dump(seed, **options):
    simulation = lanescope.simulate("aie", seed=seed, **{"tiles": 2, "records": 20_000, "zeros": 0} | options)
    data = next(iter(simulation.files.values()))
    return np.frombuffer(data[: len(data) // 4 * 4], "<u4").copy()


@pytest.mark.parametrize("seed", range(some(2, 20)))
@pytest.mark.parametrize("options", [{}, {"overruns": 20}, {"runs": 5}, {"stale": 30}, {"tiles": 9}])
def test_dumps_as_units_write_them(seed, options):
    assert judged_alike(dump(seed, **options)) > 5_000


@pytest.mark.parametrize("seed", range(some(10, 200)))
def test_dumps_with_changed_words(seed):
    words = dump(seed)
    random = np.random.default_rng(seed)
    at = random.choice(len(words), len(words) // 40, replace=False)
    kinds = random.integers(0, 5, len(at))
    words[at] = np.select(
        [kinds == 0, kinds == 1, kinds == 2, kinds == 3],
        [
            words[at] ^ (np.uint32(1) << random.integers(0, 32, len(at)).astype(np.uint32)),
            random.integers(0, 1 << 32, len(at), np.uint32),
            words[random.choice(len(words), len(at))],
            np.uint32(0xFEFEFEFE),
        ],
        words[at] << np.uint32(8) | np.uint32(0xFF),
    )
    judged_alike(words)


def packed(frames):
    """The payload words of frames, bytes each; a word is filled up where the next one has no room in it."""
    words, word = [], b""
    for frame in frames:
        if len(word) + len(frame) > 4:
            words.append(int.from_bytes(word.ljust(4, b"\xfe"), "big"))
            word = b""
        word += frame
    return [*words, int.from_bytes(word.ljust(4, b"\xfe"), "big")]


def of_one_unit(frames):
    """Whole packets of a unit that has begun: all slots, then these frames, then as many events as fill a packet."""
    words = [0xF0000000, 0, 0x10203040, 0x50607000, *[0x10203040] * 3, *packed(frames)]
    words += [0x11213141] * (-len(words) % 7 + 7)
    return encode.packets(encode.header(0, 1, 2, 1), np.array(words, np.uint32)).astype("<u4").ravel()


#: Single, multiple, and Repeat; with few cycles for their size, many, and the most.
FRAMES = [
    *(
        bytes.fromhex(text)
        for text in ["10", "1f", "20", "3f", "8404", "8410", "840f", "8bff", "a40400", "a403ff", "a7ffff"]
    ),
    *(
        bytes.fromhex(text)
        for text in ["c010", "c011", "c031", "c0ff", "c3ff", "d00c11", "d00c00", "d3ffff", "d40c0400"]
    ),
    *(bytes.fromhex(text) for text in ["d40c03ff", "d7ffffff", "d801", "d80f", "d810", "d820", "dbfe", "dbff"]),
    *(bytes.fromhex(text) for text in ["e0", "e1", "e5", "ef", "ff"]),
]


@pytest.mark.parametrize("seed", range(some(20, 400)))
def test_any_frames_beside_those_of_a_unit(seed):
    """Each packet of a unit with one or two frames in its midst that a unit may or may not write there."""
    random = np.random.default_rng(seed)
    usual = [bytes([slot << 4 | int(random.integers(1, 16))]) for slot in range(8)]
    for _ in range(20):
        frames = [usual[i] for i in random.integers(0, 8, 40)]
        for at in random.integers(0, 40, random.integers(1, 4)):
            frames[at] = FRAMES[random.integers(len(FRAMES))]
        assert judged_alike(of_one_unit(frames)) > 7


LARGEST, SHORT, LONG = b"\xdb\xff", b"\xe5", b"\xd9\x20"


@pytest.mark.parametrize("largest", range(5))
@pytest.mark.parametrize("rest", [(), (SHORT,), (LONG,), (SHORT, SHORT), (SHORT, LARGEST), (LONG, LARGEST), (b"\xe0",)])
def test_repeats_of_more_than_one_frame(largest, rest):
    """As a unit writes them, the largest first, and in other orders."""
    judged_alike(of_one_unit([b"\x10", *[LARGEST] * largest, *rest, *[b"\x35", b"\x21"] * 8]))


@pytest.mark.parametrize("seed", range(some(1, 5)))
@pytest.mark.parametrize("faults", test_truth.FAULTS)
def test_the_path_of_every_processor_gives_the_truth(simulated, monkeypatch, seed, faults):
    monkeypatch.setattr(core, "AieTimeline", PlainTimeline)
    test_truth.test_decoding_equals_the_truth(simulated, seed, faults)
