"""Kernel invocations, labels of slots, alignment of tiles: against a walk over cycles."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanescope
from devices.aie.recordings import Recordings
from effort import some
from lanescope.devices.aie.decoder import AieDecoder
from lanescope.devices.aie.formats import encode
from lanescope.devices.aie.formats.encode import Frames
from lanescope.devices.aie.interpret import invocations
from lanescope.io import parquet, perfetto
from lanescope.source import Capture
from lanescope.trace import Flag, Trace

OPTIONS = {"config": None, "mlir": None, "column_shift": None, "frequency": None}
HEADER = encode.header(0, 1, 2, 1)
EVENTS = ["INSTR_VECTOR", "INSTR_EVENT_0", "LOCK_STALL", "INSTR_EVENT_1"]
VECTOR, BEGIN, END = 1, 2, 8


def frames_of(runs, *, stop=True, idle=5, timer=100):
    """Frames of a recording: runs of (mask, cycles), None for a restart with lost frames."""
    parts, at, pending = [encode.start(timer)], 0, []

    def flush(**options):
        if pending or options.get("stop"):
            mask, length = zip(*pending, strict=True) if pending else ((), ())
            parts.append(encode.encode_runs(np.array(mask, np.uint8), np.array(length, np.int64), **options))
        pending.clear()

    for mask, cycles in runs:
        if mask is None:
            flush(stop=False)
            at += cycles
            parts.append(encode.start(at, restart=True))
        else:
            pending.append((mask, cycles))
            at += cycles
    flush(stop=stop, idle=idle if stop else 0)
    return Frames.join(parts)


def dump(runs, header=HEADER, **options):
    return encode.packets(header, encode.pack(frames_of(runs, **options))).ravel()


def opened(tmp_path, words, *, events=EVENTS, tiles=None, cuts=(), block_bytes=1 << 20, **more):
    path = tmp_path / "run.bin"
    path.write_bytes(words.astype("<u4").tobytes())
    tiles = tiles or [{"type": "core", "col": 1, "row": 2, "events": events}]
    (tmp_path / "run.config.json").write_text(json.dumps({"tiles": tiles, **more}))
    data = path.read_bytes()
    with Capture(path) as capture:
        decoder = AieDecoder(capture, OPTIONS, block_bytes=block_bytes)
        batches, edges = [], [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
        for first, last in pairwise(edges):
            batches += decoder.feed(memoryview(data[first:last]))
        return Trace.concat(batches + decoder.finish())


def rows(trace):
    """What the trace says: begin, duration, is it complete, vector cycles."""
    slices = list(trace.slices.rows())
    found = []
    for row in trace.details["aie_invocations"].rows():
        about = slices[row["slice_id"]]
        assert (about["name"], about["category"]) == ("kernel", "invocation")
        assert trace.tracks["name"][about["track_id"]] == "kernel"
        if row["is_complete"]:
            assert row["cycles"] == about["dur_ticks"]
            assert row["vector_share"] == row["vector_cycles"] / row["cycles"]
        else:
            assert (row["cycles"], row["vector_cycles"], row["vector_share"]) == (None, None, None)
        assert bool(about["flags"] & Flag.TRUNCATED) == (not row["is_complete"])
        found.append((about["ts_ticks"], about["dur_ticks"], row["is_complete"], row["vector_cycles"]))
    return sorted(found)


def walked(runs, idle=5, stop=True):
    """The same, cycle by cycle; a gap begins with the restart's first unknown cycle."""
    found, unpaired = [], 0
    at, begin, vector = 1, None, 0
    was = 0
    for mask, cycles in runs:
        if mask is None:
            if begin is not None:
                found.append((begin, at - begin, False, None))
            begin, was = None, 0
            at += cycles
            continue
        for _ in range(cycles):
            if mask & END:
                if begin is not None and not was & END:
                    found.append((begin, at - begin, True, vector))
                    begin = None
                else:
                    unpaired += 1
            if mask & BEGIN:
                if begin is None and not was & BEGIN:
                    begin, vector = at, 0
                else:
                    unpaired += 1
            vector += bool(mask & VECTOR)
            was = mask
            at += 1
    last = at + (idle if stop else 0)
    if begin is not None:
        found.append((begin, last - begin, False, None))
    return sorted(found), unpaired


SHORT = st.tuples(
    st.sampled_from([0, 0, VECTOR, VECTOR, BEGIN, END, BEGIN | VECTOR, END | VECTOR, 4, BEGIN | END, 15]),
    st.sampled_from([1, 1, 1, 2, 7, 40]),
)
RUNS = st.lists(SHORT, max_size=60)
CALLS = st.lists(
    st.tuples(st.integers(0, 9), st.lists(SHORT.filter(lambda run: not run[0] & (BEGIN | END)), max_size=4)),
    max_size=12,
).map(lambda calls: [run for gap, body in calls for run in [(0, gap + 1), (BEGIN, 1), *body, (END, 1)]])


@given(RUNS | CALLS)
@settings(max_examples=some(150))
def test_invocations_equal_a_walk_over_cycles(tmp_path_factory, runs):
    trace = opened(tmp_path_factory.mktemp("aie"), dump(runs))
    expected, unpaired = walked(runs)
    assert rows(trace) == expected
    stats = {row["name"]: row["count"] for row in trace.stats.rows()}
    assert stats.get("aie_unpaired_event", 0) == unpaired
    assert stats.get("aie_truncated_invocation", 0) == sum(not complete for _, _, complete, _ in expected)
    assert trace.details["aie_invocations"]["ordinal"].tolist() == list(range(1, len(expected) + 1))


@given(CALLS, st.lists(st.integers(0, 400), max_size=5), st.integers(1, 90), st.integers(2, 50))
@settings(max_examples=some(60))
def test_cuts_and_waiting_change_nothing(tmp_path_factory, runs, cuts, block, batch):
    folder = tmp_path_factory.mktemp("aie")
    whole = rows(opened(folder, dump(runs)))
    assert rows(opened(folder, dump(runs), cuts=cuts, block_bytes=block)) == whole
    # Slices come in small batches, so that what is known has to wait for what is not.
    taken = invocations.Invocations.take

    def in_batches(self, begin, duration, tag):
        for first in range(0, len(tag), batch):
            part = slice(first, first + batch)
            taken(self, begin[part], duration[part], tag[part])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(invocations.Invocations, "take", in_batches)
        assert rows(opened(folder, dump(runs))) == whole


def test_many_slices_do_not_wait_for_ever(tmp_path, monkeypatch):
    runs = [run for _ in range(300) for run in ((BEGIN, 1), (0, 3), (END, 1), (0, 2))]
    whole = rows(opened(tmp_path, dump(runs)))
    assert len(whole) == 300
    monkeypatch.setattr(invocations, "_WAITING", 20)
    most = 0
    settle = invocations.Invocations._finalize

    def watched(self, recording, up_to=None):
        nonlocal most
        settle(self, recording, up_to)
        most = max(most, recording.waiting())

    taken = invocations.Invocations.take

    def in_batches(self, begin, duration, tag):
        for first in range(0, len(tag), 10):
            taken(self, begin[first : first + 10], duration[first : first + 10], tag[first : first + 10])
            for recording in self._recordings.values():
                recording.end = None  # the last of its slices are still to come
            self.settle()

    monkeypatch.setattr(invocations.Invocations, "_finalize", watched)
    monkeypatch.setattr(invocations.Invocations, "take", in_batches)
    # INSTR_VECTOR is watched and never seen: nothing would be known before the end.
    assert rows(opened(tmp_path, dump(runs))) == whole
    assert 0 < most < 40


def test_an_overrun_cuts_an_invocation(tmp_path):
    runs = [(BEGIN, 1), (0, 9), (END, 1), (0, 4), (BEGIN, 1), (VECTOR, 5), (None, 50), (0, 3), (END, 1), (BEGIN, 1)]
    runs += [(VECTOR, 4), (END, 1), (0, 8), (BEGIN, 1), (0, 3)]
    trace = opened(tmp_path, dump(runs))
    gap = next(row for row in trace.gaps.rows() if row["cause"] == "overrun")
    complete, cut, after, last = rows(trace)
    assert complete == (1, 10, True, 0)
    assert cut == (16, gap["ts"] - 16, False, None)
    assert after[1:] == (5, True, 4)
    segment = next(trace.details["aie_segments"].rows())
    assert last[0] + last[1] == segment["dur_cycles"]
    assert not last[2]


def test_without_the_events_there_is_no_lane(tmp_path):
    runs = [(BEGIN, 1), (0, 9), (END, 1)]
    for events in (["INSTR_VECTOR", "INSTR_EVENT_0"], []):
        trace = opened(tmp_path, dump(runs), events=events)
        assert "kernel" not in trace.tracks["name"].tolist()
        assert len(trace.details["aie_invocations"]) == 0
    trace = opened(tmp_path, dump(runs), events=["NONE", "INSTR_EVENT_0", "NONE", "INSTR_EVENT_1"])
    (row,) = trace.details["aie_invocations"].rows()
    assert (row["cycles"], row["vector_cycles"], row["vector_share"]) == (10, None, None)


def test_times_follow_the_frequency(tmp_path):
    runs = [(BEGIN, 1), (0, 999), (END, 1)]
    trace = opened(tmp_path, dump(runs), frequency_hz=2_000_000_000)
    (row,) = trace.slices.where(trace.slices["name"] == "kernel").rows()
    assert (row["ts"], row["dur"], row["ts_ticks"], row["dur_ticks"]) == (0, 500, 1, 1000)
    assert trace.tracks["sort_key"][row["track_id"]] < 0, "it stands above the slots"


def test_slots_say_what_they_watch(tmp_path):
    tile = {"type": "core", "col": 1, "row": 2, "events": ["PORT_RUNNING_0", "INSTR_VECTOR", "COMBO_EVENT_0", "NONE"]}
    trace = opened(tmp_path, dump([(15, 1), (0, 1)]), tiles=[tile | {"ports": {"0": "DMA:1 slave"}}])
    found = [
        (row["slot"], row["event"], row["event_name"], row["kind"], row["port"])
        for row in trace.details["aie_slots"].rows()
    ]
    assert found == [
        (0, 75, "PORT_RUNNING_0", "level", "DMA:1 slave"),
        (1, 37, "INSTR_VECTOR", "pulse", ""),
        (2, 9, "COMBO_EVENT_0", "unknown", ""),
        (3, 0, "NONE", "unknown", ""),
    ]
    names = trace.tracks["name"]
    lanes = trace.details["aie_slots"]["track_id"]
    assert names[lanes].tolist() == ["PORT_RUNNING_0 (DMA:1 slave)", "INSTR_VECTOR", "COMBO_EVENT_0", "slot 3"]


def test_lanes_of_one_kind_stand_together(tmp_path):
    watched = ["PORT_RUNNING_0", "LOCK_STALL", "INSTR_LOCK_ACQUIRE_REQ", "INSTR_EVENT_1", "MEMORY_STALL", "TRUE"]
    trace = opened(tmp_path, dump([(63, 1), (0, 1)]), events=[*watched, "INSTR_EVENT_0", "INSTR_VECTOR"])
    lanes = sorted((row["sort_key"], row["name"]) for row in trace.tracks.rows() if row["kind"] == "lane")
    assert [name for _, name in lanes] == [
        "kernel",
        *("INSTR_EVENT_1", "INSTR_EVENT_0", "INSTR_VECTOR"),
        *("LOCK_STALL", "MEMORY_STALL"),
        "INSTR_LOCK_ACQUIRE_REQ",
        "PORT_RUNNING_0",
        "TRUE",
        "trace",
    ]


def test_slots_without_a_configuration(tmp_path):
    path = tmp_path / "run.bin"
    path.write_bytes(dump([(3, 1), (0, 1)]).astype("<u4").tobytes())
    table = lanescope.open(path, family="aie").details["aie_slots"]
    assert [(row["event"], row["event_name"], row["kind"]) for row in table.rows()] == [(None, "", "unknown")] * 2


# --- alignment ----------------------------------------------------------------------------------------------------

TWO = [
    {"type": "core", "col": 1, "row": 2, "events": ["TRUE"]},
    {"type": "memtile", "col": 1, "row": 1, "events": ["TRUE"]},
]
SHARED = {"start": "BROADCAST_15", "stop": "BROADCAST_14"}


def two(first=(), second=(), **options):
    memtile = encode.header(3, 1, 1, 2)
    parts = [
        dump([(1, 4), (0, 9), *first], timer=1000),
        dump([(1, 7), (0, 6), *second], memtile, timer=options.pop("timer", 998), **options),
    ]
    return np.concatenate(parts)


def alignment(trace):
    names = trace.tracks["name"]
    return {names[row["track_id"]]: row for row in trace.details["aie_alignment"].rows()}


def test_tiles_that_share_broadcasts_agree(tmp_path):
    trace = opened(tmp_path, two(), tiles=TWO, **SHARED)
    found = alignment(trace)
    core, memtile = found["core (1, 2)"], found["memtile (1, 1)"]
    assert (core["is_reference"], memtile["is_reference"]) == (True, False)
    assert (core["start_skew_cycles"], memtile["start_skew_cycles"]) == (0, -2)
    assert (core["dur_skew_cycles"], memtile["dur_skew_cycles"]) == (0, 0)
    assert core["is_aligned"] is True
    assert memtile["is_aligned"] is True
    assert (memtile["start_event"], memtile["stop_event"]) == ("BROADCAST_15", "BROADCAST_14")
    stats = [(row["name"], row["count"], trace.tracks["name"][row["track_id"]]) for row in trace.stats.rows()]
    assert stats == [("aie_start_skew", 2, "memtile (1, 1)")]


def test_tiles_that_disagree_are_told(tmp_path):
    trace = opened(tmp_path, two(second=[(0, 3)]), tiles=TWO, **SHARED)
    found = alignment(trace)
    assert found["memtile (1, 1)"]["dur_skew_cycles"] == 3
    assert found["memtile (1, 1)"]["is_aligned"] is False
    (stat,) = [row for row in trace.stats.rows() if row["name"] == "aie_broadcast_mismatch"]
    assert (stat["count"], trace.tracks["name"][stat["track_id"]]) == (1, "memtile (1, 1)")


def test_what_is_not_known_is_not_judged(tmp_path):
    # Nobody says what started and stopped them.
    found = alignment(opened(tmp_path, two(second=[(0, 3)]), tiles=TWO))
    assert found["memtile (1, 1)"]["is_aligned"] is None
    assert found["memtile (1, 1)"]["dur_skew_cycles"] == 3
    # Without a Stop its length is unknown.
    found = alignment(opened(tmp_path, two(stop=False), tiles=TWO, **SHARED))
    assert found["memtile (1, 1)"]["dur_skew_cycles"] is None
    # They start on different broadcasts, or their timers are reset by something else.
    tiles = [TWO[0], TWO[1] | {"start": "BROADCAST_3"}]
    found = alignment(opened(tmp_path, two(second=[(0, 3)]), tiles=tiles, **SHARED))
    assert all(row["is_reference"] for row in found.values())
    tiles = [TWO[0], TWO[1] | {"reset": "TRUE"}]
    assert alignment(opened(tmp_path, two(), tiles=tiles, **SHARED))["memtile (1, 1)"]["is_aligned"] is False


@pytest.mark.parametrize(("name", "skew"), [("mode0_add_one_objfifo_r0", 2), ("mode1_mixed_r0", 2)])
def test_the_residual_skew_of_hardware(corpus, name, skew):
    """Both captures show the same two cycles, whatever the timers read."""
    found = alignment(lanescope.open(corpus / "aie" / f"{name}.bin"))
    assert found["core (1, 2)"]["start_skew_cycles"] - found["memtile (1, 1)"]["start_skew_cycles"] == skew


def test_hardware_tiles_agree(corpus, tmp_path):
    words = np.frombuffer((corpus / "aie/mode0_add_one_objfifo_r0.bin").read_bytes(), "<u4")
    found = alignment(opened(tmp_path, words, tiles=TWO, **SHARED))
    assert [row["dur_skew_cycles"] for row in found.values()] == [0, 0]
    assert all(row["is_aligned"] for row in found.values())


# --- on the way out -----------------------------------------------------------------------------------------------


def test_viewers_get_cycles_and_share(tmp_path, trace_processor):
    runs = [(0, 4), (BEGIN, 1), (VECTOR, 5), (0, 4), (END, 1), (0, 3), (BEGIN, 1), (0, 2)]
    trace = opened(tmp_path, dump(runs))
    perfetto.write(trace, tmp_path / "out.pftrace")
    (found,) = trace_processor(
        tmp_path / "out.pftrace",
        "select s.dur, t.name lane, extract_arg(s.arg_set_id, 'debug.cycles') cycles,"
        " extract_arg(s.arg_set_id, 'debug.vector_share') share from slice s join track t on s.track_id = t.id"
        " where s.name = 'kernel' order by ts",
    )
    assert [(row["dur"], row["cycles"], row["share"]) for row in found] == [(10, 10, 0.5), (8, None, None)]


def test_parquet_keeps_the_tables(tmp_path):
    trace = opened(tmp_path, dump([(BEGIN, 1), (VECTOR, 5), (END, 1), (BEGIN, 1)]))
    parquet.write([trace], tmp_path / "out.parquet")
    again = lanescope.open(tmp_path / "out.parquet")
    for name in ("aie_invocations", "aie_slots", "aie_alignment"):
        assert list(again.details[name].rows()) == list(trace.details[name].rows())


WORDS = st.lists(
    st.integers(0, 2**32 - 1)
    | st.sampled_from(
        [0xF0000000, 0xF4000000, 7, 90, 0xFEFEFEFE, 0xDC000010, 0x10FEFEFE, 0x30FEFEFE, 0xE5103001, 0xFF101130]
    ),
    max_size=60,
)


@given(WORDS, st.lists(st.integers(0, 300), max_size=3))
@settings(max_examples=some(200))
def test_any_stream_gives_invocations_that_make_sense(tmp_path_factory, payload, cuts):
    words = encode.packets(HEADER, np.array([0xF0000000, 5, *payload], np.uint32)).ravel()
    folder = tmp_path_factory.mktemp("aie")
    trace = opened(folder, words)
    found = rows(trace)
    recordings = Recordings(trace)
    lanes = {}
    for row in trace.slices.rows():
        if row["name"] == "kernel":
            assert row["dur_ticks"] >= (row["flags"] == 0)
            assert row["ts_ticks"] >= lanes.get(row["track_id"], 0), "they follow each other"
            lanes[row["track_id"]] = row["ts_ticks"] + row["dur_ticks"]
            recording = recordings.rows[recordings.of(row["track_id"], row["ts"])]
            assert lanes[row["track_id"]] <= recording["begin_cycles"] + recording["dur_cycles"]
    for row in trace.details["aie_invocations"].rows():
        assert row["vector_share"] is None or 0 <= row["vector_share"] <= 1
    assert rows(opened(folder, words, cuts=cuts, block_bytes=33)) == found


def test_broadcasts_align_tiles_up_to_the_error_that_is_given(tmp_path):
    trace = opened(tmp_path, two(), tiles=TWO, **SHARED)
    (row,) = trace.align().table().rows()
    assert (row["first"], row["second"], row["status"]) == ("core (1, 2)", "memtile (1, 1)", "unknown")
    assert row["detail"] == "no reading has a stated error (of 1): use --reading-error"
    (row,) = trace.align(reading_error=4).table().rows()
    assert (row["status"], row["least"], row["most"]) == ("holds", -4, 4)
    placed = trace.align(reading_error=4).place()  # one cycle more for what rates add until the last record
    assert [name for name in placed.tracks.values("name").tolist() if "±" in name] == ["memtile (1, 1) (±5 cycles)"]
    (row,) = opened(tmp_path, two(), tiles=[*TWO]).align(reading_error=4).table().rows()
    assert (row["status"], row["detail"].split(":")[0]) == ("unknown", "decode with the configuration of the design")
