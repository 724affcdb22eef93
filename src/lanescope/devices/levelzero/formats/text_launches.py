"""Launches of CUDA and OpenCL in a text trace -> rows of the event model: launched, announced, measured.

Which records are read: THAPI backends/cuda/btx_cudamatching_model.yaml, backends/opencl/btx_clmatching_model.yaml and
their callbacks.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.fields import BadField, Fields
from lanescope.devices.levelzero.formats.host_apis import CUDA, HOST_APIS, OPENCL, HostApi, is_failure, result_text
from lanescope.devices.levelzero.formats.text_records import Handler, Recorder, Stamp, uuid_text

CUDA_API, OPENCL_API = HOST_APIS[CUDA], HOST_APIS[OPENCL]
#: Functions of CUDA whose operations are measured.
_CUDA_LAUNCHES = ("cuMemcpy", "cuMemPrefetch", "cuMemset", "cuLaunch")
#: Longest operation that is read, in milliseconds.
_MOST_MS = 1e12
_MS = r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?"

#: Takes the fields of an entry or exit; raises BadField before it has added anything.
Part = Callable[[Recorder, Stamp, Fields], None]


@cache
def is_launch(api: HostApi, function: str) -> bool:
    """Return whether a function gives an operation to a device."""
    if api is OPENCL_API:
        return function.startswith("clEnqueue")
    return api is CUDA_API and any(part in function for part in _CUDA_LAUNCHES)


@cache
def kind_of(function: str) -> str:
    """Return the kind of the operation that a function launches, but for kernels of OpenCL.

    Example:
        >>> [kind_of(name) for name in ("cuLaunchKernel", "cuLaunchHostFunc", "cuMemsetD8_v2", "clEnqueueReadBuffer")]
        ['kernel', 'other', 'fill', 'copy']
    """
    if function.startswith("cuLaunch") or "Kernel" in function or "Task" in function:
        return layout.OTHER if "Host" in function or "Native" in function else layout.KERNEL
    if any(word in function for word in ("Fill", "Memset", "MemFill")):
        return layout.FILL
    is_copy = any(word in function for word in ("Read", "Write", "Copy", "Memcpy", "cpy", "Map", "Unmap", "Prefetch"))
    return layout.COPY if is_copy or "Migrate" in function else layout.OTHER


def queue_fields(api: HostApi) -> tuple[str, str]:
    """Return the fields of a launch with the queue and with the kernel."""
    return ("command_queue", "kernel") if api is OPENCL_API else ("hStream", "f")


def launch(reader: Recorder, stamp: Stamp, api: HostApi, function: str, fields: Fields) -> None:
    """Add a launch, if the entry is one."""
    queue, kernel = (fields.optional(name) for name in queue_fields(api))
    if queue is None and api is OPENCL_API:
        return
    codes = reader.code("launches", "api", api.title), reader.code("launches", "function", function)
    reader.rows["launches"].add((*stamp, *codes, queue, kernel))


def copied(api: HostApi, function: str, fields: Fields) -> int | None:
    """Return how many bytes a call accesses by its entry, None if that is not said."""
    # Raw bytes are of a version that is not known.
    if is_shaped(function) and isinstance(fields.get("pCopy_val"), dict):
        shape = fields.structure("pCopy_val")
        sides = [shape.integer(name) for name in ("WidthInBytes", "Height")]
        sides.append(shape.integer("Depth") if "Depth" in shape else 1)
        size = sides[0] * sides[1] * sides[2]
        if size >= 1 << 64:
            raise BadField("pCopy_val")
        return size
    return fields.optional(api.size)


def is_shaped(function: str) -> bool:
    """Return whether the size of a copy is that of a structure."""
    return function.startswith(("cuMemcpy2D", "cuMemcpy3D"))


# --- contexts, streams, queues, kernels ---------------------------------------------------------------------------


def entry_part(api: HostApi, function: str) -> Part | None:
    """Return what keeps a field of an entry until the function returns; None if nothing of it is needed."""
    for begin, field, _ in _OBJECTS.get(api.title, ()):
        if function.startswith(begin):
            return _keep(function, field) if field else None
    return None


def exit_part(api: HostApi, function: str) -> Part | None:
    """Return what a successful return of a function makes known; None if nothing."""
    for begin, _, conclude in _OBJECTS.get(api.title, ()):
        if function.startswith(begin):
            return _concluded(api, function, conclude)
    return None


def _keep(function: str, field: str) -> Part:
    def keep(reader: Recorder, stamp: Stamp, fields: Fields) -> None:
        value: int | str | None = None
        if field in fields:
            value = fields.text(field) if field == "name_val" else fields.integer(field)
        reader.given[stamp[2], function] = value

    return keep


_Conclude = Callable[[Fields, Any], list[tuple[str, int, int | None, str]]]


def _concluded(api: HostApi, function: str, conclude: _Conclude) -> Part:
    def part(reader: Recorder, stamp: Stamp, fields: Fields) -> None:
        given = reader.given.get((stamp[2], function))
        written = fields.text(api.result) if api.result in fields else ""
        if written and is_failure(api, result_text(api, written)):
            return
        made = conclude(fields, given)
        reader.given.pop((stamp[2], function), None)
        for action, number, parent, name in made:
            _object(reader, stamp, api, action, number, parent, name)

    return part


def _object(
    reader: Recorder,
    stamp: Stamp,
    api: HostApi,
    action: str,
    number: int,
    parent: int | None = None,
    name: str = "",
    uuid: str = "",
) -> None:
    codes = reader.code("launch_objects", "api", api.title), reader.code("launch_objects", "action", action)
    reader.rows["launch_objects"].add((*stamp, *codes, number, parent, name, uuid))


def _made(action: str, field: str) -> _Conclude:
    """Return what names an object of an exit, and what its entry was given."""

    def conclude(fields: Fields, given: Any) -> list[tuple[str, int, int | None, str]]:
        number = fields.optional(field)
        if number is None:
            return []
        name = given if isinstance(given, str) else ""
        return [(action, number, None if isinstance(given, str) else given, name)]

    return conclude


def _created_context(fields: Fields, given: Any) -> list[tuple[str, int, int | None, str]]:
    made = _made("context", "pctx_val")(fields, given)
    return [*made, *(("push", number, None, "") for _, number, _, _ in made)]


def _given(action: str) -> _Conclude:
    return lambda fields, given: [] if given is None else [(action, given, None, "")]


def _devices(field: str) -> _Conclude:
    return lambda fields, given: [("device", device, given, "") for device in fields.integers(field)]


#: By API: how functions begin, the field of their entries that is kept, what their success means.
_OBJECTS: dict[str, tuple[tuple[str, str, _Conclude], ...]] = {
    CUDA_API.title: (
        ("cuCtxCreate", "dev", _created_context),
        ("cuDevicePrimaryCtxRetain", "dev", _made("context", "pctx_val")),
        ("cuCtxDestroy", "ctx", _given("destroy")),
        ("cuCtxSetCurrent", "ctx", _given("current")),
        ("cuCtxPushCurrent", "ctx", _given("push")),
        ("cuCtxPopCurrent", "", lambda fields, given: [("pop", 0, None, "")]),
        ("cuStreamCreate", "", _made("stream", "phStream_val")),
        ("cuModuleGetFunction", "name_val", _made("kernel", "hfunc_val")),
        ("cuLibraryGetKernel", "name_val", _made("kernel", "pKernel_val")),
    ),
    OPENCL_API.title: (
        ("clGetDeviceIDs", "", _devices("devices_vals")),
        ("clCreateSubDevices", "in_device", _devices("out_devices_vals")),
        ("clCreateCommandQueue", "device", _made("queue", "command_queue")),
    ),
}


# --- what was announced and measured ------------------------------------------------------------------------------


def profiling_handler(provider: str, event: str) -> Handler | None:
    """Return what reads a record of another provider than that of the calls; None if nothing in it is used."""
    return _HANDLERS.get(f"{provider}:{event}")


def _cuda_push(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    start, stop = fields.integer("hStart"), fields.integer("hStop")
    reader.rows["launch_events"].add((*stamp, reader.code("launch_events", "api", CUDA_API.title), start, stop))


def _opencl_push(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    event = reader.fields(payload).integer("event")
    reader.rows["launch_events"].add((*stamp, reader.code("launch_events", "api", OPENCL_API.title), event, 0))


def _status(api: HostApi, fields: Fields, *names: str) -> str:
    """Return the first of several results that is a failure, else that of a success."""
    found = api.success
    for name in names:
        text = result_text(api, fields.word(name))
        if text is None:
            raise BadField(name)
        if found == api.success and is_failure(api, text):
            found = text
    return found


def _cuda_result(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    events = fields.integer("hStart"), fields.integer("hStop")
    status = _status(CUDA_API, fields, "startStatus", "stopStatus", "status")
    length = nanoseconds(fields.word("milliseconds"))
    codes = reader.code("launch_results", "api", CUDA_API.title), *events
    result = reader.code("launch_results", "status", status)
    reader.rows["launch_results"].add((*stamp, *codes, result, None, None, None, length))


def _opencl_result(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    event = fields.integer("event")
    names = ["event_command_exec_status", "queued_status", "submit_status", "start_status", "end_status"]
    status = _status(OPENCL_API, fields, *(name for name in names if name != "submit_status" or name in fields))
    times = [fields.integer(name) for name in ("queued", "start", "end")]
    codes = reader.code("launch_results", "api", OPENCL_API.title), event, 0
    result = reader.code("launch_results", "status", status)
    reader.rows["launch_results"].add((*stamp, *codes, result, *times, None))


def nanoseconds(text: str) -> int:
    """Return milliseconds, a single-precision number, in whole nanoseconds; cut off as THAPI does.

    Raises:
        BadField: it is none, or beyond 30 years.

    Example:
        >>> nanoseconds("1.0"), nanoseconds("0.0123")
        (1000000, 12299)
    """
    value = float(text) if re.fullmatch(_MS, text) else -1.0
    if not 0 <= value <= _MOST_MS:
        raise BadField("milliseconds")
    single: float = struct.unpack("f", struct.pack("f", value))[0]
    return int(single * 1e6)


def _kernel_info(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    kernel, name = fields.integer("kernel"), fields.text("function_name")
    _object(reader, stamp, OPENCL_API, "kernel", kernel, None, name)


def _opencl_device(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    _object(reader, stamp, OPENCL_API, "about", fields.integer("device"), None, fields.text("name"))


def _cuda_device(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    device, name, uuid = fields.integer("device"), fields.text("name"), uuid_text(fields.get("uuid"))
    _object(reader, stamp, CUDA_API, "about", device, None, name, uuid)


_HANDLERS: dict[str, Handler] = {
    f"{CUDA}_profiling:event_profiling": _cuda_push,
    f"{CUDA}_profiling:event_profiling_results": _cuda_result,
    f"{CUDA}_properties:device": _cuda_device,
    f"{OPENCL}_profiling:event_profiling": _opencl_push,
    f"{OPENCL}_profiling:event_profiling_results": _opencl_result,
    f"{OPENCL}_arguments:kernel_info": _kernel_info,
    f"{OPENCL}_devices:device_name": _opencl_device,
}
