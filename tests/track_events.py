"""What a Perfetto trace says, told three ways in one shape: by the model, by the official bindings, by Perfetto itself.

The shape is a multiset of ``RecordSlices``: slices, gaps, instants and the ends of flows alike.
"""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as TraceProto
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket, TrackEvent

from lanescope.io.viewer_names import shown_names
from lanescope.trace import Flag, Table, Trace
from lanescope.trace.row_packing import depth, pack_rows


class Drawn(NamedTuple):
    path: tuple[str, ...]
    name: str
    category: str
    ts: int
    dur: int  # -1: open
    depth: int  # 0 where dur is 0: what shares a moment may stack
    args: tuple[tuple[str, Any], ...]


@dataclass
class Picture:
    slices: Counter[Drawn] = field(default_factory=Counter)
    flows: Counter[tuple[Drawn, Drawn]] = field(default_factory=Counter)
    samples: Counter[tuple[tuple[str, ...], int, float]] = field(default_factory=Counter)
    lost: int = 0
    snapshots: int = field(default=0, compare=False)


# --- the model -----------------------------------------------------------------------------------------------------


def utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def expected(trace: Trace) -> tuple[Picture, list[tuple[Drawn, Drawn]]]:
    """Return what should be drawn, and the two ends of every flow, whether it can be drawn or not."""
    paths = track_paths(trace)
    slices, gaps = list(trace.slices.rows()), list(trace.gaps.rows())
    placement = pack_rows(trace.slices, trace.tracks, trace.gaps)
    depths = depth(placement).tolist()
    details: dict[str, dict[int, list[tuple[str, Any]]]] = {"slice_id": {}, "instant_id": {}}
    for table in trace.details.values():
        names = [column.name for column in table.spec.columns if column.is_argument]
        by_key: dict[int, list[dict[str, Any]]] = {}
        for row in table.rows():
            by_key.setdefault(row[table.spec.key], []).append(row)
        for key, rows in by_key.items():
            found = details[table.spec.key].setdefault(key, [])
            for name in names:
                known = [row[name] for row in rows if row[name] is not None]
                if len(rows) == 1:
                    found += [(name, value) for value in known]
                else:
                    found += [(f"{name}[{i}]", value) for i, value in enumerate(known)]

    def own(row: dict[str, Any]) -> list[tuple[str, Any]]:
        said = [("quality", row["quality"])] if row["quality"] != "exact" else []
        if row["flags"]:
            said.append(("flags", "|".join(flag.name.lower() for flag in Flag if row["flags"] & flag)))
        if row.get("last_known_ts") is not None:
            said.append(("last_known_ts", row["last_known_ts"]))
        return said

    picture = Picture()
    by_slice: dict[int, Drawn] = {}
    for i, row in enumerate(slices):
        args = own(row) + details["slice_id"].get(row["id"], [])
        by_slice[row["id"]] = drawn(paths[row["track_id"]], row, row["name"], row["category"], depths[i], args)
    for i, row in enumerate(gaps):
        args = [(name, row[name]) for name in ("lost_count", "first_offset") if row[name] is not None]
        where = paths[row["track_id"]]
        picture.slices[drawn(where, row, row["cause"], "lanescope.gap", depths[len(slices) + i], args)] += 1
    picture.slices.update(by_slice.values())
    for row in trace.instants.rows():
        args = own(row) + details["instant_id"].get(row["id"], [])
        picture.slices[drawn(paths[row["track_id"]], row | {"dur": 0}, row["name"], row["category"], 0, args)] += 1
    ends, points = [], set()
    for row in trace.flows.rows():
        pair: list[Drawn] = []
        for side in ("src", "dst"):
            end = by_slice.get(row[f"{side}_slice_id"])
            if pair and end is not None and end.ts < pair[0].ts <= row["dst_ts"]:
                end = None  # it was running when the cause began: the arrow ends at the moment of arrival
            if end is None:
                at = {"ts": row[f"{side}_ts"], "dur": 0}
                end = drawn(paths[row[f"{side}_track_id"]], at, row["kind"], "lanescope.flow", 0, [])
                points.add((row[f"{side}_track_id"], end))
            pair.append(end)
        ends.append((pair[0], pair[1]))
    picture.slices.update(end for _, end in points)
    for row in trace.counters.rows():
        picture.samples[paths[row["track_id"]], row["ts"], row["value"]] += 1
    picture.lost = sum(row["count"] for row in trace.stats.rows() if row["severity"] == "data_loss")
    return picture, ends


def drawn(path, row, name, category, level, args) -> Drawn:
    dur = -1 if row["dur"] is None else row["dur"]
    return Drawn(path, utf8(name), category, row["ts"], dur, level if dur else 0, normal(args))


def track_paths(trace: Trace) -> dict[int, tuple[str, ...]]:
    """Return the names from the top to each track, as they are shown."""
    rows = {row["id"]: row for row in trace.tracks.rows()}
    shown = shown_names(trace.tracks, trace.time)
    names = {row["id"]: shown.get(at, row["name"]) for at, row in enumerate(rows.values())}

    def path(row: dict[str, Any]) -> tuple[str, ...]:
        above = () if row["parent_id"] is None else path(rows[row["parent_id"]])
        return (*above, utf8(names[row["id"]]))

    return {track: path(row) for track, row in rows.items()}


def normal(args) -> tuple[tuple[str, Any], ...]:
    """Arguments in one order and one type a kind: SQL knows no booleans and no unsigned integers."""
    found = []
    for name, value in args:
        if isinstance(value, bool | int):
            found.append((name, int(value) & 0xFFFF_FFFF_FFFF_FFFF))
        else:
            found.append((name, utf8(value) if isinstance(value, str) else value))
    return tuple(sorted(found, key=repr))


# --- the official bindings -----------------------------------------------------------------------------------------


def packets(data: bytes) -> list[TracePacket]:
    """Parse a trace, unpack what is compressed, and refuse any field that the bindings do not know."""
    found = []
    for packet in TraceProto.FromString(data).packet:
        assert not unknown_fields(packet), packet
        if packet.compressed_packets:
            assert len(packet.compressed_packets) < 512 << 10
            found += packets(zlib.decompress(packet.compressed_packets))
        else:
            found.append(packet)
    return found


def unknown_fields(message) -> bool:
    from google.protobuf.unknown_fields import UnknownFieldSet

    if len(UnknownFieldSet(message)):
        return True
    for descriptor, value in message.ListFields():
        if descriptor.type == descriptor.TYPE_MESSAGE:
            many = value if descriptor.is_repeated else [value]
            if any(unknown_fields(each) for each in many):
                return True
    return False


class _Sequence:
    def __init__(self) -> None:
        self.clocks: dict[int, int] = {}
        self.default_clock = 0
        self.default_uuid = 0
        self.texts: dict[str, dict[int, str]] = {"names": {}, "categories": {}, "arguments": {}, "values": {}}

    def learn(self, packet: TracePacket) -> None:
        if packet.HasField("trace_packet_defaults"):
            self.default_clock = packet.trace_packet_defaults.timestamp_clock_id
            self.default_uuid = packet.trace_packet_defaults.track_event_defaults.track_uuid
        if packet.sequence_flags:
            self.texts = {kind: {} for kind in self.texts}
        for clock in packet.clock_snapshot.clocks:
            if clock.is_incremental:
                assert 64 <= clock.clock_id < 128
                self.clocks[clock.clock_id] = clock.timestamp
        data = packet.interned_data
        for kind, entries in {
            "names": data.event_names,
            "categories": data.event_categories,
            "arguments": data.debug_annotation_names,
        }.items():
            for entry in entries:
                assert entry.iid not in self.texts[kind]
                self.texts[kind][entry.iid] = entry.name
        for entry in data.debug_annotation_string_values:
            assert entry.iid not in self.texts["values"]
            self.texts["values"][entry.iid] = entry.str.decode()


def by_bindings(data: bytes) -> Picture:
    """Interpret a trace as Perfetto documents it: by time, in file order at one time; an END closes the innermost."""
    picture = Picture()
    tracks: dict[int, Any] = {}
    sequences: dict[int, _Sequence] = {}
    events = []
    for packet in packets(data):
        assert packet.trusted_packet_sequence_id
        sequence = sequences.setdefault(packet.trusted_packet_sequence_id, _Sequence())
        if packet.HasField("track_descriptor"):
            assert packet.track_descriptor.uuid not in tracks
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        assert packet.HasField("clock_snapshot") == bool(packet.first_packet_on_sequence)
        assert packet.sequence_flags == 1 or not packet.first_packet_on_sequence
        if packet.first_packet_on_sequence:
            assert not sequence.clocks
            picture.snapshots += 1
        sequence.learn(packet)
        picture.lost += sum(each.trace_writer_packet_loss for each in packet.trace_stats.buffer_stats)
        if packet.HasField("timestamp"):
            # The processor adds it as a signed number of 64 bits.
            delta = packet.timestamp - (packet.timestamp >> 63 << 64)
            assert delta >= 0 or not packet.HasField("track_event")
            sequence.clocks[sequence.default_clock] += delta
        if packet.HasField("track_event"):
            ts = sequence.clocks[sequence.default_clock]
            events.append((ts, sequence.default_uuid, packet.track_event, sequence.texts))
    events.sort(key=lambda event: event[0])
    stacks: dict[int, list[list[Any]]] = {}
    done: list[list[Any]] = []  # [uuid, event, texts, ts, dur, depth]
    flows: dict[int, list[Any]] = {}
    edges = []
    for ts, uuid, event, texts in events:
        stack = stacks.setdefault(uuid, [])
        if event.type == TrackEvent.TYPE_COUNTER:
            assert tracks[uuid].HasField("counter")
            value = event.counter_value if event.HasField("counter_value") else event.double_counter_value
            picture.samples[_path(tracks, uuid), ts, float(value)] += 1
            continue
        if event.type == TrackEvent.TYPE_SLICE_END:
            slice_ = stack.pop()
            slice_[4] = ts - slice_[3]
        else:
            slice_ = [uuid, event, texts, ts, -1, len(stack)]
            done.append(slice_)
            if event.type == TrackEvent.TYPE_SLICE_BEGIN:
                stack.append(slice_)
            else:
                slice_[4] = 0
        for flow in event.flow_ids:
            assert flow not in flows
            flows[flow] = slice_
        for flow in event.terminating_flow_ids:
            source = flows.pop(flow)
            assert source[3] <= slice_[3], "Perfetto takes what began first for the source"
            edges.append((source, slice_))
    assert not flows, "a flow without its other end"
    shapes = {}
    for slice_ in done:
        uuid, event, texts, ts, dur, level = slice_
        shapes[id(slice_)] = Drawn(
            _path(tracks, uuid),
            texts["names"][event.name_iid],
            ",".join(texts["categories"][iid] for iid in event.category_iids),
            ts,
            dur,
            level if dur else 0,
            normal(_annotations(event, texts)),
        )
    picture.slices.update(shapes.values())
    picture.flows.update((shapes[id(source)], shapes[id(destination)]) for source, destination in edges)
    return picture


def _path(tracks, uuid) -> tuple[str, ...]:
    own = tracks[uuid]
    return (*_path(tracks, own.parent_uuid), own.name) if own.HasField("parent_uuid") else (own.name,)


def _annotations(event, texts):
    for annotation in event.debug_annotations:
        name = texts["arguments"][annotation.name_iid]
        if annotation.array_values:
            for i, element in enumerate(annotation.array_values):
                yield f"{name}[{i}]", _value(element, texts)
        else:
            yield name, _value(annotation, texts)


def _value(annotation, texts):
    if annotation.HasField("string_value_iid"):
        return texts["values"][annotation.string_value_iid]
    return getattr(annotation, annotation.WhichOneof("value"))


# --- Perfetto ------------------------------------------------------------------------------------------------------

SQL = (
    "select id, name, parent_id from track",
    "select id, track_id, name, category, ts, dur, depth, arg_set_id from slice",
    "select arg_set_id, key, value_type, int_value, string_value, real_value from args where key glob 'debug.*'",
    "select slice_out, slice_in from flow",
    "select track_id, ts, value from counter",
    "select name, idx, severity, value from stats where severity in ('error', 'data_loss') and value != 0",
)


def by_perfetto(answers) -> Picture:
    """Put the answers to ``SQL`` into shape; any error or loss of the import itself fails."""
    tracks, slices, args, flows, samples, stats = answers
    rows = {row["id"]: row for row in tracks}

    def path(row):
        name = row["name"] or ""
        return (name,) if row["parent_id"] is None else (*path(rows[row["parent_id"]]), name)

    arguments: dict[int, list[tuple[str, Any]]] = {}
    for row in args:
        columns = {"string": "string_value", "real": "real_value"}
        value = row[columns.get(row["value_type"], "int_value")]
        if row["value_type"] not in columns:
            value = int(value)  # beyond 2^53 as text
        arguments.setdefault(row["arg_set_id"], []).append((row["key"].removeprefix("debug."), value))
    picture = Picture()
    shapes = {
        row["id"]: Drawn(
            path(rows[row["track_id"]]),
            row["name"] or "",
            row["category"] or "",
            int(row["ts"]),
            int(row["dur"]),
            row["depth"] if row["dur"] else 0,
            normal(arguments.get(row["arg_set_id"], ())),
        )
        for row in slices
    }
    picture.slices.update(shapes.values())
    picture.flows.update((shapes[row["slice_out"]], shapes[row["slice_in"]]) for row in flows)
    picture.samples.update((path(rows[row["track_id"]]), int(row["ts"]), row["value"]) for row in samples)
    for row in stats:
        assert row["name"] == "traced_buf_trace_writer_packet_loss", row
        assert (row["idx"], row["severity"]) == (0, "data_loss")
        picture.lost += row["value"]
    return picture


# --- both ----------------------------------------------------------------------------------------------------------


def assert_drawn(trace: Trace, picture: Picture, flows_drawn: int) -> None:
    """The picture is the model's: nothing more, nothing less, and what flows are missing cannot be drawn."""
    model, ends = expected(trace)
    assert picture.slices == model.slices
    assert picture.samples == model.samples
    assert picture.lost == model.lost
    wanted = Counter(ends)
    assert picture.flows.total() == flows_drawn
    assert picture.flows <= wanted
    for source, destination in wanted - picture.flows:
        assert destination.ts < source.ts or (destination.ts == source.ts and destination.dur <= 0)


def table_with(table: Table, **columns: Any) -> dict[str, Any]:
    """Return the columns of a table as ``TraceBuilder.append`` takes them, some replaced."""
    found: dict[str, Any] = {}
    for spec in table.spec.columns:
        if spec.name == "id" and not table.spec.key:
            continue
        values = table.values(spec.name)
        found[spec.name] = values.tolist() if spec.type in ("text", "utf8") else values
        found[f"{spec.name}_valid"] = np.array(table.valid(spec.name))
    return found | columns
