"""Tracks: a group for each process, lanes for its threads, and what else holds its events."""

from __future__ import annotations

from collections import Counter

import numpy as np

from lanescope.foreign.chrome.formats.events import Int64
from lanescope.foreign.chrome.interpret.places import Named, Places
from lanescope.trace import TraceBuilder

#: Order of tracks below those that a file can put in order.
_AFTER = 1 << 62


class Tracks:
    """Makes the tracks that events need, in the order of the file.

    Args:
        builder: of the trace.
        places: processes and threads.
    """

    def __init__(self, builder: TraceBuilder, places: Places) -> None:
        self._builder, self._places = builder, places
        self._groups: dict[str, int] = {}
        self._made: dict[tuple[str, ...], int] = {}
        # Writers call threads alike that their viewer tells apart by number.
        self._alike = Counter((process, about.name) for (process, _), about in places.threads.items())
        self._alike_processes = Counter((about.name, about.labels) for about in places.processes.values())

    def threads(self, lanes: Int64) -> Int64:
        """Return the track of the thread of each event.

        Args:
            lanes: int64 [n], places of the events.
        """
        tracks = np.zeros(len(self._places.keys) + 1, np.int64)
        for place in np.flatnonzero(np.bincount(lanes)).tolist():
            tracks[place] = self.thread(*self._places.keys[place])
        return tracks[lanes]

    def thread(self, process: str, thread: str) -> int:
        """Return the lane of a thread."""
        about = self._places.threads.get((process, thread), Named())
        name = about.name if about.name is not None else f"thread {thread}" if thread else "events"
        if self._alike[process, about.name] > 1 and about.name is not None:
            name += f" ({thread})"
        return self._lane(process, ("thread", process, thread), name, "host_thread", "nested", about.sort_index)

    def instants_of(self, process: str) -> int:
        """Return the lane of the instants of a whole process."""
        return self._lane(process, ("instants", process), "process events", "host_thread", "free", _AFTER)

    def instants_of_all(self) -> int:
        """Return the lane of the instants of all processes."""
        if ("instants",) not in self._made:
            self._made["instants",] = self._builder.track(
                "global events", kind="lane", role="host_thread", input_id=0, nesting="free", sort_key=_AFTER
            )
        return self._made["instants",]

    def asynchronous(self, process: str, category: str) -> int:
        """Return the lane of the asynchronous slices of a category."""
        name = f"async {category}" if category else "async"
        return self._lane(process, ("async", process, category), name, "async", "free", _AFTER - 1)

    def counter(self, process: str, name: str) -> int:
        """Return the track of a series of a counter."""
        key = ("counter", process, name)
        if key not in self._made:
            self._made[key] = self._builder.track(
                name, kind="counter", role="counter", parent=self.group(process), input_id=0, sort_key=_AFTER - 2
            )
        return self._made[key]

    def group(self, process: str) -> int:
        """Return the group of a process."""
        if process not in self._groups:
            about = self._places.processes.get(process, Named())
            name = about.name if about.name is not None else f"process {process}" if process else "no process"
            if self._alike_processes[about.name, about.labels] > 1 and about.name is not None:
                name += f" ({process})"
            if about.labels:
                name += f" ({about.labels})"
            self._groups[process] = self._builder.track(
                name, kind="group", role="process", input_id=0, sort_key=about.sort_index
            )
        return self._groups[process]

    def _lane(self, process: str, key: tuple[str, ...], name: str, role: str, nesting: str, sort_key: int) -> int:
        if key not in self._made:
            self._made[key] = self._builder.track(
                name,
                kind="lane",
                role=role,
                parent=self.group(process),
                input_id=0,
                nesting=nesting,
                sort_key=sort_key,
            )
        return self._made[key]
