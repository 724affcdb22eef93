"""Where the declared fields of a text lie: by line and name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.field_map.possible_values import (
    NS,
    RATE_PARTS,
    TICK_NAMES,
    ClockReadings,
    Reading,
    possible_change,
    possible_of,
    possible_rate,
    possible_reading,
    possible_tick,
    record_name,
)
from lanescope.families.field_sites import FieldMap, FieldSites, Possible, RecordSites, Value, each, never

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


class _Line(NamedTuple):
    """A record: its bytes, when, in which thread, what."""

    begin: int
    end: int
    time: int
    thread: str
    kind: str
    match: re.Match[bytes]


def field_map(files: Mapping[str, bytes]) -> FieldMap:
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
    clocks = _readings(lines, content)
    for (kind, name), places in found.items():
        begin, end = [place[0] for place in places], [place[1] for place in places]
        if begin:
            mine = [threads[number] for *_, number in places]
            possible = _possible_in_text(name, places, lines, clocks, content)
            made.fields.append(FieldSites(kind, name, "", file, begin, end=end, lane=mine, possible=possible))
    quiet = list(_quiet(lines, content))
    for kind in dict.fromkeys(line.kind for line in lines):
        rows = [number for number, line in enumerate(lines) if line.kind == kind]
        begin, end = [lines[row].begin for row in rows], [lines[row].end for row in rows]
        lane = [threads[row] for row in rows]
        change = possible_change(kind, len(rows), [quiet[row] for row in rows])
        made.records.append(RecordSites(kind, file, begin, end, lane, possible=change))
    return made


def _lines(content: bytes) -> Iterator[_Line]:
    at = 0
    for raw in content.splitlines(keepends=True):
        match = _LINE.match(content, at, at + len(raw))
        if match:
            hour, minute, second = (int(match[group]) for group in (1, 2, 3))
            time = (hour * 3600 + minute * 60 + second) * NS + int(match[4].ljust(9, b"0"))
            thread = b" ".join(match.group(5, 6, 7)).decode(errors="replace")
            yield _Line(at, at + len(raw), time, thread, record_name(match[8].decode(), match[9].decode()), match)
        at += len(raw)


def _quiet(lines: Sequence[_Line], content: bytes) -> Iterator[bool]:
    """Yield for each line whether a program could have ended before it: calls have returned, results were read."""
    calls: dict[str, list[str]] = {}
    waiting: set[bytes] = set()
    for line in lines:
        yield not waiting and not any(calls.values())
        fields = _fields(line, content)
        if line.kind.endswith("FUNCTION_entry"):
            calls.setdefault(line.thread, []).append(line.kind)
        elif line.kind.endswith("FUNCTION_exit") and calls.get(line.thread):
            calls[line.thread].pop()
        if line.kind.endswith(("event_profiling", f"{layout.OURS}:op")):
            waiting.add(fields.get(b"op_id", fields.get(b"hEvent", b"")))
        elif line.kind.endswith(("results", "result")):
            waiting.discard(fields.get(b"op_id", fields.get(b"hEvent", b"")))


def _numbered(keys: Sequence[Any]) -> list[int]:
    numbers: dict[Any, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def _line_time(lines: Sequence[_Line], group: int) -> Callable[[int, Value], str]:
    """Return what holds for parts of the time: lines come in order of time."""
    unit = {1: 3600 * NS, 2: 60 * NS, 3: NS, 4: 1}[group]

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


def _integer(raw: bytes) -> int:
    return int(raw, 0) if raw else 0


def _possible_in_text(
    name: str, places: Sequence[tuple[int, int, int]], lines: Sequence[_Line], clocks: ClockReadings, content: bytes
) -> Possible:
    """Return which values of a field are possible: ticks between the append and the result, parameters."""
    part = TICK_NAMES.get(name)
    if name in RATE_PARTS:
        return possible_rate([_rate(lines[number], content) for *_, number in places], name)
    if name == "deviceTimestamp":
        return _reading_in_text(places, lines, clocks, content)
    if part is None:
        return _by_call(name, places, lines, content)

    def possible(index: int, value: Value) -> str:
        line = lines[places[index][2]]
        fields = dict(_FIELD.findall(content, line.match.end(), line.end))
        row = {TICK_NAMES[key.decode()]: int(raw) for key, raw in fields.items() if key.decode() in TICK_NAMES}
        append = clocks.appends.get(fields.get(b"op_id", fields.get(b"hEvent", b"")))
        return possible_tick(clocks, row, part, value, append, line.time)

    return each(possible)


def _fields(line: _Line, content: bytes) -> dict[bytes, bytes]:
    return dict(_FIELD.findall(content, line.match.end(), line.end))


def _rate(line: _Line, content: bytes) -> tuple[int, int]:
    fields = _fields(line, content)
    num, den = (_integer(fields.get(name.encode(), b"")) for name in RATE_PARTS)
    return num, den


def _reading_in_text(
    places: Sequence[tuple[int, int, int]], lines: Sequence[_Line], clocks: ClockReadings, content: bytes
) -> Possible:
    """Return which readings of a device's clock are possible: it was read after the line before was written."""
    readings = []
    for begin, end, number in places:
        since, until = lines[max(number - 1, 0)].time, lines[number].time
        device = _integer(_fields(lines[number], content).get(b"hDevice", b""))
        readings.append(Reading(device, since, until, int(content[begin:end])))

    def possible(index: int, value: Value) -> str:
        device, since, until, _ = readings[index]
        low, high = clocks.reading(device, since, until)
        if not isinstance(value, int):
            return ""
        if low - 1 <= value <= high + 1:
            return "between the record before and that of the reading"
        others = [other for place, other in enumerate(readings) if place != index and other.device == device]
        return possible_reading(readings[index]._replace(ticks=value), others)

    return each(possible)


def _by_call(name: str, places: Sequence[tuple[int, int, int]], lines: Sequence[_Line], content: bytes) -> Possible:
    values = [content[begin:end] for begin, end, _ in places]
    seen = frozenset(int(raw, 0) if raw[:1].isdigit() and not raw.startswith(b"0x0x") else raw for raw in values)
    if name in ("device", "hDevice"):
        described = (_fields(line, content) for line in lines if line.kind.endswith(":device"))
        seen |= {_integer(fields.get(name.encode(), b"")) for fields in described}
    free, bound = possible_of(name, seen), possible_of(name, seen, is_append=True)
    if free is never:
        return never

    def possible(values: Mapping[int, Value]) -> str:
        is_append = any(b"Append" in lines[places[index][2]].match[9] for index in values)
        return (bound if is_append else free)(values)

    return possible


def _readings(lines: Sequence[_Line], content: bytes) -> ClockReadings:
    """Collect readings of both clocks and the times of appends from a text."""
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
    return ClockReadings(pairs, appends)
