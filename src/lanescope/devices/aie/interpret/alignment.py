"""Do recordings of different tiles share a zero?

Each unit counts from its own Start. Units that start on one broadcast start within a few cycles of each other, and
those that also stop on one must have counted the same number of cycles: both broadcasts take the same ways.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.devices.aie.config import Config, Place, Unit

if TYPE_CHECKING:
    from lanescope.trace import TraceBuilder

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Recordings of modes from here on have no timer in their Start.
_FIRST_WITHOUT_TIMER = 2
#: Recordings that end within so many cycles of each other were stopped by one broadcast: so many of them at least, and
#: this share. Shorter ones may end together by chance.
_TOGETHER, _MIN_TOGETHER, _SHARE_TOGETHER, _MIN_CYCLES = 8, 3, 0.6, 512
#: Timers that ran for less before a Start may agree by chance; lengths on the same broadcasts agree this closely.
_MIN_TIMER, _SAME_LENGTH = 4096, 2


def append(
    builder: TraceBuilder,
    units: Mapping[int, tuple[Config, Place]],
    groups: I64,
    columns: Mapping[str, I64],
    *,
    runs: tuple[I64, I64],
    has_stop: npt.NDArray[np.bool_],
    input_id: int,
) -> None:
    """Append a row of ``aie_alignment`` for each recording, and count those that disagree.

    Args:
        builder: where to.
        units: what is configured for each source that has recordings, and its module, column of the design and row.
        groups: group track of each recording, int64 [recordings].
        columns: ``source``, ``ordinal``, ``mode``, ``timer``, ``end``, ``is_exact`` of each, int64 [recordings].
        runs: of each: number of its slice of the dump, and which Start of its unit there, int64 [recordings] each.
        has_stop: bool [recordings], whether its Stop is in the file.
        input_id: the input.
    """
    if not len(groups):
        return
    edges: list[tuple[Unit | None, str, str]] = []
    for known, place in units.values():
        each = known.units.get(place)
        edges.append((each, _edge(known, each, "start"), _edge(known, each, "stop")))
    of_source = np.zeros(max(units) + 1, np.int64)
    of_source[list(units)] = np.arange(len(units))
    unit = of_source[columns["source"]]
    pairs: dict[tuple[str, str], int] = {}
    pair = np.array([pairs.setdefault((start, stop), len(pairs)) for _, start, stop in edges], np.int64)[unit]
    timer, end = columns["timer"], columns["end"]
    has_timer = columns["mode"] < _FIRST_WITHOUT_TIMER
    has_length = has_stop & (columns["is_exact"] == 1) & (columns["mode"] == 0)
    group = _numbered(*runs, pair)
    together = int(group.max()) + 1
    # Of each group the first recording of which as much as possible is known.
    order = np.lexsort((np.arange(len(group)), -(2 * has_length + has_timer), group))
    bounds = np.searchsorted(group[order], np.arange(together))
    reference = order[bounds][group]
    is_reference = reference == np.arange(len(group))
    has_start, has_skew = has_timer & has_timer[reference], has_length & has_length[reference]
    start_skew_cycles, dur_skew_cycles = timer - timer[reference], end - end[reference]
    has_edges = np.array([bool(start and stop) for _, start, stop in edges])[unit]
    is_same_zero = np.array([each is not None and each.reset in (None, each.start) for each, *_ in edges])[unit]
    is_mismatch = has_edges & is_same_zero & has_skew & (dur_skew_cycles != 0)
    is_aligned = is_same_zero & ~is_mismatch
    is_skewed = has_edges & is_aligned & has_start & (start_skew_cycles != 0)
    for index in np.flatnonzero(is_mismatch).tolist():
        builder.add_stat("aie_broadcast_mismatch", track_id=int(groups[index]), input_id=input_id)
    skew: dict[int, int] = {}  # of each unit the greatest of all runs
    for index in np.flatnonzero(is_skewed).tolist():
        track = int(groups[index])
        skew[track] = max(skew.get(track, 0), abs(int(start_skew_cycles[index])))
    for group_track, cycles in skew.items():
        builder.add_stat("aie_start_skew", cycles, track_id=group_track, input_id=input_id)
    # Lengths of the others are compared where they differ at all.
    longest = np.maximum.reduceat(np.where(has_length, end, -1)[order], bounds)
    shortest = np.minimum.reduceat(np.where(has_length, end, np.iinfo(np.int64).max)[order], bounds)
    differs = (longest - np.minimum(shortest, longest) > _SAME_LENGTH) & ~has_edges[order[bounds]]
    # Event-PC frames tell how many cycles there were at least: no more than another unit counted in the same time.
    is_bounded = has_stop & (columns["mode"] == 1)
    least = np.maximum.reduceat(np.where(is_bounded, end, -1)[order], bounds)
    differs |= (least > longest + _SAME_LENGTH) & (longest >= 0)
    rows = np.flatnonzero(differs[group])
    rows = rows[np.argsort(group[rows], kind="stable")]
    for name, index in _disagreeing(rows, group, columns, has_length, is_bounded, has_edges):
        builder.add_stat(name, track_id=int(groups[index]), input_id=input_id)
    builder.append(
        "aie_alignment",
        track_id=groups,
        segment_index=columns["ordinal"],
        start_event=builder.dictionary("aie_alignment", "start_event").codes(start for _, start, _ in edges)[unit],
        stop_event=builder.dictionary("aie_alignment", "stop_event").codes(stop for *_, stop in edges)[unit],
        is_reference=is_reference,
        is_aligned=is_aligned & has_edges,
        is_aligned_valid=has_edges,
        start_skew_cycles=np.where(has_start, start_skew_cycles, 0),
        start_skew_cycles_valid=has_start,
        dur_skew_cycles=np.where(has_skew, dur_skew_cycles, 0),
        dur_skew_cycles_valid=has_skew,
    )


def _numbered(*keys: I64) -> I64:
    """Return which of the different rows of some columns each row is, in the order in which they are first seen."""
    order = np.lexsort(keys)
    is_new = np.zeros(len(order), np.bool_)
    for key in keys:
        is_new |= np.diff(key[order], prepend=key[order[:1]] - 1) != 0
    sorted_number = np.cumsum(is_new) - 1
    # Equal rows stay in their order, so the first of each is the first that is seen.
    number = np.empty(len(order), np.int64)
    number[np.argsort(order[is_new], kind="stable")] = np.arange(np.count_nonzero(is_new))
    found = np.empty(len(order), np.int64)
    found[order] = number[sorted_number]
    return found


def _disagreeing(
    rows: I64, group: I64, columns: Mapping[str, I64], has_length: Mask, is_bounded: Mask, has_edges: Mask
) -> list[tuple[str, int]]:
    """Return the findings on recordings that differ from others of their run: name and recording, run by run.

    Args:
        rows: int64 [n], the recordings that are compared, run by run.
        group: int64 [recordings], number of the run.
        columns: ``timer`` and ``end`` of each, int64 [recordings].
        has_length: bool [recordings], whether the cycles from Start to Stop are known exactly.
        is_bounded: bool [recordings], whether the least number of them is known.
        has_edges: bool [recordings], whether the events that start and stop it are known.
    """
    run, timer, end = group[rows], columns["timer"][rows], columns["end"][rows]
    is_timed, is_together = has_length[rows], has_edges[rows]
    over = _over(run, timer, end, is_timed, is_bounded[rows], is_together)
    is_apart = np.zeros(len(rows), np.bool_)
    told = np.flatnonzero(is_timed & ~is_together & (timer >= _MIN_TIMER))
    is_apart[told] = _lengths_apart(run[told], timer[told], end[told])
    ends_apart = np.zeros(len(rows), np.bool_)
    told = np.flatnonzero(is_timed & ~is_together & ~is_apart)
    ends_apart[told] = _ends_apart(run[told], end[told])
    found = [np.flatnonzero(mask) for mask in (over, is_apart, ends_apart)]
    kind, at = np.repeat(np.arange(len(found)), [len(each) for each in found]), np.concatenate(found)
    in_order = np.lexsort((at, kind, run[at]))
    names = ("aie_length_mismatch", "aie_length_mismatch", "aie_stop_mismatch")
    return [(names[k], row) for k, row in zip(kind[in_order].tolist(), rows[at[in_order]].tolist(), strict=True)]


class _Agreement(NamedTuple):
    """How far the values of groups agree, int64 [values] each.

    Attributes:
        agreeing: how many values of its group agree with each, itself included.
        size: how many there are.
        most: with how many of them one agrees at most.
        shared: the value with which so many do, the first of several.
    """

    agreeing: I64
    size: I64
    most: I64
    shared: I64


def _agreement(group: I64, value: I64, within: int) -> _Agreement:
    """Return which values of each group differ by at most ``within``; groups rise along the values, from 0 or more."""
    begin = np.flatnonzero(np.diff(group, prepend=-1))
    size = np.diff(begin, append=len(group))
    number = np.repeat(np.arange(len(begin)), size)
    order = np.lexsort((value, number))
    # Places on one axis for all groups: values further apart than matters, and groups, are just too far apart on it.
    step = np.minimum(np.diff(value[order], prepend=value[order[:1]]), within + 1)
    step[np.diff(number[order], prepend=0) > 0] = within + 1
    place = np.cumsum(step)
    agreeing = np.empty(len(group), np.int64)
    agreeing[order] = np.searchsorted(place, place + within, "right") - np.searchsorted(place, place - within)
    first = np.lexsort((-agreeing, number))[begin]
    return _Agreement(agreeing, size[number], agreeing[first][number], value[first][number])


def _lengths_apart(run: I64, timer: I64, end: I64) -> Mask:
    """Return which recordings differ in length from those of their run that they started with: bool [n].

    A Start holds the timer of its module from before the broadcast that starts the unit and sets the timer back. Units
    whose timers agree were started by one broadcast before and by one now, so one broadcast stops them too: they count
    the same cycles. Of two that differ nothing tells which one is wrong.

    Args:
        run: number of the run of each, int64 [n].
        timer: of its Start, long enough not to agree by chance.
        end: cycles from its Start to its Stop.
    """
    order = np.lexsort((timer, run))
    is_first = (np.diff(run[order], prepend=-1) != 0) | (np.diff(timer[order], prepend=0) > _TOGETHER)
    found = _agreement(np.cumsum(is_first), end[order], _SAME_LENGTH)
    is_settled = 2 * found.most > found.size
    apart = np.empty(len(run), np.bool_)
    is_far = np.abs(end[order] - found.shared) > _SAME_LENGTH
    apart[order] = np.where(is_settled, is_far, found.agreeing < found.size)
    return apart


def _over(run: I64, timer: I64, end: I64, has_length: Mask, is_bounded: Mask, is_together: Mask) -> Mask:
    """Return which recordings have more cycles than those of their run that started with them counted: bool [n].

    Args:
        run: number of the run of each, int64 [n].
        timer: of its Start.
        end: cycles from Start to Stop; the least number of them where ``is_bounded`` is set.
        has_length: bool [n], whether those are known exactly.
        is_bounded: bool [n], whether the least number is known.
        is_together: bool [n], whether one broadcast starts all of the run, and one stops them; else timers tell.
    """
    over = np.zeros(len(run), np.bool_)
    asking = is_bounded & (is_together | (timer >= _MIN_TIMER))
    if not asking.any():
        return over
    # Those that were started by one broadcast are at one place, as if their timers agreed.
    at = np.where(is_together, 0, timer)
    order = np.lexsort((at, run))
    step = np.minimum(np.diff(at[order], prepend=0), _TOGETHER + 1)
    step[np.diff(run[order], prepend=-1) != 0] = _TOGETHER + 1
    place = np.empty(len(run), np.int64)
    place[order] = np.cumsum(step)
    timed, asking_rows = order[has_length[order]], np.flatnonzero(asking)
    first = np.searchsorted(place[timed], place[asking_rows] - _TOGETHER)
    last = np.searchsorted(place[timed], place[asking_rows] + _TOGETHER, "right")
    asking_rows, first, last = (each[first < last] for each in (asking_rows, first, last))
    # One more value, so that a range may reach to the end; every other result is between two ranges.
    ends = np.append(end[timed], 0)
    longest = np.maximum.reduceat(ends, np.stack([first, last], 1).ravel())[::2] if len(first) else first
    over[asking_rows] = end[asking_rows] > longest + _SAME_LENGTH
    return over


def _ends_apart(run: I64, end: I64) -> Mask:
    """Return which recordings end apart from most others of their run, which stop together: bool [n].

    The events that stop them are unknown. Chance does not make several counters stop in one cycle, so what counts less
    or more lost or gained cycles, unless another event stopped it.

    Args:
        run: number of the run of each, int64 [n], rising.
        end: cycles from its Start to its Stop.
    """
    found = _agreement(run, end, _TOGETHER)
    is_known = (found.shared >= _MIN_CYCLES) & (found.most >= np.maximum(_MIN_TOGETHER, _SHARE_TOGETHER * found.size))
    apart: Mask = is_known & (np.abs(end - found.shared) > _TOGETHER)
    return apart


def _edge(known: Config, unit: Unit | None, what: str) -> str:
    """Return the event that starts or stops a unit, "" if unknown; broadcasts have one name for all tiles."""
    number = None if unit is None else getattr(unit, what)
    if unit is None or number is None:
        return ""
    name = known.event_name(unit.module, number)
    if unit.module == "shim" and unit.col == known.trigger and name in ("USER_EVENT_1", "USER_EVENT_0"):
        # It makes the broadcast of the others from this event; which one they say themselves.
        others = (_edge(known, other, what) for other in known.units.values() if other.module != "shim")
        return next(others, name)
    return name.replace("BROADCAST_A_", "BROADCAST_")
