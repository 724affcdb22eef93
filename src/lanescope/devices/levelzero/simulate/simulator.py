"""A simulator of Level Zero programs: what a recorder would tell, and what really happened.

Processes run threads on devices. A thread makes command lists of all four sorts (in order or not, immediate or
regular), appends kernels, copies, fills, barriers and signals to them, shares events between operations in several
ways, executes regular lists again and again, and waits. Devices have clocks of their own, skewed and wrapping. All of
it is computed by the block, not by the operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.asof_join import Int64
from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.event_model import Events, table_of
from lanescope.devices.levelzero.formats.event_tables import EVENTS
from lanescope.errors import UsageError
from lanescope.families.family import Simulation
from lanescope.trace import Column, Dictionary

Codes = npt.NDArray[np.int32]

#: How events are given to the operations of a list. ``one``: each operation has its own, destroyed after the wait, and
#: the handles come back. ``shared``: all operations signal one. ``pair``: they take turns on two. ``none``: the program
#: gives no event, the recorder uses its own.
SHARING = ("one", "shared", "pair", "none")
#: Noon of the day that text traces are given, ns.
START_NS = (layout.THAPI_DATE_S + 12 * 3600) * layout.NS_PER_SECOND
_PAIR_EVERY_NS = 100_000_000
#: A reading of both clocks is recorded so long after it was made at most.
PAIR_ERROR_NS = 300
_MOST_EVENTS = 64

_APPEND = "zeCommandListAppend"
#: What programs append, and how often, out of 100.
_MIX: tuple[tuple[str, int], ...] = (
    (_APPEND + "LaunchKernel", 45),
    (_APPEND + "MemoryCopy", 20),
    (_APPEND + "MemoryFill", 15),
    (_APPEND + "Barrier", 10),
    (_APPEND + "SignalEvent", 10),
)
_KERNELS = (("gemm_nn<float, 16>", 16, (256, 1, 1)), ("softmax", 32, (64, 4, 1)), ('stencil "3d"', 8, (8, 8, 8)))
_KIND = {function: layout.APPENDS[function] for function, _ in _MIX}


class EventWriter:
    """Records in the making: columns by table, each record with a number that tells its place among all."""

    def __init__(self) -> None:
        self._parts: dict[str, list[dict[str, Any]]] = {spec.name: [] for spec in EVENTS}
        self._dictionaries = {(s.name, c.name): Dictionary() for s in EVENTS for c in s.columns if c.type == "text"}
        self._times: list[Int64] = []
        self._count = 0

    def codes(self, table: str, column: str, texts: list[str]) -> Codes:
        """Return the codes of texts of a column, int32 [n]."""
        return self._dictionaries[table, column].codes(texts)

    def number(self, ts: Int64) -> Int64:
        """Return numbers for new records at times ``ts``, int64 [n]; of equal times the earlier number comes first."""
        self._times.append(ts)
        self._count += len(ts)
        return np.arange(self._count - len(ts), self._count)

    def add(self, table: str, ts: Any, thread: int, numbers: Int64 | None = None, **columns: Any) -> Int64:
        """Add records; columns are arrays, texts or numbers for all, None where unknown.

        Args:
            table: one of the event model's.
            ts: int64 [n], or one time.
            thread: whose.
            numbers: of the records, when they stand in the stream already as records of another table.
            **columns: the others.

        Returns:
            Numbers of the records.
        """
        ts = np.atleast_1d(np.asarray(ts, np.int64))
        if numbers is None:
            numbers = self.number(ts)
        self._parts[table].append({"seq": numbers, "ts": ts, "thread_id": thread, **columns})
        return numbers

    def call(
        self, function: Any, entry: Any, exit: Any, thread: int, result: Any = layout.SUCCESS, **columns: Any
    ) -> tuple[Int64, Int64]:
        """Add calls of a function; return the numbers of their entries and exits."""
        entries = self.add("calls", entry, thread, function=function, is_exit=False, **columns)
        exits = self.add("calls", exit, thread, function=function, is_exit=True, result=result)
        return entries, exits

    def finish(self, processes: list[tuple[str, int]], threads: list[tuple[int, int]]) -> tuple[Events, Int64]:
        """Return the event model, and the place in the stream of each number, int64 [numbers]."""
        ts = np.concatenate(self._times)
        place = np.empty(len(ts), np.int64)
        place[np.argsort(ts, kind="stable")] = np.arange(1, len(ts) + 1)
        tables = {}
        for spec in EVENTS:
            parts = self._parts[spec.name]
            if not parts:
                continue
            lengths = [len(part["seq"]) for part in parts]
            columns: dict[str, Any] = {}
            seq = place[np.concatenate([part["seq"] for part in parts])]
            order = np.argsort(seq, kind="stable")
            for column in spec.columns:
                values = [part.get(column.name) for part in parts]
                columns[column.name] = self._column(spec.name, column.name, column.type, values, lengths, order)
            columns["seq"] = seq[order]
            tables[spec.name] = table_of(spec, columns)
        specs = {spec.name: spec for spec in EVENTS}
        tables["processes"] = table_of(
            specs["processes"], {"host": [host for host, _ in processes], "pid": [pid for _, pid in processes]}
        )
        tables["threads"] = table_of(
            specs["threads"], {"process_id": [process for process, _ in threads], "tid": [tid for _, tid in threads]}
        )
        return Events(tables), place

    def _column(self, table: str, name: str, type_: str, values: list[Any], lengths: list[int], order: Int64) -> Column:
        dictionary = self._dictionaries.get((table, name))
        if all(value is None for value in values):
            return Column.null(sum(lengths), np.int32 if dictionary else np.int64, dictionary=dictionary)
        arrays, masks = [], []
        for value, length in zip(values, lengths, strict=True):
            masks.append(np.full(length, value is not None))
            if isinstance(value, tuple):
                value, masks[-1] = value
            elif value is None:
                value = 0
            elif isinstance(value, str) and dictionary is not None:
                value = dictionary.code(value)
            arrays.append(np.broadcast_to(np.asarray(value, object if type_ == "utf8" else None), (length,)))
        valid = np.concatenate(masks)[order]
        joined = np.concatenate(arrays)[order]
        wanted = {"text": np.int32, "utf8": object}.get(type_, type_)
        return Column.array(joined.astype(wanted), valid=None if valid.all() else valid, dictionary=dictionary)


@dataclass
class Device:
    """One device, or sub-device, of one process.

    Attributes:
        handle: its handle.
        context: handle of the context in which its lists are made.
        clock: the clock that it shares with its siblings.
    """

    handle: int
    uuid: str
    name: str
    clock: Clock
    context: int = 0
    parent: int | None = None
    subdevice: int | None = None


@dataclass
class Clock:
    """A device's counter.

    Attributes:
        num: nominal ticks a second, numerator.
        den: denominator.
        rate: ticks per ns, as they really are.
        begin: ticks at ``START_NS``.
        bits: width.
    """

    num: int
    den: int
    rate: float
    begin: int
    bits: int

    def at(self, ns: Any, *, bits: int | None = None) -> npt.NDArray[np.uint64]:
        """Return what the counter shows at times, uint64 [n]."""
        passed = np.floor((np.asarray(ns, np.int64) - START_NS) * self.rate).astype(np.int64)
        ticks: npt.NDArray[np.uint64] = passed.astype(np.uint64) + np.uint64(self.begin)
        width = self.bits if bits is None else bits
        return ticks if width == 64 else ticks & np.uint64((1 << width) - 1)


@dataclass
class Thread:
    """One thread of a program.

    Attributes:
        number: its row.
        process: whose.
        now: how far it has come, ns.
        last_pair: when it last read both clocks.
        index: the queue that it uses on each device.
    """

    number: int
    process: Process
    index: int
    now: int
    last_pair: int = -(1 << 62)


@dataclass
class Process:
    """One process: handles are its own, so those of several processes are the same numbers."""

    number: int
    devices: list[Device]
    next_handle: int = 0x5500_0000_1000
    next_op: int = 1
    next_list: int = 1
    next_event: int = 1
    kernels: list[int] = field(default_factory=list)
    buffers: dict[str, tuple[int, int]] = field(default_factory=dict)

    def handle(self, count: int = 1) -> int:
        """Return the first of ``count`` new handles, 0x40 apart."""
        first = self.next_handle
        self.next_handle += 0x40 * count
        return first


@dataclass
class Block:
    """Operations appended to one list without a wait in between. Arrays are [n].

    Attributes:
        code: which of ``_MIX``.
        event: handle of the event that each signals, 0 for none.
        attr: handle or number by which results name it.
        op: numbers of the operations, 0 for those that have none.
        name: name that a decoder has to find.
        size: bytes moved, 0 for none.
        entry: when each Append began.
        cost: how long it took.
    """

    code: Int64
    event: npt.NDArray[np.uint64]
    attr: npt.NDArray[np.uint64]
    op: Int64
    name: npt.NDArray[np.object_]
    size: Int64
    entry: Int64
    cost: Int64
    kernel: Int64


@dataclass
class Truth:
    """What really happened, one row a run of an operation: columns in the order of ``NAMES``."""

    NAMES = ("number", "process", "thread", "device", "name", "start", "end", "run", "bytes", "known")
    parts: list[tuple[Any, ...]] = field(default_factory=list)


class Simulator:
    """Runs programs.

    Args:
        options: as ``family.LevelZero.sim_options`` declares them.
        seed: the same seed gives the same trace.
    """

    def __init__(self, options: Mapping[str, Any], seed: int) -> None:
        self.options = options
        self.rng = np.random.default_rng(seed)
        self.tape, self.truth = EventWriter(), Truth()
        self.numbered = options["style"] == "numbered"
        self.signals = self.lost = 0
        self.threads: list[Thread] = []
        self.processes: list[Process] = []
        self._functions = {t: self.tape.codes(t, "function", [f for f, _ in _MIX]) for t in ("calls", "appends")}
        self._kinds = self.tape.codes("appends", "kind", [_KIND[f] for f, _ in _MIX])

    def run(self) -> tuple[Events, dict[str, Any]]:
        """Return the records and the truth."""
        options = self.options
        for number in range(options["processes"]):
            self._start(number)
        for index in range(1, options["threads"]):
            for process in self.processes:
                begin = START_NS + 1_000_000 * index + 17 * process.number
                self.threads.append(Thread(len(self.threads), process, index, begin))
        per_thread = max(options["ops"] // max(len(self.threads), 1), 1)
        for thread in self.threads:
            self._program(thread, per_thread)
        for thread in self.threads:
            self._pairs(thread, force=True)
        processes = [("simhost", 100 + process.number) for process in self.processes]
        threads = [(thread.process.number, 1000 + thread.number) for thread in self.threads]
        events, place = self.tape.finish(processes, threads)
        return events, self._truth(place)

    def _truth(self, place: Int64) -> dict[str, Any]:
        columns = {}
        for column, name in enumerate(Truth.NAMES):
            parts = [np.asarray(part[column]) for part in self.truth.parts]
            columns[name] = np.concatenate(parts) if parts else np.empty(0, np.int64)
        seq = place[columns.pop("number").astype(np.int64)]
        order = np.argsort(seq)
        rows = {"seq": seq[order].tolist(), **{name: values[order].tolist() for name, values in columns.items()}}
        counts: dict[str, int] = {}
        for name in rows["name"]:
            counts[name] = counts.get(name, 0) + 1
        return {
            "start_ns": START_NS,
            "operations": rows,
            "counts": counts,
            "signals": self.signals,
            "lost": self.lost,
            "records": len(place),
        }

    # --- the beginning ------------------------------------------------------------------------------------------

    def _start(self, number: int) -> None:
        options, tape = self.options, self.tape
        process = Process(number, [])
        first = Thread(len(self.threads), process, 0, START_NS + 1000 * number)
        self.processes.append(process)
        self.threads.append(first)
        for device in range(options["devices"]):
            self._device(first, device)
        self._pairs(first, force=True)
        for name, simd, shape in _KERNELS:
            self._kernel(first, name, simd, shape)
        # A kernel goes, and another comes back under its handle.
        self._recycle_kernel(first)
        for memory, function in (
            ("shared", "zeMemAllocShared"),
            ("device", "zeMemAllocDevice"),
            ("host", "zeMemAllocHost"),
        ):
            base, size = process.handle(4096), 1 << 18
            process.buffers[memory] = base, size
            if not self.numbered:
                _, exit_ = self._step(first, function)
                tape.add(
                    "allocations",
                    exit_[1],
                    first.number,
                    exit_[0],
                    action="alloc",
                    base=_u64(base),
                    bytes=size,
                    memory=memory,
                )
        process.buffers["system"] = 0x7FFF_0000_0000, 1 << 18

    def _step(
        self, thread: Thread, function: str, *, cost: int = 0, **columns: Any
    ) -> tuple[tuple[Int64, int], tuple[Int64, int]]:
        """Let a thread make one call; return number and time of its entry and of its exit."""
        cost = cost or int(self.rng.integers(300, 2000))
        entry, thread.now = thread.now + 50, thread.now + 50 + cost
        numbers = self.tape.call(function, entry, thread.now, thread.number, **columns)
        return (numbers[0], entry), (numbers[1], thread.now)

    def _device(self, thread: Thread, number: int) -> None:
        process, options = thread.process, self.options
        num, den = options["frequency"], 1
        if number % 2:
            num, den = 57_600_000, 3
        bits, kernel_bits = options["bits"], options["kernel_bits"]
        skew = options["skew_ppm"] * (1 if number % 2 else -1)
        # The counter wraps a little after the start, so that every trace of some length sees it.
        begin = (1 << kernel_bits) - int(options["wrap_after_ms"] * num // den // 1000)
        clock = Clock(num, den, num / den * (1 + skew * 1e-6) / layout.NS_PER_SECOND, max(begin, 0), bits)
        uuid = f"{0x8680 + number:032x}"
        self._step(thread, "zeContextCreate")
        context = process.handle()
        root = Device(process.handle(), uuid, f"Sim GPU {number}", clock, context)
        self._describe(thread, root)
        process.devices.append(root)
        if number == 0:
            for sub in range(options["subdevices"]):
                device = Device(
                    process.handle(), f"{0x8680:028x}{sub + 1:04x}", root.name, clock, context, root.handle, sub
                )
                self._describe(thread, device)
                process.devices.append(device)

    def _describe(self, thread: Thread, device: Device) -> None:
        thread.now += 100
        self.tape.add(
            "devices",
            thread.now,
            thread.number,
            device=_u64(device.handle),
            parent=None if device.parent is None else _u64(device.parent),
            uuid=device.uuid,
            name=device.name,
            subdevice=device.subdevice,
            ticks_per_second_num=device.clock.num // device.clock.den,
            ticks_per_second_den=1,
            is_rounded=False,
            timestamp_bits=self.options["bits"],
            kernel_timestamp_bits=self.options["kernel_bits"],
        )

    def _kernel(self, thread: Thread, name: str, simd: int, size: tuple[int, int, int], handle: int = 0) -> None:
        process, tape = thread.process, self.tape
        handle = handle or process.handle()
        process.kernels.append(handle)
        group: dict[str, Any] = {f"group_{axis}": value for axis, value in zip("xyz", size, strict=True)}
        if self.numbered:
            number = len(process.kernels)
            process.kernels[-1] = number
            thread.now += 100
            tape.add(
                "kernels",
                thread.now,
                thread.number,
                action="update",
                kernel=_u64(number),
                name=name,
                simd=simd,
                **group,
            )
            return
        _, exit_ = self._step(thread, "zeKernelCreate")
        tape.add("kernels", exit_[1], thread.number, exit_[0], action="create", kernel=_u64(handle), name=name)
        thread.now += 60
        tape.add("kernels", thread.now, thread.number, action="update", kernel=_u64(handle), simd=simd)
        entry, _ = self._step(thread, "zeKernelSetGroupSize")
        tape.add("kernels", entry[1], thread.number, entry[0], action="update", kernel=_u64(handle), **group)

    def _recycle_kernel(self, thread: Thread) -> None:
        if self.numbered:
            return
        handle = thread.process.kernels.pop()
        _, exit_ = self._step(thread, "zeKernelDestroy")
        self.tape.add("kernels", exit_[1], thread.number, exit_[0], action="destroy", kernel=_u64(handle))
        self._kernel(thread, *_KERNELS[-1], handle=handle)

    def _pairs(self, thread: Thread, *, force: bool = False) -> None:
        """Read both clocks of all devices, at most ten times a second."""
        if not force and thread.now - thread.last_pair < _PAIR_EVERY_NS:
            return
        thread.last_pair = thread.now
        for device in thread.process.devices:
            thread.now += 500
            read = thread.now - int(self.rng.integers(0, PAIR_ERROR_NS))
            ticks = device.clock.at(read)
            self.tape.add(
                "clock_pairs",
                thread.now,
                thread.number,
                device=_u64(device.handle),
                host_ns=thread.now,
                device_ticks=np.atleast_1d(ticks),
            )

    # --- programs -----------------------------------------------------------------------------------------------

    def _program(self, thread: Thread, ops: int) -> None:
        """Let a thread append ``ops`` operations, list by list."""
        sorts = [(immediate, in_order) for immediate in (True, False) for in_order in (True, False)]
        turn = 0
        while ops > 0:
            count = min(ops, self.options["list_ops"])
            device = thread.process.devices[(thread.index + turn) % len(thread.process.devices)]
            immediate, in_order = sorts[turn % 4]
            sharing = SHARING[(turn // 4 + turn) % 4] if self.options["sharing"] == "mixed" else self.options["sharing"]
            if immediate:
                self._immediate(thread, device, count, in_order=in_order, sharing=sharing)
            else:
                self._regular(thread, device, count, in_order=in_order, sharing=sharing)
            ops -= count
            turn += 1
            thread.now += int(self.options["pause_us"] * 1000)
            self._pairs(thread)

    def _make_list(
        self, thread: Thread, device: Device, *, immediate: bool, in_order: bool, handle: int = 0
    ) -> tuple[int, int]:
        """Make a list; return what Appends call it, and its handle."""
        process = thread.process
        handle = handle or process.handle()
        _, exit_ = self._step(thread, "zeCommandListCreateImmediate" if immediate else "zeCommandListCreate")
        name = handle
        numbers: Int64 | None = exit_[0]
        if self.numbered:
            name, numbers = process.next_list, None
            process.next_list += 1
        self.tape.add(
            "lists",
            exit_[1],
            thread.number,
            numbers,
            action="create",
            list=_u64(name),
            handle=_u64(handle) if self.numbered else None,
            context=_u64(device.context),
            device=_u64(device.handle),
            ordinal=0,
            index=thread.index if immediate else None,
            immediate=immediate,
            in_order=in_order,
            compute=True if self.numbered else None,
        )
        return name, handle

    def _end_list(self, thread: Thread, name: int, action: str) -> None:
        _, exit_ = self._step(thread, "zeCommandListReset" if action == "reset" else "zeCommandListDestroy")
        if not self.numbered:
            self.tape.add("lists", exit_[1], thread.number, exit_[0], action=action, list=_u64(name))

    def _immediate(self, thread: Thread, device: Device, count: int, *, in_order: bool, sharing: str) -> None:
        name, _ = self._make_list(thread, device, immediate=True, in_order=in_order)
        batch = self.options["batch"]
        events = self._events(thread, sharing, min(count, batch))
        while count > 0:
            block = self._append(thread, name, events, sharing, min(count, batch))
            start, end = self._work(block.entry + block.cost // 2, block, in_order=in_order)
            self._sync(thread, "zeCommandListHostSynchronize", device, block, start, end, 1)
            if sharing == "one":
                self._destroy_events(thread, events)
            elif self.options["reset_events"]:
                self._reset_events(thread, block)
            count -= len(block.code)
        self._end_list(thread, name, "destroy")

    def _regular(self, thread: Thread, device: Device, count: int, *, in_order: bool, sharing: str) -> None:
        process = thread.process
        _, exit_ = self._step(thread, "zeCommandQueueCreate")
        queue = process.handle()
        own = None if self.numbered else exit_[0]
        self.tape.add(
            "queues",
            exit_[1],
            thread.number,
            own,
            queue=_u64(queue),
            device=_u64(device.handle),
            ordinal=0,
            index=thread.index,
        )
        runs = self.options["runs"]
        # Two phases: the list is emptied and filled again, with the same events.
        handle = 0
        events = self._events(thread, sharing, count)
        for part in (count - count // 2, count // 2):
            if not part:
                break
            if self.numbered or not handle:
                name, handle = self._make_list(thread, device, immediate=False, in_order=in_order, handle=handle)
            block = self._append(thread, name, events, sharing, part)
            self._step(thread, "zeCommandListClose")
            for run in range(1, runs + 1):
                entry, exit_ = self._step(thread, "zeCommandQueueExecuteCommandLists")
                own_number = None if self.numbered else entry[0]
                self.tape.add(
                    "runs",
                    entry[1],
                    thread.number,
                    own_number if own_number is not None else self.tape.number(np.array([exit_[1] - 1])),
                    list=_u64(name),
                    queue=_u64(queue),
                    run=run if self.numbered else None,
                    exit_ts=exit_[1] - 1 if self.numbered else exit_[1],
                    quiet=False,
                )
                submitted = np.full(len(block.code), entry[1] + 200)
                start, end = self._work(submitted, block, in_order=in_order)
                self._sync(thread, "zeCommandQueueSynchronize", device, block, start, end, run)
            self._end_list(thread, name, "reset")
        self._end_list(thread, name, "destroy")
        if sharing == "one":
            self._destroy_events(thread, events)

    # --- operations ---------------------------------------------------------------------------------------------

    def _events(self, thread: Thread, sharing: str, count: int) -> npt.NDArray[np.uint64]:
        process = thread.process
        need = {"one": count, "shared": 1, "pair": 2, "none": min(count, _MOST_EVENTS)}[sharing]
        return (process.handle(need) + 0x40 * np.arange(need)).astype(np.uint64)

    def _append(self, thread: Thread, name: int, events: npt.NDArray[np.uint64], sharing: str, count: int) -> Block:
        """Let a thread append operations; with no event of the program's, the recorder rotates its own."""
        process, rng = thread.process, self.rng
        code = self._mix(count)
        is_signal = np.array([_KIND[function] == layout.SIGNAL for function, _ in _MIX])[code]
        turn = np.arange(count)
        attr = events[turn % len(events)]
        if sharing == "none":
            # Every recorder event is used once between two waits only if there are enough of them.
            attr = (events[0] + np.uint64(0x40) * turn.astype(np.uint64)) if count > len(events) else attr
            process.next_handle = max(process.next_handle, int(attr.max()) + 0x40)
        cost = rng.integers(400, 1600, count)
        entry = thread.now + 50 + np.cumsum(cost + 20) - cost
        thread.now = int(entry[-1] + cost[-1])
        kernel = rng.integers(0, len(process.kernels), count)
        texts, size, dst, src, dst_kind, src_kind = self._describe_ops(process, code, kernel)
        functions = self._functions["calls"][code]
        # Arrays of entries and exits interleave by time, so their numbers need no care.
        numbers, _ = self.tape.call(functions, entry, entry + cost, thread.number)
        timed = np.arange(count)
        op = np.zeros(count, np.int64)
        own: Int64 | None = numbers
        when = entry
        if self.numbered:
            timed = np.flatnonzero(~is_signal)
            op[timed] = np.arange(process.next_op, process.next_op + len(timed))
            process.next_op += len(timed)
            own, when = None, entry + cost * 3 // 4
        kernels = np.array(process.kernels, np.uint64)[kernel]
        is_kernel, moves = (self._is(code, kind) for kind in ((layout.KERNEL,), (layout.COPY, layout.FILL)))
        known = size > 0

        def of(values: Any, mask: Any) -> tuple[Any, Any]:
            return np.where(mask, values, 0)[timed], mask[timed]

        groups = [of(1 + (kernel + place) % 7, is_kernel) for place in range(3)]
        memory: dict[str, Any] = {"dst": of(dst, known), "src": of(src, known & (src > 0))}
        if self.numbered:
            memory = {
                "dst_memory": of(self.tape.codes("appends", "dst_memory", list(layout.MEMORIES))[dst_kind - 1], known),
                "src_memory": of(
                    self.tape.codes("appends", "src_memory", list(layout.MEMORIES))[src_kind - 1],
                    known & (src_kind > 0),
                ),
                "how": "INLINE",
            }
        signal = np.zeros(count, np.uint64) if sharing == "none" else attr
        self.tape.add(
            "appends",
            when[timed],
            thread.number,
            own,
            function=self._functions["appends"][code[timed]],
            kind=self._kinds[code[timed]],
            op_id=op[timed].astype(np.uint64) if self.numbered else None,
            list=_u64(name),
            event=np.where(is_signal & (sharing == "none"), attr, signal)[timed],
            waits=0,
            kernel=of(kernels, is_kernel),
            groups_x=groups[0],
            groups_y=groups[1],
            groups_z=groups[2],
            bytes=of(size, moves & known),
            **memory,
        )
        if not self.numbered:
            self.tape.add("pushes", entry + cost // 2, thread.number, event=attr)
        self.signals += int(is_signal.sum())
        return Block(code, signal, attr, op, texts, size, entry, cost, kernel)

    def _mix(self, count: int) -> Int64:
        if self.options["fills_only"]:
            return np.full(count, [function for function, _ in _MIX].index(_APPEND + "MemoryFill"))
        shares = np.array([share for _, share in _MIX], np.float64)
        return self.rng.choice(len(_MIX), count, p=shares / shares.sum())

    @staticmethod
    def _is(code: Int64, kinds: tuple[str, ...]) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = np.array([_KIND[function] in kinds for function, _ in _MIX])[code]
        return found

    def _describe_ops(self, process: Process, code: Int64, kernel: Int64) -> tuple[Any, ...]:
        """Return names, sizes, addresses and kinds of memory (places in ``layout.MEMORIES`` plus 1)."""
        rng, count = self.rng, len(code)
        bases = np.array([process.buffers[memory][0] for memory in layout.MEMORIES], np.uint64)
        copies, fills = self._is(code, (layout.COPY,)), self._is(code, (layout.FILL,))
        dst_kind = np.where(copies | fills, rng.integers(1, 5, count), 0)
        src_kind = np.where(copies, rng.integers(1, 5, count), 0)
        size = np.where(copies | fills, rng.integers(1, 1 << 16, count), 0)
        offset = rng.integers(0, 1 << 17, count).astype(np.uint64)
        dst, src = bases[dst_kind - 1] + offset, bases[src_kind - 1] + offset
        letters = ["", *(layout.MEMORY_LETTERS[memory] for memory in layout.MEMORIES)]
        functions = [function for function, _ in _MIX]
        names = np.empty(count, object)
        for number in range(len(functions)):
            names[code == number] = functions[number]
        for number in range(len(process.kernels)):
            names[self._is(code, (layout.KERNEL,)) & (kernel == number)] = _KERNELS[number][0]
        for to in range(1, 5):
            names[fills & (dst_kind == to)] = f"{_APPEND}MemoryFill({letters[to]})"
            for source in range(1, 5):
                here = copies & (dst_kind == to) & (src_kind == source)
                names[here] = f"{_APPEND}MemoryCopy({letters[source]}2{letters[to]})"
        return names, size, dst, np.where(src_kind > 0, src, np.uint64(0)), dst_kind, src_kind

    def _work(self, submitted: Int64, block: Block, *, in_order: bool) -> tuple[Int64, Int64]:
        """Let the device work: return begin and end of each operation, true host time."""
        count = len(submitted)
        length = self.rng.integers(300, 20_000, count)
        ready = submitted + self.rng.integers(100, 2000, count)
        if not in_order:
            return ready, ready + length
        # Each begins when it is ready and the one before has ended, and a tick's worth of pause between them.
        length += 200
        total = np.cumsum(length)
        end = total + np.maximum.accumulate(ready - (total - length))
        return end - length, end - 200

    def _sync(
        self, thread: Thread, function: str, device: Device, block: Block, start: Int64, end: Int64, run: int
    ) -> None:
        """Let a thread wait for the block, and harvest its results before the call returns."""
        rng, tape = self.rng, self.tape
        entry = thread.now + 50
        done = max(entry + 500, int(end.max()) + int(rng.integers(500, 3000)))
        # The program polls once while it waits: a call within a call.
        tape.call("zeEventQueryStatus", entry + 100, entry + 300, thread.number, result=layout.NOT_READY)
        has_result = np.ones(len(block.code), np.bool_)
        if self.numbered:
            has_result = block.op > 0
        rows = np.flatnonzero(has_result)
        ts = done + 20 * np.arange(len(rows))
        leave = int(ts[-1]) + 200 if len(rows) else done
        tape.call(function, entry, leave, thread.number)
        thread.now = leave
        gone = rng.random(len(rows)) < self.options["lost"]
        kept, missing = rows[~gone], rows[gone]
        bits = self.options["kernel_bits"]
        begin_ticks, end_ticks = (device.clock.at(times, bits=bits) for times in (start, end))
        named: dict[str, Any] = {"event": block.attr[kept]}
        if self.numbered:
            named = {"op_id": block.op[kept].astype(np.uint64), "run": run}
        numbers = tape.add(
            "results",
            ts[~gone],
            thread.number,
            **named,
            status=layout.SUCCESS,
            timestamp_status=layout.SUCCESS,
            global_start=begin_ticks[kept],
            global_end=end_ticks[kept],
            context_start=begin_ticks[kept],
            context_end=end_ticks[kept],
        )
        if self.numbered and len(missing):
            tape.add(
                "losses",
                ts[gone],
                thread.number,
                op_id=block.op[missing].astype(np.uint64),
                run=run,
                reason="not_drained",
            )
        self.lost += len(missing)
        work = ~self._is(block.code[kept], (layout.SIGNAL,))
        kept, numbers = kept[work], numbers[work]
        whole = np.ones(len(kept), np.int64)
        # With results missing, a shared event no longer tells whose a result is.
        certain = self.numbered or not len(missing) or len(np.unique(block.attr)) == len(block.attr)
        self.truth.parts.append(
            (
                numbers,
                whole * (100 + thread.process.number),
                whole * (1000 + thread.number),
                np.full(len(kept), device.uuid, object),
                block.name[kept],
                start[kept] - START_NS,
                end[kept] - START_NS,
                whole * run,
                block.size[kept],
                np.full(len(kept), certain),
            )
        )

    def _destroy_events(self, thread: Thread, events: npt.NDArray[np.uint64]) -> None:
        entry = thread.now + 50 + 300 * np.arange(len(events))
        thread.now = int(entry[-1]) + 250
        _, exits = self.tape.call("zeEventDestroy", entry, entry + 250, thread.number)
        if not self.numbered:
            self.tape.add("event_ends", entry + 250, thread.number, exits, event=events)

    def _reset_events(self, thread: Thread, block: Block) -> None:
        entry = thread.now + 50 + 120 * np.arange(len(block.code))
        thread.now = int(entry[-1]) + 100
        self.tape.call("zeEventHostReset", entry, entry + 100, thread.number)


def _u64(value: int) -> npt.NDArray[np.uint64]:
    return np.array(value, np.uint64)


def simulate_events(options: Mapping[str, Any], seed: int) -> tuple[Events, dict[str, Any]]:
    """Return the event model of simulated programs, and the truth; see ``Simulator``."""
    for name, values in (("style", ("thapi", "numbered")), ("sharing", ("mixed", *SHARING))):
        if options[name] not in values:
            raise UsageError(f"option {name}: {options[name]!r} is not usable", hint="say " + ", ".join(values))
    return Simulator(options, seed).run()


def simulate(options: Mapping[str, Any], seed: int) -> Simulation:
    """Return a text trace of simulated programs, and the truth."""
    from lanescope.devices.levelzero.simulate.encode_text import encode

    events, truth = simulate_events(options, seed)
    return Simulation({"program.thapi_text": encode(events)}, truth)
