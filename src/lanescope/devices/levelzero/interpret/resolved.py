"""Everything that is known of a trace before it is drawn: calls, operations, and when they ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanescope.declaration import frozen_class
from lanescope.devices.levelzero.formats.event_model import Events
from lanescope.devices.levelzero.interpret.appends import Appends, describe
from lanescope.devices.levelzero.interpret.attribution import Operations, attribute
from lanescope.devices.levelzero.interpret.call_matching import Calls, match
from lanescope.devices.levelzero.interpret.clock import TOLERANCE_NS
from lanescope.devices.levelzero.interpret.contradictions import note_contradictions
from lanescope.devices.levelzero.interpret.device_time import Devices, Times, devices_of, place

if TYPE_CHECKING:
    from lanescope.devices.levelzero.interpret.launched import Launched

#: What the records of launches of other APIs are in.
_LAUNCHES = ("launches", "launch_events", "launch_results")


@frozen_class
class Attributed:
    """Everything that is known before it is drawn.

    Attributes:
        base: ns that times are counted from, on the clock of the records.
        launched: operations of other APIs, None where nothing is recorded of any.
    """

    events: Events
    calls: Calls
    appends: Appends
    operations: Operations
    devices: Devices
    times: Times
    base: int
    launched: Launched | None

    def origin(self) -> int:
        """Return the earliest time of all, ns on the clock of the records: what the timeline counts from."""
        times = self.times
        return self.base + (min(0, int(times.begin.min())) if len(times.begin) else 0)


def attributed(events: Events, *, tolerance: int = TOLERANCE_NS) -> Attributed:
    """Match the calls of a model, attribute its results and place them in time.

    Args:
        events: the event model.
        tolerance: how far host and device clocks may be off, ns.
    """
    calls = match(events["calls"])
    appends = describe(events, calls)
    operations = attribute(events, calls, appends)
    devices = devices_of(events)
    # The first record of a kind is the earliest but for records that came out of order.
    firsts = [int(table.values("ts").min()) for table in events.values() if "ts" in table.spec.names and len(table)]
    base = min(firsts, default=0)
    times = place(events, appends, operations, devices, base=base, tolerance=tolerance)
    note_contradictions(events, calls, appends, operations, devices, times)
    others = None
    if any(len(events[name]) for name in _LAUNCHES):
        from lanescope.devices.levelzero.interpret.launched import launched

        others = launched(events, calls, tolerance=tolerance)
    return Attributed(events, calls, appends, operations, devices, times, base, others)
