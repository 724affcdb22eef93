"""The decoder of CTF traces of other producers: folders as LTTng, THAPI and babeltrace2 write them -> one ``Trace``."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.levelzero.emit.timeline import Timeline
from lanescope.devices.levelzero.folder_decoder import FolderDecoder, keep_records
from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.foreign import events as foreign_events
from lanescope.devices.levelzero.formats.foreign import packet_counters, streams
from lanescope.devices.levelzero.interpret.resolved import attributed
from lanescope.devices.levelzero.schema import DETAILS, STATS
from lanescope.trace import TimeBase, Trace, TraceBuilder


class ForeignDecoder(FolderDecoder):
    """Decodes one folder of traces."""

    format, what = layout.FOREIGN_FORMAT, "a CTF trace"

    def finish(self) -> list[Trace]:
        """Read, attribute and draw."""
        found = streams.read(self._capture)
        events, points, report = foreign_events.model(found)
        known = attributed(events, tolerance=self._tolerance)
        # Points in time may lie before all that the model has.
        firsts = [known.origin()] if any(len(table) for table in events.values() if "ts" in table.spec.names) else []
        zero = min(firsts + ([int(points.ts.min())] if len(points.ts) else []), default=0)
        builder = TraceBuilder(TimeBase(zero, "unix"), details=DETAILS, stats=STATS)
        sources = [(f"{trace.part}/metadata", trace.source) for trace in found.traces]
        sources += [(stream.part, stream.source) for stream in found.streams]
        inputs = self._inputs(builder, sources)
        timeline = Timeline(builder, known, zero=zero, input_id=next(iter(inputs.values())))
        timeline.draw()
        lanes = timeline.hosts.threads
        self._points(builder, found, points, lanes, zero)
        counters: dict[packet_counters.Key, tuple[int, int]] = {}
        ends: dict[packet_counters.Key, tuple[int, int]] = {}
        # Rotated files go on with the counters of the file before.
        for stream in sorted(found.streams, key=lambda stream: stream.walk.packet("begin")[:1].tolist()):
            _Losses(builder, stream, inputs[stream.part], zero, lanes, counters, ends).draw()
        for trace in found.traces:
            builder.add_bytes(decoded=trace.source.size, input_id=inputs[f"{trace.part}/metadata"])
        for number, count in report.untimed.items():
            builder.add_stat("levelzero_untimed_event", count, input_id=inputs[found.streams[number].part])
        for (number, _), count in report.bad.items():
            builder.add_stat("levelzero_invalid_field", count, input_id=inputs[found.streams[number].part])
        for stream in found.streams:
            builder.add_stat("levelzero_wide_thread", stream.wide, input_id=inputs[stream.part])
        builder.add_stat("levelzero_foreign_clocks", found.apart)
        keep_records(builder, events)
        return [builder.finish()]

    def _points(
        self,
        builder: TraceBuilder,
        found: streams.Foreign,
        points: foreign_events.Points,
        lanes: np.ndarray[Any, np.dtype[np.int64]],
        zero: int,
    ) -> None:
        """Append events that are points in time, and their fields where they are asked for."""
        if not len(points.ts):
            return
        first = builder.append(
            "instants",
            track_id=lanes[points.thread],
            ts=points.ts - zero,
            name=builder.names.codes(points.names)[points.name],
            category="event",
        )
        if self._options.get("fields"):
            builder.append(
                "levelzero_events",
                instant_id=first + np.arange(len(points.ts)),
                fields=foreign_events.field_texts(found, points),
            )


class _Losses:
    """What one stream has lost: bytes, packets, and events that its producer discarded."""

    def __init__(
        self,
        builder: TraceBuilder,
        stream: streams.Stream,
        input_id: int,
        zero: int,
        lanes: Any,
        counters: dict[packet_counters.Key, tuple[int, int]],
        ends: dict[packet_counters.Key, tuple[int, int]],
    ) -> None:
        self._builder, self._stream, self._input, self._zero, self._lanes = builder, stream, input_id, zero, lanes
        self._counters = counters
        #: Time and lane of the last event so far.
        self._ends = ends
        self._key = packet_counters.key_of(stream)
        #: Events discarded so far, and number of the packet before; -1: none.
        self._before = counters.get(self._key, (0, -1))

    def draw(self) -> None:
        """Append gaps, stats and accounting."""
        walk, builder = self._stream.walk, self._builder
        builder.add_bytes(decoded=walk.decoded, padding=walk.padding, lost=walk.lost, input_id=self._input)
        offsets = walk.packet("offset").astype(np.int64)
        lost = walk.packet("lost")
        for row in np.flatnonzero(lost).tolist():
            builder.add_stat(
                "levelzero_invalid_event",
                int(lost[row] + np.uint64(7)) // 8,
                input_id=self._input,
                first_offset=int(offsets[row]),
            )
        for offset, size in walk.losses.tolist():
            builder.add_stat("levelzero_invalid_event", size, input_id=self._input, first_offset=offset)
        cut = np.flatnonzero(walk.packet("cut"))
        if len(cut):
            builder.add_stat("truncated", len(cut), input_id=self._input, first_offset=int(offsets[cut[0]]))
        self._discarded()
        self._missing_packets(offsets)
        self._counters[self._key] = self._before
        if len(self._stream.ts):
            last = int(self._stream.ts[-1]) - self._zero, int(self._lanes[self._stream.thread[-1]])
            self._ends[self._key] = last

    def _discarded(self) -> None:
        """Count the events that the producer discarded, from the counters of the packets."""
        walk, stream = self._stream.walk, self._stream
        counted = np.flatnonzero(walk.has("events_discarded"))
        if not len(counted):
            return
        counts = walk.packet("discarded")[counted]
        bits = packet_counters.counter_bits(stream)
        steps = packet_counters.discarded_steps(counts, bits, before=self._before[0])
        self._before = int(counts[-1]), self._before[1]
        steps = self._known(steps, counted)
        first, events = walk.packet("first_event").astype(np.int64), walk.packet("events").astype(np.int64)
        for at in np.flatnonzero(steps).tolist():
            row = int(counted[at])
            # They are missing somewhere in this packet, or since the one before ended.
            before, behind = int(first[row]) - 1, int(first[row] + events[row]) - 1
            if len(stream.ts):
                begin = int(stream.ts[max(before, 0)]) - self._zero
                end = int(stream.ts[max(behind, 0)]) - self._zero
                lane = int(self._lanes[stream.thread[max(behind, 0)]])
            elif self._key in self._ends:
                # A file may hold nothing but the count: they are missing behind the event before.
                begin, lane = self._ends[self._key]
                end = begin
            else:
                continue
            self._builder.append(
                "gaps",
                track_id=lane,
                ts=begin,
                dur=max(end - begin, 0),
                cause="discarded",
                input_id=self._input,
                lost_count=int(steps[at]),
            )
        lost = int(steps.sum())
        if lost:
            self._builder.add_stat("levelzero_discarded", lost, input_id=self._input)
            self._builder.add_dropped(
                unit="event", unit_bytes=1, recorded=len(walk.kinds), dropped=lost, input_id=self._input
            )

    def _known(self, steps: npt.NDArray[np.int64], packets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return steps of a counter, and count those that are no counts."""
        damaged = np.flatnonzero(steps < 0)
        if len(damaged):
            at = int(self._stream.walk.packet("offset")[packets[damaged[0]]])
            self._builder.add_stat("levelzero_packet_counter", len(damaged), input_id=self._input, first_offset=at)
        return np.maximum(steps, 0)

    def _missing_packets(self, offsets: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        """Count packets that are missing between two others, by their numbers."""
        numbered, numbers = packet_counters.numbers_of(self._stream)
        if not len(numbers):
            return
        missing = packet_counters.missing_steps(numbers, self._before[1])
        self._before = self._before[0], int(numbers[-1])
        missing = self._known(missing, numbered)
        wrong = np.flatnonzero(missing)
        if len(wrong):
            at = int(offsets[numbered[wrong[0]]])
            self._builder.add_stat(
                "levelzero_missing_packet", int(missing.sum()), input_id=self._input, first_offset=at
            )
