"""Where the declared fields of a recording lie: by its metadata."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.field_map.possible_values import (
    NS,
    RATE_PARTS,
    TICKS,
    ClockReadings,
    possible_change,
    possible_of,
    possible_pair,
    possible_rate,
    possible_tick,
    record_name,
)
from lanescope.families.field_sites import (
    EXCHANGED,
    FieldMap,
    FieldSites,
    PossibleChange,
    RecordSites,
    Value,
    each,
    never,
)
from lanescope.wire import ctf

#: Values of the description of a recording: key in the text, what it means.
METADATA_VALUES = {
    "domain": "Who wrote the recording.",
    "version": "Version of the records.",
    "hostname": "Name of the host.",
    "pid": "Process.",
    "boot": "Boot of the machine: processes of one share a clock.",
    "uuid": "Identifies the recording; stands in every packet.",
    "freq": "Frequency of the clock.",
    "offset_s": "Unix time at which the clock stood at 0, seconds.",
    "offset": "The rest of it, nanoseconds.",
}


def field_map(files: Mapping[str, bytes]) -> FieldMap:
    """Return the sites of a recording of one process: its ``metadata``, and the streams."""
    made = FieldMap()
    (name,) = (name for name in files if name.rpartition("/")[2] == "metadata")
    text = files[name]
    for key, doc in METADATA_VALUES.items():
        match = re.search(rb"\b%s = (\"[^\"]*\"|\d+)" % key.encode(), text)
        if match:
            possible = possible_of(key, frozenset())
            made.fields.append(
                FieldSites(
                    "metadata", key, doc, name, [match.start(1)], end=[match.end(1)], lane=[0], possible=possible
                )
            )
    reader = ctf.Reader(ctf.describe(text))
    for file, content in files.items():
        if file != name:
            _add_stream(made, file, content, reader)
    return made


class _Event(NamedTuple):
    number: int
    header: int
    payload: int
    end: int
    time: int


def _add_stream(made: FieldMap, file: str, content: bytes, reader: ctf.Reader) -> None:
    found = reader.read(np.frombuffer(content, np.uint8))
    about, where = reader.about, reader.layout
    packets = [int(at) for at in found.packet("offset")]
    made.fields += _of_header("packet", about.packet, file, packets)
    payloads = found.payloads.tolist()
    headers = [at - where.event_header for at in payloads]
    ends = [*headers[1:], int(found.packet("offset")[-1] + found.packet("content")[-1])] if payloads else []
    events = [
        _Event(*each)
        for each in zip(found.classes.tolist(), headers, payloads, ends, found.times.tolist(), strict=True)
    ]
    begin = [8 * (event.header + where.time) for event in events]
    time = FieldSites(
        "event",
        "timestamp",
        "Time, its low bits.",
        file,
        begin,
        ((0, 8 * where.time_size),),
        lane=[0] * len(begin),
        possible=each(_event_time(events, 8 * where.time_size)),
    )
    number = [8 * (event.header + where.id) for event in events]
    id_ = FieldSites(
        "event", "id", "Kind of the event.", file, number, ((0, 8 * where.id_size),), lane=[0] * len(begin)
    )
    made.fields += [time, id_]
    clocks = _clocks_of(events, content, about)
    found_fields: list[FieldSites] = []
    for kind in dict.fromkeys(event.number for event in events):
        known = about.events[kind]
        mine = [event for event in events if event.number == kind]
        found_fields += _of_event(known, file, content, mine, clocks)
    made.fields += _merged(found_fields)
    kinds = [_record(about.events[event.number].name) for event in events]
    for name in dict.fromkeys(kinds):
        mine = [event for event, kind in zip(events, kinds, strict=True) if kind == name]
        places = [event.header for event in mine]
        ends = [event.end for event in mine]
        change = _possible_exchange(possible_change(name, len(mine)), mine)
        made.records.append(RecordSites(name, file, places, ends, [0] * len(mine), possible=change))
    sizes = [int(size) for size in found.packet("size")]
    made.records.append(
        RecordSites(
            "packet", file, packets, [at + size for at, size in zip(packets, sizes, strict=True)], [0] * len(packets)
        )
    )


def _possible_exchange(change: PossibleChange, events: Sequence[_Event]) -> PossibleChange:
    def possible(kind: str, index: int) -> str:
        if kind == EXCHANGED and index + 1 < len(events) and events[index].time == events[index + 1].time:
            return "records of the same time, whose order means nothing"
        return change(kind, index)

    return possible


def _of_header(record: str, fields: Sequence[ctf.Field], file: str, begin: Sequence[int]) -> Iterator[FieldSites]:
    at = 0
    for item in fields:
        places = [8 * (place + at) for place in begin]
        width = 8 * item.size * item.count
        possible = possible_of(item.name, frozenset()) if item.name == "thread" else never
        lane = [0] * len(places)
        yield FieldSites(record, item.name, "", file, places, ((0, width),), lane=lane, possible=possible)
        at += item.size * item.count


def _event_time(events: Sequence[_Event], bits: int) -> Callable[[int, Value], str]:
    def possible(index: int, value: Value) -> str:
        assert isinstance(value, int)
        if not 0 < index < len(events) - 1:
            return ""
        before, after = events[index - 1].time, events[index + 1].time
        passed = (value - before) % (1 << bits)
        return "between the times of the events before and after it" if passed <= after - before else ""

    return possible


def _record(name: str) -> str:
    """Return the declared name of an event: those of API calls are alike."""
    return name if name.startswith(f"{layout.OURS}:") else record_name(layout.API, name)


def _merged(fields: Sequence[FieldSites]) -> Iterator[FieldSites]:
    """Join the sites of fields that are declared alike by several kinds of events."""
    groups: dict[tuple[Any, ...], list[FieldSites]] = {}
    for sites in fields:
        groups.setdefault((sites.record, sites.name, sites.pieces), []).append(sites)
    for found in groups.values():
        owners = [(part, index) for part, sites in enumerate(found) for index in range(len(sites))]

        def possible(
            values: Mapping[int, Value],
            found: Sequence[FieldSites] = found,
            owners: Sequence[tuple[int, int]] = owners,
        ) -> str:
            reasons = [found[owners[at][0]].possible({owners[at][1]: value}) for at, value in values.items()]
            return reasons[0] if all(reasons) else ""

        first = found[0]
        is_told = any(sites.possible is not never for sites in found)
        yield replace(
            first,
            begin=[at for sites in found for at in sites.begin],
            end=[at for sites in found for at in sites.end],
            lane=[part for part, _ in owners],
            possible=possible if is_told else never,
        )


def _values(known: ctf.EventClass, content: bytes, at: int) -> dict[str, Any]:
    values = ctf.ReferenceReader.fields(content, known.fields, at)
    return {item.name: value for item, value in zip(known.fields, values, strict=True)}


def _clocks_of(events: Sequence[_Event], content: bytes, about: ctf.Metadata) -> ClockReadings:
    """Collect readings of both clocks and the times of appends from a stream."""
    pairs, appends, rates = [], dict[Any, int](), dict[int, float]()
    entered = 0
    for event in events:
        known = about.events[event.number]
        if not known.name.startswith(f"{layout.OURS}:"):
            if known.name.endswith("_entry"):
                entered = event.time
            continue
        row = _values(known, content, event.payload)
        if known.name.endswith(":clock_pair"):
            pairs.append((row["device"], row["host_ns"], row["device_ticks"]))
        elif known.name.endswith(":device"):
            rates[row["device"]] = row["ticks_per_second_num"] / row["ticks_per_second_den"] / NS
        elif "op_id" in row and "api" in row:
            # The record stands where the call returned; the device may begin before that.
            appends[row["op_id"]] = entered if row.get("ends_call", 1) and entered else event.time
    return ClockReadings(pairs, appends, rates)


def _of_event(
    known: ctf.EventClass, file: str, content: bytes, events: Sequence[_Event], clocks: ClockReadings
) -> Iterator[FieldSites]:
    """Yield the fields of one kind of event."""
    places: dict[str, list[tuple[int, int]]] = {item.name: [] for item in known.fields}
    rows = [_values(known, content, event.payload) for event in events]
    for event, row in zip(events, rows, strict=True):
        at = event.payload
        for item in known.fields:
            value = row[item.name]
            count = len(value) if isinstance(value, list) else 1
            size = len(value) if isinstance(value, bytes) else item.size
            places[item.name] += [(at + size * element, size) for element in range(count)]
            at += size * count + (item.kind == ctf.TEXT)
    record = _record(known.name)
    for item in known.fields:
        found = places[item.name]
        lane = [0] * len(found)
        seen = frozenset(row[item.name] for row in rows if not isinstance(row[item.name], list))
        possible = possible_of(item.name, seen | frozenset(item.labels), is_append="Append" in known.name)
        if item.name in RATE_PARTS:
            possible = possible_rate([(row[RATE_PARTS[0]], row[RATE_PARTS[1]]) for row in rows], item.name)
        if item.name in ("host_ns", "device_ticks"):
            possible = each(_event_pair(item.name, rows, clocks))
        if item.name in TICKS:
            possible = each(_event_tick(item.name, events, rows, clocks))
        if item.kind == ctf.TEXT:
            begin, end = [at for at, _ in found], [at + size for at, size in found]
            yield FieldSites(record, item.name, "", file, begin, end=end, lane=lane, possible=possible)
        elif found:
            begin = [8 * at for at, _ in found]
            yield FieldSites(record, item.name, "", file, begin, ((0, 8 * item.size),), lane=lane, possible=possible)


def _event_pair(name: str, rows: Sequence[Mapping[str, Any]], clocks: ClockReadings) -> Callable[[int, Value], str]:
    def possible(index: int, value: Value) -> str:
        row = rows[index]
        return possible_pair(row, name, value, clocks.rates.get(row["device"], 0)) if "error_ns" in row else ""

    return possible


def _event_tick(
    name: str, events: Sequence[_Event], rows: Sequence[Mapping[str, Any]], clocks: ClockReadings
) -> Callable[[int, Value], str]:
    def possible(index: int, value: Value) -> str:
        row = rows[index]
        append = clocks.appends.get(row["op_id"])
        return possible_tick(clocks, {part: row[part] for part in TICKS}, name, value, append, events[index].time)

    return possible
