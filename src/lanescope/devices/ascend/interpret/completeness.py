"""Whether lists of a capture have all their records, so that what they lack proves something."""

from __future__ import annotations

from collections.abc import Iterable

from lanescope.devices.ascend.formats.collection import collection_of
from lanescope.devices.ascend.formats.layout import HOST_SUBMITS, Layout
from lanescope.devices.ascend.formats.records import Records
from lanescope.devices.ascend.interpret.execution_table import LossSummary

#: Stats that say that records have no place in the trace: counts of what is left prove nothing.
_EXCLUDED = frozenset(
    ("ascend_timestamp_out_of_range", "ascend_missing_start", "ascend_row_duplicate", "ascend_key_duplicate")
)


def is_whole(
    records: Records,
    lost: LossSummary,
    unmatched: int,
    problems: Iterable[tuple[str, int, int | None]],
    layouts: Iterable[Layout],
) -> bool:
    """Return whether nothing says that records of some lists are missing or left out.

    Args:
        records: the records file.
        lost: what is missing.
        unmatched: executions that should have a dispatch record and have none.
        problems: stats counted so far: name, count, byte offset.
        layouts: of the lists.
    """
    names = {layout.name for layout in layouts}
    if not records.partial.isdisjoint(names):
        return False
    if any(rows.tally.bad_count for rows in records.as_read.values()):
        return False
    if any(stream.dropped or stream.unaccounted or stream.is_truncated for stream in records.streams):
        return False
    if any(count and name in _EXCLUDED for name, count, _ in problems):
        return False
    if collection_of(records.metadata):
        return False
    host = records.metadata.get("host_capture")
    if HOST_SUBMITS.name in names and isinstance(host, dict) and host.get("status") not in (None, "complete"):
        return False
    return not (lost.lost or lost.holes or unmatched)
