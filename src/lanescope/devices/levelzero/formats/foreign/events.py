"""Events of any producer -> the event model: THAPI's by their meaning, pairs as calls, all others as points in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.event_model import Events, Rows
from lanescope.devices.levelzero.formats.event_tables import EVENTS
from lanescope.devices.levelzero.formats.foreign.payload_reader import PayloadReader, Records
from lanescope.devices.levelzero.formats.foreign.payloads import payloads, records
from lanescope.devices.levelzero.formats.foreign.streams import Foreign, Stream
from lanescope.devices.levelzero.formats.foreign.value_texts import written
from lanescope.devices.levelzero.formats.host_apis import HOST_APIS, PROVIDERS, result_text
from lanescope.devices.levelzero.formats.text_handlers import handler_of
from lanescope.devices.levelzero.formats.text_records import Handler, result_name
from lanescope.wire import tsdl

Int64 = npt.NDArray[np.int64]
#: Of records: kind, row among those of the kind (None: place among all), position, time, thread.
_Columns = tuple[npt.NDArray[np.int32], Int64 | None, Int64, Int64, npt.NDArray[np.int32]]

_FIELDS = "event.fields:"
#: How names of two events that start and end something differ: a begin or an end of the name, each for each.
_ENDINGS = (("_entry", "_exit"), ("_enter", "_exit"), ("_begin", "_end"), ("_start", "_end"), ("_start", "_stop"))
_BEGINNINGS = (("syscall_entry_", "syscall_exit_"),)


@dataclass(slots=True, eq=False)
class Points:
    """Events that are points in time, in the order of all events.

    Attributes:
        ts: int64 [n], ns since the Unix epoch.
        thread: int32 [n], row of threads.
        name: int32 [n], index into ``names``.
        names: all names.
        stream: int32 [n], which stream it is from.
        row: int64 [n], which event of that stream.
    """

    ts: Int64
    thread: npt.NDArray[np.int32]
    name: npt.NDArray[np.int32]
    names: list[str]
    stream: npt.NDArray[np.int32]
    row: Int64


@dataclass(slots=True)
class Report:
    """What was noticed.

    Attributes:
        untimed: events without a time, by stream.
        bad: events whose fields are not what they have to be, by stream and name.
    """

    untimed: dict[int, int] = field(default_factory=dict)
    bad: dict[tuple[int, str], int] = field(default_factory=dict)


def model(found: Foreign) -> tuple[Events, Points, Report]:
    """Make the event model of everything that a folder holds."""
    return _Maker(found).make()


def pairs_of(names: Sequence[str]) -> dict[str, tuple[str, bool]]:
    """Return what starts and ends something: by name what it is, and whether it ends it.

    Example:
        >>> pairs_of(["app:work_begin", "app:work_end", "app:lonely_begin"])
        {'app:work_begin': ('app:work', False), 'app:work_end': ('app:work', True)}
    """
    known, made = set(names), dict[str, tuple[str, bool]]()
    for name in names:
        for start, end in _ENDINGS:
            base = name.removesuffix(start)
            if base != name and base + end in known and name not in made and base + end not in made:
                made[name], made[base + end] = (base, False), (base, True)
        for start, end in _BEGINNINGS:
            base = name.removeprefix(start)
            if base != name and end + base in known:
                made[name], made[end + base] = (f"syscall {base}", False), (f"syscall {base}", True)
    return made


def functions_of(names: Sequence[str]) -> list[tuple[str, bool, str] | None]:
    """Return what kinds of events are of calls: function, whether they return, provider of THAPI; None if they are not.

    Example:
        >>> functions_of(["lttng_ust_ze:zeInit_exit", "app:tick"])
        [('zeInit', True, 'lttng_ust_ze'), None]
    """
    pairs, made = pairs_of(names), list[tuple[str, bool, str] | None]()
    for name in names:
        provider, _, event = name.partition(":")
        function, _, end = event.rpartition("_")
        if provider in (*layout.APIS, *HOST_APIS) and function and end in ("entry", "exit"):
            made.append((function, end == "exit", provider))
        else:
            made.append((*pairs[name], "") if name in pairs else None)
    return made


def result_texts(stream: Stream, row: int, provider: str, rows: Int64) -> tuple[list[str], Int64] | None:
    """Return the results of exits that occur, and which one each has; None if they have none."""
    api = HOST_APIS.get(provider)
    name = _FIELDS + ("zeResult" if api is None else api.result)
    column = stream.trace.reader.columns(stream.walk, row, rows, [name]).get(name)
    if column is None or not isinstance(column.leaf.kind, tsdl.Integer):
        return None
    values, inverse = np.unique(column.values, return_inverse=True)
    texts = []
    for value in values.view(np.int64).tolist():
        label = next((label for label, first, last in column.leaf.kind.labels or () if first <= value <= last), None)
        written = label or str(value if api is not None else value & 0xFFFFFFFF)
        texts.append(result_name(written) if api is None else result_text(api, written) or written)
    return texts, inverse


def _rows_of(kinds: npt.NDArray[np.int32], rows: Int64 | None) -> Int64:
    """Return rows of records; None: those of all, as they stand."""
    return np.arange(len(kinds)) if rows is None else rows


class _Maker:
    def __init__(self, found: Foreign) -> None:
        self._found = found
        self._rows = {spec.name: Rows(spec) for spec in EVENTS}
        self._report = Report()
        self._points: list[tuple[Int64, ...]] = []
        self._names: dict[str, int] = {}
        #: Kinds of events that handlers read: stream, row of its reader's events, name.
        self._special: list[tuple[int, int, str, Handler]] = []
        #: The events of each stream that are of them.
        self._records: list[_Columns] = []
        self._payloads: list[core.LevelZeroColumns] = []

    def make(self) -> tuple[Events, Points, Report]:
        for host, pid in self._found.processes:
            self._rows["processes"].add((host, pid))
        for process, tid in self._found.threads:
            self._rows["threads"].add((process, tid))
        for number, stream in enumerate(self._found.streams):
            self._add(number, stream)
        self._handle()
        tables = {
            name: rows.table("seq" if "seq" in rows.spec.names else "append" if name == "waits" else "")
            for name, rows in self._rows.items()
        }
        return Events(tables), self._made_points(), self._report

    def _add(self, number: int, stream: Stream) -> None:
        reader, walk = stream.trace.reader, stream.walk
        untimed = int(np.count_nonzero(~stream.timed))
        if untimed:
            self._report.untimed[number] = untimed
        count = len(reader.events)
        present = np.flatnonzero(core.ctf_counts(walk.kinds, count)).tolist()
        names = [kind.name for _, kind in reader.events]
        pairs = pairs_of(names)
        functions = self._rows["calls"].dictionary("function")
        code, leaves = np.full(count, -1, np.int32), np.zeros(count, np.bool_)
        special = np.full(count, -1, np.int32)
        points = np.full(count, -1, np.int32)
        for row in present:
            name = names[row]
            provider, _, event = name.partition(":")
            handler = handler_of(provider, event) if provider in (*layout.PROVIDERS, *PROVIDERS) else None
            if handler is not None:
                special[row] = len(self._special)
                self._special.append((number, row, name, handler))
            elif name in pairs:
                base, leaves[row] = pairs[name]
                code[row] = functions.code(base)
            else:
                points[row] = self._names.setdefault(name, len(self._names))
        self._add_records(stream, special, are_all=bool((special[present] >= 0).all()))
        self._add_calls(stream, code, leaves)
        self._add_points(number, stream, points)

    def _add_points(self, number: int, stream: Stream, points: npt.NDArray[np.int32]) -> None:
        """Take the other events of a stream: index into the names by kind, -1 for others."""
        if not (points >= 0).any():
            return
        of_event = points[stream.walk.kinds]
        rows = np.flatnonzero((of_event >= 0) & stream.timed)
        if len(rows):
            self._points.append(
                (
                    stream.seq[rows],
                    stream.ts[rows],
                    stream.thread[rows].astype(np.int64),
                    of_event[rows].astype(np.int64),
                    np.full(len(rows), number, np.int64),
                    rows,
                )
            )

    def _add_calls(self, stream: Stream, code: npt.NDArray[np.int32], leaves: npt.NDArray[np.bool_]) -> None:
        """Take pairs of events of other producers as calls: function by kind, -1 for others, and which are exits."""
        if not (code >= 0).any():
            return
        of_event = code[stream.walk.kinds]
        rows = np.flatnonzero((of_event >= 0) & stream.timed)
        self._rows["calls"].add_block(
            {
                "seq": (stream.seq[rows], None),
                "ts": (stream.ts[rows], None),
                "thread_id": (stream.thread[rows], None),
                "function": (of_event[rows], None),
                "is_exit": (leaves[stream.walk.kinds[rows]], None),
            },
            len(rows),
        )

    # --- records that handlers read ---------------------------------------------------------------------------------

    def _add_records(self, stream: Stream, special: npt.NDArray[np.int32], *, are_all: bool) -> None:
        """Take the events of a stream whose kinds are special: index into ``_special`` by kind, -1 for all others.

        ``are_all``: no event is of another kind.
        """
        if not (special >= 0).any():
            return
        of_event = core.ctf_lookup(special, stream.walk.kinds)
        of_stream: tuple[npt.NDArray[Any], ...] = of_event, stream.seq, stream.ts, stream.thread
        events: Int64 | None = None  # all
        if not are_all or not stream.timed.all():
            events = np.flatnonzero((of_event >= 0) & stream.timed)
            of_stream = tuple(column[events] for column in of_stream)
        kinds, seq, ts, threads = of_stream
        rows = events
        for row in np.flatnonzero(special >= 0).tolist():
            fields = records(stream, row)
            if fields is None:
                here = np.flatnonzero(kinds == special[row])
                if rows is None or rows is events:
                    rows = _rows_of(kinds, events).copy()
                rows[here] = np.arange(len(here))
                fields = payloads(stream, row, here if events is None else events[here])
            self._payloads.append(fields)
        self._records.append((kinds, rows, seq, ts, threads))

    def _handle(self) -> None:
        if not self._special:
            return
        reader = PayloadReader(self._rows, [process for process, _ in self._found.threads])
        names = [name for _, _, name, _ in self._special]
        handlers = [handler for *_, handler in self._special]
        found = reader.read(Records(names, handlers, *self._in_order(), self._payloads))
        for group, count in found.items():
            key = self._special[group][0], names[group]
            self._report.bad[key] = self._report.bad.get(key, 0) + count
        for thread in reader.finish().values():
            self._rows["threads"].add(self._found.threads[thread])

    def _in_order(self) -> _Columns:
        """Return the records of all streams as one."""
        joined = self._records[0]
        if len(self._records) > 1:
            parts = ((kinds, _rows_of(kinds, rows), *rest) for kinds, rows, *rest in self._records)
            kinds, every, seq, ts, threads = map(np.concatenate, zip(*parts, strict=True))
            joined = kinds, every, seq, ts, threads
        kinds, rows, seq, ts, threads = joined
        if not bool((seq[1:] < seq[:-1]).any()):
            return joined
        order = np.argsort(seq, kind="stable")
        return kinds[order], _rows_of(kinds, rows)[order], seq[order], ts[order], threads[order]

    def _made_points(self) -> Points:
        parts = [np.concatenate(columns) for columns in zip(*self._points, strict=True)] if self._points else []
        if not parts:
            empty = np.empty(0, np.int64)
            return Points(empty, empty.astype(np.int32), empty.astype(np.int32), [], empty.astype(np.int32), empty)
        order = np.argsort(parts[0], kind="stable")
        _, ts, thread, name, stream, row = (part[order] for part in parts)
        small = np.int32
        return Points(ts, thread.astype(small), name.astype(small), list(self._names), stream.astype(small), row)


def field_texts(found: Foreign, points: Points) -> list[str]:
    """Return the fields of points in time as text, all of them; slow."""
    made = [""] * len(points.ts)
    for number, stream in enumerate(found.streams):
        mine = np.flatnonzero(points.stream == number)
        kinds = stream.walk.kinds[points.row[mine]]
        for row in np.flatnonzero(np.bincount(kinds, minlength=1)).tolist():
            here = mine[kinds == row]
            parts = []
            for name, column in stream.trace.reader.columns(stream.walk, row, points.row[here]).items():
                root, _, name = name.partition(":")
                if root in ("event.fields", "event.context", "stream.event.context"):
                    parts.append(written("", name, column))
            for at, fields in zip(here.tolist(), zip(*parts, strict=True) if parts else [()] * len(here), strict=True):
                made[at] = ", ".join(part for part in fields if part is not None)
    return made
