"""Do recordings of different tiles share a zero?

Each unit counts from its own Start. Units that start on one broadcast start within a few cycles of each other, and
those that also stop on one must have counted the same number of cycles: both broadcasts take the same ways.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

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
    configs: Sequence[Config],
    places: Sequence[Place],
    groups: Sequence[int],
    columns: Mapping[str, I64],
    *,
    runs: Sequence[tuple[int, int]],
    has_stop: npt.NDArray[np.bool_],
    input_id: int,
) -> None:
    """Append a row of ``aie_alignment`` for each recording, and count those that disagree.

    Args:
        builder: where to.
        configs: what is configured for each recording.
        places: module, column of the design and row of each recording.
        groups: group track of each.
        columns: ``ordinal``, ``mode``, ``timer``, ``end``, ``is_exact`` of each, int64 [recordings].
        runs: of each: number of its slice of the dump, and which Start of its unit there.
        has_stop: bool [recordings], whether its Stop is in the file.
        input_id: the input.
    """
    if not len(places):
        return
    edges: dict[tuple[int, Place], tuple[Unit | None, str, str]] = {}
    for known, place in zip(configs, places, strict=True):
        if (id(known), place) not in edges:
            unit = known.units.get(place)
            edges[id(known), place] = unit, _edge(known, unit, "start"), _edge(known, unit, "stop")
    told = [edges[id(known), place] for known, place in zip(configs, places, strict=True)]
    units, starts, stops = zip(*told, strict=True)
    timer, end = columns["timer"], columns["end"]
    has_timer = columns["mode"] < _FIRST_WITHOUT_TIMER
    has_length = has_stop & (columns["is_exact"] == 1) & (columns["mode"] == 0)
    together: dict[tuple[tuple[int, int], str, str], int] = {}
    group = np.array(
        [
            together.setdefault((run, *of), len(together))
            for run, of in zip(runs, zip(starts, stops, strict=True), strict=True)
        ],
        np.int64,
    )
    # Of each group the first recording of which as much as possible is known.
    order = np.lexsort((np.arange(len(group)), -(2 * has_length + has_timer), group))
    bounds = np.searchsorted(group[order], np.arange(len(together)))
    reference = order[bounds][group]
    is_reference = reference == np.arange(len(group))
    has_start, has_skew = has_timer & has_timer[reference], has_length & has_length[reference]
    start_skew_cycles, dur_skew_cycles = timer - timer[reference], end - end[reference]
    has_edges = np.array([bool(start and stop) for _, start, stop in together])[group]
    is_same_zero = np.array([unit is not None and unit.reset in (None, unit.start) for unit in units])
    is_mismatch = has_edges & is_same_zero & has_skew & (dur_skew_cycles != 0)
    is_aligned = is_same_zero & ~is_mismatch
    is_skewed = has_edges & is_aligned & has_start & (start_skew_cycles != 0)
    for index in np.flatnonzero(is_mismatch).tolist():
        builder.add_stat("aie_broadcast_mismatch", track_id=groups[index], input_id=input_id)
    skew: dict[int, int] = {}  # of each unit the greatest of all runs
    for index in np.flatnonzero(is_skewed).tolist():
        skew[groups[index]] = max(skew.get(groups[index], 0), abs(int(start_skew_cycles[index])))
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
    members = np.split(order, bounds[1:]) if differs.any() else []
    for rows in (np.sort(members[number]) for number in np.flatnonzero(differs).tolist()):
        over = _over(timer[rows], end[rows], has_length[rows], is_bounded[rows], is_together=bool(has_edges[rows[0]]))
        for index in rows[over].tolist():
            builder.add_stat("aie_length_mismatch", track_id=groups[index], input_id=input_id)
        if has_edges[rows[0]]:
            continue
        apart = _lengths_apart(columns["mode"][rows], timer[rows], end[rows], has_length[rows])
        for index in rows[apart].tolist():
            builder.add_stat("aie_length_mismatch", track_id=groups[index], input_id=input_id)
        timed = rows[has_length[rows] & ~apart]
        for index in timed[_ends_apart(end[timed])].tolist():
            builder.add_stat("aie_stop_mismatch", track_id=groups[index], input_id=input_id)
    builder.append(
        "aie_alignment",
        track_id=np.array(groups, np.int64),
        segment_index=columns["ordinal"],
        start_event=starts,
        stop_event=stops,
        is_reference=is_reference,
        is_aligned=is_aligned & has_edges,
        is_aligned_valid=has_edges,
        start_skew_cycles=np.where(has_start, start_skew_cycles, 0),
        start_skew_cycles_valid=has_start,
        dur_skew_cycles=np.where(has_skew, dur_skew_cycles, 0),
        dur_skew_cycles_valid=has_skew,
    )


def _lengths_apart(mode: I64, timer: I64, end: I64, has_length: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which recordings of one run differ in length from those that they started with: bool [n].

    A Start holds the timer of its module from before the broadcast that starts the unit and sets the timer back. Units
    whose timers agree were started by one broadcast before and by one now, so one broadcast stops them too: they count
    the same cycles. Of two that differ nothing tells which one is wrong.

    Args:
        mode: trace mode of each, int64 [n].
        timer: of its Start.
        end: cycles from its Start to its Stop.
        has_length: bool [n], whether those are known exactly.
    """
    apart = np.zeros(len(mode), np.bool_)
    timed = np.flatnonzero(has_length & (mode == 0) & (timer >= _MIN_TIMER))
    timed = timed[np.argsort(timer[timed], kind="stable")]
    for members in np.split(timed, np.flatnonzero(np.diff(timer[timed]) > _TOGETHER) + 1):
        if len(members) < 2:
            continue
        agreeing = (np.abs(end[members][:, None] - end[members]) <= _SAME_LENGTH).sum(axis=1)
        shared = end[members[np.argmax(agreeing)]]
        is_settled = 2 * agreeing.max() > len(members)
        apart[members] = np.abs(end[members] - shared) > _SAME_LENGTH if is_settled else agreeing < len(members)
    return apart


def _over(timer: I64, end: I64, has_length: Mask, is_bounded: Mask, *, is_together: bool) -> Mask:
    """Return which recordings of one run have more cycles than those that started with them counted: bool [n].

    Args:
        timer: of the Start of each, int64 [n].
        end: cycles from Start to Stop; the least number of them where ``is_bounded`` is set.
        has_length: bool [n], whether those are known exactly.
        is_bounded: bool [n], whether the least number is known.
        is_together: whether one broadcast starts all of them, and one stops them; else their timers say so.
    """
    over = np.zeros(len(timer), np.bool_)
    for index in np.flatnonzero(is_bounded).tolist():
        others = has_length if is_together else has_length & (np.abs(timer - timer[index]) <= _TOGETHER)
        if others.any() and (is_together or timer[index] >= _MIN_TIMER):
            over[index] = end[index] > end[others].max() + _SAME_LENGTH
    return over


def _ends_apart(ends: I64) -> npt.NDArray[np.bool_]:
    """Return which recordings of one run end apart from most others, which stop together: bool [n].

    The events that stop them are unknown. Chance does not make several counters stop in one cycle, so what counts less
    or more lost or gained cycles, unless another event stopped it.
    """
    ordered = np.sort(ends)
    agreeing = np.searchsorted(ordered, ends + _TOGETHER, "right") - np.searchsorted(ordered, ends - _TOGETHER)
    shared = ends[np.argmax(agreeing)] if len(ends) else 0
    if shared < _MIN_CYCLES or agreeing.max() < max(_MIN_TOGETHER, _SHARE_TOGETHER * len(ends)):
        return np.zeros(len(ends), np.bool_)
    apart: npt.NDArray[np.bool_] = np.abs(ends - shared) > _TOGETHER
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
