"""A trace -> the interval records of THAPI, as its tests print them.

What those records do not hold is left out: quality, flags, flows. What this family knows better is written as it is
known: nested calls keep their own begins, and times of devices come from our clocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from lanescope.common.asof_join import Int64
from lanescope.devices.levelzero.analysis.tally import require
from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.event_model import is_text
from lanescope.devices.levelzero.formats.host_apis import backend_of, plain_name
from lanescope.trace import Table, Trace

#: Records that are formatted together.
_BLOCK = 1 << 14
#: Numbers of backends. Source: THAPI xprof/xprof_utils.hpp.
_BACKENDS = {"OpenCL": 2, "CUDA": 3}
_WORD = (1 << 64) - 1


def blocks(trace: Trace) -> Iterator[bytes]:
    """Yield the text of the interval records, in the order in which THAPI gives them out.

    A call comes at its return, an operation when its timestamps were read, the traffic of either right before it or
    after it as THAPI does. Calls that never returned, and such as have no length, make no record.

    Raises:
        UsageError: the trace holds nothing of this family.
    """
    require(trace)
    calls, operations = trace.details["levelzero_calls"], trace.details["levelzero_operations"]
    returned = np.flatnonzero(calls.valid("exit_seq") & trace.slices.valid("dur")[calls.values("slice_id")])
    every = np.arange(len(operations))
    seq = np.concatenate([calls.values("exit_seq")[returned], operations.values("readback_seq")])
    order = np.argsort(seq, kind="stable")
    formatter = _Formatter(trace)
    for begin in range(0, len(order), _BLOCK):
        chosen = order[begin : begin + _BLOCK]
        is_call = chosen < len(returned)
        host = formatter.calls(returned[chosen[is_call]])
        device = formatter.operations(every[chosen[~is_call] - len(returned)])
        lines = [next(host) if of_call else next(device) for of_call in is_call.tolist()]
        yield "".join(lines).encode()


class _Formatter:
    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._contexts = {
            row["track_id"]: f'hostname = "{row["host"]}", vpid = {row["pid"]}, vtid = {row["tid"]}'
            for row in trace.details["levelzero_threads"].rows()
        }
        queues = list(trace.details["levelzero_queues"].rows())
        self._devices = {row["track_id"]: _hashes(row) for row in queues}
        #: Backend, device and sub-device of lanes of other APIs.
        self._launchers = {
            row["track_id"]: (_BACKENDS[row["api"]], row["device_number"] or 0, row["subdevice_number"] or 0)
            for row in queues
            if row["api"] in _BACKENDS
        }

    def _record(self, kind: str, thread: int, ts: int, content: str, backend: int = layout.BACKEND) -> str:
        ts += self._trace.time.epoch_ns
        context = f"{self._contexts[thread]}, ts = {ts}, backend = {backend}"
        return f"lttng:{kind}: {{ {context} }}, {{ {content} }}\n"

    def calls(self, rows: Int64) -> Iterator[str]:
        """Yield the text of calls: the call, and the traffic of one that touches memory itself."""
        slices, calls = self._trace.slices, self._trace.details["levelzero_calls"].take(rows)
        about = slices.take(calls.values("slice_id"))
        touches = calls.valid("bytes") & ~calls.values("error")
        columns = (
            about.values("track_id"),
            about.values("ts"),
            about.values("name"),
            about.values("dur"),
            calls.values("error"),
            touches,
            calls.values("bytes"),
        )
        for track, ts, name, dur, failed, is_traffic, size in zip(*(c.tolist() for c in columns), strict=True):
            error = "true" if failed else "false"
            backend, name = backend_of(name), plain_name(name)
            text = self._record("host", track, ts, f'name = "{name}", dur = {dur}, err = {error}', backend)
            if is_traffic:
                text += self._record("traffic", track, ts, f'name = "{name}", size = {size}, metadata = ""', backend)
            yield text

    def operations(self, rows: Int64) -> Iterator[str]:
        """Yield the text of operations: the traffic of copies and fills, and the operation."""
        operations: Table = self._trace.details["levelzero_operations"].take(rows)
        about = self._trace.slices.take(operations.values("slice_id"))
        moves = is_text(operations, "kind", layout.COPY, layout.FILL) & is_text(
            operations, "query_status", layout.SUCCESS
        )
        unclocked = ~about.valid("ts_ticks")
        for operation, row, is_move, is_raw in zip(
            operations.rows(), about.rows(), moves.tolist(), unclocked.tolist(), strict=True
        ):
            name, metadata, text = row["name"], _metadata(operation), ""
            if is_move and operation["bytes"] is not None:
                content = f'name = "{name}", size = {operation["bytes"]}, metadata = "{metadata}"'
                text = self._record("traffic", operation["readback_track_id"], operation["append_ts"], content)
            length = row["dur"]
            launcher = self._launchers.get(row["track_id"])
            if launcher is not None:
                backend, device, sub = launcher
                error = "true" if operation["error"] else "false"
                content = f'name = "{name}", dur = {length or 0}, did = {device}, sdid = {sub}, err = {error}'
                thread = operation["thread_track_id"]
                yield self._record("device", thread, row["ts"], f'{content}, metadata = ""', backend)
                continue
            if is_raw or length is None:
                length = (operation["global_end"] - operation["global_start"]) & _WORD
            device, sub = self._devices[row["track_id"]]
            error = "true" if operation["error"] else "false"
            content = f'name = "{name}", dur = {length}, did = {device}, sdid = {sub}, err = {error}'
            content += f', metadata = "{metadata}"'
            yield text + self._record("device", operation["thread_track_id"], row["ts"], content)


def _metadata(operation: Mapping[str, Any]) -> str:
    engine = f"{{ordinal: {operation['ordinal'] or 0}, index: {operation['queue_index'] or 0}}}"
    # An indirect launch keeps its group counts in device memory: nothing can be said of its shape.
    if (
        operation["groups_x"] is None
        or operation["kind"] != layout.KERNEL
        or operation["query_status"] != layout.SUCCESS
    ):
        return engine
    groups = ",".join(str(operation[f"groups_{axis}"]) for axis in "xyz")
    sizes = ",".join(str(operation[f"group_{axis}"] or 0) for axis in "xyz")
    return f"SIMD{operation['simd'] or 0}, {{{groups}}}, {{{sizes}}}, {engine}"


def _hashes(queue: Mapping[str, Any]) -> tuple[int, int]:
    """Return THAPI's numbers of device and sub-device: of a sub-device its own, then its root's.

    The names of the fields suggest the opposite; that is how they are filled.
    """
    if queue["subdevice_uuid"]:
        return device_hash(queue["subdevice_uuid"]), device_hash(queue["device_uuid"])
    return device_hash(queue["device_uuid"]), 0


def device_hash(uuid: str) -> int:
    """Return THAPI's number of a device: the halves of its UUID, little-endian, added; 0 when it is unknown.

    Example:
        >>> hex(device_hash("01000000000000000200000000000000"))
        '0x3'
    """
    content = bytes.fromhex(uuid)
    return (int.from_bytes(content[:8], "little") + int.from_bytes(content[8:], "little")) & _WORD
