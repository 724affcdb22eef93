"""What has to be known of a whole file before its first row is made, found part by part.

What a row is may be known from any place of the file, and device work is far from its call. Of most events nothing is
kept; calls with a correlation, device work, ends of flows between forward and backward, metadata and rows of the
profiler itself are, as columns.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.foreign.kineto.emit.counters import Counters
from lanescope.foreign.kineto.emit.facts import Tally
from lanescope.foreign.kineto.emit.rows import Rows, instant_lanes, lanes_of, place_slices
from lanescope.foreign.kineto.emit.tracks import Tracks
from lanescope.foreign.kineto.formats import layout
from lanescope.foreign.kineto.interpret.classes import Classes, classify, device_places
from lanescope.foreign.kineto.interpret.nesting import STRIDE, UNKNOWN, Nesting
from lanescope.trace.column import look_up
from lanescope.wire.trace_events import TraceEvents

Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_CLASSES = len(layout.CLASSES)
#: Arguments of the events that are kept.
_KEPT = ("correlation", "name", "labels", "sort_index")


class Survey:
    """Takes the events of a file part by part.

    Attributes:
        events: how many there are.
        slices: how many of them are complete and have a time.
        is_whole: whether all events are kept.
        has_work: whether a device has rows.
        counters: the counters.
        tally: counts of what is odd.
    """

    def __init__(self) -> None:
        self.slices = 0
        self.events = 0
        self.is_whole = False
        self.has_work = False
        self.counters = Counters()
        self.tally = Tally()
        self._first: int | None = None
        self._nesting = Nesting()
        self._free: set[int] = set()
        self._instants: dict[int, None] = {}  # lanes, in the order of the file
        self._devices: list[Mask] = []
        self._kept: list[TraceEvents] = []
        self._slice_of: list[Int64] = []
        self._classes: Classes | None = None

    @property
    def first(self) -> int:
        """The earliest time in the file, ns; 0 without one."""
        return self._first or 0

    def add(self, events: TraceEvents, *, is_whole: bool = False) -> None:
        """Look at the next events; ``is_whole``: they are all, and are kept."""
        classes = classify(events)
        timed = events.has_ts & ~events.of_phase("M")
        if timed.any():
            first = int(events.ts.min(where=timed, initial=np.iinfo(np.int64).max))
            self._first = first if self._first is None else min(first, self._first)
        self._devices.append(device_places(events, classes))
        is_slice = events.of_phase("X") & events.has_ts
        lane = _lanes(events, classes, is_slice)
        self._nesting.add(lane, events.ts, events.dur)
        if classes.is_free.any():
            self._free.update(distinct(lane[classes.is_free & is_slice]).tolist())
        self._instants.update(dict.fromkeys(instant_lanes(events, classes)[1].tolist()))
        self.has_work |= bool((classes.is_work & is_slice).any())
        self.counters.see(events)
        self.tally.add(events, classes)
        self._keep(events, classes, is_slice, is_whole=is_whole)
        self.slices += int(np.count_nonzero(is_slice))
        self.events += len(events)

    def _keep(self, events: TraceEvents, classes: Classes, is_slice: Mask, *, is_whole: bool) -> None:
        if is_whole:
            self.is_whole, self._kept, self._classes = True, [events], classes
            return
        is_row = events.of_phase("X")
        keep = events.of_phase("M") | (classes.is_work & is_row) | ((classes.of == layout.SPAN) & is_slice)
        calls = events.values["correlation"].event
        keep[calls[classes.is_runtime[calls]]] |= is_row[calls[classes.is_runtime[calls]]]
        backward = np.array([*(category in layout.BACKWARD_FLOWS for category in events.categories), False], np.bool_)
        keep |= look_up(backward, events.category) & (events.of_phase("s") | events.of_phase("f"))
        ends = [code for code, name in enumerate(events.names) if name == layout.RECORD_END]
        keep |= np.isin(events.name, ends)
        rows = np.flatnonzero(keep)
        self._kept.append(events.taken(rows, _KEPT))
        slice_of = np.where(is_slice, self.slices + np.cumsum(is_slice) - 1, -1)
        self._slice_of.append(slice_of[rows])

    # --- after all parts ----------------------------------------------------------------------------------------

    def kept(self) -> TraceEvents:
        """Hand over the events that are kept."""
        events = TraceEvents.joined(self._kept)
        self._kept = []
        return events

    def classes(self, kept: TraceEvents, devices: Mask) -> Classes:
        """Return what the events that are kept are; ``devices`` as ``device_places`` returns them."""
        known = self._classes
        return classify(kept, devices) if known is None or known.is_unknown.any() else known

    def rows(self, kept: TraceEvents, classes: Classes, tracks: Tracks) -> Rows:
        """Hand over the rows of the events that are kept."""
        ts = kept.ts - self.first
        if self.is_whole:
            return place_slices(kept, classes, tracks, ts, 0)
        slice_of, self._slice_of = np.concatenate(self._slice_of), []
        slices = np.flatnonzero(slice_of >= 0)
        return Rows(ts, slices, slice_of, lanes_of(kept, classes, tracks, slices))

    def device_places(self, count: int) -> Mask:
        """Return the places with device work, and those that metadata calls a GPU, bool [count]."""
        found = np.zeros(count, np.bool_)
        for part in self._devices:
            found[: len(part)] |= part
        return found

    def lanes(self, devices: Mask) -> dict[tuple[int, int], str]:
        """Return the nesting of each lane of slices by place and class, in order; asked once.

        A lane has the strictest nesting that its rows keep: of device work none overlap, of others they are a stack.

        Args:
            devices: as ``device_places`` returns them.
        """
        rows_of = np.where(devices, layout.RANGE, layout.OP).tolist()
        own = {place * STRIDE + UNKNOWN: place * STRIDE + of for place, of in enumerate(rows_of)}
        found = {}
        for lane, is_clash in self._nesting.result(own).items():
            place, of = divmod(lane, STRIDE)
            strict = "disjoint" if of == layout.WORK else "nested"
            found[place, of] = "free" if is_clash or lane in self._free else strict
        return found

    def instants(self) -> list[tuple[int, int]]:
        """Return place and class of each lane of instants, in the order of the file."""
        return [divmod(lane, _CLASSES) for lane in self._instants]


def _lanes(events: TraceEvents, classes: Classes, is_slice: Mask) -> npt.NDArray[np.int32]:
    """Return the lane of each slice, -1 for other events, int32 [n]."""
    of = np.where(classes.is_unknown, np.int8(UNKNOWN), classes.of) if classes.is_unknown.any() else classes.of
    lane: npt.NDArray[np.int32] = events.place * np.int32(STRIDE)
    lane += of
    lane[~is_slice] = -1
    return lane
