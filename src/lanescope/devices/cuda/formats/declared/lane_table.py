"""What the lanes of a buffer are, apart from their records: where they begin, whose they are, what they counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.cuda.formats.declared.columns import Columns
from lanescope.devices.cuda.formats.declared.declaration import Declaration
from lanescope.devices.cuda.formats.declared.geometry import Geometry
from lanescope.devices.cuda.formats.lane_columns import end_to_end

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(kw_only=True)
class LaneTable:
    """Lanes, in order.

    Attributes:
        start: int64 [lanes + 1], where the records of each lane begin.
        block: int64 [lanes].
        group: int64 [lanes].
        sm: int64 [lanes], ``UNKNOWN`` where a lane has none or several; None: the layout does not record it.
        moved: lanes with several SMs.
        anchor: int64 [lanes], a full reading of the clock; None: the layout has none.
        pairs: readings of counter and timer, int64 [lanes] each.
        capacity: int64 [lanes]; None where lanes are not those of the buffer.
        offered: int64 [lanes], records that lanes counted; None: not counted.
        lost: int64 [lanes], those of them without room.
        counted: bool [lanes]; None: all lanes counted, or none.
        is_full: bool [lanes].
        overwritten: int64 [lanes], 1 if position 0 represents overwritten records; None: no lane has any.
        ids: int64, the event number of each code; None: codes are numbers.
        bad: unreadable records.
        first_bad: slot of the first of them; None: there are none.
        orphans: those of them that belong to no lane.
        ignored: records that are not events.
        stale: records of earlier launches that are left out.
        first_stale: slot of the first of them; None: there are none.
        bad_counts: lanes whose count is impossible.
        missing: records that lanes counted and that are not in the file.
        full_slots: lanes of the buffer that are full.
        lost_by_slots: records without room of the lanes of the buffer, where those are not the lanes of the records.
    """

    start: I64
    block: I64
    group: I64
    sm: I64 | None
    moved: int
    anchor: I64 | None
    pairs: tuple[tuple[I64, I64], ...]
    capacity: I64 | None
    offered: I64 | None
    lost: I64 | None
    counted: Mask | None
    is_full: Mask
    overwritten: I64 | None
    ids: I64 | None = None
    bad: int = 0
    first_bad: int | None = None
    orphans: int = 0
    ignored: int = 0
    stale: int = 0
    first_stale: int | None = None
    bad_counts: int = 0
    missing: int = 0
    lost_by_slots: int = 0
    full_slots: int = 0

    def __len__(self) -> int:
        return len(self.block)


def of_columns(declaration: Declaration, columns: Columns, source: I64) -> dict[str, Any]:
    """Return what the headers of the lanes say, by the names of ``LaneTable``.

    Args:
        declaration: the layout.
        columns: the records as they are stored.
        source: int64 [lanes], the lane of the buffer of each lane, -1 if they are several.
    """
    clock, geometry = declaration.clock, columns.geometry
    of_lane = _of_source(source)
    return {
        "anchor": None if clock.anchor is None else of_lane(geometry.lane_value(clock.anchor)),
        "pairs": tuple((of_lane(geometry.lane_value(a)), of_lane(geometry.lane_value(b))) for a, b in clock.pairs),
        "bad_counts": columns.bad_count,
        "missing": columns.missing,
        "lost_by_slots": int(columns.lost.sum()),
        "full_slots": int(np.count_nonzero(columns.is_full)),
        **_losses(declaration, columns, source),
    }


def slot_identity(declaration: Declaration, geometry: Geometry) -> tuple[I64, I64]:
    """Return block and group of each lane of the buffer, int64 [lanes]: of its dimensions unless declared."""
    names = [name for name, _ in declaration.dims]
    outer = "block" if "block" in names else names[0]
    block = np.asarray(geometry.lane_scope[outer], np.int64)
    group = np.zeros(geometry.lanes, np.int64)
    for name, size in zip(names, geometry.sizes, strict=True):
        if name != outer:
            group = group * size + geometry.lane_scope[name]
    known = set(geometry.lane_scope)
    found = []
    for role, value in (("block", block), ("group", group)):
        expression = declaration.roles.get(role)
        found.append(geometry.lane_value(expression) if expression is not None and expression.names <= known else value)
    return found[0], found[1]


def joined(parts: Sequence[LaneTable], ids: I64 | None) -> LaneTable:
    """Return the lanes of parts as one table.

    Args:
        parts: lanes of the buffer, in order.
        ids: the event number of each code, of all parts.
    """

    def all_of(name: str, absent: Callable[[int], Any] | None = None) -> Any:
        columns = [getattr(part, name) for part in parts]
        if all(column is None for column in columns):
            return None
        if absent is not None:
            columns = [
                absent(len(part)) if column is None else column for part, column in zip(parts, columns, strict=True)
            ]
        return end_to_end(columns)

    def total(name: str) -> Any:
        return sum(getattr(part, name) for part in parts)

    counts = np.concatenate([np.diff(part.start) for part in parts])
    # What lanes of the buffer counted is said of lanes only if each of them is one.
    is_clear = all(part.capacity is not None for part in parts)

    def own(name: str, absent: Callable[[int], Any] | None = None) -> Any:
        return all_of(name, absent) if is_clear else None

    return LaneTable(
        start=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        pairs=tuple(
            (
                end_to_end([part.pairs[at][0] for part in parts]),
                end_to_end([part.pairs[at][1] for part in parts]),
            )
            for at in range(len(parts[0].pairs))
        ),
        is_full=all_of("is_full") & is_clear,
        counted=own("counted", lambda count: np.ones(count, np.bool_)),
        overwritten=own("overwritten", lambda count: np.zeros(count, np.int64)),
        first_bad=next((part.first_bad for part in parts if part.first_bad is not None), None),
        first_stale=next((part.first_stale for part in parts if part.first_stale is not None), None),
        ids=ids,
        **{name: all_of(name) for name in ("block", "group", "sm", "anchor")},
        **{name: own(name) for name in ("capacity", "offered", "lost")},
        **{name: total(name) for name in _TOTALS},
    )


_TOTALS = ("moved", "bad", "orphans", "ignored", "stale", "bad_counts", "missing", "lost_by_slots", "full_slots")


def _of_source(source: I64) -> Any:
    """Return what takes values of the buffer's lanes to the lanes; 0 where a lane is of several."""

    def of(values: I64) -> I64:
        return np.where(source >= 0, values[np.maximum(source, 0)], 0)

    return of


def _losses(declaration: Declaration, columns: Columns, source: I64) -> dict[str, Any]:
    """Return what each lane lost and counted."""
    geometry, count = columns.geometry, len(source)
    nothing = dict.fromkeys(("lost", "counted", "offered", "capacity", "overwritten"))
    is_same = count == geometry.lanes and bool((source == np.arange(count)).all())
    # What a lane of the buffer counted is said of one lane only if all of its records are of that lane.
    owners = np.bincount(source[source >= 0], minlength=geometry.lanes)
    is_clear = is_same or (bool((source >= 0).all()) and bool((owners[columns.count > 0] == 1).all()))
    if not is_clear:
        return {**nothing, "is_full": np.zeros(count, np.bool_)}
    capacity, is_full = geometry.capacity[source], columns.is_full[source].copy()
    if columns.counted is None:
        return {**nothing, "is_full": is_full, "capacity": capacity}
    lost, counted = columns.lost[source], columns.counted[source]
    offered = (columns.count + columns.lost if geometry.offered is None else geometry.offered)[source]
    is_ring = declaration.overflow in ("ring", "ring-by-time")
    if not is_ring:
        is_full |= lost > 0
    return {
        "lost": lost,
        "counted": None if counted.all() else counted,
        "is_full": is_full,
        "offered": np.maximum(offered, 0),
        "capacity": capacity,
        "overwritten": (lost > 0).astype(np.int64) if is_ring and lost.any() else None,
    }
