"""A file to a trace: its events window by window, then their meaning, then rows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lanescope.common.stat_tally import StatTally
from lanescope.foreign.chrome.emit.own import OwnTimeline
from lanescope.foreign.chrome.emit.timeline import Timeline
from lanescope.foreign.chrome.formats import layout
from lanescope.foreign.chrome.formats.events import Events, FileText, read_events
from lanescope.foreign.chrome.formats.own import Written, written
from lanescope.foreign.chrome.interpret.places import Places
from lanescope.foreign.chrome.schema import EVENT, STATS, TABLES
from lanescope.trace import Column, Dictionary, Table, TimeBase, Trace, TraceBuilder
from lanescope.wire.trace_events import TraceEventReader

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
#: Stats of bits of the flags of events.
_BITS = {
    layout.ROUNDED: "chrome_rounded",
    layout.TEXT_TIME: "chrome_text_time",
    layout.REPEATED_KEY: "chrome_repeated_key",
    layout.TOO_DEEP: "chrome_deep_arguments",
    layout.HAS_STACK: "chrome_stacks",
    layout.HAS_THREAD_TIME: "chrome_thread_time",
}


class ChromeDecoder:
    """Reads events as they come, and draws them when all are known: they are in no order.

    Args:
        capture: the capture.
        options: none.
    """

    def __init__(self, capture: Capture, options: Mapping[str, Any]) -> None:
        self._capture = capture
        self._reader = TraceEventReader(expected=capture.main.size)

    def feed(self, data: memoryview) -> list[Trace]:
        """Take the next bytes."""
        self._reader.feed(data)
        return []

    def finish(self) -> list[Trace]:
        """Return the trace."""
        text = FileText(self._capture.main)
        events = Events(self._reader.finish(), text)
        places = Places.of(events, text)
        about = _about(events, text)
        stats = StatTally(STATS)
        zero = 0 if about is not None else _first_time(events)
        builder = self._builder(about, zero)
        if about is None:
            Timeline(builder, events, places, text, stats, zero).draw()
        else:
            OwnTimeline(builder, events, places, text, stats, about).draw()
        _append_metadata(builder, events, places, text)
        decoded = _count(events, stats)
        lost = builder.add_bytes(decoded=events.read.decoded)
        assert lost == sum(run.end - run.begin for run in events.read.lost)
        unread = int(events.size[~decoded].sum()) + sum(end - begin for _, begin, end in _unread(events))
        content = int(events.size[decoded].sum())
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
        return [builder.finish()]

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


def _about(events: Events, text: FileText) -> Written | None:
    """Return what our own writer says of the file; None for a file of others."""
    found = [(begin, end) for key, begin, end in events.entries if key == "metadata"]
    if not found:
        return None
    begin, end = found[-1]
    head = text.read(begin, min(end - begin, 64))
    about = written(text.read(begin, end - begin)) if b'"lanescope"' in head else None
    if about is not None and len(events) and int(events.ts.max()) + about.base_ns > _LATEST:
        return None
    return about


def _first_time(events: Events) -> int:
    """Return the first time of anything that is drawn; 0 if nothing is."""
    if events.has_times and set(np.flatnonzero(events.by_phase).tolist()) <= {*layout.READ}:
        rows = events.of_phase(layout.METADATA)
        timed = np.delete(events.ts, rows) if len(rows) else events.ts
    else:
        rows = events.of_phase(*(phase for phase in layout.READ if phase != layout.METADATA))
        timed = events.ts[rows[(events.flags[rows] & layout.HAS_TIME) != 0]]
    return int(timed.min()) if len(timed) else 0


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


def _count(events: Events, stats: StatTally) -> Any:
    """Count what is not drawn and what is unusual; return which events are read, bool [n].

    An event of a kind that is drawn, but without a readable time or the id that it needs, is not;
    ``chrome_missing_time`` and ``chrome_missing_id`` count those.
    """
    read = events.read
    for run in read.lost:
        stats.add(_LOSSES[run.loss], offset=run.begin)
    is_unterminated = read.ending == "unterminated" or (read.ending == "foreign" and not read.lost)
    stats.add("chrome_unterminated", int(is_unterminated or read.has_trailing_comma))
    stats.add("chrome_no_events", int(not len(events)))
    stats.add("chrome_missing_comma", read.missing_commas)
    stats.add("chrome_bad_text", events.bad_texts)
    stats.add("chrome_long_text", events.long_texts)
    by_phase = events.by_phase
    is_read = np.zeros(256, np.bool_)
    is_read[list(layout.READ)] = True
    counted = {0, *layout.READ}
    for stat, phases in layout.NOT_READ.items():
        counted |= set(phases)
        _count_phases(events, stats, stat, by_phase, phases)
    _count_phases(events, stats, "chrome_not_an_event", by_phase, (0,))
    unknown = tuple(phase for phase in np.flatnonzero(by_phase).tolist() if phase not in counted)
    _count_phases(events, stats, "chrome_unknown_phase", by_phase, unknown)
    for key, begin, _ in _unread(events):
        stats.add(layout.NOT_READ_KEYS[key], offset=begin)
    if len(events) and int(np.bitwise_or.reduce(events.flags)) & sum(_BITS):
        for bit, stat in _BITS.items():
            has = (events.flags & bit) != 0
            stats.add_rows(stat, has, offset=events.offset)
    has_time = (events.flags & layout.HAS_TIME) != 0
    needs_id = np.zeros(256, np.bool_)
    needs_id[list(layout.WITH_ID)] = True
    has_id = (events.flags & layout.HAS_ID) != 0
    found = is_read[events.phase] & (has_time | (events.phase == layout.METADATA))
    return found & (has_id | ~needs_id[events.phase])


def _count_phases(events: Events, stats: StatTally, stat: str, by_phase: Any, phases: tuple[int, ...]) -> None:
    count = int(by_phase[list(phases)].sum()) if phases else 0
    if count:
        stats.add(stat, count, offset=int(events.offset[events.of_phase(*phases)[0]]))


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
