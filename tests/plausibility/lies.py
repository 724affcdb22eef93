"""The lies that a trace may tell: 33 kinds of damage that leave its columns well formed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from lanescope.families import registry
from plausibility.columns import Columns, pairs

#: What makes a lie of one kind: None where the trace has no place for it.
Make = Callable[[Columns, np.random.Generator], Columns | None]


@dataclass(frozen=True)
class Lie:
    """One kind of damage.

    Attributes:
        name: what is wrong, in the words of the table.
        make: does it to the columns of a trace.
    """

    name: str
    make: Make


def _between(rng: np.random.Generator, low: float, high: float) -> float:
    """Return a number between two others, even in its logarithm."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _lane(columns: Columns, rng: np.random.Generator, least: int) -> int:
    """Return a device lane with so many closed slices; -1 if there is none."""
    lanes = columns.lanes(least)
    return int(rng.choice(lanes)) if len(lanes) else -1


# --- single ends and records --------------------------------------------------------------------------------------


def _ends(count: int, low: float, high: float, *, one_lane: bool = False, last: bool = False) -> Make:
    """Move ends of records later, each by another share of the trace's span."""

    def make(columns: Columns, rng: np.random.Generator) -> Columns | None:
        rows = np.flatnonzero(columns.closed & columns.is_device)
        if one_lane or last:
            lane = _lane(columns, rng, 2 * count)
            if lane < 0:
                return None
            rows = rows[columns.lane[rows] == lane]
        if len(rows) < count:
            return None
        chosen = rows[[np.argmax(columns.end[rows])]] if last else rng.choice(rows, count, replace=False)
        end = columns.end.copy()
        end[chosen] += np.array([int(_between(rng, low, high) * columns.span) for _ in chosen])
        return replace(columns, end=end)

    return make


def _record_away(low: float, high: float) -> Make:
    def make(columns: Columns, rng: np.random.Generator) -> Columns | None:
        row = int(rng.choice(np.flatnonzero(columns.closed & columns.is_device)))
        far = int(_between(rng, low, high) * columns.span) * int(rng.choice([-1, 1]))
        ts, end = columns.ts.copy(), columns.end.copy()
        ts[row] += far
        end[row] += far
        return replace(columns, ts=ts, end=end)

    return make


# --- clocks of one lane -------------------------------------------------------------------------------------------


def _step(low: float, high: float, *, ticks: int = 0) -> Make:
    """Let the clock of a lane run on later from some record on."""

    def make(columns: Columns, rng: np.random.Generator) -> Columns | None:
        lane = _lane(columns, rng, 8)
        if lane < 0:
            return None
        rows = columns.rows(lane)
        at = int(columns.ts[rows[int(rng.integers(len(rows) // 4, 1 + 3 * len(rows) // 4))]])
        far = round(columns.tick(lane) * ticks) if ticks else int(_between(rng, low, high) * columns.span)
        return columns.moved(lane, lambda ts: np.where(ts >= at, ts + far, ts))

    return make


def _lane_off(low: float, high: float) -> Make:
    def make(columns: Columns, rng: np.random.Generator) -> Columns | None:
        lane = _lane(columns, rng, 4)
        far = int(_between(rng, low, high) * columns.span) * int(rng.choice([-1, 1]))
        return columns.moved(lane, lambda ts: ts + far) if lane >= 0 else None

    return make


def _constant(columns: Columns, rng: np.random.Generator) -> Columns | None:
    lane = _lane(columns, rng, 4)
    if lane < 0:
        return None
    at = int(columns.ts[columns.lane == lane].min())
    return columns.moved(lane, lambda ts: np.full(len(ts), at))


def _all_constant(columns: Columns, rng: np.random.Generator) -> Columns | None:
    at = columns.window[0]
    return columns.moved(-1, lambda ts: np.full(len(ts), at))


def _coarse(least: int, most: int, *, everywhere: bool = False) -> Make:
    """Let the clock tick a few times only while the lane, or the whole trace, was recorded."""

    def make(columns: Columns, rng: np.random.Generator) -> Columns | None:
        lane = -1 if everywhere else _lane(columns, rng, 12)
        if lane < 0 and not everywhere:
            return None
        mine = columns.is_device if everywhere else columns.lane == lane
        first, last = int(columns.ts[mine].min()), int(columns.end[mine].max())
        tick = max((last - first) // int(rng.integers(least, most)), 1)
        return columns.moved(lane, lambda ts: first + (ts - first) // tick * tick)

    return make


def _stands(columns: Columns, rng: np.random.Generator) -> Columns | None:
    """Stop the clock of a lane for half of its records; later records have their times."""
    lane = _lane(columns, rng, 24)
    if lane < 0:
        return None
    rows = columns.rows(lane)
    first = int(rng.integers(len(rows) // 4, len(rows) // 2))
    low, high = int(columns.ts[rows[first]]), int(columns.ts[rows[first + len(rows) // 2]])
    return columns.moved(lane, lambda ts: np.where((ts >= low) & (ts < high), low, ts))


def _scaled(*factors: float) -> Make:
    """Let the clock of a lane run too fast or too slowly."""

    def make(columns: Columns, rng: np.random.Generator) -> Columns | None:
        lane = _lane(columns, rng, 8)
        if lane < 0:
            return None
        first, factor = int(columns.ts[columns.lane == lane].min()), float(rng.choice(factors))
        return columns.moved(lane, lambda ts: first + np.rint((ts - first) * factor).astype(np.int64))

    return make


# --- clocks of the trace ------------------------------------------------------------------------------------------


def _wrong_rate(columns: Columns, rng: np.random.Generator) -> Columns | None:
    """Declare a rate that the clock of a device does not have: its times shrink or grow accordingly."""
    clocks, tracks = columns.trace.clocks, columns.trace.tracks
    if columns.trace.time.time_unit != "ns":
        return None
    names = tuple(counter.name for counter in registry.family(columns.family).clocks)
    used = np.unique(tracks.values("clock_id")[columns.lane[columns.is_device]])
    used = used[clocks.valid("frequency_num")[used]]
    # A text in microseconds declares no rate of a counter.
    used = used[[str(name).startswith(names) for name in clocks.values("name")[used]]]
    if not len(used):
        return None
    clock = int(rng.choice(used))
    factor = float(rng.choice([50, 1000, 1 / 50, 1 / 1000]))
    num, den = (int(clocks.values(f"frequency_{part}")[clock]) for part in ("num", "den"))
    here = tracks.values("clock_id") == clock
    mine, points = here[columns.lane] & columns.is_device, here[columns.ilane]
    first = int(columns.ts[mine].min())

    def scaled(ts: np.ndarray, which: np.ndarray) -> np.ndarray:
        return np.where(which, first + np.rint((ts - first) / factor).astype(np.int64), ts)

    changed = replace(columns, ts=scaled(columns.ts, mine), end=scaled(columns.end, mine))
    return replace(changed, its=scaled(columns.its, points), rates={clock: num / den * factor})


def _wrong_unit(columns: Columns, rng: np.random.Generator) -> Columns | None:
    if columns.trace.time.time_unit != "ns":
        return None
    first = min(int(columns.ts.min()), columns.window[0])
    ts, end, its = (first + 1000 * (stamps - first) for stamps in (columns.ts, columns.end, columns.its))
    return replace(columns, ts=ts, end=end, its=its)


# --- records that are lost, repeated or elsewhere -----------------------------------------------------------------


def _lane_missing(columns: Columns, rng: np.random.Generator) -> Columns | None:
    """Remove all records of a lane, in half of the cases with its track."""
    lane = _lane(columns, rng, 8)
    if lane < 0:
        return None
    left = columns.kept(columns.lane != lane, columns.ilane != lane)
    return replace(left, without=(lane,)) if rng.integers(2) else left


def _tail_lost(columns: Columns, rng: np.random.Generator) -> Columns | None:
    return _cut(columns, rng, tail=True)


def _head_lost(columns: Columns, rng: np.random.Generator) -> Columns | None:
    return _cut(columns, rng, tail=False)


def _cut(columns: Columns, rng: np.random.Generator, *, tail: bool) -> Columns | None:
    lane = _lane(columns, rng, 12)
    if lane < 0:
        return None
    rows, share = columns.rows(lane), rng.uniform(0.35, 0.7)
    at = int(columns.ts[rows[int(len(rows) * ((1 - share) if tail else share))]])
    gone, points = (columns.ts >= at, columns.its >= at) if tail else (columns.ts < at, columns.its < at)
    return columns.kept(~(gone & (columns.lane == lane)), ~(points & (columns.ilane == lane)))


def _middle_lost(columns: Columns, rng: np.random.Generator) -> Columns | None:
    lane = _lane(columns, rng, 16)
    if lane < 0:
        return None
    rows = columns.rows(lane)
    first = int(rng.uniform(0.25, 0.5) * len(rows))
    left = np.ones(len(columns.ts), np.bool_)
    left[rows[first : first + len(rows) // 4]] = False
    return columns.kept(left)


def _twice(count: int) -> Make:
    def make(columns: Columns, rng: np.random.Generator) -> Columns | None:
        lane = _lane(columns, rng, 2 * count)
        if lane < 0:
            return None
        rows = columns.rows(lane)
        rows = rows[columns.closed[rows]]
        first = int(rng.integers(0, len(rows) - count + 1))
        return columns.repeated(rows[first : first + count])

    return make


def _copied(columns: Columns, rng: np.random.Generator) -> Columns | None:
    """Let a lane have the records of a sibling in place of its own."""
    shapes = columns.shapes()
    lanes = [lane for lane in columns.lanes(12).tolist() if len(np.unique(columns.ts[columns.lane == lane])) >= 12]
    rng.shuffle(lanes)
    for source in lanes:
        siblings = [lane for lane in columns.lanes(1).tolist() if lane != source and shapes[lane] == shapes[source]]
        if siblings:
            break
    else:
        return None
    target = int(rng.choice(siblings))
    without = columns.kept(columns.lane != target, columns.ilane != target)
    rows = np.flatnonzero(without.lane == source)
    order = np.concatenate([np.arange(len(without.ts)), rows])
    made = replace(without, **{name: getattr(without, name)[order] for name in ("ts", "end", "closed", "name")})
    return replace(made, lane=np.concatenate([without.lane, np.full(len(rows), target)]))


def _exchanged(columns: Columns, rng: np.random.Generator) -> Columns | None:
    """Exchange the records of two lanes of different kinds."""
    pair = next(pairs(columns, rng.permutation(columns.lanes(3))), None)
    if pair is None:
        return None
    number = np.arange(len(columns.trace.tracks))
    number[list(pair)] = pair[::-1]
    return replace(columns, lane=number[columns.lane], ilane=number[columns.ilane])


def _strays(columns: Columns, rng: np.random.Generator) -> Columns | None:
    """Move three records to a lane of another kind."""
    pair = next(pairs(columns, rng.permutation(columns.lanes(6))), None)
    if pair is None:
        return None
    lane = columns.lane.copy()
    lane[rng.choice(columns.rows(pair[0]), 3, replace=False)] = pair[1]
    return replace(columns, lane=lane)


def _names(columns: Columns, rng: np.random.Generator) -> Columns | None:
    """Exchange two names on one lane: one of its own, and one that lanes of another kind have."""
    pair = next(pairs(columns, rng.permutation(columns.lanes(3))), None)
    if pair is None:
        return None
    mine, others = (np.unique(columns.name[columns.lane == lane]) for lane in pair)
    others = np.setdiff1d(others, mine)
    if not len(others):
        return None
    one, two = int(rng.choice(mine)), int(rng.choice(others))
    name, here = columns.name.copy(), columns.lane == pair[0]
    name[here & (columns.name == one)] = two
    name[here & (columns.name == two)] = one
    return replace(columns, name=name)


#: All kinds, in the order of the table.
LIES = (
    Lie("one end 10 to 1e6 spans off", _ends(1, 10, 1e6)),
    Lie("one end > 120 spans off", _ends(1, 120, 1e6)),
    Lie("last end of a lane 2 to 10 spans off", _ends(1, 2, 10, last=True)),
    Lie("7 ends on several lanes, 150 to 1e5 spans", _ends(7, 150, 1e5)),
    Lie("7 ends of a lane 0.1 to 0.4 spans", _ends(7, 0.1, 0.4, one_lane=True)),
    Lie("one record 30 to 1e6 spans away", _record_away(30, 1e6)),
    Lie("rest of a lane 2^32 ticks on", _step(0, 0, ticks=1 << 32)),
    Lie("step 30 to 1e6 spans", _step(30, 1e6)),
    Lie("step 5 to 30 spans", _step(5, 30)),
    Lie("step 1 to 5 spans", _step(1, 5)),
    Lie("step 0.2 to 1 span", _step(0.2, 1)),
    Lie("lane off 30 to 1e5 spans", _lane_off(30, 1e5)),
    Lie("lane off 4 to 30 spans", _lane_off(4, 30)),
    Lie("lane off 0.3 to 1 span", _lane_off(0.3, 1)),
    Lie("constant clock, lane", _constant),
    Lie("constant clock, all", _all_constant),
    Lie("lane in 2 to 6 steps", _coarse(2, 7)),
    Lie("all in 4 to 10 steps", _coarse(4, 11, everywhere=True)),
    Lie("clock stopped for half a lane", _stands),
    Lie("lane without records", _lane_missing),
    Lie("last 35 to 70 % of a lane lost", _tail_lost),
    Lie("first 35 to 70 % lost", _head_lost),
    Lie("25 % lost in the middle", _middle_lost),
    Lie("one row twice", _twice(1)),
    Lie("8 rows twice", _twice(8)),
    Lie("lane is a copy of a sibling", _copied),
    Lie("lane x4, x10, x50, /10, /50", _scaled(4, 10, 50, 0.1, 0.02)),
    Lie("lane x2", _scaled(2)),
    Lie("wrong declared rate x50, x1000, / both", _wrong_rate),
    Lie("all times x1000", _wrong_unit),
    Lie("two kinds of lanes exchanged", _exchanged),
    Lie("3 rows on a lane of another kind", _strays),
    Lie("two names exchanged", _names),
)
