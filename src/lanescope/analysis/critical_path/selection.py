"""Selections of critical paths: a path is found over the whole capture, what a window selects of it is shown.

Causes lead through slices that a window leaves out: without them the path of a window would be another one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.analysis.critical_path.answer import CriticalPath
from lanescope.analysis.critical_path.selected_parts import Selection
from lanescope.analysis.critical_path.windows import WindowChoice, time_of
from lanescope.analysis.track_tree import Tree
from lanescope.analysis.windows.lanes import selected_tracks
from lanescope.analysis.windows.report import in_words
from lanescope.common.intervals import Ints
from lanescope.errors import UsageError
from lanescope.trace import Origin, Trace
from lanescope.trace.column import Mask


class _Cut(NamedTuple):
    """What is left of the whole, see ``Selection``; and the edges of time."""

    whole: Trace
    start: int | None
    end: int | None
    tracks: Mask
    slices: Mask | None
    ids: Ints


def path_of(shared: AnalysisCache, choice: WindowChoice, *, waits: str = "", infer: bool = False) -> CriticalPath:
    """Return the critical paths of a trace; of a window, those of the whole, and what the window has of them.

    Args:
        shared: the trace, and what analyses of it share.
        choice: which windows are wanted; times are those of the trace, which may be that of a window.
        waits: as ``CriticalPath`` takes it.
        infer: likewise.

    Raises:
        UsageError: as ``CriticalPath``; or ``choice`` names a window in a trace that is one.
        InputError: as ``CriticalPath``.
    """
    origin = shared.trace.origin
    if origin is None:
        return CriticalPath(shared, choice, waits=waits, infer=infer)
    cut = _cut(shared.trace, origin)
    if choice.name and (cut.start is not None or cut.end is not None):
        raise UsageError(f"{choice.name!r} is asked of a window of time", hint="use it with the whole trace")
    begin, end = (
        None if given is None else time_of(shared, option, given, is_end=is_end)
        for option, given, is_end in (("--start", choice.begin, False), ("--end", choice.end, True))
    )
    inner = choice._replace(begin=_later(begin, cut.start), end=_earlier(end, cut.end))
    selection = Selection(shared.trace, cut.tracks, cut.slices, cut.ids, in_words(shared.trace))
    whole = AnalysisCache(cut.whole, shared.given)
    return CriticalPath(whole, inner, waits=waits, infer=infer, selection=selection)


def _cut(trace: Trace, origin: Origin) -> _Cut:
    """Return what a trace has of the whole that it, or what it was cut from, is the window of."""
    above, count = origin.whole, len(origin.whole.slices)
    ids = origin.kept.of(np.arange(count), np.ones(count, np.bool_))
    tracks = selected_tracks(Tree(above.tracks), origin.lanes)
    if above.origin is None:
        return _Cut(above, origin.start, origin.end, tracks, ids >= 0 if origin.has_filter else None, ids)
    outer = _cut(above, above.origin)
    inner_ids = np.where(outer.ids >= 0, np.append(ids, -1)[outer.ids], -1)
    slices = outer.slices
    if origin.has_filter:
        slices = inner_ids >= 0 if slices is None else slices & (inner_ids >= 0)
    start, end = _later(outer.start, origin.start), _earlier(outer.end, origin.end)
    return _Cut(outer.whole, start, end, outer.tracks & tracks, slices, inner_ids)


def _later(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)


def _earlier(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)
