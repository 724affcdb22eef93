"""Rows of a drawing that is written batch by batch."""

from __future__ import annotations

from lanescope.io.event_stream import EventStream


class PartRows:
    """The rows of each track so far, and until when each is taken."""

    def __init__(self) -> None:
        self._ends: dict[int, list[int]] = {}  # by track

    def place(self, drawing: EventStream) -> list[tuple[int, int]]:
        """Return the track and the row of each row of a part's drawing, and remember until when it is taken.

        A part that begins on a row before an earlier one ends there goes to the first row that is free by then.
        """
        lanes, spans = drawing.lanes, drawing.placement
        places: list[tuple[int, int]] = []
        used: set[tuple[int, int]] = set()
        for lane, (track, row) in enumerate(zip(lanes.track.tolist(), lanes.row.tolist(), strict=True)):
            first, last = lanes.ranges[lane, :2].tolist()
            ends = self._ends.setdefault(track, [])
            if first < last:
                begin, end = int(spans.begin[first]), spans.latest_end(slice(first, last))
                row = next((i for i, free in enumerate(ends) if free <= begin and (track, i) not in used), len(ends))
                ends[row : row + 1] = [end]
            used.add((track, row))
            places.append((track, row))
        return places
