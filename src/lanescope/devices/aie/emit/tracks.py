"""Groups of recordings and lanes of their slots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lanescope.devices.aie import config
from lanescope.devices.aie.formats.events import MODULES
from lanescope.devices.aie.formats.layout import FLOW_KINDS, HEADER, module_name
from lanescope.devices.aie.interpret.notes import EXECUTION

if TYPE_CHECKING:
    from lanescope.devices.aie.config import Config, Place
    from lanescope.trace import TraceBuilder

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]


class Lanes:
    """Tracks and names by lane number: recording * 8 + slot."""

    def __init__(self) -> None:
        self.track: I64 = np.full(512, -1, np.int64)
        self.name: I32 = np.zeros(512, np.int32)
        self.category: I32 = np.zeros(512, np.int32)

    def reserve(self, lanes: int) -> None:
        """Grow to so many lanes; arrays that slices already refer to are left as they are."""
        if lanes > len(self.track):
            self.track = np.concatenate([self.track, np.full_like(self.track, -1)])
            self.name = np.concatenate([self.name, np.zeros_like(self.name)])
            self.category = np.concatenate([self.category, np.zeros_like(self.category)])


class TileTracks:
    """The tracks of a dump, made as its recordings come.

    Args:
        builder: where tracks, names and stats go.
        known: the configuration.
        column_shift: column of a packet minus that of the design.
        input_id: the input.
        clock_id: the clock.

    Attributes:
        lanes: tracks and names by lane number.
        groups: group track of each recording.
        traces: track of the lane ``trace`` of each recording.
        modes: trace mode of each recording.
    """

    def __init__(
        self, builder: TraceBuilder, known: Config, column_shift: int, *, input_id: int, clock_id: int
    ) -> None:
        self._builder = builder
        self._config = known
        self._column_shift = column_shift
        self._input = input_id
        self._clock = clock_id
        self.lanes = Lanes()
        self.groups: list[int] = []
        self.traces: list[int] = []
        self.modes: list[int] = []
        self._slots: list[tuple[str, ...]] = []
        self._ordinals: dict[int, int] = {}
        self._names: dict[str, int] = {}  # names of tiles and the source that has each

    def add_segment(self, source: int, packet_header: int, mode: int) -> tuple[Place, int]:
        """Make the group of a recording, and lanes for the slots that are known to watch something.

        Returns:
            module, column of the design and row; group track.
        """
        header = HEADER.decode(packet_header)
        packet_type, col, row = header["type"], header["column"], header["row"]
        module = module_name(packet_type)
        ordinal = self._ordinals[source] = self._ordinals.get(source, 0) + 1
        name = f"{module} ({col - self._column_shift}, {row})"
        if self._names.setdefault(name, source) != source:
            name += f" id {header['id']}"
        if ordinal > 1:
            name += f" #{ordinal}"
        group = self._builder.track(
            name,
            kind="group",
            role="tile",
            input_id=self._input,
            clock_id=self._clock,
            sort_key=((col << 5 | row) << 3 | packet_type) << 32 | header["id"] << 24 | ordinal,
        )
        segment = len(self.groups)
        self.groups.append(group)
        self.modes.append(mode)
        self.traces.append(self.add_track("trace", "trace", group, config.SLOTS))
        design_col = col - self._column_shift
        slots = self._config.slot_names(module, design_col, row) if module in MODULES else ("",) * config.SLOTS
        self._slots.append(slots)
        self.lanes.reserve(config.SLOTS * len(self.groups))
        code = self._builder.categories.code(module)
        self.lanes.category[config.SLOTS * segment : config.SLOTS * len(self.groups)] = code
        if mode == EXECUTION:
            lanes = slice(config.SLOTS * segment, config.SLOTS * segment + len(FLOW_KINDS))
            self.lanes.track[lanes] = self.add_track("flow", "flow", group, 0)
            self.lanes.name[lanes] = self._builder.names.codes(kind.replace("_", " ") for kind in FLOW_KINDS)
        else:
            for slot, watched in enumerate(slots):
                if watched:
                    self.add_lane(segment, slot)
        place = (module, design_col, row)
        if place not in self._config.units:
            if place in self._config.contradictions:
                self._builder.add_stat("aie_contradictory_config", track_id=group, input_id=self._input)
            elif self._config.places:
                self._builder.add_stat("aie_unknown_tile", track_id=group, input_id=self._input)
        return place, group

    def add_lane(self, segment: int, slot: int) -> None:
        """Make the lane of a slot, unless it exists."""
        lane = config.SLOTS * segment + slot
        if self.lanes.track[lane] >= 0:
            return
        slots = self._slots[segment]
        name = slots[slot] or f"slot {slot}"
        if slots[slot] in slots[:slot]:
            name += f" (slot {slot})" if slots[slot] else ""
        self.lanes.track[lane] = self.add_track(name, "slot", self.groups[segment], slot)
        self.lanes.name[lane] = self._builder.names.code(name)

    def add_track(self, name: str, role: str, group: int, sort_key: int) -> int:
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
