"""What each lane is doing at each moment, and what kind of work that is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from lanescope.analysis.lane_time import LaneTime
from lanescope.common.intervals import Intervals, Ints, group_starts, join, order, partially_overlapping, positions
from lanescope.errors import UsageError
from lanescope.trace import Trace

#: Kinds of work, as far as a name tells: what moves data in, what computes, what moves it out, what waits; and regions
#: that only enclose others, of whose own time nothing tells what happens in it.
LOAD, COMPUTE, STORE, WAIT, OUTER = "load", "compute", "store", "wait", "outer"
CLASSES = (LOAD, COMPUTE, STORE, WAIT, OUTER)

#: Words of a region's name by which its kind is known; waiting wins, as in ``wait_load``.
_WORDS = (
    (WAIT, {"wait", "waits", "waiting", "barrier", "bar", "sync", "acquire", "spin", "poll", "stall", "idle", "sleep"}),
    (LOAD, {"load", "loads", "loading", "ld", "ldg", "ldgsts", "fetch", "prefetch", "copyin", "g2s", "read", "mte2"}),
    (STORE, {"store", "stores", "storing", "st", "stg", "s2g", "write", "writeback", "copyout", "mte3"}),
    # Copies that do not say which way they go mostly bring something in.
    (LOAD, {"tma", "cp", "copy", "dma"}),
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")


@dataclass(frozen=True, slots=True, eq=False)
class LeafIntervals:
    """Time that lanes spend in regions, each moment of a stack counted for the innermost region only.

    Attributes:
        time: intervals by lane; on a lane whose slices nest no two share time. Sorted by lane and begin, none empty.
        row: int64 [m], row of the slices table.
        encloses: int64 [k], rows of slices that another one is nested in.
    """

    time: Intervals
    row: Ints
    encloses: Ints

    def __len__(self) -> int:
        return len(self.row)


def leaf_intervals(time: LaneTime) -> LeafIntervals:
    """Return what each lane is doing at each moment.

    A slice counts while nothing that is nested in it on its lane does. Slices that cross another one of their lane, and
    all slices of lanes of nesting ``free``, are in no stack: they count from begin to end, whatever else does. An
    open slice counts as far as it was last seen.

    Args:
        time: the trace's lane times.
    """
    track, begin, end = time.extents
    rows = time.order
    usable = (end[rows] > begin[rows]) & (track[rows] >= 0) & (track[rows] < len(time.tree))
    rows = rows[usable]
    sorted_time = time.extents.take(rows)
    alone = (time.tree.tracks.values("nesting") == "free")[sorted_time.group] if len(rows) else np.empty(0, np.bool_)
    stacked = np.flatnonzero(~alone)
    alone[stacked] = partially_overlapping(sorted_time.take(stacked))
    if not alone.any():
        return _stacked(sorted_time, rows)
    found = _stacked(sorted_time.take(~alone), rows[~alone])
    joined = join(found.time, sorted_time.take(alone))
    owner = np.concatenate([found.row, rows[alone]])
    sort = order(*joined)
    return LeafIntervals(joined.take(sort), owner[sort], found.encloses)


def _stacked(stack: Intervals, rows: Ints) -> LeafIntervals:
    """Return the innermost pieces of slices that nest properly; they come in the order of ``order``."""
    group, begin, end = stack
    count = len(group)
    nothing = np.empty(0, np.int64)
    if not count:
        return LeafIntervals(stack, rows, nothing)
    new = group_starts(group)
    depth = np.arange(count) - _ended_before(stack)
    # A slice's first piece ends where something nested in it begins.
    following = np.append(begin[1:], 0)
    nests = np.append(~new[1:], False)
    nests[:-1] &= following[:-1] < end[:-1]
    if not nests.any():
        return LeafIntervals(stack, rows, nothing)
    first_end = np.where(nests, following, end)
    inner = np.flatnonzero(depth > 0)
    parent = _parents(group, depth, inner)
    # What encloses a slice goes on when it ends, until the next one nested beside it begins.
    after = positions(group, begin, inner, end[inner], "left")
    there = np.minimum(after, count - 1)
    has_sibling = (after < count) & (group[there] == group[inner]) & (begin[there] < end[parent])
    again_end = np.where(has_sibling, begin[there], end[parent])
    pieces = join(Intervals(group, begin, first_end), Intervals(group[inner], end[inner], again_end))
    owner = np.concatenate([rows, rows[parent]])
    filled = pieces.end > pieces.begin
    pieces, owner = pieces.take(filled), owner[filled]
    sort = order(*pieces)
    return LeafIntervals(pieces.take(sort), owner[sort], np.unique(rows[parent]))


def _ended_before(stack: Intervals) -> Ints:
    """Return how many slices of earlier lanes there are, and of the same lane that have ended, at each begin."""
    group, begin, end = stack
    ends = end[order(group, end)]
    return positions(group, ends, np.arange(len(group)), begin, "right")


def _parents(group: Ints, depth: Ints, inner: Ints) -> Ints:
    """Return the row of the slice right around each of the ``inner`` ones: the last before it one level up."""
    count = len(group)
    by_level = np.lexsort((np.arange(count), depth, group))
    level = np.empty(count, np.int64)  # lanes' levels numbered through; each is one more than that above it
    new = group_starts(group[by_level]) | group_starts(depth[by_level])
    level[by_level] = np.cumsum(new) - 1
    keys = level[by_level] * count + by_level
    found = np.searchsorted(keys, (level[inner] - 1) * count + inner) - 1
    return by_level[found]


# --- kinds of work ------------------------------------------------------------------------------------------------


def classify(name: str, given: Mapping[str, str] = {}, *, is_outer: bool = False) -> str:
    """Return the kind of work of a region: one of ``CLASSES``.

    Args:
        name: the region's name. Its words tell (``wait_full`` waits, ``loadK`` and ``tma_load`` load); whatever no word
            tells otherwise computes, unless it only encloses other regions.
        given: patterns that say it better, by kind: ``{"load": "tma*,cp_*"}``; the first that fits wins.
        is_outer: whether the region mostly encloses others.

    Example:
        >>> [classify(name) for name in ("wait_full", "loadK", "qk", "epilogue_store")]
        ['wait', 'load', 'compute', 'store']
        >>> classify("qk", {"load": "q*"})
        'load'
    """
    for kind, patterns in given.items():
        if any(fnmatchcase(name, pattern.strip()) for pattern in patterns.split(",")):
            return kind
    words = {word.lower() for word in _WORD.findall(name)}
    words |= {word.rstrip("0123456789") for word in words}
    for kind, known in _WORDS:
        if words & known:
            return kind
    return OUTER if is_outer else COMPUTE


def classes(trace: Trace, pieces: LeafIntervals, given: Mapping[str, str] = {}) -> Ints:
    """Return the kind of each name of slices, int64 [names], indices into ``CLASSES``.

    A region is outer if more than half of its slices have another one nested in them and no word of its name says more:
    an outer region around each tile must not pass for computing while nothing in it runs.

    Args:
        trace: the trace.
        pieces: what ``innermost`` returned for it.
        given: patterns of names by kind, see ``classify``.

    Raises:
        UsageError: ``given`` names a kind that is none.
    """
    check(given)
    column = trace.slices.column("name")
    texts = column.dictionary.texts if column.dictionary is not None else []
    count = np.bincount(column.values, minlength=len(texts))
    enclosing = np.bincount(column.values[pieces.encloses], minlength=len(texts))
    outer = (2 * enclosing > count).tolist()
    kinds = [classify(name, given, is_outer=is_outer) for name, is_outer in zip(texts, outer, strict=True)]
    return np.array([CLASSES.index(kind) for kind in kinds], np.int64).reshape(-1)


def check(given: Mapping[str, str]) -> None:
    """Raise ``UsageError`` if ``given`` names a kind that is none."""
    for kind in given:
        if kind not in CLASSES:
            raise UsageError(f"unknown kind of work {kind!r} (choose from {', '.join(CLASSES)})")
