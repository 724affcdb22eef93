"""A file to a trace: its events window by window, then their meaning, then rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lanescope.common.stat_tally import StatTally
from lanescope.errors import InputError
from lanescope.foreign.chrome.emit.linked import LinkedEvents
from lanescope.foreign.chrome.emit.own import OwnTimeline
from lanescope.foreign.chrome.emit.timeline import Drawing, Timeline, make_tracks
from lanescope.foreign.chrome.emit.tracks import Tracks
from lanescope.foreign.chrome.formats import layout
from lanescope.foreign.chrome.formats.events import Events, FileText, read_events
from lanescope.foreign.chrome.formats.own import Written, written
from lanescope.foreign.chrome.interpret.places import Places
from lanescope.foreign.chrome.schema import EVENT, STATS, TABLES
from lanescope.foreign.chrome.survey import Survey
from lanescope.trace import Column, Dictionary, Table, TimeBase, Trace, TraceBuilder
from lanescope.wire.trace_events import WindowReader, read_windows

if TYPE_CHECKING:
    from lanescope.source import Capture

#: Values next to the list of events that are longer are not kept.
_LONGEST_VALUE = 1 << 16
#: Times in files of lanescope are below: durations are added to them.
_LATEST = 3 << 61
#: Stats of bytes that are lost, by the reason.
_LOSSES = {
    "broken": "chrome_broken",
    "outside": "chrome_broken",
    "element": "chrome_not_an_event",
    "cut": "truncated",
    "trailing": "chrome_trailing",
}
#: Bytes of text of which all events are kept: larger files are read twice.
WHOLE = 256 << 20
#: Bytes of text whose events are kept at a time.
WINDOW = 16 << 20
_PIECE = 1 << 20


class ChromeDecoder:
    """Reads events as they come, and draws them when what they need of the whole file is known.

    Events are in no order. A file of some size is read a second time, and a batch is made of each window of its text;
    what is kept are events that others belong to. Files that lanescope wrote are kept whole.

    Args:
        capture: the capture.
        options: none.
    """

    def __init__(self, capture: Capture, options: Mapping[str, Any]) -> None:
        self._capture = capture
        self._reader = WindowReader({}, capture.main.size, WHOLE, WINDOW)
        self._text = FileText(capture.main)
        self._stats = StatTally(STATS)
        self._survey = Survey(self._text, self._stats)

    def feed(self, data: memoryview) -> list[Trace]:
        """Take the next bytes."""
        events = self._reader.feed(data)
        if events is not None:
            self._survey.add(Events(events, self._text, self._survey.events))
        return []

    def finish(self) -> Iterator[Trace]:
        """Draw, some events at a time.

        Raises:
            InputError: the file changes while it is read.
        """
        text, stats, survey = self._text, self._stats, self._survey
        last = Events(self._reader.finish(), text, survey.events)
        survey.add(last, is_whole=not survey.events)
        kept = survey.kept(last)
        places = survey.places
        about = _about(last, survey, text)
        zero = survey.first if about is None else -about.base_ns
        builder = self._builder(about, zero)
        last_times = cache(partial(survey.last_times, kept))
        drawing = Drawing(builder, places, text, stats, zero, Tracks(builder, places), last_times=last_times)
        if about is None:
            yield from self._draw(drawing, kept, last)
        else:
            OwnTimeline(drawing, kept if survey.is_whole else read_events(text), about).draw()
        _append_metadata(builder, last, places, text)
        _count(last, survey, stats)
        lost = builder.add_bytes(decoded=last.read.decoded)
        assert lost == sum(run.end - run.begin for run in last.read.lost)
        content, unread = survey.sizes
        unread += sum(end - begin for _, begin, end in _unread(last))
        total = self._capture.main.size - lost
        builder.add_accounting(
            input_id=0,
            layer=1,
            unit="event byte",
            unit_bytes=1,
            total=total,
            decoded=content,
            padding=total - content - unread,
            lost=unread,
        )
        stats.emit(builder, 0)
        builder.records("chrome.event", partial(event_table, text))
        yield builder.finish()

    def _draw(self, drawing: Drawing, kept: Events, last: Events) -> Iterator[Trace]:
        """Draw all events of a file of others; yield the batches of all windows but the last."""
        survey, builder, text = self._survey, drawing.builder, self._text
        drawing.tracks.threads(np.array(sorted(survey.threads), np.int64))
        linked = LinkedEvents(drawing, kept)
        linked.plan_slices()
        make_tracks(drawing.tracks, survey.places, survey)
        linked.plan_flows()
        if survey.is_whole:
            Timeline(drawing, kept).draw()
        else:
            seen = 0
            for read in read_windows(text.read_view, text.size, WINDOW, {}, _PIECE):
                events = Events(read, text, seen)
                seen += len(events)
                Timeline(drawing, events).draw()
                yield builder.batch()
            if seen != survey.events or read.decoded != last.read.decoded:
                raise InputError(
                    f"{self._capture.main.path}: file changed while it was read", hint="run the command again"
                )
        linked.draw()

    def _builder(self, about: Written | None, zero: int) -> TraceBuilder:
        if about is None:
            time = TimeBase(epoch_ns=zero, epoch_kind="first_event")
        else:
            time = TimeBase(epoch_ns=about.epoch_ns, epoch_kind=about.epoch_kind, time_unit=about.time_unit)
        builder = TraceBuilder(time, details=TABLES, stats=STATS)
        main = self._capture.main
        builder.input(
            capture=self._capture.name,
            path=main.path,
            size=main.size,
            sha256=main.content_hash,
            family="chrome",
            format=layout.FORMAT,
        )
        return builder


def _about(events: Events, survey: Survey, text: FileText) -> Written | None:
    """Return what our own writer says of the file; None for a file of others."""
    found = [(begin, end) for key, begin, end in events.entries if key == "metadata"]
    if not found:
        return None
    begin, end = found[-1]
    head = text.read(begin, min(end - begin, 512))  # of a long text of another program no more
    about = written(text.read(begin, end - begin)) if b'"lanescope"' in head else None
    if about is not None and survey.latest + about.base_ns > _LATEST:
        return None
    return about


def _append_metadata(builder: TraceBuilder, events: Events, places: Places, text: FileText) -> None:
    rows: list[tuple[str | None, str | None, str, bytes | None]] = [
        (process, thread, name, value) for process, thread, name, value in places.metadata
    ]
    for key, begin, end in events.entries:
        is_kept = end - begin <= _LONGEST_VALUE
        rows.append((None, None, key, text.read(begin, end - begin) if is_kept else None))
    if not rows:
        return
    columns = list(zip(*rows, strict=True))
    made: dict[str, Any] = {"input_id": np.zeros(len(rows), np.int64)}
    for name, values in zip(("process", "thread", "name", "value"), columns, strict=True):
        texts = np.empty(len(rows), object)
        texts[:] = ["" if v is None else v.decode(errors="replace") if isinstance(v, bytes) else v for v in values]
        made[name] = texts
        if name != "name":
            made[f"{name}_valid"] = np.array([value is not None for value in values], np.bool_)
    builder.append("chrome_metadata", **made)


def _unread(events: Events) -> list[tuple[str, int, int]]:
    """Return the values next to the list of events that are not drawn."""
    return [entry for entry in events.entries if entry[0] in layout.NOT_READ_KEYS]


def _count(events: Events, survey: Survey, stats: StatTally) -> None:
    """Count what is unusual of the file outside of its events; ``events``: of its end."""
    read = events.read
    for run in read.lost:
        stats.add(_LOSSES[run.loss], offset=run.begin)
    is_unterminated = read.ending == "unterminated" or (read.ending == "foreign" and not read.lost)
    stats.add("chrome_unterminated", int(is_unterminated or read.has_trailing_comma))
    stats.add("chrome_no_events", int(not survey.events))
    stats.add("chrome_repeated_list", max(read.lists - 1, 0))
    stats.add("chrome_missing_comma", read.missing_commas)
    stats.add("chrome_bad_text", events.bad_texts)
    stats.add("chrome_long_text", events.long_texts)
    for key, begin, _ in _unread(events):
        stats.add(layout.NOT_READ_KEYS[key], offset=begin)


def event_table(text: FileText) -> Table:
    """Return the events of a file as they stand in it, read once more."""
    events = read_events(text)
    process, thread = (np.array([lane[side] for lane in events.lanes], object) for side in (0, 1))
    columns: dict[str, Column] = {
        "offset": Column.array(events.offset),
        "size": Column.array(events.size.astype(np.int64)),
        "phase": Column.array(np.array([chr(code) if code else "" for code in range(256)], object)[events.phase]),
        "ts": Column.array(events.ts, valid=(events.flags & layout.HAS_TIME) != 0),
        "dur": Column.array(events.dur, valid=(events.flags & layout.HAS_DURATION) != 0),
    }
    for name, of_lane in (("process", process), ("thread", thread)):
        columns[name] = Column.array(of_lane[events.lane] if len(events) else np.empty(0, object))
    for name, texts, values in (
        ("name", events.names, events.name),
        ("category", events.categories, events.category),
    ):
        dictionary = Dictionary()
        mapping = dictionary.codes(texts)
        columns[name] = Column.array(mapping[values], dictionary=dictionary)
    return Table(EVENT, columns)
