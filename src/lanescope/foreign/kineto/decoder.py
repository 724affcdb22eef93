"""The decoder: a Kineto file -> batches.

Files list the calls of each thread, then what devices did, each over the whole capture: no row has all its neighbours
near it, and no window of time is complete before the end. What has to be known of the whole file is found on the way
through it; a file of some size is then read a second time, and a batch is made of each window of text. What is kept of
all of it are calls and device work, which are joined at the end, some 80 bytes for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lanescope.errors import InputError
from lanescope.foreign.kineto.emit import details, facts, rows
from lanescope.foreign.kineto.emit.tracks import Tracks, read_names
from lanescope.foreign.kineto.formats import layout
from lanescope.foreign.kineto.formats.metadata import read_metadata
from lanescope.foreign.kineto.interpret.classes import classify
from lanescope.foreign.kineto.interpret.joins import join_flows, join_launches
from lanescope.foreign.kineto.interpret.plain_places import with_plain_places
from lanescope.foreign.kineto.schema import EVENTS, STATS, TABLES
from lanescope.foreign.kineto.survey import Survey
from lanescope.trace import Table, TimeBase, Trace, TraceBuilder
from lanescope.wire.trace_events import TraceEvents, WindowReader, read_windows

if TYPE_CHECKING:
    from lanescope.source import Capture
    from lanescope.source.reader import Reader
    from lanescope.trace.streams import TracePart


#: Slices of a batch.
_BATCH = 1 << 18
#: Bytes of text of which all events are kept: larger files are read twice.
WHOLE = 256 << 20
#: Bytes of text whose events are kept at a time.
WINDOW = 16 << 20
_PIECE = 1 << 20


class KinetoDecoder:
    """Decodes one file.

    Args:
        capture: the capture.
        options: as ``family.FAMILY.options`` declares them.
    """

    def __init__(self, capture: Capture, options: Mapping[str, Any]) -> None:
        self._capture = capture
        self._options = dict(options)
        self._reader = WindowReader(layout.ARGS, capture.main.size, WHOLE, WINDOW)
        self._survey = Survey()
        self._part: TracePart | None = None

    def limit(self, part: TracePart) -> None:
        """Make no rows of slices outside of a part of the timeline, and read no arguments of them."""
        self._part = part

    def feed(self, data: memoryview) -> list[Trace]:
        """Read the next bytes."""
        events = self._reader.feed(data)
        if events is not None:
            self._survey.add(with_plain_places(events))
        return []

    def finish(self) -> Iterator[Trace]:
        """Join and draw, some slices at a time.

        Raises:
            InputError: the file has no list of events, or changes while it is read.
        """
        last = with_plain_places(self._reader.finish())
        main = self._capture.main
        if not last.has_list:
            what = "is not JSON" if last.ending == "foreign" else "contains no list of trace events"
            raise InputError(f"{main.path} {what}", hint="pass a file that the PyTorch profiler exported")
        survey = self._survey
        survey.add(last, is_whole=not survey.events)
        reader = main.reader()

        def read(offset: int, size: int) -> bytes:
            return reader.at(offset, size).tobytes()

        metadata = read_metadata(last.member_places, read)
        first = survey.first
        is_absolute = metadata.base_ns is None and facts.is_unix(first)
        kind = "unix" if is_absolute or metadata.base_ns is not None else "first_event"
        builder = TraceBuilder(TimeBase((metadata.base_ns or 0) + first, kind), details=TABLES, stats=STATS)
        builder.input(
            capture=self._capture.name,
            path=main.path,
            size=main.size,
            sha256=main.content_hash,
            family="kineto",
            format=layout.FORMAT,
            options={name: value for name, value in self._options.items() if value is not None},
        )
        host = builder.clock(name="host clock", device="host", frequency=1_000_000_000)
        device = builder.clock(name="device clock", device="device", frequency=None) if survey.has_work else None
        kept = survey.kept()
        names = read_names(kept)
        tracks = Tracks(builder, kept, names, host, device)
        devices = survey.device_places(len(kept.places))
        for (place, of), nesting in survey.lanes(devices).items():
            tracks.lane(place, of, nesting)
        for place, of in survey.instants():
            tracks.lane(place, of, "nested")
        survey.counters.make_tracks(kept, tracks, devices)
        classes = survey.classes(kept, devices)
        joined = survey.rows(kept, classes, tracks)
        backward = join_flows(kept, layout.BACKWARD_FLOWS)
        operators = rows.Operators(joined.ts[np.concatenate([backward.start, backward.end])])
        named = rows.Names.of(builder)
        numbers = rows.Numbers(self._part, survey.slices)
        done = seen = 0
        for events in (kept,) if survey.is_whole else _read_parts(reader, main.size, WINDOW):
            meaning, made = classes, joined
            if not survey.is_whole:
                events = with_plain_places(events)
                meaning = classify(events, devices)
                made = rows.place_slices(events, meaning, tracks, events.ts - first, done)
            seen += len(events)
            done += len(made.slices)
            near, made = numbers.split(events, made)
            for begin in range(0, len(near.slices), _BATCH):
                part = near.slices[begin : begin + _BATCH]
                rows.add_slices(builder, events, near, part, named)
                details.add_details(builder, events, meaning, near, part)
                details.add_arguments(builder, events, near, part, read)
                if done < survey.slices or begin + _BATCH < len(near.slices):
                    yield builder.batch()
            rows.add_instants(builder, events, meaning, tracks, made, named)
            survey.counters.add(builder, events, made.ts)
            operators.add(events, meaning, made)
        if (seen, done) != (survey.events, survey.slices):
            raise InputError(f"{main.path}: file changed while it was read", hint="run the command again")
        joined = numbers.of_rows(joined)
        launches = join_launches(kept, classes)
        rows.add_flows(builder, launches, joined)
        unplaced = rows.add_backward(builder, kept, tracks, backward, joined.ts, operators)
        facts.add_metadata(builder, metadata)
        facts.add_coverage(builder, tracks, facts.recorded_window(kept, classes, joined))
        facts.add_stats(builder, last, survey.tally, metadata, is_absolute=is_absolute, has_work=survey.has_work)
        self._count_joins(builder, kept, launches, backward, unplaced)
        builder.add_stat("kineto_repeated_metadata", names.repeated, input_id=0)
        builder.add_stat("kineto_missing_names", int(not names.events and survey.slices > 0), input_id=0)
        facts.add_accounting(builder, last.decoded, survey.tally)
        builder.records("kineto.events", partial(_read_table, reader, main.size))
        yield builder.finish()

    def _count_joins(
        self, builder: TraceBuilder, events: TraceEvents, launches: Any, backward: Any, unplaced: int
    ) -> None:
        def stat(name: str, found: Any) -> None:
            if len(found):
                builder.add_stat(name, len(found), input_id=0, first_offset=int(events.begin[found[0]]))

        stat("kineto_unlaunched", launches.unlaunched[events.has_ts[launches.unlaunched]])
        stat("kineto_repeated_call", launches.repeated)
        stat("kineto_unmatched_backward", backward.unmatched)
        builder.add_stat("kineto_unplaced_flow", unplaced, input_id=0)
        builder.add_stat("kineto_replaced_flow", self._survey.tally.count("kineto_replaced_flow")[0], input_id=0)


def _read_parts(reader: Reader, size: int, window: int) -> Iterator[TraceEvents]:
    """Yield the events of a file by windows of so many bytes of its text."""

    def read(begin: int, size: int) -> memoryview:
        return memoryview(reader.at(begin, size).data)

    return read_windows(read, size, window, layout.ARGS, _PIECE)


def read_events(reader: Reader, size: int) -> TraceEvents:
    """Return all events of a file.

    Args:
        reader: reads the file.
        size: of the file.
    """
    (events,) = _read_parts(reader, size, size + _PIECE + 1)
    return events


def _read_table(reader: Reader, size: int) -> Table:
    return event_table(read_events(reader, size))


def event_table(events: TraceEvents) -> Table:
    """Return the events as they stand in the file."""

    def texts(of: list[str], codes: Any) -> Any:
        return np.array([*of, ""], object)[codes]

    processes = [("" if place.process is None else str(place.process)) for place in events.places]
    threads = [("" if place.thread is None else str(place.thread)) for place in events.places]
    phases = np.array(["", *(chr(code) for code in range(1, 256))], object)
    return Table.from_arrays(
        EVENTS,
        {
            "offset": events.begin,
            "size": events.size.astype(np.int64),
            "phase": phases[events.phase],
            "name": texts(events.names, events.name),
            "category": texts(events.categories, events.category),
            "process": texts(processes, events.place),
            "thread": texts(threads, events.place),
            "time_ns": [
                ts if known else None for ts, known in zip(events.ts.tolist(), events.has_ts.tolist(), strict=True)
            ],
            "dur_ns": [
                dur if known else None for dur, known in zip(events.dur.tolist(), events.has_dur.tolist(), strict=True)
            ],
        },
    )
