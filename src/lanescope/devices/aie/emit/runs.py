"""The runs of a dump: which configuration holds for a recording, and where it lies on the axis of all."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.devices.aie import schema
from lanescope.devices.aie.interpret.growing import GrowingColumn, ordinals
from lanescope.devices.aie.interpret.run_axis import APART, AT_LEAST, cuts_of

if TYPE_CHECKING:
    from lanescope.devices.aie.config import Config, Place
    from lanescope.devices.aie.emit.tracks import TileTracks
    from lanescope.trace import TraceBuilder

I64 = npt.NDArray[np.int64]

_PACKET_BYTES = 32
# What is looked up of the sources of many recordings: unit, slice of the dump, run, the last two as in ``Source``.
_FACTS = 5
_UNIT, _PART, _NUMBER, _COUNTS, _FOLLOWS = range(_FACTS)
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
        follows: the slice that its own follows without a new configuration; None: it is not known to follow any.
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
        self._axis = core.AieRunAxis(limit)
        cuts, self._parts = cuts_of([(run.offset, run.size) for run in known.runs])
        self.cuts = np.array(cuts if known.runs else [], np.int64)
        self._outside = type(known)(known.device)
        self.sources: dict[int, Source] = {}
        self.source, self.ordinals, self.distances = GrowingColumn(), GrowingColumn(), GrowingColumn()
        self._units: dict[tuple[str, int], int] = {}
        self._in_source, self._in_unit = GrowingColumn(), GrowingColumn()  # recordings so far
        self._facts = np.zeros((64, _FACTS), np.int64)  # of sources by number, as ``_UNIT`` and those below it
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
        for number in sorted(set(begun.source.tolist()) - self.sources.keys()):  # numpy.unique would import numpy.ma
            self._add_source(number, self._source(scanner, number))
        self.source.extend(begun.source)
        self.ordinals.extend(ordinals(begun.source, self._in_source))
        first, ended = len(self.distances), ends[:, 1]
        unit, part, _, counts, follows = self._facts[begun.source].T
        recordings = np.stack([unit, part, self.ordinals.values[first:], begun.mode, begun.timer, counts, follows], 1)
        ending = self._facts[self.source.values[ended]]
        places = np.empty((len(recordings), 2), np.int64)
        self._axis.follow(
            recordings,
            np.stack([ends[:, 0], ending[:, _UNIT], ending[:, _PART], self.ordinals.values[ended], ends[:, 2]], 1),
            places,
        )
        ticks, distances = places.T
        self.distances.extend(distances)
        own = ordinals(np.ascontiguousarray(unit), self._in_unit)
        return ticks, np.where(distances == APART, own, 0)

    def _add_source(self, number: int, source: Source) -> None:
        if number >= len(self._facts):
            more = max(number + 1, 2 * len(self._facts)) - len(self._facts)
            self._facts = np.concatenate([self._facts, np.zeros((more, _FACTS), np.int64)])
        follows = -1 if source.follows is None else source.follows
        self._facts[number] = source.unit, source.part, source.number, source.counts, follows
        self.sources[number] = source

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
        numbers: I64 = self._facts[self.source.values, _NUMBER]
        return numbers

    @property
    def parts(self) -> I64:
        """Number of the slice of the dump of each recording, int64 [recordings]."""
        parts: I64 = self._facts[self.source.values, _PART]
        return parts

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
