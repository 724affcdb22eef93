"""Operations that waited for events which other operations signal."""

from __future__ import annotations

import numpy as np

from lanescope.common.asof_join import Int64, join, pick
from lanescope.devices.levelzero.formats.event_model import Events
from lanescope.devices.levelzero.interpret.resolved import Attributed


def event_waits(found: Attributed) -> tuple[Int64, Int64]:
    """Return pairs of operations of which the second waited for an event that the first signals.

    An event is signalled by the operation that was appended with it last before the wait was appended: events are reset
    and used again. Of several executions of that operation the last that had ended counts.

    Args:
        found: attributed records.

    Returns:
        int64 [pairs] each, rows of the operations; none for waits whose event no operation signals, or whose operation
        had not ended: the host signalled it, or that result is lost.
    """
    nothing = np.empty(0, np.int64)
    append, signals = _appends(found.events)
    if not len(append):
        return nothing, nothing
    operations, times = found.operations, found.times
    # Executions of the operations that wait, wait by wait.
    by_append = np.argsort(operations.append, kind="stable")
    sorted_appends = operations.append[by_append]
    low, high = (np.searchsorted(sorted_appends, append, side) for side in ("left", "right"))
    count = high - low
    wait = np.repeat(np.arange(len(append)), count)
    place = np.arange(len(wait)) - np.repeat(np.cumsum(count) - count, count)
    waiting = by_append[low[wait] + place]
    ended = np.flatnonzero(times.has_length & ~times.error)
    before = join(
        [signals[wait]],
        times.begin[waiting],
        [operations.append[ended]],
        np.maximum(times.end, times.begin)[ended],
        strict=False,
    ).last_before()
    known = before >= 0
    return ended[before[known]], waiting[known]


def _appends(events: Events) -> tuple[Int64, Int64]:
    """Return for each wait whose event an Append signals the Append that waits, and the one that signals it."""
    appends, waits = events["appends"], events["waits"]
    if not len(waits):
        nothing = np.empty(0, np.int64)
        return nothing, nothing
    process, seq, append = events.process("appends"), appends.values("seq"), waits.values("append")
    event = appends.values("event")
    signals = np.flatnonzero(appends.valid("event") & (event != 0))
    last = join(
        [process[append], waits.values("event")], seq[append], [process[signals], event[signals]], seq[signals]
    ).last_before()
    signaller = pick(signals, last, -1)
    known = signaller >= 0
    return append[known], signaller[known]
