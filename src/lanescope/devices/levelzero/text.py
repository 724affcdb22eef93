"""The text form of a trace -> the event model.

One record a line, ``HH:MM:SS.nnnnnnnnn - HOST - vpid: P, vtid: T - PROVIDER:EVENT: { FIELDS }``, or over several, up
to a closing brace. Blank lines and lines that begin with ``#`` are comments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lanescope.devices.levelzero import layout
from lanescope.devices.levelzero.events import Events, Rows
from lanescope.devices.levelzero.fields import Fields, parse
from lanescope.devices.levelzero.schema import EVENTS

_DAY_NS = 86_400 * layout.NS_PER_SECOND
#: A step back by more than this is midnight.
_HALF_DAY_NS = _DAY_NS // 2
#: Longest record that is put together from several lines, in bytes.
_LONGEST = 1 << 20
#: Stands for a longer line: it is no record and no comment.
_TOO_LONG = b"\xff"
#: How many calls of a thread are remembered while they are under way; the oldest is given up beyond that.
_DEEPEST = 256

_Payload = bytes
_Handler = Callable[["TextReader", int, int, int, int, _Payload], None]


@dataclass(slots=True)
class BadRun:
    """Lines without a record in between.

    Attributes:
        offset: byte offset of the first.
        lines: how many.
        before_ts: time of the last record before them, None at the begin.
        after_ts: time of the next record, None at the end.
    """

    offset: int
    lines: int
    before_ts: int | None
    after_ts: int | None = None


@dataclass(slots=True)
class TextReport:
    """What became of the bytes of a text, and what was noticed.

    Attributes:
        size: bytes read.
        filler: bytes of comments, blank lines and records of other providers.
        lost: bytes of lines that are no records.
        bad_runs: where those lines are; the last one grows when there are too many.
        notes: how often what was noticed, by name of the stat.
        offsets: byte offset of the first of each.
    """

    size: int = 0
    filler: int = 0
    lost: int = 0
    bad_runs: list[BadRun] = field(default_factory=list)
    notes: dict[str, int] = field(default_factory=dict)
    offsets: dict[str, int] = field(default_factory=dict)

    def note(self, stat: str, offset: int) -> None:
        """Count a fact."""
        self.notes[stat] = self.notes.get(stat, 0) + 1
        self.offsets.setdefault(stat, offset)


#: How many places of unreadable lines are kept apart.
_MOST_RUNS = 10_000


class TextReader:
    """Reads the text form, in pieces of any size.

    Args:
        shrink: what fractions of a second are divided by: 1, or ``layout.THAPI_SHRINK`` for THAPI's own tests.
        day_s: begin of the day of the first record, seconds since the Unix epoch.

    Attributes:
        report: what became of the bytes.
    """

    def __init__(self, *, shrink: int = 1, day_s: int = layout.THAPI_DATE_S) -> None:
        self.report = TextReport()
        self._shrink = shrink
        self._day_ns = day_s * layout.NS_PER_SECOND
        self._rows = {spec.name: Rows(spec) for spec in EVENTS}
        self._rest: list[bytes] = []
        self._rest_size = 0
        self._open: list[bytes] = []
        self._open_offset = self._open_size = 0
        self._offset = 0
        self._seq = 0
        self._last_ts: int | None = None
        self._processes: dict[tuple[bytes, int], int] = {}
        self._threads: dict[tuple[int, int], int] = {}
        self._thread_process: list[int] = []
        self._whose: dict[tuple[bytes, bytes, bytes], int] = {}
        self._handlers: dict[tuple[bytes, bytes], _Handler | None] = {}
        self._calls: dict[int, list[tuple[str, int, int, Any]]] = {}
        self._globals: dict[tuple[int, int], list[int]] = {}
        self._memory_type: dict[int, str] = {}
        self._is_bad = False

    # --- bytes -> lines -> records ------------------------------------------------------------------------------

    def feed(self, data: memoryview | bytes) -> None:
        """Take the next bytes."""
        self.report.size += len(data)
        lines = bytes(data).split(b"\n")
        if len(lines) == 1:
            self._keep(lines[0])
            return
        self._end_line(lines[0])
        for line in lines[1:-1]:
            self._line(line, len(line) + 1)
        self._keep(lines[-1])
        for rows in self._rows.values():
            rows.pack()

    def _keep(self, begin: bytes) -> None:
        """Keep the begin of a line; of one that is too long only its size."""
        if begin:
            self._rest.append(begin)
            self._rest_size += len(begin)
            if self._rest_size > _LONGEST:
                self._rest = [_TOO_LONG]

    def _end_line(self, end: bytes, newline: int = 1) -> None:
        self._keep(end)
        line = b"".join(self._rest) if self._rest_size <= _LONGEST else _TOO_LONG
        size, self._rest, self._rest_size = self._rest_size, [], 0
        self._line(line, size + newline)

    def finish(self) -> Events:
        """Take the end of the input, and return all records."""
        if self._rest:
            self._end_line(b"", newline=0)
        if self._open:
            self._bad(self._open_offset, self._open_size, len(self._open))
            self.report.note("truncated", self._open_offset)
        for thread, calls in self._calls.items():
            for name, seq, ts, value in calls:
                if name in layout.EXECUTES and value is not None:
                    self._executed(thread, seq, ts, value, None)
        return Events(
            {name: rows.table("seq" if rows.spec.names[0] == "seq" else "") for name, rows in self._rows.items()}
        )

    def _line(self, line: bytes, size: int) -> None:
        offset = self._offset
        self._offset += size
        if self._open:
            if layout.RECORD_START.match(line) is None:
                self._continue(line, size)
                return
            self._bad(self._open_offset, self._open_size, len(self._open))
            self._open = []
        if line.endswith(b"\r"):
            line = line[:-1]
        match = layout.RECORD_START.fullmatch(line)
        if match is None:
            if not line.strip() or line.startswith(b"#"):
                self.report.filler += size
            else:
                self._bad(offset, size)
            return
        payload = match[10].rstrip()
        if payload.endswith(b"}") and payload.count(b"{") <= payload.count(b"}"):
            self._record(match.groups(), payload, offset, size)
        elif payload.startswith(b"{"):
            self._open, self._open_offset, self._open_size = [line], offset, size
        else:
            self._bad(offset, size)

    def _continue(self, line: bytes, size: int) -> None:
        self._open.append(line.strip())
        self._open_size += size
        if line.rstrip() == b"}":
            joined = b" ".join(self._open)
            count, self._open = len(self._open), []
            match = layout.RECORD_START.fullmatch(joined)
            if match is None:
                self._bad(self._open_offset, self._open_size, count)
            else:
                self._record(match.groups(), match[10], self._open_offset, self._open_size)
        elif self._open_size > _LONGEST:
            self._bad(self._open_offset, self._open_size, len(self._open))
            self._open = []

    def _bad(self, offset: int, size: int, lines: int = 1) -> None:
        self.report.lost += size
        self.report.note("levelzero_bad_line", offset)
        self.report.notes["levelzero_bad_line"] += lines - 1
        runs = self.report.bad_runs
        if self._is_bad or len(runs) >= _MOST_RUNS:
            runs[-1].lines += lines
        else:
            runs.append(BadRun(offset, lines, self._last_ts))
        runs[-1].after_ts = None
        self._is_bad = True

    def _record(self, parts: tuple[bytes, ...], payload: bytes, offset: int, size: int) -> None:
        hour, minute, second, fraction, host, pid, tid, provider, event, _ = parts
        ns = int(fraction) * 10 ** (9 - len(fraction)) // self._shrink
        ts = self._day_ns + (int(hour) * 3600 + int(minute) * 60 + int(second)) * layout.NS_PER_SECOND + ns
        last = self._last_ts
        if last is not None and ts < last:
            if last - ts > _HALF_DAY_NS:
                self._day_ns += _DAY_NS
                ts += _DAY_NS
            else:
                self.report.note("levelzero_time_backwards", offset)
        if self._is_bad:
            self._is_bad = False
            self.report.bad_runs[-1].after_ts = ts
        self._last_ts = ts
        try:
            handler = self._handlers[provider, event]
        except KeyError:
            handler = self._handlers[provider, event] = _handler(provider.decode(), event.decode())
        if handler is None:
            self.report.filler += size
            self.report.note("levelzero_foreign_record", offset)
            return
        try:
            thread = self._whose[host, pid, tid]
        except KeyError:
            thread = self._whose[host, pid, tid] = self._thread(host, int(pid), int(tid))
        self._seq += 1
        handler(self, self._seq, ts, thread, offset, payload)

    def _thread(self, host: bytes, pid: int, tid: int) -> int:
        process = self._processes.setdefault((host, pid), len(self._processes))
        if process == len(self._rows["processes"]):
            self._rows["processes"].add((host.decode(errors="replace"), pid))
        thread = self._threads.setdefault((process, tid), len(self._threads))
        if thread == len(self._thread_process):
            self._rows["threads"].add((process, tid))
            self._thread_process.append(process)
        return thread

    def _code(self, table: str, column: str, text: str) -> int:
        return self._rows[table].dictionary(column).code(text)

    def _fields(self, payload: bytes, offset: int) -> Fields:
        return Fields(parse(payload), lambda: self.report.note("levelzero_bad_field", offset))

    # --- API calls ----------------------------------------------------------------------------------------------

    def _entered(self, thread: int, function: str, seq: int, ts: int, value: Any) -> None:
        calls = self._calls.setdefault(thread, [])
        calls.append((function, seq, ts, value))
        if len(calls) > _DEEPEST:
            del calls[0]

    def _left(self, thread: int, function: str) -> tuple[int, int, Any] | None:
        calls = self._calls.get(thread, [])
        for place in range(len(calls) - 1, -1, -1):
            if calls[place][0] == function:
                _, seq, ts, value = calls[place]
                del calls[place:]
                return seq, ts, value
        return None

    def _executed(self, thread: int, seq: int, ts: int, value: tuple[int, list[int]], exit_ts: int | None) -> None:
        queue, lists = value
        for handle in lists:
            self._rows["runs"].add((seq, ts, thread, handle, queue, None, exit_ts, False))

    def _kernel(self, action: str, thread: int, seq: int, handle: int, **known: Any) -> None:
        name = known.get("name")
        group = known.get("group", (None, None, None))
        self._rows["kernels"].add(
            (
                seq,
                self._thread_process[thread],
                self._code("kernels", "action", action),
                handle,
                None if name is None else self._code("kernels", "name", name),
                known.get("simd"),
                *group,
            )
        )

    def _allocated(self, thread: int, seq: int, base: int, size: int, memory: str) -> None:
        self._rows["allocations"].add(
            (
                seq,
                self._thread_process[thread],
                self._code("allocations", "action", "alloc" if memory else "free"),
                base,
                size,
                self._code("allocations", "memory", memory),
            )
        )

    def _listed(self, action: str, thread: int, seq: int, number: int, **known: Any) -> None:
        reason = known.get("reason")
        self._rows["lists"].add(
            (
                seq,
                self._thread_process[thread],
                self._code("lists", "action", action),
                number,
                known.get("handle"),
                known.get("context"),
                known.get("device"),
                known.get("ordinal"),
                known.get("index"),
                known.get("immediate"),
                known.get("in_order"),
                known.get("compute"),
                None if reason is None else self._code("lists", "reason", reason),
            )
        )


# --- handlers: one per kind of record -----------------------------------------------------------------------------


def _handler(provider: str, event: str) -> _Handler | None:
    """Return what reads a kind of record; None when nothing in it is of use."""
    if provider == layout.API:
        if event.endswith("_entry"):
            return _entry_handler(event.removesuffix("_entry"))
        if event.endswith("_exit"):
            return _exit_handler(event.removesuffix("_exit"))
        return None
    return _HANDLERS.get(f"{provider}:{event}")


def _entry_handler(function: str) -> _Handler:
    is_append = function in layout.APPENDS
    kind = layout.APPENDS.get(function, layout.OTHER)
    touches_memory = "Memory" in function
    remember = _ENTRIES.get(function)

    def handle(reader: TextReader, seq: int, ts: int, thread: int, offset: int, payload: bytes) -> None:
        code = reader._code("calls", "function", function)
        appended = is_append or b"hSignalEvent: " in payload
        size = None
        if appended or touches_memory or remember is not None:
            fields = reader._fields(payload, offset)
            if appended:
                _append(reader, seq, ts, thread, function, kind, fields)
            elif touches_memory and "size" in fields:
                size = fields.integer("size")
            if remember is not None:
                reader._entered(thread, function, seq, ts, remember(fields))
                if function == "zeKernelSetGroupSize":
                    group = tuple(fields.small(f"groupSize{axis}") for axis in "XYZ")
                    reader._kernel("update", thread, seq, fields.handle("hKernel"), group=group)
        reader._rows["calls"].add((seq, ts, thread, code, False, None, size))

    return handle


def _append(reader: TextReader, seq: int, ts: int, thread: int, function: str, kind: str, fields: Fields) -> None:
    groups: tuple[int | None, ...] = (None, None, None)
    if kind == layout.KERNEL:
        for name in ("pLaunchFuncArgs_val", "pGroupCounts_val", "groupCounts", "groupCounts_val"):
            counts = fields.get(name)
            if isinstance(counts, dict) and counts:
                groups = tuple(Fields(counts).small(f"groupCount{axis}") for axis in "XYZ")
                break
    rows = reader._rows["appends"]
    number = len(rows)
    waits = fields.integers("phWaitEvents_vals")
    count = fields.small("numWaitEvents") or 0
    size = fields.integer("size") if kind in (layout.COPY, layout.FILL) and "size" in fields else None
    rows.add(
        (
            seq,
            ts,
            thread,
            rows.dictionary("function").code(function),
            rows.dictionary("kind").code(kind),
            None,
            fields.handle("hCommandList"),
            fields.integer("hEvent" if kind == layout.SIGNAL else "hSignalEvent"),
            count,
            fields.integer("hKernel") if "hKernel" in fields else None,
            *groups,
            size,
            fields.optional("dstptr", "ptr") if size is not None else None,
            fields.optional("srcptr") if size is not None else None,
            None,
            None,
            None,
            None,
        )
    )
    for event in waits[:count]:
        if event:
            reader._rows["waits"].add((number, event))


def _exit_handler(function: str) -> _Handler:
    conclude = _EXITS.get(function)
    results: dict[bytes, tuple[int | None, bool]] = {}

    def handle(reader: TextReader, seq: int, ts: int, thread: int, offset: int, payload: bytes) -> None:
        begin = payload.find(b"zeResult: ")
        text = b""
        if begin >= 0:
            text = payload[begin + 10 : begin + 90].split(b",", 1)[0].split(b" ", 1)[0].rstrip(b" }")
        try:
            code, succeeded = results[text]
        except KeyError:
            name = result_name(text.decode(errors="replace"))
            code = reader._code("calls", "result", name) if name else None
            succeeded = name in (layout.SUCCESS, "")
            if len(results) < 1000:
                results[text] = code, succeeded
        function_code = reader._code("calls", "function", function)
        reader._rows["calls"].add((seq, ts, thread, function_code, True, code, None))
        if conclude is not None:
            entered = reader._left(thread, function)
            if succeeded:
                conclude(reader, seq, ts, thread, entered, reader._fields(payload, offset))

    return handle


def result_name(text: str) -> str:
    """Return the name of a result that is written as a name or as a number."""
    if text.isdigit() and len(text) < 11:
        number = int(text)
        return layout.RESULTS.get(number, f"0x{number:x}")
    return text if text.replace("_", "").isalnum() else ""


_Entered = tuple[int, int, Any] | None


def _created_list(reader: TextReader, seq: int, ts: int, thread: int, entered: _Entered, fields: Fields) -> None:
    if entered is not None:
        reader._listed("create", thread, seq, fields.handle("phCommandList_val"), **entered[2])


def _cloned_list(reader: TextReader, seq: int, ts: int, thread: int, entered: _Entered, fields: Fields) -> None:
    reader._listed("create", thread, seq, fields.handle("phClonedCommandList_val"), immediate=False)


def _ended_list(action: str) -> Any:
    def conclude(reader: TextReader, seq: int, ts: int, thread: int, entered: _Entered, fields: Fields) -> None:
        if entered is not None:
            reader._listed(action, thread, seq, entered[2])

    return conclude


def _created_queue(reader: TextReader, seq: int, ts: int, thread: int, entered: _Entered, fields: Fields) -> None:
    if entered is not None:
        device, ordinal, index = entered[2]
        process = reader._thread_process[thread]
        reader._rows["queues"].add((seq, process, fields.handle("phCommandQueue_val"), device, ordinal, index))


def _executed(reader: TextReader, seq: int, ts: int, thread: int, entered: _Entered, fields: Fields) -> None:
    if entered is not None:
        reader._executed(thread, entered[0], entered[1], entered[2], ts)


def _destroyed_event(reader: TextReader, seq: int, ts: int, thread: int, entered: _Entered, fields: Fields) -> None:
    if entered is not None:
        reader._rows["event_ends"].add((seq, reader._thread_process[thread], entered[2]))


def _created_kernel(reader: TextReader, seq: int, ts: int, thread: int, entered: _Entered, fields: Fields) -> None:
    name = entered[2] if entered is not None else None
    reader._kernel("create", thread, seq, fields.handle("phKernel_val"), name=name)


def _named_kernel(reader: TextReader, seq: int, ts: int, thread: int, entered: _Entered, fields: Fields) -> None:
    name = fields.text("pName_val")
    if entered is not None and name:
        reader._kernel("update", thread, seq, entered[2], name=name)


def _destroyed_kernel(reader: TextReader, seq: int, ts: int, thread: int, entered: _Entered, fields: Fields) -> None:
    if entered is not None:
        reader._kernel("destroy", thread, seq, entered[2])


def _allocated(memory: str) -> Any:
    def conclude(reader: TextReader, seq: int, ts: int, thread: int, entered: _Entered, fields: Fields) -> None:
        size = entered[2] if entered is not None else None
        base = fields.optional("pptr_val")
        if size and base:
            reader._allocated(thread, seq, base, size, memory)

    return conclude


def _got_global(reader: TextReader, seq: int, ts: int, thread: int, entered: _Entered, fields: Fields) -> None:
    base, size = fields.optional("pptr_val"), fields.optional("pSize_val")
    if entered is not None and base and size:
        reader._allocated(thread, seq, base, size, layout.SHARED)
        reader._globals.setdefault((reader._thread_process[thread], entered[2]), []).append(base)


def _destroyed_module(reader: TextReader, seq: int, ts: int, thread: int, entered: _Entered, fields: Fields) -> None:
    if entered is not None:
        for base in reader._globals.pop((reader._thread_process[thread], entered[2]), ()):
            reader._allocated(thread, seq, base, 0, "")


def _freed(reader: TextReader, seq: int, ts: int, thread: int, entered: _Entered, fields: Fields) -> None:
    if entered is not None and entered[2]:
        reader._allocated(thread, seq, entered[2], 0, "")


def _list_description(fields: Fields) -> dict[str, Any]:
    description = Fields(fields.structure("desc_val"))
    return {
        "context": fields.optional("hContext"),
        "device": fields.optional("hDevice"),
        "ordinal": description.small("commandQueueGroupOrdinal") if "commandQueueGroupOrdinal" in description else None,
        "immediate": False,
        "in_order": bool(description.flags("flags") & layout.LIST_IN_ORDER) if "flags" in description else None,
    }


def _immediate_description(fields: Fields) -> dict[str, Any]:
    description = Fields(fields.structure("altdesc_val"))
    return {
        "context": fields.optional("hContext"),
        "device": fields.optional("hDevice"),
        "ordinal": description.small("ordinal") if "ordinal" in description else None,
        "index": description.small("index") if "index" in description else None,
        "immediate": True,
        "in_order": bool(description.flags("flags") & layout.QUEUE_IN_ORDER) if "flags" in description else None,
    }


def _queue_description(fields: Fields) -> tuple[int | None, int | None, int | None]:
    description = Fields(fields.structure("desc_val"))
    return (
        fields.optional("hDevice"),
        description.small("ordinal") if "ordinal" in description else None,
        description.small("index") if "index" in description else None,
    )


def _kernel_name(fields: Fields) -> str | None:
    return fields.text("desc__pKernelName_val") or Fields(fields.structure("desc_val")).text("pKernelName") or None


def _lists_of(queue: str, lists: str) -> Callable[[Fields], tuple[int, list[int]]]:
    return lambda fields: (fields.handle(queue), fields.integers(lists))


def _handle_of(name: str) -> Callable[[Fields], int]:
    return lambda fields: fields.handle(name)


#: What is kept of an entry until the function returns.
_ENTRIES: dict[str, Callable[[Fields], Any]] = {
    "zeCommandListCreate": _list_description,
    "zeCommandListCreateImmediate": _immediate_description,
    "zeCommandListReset": _handle_of("hCommandList"),
    "zeCommandListDestroy": _handle_of("hCommandList"),
    "zeCommandQueueCreate": _queue_description,
    "zeEventDestroy": _handle_of("hEvent"),
    "zeKernelCreate": _kernel_name,
    "zeKernelGetName": _handle_of("hKernel"),
    "zeKernelSetGroupSize": lambda _: None,
    "zeKernelDestroy": _handle_of("hKernel"),
    "zeModuleGetGlobalPointer": _handle_of("hModule"),
    "zeModuleDestroy": _handle_of("hModule"),
    "zeMemFree": _handle_of("ptr"),
    "zeMemFreeExt": _handle_of("ptr"),
    **{
        name: lambda fields: fields.integer("size")
        for name in ("zeMemAllocShared", "zeMemAllocDevice", "zeMemAllocHost")
    },
    **{name: _lists_of(*parameters) for name, parameters in layout.EXECUTES.items()},
}

#: What a successful return means.
_EXITS: dict[str, Callable[[TextReader, int, int, int, _Entered, Fields], None]] = {
    "zeCommandListCreate": _created_list,
    "zeCommandListCreateImmediate": _created_list,
    "zeCommandListCreateCloneExp": _cloned_list,
    "zeCommandListReset": _ended_list("reset"),
    "zeCommandListDestroy": _ended_list("destroy"),
    "zeCommandQueueCreate": _created_queue,
    "zeEventDestroy": _destroyed_event,
    "zeKernelCreate": _created_kernel,
    "zeKernelGetName": _named_kernel,
    "zeKernelSetGroupSize": lambda *_: None,
    "zeKernelDestroy": _destroyed_kernel,
    "zeModuleGetGlobalPointer": _got_global,
    "zeModuleDestroy": _destroyed_module,
    "zeMemFree": _freed,
    "zeMemFreeExt": _freed,
    **{name: _allocated(memory) for name, memory in layout.ALLOCATIONS.items() if name.startswith("zeMem")},
    **dict.fromkeys(layout.EXECUTES, _executed),
}


def _push(reader: TextReader, seq: int, ts: int, thread: int, offset: int, payload: bytes) -> None:
    event = reader._fields(payload, offset).handle("hEvent")
    reader._rows["pushes"].add((seq, ts, thread, event))


def _event_result(reader: TextReader, seq: int, ts: int, thread: int, offset: int, payload: bytes) -> None:
    fields = reader._fields(payload, offset)
    rows = reader._rows["results"]
    ticks = (fields.integer(name) or 0 for name in ("globalStart", "globalEnd", "contextStart", "contextEnd"))
    status, timestamp_status = (result_name(fields.text(name)) for name in ("status", "timestampStatus"))
    rows.add(
        (
            seq,
            ts,
            thread,
            None,
            None,
            fields.handle("hEvent"),
            rows.dictionary("status").code(status),
            rows.dictionary("timestamp_status").code(timestamp_status),
            *ticks,
        )
    )


def _device(reader: TextReader, seq: int, ts: int, thread: int, offset: int, payload: bytes) -> None:
    fields = reader._fields(payload, offset)
    about = Fields(fields.structure("pDeviceProperties_val"), fields.complain)
    is_sub = "hSubDevice" in fields
    resolution = about.integer("timerResolution") or 0
    in_cycles = about.text("stype") == layout.STYPE_CYCLES
    num, den = (resolution, 1) if in_cycles else (layout.NS_PER_SECOND, resolution)
    known = 0 < resolution <= (layout.FASTEST_HZ if in_cycles else layout.NS_PER_SECOND)
    uuid = about.get("uuid")
    reader._rows["devices"].add(
        (
            seq,
            reader._thread_process[thread],
            fields.handle("hSubDevice" if is_sub else "hDevice"),
            fields.handle("hDevice") if is_sub else None,
            uuid_text(uuid.get("id") if isinstance(uuid, dict) else uuid),
            about.text("name"),
            about.small("subdeviceId") if is_sub and "subdeviceId" in about else None,
            num if known else None,
            den if known else None,
            not in_cycles,
            _bits(about.small("timestampValidBits")),
            _bits(about.small("kernelTimestampValidBits")),
        )
    )


def _bits(value: int | None) -> int:
    """Return a number of valid bits; unknown and impossible ones count as all."""
    return value if value is not None and 1 <= value <= 64 else 64


def uuid_text(value: Any) -> str:
    """Return a UUID as 32 hexadecimal digits from a list of bytes or from text; empty when it is none."""
    if isinstance(value, list):
        try:
            digits = "".join(f"{int(str(item), 0):02x}" for item in value)
        except ValueError:
            return ""
    else:
        digits = str(value or "").replace("-", "").lower()
    return digits if len(digits) == 32 and all(digit in "0123456789abcdef" for digit in digits) else ""


def _timer(reader: TextReader, seq: int, ts: int, thread: int, offset: int, payload: bytes) -> None:
    fields = reader._fields(payload, offset)
    ticks = fields.integer("deviceTimestamp")
    if ticks is not None:
        # The field hostTimestamp counts on a clock that the records do not use; the record's own time does.
        process = reader._thread_process[thread]
        reader._rows["clock_pairs"].add((seq, process, fields.handle("hDevice"), ts, ticks))


def _kernel_properties(reader: TextReader, seq: int, ts: int, thread: int, offset: int, payload: bytes) -> None:
    fields = reader._fields(payload, offset)
    about = Fields(fields.structure("pKernelProperties_val"), fields.complain)
    reader._kernel("update", thread, seq, fields.handle("hKernel"), simd=about.small("maxSubgroupSize"))


def _memory_type(reader: TextReader, seq: int, ts: int, thread: int, offset: int, payload: bytes) -> None:
    about = Fields(reader._fields(payload, offset).structure("pMemAllocProperties_val"))
    reader._memory_type[thread] = layout.MEMORY_TYPES.get(about.text("type"), "")


def _memory_range(reader: TextReader, seq: int, ts: int, thread: int, offset: int, payload: bytes) -> None:
    fields = reader._fields(payload, offset)
    memory = reader._memory_type.pop(thread, "")
    base, size = fields.integer("base"), fields.integer("size")
    if memory and base and size:
        reader._allocated(thread, seq, base, size, memory)


# --- our recorder's records ---------------------------------------------------------------------------------------


def _our_device(reader: TextReader, seq: int, ts: int, thread: int, offset: int, payload: bytes) -> None:
    fields = reader._fields(payload, offset)
    num, den = fields.optional("ticks_per_second_num"), fields.optional("ticks_per_second_den")
    known = (
        bool(num and den) and max(num or 0, den or 0) < 1 << 62 and 1 <= (num or 0) / (den or 1) <= layout.FASTEST_HZ
    )
    reader._rows["devices"].add(
        (
            seq,
            reader._thread_process[thread],
            fields.handle("device"),
            fields.optional("parent"),
            uuid_text(fields.text("uuid")),
            fields.text("name"),
            fields.small("subdevice") if "subdevice" in fields else None,
            num if known else None,
            den if known else None,
            False,
            _bits(fields.small("timestamp_bits")),
            _bits(fields.small("kernel_timestamp_bits")),
        )
    )


def _our_queue(reader: TextReader, seq: int, ts: int, thread: int, offset: int, payload: bytes) -> None:
    fields = reader._fields(payload, offset)
    reader._rows["queues"].add(
        (
            seq,
            reader._thread_process[thread],
            fields.handle("queue"),
            fields.optional("device"),
            fields.small("ordinal"),
            fields.small("index"),
        )
    )


def _our_list(reader: TextReader, seq: int, ts: int, thread: int, offset: int, payload: bytes) -> None:
    fields = reader._fields(payload, offset)
    reader._listed(
        "create",
        thread,
        seq,
        fields.handle("list_id"),
        handle=fields.optional("handle"),
        context=fields.optional("context"),
        device=fields.optional("device"),
        ordinal=fields.small("ordinal") if "ordinal" in fields else None,
        index=fields.small("index") if "index" in fields else None,
        immediate=fields.switch("immediate"),
        in_order=fields.switch("in_order"),
        compute=fields.switch("compute") if "compute" in fields else None,
        reason=fields.text("reason") or None,
    )


def _our_kernel(reader: TextReader, seq: int, ts: int, thread: int, offset: int, payload: bytes) -> None:
    fields = reader._fields(payload, offset)
    group = tuple(fields.small(f"group_{axis}") if f"group_{axis}" in fields else None for axis in "xyz")
    simd = fields.small("simd") if "simd" in fields else None
    name = fields.text("name") or None
    reader._kernel("update", thread, seq, fields.handle("kernel"), name=name, simd=simd, group=group)


def _our_op(reader: TextReader, seq: int, ts: int, thread: int, offset: int, payload: bytes) -> None:
    fields = reader._fields(payload, offset)
    rows = reader._rows["appends"]
    number = len(rows)
    waits = fields.integers("waits")
    function = fields.text("api")
    dst, src = fields.text("dst"), fields.text("src")
    how, reason = fields.text("how"), fields.text("reason")
    rows.add(
        (
            seq,
            ts,
            thread,
            rows.dictionary("function").code(function),
            rows.dictionary("kind").code(layout.APPENDS.get(function, layout.OTHER)),
            fields.integer("op_id"),
            fields.handle("list_id"),
            fields.optional("signal"),
            len(waits),
            fields.optional("kernel"),
            *(fields.small(f"groups_{axis}") if f"groups_{axis}" in fields else None for axis in "xyz"),
            fields.optional("bytes"),
            None,
            None,
            rows.dictionary("dst_memory").code(dst) if dst in layout.MEMORIES else None,
            rows.dictionary("src_memory").code(src) if src in layout.MEMORIES else None,
            rows.dictionary("how").code(how) if how else None,
            rows.dictionary("reason").code(reason) if reason else None,
        )
    )
    for event in waits:
        reader._rows["waits"].add((number, event))


def _our_run(reader: TextReader, seq: int, ts: int, thread: int, offset: int, payload: bytes) -> None:
    fields = reader._fields(payload, offset)
    entry, leave = fields.small("t_entry"), fields.small("t_exit")
    begin = ts if entry is None else entry
    handle, queue, run = fields.handle("list_id"), fields.handle("queue"), fields.small("run")
    quiet = fields.switch("quiet")
    reader._rows["runs"].add((seq, begin, thread, handle, queue, run, leave, quiet))


def _our_result(reader: TextReader, seq: int, ts: int, thread: int, offset: int, payload: bytes) -> None:
    fields = reader._fields(payload, offset)
    rows = reader._rows["results"]
    ok = rows.dictionary("status").code(layout.SUCCESS), rows.dictionary("timestamp_status").code(layout.SUCCESS)
    ticks = (fields.integer(name) or 0 for name in ("global_start", "global_end", "context_start", "context_end"))
    rows.add((seq, ts, thread, fields.integer("op_id"), fields.small("run"), None, *ok, *ticks))


def _our_loss(reader: TextReader, seq: int, ts: int, thread: int, offset: int, payload: bytes) -> None:
    fields = reader._fields(payload, offset)
    rows = reader._rows["losses"]
    reason = rows.dictionary("reason").code(fields.text("reason"))
    rows.add((seq, ts, reader._thread_process[thread], fields.integer("op_id"), fields.small("run"), reason))


def _our_degradation(reader: TextReader, seq: int, ts: int, thread: int, offset: int, payload: bytes) -> None:
    fields = reader._fields(payload, offset)
    rows = reader._rows["degradations"]
    rows.add(
        (
            seq,
            ts,
            reader._thread_process[thread],
            rows.dictionary("scope").code(fields.text("scope")),
            fields.handle("id"),
            rows.dictionary("reason").code(fields.text("reason")),
            fields.handle("code"),
            max(fields.small("count") or 1, 1),
        )
    )


def _our_pair(reader: TextReader, seq: int, ts: int, thread: int, offset: int, payload: bytes) -> None:
    fields = reader._fields(payload, offset)
    host, ticks = fields.small("host_ns"), fields.integer("device_ticks")
    if host is not None and ticks is not None:
        process = reader._thread_process[thread]
        reader._rows["clock_pairs"].add((seq, process, fields.handle("device"), host, ticks))


_HANDLERS: dict[str, _Handler] = {
    f"{layout.PROFILING}:event_profiling": _push,
    f"{layout.PROFILING}:event_profiling_results": _event_result,
    f"{layout.PROPERTIES}:device": _device,
    f"{layout.PROPERTIES}:subdevice": _device,
    f"{layout.PROPERTIES}:device_timer": _timer,
    f"{layout.PROPERTIES}:kernel": _kernel_properties,
    f"{layout.PROPERTIES}:memory_info_properties": _memory_type,
    f"{layout.PROPERTIES}:memory_info_range": _memory_range,
    f"{layout.OURS}:device": _our_device,
    f"{layout.OURS}:queue": _our_queue,
    f"{layout.OURS}:list": _our_list,
    f"{layout.OURS}:kernel": _our_kernel,
    f"{layout.OURS}:op": _our_op,
    f"{layout.OURS}:list_run": _our_run,
    f"{layout.OURS}:result": _our_result,
    f"{layout.OURS}:lost": _our_loss,
    f"{layout.OURS}:degraded": _our_degradation,
    f"{layout.OURS}:clock_pair": _our_pair,
}
