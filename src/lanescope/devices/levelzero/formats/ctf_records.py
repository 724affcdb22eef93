"""The recorder's records -> rows of the event model: one function for each kind of record."""

from __future__ import annotations

import numpy as np

from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.ctf_rows import LATEST_NS, Process, RecordRows, Records, Stream, not_zero
from lanescope.devices.levelzero.formats.descriptors import add_arguments
from lanescope.wire import ctf

_RECORD = f"{layout.OURS}:"


def add_stream(rows: RecordRows, stream: Stream, process: Process) -> None:
    """Add the events of a stream: API calls, then the records of each kind."""
    found, about = stream.events, process.reader.about
    if not len(found.classes):
        return
    present = np.flatnonzero(np.bincount(found.classes, minlength=1)).tolist()
    names = {number: about.events[number].name for number in present}
    rows.add_calls(stream, process, names)
    add_arguments(rows, stream, process, names)
    for number in present:
        name = names[number]
        if name.startswith(_RECORD):
            add = _KINDS.get(name.removeprefix(_RECORD))
            if add is not None:
                add(rows, Records(stream, process, number, np.flatnonzero(found.classes == number)))


def _device(rows: RecordRows, records: Records) -> None:
    parent, den = records.integers("parent"), records.integers("ticks_per_second_den")
    num = records.integers("ticks_per_second_num")
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = num / den
    known = (
        (num > 0)
        & (den > 0)
        & (np.maximum(num, den) < np.uint64(LATEST_NS))
        & (rate >= 1)
        & (rate <= layout.FASTEST_HZ)
    )
    bits = {}
    for name in ("timestamp_bits", "kernel_timestamp_bits"):
        bits[name] = records.integers(name)
    rows.put(
        "devices",
        records,
        device=records.integers("device"),
        parent=not_zero(parent),
        uuid=records.texts("uuid"),
        name=records.texts("name"),
        subdevice=(records.integers("subdevice"), parent != 0),
        ticks_per_second_num=(np.where(known, num, 0), known),
        ticks_per_second_den=(np.where(known, den, 0), known),
        # Whole nanoseconds a cycle are written as such.
        is_rounded=den > 1,
        **bits,
    )


def _queue(rows: RecordRows, records: Records) -> None:
    columns = {name: records.integers(name) for name in ("queue", "device", "ordinal", "index")}
    rows.put("queues", records, **columns)


def _list(rows: RecordRows, records: Records) -> None:
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


def _list_end(rows: RecordRows, records: Records) -> None:
    rows.put("lists", records, action=rows.codes("lists", "action").code("destroy"), list=records.integers("list_id"))


def _kernel(rows: RecordRows, records: Records) -> None:
    names = rows.codes("kernels", "name")
    rows.put(
        "kernels",
        records,
        action=rows.codes("kernels", "action").code("create"),
        kernel=records.integers("kernel"),
        name=names.codes(records.texts("name")),
        simd=not_zero(records.integers("simd")),
    )


def _kernel_group(rows: RecordRows, records: Records) -> None:
    groups = {name: records.integers(name) for name in ("group_x", "group_y", "group_z")}
    action = rows.codes("kernels", "action").code("update")
    rows.put("kernels", records, action=action, kernel=records.integers("kernel"), **groups)


def _kernel_end(rows: RecordRows, records: Records) -> None:
    action = rows.codes("kernels", "action").code("destroy")
    rows.put("kernels", records, action=action, kernel=records.integers("kernel"))


def _memory(rows: RecordRows, records: Records) -> None:
    memory, _ = records.codes("memory", rows.codes("allocations", "memory"))
    rows.put(
        "allocations",
        records,
        action=rows.codes("allocations", "action").code("alloc"),
        base=records.integers("base"),
        bytes=records.integers("size"),
        memory=memory,
    )


def _memory_end(rows: RecordRows, records: Records) -> None:
    rows.put(
        "allocations",
        records,
        action=rows.codes("allocations", "action").code("free"),
        base=records.integers("base"),
        bytes=0,
        memory=rows.codes("allocations", "memory").code(""),
    )


def _op(rows: RecordRows, records: Records) -> None:
    rows.append(records)


def _op_kernel(rows: RecordRows, records: Records) -> None:
    groups = {name: records.integers(name) for name in ("groups_x", "groups_y", "groups_z")}
    known = np.logical_or.reduce([values != 0 for values in groups.values()])
    counted = {name: (values, known) for name, values in groups.items()}
    rows.append(records, kernel=not_zero(records.integers("kernel")), **counted)


def _op_memory(rows: RecordRows, records: Records) -> None:
    rows.append(
        records,
        bytes=records.integers("bytes"),
        dst=not_zero(records.integers("dst")),
        src=not_zero(records.integers("src")),
    )


def _list_run(rows: RecordRows, records: Records) -> None:
    begin = np.minimum(records.time("t_entry"), records.ts)
    columns = {name: records.integers(name) for name in ("queue", "run")}
    quiet = records.integers("quiet") != 0
    rows.put("runs", records, ts=begin, list=records.integers("list_id"), exit_ts=records.ts, quiet=quiet, **columns)


def _result(rows: RecordRows, records: Records) -> None:
    # The short form is that of first runs.
    run = records.integers("run") if records.has("run") else 1
    success = {name: rows.codes("results", name).code(layout.SUCCESS) for name in ("status", "timestamp_status")}
    ticks = {name: records.integers(name) for name in ("global_start", "global_end", "context_start", "context_end")}
    rows.put("results", records, op_id=records.integers("op_id"), run=run, **success, **ticks)


def _lost(rows: RecordRows, records: Records) -> None:
    reason, _ = records.codes("reason", rows.codes("losses", "reason"))
    rows.put("losses", records, op_id=records.integers("op_id"), run=records.integers("run"), reason=reason)


def _event_end(rows: RecordRows, records: Records) -> None:
    rows.put("event_ends", records, event=records.integers("handle"))


def _clock_pair(rows: RecordRows, records: Records) -> None:
    rows.put(
        "clock_pairs",
        records,
        device=records.integers("device"),
        host_ns=records.time("host_ns"),
        device_ticks=records.integers("device_ticks"),
        error_ns=(records.integers("error_ns"), records.has("error_ns")),
    )


def _degraded(rows: RecordRows, records: Records) -> None:
    columns = {name: records.codes(name, rows.codes("degradations", name))[0] for name in ("scope", "reason")}
    rows.put(
        "degradations",
        records,
        number=records.integers("number"),
        code=records.integers("code"),
        count=np.maximum(records.integers("count"), 1),
        **columns,
    )


def _statistics(rows: RecordRows, records: Records) -> None:
    records.process.ended = True
    names = [name for name in records.fields if records.fields[name].kind == ctf.INTEGER]
    records.process.statistics = {name: int(records.integers(name)[-1]) for name in names}


def _sampling(rows: RecordRows, records: Records) -> None:
    reason = rows.codes("samplings", "reason").codes(records.texts("reason"))
    rows.put("samplings", records, interval=records.integers("interval_ns"), reason=reason)


def _sampling_end(rows: RecordRows, records: Records) -> None:
    counts = {name: records.integers(name) for name in ("missed", "failed")}
    reason = rows.codes("samplings", "reason").code("")
    rows.put("samplings", records, reason=reason, busy=records.integers("busy_ns"), **counts)


def _sensor_kind(rows: RecordRows, records: Records) -> None:
    codes = records.integers("code")
    results = [layout.ALL_RESULTS.get(code, f"{code}") for code in codes.tolist()]
    rows.put(
        "sensor_kinds",
        records,
        device=records.integers("device"),
        uuid=records.texts("uuid"),
        name=records.texts("name"),
        kind=rows.codes("sensor_kinds", "kind").codes(records.texts("kind")),
        count=records.integers("count"),
        result=rows.codes("sensor_kinds", "result").codes(results),
    )


def _sensor(rows: RecordRows, records: Records) -> None:
    subdevice = records.integers("subdevice")
    texts = {name: rows.codes("sensors", name).codes(records.texts(name)) for name in ("kind", "part")}
    rows.put(
        "sensors",
        records,
        sensor=records.integers("sensor"),
        device=records.integers("device"),
        subdevice=(subdevice, subdevice != layout.MOST_COUNT),
        **texts,
    )


def _sample(rows: RecordRows, records: Records) -> None:
    rows.put("samples", records, **{name: records.integers(name) for name in ("sensor", "value", "reference")})


_KINDS = {
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
    "sampling": _sampling,
    "sampling_end": _sampling_end,
    "sensor_kind": _sensor_kind,
    "sensor": _sensor,
    "sample": _sample,
}
