"""A folder that the recorder wrote -> the event model: one trace a process, one stream a thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.event_model import Events, table_of
from lanescope.devices.levelzero.formats.event_tables import EVENTS
from lanescope.devices.levelzero.formats.text_records import result_name
from lanescope.errors import InputError
from lanescope.source import Capture, Source
from lanescope.trace import Column, Dictionary, Table
from lanescope.wire import ctf

Int64 = npt.NDArray[np.int64]

#: Times beyond this are none: they come from damaged packets.
_LATEST_NS = 1 << 62
_STREAM = "stream_*"
#: Ending of the file that holds the packet that is being filled, beside its stream.
LIVE = ".live"
#: What a recording of ours calls itself, and the versions of its records that are read.
DOMAIN = "lanescope_ze"
VERSIONS = (1,)
_RECORD = f"{layout.OURS}:"


@dataclass(slots=True, eq=False)
class Stream:
    """What one thread after another wrote into one file.

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
    """

    source: Source
    part: str
    reader: ctf.Reader
    epoch_ns: int
    ended: bool = False
    statistics: dict[str, int] = field(default_factory=dict)


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


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """Everything that a folder holds.

    Attributes:
        processes: its processes.
        streams: their streams.
        events: the event model.
        pauses: time outside of regions.
    """

    processes: Sequence[Process]
    streams: Sequence[Stream]
    events: Events
    pauses: Sequence[Pause]


def read(capture: Capture) -> Recording:
    """Read a recording.

    Args:
        capture: the capture: a folder, or the description of one process.

    Raises:
        InputError: a description cannot be read, or is of another producer.
    """
    if capture.main.container != "raw":
        raise InputError(f"{capture.main.path}: a recording is a folder", hint="name the folder")
    main = Path(capture.main.path)
    folders = [main.parent] if capture.folder is None else sorted(_folders(capture.folder))
    processes: list[Process] = []
    streams: list[Stream] = []
    rows = _Rows()
    for folder in folders:
        is_main = folder == main.parent
        part = folder.name
        source = capture.main if is_main else capture.use(f"{part}/metadata", folder / "metadata")
        about = ctf.describe(bytes(source.read().data))
        if not is_main:
            source.close()
        if about.environment.get("domain") != DOMAIN or about.environment.get("version") not in VERSIONS:
            raise InputError(f"{source.path}: a trace of another producer", hint="babeltrace2 shows any CTF trace")
        process = Process(source, part, ctf.Reader(about), _epoch(about, processes))
        number = rows.process(str(about.environment.get("hostname", "")), about.environment.get("pid", 0))
        found: list[Stream] = []
        for path in sorted(folder.glob(_STREAM), key=_stream_order):
            if path.is_file() and path.stat().st_size:
                stream = _stream(capture.use(f"{part}/{path.name}", path), f"{part}/{path.name}", number, process)
                if found and stream.part == found[-1].part + LIVE:
                    _drop_duplicate_packet(found[-1], stream)
                found.append(stream)
        for stream in found:
            stream.ts = np.minimum(stream.events.times, np.uint64(_LATEST_NS)).astype(np.int64) + process.epoch_ns
            stream.thread = rows.threads(number, stream)
        streams += found
        processes.append(process)
    _order(streams)
    for stream in streams:
        rows.add(stream, processes[stream.process])
    return Recording(processes, streams, rows.events(), rows.pauses())


def _folders(folder: Path) -> Iterator[Path]:
    if (folder / "metadata").is_file():
        yield folder
        return
    for path in folder.glob("*/metadata"):
        if path.is_file():
            yield path.parent


def _epoch(about: ctf.Metadata, before: Sequence[Process]) -> int:
    """Return the begin of a process' clock; processes of one boot share a clock, so they share its first reading."""
    boot = about.environment.get("boot")
    for process in before:
        known = process.reader.about
        if (
            boot
            and known.environment.get("boot") == boot
            and abs(known.epoch_ns - about.epoch_ns) < layout.NS_PER_SECOND
        ):
            return process.epoch_ns
    return about.epoch_ns


def _stream_order(path: Path) -> tuple[int, str]:
    """Order streams by number, each before the packet that was being filled for it."""
    name = path.name.removesuffix(LIVE)
    return len(name), path.name


def _stream(source: Source, part: str, number: int, process: Process) -> Stream:
    events = process.reader.read(source.read())
    source.close()  # there may be more streams than files may be open
    complete = events.packet("complete")
    is_open = bool(len(complete)) and not (complete[-1] & np.uint64(1))
    return Stream(source, part, number, events, np.empty(0, np.int64), np.empty(0, np.int32), is_open)


def _drop_duplicate_packet(stream: Stream, live: Stream) -> None:
    """Leave one out of two packets of one number: a kill came when the packet had been appended, wholly or in part."""
    ours, theirs = stream.events, live.events
    if len(ours.packets) and len(theirs.packets) and ours.packet("sequence")[-1] == theirs.packet("sequence")[-1]:
        if ours.packet("cut")[-1]:
            stream.events = ours.drop_last_packet()
        else:
            live.events = theirs.drop_last_packet()


def _order(streams: Sequence[Stream]) -> None:
    """Put the events of all streams into one order: by time, those of one stream as they stand."""
    if not streams:
        return
    # A clock that steps back within a stream must not change the order of a thread's events.
    ts = np.concatenate([np.maximum.accumulate(s.ts) if len(s.ts) else s.ts for s in streams])
    seq = np.empty(len(ts), np.int64)
    seq[np.argsort(ts, kind="stable")] = np.arange(len(ts))
    at = 0
    for stream in streams:
        stream.seq = seq[at : at + len(stream.ts)]
        at += len(stream.ts)


class _Rows:
    """Collects the tables of the event model, stream by stream."""

    def __init__(self) -> None:
        self._parts: dict[str, list[dict[str, Any]]] = {spec.name: [] for spec in EVENTS}
        self._texts: dict[tuple[str, str], Dictionary] = {}
        self._processes: list[tuple[str, int]] = []
        self._threads: dict[tuple[int, int], int] = {}
        self._appends = 0
        self._regions: list[tuple[int, int, int, bool]] = []

    # --- who ----------------------------------------------------------------------------------------------------

    def process(self, host: str, pid: str | int) -> int:
        self._processes.append((host, pid if isinstance(pid, int) and 0 <= pid < 1 << 31 else 0))
        return len(self._processes) - 1

    def threads(self, process: int, stream: Stream) -> npt.NDArray[np.int32]:
        """Return the thread of each event: packets name theirs."""
        numbers, counts = stream.events.packet("thread"), stream.events.packet("events").astype(np.int64)
        rows = [self._threads.setdefault((process, tid), len(self._threads)) for tid in numbers.tolist()]
        return np.repeat(np.array(rows, np.int32), counts)

    # --- what ---------------------------------------------------------------------------------------------------

    def add(self, stream: Stream, process: Process) -> None:
        """Add the events of a stream."""
        found, about = stream.events, process.reader.about
        if not len(found.classes):
            return
        present = np.flatnonzero(np.bincount(found.classes, minlength=1)).tolist()
        names = {number: about.events[number].name for number in present}
        self._calls(stream, process, names)
        for number in present:
            name = names[number]
            if name.startswith(_RECORD):
                take = _TAKERS.get(name.removeprefix(_RECORD))
                if take is not None:
                    take(self, _Records(stream, process, number, np.flatnonzero(found.classes == number)))

    def codes(self, table: str, column: str) -> Dictionary:
        return self._texts.setdefault((table, column), Dictionary())

    def put(self, table: str, records: _Records, **columns: Any) -> None:
        """Add rows: each column an array, a scalar, or a pair of values and which of them are known."""
        self._parts[table].append({**records.stamps(), **columns})

    def _calls(self, stream: Stream, process: Process, names: dict[int, str]) -> None:
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
        for number in np.flatnonzero(np.bincount(classes, minlength=1)).tolist():
            fields = {item.name: item for item in about.events[number].fields}
            wanted = "zeResult" if leaves[number] else "size" if "Memory" in names[number] else ""
            if wanted not in fields:
                continue
            here = np.flatnonzero(classes == number)
            values = process.reader.columns(found, number, rows[here])[wanted][0]
            if leaves[number]:
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

    def region(self, records: _Records) -> None:
        for ts, seq, on in zip(
            records.ts.tolist(), records.seq.tolist(), records.integers("recording").tolist(), strict=True
        ):
            self._regions.append((records.stream.process, ts, seq, bool(on)))

    # --- the end ------------------------------------------------------------------------------------------------

    def pauses(self) -> list[Pause]:
        found, since = [], dict[int, int]()
        for process, ts, _, on in sorted(self._regions, key=lambda region: (region[0], region[2])):
            if not on:
                since.setdefault(process, ts)
            elif process in since:
                found.append(Pause(process, since.pop(process), ts))
        return found + [Pause(process, begin, None) for process, begin in since.items()]

    def events(self) -> Events:
        tables: dict[str, Table] = {
            "processes": table_of(
                _SPECS["processes"], {"host": [h for h, _ in self._processes], "pid": [p for _, p in self._processes]}
            ),
            "threads": table_of(
                _SPECS["threads"], {"process_id": [p for p, _ in self._threads], "tid": [t for _, t in self._threads]}
            ),
        }
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
                given = np.minimum(given, np.uint64(_LATEST_NS))
            values.append(np.asarray(given, DTYPES[type_]))
            valid.append(np.full(length, known, np.bool_) if np.ndim(known) == 0 else known)
        mask = np.concatenate(valid)
        dictionary = self.codes(table, name) if type_ == "text" else None
        whole = np.concatenate(values)
        return Column.array(whole, valid=None if mask.all() else mask, dictionary=dictionary)

    def append(self, records: _Records, **columns: Any) -> None:
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
            event=_not_zero(records.integers("signal")),
            waits=waits,
            how=how,
            reason=reason,
            **columns,
        )
        if len(owner):
            self._parts["waits"].append({"append": self._appends + owner, "event": events})
        self._appends += len(records.rows)

    def _ends(self, records: _Records, texts: list[str], which: Int64) -> None:
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


class _Records:
    """Records of one kind in one stream."""

    def __init__(self, stream: Stream, process: Process, number: int, rows: Int64) -> None:
        self.stream, self.process, self.number, self.rows = stream, process, number, rows
        self.ts, self.seq = stream.ts[rows], stream.seq[rows]
        self._fields = {item.name: item for item in process.reader.about.events[number].fields}
        self._columns = process.reader.columns(stream.events, number, rows)

    def stamps(self) -> dict[str, Any]:
        return {"seq": self.seq, "ts": self.ts, "thread_id": self.stream.thread[self.rows]}

    def has(self, name: str) -> bool:
        """Tell whether this version of the records has a field."""
        return name in self._columns

    def integers(self, name: str) -> npt.NDArray[np.uint64]:
        """Return an integer field, uint64 [n]; 0 where this version of the records has none."""
        if name not in self._columns or self._fields[name].kind != ctf.INTEGER:
            return np.zeros(len(self.rows), np.uint64)
        found: npt.NDArray[np.uint64] = self._columns[name][0]
        return found

    def texts(self, name: str) -> list[str]:
        """Return a text field."""
        if name not in self._columns or self._fields[name].kind != ctf.TEXT:
            return [""] * len(self.rows)
        return ctf.texts(self.stream.events.data, self._columns[name])

    def sequences(self, name: str) -> tuple[Int64, npt.NDArray[np.uint64]]:
        """Return the elements of a field of sequences: whose each is, and the elements."""
        if name not in self._columns or self._fields[name].kind != ctf.SEQUENCE:
            return np.empty(0, np.int64), np.empty(0, np.uint64)
        return ctf.sequences(self.stream.events.data, self._columns[name], self._fields[name].size)

    def labels(self, name: str) -> tuple[list[str], Int64]:
        """Return the texts of an enumeration that occur, unknown values as numbers; and which one each record has."""
        unique, inverse = np.unique(self.integers(name), return_inverse=True)
        labels = self._fields[name].labels if name in self._fields else {}
        return [labels.get(value, f"{value}") for value in unique.tolist()], inverse

    def codes(self, name: str, dictionary: Dictionary) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        """Return the codes of an enumeration's texts, and which of them say anything."""
        texts, which = self.labels(name)
        known = np.array([bool(text) for text in texts], np.bool_)
        return dictionary.codes(texts)[which], known[which]

    def time(self, name: str) -> Int64:
        """Return a field that holds a time of the trace's clock, ns since the Unix epoch."""
        return np.minimum(self.integers(name), np.uint64(_LATEST_NS)).astype(np.int64) + self.process.epoch_ns


def _result_codes(values: npt.NDArray[np.uint64], kind: ctf.Field, results: Dictionary) -> npt.NDArray[np.int32]:
    unique, inverse = np.unique(values, return_inverse=True)
    names = [kind.labels.get(value) or result_name(f"{value & 0xFFFFFFFF}") for value in unique.tolist()]
    found: npt.NDArray[np.int32] = np.array([results.code(name) for name in names], np.int32)[inverse]
    return found


def _not_zero(values: npt.NDArray[np.uint64]) -> tuple[Any, Any]:
    return values, values != 0


_SPECS = {spec.name: spec for spec in EVENTS}


def _device(rows: _Rows, records: _Records) -> None:
    parent, den = records.integers("parent"), records.integers("ticks_per_second_den")
    num = records.integers("ticks_per_second_num")
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = num / den
    known = (
        (num > 0)
        & (den > 0)
        & (np.maximum(num, den) < np.uint64(_LATEST_NS))
        & (rate >= 1)
        & (rate <= layout.FASTEST_HZ)
    )
    bits = {}
    for name in ("timestamp_bits", "kernel_timestamp_bits"):
        given = records.integers(name)
        bits[name] = np.where((given >= 1) & (given <= 64), given, 64)
    rows.put(
        "devices",
        records,
        device=records.integers("device"),
        parent=_not_zero(parent),
        uuid=records.texts("uuid"),
        name=records.texts("name"),
        subdevice=(records.integers("subdevice"), parent != 0),
        ticks_per_second_num=(np.where(known, num, 0), known),
        ticks_per_second_den=(np.where(known, den, 0), known),
        # Whole nanoseconds a cycle are written as such.
        is_rounded=den > 1,
        **bits,
    )


def _queue(rows: _Rows, records: _Records) -> None:
    columns = {name: records.integers(name) for name in ("queue", "device", "ordinal", "index")}
    rows.put("queues", records, **columns)


def _list(rows: _Rows, records: _Records) -> None:
    created = rows.codes("lists", "action").code("create")
    columns = {name: records.integers(name) for name in ("context", "device", "ordinal")}
    immediate = records.integers("immediate") != 0
    rows.put(
        "lists",
        records,
        action=created,
        list=records.integers("list_id"),
        handle=records.integers("handle"),
        index=(records.integers("index"), immediate),
        immediate=immediate,
        in_order=records.integers("in_order") != 0,
        compute=(records.integers("compute") != 0, records.has("compute")),
        reason=records.codes("reason", rows.codes("lists", "reason")),
        **columns,
    )


def _list_end(rows: _Rows, records: _Records) -> None:
    rows.put("lists", records, action=rows.codes("lists", "action").code("destroy"), list=records.integers("list_id"))


def _kernel(rows: _Rows, records: _Records) -> None:
    names = rows.codes("kernels", "name")
    rows.put(
        "kernels",
        records,
        action=rows.codes("kernels", "action").code("create"),
        kernel=records.integers("kernel"),
        name=names.codes(records.texts("name")),
        simd=_not_zero(records.integers("simd")),
    )


def _kernel_group(rows: _Rows, records: _Records) -> None:
    groups = {name: records.integers(name) for name in ("group_x", "group_y", "group_z")}
    action = rows.codes("kernels", "action").code("update")
    rows.put("kernels", records, action=action, kernel=records.integers("kernel"), **groups)


def _kernel_end(rows: _Rows, records: _Records) -> None:
    action = rows.codes("kernels", "action").code("destroy")
    rows.put("kernels", records, action=action, kernel=records.integers("kernel"))


def _memory(rows: _Rows, records: _Records) -> None:
    memory, _ = records.codes("memory", rows.codes("allocations", "memory"))
    rows.put(
        "allocations",
        records,
        action=rows.codes("allocations", "action").code("alloc"),
        base=records.integers("base"),
        bytes=records.integers("size"),
        memory=memory,
    )


def _memory_end(rows: _Rows, records: _Records) -> None:
    rows.put(
        "allocations",
        records,
        action=rows.codes("allocations", "action").code("free"),
        base=records.integers("base"),
        bytes=0,
        memory=rows.codes("allocations", "memory").code(""),
    )


def _op(rows: _Rows, records: _Records) -> None:
    rows.append(records)


def _op_kernel(rows: _Rows, records: _Records) -> None:
    groups = {name: records.integers(name) for name in ("groups_x", "groups_y", "groups_z")}
    known = np.logical_or.reduce([values != 0 for values in groups.values()])
    counted = {name: (values, known) for name, values in groups.items()}
    rows.append(records, kernel=_not_zero(records.integers("kernel")), **counted)


def _op_memory(rows: _Rows, records: _Records) -> None:
    rows.append(
        records,
        bytes=records.integers("bytes"),
        dst=_not_zero(records.integers("dst")),
        src=_not_zero(records.integers("src")),
    )


def _list_run(rows: _Rows, records: _Records) -> None:
    begin = np.minimum(records.time("t_entry"), records.ts)
    columns = {name: records.integers(name) for name in ("queue", "run")}
    quiet = records.integers("quiet") != 0
    rows.put("runs", records, ts=begin, list=records.integers("list_id"), exit_ts=records.ts, quiet=quiet, **columns)


def _result(rows: _Rows, records: _Records) -> None:
    # The short form is that of first runs.
    run = records.integers("run") if records.has("run") else 1
    success = {name: rows.codes("results", name).code(layout.SUCCESS) for name in ("status", "timestamp_status")}
    ticks = {name: records.integers(name) for name in ("global_start", "global_end", "context_start", "context_end")}
    rows.put("results", records, op_id=records.integers("op_id"), run=run, **success, **ticks)


def _lost(rows: _Rows, records: _Records) -> None:
    reason, _ = records.codes("reason", rows.codes("losses", "reason"))
    rows.put("losses", records, op_id=records.integers("op_id"), run=records.integers("run"), reason=reason)


def _event_end(rows: _Rows, records: _Records) -> None:
    rows.put("event_ends", records, event=records.integers("handle"))


def _clock_pair(rows: _Rows, records: _Records) -> None:
    rows.put(
        "clock_pairs",
        records,
        device=records.integers("device"),
        host_ns=records.time("host_ns"),
        device_ticks=records.integers("device_ticks"),
        error_ns=(records.integers("error_ns"), records.has("error_ns")),
    )


def _degraded(rows: _Rows, records: _Records) -> None:
    columns = {name: records.codes(name, rows.codes("degradations", name))[0] for name in ("scope", "reason")}
    rows.put(
        "degradations",
        records,
        number=records.integers("number"),
        code=records.integers("code"),
        count=np.maximum(records.integers("count"), 1),
        **columns,
    )


def _statistics(rows: _Rows, records: _Records) -> None:
    records.process.ended = True
    names = [name for name in records._fields if records._fields[name].kind == ctf.INTEGER]
    records.process.statistics = {name: int(records.integers(name)[-1]) for name in names}


_TAKERS = {
    "device": _device,
    "queue": _queue,
    "list": _list,
    "list_end": _list_end,
    "kernel": _kernel,
    "kernel_group": _kernel_group,
    "kernel_end": _kernel_end,
    "memory": _memory,
    "memory_end": _memory_end,
    "op": _op,
    "op_kernel": _op_kernel,
    "op_memory": _op_memory,
    "list_run": _list_run,
    "result": _result,
    "result_short": _result,
    "lost": _lost,
    "event_end": _event_end,
    "clock_pair": _clock_pair,
    "region": lambda rows, records: rows.region(records),
    "degraded": _degraded,
    "statistics": _statistics,
}
