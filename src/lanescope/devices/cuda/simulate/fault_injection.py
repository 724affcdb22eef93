"""What may go wrong with lanes of the simulated kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.cuda.formats.encode import strided
from lanescope.devices.cuda.formats.layout import BEGIN, END
from lanescope.devices.cuda.simulate.sim_kernel import DRAIN, I64, PREFETCH, Entry, Kernel, Random, Setup
from lanescope.errors import UsageError

#: How far a second writer, or a clock that steps back, is behind: less than a decoder takes for a wrap.
_BEHIND = 100_000
#: A further launch begins so much later.
_RERUN = 20_000
#: Records that a hole takes.
_HOLE = 3

#: What can go wrong with a lane, by its option. Each has a key of the truth; no lane suffers two of them.
FAULTS = (
    "unfinished",
    "no_finalize",
    "two_writers",
    "clock_step",
    "holes",
    "corrupt",
    "crossing",
    "stray_ends",
    "reruns",
)


@dataclass
class FaultyLane:
    """A lane that something happens to.

    Attributes:
        number: the lane.
        fault: what, one of ``FAULTS``.
        entries: its records as they are stored, in write order.
        at: position of the fault.
        note: what the truth says about it, besides block and group.
    """

    number: int
    fault: str
    entries: list[Entry]
    at: int = 0
    note: list[int] = field(default_factory=list)

    def corrupt_words(self, words: npt.NDArray[np.uint64], setup: Setup, truth: dict[str, Any]) -> None:
        """Spoil words of the buffer, and tell the truth about the lane."""
        first = 1 + self.number + self.at * setup.stride
        # A fault in records that had no room never reached the buffer.
        if self.fault not in ("holes", "corrupt"):
            truth[self.fault].append([*divmod(self.number, setup.groups), *self.note])
        elif first + _HOLE * setup.stride < len(words):
            truth[self.fault].append([*divmod(self.number, setup.groups), *self.note])
            if self.fault == "holes":
                words[first : first + _HOLE * setup.stride : setup.stride] = 0
            else:
                words[first] ^= np.uint64(1 << 12)


class Faults:
    """Chooses lanes and spoils their records."""

    def __init__(self, options: Mapping[str, Any], seed: int) -> None:
        self._counts = {fault: options[fault] for fault in FAULTS}
        self._tick: int = options["tick"]
        # A stream of its own: what goes wrong does not change what the kernel does.
        self._random = Random(seed + (1 << 64))

    def take(self, kernel: Kernel) -> list[FaultyLane]:
        """Return the lanes that something happens to."""
        wanted = [fault for fault, count in self._counts.items() for _ in range(count)]
        if len(wanted) > kernel.setup.lanes:
            raise UsageError(
                f"too many faults: {len(wanted)} for {kernel.setup.lanes} lanes", hint="simulate more blocks"
            )
        lanes = self._random.shuffled(kernel.setup.lanes)[: len(wanted)]
        return [
            getattr(self, f"_{fault}")(FaultyLane(n, fault, kernel.lane(n)))
            for fault, n in zip(wanted, lanes, strict=True)
        ]

    def _ticks(self, ns: int) -> int:
        """Return ``ns`` in whole steps of the clock, rounded up."""
        return -(-ns // self._tick) * self._tick

    def _choose(self, lane: FaultyLane, *, kind: int | None = None, margin: int = 1) -> int:
        """Return the position of a record, of some kind if given, not at the very end of the lane."""
        places = [i for i, entry in enumerate(lane.entries[:-margin]) if kind is None or entry.kind == kind]
        return places[self._random.randrange(len(places))]

    def _unfinished(self, lane: FaultyLane) -> FaultyLane:
        lane.entries = lane.entries[: self._choose(lane, kind=BEGIN) + 1]
        return lane

    def _no_finalize(self, lane: FaultyLane) -> FaultyLane:
        lane.entries = lane.entries[:-1]
        return lane

    def _two_writers(self, lane: FaultyLane) -> FaultyLane:
        """Let a second thread, some time behind, win half of the slots, and for sure those of records 1 and 3."""
        behind = self._ticks(_BEHIND)
        for at, entry in enumerate(lane.entries):
            if at in (1, 3) or (at > 3 and self._random.randrange(2)):
                lane.entries[at] = replace(entry, time=entry.time - behind)
        return lane

    def _clock_step(self, lane: FaultyLane) -> FaultyLane:
        lane.at = 1 + self._choose(lane)
        step = lane.entries[lane.at].time - lane.entries[lane.at - 1].time + self._ticks(1)
        lane.entries[lane.at :] = [replace(entry, time=entry.time - step) for entry in lane.entries[lane.at :]]
        lane.note = [lane.at, step]
        return lane

    def _holes(self, lane: FaultyLane) -> FaultyLane:
        lane.at = self._choose(lane, margin=_HOLE + 1)
        lane.note = [lane.at, _HOLE]
        return lane

    def _corrupt(self, lane: FaultyLane) -> FaultyLane:
        lane.at = self._choose(lane, margin=_HOLE + 1)
        lane.note = [lane.at]
        return lane

    def _crossing(self, lane: FaultyLane) -> FaultyLane:
        """Let a prefetch begin inside a region and end behind it."""
        leaves = [
            i
            for i, (one, two) in enumerate(zip(lane.entries, lane.entries[1:], strict=False))
            if one.kind == BEGIN and two.kind == END
        ]
        at = leaves[self._random.randrange(len(leaves))]
        begin, end = lane.entries[at], lane.entries[at + 1]
        region = len(lane.entries)
        lane.entries.insert(at + 2, Entry(PREFETCH, END, end.time, region))
        lane.entries.insert(at + 1, Entry(PREFETCH, BEGIN, begin.time, region))
        lane.note = [at]
        return lane

    def _stray_ends(self, lane: FaultyLane) -> FaultyLane:
        lane.at = 1 + self._choose(lane)
        time = lane.entries[lane.at - 1].time
        lane.entries.insert(lane.at, Entry(DRAIN, END, time, -1))
        lane.note = [DRAIN, time]
        return lane

    def _reruns(self, lane: FaultyLane) -> FaultyLane:
        count, last = len(lane.entries), lane.entries[-1].time
        shift = last - lane.entries[0].time + self._ticks(_RERUN)
        lane.entries += [replace(entry, time=entry.time + shift, region=entry.region + count) for entry in lane.entries]
        lane.note = [count]
        return lane


def joined(index: I64, records: strided.Records, lane: FaultyLane) -> tuple[I64, strided.Records]:
    """Add the records of one lane."""
    entries = lane.entries
    columns = [[lane.number] * len(entries)]
    columns += [[getattr(entry, name) for entry in entries] for name in ("event", "kind", "time")]
    old = (records.lane, records.event, records.kind, records.time)
    joined = [np.concatenate([a, np.array(b, np.int64)]) for a, b in zip(old, columns, strict=True)]
    return np.concatenate([index, np.arange(len(entries))]), strided.Records(*joined)
