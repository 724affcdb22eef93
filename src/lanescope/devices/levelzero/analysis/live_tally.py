"""The tally of a recording that grows: what is new is summed and forgotten.

What is kept grows with names, with live allocations and kernels, and with operations whose results are to come, not
with the length of the recording. Kernels, memory kinds and calls are resolved as for the whole recording. Times of
devices are ticks by the declared frequency, rounded one by one; those of the whole are by readings of both clocks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.asof_join import Int64
from lanescope.common.distinct import distinct
from lanescope.devices.levelzero.analysis.running_calls import CallEvents, RunningCalls
from lanescope.devices.levelzero.analysis.tally import DEVICE, SECTIONS, TALLY, TRAFFIC
from lanescope.devices.levelzero.emit.timeline import operation_name
from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.event_model import Events, is_text
from lanescope.devices.levelzero.interpret.appends import describe
from lanescope.devices.levelzero.interpret.call_matching import is_error, match
from lanescope.trace import Dictionary, Table

#: State that later pieces need: rows of these tables are kept until they are over.
_KEPT = ("kernels", "allocations", "lists", "devices", "queues")


@dataclass(slots=True, eq=False)
class _Pending:
    """Operations whose results are to come, sorted by process and number; arrays are [n]."""

    process: Int64 = field(default_factory=lambda: np.empty(0, np.int64))
    op: npt.NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    name: Int64 = field(default_factory=lambda: np.empty(0, np.int64))
    device: Int64 = field(default_factory=lambda: np.empty(0, np.int64))
    bytes: Int64 = field(default_factory=lambda: np.empty(0, np.int64))
    list: npt.NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    immediate: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))

    def joined(self, other: _Pending) -> _Pending:
        columns = [np.concatenate([getattr(self, name), getattr(other, name)]) for name in self.__slots__]
        order = np.lexsort((columns[1], columns[0]))
        return _Pending(*(column[order] for column in columns))

    def where(self, mask: npt.NDArray[np.bool_]) -> _Pending:
        return _Pending(*(getattr(self, name)[mask] for name in self.__slots__))

    def find(self, process: Int64, op: npt.NDArray[np.uint64]) -> Int64:
        """Return the row of each operation, int64 [m], -1: not there."""
        found = np.full(len(op), -1, np.int64)
        for number in np.flatnonzero(np.bincount(process, minlength=1)).tolist():
            begin, end = np.searchsorted(self.process, [number, number + 1])
            wanted = np.flatnonzero(process == number)
            place = begin + np.searchsorted(self.op[begin:end], op[wanted])
            is_there = place < end
            is_there[is_there] = self.op[place[is_there]] == op[wanted[is_there]]
            found[wanted[is_there]] = place[is_there]
        return found


class LiveTally:
    """Sums pieces of a recording as they come."""

    def __init__(self) -> None:
        self._names = Dictionary()
        self._running = RunningCalls(self._names)
        self._kept: dict[str, Table] = {}
        self._pending = _Pending()
        self._early: Table | None = None
        self.operations = 0

    @property
    def calls(self) -> int:
        """Calls that have returned."""
        return self._running.count

    @property
    def waiting(self) -> int:
        """Operations whose results are to come."""
        return len(self._pending.op)

    def add(self, piece: Events) -> None:
        """Add the next piece; its texts are those of the pieces before, and its positions go on from there."""
        tables = dict(piece)
        for name, kept in self._kept.items():
            tables[name] = Table.concat([kept, tables[name]]) if len(kept) else tables[name]
        if self._early is not None and len(self._early):
            tables["results"] = Table.concat([self._early, tables["results"]])
        events = Events(tables)
        self._calls(events)
        self._appends(events)
        self._results(events)
        self._keep(events)

    def _codes(self, texts: list[str]) -> Int64:
        return np.array([self._names.code(text) for text in texts], np.int64)

    def _calls(self, events: Events) -> None:
        table = events["calls"]
        if not len(table):
            return
        results, functions = table.column("result").dictionary, table.column("function").dictionary
        error = is_error([*(results.texts if results else []), ""])
        is_exit = table.values("is_exit")
        code = np.where(table.valid("result"), table.codes("result"), len(error) - 1)
        own = np.full(len(table), -1, np.int64)
        times = events["recorder_times"]
        if len(times):
            seq = table.values("seq")
            place = np.minimum(np.searchsorted(seq, times.values("seq")), len(seq) - 1)
            mine = seq[place] == times.values("seq")
            own[place[mine]] = times.values("dur")[mine]
        self._running.add(
            CallEvents(
                table.values("ts"),
                table.values("thread_id").astype(np.int64),
                self._codes(list(functions.texts) if functions else [])[table.codes("function")],
                is_exit,
                error[code],
                np.where(table.valid("bytes"), _sizes(table.values("bytes")), -1),
                own,
            )
        )

    def _appends(self, events: Events) -> None:
        table = events["appends"]
        if not len(table):
            return
        # Which call an operation was appended in plays no part.
        found = describe(events, match(Table.empty(events["calls"].spec)))
        functions = table.column("function").dictionary
        texts = list(functions.texts) if functions else []
        letters = ("", *(layout.MEMORY_LETTERS[memory] for memory in layout.MEMORIES))
        width = len(letters)
        combination = table.codes("function").astype(np.int64) * width * width + found.src.astype(np.int64) * width
        unique, inverse = np.unique(combination + found.dst, return_inverse=True)
        names = [operation_name(texts[c // width // width], c // width % width, c % width) for c in unique.tolist()]
        name = self._codes(names)[inverse]
        kernels = events["kernels"]
        row = np.append(found.states.row_name, -1)[found.kernel]
        named = np.flatnonzero(is_text(table, "kind", layout.KERNEL) & (row >= 0))
        if len(named):
            known = kernels.column("name").dictionary
            of_kernel = self._codes(list(known.texts) if known else [])
            name[named] = of_kernel[kernels.codes("name")[row[named]]]
        is_traffic = table.valid("bytes") & is_text(table, "kind", layout.COPY, layout.FILL)
        lists = events["lists"]
        listed = np.maximum(found.listed, 0)
        has_list = found.listed >= 0
        device = lists.values("device")[listed] if len(lists) else np.zeros(len(table), np.uint64)
        timed = ~is_text(table, "how", "UNTIMED") & ~is_text(table, "kind", layout.SIGNAL)
        new = _Pending(
            events.process("appends").astype(np.int64),
            table.values("op_id"),
            name,
            np.where(has_list, _device_rows(events, events.process("appends"), device), -1),
            np.where(is_traffic, _sizes(table.values("bytes")), -1),
            _numbers(events.process("appends"), table.values("list")),
            has_list & lists.values("immediate")[listed] if len(lists) else has_list,
        )
        self._pending = self._pending.joined(new.where(timed))

    def _results(self, events: Events) -> None:
        results, losses, pending = events["results"], events["losses"], self._pending
        row = pending.find(events.process("results").astype(np.int64), results.values("op_id"))
        self._early = results.where(row < 0)
        here = np.flatnonzero(row >= 0)
        of = row[here]
        ticks = results.values("global_end")[here] - results.values("global_start")[here]
        self._running.sum(DEVICE, pending.name[of], _ns(events, pending.device[of], ticks))
        self.operations += len(here)
        moved = pending.bytes[of] >= 0
        self._running.sum(TRAFFIC, pending.name[of[moved]], pending.bytes[of[moved]])
        gone = pending.find(events.process("losses").astype(np.int64), losses.values("op_id"))
        over = np.zeros(len(pending.op), np.bool_)
        over[of] = True
        over[gone[gone >= 0]] = True
        over &= pending.immediate
        # Numbers of lists are never used again in a process.
        over |= np.isin(pending.list, _ended(events))
        self._pending = pending.where(~over)

    def _keep(self, events: Events) -> None:
        """Keep what later pieces need."""
        for name in _KEPT:
            self._kept[name] = events[name]
        kernels, allocations, lists = (events[name] for name in ("kernels", "allocations", "lists"))
        kernels = kernels.where(~is_text(kernels, "action", "update"))
        last = _last_of(events["threads"].values("process_id")[kernels.values("thread_id")], kernels.values("kernel"))
        self._kept["kernels"] = kernels.take(last)
        last = _last_of(events.process("allocations"), allocations.values("base"))
        self._kept["allocations"] = allocations.take(last[is_text(allocations, "action", "alloc")[last]])
        numbers = _numbers(events.process("lists"), lists.values("list"))
        self._kept["lists"] = lists.where(~np.isin(numbers, _ended(events)))

    def table(self) -> Table:
        """Return the sums so far, as ``tally`` has them; calls that have not returned are open."""
        sums = self._running.now()
        rows = sorted(sums.items(), key=lambda row: (SECTIONS.index(row[0][0]), -row[1].total, row[0][1]))
        totals = {section: sum(part.total for (of, _), part in rows if of == section) for section in SECTIONS}
        texts = self._names.texts
        columns: dict[str, Any] = {
            "id": range(len(rows)),
            "section": [section for (section, _), _ in rows],
            "name": [texts[code] for (_, code), _ in rows],
            "hostname": [""] * len(rows),
            **{name: [None] * len(rows) for name in ("process", "thread", "device", "subdevice")},
            **{name: [getattr(part, name) for _, part in rows] for name in ("count", "errors", "open", "min", "max")},
            "total": [part.stored for _, part in rows],
            "average": [part.average for _, part in rows],
            "share": [part.total / totals[of] if totals[of] else None for (of, _), part in rows],
        }
        return Table.from_arrays(TALLY, columns)


def _sizes(values: npt.NDArray[np.uint64]) -> Int64:
    return np.minimum(values, np.uint64((1 << 63) - 1)).astype(np.int64)


def _numbers(process: npt.NDArray[np.int32], number: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the number of a list within its process as one of all processes, uint64 [n]: it has 32 bits."""
    return process.astype(np.uint64) << np.uint64(32) | number & np.uint64(0xFFFFFFFF)


def _ended(events: Events) -> npt.NDArray[np.uint64]:
    """Return the numbers of lists that were destroyed, or became another one by a Reset."""
    lists = events["lists"]
    numbers = _numbers(events.process("lists"), lists.values("list"))
    created = np.flatnonzero(is_text(lists, "action", "create"))
    last = created[_last_of(events.process("lists")[created], lists.values("handle")[created])]
    replaced = distinct(numbers[created])
    replaced = replaced[~np.isin(replaced, numbers[last])]
    return np.concatenate([numbers[is_text(lists, "action", "destroy")], replaced])


def _last_of(process: npt.NDArray[Any], key: npt.NDArray[np.uint64]) -> Int64:
    """Return the last row of each key, in the order of rows, int64 [keys]."""
    order = np.lexsort((np.arange(len(key)), key, process))
    changes = (np.diff(process[order]) != 0) | (np.diff(key[order].view(np.int64)) != 0)
    return np.sort(order[np.append(changes, True)]) if len(order) else order


def _device_rows(events: Events, process: npt.NDArray[np.int32], device: npt.NDArray[np.uint64]) -> Int64:
    """Return the row of ``devices`` of each handle, int64 [n], -1: unknown."""
    known = {
        (owner, handle): row
        for row, (owner, handle) in enumerate(
            zip(events.process("devices").tolist(), events["devices"].values("device").tolist(), strict=True)
        )
    }
    pairs, inverse = np.unique(np.stack([process.astype(np.uint64), device], axis=1), axis=0, return_inverse=True)
    rows = np.array([known.get((int(owner), int(handle)), -1) for owner, handle in pairs.tolist()], np.int64)
    return rows[inverse.reshape(-1)]


def _ns(events: Events, device: Int64, ticks: npt.NDArray[np.uint64]) -> Int64:
    """Return lengths in ns, one tick as 1 ns where the device is unknown, int64 [n]; -1: more than a timeline holds."""
    devices = events["devices"]
    found = np.zeros(len(ticks), np.int64)
    for row in np.flatnonzero(np.bincount(device + 1, minlength=1)).tolist():
        mine = device == row - 1
        if row == 0 or not devices.valid("ticks_per_second_num")[row - 1]:
            found[mine] = _sizes(ticks[mine])
            continue
        bits = layout.bits_of(int(devices.values("kernel_timestamp_bits")[row - 1]))
        rate = devices.values("ticks_per_second_num")[row - 1] / devices.values("ticks_per_second_den")[row - 1]
        length = (ticks[mine] & np.uint64((1 << bits) - 1)).astype(np.float64) * (layout.NS_PER_SECOND / rate)
        found[mine] = np.where(length < 2.0**62, np.rint(length), -1).astype(np.int64)
    return found
