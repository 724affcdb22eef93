"""Small programs as text traces, and what became of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lanescope
from lanescope.devices.levelzero.family import FAMILY
from lanescope.families.options import resolve_options
from lanescope.trace import Trace

SUCCESS = "ZE_RESULT_SUCCESS"


def plain(value: Any) -> Any:
    """Return a report, and the objects in it, as dicts that compare."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return plain(vars(value)) if hasattr(value, "__dict__") else value


@dataclass
class Script:
    """Writes a text trace record by record; each record comes ``step`` ns after the one before."""

    step: int = 1000
    now: int = 12 * 3600 * 1_000_000_000
    pid: int = 10
    tid: int = 1
    host: str = "testhost"
    lines: list[str] = field(default_factory=list)
    ticks: int = 0

    def record(self, event: str, /, **fields: Any) -> Script:
        seconds, ns = divmod(self.now, 1_000_000_000)
        clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{ns:09d}"
        self.now += self.step
        content = ", ".join(f"{name}: {shown(value)}" for name, value in fields.items())
        context = f"{self.host} - vpid: {self.pid}, vtid: {self.tid}"
        self.lines.append(f"{clock} - {context} - {event}: {{ {content} }}")
        return self

    def entry(self, function: str, **fields: Any) -> Script:
        return self.record(f"lttng_ust_ze:{function}_entry", **fields)

    def exit(self, function: str, result: str = SUCCESS, **fields: Any) -> Script:
        return self.record(f"lttng_ust_ze:{function}_exit", zeResult=result, **fields)

    def call(
        self, function: str, result: str = SUCCESS, inside: Callable[[], object] = lambda: None, **fields: Any
    ) -> Script:
        """A call: fields whose names begin with ``out_`` stand in its exit."""
        self.entry(function, **{name: value for name, value in fields.items() if not name.startswith("out_")})
        inside()
        out = {name.removeprefix("out_"): value for name, value in fields.items() if name.startswith("out_")}
        return self.exit(function, result, **out)

    # --- THAPI ----------------------------------------------------------------------------------------------------

    def append(self, what: str, event: int, *, cl: int = 0x1, result: str = SUCCESS, **fields: Any) -> Script:
        """An Append that will be timed through ``event``."""
        is_signal = what == "SignalEvent"
        signal = {"hEvent": event} if is_signal else {"hSignalEvent": event, "numWaitEvents": 0}
        self.entry(f"zeCommandListAppend{what}", hCommandList=cl, **fields, **signal)
        if result == SUCCESS:
            self.record("lttng_ust_ze_profiling:event_profiling", hEvent=event)
        return self.exit(f"zeCommandListAppend{what}", result)

    def result(self, event: int, start: int | None = None, end: int | None = None, **given: Any) -> Script:
        """The timestamps of an event; without any, the next 10 ticks."""
        if start is None:
            self.ticks += 100
            start, end = self.ticks, self.ticks + 10
        fields = {
            "hEvent": event,
            "status": SUCCESS,
            "timestampStatus": SUCCESS,
            "globalStart": start,
            "globalEnd": end,
            "contextStart": start,
            "contextEnd": end,
        }
        return self.record("lttng_ust_ze_profiling:event_profiling_results", **{**fields, **given})

    def immediate(
        self, cl: int, device: int = 0xD0, *, in_order: bool = False, ordinal: int = 0, index: int = 0
    ) -> Script:
        flags = 2 if in_order else 0
        description = {"ordinal": ordinal, "index": index, "flags": flags}
        return self.call(
            "zeCommandListCreateImmediate", hDevice=device, altdesc_val=description, out_phCommandList_val=cl
        )

    def regular(self, cl: int, device: int = 0xD0) -> Script:
        return self.call("zeCommandListCreate", hDevice=device, desc_val={"flags": 0}, out_phCommandList_val=cl)

    def execute(
        self, queue: int, *lists: int, fence: int | None = None, inside: Callable[[], object] = lambda: None
    ) -> Script:
        fields: dict[str, Any] = {
            "hCommandQueue": queue,
            "numCommandLists": len(lists),
            "phCommandLists_vals": list(lists),
        }
        if fence is not None:
            fields["hFence"] = fence
        return self.call("zeCommandQueueExecuteCommandLists", inside=inside, **fields)

    def device(
        self, handle: int = 0xD0, *, resolution: int = 80, bits: int = 64, kernel_bits: int = 32, **more: Any
    ) -> Script:
        about = {
            "stype": "ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES",
            "timerResolution": resolution,
            "timestampValidBits": bits,
            "kernelTimestampValidBits": kernel_bits,
            "uuid": "86800000-0000-0000-0000-0000000000ab",
            "name": '"GPU"',
        }
        return self.record("lttng_ust_ze_properties:device", hDevice=handle, pDeviceProperties_val={**about, **more})

    def pair(self, ticks: int, handle: int = 0xD0) -> Script:
        fields = {"hDevice": handle, "hostTimestamp": 0, "deviceTimestamp": ticks}
        return self.record("lttng_ust_ze_properties:device_timer", **fields)

    # --- operations with numbers ----------------------------------------------------------------------------------

    def op(self, number: int, what: str, *, cl: int = 1, **fields: Any) -> Script:
        function = f"zeCommandListAppend{what}"
        self.entry(function)
        self.record("lanescope_ze:op", op_id=number, list_id=cl, api=f'"{function}"', **fields)
        return self.exit(function)

    def harvest(self, number: int, run: int = 1, start: int | None = None, end: int | None = None) -> Script:
        if start is None:
            self.ticks += 100
            start, end = self.ticks, self.ticks + 10
        fields = {"global_start": start, "global_end": end, "context_start": start, "context_end": end}
        return self.record("lanescope_ze:result", op_id=number, run=run, **fields)

    def list_run(self, cl: int, run: int, queue: int = 0x9) -> Script:
        self.entry("zeCommandQueueExecuteCommandLists")
        began = self.now - self.step
        self.record(
            "lanescope_ze:list_run", list_id=cl, run=run, queue=queue, t_entry=epoch(began), t_exit=epoch(self.now)
        )
        return self.exit("zeCommandQueueExecuteCommandLists")

    # --- what becomes of it ---------------------------------------------------------------------------------------

    @property
    def text(self) -> bytes:
        return "".join(f"{line}\n" for line in self.lines).encode()

    def open(self, folder: Path, name: str = "run.thapi_text", **options: Any) -> Trace:
        return opened(self.text, folder, name, **options)


def epoch(ns: int) -> int:
    """A time of the day that text traces are given, ns since the Unix epoch."""
    return 1_704_067_200_000_000_000 + ns


def shown(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name}: {shown(item)}" for name, item in value.items()) + " }"
    if isinstance(value, list):
        return "[ " + ", ".join(hex(item) for item in value) + " ]"
    return str(value)


def opened(content: bytes, folder: Path, name: str = "run.thapi_text", **options: Any) -> Trace:
    path = folder / name
    path.write_bytes(content)
    return lanescope.open(path, "levelzero", **options)


def simulated(**options: Any) -> dict[str, Any]:
    """Return options of the simulator, the others at their defaults."""
    return resolve_options(FAMILY.sim_options, options, what="simulator")


def operations(trace: Trace) -> list[dict[str, Any]]:
    """Return the device operations in the order of their results: slice and detail in one row."""
    slices = list(trace.slices.rows())
    rows = [{**detail, **slices[detail["slice_id"]]} for detail in trace.details["levelzero_operations"].rows()]
    return sorted(rows, key=lambda row: row["readback_seq"])


def names(trace: Trace) -> list[str]:
    """Return what was appended, without the long beginning, in the order of the results."""
    return [row["name"].removeprefix("zeCommandListAppend") for row in operations(trace)]


def stats(trace: Trace) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, count in zip(trace.stats["name"].tolist(), trace.stats["count"].tolist(), strict=True):
        found[name] = found.get(name, 0) + count  # of several inputs
    return found
