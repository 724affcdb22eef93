"""The fast codec against the reference one, round trips, and hostile bytes."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lanescope.devices.aie import encode
from lanescope.devices.aie.decode import AieDecoder
from lanescope.devices.aie.encode import Frames
from lanescope.devices.aie.family import FAMILY
from lanescope.devices.aie.layout import FRAME_SETS, FRAMES, NO_FRAME, decode_stream
from lanescope.devices.aie.records import Items
from lanescope.source import Capture
from lanescope.trace import Trace
from lanescope.wire import strategies

OPTIONS = {"config": None, "frequency": None}
HEADERS = (encode.header(0, 1, 2, 1), encode.header(3, 1, 1, 2))


def trace_of(data, tmp_path_factory, *, cuts=(), **options):
    path = tmp_path_factory.mktemp("aie") / "run.bin"
    path.write_bytes(data)
    with Capture(path) as capture:
        decoder = AieDecoder(capture, OPTIONS, **options)
        batches, edges = [], [0, *sorted(cuts), len(data)]
        for first, last in pairwise(edges):
            batches += decoder.feed(memoryview(data[first:last]))
        return Trace.concat(batches + decoder.finish())


def rows(trace, *tables):
    return {name: [{**row, "path": ""} for row in trace.tables()[name].rows()] for name in tables or trace.tables()}


words = st.lists(
    st.integers(0, 2**32 - 1)
    | st.sampled_from([0, 0xFEFEFEFE, 0x22222222, 0xF0000000, 0xF4000000, 0xF1000000, 0xF5000001, 0xF2000330])
    | st.sampled_from([0xF6000330, 0xF3000000, 0xA5A5A5A5, 0xDC000000, 0x11111111, 0xE3E3E3E3, 0xC4040123, 0x5000000A]),
    max_size=40,
)
streams = words | st.sampled_from([0, 1, 2]).flatmap(
    lambda mode: st.tuples(strategies.streams(FRAME_SETS[mode]), words).map(lambda parts: [*parts[0], *parts[1]])
)


@given(streams, st.integers(0, 3))
@settings(max_examples=500)
def test_the_fast_reader_equals_the_reference_on_any_words(payload, mode):
    items = Items.of(np.array(payload, np.uint32), mode)
    ours = [
        (int(w), int(b), int(n), (FRAMES + NO_FRAME)[f], int(raw))
        for w, b, n, f, raw in zip(items.word, items.bit, items.bits, items.frame, items.raw, strict=True)
    ]
    theirs = [
        (frame.word, frame.bit, frame.bits, frame.error or frame.record.name, frame.raw)
        for _, frame in decode_stream(payload, mode)
    ]
    assert ours == theirs


@pytest.mark.parametrize("mode", FRAME_SETS)
@given(data=st.data())
def test_packing_equals_the_reference(mode, data):
    frame_set = FRAME_SETS[mode]
    frames = data.draw(strategies.frames(frame_set))
    frames = [(record, values) for record, values in frames if record.name != "start"]
    raw = np.array([record.encode(values) for record, values in frames], np.uint64)
    bits = np.array([record.bits for record, _ in frames], np.uint8)
    ours = encode.pack(Frames(raw, bits), mode=mode).tolist()
    assert ours == frame_set.encode(frames, pad_words=7)


state = st.lists(
    st.tuples(st.integers(0, 255), st.integers(1, 40) | st.sampled_from([1023, 1024, 1 << 18, (1 << 18) + 1, 3 << 18])),
    max_size=25,
)


@given(state, st.integers(0, 3 << 18))
def test_states_survive_encoding_and_decoding(tmp_path_factory, runs, idle):
    mask, length = (np.array(column) for column in (list(zip(*runs, strict=True)) or [(), ()]))
    frames = Frames.join(
        [encode.start(7), encode.encode_runs(mask.astype(np.uint8), length.astype(np.int64), idle=idle)]
    )
    trace = trace_of(encode.packets(HEADERS[0], encode.pack(frames)).astype("<u4").tobytes(), tmp_path_factory)
    edges = 1 + np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    expected = set()
    for slot in range(8):
        on = np.zeros(len(mask) + 2, np.int8)
        on[1:-1] = mask.astype(np.int64) >> slot & 1
        turns = np.diff(on)
        first, last = edges[np.flatnonzero(turns == 1)], edges[np.flatnonzero(turns == -1)]
        expected |= {(slot, int(a), int(b - a)) for a, b in zip(first, last, strict=True)}
    names = trace.tracks["name"]
    found = {(int(names[r["track_id"]].split()[1]), r["ts"], r["dur"]) for r in trace.slices.rows()}
    assert found == expected
    (segment,) = trace.details["aie_segments"].rows()
    assert segment["cycles"] == int(edges[-1]) + idle
    assert segment["is_stop_seen"]
    assert trace.accounting["lost"].tolist() == [0, 0]


def simulated(seed):
    options = {option.name: option.default for option in FAMILY.sim_options}
    options |= {"tiles": 3, "records": 60, "overruns": 1, "runs": 2, "bad_headers": 0.1}
    return next(iter(FAMILY.simulate(options, seed).files.values()))


@given(st.integers(0, 20), st.lists(st.integers(0, 600), max_size=6), st.integers(1, 200))
@settings(max_examples=60)
def test_any_cut_gives_the_same_rows(tmp_path_factory, seed, cuts, block):
    data = simulated(seed)
    whole = trace_of(data, tmp_path_factory)
    cut = trace_of(data, tmp_path_factory, cuts=[min(cut, len(data)) for cut in cuts])
    assert rows(cut) == rows(whole)
    # Smaller blocks give batches elsewhere, so only the order of rows may differ.
    small = trace_of(data, tmp_path_factory, block_bytes=block)
    key = lambda row: (row["track_id"], row["ts"], row["name"])  # noqa: E731
    drop = lambda row: {name: value for name, value in row.items() if name != "id"}  # noqa: E731
    for name in ("slices", "instants"):
        ours, theirs = (sorted(map(drop, rows(t, name)[name]), key=key) for t in (small, whole))
        assert ours == theirs
    for name in ("gaps", "stats", "accounting", "coverage", "aie_segments"):
        ours, theirs = (sorted(map(repr, map(drop, rows(t, name)[name]))) for t in (small, whole))
        assert ours == theirs


@given(st.data())
@settings(max_examples=200)
def test_any_bytes_are_accounted_for(tmp_path_factory, data):
    if data.draw(st.booleans()):
        content = data.draw(st.binary(max_size=400))
    else:
        content = bytearray(simulated(data.draw(st.integers(0, 5))))
        for at in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=8)):
            content[at] ^= 1 << data.draw(st.integers(0, 7))
        content = bytes(content[: data.draw(st.integers(0, len(content)))])
    assume(content and not content.startswith(b"\x1f\x8b"))  # that is gzip, which is another matter
    trace = trace_of(content, tmp_path_factory)
    first, second = trace.accounting.rows()
    assert first["total"] == len(content)
    assert second["total"] * second["unit_bytes"] == first["decoded"]
    for row in (first, second):
        assert row["total"] == row["decoded"] + row["filler"] + row["lost"]
    assert (trace.slices["dur"] >= 0).all()
