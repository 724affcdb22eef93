"""Detail tables: arguments of slices as columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.foreign.kineto.emit.rows import Rows
from lanescope.foreign.kineto.formats import layout
from lanescope.foreign.kineto.interpret.classes import Classes
from lanescope.trace import Column, TraceBuilder
from lanescope.wire.trace_events import ArgValues, TraceEvents

Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Bytes of the file that are read at once for raw arguments.
_WINDOW = 16 << 20
#: Columns of each table by the argument that they hold.
_OPS = ("correlation", "external_id", "stream", "device", "context", "sequence", "forward_thread")
_KERNELS = (
    "registers", "shared_memory", "blocks_per_sm", "warps_per_sm", "occupancy", "queued", "priority", "graph",
    "graph_node",
)  # fmt: skip
_COLLECTIVES = (
    "collective", "in_elements", "out_elements", "dtype", "in_split", "out_split", "group_size", "group_name",
    "group_description", "group_ranks", "source_rank", "destination_rank", "communicator", "rank",
)  # fmt: skip
#: Arguments in which numbers mean "none".
_IDS = frozenset({"wait_stream", "wait_correlation", "wait_event", "stream"})


class _Filled:
    """Values of one argument in the rows of a table, filled in when somebody asks for them.

    Args:
        rows: int64 [n], ascending events.
        values: of some events.
        axis: of a triple.
        is_id: some numbers mean "none".
    """

    def __init__(self, rows: Int64, values: ArgValues, *, axis: int | None = None, is_id: bool = False) -> None:
        self._rows, self._given, self._axis, self._is_id = rows, values, axis, is_id

    @cached_property
    def _made(self) -> tuple[npt.NDArray[Any], Mask | None]:
        rows, event = self._rows, self._given.event
        value = self._given.value if self._axis is None else self._given.value[:, self._axis]
        if len(rows) == len(event) and np.array_equal(rows, event):  # every row has it
            filled, valid = value, np.ones(len(rows) if self._is_id else 0, np.bool_)
        else:
            at, valid = self._given.find(rows)
            filled = np.where(valid, value[at], value.dtype.type(0))
        if self._is_id and (is_none := layout.is_no_id(filled) & valid).any():
            valid &= ~is_none
            filled = np.where(is_none, 0, filled)
        del self._rows, self._given
        return filled, None if valid.all() else valid

    def values(self) -> npt.NDArray[Any]:
        """Return the values, 0 where there is none."""
        return self._made[0]

    def valid(self) -> Mask | None:
        """Return which rows have one; None if all have."""
        return self._made[1]


class _Maker:
    """Fills columns of a table for the events that it has rows of.

    Args:
        builder: takes the table.
        events: the events.
        values: arguments, of a part of the events that has all of ``rows``.
        rows: int64 [n], ascending events, all with a slice; at least one.
        table: its name.
    """

    def __init__(
        self, builder: TraceBuilder, events: TraceEvents, values: Mapping[str, ArgValues], rows: Int64, table: str
    ) -> None:
        self._builder, self._events, self._values, self._rows, self._table = builder, events, values, rows, table
        self._columns: dict[str, Any] = {}

    def add(self, argument: str, column: str | None = None) -> None:
        """Add a column that holds one argument."""
        name = column or argument
        values = self._values[argument]
        if layout.ARGS[argument].kind != "text":
            self._columns[name] = self._filled(values, is_id=argument in _IDS)
            return
        filled = _Filled(self._rows, values)
        dictionary = self._builder.dictionary(self._table, name)
        if not len(values.event):
            dictionary.code("")
            return
        codes_of_file, valid = filled.values(), filled.valid()
        used = np.flatnonzero(np.bincount(codes_of_file if valid is None else codes_of_file[valid], minlength=1))
        codes = np.zeros(int(used.max(initial=0)) + 1, np.int32)
        codes[used] = dictionary.codes([self._events.texts[number] for number in used.tolist()])
        dictionary.code("")
        if valid is not None:
            self._columns[f"{name}_valid"] = valid
            codes_of_file = np.where(valid, codes_of_file, used[0] if len(used) else 0)
        self._columns[name] = codes[codes_of_file]

    def add_triple(self, argument: str) -> None:
        """Add three columns that hold one argument."""
        for axis, letter in enumerate("xyz"):
            self._columns[f"{argument}_{letter}"] = self._filled(self._values[argument], axis=axis)

    def _filled(self, values: ArgValues, *, axis: int | None = None, is_id: bool = False) -> Column | None:
        if not len(values.event):
            return None
        filled = _Filled(self._rows, values, axis=axis, is_id=is_id)
        return Column.derived(len(self._rows), filled.values, valid=filled.valid)

    def finish(self, slices: Int64) -> None:
        """Append the table."""
        self._builder.append(self._table, slice_id=slices, **self._columns)


def add_details(builder: TraceBuilder, events: TraceEvents, classes: Classes, made: Rows, part: Int64) -> None:
    """Add the detail tables of slices.

    Args:
        builder: takes them.
        events: the events.
        classes: what they are.
        made: their rows.
        part: int64 [n], events whose slices get their details, the next ones of ``made.slices``.
    """
    if not len(part):
        return
    begin, end = int(part[0]), int(part[-1]) + 1
    values = {name: _between(given, begin, end) for name, given in events.values.items()}
    has_slice = made.slice_of[begin:end] >= 0

    def having(arguments: tuple[str, ...]) -> Int64:
        """Return the events with a slice that have any of several arguments, ascending."""
        has = np.zeros(end - begin, np.bool_)
        last = np.empty(0, np.int64)
        for name in arguments:
            event = values[name].event
            # Often the same events have several of them.
            if not np.array_equal(event, last):
                has[event - begin] = True
                last = event
        has &= has_slice
        return np.flatnonzero(has) + begin

    is_work = classes.is_work

    def table(name: str, rows: Int64, arguments: tuple[str, ...] | Mapping[str, str], *triples: str) -> None:
        if not len(rows):
            return
        maker = _Maker(builder, events, values, rows, name)
        for triple in triples:
            maker.add_triple(triple)
        named = arguments if isinstance(arguments, Mapping) else dict.fromkeys(arguments, "")
        for argument, column in named.items():
            maker.add(argument, column or None)
        maker.finish(made.slice_of[rows])

    table("kineto_ops", having(_OPS), _OPS)
    kernels = having((*_KERNELS, "grid", "block"))
    table("kineto_kernels", kernels[is_work[kernels]], _KERNELS, "grid", "block")
    table("kineto_copies", having(("bytes", "bandwidth")), ("bytes", "bandwidth", "kind"))
    collectives = having(("collective", "group_name", "collective_sequence"))
    table("kineto_collectives", collectives, {**dict.fromkeys(_COLLECTIVES, ""), "collective_sequence": "sequence"})
    table(
        "kineto_syncs",
        having(("sync_kind",)),
        ("sync_kind", "wait_stream", "wait_correlation", "wait_event"),
    )
    python = having(("python_id",))
    table("kineto_python", python, {"python_id": "call", "python_parent": "parent_call", "python_module": "module"})


def _between(values: ArgValues, begin: int, end: int) -> ArgValues:
    """Return the values of the events from ``begin`` to before ``end``."""
    first, last = np.searchsorted(values.event, (begin, end)).tolist()
    return ArgValues(values.event[first:last], values.value[first:last], values.odd)


def add_arguments(
    builder: TraceBuilder, events: TraceEvents, made: Rows, part: Int64, read: Callable[[int, int], bytes]
) -> None:
    """Add the table of all arguments of ``part``, which are read from the file when somebody asks for them."""
    has = events.args_size[part] > 0
    rows = part if has.all() else part[has]
    if not len(rows):
        return
    # Of the events nothing else is kept for it.
    places, slice_of = (events.begin, events.args_begin, events.args_size), made.slice_of

    def texts() -> npt.NDArray[np.object_]:
        begin = places[0][rows] + places[1][rows]
        end = begin + places[2][rows]
        found = np.empty(len(rows), object)
        first = 0
        while first < len(rows):
            last = max(int(np.searchsorted(end, begin[first] + _WINDOW, "right")), first + 1)
            start = int(begin[first])
            window = read(start, int(end[last - 1]) - start)
            for row in range(first, last):
                found[row] = window[begin[row] - start : end[row] - start].decode(errors="replace")
            first = last
        return found

    slices = Column.derived(len(rows), lambda: slice_of[rows])
    builder.append("kineto_args", slice_id=slices, args=Column.derived(len(rows), texts))
