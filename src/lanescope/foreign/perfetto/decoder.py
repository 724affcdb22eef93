"""The decoder: packets cut anywhere -> one ``Trace``.

Starts and ends of a track are mostly recorded in order of time: then slices are made on the way. Where they are not,
the file is read from its start again, all events are kept, as columns, and matched by time. The descriptor of a track
may follow its events, so there is one batch, at the end. Of the bytes the decoder keeps no more than a packet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lanescope.foreign.perfetto.emit.losses import add_losses
from lanescope.foreign.perfetto.emit.records import Records, pieces
from lanescope.foreign.perfetto.emit.timeline import Timeline
from lanescope.foreign.perfetto.formats import layout
from lanescope.foreign.perfetto.formats.packets import PacketReader
from lanescope.source import Capture
from lanescope.trace import Trace
from lanescope.trace.streams import TracePart


class PerfettoDecoder:
    """Decodes one file.

    Args:
        capture: the capture.
        options: as ``family.FAMILY.options`` declares them.
    """

    def __init__(self, capture: Capture, options: Mapping[str, Any]) -> None:
        self._capture, self._options = capture, dict(options)
        self._reader = PacketReader(capture.main.size)
        self._fed = 0
        self._part: TracePart | None = None

    def limit(self, part: TracePart) -> None:
        """Make no rows of slices outside of a part of the timeline, and keep none of their arguments."""
        self._part = part

    def feed(self, data: memoryview) -> list[Trace]:
        """Read the next bytes."""
        self._reader.feed(data)
        self._fed += len(data)
        if self._reader.needs_events:
            self._start_over()
        return []

    def _start_over(self) -> None:
        """Read what was read before once more, for its events."""
        self._reader = PacketReader(self._capture.main.size, keeps_events=True)
        for data in pieces(self._capture.main.reader(), self._fed):
            self._reader.feed(data)

    def finish(self) -> list[Trace]:
        """Join and draw."""
        found = self._reader.finish()
        if self._reader.needs_events:  # of the last packet
            self._start_over()
            found = self._reader.finish()
        timeline = Timeline.of(found)
        if timeline is None:
            self._start_over()
            found = self._reader.finish()
            timeline = Timeline.of(found)
            assert timeline is not None
        builder = timeline.builder()
        main = self._capture.main
        input_id = builder.input(
            capture=self._capture.name,
            path=main.path,
            size=found.size,
            sha256=main.content_hash,
            family="perfetto",
            format=layout.FORMAT,
            options=self._options,
        )
        builder.add_bytes(decoded=found.decoded, padding=found.padding, lost=found.lost, input_id=input_id)
        timeline.part = self._part
        timeline.draw(builder, input_id)
        builder.records("perfetto.events", Records(self._capture.main.reader(), found.size))
        timeline.add_clocks(builder)
        add_losses(timeline, builder, input_id)
        if found.other:
            fields = sorted(found.other)
            builder.append(
                "perfetto_packets",
                input_id=[input_id] * len(fields),
                field=fields,
                source=[layout.SOURCES.get(field, f"field {field}") for field in fields],
                packets=[found.other[field][0] for field in fields],
                size=[found.other[field][1] for field in fields],
            )
        return [builder.finish()]
