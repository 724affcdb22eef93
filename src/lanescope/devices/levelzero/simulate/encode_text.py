"""The event model -> the text form of a trace, the inverse of ``text`` for what text can say."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.event_model import Events
from lanescope.devices.levelzero.interpret.call_matching import match

_DAY_NS = 86_400 * layout.NS_PER_SECOND
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def encode(events: Events) -> bytes:
    """Return the text of a model, one record a line, in the order of ``seq``.

    Operations with numbers are written as lanescope's recorder names them, others as THAPI does. A call's arguments
    and results are in its entry and exit. Rows whose ``seq`` does not belong to a call become records of their own.
    Rows that the text format cannot represent, such as an allocation without a call, are omitted.
    """
    return b"".join(line.encode() for line in _Encoder(events).lines())


class _Encoder:
    def __init__(self, events: Events) -> None:
        self.events = events
        processes, threads = list(events["processes"].rows()), list(events["threads"].rows())
        self.contexts = []
        for thread in threads:
            process = processes[thread["process_id"]]
            self.contexts.append(f" - {process['host']} - vpid: {process['pid']}, vtid: {thread['tid']} - ")
        #: Fields of entries and exits, by position in the stream.
        self.fields: dict[int, list[str]] = {}
        self.records: list[tuple[int, int, int, str]] = []

    def lines(self) -> Iterator[str]:
        """Yield the lines."""
        waits = self._waits()
        self._calls(waits)
        for name, write in _OWN.items():
            for number, row in enumerate(self.events[name].rows()):
                if row["seq"] in self.fields:
                    continue
                record = write({**row, "wait_events": waits.get(number, [])} if name == "appends" else row)
                if record is not None:
                    # An execution is recorded when it has returned, and tells when it began.
                    ts = row["exit_ts"] if name == "runs" and row["exit_ts"] is not None else row["ts"]
                    self.records.append((row["seq"], ts, row["thread_id"], record))
        self.records.sort()
        for _, ts, thread, record in self.records:
            yield f"{_clock(ts)}{self.contexts[thread]}{record}\n"

    def _calls(self, waits: dict[int, list[int]]) -> None:
        events = self.events
        table = events["calls"]
        rows = list(table.rows())
        self.fields = {row["seq"]: [] for row in rows}
        calls = match(table)
        entry_of = {
            rows[exit_]["seq"]: rows[entry]["seq"]
            for entry, exit_ in zip(calls.entry.tolist(), calls.exit.tolist(), strict=True)
            if exit_ >= 0
        }
        for name, write in _IN_CALLS.items():
            for number, row in enumerate(events[name].rows()):
                if row["seq"] in self.fields:
                    given, got = write({**row, "wait_events": waits.get(number, [])})
                    self.fields[entry_of.get(row["seq"], row["seq"])] += given
                    if row["seq"] in entry_of:
                        self.fields[row["seq"]] += got
        executed: dict[int, list[str]] = {}
        for row in events["runs"].rows():
            if row["seq"] in self.fields:
                executed.setdefault(row["seq"], [_hex(row["queue"])]).append(_hex(row["list"]))
        for seq, (queue, *lists) in executed.items():
            self.fields[seq] += [
                f"hCommandQueue: {queue}",
                f"numCommandLists: {len(lists)}",
                f"phCommandLists_vals: [ {', '.join(lists)} ]",
            ]
        for row in rows:
            fields = self.fields[row["seq"]]
            if row["is_exit"]:
                fields = [f"zeResult: {row['result']}", *fields] if row["result"] is not None else fields
            elif row["bytes"] is not None:
                fields = [*fields, f"size: {row['bytes']}"]
            end = "exit" if row["is_exit"] else "entry"
            content = _record(f"{layout.API}:{row['function']}_{end}", fields)
            self.records.append((row["seq"], row["ts"], row["thread_id"], content))

    def _waits(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for row in self.events["waits"].rows():
            found.setdefault(row["append"], []).append(row["event"])
        return found


def _clock(ts: int) -> str:
    ns = (ts - layout.THAPI_DATE_S * layout.NS_PER_SECOND) % _DAY_NS
    seconds, fraction = divmod(ns, layout.NS_PER_SECOND)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction:09d}"


def _record(name: str, fields: list[str]) -> str:
    return f"{name}: {{ {', '.join(fields)} }}" if fields else f"{name}: {{ }}"


def _hex(value: int) -> str:
    return f"0x{value:016x}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_CONTROL.sub(lambda match: f"{chr(92)}x{ord(match[0]):02x}", escaped)}"'


def _list(values: list[int]) -> str:
    return f"[ {', '.join(_hex(value) for value in values)} ]"


# --- rows that stand in calls: what the entry was given, what the exit got ----------------------------------------

_Row = Mapping[str, Any]
_Parts = tuple[list[str], list[str]]


def _append_call(row: _Row) -> _Parts:
    fields = [f"hCommandList: {_hex(row['list'])}"]
    if row["kernel"] is not None:
        fields.append(f"hKernel: {_hex(row['kernel'])}")
    if row["groups_x"] is not None:
        counts = ", ".join(f"groupCount{axis.upper()}: {row[f'groups_{axis}']}" for axis in "xyz")
        fields.append(f"pLaunchFuncArgs_val: {{ {counts} }}")
    if row["dst"] is not None:
        fields.append(f"{'dstptr' if row['src'] is not None else 'ptr'}: {_hex(row['dst'])}")
    if row["src"] is not None:
        fields.append(f"srcptr: {_hex(row['src'])}")
    if row["bytes"] is not None:
        fields.append(f"size: {row['bytes']}")
    if row["kind"] == layout.SIGNAL:
        return [*fields, f"hEvent: {_hex(row['event'])}"], []
    fields += [f"hSignalEvent: {_hex(row['event'])}", f"numWaitEvents: {row['waits']}"]
    return [*fields, f"phWaitEvents_vals: {_list(row['wait_events'])}"], []


def _list_call(row: _Row) -> _Parts:
    handle = _hex(row["list"])
    if row["action"] != "create":
        return [f"hCommandList: {handle}"], []
    flag = layout.QUEUE_IN_ORDER if row["immediate"] else layout.LIST_IN_ORDER
    about = [] if row["in_order"] is None else [f"flags: {flag if row['in_order'] else 0}"]
    if row["ordinal"] is not None:
        about.append(f"{'ordinal' if row['immediate'] else 'commandQueueGroupOrdinal'}: {row['ordinal']}")
    if row["index"] is not None:
        about.append(f"index: {row['index']}")
    fields = [f"{name}: {_hex(row[column])}" for name, column in _CREATED if row[column] is not None]
    fields.append(f"{'altdesc_val' if row['immediate'] else 'desc_val'}: {{ {', '.join(about)} }}")
    return fields, [f"phCommandList_val: {handle}"]


_CREATED = (("hContext", "context"), ("hDevice", "device"))


def _queue_call(row: _Row) -> _Parts:
    about = [f"{name}: {row[name]}" for name in ("ordinal", "index") if row[name] is not None]
    fields = [f"hDevice: {_hex(row['device'])}"] if row["device"] is not None else []
    return [*fields, f"desc_val: {{ {', '.join(about)} }}"], [f"phCommandQueue_val: {_hex(row['queue'])}"]


def _kernel_call(row: _Row) -> _Parts:
    handle = _hex(row["kernel"])
    if row["action"] == "create":
        name = "" if row["name"] is None else _quoted(row["name"])
        return [f"desc_val: {{ pKernelName: {name} }}"], [f"phKernel_val: {handle}"]
    if row["group_x"] is not None:
        return [f"hKernel: {handle}", *(f"groupSize{axis.upper()}: {row[f'group_{axis}']}" for axis in "xyz")], []
    if row["name"] is not None:
        return [f"hKernel: {handle}"], [f"pName_val: {_quoted(row['name'])}"]
    return [f"hKernel: {handle}"], []


def _event_call(row: _Row) -> _Parts:
    return [f"hEvent: {_hex(row['event'])}"], []


def _allocation_call(row: _Row) -> _Parts:
    if row["action"] == "free":
        return [f"ptr: {_hex(row['base'])}"], []
    return [f"size: {row['bytes']}"], [f"pptr_val: {_hex(row['base'])}"]


def _wait_call(row: _Row) -> _Parts:
    (field,) = (field for target, field in layout.WAITS.values() if target == row["target"])
    return [f"{field}: {_hex(row['handle'])}"], []


_IN_CALLS: dict[str, Callable[[_Row], _Parts]] = {
    "appends": _append_call,
    "lists": _list_call,
    "queues": _queue_call,
    "kernels": _kernel_call,
    "event_ends": _event_call,
    "allocations": _allocation_call,
    "host_waits": _wait_call,
}


# --- rows that are records of their own ---------------------------------------------------------------------------


def _own(name: str, row: _Row, *columns: str, **given: Any) -> str:
    """Return a record of lanescope's recorder: columns under their own names, and fields of other names."""
    values = {column: row[column] for column in columns} | given
    return _record(
        f"{layout.OURS}:{name}", [f"{key}: {_text(value)}" for key, value in values.items() if value is not None]
    )


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, list):
        return _list(value)
    return _quoted(value) if isinstance(value, str) else str(value)


def _append(row: _Row) -> str | None:
    if row["op_id"] is None:
        return None
    return _own(
        "op",
        row,
        "op_id",
        "how",
        "reason",
        "kernel",
        "groups_x",
        "groups_y",
        "groups_z",
        "bytes",
        list_id=row["list"],
        api=row["function"],
        signal=row["event"],
        waits=row["wait_events"] or None,
        dst=row["dst_memory"],
        src=row["src_memory"],
    )


def _result(row: _Row) -> str:
    ticks = ("global_start", "global_end", "context_start", "context_end")
    if row["op_id"] is not None:
        return _own("result", row, "op_id", "run", *ticks)
    fields = [
        f"hEvent: {_hex(row['event'])}",
        f"status: {row['status']}",
        f"timestampStatus: {row['timestamp_status']}",
    ]
    names = ("globalStart", "globalEnd", "contextStart", "contextEnd")
    fields += [f"{name}: {row[column]}" for name, column in zip(names, ticks, strict=True)]
    return _record(f"{layout.PROFILING}:event_profiling_results", fields)


def _push(row: _Row) -> str:
    return _record(f"{layout.PROFILING}:event_profiling", [f"hEvent: {_hex(row['event'])}"])


def _run(row: _Row) -> str:
    quiet = row["quiet"] or None
    return _own(
        "list_run", row, "run", "queue", list_id=row["list"], t_entry=row["ts"], t_exit=row["exit_ts"], quiet=quiet
    )


def _list_record(row: _Row) -> str:
    columns = ("handle", "context", "device", "ordinal", "index", "immediate", "in_order", "compute", "reason")
    return _own("list", row, *columns, list_id=row["list"])


def _queue(row: _Row) -> str:
    return _own("queue", row, "queue", "device", "ordinal", "index")


def _kernel(row: _Row) -> str:
    if row["name"] is None and row["group_x"] is None:
        fields = [f"hKernel: {_hex(row['kernel'])}", f"pKernelProperties_val: {{ maxSubgroupSize: {row['simd']} }}"]
        return _record(f"{layout.PROPERTIES}:kernel", fields)
    return _own("kernel", row, "kernel", "name", "simd", "group_x", "group_y", "group_z")


def _device(row: _Row) -> str:
    if not row["is_rounded"]:
        columns = ("device", "parent", "uuid", "name", "subdevice", "ticks_per_second_num", "ticks_per_second_den")
        return _own("device", row, *columns, "timestamp_bits", "kernel_timestamp_bits")
    about = [f"timerResolution: {row['ticks_per_second_den']}", f"timestampValidBits: {row['timestamp_bits']}"]
    about += [f"kernelTimestampValidBits: {row['kernel_timestamp_bits']}", f"uuid: {row['uuid']}"]
    about.append(f"name: {_quoted(row['name'])}")
    own, parent = _hex(row["device"]), row["parent"]
    handles = [f"hDevice: {own}"] if parent is None else [f"hDevice: {_hex(parent)}", f"hSubDevice: {own}"]
    if row["subdevice"] is not None:
        about.append(f"subdeviceId: {row['subdevice']}")
    name = "device" if parent is None else "subdevice"
    return _record(f"{layout.PROPERTIES}:{name}", [*handles, f"pDeviceProperties_val: {{ {', '.join(about)} }}"])


def _pair(row: _Row) -> str:
    if row["host_ns"] != row["ts"] or row["error_ns"] is not None:
        return _own("clock_pair", row, "device", "host_ns", "device_ticks", "error_ns")
    fields = [f"hDevice: {_hex(row['device'])}", "hostTimestamp: 0", f"deviceTimestamp: {row['device_ticks']}"]
    return _record(f"{layout.PROPERTIES}:device_timer", fields)


def _loss(row: _Row) -> str:
    return _own("lost", row, "op_id", "run", "reason")


def _degradation(row: _Row) -> str:
    return _own("degraded", row, "scope", "reason", "code", "count", id=row["number"])


_OWN: dict[str, Callable[[_Row], str | None]] = {
    "appends": _append,
    "pushes": _push,
    "results": _result,
    "runs": _run,
    "lists": _list_record,
    "queues": _queue,
    "kernels": _kernel,
    "devices": _device,
    "clock_pairs": _pair,
    "losses": _loss,
    "degradations": _degradation,
}
