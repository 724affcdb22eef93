"""The slices of a stream on disk, for analyses that look at lanes by lanes: their memory does not grow with the slices.

Batches come in the order of a capture, lanes are asked for in parts (``lane_parts``). So the slices of each batch go to
a temporary file by lane, and a part reads of each batch what is of its lanes. What analyses ask of the whole trace is
found while batches come: the window, timestamps apart from all others, and which lanes show what others show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.analysis.lane_time import LaneTime
from lanescope.analysis.plausibility.attested import found_by
from lanescope.analysis.plausibility.stamps import Stamps
from lanescope.analysis.windows.window import HIGHEST, LOWEST
from lanescope.common.distinct import distinct
from lanescope.common.intervals import Ints
from lanescope.source import SpooledFile
from lanescope.trace import Column, Dictionary, Table, TableSpec, Trace
from lanescope.trace.column import Mask
from lanescope.trace.schema import SLICES
from lanescope.trace.streams import SinglePass

if TYPE_CHECKING:
    from lanescope.common.islands import IslandThresholds

#: So many slices are kept in memory, as long as there are no more.
IN_MEMORY = 1 << 18
#: Columns of slices that analyses of lanes read; the track is told by where a row stands.
_STORED = ("id", "ts", "dur", "name", "last_known_ts")
_SPEC = TableSpec(
    SLICES.name,
    SLICES.doc,
    tuple(column for column in SLICES.columns if column.name in ("track_id", *_STORED)),
    SLICES.key,
)
_ROW = "row"  # where the row stood in its batch


class _Stored(NamedTuple):
    """Where values stand in the file: their first byte, and their type."""

    offset: int
    dtype: np.dtype[Any]


class _Batch(NamedTuple):
    """The slices of one batch, on disk by track; those of a track in their order.

    Attributes:
        first: row of the first in the whole trace.
        tracks: int64 [k], rising: tracks with slices.
        starts: int64 [k + 1], where those of each begin, and their number.
        values: columns, and ``row``: int32, where each row stood in the batch. A column of which nothing is known, and
            ids that count up from ``first_id``, are left out.
        known: validity of columns that have some.
        first_id: id of the first row, where ids count up.
    """

    first: int
    tracks: Ints
    starts: Ints
    values: dict[str, _Stored]
    known: dict[str, _Stored]
    first_id: int

    def __len__(self) -> int:
        return int(self.starts[-1])


class SlicesOnDisk:
    """Slices in an unnamed temporary file.

    Raises:
        InputError: it cannot be made.
    """

    def __init__(self) -> None:
        self._file = SpooledFile()
        self._size = 0
        self._batches: list[_Batch] = []
        self._names = Dictionary()
        self._codes: list[tuple[Dictionary, npt.NDArray[np.int32]]] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def nothing(self) -> Table:
        """A table of none of the slices, with the names of all."""
        empty = Table.empty(SLICES)
        columns = {name: empty.column(name) for name in SLICES.names}
        columns["name"] = Column.array(np.empty(0, np.int32), dictionary=self._names)
        return Table(SLICES, columns)

    @property
    def tracks(self) -> Ints:
        """The tracks with slices, int64, rising."""
        return distinct(np.concatenate([np.empty(0, np.int64), *(batch.tracks for batch in self._batches)]))

    def per_track(self, tracks: int) -> Ints:
        """Return how many slices each track has, int64 [tracks]."""
        found = np.zeros(tracks, np.int64)
        for batch in self._batches:
            known = (batch.tracks >= 0) & (batch.tracks < tracks)
            found[batch.tracks[known]] += np.diff(batch.starts)[known]
        return found

    def add(self, slices: Table) -> None:
        """Store the slices of the next batch.

        Raises:
            InputError: the disk is full.
        """
        if not len(slices):
            return
        track = slices.values("track_id")
        order: Ints | None = None
        if (track[1:] < track[:-1]).any():
            order = np.argsort(track, kind="stable")
            track = track[order]
        begins = np.flatnonzero(np.concatenate([[True], track[1:] != track[:-1]]))
        row = np.arange(len(slices), dtype=np.int32) if order is None else order.astype(np.int32)
        values, known = {_ROW: self._write(row)}, {}
        first_id, ids = int(slices.values("id")[0]), slices.values("id")
        for name in _STORED:
            column = slices.column(name)
            if column.is_unknown or (name == "id" and bool((np.diff(ids) == 1).all())):
                continue
            stored = self._named(column) if name == "name" else column.values
            values[name] = self._write(stored if order is None else stored[order])
            if column.valid is not None:
                known[name] = self._write(column.valid if order is None else column.valid[order])
        starts = np.append(begins, len(slices))
        self._batches.append(_Batch(self._count, track[begins], starts, values, known, first_id))
        self._count += len(slices)

    def _named(self, column: Column) -> npt.NDArray[np.int32]:
        """Return the codes of the names of a batch among those of all batches."""
        dictionary = column.dictionary or Dictionary([""])
        for at, (one, codes) in enumerate(self._codes):
            if one is dictionary:
                if len(codes) < len(dictionary):
                    more = self._names.codes(dictionary.texts[len(codes) :])
                    self._codes[at] = one, np.concatenate([codes, more])
                return self._codes[at][1][column.values]
        self._codes.append((dictionary, self._names.codes(dictionary.texts)))
        return self._codes[-1][1][column.values]

    def part(self, number: Ints, at: int) -> tuple[Table, Ints]:
        """Return the slices of one part, in the order of the trace, and their rows in it, int64 [n].

        Args:
            number: int64 [tracks], the part of each track; slices on tracks that do not exist are of the first part.
            at: the part.
        """
        found = []
        for batch in self._batches:
            exists = (batch.tracks >= 0) & (batch.tracks < len(number))
            mine = np.where(exists, number[np.where(exists, batch.tracks, 0)] if len(number) else 0, 0) == at
            if mine.any():
                found.append(self._rows(batch, mine))
        tables = [self.nothing.only(_SPEC.names), *(table for table, _ in found)]
        return Table.concat(tables), np.concatenate([np.empty(0, np.int64), *(rows for _, rows in found)])

    def batches(self) -> Iterator[tuple[Table, Ints]]:
        """Yield the slices of each batch, and their rows in the whole."""
        for batch in self._batches:
            yield self._rows(batch, np.ones(len(batch.tracks), np.bool_))

    def tracks_of(self, ids: Ints) -> Ints:
        """Return the track of the slice of each id, int64 [n]; -1 where there is none."""
        wanted = distinct(ids)
        found = np.full(len(wanted), -1, np.int64)
        for table, _ in self.batches() if len(wanted) else ():
            own = table.values("id")
            at = np.minimum(np.searchsorted(wanted, own), len(wanted) - 1)
            hit = wanted[at] == own
            found[at[hit]] = table.values("track_id")[hit]
        return found[np.searchsorted(wanted, ids)]

    def _rows(self, batch: _Batch, mine: Mask) -> tuple[Table, Ints]:
        """Return the slices of some tracks of a batch, in their order, and their rows."""
        edges = np.flatnonzero(np.diff(mine.astype(np.int8), prepend=0, append=0))
        runs = batch.starts[edges].reshape(-1, 2)
        row = self._read(batch.values[_ROW], runs).astype(np.int64)
        track = np.repeat(batch.tracks[mine], np.diff(batch.starts)[mine])
        order = np.argsort(row, kind="stable") if (row[1:] < row[:-1]).any() else np.arange(len(row))
        row, columns = row[order], {"track_id": Column.array(track[order])}
        for name in _STORED:
            dictionary = self._names if name == "name" else None
            if name in batch.values:
                valid = self._read(batch.known[name], runs)[order] if name in batch.known else None
                values = self._read(batch.values[name], runs)[order]
                columns[name] = Column.array(values, valid=valid, dictionary=dictionary)
            elif name == "id":
                columns[name] = Column.array(batch.first_id + row)
            else:
                columns[name] = Column.null(len(row), np.int64)
        return Table(_SPEC, {name: columns[name] for name in _SPEC.names}), batch.first + row

    # --- the file ---------------------------------------------------------------------------------------------

    def _write(self, values: npt.NDArray[Any]) -> _Stored:
        stored = _Stored(self._size, values.dtype)
        self._file.write(self._size, np.ascontiguousarray(values))
        self._size += values.nbytes
        return stored

    def _read(self, stored: _Stored, runs: Ints) -> npt.NDArray[Any]:
        """Return values of runs of rows, from the first to before the last of each, end to end."""
        size = stored.dtype.itemsize
        found = [self._file.read(stored.offset + first * size, (stop - first) * size) for first, stop in runs.tolist()]
        return np.concatenate([np.empty(0, np.uint8), *found]).view(stored.dtype)


class LanesOnDisk(SinglePass):
    """An observer whose result is what analyses of lanes ask of the batches joined.

    A stream of few slices is kept in memory. Of a longer one slices go to disk, and tracks, flows, gaps, coverage and
    the times of instants stay.

    Args:
        given: patterns of names by kind of work, as ``AnalysisCache`` takes them.
        islands: thresholds of LS501, likewise.
    """

    def __init__(self, given: Mapping[str, str] = {}, islands: IslandThresholds | None = None) -> None:
        self._given, self._islands = given, islands
        self._kept: list[Trace] = []
        self._stored: SlicesOnDisk | None = None
        self._count = 0
        self._stamps = Stamps()
        self._views = np.empty(0, np.bool_)
        self._window = HIGHEST, LOWEST

    def add(self, batch: Trace) -> None:
        """Take in the next batch; errors as ``SlicesOnDisk.add``."""
        self._count += len(batch.slices)
        self._kept.append(batch)
        if self._count <= IN_MEMORY:
            return
        if self._stored is None:
            self._stored = SlicesOnDisk()
            self._kept = [self._rest(one) for one in self._kept]
        else:
            self._kept[-1] = self._rest(batch)

    def _rest(self, batch: Trace) -> Trace:
        """Store the slices of a batch, and return it without them."""
        assert self._stored is not None
        self._stored.add(batch.slices)
        self._stamps.add(batch.slices, batch.instants)
        views = AnalysisCache(batch).views
        views[: len(self._views)] |= self._views
        self._views = views
        times = [column for column in LaneTime(batch).times() if len(column)]
        firsts, lasts = [int(column.min()) for column in times], [int(column.max()) for column in times]
        self._window = min([*firsts, self._window[0]]), max([*lasts, self._window[1]])
        kept = {
            "slices": self._stored.nothing,
            "instants": batch.instants.only(("id", "track_id", "ts")),
            "counters": Table.empty(batch.counters.spec),
        }
        details = {name: table for name, table in batch.details.items() if table.spec.key == "track_id"}
        return Trace(batch.time, {**batch.tables(), **kept}, details)

    def result(self) -> AnalysisCache:
        """Return what analyses of lanes take."""
        trace = Trace.concat(self._kept)
        stored = self._stored
        if stored is None:
            return AnalysisCache(trace, self._given, self._islands)
        rest = Trace(trace.time, {**trace.tables(), "slices": stored.nothing}, trace.details)
        shared = AnalysisCache(rest, self._given, self._islands)
        shared.on_disk, shared.views = stored, self._views
        shared.time.window = self._window

        def tables() -> Iterator[tuple[Ints, Table, bool]]:
            yield from ((rows, table, False) for table, rows in stored.batches())
            yield np.arange(len(trace.instants)), trace.instants, True

        used = distinct(np.concatenate([stored.tracks, trace.instants.values("track_id")]))
        shared.time.attested = found_by(self._stamps, used, shared.time.tree, self._islands, tables)
        return shared
