"""Calls that waited for queues, lists, events, fences or devices: the operation that ended last of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.asof_join import Int64, Mask, join, pick
from lanescope.devices.levelzero.emit.event_signals import EventSignals
from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.event_model import is_text
from lanescope.devices.levelzero.interpret.resolved import Attributed
from lanescope.trace import Table

_EARLIEST = np.iinfo(np.int64).min
#: So many operations before a call are looked at where the clocks contradict each other.
_NEAR = 1024


class HostWaits:
    """What calls waited for.

    A queue, a list or a device is waited for with all that was submitted to it before the call; a fence with the
    execution that it was given to last; an event with the operation that was given to the device with it last. A call
    that timed out or failed waited for nothing that ended.

    Args:
        found: attributed records.
        submit_call: int64 [operations], the call that gave each to the device, a row of ``Calls`` or -1.

    Attributes:
        table: rows of ``host_waits`` whose calls are known.
        call: int64 [rows], row of ``Calls``.
        operation: int64 [rows], the operation that ended last, not after the call; -1 where there is none.
    """

    def __init__(self, found: Attributed, submit_call: Int64) -> None:
        self._found, self._submit_call = found, submit_call
        waits, seq = found.events["host_waits"], found.calls.seq
        place = np.minimum(np.searchsorted(seq, waits.values("seq")), max(len(seq) - 1, 0))
        mine = np.flatnonzero(seq[place] == waits.values("seq")) if len(seq) else np.empty(0, np.int64)
        self.table: Table = waits.take(mine)
        self.call: Int64 = place[mine]
        self.operation: Int64 = np.full(len(mine), -1, np.int64)
        self._process = found.events.process("host_waits")[mine]
        if len(submit_call) and len(mine):
            self._resolve()

    def _resolve(self) -> None:
        found, events = self._found, self._found.events
        operations, calls = found.operations, events["calls"]
        self._seq, self._handle = self.table.values("seq"), self.table.values("handle")
        exits = found.calls.exit[self.call]
        succeeded = (exits >= 0) & is_text(calls, "result", layout.SUCCESS)[exits]
        self._returned = pick(calls.values("ts"), exits) - found.base
        self._of = events.process("appends")[operations.append]
        runs = events["runs"]
        executed = operations.submit >= 0
        self._given = np.where(executed, pick(runs.values("seq"), operations.submit), self._append_seq())
        self._end = np.maximum(found.times.end, found.times.begin)
        self._ended = found.times.has_length & ~found.times.error

        def of(*targets: str) -> Int64:
            return np.flatnonzero(succeeded & is_text(self.table, "target", *targets))

        carriers, created, creator = self._carriers()
        rows = of("queue", "list")
        if len(rows):
            made = join([self._process[rows], self._handle[rows]], self._seq[rows], carriers, created).last_before()
            # Of one that was made before the recording neither shows when.
            maker = np.full(len(self._seq), -1, np.int64)
            maker[rows] = made
            self._latest(rows, [self._process, self._handle, maker], [self._of, self._carrier(), creator])
        rows = of("device")
        if len(rows):
            self._devices(rows)
        rows = of("fence")
        if len(rows):
            self._fences(rows)
        rows = of("event")
        if len(rows):
            self._events(rows)

    def _append_seq(self) -> Int64:
        appends: Int64 = self._found.events["appends"].values("seq")[self._found.operations.append]
        return appends

    def _carrier(self) -> npt.NDArray[np.uint64]:
        """Return the handle of the queue, or of the immediate list, that ran each operation, uint64 [operations]."""
        events, operations = self._found.events, self._found.operations
        lists, listed = events["lists"], self._found.appends.listed[operations.append]
        handle: npt.NDArray[np.uint64] = events["appends"].values("list")[operations.append]
        numbered = np.flatnonzero(listed >= 0)
        numbered = numbered[lists.valid("handle")[listed[numbered]]]
        handle[numbered] = lists.values("handle")[listed[numbered]]
        executed = np.flatnonzero(operations.submit >= 0)
        handle[executed] = events["runs"].values("queue")[operations.submit[executed]]
        return handle

    def _carriers(self) -> tuple[list[npt.NDArray[Any]], Int64, Int64]:
        """Return process and handle of the queues and lists that were made, when, and the latest of each operation."""
        events = self._found.events
        lists, queues = events["lists"], events["queues"]
        new = np.flatnonzero(is_text(lists, "action", "create"))
        handle = np.where(lists.valid("handle"), lists.values("handle"), lists.values("list"))[new]
        keys: list[npt.NDArray[Any]] = [
            np.concatenate([events.process("lists")[new], events.process("queues")]),
            np.concatenate([handle, queues.values("queue")]),
        ]
        created = np.concatenate([lists.values("seq")[new], queues.values("seq")])
        made = join([self._of, self._carrier()], self._given, keys, created).last_before()
        return keys, created, made

    def _latest(self, rows: Int64, wanted: list[npt.NDArray[Any]], keys: list[npt.NDArray[Any]]) -> None:
        """Choose for each wait the last operation to end of its key, of those that were given before it."""
        done = np.flatnonzero(self._ended)
        if not len(done):
            return
        mine = [key[done] for key in keys]
        before = join([key[rows] for key in wanted], self._seq[rows], mine, self._given[done])
        order = done[before.rows]
        # Keys are together, in whatever order of the keys.
        first = np.ones(len(order), np.bool_)
        first[1:] = np.logical_or.reduce([key[order[1:]] != key[order[:-1]] for key in keys])
        end = self._end[order]
        latest, place = _running(end, first)
        returned = self._returned[rows]
        at = before.at - 1
        known = before.at > before.low
        chosen = np.where(known, place[at], -1)
        fits = known & (latest[at] <= returned)
        # Clocks are fitted: of what seems to have ended later, the last one that had ended counts.
        for number in np.flatnonzero(known & ~fits).tolist():
            low = int(max(before.low[number], before.at[number] - _NEAR))
            some = low + np.flatnonzero(end[low : before.at[number]] <= returned[number])
            chosen[number] = some[end[some].argmax()] if len(some) else -1
            if low > before.low[number]:
                if latest[low - 1] > returned[number]:
                    chosen[number] = -1  # an exact answer would take all that the queue ever did
                elif not len(some) or latest[low - 1] > end[chosen[number]]:
                    chosen[number] = place[low - 1]
        self.operation[rows] = np.where(chosen >= 0, order[chosen], -1)

    def _devices(self, rows: Int64) -> None:
        devices, times = self._found.devices, self._found.times
        handles = self._found.events["devices"].values("device")[devices.row]
        own = np.where(times.device >= 0, pick(handles, times.device), 0)
        root = np.where(times.device >= 0, pick(devices.parent, times.device), -1)
        root_handle = np.where(root >= 0, pick(handles, root), own)
        wanted = [self._process, self._handle]
        is_root = np.isin(self._handle[rows], handles[devices.parent < 0])
        self._latest(rows[is_root], wanted, [self._of, root_handle])
        self._latest(rows[~is_root], wanted, [self._of, own])

    def _fences(self, rows: Int64) -> None:
        """A fence is signaled by the execution that it was given to last: calls, by the numbers of their entries."""
        fences = self._found.events["fences"]
        keys = [self._found.events.process("fences"), fences.values("fence")]
        last = join([self._process[rows], self._handle[rows]], self._seq[rows], keys, fences.values("seq"))
        given = pick(fences.values("seq"), last.last_before(), -1)
        of = np.where(self._submit_call >= 0, pick(self._found.calls.seq, self._submit_call), _EARLIEST)
        self._latest(rows, [_spread(given, rows, len(self._seq))], [of])

    def _events(self, rows: Int64) -> None:
        """An event is signaled by what was given with it last; a signal of an in-order list by all before it."""
        events, signals = self._found.events, EventSignals(self._found)
        appends, lists = events["appends"], events["lists"]
        wanted = self._process[rows], self._handle[rows], self._seq[rows]
        operation = signals.of_calls(*wanted)
        ended = (operation >= 0) & pick(self._ended, operation) & (pick(self._end, operation) <= self._returned[rows])
        self.operation[rows] = np.where(ended, operation, -1)
        signaller = signals.last_appended(*wanted)
        listed = pick(self._found.appends.listed, signaller, -1)
        is_signal = (signaller >= 0) & np.append(is_text(appends, "kind", layout.SIGNAL), False)[signaller]
        in_order = (listed >= 0) & np.append(lists.values("in_order") & lists.valid("in_order"), False)[listed]
        immediate = (listed >= 0) & np.append(lists.values("immediate") & lists.valid("immediate"), False)[listed]
        held = np.flatnonzero(is_signal & in_order & immediate & (self.operation[rows] < 0))
        if len(held):
            self._seq = self._seq.copy()
            self._seq[rows[held]] = appends.values("seq")[signaller[held]]
            of = self._found.appends.listed[self._found.operations.append]
            self._latest(rows[held], [_spread(listed, rows, len(self._seq))], [of])


def _spread(values: Int64, rows: Int64, count: int) -> Int64:
    found = np.full(count, -1, np.int64)
    found[rows] = values
    # What is not known is like nothing else: operations without it have -1.
    found[rows[values < 0]] = -2
    return found


def _running(end: Int64, first: Mask) -> tuple[Int64, Int64]:
    """Return the latest end so far within each group, and where it was reached first.

    Args:
        end: int64 [n], sorted by group.
        first: bool [n], whether a group begins.
    """
    if not len(end):
        return end, end
    number = np.cumsum(first) - 1
    step = int(end.max()) - int(end.min()) + 1
    # Groups are lifted off each other, so that one running maximum serves all of them.
    if step < (1 << 62) // max(int(number[-1]) + 1, 1):
        lifted = end - int(end.min()) + number * step
        latest = np.maximum.accumulate(lifted)
        place = np.maximum.accumulate(np.where(lifted == latest, np.arange(len(end)), 0))
        return latest - number * step + int(end.min()), place
    latest, place = end.copy(), np.arange(len(end))
    starts = np.append(np.flatnonzero(first), len(end))
    for low, high in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        latest[low:high] = np.maximum.accumulate(end[low:high])
        is_new = end[low:high] == latest[low:high]
        place[low:high] = np.maximum.accumulate(np.where(is_new, np.arange(low, high), low))
    return latest, place
