"""Captures of real hardware (NPU1, AIE2), which others published with what their decoder makes of them.

Their expected files are compared after a projection: what their decoder leaves out or gets wrong, each with its reason.
"""

import json
from collections import defaultdict

import numpy as np
import pytest

import lanescope
from lanescope.devices.aie import encode
from lanescope.devices.aie.encode import Frames
from lanescope.devices.aie.records import Words
from lanescope.trace import Flag

#: Their kinds of module by packet type.
TYPES = {"0": "core", "3": "memtile"}
CAPTURES = ("mode0_add_one_objfifo_r0", "mode1_mixed_r0", "mode2_mixed_r0")


@pytest.fixture
def capture(corpus):
    return corpus / "aie" / "mode0_add_one_objfifo_r0.bin"


def frames_of(trace, header):
    """The frames of one source as their decoder names them."""
    rows = [row for row in trace.records["aie.frame"].rows() if row["header"] == header]
    commands = []
    for row in rows:
        name = row["name"]
        if name in ("filler", "stop"):
            # Left out by their decoder: it skips filler, and takes Stop for a frame without meaning.
            continue
        kind = name.capitalize()
        if name == "start":
            commands.append({"type": kind, "timer_value": row["timer"]})
        elif name.startswith("repeat"):
            commands.append({"type": kind, "repeats": row["repeats"]})
        elif name.startswith("single"):
            event = row["mask"].bit_length() - 1
            assert row["mask"] == 1 << event
            commands.append({"type": kind, "event": event, "cycles": row["cycles"]})
        else:
            bits = {f"event{slot}": slot for slot in range(8) if row["mask"] >> slot & 1}
            commands.append({"type": kind, "cycles": row["cycles"], **bits})
    return commands


def headers_of(trace):
    return {
        (str(row["packet_type"]), f"{row['row']},{row['col']}"): encode.header(
            row["packet_type"], row["col"], row["row"], row["packet_id"]
        )
        for row in trace.details["aie_segments"].rows()
    }


def test_frames_equal_theirs(corpus, capture):
    expected = json.loads(capture.with_suffix(".expected.json").read_text())["trace_types"]
    listed = expected.items() if isinstance(expected, dict) else ((str(i), v) for i, v in enumerate(expected))
    theirs = {(type_, place): commands for type_, tiles in listed for place, commands in tiles.items() if commands}
    trace = lanescope.open(capture)
    headers = headers_of(trace)
    assert set(theirs) == set(headers)
    for source, commands in theirs.items():
        ours = frames_of(trace, headers[source])
        assert [command["type"] for command in ours] == [command["type"] for command in commands]
        for mine, other in zip(ours, commands, strict=True):
            shared = mine.keys() & other.keys()
            assert "type" in shared
            assert {key: mine[key] for key in shared} == {key: other[key] for key in shared}


def test_spans_equal_theirs(capture):
    expected = json.loads((capture.parent / "mode0_add_one_objfifo_r0.perfetto_expected.json").read_text())
    trace = lanescope.open(capture)
    names, parents = trace.tracks["name"], trace.tracks["parent_id"]
    spans = defaultdict(list)
    for row in trace.slices.rows():
        lane = row["track_id"]
        spans[names[parents[lane]], names[lane]].append((row["ts"], row["dur"]))
    for place, slots in expected.items():
        module = f"{TYPES[place[0]]} (1, {place[2]})"
        last = max(ts + dur for (group, _), found in spans.items() if group == module for ts, dur in found)
        for slot, theirs in slots.items():
            # They end a span that is asserted in the last cycle of the stream one cycle early: the 64 cycles in which a
            # port moved 64 words become 63.
            ours = sorted(dur - (ts + dur == last) for ts, dur in spans[module, f"slot {slot}"])
            assert ours == sorted(theirs), (module, slot)


def test_both_tiles_measure_the_same(capture):
    segments = lanescope.open(capture).details["aie_segments"]
    assert segments["cycles"].tolist() == [16737, 16737]
    assert segments["is_stop_seen"].all()


def test_ports_ran_for_as_many_cycles_as_words_were_moved(capture):
    trace = lanescope.open(capture)
    names, parents = trace.tracks["name"], trace.tracks["parent_id"]
    busy = defaultdict(int)
    for row in trace.slices.rows():
        busy[names[parents[row["track_id"]]], names[row["track_id"]]] += row["dur"]
    ports = [("core (1, 2)", "slot 3"), ("core (1, 2)", "slot 4")]
    ports += [("memtile (1, 1)", f"slot {slot}") for slot in (0, 2, 3)]
    assert [busy[port] for port in ports] == [64] * 5


@pytest.mark.parametrize("name", CAPTURES)
def test_memory_tiles_of_all_captures(corpus, name):
    trace = lanescope.open(corpus / "aie" / f"{name}.bin")
    names, parents = trace.tracks["name"], trace.tracks["parent_id"]
    busy = defaultdict(int)
    for row in trace.slices.rows():
        if names[parents[row["track_id"]]].startswith("memtile"):
            busy[names[row["track_id"]]] += row["dur"]
    assert [busy[f"slot {slot}"] for slot in (0, 2, 3)] == [64, 64, 64]


@pytest.mark.parametrize("name", [*CAPTURES, "vector_scalar/trace_emu"])
def test_every_byte_is_accounted_for(corpus, name):
    path = corpus / "aie" / f"{name}.bin"
    trace = lanescope.open(path)
    rows = list(trace.accounting.rows())
    assert rows[0]["total"] == path.stat().st_size
    assert all(row["total"] == row["decoded"] + row["filler"] + row["lost"] for row in rows)


def test_the_clean_capture_lost_nothing(capture):
    trace = lanescope.open(capture)
    assert trace.accounting["lost"].tolist() == [0, 0]
    assert not {"data_loss", "error"} & set(trace.stats["severity"])
    assert set(np.unique(trace.slices["flags"])) <= {0, Flag.TRUNCATED}  # one level was still asserted at Stop


@pytest.mark.parametrize("name", CAPTURES)
def test_encoding_the_frames_again_gives_the_same_words(corpus, name):
    path = corpus / "aie" / f"{name}.bin"
    words = Words.of(np.fromfile(path, np.uint8)).values
    packets = words[: len(words) // 8 * 8].reshape(-1, 8)
    trace = lanescope.open(path)
    frame = trace.records["aie.frame"]
    modes = {row["packet_type"]: row["mode"] for row in trace.details["aie_segments"].rows()}
    tried = 0
    for header in np.unique(packets[:, 0]):
        if modes[int(header) >> 12 & 7] != 0:
            continue
        mine = np.flatnonzero(frame["header"] == header)
        frames = frame.take(mine)
        keep = frames["name"] != "filler"
        made = encode.pack(Frames(frames["raw"][keep].astype(np.uint64), frames["bits"][keep].astype(np.uint8)))
        assert (
            encode.packets(int(header), made)[:, 1:].ravel().tolist()
            == packets[packets[:, 0] == header, 1:].ravel().tolist()
        )
        tried += 1
    assert tried


@pytest.mark.parametrize("name", CAPTURES)
def test_encoding_the_states_again_gives_the_same_words(corpus, name):
    """From the event state of every cycle, not from the frames: the order of frames is the hardware's own."""
    path = corpus / "aie" / f"{name}.bin"
    words = Words.of(np.fromfile(path, np.uint8)).values
    packets = words[: len(words) // 8 * 8].reshape(-1, 8)
    trace = lanescope.open(path)
    names, parents = trace.tracks["name"].tolist(), trace.tracks["parent_id"].tolist()
    tried = 0
    for segment in trace.details["aie_segments"].rows():
        if segment["mode"] != 0:
            continue
        state = np.zeros(segment["cycles"] + 1, np.uint8)
        for row in trace.slices.rows():
            lane = row["track_id"]
            if parents[lane] == segment["track_id"]:
                state[row["ts"] : row["ts"] + row["dur"]] |= 1 << int(names[lane].split()[1])
        # Cycle 0 is Start itself; what is quiet at the end stands in Stop.
        runs = np.flatnonzero(np.diff(state[1:], prepend=-1, append=-1))
        mask, length = state[1:][runs[:-1]], np.diff(runs)
        quiet = int(length[-1]) if mask[-1] == 0 else 0
        if quiet:
            mask, length = mask[:-1], length[:-1]
        frames = Frames.join([encode.start(segment["start_timer"]), encode.encode_runs(mask, length, idle=quiet - 1)])
        header = encode.header(segment["packet_type"], segment["col"], segment["row"], segment["packet_id"])
        made = encode.packets(header, encode.pack(frames))
        assert made.ravel().tolist() == packets[packets[:, 0] == header].ravel().tolist()
        tried += 1
    assert tried


def test_other_modes_are_reported_not_misread(corpus):
    for name, count in (("mode1_mixed_r0", 171), ("mode2_mixed_r0", 20)):
        trace = lanescope.open(corpus / "aie" / f"{name}.bin")
        stats = dict(zip(trace.stats["name"].tolist(), trace.stats["count"].tolist(), strict=True))
        assert stats["aie_other_mode"] == count
        core = next(row["id"] for row in trace.tracks.rows() if row["name"].startswith("core"))
        lanes = {row["id"] for row in trace.tracks.rows() if row["parent_id"] == core}
        assert not lanes & set(trace.slices["track_id"].tolist())
        assert core in trace.gaps["track_id"].tolist(), "the whole tile is unknown"
