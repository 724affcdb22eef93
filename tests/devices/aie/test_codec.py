"""The fast codec against the reference one, round trips, and hostile bytes."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from effort import some
from lanescope.devices.aie.decoder import AieDecoder
from lanescope.devices.aie.family import FAMILY
from lanescope.devices.aie.formats import encode
from lanescope.devices.aie.formats.encode import Frames
from lanescope.devices.aie.formats.layout import FRAME_SETS, FRAMES, NO_FRAME, decode_stream
from lanescope.devices.aie.formats.raw_frames import Items
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
@settings(max_examples=some(500))
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
    assert segment["dur_cycles"] == int(edges[-1]) + idle
    assert segment["has_stop"]
    assert trace.accounting["lost"].tolist() == [0, 0]


def simulated(seed, mode):
    options = {option.name: option.default for option in FAMILY.sim_options}
    options |= {"tiles": 3, "records": 60, "overruns": 1, "runs": 2, "bad_headers": 0.1, "mode": mode}
    return next(iter(FAMILY.simulate(options, seed).files.values()))


modes = st.integers(0, 2)


@given(st.integers(0, 20), modes, st.lists(st.integers(0, 600), max_size=6), st.integers(1, 200))
@settings(max_examples=some(90))
def test_any_cut_gives_the_same_rows(tmp_path_factory, seed, mode, cuts, block):
    data = simulated(seed, mode)
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
    for name in ("aie_pc_events", "aie_program_flow"):
        ours, theirs = (sorted(map(repr, told(t, name))) for t in (small, whole))
        assert ours == theirs
    for name in ("gaps", "stats", "accounting", "coverage", "aie_segments"):
        ours, theirs = (sorted(map(repr, map(drop, rows(t, name)[name]))) for t in (small, whole))
        assert ours == theirs


def told(trace, table, *, first=False):
    """The rows of a detail table with those of their instants; of the first recording only with ``first``."""
    instants, parents = trace.instants.take(trace.details[table]["instant_id"]), trace.tracks["parent_id"].tolist()
    group = trace.details["aie_segments"]["track_id"].tolist()[0:1] if first else ()
    for instant, row in zip(instants.rows(), trace.details[table].rows(), strict=True):
        if first and parents[instant["track_id"]] not in group:
            continue
        yield {**row, "instant_id": 0, **{name: instant[name] for name in ("track_id", "ts", "name", "flags")}}


def reference_rows(payload, mode):
    """What one recording tells in mode 1 or 2, read off the declared layout, frame by frame."""
    rows, last, unseen, lost_word = [], None, 0, -1
    now = timer = 0
    is_begun = False

    def flush():
        nonlocal last
        if last is not None:
            rows.append(last)
        last = None

    for _, frame in decode_stream(payload):
        name = frame.error or frame.record.name
        value = frame.values
        if frame.word == lost_word or name in ("truncated", "padding", "filler0", "filler1"):
            continue
        if frame.error:
            flush()
            unseen = 255
        elif name == "start":
            flush()
            if value["restart"]:
                timer = value.get("timer", now + 1)
                now, unseen = max(timer, now), 255
            if mode == 2:
                kind = "restart" if is_begun else "start"
                rows.append([kind, now, value["pc"], 1, 16 if unseen else 0])
                unseen = 0
            is_begun = True
        elif name in ("repeat0", "repeat1"):
            if last is None:
                now, lost_word, unseen = now + value["repeats"], frame.word, 255
            else:
                last[3] += value["repeats"]
                now += value["repeats"]
        elif name == "sync":
            now += (1 << 18) if mode == 1 else 0
        elif name == "stop":
            flush()
            if mode == 2:
                rows.append([name, now + 1, 0, 1, 16 if unseen else 0])
            break
        else:
            flush()
            now += 1
            if mode == 1:
                last = [value["mask"], now, value["pc"], 1, unseen & value["mask"]]
                unseen &= ~value["mask"]
            else:
                count = value["is_wrapped"] << 28 | value["count"] if name == "loop" else value.get("pc", 0)
                last = [name, now, count, 1, 16 if unseen else 0]
                unseen = 0
    flush()
    return rows


def restarts_only(payload, mode):
    """Keep of the words that would be a Start only restarts of the same mode."""
    return [word for word in payload if word >> 27 != 0b11110 or word >> 24 == (0xF5 if mode == 1 else 0xF6)]


@pytest.mark.parametrize("mode", [1, 2])
@given(data=st.data())
@settings(max_examples=some(400))
def test_fast_rows_equal_the_reference(tmp_path_factory, mode, data):
    # Mostly sound frames, some of them damaged: else all is lost at once.
    content = data.draw(strategies.streams(FRAME_SETS[mode]) | words)
    stops = data.draw(st.booleans())
    content = [word for word in restarts_only(content, mode) if stops or word >> 26 != 0b110111]
    start = [0xF1000000, 0] if mode == 1 else [0xF2000330]
    payload = start + content
    payload += [0xFEFEFEFE if mode == 1 else 0x22222222] * (-len(payload) % 7)
    trace = trace_of(encode.packets(HEADERS[0], np.array(payload, np.uint32)).astype("<u4").tobytes(), tmp_path_factory)
    if mode == 2:
        found = [
            [
                row["kind"],
                row["ts"],
                (row["is_wrapped"] << 28 | row["trips"]) if row["kind"] == "loop" else row["pc"] or 0,
                row["count"],
                16 if row["flags"] else 0,
            ]
            for row in told(trace, "aie_program_flow", first=True)
        ]
        assert found == reference_rows(payload, mode)
        return
    names = trace.tracks["name"].tolist()
    frames = {}
    for row in told(trace, "aie_pc_events", first=True):
        slot = int(names[row["track_id"]].split()[1])
        frame = frames.setdefault((row["ts"], row["mask"], row["pc"], row["cycles"]), [0, 0])
        assert row["mask"] >> slot & 1
        frame[0] |= 1 << slot
        frame[1] |= (1 << slot) if row["flags"] else 0
    assert all(key[1] == seen for key, (seen, _) in frames.items())
    ours = [[mask, ts, pc, cycles, flags] for (ts, mask, pc, cycles), (_, flags) in frames.items()]
    assert ours == [row for row in reference_rows(payload, mode) if row[0]]


@given(st.data())
@settings(max_examples=some(200))
def test_any_bytes_are_accounted_for(tmp_path_factory, data):
    if data.draw(st.booleans()):
        content = data.draw(st.binary(max_size=400))
    else:
        content = bytearray(simulated(data.draw(st.integers(0, 5)), data.draw(modes)))
        for at in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=8)):
            content[at] ^= 1 << data.draw(st.integers(0, 7))
        content = bytes(content[: data.draw(st.integers(0, len(content)))])
    assume(content and not content.startswith(b"\x1f\x8b"))  # that is gzip, which is another matter
    trace = trace_of(content, tmp_path_factory)
    first, second = trace.accounting.rows()
    assert first["total"] == len(content)
    assert second["total"] * second["unit_bytes"] == first["decoded"]
    for row in (first, second):
        assert row["total"] == row["decoded"] + row["padding"] + row["lost"]
    assert (trace.slices.values("dur") >= 0).all()


@pytest.mark.parametrize(
    ("mode", "name"), [(mode, record.name) for mode, frame_set in FRAME_SETS.items() for record in frame_set.records]
)
def test_rows_that_only_others_have_seen_are_counted(tmp_path_factory, mode, name):
    """The declared status of a row and what the fast decoder counts are the same."""
    frame_set = FRAME_SETS[mode]
    start = {0: [0xF0000000, 0], 1: [0xF1000000, 0], 2: [0xF2000330]}[mode]
    event = {0: "single0", 1: "event_pc", 2: "taken"}[mode]
    values = {
        record: {field.name: field.default or 0 for field in frame_set[record].fields} for record in (event, name)
    } | {"event_pc": {"mask": 1, "pc": 4}}
    # A Repeat needs something to repeat.
    frames = [] if name == "start" else [(frame_set[record], values[record]) for record in (event, name)]
    payload = start + frame_set.encode(frames)
    payload += [0x22222222 if mode == 2 else 0xFEFEFEFE] * (-len(payload) % 7)
    trace = trace_of(encode.packets(HEADERS[0], np.array(payload, np.uint32)).astype("<u4").tobytes(), tmp_path_factory)
    counted = [row["count"] for row in trace.stats.rows() if row["name"] == "unverified_encoding"]
    assert counted == ([1] if frame_set[name].status == "published" else [])
    assert trace.accounting["lost"].tolist() == [0, 0]


@pytest.mark.parametrize("mode", FRAME_SETS)
def test_restarts_are_unconfirmed_but_in_the_mode_that_we_saw(tmp_path_factory, mode):
    start = [word | (mode << 24) for word in (0xF0000000, 0xF4000000)]
    payload = [start[0], *[0] * (mode < 2), start[1], *[9] * (mode < 2)]
    payload += [0x22222222 if mode == 2 else 0xFEFEFEFE] * (-len(payload) % 7)
    trace = trace_of(encode.packets(HEADERS[0], np.array(payload, np.uint32)).astype("<u4").tobytes(), tmp_path_factory)
    stats = {row["name"]: row["count"] for row in trace.stats.rows()}
    assert stats["aie_restart"] == 1
    assert ("unverified_encoding" in stats) == (mode != 1)
    assert trace.gaps["cause"].tolist() == ["overrun"]


def test_the_reserved_mode_is_lost_not_misread(tmp_path_factory):
    payload = [0xF3000000, *range(1, 7)]
    trace = trace_of(encode.packets(HEADERS[0], np.array(payload, np.uint32)).astype("<u4").tobytes(), tmp_path_factory)
    assert trace.accounting["lost"].tolist() == [0, 6]
    assert trace.gaps["cause"].tolist() == ["other_mode"]
    assert len(trace.slices) == 0
