"""Operations of CUDA and OpenCL on the timeline: devices over queues, and the operations on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.asof_join import Int64, group, pick
from lanescope.common.coverage import evidence_spans
from lanescope.devices.levelzero.emit.device_tracks import Queues
from lanescope.devices.levelzero.emit.host_tracks import Hosts
from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.text_launches import OPENCL_API, kind_of
from lanescope.devices.levelzero.interpret.launched import APIS, Device, Launched
from lanescope.devices.levelzero.interpret.resolved import Attributed
from lanescope.trace import Flag, TraceBuilder


class LaunchTracks:
    """Draws the operations that CUDA and OpenCL launched.

    Args:
        builder: where to; its time counts from ``zero``.
        found: all that is known.
        made: of that, what to draw.
        hosts: the host's side, drawn.
        queues: makes the groups of devices.
        zero: ns that the builder's times count from, on the clock of the records.
        input_id: the input that it came from.
    """

    def __init__(
        self,
        builder: TraceBuilder,
        found: Attributed,
        made: Launched,
        hosts: Hosts,
        queues: Queues,
        *,
        zero: int,
        input_id: int,
    ) -> None:
        self._builder, self._found, self._made, self._hosts, self._queues = builder, found, made, hosts, queues
        self._zero, self._input_id = zero, input_id

    def draw(self) -> None:
        """Append lanes, slices, details and arrows."""
        builder, events = self._builder, self._found.events
        made = self._made
        launches, results = events["launches"], events["launch_results"]
        launch, result = made.launch, made.result
        track = self._lanes()
        names, kinds = self._names()
        begin = made.begin - self._zero
        harvest = results.values("ts")[result] - self._zero
        flags = np.where(made.late, Flag.CLOCK_SUSPECT, 0).astype(np.uint32)
        flags |= np.where(~made.has_length & ~made.error, Flag.NEGATIVE_DURATION, 0).astype(np.uint32)
        first = builder.append(
            "slices",
            track_id=track,
            ts=begin,
            dur=made.length,
            dur_valid=made.has_length,
            name=names,
            category=builder.categories.codes(kinds),
            quality="estimated",
            flags=flags,
            last_known_ts=np.maximum(harvest, begin),
            last_known_ts_valid=made.error,
        )
        slices = first + np.arange(len(launch))
        thread = self._hosts.threads[launches.values("thread_id")[launch]]
        submitted = launches.values("ts")[launch] - self._zero
        call = pick(self._hosts.calls, made.call)
        clocks: dict[str, Any] = {}
        for name, source in (("global_start", "start"), ("global_end", "end")):
            clocks[name] = results.values(source)[result]
            clocks[f"{name}_valid"] = results.valid(source)[result]
        for name in ("context_start", "context_end"):
            clocks[name], clocks[f"{name}_valid"] = np.zeros(len(launch), np.uint64), np.zeros(len(launch), np.bool_)
        builder.append(
            "levelzero_operations",
            slice_id=slices,
            kind=kinds,
            function=self._codes("function", launches, launch),
            execution_index=1,
            thread_track_id=thread,
            readback_track_id=self._hosts.threads[results.values("thread_id")[result]],
            append_slice_id=call,
            append_slice_id_valid=made.call >= 0,
            submit_slice_id=call,
            submit_slice_id_valid=made.call >= 0,
            append_ts=submitted,
            submit_ts=submitted,
            readback_ts=harvest,
            readback_seq=made.seq,
            command_list=launches.values("queue")[launch],
            query_status=self._codes("status", results, result, "query_status"),
            error=made.error,
            **clocks,
        )
        self._arrows(slices, track, thread, begin)
        queues, place = np.unique(track, return_index=True)
        owner = events.process("launches")[launch[place]]
        seen = np.concatenate([begin + made.length, submitted]), np.concatenate([track, track])
        end = int(seen[0].max(initial=0))
        spans = evidence_spans(queues, seen[1], seen[0], start=0, end=end, is_complete=np.zeros(len(owner), np.bool_))
        builder.add_coverage(*spans)

    def _codes(self, column: str, table: Any, rows: Int64, name: str = "") -> npt.NDArray[np.int32]:
        texts = table.column(column).dictionary
        codes = self._builder.dictionary("levelzero_operations", name or column).codes(texts.texts if texts else [])
        found: npt.NDArray[np.int32] = codes[table.codes(column)[rows]]
        return found

    def _names(self) -> tuple[npt.NDArray[np.int32], list[str]]:
        """Return names as codes, int32 [n], and kinds: of a kernel its name, else that of the function."""
        events, builder = self._found.events, self._builder
        made, launches = self._made, events["launches"]
        functions = launches.column("function").dictionary
        texts = functions.texts if functions else []
        code = launches.codes("function")[made.launch]
        names = builder.names.codes(texts)[code]
        named = np.flatnonzero(made.kernel >= 0)
        given = events["launch_objects"].values("name")[made.kernel[named]]
        names[named] = builder.names.codes([str(name) for name in given.tolist()])
        kinds = np.array([kind_of(text) for text in texts], object)[code]
        opencl = np.array([device.api for device in made.devices], np.int64)[made.device] == APIS.index(
            OPENCL_API.title
        )
        kinds[opencl & launches.valid("kernel")[made.launch]] = layout.KERNEL
        return names, kinds.tolist()

    def _lanes(self) -> Int64:
        """Make the lanes of queues and streams; return that of each operation, int64 [n]."""
        made, launches = self._made, self._found.events["launches"]
        queue = launches.values("queue")[made.launch]
        lanes = group([made.device, queue], np.arange(len(queue)))
        lane = np.empty(len(queue), np.int64)
        lane[lanes.order] = np.cumsum(lanes.first) - 1
        rows = lanes.order[lanes.first]
        tracks = np.empty(len(rows), np.int64)
        for number in np.argsort(rows).tolist():
            row = int(rows[number])
            device, handle = made.devices[int(made.device[row])], int(queue[row])
            parent = self._group(device)
            name = f"queue 0x{handle:x}" if APIS[device.api] == OPENCL_API.title else f"stream 0x{handle:x}"
            name = name if handle else "default stream"
            tracks[number] = self._builder.track(
                self._queues.unique(parent, name),
                kind="lane",
                role="queue",
                parent=parent,
                input_id=self._input_id,
                nesting="free",
            )
            self._detail(int(tracks[number]), device, handle)
        return tracks[lane]

    def _group(self, device: Device) -> int:
        """Return the group of a device; of a sub-device of OpenCL the one below its root."""
        title = APIS[device.api]
        if device.number is None:
            return self._queues.group_of((device.process, title), f"{title}, unknown device")
        root = device.number if device.parent is None else device.parent
        is_sub = root != device.number
        number = str(root) if title != OPENCL_API.title else f"0x{root:x}"
        name = device.name if device.name and not is_sub else f"{title} device {number}"
        if device.uuid:
            host = str(self._found.events["processes"].values("host")[device.process])
            return self._queues.root_of(host, device.uuid, name)
        group_id = self._queues.group_of((device.process, title, root), name)
        if not is_sub:
            return group_id
        name = device.name or f"sub-device 0x{device.number:x}"
        return self._queues.group_of((device.process, title, root, device.number), name, parent=group_id)

    def _detail(self, track: int, device: Device, handle: int) -> None:
        processes = self._found.events["processes"]
        numbers = numbers_of(device)
        self._builder.append(
            "levelzero_queues",
            track_id=[track],
            device_uuid=[device.uuid],
            subdevice_uuid=[""],
            subdevice=[0],
            subdevice_valid=[False],
            host=[str(processes.values("host")[device.process])],
            pid=[int(processes.values("pid")[device.process])],
            handle=np.array([handle], np.uint64),
            immediate=[False],
            immediate_valid=[False],
            api=[APIS[device.api]],
            device_number=np.array([numbers[0]], np.uint64),
            device_number_valid=[device.number is not None],
            subdevice_number=np.array([numbers[1]], np.uint64),
            subdevice_number_valid=[device.number is not None],
        )

    def _arrows(self, slices: Int64, track: Int64, thread: Int64, begin: Int64) -> None:
        made = self._made
        rows = np.flatnonzero(made.call >= 0)
        if not len(rows):
            return
        self._builder.append(
            "flows",
            kind="dispatch",
            src_track_id=thread[rows],
            src_ts=self._found.events["launches"].values("ts")[made.launch[rows]] - self._zero,
            dst_track_id=track[rows],
            dst_ts=begin[rows],
            src_slice_id=self._hosts.calls[made.call[rows]],
            dst_slice_id=slices[rows],
        )


def numbers_of(device: Device) -> tuple[int, int]:
    """Return THAPI's numbers of device and sub-device: CUDA's twice; of OpenCL the root and the device, if it is known.

    Source: THAPI backends/cuda/btx_cudainterval_callbacks.cpp, backends/opencl/btx_clinterval_callbacks.cpp.
    """
    number = device.number or 0
    if APIS[device.api] != OPENCL_API.title:
        return number, number
    return (number, 0) if device.parent is None else (device.parent, number)
