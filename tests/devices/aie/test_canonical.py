"""What no trace unit writes: the reference on examples, the native decoder against it, captures that must be clean."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanescope
from effort import some
from lanescope.analysis import check
from lanescope.devices.aie.family import FAMILY
from lanescope.devices.aie.formats import encode
from lanescope.devices.aie.formats.canonical import NEVER, UNSEEN, departures
from lanescope.devices.aie.formats.encode import Frames
from lanescope.devices.aie.formats.layout import FRAME_SETS, decode_stream
from lanescope.devices.aie.formats.raw_frames import Packets, Words
from lanescope.families.options import resolve_options
from lanescope.wire import strategies

HEADER = encode.header(0, 1, 2, 1)
STATS = {NEVER: "aie_noncanonical_frame", UNSEEN: "aie_unseen_frame"}


def words_of(*frames, mode=0):
    """Start, and frames by name and values, as they are given."""
    made = [(FRAME_SETS[mode][name], values) for name, values in frames]
    raw = np.array([record.encode(values) for record, values in made], np.uint64)
    bits = np.array([record.bits for record, _ in made], np.uint8)
    first = encode.start_flow(816) if mode == 2 else encode.start(7, mode=mode)
    return encode.pack(Frames.join([first, Frames(raw, bits)]), mode=mode).tolist()


def single(slot, cycles=0):
    return ("single0" if cycles < 16 else "single1" if cycles < 1024 else "single2"), {"slot": slot, "cycles": cycles}


def repeat(n, name=None):
    return name or ("repeat0" if n < 16 else "repeat1"), {"repeats": n}


SYNC, PADDING = ("sync", {}), ("padding", {})


@pytest.mark.parametrize(
    ("frames", "grades"),
    [
        ([single(1), repeat(3), single(2, 20), single(2), repeat(1023), repeat(1023), repeat(7)], []),
        ([single(1), SYNC, single(1), repeat(3)], []),
        ([single(1, 5), single(1, 5), single(1)], []),
        ([("single1", {"slot": 1, "cycles": 15})], [NEVER]),
        ([("single2", {"slot": 1, "cycles": 1023})], [NEVER]),
        ([("multiple0", {"mask": 4, "cycles": 3})], [NEVER]),
        ([("multiple0", {"mask": 0, "cycles": 3})], [NEVER]),
        ([("multiple1", {"mask": 5, "cycles": 15})], [NEVER]),
        ([("multiple2", {"mask": 5, "cycles": 1023})], [UNSEEN]),
        ([("multiple2", {"mask": 5, "cycles": 15})], [NEVER]),
        ([single(1), single(1)], [NEVER]),
        ([single(1), repeat(3), single(1)], [NEVER]),
        ([single(1), repeat(0)], [NEVER]),
        ([single(1), repeat(15, "repeat1")], [NEVER]),
        ([single(1), repeat(15), repeat(15)], [NEVER]),
        ([single(1), repeat(932), repeat(1023)], [NEVER]),
        ([single(1), SYNC, repeat(3)], [NEVER]),
        ([single(1, 9), repeat(3)], [UNSEEN]),
        ([single(1), PADDING, single(2)], [NEVER]),
        ([single(1), single(2), single(3), PADDING, single(4)], [NEVER]),
    ],
    ids=str,
)
def test_frames_of_event_time_that_no_unit_writes(frames, grades):
    assert [grade for _, grade in departures(list(decode_stream(words_of(*frames))))] == grades


@pytest.mark.parametrize(
    ("mode", "frames", "grades"),
    [
        (1, [("event_pc", {"mask": 1, "pc": 4}), ("event_pc", {"mask": 1, "pc": 4}), repeat(2)], []),
        (1, [("event_pc", {"mask": 0, "pc": 4})], [NEVER]),
        (1, [("event_pc", {"mask": 1, "pc": 4}), repeat(2), repeat(2)], [NEVER]),
        (2, [("taken", {}), repeat(1), ("not_taken", {}), ("new_pc", {"pc": 480})], []),
        (2, [("taken", {}), ("filler0", {}), ("not_taken", {})], [NEVER]),
        (2, [("taken", {}), repeat(0)], [UNSEEN]),
    ],
    ids=str,
)
def test_frames_of_the_other_modes_that_no_unit_writes(mode, frames, grades):
    assert [grade for _, grade in departures(list(decode_stream(words_of(*frames, mode=mode))))] == grades


def told(content, path):
    """What the decoder counts, and what the reference does; None: packets are not those of the reference."""
    path.write_bytes(content)
    trace = lanescope.open(path, family="aie")
    counted = Counter()
    for row in trace.stats.rows():
        counted[row["name"]] += row["count"]
    if counted["aie_bad_header"] or counted["aie_resync"]:
        return None
    words = Words.of(np.frombuffer(content, np.uint8))
    packets, expected = Packets.of(words), Counter()
    for source in range(len(packets.headers)):
        frames = list(decode_stream(words.values[packets.payload(source)].tolist()))
        expected.update(STATS[grade] for _, grade in departures(frames))
    return {name: counted[name] for name in STATS.values() if counted[name]}, dict(expected)


@given(
    st.sampled_from([0, 0, 1, 2]).flatmap(lambda mode: st.tuples(st.just(mode), strategies.streams(FRAME_SETS[mode])))
)
@settings(max_examples=some(500))
def test_the_decoder_counts_what_the_reference_does_in_any_stream(tmp_path_factory, drawn):
    mode, words = drawn
    start = [0xF2000330] if mode == 2 else [0xF0000000 | mode << 24, 7]
    dump = encode.packets(HEADER, np.array([*start, *words], np.uint32)).astype("<u4").tobytes()
    counted = told(dump, tmp_path_factory.mktemp("aie") / "run.bin")
    assert counted is None or counted[0] == counted[1]


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_the_decoder_counts_what_the_reference_does_in_changed_captures(tmp_path, mode):
    """Packets of nothing but frames take another way through the decoder: one bit or byte of some is changed."""
    draw = np.random.default_rng(mode)
    options = resolve_options(FAMILY.sim_options, {"tiles": 2, "records": 150, "mode": mode}, what="the simulator")
    sound = np.frombuffer(next(iter(FAMILY.simulate(options, 5).files.values())), np.uint8)
    found = Counter()
    for _ in range(some(1500, 120)):
        content = sound.copy()
        at = 32 * draw.integers(len(content) // 32) + draw.integers(4, 32)
        content[at] = draw.choice([0xFE, 0xFF, content[at] ^ 1 << draw.integers(8), draw.integers(256)])
        counted = told(content.tobytes(), tmp_path / "run.bin")
        if counted is not None:
            assert counted[0] == counted[1]
            found.update(counted[0])
    assert found["aie_noncanonical_frame"] > 20


def test_a_frame_that_crosses_its_word_is_found_between_sound_ones(tmp_path):
    frames = [single(slot % 8, slot % 16) for slot in range(200)]
    words = words_of(*frames)
    for place in range(16, 40):
        for frame in (0x80, 0xA0, 0xC0, 0xD0, 0xD4, 0xD8):
            changed = [*words]
            changed[place] = changed[place] & ~0xFF | frame
            (tmp_path / "run.bin").write_bytes(encode.packets(HEADER, np.array(changed, np.uint32)).tobytes())
            names = lanescope.open(tmp_path / "run.bin", family="aie").stats["name"]
            assert "aie_frame_straddles_word" in names


@pytest.mark.parametrize("name", ["mode0_add_one_objfifo_r0", "mode1_mixed_r0", "mode2_mixed_r0"])
def test_hardware_writes_none_of_them(corpus, name):
    words = Words.of(np.fromfile(corpus / "aie" / f"{name}.bin", np.uint8))
    packets = Packets.of(words)
    for source in range(len(packets.headers)):
        frames = list(decode_stream(words.values[packets.payload(source)].tolist()))
        assert len(frames) > 20
        assert list(departures(frames)) == []


def test_packets_that_are_exchanged_show_at_their_borders(tmp_path):
    options = resolve_options(FAMILY.sim_options, {"tiles": 1, "records": 400, "zeros": 0}, what="the simulator")
    found = 0
    for seed in range(8):
        packets = np.frombuffer(next(iter(FAMILY.simulate(options, seed).files.values())), "<u4").reshape(-1, 8).copy()
        packets[[4, 5]] = packets[[5, 4]]
        (tmp_path / "run.bin").write_bytes(packets.tobytes())
        stats = set(lanescope.open(tmp_path / "run.bin", family="aie").stats["name"])
        found += bool(stats & set(STATS.values()))
    assert found >= 4


def test_units_that_end_apart_from_the_others_are_found_without_a_configuration(tmp_path):
    options = {"tiles": 4, "records": 100, "shared_stop": True, "zeros": 0}
    options = resolve_options(FAMILY.sim_options, options, what="the simulator")
    content = next(iter(FAMILY.simulate(options, 1).files.values()))
    words = np.frombuffer(content, "<u4").copy()
    (tmp_path / "run.bin").write_bytes(content)
    assert "aie_stop_mismatch" not in lanescope.open(tmp_path / "run.bin").stats["name"]
    stop = next(place for place in range(len(words)) if place % 8 and words[place] >> 26 == 0b110111)
    words[stop] += 9
    (tmp_path / "run.bin").write_bytes(words.tobytes())
    found = [one for one in check.run(lanescope.open(tmp_path / "run.bin")) if one.stat == "aie_stop_mismatch"]
    assert [(one.code, one.severity, one.count) for one in found] == [("LS305", "warning", 1)]


def started_together(words):
    """The same packets with Starts that hold nearly the same timer, as those of one broadcast do."""
    words = words.reshape(-1, 8).copy()
    seen = set()
    for packet in words:
        if packet[1] >> 24 == 0xF0:
            packet[1], packet[2] = 0xF0000000, 324217 + 2 * (len(seen) % 2)
            seen.add(int(packet[0]))
    return words


@pytest.mark.parametrize("tiles", [2, 3, 5])
def test_units_that_started_together_have_one_length(tiles, tmp_path):
    """Two units are enough: their timers show that one broadcast started both."""
    options = {"tiles": tiles, "records": 100, "shared_stop": True, "zeros": 0}
    options = resolve_options(FAMILY.sim_options, options, what="the simulator")
    packets = started_together(np.frombuffer(next(iter(FAMILY.simulate(options, 3).files.values())), "<u4"))
    path = tmp_path / "run.bin"

    def flagged(words):
        path.write_bytes(words.tobytes())
        trace = lanescope.open(path)
        return [row["track_id"] for row in trace.stats.rows() if row["name"] == "aie_length_mismatch"]

    assert flagged(packets) == []
    # Packets of different units come in any order.
    order = np.argsort(packets[:, 0], kind="stable")
    assert flagged(packets[order]) == []
    for cycles, count in ((1, 0), (3, 2 if tiles == 2 else 1), (9, 2 if tiles == 2 else 1)):
        changed = packets.copy()
        words = changed.reshape(-1)
        stop = next(place for place in range(len(words)) if place % 8 and words[place] >> 26 == 0b110111)
        words[stop] += cycles
        assert len(flagged(changed)) == count, cycles
    # Timers that ran apart prove nothing of two units.
    if tiles == 2:
        changed[0, 2] += 1000
        assert flagged(changed) == []


@pytest.mark.parametrize(("cycles", "is_over"), [(70, False), (2000, True)])
@pytest.mark.parametrize("config", [None, {"start": "BROADCAST_15", "stop": "BROADCAST_14"}])
def test_a_unit_without_times_has_no_more_cycles_than_the_others(tmp_path, cycles, is_over, config):
    """Event-PC frames tell the least number of cycles from Start to Stop; the memory tile counts all of them."""
    runs = encode.encode_runs(np.array([0, 1], np.uint8), np.array([900, 90]), stop=True, idle=9)
    timed = encode.packets(encode.header(3, 1, 1, 1), encode.pack(Frames.join([encode.start(90_000), runs])))
    words = words_of(("event_pc", {"mask": 1, "pc": 4}), ("stop", {"mask": 0, "cycles": cycles}), mode=1)
    words[1] = 90_002  # the timer of its Start
    counted = encode.packets(encode.header(0, 1, 2, 2), np.array(words, np.uint32))
    path = tmp_path / "run.bin"
    path.write_bytes(np.concatenate([timed, counted]).astype("<u4").tobytes())
    if config:
        tiles = [
            {"type": "memtile", "col": 1, "row": 1, "events": []},
            {"type": "core", "col": 1, "row": 2, "events": []},
        ]
        tiles[1]["mode"] = "event-pc"
        (tmp_path / "run.config.json").write_text(json.dumps({**config, "tiles": tiles}))
    trace = lanescope.open(path, family="aie")
    names = trace.tracks["name"].tolist()
    told = [names[row["track_id"]] for row in trace.stats.rows() if row["name"] == "aie_length_mismatch"]
    assert told == (["core (1, 2)"] if is_over else [])


def test_lengths_of_public_captures_agree(corpus, tmp_path):
    for name in ("mode0_add_one_objfifo_r0", "mode1_mixed_r0", "mode2_mixed_r0"):
        names = set(lanescope.open(corpus / "aie" / f"{name}.bin").stats["name"])
        assert not names & {"aie_length_mismatch", "aie_stop_mismatch"}
    words = np.fromfile(corpus / "aie" / "mode0_add_one_objfifo_r0.bin", "<u4")[:80].reshape(-1, 8)
    found = 0
    for lost in range(10):
        (tmp_path / "run.bin").write_bytes(np.delete(words, lost, axis=0).tobytes())
        found += "aie_length_mismatch" in lanescope.open(tmp_path / "run.bin", family="aie").stats["name"]
    assert found >= 4
