"""What joins the clocks of hosts and devices: work begins after its submission and ends before its times are read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lanescope.common.intervals import known_extents
from lanescope.common.time_domains import lanes_of_clocks, paired
from lanescope.families.clock_pairs import ClockPairs, Orders
from lanescope.trace import Trace

_LACKS = "record the calls that submit work: without them nothing shows that the device came later"


def clock_pairs(trace: Trace) -> Iterator[ClockPairs]:
    """Yield operations by the clocks of their device and of the host that submitted them and read their times."""
    operations = trace.details.get("levelzero_operations")
    if operations is None or not len(operations):
        return
    extents = known_extents(trace.slices)
    domains, number = lanes_of_clocks(trace)
    slices = operations.values("slice_id")
    device = number[extents.group[slices]]
    submit = np.where(operations.valid("submit_slice_id"), operations.values("submit_slice_id"), -1)
    submitting = np.where(submit >= 0, extents.group[submit], operations.values("thread_track_id"))
    reading = operations.values("readback_track_id")
    is_sound = ~operations.values("error")
    nothing = np.full(len(slices), -1, np.int64)
    begun = Orders(operations.values("submit_ts"), extents.begin[slices], submit, slices)
    ended = Orders(extents.end[slices], operations.values("readback_ts"), slices, nothing)
    host, reader = number[submitting], number[reading]
    launched = is_sound & (submit >= 0) & (host >= 0) & (device >= 0) & (host != device)
    # What the driver calls not ready may still run.
    done = is_sound & (operations.values("query_status") == "ZE_RESULT_SUCCESS") & trace.slices.valid("dur")[slices]
    done &= (reader >= 0) & (device >= 0) & (reader != device)
    source = np.concatenate([host[launched], device[done]])
    target = np.concatenate([device[launched], reader[done]])
    yield from paired(domains, source, target, Orders.joined([begun.take(launched), ended.take(done)]), _LACKS)
