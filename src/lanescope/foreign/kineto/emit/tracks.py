"""Groups and lanes: processes with three lanes a thread, devices with their streams."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.foreign.kineto.formats import layout
from lanescope.foreign.kineto.interpret.classes import is_on_device
from lanescope.trace import TraceBuilder
from lanescope.wire.trace_events import Place, TraceEvents

Int64 = npt.NDArray[np.int64]

#: What the name of a lane ends with, and the order of the lanes of one thread or stream.
_SUFFIXES = {
    layout.PYTHON: (" Python", 0),
    layout.ANNOTATION: (" annotations", 1),
    layout.OP: ("", 2),
    layout.DEVICE_ANNOTATION: (" annotations", 0),
    layout.WORK: ("", 1),
    layout.SYNC: (" sync", 2),
    layout.RANGE: (" other", 3),
    layout.OVERHEAD: ("", 3),
    layout.HOST_WAIT: (" waits", 3),
    layout.SPAN: ("", 3),
}
_LANES_EACH = 4
_LARGEST_SORT = 1 << 40


class Labels(NamedTuple):
    """What metadata says of a process or a thread; None where it says nothing."""

    name: str | None = None
    labels: str | None = None
    sort_index: int | None = None


@dataclass(slots=True)
class Names:
    """What metadata says, by process and by thread; the last of each counts.

    Attributes:
        processes: by process.
        threads: by place.
        repeated: metadata events that an identical or later one makes void.
        events: how many there are.
    """

    processes: dict[int | str | None, Labels] = field(default_factory=dict)
    threads: dict[Place, Labels] = field(default_factory=dict)
    repeated: int = 0
    events: int = 0


_FIELDS = {
    "process_name": ("processes", "name"),
    "process_labels": ("processes", "labels"),
    "process_sort_index": ("processes", "sort_index"),
    "thread_name": ("threads", "name"),
    "thread_sort_index": ("threads", "sort_index"),
}


def read_names(events: TraceEvents) -> Names:
    """Read the metadata events; of those that come tens of thousands of times only the last is looked at."""
    found = Names()
    rows = np.flatnonzero(events.of_phase("M"))
    found.events = len(rows)
    # By place and name: the last one.
    key = events.place[rows].astype(np.int64) * (len(events.names) + 1) + events.name[rows]
    _, back = np.unique(key[::-1], return_index=True)
    rows = np.sort(rows[len(rows) - 1 - back])
    found.repeated = found.events - len(rows)
    for row in rows.tolist():
        name = events.names[events.name[row]] if events.name[row] >= 0 else ""
        if name not in _FIELDS:
            continue
        table, attribute = _FIELDS[name]
        value: Any = _argument(events, row, attribute)
        if value is None:
            continue
        place = events.places[events.place[row]]
        if table == "processes":
            before = found.processes.get(place.process, Labels())
            found.processes[place.process] = before._replace(**{attribute: value})
        else:
            found.threads[place] = found.threads.get(place, Labels())._replace(**{attribute: value})
    return found


def _argument(events: TraceEvents, row: int, column: str) -> int | str | None:
    values = events.values[column]
    at = int(np.searchsorted(values.event, row))
    if at == len(values.event) or values.event[at] != row:
        return None
    number = int(values.value[at])
    return number if column == "sort_index" else events.texts[number]


class Tracks:
    """Makes groups and lanes when they are first needed.

    Args:
        builder: takes them.
        events: the events.
        names: what metadata says.
        host_clock, device_clock: clocks of the lanes.
    """

    def __init__(
        self, builder: TraceBuilder, events: TraceEvents, names: Names, host_clock: int, device_clock: int | None
    ) -> None:
        self._builder, self._events, self._names = builder, events, names
        self._clocks = host_clock, device_clock
        self._groups: dict[tuple[object, ...], int] = {}
        self.lanes: dict[tuple[int, int], int] = {}  # by place and class
        self._by_name: dict[tuple[int, str, int], int] = {}

    def lane(self, place: int, of: int, nesting: str) -> int:
        """Return the lane of a place and a class."""
        found = self.lanes.get((place, of))
        if found is None:
            found = self.lanes[place, of] = self._made(self._events.places[place], of, nesting)
        return found

    def table(self) -> Int64:
        """Return the lane by place times the number of classes, plus class; -1: there is none, int64."""
        found = np.full(len(self._events.places) * len(layout.CLASSES), -1, np.int64)
        for (place, of), track in self.lanes.items():
            found[place * len(layout.CLASSES) + of] = track
        return found

    def _made(self, place: Place, of: int, nesting: str) -> int:
        on_device = is_on_device(of)
        process = self._process_of(place) if of == layout.HOST_WAIT else place.process
        parent = self.group(process, on_device=on_device, of=of)
        labels = self._names.threads.get(place, Labels())
        suffix, rank = _SUFFIXES[of]
        name = _lane_name(place, labels, of, on_device=on_device) + suffix
        sort = labels.sort_index if labels.sort_index is not None else _number(place.thread)
        role = "stream" if on_device else "profiler" if of in (layout.SPAN, layout.OVERHEAD) else "host_thread"
        clock = self._clocks[1] if on_device and self._clocks[1] is not None else self._clocks[0]
        return self._builder.track(
            name,
            kind="lane",
            role=role,
            parent=parent,
            input_id=0,
            nesting=nesting,
            clock_id=clock,
            sort_key=_bounded(sort) * _LANES_EACH + rank,
        )

    def _process_of(self, place: Place) -> int | str | None:
        """Return the process of a thread; waits are recorded with the thread alone."""
        if place.process != layout.NO_PROCESS:
            return place.process
        known = {other.process for other in self._events.places if other.thread == place.thread and other != place}
        return known.pop() if len(known) == 1 else place.process

    def group(self, process: int | str | None, *, on_device: bool, of: int = layout.OP) -> int:
        """Return the group of a process or device."""
        is_profiler = of in (layout.SPAN, layout.OVERHEAD)
        key = (process, on_device, is_profiler)
        if key in self._groups:
            return self._groups[key]
        labels = self._names.processes.get(process, Labels())
        if on_device:
            name = labels.labels if labels.labels and labels.labels != "CPU" else f"device {_text(process)}"
        elif is_profiler:
            name = "overhead" if of == layout.OVERHEAD else str(process or "profiler")
        else:
            name = f"{labels.name or 'process'} {_text(process)}".strip()
        sort = labels.sort_index if labels.sort_index is not None else _number(process)
        self._groups[key] = made = self._builder.track(
            name,
            kind="group",
            role="device" if on_device else "profiler" if is_profiler else "process",
            input_id=0,
            sort_key=_bounded(sort),
        )
        return made

    def device_group(self, number: int) -> int | None:
        """Return the group of the rows of a device; None without such rows."""
        return self._groups.get((number, True, False))

    def counter(self, parent: int, name: str, unit: str) -> int:
        """Return a counter of a group."""
        key = (parent, name, -1)
        if key not in self._by_name:
            self._by_name[key] = self._builder.track(
                name, kind="counter", role="counter", parent=parent, input_id=0, unit=unit
            )
        return self._by_name[key]


def _lane_name(place: Place, labels: Labels, of: int, *, on_device: bool) -> str:
    thread = place.thread
    if on_device:
        number = thread
        if of == layout.SYNC and isinstance(thread, int):
            if thread in layout.NO_ID:
                return "device"
            number = thread - layout.SYNC_THREAD_OFFSET if thread >= layout.SYNC_THREAD_OFFSET else thread
        # Names of streams are their numbers, but for devices whose lanes have a purpose.
        if labels.name and not labels.name.startswith("stream") and of != layout.SYNC:
            return labels.name if str(number) in labels.name else f"{labels.name} {_text(number)}"
        # Until 2022 the thread is the text "stream 7".
        return number if isinstance(number, str) and number.startswith("stream") else f"stream {_text(number)}"
    if of == layout.SPAN or isinstance(thread, str):
        return _text(thread) or "profiler"
    if of == layout.OVERHEAD:
        return "overhead" if thread in (None, 0, -1) else f"overhead {thread}"
    if labels.name:
        return labels.name if _text(thread) in labels.name else f"{labels.name} {_text(thread)}"
    return f"thread {_text(thread)}"


def _text(part: int | str | None) -> str:
    return "" if part is None else str(part)


def _number(part: int | str | None) -> int:
    return part if isinstance(part, int) else _LARGEST_SORT


def _bounded(value: int) -> int:
    return max(-_LARGEST_SORT, min(value, _LARGEST_SORT))
