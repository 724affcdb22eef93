"""Detail tables: arguments of slices as columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
        # The place of each event from the first to the last row; -1: it is none of them.
        self._number = np.full(int(rows[-1] - rows[0]) + 1, -1, np.int64)
        self._number[rows - rows[0]] = np.arange(len(rows))

    def add(self, argument: str, column: str | None = None) -> None:
        """Add a column that holds one argument."""
        name = column or argument
        values = self._values[argument]
        kind = layout.ARGS[argument].kind
        at, mine = self._places(values.event)
        valid = np.zeros(len(self._rows), np.bool_)
        valid[at] = True
        filled = np.zeros(len(self._rows), np.float64 if kind == "number" else np.int64)
        filled[at] = values.value[mine]
        if argument in _IDS:
            valid &= ~np.isin(filled, layout.NO_ID)
        self._columns[f"{name}_valid"] = valid
        if kind != "text":
            self._columns[name] = filled
            return
        dictionary = self._builder.dictionary(self._table, name)
        used = np.flatnonzero(np.bincount(filled[valid], minlength=1)) if valid.any() else np.empty(0, np.int64)
        codes = np.zeros(int(used.max(initial=0)) + 1, np.int32)
        codes[used] = dictionary.codes([self._events.texts[number] for number in used.tolist()])
        dictionary.code("")
        self._columns[name] = codes[np.where(valid, filled, used[0] if len(used) else 0)]

    def add_triple(self, argument: str) -> None:
        """Add three columns that hold one argument."""
        values = self._values[argument]
        at, mine = self._places(values.event)
        valid = np.zeros(len(self._rows), np.bool_)
        valid[at] = True
        for axis, letter in enumerate("xyz"):
            filled = np.zeros(len(self._rows), np.int64)
            filled[at] = values.value[mine, axis]
            self._columns[f"{argument}_{letter}"] = filled
            self._columns[f"{argument}_{letter}_valid"] = valid

    def _places(self, event: Int64) -> tuple[Int64, Int64]:
        """Return where events, ascending, stand among the rows, and which of the events those are."""
        first = int(self._rows[0])
        low, high = np.searchsorted(event, (first, first + len(self._number))).tolist()
        at = self._number[event[low:high] - first]
        mine = np.flatnonzero(at >= 0)
        return at[mine], mine + low

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
        for name in arguments:
            has[values[name].event - begin] = True
        return np.flatnonzero(has & has_slice) + begin

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
    rows = part[events.args_size[part] > 0]
    if not len(rows):
        return
    begin = events.begin[rows] + events.args_begin[rows]
    end = begin + events.args_size[rows]

    def texts() -> npt.NDArray[np.object_]:
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

    builder.append("kineto_args", slice_id=made.slice_of[rows], args=Column.derived(len(rows), texts))
