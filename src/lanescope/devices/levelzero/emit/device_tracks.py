"""The device's side of the tracks: devices over sub-devices over queues."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.asof_join import Int64, group, join
from lanescope.declaration import frozen_class
from lanescope.devices.levelzero.interpret.resolved import Attributed
from lanescope.devices.levelzero.schema import QUEUE_DETAILS
from lanescope.trace import TraceBuilder

UNKNOWN_DEVICE = "unknown device"


@frozen_class
class Lanes:
    """Tracks on which operations run. Arrays are [operations].

    Attributes:
        track: int64, lane of the queue.
        root: int64, group of the root device.
        ordinal: int64, queue group, -1: unknown.
        index: int64, queue within the group, -1: unknown.
    """

    track: Int64
    root: Int64
    ordinal: Int64
    index: Int64


class Queues:
    """Makes the tracks of devices and queues, each when its first operation needs it.

    Args:
        builder: where to; its time counts from ``zero``.
        found: what is drawn.
        zero: ns that the builder's times count from, on the clock of the records.
        input_id: the input that it came from.
    """

    def __init__(self, builder: TraceBuilder, found: Attributed, *, zero: int, input_id: int) -> None:
        self._builder, self._found, self._zero, self._input_id = builder, found, zero, input_id
        self._roots: dict[tuple[Any, ...], int] = {}
        self._subs: dict[tuple[int, Any], int] = {}
        self._siblings: dict[int, int] = {}
        self._taken: dict[tuple[int, str], int] = {}
        self._groups: dict[int, tuple[int, int]] = {}
        self._clocks: dict[int, int] = {}
        self._device_process = found.events.process("devices")
        self._details: dict[str, list[Any]] = {name: [] for name in QUEUE_DETAILS.names}

    def lanes(self) -> Lanes:
        """Make a lane for each queue, and for each immediate list, that operations ran on."""
        found, events = self._found, self._found.events
        operations, times = found.operations, found.times
        count = len(operations.append)
        if not count:
            none = np.empty(0, np.int64)
            return Lanes(none, none, none, none)
        process = events.process("appends")[operations.append]
        listed = found.appends.listed[operations.append]
        submitted = operations.submit >= 0
        handle = self._handles(listed, submitted)
        ordinal, index = self._engines(process, listed)
        keys: list[npt.NDArray[Any]] = [times.device, process, submitted.astype(np.int64), handle, ordinal, index]
        lanes = group(keys, np.arange(count))
        starts = np.flatnonzero(lanes.first)
        lane = np.empty(count, np.int64)
        lane[lanes.order] = np.cumsum(lanes.first) - 1
        in_order = self._in_order(listed)[lanes.order]
        ordered = np.logical_and.reduceat(in_order, starts)
        rows = lanes.order[starts]
        tracks, roots = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        # Lanes come in the order in which their first operations were reported.
        for number in np.argsort(rows).tolist():
            row = int(rows[number])
            device, of = int(times.device[row]), int(process[row])
            parent, roots[number] = self._device(device, of)
            name = f"{'queue' if submitted[row] else 'list'} 0x{int(handle[row]):x}"
            name += "" if ordinal[row] < 0 else f", ordinal {ordinal[row]}"
            name += "" if index[row] < 0 else f", index {index[row]}"
            if (parent, name) in self._taken:
                name += f", process {events['processes'].values('pid')[of]}"
            # Operations of an in-order list never share time, if their times are worth anything.
            disjoint = bool(ordered[number]) and not submitted[row] and device in times.clocks
            tracks[number] = self._builder.track(
                self.unique(parent, name),
                kind="lane",
                role="queue",
                parent=parent,
                input_id=self._input_id,
                nesting="disjoint" if disjoint else "free",
                clock_id=self._clocks.get(device),
            )
            self._detail(int(tracks[number]), device, of, int(handle[row]), immediate=not submitted[row])
        self._append_details()
        return Lanes(tracks[lane], roots[lane], ordinal, index)

    def _handles(self, listed: Int64, submitted: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
        """Return the handle of the queue, or of the immediate list, of each operation, uint64 [operations]."""
        events, operations = self._found.events, self._found.operations
        lists = events["lists"]
        handle = events["appends"].values("list")[operations.append]
        made = np.flatnonzero(listed >= 0)
        own = made[lists.valid("handle")[listed[made]]]
        handle[own] = lists.values("handle")[listed[own]]
        handle[submitted] = events["runs"].values("queue")[operations.submit[submitted]]
        return handle

    def _in_order(self, listed: Int64) -> npt.NDArray[np.bool_]:
        lists = self._found.events["lists"]
        found = np.zeros(len(listed), np.bool_)
        made = np.flatnonzero(listed >= 0)
        found[made] = lists.values("in_order")[listed[made]]
        return found

    def _engines(self, process: npt.NDArray[np.int32], listed: Int64) -> tuple[Int64, Int64]:
        """Return queue group and queue of each operation, int64 [operations] each, -1 where unknown."""
        events, operations = self._found.events, self._found.operations
        lists, queues, runs = events["lists"], events["queues"], events["runs"]
        made, executed = np.flatnonzero(listed >= 0), np.flatnonzero(operations.submit >= 0)
        # Queues are looked up once per execution, of which there are fewer than operations.
        of_run = join(
            [events.process("runs"), runs.values("queue")],
            runs.values("seq"),
            [events.process("queues"), queues.values("queue")],
            queues.values("seq"),
        ).nearest()
        queue = of_run[operations.submit[executed]]
        executed, queue = executed[queue >= 0], queue[queue >= 0]
        engines = []
        for column in ("ordinal", "index"):
            found = np.full(len(process), -1, np.int64)
            found[made] = np.where(lists.valid(column), lists.values(column), -1)[listed[made]]
            found[executed] = np.where(queues.valid(column), queues.values(column), -1)[queue]
            engines.append(found)
        return engines[0], engines[1]

    def root_of(self, host: str, uuid: str, name: str) -> int:
        """Return the group of a root device; made if none of its queues has one."""
        return self._root((host, uuid or name), name)

    def group_of(self, key: tuple[Any, ...], name: str, *, parent: int | None = None) -> int:
        """Return the group of a device of another API by its key; made when first asked for."""
        if key not in self._roots:
            self._roots[key] = self._builder.track(
                self.unique(-1 if parent is None else parent, name),
                kind="group",
                role="device" if parent is None else "subdevice",
                parent=parent,
                input_id=self._input_id,
            )
        return self._roots[key]

    def unique(self, parent: int, name: str) -> str:
        """Return a name that no other track of a group has."""
        count = self._taken[parent, name] = self._taken.get((parent, name), 0) + 1
        return name if count == 1 else self.unique(parent, f"{name} ({count})")

    def _device(self, device: int, process: int) -> tuple[int, int]:
        """Return the group in which a device's queues stand, and that of its root device; made when first asked for.

        Several processes share the tracks of a device that has a UUID.
        """
        if device >= 0:
            if device not in self._groups:
                self._groups[device] = self._make(device)
                self._make_clock(device)
            return self._groups[device]
        processes = self._found.events["processes"]
        name = (
            UNKNOWN_DEVICE if len(processes) == 1 else f"{UNKNOWN_DEVICE}, process {processes.values('pid')[process]}"
        )
        root = self._root((process, ""), name)
        return root, root

    def _root(self, key: tuple[Any, ...], name: str) -> int:
        if key not in self._roots:
            shown = self.unique(-1, name)
            self._roots[key] = self._builder.track(shown, kind="group", role="device", input_id=self._input_id)
        return self._roots[key]

    def _make(self, device: int) -> tuple[int, int]:
        found, table = self._found, self._found.events["devices"]
        parent, row = int(found.devices.parent[device]), int(found.devices.row[device])
        is_sub = bool(table.valid("parent")[row])
        top = int(found.devices.row[parent]) if parent >= 0 else row
        handle = int(table.values("parent")[row]) if is_sub else int(table.values("device")[row])
        root_known = parent >= 0 or not is_sub
        uuid, process = str(table.values("uuid")[top]) if root_known else "", int(self._device_process[top])
        host = str(found.events["processes"].values("host")[process])
        name = str(table.values("name")[top]) or f"device 0x{handle:x}"
        root = self._root((host, uuid) if uuid else (process, handle), name)
        if not is_sub:
            return root, root
        key = (root, str(table.values("uuid")[row]) or int(table.values("device")[row]))
        if key not in self._subs:
            number = self._siblings[root] = self._siblings.get(root, -1) + 1
            if table.valid("subdevice")[row]:
                number = int(table.values("subdevice")[row])
            self._subs[key] = self._builder.track(
                self.unique(root, f"sub-device {number}"),
                kind="group",
                role="subdevice",
                parent=root,
                input_id=self._input_id,
            )
        return self._subs[key], root

    def _make_clock(self, device: int) -> None:
        found, table = self._found, self._found.events["devices"]
        clock = found.times.clocks.get(device)
        if clock is None:
            return
        row = int(found.devices.row[device])
        host = str(found.events["processes"].values("host")[self._device_process[row]])
        self._clocks[device] = self._builder.clock(
            name="device timestamp",
            device=str(table.values("uuid")[row]) or f"{host}: 0x{int(table.values('device')[row]):x}",
            frequency=clock.frequency,
            counter_bits=min(clock.bits, clock.kernel_bits),
        )
        shift = found.base - self._zero
        for ticks, ns in zip(clock.pairs.ticks.tolist(), clock.pairs.ns.tolist(), strict=True):
            self._builder.anchor(
                clock_id=self._clocks[device], ticks=ticks, ts=ns + shift, error_ns=clock.pairs.error_ns
            )

    def _detail(self, track: int, device: int, process: int, handle: int, *, immediate: bool) -> None:
        found, table = self._found, self._found.events["devices"]
        processes = found.events["processes"]
        root_uuid, sub_uuid, number = "", "", None
        if device >= 0:
            row, parent = int(found.devices.row[device]), int(found.devices.parent[device])
            root_uuid = str(table.values("uuid")[row])
            if table.valid("parent")[row]:
                sub_uuid, root_uuid = (
                    root_uuid,
                    str(table.values("uuid")[found.devices.row[parent]]) if parent >= 0 else "",
                )
                number = int(table.values("subdevice")[row]) if table.valid("subdevice")[row] else None
        detail = {
            "track_id": track,
            "device_uuid": root_uuid,
            "subdevice_uuid": sub_uuid,
            "subdevice": number,
            "host": str(processes.values("host")[process]),
            "pid": int(processes.values("pid")[process]),
            "handle": handle,
            "immediate": immediate,
            "api": "Level Zero",
        }
        for name, values in self._details.items():
            values.append(detail.get(name, 0))

    def _append_details(self) -> None:
        columns: dict[str, Any] = dict(self._details)
        known = [number is not None for number in columns["subdevice"]]
        columns["subdevice"] = [number or 0 for number in columns["subdevice"]]
        columns["handle"] = np.array(columns["handle"], np.uint64)
        for name in ("device_number", "subdevice_number"):
            columns[name] = np.zeros(len(known), np.uint64)
            columns[f"{name}_valid"] = np.zeros(len(known), np.bool_)
        self._builder.append("levelzero_queues", **columns, subdevice_valid=known)
