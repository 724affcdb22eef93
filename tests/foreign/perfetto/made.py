"""Traces by others, made with the official bindings; what the bindings and Perfetto say of any
trace, and where its packets lie."""

from __future__ import annotations

import zlib
from collections import Counter
from pathlib import Path
from typing import Any

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as TraceProto
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket, TrackEvent

import lanescope
from lanescope.trace import Trace

BEGIN, END, INSTANT, COUNTER = (
    TrackEvent.TYPE_SLICE_BEGIN,
    TrackEvent.TYPE_SLICE_END,
    TrackEvent.TYPE_INSTANT,
    TrackEvent.TYPE_COUNTER,
)
CLEARED, NEEDS = 1, 2


class Maker:
    """Packets of one file."""

    def __init__(self) -> None:
        self.proto = TraceProto()

    def packet(self, sequence: int = 1, ts: int | None = None, flags: int = 0, **fields: Any) -> TracePacket:
        packet = self.proto.packet.add()
        packet.trusted_packet_sequence_id = sequence
        if ts is not None:
            packet.timestamp = ts
        if flags:
            packet.sequence_flags = flags
        for name, value in fields.items():
            setattr(packet, name, value)
        return packet

    def track(self, uuid: int, name: str = "", sequence: int = 1, **fields: Any) -> Any:
        descriptor = self.packet(sequence).track_descriptor
        descriptor.uuid = uuid
        if name:
            descriptor.name = name
        for key, value in fields.items():
            setattr(descriptor, key, value)
        return descriptor

    def process(self, uuid: int, pid: int, name: str) -> None:
        process = self.track(uuid).process
        process.pid, process.process_name = pid, name

    def thread(self, uuid: int, pid: int, tid: int, name: str) -> None:
        thread = self.track(uuid).thread
        thread.pid, thread.tid, thread.thread_name = pid, tid, name

    def event(
        self, ts: int | None, kind: int, uuid: int | None = None, name: str = "", sequence: int = 1, flags: int = 0
    ) -> Any:
        event = self.packet(sequence, ts, flags).track_event
        event.type = kind
        if uuid is not None:
            event.track_uuid = uuid
        if name:
            event.name = name
        return event

    def slice(self, begin: int, end: int, uuid: int, name: str, **options: Any) -> None:
        self.event(begin, BEGIN, uuid, name, **options)
        self.event(end, END, uuid, **options)

    def snapshot(self, sequence: int, *readings: tuple[int, int], incremental: tuple[int, ...] = (), **multiplier: int):
        snapshot = self.packet(sequence).clock_snapshot
        for clock_id, ts in readings:
            clock = snapshot.clocks.add()
            clock.clock_id, clock.timestamp = clock_id, ts
            clock.is_incremental = clock_id in incremental
            if f"m{clock_id}" in multiplier:
                clock.unit_multiplier_ns = multiplier[f"m{clock_id}"]
        return snapshot

    def content(self, *, compressed: bool = False) -> bytes:
        content: bytes = self.proto.SerializeToString()
        if compressed:
            whole = TraceProto()
            half = len(self.proto.packet) // 2
            for part in (self.proto.packet[:half], self.proto.packet[half:]):
                packet = whole.packet.add()
                packet.compressed_packets = zlib.compress(TraceProto(packet=part).SerializeToString())
            content = whole.SerializeToString()
        return content

    def read(self, folder: Path, **options: Any) -> Trace:
        path = folder / "run.pftrace"
        path.write_bytes(self.content(**options))
        return lanescope.open(path, family="perfetto")


def slices_of(trace: Trace) -> Counter[Any]:
    """Slices and instants by (lane, name, category, ts, dur), on the clock of the file; dur -1: no end, 0: instant."""
    names = {row["id"]: row["name"] for row in trace.tracks.rows()}
    zero = trace.time.epoch_ns
    found: Counter[Any] = Counter()
    for row in trace.slices.rows():
        dur = -1 if row["dur"] is None else row["dur"]
        found[names[row["track_id"]], row["name"], row["category"], row["ts"] + zero, dur] += 1
    for row in trace.instants.rows():
        found[names[row["track_id"]], row["name"], row["category"], row["ts"] + zero, 0] += 1
    return found


def samples_of(trace: Trace) -> Counter[Any]:
    names = {row["id"]: row["name"] for row in trace.tracks.rows()}
    return Counter((names[r["track_id"]], r["ts"] + trace.time.epoch_ns, r["value"]) for r in trace.counters.rows())


def flows_of(trace: Trace) -> Counter[Any]:
    names = {row["id"]: row["name"] for row in trace.slices.rows()}
    return Counter((names.get(r["src_slice_id"]), names.get(r["dst_slice_id"])) for r in trace.flows.rows())


def stats_of(trace: Trace) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in trace.stats.rows():
        if row["severity"] != "info":
            found[row["name"]] = found.get(row["name"], 0) + row["count"]
    return found


SQL = (
    "select s.name, s.category, s.ts, s.dur from slice s",
    "select a.name as source, b.name as destination from flow f join slice a on a.id = f.slice_out"
    " join slice b on b.id = f.slice_in",
    "select t.name as track, c.ts, c.value from counter c join counter_track t on t.id = c.track_id",
)


def same_as_perfetto(trace: Trace, content: bytes, query: Any, folder: Path) -> None:
    """Assert that Perfetto's own trace processor finds the same slices, instants, flows and samples."""
    path = folder / "asked.pftrace"
    path.write_bytes(content)
    slices, flows, samples = query(path, *SQL)
    theirs = Counter((r["name"] or "", r["category"] or "", int(r["ts"]), int(r["dur"])) for r in slices)
    ours = Counter({key[1:]: 0 for key in ()})
    for (_, *rest), count in slices_of(trace).items():
        ours[tuple(rest)] += count
    assert ours == theirs
    assert flows_of(trace) == Counter((r["source"], r["destination"]) for r in flows)
    assert samples_of(trace) == Counter((r["track"], int(r["ts"]), float(r["value"])) for r in samples)


def packets_of(content: bytes) -> list[tuple[int, bytes]]:
    """Return the packets of a file, each with its size in it: a tag, a length, a message."""
    found, at = [], 0
    while at < len(content):
        begin = at
        assert content[at] == 0x0A
        size, shift, at = 0, 0, at + 1
        while True:
            size |= (content[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if content[at - 1] < 0x80:
                break
        found.append((at - begin + size, content[at : at + size]))
        at += size
    return found
