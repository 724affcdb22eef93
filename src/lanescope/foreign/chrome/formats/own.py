"""What our own writer says about a file behind its events: the trace that it was made of."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from lanescope.foreign.chrome.formats.layout import PRODUCER
from lanescope.trace.schema import NESTINGS, TRACK_KINDS
from lanescope.trace.trace import EPOCH_KINDS, TIME_UNITS

#: Parent, kind, role, name, sort key, nesting, unit.
_TRACK_VALUES = 7
#: Names of what is written, in order.
_NAMES = [
    "producer",
    "time_unit",
    "epoch_kind",
    "epoch_ns",
    "base_ns",
    "lost_records",
    "flows_undrawn",
    "tracks",
    "threads",
]


@dataclass(frozen=True, slots=True)
class Written:
    """A trace that was written by lanescope.

    Attributes:
        time_unit, epoch_kind, epoch_ns: its time base.
        base_ns: what was taken off all times.
        lost: records that were lost when it was decoded.
        flows_undrawn: flows that are not in the file.
        tracks: parent (-1: none), kind, role, name, sort key, nesting and unit of each.
        threads: the track of each thread; the first thread is 2, the next one 4.
        is_reordered: whether another program wrote the file anew and sorted what stands in it.
    """

    time_unit: str
    epoch_kind: str
    epoch_ns: int
    base_ns: int
    lost: int
    flows_undrawn: int
    tracks: list[tuple[int, str, str, str, int, str, str]]
    threads: list[int]
    is_reordered: bool


def written(text: bytes) -> Written | None:
    """Read what stands in ``metadata``; None if lanescope did not write it, or not in this version."""
    try:
        about = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(about, dict) or about.get("producer") != PRODUCER:
        return None
    try:
        made = Written(
            about["time_unit"],
            about["epoch_kind"],
            int(about["epoch_ns"]),
            int(about["base_ns"]),
            int(about["lost_records"]),
            int(about["flows_undrawn"]),
            [_track(row, number) for number, row in enumerate(about["tracks"])],
            [_thread(track, about["tracks"]) for track in about["threads"]],
            [name for name in about if name in _NAMES] != _NAMES,
        )
    except (KeyError, TypeError, ValueError):
        return None
    is_known = made.time_unit in TIME_UNITS and made.epoch_kind in EPOCH_KINDS
    is_sound = max(abs(made.epoch_ns), abs(made.base_ns)) < 1 << 62 and min(made.lost, made.flows_undrawn) >= 0
    return made if is_known and is_sound else None


def _track(row: list[Any], number: int) -> tuple[int, str, str, str, int, str, str]:
    parent, kind, role, name, sort_key, nesting, unit = row
    texts = (kind, role, name, nesting, unit)
    if len(row) != _TRACK_VALUES or not all(isinstance(text, str) for text in texts):
        raise ValueError("texts")
    if kind not in TRACK_KINDS or nesting not in NESTINGS or not -1 <= int(parent) < number or abs(sort_key) >> 62:
        raise ValueError("values")
    return int(parent), kind, role, name, int(sort_key), nesting, unit


def _thread(track: Any, tracks: list[Any]) -> int:
    """Return the track of a thread; -1: that of findings, which is none of the trace."""
    if not -1 <= int(track) < len(tracks):
        raise ValueError("no such track")
    return int(track)
