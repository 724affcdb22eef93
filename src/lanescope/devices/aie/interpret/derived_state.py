"""What is concluded from recordings while they are decoded: labels, kernel invocations, alignment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from lanescope.devices.aie.formats import events
from lanescope.devices.aie.interpret import alignment
from lanescope.devices.aie.interpret.growing import GrowingColumn
from lanescope.devices.aie.interpret.invocations import Invocations, Lane, watched
from lanescope.devices.aie.interpret.utilization import Utilization

if TYPE_CHECKING:
    from lanescope.devices.aie.config import Config, Place
    from lanescope.trace import TraceBuilder

I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]


class Labelled(NamedTuple):
    """A lane of a slot: its track, slot, configuration, module, column of the design and row."""

    track: int
    slot: int
    known: Config
    place: Place


class UnitTracks(Protocol):
    """The tracks of recordings: the tick at which each begins, and all lanes of slots."""

    begins: GrowingColumn
    labelled: list[Labelled]

    @property
    def groups(self) -> I64:
        """Group track of each recording."""
        ...

    def groups_of(self, segments: I64) -> I64:
        """Return the group tracks of recordings."""
        ...

    def slot_tracks(self, tag: U32) -> I64:
        """Return the tracks of slices from their tags."""
        ...

    def begins_of(self, segments: npt.NDArray[np.integer[Any]]) -> I64 | None:
        """Return the ticks at which recordings begin; None if all are 0."""
        ...

    def add_counter(self, lane: Labelled) -> int:
        """Return a new counter track for a lane of a slot."""
        ...

    def kernel_lane(self, number: int) -> int:
        """Return the track for the invocations of a group."""
        ...


class DerivedState:
    """Follows a decoder, and appends what it concludes.

    Args:
        builder: where to.
        tracks: the tracks of the recordings.
        input_id: the input.
        to_ts: from ticks to trace time.
    """

    def __init__(
        self,
        builder: TraceBuilder,
        tracks: UnitTracks,
        input_id: int,
        to_ts: Callable[[I64], I64],
    ) -> None:
        self._builder = builder
        self._tracks = tracks
        self._input = input_id
        self._watched: dict[tuple[int, Place], tuple[int, ...] | None] = {}  # by configuration and place
        self._invocations = Invocations(builder, to_ts, input_id)
        self._utilization = Utilization(builder, tracks, to_ts)

    def watched(self, known: Config, place: Place, mode: int) -> tuple[int, ...] | None:
        """Return the slots by which invocations of a unit are found, as ``invocations.watched``; None: they are not.

        Args:
            known: what is configured for it.
            place: module, column of the design and row.
            mode: trace mode.
        """
        if mode:
            return None
        key = id(known), place
        if key not in self._watched:
            self._watched[key] = watched(known, known.units.get(place))
        return self._watched[key]

    def add_recordings(self, segments: I64, groups: I64, slots: Iterable[tuple[int, ...]]) -> None:
        """Look for invocations in recordings.

        Args:
            segments: their numbers, rising, int64 [n].
            groups: number of the group of each, int64 [n].
            slots: what ``watched`` said of each.
        """
        tracks = self._tracks
        columns = segments, groups, tracks.groups_of(segments), tracks.begins.values[segments]
        rows = zip(*(column.tolist() for column in columns), slots, strict=True)
        for segment, group, track, begin, watching in rows:
            self._invocations.add_recording(segment, watching, Lane(tracks.kernel_lane(group), track, begin))

    @property
    def needs_ends(self) -> bool:
        """Whether anything is concluded from the ends of recordings."""
        return self._invocations.is_active

    def end_recording(self, segment: int, tick: int) -> None:
        """Note that a recording ended, and with which cycle."""
        self._invocations.end_recording(segment, tick)

    def add_gaps(self, gaps: Iterable[tuple[int, int]]) -> None:
        """Note gaps as ``Invocations.add_gaps`` does."""
        self._invocations.add_gaps(gaps)

    @property
    def needs_slices(self) -> bool:
        """Whether anything is concluded from slices: they need not be handed over else."""
        return self._invocations.is_active or self._utilization.is_active

    def take(self, begin: I64, duration: I64, tag: U32) -> None:
        """Take slices as ``Invocations.take`` does."""
        if self._invocations.is_active:
            self._invocations.take(begin, duration, tag)
        if self._utilization.is_active:
            begins = self._tracks.begins_of(tag >> 7)
            at = begin if begins is None else begin + begins
            self._utilization.take(self._tracks.slot_tracks(tag), at, duration)

    def settle(self) -> None:
        """Conclude what the slices so far allow, once those of all shards are taken."""
        self._invocations.settle()

    def finish(
        self,
        columns: Mapping[str, I64],
        units: Mapping[int, tuple[Config, Place]],
        *,
        has_stop: npt.NDArray[np.bool_],
        runs: tuple[I64, I64],
    ) -> None:
        """Append what takes all recordings; ``columns``: what the core knows of them; the others as ``alignment``."""
        self._invocations.finish()
        self._utilization.finish()
        self._append_labels()
        alignment.append(
            self._builder,
            units,
            self._tracks.groups,
            columns,
            runs=runs,
            has_stop=has_stop,
            input_id=self._input,
        )

    def _append_labels(self) -> None:
        labelled = self._tracks.labelled
        if not labelled:
            return
        watching, names, kinds, ports, has_event = [], [], [], [], []
        for _, slot, known, place in labelled:
            unit = known.units.get(place)
            number = unit.slots[slot] if unit is not None else None
            name = known.event_name(place[0], number) if number else ""
            selection = known.port(unit, number) if unit is not None and number else None
            watching.append(number or 0)
            has_event.append(number is not None)
            names.append(name if number != 0 else "NONE")
            kinds.append(events.kind(name))
            ports.append("" if selection is None else known.port_name(place[0], selection))
        self._builder.append(
            "aie_slots",
            track_id=np.array([lane.track for lane in labelled], np.int64),
            slot=np.array([lane.slot for lane in labelled]),
            event=np.array(watching),
            event_valid=np.array(has_event),
            event_name=names,
            kind=kinds,
            port=ports,
        )
