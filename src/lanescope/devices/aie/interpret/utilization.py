"""How busy ports of streams and channels of DMAs are: the share of cycles in which their event was recorded.

Time is cut into windows of one length for all lanes, a power of two of cycles that doubles as the capture grows, so
that the sums do not depend on how the dump was cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from lanescope.devices.aie.formats import events

if TYPE_CHECKING:
    from lanescope.devices.aie.interpret.derived_state import Labelled
    from lanescope.trace import TraceBuilder

I64 = npt.NDArray[np.int64]

_WINDOWS = 512
_FIRST_SHIFT = 4


class CounterTracks(Protocol):
    """The tracks of slots, and counters for them."""

    labelled: list[Labelled]

    def add_counter(self, lane: Labelled) -> int:
        """Return a new counter track for a lane of a slot."""
        ...


class Utilization:
    """Sums the asserted cycles of lanes by window.

    Args:
        builder: where to.
        tracks: the lanes.
        to_ts: from ticks to trace time.
    """

    def __init__(self, builder: TraceBuilder, tracks: CounterTracks, to_ts: Callable[[I64], I64]) -> None:
        self._builder = builder
        self._tracks = tracks
        self._to_ts = to_ts
        self._known = 0  # lanes that were looked at
        self._lanes: list[Labelled] = []
        self._row_of: I64 = np.full(1, -1, np.int64)  # by track; the last element represents all others
        self._shift = _FIRST_SHIFT
        self._busy: I64 = np.zeros((0, _WINDOWS), np.int64)

    @property
    def is_active(self) -> bool:
        """Whether there is a lane to sum up."""
        self._look()
        return bool(self._lanes)

    def take(self, track: I64, begin: I64, duration: I64) -> None:
        """Take slices: int64 [n] track, first tick and length."""
        self._look()
        row = np.take(self._row_of, track, mode="clip")
        rows = np.flatnonzero(row >= 0)
        if not len(rows):
            return
        row, begin = row[rows], begin[rows]
        end = begin + duration[rows]
        while int(end.max()) > _WINDOWS << self._shift:
            self._busy = np.pad(self._busy.reshape(len(self._busy), -1, 2).sum(axis=2), ((0, 0), (0, _WINDOWS // 2)))
            self._shift += 1
        shift, base = self._shift, row * _WINDOWS
        first, last = begin >> shift, (end - 1) >> shift
        busy, steps = self._busy.reshape(-1), np.zeros(self._busy.size + 1, np.int64)
        is_one = first == last
        np.add.at(busy, (base + first)[is_one], duration[rows][is_one])
        rows = np.flatnonzero(~is_one)
        if len(rows):
            first, last, base = first[rows], last[rows], base[rows]
            np.add.at(busy, base + first, (first + 1 << shift) - begin[rows])
            np.add.at(busy, base + last, end[rows] - (last << shift))
            np.add.at(steps, base + first + 1, 1)
            np.add.at(steps, base + last, -1)
            busy += np.cumsum(steps[:-1]) << shift

    def finish(self) -> None:
        """Append a counter for each lane that was ever asserted: a sample where its share changes, 0 at the end."""
        share = np.pad(self._busy * (100.0 / (1 << self._shift)), ((0, 0), (1, 1)))
        for row, lane in enumerate(self._lanes):
            changes = np.flatnonzero(share[row, 1:] != share[row, :-1])
            if not len(changes):
                continue
            at = changes << self._shift
            track = self._tracks.add_counter(lane)
            self._builder.append("counters", track_id=track, ts=self._to_ts(at), value=share[row, changes + 1])

    def _look(self) -> None:
        """Look at the lanes that are new."""
        new: Sequence[Labelled] = self._tracks.labelled[self._known :]
        self._known += len(new)
        found = [lane for lane in new if _is_flow(lane)]
        if not found:
            return
        size = max(len(self._row_of), max(lane.track for lane in found) + 2)
        self._row_of = np.pad(self._row_of, (0, size - len(self._row_of)), constant_values=-1)
        for lane in found:
            self._row_of[lane.track] = len(self._lanes)
            self._lanes.append(lane)
        self._busy = np.pad(self._busy, ((0, len(found)), (0, 0)))


def _is_flow(lane: Labelled) -> bool:
    """Return whether a lane is a level of a DMA or of a stream."""
    unit = lane.known.units.get(lane.place)
    name = "" if unit is None else lane.known.event_name(unit.module, unit.slots[lane.slot])
    return events.kind(name) == "level" and name.startswith(("DMA_", "PORT_"))
