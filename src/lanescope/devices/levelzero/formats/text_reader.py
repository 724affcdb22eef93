"""The text form of a trace -> the event model: the reference reader.

One record a line, ``HH:MM:SS.nnnnnnnnn - HOST - vpid: P, vtid: T - PROVIDER:EVENT: { FIELDS }``, or over several, up
to a closing brace. Blank lines and lines that begin with ``#`` are comments.
"""

from __future__ import annotations

from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.event_model import Events, Rows
from lanescope.devices.levelzero.formats.event_tables import EVENTS
from lanescope.devices.levelzero.formats.fields import BadField, NotRead
from lanescope.devices.levelzero.formats.text_handlers import handler_of
from lanescope.devices.levelzero.formats.text_records import BadRun, Handler, Recorder, TextReport

_DAY_NS = 86_400 * layout.NS_PER_SECOND
#: A step back by more than this is midnight.
_HALF_DAY_NS = _DAY_NS // 2
#: Longest record that is put together from several lines, in bytes.
_LONGEST = 1 << 20
#: Replaces a longer line: neither a record nor a comment.
_TOO_LONG = b"\xff"

#: How many places of unreadable lines are kept apart.
_MOST_RUNS = 10_000


class ReferenceTextReader:
    """Reads the text form, in pieces of any size: judges every line, and is slow. ``TextReader`` says the same.

    Args:
        shrink: what fractions of a second are divided by: 1, or ``layout.THAPI_SHRINK`` for THAPI's own tests.
        day_s: begin of the day of the first record, seconds since the Unix epoch.

    Attributes:
        report: what became of the bytes.
    """

    def __init__(self, *, shrink: int = 1, day_s: int = layout.THAPI_DATE_S) -> None:
        self.report = TextReport()
        self._shrink = shrink
        self._day_ns = day_s * layout.NS_PER_SECOND
        self._rows = {spec.name: Rows(spec) for spec in EVENTS}
        self._rest: list[bytes] = []
        self._rest_size = 0
        self._open: list[bytes] = []
        self._open_offset = self._open_size = 0
        self._offset = 0
        self._seq = 0
        self._last_ts: int | None = None
        self._processes: dict[tuple[str, int], int] = {}
        self._threads: dict[tuple[int, int], int] = {}
        self._thread_process: list[int] = []
        self._tids: dict[int, int] = {}
        self._whose: dict[bytes, int] = {}
        self._handlers: dict[bytes, Handler | None] = {}
        #: What to add to times in fields, ns: they count on the date that texts without one are given.
        self._shift_ns = (day_s - layout.THAPI_DATE_S) * layout.NS_PER_SECOND
        self._recorder = self._new_recorder()
        self._recorder.shift_ns = self._shift_ns
        #: The kind of the last record.
        self._kind = b""
        self._is_bad = False
        self._clock = b""
        self._clock_ns = 0

    def _new_recorder(self) -> Recorder:
        return Recorder(self._rows, self._thread_process)

    # --- bytes -> lines -> records ------------------------------------------------------------------------------

    def feed(self, data: memoryview | bytes) -> None:
        """Take the next bytes."""
        self.report.size += len(data)
        lines = bytes(data).split(b"\n")
        if len(lines) == 1:
            self._keep(lines[0])
            return
        self._end_line(lines[0])
        for line in lines[1:-1]:
            self._whole_line(line)
        self._keep(lines[-1])
        for rows in self._rows.values():
            rows.pack()

    def _keep(self, begin: bytes) -> None:
        """Keep the begin of a line; of one that is too long only its size."""
        if begin:
            self._rest.append(begin)
            self._rest_size += len(begin)
            if self._rest_size > _LONGEST:
                self._rest = [_TOO_LONG]

    def _end_line(self, end: bytes, newline: int = 1) -> None:
        self._keep(end)
        line = b"".join(self._rest) if self._rest_size <= _LONGEST else _TOO_LONG
        size, self._rest, self._rest_size = self._rest_size, [], 0
        self._line(line, size + newline)

    def _whole_line(self, line: bytes) -> None:
        self._line(line if len(line) <= _LONGEST else _TOO_LONG, len(line) + 1)

    def finish(self) -> Events:
        """Take the end of the input, and return all records."""
        if self._rest:
            begin, padding = self._offset, self.report.padding
            self._end_line(b"", newline=0)
            if self._is_bad:
                self.report.note("truncated", begin)
            elif self.report.padding == padding and not self._open:
                self.report.note("levelzero_unfinished_line", begin)
        if self._open:
            self._bad(self._open_offset, self._open_size, len(self._open))
            self.report.note("truncated", self._open_offset)
        self._recorder.finish()
        self._gather()
        for number, process in enumerate(self._thread_process):
            tid = self._tids[self._recorder.lane_threads.get(number, number)]
            self._rows["threads"].add((process, tid))
        by_seq = {name: "seq" if "seq" in rows.spec.names else "" for name, rows in self._rows.items()}
        by_seq["waits"] = "append"
        return Events({name: rows.table(by_seq[name]) for name, rows in self._rows.items()})

    def _gather(self) -> None:
        """Add rows that were kept elsewhere."""

    def _line(self, line: bytes, size: int) -> None:
        offset = self._offset
        self._offset += size
        if self._open:
            if layout.RECORD_START.match(line) is None:
                self._continue(line, size)
                return
            self._bad(self._open_offset, self._open_size, len(self._open))
            self._open = []
        if line.endswith(b"\r"):
            line = line[:-1]
        match = layout.RECORD_START.fullmatch(line)
        if match is None:
            if not line.strip() or line.startswith(b"#"):
                self.report.padding += size
            else:
                self._bad(offset, size)
            return
        payload = match[6].rstrip()
        if payload.endswith(b"}"):
            self._record(match.groups(), payload, offset, size)
        elif payload.startswith(b"{"):
            self._open, self._open_offset, self._open_size = [line], offset, size
        else:
            self._bad(offset, size)

    def _continue(self, line: bytes, size: int) -> None:
        self._open.append(line.strip())
        self._open_size += size
        if line.rstrip() == b"}":
            joined = b" ".join(self._open)
            count, self._open = len(self._open), []
            match = layout.RECORD_START.fullmatch(joined)
            if match is None:
                self._bad(self._open_offset, self._open_size, count)
            else:
                self._record(match.groups(), match[6], self._open_offset, self._open_size, count)
        elif self._open_size > _LONGEST:
            self._bad(self._open_offset, self._open_size, len(self._open))
            self._open = []

    def _bad(self, offset: int, size: int, lines: int = 1, stat: str = "levelzero_invalid_line") -> None:
        self.report.lost += size
        self.report.note(stat, offset)
        self.report.notes[stat] += lines - 1
        runs = self.report.bad_runs
        if self._is_bad or len(runs) >= _MOST_RUNS:
            runs[-1].lines += lines
        else:
            runs.append(BadRun(offset, lines, self._last_ts))
        runs[-1].after_ts = None
        self._is_bad = True

    def _lose(self, offset: int, size: int, lines: int) -> None:
        """Lose a record of a kind that is not read, the current one, and name it."""
        self._bad(offset, size, lines, "levelzero_unknown_record")
        self.report.lose_kind(self._kind.decode(), lines, offset)

    def _record(self, parts: tuple[bytes, ...], payload: bytes, offset: int, size: int, lines: int = 1) -> None:
        clock, fraction, context, provider, event, _ = parts
        if clock != self._clock:
            hour, minute, second = int(clock[:2]), int(clock[3:5]), int(clock[6:])
            if hour > 23 or minute > 59 or second > 59:
                self._bad(offset, size, lines)
                return
            self._clock = clock
            self._clock_ns = (hour * 3600 + minute * 60 + second) * layout.NS_PER_SECOND
        ns = int(fraction) if len(fraction) == 9 else int(fraction) * 10 ** (9 - len(fraction))
        ts = self._day_ns + self._clock_ns + ns // self._shrink
        self._kind = kind = provider + b":" + event
        try:
            handler = self._handlers[kind]
        except KeyError:
            handler = handler_of(provider.decode(), event.decode())
            self._handlers[kind] = handler
        if handler is None:
            self._lose(offset, size, lines)
            return
        self._take(ts, handler, self._whose.get(context), context, payload, offset, size, lines)

    def _take(
        self,
        ts: int,
        handler: Handler,
        thread: int | None,
        context: bytes,
        payload: bytes,
        offset: int,
        size: int,
        lines: int,
    ) -> None:
        """Take a record; ``context`` names its thread where that is not known yet."""
        last = self._last_ts
        is_midnight = last is not None and last - ts > _HALF_DAY_NS
        if is_midnight:
            ts += _DAY_NS
            if ts >= layout.LATEST_NS:
                self._bad(offset, size, lines, "levelzero_invalid_time")
                return
        try:
            if thread is None:
                self._first(context, handler, ts, payload)
            else:
                handler(self._recorder, (self._seq + 1, ts, thread), payload)
        except NotRead:
            self._lose(offset, size, lines)
            return
        except BadField:
            self._bad(offset, size, lines, "levelzero_invalid_field")
            return
        self._seq += 1
        if is_midnight:
            self._day_ns += _DAY_NS
        elif last is not None and ts < last:
            self.report.note("levelzero_time_backwards", offset)
        if self._is_bad:
            self._is_bad = False
            self.report.bad_runs[-1].after_ts = ts
        self._last_ts = ts

    def _first(self, context: bytes, handler: Handler, ts: int, payload: bytes) -> None:
        """Take the first record of a thread; the thread is known only if the record can be read."""
        host, _, numbers = context.partition(b" - vpid: ")
        pid, tid = (int(number) for number in numbers.split(b", vtid: "))
        try:
            name = host.decode()
        except UnicodeDecodeError:
            raise BadField("no UTF-8") from None
        if not name.isprintable() or max(pid, tid) > layout.MOST_PID:
            raise BadField("no host, process or thread")
        process = self._processes.get((name, pid), len(self._processes))
        thread = self._threads.get((process, tid), len(self._thread_process))
        is_new = thread == len(self._thread_process)
        if is_new:
            self._thread_process.append(process)
        try:
            handler(self._recorder, (self._seq + 1, ts, thread), payload)
        except BadField:
            if is_new:
                self._thread_process.pop()
            raise
        self._whose[context] = thread
        if is_new:
            self._threads[process, tid] = thread
            self._tids[thread] = tid
        if process == len(self._processes):
            self._processes[name, pid] = process
            self._rows["processes"].add((name, pid))
