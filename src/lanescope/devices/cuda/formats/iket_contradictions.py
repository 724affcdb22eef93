"""What contradicts something else in a file of IKET: places outside of the grid, units, times, kinds and payloads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lanescope.devices.cuda.formats.iket_records import Event, Launch

#: Kinds of ranges and of payloads that are known, and the least and the most that whole numbers of a payload hold.
RANGE_TYPES = (1, 2, 3)
PAYLOAD_TYPES = (*range(1, 8), *range(9, 16))
PAYLOADS = {1: (-128, 127), 2: (0, 255), 3: (-(1 << 15), (1 << 15) - 1), 4: (0, (1 << 16) - 1)}
PAYLOADS |= {5: (-(1 << 31), (1 << 31) - 1), 6: (0, (1 << 32) - 1), 7: (-(1 << 63), (1 << 63) - 1)}
_WARP = 32


def payload_fits(kind: Any, value: Any) -> bool:
    """Return whether a payload is of a known kind and within what it holds; 0: without a payload."""
    if kind == 0:
        return True
    if kind not in PAYLOAD_TYPES:
        return False
    low, high = PAYLOADS.get(kind, (None, None))
    return low is None or high is None or not isinstance(value, int) or low <= value <= high


def found(launches: list[Launch]) -> Iterator[int]:
    """Yield numbers of contradictions of whole launches."""
    units: dict[tuple[str, int], int] = {}
    for launch in launches:
        lives: dict[Any, list[Event]] = {}
        for life in launch.lifetimes:
            lives.setdefault(_warp(life), []).append(life)
        yield from (_overlaps(of_warp) for of_warp in lives.values())
        events = (*launch.ranges, *launch.markers)
        if lives:
            yield sum(_is_outside(event, lives) for event in events)
        places = {place for event in (*events, *launch.lifetimes) for place in (event.place, event.end_place)}
        # A block stays on its SM, an SM in its cluster.
        sms: dict[int, int] = {}
        for place in sorted(places, key=str):
            if place.sm is None:
                continue
            yield int(sms.setdefault(place.block, place.sm) != place.sm)
            if place.tpc is not None:
                yield int(units.setdefault(("sm", place.sm), place.tpc) != place.tpc)
                if place.gpc is not None:
                    yield int(units.setdefault(("tpc", place.tpc), place.gpc) != place.gpc)


def is_outside_grid(cta: list[int], warp: int, launch: dict[str, Any]) -> bool:
    """Return whether a place is none of the grid and the block, as far as a launch has their sizes."""
    grid = [launch.get(f"gridDim{axis}") for axis in "XYZ"]
    block = [launch.get(f"blockDim{axis}") for axis in "XYZ"]
    if any(isinstance(size, int) and at >= size for at, size in zip(cta, grid, strict=True)):
        return True
    threads = 1
    for size in block:
        if not isinstance(size, int):
            return False
        threads *= size
    return warp * _WARP >= threads


def _warp(event: Event) -> tuple[int, int]:
    return event.place.block, event.place.warp


def _overlaps(lives: list[Event]) -> int:
    ordered = sorted(lives, key=lambda life: (life.begin, life.end or life.begin))
    return sum((one.end or one.begin) > other.begin for one, other in pairwise(ordered))


def _is_outside(event: Event, lives: dict[Any, list[Event]]) -> bool:
    begin, end = event.begin, event.begin if event.end is None else event.end
    ends = (event.end_place.block, event.end_place.warp)

    def holds(warp: Any, time: int) -> bool:
        return any(life.begin <= time <= (life.end or life.begin) for life in lives.get(warp, ()))

    times = (begin, *event.inner)
    return not (all(any(holds(warp, time) for warp in (_warp(event), ends)) for time in times) and holds(ends, end))
