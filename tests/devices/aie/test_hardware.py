"""Captures of real hardware (NPU1, AIE2), which others published with what their decoder makes of them.

Their expected files are compared after a projection: what their decoder leaves out or gets wrong, each with its reason.
"""

import json
from collections import defaultdict

import numpy as np
import pytest

import lanescope
from lanescope.analysis import check
from lanescope.devices.aie.formats import encode
from lanescope.devices.aie.formats.encode import Frames
from lanescope.devices.aie.formats.layout import FILLERS, FLOW_KINDS
from lanescope.devices.aie.formats.raw_frames import Words
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
        if name in ("padding", "stop"):
            # Left out by their decoder: it skips padding, and takes Stop for a frame without meaning.
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
    assert segments["dur_cycles"].tolist() == [16737, 16737]
    assert segments["has_stop"].all()


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
    assert all(row["total"] == row["decoded"] + row["padding"] + row["lost"] for row in rows)


def test_the_clean_capture_lost_nothing(capture):
    trace = lanescope.open(capture)
    assert trace.accounting["lost"].tolist() == [0, 0]
    assert not {"data_loss", "error"} & set(trace.stats["severity"])
    assert set(np.unique(trace.slices["flags"])) <= {0, Flag.TRUNCATED}  # one level was still asserted at Stop


def core_rows(trace, table):
    """The core's rows of a detail table, with the time and lane of their instants."""
    instants, names = list(trace.instants.rows()), trace.tracks["name"].tolist()
    for row in trace.details[table].rows():
        instant = instants[row["instant_id"]]
        yield {**row, "ts": instant["ts"], "lane": names[instant["track_id"]]}


def test_mode_1_frames_equal_theirs(corpus):
    expected = json.loads((corpus / "aie" / "mode1_mixed_r0_core_expected.json").read_text())
    trace = lanescope.open(corpus / "aie" / "mode1_mixed_r0.bin")
    ours = []
    for row in trace.records["aie.frame"].rows():
        if row["header"] >> 12 & 7 != 0 or row["name"] in ("padding", "stop"):
            continue  # their decoder skips padding and throws Stop away
        if row["name"] == "start":
            ours.append({"type": "Start", "timer_value": row["timer"]})  # theirs does not tell a restart from a start
        elif row["name"] == "event_pc":
            ours.append({"type": "EventPC", "event_bits": row["mask"], "pc": row["pc"]})
        else:
            ours.append({"type": "Repeat", "count": row["repeats"]})
    assert ours == expected


def test_mode_1_tells_what_the_restart_lost(corpus):
    trace = lanescope.open(corpus / "aie" / "mode1_mixed_r0.bin")
    (gap,) = trace.gaps.rows()
    assert (gap["ts"], gap["dur"], gap["cause"], gap["first_offset"]) == (2800, 25, "overrun", 164)
    cycles = defaultdict(int)
    for row in core_rows(trace, "aie_pc_events"):
        cycles[row["lane"]] += row["cycles"]
    assert cycles["slot 3"] == 62, "the port moved 64 words"
    assert cycles["slot 6"] == 15, "the lock was released 16 times"
    segment = next(row for row in trace.details["aie_segments"].rows() if row["mode"] == 1)
    assert segment["restarts"] == 1
    assert not segment["is_lossless"]
    codes = {finding.code for finding in check.run(trace)}
    assert {"LS002", "LS104"} <= codes
    assert trace.accounting["lost"].tolist() == [0, 0]


def test_mode_1_program_counter_is_the_fetched_one(corpus):
    rows = list(core_rows(lanescope.open(corpus / "aie" / "mode1_mixed_r0.bin"), "aie_pc_events"))
    # Slot 5 watches the acquire request at 800, slot 6 the release at 832, slot 7 the stalls of both.
    assert {row["pc"] for row in rows if row["lane"] == "slot 5"} == {812}
    assert {row["pc"] for row in rows if row["lane"] == "slot 7"} == {816, 848}
    assert {row["pc"] for row in rows if row["lane"] == "slot 6"} == {844}


def test_mode_2_frames_equal_theirs(corpus):
    expected = json.loads((corpus / "aie" / "mode2_mixed_r0_core_expected.json").read_text())
    trace = lanescope.open(corpus / "aie" / "mode2_mixed_r0.bin")
    names = {"start": "Start", "new_pc": "New_PC", "taken": "E_atom", "not_taken": "N_atom"}
    ours = []
    for row in trace.details["aie_program_flow"].rows():
        value = {"start": {"anchor_pc": row["pc"]}, "new_pc": {"pc": row["pc"]}}.get(row["kind"], {})
        assert row["count"] == 1
        ours.append({"type": names[row["kind"]], **value})
    assert ours == expected
    stats = dict(zip(trace.stats["name"].tolist(), trace.stats["count"].tolist(), strict=True))
    assert stats == {"aie_missing_stop": 1}, "no frame of this capture is one that only others have seen"
    assert trace.accounting["lost"].tolist() == [0, 0]


def test_modes_1_and_2_make_up_no_time(corpus):
    for name in ("mode1_mixed_r0", "mode2_mixed_r0"):
        trace = lanescope.open(corpus / "aie" / f"{name}.bin")
        core = next(row for row in trace.details["aie_segments"].rows() if row["module"] == "core")
        assert core["dur_cycles"] is None
        assert core["track_id"] not in trace.coverage["track_id"].tolist()
        lanes = {row["id"] for row in trace.tracks.rows() if row["parent_id"] == core["track_id"]}
        assert not lanes & set(trace.slices["track_id"].tolist())
        told = [row for row in trace.instants.rows() if row["track_id"] in lanes and row["category"] == "core"]
        assert told
        assert {(row["ts_ticks"], row["quality"]) for row in told} == {(None, "estimated")}
        assert [row["ts"] for row in told] == sorted(row["ts"] for row in told)


def payloads(path):
    """Header -> payload words of a capture."""
    words = Words.of(np.fromfile(path, np.uint8)).values
    packets = words[: len(words) // 8 * 8].reshape(-1, 8)
    packets = packets[packets[:, 0] != 0]
    return {int(header): packets[packets[:, 0] == header, 1:].ravel() for header in np.unique(packets[:, 0])}


@pytest.mark.parametrize("name", CAPTURES)
def test_encoding_the_frames_again_gives_the_same_words(corpus, name):
    path = corpus / "aie" / f"{name}.bin"
    frame = lanescope.open(path).records["aie.frame"]
    for header, payload in payloads(path).items():
        frames = frame.take(np.flatnonzero((frame["header"] == header) & ~np.isin(frame["name"], FILLERS)))
        assert len(frames)
        made = encode.pack(Frames(frames["raw"].astype(np.uint64), frames["bits"].astype(np.uint8)))
        assert made.tolist() == payload.tolist()


def states(trace, segment):
    """The event state of each cycle of a recording in mode 0, uint8 [cycles + 1]; cycle 0 is Start itself."""
    names, parents = trace.tracks["name"].tolist(), trace.tracks["parent_id"].tolist()
    state = np.zeros(segment["dur_cycles"] + 1, np.uint8)
    for row in trace.slices.rows():
        lane = row["track_id"]
        if parents[lane] == segment["track_id"]:
            state[row["ts"] : row["ts"] + row["dur"]] |= 1 << int(names[lane].split()[1])
    return state


@pytest.mark.parametrize("name", CAPTURES)
def test_encoding_the_states_again_gives_the_same_words(corpus, name):
    """From the events of every cycle, not from the frames: the order of frames is the hardware's own."""
    path = corpus / "aie" / f"{name}.bin"
    trace = lanescope.open(path)
    words = payloads(path)
    for segment in trace.details["aie_segments"].rows():
        header = encode.header(segment["packet_type"], segment["col"], segment["row"], segment["packet_id"])
        if segment["mode"] == 0:
            parts = [encode.start(segment["start_timer"]), encode_states(states(trace, segment))]
        elif segment["mode"] == 1:
            parts = encode_pc_cycles(trace, segment)
        else:
            parts = [encode_rows(trace)]
        assert encode.pack(Frames.join(parts)).tolist() == words[header].tolist()


def encode_states(state):
    runs = np.flatnonzero(np.diff(state[1:].astype(int), prepend=-1, append=-1))
    mask, length = state[1:][runs[:-1]], np.diff(runs)
    quiet = int(length[-1]) if mask[-1] == 0 else 0
    if quiet:  # what is quiet at the end stands in Stop
        mask, length = mask[:-1], length[:-1]
    return encode.encode_runs(mask, length, idle=quiet - 1)


def encode_pc_cycles(trace, segment):
    """From one (mask, address) a cycle with events, before and after the restart."""
    (gap,) = trace.gaps.rows()
    restart = gap["ts"] + gap["dur"]
    cycles = {}
    for row in core_rows(trace, "aie_pc_events"):
        for cycle in range(row["ts"], row["ts"] + row["cycles"]):
            assert cycles.setdefault(cycle, (row["mask"], row["pc"])) == (row["mask"], row["pc"])
    stop = next(
        row for row in trace.records["aie.frame"].rows() if row["name"] == "stop" and row["header"] >> 12 & 7 == 0
    )
    parts = []
    for is_again in (False, True):
        told = [what for cycle, what in sorted(cycles.items()) if (cycle > restart) == is_again]
        masks, pcs = np.array(told).T
        timer = restart if is_again else segment["start_timer"]
        parts.append(encode.start(timer, restart=is_again, mode=1))
        parts.append(encode.encode_pc_runs(masks, pcs, np.ones(len(told)), stop=is_again, idle=stop["cycles"]))
    return parts


def encode_rows(trace):
    rows = list(trace.details["aie_program_flow"].rows())
    kinds = [FLOW_KINDS.index(row["kind"]) for row in rows]
    return encode.encode_flow(
        np.array(kinds), np.array([row["pc"] or 0 for row in rows]), np.array([row["count"] for row in rows])
    )
