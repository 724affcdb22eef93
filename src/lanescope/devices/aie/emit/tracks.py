"""Groups of recordings and lanes of their slots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.aie import config
from lanescope.devices.aie.formats import events
from lanescope.devices.aie.formats.events import MODULES
from lanescope.devices.aie.formats.layout import FLOW_KINDS, HEADER, MODES, fits_row, is_unset, module_of
from lanescope.devices.aie.interpret.derived_state import Labelled
from lanescope.devices.aie.interpret.growing import GrowingColumn
from lanescope.devices.aie.interpret.notes import EXECUTION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lanescope.devices.aie.config import Config, Place
    from lanescope.trace import TraceBuilder

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
U32 = npt.NDArray[np.uint32]

#: Invocations stand above the lanes of slots, counters and then Start and Stop below them.
_KERNEL_SORT_KEY, _COUNTER_SORT_KEY, _TRACE_SORT_KEY = -1, 1 << 9, 1 << 10


class Lanes:
    """Tracks and names by lane number: recording * 8 + slot.

    Attributes:
        recordings: those that have lanes here.
    """

    def __init__(self) -> None:
        self.track: I64 = np.full(512, -1, np.int64)
        self.name: I32 = np.zeros(512, np.int32)
        self.category: I32 = np.zeros(512, np.int32)
        self.recordings = 0

    def extend(self, groups: Sequence[_Group]) -> None:
        """Add the lanes of further recordings; arrays that slices already refer to are left as they are."""
        first = config.SLOTS * self.recordings
        self.recordings += len(groups)
        end = config.SLOTS * self.recordings
        while end > len(self.track):
            self.track = np.concatenate([self.track, np.full_like(self.track, -1)])
            self.name = np.concatenate([self.name, np.zeros_like(self.name)])
            self.category = np.concatenate([self.category, np.zeros_like(self.category)])
        self.track[first:end] = np.concatenate([group.lanes for group in groups])
        self.name[first:end] = np.concatenate([group.names for group in groups])
        self.category[first:end] = np.repeat([group.category for group in groups], config.SLOTS)


class _Group:
    """The tracks of one unit, which its recordings share.

    Attributes:
        track: group track.
        trace: track of the lane ``trace``.
        category: code of its module.
        kernel: track of the lane ``kernel``; -1: there is none.
        lanes: tracks of slots, int64 [8]; -1: there is none.
        names: codes of their names, int32 [8].
        slots: labels of the slots.
        known: the configuration.
        place: module, column of the design and row.
        drawn: bits of the slots that have a lane.
    """

    __slots__ = ("category", "drawn", "kernel", "known", "lanes", "names", "place", "slots", "trace", "track")

    def __init__(self, track: int, known: Config, place: Place) -> None:
        self.track = track
        self.trace = self.kernel = -1
        self.category = self.drawn = 0
        self.lanes = np.full(config.SLOTS, -1, np.int64)
        self.names = np.zeros(config.SLOTS, np.int32)
        module, col, row = place
        self.slots = known.slot_names(module, col, row) if module in MODULES else ("",) * config.SLOTS
        self.known = known
        self.place = place


class TileTracks:
    """The tracks of a dump, made as its recordings come.

    Recordings of one unit that follow each other in time share its tracks. If the configuration has core and memory of
    any tile, or without one the dump, the units of each tile are in a group. In a dump of several designs each has a
    group of its own above.

    Args:
        builder: where tracks, names and stats go.
        column_shift: column of a packet minus that of the design.
        input_id: the input.
        clock_id: the clock.
        has_shared_tiles: whether core and memory of any tile recorded, as far as that is known.

    Attributes:
        groups: group track of each recording.
        traces: track of the lane ``trace`` of each recording.
        modes: trace mode of each recording.
        begins: tick at which each recording begins.
        labelled: the lanes of slots.
    """

    def __init__(
        self, builder: TraceBuilder, column_shift: int, *, input_id: int, clock_id: int, has_shared_tiles: bool
    ) -> None:
        self._builder = builder
        self._column_shift = column_shift
        self._input = input_id
        self._clock = clock_id
        self._has_shared_tiles = has_shared_tiles
        self._lanes = Lanes()
        self.groups, self.traces, self.modes, self.begins = (GrowingColumn() for _ in range(4))
        self.labelled: list[Labelled] = []
        self._members: list[_Group] = []
        self._units: dict[tuple[str, int, int, int], _Group] = {}
        self._designs: dict[str, int] = {}
        self._tiles: dict[tuple[str, int, int], int] = {}
        self._has_tiles: dict[int, bool] = {}  # of a configuration
        self._places: dict[int, Place] = {}
        self._names: dict[tuple[str, str], int] = {}  # of tiles in a design, and the header that has each
        self._ids: dict[tuple[str, int], set[Place]] = {}  # of a design, and the units that have each

    def place_of(self, packet_header: int) -> Place:
        """Return module, column of the design and row of the unit with a header."""
        place = self._places.get(packet_header)
        if place is None:
            header = HEADER.decode(packet_header)
            place = module_of(header), header["column"] - self._column_shift, header["row"]
            self._places[packet_header] = place
        return place

    def add_segment(
        self, packet_header: int, mode: int, known: Config, begin: int, *, design: str | None, own: int = 0
    ) -> Place:
        """Find or make the tracks of a recording, with lanes for the slots that are known to watch something.

        Args:
            packet_header: of its packets.
            mode: trace mode.
            known: the configuration that holds for it.
            begin: tick at which it begins.
            design: the design that ran, None if the dump has only one.
            own: not 0: it shares no tracks, and has this number.

        Returns:
            Module, column of the design and row.
        """
        key = design or "", packet_header, own, int(mode == EXECUTION)
        group = self._units.get(key)
        if group is None:
            group = self._units[key] = self._make(packet_header, mode, known, design, own)
        self.groups.append(group.track)
        self.traces.append(group.trace)
        self.modes.append(mode)
        self.begins.append(begin)
        self._members.append(group)
        return group.place

    @property
    def lanes(self) -> Lanes:
        """Tracks and names by lane number, of the recordings so far."""
        if self._lanes.recordings < len(self._members):
            self._lanes.extend(self._members[self._lanes.recordings :])
        return self._lanes

    def _make(self, packet_header: int, mode: int, known: Config, design: str | None, own: int) -> _Group:
        header = HEADER.decode(packet_header)
        place = module, col, row = self.place_of(packet_header)
        name = f"{module} ({col}, {row})"
        if self._names.setdefault((design or "", name), packet_header) != packet_header:
            name += f" id {header['id']}"
        if own:
            name += f" #{own}"
        elif (design or "", packet_header, own, int(mode != EXECUTION)) in self._units:
            name += f" {MODES[mode]}"
        track = self._builder.track(
            name,
            kind="group",
            role="tile",
            parent=self._above(place, known, design, header),
            input_id=self._input,
            clock_id=self._clock,
            sort_key=_place_key(header) | header["type"] << 32 | header["id"] << 24 | own,
        )
        group = _Group(track, known, place)
        group.category = self._builder.categories.code(module)
        group.trace = self.add_track("trace", "trace", track, _TRACE_SORT_KEY)
        if mode == EXECUTION:
            group.lanes[: len(FLOW_KINDS)] = self.add_track("flow", "flow", track, 0)
            group.drawn = (1 << len(FLOW_KINDS)) - 1
            group.names[: len(FLOW_KINDS)] = self._builder.names.codes(kind.replace("_", " ") for kind in FLOW_KINDS)
        else:
            for slot, watched in enumerate(group.slots):
                if watched:
                    self._make_lane(group, slot)
        self._judge(group, header, design or "")
        return group

    def _above(self, place: Place, known: Config, design: str | None, header: Mapping[str, int]) -> int | None:
        """Return the group of a unit's tile, that of its design, or None: it stands at the top."""
        _, col, row = place
        above = None if design is None else self.design(design)
        if id(known) not in self._has_tiles:
            self._has_tiles[id(known)] = (
                any(("mem", *at) in known.places for module, *at in known.places if module == "core")
                if known.places
                else self._has_shared_tiles
            )
        if not self._has_tiles[id(known)]:
            return above
        key = design or "", col, row
        if key not in self._tiles:
            self._tiles[key] = self._builder.track(
                f"tile ({col}, {row})",
                kind="group",
                role="array tile",
                parent=above,
                input_id=self._input,
                clock_id=self._clock,
                sort_key=_place_key(header),
            )
        return self._tiles[key]

    def _judge(self, group: _Group, header: Mapping[str, int], design: str) -> None:
        """Count what a unit and its packet header contradict."""
        known, place = group.known, group.place
        unit = known.units.get(place)
        found = []
        if unit is None:
            if place in known.contradictions:
                found.append("aie_contradictory_config")
            elif known.places:
                found.append("aie_unknown_tile")
        elif not is_unset(header) and unit.packet_id not in (None, header["id"]):
            found.append("aie_packet_id")
        if not fits_row(header):
            found.append("aie_packet_type")
        sharing = self._ids.setdefault((design, header["id"]), set())
        if not is_unset(header) and sharing - {place}:
            found.append("aie_shared_packet_id")
        sharing.add(place)
        for name in found:
            self._builder.add_stat(name, track_id=group.track, input_id=self._input)

    def design(self, name: str) -> int:
        """Return the group track of a design."""
        if name not in self._designs:
            self._designs[name] = self._builder.track(
                name,
                kind="group",
                role="design",
                input_id=self._input,
                clock_id=self._clock,
                sort_key=len(self._designs),
            )
        return self._designs[name]

    @property
    def recorded(self) -> list[Place]:
        """Module, column of the design and row of each recording."""
        return [group.place for group in self._members]

    def lacks(self, segment: int, slots: int) -> bool:
        """Return whether any of these slots, given as bits, has no lane in the unit of a recording."""
        return slots & ~self._members[segment].drawn != 0

    def add_lane(self, segment: int, slot: int) -> None:
        """Make the lane of a slot, unless it exists."""
        lane, group, lanes = config.SLOTS * segment + slot, self._members[segment], self.lanes
        if lanes.track[lane] >= 0:
            return
        if group.lanes[slot] < 0:
            self._make_lane(group, slot)
        lanes.track[lane], lanes.name[lane] = group.lanes[slot], group.names[slot]

    def _make_lane(self, group: _Group, slot: int) -> None:
        slots = group.slots
        name = slots[slot] or f"slot {slot}"
        if slots[slot] in slots[:slot]:
            name += f" (slot {slot})" if slots[slot] else ""
        unit = group.known.units.get(group.place)
        event = "" if unit is None else group.known.event_name(unit.module, unit.slots[slot])
        order = events.rank(event) * config.SLOTS + slot
        group.lanes[slot] = track = self.add_track(name, "slot", group.track, order)
        group.names[slot] = self._builder.names.code(name)
        group.drawn |= 1 << slot
        self.labelled.append(Labelled(track, slot, group.known, group.place))

    def slot_tracks(self, tag: U32) -> I64:
        """Return the tracks of slices from their tags, int64 [n]."""
        tracks: I64 = self.lanes.track[tag >> 7 << 3 | tag & 7]
        return tracks

    def add_counter(self, lane: Labelled) -> int:
        """Return a new counter for the share of time in which a lane's event is asserted; it stands below the lanes."""
        group = next(group for group in self._units.values() if lane.track in group.lanes)
        return self._builder.track(
            f"{group.slots[lane.slot]} %",
            kind="counter",
            role="utilization",
            parent=group.track,
            input_id=self._input,
            unit="%",
            sort_key=_COUNTER_SORT_KEY + lane.slot,
        )

    def begins_of(self, segments: npt.NDArray[np.integer[Any]] | None) -> I64 | None:
        """Return the ticks at which these recordings begin, all of them for None; None if all of them are 0."""
        begins = self.begins.values if segments is None else self.begins.values[segments]
        return begins if begins.any() else None

    def kernel_lane(self, segment: int) -> int:
        """Return the track of the lane of invocations of a recording; it stands above those of slots."""
        group = self._members[segment]
        if group.kernel < 0:
            group.kernel = self.add_track("kernel", "kernel", group.track, _KERNEL_SORT_KEY)
        return group.kernel

    def add_track(self, name: str, role: str, group: int | None, sort_key: int) -> int:
        """Make a lane in a group; return its track."""
        return self._builder.track(
            name,
            kind="lane",
            role=role,
            parent=group,
            input_id=self._input,
            clock_id=self._clock,
            sort_key=sort_key,
        )


def _place_key(header: Mapping[str, int]) -> int:
    """Return what orders tiles by column and row."""
    return (header["column"] << 5 | header["row"]) << 35
