"""What simulated programs run on: processes with threads, devices with clocks, kernels and buffers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.asof_join import Int64
from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.simulate.event_writer import EventWriter

#: Noon of the day that text traces are given, ns.
START_NS = (layout.THAPI_DATE_S + 12 * 3600) * layout.NS_PER_SECOND
_PAIR_EVERY_NS = 100_000_000
#: A reading of both clocks is recorded so long after it was made at most.
PAIR_ERROR_NS = 300
#: Name, SIMD width and group size of each kernel.
KERNELS = (("gemm_nn<float, 16>", 16, (256, 1, 1)), ("softmax", 32, (64, 4, 1)), ('stencil "3d"', 8, (8, 8, 8)))


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


class Machine:
    """Starts processes, and makes their calls.

    Args:
        options: as ``family.LevelZero.sim_options`` declares them.
        rng: where randomness comes from.
        tape: where records go.
    """

    def __init__(self, options: Mapping[str, Any], rng: np.random.Generator, tape: EventWriter) -> None:
        self.options = options
        self.rng = rng
        self.tape = tape
        self.numbered = options["style"] == "numbered"

    def start(self, number: int) -> Thread:
        """Start a process: its devices, kernels and buffers; return its first thread."""
        options, tape = self.options, self.tape
        process = Process(number, [])
        # Its other threads come when all processes have been started.
        first = Thread(number, process, 0, START_NS + 1000 * number)
        for device in range(options["devices"]):
            self._device(first, device)
        self.read_clocks(first, force=True)
        for name, simd, shape in KERNELS:
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
                _, exit_ = self.step(first, function)
                tape.add(
                    "allocations",
                    exit_[1],
                    first.number,
                    exit_[0],
                    action="alloc",
                    base=u64(base),
                    bytes=size,
                    memory=memory,
                )
        process.buffers["system"] = 0x7FFF_0000_0000, 1 << 18
        return first

    def step(
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
        self.step(thread, "zeContextCreate")
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
            device=u64(device.handle),
            parent=None if device.parent is None else u64(device.parent),
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
                kernel=u64(number),
                name=name,
                simd=simd,
                **group,
            )
            return
        _, exit_ = self.step(thread, "zeKernelCreate")
        tape.add("kernels", exit_[1], thread.number, exit_[0], action="create", kernel=u64(handle), name=name)
        thread.now += 60
        tape.add("kernels", thread.now, thread.number, action="update", kernel=u64(handle), simd=simd)
        entry, _ = self.step(thread, "zeKernelSetGroupSize")
        tape.add("kernels", entry[1], thread.number, entry[0], action="update", kernel=u64(handle), **group)

    def _recycle_kernel(self, thread: Thread) -> None:
        if self.numbered:
            return
        handle = thread.process.kernels.pop()
        _, exit_ = self.step(thread, "zeKernelDestroy")
        self.tape.add("kernels", exit_[1], thread.number, exit_[0], action="destroy", kernel=u64(handle))
        self._kernel(thread, *KERNELS[-1], handle=handle)

    def read_clocks(self, thread: Thread, *, force: bool = False) -> None:
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
                device=u64(device.handle),
                host_ns=thread.now,
                device_ticks=np.atleast_1d(ticks),
            )


def u64(value: int) -> npt.NDArray[np.uint64]:
    """Return a handle or number as the tables hold it."""
    return np.array(value, np.uint64)
