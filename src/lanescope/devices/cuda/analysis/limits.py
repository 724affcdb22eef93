"""What a buffer of CUDA markers cannot prove."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from lanescope.common.distinct import distinct
from lanescope.families.limit import Limit
from lanescope.trace import Trace

#: No lane waits longer than this, in seconds; and counters of unknown frequency with so many bits may wrap before.
_LONGEST_WAIT, _FEW_BITS = 3600, 32


def _without_counters(trace: Trace) -> Iterator[str]:
    """Name the layouts of buffers in which no lane counted the records that found no room."""
    lanes = trace.details.get("cuda_lanes")
    if lanes is None or not len(lanes):
        return
    of = trace.tracks.values("input_id")[lanes.values("track_id")]
    counted = set(of[lanes.valid("dropped")].tolist())
    formats = dict(zip(trace.inputs.values("id").tolist(), trace.inputs.values("format").tolist(), strict=True))
    yield from dict.fromkeys(f"layout {formats[number]}" for number in distinct(of).tolist() if number not in counted)


def _without_unallocated(trace: Trace) -> Iterator[str]:
    buffers = trace.details.get("cuda_buffers")
    if buffers is not None and not buffers.valid("unallocated_lanes").all():
        yield "blocks and groups of the launch"


def _wraps_unseen(trace: Trace) -> Iterator[str]:
    """Name the clocks that may wrap while a lane waits, unless the length of the launch is given."""
    options = [json.loads(text or "{}") for text in trace.inputs.values("options").tolist()]
    if any(option.get("launch_ns") is not None for option in options):
        return
    tracks = trace.tracks
    used = set(tracks.values("clock_id")[tracks.valid("clock_id")].tolist())
    yield from dict.fromkeys(_wrapping(row) for row in trace.clocks.rows() if row["id"] in used and _may_wrap(row))


def _period(clock: dict[str, Any]) -> float | None:
    """Return the wrap period of a clock in seconds; None if it is unknown."""
    if not clock["counter_bits"] or not clock["frequency_num"]:
        return None
    return float((1 << clock["counter_bits"]) * (clock["frequency_den"] or 1) / clock["frequency_num"])


def _may_wrap(clock: dict[str, Any]) -> bool:
    period = _period(clock)
    return (clock["counter_bits"] or 64) <= _FEW_BITS if period is None else period < _LONGEST_WAIT


def _wrapping(clock: dict[str, Any]) -> str:
    period = _period(clock)
    text = f"{clock['name']} ({clock['counter_bits']} bits"
    return text + (")" if period is None else f", wraps every {period:.3g} s)")


LIMITS = (
    Limit(
        "lost-records",
        "That no record is missing: the layout does not count the records that found no room, and a lane that is just "
        "full looks like one that lost some.",
        "Record with layout LS2, which counts dropped records per lane; or leave room in every lane.",
        _without_counters,
    ),
    Limit(
        "lost-lanes",
        "That every block and group had a lane: the buffer does not count those that had none.",
        "Record with layout LS2, version 2, which counts them.",
        _without_unallocated,
    ),
    Limit(
        "counter-wraps",
        "How many times the counter wrapped while a lane recorded nothing.",
        "Pass the length of the launch on the host's clock with --launch-ns, or record with the 64-bit timestamps of "
        "LS2.",
        _wraps_unseen,
    ),
)
