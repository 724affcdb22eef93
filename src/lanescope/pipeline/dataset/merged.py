"""Captures of a dataset on one timeline: all of it, or what is near a window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lanescope.analysis.windows.cut import Limits
from lanescope.analysis.windows.window import HIGHEST, LOWEST, Moment, Window
from lanescope.errors import UsageError
from lanescope.io.dataset import tables
from lanescope.io.dataset.capture_folder import CaptureFolder
from lanescope.io.dataset.records import CaptureRecord, Catalog
from lanescope.pipeline import session, trace_queries
from lanescope.pipeline.windowed import cut_folder
from lanescope.trace import Trace
from lanescope.trace.merge import TimelineShift

#: What the places of captures on a timeline follow from.
_PLACING = ("inputs", "clocks", "anchors", "tracks")


class Merged(NamedTuple):
    """Captures on one timeline.

    Attributes:
        trace: their rows in the window.
        placements: where each capture is on the timeline.
    """

    trace: Trace
    placements: list[TimelineShift]


def merged(
    catalog: Catalog, records: Sequence[CaptureRecord], window: Window | None, *, side_by_side: bool = False
) -> Merged:
    """Put captures on one timeline, and return the rows in a window of it.

    Of a window between two times, only rows near it are read, if the captures count nanoseconds and were not joined by
    ``compact``.

    Args:
        catalog: the dataset.
        records: the captures.
        window: the window, in times of the common timeline; None: all rows.
        side_by_side: as ``session.merge`` takes it.

    Raises:
        MergeError: no common clock.
        InputError: a file is missing or broken.
        UsageError: the window is empty, or fits nothing.
    """
    bare = [tables.read_capture(catalog, record, _PLACING) for record in records]
    placements = session.align(bare, side_by_side=side_by_side)
    if window is None or not _is_near(catalog, records, window):
        traces = [tables.read_capture(catalog, record) for record in records]
        whole = session.merge(traces, side_by_side=side_by_side)
        return Merged(trace_queries.windowed(whole, window), placements)
    begin, end = _resolved(window, records, placements)
    asked = Window(window.start, window.end, names=window.names, min_dur=window.min_dur)
    shortest = 0 if window.min_dur is None else window.min_dur.offset
    cut = []
    for record, placement in zip(records, placements, strict=True):
        own = Limits(asked, _shifted(begin, placement), _shifted(end, placement), shortest)
        cut.append(cut_folder(CaptureFolder(catalog, record), own))
    trace = session.merge(cut, side_by_side=side_by_side)
    if window.lanes:  # their paths begin with the capture
        trace = trace_queries.windowed(trace, Window(lanes=window.lanes))
    return Merged(trace, placements)


def _shifted(time: int, placement: TimelineShift) -> int:
    """Return a time of the common timeline as a time of a capture."""
    return time if time in (LOWEST, HIGHEST) else time - placement.shift


def _is_near(catalog: Catalog, records: Sequence[CaptureRecord], window: Window) -> bool:
    """Return whether rows far from a window need not be read."""
    times = [moment for moment in (window.start, window.end) if moment is not None]
    is_timed = bool(times) and not window.where and all(moment.instance is None for moment in times)
    is_ns = all(record.time["time_unit"] == "ns" for record in records)
    return is_timed and is_ns and not catalog.files(records)[1]


def _resolved(window: Window, records: Sequence[CaptureRecord], placements: Sequence[TimelineShift]) -> tuple[int, int]:
    """Return the first moment of a window on the common timeline, and the first one after it."""
    spans = [
        (record.start + placement.shift, record.end + placement.shift)
        for record, placement in zip(records, placements, strict=True)
        if record.start is not None and record.end is not None
    ]

    def time_of(asked: Moment) -> int:
        if asked.origin == "zero":
            return asked.offset
        if not spans:
            raise UsageError(f"{asked.text!r} is relative to the times of the captures, and they have none")
        first, last = min(begin for begin, _ in spans), max(end for _, end in spans)
        return asked.offset + (first if asked.origin == "first" else last)

    begin = LOWEST if window.start is None else time_of(window.start)
    end = HIGHEST if window.end is None else time_of(window.end)
    if begin >= end:
        raise UsageError(f"the window is empty: it starts at {begin:,} and ends at {end:,} ns")
    return begin, end
