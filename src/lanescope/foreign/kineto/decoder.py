"""The decoder: a Kineto file -> one ``Trace``.

What a row is may be known from any place of the file, and device work is far from its call: columns of all events are
kept, some 160 bytes for each, and batches are made of them at the end.
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
from lanescope.foreign.kineto.schema import EVENTS, STATS, TABLES
from lanescope.trace import Table, TimeBase, Trace, TraceBuilder
from lanescope.wire.trace_events import TraceEventReader, TraceEvents

if TYPE_CHECKING:
    from lanescope.source import Capture


#: Slices of a batch.
_BATCH = 1 << 18


class KinetoDecoder:
    """Decodes one file.

    Args:
        capture: the capture.
        options: as ``family.FAMILY.options`` declares them.
    """

    def __init__(self, capture: Capture, options: Mapping[str, Any]) -> None:
        self._capture = capture
        self._options = dict(options)
        self._reader = TraceEventReader(layout.ARGS)

    def feed(self, data: memoryview) -> list[Trace]:
        """Read the next bytes."""
        self._reader.feed(data)
        return []

    def events(self) -> TraceEvents:
        """Take the end of the input, and return its events.

        Raises:
            InputError: it has no list of events.
        """
        events = self._reader.finish()
        if not events.has_list:
            what = "is not JSON" if events.ending == "foreign" else "contains no list of trace events"
            raise InputError(f"{self._capture.main.path} {what}", hint="pass a file that the PyTorch profiler exported")
        return events

    def finish(self) -> Iterator[Trace]:
        """Join and draw, some slices at a time."""
        events = self.events()
        main = self._capture.main
        reader = main.reader()

        def read(offset: int, size: int) -> bytes:
            return reader.at(offset, size).tobytes()

        metadata = read_metadata(events.member_places, read)
        classes = classify(events)
        timed = events.has_ts & ~events.of_phase("M")
        first = int(events.ts[timed].min()) if timed.any() else 0
        is_absolute = metadata.base_ns is None and facts.is_unix(first)
        base = metadata.base_ns or 0
        kind = "unix" if is_absolute or metadata.base_ns is not None else "first_event"
        builder = TraceBuilder(TimeBase(base + first, kind), details=TABLES, stats=STATS)
        builder.input(
            capture=self._capture.name,
            path=main.path,
            size=main.size,
            sha256=main.content_hash,
            family="kineto",
            format=layout.FORMAT,
            options={name: value for name, value in self._options.items() if value is not None},
        )
        slices = np.flatnonzero(events.of_phase("X") & events.has_ts)
        host = builder.clock(name="host clock", device="host", frequency=1_000_000_000)
        has_work = bool(classes.is_work[slices].any())
        device = builder.clock(name="device clock", device="device", frequency=None) if has_work else None
        names = read_names(events)
        tracks = Tracks(builder, events, names, host, device)
        made = rows.place_slices(events, classes, tracks, slices, events.ts - first)
        for begin in range(0, len(slices), _BATCH):
            part = slices[begin : begin + _BATCH]
            rows.add_slices(builder, events, made, part)
            details.add_details(builder, events, classes, made, part)
            details.add_arguments(builder, events, made, part, read)
            if begin + _BATCH < len(slices):
                yield builder.batch()
        rows.add_instants(builder, events, classes, tracks, made)
        rows.add_memory(builder, events, tracks, made)
        rows.add_counters(builder, events, tracks, classes, made)
        launches = join_launches(events, classes)
        rows.add_flows(builder, launches, made)
        backward = join_flows(events, layout.BACKWARD_FLOWS)
        unplaced = rows.add_backward(builder, events, classes, tracks, backward, made)
        facts.add_metadata(builder, metadata)
        facts.add_coverage(builder, tracks, facts.recorded_window(events, classes, made))
        facts.add_stats(builder, events, classes, metadata, is_absolute=is_absolute)
        self._count_joins(builder, events, launches, backward, unplaced)
        builder.add_stat("kineto_repeated_metadata", names.repeated, input_id=0)
        builder.add_stat("kineto_missing_names", int(not names.events and len(slices) > 0), input_id=0)
        facts.add_accounting(builder, events)
        builder.records("kineto.events", partial(event_table, events))
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
        flows = events.of_phase("s") | events.of_phase("f") | events.of_phase("t")
        table = np.array([*(name in layout.BACKWARD_FLOWS for name in events.categories), False], np.bool_)
        builder.add_stat("kineto_replaced_flow", int(np.count_nonzero(flows & ~table[events.category])), input_id=0)


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
