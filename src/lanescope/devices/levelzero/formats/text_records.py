"""State of reading a text trace: rows of the event model so far, calls under way, bad lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.event_model import Rows
from lanescope.devices.levelzero.formats.fields import BadField, Fields, byte, parse

#: Position in the stream, time, thread: how rows of most tables begin.
Stamp = tuple[int, int, int]
#: Takes one record of a kind, or raises BadField before it has added anything.
Handler = Callable[["Recorder", Stamp, bytes], None]
#: How many calls of a thread are remembered while they are under way; the oldest is given up beyond that.
_DEEPEST = 256
#: How many kinds of records are named that are not read; all others are counted together.
_MOST_KINDS = 1000


class BadRun:
    """Lines that are lost, without a record in between.

    Attributes:
        offset: byte offset of the first.
        lines: how many.
        before_ts: time of the last record before them, None at the begin.
        after_ts: time of the next record, None at the end.
    """

    def __init__(self, offset: int, lines: int, before_ts: int | None) -> None:
        self.offset, self.lines, self.before_ts = offset, lines, before_ts
        self.after_ts: int | None = None


class LostKind:
    """Records of one kind that no handler reads.

    Attributes:
        lines: how many lines.
        offset: byte offset of the first.
    """

    def __init__(self, lines: int, offset: int) -> None:
        self.lines, self.offset = lines, offset


class TextReport:
    """Accounting of the bytes of a text, and stats.

    Attributes:
        size: bytes read.
        padding: bytes of comments and blank lines.
        lost: bytes of lines that are no records, are of a kind that is not read, or have fields that cannot be read.
        bad_runs: where those lines are; the last one grows when there are too many.
        notes: how often what was noticed, by name of the stat.
        offsets: byte offset of the first of each.
        lost_kinds: records that are not read, by kind (``provider:event``); empty: those beyond the most that are kept.
    """

    def __init__(self) -> None:
        self.size = self.padding = self.lost = 0
        self.bad_runs: list[BadRun] = []
        self.notes: dict[str, int] = {}
        self.offsets: dict[str, int] = {}
        self.lost_kinds: dict[str, LostKind] = {}

    def lose_kind(self, kind: str, lines: int, offset: int) -> None:
        """Count a record of a kind that is not read."""
        if kind not in self.lost_kinds and len(self.lost_kinds) >= _MOST_KINDS:
            kind = ""
        self.lost_kinds.setdefault(kind, LostKind(0, offset)).lines += lines

    def note(self, stat: str, offset: int) -> None:
        """Count a fact."""
        self.notes[stat] = self.notes.get(stat, 0) + 1
        self.offsets.setdefault(stat, offset)


class Recorder:
    """Rows so far, and what has to be remembered between records.

    Args:
        rows: rows by table.
        processes: process of each thread; grows.
    """

    def __init__(self, rows: Mapping[str, Rows], processes: list[int]) -> None:
        self.rows, self.processes = rows, processes
        self._calls: dict[int, list[tuple[str, Stamp, Any]]] = {}
        self.globals: dict[tuple[int, int], list[int]] = {}
        self.memory_types: dict[int, str] = {}
        #: Names of callbacks of OpenMP, by event and what it is about.
        self.scopes: dict[tuple[str, str], str] = {}
        #: Names of ITT's events and strings, by process, kind and number.
        self.itt_names: dict[tuple[int, str, int], str] = {}
        self._itt_open: dict[tuple[int, str, int], list[int]] = {}
        #: What functions of other APIs were given last, by thread and function.
        self.given: dict[tuple[int, str], Any] = {}
        #: Lanes beside those of threads: the thread that each belongs to.
        self.lanes: dict[tuple[int, str, int], int] = {}
        self.lane_threads: dict[int, int] = {}
        #: What to add to times in fields, ns.
        self.shift_ns = 0

    def finish(self) -> None:
        """Take the end of the input: calls that never returned."""
        for calls in self._calls.values():
            for name, stamp, value in calls:
                if name in layout.EXECUTES:
                    self.executed(stamp, value, None)

    def lane(self, thread: int, key: tuple[str, int]) -> int:
        """Return a lane of a thread beside its own, as a row of threads."""
        found = self.lanes.get((thread, *key))
        if found is None:
            found = self.lanes[thread, *key] = len(self.processes)
            self.processes.append(self.processes[thread])
            self.lane_threads[found] = thread
        return found

    def itt_named(self, process: int, kind: str, number: int, name: str) -> None:
        """Remember a name."""
        self.itt_names[process, kind, number] = name

    def itt_begin(self, thread: int, key: tuple[str, int], function: int, handle: int) -> int:
        """Begin something on a lane by the code of its function; return the lane.

        Args:
            thread: the thread.
            key: kind and number of the lane.
            function: code of the function.
            handle: by what the name was looked up.
        """
        self._itt_open.setdefault((thread, *key), []).append(function)
        return self.lane(thread, key)

    def itt_end(self, thread: int, key: tuple[str, int]) -> int | None:
        """End what began last on a lane; return the code of its function, None if nothing is open."""
        stack = self._itt_open.get((thread, *key))
        return stack.pop() if stack else None

    def append_number(self) -> int:
        """Return the number of the next row of ``appends``."""
        return len(self.rows["appends"])

    def code(self, table: str, column: str, text: str) -> int:
        """Return the code of a text."""
        return self.rows[table].dictionary(column).code(text)

    def fields(self, payload: bytes) -> Fields:
        """Return the fields of the record.

        Raises:
            BadField: a part of it is not a field.
        """
        return Fields(parse(payload))

    def entered(self, function: str, stamp: Stamp, value: Any) -> None:
        """Remember what a function was given until it returns."""
        calls = self._calls.setdefault(stamp[2], [])
        calls.append((function, stamp, value))
        if len(calls) > _DEEPEST:
            del calls[0]

    def open_call(self, function: str, thread: int) -> tuple[Stamp, Any] | None:
        """Return when the innermost open call of a function began and what it was given, None if there is none."""
        for name, stamp, value in reversed(self._calls.get(thread, ())):
            if name == function:
                return stamp, value
        return None

    def left(self, function: str, thread: int) -> None:
        """Forget the innermost open call of a function, and what it called."""
        calls = self._calls.get(thread, [])
        for place in range(len(calls) - 1, -1, -1):
            if calls[place][0] == function:
                del calls[place:]
                return

    def executed(self, stamp: Stamp, value: tuple[int, list[int]], exit_ts: int | None) -> None:
        """Add the executions of lists by one call."""
        queue, lists = value
        for handle in lists:
            self.rows["runs"].add((*stamp, handle, queue, None, exit_ts, False))

    def kernel(self, action: str, stamp: Stamp, handle: int, **known: Any) -> None:
        """Add what became known of a kernel."""
        name = known.get("name")
        code = None if name is None else self.code("kernels", "name", name)
        group = known.get("group", (None, None, None))
        action_code = self.code("kernels", "action", action)
        self.rows["kernels"].add((*stamp, action_code, handle, code, known.get("simd"), *group))

    def allocated(self, stamp: Stamp, base: int, size: int, memory: str) -> None:
        """Add an allocation, or the end of one if ``memory`` is empty."""
        action = self.code("allocations", "action", "alloc" if memory else "free")
        self.rows["allocations"].add((*stamp, action, base, size, self.code("allocations", "memory", memory)))

    def listed(self, action: str, stamp: Stamp, number: int, **known: Any) -> None:
        """Add what became of a command list."""
        reason = known.get("reason")
        columns = ("handle", "context", "device", "ordinal", "index", "immediate", "in_order", "compute")
        code = None if reason is None else self.code("lists", "reason", reason)
        action_code = self.code("lists", "action", action)
        self.rows["lists"].add((*stamp, action_code, number, *(known.get(column) for column in columns), code))


def moved(value: int, shift: int) -> int:
    """Return the time of a field, of 0 to 2^63 - 1, moved by ``shift``; the latest possible time where it is later."""
    return min(value, layout.MOST_SIZE - max(shift, 0)) + shift


def result_name(text: str) -> str:
    """Return the name of a result that is written as a name or as a number.

    Raises:
        BadField: it is neither.
    """
    if not text.isascii() or not text.replace("_", "").isalnum():
        raise BadField("no result")
    if text.isdigit():
        number = Fields({"": text}).integer("")
        return layout.RESULTS.get(number, f"0x{number:x}")
    return text


def valid_bits(value: int) -> int:
    """Return a number of valid bits; 0 is what drivers give that know none."""
    if value > layout.MOST_BITS:
        raise BadField("no number of bits")
    return value


def uuid_text(value: Any) -> str:
    """Return a UUID as 32 hexadecimal digits from a list of bytes or from text; empty when there is none.

    Raises:
        BadField: it is none.
    """
    if isinstance(value, list):
        digits = "".join(f"{byte(item):02x}" for item in value)
    elif isinstance(value, str) or value is None:
        digits = (value or "").replace("-", "").lower()
    else:
        raise BadField("no UUID")
    if digits and (len(digits) != 32 or not set(digits) <= set("0123456789abcdef")):
        raise BadField("no UUID")
    return digits
