"""The records of a text trace -> rows of the event model: one handler for each kind of record."""

from __future__ import annotations

from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.fields import BadField
from lanescope.devices.levelzero.formats.host_apis import HOST_APIS, ITT, OPENMP
from lanescope.devices.levelzero.formats.text_calls import entry_handler, exit_handler, host_handler
from lanescope.devices.levelzero.formats.text_itt import itt_handler
from lanescope.devices.levelzero.formats.text_launches import profiling_handler
from lanescope.devices.levelzero.formats.text_records import (
    Handler,
    Recorder,
    Stamp,
    moved,
    result_name,
    uuid_text,
    valid_bits,
)
from lanescope.devices.levelzero.formats.text_scopes import scope_handler


def handler_of(provider: str, event: str) -> Handler | None:
    """Return what reads a kind of record; None when nothing in it is of use."""
    api = HOST_APIS.get(provider)
    if api is not None:
        return host_handler(api, event)
    if provider == OPENMP:
        return scope_handler(event)
    if provider == ITT:
        return itt_handler(event)
    if provider in layout.APIS:
        if event.endswith("_entry"):
            return entry_handler(event.removesuffix("_entry"))
        if event.endswith("_exit"):
            return exit_handler(event.removesuffix("_exit"))
        return None
    return _HANDLERS.get(f"{provider}:{event}") or profiling_handler(provider, event)


def _push(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    reader.rows["pushes"].add((*stamp, reader.fields(payload).integer("hEvent")))


def _event_result(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    rows = reader.rows["results"]
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
            valid_bits(about.small("timestampValidBits")),
            valid_bits(about.small("kernelTimestampValidBits")),
        )
    )


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


# --- records of lanescope's recorder ------------------------------------------------------------------------------


def _lanescope_device(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
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
            valid_bits(fields.small("timestamp_bits")),
            valid_bits(fields.small("kernel_timestamp_bits")),
        )
    )


def _lanescope_queue(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
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


def _lanescope_list(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
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


def _lanescope_kernel(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    group = tuple(fields.optional_small(f"group_{axis}") for axis in "xyz")
    simd = fields.optional_small("simd")
    name = fields.text("name") or None
    reader.kernel("update", stamp, fields.integer("kernel"), name=name, simd=simd, group=group)


def _lanescope_op(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    rows = reader.rows["appends"]
    number = reader.append_number()
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


def _lanescope_run(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    # An execution cannot begin after its record was written.
    begin = min(moved(fields.small("t_entry"), reader.shift_ns), stamp[1])
    leave = fields.optional_small("t_exit")
    leave = None if leave is None else moved(leave, reader.shift_ns)
    handle, queue, run = fields.integer("list_id"), fields.integer("queue"), fields.small("run")
    quiet = fields.switch("quiet")
    reader.rows["runs"].add((stamp[0], begin, stamp[2], handle, queue, run, leave, quiet))


def _lanescope_result(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    rows = reader.rows["results"]
    ok = rows.dictionary("status").code(layout.SUCCESS), rows.dictionary("timestamp_status").code(layout.SUCCESS)
    ticks = (fields.integer(name) for name in ("global_start", "global_end", "context_start", "context_end"))
    rows.add((*stamp, fields.integer("op_id"), fields.small("run"), None, *ok, *ticks))


def _lanescope_loss(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    rows = reader.rows["losses"]
    reason = rows.dictionary("reason").code(fields.word("reason"))
    rows.add((*stamp, fields.integer("op_id"), fields.small("run"), reason))


def _lanescope_degradation(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
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


def _lanescope_pair(reader: Recorder, stamp: Stamp, payload: bytes) -> None:
    fields = reader.fields(payload)
    device, ticks = fields.integer("device"), fields.integer("device_ticks")
    host = moved(fields.small("host_ns"), reader.shift_ns)
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
    f"{layout.OURS}:device": _lanescope_device,
    f"{layout.OURS}:queue": _lanescope_queue,
    f"{layout.OURS}:list": _lanescope_list,
    f"{layout.OURS}:kernel": _lanescope_kernel,
    f"{layout.OURS}:op": _lanescope_op,
    f"{layout.OURS}:list_run": _lanescope_run,
    f"{layout.OURS}:result": _lanescope_result,
    f"{layout.OURS}:lost": _lanescope_loss,
    f"{layout.OURS}:degraded": _lanescope_degradation,
    f"{layout.OURS}:clock_pair": _lanescope_pair,
}
