"""What is lost, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lanescope.foreign.perfetto.formats.packets import Columns
from lanescope.foreign.perfetto.interpret import clocks
from lanescope.trace import TraceBuilder

if TYPE_CHECKING:
    from lanescope.foreign.perfetto.emit.timeline import Timeline

Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

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
    builder.add_stat("perfetto_undescribed_track", line.tree.undescribed, input_id=input_id)
    damaged, offset = found.faults.get("damaged_text", (0, -1))
    damaged += line.described.damaged + found.damaged
    builder.add_stat("perfetto_damaged_text", damaged, input_id=input_id, first_offset=offset)
    builder.add_stat("perfetto_repeated_clock", line.clock.repeated(), input_id=input_id)
    builder.add_stat("perfetto_backward_clock", line.clock.set_back(), input_id=input_id)
    for ts, known in line.times():
        unknown = ~known & (ts >= 0) & (ts < clocks.LATEST)
        builder.add_stat("perfetto_unknown_clock", int(np.count_nonzero(unknown)), input_id=input_id)
        builder.add_stat("perfetto_invalid_time", int(np.count_nonzero(~known & ~unknown)), input_id=input_id)
    builder.add_stat("perfetto_assumed_clock", int(line.clock.is_assumed), input_id=input_id)
    builder.add_stat("perfetto_other_packet", sum(count for count, _ in found.other.values()), input_id=input_id)
    builder.add_stat("perfetto_unread_field", sum(found.unread.values()), input_id=input_id)


def _add_sequence_losses(line: Timeline, builder: TraceBuilder, input_id: int) -> None:
    losses: Columns = line.found.tables["losses"]
    if not len(losses["sequence"]):
        return
    sequences = losses["sequence"].tolist()
    lanes = {
        sequence: builder.track(f"sequence {sequence}: lost packets", kind="lane", role="input", input_id=input_id)
        for sequence in dict.fromkeys(sequences)
    }
    columns = (losses[name].tolist() for name in ("packets", "dropped", "offset"))
    for sequence, packets, dropped, offset in zip(sequences, *columns, strict=True):
        facts = {"track_id": lanes[sequence], "input_id": input_id, "first_offset": offset}
        builder.add_stat("perfetto_missing_state", packets, **facts)
        builder.add_stat("perfetto_producer_dropped", dropped, **facts)
    begin, is_begun = _moved(line, losses, "before")
    end, is_resumed = _moved(line, losses, "after")
    begin = np.where(is_begun, begin - line.zero, 0)
    end = np.where(is_resumed, end - line.zero, begin)
    builder.append(
        "gaps",
        track_id=np.array([lanes[sequence] for sequence in sequences], np.int64),
        ts=begin,
        dur=np.maximum(end - begin, 0),
        dur_valid=is_resumed,
        cause="lost_packets",
        lost_count=losses["packets"],
        lost_count_valid=losses["dropped"] == 0,
        input_id=input_id,
        first_offset=losses["offset"],
    )


def _moved(line: Timeline, losses: Columns, side: str) -> tuple[Int64, Mask]:
    """Return the times of the events on one side of losses, and which of them there are and have a time."""
    clock = losses[f"{side}_clock"]
    is_there = clock >= 0
    found, known = line.clock.moved(losses[side], np.where(is_there, clock, line.clock.any_used()).astype(np.int32))
    return found, np.asarray(known & is_there, np.bool_)
