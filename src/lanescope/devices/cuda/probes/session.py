"""A session: the buffers of the launches of a kernel, from before the first to the trace of all.

Example:
    with session(events=["load", "compute"], blocks=132, records_per_lane=64) as s:
        kernel[132, 96](x, s.launch("attention"))
    trace = s.trace()
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from lanescope.devices.cuda.formats import layout
from lanescope.devices.cuda.formats.ls2 import Ls2Header
from lanescope.devices.cuda.probes.backends import Backend, choose
from lanescope.devices.cuda.probes.buffer import Anchor, BufferPlan, Events, Words
from lanescope.devices.cuda.probes.overhead import Overhead, smallest_gap, with_overhead
from lanescope.devices.cuda.probes.sizing import Dropped, Unallocated, dropped
from lanescope.errors import UsageError
from lanescope.trace import Trace
from lanescope.trace.merge import merge

#: Device memory that the buffers of launches may take before they are fetched.
DEVICE_BYTES = 1 << 30
#: The pair of readings of which the bound is smallest is kept, out of so many.
_READINGS = 5


class DroppedRecordsWarning(UserWarning):
    """A lane was full, or there was none; the text says what was lost and how large the buffer would have had to be."""


class _Probes:
    """Stands for the buffer in the arguments of a kernel."""

    def __repr__(self) -> str:
        return "PROBES"


#: In the arguments that ``Session.overhead`` is given: where the buffer goes.
PROBES = _Probes()


@dataclass(slots=True)
class _Launch:
    """One launch: its buffer is on the GPU until it is fetched.

    Attributes:
        number: of the launch in the session, and in the buffer's header.
        kernel: what it is called.
        gpu: index into the session's GPUs.
        array: the buffer on the GPU; None once it is fetched.
        words: the buffer on the host; None before.
        is_ours: the session allocated it, so it knows the stride.
        overhead: what was measured with it.
        trace: it, decoded.
    """

    number: int
    kernel: str
    gpu: int
    array: Any = None
    words: Words | None = None
    is_ours: bool = True
    overhead: Overhead | None = None
    trace: Trace | None = None

    @property
    def name(self) -> str:
        return f"{self.kernel} launch {self.number}"


@dataclass(slots=True)
class _Gpu:
    backend: Backend
    anchors: list[Anchor] = field(default_factory=list)


class Session:
    """Buffers for the launches of a kernel; made by ``session``.

    Attributes:
        plan: what the buffers are like.
    """

    def __init__(self, plan: BufferPlan, backends: Sequence[Backend], *, device_bytes: int = DEVICE_BYTES) -> None:
        self.plan = plan
        self._gpus = [_Gpu(backend) for backend in backends]
        self._device_bytes = device_bytes
        self._launches: list[_Launch] = []
        self._count = 0
        self._stack = ExitStack()
        self._trace: Trace | None = None

    @property
    def events(self) -> Events:
        """Names and numbers of the events."""
        return self.plan.events

    @property
    def launches(self) -> int:
        """Number of buffers that were allocated or added."""
        return len(self._launches)

    @property
    def device(self) -> str:
        """Name of the first GPU."""
        return self._gpus[0].backend.describe()

    def __enter__(self) -> Session:
        """Read the clocks of host and GPUs for the first time."""
        for gpu in self._gpus:
            if gpu.backend.is_simulated:
                self._stack.enter_context(gpu.backend.is_available())
            gpu.anchors = _anchor(gpu.backend)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Fetch all buffers and read the clocks again; warn where a lane was full, or where there was none."""
        try:
            if kind is None:
                self._finish()
                for line in self.advice():
                    warnings.warn(line, DroppedRecordsWarning, stacklevel=2)
        finally:
            self._stack.close()

    def _finish(self) -> None:
        self.fetch()
        for gpu in self._gpus:
            gpu.anchors = [*gpu.anchors[:1], *_anchor(gpu.backend)]
        self._trace = None
        for launch in self._launches:
            launch.trace = None

    def launch(self, kernel: str = "kernel", *, gpu: int = 0) -> Any:
        """Return the buffer for one launch of the kernel, on the GPU: give it to the kernel where it takes its probes.

        Args:
            kernel: what the launch is called in the trace.
            gpu: on which of the session's GPUs it runs.

        Returns:
            An array of the package that allocates, uint64 (PyTorch: int64) [plan.words].

        Raises:
            UsageError: unknown GPU.
        """
        if not 0 <= gpu < len(self._gpus):
            raise UsageError(
                f"invalid gpu {gpu}: the session has {len(self._gpus)}", hint="pass the GPUs to session(gpus=...)"
            )
        live = sum(launch.array is not None for launch in self._launches)
        if live and (live + 1) * self.plan.words * 8 > self._device_bytes:
            self.fetch()
        launch = self._new(kernel, gpu)
        self._launches.append(launch)
        return launch.array

    def _new(self, kernel: str, gpu: int) -> _Launch:
        backend = self._gpus[gpu].backend
        number = self._count
        self._count += 1
        self._trace = None
        header = self.plan.header(launch=number, ordinal=backend.ordinal, anchors=self._gpus[gpu].anchors[:1])
        return _Launch(number, kernel, gpu, backend.allocate(self.plan.words, header))

    def add(self, buffer: Any, kernel: str = "kernel", *, gpu: int = 0) -> None:
        """Add a buffer that a kernel filled and this session did not allocate, such as that of TIRx's CudaProfiler.

        Args:
            buffer: its words, as ``lanescope.cuda.decode`` takes them.
            kernel: what the launch is called in the trace.
            gpu: on which of the session's GPUs it ran.
        """
        from lanescope.devices.cuda.probes.array_input import to_bytes

        data = to_bytes(buffer)
        words = np.frombuffer(data.tobytes(), "<u8", count=len(data) // 8).copy()
        self._launches.append(_Launch(self._count, kernel, gpu, words=words, is_ours=False))
        self._count += 1
        self._trace = None

    def fetch(self) -> None:
        """Wait for the kernels and bring all buffers to the host."""
        for launch in self._launches:
            if launch.array is not None:
                launch.words = self._gpus[launch.gpu].backend.fetch(launch.array)
                launch.array = None

    def trace(self, *, side_by_side: bool = False) -> Trace:
        """Return the trace of all launches so far, on one timeline.

        Launches that left no record are not in it; ``advice`` names them.

        Args:
            side_by_side: GPUs whose timers nothing relates have a time axis each.

        Raises:
            UsageError: no launch left any.
            InputError: a buffer of TIRx whose header was never written.
            MergeError: several GPUs, and nothing relates their timers.
        """
        if self._trace is None:
            self.fetch()
            traces = [self._decode(launch) for launch in self._launches if _is_used(launch, self.plan)]
            if not traces:
                raise UsageError(
                    f"no records in {len(self._launches)} launches",
                    hint="pass the result of launch() to the kernel and call init in the kernel",
                )
            self._trace = merge(traces, side_by_side=side_by_side)
        return self._trace

    def _decode(self, launch: _Launch) -> Trace:
        if launch.trace is None:
            launch.trace = self._decoded(launch)
        return launch.trace

    def _decoded(self, launch: _Launch) -> Trace:
        assert launch.words is not None
        gpu = self._gpus[launch.gpu]
        options: dict[str, Any] = {"device": f"GPU {gpu.backend.ordinal}"}
        if self.plan.layout == layout.LS2:
            for which, anchor in enumerate(gpu.anchors[:2]):
                if launch.is_ours:
                    self.plan.anchor(launch.words, anchor, which)
        else:
            if gpu.anchors:
                options["host_anchor"] = gpu.anchors[0]
            if not launch.is_ours:
                options["stride"] = None
        trace = self.plan.decode(launch.words, name=launch.name, **options)
        return trace if launch.overhead is None else with_overhead(trace, launch.overhead)

    def advice(self) -> list[str]:
        """Return remedies for full lanes, lanes without space and launches without records; [] without loss.

        One line per kernel and problem.
        """
        self.fetch()
        lost: dict[str, Dropped] = {}
        refused: dict[str, Unallocated] = {}
        silent: dict[str, int] = {}
        for launch in self._launches:
            refusal = _refusal(launch, self.plan)
            if refusal is not None:
                refused[launch.kernel] = refused[launch.kernel] + refusal if launch.kernel in refused else refusal
            if _is_used(launch, self.plan):
                for loss in dropped(self._decode(launch)).values():
                    lost[launch.kernel] = lost[launch.kernel] + loss if launch.kernel in lost else loss
            else:
                silent[launch.kernel] = silent.get(launch.kernel, 0) + 1
        grid = f"{self.plan.blocks} blocks of {len(self.plan.groups)} groups"
        lines = [f"{kernel}: {loss}" for found in (lost, refused) for kernel, loss in found.items()]
        for kernel, count in silent.items():
            launches = "1 launch" if count == 1 else f"{count} launches"
            remedy = f"pass the buffer to the kernel and call init, within {grid}"
            lines.append(f"{kernel}: no records in {launches}; {remedy}")
        return lines

    def save(self, folder: str | Path) -> list[Path]:
        """Write each buffer as ``NUMBER-KERNEL.npy``, with the names of its events beside it.

        Args:
            folder: is made if it is not there.

        Returns:
            The ``.npy`` files; ``lanescope.open`` reads them.
        """
        self.fetch()
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        names = {"events": dict(self.events), "groups": list(self.plan.groups)}
        written = []
        for launch in self._launches:
            assert launch.words is not None
            path = target / f"{launch.number:04}-{''.join(c if c.isalnum() else '-' for c in launch.kernel)}.npy"
            np.save(path, launch.words)
            path.with_suffix(".events.json").write_text(json.dumps(names) + "\n")
            written.append(path)
        return written

    def overhead(
        self,
        kernel: Callable[..., object],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        name: str = "kernel",
        runs: int = 20,
        gpu: int = 0,
    ) -> Overhead:
        """Run a kernel with its probes and with the probes compiled out, in turn, and compare.

        Nothing is subtracted anywhere. The figures go into the trace, table ``cuda_overhead``; the buffer of the last
        round is one of the session's launches.

        Args:
            kernel: what launches it, such as ``kernel[grid, block]`` of Numba or ``kernel[grid]`` of Triton.
            args: its arguments, with ``PROBES`` where the buffer goes. Without probes None goes there.
            kwargs: its arguments by name, likewise.
            name: what the kernel is called in the trace.
            runs: how often each runs, besides once before to compile and warm up.
            gpu: on which of the session's GPUs.

        Raises:
            UsageError: the arguments have no place for the buffer, or there are no runs.
        """
        named = dict(kwargs or {})
        if not any(value is PROBES for value in (*args, *named.values())):
            raise UsageError("PROBES not found in the arguments", hint="pass PROBES in place of the buffer")
        if runs < 1:
            raise UsageError(f"invalid runs {runs!r}: must be a positive integer", hint="pass 1 or more")

        def run(probes: Any) -> Callable[[], object]:
            given = [probes if value is PROBES else value for value in args]
            return lambda: kernel(*given, **{n: probes if v is PROBES else v for n, v in named.items()})

        backend = self._gpus[gpu].backend
        on, off = [], []
        for number in range(runs + 1):
            off.append(backend.elapsed_ns(run(None)))
            launch = self._new(name, gpu)
            on.append(backend.elapsed_ns(run(launch.array)))
            if number < runs:
                self._count -= 1
        launch.words, launch.array = backend.fetch(launch.array), None
        trace = self._decode(launch)
        gap, step = smallest_gap(trace)
        found = Overhead(
            kernel=name,
            runs=runs,
            instrumented_ns=median(on[1:]),
            baseline_ns=median(off[1:]),
            instrumented_min_ns=min(on[1:]),
            baseline_min_ns=min(off[1:]),
            min_delta_ticks=gap,
            resolution_ticks=step,
            clock=self.plan.clock,
            is_simulated=backend.is_simulated,
        )
        launch.overhead, launch.trace = found, None
        self._launches.append(launch)
        return found


def session(
    *,
    events: Any,
    blocks: int | Sequence[int],
    groups: int | Sequence[str] = 1,
    records_per_lane: int = 64,
    layout: str = "ls2",
    payload: bool = False,
    ring: bool = False,
    clock: str = "globaltimer",
    backend: str | None = None,
    gpus: Sequence[int] | None = None,
    device_bytes: int = DEVICE_BYTES,
) -> Session:
    """Return a session; enter it with ``with``.

    Args:
        events: names of the events: a list, a mapping, an ``Enum`` class.
        blocks: blocks of the grid, or the sizes of its dimensions.
        groups: groups of a block that write a lane each: how many, or their names.
        records_per_lane: records that a lane has room for; a region is two.
        layout: ``ls2``, or ``tirx`` for the buffers of TIRx's CudaProfiler.
        payload: every record has 64 bits of the kernel's own.
        ring: a full lane keeps the newest records, not the oldest.
        clock: ``globaltimer``, or ``clock64`` where the common timer is coarse.
        backend: what allocates: ``cupy``, ``torch``, ``numba``, ``triton`` (its interpreter); found when not given.
        gpus: numbers of the GPUs; the current one when not given.
        device_bytes: buffers are fetched when they take more memory of a GPU than this.

    Raises:
        UsageError: something is out of range.
        MissingDependencyError: no package is there, or no GPU.
    """
    plan = BufferPlan.of(
        events=events,
        blocks=blocks,
        groups=groups,
        records_per_lane=records_per_lane,
        layout=layout,
        payload=payload,
        ring=ring,
        clock=clock,
    )
    numbers: Sequence[int | None] = [None] if gpus is None else list(gpus)
    if not numbers:
        raise UsageError("invalid gpus: expected at least one GPU", hint="remove gpus to use the current GPU")
    return Session(plan, [choose(backend, number) for number in numbers], device_bytes=device_bytes)


def _anchor(backend: Backend) -> list[Anchor]:
    """Return a reading of the GPU's timer and the Unix time then, with its bound; [] where it cannot be read."""
    best: Anchor | None = None
    with backend.is_available():
        backend.timer()  # compiles
        for _ in range(_READINGS):
            before = time.time_ns()
            ticks = backend.timer()
            after = time.time_ns()
            if ticks is None:
                return []
            error = (after - before + 1) // 2
            if best is None or error < best[2]:
                best = (ticks, (before + after) // 2, max(1, error))
    return [] if best is None else [best]


def _refusal(launch: _Launch, plan: BufferPlan) -> Unallocated | None:
    """Return the lanes that found no room in a launch's buffer, as its header counts them; None: none, or unknown."""
    assert launch.words is not None
    if plan.layout != layout.LS2:
        return None
    header = Ls2Header.read(launch.words)
    if not header.refused:
        return None
    return Unallocated(
        header.refused, header.num_blocks, header.num_groups, header.required_blocks, header.required_groups
    )


def _is_used(launch: _Launch, plan: BufferPlan) -> bool:
    """Return whether a kernel wrote to the buffer of a launch, even if only a count of dropped records."""
    assert launch.words is not None
    if not launch.is_ours:
        return True
    written = layout.LS2_HEADER["refused"].lsb // 64 if plan.layout == layout.LS2 else 0
    return bool(launch.words[written:].any())
