"""The runs of a dump: which configuration holds for a recording, and where it lies on the axis of all."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.devices.aie import schema
from lanescope.devices.aie.interpret.run_axis import APART, AT_LEAST, Recording, RunAxis, cuts_of

if TYPE_CHECKING:
    from lanescope._native import core
    from lanescope.devices.aie.config import Config, Place
    from lanescope.devices.aie.emit.tracks import TileTracks
    from lanescope.trace import TraceBuilder

I64 = npt.NDArray[np.int64]

_PACKET_BYTES = 32
#: Name of the tracks of packets in no slice.
_OUTSIDE = "outside of all slices"


class _Source(NamedTuple):
    """What the recordings of a source have in common.

    Attributes:
        part: number of their slice of the dump.
        number: of their run, from 1; 0: none.
        known: the configuration that holds for them.
        design: what ran; None: the dump has only one.
        follows: as in ``Recording``.
        unit: the design, and the header of the packets.
        counts: whether the event that starts the unit is known to set its timer back.
    """

    part: int
    number: int
    known: Config
    design: str | None
    follows: int | None
    unit: tuple[str, int]
    counts: bool


class Runs:
    """The runs of one dump.

    Args:
        known: the configuration; ``known.runs`` are its runs.
        tracks: where the tracks of recordings come from.
        limit: no recording begins later than this tick.

    Attributes:
        cuts: words at which the dump is cut, int64 [n].
        runs: of each recording: number of its slice and which Start of its unit there.
        configs: of each recording: the configuration that holds for it.
    """

    def __init__(self, known: Config, tracks: TileTracks, limit: int) -> None:
        self._known = known
        self._tracks = tracks
        self._axis = RunAxis(limit)
        cuts, self._parts = cuts_of([(run.offset, run.size) for run in known.runs])
        self.cuts = np.array(cuts if known.runs else [], np.int64)
        self._outside = type(known)(known.device)
        self.runs: list[tuple[int, int]] = []
        self.configs: list[Config] = []
        self._numbers: list[int] = []  # of the run of each recording, from 1; 0: none
        self._distances: list[int] = []
        self._units: list[tuple[str, int]] = []
        self._counts: dict[tuple[str, int], int] = {}
        self._timed: dict[tuple[int, Place], bool] = {}
        self._sources: dict[int, _Source] = {}

    def begin(self, scanner: core.AieScanner, source: int, mode: int, timer: int | None, ordinal: int) -> Place:
        """Place the next recording.

        Args:
            scanner: what found its packets.
            source: number of their source.
            mode: trace mode.
            timer: of its Start; None: it begins with a restart.
            ordinal: which recording of the source it is, from 1.

        Returns:
            Module, column of the design and row.
        """
        if source not in self._sources:
            self._sources[source] = self._source(scanner, source)
        part, number, known, design, follows, unit, counts = self._sources[source]
        key = part, ordinal
        at, distance = self._axis.begin(unit, Recording(key, mode, timer, counts, follows))
        own = self._counts[unit] = self._counts.get(unit, 0) + 1
        self.runs.append(key)
        self.configs.append(known)
        self._numbers.append(number)
        self._distances.append(distance)
        self._units.append(unit)
        return self._tracks.add_segment(unit[1], mode, known, at, design=design, own=own if distance == APART else 0)

    def _source(self, scanner: core.AieScanner, source: int) -> _Source:
        """Return what all recordings of a source have in common."""
        part, number, known, design, follows = 0, 0, self._known, None, None
        if self._known.runs:
            part = scanner.slice_of(source)
            run = self._parts[part]
            known, design = self._outside, _OUTSIDE
            if run is not None:
                number, known = run + 1, self._known.runs[run].known
                design = self.name_of(run)
                follows = part - 1 if self._known.runs[run].follows and self._parts[part - 1] == run - 1 else None
        header = scanner.header(source)
        counts = bool(known.units) and self._counts_from_start(known, self._tracks.place_of(header))
        return _Source(part, number, known, design, follows, (design or "", header), counts)

    def end(self, segment: int, ticks: int) -> None:
        """Note how many ticks a recording lasted."""
        if self._distances[segment] != APART:
            self._axis.end(self._units[segment], self.runs[segment], ticks)

    def name_of(self, run: int) -> str:
        """Return what the group of the tracks of a run is called."""
        return self._known.runs[run].design or f"run {run + 1}"

    def _counts_from_start(self, known: Config, place: Place) -> bool:
        key = id(known), place
        if key not in self._timed:
            unit = known.units.get(place)
            self._timed[key] = unit is not None and bool(unit.start) and unit.start == unit.reset
        return self._timed[key]

    @property
    def placed(self) -> dict[str, I64]:
        """Number of the run and how its distance is known, of each recording: int64 [recordings]."""
        return {"run": np.array(self._numbers, np.int64), "distance": np.array(self._distances, np.int64)}

    def _silent(self) -> int:
        """Return how many units are configured and have no recording, summed over the runs that have any."""
        found: dict[int, set[Place]] = {}
        for number, place in zip(self._numbers, self._tracks.recorded, strict=True):
            found.setdefault(number, set()).add(place)
        runs = self._known.runs
        known = {0: self._outside if runs else self._known, **{n: run.known for n, run in enumerate(runs, 1)}}
        return sum(len(known[number].places - places) for number, places in found.items())

    def finish(self, builder: TraceBuilder, input_id: int, total: int | None, *, is_whole: bool) -> None:
        """Append the runs, and count what was odd.

        Args:
            builder: where to.
            input_id: the input.
            total: words of the dump.
            is_whole: the dump is meant to have all units that are configured, not one of them.
        """
        axis = self._axis
        # Without a configuration nothing says what a timer counts from, as for units of one run.
        for name, found in (
            ("aie_run_distance", axis.unknown if self._known.places else 0),
            ("aie_run_order", axis.contradictory),
            ("aie_run_timers", axis.disagreeing),
        ):
            builder.add_stat(name, found, input_id=input_id)
        if is_whole:
            builder.add_stat("aie_silent_unit", self._silent(), input_id=input_id)
        runs = self._known.runs
        if not runs:
            return
        numbers, distances = np.array(self._numbers, np.int64), np.array(self._distances, np.int64)
        begins = self._tracks.begins.values
        count = np.bincount(numbers, minlength=len(runs) + 1)[1:]
        # One more, so that runs without recordings have a place to point to.
        order = np.append(np.lexsort((begins, numbers)), len(numbers))
        first = order[np.searchsorted(np.sort(numbers), np.arange(1, len(runs) + 1))]
        distances, begins = np.append(distances, AT_LEAST), np.append(begins, 0)
        is_filled = count > 0
        words = np.array([-(-(run.offset + run.size) // 4) for run in runs])
        ordinals = np.array([ordinal for _, ordinal in self.runs], np.int64)
        for name, found in (
            ("aie_empty_run", int(np.count_nonzero(~is_filled))),
            ("aie_missing_slice", 0 if total is None else int(np.count_nonzero(words > total))),
            ("aie_outside_slices", int(np.count_nonzero(numbers == 0))),
            ("aie_slice_size", sum(run.offset % 4 > 0 or run.size % _PACKET_BYTES > 0 for run in runs)),
            ("aie_repeated_start", int(np.count_nonzero((ordinals > 1) & (numbers > 0)))),
        ):
            builder.add_stat(name, found, input_id=input_id)
        codes = builder.dictionary("aie_runs", "distance").codes((*schema.DISTANCES, ""))
        chosen = distances[first]
        builder.append(
            "aie_runs",
            track_id=np.array([self._tracks.design(self.name_of(run)) for run in range(len(runs))], np.int64),
            run=np.arange(1, len(runs) + 1),
            design=[run.design for run in runs],
            offset=np.array([run.offset for run in runs], np.int64),
            size=np.array([run.size for run in runs], np.int64),
            segment_count=count,
            begin_cycles=np.where(is_filled, begins[first], 0),
            begin_cycles_valid=is_filled,
            distance=codes[np.where(is_filled, chosen, len(schema.DISTANCES))],
        )
