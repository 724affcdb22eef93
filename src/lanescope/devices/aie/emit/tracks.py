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
    from collections.abc import Mapping

    from lanescope.devices.aie.config import Config, Place
    from lanescope.devices.aie.emit.runs import Source
    from lanescope.trace import TraceBuilder

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
U32 = npt.NDArray[np.uint32]

#: Of a group: design, header of the packets, number if it is of one recording, whether it is of mode 2.
_Key = tuple[str, int, int, int]
#: Invocations stand above the lanes of slots, counters and then Start and Stop below them.
_KERNEL_SORT_KEY, _COUNTER_SORT_KEY, _TRACE_SORT_KEY = -1, 1 << 9, 1 << 10


class Lanes:
    """Tracks and names by lane number: group * 8 + slot; arrays that slices refer to get no other values later."""

    def __init__(self) -> None:
        self.track: I64 = np.full(64 * config.SLOTS, -1, np.int64)
        self.name: I32 = np.zeros(64 * config.SLOTS, np.int32)
        self.category: I32 = np.zeros(64 * config.SLOTS, np.int32)

    def reserve(self, groups: int) -> None:
        """See to it that there is room for the lanes of so many groups."""
        if (room := config.SLOTS * groups) > len(self.track):
            more = max(room, 2 * len(self.track)) - len(self.track)
            self.track = np.concatenate([self.track, np.full(more, -1, np.int64)])
            self.name = np.concatenate([self.name, np.zeros(more, np.int32)])
            self.category = np.concatenate([self.category, np.zeros(more, np.int32)])


class _Group:
    """The tracks of one unit, which its recordings share.

    Attributes:
        number: its own, by which lanes are numbered.
        track: group track.
        kernel: track of the lane ``kernel``; -1: there is none.
        slots: labels of the slots.
        known: the configuration.
        place: module, column of the design and row.
    """

    __slots__ = ("kernel", "known", "number", "place", "slots", "track")

    def __init__(self, number: int, track: int, known: Config, place: Place) -> None:
        self.number, self.track, self.kernel = number, track, -1
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
        members: number of the group of each recording.
        modes: trace mode of each recording.
        begins: tick at which each recording begins.
        lanes: tracks and names of all lanes of slots.
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
        self.lanes = Lanes()
        self.members, self.modes, self.begins = GrowingColumn(), GrowingColumn(), GrowingColumn()
        self.labelled: list[Labelled] = []
        self._numbers: dict[_Key, int] = {}
        self._groups: list[_Group] = []
        self._group_tracks, self._trace_tracks = GrowingColumn(), GrowingColumn()
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

    def number(self, source: Source, mode: int, own: int) -> int:
        """Return the number of the group of some recordings; where it is new, ``make`` has to be called next.

        Args:
            source: where they come from.
            mode: trace mode.
            own: not 0: the recording shares no tracks, and has this number.
        """
        key = source.design or "", source.header, own, int(mode == EXECUTION)
        return self._numbers.setdefault(key, len(self._numbers))

    def add_recordings(self, groups: I64, modes: I64, begins: I64) -> None:
        """Add recordings: number of their group, trace mode, and tick at which each begins, int64 [n] each."""
        self.members.extend(groups)
        self.modes.extend(modes)
        self.begins.extend(begins)

    @property
    def groups(self) -> I64:
        """Group track of each recording, int64 [recordings]."""
        tracks: I64 = self._group_tracks.values[self.members.values]
        return tracks

    def groups_of(self, segments: I64) -> I64:
        """Return the group tracks of recordings, int64 [n]."""
        tracks: I64 = self._group_tracks.values[self.members.values[segments]]
        return tracks

    def traces_of(self, segments: I64) -> I64:
        """Return the tracks of the lanes ``trace`` of recordings, int64 [n]."""
        tracks: I64 = self._trace_tracks.values[self.members.values[segments]]
        return tracks

    def make(self, source: Source, mode: int, own: int) -> int:
        """Make the tracks of a group, with lanes for slots that are known to watch something, unless it has any.

        Returns:
            The number of the group.
        """
        number = self.number(source, mode, own)
        if number < len(self._groups):
            return number
        known, design, packet_header = source.known, source.design, source.header
        header = HEADER.decode(packet_header)
        place = module, col, row = self.place_of(packet_header)
        name = f"{module} ({col}, {row})"
        if self._names.setdefault((design or "", name), packet_header) != packet_header:
            name += f" id {header['id']}"
        if own:
            name += f" #{own}"
        elif self._numbers.get((design or "", packet_header, own, int(mode != EXECUTION)), number) < number:
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
        group = _Group(number, track, known, place)
        self._groups.append(group)
        self.lanes.reserve(len(self._groups))
        first = config.SLOTS * number
        self.lanes.category[first : first + config.SLOTS] = self._builder.categories.code(module)
        self._group_tracks.extend(np.array([track]))
        self._trace_tracks.extend(np.array([self.add_track("trace", "trace", track, _TRACE_SORT_KEY)]))
        if mode == EXECUTION:
            flow = slice(first, first + len(FLOW_KINDS))
            self.lanes.track[flow] = self.add_track("flow", "flow", track, 0)
            self.lanes.name[flow] = self._builder.names.codes(kind.replace("_", " ") for kind in FLOW_KINDS)
        else:
            for slot, watched in enumerate(group.slots):
                if watched:
                    self.add_lane(number, slot)
        self._judge(group, header, design or "")
        return number

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

    def lacks(self, group: int, slot: int) -> bool:
        """Return whether a slot has no lane in a group, which may have to be made yet."""
        return group >= len(self._groups) or self.lanes.track[config.SLOTS * group + slot] < 0

    def add_lane(self, number: int, slot: int) -> None:
        """Make the lane of a slot in a group, unless it exists."""
        if not self.lacks(number, slot):
            return
        group = self._groups[number]
        slots = group.slots
        name = slots[slot] or f"slot {slot}"
        if slots[slot] in slots[:slot]:
            name += f" (slot {slot})" if slots[slot] else ""
        unit = group.known.units.get(group.place)
        event = "" if unit is None else group.known.event_name(unit.module, unit.slots[slot])
        lane = config.SLOTS * number + slot
        track = self.add_track(name, "slot", group.track, events.rank(event) * config.SLOTS + slot)
        self.lanes.track[lane], self.lanes.name[lane] = track, self._builder.names.code(name)
        self.labelled.append(Labelled(track, slot, group.known, group.place))

    def lanes_of(self, segments: npt.NDArray[np.integer[Any]]) -> I64:
        """Return the numbers of the lanes of the first slots of recordings, int64 [n]."""
        lanes: I64 = self.members.values[segments] * config.SLOTS
        return lanes

    def slot_tracks(self, tag: U32) -> I64:
        """Return the tracks of slices from their tags, int64 [n]."""
        tracks: I64 = self.lanes.track[self.lanes_of(tag >> 7) | tag & 7]
        return tracks

    def add_counter(self, lane: Labelled) -> int:
        """Return a new counter for the share of time in which a lane's event is asserted; it stands below the lanes."""
        at = np.flatnonzero(self.lanes.track == lane.track)[0]
        group = self._groups[at // config.SLOTS]
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

    def kernel_lane(self, number: int) -> int:
        """Return the track of the lane of invocations of a group; it stands above those of slots."""
        group = self._groups[number]
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
