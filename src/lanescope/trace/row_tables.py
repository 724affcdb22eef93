"""Tables made of rows that a builder collects: tracks and inputs that batches share, stats, parts of columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.trace.column import Column
from lanescope.trace.schema import INPUTS, TRACKS, TableSpec
from lanescope.trace.table import Table


class TrackRows:
    """The tracks so far: a table of those that batches have, and rows behind them that are in none yet.

    Attributes:
        rows: values in the order of the columns.
    """

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self._made: Table | None = None

    def __len__(self) -> int:
        return len(self.rows) + (0 if self._made is None else len(self._made))

    def add(self, more: Table) -> None:
        """Add tracks, a table; many take a tenth of the memory of as many rows."""
        self._made = Table.concat([self.table(), more])

    def table(self) -> Table:
        """Return all tracks; the same table as before if nothing was added."""
        if self._made is None:
            self._made, self.rows = table_of_tuples(TRACKS, self.rows), []
        elif self.rows:
            self._made, self.rows = Table.concat([self._made, table_of_tuples(TRACKS, self.rows)]), []
        return self._made


def joined_columns(spec: TableSpec, parts: Sequence[Mapping[str, Column]]) -> dict[str, Column]:
    """Join the columns of the parts of a table; what is one column in all parts (times that are ticks) stays one."""
    made: dict[tuple[int, ...], Column] = {}
    found = {}
    for name in spec.names:
        columns = [part[name] for part in parts]
        same = tuple(map(id, columns))
        if same not in made:
            made[same] = Column.concat(columns)
        found[name] = made[same]
    return found


def table_of_rows(spec: TableSpec, rows: Iterable[Mapping[str, Any]]) -> Table:
    """Make a table of rows by name of column."""
    listed = list(rows)
    return Table.from_arrays(spec, {name: [row[name] for row in listed] for name in spec.names})


def table_of_tuples(spec: TableSpec, rows: Sequence[tuple[Any, ...]]) -> Table:
    """Make a table of rows whose values stand as the table declares its columns."""
    columns = zip(*rows, strict=True) if rows else ((),) * len(spec.columns)
    return Table.from_arrays(spec, dict(zip(spec.names, columns, strict=True)))


def table_of_inputs(rows: Sequence[tuple[Any, ...]]) -> Table:
    """Make the table of inputs; what is given as a function (hashes, options) is computed when somebody reads it."""
    known = table_of_tuples(INPUTS, [tuple("" if callable(value) else value for value in row) for row in rows])
    columns = {name: known.column(name) for name in INPUTS.names}
    for name, values in zip(INPUTS.names, zip(*rows, strict=True), strict=True):
        if any(map(callable, values)):
            columns[name] = Column.derived(len(rows), partial(_texts, values))
    return Table(INPUTS, columns)


def _texts(values: Iterable[str | Callable[[], str]]) -> npt.NDArray[np.object_]:
    return np.array([value if isinstance(value, str) else value() for value in values], object)


def options_as_json(options: Mapping[str, Any]) -> str:
    """Return options as JSON, ordered by name; those that nearly all captures have without ``json``, a dear import."""
    pairs = [(_plain_json(name), _plain_json(options[name])) for name in sorted(options)]
    if not any(None in pair for pair in pairs):
        return f"{{{', '.join(f'{name}: {value}' for name, value in pairs)}}}"
    import json

    return json.dumps(options, sort_keys=True, default=str)


def _plain_json(value: Any) -> str | None:
    """Return a word, a number, a truth value or nothing as JSON; None for everything else."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if type(value) is int or (type(value) is float and abs(value) < math.inf):
        return repr(value)
    is_word = type(value) is str and value.isascii() and value.replace("_", "a").isalnum()
    return f'"{value}"' if is_word else None
