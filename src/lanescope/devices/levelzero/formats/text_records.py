"""The records of a text trace -> rows of the event model: what each kind of record says."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.event_model import Rows
from lanescope.devices.levelzero.formats.fields import BadField, Fields, byte, check, parse

#: Position in the stream, time, thread: how rows of most tables begin.
Stamp = tuple[int, int, int]
#: Takes one record of a kind, or raises BadField before it has added anything.
Handler = Callable[["Recorder", Stamp, bytes], None]
#: How many payloads of exits are remembered for each function.
_MOST_PLAIN = 1000
#: How many calls of a thread are remembered while they are under way; the oldest is given up beyond that.
_DEEPEST = 256


@dataclass(slots=True)
class BadRun:
    """Lines that are lost, without a record in between.

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
        padding: bytes of comments, blank lines and records of other providers.
        lost: bytes of lines that are no records, or have fields that cannot be read.
        bad_runs: where those lines are; the last one grows when there are too many.
        notes: how often what was noticed, by name of the stat.
        offsets: byte offset of the first of each.
    """

    size: int = 0
    padding: int = 0
    lost: int = 0
    bad_runs: list[BadRun] = field(default_factory=list)
    notes: dict[str, int] = field(default_factory=dict)
    offsets: dict[str, int] = field(default_factory=dict)

    def note(self, stat: str, offset: int) -> None:
        """Count a fact."""
        self.notes[stat] = self.notes.get(stat, 0) + 1
        self.offsets.setdefault(stat, offset)


class Recorder:
    """Rows in the making, and what has to be remembered between records.

    Args:
        rows: rows by table.
        processes: process of each thread; grows.
    """

    def __init__(self, rows: Mapping[str, Rows], processes: list[int]) -> None:
        self.rows, self.processes = rows, processes
        self._calls: dict[int, list[tuple[str, Stamp, Any]]] = {}
        self.globals: dict[tuple[int, int], list[int]] = {}
        self.memory_types: dict[int, str] = {}

    def finish(self) -> None:
        """Take the end of the input: calls that never returned."""
        for calls in self._calls.values():
            for name, stamp, value in calls:
                if name in layout.EXECUTES:
                    self.executed(stamp, value, None)

    def code(self, table: str, column: str, text: str) -> int:
        """Return the code of a text."""
        return self.rows[table].dictionary(column).code(text)

    def fields(self, payload: bytes) -> Fields:
        """Return the fields of the record.

        Raises:
            BadField: something in it is no field.
        """
        return Fields(parse(payload))

    def entered(self, function: str, stamp: Stamp, value: Any) -> None:
        """Remember what a function was given until it returns."""
        calls = self._calls.setdefault(stamp[2], [])
        calls.append((function, stamp, value))
        if len(calls) > _DEEPEST:
            del calls[0]

    def open_call(self, function: str, thread: int) -> tuple[Stamp, Any] | None:
        """Return when the innermost open call of a function began and what it was given, None if there is none."""
        for name, stamp, value in reversed(self._calls.get(thread, ())):
            if name == function:
                return stamp, value
        return None

    def left(self, function: str, thread: int) -> None:
        """Forget the innermost open call of a function, and what it called."""
        calls = self._calls.get(thread, [])
        for place in range(len(calls) - 1, -1, -1):
            if calls[place][0] == function:
                del calls[place:]
                return

    def executed(self, stamp: Stamp, value: tuple[int, list[int]], exit_ts: int | None) -> None:
        """Add the executions of lists by one call."""
        queue, lists = value
        for handle in lists:
            self.rows["runs"].add((*stamp, handle, queue, None, exit_ts, False))

    def kernel(self, action: str, stamp: Stamp, handle: int, **known: Any) -> None:
        """Add what became known of a kernel."""
        name = known.get("name")
        code = None if name is None else self.code("kernels", "name", name)
        group = known.get("group", (None, None, None))
        action_code = self.code("kernels", "action", action)
        self.rows["kernels"].add((*stamp, action_code, handle, code, known.get("simd"), *group))

    def allocated(self, stamp: Stamp, base: int, size: int, memory: str) -> None:
        """Add an allocation, or the end of one if ``memory`` is empty."""
        action = self.code("allocations", "action", "alloc" if memory else "free")
        self.rows["allocations"].add((*stamp, action, base, size, self.code("allocations", "memory", memory)))

    def listed(self, action: str, stamp: Stamp, number: int, **known: Any) -> None:
        """Add what became of a command list."""
        reason = known.get("reason")
        columns = ("handle", "context", "device", "ordinal", "index", "immediate", "in_order", "compute")
        code = None if reason is None else self.code("lists", "reason", reason)
        action_code = self.code("lists", "action", action)
        self.rows["lists"].add((*stamp, action_code, number, *(known.get(column) for column in columns), code))


# --- handlers: one per kind of record -----------------------------------------------------------------------------


def handler_of(provider: str, event: str) -> Handler | None:
    """Return what reads a kind of record; None when nothing in it is of use."""
    if provider == layout.API:
        if event.endswith("_entry"):
            return _entry_handler(event.removesuffix("_entry"))
        if event.endswith("_exit"):
            return _exit_handler(event.removesuffix("_exit"))
        return None
    return _HANDLERS.get(f"{provider}:{event}")


#: Most entries and exits by far.
_NO_FIELDS = (b"{ }", b"{  }")


def _entry_handler(function: str) -> Handler:
    is_append = function in layout.APPENDS
    kind = layout.APPENDS.get(function, layout.OTHER)
    touches_memory = "Memory" in function
    remember = _ENTRIES.get(function)

    def handle(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
        # Without its parameters an entry says nothing of the operation; a recorder that numbers them says it elsewhere.
        appended = (is_append or b"hSignalEvent: " in payload) and b"hCommandList: " in payload
        size = None
        if b": " not in payload:
            if payload not in _NO_FIELDS:
                check(payload)
        elif appended or touches_memory or remember is not None:
            fields = reader.fields(payload)
            value = None if remember is None else remember(fields)
            if appended:
                _append(reader, stamp, function, kind, fields)
            elif touches_memory:
                size = fields.optional("size")
            if function == "zeKernelSetGroupSize":
                group = tuple(fields.small(f"groupSize{axis}") for axis in "XYZ")
                reader.kernel("update", stamp, fields.integer("hKernel"), group=group)
            if remember is not None:
                reader.entered(function, stamp, value)
        else:
            check(payload)
        reader.rows["calls"].add((*stamp, reader.code("calls", "function", function), False, None, size))

    return handle


def _append(reader: Recorder, stamp: Stamp, function: str, kind: str, fields: Fields) -> None:
    groups: tuple[int | None, ...] = (None, None, None)
    if kind == layout.KERNEL:
        for name in ("pLaunchFuncArgs_val", "pGroupCounts_val", "groupCounts", "groupCounts_val"):
            counts = fields.get(name)
            if isinstance(counts, dict) and counts:
                groups = tuple(Fields(counts).small(f"groupCount{axis}") for axis in "XYZ")
                break
    rows = reader.rows["appends"]
    number = len(rows)
    waits = fields.integers("phWaitEvents_vals")
    count = fields.optional_small("numWaitEvents") or 0
    size = fields.optional("size") if kind in (layout.COPY, layout.FILL) else None
    rows.add(
        (
            *stamp,
            rows.dictionary("function").code(function),
            rows.dictionary("kind").code(kind),
            None,
            fields.integer("hCommandList"),
            fields.integer("hEvent" if kind == layout.SIGNAL else "hSignalEvent"),
            count,
            fields.optional("hKernel"),
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
            reader.rows["waits"].add((number, event))


def _exit_handler(function: str) -> Handler:
    conclude = _EXITS.get(function)
    #: What exits without other fields say.
    plain: dict[bytes, tuple[int | None, bool]] = {}

    def handle(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
        fields = None
        try:
            code, succeeded = plain[payload]
        except KeyError:
            fields = reader.fields(payload)
            name = result_name(fields.text("zeResult")) if "zeResult" in fields else ""
            code = reader.code("calls", "result", name) if name else None
            succeeded = name in (layout.SUCCESS, "")
            if b"," not in payload and len(plain) < _MOST_PLAIN:
                plain[payload] = code, succeeded
        if conclude is not None:
            entered = reader.open_call(function, stamp[2])
            if succeeded and (entered is not None or b"," in payload):
                conclude(reader, stamp, entered, reader.fields(payload) if fields is None else fields)
            reader.left(function, stamp[2])
        reader.rows["calls"].add((*stamp, reader.code("calls", "function", function), True, code, None))

    return handle


def result_name(text: str) -> str:
    """Return the name of a result that is written as a name or as a number.

    Raises:
        BadField: it is neither.
    """
    if not text.isascii() or not text.replace("_", "").isalnum():
        raise BadField("no result")
    if text.isdigit():
        number = Fields({"": text}).integer("")
        return layout.RESULTS.get(number, f"0x{number:x}")
    return text


_Entered = tuple[Stamp, Any] | None


def _created_list(reader: Recorder, stamp: Stamp, entered: _Entered, fields: Fields) -> None:
    if entered is not None:
        reader.listed("create", stamp, fields.integer("phCommandList_val"), **entered[1])


def _cloned_list(reader: Recorder, stamp: Stamp, entered: _Entered, fields: Fields) -> None:
    reader.listed("create", stamp, fields.integer("phClonedCommandList_val"), immediate=False)


def _ended_list(action: str) -> Any:
    def conclude(reader: Recorder, stamp: Stamp, entered: _Entered, fields: Fields) -> None:
        if entered is not None:
            reader.listed(action, stamp, entered[1])

    return conclude


def _created_queue(reader: Recorder, stamp: Stamp, entered: _Entered, fields: Fields) -> None:
    if entered is not None:
        device, ordinal, index = entered[1]
        reader.rows["queues"].add((*stamp, fields.integer("phCommandQueue_val"), device, ordinal, index))


def _executed(reader: Recorder, stamp: Stamp, entered: _Entered, fields: Fields) -> None:
    if entered is not None:
        reader.executed(entered[0], entered[1], stamp[1])


def _destroyed_event(reader: Recorder, stamp: Stamp, entered: _Entered, fields: Fields) -> None:
    if entered is not None:
        reader.rows["event_ends"].add((*stamp, entered[1]))


def _created_kernel(reader: Recorder, stamp: Stamp, entered: _Entered, fields: Fields) -> None:
    name = entered[1] if entered is not None else None
    reader.kernel("create", stamp, fields.integer("phKernel_val"), name=name)


def _named_kernel(reader: Recorder, stamp: Stamp, entered: _Entered, fields: Fields) -> None:
    name = fields.text("pName_val")
    if entered is not None and name:
        reader.kernel("update", stamp, entered[1], name=name)


def _destroyed_kernel(reader: Recorder, stamp: Stamp, entered: _Entered, fields: Fields) -> None:
    if entered is not None:
        reader.kernel("destroy", stamp, entered[1])


def _allocated(memory: str) -> Any:
    def conclude(reader: Recorder, stamp: Stamp, entered: _Entered, fields: Fields) -> None:
        size = entered[1] if entered is not None else None
        base = fields.optional("pptr_val")
        if size and base:
            reader.allocated(stamp, base, size, memory)

    return conclude


def _got_global(reader: Recorder, stamp: Stamp, entered: _Entered, fields: Fields) -> None:
    base, size = fields.optional("pptr_val"), fields.optional("pSize_val")
    if entered is not None and base and size:
        reader.allocated(stamp, base, size, layout.SHARED)
        reader.globals.setdefault((reader.processes[stamp[2]], entered[1]), []).append(base)


def _destroyed_module(reader: Recorder, stamp: Stamp, entered: _Entered, fields: Fields) -> None:
    if entered is not None:
        for base in reader.globals.pop((reader.processes[stamp[2]], entered[1]), ()):
            reader.allocated(stamp, base, 0, "")


def _freed(reader: Recorder, stamp: Stamp, entered: _Entered, fields: Fields) -> None:
    if entered is not None and entered[1]:
        reader.allocated(stamp, entered[1], 0, "")


def _list_description(fields: Fields) -> dict[str, Any]:
    description = fields.structure("desc_val")
    return {
        "context": fields.optional("hContext"),
        "device": fields.optional("hDevice"),
        "ordinal": description.optional_small("commandQueueGroupOrdinal"),
        "immediate": False,
        "in_order": bool(description.flags("flags") & layout.LIST_IN_ORDER) if "flags" in description else None,
    }


def _immediate_description(fields: Fields) -> dict[str, Any]:
    description = fields.structure("altdesc_val")
    return {
        "context": fields.optional("hContext"),
        "device": fields.optional("hDevice"),
        "ordinal": description.optional_small("ordinal"),
        "index": description.optional_small("index"),
        "immediate": True,
        "in_order": bool(description.flags("flags") & layout.QUEUE_IN_ORDER) if "flags" in description else None,
    }


def _queue_description(fields: Fields) -> tuple[int | None, int | None, int | None]:
    description = fields.structure("desc_val")
    return (
        fields.optional("hDevice"),
        description.optional_small("ordinal"),
        description.optional_small("index"),
    )


def _kernel_name(fields: Fields) -> str | None:
    return fields.text("desc__pKernelName_val") or fields.structure("desc_val").text("pKernelName") or None


def _lists_of(queue: str, lists: str) -> Callable[[Fields], tuple[int, list[int]]]:
    return lambda fields: (fields.integer(queue), fields.integers(lists))


def _handle_of(name: str) -> Callable[[Fields], int]:
    return lambda fields: fields.integer(name)


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
_EXITS: dict[str, Callable[[Recorder, Stamp, _Entered, Fields], None]] = {
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


_USUAL_PUSH = re.compile(rb"\{ hEvent: (0x[0-9a-f]{1,16}) \}")


def _push(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    usual = _USUAL_PUSH.fullmatch(payload)
    event = reader.fields(payload).integer("hEvent") if usual is None else int(usual[1], 16)
    reader.rows["pushes"].add((*stamp, event))


#: A result as THAPI prints it; others are read field by field.
_USUAL_RESULT = re.compile(
    rb"\{ hEvent: (0x[0-9a-f]{1,16}), status: (ZE_RESULT_\w{1,80}), timestampStatus: (ZE_RESULT_\w{1,80}), "
    rb"globalStart: (\d{1,20}), globalEnd: (\d{1,20}), contextStart: (\d{1,20}), contextEnd: (\d{1,20}) \}"
)
_STATES = ("status", "timestamp_status")


def _event_result(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    rows = reader.rows["results"]
    usual = _USUAL_RESULT.fullmatch(payload)
    if usual is not None and max(map(int, usual.groups()[3:])) < 1 << 64:
        event, *states = usual.groups()[:3]
        codes = (rows.dictionary(c).code(t.decode()) for c, t in zip(_STATES, states, strict=True))
        rows.add((*stamp, None, None, int(event, 16), *codes, *map(int, usual.groups()[3:])))
        return
    fields = reader.fields(payload)
    ticks = (fields.integer(name) for name in ("globalStart", "globalEnd", "contextStart", "contextEnd"))
    status, timestamp_status = (result_name(fields.word(name)) for name in ("status", "timestampStatus"))
    rows.add(
        (
            *stamp,
            None,
            None,
            fields.integer("hEvent"),
            rows.dictionary("status").code(status),
            rows.dictionary("timestamp_status").code(timestamp_status),
            *ticks,
        )
    )


def _device(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    about = fields.structure("pDeviceProperties_val")
    is_sub = "hSubDevice" in fields
    resolution = about.integer("timerResolution")
    in_cycles = about.text("stype") == layout.STYPE_CYCLES
    num, den = (resolution, 1) if in_cycles else (layout.NS_PER_SECOND, resolution)
    known = 0 < resolution <= (layout.FASTEST_HZ if in_cycles else layout.NS_PER_SECOND)
    uuid = about.get("uuid")
    reader.rows["devices"].add(
        (
            *stamp,
            fields.integer("hSubDevice" if is_sub else "hDevice"),
            fields.integer("hDevice") if is_sub else None,
            uuid_text(uuid.get("id") if isinstance(uuid, dict) else uuid),
            about.text("name"),
            about.optional_small("subdeviceId") if is_sub else None,
            num if known else None,
            den if known else None,
            not in_cycles,
            _bits(about.small("timestampValidBits")),
            _bits(about.small("kernelTimestampValidBits")),
        )
    )


def _bits(value: int) -> int:
    """Return a number of valid bits; 0, which drivers give that know none, counts as all."""
    if value > 64:
        raise BadField("no number of bits")
    return value or 64


def uuid_text(value: Any) -> str:
    """Return a UUID as 32 hexadecimal digits from a list of bytes or from text; empty when there is none.

    Raises:
        BadField: it is none.
    """
    if isinstance(value, list):
        digits = "".join(f"{byte(item):02x}" for item in value)
    elif isinstance(value, str) or value is None:
        digits = (value or "").replace("-", "").lower()
    else:
        raise BadField("no UUID")
    if digits and (len(digits) != 32 or not set(digits) <= set("0123456789abcdef")):
        raise BadField("no UUID")
    return digits


def _timer(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    # The field hostTimestamp counts on a clock that the records do not use; the record's own time does.
    device, ticks = fields.integer("hDevice"), fields.integer("deviceTimestamp")
    reader.rows["clock_pairs"].add((*stamp, device, stamp[1], ticks, None))


def _kernel_properties(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    about = fields.structure("pKernelProperties_val")
    reader.kernel("update", stamp, fields.integer("hKernel"), simd=about.small("maxSubgroupSize"))


def _memory_type(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    about = reader.fields(payload).structure("pMemAllocProperties_val")
    reader.memory_types[stamp[2]] = layout.MEMORY_TYPES.get(about.word("type"), "")


def _memory_range(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    base, size = fields.integer("base"), fields.integer("size")
    memory = reader.memory_types.pop(stamp[2], "")
    if memory and base and size:
        reader.allocated(stamp, base, size, memory)


# --- our recorder's records ---------------------------------------------------------------------------------------


def _our_device(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    num, den = fields.optional("ticks_per_second_num"), fields.optional("ticks_per_second_den")
    known = (
        bool(num and den) and max(num or 0, den or 0) < 1 << 62 and 1 <= (num or 0) / (den or 1) <= layout.FASTEST_HZ
    )
    reader.rows["devices"].add(
        (
            *stamp,
            fields.integer("device"),
            fields.optional("parent"),
            uuid_text(fields.text("uuid")),
            fields.text("name"),
            fields.optional_small("subdevice"),
            num if known else None,
            den if known else None,
            False,
            _bits(fields.small("timestamp_bits")),
            _bits(fields.small("kernel_timestamp_bits")),
        )
    )


def _our_queue(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    reader.rows["queues"].add(
        (
            *stamp,
            fields.integer("queue"),
            fields.optional("device"),
            fields.small("ordinal"),
            fields.small("index"),
        )
    )


def _our_list(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    reader.listed(
        "create",
        stamp,
        fields.integer("list_id"),
        handle=fields.optional("handle"),
        context=fields.optional("context"),
        device=fields.optional("device"),
        ordinal=fields.optional_small("ordinal"),
        index=fields.optional_small("index"),
        immediate=fields.switch("immediate"),
        in_order=fields.switch("in_order"),
        compute=fields.switch("compute") if "compute" in fields else None,
        reason=fields.text("reason") or None,
    )


def _our_kernel(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    group = tuple(fields.optional_small(f"group_{axis}") for axis in "xyz")
    simd = fields.optional_small("simd")
    name = fields.text("name") or None
    reader.kernel("update", stamp, fields.integer("kernel"), name=name, simd=simd, group=group)


def _our_op(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    rows = reader.rows["appends"]
    number = len(rows)
    waits = fields.integers("waits")
    function = fields.word("api")
    dst, src = fields.text("dst"), fields.text("src")
    if not {dst, src} <= {"", *layout.MEMORIES}:
        raise BadField("no kind of memory")
    how, reason = fields.text("how"), fields.text("reason")
    rows.add(
        (
            *stamp,
            rows.dictionary("function").code(function),
            rows.dictionary("kind").code(layout.APPENDS.get(function, layout.OTHER)),
            fields.integer("op_id"),
            fields.integer("list_id"),
            fields.optional("signal"),
            len(waits),
            fields.optional("kernel"),
            *(fields.optional_small(f"groups_{axis}") for axis in "xyz"),
            fields.optional("bytes"),
            None,
            None,
            rows.dictionary("dst_memory").code(dst) if dst else None,
            rows.dictionary("src_memory").code(src) if src else None,
            rows.dictionary("how").code(how) if how else None,
            rows.dictionary("reason").code(reason) if reason else None,
        )
    )
    for event in waits:
        reader.rows["waits"].add((number, event))


def _our_run(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    begin, leave = fields.small("t_entry"), fields.optional_small("t_exit")
    handle, queue, run = fields.integer("list_id"), fields.integer("queue"), fields.small("run")
    quiet = fields.switch("quiet")
    reader.rows["runs"].add((stamp[0], begin, stamp[2], handle, queue, run, leave, quiet))


def _our_result(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    rows = reader.rows["results"]
    ok = rows.dictionary("status").code(layout.SUCCESS), rows.dictionary("timestamp_status").code(layout.SUCCESS)
    ticks = (fields.integer(name) for name in ("global_start", "global_end", "context_start", "context_end"))
    rows.add((*stamp, fields.integer("op_id"), fields.small("run"), None, *ok, *ticks))


def _our_loss(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    rows = reader.rows["losses"]
    reason = rows.dictionary("reason").code(fields.word("reason"))
    rows.add((*stamp, fields.integer("op_id"), fields.small("run"), reason))


def _our_degradation(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    rows = reader.rows["degradations"]
    rows.add(
        (
            *stamp,
            rows.dictionary("scope").code(fields.word("scope")),
            fields.integer("id"),
            rows.dictionary("reason").code(fields.word("reason")),
            fields.integer("code"),
            max(fields.small("count"), 1),
        )
    )


def _our_pair(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    device, host, ticks = fields.integer("device"), fields.small("host_ns"), fields.integer("device_ticks")
    reader.rows["clock_pairs"].add((*stamp, device, host, ticks, fields.optional_small("error_ns")))


_HANDLERS: dict[str, Handler] = {
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
