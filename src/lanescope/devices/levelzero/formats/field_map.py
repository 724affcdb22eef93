"""Where the declared fields of a trace lie: in text by line and name, in a recording by its metadata."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from lanescope.devices.levelzero.formats import layout
from lanescope.families.field_sites import (
    FieldMap,
    FieldSites,
    Possible,
    RecordSites,
    Value,
    each,
    never,
)
from lanescope.wire import ctf

#: Parts of the beginning of a text record, as ``layout.RECORD_START`` has them.
LINE_PARTS = {
    "hour": "Hour of the day.",
    "minute": "Minute.",
    "second": "Second.",
    "fraction": "Fraction of a second.",
    "host": "Name of the host.",
    "vpid": "Process.",
    "vtid": "Thread.",
    "provider": "Who defines the record.",
    "event": "Kind of the record.",
}
_LINE = re.compile(
    rb"(\d\d):(\d\d):(\d\d)\.(\d{1,9}) - (\S{1,255}) - vpid: (\d{1,10}), vtid: (\d{1,10}) - (\w{1,128}):(\w{1,255}): "
)
_FIELD = re.compile(rb'([A-Za-z_]\w*): ("(?:[^"\\]|\\.)*"|\[[^\]]*\]|[^\s,{}\[\]"](?:[^,{}\[\]"]*[^\s,{}\[\]"])?)')
_ITEM = re.compile(rb"[^\s,\[\]]+")
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

#: Counts and names that a program chooses, and what only names: nothing else in a trace depends on them.
_COUNTS = frozenset(
    (
        *("ordinal", "commandQueueGroupOrdinal", "index", "simd", "maxSubgroupSize", "code", "count", "pid"),
        *(f"{name}{axis}" for name in ("groupCount", "groupSize") for axis in "XYZ"),
        *(f"{name}_{axis}" for name in ("groups", "group") for axis in "xyz"),
        *("subdevice", "subdeviceId", "events", "packets", "lock_waits", "error_ns", "thread"),
        *("compute", "quiet", "ends_call", "offset", "offset_s"),
    )
)
_SIZES = frozenset(
    ("size", "bytes", "handle", "dstptr", "srcptr", "ptr", "pptr_val", "base", "hContext", "context", "dst", "src")
)
_NAMES = frozenset(("name", "pKernelName", "pName_val", "uuid", "hostname", "boot", "dst", "src"))
#: What may be another one of those that the trace has.
_ONE_OF_MANY = frozenset(("kernel", "hKernel", "memory"))
_TICKS = ("global_start", "global_end", "context_start", "context_end")
_TICK_NAMES = {"globalStart": "global_start", "globalEnd": "global_end", "contextStart": "context_start"}
_TICK_NAMES |= {"contextEnd": "context_end", **{name: name for name in _TICKS}}
_MOST_COUNT, _MOST_SIZE = (1 << 32) - 1, (1 << 63) - 1
_NS = 1_000_000_000
#: Timestamps of operations have 32 bits in the captures that are changed.
_WRAP = 1 << 32
_CHOSEN, _TOLD_ONCE = "a parameter that the program chose", "a name that nothing else tells"
_WINDOW = "between the append and the reading of the result"


def _possible(name: str, seen: frozenset[Value], *, is_append: bool = False) -> Possible:
    """Return which values of a field are possible, by its name alone.

    Args:
        name: the field.
        seen: its values in the trace.
        is_append: it belongs to a call whose result the operations contradict or bear out.
    """

    def possible(index: int, value: Value) -> str:
        if isinstance(value, int) and name in _COUNTS | _SIZES:
            return _CHOSEN if 0 <= value <= (_MOST_SIZE if name in _SIZES else _MOST_COUNT) else ""
        if isinstance(value, bytes) and name in _NAMES:
            is_name = _PRINTED.fullmatch(value) is not None
            return _TOLD_ONCE if is_name else ""
        if name in _ONE_OF_MANY:
            return "another one that the trace knows" if value in seen else ""
        if name == "zeResult" and not is_append:
            known = value in seen or value in layout.RESULTS or value in _RESULT_WORDS
            return "another result that a call may have" if known else ""
        return ""

    is_told = name in _COUNTS | _SIZES | _NAMES | _ONE_OF_MANY or (name == "zeResult" and not is_append)
    return each(possible) if is_told else never


#: A name, with its quotes or without.
_PRINTED = re.compile(rb'"(?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*"|[\x20-\x21\x23-\x5b\x5d-\x7e]*')
_RESULT_WORDS = frozenset(word.encode() for word in layout.RESULTS.values())


# --- text ---------------------------------------------------------------------------------------------------------


class _Line(NamedTuple):
    """A record: its bytes, when, in which thread, what."""

    begin: int
    end: int
    time: int
    thread: str
    kind: str
    match: re.Match[bytes]


def text_field_map(files: Mapping[str, bytes]) -> FieldMap:
    """Return the sites of a text, the first of ``files``."""
    file, content = next(iter(files.items()))
    lines = list(_lines(content))
    made = FieldMap()
    threads = _numbered([line.thread for line in lines])
    for group, (name, doc) in enumerate(LINE_PARTS.items(), 1):
        begin, end = [line.match.start(group) for line in lines], [line.match.end(group) for line in lines]
        possible = each(_line_time(lines, group)) if group <= 4 else never
        if name == "vtid":
            possible = each(_any_thread(lines))
        made.fields.append(
            FieldSites("line", name, doc, file, begin, end=end, lane=threads, is_padded=group <= 4, possible=possible)
        )
    found: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    for number, line in enumerate(lines):
        for match in _FIELD.finditer(content, line.match.end(), line.end):
            spans = [match.span(2)]
            if match[2].startswith(b"["):
                spans = [item.span() for item in _ITEM.finditer(content, match.start(2), match.end(2))]
            found.setdefault((line.kind, match[1].decode()), []).extend((*span, number) for span in spans)
    clocks = _Clocks.of_text(lines, content)
    for (kind, name), places in found.items():
        begin, end = [place[0] for place in places], [place[1] for place in places]
        if begin:
            mine = [threads[number] for *_, number in places]
            possible = _possible_in_text(name, places, lines, clocks, content)
            made.fields.append(FieldSites(kind, name, "", file, begin, end=end, lane=mine, possible=possible))
    for kind in dict.fromkeys(line.kind for line in lines):
        rows = [number for number, line in enumerate(lines) if line.kind == kind]
        begin, end = [lines[row].begin for row in rows], [lines[row].end for row in rows]
        lane = [threads[row] for row in rows]
        made.records.append(RecordSites(kind, file, begin, end, lane))
    return made


def _lines(content: bytes) -> Iterator[_Line]:
    at = 0
    for raw in content.splitlines(keepends=True):
        match = _LINE.match(content, at, at + len(raw))
        if match:
            hour, minute, second = (int(match[group]) for group in (1, 2, 3))
            time = (hour * 3600 + minute * 60 + second) * _NS + int(match[4].ljust(9, b"0"))
            thread = b" ".join(match.group(5, 6, 7)).decode(errors="replace")
            yield _Line(at, at + len(raw), time, thread, _kind(match[8].decode(), match[9].decode()), match)
        at += len(raw)


def _kind(provider: str, event: str) -> str:
    """Return the declared name of a record: those of API calls are alike."""
    call = event.rpartition("_")[2]
    return f"{provider}:FUNCTION_{call}" if provider == layout.API else f"{provider}:{event}"


def _numbered(keys: Sequence[Any]) -> list[int]:
    numbers: dict[Any, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def _line_time(lines: Sequence[_Line], group: int) -> Callable[[int, Value], str]:
    """Return what holds for parts of the time: lines come in order of time."""
    unit = {1: 3600 * _NS, 2: 60 * _NS, 3: _NS, 4: 1}[group]

    def possible(index: int, value: Value) -> str:
        line = lines[index]
        assert isinstance(value, int)
        if group == 4:
            if len(str(value)) > 9:
                return ""
            time = (
                line.time - int(line.match[4].ljust(9, b"0")) + int(str(value).zfill(len(line.match[4])).ljust(9, "0"))
            )
        else:
            time = line.time + (value - int(line.match[group])) * unit
        low = lines[index - 1].time if index else line.time
        high = lines[index + 1].time if index + 1 < len(lines) else line.time
        return "between the times of the lines before and after it" if low <= time <= high else ""

    return possible


def _any_thread(lines: Sequence[_Line]) -> Callable[[int, Value], str]:
    def possible(index: int, value: Value) -> str:
        is_call = lines[index].kind.startswith(f"{layout.API}:")
        is_thread = isinstance(value, int) and 0 <= value <= layout.MOST_PID
        return "a record that any thread may write" if is_thread and not is_call else ""

    return possible


class _Clocks:
    """Where the device's clocks stood at host times, as far as the trace itself tells.

    Attributes:
        pairs: device, host time, ticks.
        appends: when the operation of a number or event was appended.
        rates: ticks per nanosecond that devices declare, for those with one reading.
    """

    def __init__(
        self, pairs: Sequence[tuple[int, int, int]], appends: Mapping[Any, int], rates: Mapping[int, float] = {}
    ) -> None:
        self.pairs, self.appends, self.rates = pairs, appends, rates

    @classmethod
    def of_text(cls, lines: Sequence[_Line], content: bytes) -> _Clocks:
        """Collect them from a text."""
        pairs, appends = [], dict[Any, int]()
        for line in lines:
            fields: dict[bytes, bytes] = dict(_FIELD.findall(content, line.match.end(), line.end))
            ticks = fields.get(b"deviceTimestamp", fields.get(b"device_ticks"))
            if ticks is not None:
                device: bytes = fields.get(b"hDevice", fields.get(b"device", b""))
                pairs.append((_integer(device), line.time, int(ticks)))
            for name in (b"op_id", b"hSignalEvent", b"hEvent"):
                if name in fields and not line.kind.endswith(("results", "result")):
                    appends.setdefault(fields[name], line.time)
        return cls(pairs, appends)

    def window(self, first: int, last: int, ticks: int) -> tuple[int, int]:
        """Return the ticks between two host times on the device whose clock fits ``ticks``; (1, 0) where none does."""
        for device in {device for device, *_ in self.pairs}:
            mine = [(time, value) for of, time, value in self.pairs if of == device]
            (begin, low), (end, high) = mine[0], mine[-1]
            rate = (high - low) / (end - begin) if end > begin else self.rates.get(device, 0)
            found = round(low + (first - begin) * rate), round(low + (last - begin) * rate)
            if rate > 0 and (ticks - found[0] & _WRAP - 1) <= found[1] - found[0]:
                return found
        return 1, 0


def _integer(raw: bytes) -> int:
    return int(raw, 0) if raw else 0


def _possible_in_text(
    name: str, places: Sequence[tuple[int, int, int]], lines: Sequence[_Line], clocks: _Clocks, content: bytes
) -> Possible:
    """Return which values of a field are possible: ticks between the append and the result, parameters."""
    part = _TICK_NAMES.get(name)
    if part is None:
        return _by_call(name, places, lines, content)

    def possible(index: int, value: Value) -> str:
        line = lines[places[index][2]]
        fields = dict(_FIELD.findall(content, line.match.end(), line.end))
        row = {_TICK_NAMES[key.decode()]: int(raw) for key, raw in fields.items() if key.decode() in _TICK_NAMES}
        append = clocks.appends.get(fields.get(b"op_id", fields.get(b"hEvent", b"")))
        return _tick(clocks, row, part, value, append, line.time)

    return each(possible)


def _by_call(name: str, places: Sequence[tuple[int, int, int]], lines: Sequence[_Line], content: bytes) -> Possible:
    values = [content[begin:end] for begin, end, _ in places]
    seen = frozenset(int(raw, 0) if raw[:1].isdigit() and not raw.startswith(b"0x0x") else raw for raw in values)
    free, bound = _possible(name, seen), _possible(name, seen, is_append=True)
    if free is never:
        return never

    def possible(values: Mapping[int, Value]) -> str:
        is_append = any(b"Append" in lines[places[index][2]].match[9] for index in values)
        return (bound if is_append else free)(values)

    return possible


def _tick(clocks: _Clocks, row: Mapping[str, int], part: str, value: Value, append: int | None, read: int) -> str:
    """Return why an operation may have run at other ticks: after its append, before its result was read."""
    if append is None or not isinstance(value, int):
        return ""
    made = {**row, part: value}
    if any(not 0 <= ticks < _WRAP for ticks in made.values()):
        return ""
    ran, active = (made[f"{clock}_end"] - made[f"{clock}_start"] & _WRAP - 1 for clock in ("global", "context"))
    if max(ran, active) >= _WRAP // 2:
        return ""
    if part.startswith("context"):
        return "the context's clock: no more than the time by the global one" if active <= ran else ""
    low, high = clocks.window(append, read, row[part])
    return _WINDOW if (value - low & _WRAP - 1) <= high - low else ""


# --- recordings ---------------------------------------------------------------------------------------------------


def ctf_field_map(files: Mapping[str, bytes]) -> FieldMap:
    """Return the sites of a recording of one process: its ``metadata``, and the streams."""
    made = FieldMap()
    (name,) = (name for name in files if name.rpartition("/")[2] == "metadata")
    text = files[name]
    for key, doc in METADATA_VALUES.items():
        match = re.search(rb"\b%s = (\"[^\"]*\"|\d+)" % key.encode(), text)
        if match:
            possible = _possible(key, frozenset())
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
        made.records.append(RecordSites(name, file, places, [event.end for event in mine], [0] * len(mine)))
    sizes = [int(size) for size in found.packet("size")]
    made.records.append(
        RecordSites(
            "packet", file, packets, [at + size for at, size in zip(packets, sizes, strict=True)], [0] * len(packets)
        )
    )


def _of_header(record: str, fields: Sequence[ctf.Field], file: str, begin: Sequence[int]) -> Iterator[FieldSites]:
    at = 0
    for item in fields:
        places = [8 * (place + at) for place in begin]
        width = 8 * item.size * item.count
        possible = _possible(item.name, frozenset()) if item.name == "thread" else never
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
    return name if name.startswith(f"{layout.OURS}:") else _kind(layout.API, name)


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


def _clocks_of(events: Sequence[_Event], content: bytes, about: ctf.Metadata) -> _Clocks:
    """Collect readings of both clocks and the times of appends from a stream."""
    pairs, appends, rates = [], dict[Any, int](), dict[int, float]()
    for event in events:
        known = about.events[event.number]
        if not known.name.startswith(f"{layout.OURS}:"):
            continue
        row = _values(known, content, event.payload)
        if known.name.endswith(":clock_pair"):
            pairs.append((row["device"], row["host_ns"], row["device_ticks"]))
        elif known.name.endswith(":device"):
            rates[row["device"]] = row["ticks_per_second_num"] / row["ticks_per_second_den"] / _NS
        elif "op_id" in row and "api" in row:
            appends[row["op_id"]] = event.time
    return _Clocks(pairs, appends, rates)


def _of_event(
    known: ctf.EventClass, file: str, content: bytes, events: Sequence[_Event], clocks: _Clocks
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
        possible = _possible(item.name, seen | frozenset(item.labels), is_append="Append" in known.name)
        if item.name in _TICKS:
            possible = each(_event_tick(item.name, events, rows, clocks))
        if item.kind == ctf.TEXT:
            begin, end = [at for at, _ in found], [at + size for at, size in found]
            yield FieldSites(record, item.name, "", file, begin, end=end, lane=lane, possible=possible)
        elif found:
            begin = [8 * at for at, _ in found]
            yield FieldSites(record, item.name, "", file, begin, ((0, 8 * item.size),), lane=lane, possible=possible)


def _event_tick(
    name: str, events: Sequence[_Event], rows: Sequence[Mapping[str, Any]], clocks: _Clocks
) -> Callable[[int, Value], str]:
    def possible(index: int, value: Value) -> str:
        row = rows[index]
        append = clocks.appends.get(row["op_id"])
        return _tick(clocks, {part: row[part] for part in _TICKS}, name, value, append, events[index].time)

    return possible
