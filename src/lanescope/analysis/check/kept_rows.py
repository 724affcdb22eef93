"""Rows of a batch that rules may report, and what a native sweep tells about the others."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.common.distinct import distinct
from lanescope.common.intervals import Ints
from lanescope.source.disk_arrays import is_memory_limited, kept_on_disk
from lanescope.trace import Column, Flag, Table, TableSpec
from lanescope.trace.column import Mask
from lanescope.trace.schema import FLOWS, INSTANTS, SLICES

#: Flags for which some rule may report a row: of both tables, and of slices only.
_OF_ALL = Flag.AFTER_GAP | Flag.CLOCK_SUSPECT | Flag.WRAP_AMBIGUOUS
_OF_SLICES = Flag.BELOW_RESOLUTION | Flag.NEGATIVE_DURATION | Flag.UNFINISHED | Flag.TRUNCATED

#: What the sweep sets for a kept row that takes no time of its own.
_WITHIN = 2

#: So many rows at a time go to disk where the memory is limited.
SPILLED_ROWS = 1 << 17

_NO_INTS = np.empty(0, np.int64)
_NO_FLAGS = np.empty(0, np.uint32)
_NOTHING = _NO_INTS, np.empty(0, np.uint8)


def _narrow(spec: TableSpec, *names: str) -> TableSpec:
    """Return the declaration with the columns that rules read: a rule that reads another one fails at once."""
    return TableSpec(spec.name, spec.doc, tuple(spec.column(name) for name in names), spec.key)


#: Tables of which every row is swept, with the columns that rules read.
SWEPT = (
    _narrow(SLICES, "track_id", "ts", "dur", "ts_ticks", "dur_ticks", "name", "flags", "last_known_ts"),
    _narrow(INSTANTS, "track_id", "ts", "ts_ticks", "flags"),
)
CHECKED_FLOWS = _narrow(FLOWS, "src_track_id", "src_ts", "dst_track_id", "dst_ts", "src_slice_id", "dst_slice_id")


class KeptInts:
    """Numbers that are kept for long, end to end; on disk where the memory is limited."""

    def __init__(self) -> None:
        self._parts: list[Ints] = []
        self._spilled = 0  # so many of them are on disk
        self._waiting = 0  # numbers of the others

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, values: Ints) -> None:
        """Keep the next numbers, int64 [n]."""
        self._parts.append(values)
        self._waiting += len(values)
        if self._waiting >= SPILLED_ROWS and is_memory_limited():
            with kept_on_disk():
                self._parts[self._spilled :] = [np.concatenate(self._parts[self._spilled :])]
            self._spilled, self._waiting = len(self._parts), 0

    def joined(self) -> Ints:
        """Return all numbers, int64 [n]."""
        if len(self._parts) != 1:
            self._parts = [np.concatenate([_NO_INTS, *self._parts])]  # so that they are not there twice
            self._spilled = 1
        return self._parts[0]


class KeptRows:
    """Rows kept of a table, with the columns that rules read, and where they stood in it.

    Where the memory is limited, they are on disk: of a long capture they may be millions.

    Args:
        spec: declares those columns.
    """

    def __init__(self, spec: TableSpec) -> None:
        self._spec = spec
        self._positions: list[Ints] = []
        self._tables: list[Table] = []
        self._spilled = 0  # so many of the tables are on disk
        self._waiting = 0  # rows of the others

    def add(self, positions: Ints, table: Table, rows: Ints) -> None:
        """Keep the ``rows`` of ``table``, rising, which stand at ``positions``."""
        if not len(rows):
            return
        columns = {name: table.column(name) for name in self._spec.names}
        if len(rows) < len(table):
            columns = {name: column.take(rows) for name, column in columns.items()}
        self._positions.append(positions)
        self._tables.append(Table(self._spec, columns))
        self._waiting += len(rows)
        if self._waiting >= SPILLED_ROWS and is_memory_limited():
            self._spill()

    def _spill(self) -> None:
        """Put the rows that wait on disk, as one table."""
        with kept_on_disk():
            some = self._tables[self._spilled :]
            self._positions[self._spilled :] = [np.concatenate(self._positions[self._spilled :])]
            self._tables[self._spilled :] = [Table(self._spec, {n: _copied(some, n) for n in self._spec.names})]
        self._spilled, self._waiting = len(self._tables), 0

    def joined(self) -> tuple[Ints, Table]:
        """Return where the rows stood, rising, and the rows."""
        if not self._tables:
            return _NO_INTS, Table.empty(self._spec)
        if len(self._tables) > 1 and self._spilled:
            self._spilled = 0
            self._spill()  # as one table, so that they are not there twice
        positions = np.concatenate(self._positions)
        table = Table.concat(self._tables)
        if (positions[1:] > positions[:-1]).all():
            return positions, table
        # A row may come twice: as a suspect, and as one that a later row clashes with.
        rising, first = np.unique(positions, return_index=True)
        return rising, table.take(first)


class SweepState:
    """A table of which every row is looked at once.

    Args:
        spec: its columns that rules read.
        whole: bool [tracks], the tracks of which all rows are kept, if that is known already.

    Attributes:
        sweep: decides which rows of the others to keep.
        rows: what is kept.
        whole: the tracks that rules must see as a whole; after ``settle``.
        covered: int64 [tracks], time that the slices of the others cover; after ``settle``.
        within: positions of kept rows that take no time which rows before them on their lane do not take; None unless
            it is an empty one before the first row.
    """

    def __init__(self, spec: TableSpec, whole: Mask | None = None) -> None:
        self.within: KeptInts | None = None
        self._has_lengths = "dur" in spec.names
        self._judged = int(_OF_ALL | _OF_SLICES if self._has_lengths else _OF_ALL)
        self.sweep = core.CheckSweep(points=not self._has_lengths, judged=self._judged)
        self.rows = KeptRows(spec)
        self.whole: Mask = np.empty(0, np.bool_) if whole is None else whole
        self.covered = _NO_INTS
        self._spec = spec
        self._open = KeptRows(spec)  # not kept so far, but a later row may clash with them
        self._strays: set[int] = set()

    def add(self, table: Table, also: Mask | None = None) -> None:
        """Keep what rules have to see of the next rows, and those that are named (bool [n])."""
        if not len(table):
            return
        first = self.sweep.rows
        keep = np.zeros(len(table), np.uint8)
        length, last_seen, ticks, length_ticks = (
            table.nullable(name) for name in ("dur", "last_known_ts", "ts_ticks", "dur_ticks")
        )
        if self._has_lengths and table.column("dur_ticks") is table.column("dur"):
            length_ticks = _NOTHING  # that has been looked at
        flags = table.column("flags")
        is_judged = flags.constant_value is None or int(flags.constant_value) & self._judged
        count = self.sweep.sweep(
            np.ascontiguousarray(table.values("track_id")),
            np.ascontiguousarray(table.values("ts")),
            *length,
            *last_seen,
            *ticks,
            *length_ticks,
            np.ascontiguousarray(flags.values) if is_judged else _NO_FLAGS,
            keep,
        )
        if self.whole.any():
            keep |= _among(table.values("track_id"), self.whole).view(np.uint8)
        if also is not None:
            keep |= also.view(np.uint8)
        if count or also is not None or self.whole.any():
            rows = np.flatnonzero(keep)
            if self.within is not None:
                self.within.add(first + rows[keep[rows] == _WITHIN])
            self.rows.add(first + rows, table, rows)
            self._add_new_tracks(table.values("track_id")[rows])
        if not self._has_lengths:
            return
        positions, waiting = self._open.joined()
        for name in self._spec.names:
            # Made now, as where all go on waiting, what they are joined from would be joined again with each batch.
            _ = waiting.column(name).values, waiting.column(name).valid
        earlier = np.searchsorted(positions, np.sort(self.sweep.earlier()))
        self.rows.add(positions[earlier], waiting, earlier)
        self._open = KeptRows(self._spec)
        still = np.sort(self.sweep.open())
        split = int(np.searchsorted(still, first))
        self._open.add(still[:split], waiting, np.searchsorted(positions, still[:split]))
        self._open.add(still[split:], table, still[split:] - first)

    def settle(self, longest: Ints) -> bool:
        """Find out what cannot be told from the rows kept so far; return whether there is anything.

        Args:
            longest: int64 [tracks], slices that are longer have to be kept.
        """
        tracks = len(longest)
        self.covered, lengths = np.zeros((2, tracks), np.int64)
        late, whole = np.zeros((2, tracks), np.uint8)
        self.sweep.results(self.covered, lengths, late, whole)
        self.whole = whole.astype(np.bool_)
        # Rows that came before their track did.
        self.whole[[track for track in self._strays if track < tracks]] = True
        return bool((self.whole | (late != 0) | (lengths > longest)).any())

    @property
    def window(self) -> list[int]:
        """The first begin and the last end; nothing when there are no rows."""
        return [self.sweep.first, self.sweep.last] if self.sweep.rows else []

    def _add_new_tracks(self, tracks: Ints) -> None:
        """Note the tracks that are not known so far."""
        strays = tracks[tracks >= self.sweep.lanes]
        if len(strays):
            self._strays.update(distinct(strays).tolist())


def _copied(tables: list[Table], name: str) -> Column:
    """Return a column of tables end to end, made now, of nothing that any of them refers to."""
    joined = Column.concat([table.column(name) for table in tables])
    if joined.constant_value is not None:
        return joined
    values = joined.read_once()
    if len(tables) == 1:
        values = values.copy()
    return Column.array(values, valid=joined.valid, dictionary=joined.dictionary)


def is_disjoint(tracks: Table) -> Mask:
    """Return which tracks are lanes that promise slices which share no time, bool [tracks]."""
    found: Mask = (tracks.values("kind") == "lane") & (tracks.values("nesting") == "disjoint")
    return found


def disciplines(tracks: Table) -> npt.NDArray[np.uint8]:
    """Return what the tracks promise as the sweep numbers it."""
    found = np.zeros(len(tracks), np.uint8)
    is_lane = tracks.values("kind") == "lane"
    for number, word in enumerate(("free", "disjoint", "nested")):
        found[is_lane & (tracks.values("nesting") == word)] = number
    return found


def _among(track: Ints, chosen: Mask) -> Mask:
    """Return which rows, bool [n], lie on the chosen tracks (bool [tracks])."""
    if not len(chosen):
        return np.zeros(len(track), np.bool_)
    is_known = (track >= 0) & (track < len(chosen))
    found: Mask = chosen[np.where(is_known, track, 0)] & is_known
    return found
