"""Traces that are true but odd: what kernels do that looks like a fault at first sight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lanescope.trace import TimeBase, Trace, TraceBuilder

Ints = npt.NDArray[np.int64]

#: Time of a usual record, and of a usual pause between two, in ns.
_WORK, _PAUSE = 2000, 400


@dataclass
class Lane:
    """One lane: its records in order, as lengths and pauses before them.

    Attributes:
        start: time of its first pause.
        lengths: int64 [n].
        pauses: int64 [n], before each record.
    """

    start: int
    lengths: Ints
    pauses: Ints


@dataclass
class Kernel:
    """Blocks of three lanes that do the same.

    Attributes:
        lanes: by block and role.
        host: (start, length) of calls of a host thread.
    """

    lanes: dict[tuple[int, str], Lane] = field(default_factory=dict)
    host: list[tuple[int, int]] = field(default_factory=list)

    def trace(self, *, tick: int = 1) -> Trace:
        """Return the trace; times are multiples of ``tick``, ns."""
        builder = TraceBuilder(TimeBase())
        device = builder.track("GPU", kind="group", role="device")
        blocks: dict[int, int] = {}
        for (block, role), lane in self.lanes.items():
            if block not in blocks:
                blocks[block] = builder.track(f"block {block}", kind="group", role="block", parent=device)
            track = builder.track(role, kind="lane", role="warp", parent=blocks[block])
            if not len(lane.lengths):
                continue
            ends = lane.start + np.cumsum(lane.lengths + lane.pauses)
            starts = ends - lane.lengths
            starts, ends = starts // tick * tick, ends // tick * tick
            builder.append("slices", track_id=track, ts=starts, dur=ends - starts, name=role.split()[0])
        if self.host:
            host = builder.track("host", kind="group", role="process")
            thread = builder.track("thread 1", kind="lane", role="host_thread", parent=host, nesting="nested")
            starts, lengths = np.array(self.host).T
            builder.append("slices", track_id=thread, ts=starts, dur=lengths, name="wait")
        return builder.finish()


def _lane(rng: np.random.Generator, records: int, *, start: int = 0, work: int = _WORK) -> Lane:
    return Lane(
        start,
        np.rint(work * rng.lognormal(0, 0.25, records)).astype(np.int64) + 1,
        np.rint(_PAUSE * rng.lognormal(0, 0.5, records)).astype(np.int64) + 1,
    )


def even(rng: np.random.Generator, *, blocks: int = 0, records: int = 0) -> Kernel:
    """Return a kernel whose lanes all have about as much to do."""
    blocks, records = blocks or int(rng.integers(6, 40)), records or int(rng.integers(20, 120))
    kernel = Kernel()
    for block in range(blocks):
        start = int(rng.integers(0, _WORK))
        for at, role in enumerate(("load", "compute", "store")):
            kernel.lanes[block, role] = _lane(rng, records, start=start + at * _WORK)
    return kernel


def _any(rng: np.random.Generator, kernel: Kernel) -> Lane:
    keys = list(kernel.lanes)
    return kernel.lanes[keys[int(rng.integers(len(keys)))]]


def _shared_wait(rng: np.random.Generator) -> Trace:
    kernel = even(rng)
    at = int(rng.integers(5, 15))
    for lane in kernel.lanes.values():
        lane.lengths[at] = 1000 * _WORK + int(rng.integers(0, _WORK))
    return kernel.trace()


def _lone_wait(rng: np.random.Generator) -> Trace:
    kernel = even(rng, records=60)
    lane = _any(rng, kernel)
    lane.lengths[int(rng.integers(5, len(lane.lengths) - 5))] = 1000 * _WORK
    return kernel.trace()


def _last_wait(rng: np.random.Generator) -> Trace:
    kernel = even(rng, records=60)
    _any(rng, kernel).lengths[-1] = 1000 * _WORK
    return kernel.trace()


def _straggler(rng: np.random.Generator) -> Trace:
    kernel = even(rng)
    lane = _any(rng, kernel)
    lane.lengths[int(rng.integers(0, len(lane.lengths)))] = 30 * _WORK
    return kernel.trace()


def _short(rng: np.random.Generator) -> Trace:
    return even(rng, blocks=int(rng.integers(1, 4)), records=int(rng.integers(1, 5))).trace()


def _single(rng: np.random.Generator) -> Trace:
    return even(rng, records=1).trace()


def _bimodal(rng: np.random.Generator) -> Trace:
    kernel = even(rng)
    for lane in kernel.lanes.values():
        lane.lengths *= np.where(rng.random(len(lane.lengths)) < 0.2, 40, 1)
    return kernel.trace()


def _imbalanced(rng: np.random.Generator) -> Trace:
    kernel = even(rng)
    for key in kernel.lanes:
        kernel.lanes[key] = _lane(rng, int(rng.integers(5, 150)))
    return kernel.trace()


def _launches(rng: np.random.Generator) -> Trace:
    kernel = even(rng)
    at = int(rng.integers(5, 15))
    late = 1_000_000_000
    ends = max(int((lane.lengths[:at] + lane.pauses[:at]).sum()) for lane in kernel.lanes.values())
    for lane in kernel.lanes.values():
        lane.pauses[at] = late + ends - int((lane.lengths[:at] + lane.pauses[:at]).sum())
    return kernel.trace()


def _waves(rng: np.random.Generator) -> Trace:
    return _wave(rng, int(rng.integers(4, 12)), last=0)


def _last_wave(rng: np.random.Generator) -> Trace:
    return _wave(rng, int(rng.integers(6, 12)), last=2)


def _wave(rng: np.random.Generator, width: int, *, last: int) -> Trace:
    blocks = 3 * width + last
    kernel = even(rng, blocks=blocks, records=int(rng.integers(15, 40)))
    length = max(int((lane.lengths + lane.pauses).sum()) for lane in kernel.lanes.values())
    for (block, _), lane in kernel.lanes.items():
        lane.start += block // width * (length + 4 * _WORK)
    return kernel.trace()


def _microseconds(rng: np.random.Generator) -> Trace:
    return even(rng).trace(tick=1000)


def _warm_up(rng: np.random.Generator) -> Trace:
    kernel = even(rng)
    for lane in kernel.lanes.values():
        lane.lengths[0] = 60 * _WORK + int(rng.integers(0, 4 * _WORK))
    return kernel.trace()


def _lone_warm_up(rng: np.random.Generator) -> Trace:
    kernel = even(rng, records=40)
    length = max(int((lane.lengths + lane.pauses).sum()) for lane in kernel.lanes.values())
    first = next(iter(kernel.lanes))
    for key, lane in kernel.lanes.items():
        lane.start += 0 if key == first else 30 * length
    kernel.lanes[first] = _lane(rng, int(rng.integers(4, 10)))
    return kernel.trace()


def _every_second(rng: np.random.Generator) -> Trace:
    kernel = even(rng)
    for block, role in kernel.lanes:
        if block % 2:
            kernel.lanes[block, role] = _lane(rng, 0)
    return kernel.trace()


def _unused(rng: np.random.Generator) -> Trace:
    """One of the cores of a device has nothing to do, the others have more or less."""
    cores = int(rng.integers(6, 40))
    records = np.rint(30 * rng.lognormal(0, 0.6, cores)).astype(np.int64) + 1
    records[int(rng.integers(cores))] = 0
    kernel = Kernel({(0, f"core {number}"): _lane(rng, int(count)) for number, count in enumerate(records)})
    return kernel.trace()


def _half_speed(rng: np.random.Generator) -> Trace:
    kernel = even(rng)
    slow = int(rng.integers(0, 1 + max(block for block, _ in kernel.lanes)))
    for (block, _), lane in kernel.lanes.items():
        if block == slow:
            lane.lengths *= 2
            lane.pauses *= 2
    return kernel.trace()


def _queue(rng: np.random.Generator) -> Trace:
    """All lanes take the next item of one queue whenever they are free."""
    kernel = even(rng, records=1)
    keys = list(kernel.lanes)
    free, taken = np.zeros(len(keys)), [[] for _ in keys]
    for length in (_WORK * rng.lognormal(0, 1.0, len(keys) * int(rng.integers(15, 50)))).tolist():
        lane = int(np.argmin(free))
        taken[lane].append(int(length) + 1)
        free[lane] += length + _PAUSE
    for key, lengths in zip(keys, taken, strict=True):
        kernel.lanes[key] = Lane(0, np.array(lengths, np.int64), np.full(len(lengths), _PAUSE))
    return kernel.trace()


def _heavy_lengths(rng: np.random.Generator) -> Trace:
    kernel = even(rng)
    for lane in kernel.lanes.values():
        lane.lengths = np.rint(_WORK * (1 + rng.pareto(1.1, len(lane.lengths)))).astype(np.int64)
    return kernel.trace()


def _heavy_gaps(rng: np.random.Generator) -> Trace:
    kernel = even(rng)
    for lane in kernel.lanes.values():
        lane.pauses = np.rint(_PAUSE * (1 + rng.pareto(1.1, len(lane.pauses)))).astype(np.int64)
    return kernel.trace()


def _small_last_block(rng: np.random.Generator) -> Trace:
    kernel = even(rng)
    last = max(block for block, _ in kernel.lanes)
    for (block, role), lane in list(kernel.lanes.items()):
        if block == last:
            kernel.lanes[block, role] = _lane(rng, max(len(lane.lengths) // 3, 1), start=lane.start)
    return kernel.trace()


def _host_waits(rng: np.random.Generator) -> Trace:
    kernel = even(rng)
    length = max(int((lane.lengths + lane.pauses).sum()) for lane in kernel.lanes.values())
    begin = -50 * length
    kernel.host = [(begin + at * length, length // 8) for at in range(20)] + [(begin + 21 * length, 40 * length)]
    return kernel.trace()


#: All kinds by name.
KINDS: dict[str, Callable[[np.random.Generator], Trace]] = {
    "a wait of 1000 x the median that siblings share": _shared_wait,
    "a straggler of 30 x": _straggler,
    "very short captures": _short,
    "lanes of one slice": _single,
    "bimodal lengths": _bimodal,
    "imbalanced lanes": _imbalanced,
    "two launches 1 s apart": _launches,
    "waves": _waves,
    "a last wave of two blocks": _last_wave,
    "a clock of 1 us": _microseconds,
    "warm-up": _warm_up,
    "every second block unused": _every_second,
    "a block at half speed": _half_speed,
    "a work queue": _queue,
    "a host thread that waits long before and after": _host_waits,
    "a wait of 1000 x that only its lane sees": _lone_wait,
    "the same as the last record": _last_wait,
    "lengths of Pareto 1.1": _heavy_lengths,
    "gaps of Pareto 1.1": _heavy_gaps,
    "one lane warms up, the rest starts 30 spans later": _lone_warm_up,
    "an unused lane among uneven ones": _unused,
    "the last block has a third of the work": _small_last_block,
}
