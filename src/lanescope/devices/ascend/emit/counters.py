"""Counters: depths of the ready queues, and the overhead of the schedulers."""

from __future__ import annotations

from functools import partial

import numpy as np

from lanescope.devices.ascend.emit.context import TimelineBuilder
from lanescope.devices.ascend.formats.layout import PHASE_KINDS
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
    stamp = phases["end_cycles"][rows]
    if Erratum.DEPTH_COPIED in told.errata:
        copied = (phases["shared_at_end"][rows] == phases["shared_at_start"][rows]).all(axis=1)
        at_start = told.is_kind("complete")[rows] & phases.has("shared_at_start")[rows] & copied
        stamp = np.where(at_start, phases["start_cycles"][rows], stamp)
    order = np.argsort(stamp, kind="stable")
    stamp, depth = stamp[order], phases["shared_at_end"][rows[order]]
    rows = np.flatnonzero(stamp > 0)
    stamp, depth = stamp[rows], depth[rows]
    for place, track in enumerate(canvas.queues):
        value = depth[:, place]
        changes = np.flatnonzero(np.diff(value, prepend=value[:1] - 1) != 0)
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
