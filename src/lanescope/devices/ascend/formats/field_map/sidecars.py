"""Where the fields of sidecar files lie that consist of lines: phases and logs of the host, counters, scopes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath

from lanescope.devices.ascend.formats.field_map.sidecar_values import (
    possible_change,
    possible_phases,
    possible_positions,
    possible_spans,
)
from lanescope.devices.ascend.formats.pmu import MOST_OUTSIDE
from lanescope.families.field_sites import FieldMap, FieldSites, Possible, RecordSites, Value, each, never
from lanescope.wire.json_spans import spans

#: A value: record, field, its first byte and the byte after it.
Cell = tuple[str, str, int, int]
#: A record: what it is, its first byte and the byte after it.
Row = tuple[str, int, int]

_DOCS = {
    ("host_phases", "phase"): "What the host did.",
    ("host_phases", "start_ns"): "Host's clock before it.",
    ("host_phases", "end_ns"): "Host's clock after it.",
    ("host_phases", "detail"): "Task, bytes or index.",
    ("host_phases", "tid"): "Thread.",
    ("host_phases run", "pid"): "Process.",
    ("host_phases run", "inv"): "Number of the run in the process.",
    ("host_phases run", "clock"): "Clock of the times.",
    ("host_phases run", "dropped"): "Records that were dropped.",
    ("scope run", "version"): "Version of the file.",
    ("scope run", "fatal"): "Whether the run failed.",
    ("scope run", "dropped"): "Records that were dropped.",
    ("scope run", "total"): "Records that were attempted.",
    ("scope", "site"): "File and line of the scope.",
    ("scope", "phase"): "Start or end.",
    ("scope", "depth"): "Scopes around it.",
    ("scope", "ring"): "Its ring.",
    ("scope", "tensormap"): "Entries of the tensor map in use.",
    **{
        ("scope", f"{name}_{side}"): f"{'Tail' if side == 'start' else 'Head'} of the {name}."
        for name in ("task_window", "heap", "dep_pool")
        for side in ("start", "end")
    },
    ("span", "pid"): "Process.",
    ("span", "tid"): "Thread.",
    ("span", "inv"): "Number of the run in the process.",
    ("span", "hid"): "Hash of what was called.",
    ("span", "depth"): "Spans around it.",
    ("span", "name"): "Its name.",
    ("span", "ts"): "Its start.",
    ("span", "dur"): "Its duration.",
}
_SPAN = re.compile(rb"\b(pid|tid|inv|hid|depth|name|ts|dur)=(\S+)")
_COUNT = "a number that nothing else tells"
#: Fields of which any number may be: what counts them, or compares them, is in no file.
_FREE = {
    ("host_phases", "detail"),
    ("host_phases", "tid"),
    ("span", "tid"),
    ("scope", "tensormap"),
}
_TEXTS = {
    ("host_phases", "phase"): "another phase that the host may have",
    ("scope", "site"): "another place in a program",
    ("span", "name"): "another name of a span",
}


def add_lines(made: FieldMap, file: str, content: bytes, files: Mapping[str, bytes]) -> bool:
    """Add the sites of a sidecar file of lines, one of all ``files``, the records first; return whether it is one."""
    found = _READERS.get(PurePosixPath(file).suffix)
    if found is None:
        return False
    cells: dict[tuple[str, str], list[tuple[int, int]]] = {}
    rows: dict[str, list[tuple[int, int]]] = {}
    at = 0
    for number, line in enumerate(content.split(b"\n")):
        for item in found(number, line, content.split(b"\n", 1)[0]):
            if len(item) == 4:
                cells.setdefault((item[0], item[1]), []).append((item[2] + at, item[3] + at))
            else:
                rows.setdefault(item[0], []).append((item[1] + at, item[2] + at))
        at += len(line) + 1
    known = _known(content, files)
    for (record, name), places in cells.items():
        begin, end = (list(values) for values in zip(*places, strict=True))
        doc = _DOCS.get((record, name), f"Value of the counter {name}.")
        possible = known.get((record, name)) or _possible(record, name)
        made.fields.append(
            FieldSites(record, name, doc, file, begin, end=end, lane=[0] * len(begin), possible=possible)
        )
    for record, ranges in rows.items():
        begin, end = (list(values) for values in zip(*ranges, strict=True))
        joint = b"," if record == "host_phases" else b"\n"
        made.records.append(
            RecordSites(
                record,
                file,
                begin,
                end,
                [0] * len(begin),
                joint=joint,
                possible=possible_change(record, content),
            )
        )
    return True


def _known(content: bytes, files: Mapping[str, bytes]) -> Mapping[tuple[str, str], Possible]:
    """Return what is possible of fields that something in the capture bounds."""
    records = next(iter(files.values()))
    if b"[STRACE]" in content:
        return possible_spans(content)
    if content.startswith(b"thread_id,"):
        is_told = b'"core_to_thread"' in records
        return {} if is_told else {("counter", "thread_id"): each(lambda _, value: _COUNT if _is_number(value) else "")}
    if b'"records"' in content:
        has_log = any(b"[STRACE]" in text for text in files.values())
        return possible_phases(content, records, has_log=has_log)
    return possible_positions(content)


def _possible(record: str, name: str) -> Possible:
    """Return what a healthy host or device could have written in place of a value."""
    if record == "counter" and name not in _COUNTER_KEYS:
        return each(lambda _, value: _COUNT if isinstance(value, int) and 0 <= value <= MOST_OUTSIDE else "")
    if (record, name) in _FREE:
        return each(lambda _, value: _COUNT if _is_number(value) else "")
    if (record, name) in _TEXTS:
        return each(lambda _, value: _TEXTS[record, name] if _is_text(value) else "")
    return never


def _is_number(value: Value) -> bool:
    return isinstance(value, int) and 0 <= value < 1 << 62


def _is_text(value: Value) -> bool:
    return isinstance(value, bytes) and value.isascii() and b"\\" not in value and b" " not in value


def _of_phases(_: int, line: bytes, __: bytes) -> Iterator[Cell | Row]:
    for span in spans(line):
        path = span.path
        if len(path) == 3 and path[0] == "records" and span.is_leaf:
            yield "host_phases", str(path[2]), span.begin, span.end
        elif len(path) == 2 and path[0] == "records":
            yield "host_phases", span.begin, span.end
        elif len(path) == 1 and span.is_leaf:
            yield "host_phases run", str(path[0]), span.begin, span.end


def _of_scopes(number: int, line: bytes, _: bytes) -> Iterator[Cell | Row]:
    record = "scope" if number else "scope run"
    for span in spans(line):
        if len(span.path) == 1 and span.is_leaf and (record, str(span.path[0])) in _DOCS:
            yield record, str(span.path[0]), span.begin, span.end
        elif not span.path and number:
            yield record, span.begin, span.end


def _of_jsonl(number: int, line: bytes, first: bytes) -> Iterator[Cell | Row]:
    return (_of_phases if b'"records"' in first else _of_scopes)(number, line, first)


_COUNTER_KEYS = ("thread_id", "core_id", "task_id", "func_id", "core_type", "event_type")


def _of_counters(number: int, line: bytes, first: bytes) -> Iterator[Cell | Row]:
    if not number or not line:
        return
    at = 0
    for name, cell in zip(first.split(b","), line.split(b","), strict=True):
        yield "counter", name.decode(), at, at + len(cell)
        at += len(cell) + 1
    yield "counter", 0, len(line)


def _of_log(_: int, line: bytes, __: bytes) -> Iterator[Cell | Row]:
    at = line.find(b"[STRACE]")
    if at < 0:
        return
    for match in _SPAN.finditer(line, at):
        yield "span", match[1].decode(), match.start(2), match.end(2)
    yield "span", 0, len(line)


_READERS: dict[str, Callable[[int, bytes, bytes], Iterator[Cell | Row]]] = {
    ".jsonl": _of_jsonl,
    ".csv": _of_counters,
    ".log": _of_log,
}
