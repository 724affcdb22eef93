"""What has to be known of a whole file before its first row is made, found part by part.

A thread may get its name behind its last event, and the end of a slice may come long after its begin. Of complete
events, instants and samples nothing is kept but which lanes they need; starts and ends and events of flows are, as
columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.stat_tally import StatTally
from lanescope.foreign.chrome.formats import layout
from lanescope.foreign.chrome.formats.events import Events, FileText, Int64
from lanescope.foreign.chrome.interpret.counters import counters_of
from lanescope.foreign.chrome.interpret.places import Places

Mask = npt.NDArray[np.bool_]

_FLAG_STATS = {
    layout.ROUNDED: "chrome_rounded",
    layout.TEXT_TIME: "chrome_text_time",
    layout.REPEATED_KEY: "chrome_repeated_key",
    layout.TOO_DEEP: "chrome_deep_arguments",
    layout.HAS_STACK: "chrome_stacks",
    layout.HAS_THREAD_TIME: "chrome_thread_time",
}
_NEVER = np.iinfo(np.int64).min


class Survey:
    """Takes the events of a file part by part.

    Args:
        file: its text.
        stats: where faults are counted.

    Attributes:
        events: how many there are.
        latest: their latest time, ns.
        places: processes and threads.
        sizes: bytes of all events that are drawn, and of those that are not.
        threads: places whose threads have complete events, in the order of the file.
        instants: of threads, and of processes, places in the order of the file; of all: whether there are some.
        counters: process, name and what tells counters of one name apart, in the order of the file.
        is_whole: whether all events are kept.
    """

    def __init__(self, file: FileText, stats: StatTally) -> None:
        self.places = Places()
        self.events = 0
        self.latest = 0
        self.sizes = [0, 0]
        self.threads: set[int] = set()
        self.instants: tuple[set[int], set[int]] = set(), set()
        self.has_global_instants = False
        self.counters: dict[tuple[str, str], None] = {}
        self.is_whole = False
        self._file, self._stats = file, stats
        self._first: int | None = None
        self._last = np.empty(0, np.int64)
        self._kept: list[Events] = []
        self._is_read = np.zeros(256, np.bool_)
        self._is_read[list(layout.READ)] = True
        self._needs_id = np.zeros(256, np.bool_)
        self._needs_id[list(layout.WITH_ID)] = True

    @property
    def first(self) -> int:
        """The first time of anything that is drawn, ns; 0 if nothing is."""
        return self._first or 0

    def add(self, events: Events, *, is_whole: bool = False) -> None:
        """Look at the next events; ``is_whole``: they are all, and are kept."""
        self.is_whole = is_whole
        self.places.add(events, self._file)
        self._see_first(events)
        self._see_lanes(events)
        self._count(events)
        self.events += len(events)
        self.latest = max(self.latest, int(events.ts.max(initial=0)))
        if is_whole:
            self._kept = [events]
            return
        self._see_last(events)
        keep = np.zeros(256, np.bool_)
        keep[[layout.BEGIN, layout.END, *layout.WITH_ID]] = True
        is_kept = keep[events.phase]
        is_kept[events.bind_row] = True
        self._kept.append(events.taken(np.flatnonzero(is_kept)))

    def kept(self, last: Events) -> Events:
        """Hand over the events that are kept; ``last``: of the end of the file."""
        kept, self._kept = self._kept, []
        return kept[0] if self.is_whole else Events.joined(kept, last)

    def last_times(self, events: Events) -> Int64:
        """Return the last time at which anything is known of each place, int64 [places].

        Args:
            events: all of the file where all are kept.
        """
        if self.is_whole:
            self._see_last(events)
        return self._last

    def _see_last(self, events: Events) -> None:
        more = np.full(len(self.places.keys) - len(self._last), _NEVER)
        self._last = np.concatenate([self._last, more])
        timed = np.flatnonzero(events.flags & layout.HAS_TIME)
        if not len(timed):
            return
        place = self.places.place[events.lane[timed]]
        # Narrow numbers are sorted by their digits.
        order = np.argsort(place.astype(np.int16) if len(self.places.keys) < 1 << 15 else place, kind="stable")
        place = place[order]
        first = np.flatnonzero(np.diff(place, prepend=-1))
        last = np.maximum.reduceat(events.ts[timed[order]], first)
        self._last[place[first]] = np.maximum(self._last[place[first]], last)

    def _see_first(self, events: Events) -> None:
        if events.has_times and set(np.flatnonzero(events.by_phase).tolist()) <= {*layout.READ}:
            rows = events.of_phase(layout.METADATA)
            timed = np.delete(events.ts, rows) if len(rows) else events.ts
        else:
            rows = events.of_phase(*(phase for phase in layout.READ if phase != layout.METADATA))
            timed = events.ts[rows[(events.flags[rows] & layout.HAS_TIME) != 0]]
        if len(timed):
            first = int(timed.min())
            self._first = first if self._first is None else min(first, self._first)

    def _see_lanes(self, events: Events) -> None:
        """Take note of the lanes of complete events and instants, and of counters."""

        def places_of(rows: Int64) -> set[int]:
            found = np.flatnonzero(np.bincount(self.places.place[events.lane[rows]])) if len(rows) else rows
            return set(found.tolist())

        self.threads |= places_of(with_time(events, events.of_phase(layout.COMPLETE)))
        rows = with_time(events, events.of_phase(*layout.INSTANTS))
        of_all, of_process = scopes(events, rows)
        of_threads, of_processes = self.instants
        of_threads |= places_of(rows[~(of_all | of_process)])
        of_processes |= places_of(rows[of_process])
        self.has_global_instants |= bool(of_all.any())
        self.counters.update(dict.fromkeys(counters_of(events, self.places)[1]))

    def _count(self, events: Events) -> None:
        """Count what is not drawn and what is unusual.

        An event of a kind that is drawn, but without a readable time or the id that it needs, is not;
        ``chrome_missing_time`` and ``chrome_missing_id`` count those.
        """
        stats, by_phase = self._stats, events.by_phase
        counted = {0, *layout.READ}
        for stat, phases in layout.NOT_READ.items():
            counted |= set(phases)
            self._count_phases(events, stat, phases)
        self._count_phases(events, "chrome_not_an_event", (0,))
        unknown = tuple(phase for phase in np.flatnonzero(by_phase).tolist() if phase not in counted)
        self._count_phases(events, "chrome_unknown_phase", unknown)
        if len(events) and int(np.bitwise_or.reduce(events.flags)) & sum(_FLAG_STATS):
            for bit, stat in _FLAG_STATS.items():
                stats.add_rows(stat, (events.flags & bit) != 0, offset=events.offset)
        size = int(events.size.sum(dtype=np.int64))
        present = set(np.flatnonzero(by_phase).tolist())
        if events.has_times and present <= {*layout.READ} and not present & {*layout.WITH_ID}:
            self.sizes[0] += size
            return
        has_time = (events.flags & layout.HAS_TIME) != 0
        has_id = (events.flags & layout.HAS_ID) != 0
        is_read = self._is_read[events.phase]
        is_timed = has_time | (events.phase == layout.METADATA)
        stats.add_rows("chrome_missing_time", is_read & ~is_timed, offset=events.offset)
        drawn = is_read & is_timed & (has_id | ~self._needs_id[events.phase])
        content = int(events.size[drawn].sum())
        self.sizes[0] += content
        self.sizes[1] += size - content

    def _count_phases(self, events: Events, stat: str, phases: tuple[int, ...]) -> None:
        count = int(events.by_phase[list(phases)].sum()) if phases else 0
        if count:
            self._stats.add(stat, count, offset=int(events.offset[events.of_phase(*phases)[0]]))


def with_time(events: Events, rows: Int64) -> Int64:
    """Return the rows of events that have a time, int64 [n]."""
    if events.has_times:
        return rows
    timed: Int64 = rows[(events.flags[rows] & layout.HAS_TIME) != 0]
    return timed


def scopes(events: Events, rows: Int64) -> tuple[Any, Any]:
    """Return which instants are of all processes, and which of a whole one, bool [n]."""
    flags = events.flags[rows]
    return (flags & layout.GLOBAL_SCOPE) != 0, (flags & layout.PROCESS_SCOPE) != 0
