"""A training run, recorded as the profiler writes it: one host thread, one device with several streams.

All times are whole nanoseconds. The truth is kept beside what is written, so it does not pass through the format.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

from lanescope.families.family import Simulation
from lanescope.foreign.kineto.formats import layout

_PID, _DEVICE = 4711, 0
_BASE = 225 * layout.BASE_STEP
_BEGIN = 5_000_000_000_000
_KERNELS = ("gemm_tile_128", "softmax_rows", "layer_norm", "add_bias_gelu", "reduce_columns")
_CAPABILITY = (8, 0)
_SMS, _WARP, _THREADS = 108, 32, 256


class _Run:
    """Events as they happen, in ns from the base."""

    def __init__(self, options: Mapping[str, Any], seed: int) -> None:
        self.options = options
        self.random = random.Random(seed)
        self.now = _BEGIN
        self.events: list[dict[str, Any]] = []
        self.free = dict.fromkeys(range(7, 7 + options["streams"]), _BEGIN)
        self.work: list[dict[str, Any]] = []
        self.correlation = 0
        self.external = 0
        self.allocated = 1 << 20
        self.python = 0
        self.faults: dict[str, int] = {}

    def pass_time(self, least: int, most: int) -> int:
        """Let some time pass, and return how much."""
        step = self.random.randint(least, most)
        self.now += step
        return step

    def row(self, name: str, category: str, ts: int, dur: int, **args: Any) -> dict[str, Any]:
        """Add a complete event on the host's thread."""
        event = {"ph": "X", "cat": category, "name": name, "pid": _PID, "tid": _PID, "ts": ts, "dur": dur, "args": args}
        self.events.append(event)
        return event

    def launch(self, call: str, rows: list[tuple[str, str, int, dict[str, Any]]], stream: int) -> None:
        """Call the runtime; after some latency its device rows run one after the other."""
        begin = self.now
        self.correlation += 1
        number = self.correlation
        took = self.pass_time(2_000, 9_000)
        self.row(
            call, "cuda_runtime", begin, took, **{"External id": self.external, "cbid": 211, "correlation": number}
        )
        self.events.append(_flow("s", "ac2g", number, _PID, _PID, begin))
        if self.options["unexecuted"] > self.faults.get("unexecuted", 0):
            self.faults["unexecuted"] = self.faults.get("unexecuted", 0) + 1
            return
        at = max(self.free[stream], begin + self.random.randint(4_000, 15_000))
        for name, category, dur, args in rows:
            self.work.append(
                {
                    "ph": "X", "cat": category, "name": name, "pid": _DEVICE, "tid": stream, "ts": at, "dur": dur,
                    "args": {
                        "External id": self.external, "device": _DEVICE, "context": 1, "stream": stream,
                        "correlation": number, **args,
                    },
                }
            )  # fmt: skip
            at += dur + self.random.randint(0, 900)
        self.free[stream] = at

    def kernel(self, stream: int) -> None:
        """Run an operator that launches a kernel."""
        self.external += 1
        begin = self.now
        name = self.random.choice(_KERNELS)
        self.pass_time(500, 3_000)
        grid = [self.random.randint(1, 400), 1, 1]
        blocks = grid[0] / _SMS
        args = {
            "queued": 0, "registers per thread": 64, "shared memory": 8192, "blocks per SM": round(blocks, 7),
            "warps per SM": round(blocks * _THREADS / _WARP, 6), "grid": grid, "block": [_THREADS, 1, 1],
            "est. achieved occupancy %": 41,
        }  # fmt: skip
        self.launch("cudaLaunchKernel", [(name, "kernel", self.random.randint(3_000, 60_000), args)], stream)
        self.pass_time(300, 2_000)
        operator = {"External id": self.external, "Record function id": 0, "Ev Idx": len(self.events)}
        self.row(f"aten::{name}", "cpu_op", begin, self.now - begin, **operator)
        if self.options["python"]:
            self.python += 1
            parent = None if self.python == 1 else 1
            self.row(f"model.py({self.python}): forward", "python_function", begin - 200, self.now - begin + 400,
                     **{"Python id": self.python, "Python parent id": parent})  # fmt: skip
            self.now += 300
        self.pass_time(300, 4_000)

    def copy(self, stream: int) -> None:
        """Copy something to the device."""
        self.external += 1
        size = self.random.randint(1 << 12, 1 << 22)
        dur = size // 20 + 1_500
        rate = round(size / dur, 6)
        args = {"bytes": size, "memory bandwidth (GB/s)": rate}
        self.launch("cudaMemcpyAsync", [("Memcpy HtoD (Pinned -> Device)", "gpu_memcpy", dur, args)], stream)
        self.pass_time(300, 4_000)

    def graph(self, stream: int) -> None:
        """Launch a graph of some kernels."""
        self.external += 1
        rows = [
            (
                self.random.choice(_KERNELS),
                "kernel",
                self.random.randint(2_000, 9_000),
                {"graph id": 1, "graph node id": node},
            )
            for node in range(4)
        ]
        self.launch("cudaGraphLaunch", rows, stream)
        self.pass_time(300, 4_000)

    def collective(self, number: int, stream: int) -> None:
        """Reduce something over all ranks."""
        self.external += 1
        elements = self.random.randint(1000, 100_000)
        size = self.options["ranks"]
        args = {
            "Collective name": "allreduce", "In msg nelems": elements, "Out msg nelems": elements, "Group size": size,
            "dtype": "Float", "In split size": "[]", "Out split size": "[]", "Process Group Name": "0",
            "Process Group Description": "default_pg", "Process Group Ranks": str(list(range(size))), "Seq": number,
            "grid": [24, 1, 1], "block": [512, 1, 1],
        }  # fmt: skip
        name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
        self.launch("cudaLaunchKernelExC", [(name, "kernel", self.random.randint(50_000, 200_000), args)], stream)
        self.pass_time(300, 4_000)

    def allocate(self) -> None:
        """Allocate or free memory."""
        size = self.random.choice((4096, -4096)) if self.allocated > 1 << 20 else 4096
        self.allocated += size
        args = {
            "Total Reserved": 1 << 24, "Total Allocated": self.allocated, "Bytes": size, "Addr": 140_000_000_000 + size,
            "Device Id": _DEVICE, "Device Type": 1, "Ev Idx": len(self.events),
        }  # fmt: skip
        self.events.append(
            {
                "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": _PID, "tid": _PID,
                "ts": self.now, "args": args,
            }
        )  # fmt: skip
        self.pass_time(100, 900)

    def synchronize(self) -> None:
        """Wait for the device."""
        begin = self.now
        end = max([begin, *(row["ts"] + row["dur"] for row in self.work)]) + 4_500
        self.correlation += 1
        self.now = max(end, begin + 2_000)
        self.row(
            "cudaDeviceSynchronize", "cuda_runtime", begin, self.now - begin, cbid=165, correlation=self.correlation
        )
        self.pass_time(1_000, 5_000)


def _flow(phase: str, category: str, number: int, pid: int, tid: int, ts: int) -> dict[str, Any]:
    event = {"ph": phase, "id": number, "pid": pid, "tid": tid, "ts": ts, "cat": category, "name": category}
    return event | ({"bp": "e"} if phase == "f" else {})


def _step(run: _Run, number: int, kernels: int) -> None:
    begin = run.now
    run.pass_time(1_000, 4_000)
    streams = sorted(run.free)
    for index in range(kernels):
        run.kernel(streams[index % len(streams)])
        if index % 4 == 1:
            run.copy(streams[-1])
        if index % 7 == 3:
            run.allocate()
        if index % 9 == 5:
            run.graph(streams[0])
        if index % 6 == 2 and run.options["ranks"] > 1:
            run.collective(run.correlation, streams[-1])
    run.synchronize()
    run.row(f"ProfilerStep#{number}", "user_annotation", begin, run.now - begin, **{"External id": 0, "Ev Idx": 0})


def _plant(run: _Run) -> None:
    """Change what will be written: the truth of the faults is how many there are."""
    options, work = run.options, run.work
    done = run.faults

    def chosen(name: str, fits: Any) -> list[dict[str, Any]]:
        rows = [row for row in work if fits(row) and not row.get("changed")]
        picked = run.random.sample(rows, min(options[name], len(rows)))
        for row in picked:
            row["changed"] = True
        done[name] = len(picked)
        return picked

    last = {row["tid"]: row for row in work}
    is_plain = lambda row: "graph id" not in row["args"] and row is not last[row["tid"]]  # noqa: E731
    for row in chosen("overlaps", is_plain):
        row["dur"] += 40_000_000
    for row in chosen("clamped", lambda row: row["cat"] == "kernel"):
        row["dur"] = 0
    calls = {each["args"]["correlation"]: each for each in run.events if each.get("cat") == "cuda_runtime"}
    for row in chosen("early", is_plain):
        shift = row["ts"] - calls[row["args"]["correlation"]]["ts"] + 20_000
        row["ts"] -= shift
    for row in chosen("fast_copies", lambda row: row["cat"] == "gpu_memcpy"):
        row["args"]["bytes"] *= 1 << 20
        row["args"].pop("memory bandwidth (GB/s)")
    for row in chosen("unlaunched", lambda row: row["cat"] == "kernel"):
        row["args"]["correlation"] += 1 << 20
    for row in work:
        row.pop("changed", None)


def _text(run: _Run, begin: int) -> bytes:
    """Write the file: two spaces a level, times with three decimals."""
    options = run.options

    def micros(ns: int) -> str:
        return f"{ns // 1000}.{ns % 1000:03d}"

    def written(event: dict[str, Any]) -> str:
        parts = []
        for key, value in event.items():
            base = _BASE if options["absolute"] and key == "ts" else 0
            text = micros(value + base) if key in ("ts", "dur") else json.dumps(value)
            parts.append(f'"{key}": {text}')
        return "  {\n    " + ", ".join(parts) + "\n  }"

    device: dict[str, Any] = {
        "id": _DEVICE, "name": "Simulated GPU", "totalGlobalMem": 1 << 36, "computeMajor": _CAPABILITY[0],
        "computeMinor": _CAPABILITY[1], "warpSize": _WARP, "numSms": _SMS,
    }  # fmt: skip
    head: dict[str, Any] = {
        "schemaVersion": 1,
        "deviceProperties": [device],
        "record_shapes": 1,
        "displayTimeUnit": "ms",
    }
    if options["ranks"] > 1:
        group = {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": options["ranks"],
                 "ranks": list(range(options["ranks"]))}  # fmt: skip
        head["distributedInfo"] = {"backend": "nccl", "rank": options["rank"], "world_size": options["ranks"],
                                   "pg_count": 1, "pg_config": [group]}  # fmt: skip
    if not options["absolute"] and options["base"]:
        head["baseTimeNanoseconds"] = _BASE
    members = ",\n".join(f'  "{key}": {json.dumps(value)}' for key, value in head.items())
    ordered = [*run.events, *run.work]
    end = max(event["ts"] + event.get("dur", 0) for event in ordered if event["ts"] < begin + 10**12) + 30_000
    # A row of a corrupt duration does not move the end of the record.
    end = min(end, run.now + 30_000)
    texts = [written(event) for event in ordered] + _metadata(sorted(run.free))
    span = {"ph": "X", "cat": "Trace", "ts": begin - 5_000, "dur": end - begin + 5_000, "pid": "Spans",
            "tid": "PyTorch Profiler", "name": "PyTorch Profiler (0)", "args": {"Op count": 0}}  # fmt: skip
    stop = {"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": end + 2_000}
    texts += [written(span), written(stop)]
    for place in sorted(run.random.sample(range(len(texts)), options["unreadable"]), reverse=True):
        texts.insert(place, '  {"ph": "X", "cat": kernel" }')
    log = ',\n  "ERROR": ["ERROR: a simulated one"]' if options["log_error"] else ""
    body = ",\n".join(texts)
    whole = f'\n{{\n{members},\n  "traceEvents": [\n{body}\n  ]{log},\n  "traceName": "simulated"\n}}\n'.encode()
    return whole[: len(whole) * 2 // 3] if options["torn"] else whole


def _metadata(streams: list[int]) -> list[str]:
    rows: list[tuple[int, int, str, dict[str, Any]]] = []
    for pid, label, sort in ((_PID, "CPU", _PID), (_DEVICE, "GPU 0", 5_000_000)):
        rows += [(pid, 0, "process_name", {"name": "python3"}), (pid, 0, "process_labels", {"labels": label})]
        rows.append((pid, 0, "process_sort_index", {"sort_index": sort}))
    rows += [(_DEVICE, stream, "thread_name", {"name": f"stream {stream} "}) for stream in streams]
    rows.append((_PID, _PID, "thread_name", {"name": f"thread {_PID} (python3)"}))
    return [
        f'  {{\n    "name": "{name}", "ph": "M", "ts": 0.000, "pid": {pid}, "tid": {tid},\n'
        f'    "args": {json.dumps(args)}\n  }}'
        for pid, tid, name, args in rows
    ]


def _kind(row: Mapping[str, Any]) -> str:
    if row["cat"] != "kernel":
        return "memory"
    return "communication" if row["name"].startswith("nccl") else "compute"


def _busy(rows: list[dict[str, Any]]) -> int:
    """Return the time that rows cover, by walking over them."""
    covered = reach = 0
    for row in sorted(rows, key=lambda row: int(row["ts"])):
        first, last = max(row["ts"], reach), row["ts"] + row["dur"]
        covered += max(last - first, 0)
        reach = max(reach, last)
    return covered


def simulate(options: Mapping[str, Any], seed: int) -> Simulation:
    """Simulate a run; the same options and seed give the same bytes."""
    run = _Run(options, seed)
    begin = run.now
    for number in range(options["steps"]):
        _step(run, number, options["kernels"])
    if not options["device"]:
        run.work = []
    _plant(run)
    launched = {row["args"]["correlation"] for row in run.work}
    run.events += [
        _flow("f", "ac2g", row["args"]["correlation"], row["pid"], row["tid"], row["ts"]) for row in run.work
    ]
    text = _text(run, begin)
    calls = {event["args"]["correlation"] for event in run.events if event.get("cat") == "cuda_runtime"}
    first = min([event["ts"] for event in (*run.events, *run.work)] + [begin - 5_000])
    truth = {
        "epoch_ns": first + (_BASE if options["base"] or options["absolute"] else 0),
        "rows": sorted(
            [row["name"], row["ts"] - first, row["dur"], str(row["tid"])]
            for row in (*run.events, *run.work)
            if row["ph"] == "X"
        ),
        "work": len(run.work),
        "launches": sum(row["args"]["correlation"] in calls for row in run.work),
        "calls_without_work": len(calls - launched),
        "busy_ns": {
            "all": _busy(run.work),
            **{
                kind: _busy([row for row in run.work if _kind(row) == kind])
                for kind in ("compute", "communication", "memory")
            },
        },
        "faults": {name: count for name, count in run.faults.items() if count},
    }
    return Simulation({"trace.pt.trace.json": text}, truth)
