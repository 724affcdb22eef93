"""Operations that waited for events which other operations signal."""

from __future__ import annotations

import numpy as np

from lanescope.common.asof_join import Int64
from lanescope.devices.levelzero.emit.event_signals import EventSignals
from lanescope.devices.levelzero.interpret.resolved import Attributed


def event_waits(found: Attributed) -> tuple[Int64, Int64]:
    """Return pairs of operations of which the second waited for an event that the first signals.

    An event is signalled by the operation that was given to the device with it last before the one that waits: events
    are reset and used again.

    Args:
        found: attributed records.

    Returns:
        int64 [pairs] each, rows of the operations; none for waits whose event no operation signals, or whose operation
        had not ended: the host signalled it, or that result is lost.
    """
    operations, times, waits = found.operations, found.times, found.events["waits"]
    # Executions of the operations that wait, wait by wait.
    by_append = np.argsort(operations.append, kind="stable")
    sorted_appends, append = operations.append[by_append], waits.values("append")
    low, high = (np.searchsorted(sorted_appends, append, side) for side in ("left", "right"))
    count = high - low
    wait = np.repeat(np.arange(len(append)), count)
    place = np.arange(len(wait)) - np.repeat(np.cumsum(count) - count, count)
    waiting = by_append[low[wait] + place]
    signaller = EventSignals(found).of_operations(waiting, waits.values("event")[wait])
    known = np.flatnonzero(signaller >= 0)
    source, target = signaller[known], waiting[known]
    ended = times.has_length[source] & ~times.error[source]
    ended &= np.maximum(times.end, times.begin)[source] <= times.begin[target]
    return source[ended], target[ended]
