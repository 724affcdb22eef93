"""The decoder: a text trace -> one ``Trace``.

Whose a result is may be decided by records far before it, so the decoder keeps the records, as columns, and gives one
batch at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from lanescope.devices.levelzero.emit.timeline import Timeline
from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.event_model import Events
from lanescope.devices.levelzero.formats.text_records import TextReport
from lanescope.devices.levelzero.formats.text_scanner import TextReader
from lanescope.devices.levelzero.interpret.resolved import attributed
from lanescope.devices.levelzero.schema import DETAILS, STATS
from lanescope.errors import UsageError
from lanescope.source import Capture
from lanescope.source.disk_arrays import large_work_on_disk
from lanescope.trace import Table, TimeBase, Trace, TraceBuilder

_MS = 1_000_000
#: File name endings of THAPI's own tests.
_THAPI_TESTS = (".thapi_text_pretty", ".thapi_text_pretty.gz")


class LevelZeroDecoder:
    """Decodes one text trace.

    Args:
        capture: the capture.
        options: as ``family.LevelZero.options`` declares them.

    Raises:
        UsageError: an option's value is none.
    """

    def __init__(self, capture: Capture, options: Mapping[str, Any]) -> None:
        self._capture, self._options = capture, dict(options)
        time = options["time_format"]
        if time not in layout.TIMES:
            raise UsageError(f"invalid value {time!r} for --time-format (choose from {', '.join(layout.TIMES)})")
        self._tolerance = tolerance_of(options)
        self._is_shrunk = time == "thapi" or (time == "auto" and is_thapi_test(capture))
        self._day = _day(options["start_date"])
        day_s = layout.THAPI_DATE_S if self._day is None else self._day
        self._reader = TextReader(shrink=layout.THAPI_SHRINK if self._is_shrunk else 1, day_s=day_s)

    def feed(self, data: memoryview) -> list[Trace]:
        """Read the next bytes."""
        self._reader.feed(data)
        return []

    def events(self) -> Events:
        """Take the end of the input, and return its records."""
        return self._reader.finish()

    def finish(self) -> list[Trace]:
        """Attribute and draw."""
        with large_work_on_disk(self._capture.main.size):
            return self._drawn()

    def _drawn(self) -> list[Trace]:
        events = self.events()
        report = self._reader.report
        found = attributed(events, tolerance=self._tolerance)
        zero = found.origin()
        builder = TraceBuilder(
            TimeBase(zero, "first_event" if self._day is None else "unix"), details=DETAILS, stats=STATS
        )
        main = self._capture.main
        input_id = builder.input(
            capture=self._capture.name,
            path=main.path,
            size=report.size,
            sha256=main.content_hash,
            family="levelzero",
            format=layout.TEXT_FORMAT,
            options={name: value for name, value in self._options.items() if value is not None},
        )
        Timeline(builder, found, zero=zero, input_id=input_id).draw()
        self._report(builder, report, zero, input_id)
        for name, table in events.items():
            builder.records(f"levelzero.{name}", partial(_same, table))
        return [builder.finish()]

    def _report(self, builder: TraceBuilder, report: TextReport, zero: int, input_id: int) -> None:
        for stat, count in report.notes.items():
            if stat != "levelzero_unknown_record":
                builder.add_stat(stat, count, input_id=input_id, first_offset=report.offsets[stat])
        if self._is_shrunk:
            builder.add_stat("levelzero_thapi_time", input_id=input_id)
        if self._day is None:
            builder.add_stat("levelzero_missing_date", input_id=input_id)
        decoded = report.size - report.padding - report.lost
        builder.add_bytes(decoded=decoded, padding=report.padding, input_id=input_id)
        if report.bad_runs:
            track = builder.track("unreadable lines", kind="lane", role="input", input_id=input_id)
            self._name_lost(builder, report, track, input_id)
            runs = report.bad_runs
            begins = [max((zero if run.before_ts is None else run.before_ts) - zero, 0) for run in runs]
            ends = [None if run.after_ts is None else run.after_ts - zero for run in runs]
            builder.append(
                "gaps",
                track_id=track,
                ts=begins,
                dur=[max((end or 0) - begin, 0) for begin, end in zip(begins, ends, strict=True)],
                dur_valid=[end is not None for end in ends],
                cause="bad_lines",
                lost_count=[run.lines for run in runs],
                input_id=input_id,
                first_offset=[run.offset for run in runs],
            )

    def _name_lost(self, builder: TraceBuilder, report: TextReport, parent: int, input_id: int) -> None:
        """Count the records that no handler reads, each kind on a lane of its name."""
        for kind, lost in report.lost_kinds.items():
            name = kind or "other kinds of records"
            track = builder.track(name, kind="lane", role="input", parent=parent, input_id=input_id)
            builder.add_stat(
                "levelzero_unknown_record", lost.lines, track_id=track, input_id=input_id, first_offset=lost.offset
            )


def _same(table: Table) -> Table:
    return table


def tolerance_of(options: Mapping[str, Any]) -> int:
    """Return the option ``clock_tolerance_ms`` in ns."""
    tolerance = options["clock_tolerance_ms"]
    if not isinstance(tolerance, int | float) or not 0 <= tolerance < 3.6e6:
        raise UsageError(f"invalid value {tolerance!r} for --clock-tolerance-ms: expected milliseconds, e.g. 10")
    return int(tolerance * _MS)


def is_thapi_test(capture: Capture) -> bool:
    """Return whether times mean what they mean in THAPI's tests: by name, and all fractions whole milliseconds."""
    if not capture.main.name.endswith(_THAPI_TESTS):
        return False
    head = capture.main.head()
    starts = [layout.RECORD_START.match(line) for line in head.data.split(b"\n")]
    return all(int(start[2].ljust(9, b"0")) % _MS == 0 for start in starts if start is not None)


def _day(date: Any) -> int | None:
    """Return the begin of a day in UTC, seconds since the Unix epoch; None when no day is given."""
    if date is None:
        return None
    try:
        day = int(datetime.strptime(str(date), "%Y-%m-%d").replace(tzinfo=UTC).timestamp())
    except ValueError:
        raise UsageError(f"invalid value {date!r} for --start-date: expected YYYY-MM-DD") from None
    if not 0 <= day * layout.NS_PER_SECOND < layout.LATEST_NS:
        raise UsageError(f"invalid value {date!r} for --start-date: expected a date from 1970-01-01 to 2261-12-31")
    return day
