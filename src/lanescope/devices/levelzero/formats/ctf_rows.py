"""Tables of the event model, filled from the streams of a recording.

Also what they are filled from: streams, processes, and records of one kind as columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.event_model import Events, table_of
from lanescope.devices.levelzero.formats.event_tables import EVENTS
from lanescope.devices.levelzero.formats.text_records import result_name
from lanescope.source import Source
from lanescope.trace import Column, Dictionary, Table
from lanescope.wire import ctf

Int64 = npt.NDArray[np.int64]

#: Times beyond this are none: they come from damaged packets.
LATEST_NS = 1 << 62
#: Field of exits and of Appends that end their calls: how much of the call was not the driver's function.
OWN_TIME = "recorder_ns"
_SPECS = {spec.name: spec for spec in EVENTS}


@dataclass(slots=True, eq=False)
class Stream:
    """Stream of one file, written by one thread after another.

    Attributes:
        source: the file.
        part: its name within the recording.
        process: number of its process.
        events: its events.
        ts: int64 [events], ns since the Unix epoch.
        thread: int32 [events], row of ``threads``.
        is_open: whether its last packet was never completed: the thread did not end in order.
        seq: int64 [events], position among all events of the recording.
    """

    source: Source
    part: str
    process: int
    events: ctf.Events
    ts: Int64
    thread: npt.NDArray[np.int32]
    is_open: bool
    seq: Int64 = field(default_factory=lambda: np.empty(0, np.int64))


@dataclass(slots=True, eq=False)
class Process:
    """One process of a recording.

    Attributes:
        source: its description.
        part: name of its folder.
        reader: reads its streams.
        epoch_ns: Unix time of the 0 of its clock.
        ended: whether it came to its end in order.
        statistics: what the recorder counted, by name; empty when it did not come to that.
        unrecorded: the variable without which it was started, if it used Level Zero and was not recorded.
    """

    source: Source
    part: str
    reader: ctf.Reader | ctf.RewrittenReader
    epoch_ns: int
    ended: bool = False
    statistics: dict[str, int] = field(default_factory=dict)
    unrecorded: str = ""

    @property
    def is_original(self) -> bool:
        """Whether the recorder itself wrote it, not a program that rewrote it."""
        return isinstance(self.reader, ctf.Reader)

    def measures_itself(self) -> bool:
        """Return whether its recorder measured its own time within calls: older ones did not."""
        exits = [event for event in self.reader.about.events.values() if event.name.endswith("_exit")]
        return any(item.name == OWN_TIME for event in exits for item in event.fields)


@dataclass(frozen=True, slots=True, eq=False)
class Pause:
    """Time outside of regions: nothing but what a later region needs was recorded.

    Attributes:
        process: number of the process.
        begin: ns since the Unix epoch.
        end: None: until the end.
    """

    process: int
    begin: int
    end: int | None


class Records:
    """Records of one kind in one stream."""

    def __init__(self, stream: Stream, process: Process, number: int, rows: Int64) -> None:
        self.stream, self.process, self.number, self.rows = stream, process, number, rows
        self.ts, self.seq = stream.ts[rows], stream.seq[rows]
        self.fields = {item.name: item for item in process.reader.about.events[number].fields}
        self._columns = process.reader.columns(stream.events, number, rows)

    def stamps(self) -> dict[str, Any]:
        """Return position, time and thread of each record."""
        return {"seq": self.seq, "ts": self.ts, "thread_id": self.stream.thread[self.rows]}

    def has(self, name: str) -> bool:
        """Return whether this version of the records has a field."""
        return name in self._columns

    def integers(self, name: str) -> npt.NDArray[np.uint64]:
        """Return an integer field, uint64 [n]; 0 where this version of the records has none."""
        if name not in self._columns or self.fields[name].kind != ctf.INTEGER:
            return np.zeros(len(self.rows), np.uint64)
        found: npt.NDArray[np.uint64] = self._columns[name][0]
        return found

    def texts(self, name: str) -> list[str]:
        """Return a text field."""
        if name not in self._columns or self.fields[name].kind != ctf.TEXT:
            return [""] * len(self.rows)
        return ctf.texts(self.stream.events.data, self._columns[name])

    def sequences(self, name: str) -> tuple[Int64, npt.NDArray[np.uint64]]:
        """Return the elements of a field of sequences: whose each is, and the elements."""
        if name not in self._columns or self.fields[name].kind != ctf.SEQUENCE:
            return np.empty(0, np.int64), np.empty(0, np.uint64)
        return ctf.sequences(self.stream.events.data, self._columns[name], self.fields[name].size)

    def labels(self, name: str) -> tuple[list[str], Int64]:
        """Return the texts of an enumeration that occur, unknown values as numbers; and which one each record has."""
        unique, inverse = np.unique(self.integers(name), return_inverse=True)
        labels = self.fields[name].labels if name in self.fields else {}
        return [labels.get(value, f"{value}") for value in unique.tolist()], inverse

    def codes(self, name: str, dictionary: Dictionary) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        """Return the codes of an enumeration's texts, and which of them say anything."""
        texts, which = self.labels(name)
        known = np.array([bool(text) for text in texts], np.bool_)
        return dictionary.codes(texts)[which], known[which]

    def time(self, name: str) -> Int64:
        """Return a field that holds a time of the trace's clock, ns since the Unix epoch."""
        return np.minimum(self.integers(name), np.uint64(LATEST_NS)).astype(np.int64) + self.process.epoch_ns


class RecordRows:
    """Collects the tables of the event model, stream by stream."""

    def __init__(self) -> None:
        self._parts: dict[str, list[dict[str, Any]]] = {spec.name: [] for spec in EVENTS}
        self._texts: dict[tuple[str, str], Dictionary] = {}
        self._processes: list[tuple[str, int]] = []
        self._ranks: list[tuple[int, int, int]] = []
        self._threads: dict[tuple[int, int], int] = {}
        self._appends = 0
        self._regions: list[tuple[int, int, int, bool]] = []

    # --- who ----------------------------------------------------------------------------------------------------

    def process(self, host: str, pid: str | int) -> int:
        """Add a process; return its number."""
        self._processes.append((host, pid if isinstance(pid, int) and 0 <= pid < 1 << 31 else 0))
        return len(self._processes) - 1

    def rank(self, process: int, rank: str | int | None, ranks: str | int) -> None:
        """Add the rank of a process, if it has one."""
        if isinstance(rank, int) and 0 <= rank < 1 << 31:
            self._ranks.append((process, rank, ranks if isinstance(ranks, int) and rank < ranks < 1 << 31 else 0))

    def threads(self, process: int, stream: Stream) -> npt.NDArray[np.int32]:
        """Return the thread of each event: packets name theirs."""
        numbers, counts = stream.events.packet("thread"), stream.events.packet("events").astype(np.int64)
        rows = [self._threads.setdefault((process, tid), len(self._threads)) for tid in numbers.tolist()]
        return np.repeat(np.array(rows, np.int32), counts)

    # --- what ---------------------------------------------------------------------------------------------------

    def codes(self, table: str, column: str) -> Dictionary:
        """Return the texts of a column."""
        return self._texts.setdefault((table, column), Dictionary())

    def put(self, table: str, records: Records, **columns: Any) -> None:
        """Add rows: each column an array, a scalar, or a pair of values and which of them are known."""
        self._parts[table].append({**records.stamps(), **columns})

    def add_calls(self, stream: Stream, process: Process, names: dict[int, str]) -> None:
        """Add entries and exits of API calls; ``names`` are those of the classes that occur."""
        about, found = process.reader.about, stream.events
        functions, results = self.codes("calls", "function"), self.codes("calls", "result")
        width = max(names) + 1
        code, leaves = np.full(width, -1, np.int32), np.zeros(width, np.bool_)
        for number, name in names.items():
            base, underscore, end = name.rpartition("_")
            if underscore and end in ("entry", "exit") and ":" not in name:
                code[number], leaves[number] = functions.code(base), end == "exit"
        rows = np.flatnonzero(code[found.classes] >= 0)
        classes = found.classes[rows]
        result, known = np.zeros(len(rows), np.int32), np.zeros(len(rows), np.bool_)
        size, sized = np.zeros(len(rows), np.uint64), np.zeros(len(rows), np.bool_)
        own, measured = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)
        for number in np.flatnonzero(np.bincount(classes, minlength=1)).tolist():
            fields = {item.name: item for item in about.events[number].fields}
            if not leaves[number]:
                self._add_handles(Records(stream, process, number, rows[classes == number]), names[number])
            wanted = "zeResult" if leaves[number] else "size" if "Memory" in names[number] else ""
            if wanted not in fields:
                continue
            here = np.flatnonzero(classes == number)
            columns = process.reader.columns(found, number, rows[here])
            values = columns[wanted][0]
            if leaves[number]:
                if OWN_TIME in columns:
                    own[here], measured[here] = columns[OWN_TIME][0], True
                result[here], known[here] = _result_codes(values, fields[wanted], results), True
            else:
                size[here], sized[here] = values, True
        if len(rows):
            self._parts["calls"].append(
                {
                    "seq": stream.seq[rows],
                    "ts": stream.ts[rows],
                    "thread_id": stream.thread[rows],
                    "function": code[classes],
                    "is_exit": leaves[classes],
                    "result": (result, known),
                    "bytes": (size, sized),
                }
            )
        self._add_own(stream, rows[measured], own[measured])

    def _add_handles(self, records: Records, name: str) -> None:
        """Add what calls wait for, and fences that executions signal, from entries of one function."""
        function = name.removesuffix("_entry")
        if function in layout.WAITS:
            target, field = layout.WAITS[function]
            if records.has(field):
                code = self.codes("host_waits", "target").code(target)
                self.put("host_waits", records, target=code, handle=records.integers(field))
        elif function == layout.FENCED[0] and records.has(layout.FENCED[1]):
            fences = records.integers(layout.FENCED[1])
            given = np.flatnonzero(fences)
            if len(given):
                some = Records(records.stream, records.process, records.number, records.rows[given])
                self.put("fences", some, fence=fences[given])

    def _add_own(self, stream: Stream, rows: Int64, own: Int64) -> None:
        """Add the recorder's own time within the calls that end at these rows of a stream."""
        if len(rows):
            stamps = {"seq": stream.seq[rows], "ts": stream.ts[rows], "thread_id": stream.thread[rows]}
            self._parts["recorder_times"].append({**stamps, "dur": own})

    def region(self, records: Records) -> None:
        """Add begins and ends of regions."""
        for ts, seq, on in zip(
            records.ts.tolist(), records.seq.tolist(), records.integers("recording").tolist(), strict=True
        ):
            self._regions.append((records.stream.process, ts, seq, bool(on)))

    # --- the end ------------------------------------------------------------------------------------------------

    def pauses(self) -> list[Pause]:
        """Return time outside of regions."""
        found, since = [], dict[int, int]()
        for process, ts, _, on in sorted(self._regions, key=lambda region: (region[0], region[2])):
            if not on:
                since.setdefault(process, ts)
            elif process in since:
                found.append(Pause(process, since.pop(process), ts))
        return found + [Pause(process, begin, None) for process, begin in since.items()]

    def events(self) -> Events:
        """Return the event model: all tables, in the order of events."""
        tables: dict[str, Table] = {
            "processes": table_of(
                _SPECS["processes"], {"host": [h for h, _ in self._processes], "pid": [p for _, p in self._processes]}
            ),
            "threads": table_of(
                _SPECS["threads"], {"process_id": [p for p, _ in self._threads], "tid": [t for _, t in self._threads]}
            ),
        }
        if self._ranks:
            names = _SPECS["ranks"].names
            columns = [list(column) for column in zip(*self._ranks, strict=True)]
            tables["ranks"] = table_of(_SPECS["ranks"], dict(zip(names, columns, strict=True)))
        order: dict[str, Int64] = {}
        for name, parts in self._parts.items():
            if not parts:
                continue
            made = Table(
                _SPECS[name], {c.name: self._column(name, c.name, c.type, parts) for c in _SPECS[name].columns}
            )
            if "seq" in made.spec.names:
                order[name] = np.argsort(made.values("seq"), kind="stable")
                made = made.take(order[name])
            tables[name] = made
        if "waits" in tables:
            # Waits name rows of `appends`, which are in another order now.
            place = np.empty(len(order["appends"]), np.int64)
            place[order["appends"]] = np.arange(len(place))
            waits = tables["waits"]
            append = place[waits.values("append")]
            by = np.argsort(append, kind="stable")
            tables["waits"] = table_of(waits.spec, {"append": append[by], "event": waits.values("event")[by]})
        return Events(tables)

    def clear(self) -> None:
        """Forget the rows, not their texts, processes and threads."""
        self._parts = {spec.name: [] for spec in EVENTS}
        self._appends = 0
        self._regions = []

    def _column(self, table: str, name: str, type_: str, parts: Sequence[dict[str, Any]]) -> Column:
        from lanescope.trace.column import DTYPES

        values, valid = [], []
        for part in parts:
            length = len(next(v for v in part.values() if isinstance(v, np.ndarray)))
            given, known = part.get(name), True
            if isinstance(given, tuple):
                given, known = given
            if given is None:
                given, known = "" if type_ == "utf8" else 0, False
            if np.ndim(given) == 0:
                given = np.full(length, given, DTYPES[type_])
            elif type_ == "int64" and isinstance(given, np.ndarray) and given.dtype == np.uint64:
                given = np.minimum(given, np.uint64(LATEST_NS))
            values.append(np.asarray(given, DTYPES[type_]))
            valid.append(np.full(length, known, np.bool_) if np.ndim(known) == 0 else known)
        mask = np.concatenate(valid)
        dictionary = self.codes(table, name) if type_ == "text" else None
        whole = np.concatenate(values)
        return Column.array(whole, valid=None if mask.all() else mask, dictionary=dictionary)

    def append(self, records: Records, **columns: Any) -> None:
        """Add Appends and what they wait for."""
        functions, kinds = self.codes("appends", "function"), self.codes("appends", "kind")
        texts, which = records.labels("api")
        self._ends(records, texts, which)
        kind = kinds.codes([layout.APPENDS.get(text, layout.OTHER) for text in texts])
        owner, events = records.sequences("waits")
        waits = np.bincount(owner, minlength=len(records.rows))
        how, reason = (records.codes(name, self.codes("appends", name)) for name in ("how", "reason"))
        self.put(
            "appends",
            records,
            function=functions.codes(texts)[which],
            kind=kind[which],
            op_id=records.integers("op_id"),
            list=records.integers("list_id"),
            event=not_zero(records.integers("signal")),
            waits=waits,
            how=how,
            reason=reason,
            **columns,
        )
        if len(owner):
            self._parts["waits"].append({"append": self._appends + owner, "event": events})
        self._appends += len(records.rows)

    def _ends(self, records: Records, texts: list[str], which: Int64) -> None:
        """Add the exits of calls that the records of their operations stand for."""
        ends = np.flatnonzero(records.integers("ends_call"))
        if len(ends):
            success = self.codes("calls", "result").code(layout.SUCCESS)
            self._parts["calls"].append(
                {
                    **{name: values[ends] for name, values in records.stamps().items()},
                    "function": self.codes("calls", "function").codes(texts)[which[ends]],
                    "is_exit": True,
                    "result": success,
                }
            )
            if records.has(OWN_TIME):
                own = records.integers(OWN_TIME)[ends].astype(np.int64)
                self._add_own(records.stream, records.rows[ends], own)


def _result_codes(values: npt.NDArray[np.uint64], kind: ctf.Field, results: Dictionary) -> npt.NDArray[np.int32]:
    unique, inverse = np.unique(values, return_inverse=True)
    names = [kind.labels.get(value) or result_name(f"{value & 0xFFFFFFFF}") for value in unique.tolist()]
    found: npt.NDArray[np.int32] = np.array([results.code(name) for name in names], np.int32)[inverse]
    return found


def not_zero(values: npt.NDArray[np.uint64]) -> tuple[Any, Any]:
    """Return values, and which of them are known: 0 means none."""
    return values, values != 0
