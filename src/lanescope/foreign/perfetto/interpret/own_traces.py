"""Traces that lanescope wrote: their epoch, gaps, flags and kinds of flows come back.

What the format has no place for does not: roles of tracks, clocks and ticks, coverage, detail tables (their values stay
as arguments), stats other than the sum of what was lost, and flows whose effect comes before its cause.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.trace import TimeBase
from lanescope.trace.schema import QUALITIES, Flag

Int64 = npt.NDArray[np.int64]

GAP, FLOW, FINDING = "lanescope.gap", "lanescope.flow", "lanescope.finding"
#: Behind the names of top tracks of a trace in cycles, now and in older files.
_CYCLES = (" [cycles: 1 cycle as 1 ns]", " [cycles]")
#: Field of the packet that holds the metadata of a trace in cycles.
METADATA = 5
_WHOLE = "name: "
#: The track of a trace without any.
_NOTHING = "no events"

_EPOCH = re.compile(
    r"time unit: (ns|cycles)(?:, 1 cycle drawn as 1 ns)?; 0 is (-?\d{1,19}) ns on the (\w+) clock(?:; name: (.*))?",
    re.DOTALL,
)
_FLAGS = {str(flag.name).lower(): int(flag) for flag in Flag}
_TEXT = 3


def time_base(description: str) -> TimeBase | None:
    """Return what the description of a top track says of the times; None where lanescope did not write it."""
    found = _EPOCH.fullmatch(description)
    if found is None:
        return None
    try:
        return TimeBase(int(found[2]), found[3], found[1])
    except ValueError:
        return None


def is_nothing(name: str, description: str) -> bool:
    """Return whether a top track only tells that a trace that lanescope wrote is empty."""
    return name == _NOTHING and time_base(description) is not None


def whole_name(name: str, description: str, time: TimeBase, *, is_top: bool) -> str:
    """Return the name of a track, from that under which it is shown and its description."""
    if not is_top:
        return description.removeprefix(_WHOLE) if description.startswith(_WHOLE) else name
    found = _EPOCH.fullmatch(description)
    if found is not None and found[4] is not None:
        return found[4]
    if time.time_unit == "cycles":
        for suffix in _CYCLES:
            if name.endswith(suffix):
                return name.removesuffix(suffix)
    return name


class Facts(NamedTuple):
    """What rows say of themselves: int64 [annotated events], with whether it is known, bool [annotated events]."""

    values: Int64
    known: npt.NDArray[np.bool_]


def _picked(reader: core.PerfettoReader, name: str, count: int, words: dict[str, int] | None) -> Facts:
    row, kind, bits, texts = reader.pick(name)
    values, known = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    if words is None:
        is_number = kind < 2
        values[row[is_number]] = bits[is_number].view(np.int64)
        known[row[is_number]] = True
        return Facts(values, known)
    meant = np.array([_bits(text.decode("utf-8", "replace"), words) for text in texts], np.int64)
    is_text = kind == _TEXT
    found = meant[bits[is_text].astype(np.int64)] if len(meant) else np.empty(0, np.int64)
    values[row[is_text]] = np.maximum(found, 0)
    known[row[is_text]] = found >= 0
    return Facts(values, known)


def _bits(text: str, words: dict[str, int]) -> int:
    """Return the sum of words; -1 where one is none."""
    total = 0
    for word in text.split("|"):
        if word in words:
            total |= words[word]
        elif re.fullmatch("0x[0-9a-f]{1,8}", word):
            total |= int(word, 16)
        else:
            return -1
    return total


def flags(reader: core.PerfettoReader, count: int) -> Facts:
    """Return the flags of annotated events."""
    return _picked(reader, "flags", count, _FLAGS)


def qualities(reader: core.PerfettoReader, count: int) -> Facts:
    """Return the qualities of annotated events, by place in ``QUALITIES``."""
    return _picked(reader, "quality", count, {name: place for place, name in enumerate(QUALITIES)})


def number(reader: core.PerfettoReader, name: str, count: int) -> Facts:
    """Return an integer of annotated events."""
    return _picked(reader, name, count, None)
