"""Counters: depths of the ready queues, and the overhead of the schedulers."""

from __future__ import annotations

from functools import partial

import numpy as np

from lanescope.devices.ascend.emit.context import TimelineBuilder
from lanescope.devices.ascend.formats.layout import PHASE_KINDS, QUEUES
from lanescope.devices.ascend.formats.versions import Erratum
from lanescope.trace import Column


def draw_queues(canvas: TimelineBuilder) -> None:
    """Draw the depths of the shared ready queues, where they change.

    Each phase that samples them says them at its end. v3 copies the start there for ``complete``: where both are the
    same, the sample belongs to the start.
    """
    told, phases = canvas.told, canvas.told.phases
    sampling = [kind for kind, known in PHASE_KINDS.items() if known.has_depths]
    rows = np.flatnonzero(told.is_kind(*sampling) & phases.has("shared_at_end"))
    if not len(rows) or not canvas.queues:
        return
    stamp, depths = phases["end_cycles"], phases["shared_at_end"]
    if Erratum.DEPTH_COPIED in told.errata:
        at_start = told.is_kind("complete") & phases.has("shared_at_start")
        for place in range(len(QUEUES)):
            at_start &= depths[:, place] == phases["shared_at_start"][:, place]
        stamp = np.where(at_start, phases["start_cycles"], stamp)
    stamp = stamp[rows]
    order = np.argsort(stamp, kind="stable")
    stamp, rows = stamp[order], rows[order]
    taken = int(np.searchsorted(stamp, 0, side="right"))
    stamp, rows = stamp[taken:], rows[taken:]
    is_change = np.ones(len(rows), np.bool_)
    for place, track in enumerate(canvas.queues):
        value = depths[:, place][rows]
        np.not_equal(value[1:], value[:-1], out=is_change[1:])
        changes = np.flatnonzero(is_change)
        at = stamp[changes]
        canvas.builder.append(
            "counters",
            track_id=Column.constant(track, len(at), np.int64),
            ts=Column.derived(len(at), partial(told.times.device, at)),
            value=value[changes].astype(np.float64),
        )


def draw_overhead(canvas: TimelineBuilder) -> None:
    """Draw idle cores, ready tasks, and when there were both."""
    told = canvas.told
    if not canvas.style.has_overhead:
        return
    if not canvas.overhead:
        told.problems.append(("ascend_overhead_unavailable", 1, None))
    for track, at, value in canvas.overhead:
        canvas.builder.append(
            "counters",
            track_id=Column.constant(track, len(at), np.int64),
            ts=Column.derived(len(at), partial(told.times.device, at)),
            value=value.astype(np.float64),
        )
