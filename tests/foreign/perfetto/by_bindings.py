"""A plain reader of Perfetto traces on the official bindings: what a file says, found without any of our code.

It reads slices, instants, states, samples, flows, arguments and correlation IDs, with texts by ID, state that is lost,
defaults and the clocks of sequences; not events of the older form.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as TraceProto
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent

BOOTTIME = 6


class OlderFormError(Exception):
    """The file has events of the older form."""


@dataclass
class Sequence:
    """State of one sequence."""

    valid: bool = False
    names: dict[int, str] = field(default_factory=dict)
    categories: dict[int, str] = field(default_factory=dict)
    argument_names: dict[int, str] = field(default_factory=dict)
    argument_texts: dict[int, str] = field(default_factory=dict)
    correlations: dict[int, str] = field(default_factory=dict)
    clock: int = 0
    track: int | None = None
    extra: list[int] = field(default_factory=list)
    extra_double: list[int] = field(default_factory=list)
    steps: dict[int, list[int]] = field(default_factory=dict)  # clock: [last, multiplier, is incremental]
    sums: dict[int, float] = field(default_factory=dict)

    def clear(self) -> None:
        self.__init__(valid=True, steps=self.steps)


@dataclass
class Said:
    """What a file says, times on the clock of the trace."""

    slices: Counter[Any] = field(default_factory=Counter)  # (name, category, ts, dur or -1)
    instants: Counter[Any] = field(default_factory=Counter)  # (name, category, ts)
    samples: Counter[Any] = field(default_factory=Counter)  # (ts, value)
    flows: Counter[Any] = field(default_factory=Counter)  # (source name, destination name, ts, ts)
    arguments: Counter[Any] = field(default_factory=Counter)  # (slice or instant, correlation, canonical JSON)


class PlainReader:
    """Reads one file, first packets in order of the file, then tracks in order of time."""

    def __init__(self, content: bytes) -> None:
        self._sequences: dict[int, Sequence] = defaultdict(Sequence)
        self._events: list[dict[str, Any]] = []
        self._samples: list[tuple[int, Any, int, float]] = []  # ts, clock, track, value
        self._counters: dict[int, Any] = {}
        self._readings: list[dict[Any, int]] = []
        self._primary = 0
        for packet in _packets(TraceProto.FromString(content)):
            if packet.HasField("track_descriptor") and packet.track_descriptor.HasField("counter"):
                self._counters[packet.track_descriptor.uuid] = packet.track_descriptor.counter
        for packet in _packets(TraceProto.FromString(content)):
            self._packet(packet)

    # --- packets in order of the file -----------------------------------------------------------------------------

    def _packet(self, packet: Any) -> None:
        number = packet.trusted_packet_sequence_id
        if not number:
            return
        sequence = self._sequences[number]
        if packet.previous_packet_dropped:
            sequence.valid = False
        if packet.sequence_flags & 1 or packet.incremental_state_cleared:
            sequence.clear()
        if packet.sequence_flags & 2 and not sequence.valid:
            return
        if packet.HasField("trace_packet_defaults"):
            given = packet.trace_packet_defaults
            sequence.clock = given.timestamp_clock_id
            event = given.track_event_defaults
            sequence.track = event.track_uuid if event.HasField("track_uuid") else None
            sequence.extra = list(event.extra_counter_track_uuids)
            sequence.extra_double = list(event.extra_double_counter_track_uuids)
        if sequence.valid:
            data = packet.interned_data
            for known, new in (
                (sequence.names, data.event_names),
                (sequence.categories, data.event_categories),
                (sequence.argument_names, data.debug_annotation_names),
            ):
                for each in new:
                    known.setdefault(each.iid, each.name)
            for each in data.debug_annotation_string_values:
                sequence.argument_texts.setdefault(each.iid, each.str.decode("utf-8", "replace"))
        if packet.HasField("clock_snapshot"):
            self._snapshot(number, sequence, packet.clock_snapshot)
            return
        clock, ts = packet.timestamp_clock_id or sequence.clock, packet.timestamp
        if packet.HasField("timestamp") and clock in sequence.steps:
            last, multiplier, is_incremental = sequence.steps[clock]
            ts *= multiplier
            if is_incremental:  # whatever the packet holds; a step back is one around 64 bits
                ts = sequence.steps[clock][0] = (last + ts) % (1 << 64)
        if packet.HasField("track_event"):
            self._event(number, sequence, packet.track_event, ts, _clock(number, clock) if clock else None)

    def _snapshot(self, number: int, sequence: Sequence, snapshot: Any) -> None:
        self._primary = snapshot.primary_trace_clock or self._primary
        together = {}
        for each in snapshot.clocks:
            multiplier = each.unit_multiplier_ns or 1
            together[_clock(number, each.clock_id)] = each.timestamp * multiplier
            if 64 <= each.clock_id <= 127:
                steps = [each.timestamp * multiplier, multiplier, each.is_incremental]
                sequence.steps[each.clock_id] = steps
        self._readings.append(together)

    def _event(self, number: int, sequence: Sequence, event: TrackEvent, ts: int, clock: Any) -> None:
        if event.HasField("legacy_event"):
            raise OlderFormError
        uuid = event.track_uuid if event.HasField("track_uuid") else sequence.track
        track = uuid or ("of sequence", number)
        for values, given, usual in (
            (event.extra_counter_values, event.extra_counter_track_uuids, sequence.extra),
            (event.extra_double_counter_values, event.extra_double_counter_track_uuids, sequence.extra_double),
        ):
            for uuid_, value in zip(given or usual, values, strict=False):
                self._sample(sequence, ts, clock, uuid_, value)
        if event.type == TrackEvent.TYPE_COUNTER:
            is_double = event.HasField("double_counter_value")
            value = event.double_counter_value if is_double else event.counter_value
            self._sample(sequence, ts, clock, track, value)
            return
        name = event.name if event.HasField("name") else sequence.names.get(event.name_iid, "")
        categories = [sequence.categories[iid] for iid in event.category_iids if iid in sequence.categories]
        correlation = ""
        if event.HasField("correlation_id"):
            correlation = str(event.correlation_id)
        elif event.HasField("correlation_id_str"):
            correlation = event.correlation_id_str
        self._events.append(
            {
                "ts": ts,
                "clock": clock,
                "track": track,
                "type": event.type,
                "name": name,
                "has_name": event.HasField("name") or event.name_iid in sequence.names,
                "category": ",".join([*categories, *event.categories]),
                "arguments": {_name(each, sequence): _value(each, sequence) for each in event.debug_annotations},
                "correlation": correlation,
                "flows": [*event.flow_ids, *event.flow_ids_old],
                "ends": [*event.terminating_flow_ids, *event.terminating_flow_ids_old],
            }
        )

    def _sample(self, sequence: Sequence, ts: int, clock: Any, uuid: Any, value: float) -> None:
        counter = self._counters.get(uuid)
        if counter is not None and counter.is_incremental:
            value = sequence.sums[uuid] = sequence.sums.get(uuid, 0) + value
        self._samples.append((ts, clock, uuid, float(value) * ((counter and counter.unit_multiplier) or 1)))

    # --- tracks in order of time -----------------------------------------------------------------------------------

    def _moved(self, ts: int, clock: Any) -> int:
        """Return a time on the clock of the trace, over one snapshot: the last one before, else the first."""
        target = self._primary or BOOTTIME
        if clock in (None, target) or not any(target in each for each in self._readings):
            return ts
        both = [each for each in self._readings if clock in each and target in each]
        pairs = sorted((each[clock], at, each[target]) for at, each in enumerate(both))
        before = [pair for pair in pairs if pair[0] <= ts] or pairs[:1]
        return ts + before[-1][2] - before[-1][0]

    def said(self) -> Said:
        """Return what the file says."""
        found = Said()
        tracks: dict[Any, list[dict[str, Any]]] = defaultdict(list)
        for event in self._events:
            event["ts"] = self._moved(event["ts"], event["clock"])
            tracks[event["track"]].append(event)
        for events in tracks.values():
            self._track(sorted(events, key=lambda event: event["ts"]), found)
        chains: dict[int, list[tuple[dict[str, Any], bool]]] = defaultdict(list)
        for event in self._events:
            for key in event["flows"]:
                chains[key].append((event, False))
            for key in event["ends"]:
                chains[key].append((event, True))
        for chain in chains.values():
            chain.sort(key=lambda each: each[0]["ts"])
            for (source, is_end), (destination, _) in pairwise(chain):
                if not is_end:
                    names = [each["slice"]["name"] if "slice" in each else None for each in (source, destination)]
                    found.flows[*names, source["ts"], destination["ts"]] += 1
        for ts, clock, _, value in self._samples:
            found.samples[self._moved(ts, clock), value] += 1
        return found

    def _track(self, events: list[dict[str, Any]], found: Said) -> None:
        stack: list[dict[str, Any]] = []
        slices: list[dict[str, Any]] = []
        for event in events:
            kind = event["type"]
            if kind == TrackEvent.TYPE_INSTANT:
                key = event["name"], event["category"], event["ts"]
                found.instants[key] += 1
                _argue(found, key, [event])
            elif kind == TrackEvent.TYPE_SLICE_BEGIN:
                event["slice"] = event
                stack.append(event)
                slices.append(event)
            elif kind == TrackEvent.TYPE_SLICE_END:
                for begin in reversed(stack):
                    if event["has_name"] and begin["has_name"] and event["name"] != begin["name"]:
                        continue
                    if event["category"] and event["category"] != begin["category"]:
                        continue
                    begin["end"], event["slice"] = event, begin
                    stack.remove(begin)
                    break
        for begin in slices:
            end = begin.get("end")
            key = begin["name"], begin["category"], begin["ts"], -1 if end is None else end["ts"] - begin["ts"]
            found.slices[key] += 1
            _argue(found, key, [begin] if end is None else [begin, end])


def _packets(trace: Any) -> Any:
    for packet in trace.packet:
        if packet.HasField("compressed_packets"):
            yield from TraceProto.FromString(zlib.decompress(packet.compressed_packets)).packet
        else:
            yield packet


def _clock(sequence: int, clock: int) -> Any:
    return (sequence, clock) if 64 <= clock <= 127 else clock


def _argue(found: Said, key: Any, events: list[dict[str, Any]]) -> None:
    arguments: dict[str, Any] = {}
    for event in events:
        arguments |= event["arguments"]
    correlation = next((event["correlation"] for event in events if event["correlation"]), "")
    if arguments or correlation:
        found.arguments[key, correlation, _canonical(arguments)] += 1


def _canonical(value: Any) -> str:
    """Return JSON in which equal numbers are equal texts: it does not tell 5.0 from 5."""

    def plain(each: Any) -> Any:
        if isinstance(each, dict):
            return {key: plain(inner) for key, inner in each.items()}
        if isinstance(each, list):
            return [plain(inner) for inner in each]
        return int(each) if isinstance(each, float) and each.is_integer() else each

    return json.dumps(plain(value), sort_keys=True)


def _name(value: Any, sequence: Sequence) -> str:
    return value.name if value.HasField("name") else sequence.argument_names.get(value.name_iid, "")


def _value(value: Any, sequence: Sequence) -> Any:
    kind = value.WhichOneof("value")
    if kind == "string_value_iid":
        return sequence.argument_texts.get(value.string_value_iid, "(unknown text)")
    if kind == "pointer_value":
        return hex(value.pointer_value)
    if kind is not None:
        return getattr(value, kind)
    if value.dict_entries:
        return {_name(each, sequence): _value(each, sequence) for each in value.dict_entries}
    return [_value(each, sequence) for each in value.array_values]


def said(content: bytes) -> Said:
    """Return what a file says."""
    return PlainReader(content).said()


def of_trace(trace: Any) -> Said:
    """Return the same of a trace that was read."""
    found, zero = Said(), trace.time.epoch_ns
    keys: dict[str, list[Any]] = {}
    for table, counted in (("slices", found.slices), ("instants", found.instants)):
        keys[table] = []
        for row in trace.tables()[table].rows():
            key = [row["name"], row["category"], row["ts"] + zero]
            if table == "slices":
                key.append(-1 if row["dur"] is None else row["dur"])
            keys[table].append(tuple(key))
            counted[tuple(key)] += 1
    for row in trace.counters.rows():
        found.samples[row["ts"] + zero, row["value"]] += 1
    for row in trace.flows.rows():
        names = [
            None if row[column] is None else keys["slices"][row[column]][0]
            for column in ("src_slice_id", "dst_slice_id")
        ]
        found.flows[*names, row["src_ts"] + zero, row["dst_ts"] + zero] += 1
    for table, column in (("slices", "slice_id"), ("instants", "instant_id")):
        for row in trace.details[f"perfetto_{table}"].rows():
            arguments = _canonical(json.loads(row["arguments"]))
            found.arguments[keys[table][row[column]], row["correlation"], arguments] += 1
    return found


def same(trace: Any, content: bytes) -> None:
    """Assert that a trace has what the bindings find in a file, unless that has events of the older form."""
    try:
        theirs = said(content)
    except OlderFormError:
        return
    ours = of_trace(trace)
    for part in ("slices", "instants", "samples", "flows", "arguments"):
        assert getattr(ours, part) == getattr(theirs, part), part
