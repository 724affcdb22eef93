"""Traces as other tools write them, read by us and by Perfetto's own trace processor."""

from __future__ import annotations

import json
import sys
from collections import Counter

import pytest
import zstandard

import lanescope
from effort import EFFORT
from foreign.perfetto import by_bindings
from foreign.perfetto.made import (
    BEGIN,
    CLEARED,
    COUNTER,
    END,
    INSTANT,
    NEEDS,
    Maker,
    flows_of,
    same_as_perfetto,
    samples_of,
    slices_of,
    stats_of,
)
from lanescope.foreign.perfetto.schema import STATS
from lanescope.testing import assert_accounted, assert_consistent
from lanescope.trace.schema import Flag


@pytest.fixture
def check(tmp_path, request):
    """Read a trace, sound and without losses; beyond quick efforts compare it with Perfetto's reading, too."""
    query = None if EFFORT == "quick" else request.getfixturevalue("trace_processor")

    def run(maker, **options):
        trace = maker.read(tmp_path, **options)
        assert_consistent(trace)
        assert_accounted(trace, lost=0)
        by_bindings.same(trace, maker.content(**options))
        if query is not None:
            same_as_perfetto(trace, maker.content(**options), query, tmp_path)
        return trace

    return run


# --- the SDK: texts by ids, an incremental clock, defaults -----------------------------------------------------------


def sdk(steps: int = 30) -> Maker:
    made = Maker()
    made.process(1, 77, "app")
    made.thread(2, 77, 78, "worker")
    counter = made.track(3, "depth", parent_uuid=1).counter
    counter.unit = 2
    for sequence in (5, 6):
        start = made.packet(sequence, flags=CLEARED)
        start.trace_packet_defaults.timestamp_clock_id = 64
        start.trace_packet_defaults.track_event_defaults.track_uuid = 2 if sequence == 5 else 9
        start.trace_packet_defaults.track_event_defaults.extra_counter_track_uuids.append(3)
        made.snapshot(sequence, (64, 1_000_000), (6, 1_000_000), incremental=(64,))
        known: set[int] = set()
        for number in range(steps):
            packet = made.packet(sequence, 7 + number, NEEDS)
            event = packet.track_event
            event.type = (BEGIN, BEGIN, END, END)[number % 4]
            if event.type == BEGIN:
                event.name_iid, iid = 1 + number % 3, 1 + number % 3
                event.category_iids.extend([1, 2] if number % 3 else [1])
                if iid not in known:
                    known.add(iid)
                    packet.interned_data.event_names.add(iid=iid, name=f"name {sequence} {iid}")
                if number == 0:
                    packet.interned_data.event_categories.add(iid=1, name="gpu")
                    packet.interned_data.event_categories.add(iid=2, name="cpu")
                    packet.interned_data.debug_annotation_names.add(iid=1, name="bytes")
                    packet.interned_data.debug_annotation_string_values.add(iid=1, str=b"some text")
                event.debug_annotations.add(name_iid=1, uint_value=2**64 - 1)
                event.extra_counter_values.append(number)
        made.packet(sequence, 10, NEEDS).track_event.type = INSTANT
    lane = made.track(9, "late", parent_uuid=1)  # behind its events
    lane.sibling_order_rank = 3
    return made


@pytest.mark.parametrize("compressed", [False, True])
def test_texts_by_id_incremental_clocks_and_defaults(check, compressed):
    trace = check(sdk(), compressed=compressed)
    assert len(trace.slices) == 2 * 16
    tree = {row["name"]: row["parent_id"] for row in trace.tracks.rows()}
    ids = {row["name"]: row["id"] for row in trace.tracks.rows()}
    assert tree["worker 78"] == tree["late"] == tree["depth"] == ids["app 77"]
    assert {row["unit"] for row in trace.tracks.rows() if row["kind"] == "counter"} == {"1"}
    assert ("late", "name 6 2", "gpu,cpu", 1_000_015, 9) in slices_of(trace)
    arguments = {json.loads(text)["bytes"] for text in trace.details["perfetto_slices"]["arguments"].tolist()}
    assert arguments == {2**64 - 1}


def test_texts_of_a_sequence_begin_anew_with_its_state(check):
    made = Maker()
    made.track(2, "lane")
    for sequence, number in ((5, 0), (6, 1), (5, 2), (5, 3)):
        packet = made.packet(sequence, 100 + number, CLEARED)
        packet.interned_data.event_names.add(iid=1, name=f"name {number}")
        packet.track_event.type, packet.track_event.name_iid, packet.track_event.track_uuid = INSTANT, 1, 2
    trace = check(made)
    assert trace.instants["name"].tolist() == ["name 0", "name 1", "name 2", "name 3"]


def test_steps_of_several_ns_and_steps_back(check, tmp_path):
    made = Maker()
    made.track(2, "lane")
    made.packet(5, flags=CLEARED).trace_packet_defaults.timestamp_clock_id = 64
    made.snapshot(5, (64, 1000), (6, 20_000), incremental=(64,), m64=20)
    for step in (5, 100, 3):
        made.event(step, INSTANT, 2, f"after {step}", sequence=5)
    trace = check(made)
    wanted = {"after 5": 20_100, "after 100": 22_100, "after 3": 22_160}
    assert {key[1]: key[3] for key in slices_of(trace)} == wanted
    # Perfetto refuses a snapshot that sets a clock back, and drops what follows.
    made.snapshot(5, (64, 500), (6, 10_000), incremental=(64,), m64=20)
    made.event(1, INSTANT, 2, "earlier", sequence=5)
    trace = made.read(tmp_path)
    assert {key[1]: key[3] for key in slices_of(trace)} == wanted | {"earlier": 10_020}


# --- THAPI: one sequence, absolute times, texts in the packet that uses them first -----------------------------------


def test_one_sequence_with_absolute_times(check):
    made = Maker()
    made.packet(1, flags=CLEARED | NEEDS)
    made.process(10, 1000, "rank 0")
    made.track(11, "GPU 0", parent_uuid=10)
    made.track(12, "power", parent_uuid=10).counter.unit_name = "W"
    for number in range(20):
        packet = made.packet(1, 5000 + 100 * number, NEEDS, timestamp_clock_id=6)
        event = packet.track_event
        event.type, event.track_uuid, event.name_iid = BEGIN, 11, 1
        event.correlation_id = 40 + number
        event.flow_ids.append(number)
        if number == 0:
            packet.interned_data.event_names.add(iid=1, name="zeCommandListAppendLaunchKernel")
        made.event(5050 + 100 * number, END, 11, flags=NEEDS)
        sample = made.event(5050 + 100 * number, COUNTER, 12)
        sample.double_counter_value = 0.5 * number
    trace = check(made)
    assert trace.details["perfetto_slices"]["correlation"].tolist() == [str(40 + number) for number in range(20)]
    assert [row["unit"] for row in trace.tracks.rows() if row["name"] == "power"] == ["W"]
    assert stats_of(trace) == {"perfetto_flow_unmatched": 20}


# --- small Python writers: plain texts ------------------------------------------------------------------------------


def test_a_file_of_a_small_writer(check):
    made = Maker()
    made.process(1, 1, "process")
    made.track(2, "", parent_uuid=1)
    made.track(3, "queue", parent_uuid=1).counter.unit_name = "entries"
    made.event(100, BEGIN, 2, "outer").flow_ids.append(1)
    made.slice(120, 150, 2, "inner")
    made.event(200, END, 2)
    made.event(250, INSTANT, 2, "mark")
    made.event(130, COUNTER, 3).counter_value = 7
    made.process(11, 2, "other")
    made.track(12, "", parent_uuid=11)
    made.event(300, BEGIN, 12, "next").flow_ids.append(1)
    made.event(310, END, 12)
    trace = check(made)
    assert flows_of(trace) == Counter({("outer", "next"): 1})
    assert {row["nesting"] for row in trace.tracks.rows() if row["kind"] == "lane"} == {"nested"}


def test_tracks_that_nothing_describes_are_named_after_their_first_event(check):
    made = Maker()
    made.slice(10, 20, 99, "first")
    made.slice(30, 40, 99, "second")
    assert [row["name"] for row in check(made).tracks.rows()] == ["first"]


# --- matching ------------------------------------------------------------------------------------------------------


def test_events_in_any_order_are_joined_by_time(check):
    made = Maker()
    made.track(2, "lane")
    for ts, kind, name in (
        (40, END, ""),
        (10, BEGIN, "a"),
        (30, END, ""),
        (20, BEGIN, "b"),
        (40, BEGIN, "c"),
        (40, END, ""),
    ):
        made.event(ts, kind, 2, name)
    trace = check(made)
    assert slices_of(trace) == Counter(
        {("lane", "a", "", 10, 30): 1, ("lane", "b", "", 20, 10): 1, ("lane", "c", "", 40, 0): 1}
    )


def test_a_slice_without_an_end_and_an_end_without_a_start(check):
    made = Maker()
    made.track(2, "lane")
    made.event(5, END, 2)
    made.event(10, BEGIN, 2, "open")
    made.slice(20, 30, 2, "inside")
    trace = check(made)
    (row,) = (row for row in trace.slices.rows() if row["name"] == "open")
    assert (row["dur"], row["flags"], row["last_known_ts"] + trace.time.epoch_ns) == (None, Flag.UNFINISHED, 30)
    assert stats_of(trace) == {"perfetto_end_unmatched": 1}


def test_named_ends_close_their_own_slices_even_if_they_cross(tmp_path):
    made = Maker()
    made.track(2, "lane")
    for ts, kind, name in ((100, BEGIN, "A"), (150, BEGIN, "B"), (200, END, "A"), (300, END, "B")):
        made.event(ts, kind, 2, name)
    trace = made.read(tmp_path)  # Perfetto cuts B at 200, and counts it
    assert slices_of(trace) == Counter({("lane", "A", "", 100, 100): 1, ("lane", "B", "", 150, 150): 1})
    assert {row["name"]: row["flags"] for row in trace.slices.rows()} == {"A": 0, "B": Flag.PARTIAL_OVERLAP}


def test_rows_of_one_name_are_one_lane_whose_slices_may_overlap(check):
    made = Maker()
    made.track(1, "device", child_ordering=3)
    for uuid, name, merging in ((2, "queue", 1), (3, "queue", 1), (4, "alone", 2), (5, "alone", 2)):
        made.track(uuid, name, parent_uuid=1, sibling_merge_behavior=merging, sibling_order_rank=10 - uuid)
    for uuid in (2, 3, 4, 5):
        made.slice(uuid, 100 + uuid, uuid, f"on {uuid}")
    trace = check(made)
    lanes = [(row["name"], row["nesting"]) for row in trace.tracks.rows() if row["kind"] == "lane"]
    assert sorted(lanes) == [("alone", "nested"), ("alone", "nested"), ("queue", "free")]


# --- flows -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("old", [False, True])
def test_flows_are_chains_that_may_end(check, old):
    made = Maker()
    made.track(2, "lane")
    flow, last = ("flow_ids_old", "terminating_flow_ids_old") if old else ("flow_ids", "terminating_flow_ids")
    for number, (name, goes_on, ends) in enumerate(
        [("a", [1, 2], []), ("b", [1], []), ("c", [], [1]), ("d", [1], [2]), ("e", [], [1]), ("f", [2**64 - 1], [])]
    ):
        event = made.event(100 * number, BEGIN, 2, name)
        getattr(event, flow).extend(goes_on)
        getattr(event, last).extend(ends)
        made.event(100 * number + 50, END, 2)
    trace = check(made)
    assert flows_of(trace) == Counter([("a", "b"), ("b", "c"), ("a", "d"), ("d", "e")])
    assert stats_of(trace) == {"perfetto_flow_unmatched": 1}


# --- counters --------------------------------------------------------------------------------------------------------


def test_counters_of_all_kinds(check):
    made = Maker()
    made.track(2, "plain").counter.unit = 3
    steps = made.track(3, "steps").counter
    steps.is_incremental, steps.unit_multiplier = True, 1000
    made.packet(1, flags=CLEARED)
    for number in range(5):
        made.event(10 * number, COUNTER, 2).counter_value = -number
        made.event(10 * number, COUNTER, 3).counter_value = 2
    made.event(60, COUNTER, 2).double_counter_value = 0.25
    trace = check(made)
    assert samples_of(trace)["steps", 40, 10_000.0] == 1
    assert samples_of(trace)["plain", 60, 0.25] == 1


# --- clocks ----------------------------------------------------------------------------------------------------------


def test_other_clocks_are_placed_by_snapshots(check):
    made = Maker()
    made.track(2, "lane")
    # Of one set of clocks: Perfetto takes no reading from a snapshot of another set.
    made.snapshot(1, (6, 1000), (3, 500), (1, 1_700_000_000_000_000_000), (128, 3))
    made.snapshot(1, (6, 2000), (3, 1600), (1, 1_700_000_000_000_001_000), (128, 7))
    for ts, clock in ((550, 3), (1650, 3), (1_700_000_000_000_000_100, 1), (1500, 6), (17, 128), (400, 3)):
        packet = made.packet(1, ts, timestamp_clock_id=clock)
        packet.track_event.type, packet.track_event.track_uuid, packet.track_event.name = INSTANT, 2, f"{clock} {ts}"
    trace = check(made)
    assert {key[1]: key[3] for key in slices_of(trace)} == {
        "3 550": 1050, "3 1650": 2050, "1 1700000000000000100": 1100, "6 1500": 1500, "128 17": 2010, "3 400": 900,
    }  # fmt: skip
    clocks = {row["id"]: row["name"] for row in trace.clocks.rows()}
    assert set(clocks.values()) == {"unix", "host_monotonic"}


def test_events_on_a_clock_that_nothing_places_are_lost(tmp_path):
    made = Maker()
    made.track(2, "lane")
    made.event(100, INSTANT, 2, "known")
    made.packet(1, 5, timestamp_clock_id=200).track_event.CopyFrom(made.event(0, INSTANT, 2, "unknown"))
    made.snapshot(1, (6, 1000), (3, 500))
    trace = made.read(tmp_path)
    assert stats_of(trace) == {"perfetto_unknown_clock": 1}


# --- loss ------------------------------------------------------------------------------------------------------------


def test_packets_that_need_lost_state_are_lost_until_it_begins_anew(tmp_path):
    made = Maker()
    made.track(2, "lane")
    made.event(50, INSTANT, 2, "before it begins", sequence=5, flags=NEEDS)
    made.packet(5, flags=CLEARED)
    made.event(100, INSTANT, 2, "seen", sequence=5, flags=NEEDS)
    gone = made.event(200, INSTANT, 2, "gone", sequence=5, flags=NEEDS)
    made.proto.packet[-1].previous_packet_dropped = 1
    assert gone.name == "gone"
    made.event(250, INSTANT, 2, "needs nothing", sequence=5)
    made.event(300, INSTANT, 2, "gone too", sequence=5, flags=NEEDS)
    made.packet(5, flags=CLEARED)
    made.event(400, INSTANT, 2, "again", sequence=5, flags=NEEDS)
    trace = made.read(tmp_path)
    assert trace.instants["name"].tolist() == ["seen", "needs nothing", "again"]
    assert stats_of(trace) == {"perfetto_missing_state": 3, "perfetto_producer_dropped": 1}
    gaps = [(row["ts"] + trace.time.epoch_ns, row["dur"], row["lost_count"]) for row in trace.gaps.rows()]
    assert gaps[1:] == [(100, 150, None), (250, 150, 1)]
    (row,) = trace.accounting.rows()
    assert row["lost"] == sum(
        len(packet.SerializeToString()) + 2
        for packet in made.proto.packet
        if packet.track_event.name.startswith(("before", "gone"))
    )


def test_what_the_recorder_counts_as_lost_is_counted(tmp_path):
    made = Maker()
    made.track(2, "lane")
    made.slice(1, 2, 2, "a")
    buffers = made.packet().trace_stats.buffer_stats
    buffers.add(trace_writer_packet_loss=3, chunks_overwritten=4)
    buffers.add(bytes_written=100)
    assert stats_of(made.read(tmp_path)) == {"perfetto_recorder_dropped": 7}


def test_tracks_that_nothing_describes_are_told(tmp_path):
    made = Maker()
    made.track(2, "lane")
    made.slice(1, 2, 2, "a")
    made.slice(3, 4, 7, "b")
    trace = made.read(tmp_path)
    assert stats_of(trace) == {"perfetto_undescribed_track": 1}
    assert slices_of(trace) == {("lane", "a", "", 1, 1): 1, ("b", "b", "", 3, 1): 1}


@pytest.mark.parametrize("damage", [b"\xff", b"\0", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82"])
@pytest.mark.parametrize("where", ["slice", "track", "argument", "value"])
def test_texts_that_are_damaged_are_told(tmp_path, where, damage):
    # Placeholders of the same length: the bindings write no text that is none.
    place = "QQQQ"[: len(damage)]
    made = Maker()
    made.track(2, "lane" + place * (where == "track"))
    event = made.event(1, INSTANT, 2, "a" + place * (where == "slice"))
    argument = event.debug_annotations.add()
    argument.name = "key" + place * (where == "argument")
    argument.string_value = "täxt" + place * (where == "value")
    path = tmp_path / "run.pftrace"
    path.write_bytes(made.content())
    assert stats_of(lanescope.open(path)) == {}
    path.write_bytes(made.content().replace(place.encode(), damage))
    assert stats_of(lanescope.open(path)) == {"perfetto_damaged_text": 1}


def test_arguments_with_an_unknown_name_are_told(tmp_path):
    made = sdk()
    event = made.event(1_000_000, INSTANT, sequence=5, flags=NEEDS)
    event.debug_annotations.add(name_iid=99, int_value=1)
    event.debug_annotations.add(name="text", string_value_iid=98)
    assert stats_of(made.read(tmp_path)) == {"perfetto_unknown_text": 2}


def test_snapshots_that_contradict_themselves_are_told(tmp_path):
    made = Maker()
    made.track(2, "lane")
    made.event(1, INSTANT, 2, "a")
    made.snapshot(1, (6, 10), (3, 20), (6, 30))
    assert stats_of(made.read(tmp_path)) == {"perfetto_repeated_clock": 1}


def test_a_clock_that_was_set_back_is_told_where_events_count_on_it(tmp_path):
    def read(of_events):
        made = Maker()
        made.track(2, "lane")
        made.event(150, INSTANT, 2, "a")
        made.proto.packet[-1].timestamp_clock_id = of_events
        made.snapshot(1, (6, 1000), (1, 100))
        made.snapshot(2, (6, 2000), (1, 200))
        made.snapshot(3, (6, 3000), (1, 120))
        return stats_of(made.read(tmp_path))

    assert read(1) == {"perfetto_backward_clock": 1}
    assert read(6) == {}


@pytest.mark.parametrize(("clock", "is_sound"), [(3, False), (6, False), (64, True), (127, True), (128, False)])
def test_only_clocks_of_a_sequence_count_in_steps(tmp_path, clock, is_sound):
    made = Maker()
    made.track(2, "lane")
    made.event(1, INSTANT, 2, "a")
    made.snapshot(1, (1, 10), (clock, 20), incremental=(clock,))
    assert stats_of(made.read(tmp_path)) == ({} if is_sound else {"perfetto_invalid_packet": 1})


def test_faulty_events_are_lost_each_under_its_name(tmp_path):
    made = Maker()
    made.track(2, "lane")
    made.event(1, INSTANT, 2, "sound")
    made.event(None, INSTANT, 2, "untimed")
    made.event(2, 0, 2, "untyped").type = 0
    made.event(3, COUNTER, 2)
    made.event(4, INSTANT, 2).name_iid = 17
    packet = made.packet(7)
    packet.interned_data.event_names.add(iid=1, name="before its state")
    made.event(1 << 63, INSTANT, 2, "late")
    bare = made.proto.packet.add()
    bare.timestamp, bare.track_event.type = 5, INSTANT
    trace = made.read(tmp_path)
    assert_accounted(trace)
    assert stats_of(trace) == {
        "perfetto_missing_time": 1,
        "perfetto_unknown_type": 1,
        "perfetto_missing_value": 1,
        "perfetto_unknown_text": 1,
        "perfetto_rejected_texts": 1,
        "perfetto_invalid_time": 1,
        "perfetto_missing_sequence": 1,
    }
    assert trace.instants["name"].tolist() == ["sound", ""]


def test_compressed_packets_that_cannot_be_unpacked_are_lost(tmp_path):
    made = Maker()
    made.slice(1, 2, 2, "a")
    made.proto.packet.add().compressed_packets = b"x\x9cnoise"
    made.proto.packet.add().compressed_packets = b""
    made.proto.packet.add().zstd_compressed_packets = b"(\xb5/\xfdnoise"
    trace = made.read(tmp_path)
    assert_accounted(trace)
    assert stats_of(trace)["perfetto_unreadable_packet"] >= 2
    assert slices_of(trace).total() == 1


def zstd_frame(content: bytes) -> bytes:
    """Return a zstd frame of one block that is not compressed. Source: RFC 8878, section 3.1.1."""
    assert len(content) < 256
    header = b"\x28\xb5\x2f\xfd" + bytes([0x20, len(content)])  # one segment, its size in one byte
    return header + (len(content) << 3 | 1).to_bytes(3, "little") + content  # the last block, raw


def packed_by_zstd() -> tuple[Maker, int]:
    """Return packets of which one slice lies in a packet that zstd compressed, and the size of that one."""
    inside, made = Maker(), Maker()
    made.track(2, "lane")
    inside.slice(5, 9, 2, "inside")
    made.slice(1, 2, 2, "plain")
    packet = made.proto.packet.add()
    packet.zstd_compressed_packets = zstd_frame(inside.content())
    return made, len(packet.SerializeToString()) + 2


def test_packets_compressed_by_zstd_are_a_loss_that_names_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    made, size = packed_by_zstd()
    trace = made.read(tmp_path)
    assert stats_of(trace) == {"perfetto_zstd_packet": 1}
    assert_accounted(trace, lost=size)
    assert trace.slices["name"].tolist() == ["plain"]
    spec = next(spec for spec in STATS if spec.name == "perfetto_zstd_packet")
    assert "zstandard" in spec.counted


@pytest.mark.parametrize("has_size", [True, False])
def test_packets_compressed_by_zstd_are_read(tmp_path, has_size):
    compressor = zstandard.ZstdCompressor(write_content_size=has_size)
    inside, made = sdk(), Maker()
    made.proto.packet.add().zstd_compressed_packets = compressor.compress(inside.content())
    packed, plain = made.read(tmp_path), inside.read(tmp_path)
    assert_accounted(packed, lost=0)
    assert stats_of(packed) == stats_of(plain) == {}
    assert slices_of(packed) == slices_of(plain)
    assert len(packed.slices) > 30


def test_a_frame_of_zstd_that_was_never_compressed_is_read(tmp_path):
    trace = packed_by_zstd()[0].read(tmp_path)
    assert stats_of(trace) == {}
    assert_accounted(trace, lost=0)
    assert sorted(trace.slices["name"].tolist()) == ["inside", "plain"]


@pytest.mark.parametrize(
    "packed",
    [
        pytest.param(b"\x28\xb5\x2f\xfd\xe0" + (1 << 50).to_bytes(8, "little") + b"\x09\0\0a", id="claims a petabyte"),
        pytest.param(zstandard.compress(bytes(300 << 20)), id="zeros without end"),
        pytest.param(zstandard.compress(b"packets" * 50)[:-4], id="cut"),
        pytest.param(b"\x28\xb5\x2f\xfdnoise", id="noise"),
    ],
)
def test_packets_that_zstd_cannot_unpack_are_lost(tmp_path, packed):
    made = Maker()
    made.track(2, "lane")
    made.slice(1, 2, 2, "plain")
    made.proto.packet.add().zstd_compressed_packets = packed
    trace = made.read(tmp_path)
    assert stats_of(trace) == {"perfetto_unreadable_packet": 1}
    whole = len(made.content())
    del made.proto.packet[-1]
    assert_accounted(trace, lost=whole - len(made.content()))
    assert trace.slices["name"].tolist() == ["plain"]


# --- arguments -------------------------------------------------------------------------------------------------------


def test_arguments_are_json_whatever_they_hold(tmp_path):
    made = Maker()
    made.track(2, "lane")
    event = made.event(1, BEGIN, 2, "a")
    add = event.debug_annotations.add
    add(name="flag", bool_value=True)
    add(name='quote"\\\n', string_value="\x01\ud7ff")
    add(name="many", double_value=1e300)
    add(name="odd", double_value=float("nan"))
    add(name="where", pointer_value=0xABC)
    nested = add(name="nested")
    nested.dict_entries.add(name="x", int_value=-5)
    inner = nested.dict_entries.add(name="list")
    for number in (1, 2):
        inner.array_values.add(int_value=number)
    old = add(name="old").nested_value
    old.dict_keys.extend(["p", "q"])
    old.dict_values.add(int_value=4)
    old.dict_values.add().array_values.add(string_value="s")
    deep = add(name="deep")
    for _ in range(60):
        deep = deep.array_values.add()
    deep.int_value = 1
    made.event(2, END, 2).debug_annotations.add(name="at the end", uint_value=7)
    trace = made.read(tmp_path)
    (text,) = trace.details["perfetto_slices"]["arguments"].tolist()
    found = json.loads(text)
    depth = 0
    value = found.pop("deep")
    while isinstance(value, list):
        (value,), depth = value, depth + 1
    assert (value, depth) == ("...", 32)
    assert found == {
        "flag": True,
        'quote"\\\n': "\x01\ud7ff",
        "many": 1e300,
        "odd": "NaN",
        "where": "0xabc",
        "nested": {"x": -5, "list": [1, 2]},
        "old": {"p": 4, "q": ["s"]},
        "at the end": 7,
    }


# --- tracks ----------------------------------------------------------------------------------------------------------


def test_tracks_in_a_ring_or_below_nothing_stand_at_the_top(tmp_path):
    made = Maker()
    made.track(2, "a", parent_uuid=3)
    made.track(3, "b", parent_uuid=2)
    made.track(4, "itself", parent_uuid=4)
    made.track(5, "orphan", parent_uuid=404)
    for uuid in range(100, 200):
        made.track(uuid, f"deep {uuid}", parent_uuid=uuid - 1 if uuid > 100 else 0)
    for uuid in (2, 3, 4, 5, 199):
        made.slice(1, 2, uuid, f"on {uuid}")
    trace = made.read(tmp_path)
    assert_consistent(trace)
    assert len(trace.slices) == 5
    stats = stats_of(trace)
    assert stats["perfetto_unknown_parent"] == 1
    assert stats["perfetto_track_cycle"] >= 3


def test_events_on_groups_and_counters_have_lanes_of_their_own(tmp_path):
    made = Maker()
    made.track(2, "group")
    made.track(3, "child", parent_uuid=2)
    made.track(4, "counter").counter.unit = 2
    made.slice(1, 2, 2, "on the group")
    made.slice(1, 2, 3, "on the child")
    made.slice(1, 2, 4, "on the counter")
    made.event(1, COUNTER, 4).counter_value = 1
    made.event(1, COUNTER, 3).counter_value = 1
    trace = made.read(tmp_path)
    assert_consistent(trace)
    kinds = Counter((row["name"], row["kind"]) for row in trace.tracks.rows())
    assert kinds == Counter(
        [
            ("group", "group"),
            ("group", "lane"),
            ("child", "lane"),
            ("child", "counter"),
            ("counter", "lane"),
            ("counter", "counter"),
        ]
    )
    lanescope_back(trace, tmp_path)


def lanescope_back(trace, folder):
    """What was read can be written."""
    from lanescope.io import perfetto

    perfetto.write(trace, folder / "again.pftrace")


# --- the older form --------------------------------------------------------------------------------------------------


def legacy(made, ts, phase, name="", uuid=2, category="cat", **fields):
    event = made.event(ts, 0, uuid, name)
    event.ClearField("type")
    event.categories.append(category)
    event.legacy_event.phase = ord(phase)
    for key, value in fields.items():
        setattr(event.legacy_event, key, value)
    return event


def test_older_events(check):
    made = Maker()
    made.thread(2, 7, 8, "main")
    legacy(made, 100, "B", "outer")
    legacy(made, 110, "X", "whole", duration_us=1)
    legacy(made, 5000, "E")
    legacy(made, 6000, "I", "mark")
    legacy(made, 7000, "b", "request", local_id=5)
    legacy(made, 7100, "n", "step", local_id=5)
    legacy(made, 7500, "b", "request", local_id=6)
    legacy(made, 8000, "e", "request", local_id=5)
    legacy(made, 8500, "e", "request", local_id=6)
    trace = check(made)
    names = {row["id"]: (row["name"], row["nesting"]) for row in trace.tracks.rows()}
    rows = {row["name"]: names[row["track_id"]] for row in trace.slices.rows()}
    assert rows == {"outer": ("main 8", "nested"), "whole": ("main 8", "nested"), "request": ("request", "free")}


def test_older_times_are_steps_from_the_descriptor_of_the_thread(tmp_path):
    made = Maker()
    packet = made.packet(3, flags=CLEARED)
    packet.thread_descriptor.pid, packet.thread_descriptor.tid = 7, 9
    packet.thread_descriptor.thread_name = "old"
    packet.thread_descriptor.reference_timestamp_us = 1000
    for step, phase in ((10, "B"), (5, "E")):
        event = made.packet(3, flags=NEEDS).track_event
        event.timestamp_delta_us = step
        event.legacy_event.phase = ord(phase)
        if phase == "B":
            event.name = "slow"
    absolute = made.packet(3, flags=NEEDS).track_event
    absolute.timestamp_absolute_us, absolute.type, absolute.name = 2000, INSTANT, "then"
    trace = made.read(tmp_path)
    assert slices_of(trace) == Counter(
        {("old 9", "slow", "", 1_010_000, 5000): 1, ("old 9", "then", "", 2_000_000, 0): 1}
    )
    assert trace.time.epoch_kind == "host_monotonic"


def test_older_flows(tmp_path):
    made = Maker()
    made.thread(2, 7, 8, "main")
    made.thread(3, 7, 9, "other")
    legacy(made, 100, "B", "cause")
    legacy(made, 110, "s", "arrow", unscoped_id=5)
    legacy(made, 200, "E")
    legacy(made, 300, "f", "arrow", uuid=3, unscoped_id=5)
    legacy(made, 350, "X", "effect", uuid=3, duration_us=1)
    legacy(made, 3000, "X", "out", duration_us=1, bind_id=9, flow_direction=2)
    legacy(made, 5000, "X", "in", uuid=3, duration_us=1, bind_id=9, flow_direction=1)
    legacy(made, 7000, "X", "in again", uuid=3, duration_us=1, bind_id=9, flow_direction=1)
    trace = made.read(tmp_path)
    assert flows_of(trace) == Counter([("cause", "effect"), ("out", "in"), ("out", "in again")])
    assert len(trace.instants) == 0


def test_local_ids_of_two_processes_are_two_rows(check):
    made = Maker()
    for uuid, pid in ((2, 7), (3, 17)):
        made.thread(uuid, pid, pid + 1, f"main {pid}")
        legacy(made, 100 * pid, "b", "request", uuid=uuid, local_id=5)
        legacy(made, 100 * pid + 5000, "e", "request", uuid=uuid, local_id=5)
    trace = check(made)
    rows = {row["id"]: row for row in trace.tracks.rows()}
    above = {rows[rows[row["track_id"]]["parent_id"]]["name"] for row in trace.slices.rows()}
    assert above == {"process 7", "process 17"}
    assert trace.slices["dur"].tolist() == [5000, 5000]


def test_a_track_below_a_thread_stands_below_its_process(check):
    made = Maker()
    made.process(1, 7, "app")
    made.thread(2, 7, 8, "main")
    made.track(3, "stream", parent_uuid=2)
    made.slice(1, 5, 2, "call")
    made.slice(2, 9, 3, "work")
    trace = check(made)
    rows = {row["name"]: row for row in trace.tracks.rows()}
    assert rows["stream"]["parent_id"] == rows["main 8"]["parent_id"] == rows["app 7"]["id"]
    assert rows["main 8"]["kind"] == "lane"
