"""The runs of a dump: which configuration holds for a recording, and where it lies on the axis of all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.devices.aie import schema
from lanescope.devices.aie.interpret.growing import GrowingColumn, ordinals
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


class Begun(NamedTuple):
    """Recordings that begin in a block, in the order of the dump.

    Attributes:
        source: number of their source, int64 [n].
        mode: trace mode, int64 [n].
        timer: of their Start, int64 [n]; negative: they begin with a restart, or the mode has none.
    """

    source: I64
    mode: I64
    timer: I64


class Source(NamedTuple):
    """What the recordings of a source have in common.

    Attributes:
        part: number of their slice of the dump.
        number: of their run, from 1; 0: none.
        known: the configuration that holds for them.
        design: what ran; None: the dump has only one.
        follows: as in ``Recording``.
        header: of the packets.
        unit: number of the unit: sources of one design and header have one.
        counts: whether the event that starts the unit is known to set its timer back.
    """

    part: int
    number: int
    known: Config
    design: str | None
    follows: int | None
    header: int
    unit: int
    counts: bool


class Runs:
    """The runs of one dump.

    Args:
        known: the configuration; ``known.runs`` are its runs.
        tracks: where the tracks of recordings come from.
        limit: no recording begins later than this tick.

    Attributes:
        cuts: words at which the dump is cut, int64 [n].
        sources: sources that have recordings, by number.
        source: number of the source of each recording.
        ordinals: which Start of its unit in its slice of the dump each recording is, from 1.
        distances: how the distance of each from the one before is known.
    """

    def __init__(self, known: Config, tracks: TileTracks, limit: int) -> None:
        self._known = known
        self._tracks = tracks
        self._axis = RunAxis(limit)
        cuts, self._parts = cuts_of([(run.offset, run.size) for run in known.runs])
        self.cuts = np.array(cuts if known.runs else [], np.int64)
        self._outside = type(known)(known.device)
        self.sources: dict[int, Source] = {}
        self.source, self.ordinals, self.distances = GrowingColumn(), GrowingColumn(), GrowingColumn()
        self._units: dict[tuple[str, int], int] = {}
        self._in_source, self._in_unit = GrowingColumn(), GrowingColumn()  # recordings so far
        self._timed: dict[tuple[int, Place], bool] = {}

    def place(self, scanner: core.AieScanner, begun: Begun, ends: I64) -> tuple[I64, I64]:
        """Place the recordings of a block, and note how long those lasted that end in it.

        Args:
            scanner: what found their packets.
            begun: those that begin.
            ends: how many of those begin before, recording, how many ticks it lasted, in the order of the dump;
                int64 [m, 3].

        Returns:
            Tick at which each begins, and its number if it is to share no tracks with others, else 0: int64 [n] each.
        """
        for number in np.unique(begun.source).tolist():
            if number not in self.sources:
                self.sources[number] = self._source(scanner, number)
        self.source.extend(begun.source)
        self.ordinals.extend(ordinals(begun.source, self._in_source))
        ticks, distances = self._placed(begun, ends)
        self.distances.extend(distances)
        own = ordinals(self._of_sources(begun.source, [source.unit for source in self.sources.values()]), self._in_unit)
        return ticks, np.where(distances == APART, own, 0)

    def _placed(self, begun: Begun, ends: I64) -> tuple[I64, I64]:
        """Return the tick at which each recording begins, and how that is known."""
        first, axis, sources = len(self.distances), self._axis, self.sources
        columns = (*begun, self.ordinals.values[first:])
        beginning = zip(*(column.tolist() for column in columns), strict=True)
        found: list[tuple[int, int]] = []

        def begin(count: int | None) -> None:
            for number, mode, timer, ordinal in islice(beginning, count):
                source = sources[number]
                told = timer if timer >= 0 else None
                recording = Recording((source.part, ordinal), mode, told, source.counts, source.follows)
                found.append(axis.begin(source.unit, recording))

        ended = self.source.values[ends[:, 1]], self.ordinals.values[ends[:, 1]]
        for count, ticks, number, ordinal in zip(
            *(each.tolist() for each in (ends[:, 0], ends[:, 2], *ended)), strict=True
        ):
            begin(count - len(found))
            source = sources[number]
            axis.end(source.unit, (source.part, ordinal), ticks)
        begin(None)
        placed = np.array(found, np.int64).reshape(-1, 2)
        return placed[:, 0], placed[:, 1]

    def _of_sources(self, numbers: I64, values: Sequence[int]) -> I64:
        """Return of each source the value that goes with it in ``sources``, int64 [n]."""
        known = np.zeros(max(self.sources, default=0) + 1, np.int64)
        known[list(self.sources)] = values
        found: I64 = known[numbers]
        return found

    def _source(self, scanner: core.AieScanner, source: int) -> Source:
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
        unit = self._units.setdefault((design or "", header), len(self._units))
        return Source(part, number, known, design, follows, header, unit, counts)

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
    def numbers(self) -> I64:
        """Number of the run of each recording, from 1, 0: none; int64 [recordings]."""
        return self._of_sources(self.source.values, [source.number for source in self.sources.values()])

    @property
    def parts(self) -> I64:
        """Number of the slice of the dump of each recording, int64 [recordings]."""
        return self._of_sources(self.source.values, [source.part for source in self.sources.values()])

    def _silent(self) -> int:
        """Return how many units are configured and have no recording, summed over the runs that have any."""
        found: dict[int, set[Place]] = {}
        for source in self.sources.values():
            found.setdefault(source.number, set()).add(self._tracks.place_of(source.header))
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
        numbers, distances = self.numbers, self.distances.values
        begins = self._tracks.begins.values
        count = np.bincount(numbers, minlength=len(runs) + 1)[1:]
        # One more, so that runs without recordings have a place to point to.
        order = np.append(np.lexsort((begins, numbers)), len(numbers))
        first = order[np.searchsorted(np.sort(numbers), np.arange(1, len(runs) + 1))]
        distances, begins = np.append(distances, AT_LEAST), np.append(begins, 0)
        is_filled = count > 0
        words = np.array([-(-(run.offset + run.size) // 4) for run in runs])
        for name, found in (
            ("aie_empty_run", int(np.count_nonzero(~is_filled))),
            ("aie_missing_slice", 0 if total is None else int(np.count_nonzero(words > total))),
            ("aie_outside_slices", int(np.count_nonzero(numbers == 0))),
            ("aie_slice_size", sum(run.offset % 4 > 0 or run.size % _PACKET_BYTES > 0 for run in runs)),
            ("aie_repeated_start", int(np.count_nonzero((self.ordinals.values > 1) & (numbers > 0)))),
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
