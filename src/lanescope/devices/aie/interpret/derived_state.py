"""What is concluded from recordings while they are decoded: labels, kernel invocations, alignment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lanescope.devices.aie.config import SLOTS, Config, Place
from lanescope.devices.aie.formats import events
from lanescope.devices.aie.interpret import alignment
from lanescope.devices.aie.interpret.invocations import Invocations, watched

if TYPE_CHECKING:
    from lanescope.trace import TraceBuilder

I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]

_EXECUTION = 2
#: The lane of invocations stands above those of slots.
_SORT_KEY = -1


class DerivedState:
    """Follows a decoder, and appends what it concludes.

    Args:
        builder: where to.
        known: the configuration.
        input_id: the input.
        to_ts: from ticks to trace time.
        add_track: makes a lane in a group: name, role, group, sort key -> track.
    """

    def __init__(
        self,
        builder: TraceBuilder,
        known: Config,
        input_id: int,
        to_ts: Callable[[I64], I64],
        add_track: Callable[[str, str, int, int], int],
    ) -> None:
        self._builder = builder
        self._known = known
        self._input = input_id
        self._add_track = add_track
        self._places: list[Place] = []
        self._modes: list[int] = []
        self._invocations = Invocations(builder, to_ts)

    def add_recording(self, place: Place, mode: int, group: int) -> None:
        """Note the next recording: module, column of the design and row; trace mode; group track."""
        segment = len(self._places)
        self._places.append(place)
        self._modes.append(mode)
        slots = watched(self._known, self._known.units.get(place)) if mode == 0 else None
        if slots is not None:
            lane = self._add_track("kernel", "kernel", group, _SORT_KEY)
            self._invocations.add_recording(segment, slots, lane)

    def add_gaps(self, gaps: Iterable[tuple[int, int]]) -> None:
        """Note gaps as ``Invocations.add_gaps`` does."""
        self._invocations.add_gaps(gaps)

    @property
    def needs_slices(self) -> bool:
        """Whether anything is concluded from slices: they need not be handed over else."""
        return self._invocations.is_active

    def take(self, begin: I64, duration: I64, tag: U32) -> None:
        """Take slices as ``Invocations.take`` does."""
        self._invocations.take(begin, duration, tag)

    def finish(
        self,
        groups: Sequence[int],
        lanes: I64,
        columns: Mapping[str, I64],
        *,
        has_stop: npt.NDArray[np.bool_],
    ) -> None:
        """Append what takes all recordings.

        Args:
            groups: group track of each recording.
            lanes: int64 [8 * recordings or more], track of each slot's lane, -1: it has none.
            columns: what the core knows of the recordings, int64 [recordings] each.
            has_stop: bool [recordings].
        """
        self._invocations.finish(columns["end"], groups, self._input)
        self._append_labels(lanes)
        alignment.append(
            self._builder,
            self._known,
            self._places,
            groups,
            columns,
            has_stop=has_stop,
            input_id=self._input,
        )

    def _append_labels(self, lanes: I64) -> None:
        known = self._known
        numbers = np.flatnonzero(lanes[: SLOTS * len(self._places)] >= 0)
        numbers = numbers[np.array(self._modes, np.int64)[numbers // SLOTS] != _EXECUTION]
        if not len(numbers):
            return
        watching, names, kinds, ports, has_event = [], [], [], [], []
        for lane in numbers.tolist():
            place = self._places[lane // SLOTS]
            unit = known.units.get(place)
            number = unit.slots[lane % SLOTS] if unit is not None else None
            name = known.event_name(place[0], number) if number else ""
            selection = known.port(unit, number) if unit is not None and number else None
            watching.append(number or 0)
            has_event.append(number is not None)
            names.append(name if number != 0 else "NONE")
            kinds.append(events.kind(name))
            ports.append("" if selection is None else known.port_name(place[0], selection))
        self._builder.append(
            "aie_slots",
            track_id=lanes[numbers],
            slot=numbers % SLOTS,
            event=np.array(watching),
            event_valid=np.array(has_event),
            event_name=names,
            kind=kinds,
            port=ports,
        )
