"""The decoder: packets cut anywhere -> one ``Trace``.

Ends are matched with starts by time, and the descriptor of a track may follow its events, so the decoder keeps the
events, as columns, and gives one batch at the end. Of the bytes it keeps no more than a packet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lanescope.foreign.perfetto.emit.losses import add_losses
from lanescope.foreign.perfetto.emit.timeline import Timeline
from lanescope.foreign.perfetto.formats import layout
from lanescope.foreign.perfetto.formats.packets import PacketReader
from lanescope.source import Capture
from lanescope.trace import Trace


class PerfettoDecoder:
    """Decodes one file.

    Args:
        capture: the capture.
        options: as ``family.FAMILY.options`` declares them.
    """

    def __init__(self, capture: Capture, options: Mapping[str, Any]) -> None:
        self._capture, self._options = capture, dict(options)
        self._reader = PacketReader()

    def feed(self, data: memoryview) -> list[Trace]:
        """Read the next bytes."""
        self._reader.feed(data)
        return []

    def finish(self) -> list[Trace]:
        """Join and draw."""
        found = self._reader.finish()
        timeline = Timeline(found)
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
        timeline.draw(builder, input_id)
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
