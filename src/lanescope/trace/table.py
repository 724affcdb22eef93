"""Tables: named columns of equal length that DuckDB, polars, pandas and pyarrow read in place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.errors import UsageError
from lanescope.lazy_names import from_room
from lanescope.trace.column import DTYPES, Array, Column, Dictionary, Mask
from lanescope.trace.schema import TableSpec


class Table:
    """An immutable table: ``table[NAME]`` is a column, ``len(table)`` the number of rows, iteration yields rows.

    Attributes:
        spec: the declaration: names, types, units and documentation of the columns.

    Example:
        >>> from lanescope.trace.schema import GAPS
        >>> gap = {"track_id": 0, "ts": 0, "cause": "overrun", "lost_count": None, "input_id": 0, "first_offset": None}
        >>> rows = [{"id": 0, "dur": 5, **gap}, {"id": 1, "dur": None, **gap}]
        >>> table = Table.from_arrays(GAPS, {name: [row[name] for row in rows] for name in GAPS.names})
        >>> table["dur"].tolist(), int(table["dur"].sum()), int(table["dur"].count())
        ([5, None], 5, 1)
        >>> table["id"].tolist(), [row["dur"] for row in table]
        ([0, 1], [5, None])
    """

    __slots__ = ("_columns", "_length", "spec")

    def __init__(self, spec: TableSpec, columns: Mapping[str, Column]) -> None:
        if tuple(columns) != spec.names:
            raise ValueError(f"table {spec.name}: columns {tuple(columns)} differ from the declared {spec.names}")
        lengths = {len(column) for column in columns.values()}
        if len(lengths) > 1:
            raise ValueError(f"table {spec.name}: columns of different lengths {sorted(lengths)}")
        self.spec = spec
        self._columns = dict(columns)
        self._length = lengths.pop() if lengths else 0

    @classmethod
    def empty(cls, spec: TableSpec) -> Table:
        """Return a table of no rows."""
        return cls.from_arrays(spec, dict.fromkeys(spec.names, ()))

    @classmethod
    def from_arrays(cls, spec: TableSpec, columns: Mapping[str, Any]) -> Table:
        """Build a table from sequences; ``None`` inside a nullable column is a null, ``str`` becomes text.

        Args:
            spec: the declaration.
            columns: name -> sequence of values; every declared column, in any order.
        """
        made = {}
        for declared in spec.columns:
            values = columns[declared.name]
            valid = None
            if not isinstance(values, np.ndarray):
                values = list(values)
                if declared.nullable and None in values:
                    valid = np.array([value is not None for value in values], np.bool_)
                    blank = "" if declared.type in ("text", "utf8") else 0
                    values = [blank if value is None else value for value in values]
            dictionary = None
            if declared.type == "text":
                dictionary = Dictionary()
                values = dictionary.codes(values)
            made[declared.name] = Column.array(
                np.asarray(values, DTYPES[declared.type]), valid=valid, dictionary=dictionary
            )
        return cls(spec, made)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterate over the rows, as ``rows`` does: ``list(table)`` and ``pandas.DataFrame(table)`` take them."""
        return self.rows()

    def _ipython_key_completions_(self) -> list[str]:
        """Return the names of the columns, which notebooks offer after ``table["``."""
        return list(self.spec.names)

    def __repr__(self) -> str:
        """Return the first rows as aligned text, as many columns as fit the terminal."""
        return str(from_room("view.table_text", "table_text")(self))

    def _repr_html_(self) -> str:
        """Return the first rows as HTML, for notebooks."""
        return str(from_room("view.table_text", "table_html")(self))

    def column(self, name: str) -> Column:
        """Return column ``name``; ``UsageError`` names the columns there are."""
        try:
            return self._columns[name]
        except KeyError:
            raise UsageError(
                f"unknown column {name!r} of table {self.spec.name}", hint="use one of " + ", ".join(self.spec.names)
            ) from None

    def __getitem__(self, name: str) -> Array:
        """Return the values of a column; those that are unknown are masked.

        Args:
            name: one of ``spec.names``.

        Returns:
            [n] of the column's dtype, text as Python strings. A ``numpy.ma.MaskedArray`` where values are unknown, so
            that its sums and means leave them out; a plain array where all are known.

        Raises:
            UsageError: no column has this name; the hint lists those there are.
        """
        values, valid = self.values(name), self.column(name).valid
        if valid is None or valid.all():
            return values
        from numpy import ma

        masked: Array = ma.MaskedArray(values, mask=~valid)
        return masked

    def values(self, name: str) -> Array:
        """Return the stored values of a column without their mask: 0 or "" where unknown.

        For code that reads ``valid`` itself, or columns that have no nulls; nothing is copied.

        Args:
            name: one of ``spec.names``.

        Returns:
            [n] of the column's dtype, text as Python strings.

        Raises:
            UsageError: no column has this name; the hint lists those there are.
        """
        column = self.column(name)
        return column.texts if column.dictionary is not None else column.values

    def codes(self, name: str) -> npt.NDArray[np.int32]:
        """Return the dictionary codes of a text column, int32 [n]."""
        return self.column(name).values

    def valid(self, name: str) -> Mask:
        """Return bool [n], False where the value is unknown."""
        valid = self.column(name).valid
        return np.broadcast_to(np.ones((), np.bool_), (self._length,)) if valid is None else valid

    def nullable(self, name: str) -> tuple[Array, npt.NDArray[np.uint8]]:
        """Return the values of a column and which are known as native functions take them: empty where none or all are.

        A column that the table does not have is one without known values.
        """
        nothing = np.empty(0, np.int64), np.empty(0, np.uint8)
        if name not in self.spec.names or self.column(name).is_unknown:
            return nothing
        column = self.column(name)
        mask = nothing[1] if column.valid is None else np.ascontiguousarray(column.valid).view(np.uint8)
        return np.ascontiguousarray(column.values), mask

    def rows(self, *names: str) -> Iterator[dict[str, Any]]:
        """Yield each row as a dict of Python values, ``None`` where unknown; of the named columns, or else of all."""
        names = names or self.spec.names
        lists = []
        for name in names:
            values = self.values(name).tolist()
            valid = self.column(name).valid
            if valid is not None:
                values = [value if known else None for value, known in zip(values, valid.tolist(), strict=True)]
            lists.append(values)
        for row in zip(*lists, strict=True):
            yield dict(zip(names, row, strict=True))

    def take(self, indices: Array) -> Table:
        """Return the rows at ``indices`` (int64 [m]), in that order."""
        return Table(self.spec, {name: column.take(indices) for name, column in self._columns.items()})

    def between(self, start: int, stop: int) -> Table:
        """Return the rows from ``start`` to before ``stop``, not copied."""
        return Table(self.spec, {name: column.between(start, stop) for name, column in self._columns.items()})

    def piece(self, start: int, stop: int) -> Table:
        """Return the rows from ``start`` to before ``stop``; what has to be made for them is not kept."""
        return Table(self.spec, {name: column.piece(start, stop) for name, column in self._columns.items()})

    def only(self, names: Collection[str]) -> Table:
        """Return the table with some of its columns: what the others are made from may go."""
        spec = self.spec
        columns = tuple(column for column in spec.columns if column.name in names)
        return Table(
            TableSpec(spec.name, spec.doc, columns, spec.key),
            {column.name: self._columns[column.name] for column in columns},
        )

    def where(self, mask: Mask) -> Table:
        """Return the rows where ``mask`` (bool [n]) holds."""
        return self.take(np.flatnonzero(mask))

    def numbered(self) -> Table:
        """Return the table with ids that count its rows; one without ids as it is."""
        if "id" not in self._columns:
            return self
        return Table(self.spec, {**self._columns, "id": Column.array(np.arange(len(self)))})

    @staticmethod
    def concat(tables: Sequence[Table]) -> Table:
        """Join tables of one declaration end to end."""
        first = tables[0]
        return Table(first.spec, {n: Column.concat([t.column(n) for t in tables]) for n in first.spec.names})

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export as an Arrow C stream (the PyCapsule protocol); the requested schema is a hint we may ignore."""
        from lanescope.trace.arrow import stream

        return stream(self.spec, [self.column(name) for name in self.spec.names], len(self))


class LazyTable:
    """A declared table whose rows are computed at the first use and then kept.

    Attributes:
        spec: its declaration; reading it makes nothing.
    """

    def __init__(self, spec: TableSpec, make: Callable[[], Table]) -> None:
        self.spec = spec
        self._make = make

    def __repr__(self) -> str:
        return f"<LazyTable {self.spec.name}: {len(self.spec.columns)} columns>"

    @cached_property
    def table(self) -> Table:
        """The table, computed at the first access."""
        return self._make()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export as ``Table`` does; makes the table."""
        return self.table.__arrow_c_stream__(requested_schema)
