"""What is lost, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lanescope.foreign.perfetto.formats.packets import Columns
from lanescope.foreign.perfetto.interpret import clocks
from lanescope.trace import TraceBuilder

if TYPE_CHECKING:
    from lanescope.foreign.perfetto.emit.timeline import Timeline

#: Stats of the native reader's faults; packets without state are counted by sequence.
_FAULTS = {
    "invalid": "perfetto_invalid_packet",
    "no_sequence": "perfetto_missing_sequence",
    "untyped": "perfetto_unknown_type",
    "untimed": "perfetto_missing_time",
    "no_value": "perfetto_missing_value",
    "stateless_text": "perfetto_rejected_texts",
    "unknown_text": "perfetto_unknown_text",
    "redefined_text": "perfetto_redefined_text",
    "compressed": "perfetto_unreadable_packet",
}


def add_losses(line: Timeline, builder: TraceBuilder, input_id: int) -> None:
    """Count what is lost; a lane for each sequence shows when it lost packets."""
    found = line.found
    for name, stat in _FAULTS.items():
        count, offset = found.faults.get(name, (0, -1))
        builder.add_stat(stat, count, input_id=input_id, first_offset=offset)
    _add_sequence_losses(line, builder, input_id)
    bad = found.tables["bad"]
    if len(bad["offset"]):
        first, size = int(bad["offset"][0]), int(bad["size"].sum())
        builder.add_stat("perfetto_bad_bytes", size, input_id=input_id, first_offset=first)
    builder.add_stat("perfetto_zstd_packet", found.zstd[0], input_id=input_id, first_offset=found.zstd[1])
    if found.truncated_at >= 0:
        builder.add_stat("truncated", input_id=input_id, first_offset=found.truncated_at)
    builder.add_stat("perfetto_recorder_dropped", line.described.lost, input_id=input_id)
    builder.add_stat("perfetto_invalid_descriptor", line.described.invalid, input_id=input_id)
    builder.add_stat("perfetto_track_cycle", line.tree.cycles, input_id=input_id)
    builder.add_stat("perfetto_unknown_parent", line.tree.unknown_parents, input_id=input_id)
    for ts, known in line.times():
        unknown = ~known & (ts >= 0) & (ts < clocks.LATEST)
        builder.add_stat("perfetto_unknown_clock", int(np.count_nonzero(unknown)), input_id=input_id)
        builder.add_stat("perfetto_invalid_time", int(np.count_nonzero(~known & ~unknown)), input_id=input_id)
    builder.add_stat("perfetto_assumed_clock", int(line.clock.is_assumed), input_id=input_id)
    builder.add_stat("perfetto_other_packet", sum(count for count, _ in found.other.values()), input_id=input_id)
    builder.add_stat("perfetto_unread_field", sum(found.unread.values()), input_id=input_id)


def _add_sequence_losses(line: Timeline, builder: TraceBuilder, input_id: int) -> None:
    losses: Columns = line.found.tables["losses"]
    lanes: dict[int, int] = {}
    names = ("sequence", "packets", "dropped", "offset", "before", "after")
    for sequence, packets, dropped, offset, before, after in zip(*(losses[n].tolist() for n in names), strict=True):
        if sequence not in lanes:
            lanes[sequence] = builder.track(
                f"sequence {sequence}: lost packets", kind="lane", role="input", input_id=input_id
            )
        facts = {"track_id": lanes[sequence], "input_id": input_id, "first_offset": offset}
        builder.add_stat("perfetto_missing_state", packets, **facts)
        builder.add_stat("perfetto_producer_dropped", dropped, **facts)
        begin = int(line.ts[before]) - line.zero if before >= 0 and line.known[before] else 0
        end = int(line.ts[after]) - line.zero if after >= 0 and line.known[after] else None
        builder.append(
            "gaps",
            ts=np.array([begin]),
            dur=np.array([max((end or 0) - begin, 0)]),
            dur_valid=np.array([end is not None]),
            cause="lost_packets",
            lost_count=np.array([packets]),
            lost_count_valid=np.array([not dropped]),
            **facts,
        )
