"""The decoder of CTF traces of other producers: folders as LTTng, THAPI and babeltrace2 write them -> one ``Trace``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from lanescope.devices.levelzero.emit.timeline import Timeline
from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.foreign import events as foreign_events
from lanescope.devices.levelzero.formats.foreign import streams
from lanescope.devices.levelzero.interpret.resolved import attributed
from lanescope.devices.levelzero.schema import DETAILS, STATS
from lanescope.devices.levelzero.text_decoder import tolerance_of
from lanescope.errors import UsageError
from lanescope.source import Capture
from lanescope.trace import Table, TimeBase, Trace, TraceBuilder


class ForeignDecoder:
    """Decodes one folder of traces.

    Args:
        capture: the capture: a folder, or the description of one trace in it.
        options: as ``family.LevelZero.options`` declares them.

    Raises:
        UsageError: an option that only texts have.
    """

    def __init__(self, capture: Capture, options: Mapping[str, Any]) -> None:
        self._capture, self._options = capture, dict(options)
        self._tolerance = tolerance_of(options)
        if options["time_format"] != "auto" or options["start_date"] is not None:
            raise UsageError("a CTF trace contains its date and times", hint="remove --time-format and --start-date")

    def feed(self, data: memoryview) -> list[Trace]:
        """Take bytes of the description; the streams beside it are read at the end."""
        return []

    def finish(self) -> list[Trace]:
        """Read, attribute and draw."""
        found = streams.read(self._capture)
        events, points, report = foreign_events.model(found)
        known = attributed(events, tolerance=self._tolerance)
        # Points in time may lie before all that the model has.
        firsts = [known.origin()] if any(len(table) for table in events.values() if "ts" in table.spec.names) else []
        zero = min(firsts + ([int(points.ts.min())] if len(points.ts) else []), default=0)
        builder = TraceBuilder(TimeBase(zero, "unix"), details=DETAILS, stats=STATS)
        inputs = self._inputs(builder, found)
        timeline = Timeline(builder, known, zero=zero, input_id=next(iter(inputs.values())))
        timeline.draw()
        lanes = timeline.hosts.threads
        self._points(builder, found, points, lanes, zero)
        counters: dict[tuple[int, int, int], tuple[int, int]] = {}
        # Rotated files go on with the counters of the file before.
        for stream in sorted(found.streams, key=lambda stream: stream.walk.packet("begin")[:1].tolist()):
            _Losses(builder, stream, inputs[stream.part], zero, lanes, counters).draw()
        for trace in found.traces:
            builder.add_bytes(decoded=trace.source.size, input_id=inputs[f"{trace.part}/metadata"])
        for number, count in report.untimed.items():
            builder.add_stat("levelzero_untimed_event", count, input_id=inputs[found.streams[number].part])
        for (number, _), count in report.bad.items():
            builder.add_stat("levelzero_invalid_field", count, input_id=inputs[found.streams[number].part])
        builder.add_stat("levelzero_foreign_clocks", found.apart)
        for name, table in events.items():
            builder.records(f"levelzero.{name}", partial(_same, table))
        return [builder.finish()]

    def _inputs(self, builder: TraceBuilder, found: streams.Foreign) -> dict[str, int]:
        """Add each file as an input; return their ids by name within the capture."""
        options = {name: value for name, value in self._options.items() if value is not None}
        sources = [(f"{trace.part}/metadata", trace.source) for trace in found.traces]
        sources += [(stream.part, stream.source) for stream in found.streams]
        sources.sort(key=lambda pair: pair[1] is not self._capture.main)
        return {
            part: builder.input(
                capture=self._capture.name,
                role="main" if source is self._capture.main else part,
                path=source.path,
                size=source.size,
                sha256=source.content_hash,
                family="levelzero",
                format=layout.FOREIGN_FORMAT,
                options=options,
            )
            for part, source in sources
        }

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
        counters: dict[tuple[int, int, int], tuple[int, int]],
    ) -> None:
        self._builder, self._stream, self._input, self._zero, self._lanes = builder, stream, input_id, zero, lanes
        self._counters = counters
        walk = stream.walk
        known = len(walk.packets) and bool(walk.has("stream_instance_id")[0])
        instance = int(walk.packet("instance")[0]) if known else -1 - stream.number
        kind = int(walk.packet("stream")[0]) if len(walk.packets) else 0
        self._key = id(stream.trace), kind, instance
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

    def _discarded(self) -> None:
        """Count the events that the producer discarded, from the counters of the packets."""
        walk, stream = self._stream.walk, self._stream
        counted = np.flatnonzero(walk.has("events_discarded"))
        if not len(counted):
            return
        counts = walk.packet("discarded")[counted]
        steps = discarded_steps(counts, self._counter_bits(), before=self._before[0])
        self._before = int(counts[-1]), self._before[1]
        first, events = walk.packet("first_event").astype(np.int64), walk.packet("events").astype(np.int64)
        for at in np.flatnonzero(steps).tolist():
            row = int(counted[at])
            # They are missing somewhere in this packet, or since the one before ended.
            before, behind = int(first[row]) - 1, int(first[row] + events[row]) - 1
            if not len(stream.ts):
                continue
            begin = int(stream.ts[max(before, 0)]) - self._zero
            end = int(stream.ts[max(behind, 0)]) - self._zero
            lane = int(self._lanes[stream.thread[max(behind, 0)]])
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

    def _counter_bits(self) -> int:
        kinds = {kind: self._stream.trace.reader.streams[kind] for kind in self._stream.walk.packet("stream").tolist()}
        for kind in kinds.values():
            for name, member in kind.packet_context.fields if kind.packet_context else ():
                if name.removeprefix("_") == "events_discarded":
                    return int(getattr(member, "size", 64))
        return 64

    def _missing_packets(self, offsets: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        """Count packets that are missing between two others, by their numbers."""
        walk = self._stream.walk
        numbered = np.flatnonzero(walk.has("packet_seq_num"))
        numbers = np.minimum(walk.packet("sequence")[numbered], np.uint64(1 << 62)).astype(np.int64)
        if not len(numbers):
            return
        begin = self._before[1]
        self._before = self._before[0], int(numbers[-1])
        steps = np.diff(numbers, prepend=numbers[0] - 1 if begin < 0 else begin)
        wrong = np.flatnonzero(steps > 1)
        if len(wrong):
            missing = int(np.minimum(steps[wrong] - 1, 1 << 32).sum())
            at = int(offsets[numbered[wrong[0]]])
            self._builder.add_stat("levelzero_missing_packet", missing, input_id=self._input, first_offset=at)


def discarded_steps(
    counts: np.ndarray[Any, np.dtype[np.uint64]], bits: int, *, before: int = 0
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return how many events each packet discarded: its counter less that before, which may have wrapped.

    Args:
        counts: uint64 [packets], the counters.
        bits: of the counter.
        before: the counter before the first packet.
    """
    steps = np.diff(counts, prepend=np.uint64(before))
    if bits < 64:
        steps &= np.uint64((1 << bits) - 1)
    return np.minimum(steps, np.uint64(1 << 40)).astype(np.int64)


def _same(table: Table) -> Table:
    return table
