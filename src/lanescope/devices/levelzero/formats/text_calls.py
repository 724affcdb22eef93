"""Entries and exits of API calls in a text trace -> rows of the event model.

Values of an entry are kept until its function returns; a successful exit adds what the call did.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.fields import BadField, Fields, parse
from lanescope.devices.levelzero.formats.host_apis import HostApi, is_sized, result_text
from lanescope.devices.levelzero.formats.text_launches import copied, entry_part, exit_part, is_launch, launch
from lanescope.devices.levelzero.formats.text_records import Handler, Recorder, Stamp, result_name

#: How many payloads of exits are remembered for each function.
_MOST_PLAIN = 1000
#: Most entries and exits by far.
_NO_FIELDS = (b"{ }", b"{  }")


def entry_handler(function: str) -> Handler:
    """Return what reads the entries of a function."""
    is_append = function in layout.APPENDS
    kind = layout.APPENDS.get(function, layout.OTHER)
    touches_memory = "Memory" in function
    target, awaited = layout.WAITS.get(function, ("", ""))
    fenced = layout.FENCED[1] if function == layout.FENCED[0] else ""
    remember = _ENTRIES.get(function)
    name_code: int | None = None

    def handle(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
        nonlocal name_code
        # Without its parameters an entry says nothing of the operation; a recorder that numbers them says it elsewhere.
        appended = (is_append or b"hSignalEvent: " in payload) and b"hCommandList: " in payload
        size = None
        if b": " not in payload:
            if payload not in _NO_FIELDS:
                parse(payload)
        elif awaited:
            given = reader.fields(payload).optional(awaited)
            if given is not None:
                waits = reader.rows["host_waits"]
                waits.add((*stamp, waits.dictionary("target").code(target), given))
        elif appended or touches_memory or remember is not None:
            fields = reader.fields(payload)
            value = None if remember is None else remember(fields)
            fence = fields.optional(fenced) if fenced else None
            if fence:
                reader.rows["fences"].add((*stamp, fence))
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
            parse(payload)
        if name_code is None:
            name_code = reader.code("calls", "function", function)
        reader.rows["calls"].add((*stamp, name_code, False, None, size))

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
    number = reader.append_number()
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


def exit_handler(function: str) -> Handler:
    """Return what reads the exits of a function."""
    conclude = _EXITS.get(function)
    #: Result and success of exits without other fields.
    plain: dict[bytes, tuple[int | None, bool]] = {}
    name_code: int | None = None

    def handle(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
        nonlocal name_code
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
        if name_code is None:
            name_code = reader.code("calls", "function", function)
        reader.rows["calls"].add((*stamp, name_code, True, code, None))

    return handle


def host_handler(api: HostApi, event: str) -> Handler | None:
    """Return what reads an entry or exit of a function of ``api``; None if the record is neither."""
    function, _, end = event.rpartition("_")
    if function and end == "entry":
        return _host_entry(api, function)
    if function and end == "exit":
        return _host_exit(api, function)
    return None


def _host_entry(api: HostApi, function: str) -> Handler:
    sized, launches, keep = is_sized(api, function), is_launch(api, function), entry_part(api, function)

    def handle(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
        fields = reader.fields(payload)
        size = copied(api, function, fields) if sized else None
        if keep is not None:
            keep(reader, stamp, fields)
        if launches:
            launch(reader, stamp, api, function, fields)
        reader.rows["calls"].add((*stamp, reader.code("calls", "function", function), False, None, size))

    return handle


def _host_exit(api: HostApi, function: str) -> Handler:
    conclude = exit_part(api, function)

    def handle(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
        fields = reader.fields(payload)
        result = result_text(api, fields.text(api.result)) if api.result in fields else ""
        if result is None:
            raise BadField(api.result)
        if conclude is not None:
            conclude(reader, stamp, fields)
        code = reader.code("calls", "result", result) if result else None
        reader.rows["calls"].add((*stamp, reader.code("calls", "function", function), True, code, None))

    return handle


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

#: Functions that are remembered from their entry to their exit, by number.
REMEMBERED: dict[str, int] = {name: number for number, name in enumerate(dict.fromkeys([*_ENTRIES, *_EXITS]))}
