"""The event model in memory: typed columns of everything that a recorder of Level Zero tells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.levelzero.formats.event_tables import EVENTS
from lanescope.trace import Column, Dictionary, Table, TableSpec
from lanescope.trace.column import DTYPES, Array

#: Rows that are kept as Python tuples before they become arrays.
_BLOCK = 1 << 16
#: Rows that follow one another in both of two orders, so that moving them at once is cheaper than one by one.
_LONG_RUN = 64
#: Threads of streams without any are numbered by their CPU, or by their stream: -1, -2, ... and -65537, -65538, ...
FIRST_STREAM = 1 << 16


class Rows:
    """Collects rows of one table; many rows cost little more than their columns.

    Attributes:
        add: takes one row, a tuple of the declared columns; text columns as codes of ``dictionary``.
    """

    def __init__(self, spec: TableSpec) -> None:
        self.spec = spec
        self._rows: list[tuple[Any, ...]] = []
        self._blocks: list[list[tuple[Array, Array | None]]] = []
        self._dictionaries = {c.name: Dictionary() for c in spec.columns if c.type == "text"}
        self.add = self._rows.append

    def __len__(self) -> int:
        return len(self._rows) + sum(len(block[0][0]) for block in self._blocks)

    def dictionary(self, column: str) -> Dictionary:
        """Return the texts of a text column."""
        return self._dictionaries[column]

    def loose(self) -> int:
        """Return how many rows are not packed."""
        return len(self._rows)

    def withdraw(self, kept: int) -> list[tuple[Any, ...]]:
        """Take the rows that are not packed back but for the first ``kept``; return them."""
        taken = self._rows[kept:]
        del self._rows[kept:]
        return taken

    def pack(self, *, least: int = _BLOCK) -> None:
        """Turn the collected rows into arrays if there are at least so many."""
        if len(self._rows) < max(least, 1):
            return
        block = []
        for column, values in zip(self.spec.columns, zip(*self._rows, strict=True), strict=True):
            valid = None
            if column.nullable and None in values:
                valid = np.fromiter((value is not None for value in values), np.bool_, len(values))
                values = tuple(0 if value is None else value for value in values)
            array = np.empty(len(values), DTYPES[column.type])
            array[:] = values
            block.append((array, valid))
        self._blocks.append(block)
        self._rows.clear()

    def add_block(
        self, columns: Mapping[str, tuple[Array, Array | None]], count: int, *, is_cleared: bool = False
    ) -> None:
        """Add rows that are arrays already; they come before the rows that are not packed yet.

        Args:
            columns: values [count] and which of them are known, bool [count]; those that are not given are unknown.
            count: how many rows.
            is_cleared: values that are not known are 0 already.
        """
        block: list[tuple[Array, Array | None]] = []
        for column in self.spec.columns:
            if column.name not in columns:
                block.append((np.zeros(count, DTYPES[column.type]), np.zeros(count, np.bool_)))
                continue
            values, valid = columns[column.name]
            if valid is not None:
                valid = None if valid.all() else valid
            values = _converted(values, np.dtype(DTYPES[column.type]))
            if valid is not None and not is_cleared:
                values = np.where(valid, values, values.dtype.type(0))
            block.append((values, valid))
        self._blocks.append(block)

    def table(self, sort: str = "") -> Table:
        """Return all rows; sorted by column ``sort`` when it is given, ties as they came."""
        self.pack(least=1)
        if not self._blocks:
            return self._empty()
        pieces: list[tuple[int, slice]] | None = [(number, slice(None)) for number in range(len(self._blocks))]
        order = self._order(sort)
        if order is not None:
            pieces = self._pieces(order)
        made = {}
        for index, column in enumerate(self.spec.columns):
            parts = [block[index] for block in self._blocks]
            has_nulls = any(valid is not None for _, valid in parts)
            known = [np.ones(len(values), np.bool_) if valid is None else valid for values, valid in parts if has_nulls]
            values = _joined([values for values, _ in parts], order, pieces)
            valid = _joined(known, order, pieces) if has_nulls else None
            made[column.name] = Column.array(values, valid=valid, dictionary=self._dictionaries.get(column.name))
        return Table(self.spec, made)

    def _empty(self) -> Table:
        """Return no rows: of most kinds a capture has none."""
        return Table(
            self.spec,
            {
                column.name: Column.array(
                    np.empty(0, DTYPES[column.type]), dictionary=self._dictionaries.get(column.name)
                )
                for column in self.spec.columns
            },
        )

    def _order(self, sort: str) -> npt.NDArray[np.int64] | None:
        """Return the rows of all blocks in the order of a column, int64 [n]; None if they are in it."""
        if not sort or len(self) < 2:
            return None
        index = self.spec.names.index(sort)
        keys = [block[index][0] for block in self._blocks]
        key = keys[0] if len(keys) == 1 else np.concatenate(keys)
        return np.argsort(key, kind="stable") if bool((key[1:] < key[:-1]).any()) else None

    def _pieces(self, order: npt.NDArray[np.int64]) -> list[tuple[int, slice]] | None:
        """Return blocks, and which of their rows, that make up an order; None if they would be many for their rows."""
        starts = np.cumsum([0, *(len(block[0][0]) for block in self._blocks)])
        # Behind a row comes the next one of its block, as a rule.
        is_begin = np.append(True, np.diff(order) != 1) | np.isin(order, starts)
        begins = np.flatnonzero(is_begin)
        if len(begins) * _LONG_RUN > len(order):
            return None
        firsts = order[begins]
        blocks = np.searchsorted(starts, firsts, side="right") - 1
        firsts, sizes = firsts - starts[blocks], np.diff(begins, append=len(order))
        return [
            (block, slice(first, first + size))
            for block, first, size in zip(blocks.tolist(), firsts.tolist(), sizes.tolist(), strict=True)
        ]


def _converted(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return numbers of another type; integers of one size are not moved."""
    if values.dtype.itemsize == dtype.itemsize and values.dtype.kind + dtype.kind in ("iu", "ui"):
        return values.view(dtype)
    return values.astype(dtype, copy=False)


def _joined(arrays: list[Array], order: npt.NDArray[np.int64] | None, pieces: list[tuple[int, slice]] | None) -> Array:
    """Join arrays of all blocks, as pieces or else in an order."""
    if pieces is None:
        found: Array = np.concatenate(arrays)[order]
        return found
    return (
        arrays[0] if order is None and len(arrays) == 1 else np.concatenate([arrays[at][part] for at, part in pieces])
    )


class Events(Mapping[str, Table]):
    """The tables of the event model, by name; those that are not given are empty.

    Args:
        tables: tables as ``schema.EVENTS`` declares them; those with ``seq`` are sorted by it.
    """

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._tables = {spec.name: tables.get(spec.name) or Table.empty(spec) for spec in EVENTS}

    @classmethod
    def of(cls, columns: Mapping[str, Mapping[str, Any]]) -> Events:
        """Make a model from columns by table; a nullable column that is missing is unknown in all rows.

        Args:
            columns: table -> column -> array, sequence with ``None`` for unknown values, scalar for all rows, or
                ``Column``.
        """
        specs = {spec.name: spec for spec in EVENTS}
        return cls({name: table_of(specs[name], given) for name, given in columns.items()})

    def __getitem__(self, name: str) -> Table:
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def process(self, table: str) -> npt.NDArray[np.int32]:
        """Return the process of each row of a table that names threads, int32 [n]."""
        found: npt.NDArray[np.int32] = self["threads"].values("process_id")[self[table].values("thread_id")]
        return found

    def count(self) -> int:
        """Return how many records there are in all."""
        return sum(len(table) for table in self._tables.values())


def is_text(table: Table, column: str, *texts: str) -> npt.NDArray[np.bool_]:
    """Return which rows of a text column hold one of ``texts``, bool [n]; unknown values hold none."""
    values = table.column(column)
    known = values.dictionary.texts if values.dictionary else []
    found = np.array([text in texts for text in known] or [False], np.bool_)[values.values]
    return found if values.valid is None else found & values.valid


def table_of(spec: TableSpec, given: Mapping[str, Any]) -> Table:
    """Make a table from arrays, sequences, scalars or columns; see ``Events.of``."""
    lengths = {len(value) for value in given.values() if isinstance(value, Column) or np.ndim(value) > 0}
    if len(lengths) > 1:
        raise ValueError(f"table {spec.name}: columns of different lengths {sorted(lengths)}")
    length = lengths.pop() if lengths else 1
    return Table(spec, {column.name: _column(column.name, column.type, given, length) for column in spec.columns})


def _column(name: str, type_: str, given: Mapping[str, Any], length: int) -> Column:
    dictionary = Dictionary() if type_ == "text" else None
    value = given.get(name)
    if isinstance(value, Column):
        return value
    if value is None:
        return Column.null(length, DTYPES[type_], dictionary=dictionary)
    if isinstance(value, str) or np.ndim(value) == 0:
        if dictionary is not None:
            value = dictionary.code(value)
        return Column.constant(value, length, DTYPES[type_], dictionary=dictionary)
    valid: npt.NDArray[np.bool_] | None = None
    if not isinstance(value, np.ndarray):
        value, valid = _without_nulls(value, blank="" if type_ in ("text", "utf8") else 0)
    if dictionary is not None:
        value = dictionary.codes(value)
    return Column.array(np.asarray(value, DTYPES[type_]), valid=valid, dictionary=dictionary)


def _without_nulls(values: Sequence[Any], *, blank: Any) -> tuple[list[Any], npt.NDArray[np.bool_] | None]:
    listed = list(values)
    if not any(value is None for value in listed):
        return listed, None
    valid = np.array([value is not None for value in listed], np.bool_)
    return [blank if value is None else value for value in listed], valid


def thread_name(number: int) -> str:
    """Return the name of a thread, or of the lane that takes its place where a trace has none.

    Example:
        >>> thread_name(7), thread_name(-1), thread_name(-65538)
        ('thread 7', 'CPU 0', 'stream 1')
    """
    if number >= 0:
        return f"thread {number}"
    return f"CPU {-1 - number}" if -number <= FIRST_STREAM else f"stream {-1 - FIRST_STREAM - number}"
