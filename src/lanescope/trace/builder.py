"""Builder of traces in batches, checked against the declarations of tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lanescope.errors import InternalError
from lanescope.trace import accounting
from lanescope.trace.clocks import as_ratio
from lanescope.trace.column import DTYPES, Column, Dictionary
from lanescope.trace.row_tables import (
    TrackRows,
    joined_columns,
    options_as_json,
    table_of_inputs,
    table_of_rows,
    table_of_tuples,
)
from lanescope.trace.schema import (
    ACCOUNTING,
    CORE_TABLES,
    INPUTS,
    QUALITIES,
    STATS,
    TRACKS,
    ColumnSpec,
    TableSpec,
)
from lanescope.trace.stats import CORE_STATS, StatSpec
from lanescope.trace.table import Table
from lanescope.trace.trace import Records, TimeBase, Trace

if TYPE_CHECKING:
    from fractions import Fraction

    from lanescope.trace.paired_slices import PairedRecords

_DEFAULTS: dict[str, Any] = {"flags": 0, "quality": "exact", "category": ""}
_SIZE = INPUTS.names.index("size")


class TraceBuilder:
    """Collects rows and gives them out as ``Trace`` batches that share tracks, clocks and texts.

    Args:
        time: what the timestamps count.
        details: detail tables of the family.
        stats: stats of the family, besides those that any family may count.

    Example:
        >>> builder = TraceBuilder(TimeBase())
        >>> lane = builder.track("core 0", kind="lane", role="core")
        >>> _ = builder.append("slices", track_id=lane, ts=np.array([0, 5]), dur=np.array([3, 4]), name="mma")
        >>> builder.finish().slices["name"].tolist()
        ['mma', 'mma']
    """

    def __init__(self, time: TimeBase, *, details: Sequence[TableSpec] = (), stats: Sequence[StatSpec] = ()) -> None:
        self.time = time
        self._specs = {spec.name: spec for spec in (*CORE_TABLES, *details)}
        self._details = tuple(spec.name for spec in details)
        for spec in details:
            for column in spec.columns:
                if column.references and column.references not in self._specs:
                    raise InternalError(
                        f"column {spec.name}.{column.name} references undeclared table {column.references}"
                    )
        self._stat_specs = {spec.name: spec for spec in (*CORE_STATS, *stats)}
        self._dictionaries: dict[tuple[str, str], Dictionary] = {}
        # Names and categories are one vocabulary over slices and instants, so a code can be reused between them.
        self.names = Dictionary()
        self.categories = Dictionary()
        self._qualities = Dictionary(QUALITIES)
        self._pending: dict[str, list[dict[str, Column]]] = {name: [] for name in self._specs}
        self._counts = dict.fromkeys(self._specs, 0)
        self._tracks = TrackRows()
        self._shared: dict[str, list[tuple[Any, ...]]] = {"inputs": [], "clocks": [], "anchors": []}
        self._stats: dict[tuple[str, int | None, int | None], dict[str, Any]] = {}
        self._accounts: list[dict[str, Any]] = []
        self._records: dict[str, Callable[[], Table]] = {}
        self._made: dict[str, Table] = {}
        self._empties: dict[str, Table] = {}

    # --- what all batches share -------------------------------------------------------------------------------

    def input(
        self,
        *,
        capture: str,
        path: str,
        size: int,
        sha256: str | Callable[[], str],
        family: str,
        format: str,
        role: str = "main",
        options: Mapping[str, Any] | None = None,
    ) -> int:
        """Add an input file and return its id; ``sha256`` may be a function, asked when the column is read."""
        given = partial(options_as_json, dict(options)) if options else "{}"
        return self._share("inputs", capture, role, path, size, sha256, family, format, given)

    def clock(
        self,
        *,
        name: str,
        device: str,
        frequency: Fraction | int | None,
        counter_bits: int | None = None,
        resolution_ticks: int | None = None,
    ) -> int:
        """Add a clock and return its id; ``frequency`` in Hz, an exact ratio, None when it is unknown."""
        num, den = (None, None) if frequency is None else as_ratio(frequency)
        return self._share("clocks", name, device, num, den, counter_bits, resolution_ticks)

    def anchor(self, *, clock_id: int, ticks: int, ts: int, error_ns: int | None = None) -> int:
        """Add a reading of a clock at a known trace time and return its id."""
        return self._share("anchors", clock_id, ticks, ts, error_ns)

    def track(
        self,
        name: str,
        *,
        kind: str,
        role: str,
        parent: int | None = None,
        input_id: int | None = None,
        nesting: str = "disjoint",
        clock_id: int | None = None,
        unit: str = "",
        sort_key: int | None = None,
    ) -> int:
        """Add a track and return its id; without a ``sort_key`` siblings keep the order in which they were added."""
        number = len(self._tracks)
        place = number if sort_key is None else sort_key
        self._tracks.rows.append((number, parent, input_id, kind, role, name, place, nesting, clock_id, unit))
        return number

    def tracks(
        self,
        *,
        parent_id: Column,
        kind: Column,
        role: Column,
        name: Column,
        sort_key: Column,
        nesting: Column,
        clock_id: Column,
        input_id: int,
    ) -> int:
        """Add many tracks at once, column by column, and return the id of the first; the others follow it.

        Args:
            parent_id: int64 column [n], ids of tracks, those of earlier ones of these among them.
            kind: text column [n].
            role: text column [n].
            name: str column [n].
            sort_key: int64 column [n].
            nesting: text column [n].
            clock_id: int64 column [n], unknown without a clock.
            input_id: the input of all of them.
        """
        known, count = self._tracks, len(name)
        first = len(known)
        columns = {
            "id": Column.derived(count, lambda: np.arange(first, first + count, dtype=np.int64)),
            "parent_id": parent_id,
            "input_id": Column.constant(input_id, count, np.int64),
            "kind": kind,
            "role": role,
            "name": name,
            "sort_key": sort_key,
            "nesting": nesting,
            "clock_id": clock_id,
            "unit": Column.constant(0, count, np.int32, dictionary=Dictionary([""])),
        }
        known.add(Table(TRACKS, columns))
        return first

    def _share(self, table: str, *row: Any) -> int:
        """Add a row, its columns behind the id as the table declares them; return the id."""
        rows = self._shared[table]
        rows.append((len(rows), *row))
        return len(rows) - 1

    # --- rows -------------------------------------------------------------------------------------------------

    def append(self, table: str, **columns: Any) -> int:
        """Append rows to a table, column by column.

        Args:
            table: a core table with rows (``slices``, ``instants``, ``counters``, ``flows``, ``gaps``, ``coverage``) or
                one of the family's detail tables.
            **columns: arrays [n], sequences, or scalars for all rows. Text columns take ``str``, sequences of ``str``,
                or int32 codes of ``dictionary(table, column)``. ``NAME_valid`` (bool [n]) marks unknown values of a
                nullable column; a nullable column that is left out, or None, is unknown in all rows. ``flags`` default
                to 0, ``quality`` to ``exact``, ``category`` to "".

        Returns:
            The id of the first appended row; the others follow it.
        """
        spec = self._specs[table]
        length = _length(columns)
        first = self._counts[table]
        made = {}
        for declared in spec.columns:
            if declared.name == "id" and not spec.key:
                made["id"] = Column.derived(length, lambda: np.arange(first, first + length, dtype=np.int64))
                continue
            valid = columns.pop(f"{declared.name}_valid", None)
            value = columns.pop(declared.name, None)
            made[declared.name] = self._column(table, declared, value, valid, length)
        if columns:
            raise InternalError(f"unknown columns {sorted(columns)} of table {table}")
        if length:
            self._pending[table].append(made)
            self._counts[table] += length
        return first

    def add_pairs(
        self,
        pairs: PairedRecords,
        track_id: npt.NDArray[np.int64],
        ts: npt.NDArray[np.int64],
        ts_ticks: npt.NDArray[np.int64] | None = None,
        *,
        name: Any,
        category: Any = "",
        quality: str = "exact",
        flags: Any = 0,
        last_known_ts: npt.NDArray[np.int64] | None = None,
        unpaired: str | None = None,
        input_id: int = 0,
    ) -> npt.NDArray[np.int64]:
        """Append a slice for each pair of records.

        A pair without an end is unfinished, one that is cut is truncated there, one that ends before it starts has no
        length, and the identity of an ambiguous one is inferred.

        Args:
            pairs: the pairs, as numbers of records.
            track_id: int64 [records], the lane of each record.
            ts: int64 [records], the time of each record.
            ts_ticks: int64 [records], the reading of each record's counter; None: there is none.
            name: of all slices, or int32 [pairs] codes of ``names``.
            category: of all slices, or int32 [pairs] codes of ``categories``.
            quality: of slices whose identity was recorded.
            flags: further flags, uint32 [pairs] or one for all.
            last_known_ts: int64 [pairs], until when a slice without an end is known to have lasted; None: the latest of
                these records.
            unpaired: the declared stat that counts the records without a partner; None: they are counted elsewhere.
            input_id: the input, for that stat.

        Returns:
            The ids of the slices, int64 [pairs].
        """
        from lanescope.trace import paired_slices

        if unpaired is not None and len(pairs.unmatched):
            first = int(ts[pairs.unmatched[0]])
            self.add_stat(unpaired, len(pairs.unmatched), input_id=input_id, first_ts=first)
        count = len(pairs.start)
        if not count:
            return np.empty(0, np.int64)
        inferred, recorded = self._qualities.code("inferred"), self._qualities.code(quality)
        first_id = self.append(
            "slices",
            track_id=track_id[pairs.start],
            name=name,
            category=category,
            quality=np.where(pairs.is_ambiguous, inferred, recorded).astype(np.int32),
            **paired_slices.columns(pairs, ts, ts_ticks, flags, last_known_ts),
        )
        return first_id + np.arange(count)

    def add_coverage(self, track_id: Any, start: Any, end: Any) -> None:
        """Add the time during which lanes were recorded; an empty argument adds nothing.

        Args:
            track_id: int64 [n] lanes, or one lane.
            start: int64 [n] times, or one for all lanes.
            end: int64 [n] times, not before ``start``, or one for all lanes.
        """
        given = [np.atleast_1d(value) for value in (track_id, start, end)]
        if all(map(len, given)):
            tracks, starts, ends = np.broadcast_arrays(*given)
            self.append("coverage", track_id=tracks, ts=starts, dur=ends - starts)

    def dictionary(self, table: str, column: str) -> Dictionary:
        """Return the texts behind a text column; names and categories are shared by slices and instants."""
        if table in ("slices", "instants") and column in ("name", "category", "quality"):
            return {"name": self.names, "category": self.categories, "quality": self._qualities}[column]
        return self._dictionaries.setdefault((table, column), Dictionary())

    def _column(self, table: str, spec: ColumnSpec, value: Any, valid: Any, length: int) -> Column:
        dictionary = self.dictionary(table, spec.name) if spec.type == "text" else None
        dtype = DTYPES[spec.type]
        if isinstance(value, Column):
            return value
        if value is None:
            value = _DEFAULTS.get(spec.name)
            if value is None:
                if not spec.nullable:
                    raise InternalError(f"missing column {table}.{spec.name}")
                return Column.null(length, dtype, dictionary=dictionary)
        if isinstance(value, str) or np.ndim(value) == 0:
            constant = dictionary.code(value) if dictionary is not None and isinstance(value, str) else value
            if valid is None:
                return Column.constant(constant, length, dtype, dictionary=dictionary)
            value = np.full(length, constant, dtype)
        if dictionary is not None and not isinstance(value, np.ndarray):
            value = dictionary.codes(value)
        array = np.asarray(value, dtype)
        if len(array) != length:
            raise InternalError(f"column {table}.{spec.name} has {len(array)} rows: expected {length}")
        if valid is not None:
            valid = np.asarray(valid, np.bool_)
            if valid.all():
                valid = None
            else:
                array = np.where(valid, array, np.asarray("" if dtype == np.dtype(object) else 0, dtype))
        return Column.array(array, valid=valid, dictionary=dictionary)

    # --- facts ------------------------------------------------------------------------------------------------

    def add_stat(
        self,
        name: str,
        count: int = 1,
        *,
        track_id: int | None = None,
        input_id: int | None = None,
        first_offset: int | None = None,
        first_ts: int | None = None,
    ) -> None:
        """Count a declared stat; counts add up per (name, track, input) and the first location is kept."""
        if not count:
            return
        if name not in self._stat_specs:
            raise InternalError(f"undeclared stat {name}")
        key = (name, track_id, input_id)
        if key in self._stats:
            self._stats[key]["count"] += count
        else:
            spec = self._stat_specs[name]
            self._stats[key] = {
                "name": name,
                "counted": spec.counted,
                "severity": spec.severity,
                "rule": spec.rule,
                "finding_severity": spec.finding_severity,
                "share_of": spec.share_of,
                "track_id": track_id,
                "input_id": input_id,
                "count": count,
                "first_offset": first_offset,
                "first_ts": first_ts,
            }

    def add_accounting(
        self,
        *,
        input_id: int,
        layer: int,
        unit: str,
        unit_bytes: int,
        total: int,
        decoded: int,
        padding: int = 0,
        lost: int = 0,
        scope: str = "input",
    ) -> None:
        """Add the accounting of an input's units; ``finish`` checks that it is complete."""
        self._accounts.append(
            {
                "input_id": input_id,
                "layer": layer,
                "scope": scope,
                "unit": unit,
                "unit_bytes": unit_bytes,
                "total": total,
                "decoded": decoded,
                "padding": padding,
                "lost": lost,
            }
        )

    def add_bytes(self, *, decoded: int, padding: int = 0, lost: int | None = None, input_id: int = 0) -> int:
        """Add the accounting of the bytes of an input.

        Args:
            decoded: bytes that were decoded.
            padding: bytes without content.
            lost: bytes that could not be decoded, where they were counted: ``finish`` checks that all add up; None: all
                others.
            input_id: the input.

        Returns:
            How many are lost.
        """
        size: int = self._shared["inputs"][input_id][_SIZE]
        lost = size - decoded - padding if lost is None else lost
        self.add_accounting(
            input_id=input_id,
            layer=0,
            unit="byte",
            unit_bytes=1,
            total=size,
            decoded=decoded,
            padding=padding,
            lost=lost,
        )
        return lost

    def add_dropped(self, *, unit: str, unit_bytes: int, recorded: int, dropped: int, input_id: int = 0) -> None:
        """Add how many units a producer recorded, and how many it dropped before the input was written."""
        self.add_accounting(
            input_id=input_id,
            layer=0,
            scope="producer",
            unit=unit,
            unit_bytes=unit_bytes,
            total=recorded + dropped,
            decoded=recorded,
            lost=dropped,
        )

    def records(self, name: str, make: Callable[[], Table]) -> None:
        """Register raw records that ``make`` decodes on request."""
        self._records[name] = make

    # --- batches ----------------------------------------------------------------------------------------------

    def pending(self) -> int:
        """Return how many slices and instants wait for the next batch."""
        return sum(len(rows["id"]) for name in ("slices", "instants") for rows in self._pending[name])

    def batch(self) -> Trace:
        """Return the rows appended since the last batch, with all shared tables so far."""
        return self._make({})

    def finish(self) -> Trace:
        """Return the last batch, with stats and accounting; ``InternalError`` if bytes are unaccounted for."""
        stats = table_of_rows(STATS, ({"id": i, **row} for i, row in enumerate(self._stats.values())))
        accounts = table_of_rows(ACCOUNTING, ({"id": i, **row} for i, row in enumerate(self._accounts)))
        accounting.verify(accounts, table_of_tuples(INPUTS, self._shared["inputs"]))
        return self._make({"stats": stats, "accounting": accounts})

    def _make(self, given: dict[str, Table]) -> Trace:
        tables = dict(given)
        for name, spec in self._specs.items():
            if spec is TRACKS:
                tables[name] = self._tracks.table()
            elif name in self._shared:
                tables[name] = self._shared_table(spec)
            elif name not in tables:
                parts, self._pending[name] = self._pending[name], []
                if parts:
                    tables[name] = Table(spec, joined_columns(spec, parts))
                else:
                    tables[name] = self._empty(spec)
        return Trace(self.time, tables, {name: tables[name] for name in self._details}, Records(self._records))

    def _shared_table(self, spec: TableSpec) -> Table:
        """Return the table so far; batches between which nothing was added have the same one."""
        made, rows = self._made.get(spec.name), self._shared[spec.name]
        if made is None or len(made) != len(rows):
            made = self._made[spec.name] = (
                table_of_inputs(rows) if rows and spec is INPUTS else table_of_tuples(spec, rows)
            )
        return made

    def _empty(self, spec: TableSpec) -> Table:
        if spec.name not in self._empties:
            self._empties[spec.name] = self._no_rows(spec)
        return self._empties[spec.name]

    def _no_rows(self, spec: TableSpec) -> Table:
        return Table(
            spec,
            {
                column.name: Column.array(
                    np.empty(0, DTYPES[column.type]),
                    dictionary=self.dictionary(spec.name, column.name) if column.type == "text" else None,
                )
                for column in spec.columns
            },
        )


def _length(columns: Mapping[str, Any]) -> int:
    for value in columns.values():
        if isinstance(value, Column) or (not isinstance(value, str) and np.ndim(value) > 0):
            return len(value)
    return 1
