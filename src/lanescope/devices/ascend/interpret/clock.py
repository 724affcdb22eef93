"""From stamps to times: the device's counter, the host's clock, and how one is found from the other."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class
from lanescope.devices.ascend.formats.layout import MAX_CYCLES
from lanescope.trace import TimeBase, ticks_to_ns

Int64 = npt.NDArray[np.int64]

_NS = 1_000_000_000
#: Nanoseconds that a capture may span: 146 years, and sums of two stay within 63 bits.
MAX_NS = (1 << 62) - 1
#: A raw unit of microseconds puts each reading up to that far off.
_MICROSECOND_ERROR_NS = 1000
#: When both clocks are read.
ANCHOR_POSITIONS = _BEFORE, _AFTER = "pre_host_orchestration", "post_device_execution"


@frozen_class
class Reading:
    """Both clocks at one moment.

    Attributes:
        cycles: the device's counter.
        host_ns: the host's clock, middle of the exchange.
        error_ns: bound of the pairing's error.
    """

    cycles: int
    host_ns: int
    error_ns: int


@frozen_class
class Alignment:
    """Conversion of a device counter to host time.

    Attributes:
        first: a reading of both clocks.
        last: another one behind it: between the two the host's time of a stamp is interpolated. None: the counter runs
            at its nominal frequency.
        frequency: the nominal one, Hz.
    """

    first: Reading
    last: Reading | None
    frequency: int

    @property
    def readings(self) -> tuple[Reading, ...]:
        """The readings that there are."""
        return (self.first,) if self.last is None else (self.first, self.last)

    def _correction(self, last: Reading) -> int:
        span = last.cycles - self.first.cycles
        return last.host_ns - (self.first.host_ns + span * _NS // self.frequency)

    def host_ns(self, cycles: Int64) -> Int64:
        """Return the host's time of device stamps, int64 [n]; with two readings they lie between these."""
        passed = cycles - self.first.cycles
        nominal = ticks_to_ns(passed, self.frequency)
        if self.last is None:
            return self.first.host_ns + nominal
        span, correction = self.last.cycles - self.first.cycles, self._correction(self.last)
        if abs(correction) * span <= np.iinfo(np.int64).max:
            share = passed * abs(correction) // span
        else:
            share = np.array([value * abs(correction) // span for value in passed.tolist()], np.int64)
        # Toward zero, whatever the sign of the correction.
        return self.first.host_ns + nominal + (share if correction >= 0 else -share)


def align(metadata: dict[str, Any], frequency: int, stamps: tuple[int, int] | None) -> Alignment | str:
    """Find the alignment that a capture's anchors give.

    Args:
        metadata: the capture's metadata.
        frequency: of the device's counter, Hz.
        stamps: smallest and largest device stamp of the capture; None without any.

    Returns:
        The alignment, or why there is none.
    """
    anchors = metadata.get("clock_anchors")
    if anchors is None and "clock_alignment" in metadata:
        return _bounded(metadata["clock_alignment"], frequency, stamps)
    if anchors is None:
        return "no clock anchors"
    if not isinstance(anchors, dict) or not isinstance(anchors.get("samples"), list):
        return "malformed clock anchors"
    error = _MICROSECOND_ERROR_NS if anchors.get("raw_device_timestamp_unit") == "device_uptime_us" else 0
    first, last = (_best(anchors["samples"], position, error) for position in (_BEFORE, _AFTER))
    if first is None or last is None:
        return "no valid anchor " + ("before the run" if first is None else "after the run")
    if last.cycles <= first.cycles or last.host_ns <= first.host_ns:
        return "anchors out of order"
    if stamps is not None and not first.cycles <= stamps[0] <= stamps[1] <= last.cycles:
        return "a device stamp lies outside of the anchors"
    if (last.cycles - first.cycles) * _NS // frequency > MAX_NS or last.host_ns > MAX_NS:
        return "anchors too far apart"
    return Alignment(first, last, frequency)


def _bounded(found: Any, frequency: int, stamps: tuple[int, int] | None) -> Alignment | str:
    """Return the alignment of v4: one device stamp, and the earliest and latest that it may have been on the host."""
    if not isinstance(found, dict) or found.get("status") != "bounded":
        return "the capture says that its clocks are not joined"
    keys = ("device_anchor_cycles", "host_anchor_ns", "host_anchor_min_ns", "host_anchor_max_ns")
    numbers = [found.get(key) for key in keys]
    if any(type(value) is not int or not 0 < value <= MAX_NS for value in numbers):
        return "malformed clock alignment"
    cycles, host, low, high = map(int, numbers)  # type: ignore[arg-type]
    if not low <= host <= high:
        return "the clock anchor lies outside of its own bounds"
    if stamps is not None and max(abs(stamp - cycles) for stamp in stamps) > longest(frequency) >> 1:
        return "a device stamp is too far from the anchor"
    alignment = Alignment(Reading(cycles, host, max(host - low, high - host)), None, frequency)
    if stamps is not None and int(alignment.host_ns(np.array([stamps[0]]))[0]) < 0:
        return "a device stamp lies before the begin of the host's clock"
    return alignment


def _best(samples: list[Any], position: str, error: int) -> Reading | None:
    """Return the valid sample at a position with the shortest exchange, the first of them."""
    found = None
    for index, sample in enumerate(samples):
        if not isinstance(sample, dict) or sample.get("position") != position or sample.get("error") is not None:
            continue
        stamps = [sample.get(key) for key in ("host_before_ns", "device_cycles", "host_after_ns")]
        if any(type(value) is not int or not 0 < value <= MAX_CYCLES for value in stamps):
            continue
        before, cycles, after = map(int, stamps)  # type: ignore[arg-type]
        if after < before:
            continue
        number = sample.get("sample_idx")
        key = (after - before, number if type(number) is int else index)
        if found is None or key < found[0]:
            round_trip = after - before
            found = key, Reading(cycles, before + round_trip // 2, (round_trip + 1) // 2 + error)
    return None if found is None else found[1]


@frozen_class
class Times:
    """Puts stamps of both clocks on the trace's time axis.

    Attributes:
        base: what the times count.
        frequency: of the device's counter, Hz.
        base_cycles: smallest device stamp, receive stamps included; it is the zero of device times without alignment.
        base_host_ns: smallest host stamp that counts, the zero of host times.
        shift: added to device times without alignment: where the device's part begins.
        alignment: how both clocks are joined, or why they are not; None without host records and anchors.
    """

    base: TimeBase
    frequency: int
    base_cycles: int
    base_host_ns: int
    shift: int
    alignment: Alignment | str | None

    def device(self, cycles: Int64) -> Int64:
        """Return trace times of device stamps, int64 [n]."""
        if isinstance(self.alignment, Alignment):
            return self.alignment.host_ns(cycles) - self.base_host_ns
        times = ticks_to_ns(cycles - self.base_cycles, self.frequency)
        return times + self.shift if self.shift else times

    def host(self, host_ns: Int64) -> Int64:
        """Return trace times of host stamps, int64 [n]."""
        return host_ns - self.base_host_ns

    def length(self, cycles: Int64) -> Int64:
        """Return differences of device stamps in ns at the nominal frequency, int64 [n]; negative ones stay so."""
        return ticks_to_ns(cycles, self.frequency)


def longest(frequency: int) -> int:
    """Return how many cycles a capture may span."""
    return min(MAX_NS * frequency // _NS, MAX_CYCLES)


def times(
    metadata: dict[str, Any],
    frequency: int | None,
    device: tuple[int, int] | None,
    host: tuple[int, int] | None,
    *,
    has_counter: bool = True,
) -> Times:
    """Choose the time axis of a capture.

    Device only: zero is its smallest stamp. With anchors that join it to the host's clock: the host's clock. With
    records of a host and no anchors: the host's part first and the device's after it, which is the one thing known
    about their order.

    Args:
        metadata: the capture's metadata.
        frequency: of the device's counter, Hz; None: not known, the axis counts cycles.
        device: smallest and largest device stamp, None without any.
        host: smallest and largest host stamp, None without any.
        has_counter: False: device stamps count from a point of the capture itself.
    """
    base_cycles = device[0] if device else 0
    if frequency is None or not has_counter:
        unit: Literal["ns", "cycles"] = "cycles" if frequency is None else "ns"
        return Times(TimeBase(0, "first_event", unit), _NS, base_cycles, 0, 0, None)
    if host is None and device is not None and ("clock_anchors" in metadata or "clock_alignment" in metadata):
        joined = align(metadata, frequency, device)
        if isinstance(joined, Alignment):
            first = int(joined.host_ns(np.array([device[0]]))[0])
            return Times(TimeBase(first, "host_monotonic"), frequency, base_cycles, first, 0, joined)
    if host is None:
        epoch = base_cycles * _NS // frequency
        fits = epoch <= MAX_NS
        base = TimeBase(epoch if fits else 0, "device" if fits else "first_event")
        return Times(base, frequency, base_cycles, 0, 0, None)
    alignment = align(metadata, frequency, device)
    if isinstance(alignment, Alignment):
        first = host[0]
        if device:
            first = min(first, int(alignment.host_ns(np.array([device[0]]))[0]))
        return Times(TimeBase(first, "host_monotonic"), frequency, base_cycles, first, 0, alignment)
    return Times(TimeBase(host[0], "host_monotonic"), frequency, base_cycles, host[0], host[1] - host[0], alignment)
