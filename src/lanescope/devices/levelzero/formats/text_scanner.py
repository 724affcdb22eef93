"""The text form of a trace -> the event model, natively.

A native scanner takes the lines that leave no doubt, which nearly all are, and stops before any other. That line goes
to the reference reader, which judges it; what it learnt from it (a thread, a kind of record, a text) is told to the
scanner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.event_model import Rows
from lanescope.devices.levelzero.formats.fields import BadField
from lanescope.devices.levelzero.formats.text_calls import REMEMBERED
from lanescope.devices.levelzero.formats.text_itt import EVENT, LANES
from lanescope.devices.levelzero.formats.text_reader import ReferenceTextReader
from lanescope.devices.levelzero.formats.text_records import Handler, Recorder, Stamp
from lanescope.devices.levelzero.formats.text_shapes import Shapes

_FUNCTIONS = {number: name for name, number in REMEMBERED.items()}


class TextReader(ReferenceTextReader):
    """Reads the text form, in pieces of any size; what it is given and reports is what ``ReferenceTextReader`` says."""

    def _new_recorder(self) -> Recorder:
        self._contexts_told = 0
        self._kinds_told: set[bytes] = set()
        self._shapes = Shapes(self._rows, self._shrink, self._shift_ns)
        return _Recorder(self._rows, self._thread_process, self._shapes)

    def feed(self, data: memoryview | bytes) -> None:
        """Take the next bytes."""
        content = bytes(data)
        self.report.size += len(content)
        end = content.rfind(b"\n") + 1
        place = 0
        if end and self._rest:
            place = content.index(b"\n") + 1
            self._end_line(content[: place - 1])
            self._learn()
        while place < end:
            if not self._open and self._last_ts is not None:
                place = self._scan(content, place, self._last_ts)
                if place == end:
                    break
            newline = content.index(b"\n", place)
            self._whole_line(content[place:newline])
            self._learn()
            place = newline + 1
        self._keep(content[end:])
        for rows in self._rows.values():
            rows.pack()

    def _scan(self, content: bytes, place: int, last_ts: int) -> int:
        """Let the scanner take lines; return the place of the first that it leaves."""
        begin = self._offset - place
        scanned = self._shapes.scanner.scan(content, place, begin, self._seq, last_ts, self._day_ns)
        end: int = scanned[0]
        _, self._seq, self._last_ts, first_ts, (count, first) = scanned
        self._offset = begin + end
        report = self.report
        if count:
            stat = "levelzero_time_backwards"
            report.notes[stat] = report.notes.get(stat, 0) + count
            report.offsets.setdefault(stat, first)
        if first_ts is not None and self._is_bad:
            self._is_bad = False
            report.bad_runs[-1].after_ts = first_ts
        return end

    def _learn(self) -> None:
        """Tell the scanner what the last line taught."""
        scanner = self._shapes.scanner
        if self._contexts_told < len(self._whose):
            context, thread = next(reversed(self._whose.items()))
            scanner.add_context(context, thread)
            self._contexts_told += 1
        self._shapes.tell_texts()
        kind = self._kind
        # A kind that is not read stays with the reference, which counts and names it.
        if self._handlers.get(kind) is None or kind in self._kinds_told:
            return
        if self._shapes.tell_kind(kind):
            self._kinds_told.add(kind)

    def _gather(self) -> None:
        self._shapes.gather()


class Records(NamedTuple):
    """Records whose times and threads are known, in any order.

    Attributes:
        names: what the kinds are called, ``PROVIDER:EVENT``.
        handlers: what reads the records of each kind.
        kinds: int64 [n], index into ``names``.
        seq: int64 [n], position in the order of all records.
        ts: int64 [n], ns.
        threads: int64 [n], row of threads.
        payloads: the fields of all records, one behind the other.
        ends: int64 [n], where the payload of each ends.
    """

    names: Sequence[str]
    handlers: Sequence[Handler]
    kinds: npt.NDArray[np.int64]
    seq: npt.NDArray[np.int64]
    ts: npt.NDArray[np.int64]
    threads: npt.NDArray[np.int64]
    payloads: bytes
    ends: npt.NDArray[np.int64]


class PayloadReader:
    """Reads records that have the fields of a text, natively as far as they leave no doubt.

    Args:
        rows: rows by table; calls under way are kept from ``read`` to ``read``.
        processes: process of each thread.
    """

    def __init__(self, rows: Mapping[str, Rows], processes: list[int]) -> None:
        self._shapes = Shapes(rows, 1, 0)
        self._recorder = _Recorder(rows, processes, self._shapes)
        self._told: set[bytes] = set()

    def read(self, records: Records) -> dict[int, int]:
        """Read records in their order; return by kind how many have fields that are not what they have to be."""
        order = np.argsort(records.seq, kind="stable")
        bad: dict[int, int] = {}
        place, columns = 0, (records.kinds, records.seq, records.ts, records.threads, records.ends)
        while True:
            place = self._shapes.scanner.take_records(records.names, order, *columns, records.payloads, place)
            if place == len(order):
                return bad
            at = int(order[place])
            group = int(records.kinds[at])
            begin = int(records.ends[at - 1]) if at else 0
            stamp = int(records.seq[at]), int(records.ts[at]), int(records.threads[at])
            try:
                records.handlers[group](self._recorder, stamp, records.payloads[begin : int(records.ends[at])])
            except BadField:
                bad[group] = bad.get(group, 0) + 1
            self._learn(records.names[group].encode())
            place += 1

    def _learn(self, kind: bytes) -> None:
        self._shapes.tell_texts()
        if kind not in self._told and self._shapes.tell_kind(kind):
            self._told.add(kind)

    def finish(self) -> Mapping[int, int]:
        """Add all rows; return the lanes beside threads that were made, and the thread of each."""
        self._recorder.finish()
        self._shapes.gather()
        return self._recorder.lane_threads


class _Recorder(Recorder):
    """Keeps calls under way where the scanner does; what a number cannot say stays here, under a token."""

    def __init__(self, rows: Mapping[str, Rows], processes: list[int], shapes: Shapes) -> None:
        super().__init__(rows, processes)
        self._shapes = shapes
        self._values: dict[int, Any] = {}
        self._next_token = 0
        shapes.scopes = self.scopes

    def itt_named(self, process: int, kind: str, number: int, name: str) -> None:
        if kind == EVENT or (process, kind, number) in self.itt_names:
            self._shapes.scanner.forget_names(LANES.index(kind), number)
        super().itt_named(process, kind, number, name)

    def itt_begin(self, thread: int, key: tuple[str, int], function: int, handle: int) -> int:
        scanner, (what, number) = self._shapes.scanner, key
        lane, kind = self.lane(thread, key), LANES.index(what)
        scanner.add_lane(thread, kind, number, lane)
        # A task whose name stands in its own record is read there.
        if (self.processes[thread], what, handle) in self.itt_names or what == EVENT:
            scanner.add_name(thread, kind, handle, function)
        scanner.push(thread, kind, number, function)
        return lane

    def itt_end(self, thread: int, key: tuple[str, int]) -> int | None:
        found: int | None = self._shapes.scanner.pop(thread, LANES.index(key[0]), key[1])
        return found

    def append_number(self) -> int:
        return super().append_number() + self._shapes.append_count()

    def entered(self, function: str, stamp: Stamp, value: Any) -> None:
        token = self._next_token
        self._next_token += 1
        self._values[token] = value
        seq, ts, thread = stamp
        for gone in self._shapes.scanner.enter(thread, REMEMBERED[function], seq, ts, token):
            del self._values[gone]

    def open_call(self, function: str, thread: int) -> tuple[Stamp, Any] | None:
        call = self._shapes.scanner.find(thread, REMEMBERED[function])
        return None if call is None else self._call(thread, call)

    def _call(self, thread: int, call: Any) -> tuple[Stamp, Any]:
        function, seq, ts, is_token, value, listed = call
        if is_token:
            value = self._values[value]
        elif _FUNCTIONS[function] in layout.EXECUTES:
            value = value, listed
        return (seq, ts, thread), value

    def left(self, function: str, thread: int) -> None:
        for gone in self._shapes.scanner.leave(thread, REMEMBERED[function]):
            del self._values[gone]

    def finish(self) -> None:
        for thread, call in self._shapes.scanner.open:
            if _FUNCTIONS[call[0]] in layout.EXECUTES:
                stamp, value = self._call(thread, call)
                self.executed(stamp, value, None)
