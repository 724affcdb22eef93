"""Table: named columns of equal length that DuckDB, polars, pandas and pyarrow read as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.errors import UsageError
from lanescope.trace.column import DTYPES, Array, Column, Dictionary, Mask
from lanescope.trace.schema import TableSpec


class Table:
    """An immutable table.

    Attributes:
        spec: the declaration: names, types, units and documentation of the columns.
    """

    __slots__ = ("_columns", "_length", "spec")

    def __init__(self, spec: TableSpec, columns: Mapping[str, Column]) -> None:
        if tuple(columns) != spec.names:
            raise ValueError(f"table {spec.name}: columns {tuple(columns)} are not the declared {spec.names}")
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

    def __repr__(self) -> str:
        return f"<Table {self.spec.name}: {self._length} rows, {len(self._columns)} columns>"

    def column(self, name: str) -> Column:
        """Return column ``name``; ``UsageError`` names the columns there are."""
        try:
            return self._columns[name]
        except KeyError:
            raise UsageError(
                f"table {self.spec.name} has no column {name!r}", hint="it has " + ", ".join(self.spec.names)
            ) from None

    def __getitem__(self, name: str) -> Array:
        """Return the values of a column, [n]; text as Python strings; 0 or "" where unknown."""
        column = self.column(name)
        return column.texts if column.dictionary is not None else column.values

    def codes(self, name: str) -> npt.NDArray[np.int32]:
        """Return the dictionary codes of a text column, int32 [n]."""
        return self.column(name).values

    def valid(self, name: str) -> Mask:
        """Return bool [n], False where the value is unknown."""
        valid = self.column(name).valid
        return np.broadcast_to(np.ones((), np.bool_), (self._length,)) if valid is None else valid

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield each row as a dict of Python values, ``None`` where unknown."""
        lists = []
        for name in self.spec.names:
            values = self[name].tolist()
            valid = self.column(name).valid
            if valid is not None:
                values = [value if known else None for value, known in zip(values, valid.tolist(), strict=True)]
            lists.append(values)
        for row in zip(*lists, strict=True):
            yield dict(zip(self.spec.names, row, strict=True))

    def take(self, indices: Array) -> Table:
        """Return the rows at ``indices`` (int64 [m]), in that order."""
        return Table(self.spec, {name: column.take(indices) for name, column in self._columns.items()})

    def where(self, mask: Mask) -> Table:
        """Return the rows where ``mask`` (bool [n]) holds."""
        return self.take(np.flatnonzero(mask))

    @staticmethod
    def concat(tables: Sequence[Table]) -> Table:
        """Join tables of one declaration end to end."""
        first = tables[0]
        return Table(first.spec, {n: Column.concat([t.column(n) for t in tables]) for n in first.spec.names})

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export as an Arrow C stream (the PyCapsule protocol); the requested schema is a hint we may ignore."""
        from lanescope.trace.arrow import stream

        return stream(self)
