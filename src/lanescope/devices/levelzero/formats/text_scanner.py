"""The text form of a trace -> the event model, natively.

A native scanner takes the lines that leave no doubt, which nearly all are, and stops before any other. That line goes
to the reference reader, which judges it; what it learnt from it (a thread, a kind of record, a text) is told to the
scanner.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.event_model import Rows
from lanescope.devices.levelzero.formats.text_calls import REMEMBERED
from lanescope.devices.levelzero.formats.text_cells import CREATIONS
from lanescope.devices.levelzero.formats.text_itt import EVENT, LANES
from lanescope.devices.levelzero.formats.text_reader import ReferenceTextReader
from lanescope.devices.levelzero.formats.text_records import Recorder, Stamp
from lanescope.devices.levelzero.formats.text_shapes import Shapes

_FUNCTIONS = {number: name for name, number in REMEMBERED.items()}


class TextReader(ReferenceTextReader):
    """Reads the text form, in pieces of any size; what it is given and reports is what ``ReferenceTextReader`` says."""

    def _new_recorder(self) -> Recorder:
        self._contexts_told = 0
        self._kinds_told: set[bytes] = set()
        #: Rows of calls that the scanner cannot hold.
        self._calls_kept = 0
        self._shapes = Shapes(self._rows, self._shrink, self._shift_ns)
        return ScannerRecorder(self._rows, self._thread_process, self._shapes)

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
        self._calls_kept = self._rows["calls"].loose()

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
        """Tell the scanner what the last line taught, and give it the rows of calls."""
        scanner, calls = self._shapes.scanner, self._rows["calls"]
        if calls.loose() > self._calls_kept:
            for row in self._shapes.keep_calls(calls.withdraw(self._calls_kept)):
                calls.add(row)
            self._calls_kept = calls.loose()
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


class ScannerRecorder(Recorder):
    """Keeps calls under way where the scanner does; what a number cannot say stays here, under a token."""

    def __init__(self, rows: Mapping[str, Rows], processes: list[int], shapes: Shapes) -> None:
        super().__init__(rows, processes)
        self._shapes = shapes
        self._values: dict[int, Any] = {}
        self._next_token = 0
        #: Whether calls under way were begun or ended, since it was set to False.
        self.has_moved = False
        shapes.scopes = self.scopes

    def itt_named(self, process: int, kind: str, number: int, name: str) -> None:
        """Take what an event or task is called; see ``Recorder``."""
        if kind == EVENT or (process, kind, number) in self.itt_names:
            self._shapes.scanner.forget_names(LANES.index(kind), number)
        super().itt_named(process, kind, number, name)

    def itt_begin(self, thread: int, key: tuple[str, int], function: int, handle: int) -> int:
        """Begin an event or task on its lane."""
        scanner, (what, number) = self._shapes.scanner, key
        lane, kind = self.lane(thread, key), LANES.index(what)
        scanner.add_lane(thread, kind, number, lane)
        # A task whose name stands in its own record is read there.
        if (self.processes[thread], what, handle) in self.itt_names or what == EVENT:
            scanner.add_name(thread, kind, handle, function)
        scanner.push(thread, kind, number, function)
        return lane

    def itt_end(self, thread: int, key: tuple[str, int]) -> int | None:
        """End what began last on a lane."""
        found: int | None = self._shapes.scanner.pop(thread, LANES.index(key[0]), key[1])
        return found

    def append_number(self) -> int:
        """Return the number of the next append."""
        return super().append_number() + self._shapes.append_count()

    def entered(self, function: str, stamp: Stamp, value: Any) -> None:
        """Remember a call under way."""
        self.has_moved = True
        token = self._next_token
        self._next_token += 1
        self._values[token] = value
        seq, ts, thread = stamp
        for gone in self._shapes.scanner.enter(thread, REMEMBERED[function], seq, ts, token):
            del self._values[gone]

    def open_call(self, function: str, thread: int) -> tuple[Stamp, Any] | None:
        """Return the entry of a call under way and what was kept of it."""
        call = self._shapes.scanner.find(thread, REMEMBERED[function])
        return None if call is None else self._call(thread, call)

    def _call(self, thread: int, call: Any) -> tuple[Stamp, Any]:
        function, seq, ts, is_token, value, listed = call
        if is_token:
            value = self._values[value]
        elif _FUNCTIONS[function] in layout.EXECUTES:
            value = value, listed
        elif _FUNCTIONS[function] in CREATIONS:
            value = created(_FUNCTIONS[function], listed)
        return (seq, ts, thread), value

    def left(self, function: str, thread: int) -> None:
        """Forget a call."""
        self.has_moved = self.has_moved or self._shapes.scanner.find(thread, REMEMBERED[function]) is not None
        for gone in self._shapes.scanner.leave(thread, REMEMBERED[function]):
            del self._values[gone]

    def finish(self) -> None:
        """Conclude the calls that never returned."""
        for thread, call in self._shapes.scanner.open:
            if _FUNCTIONS[call[0]] in layout.EXECUTES:
                stamp, value = self._call(thread, call)
                self.executed(stamp, value, None)


def created(function: str, kept: list[int]) -> Any:
    """Return what the reference keeps of the entry of a function that creates something.

    Args:
        function: its name.
        kept: bits of the cells that are there, and the cells.
    """
    sheet, names, _, _ = CREATIONS[function]
    given = {name: kept[cell + 1] if kept[0] >> cell & 1 else None for cell, name in enumerate(names)}
    if sheet == "created_queues":
        return tuple(given.values())
    flags, immediate = given.pop("flags"), sheet == "immediate_lists"
    bit = layout.QUEUE_IN_ORDER if immediate else layout.LIST_IN_ORDER
    return {**given, "immediate": immediate, "in_order": None if flags is None else bool(flags & bit)}
