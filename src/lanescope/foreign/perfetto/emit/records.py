"""The events of a file as recorded, read again on request."""

from __future__ import annotations

from collections.abc import Iterator

from lanescope.foreign.perfetto.formats.packets import PacketReader
from lanescope.foreign.perfetto.interpret.clocks import ClockMap
from lanescope.foreign.perfetto.schema import EVENTS
from lanescope.source.reader import Reader
from lanescope.trace import Table

_PIECE = 1 << 20


def pieces(reader: Reader, size: int) -> Iterator[memoryview]:
    """Yield the first ``size`` bytes of a file in pieces."""
    for begin in range(0, size, _PIECE):
        yield memoryview(reader.at(begin, min(_PIECE, size - begin)).data)


class Records:
    """Makes the table.

    Args:
        reader: reads the file.
        size: of the file.
    """

    def __init__(self, reader: Reader, size: int) -> None:
        self._reader, self._size = reader, size

    def __call__(self) -> Table:
        """Return the events in order of the file."""
        packets = PacketReader(self._size, keeps_events=True)
        for data in pieces(self._reader, self._size):
            packets.feed(data)
        found = packets.finish()
        events = found.tables["events"]
        clock = ClockMap(found.tables["clocks"], found.tables["snapshots"], found.primary_clock, found.used_clocks)
        return Table.from_arrays(
            EVENTS,
            {
                "ts": clock.moved(events["ts"], events["clock"])[0],
                "track": events["track"],
                "type": events["type"],
                "name": [found.names[code] if code >= 0 else "" for code in events["name"].tolist()],
            },
        )
