"""A simulator of Level Zero programs: what a recorder would record, and what really happened.

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
from lanescope.common.distinct import distinct
from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.event_model import Events
from lanescope.devices.levelzero.simulate.event_writer import EventWriter
from lanescope.devices.levelzero.simulate.machine import KERNELS, START_NS, Device, Machine, Process, Thread, u64
from lanescope.errors import UsageError
from lanescope.families.family import Simulation

#: How events are given to the operations of a list. ``one``: each operation has its own, destroyed after the wait, and
#: the handles come back. ``shared``: all operations signal one. ``pair``: they take turns on two. ``none``: the program
#: gives no event, the recorder uses its own.
SHARING = ("one", "shared", "pair", "none")
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
_KIND = {function: layout.APPENDS[function] for function, _ in _MIX}


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
    """Ground truth, one row per execution of an operation: columns in the order of ``NAMES``."""

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
        self.machine = Machine(options, self.rng, self.tape)
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
            first = self.machine.start(number)
            self.threads.append(first)
            self.processes.append(first.process)
        for index in range(1, options["threads"]):
            for process in self.processes:
                begin = START_NS + 1_000_000 * index + 17 * process.number
                self.threads.append(Thread(len(self.threads), process, index, begin))
        per_thread = max(options["ops"] // max(len(self.threads), 1), 1)
        for thread in self.threads:
            self._program(thread, per_thread)
        for thread in self.threads:
            self.machine.read_clocks(thread, force=True)
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
            self.machine.read_clocks(thread)

    def _make_list(
        self, thread: Thread, device: Device, *, immediate: bool, in_order: bool, handle: int = 0
    ) -> tuple[int, int]:
        """Make a list; return what Appends call it, and its handle."""
        process = thread.process
        handle = handle or process.handle()
        _, exit_ = self.machine.step(thread, "zeCommandListCreateImmediate" if immediate else "zeCommandListCreate")
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
            list=u64(name),
            handle=u64(handle) if self.numbered else None,
            context=u64(device.context),
            device=u64(device.handle),
            ordinal=0,
            index=thread.index if immediate else None,
            immediate=immediate,
            in_order=in_order,
            compute=True if self.numbered else None,
        )
        return name, handle

    def _end_list(self, thread: Thread, name: int, action: str) -> None:
        _, exit_ = self.machine.step(thread, "zeCommandListReset" if action == "reset" else "zeCommandListDestroy")
        if not self.numbered:
            self.tape.add("lists", exit_[1], thread.number, exit_[0], action=action, list=u64(name))

    def _immediate(self, thread: Thread, device: Device, count: int, *, in_order: bool, sharing: str) -> None:
        name, handle = self._make_list(thread, device, immediate=True, in_order=in_order)
        batch = self.options["batch"]
        events = self._events(thread, sharing, min(count, batch))
        while count > 0:
            block = self._append(thread, name, events, sharing, min(count, batch))
            start, end = self._work(block.entry + block.cost // 2, block, in_order=in_order)
            self._sync(thread, ("zeCommandListHostSynchronize", handle), device, block, start, end, 1)
            if sharing == "one":
                self._destroy_events(thread, events)
            elif self.options["reset_events"]:
                self._reset_events(thread, block)
            count -= len(block.code)
        self._end_list(thread, name, "destroy")

    def _regular(self, thread: Thread, device: Device, count: int, *, in_order: bool, sharing: str) -> None:
        process = thread.process
        _, exit_ = self.machine.step(thread, "zeCommandQueueCreate")
        queue = process.handle()
        own = None if self.numbered else exit_[0]
        self.tape.add(
            "queues",
            exit_[1],
            thread.number,
            own,
            queue=u64(queue),
            device=u64(device.handle),
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
            self.machine.step(thread, "zeCommandListClose")
            for run in range(1, runs + 1):
                entry, exit_ = self.machine.step(thread, "zeCommandQueueExecuteCommandLists")
                own_number = None if self.numbered else entry[0]
                self.tape.add(
                    "runs",
                    entry[1],
                    thread.number,
                    own_number if own_number is not None else self.tape.number(np.array([exit_[1] - 1])),
                    list=u64(name),
                    queue=u64(queue),
                    run=run if self.numbered else None,
                    exit_ts=exit_[1] - 1 if self.numbered else exit_[1],
                    quiet=False,
                )
                submitted = np.full(len(block.code), entry[1] + 200)
                start, end = self._work(submitted, block, in_order=in_order)
                self._sync(thread, ("zeCommandQueueSynchronize", queue), device, block, start, end, run)
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
            list=u64(name),
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
            names[self._is(code, (layout.KERNEL,)) & (kernel == number)] = KERNELS[number][0]
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
        self, thread: Thread, what: tuple[str, int], device: Device, block: Block, start: Int64, end: Int64, run: int
    ) -> None:
        """Let a thread wait for the block by a function with a handle; it harvests the results before it returns."""
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
        function, handle = what
        entries, _ = tape.call(function, entry, leave, thread.number)
        target = layout.WAITS[function][0]
        tape.add("host_waits", entry, thread.number, entries, target=target, handle=u64(handle))
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
        certain = self.numbered or not len(missing) or len(distinct(block.attr)) == len(block.attr)
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


def simulate_events(options: Mapping[str, Any], seed: int) -> tuple[Events, dict[str, Any]]:
    """Return the event model of simulated programs, and the truth; see ``Simulator``."""
    for name, values in (("style", ("thapi", "numbered")), ("sharing", ("mixed", *SHARING))):
        if options[name] not in values:
            raise UsageError(f"invalid value {options[name]!r} for --{name} (choose from {', '.join(values)})")
    return Simulator(options, seed).run()


def simulate(options: Mapping[str, Any], seed: int) -> Simulation:
    """Return a text trace of simulated programs, and the truth."""
    from lanescope.devices.levelzero.simulate.encode_text import encode

    events, truth = simulate_events(options, seed)
    return Simulation({"program.thapi_text": encode(events)}, truth)
