"""Where the recordings of a dump lie on one axis of time.

Every recording counts from its own Start. A Start holds the timer from before the event that sets it back. Where that
is the event that started the recording before, the value is the distance of both Starts. This is known if the
configuration has one event for Start and timer, and if nothing configured the device between both. Elsewhere a run is
drawn at the end of the one before, which is the least distance there can be.

All units of a run begin at one place. What is decided follows from the dump up to the Start alone, so that it does not
depend on how the dump was cut. The core does it: ``core.AieRunAxis``.
"""

from __future__ import annotations

from collections.abc import Sequence

#: How the distance of a recording from the one before is known; the last: it has an axis of its own.
FIRST, RECORDED, AT_LEAST, APART = range(4)


def cuts_of(slices: Sequence[tuple[int, int]]) -> tuple[list[int], list[int | None]]:
    """Return the words at which a dump is cut, and which slice lies in each part; None: none does.

    Args:
        slices: byte offset and size of each, rising, without overlaps.
    """
    cuts: list[int] = []
    parts: list[int | None] = []
    at = 0
    for index, (offset, size) in enumerate(slices):
        first, end = offset // 4, -(-(offset + size) // 4)
        if first > at:
            cuts.append(first)
            parts.append(None)
        cuts.append(max(end, first + 1, at + 1))
        parts.append(index)
        at = cuts[-1]
    return cuts, [*parts, None]
