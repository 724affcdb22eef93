"""Whether lists of a capture have all their records, so that what they lack proves something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanescope.devices.ascend.formats.layout import HOST_SUBMITS, Layout

if TYPE_CHECKING:
    from lanescope.devices.ascend.interpret.resolve import Interpreter

#: Stats that say that records have no place in the trace: counts of what is left prove nothing.
_EXCLUDED = frozenset(
    ("ascend_timestamp_out_of_range", "ascend_missing_start", "ascend_row_duplicate", "ascend_key_duplicate")
)


def is_whole(told: Interpreter, *layouts: Layout) -> bool:
    """Return whether nothing says that records of some lists are missing or left out."""
    records, lost = told.records, told.lost
    if not records.partial.isdisjoint(layout.name for layout in layouts):
        return False
    if any(rows.tally.bad_count for rows in records.as_read.values()):
        return False
    if any(stream.dropped or stream.unaccounted or stream.is_truncated for stream in records.streams):
        return False
    if any(count and name in _EXCLUDED for name, count, _ in told.problems):
        return False
    host = records.metadata.get("host_capture")
    if HOST_SUBMITS in layouts and isinstance(host, dict) and host.get("status") not in (None, "complete"):
        return False
    return not (lost.lost or lost.holes or len(told.unmatched))
