"""When operations ran: their ticks on the host's clock, device by device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lanescope.common.asof_join import Int64, Mask, join
from lanescope.common.distinct import distinct
from lanescope.common.stat_tally import StatTally
from lanescope.declaration import frozen_class
from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.event_model import Events, is_text
from lanescope.devices.levelzero.interpret.appends import Appends
from lanescope.devices.levelzero.interpret.attribution import Operations
from lanescope.devices.levelzero.interpret.clock import TOLERANCE_NS, Clock, mul_div
from lanescope.trace import Flag

if TYPE_CHECKING:
    from fractions import Fraction

_FAR = 1 << 59
EXACT, ESTIMATED, INFERRED = 0, 1, 2


@frozen_class
class Devices:
    """Devices and sub-devices, one for each handle of a process.

    Attributes:
        row: int64 [devices], row of ``devices`` that describes it.
        parent: int64 [devices], place of its root device here, -1 where it is one, or the root was not seen.
    """

    row: Int64
    parent: Int64


@frozen_class
class Times:
    """When operations ran. All arrays are [operations].

    Attributes:
        device: int64, place in ``Devices``, -1: unknown.
        submit: int64, when the call that gave it to the device began, ns since ``base``.
        begin: int64, ns since ``base``.
        end: int64, ns since ``base``.
        has_length: bool, whether the end is known.
        ticks: int64, unwrapped ticks at the begin, meaningless unless ``has_ticks``.
        length: int64, ticks from begin to end, meaningless unless ``has_ticks`` and ``has_length``.
        has_ticks: bool, whether the clock of the device is known.
        flags: uint32, bits of ``Flag``.
        quality: uint8, ``EXACT``, ``ESTIMATED``, ``INFERRED``.
        error: bool, whether the operation, or the reading of its timestamps, failed.
        clocks: the clock of each of ``Devices``, where it is known.
    """

    device: Int64
    submit: Int64
    begin: Int64
    end: Int64
    has_length: Mask
    ticks: Int64
    length: Int64
    has_ticks: Mask
    flags: npt.NDArray[np.uint32]
    quality: npt.NDArray[np.uint8]
    error: Mask
    clocks: dict[int, Clock]


def devices_of(events: Events) -> Devices:
    """List the devices; of several descriptions of one the first counts."""
    table = events["devices"]
    if not len(table):
        none = np.empty(0, np.int64)
        return Devices(none, none)
    process = events.process("devices")
    keys = [process, table.values("device")]
    place = np.arange(len(table))
    first = join(keys, np.full(len(table), -1), keys, place).first_after()
    row = distinct(first)
    parents = join(
        [process[row], table.values("parent")[row]],
        np.full(len(row), -1),
        [k[row] for k in keys],
        place[: len(row)],
    ).first_after()
    is_sub = table.valid("parent")[row] & (table.values("parent")[row] != table.values("device")[row])
    return Devices(row, np.where(is_sub, parents, -1))


def place(
    events: Events,
    appends: Appends,
    operations: Operations,
    devices: Devices,
    *,
    base: int,
    tolerance: int = TOLERANCE_NS,
) -> Times:
    """Find when each operation ran.

    Args:
        events: the event model.
        appends: what is known of its Appends.
        operations: its operations; their notes grow.
        devices: its devices.
        base: host time, ns, that times are counted from.
        tolerance: how far clocks may be off, ns.
    """
    results, runs = events["results"], events["runs"]
    found, count = operations.result, len(operations.result)
    notes = operations.notes
    submit = appends.begin[operations.append]
    executed = np.flatnonzero(operations.submit >= 0)
    submit[executed] = runs.values("ts")[operations.submit[executed]]
    submit = np.clip(submit - base, -_FAR, _FAR)
    harvest = np.clip(results.values("ts")[found] - base, -_FAR, _FAR)
    error = ~(is_text(results, "status", layout.SUCCESS) & is_text(results, "timestamp_status", layout.SUCCESS))[found]
    device = _device_of(events, appends, operations, devices)
    times = Times(
        device,
        submit,
        submit.copy(),
        submit.copy(),
        ~error,
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.bool_),
        np.zeros(count, np.uint32),
        np.where(operations.inferred, INFERRED, EXACT).astype(np.uint8),
        error,
        _clocks(events, devices, notes, base),
    )
    times.flags[operations.inferred] |= np.uint32(Flag.INFERRED_IDENTITY)
    start, end = results.values("global_start")[found], results.values("global_end")[found]
    # The device is described first, so that operations of one device can be taken together.
    by_device = np.argsort(device, kind="stable")
    edges = np.searchsorted(device[by_device], np.arange(-1, len(devices.row) + 1))
    for number in distinct(device).tolist():
        rows = by_device[edges[number + 1] : edges[number + 2]]
        rows = rows[~error[rows]]
        clock = times.clocks.get(number)
        if clock is None:
            rate = _rate_of(events, int(devices.row[number])) if number >= 0 else None
            _place_unclocked(times, rows, start, end, rate)
            stat = "levelzero_unknown_device" if rate is None else "levelzero_unanchored_clock"
            notes.add_times(stat, submit[rows] + base)
            continue
        placed = clock.place(start[rows], end[rows], submit[rows], harvest[rows], tolerance)
        times.begin[rows], times.end[rows], times.has_length[rows] = placed.begin, placed.end, placed.has_length
        times.ticks[rows], times.length[rows], times.has_ticks[rows] = placed.ticks, placed.length, True
        times.flags[rows] |= placed.flags
        times.quality[rows] = np.maximum(times.quality[rows], placed.estimated * np.uint8(ESTIMATED))
        notes.add_times("levelzero_rounded_clock_rate", submit[rows[placed.estimated]] + base)
    failed = np.flatnonzero(error)
    times.flags[failed] |= np.uint32(Flag.UNFINISHED)
    times.quality[failed] = INFERRED
    notes.add_times("levelzero_result_error", results.values("ts")[found[failed]])
    return times


def _device_of(events: Events, appends: Appends, operations: Operations, devices: Devices) -> Int64:
    """Return the device of each operation, a place in ``devices``, int64 [operations], -1: unknown."""
    lists, table = events["lists"], events["devices"]
    if not len(lists) or not len(devices.row):
        return np.full(len(operations.append), -1, np.int64)
    row = devices.row
    at = join(
        [events.process("lists"), lists.values("device")],
        np.full(len(lists), -1),
        [events.process("devices")[row], table.values("device")[row]],
        np.arange(len(row)),
    ).first_after()
    at[~lists.valid("device")] = -1
    listed = appends.listed[operations.append]
    return np.where(listed >= 0, at[listed], -1)


def _clocks(events: Events, devices: Devices, notes: StatTally, base: int) -> dict[int, Clock]:
    """Make the clock of each device whose frequency is known and whose clock, or that of its root, was read."""
    table, pairs = events["devices"], events["clock_pairs"]
    row = devices.row
    if not len(row) or not len(pairs):
        return {}
    number = join(
        [events.process("clock_pairs"), pairs.values("device")],
        np.full(len(pairs), -1),
        [events.process("devices")[row], table.values("device")[row]],
        np.arange(len(row)),
    ).first_after()
    notes.add_times("levelzero_unknown_handle", pairs.values("ts")[number < 0])
    host = pairs.values("host_ns") - base
    number[(host < -_FAR) | (host > _FAR)] = -1
    order = np.argsort(number, kind="stable")
    edges = np.searchsorted(number[order], np.arange(len(row) + 1))
    found = {}
    for device in range(len(row)):
        about = row[device]
        source = device
        if edges[device] == edges[device + 1] and devices.parent[device] >= 0:
            source = int(devices.parent[device])
        mine = order[edges[source] : edges[source + 1]]
        rate = _rate_of(events, int(about)) if len(mine) else None
        if rate is None:
            continue
        clock = Clock(
            rate,
            is_rounded=bool(table.values("is_rounded")[about]),
            bits=layout.bits_of(int(table.values("timestamp_bits")[about])),
            kernel_bits=layout.bits_of(int(table.values("kernel_timestamp_bits")[about])),
            host_ns=host[mine],
            ticks=pairs.values("device_ticks")[mine],
            errors=pairs.values("error_ns")[mine] if pairs.valid("error_ns")[mine].all() else None,
        )
        notes.add_times("levelzero_inconsistent_clock_pair", host[mine[: clock.pairs.suspect]] + base)
        found[device] = clock
    return found


def _rate_of(events: Events, row: int) -> Fraction | int | None:
    """Return the ticks per second of a row of ``devices``, None if unknown."""
    table = events["devices"]
    if not table.valid("ticks_per_second_num")[row]:
        return None
    num, den = (int(table.values(f"ticks_per_second_{part}")[row]) for part in ("num", "den"))
    if num % den == 0:
        return num // den
    from fractions import Fraction  # with what it imports, as dear as reading a small capture

    return Fraction(num, den)


def _place_unclocked(
    times: Times,
    rows: Int64,
    start: npt.NDArray[np.uint64],
    end: npt.NDArray[np.uint64],
    rate: Fraction | int | None,
) -> None:
    """Place operations of a device whose clock was never read at their submission.

    They are as long as the declared rate says; where there is none, a tick is drawn as a nanosecond.
    """
    ticks = end[rows] - start[rows]
    # Numerator and denominator fit into 63 bits: a rate is 1 Hz at least.
    from fractions import Fraction

    per_tick = Fraction(1) if rate is None else (Fraction(layout.NS_PER_SECOND) / rate).limit_denominator(1 << 32)
    negative = ticks.astype(np.float64) * float(per_tick) >= _FAR
    negative |= ticks >= np.uint64(_FAR)
    known = np.where(negative, 0, ticks).astype(np.int64)
    scale = np.ones(len(rows), np.int64)
    length = mul_div(known, scale * per_tick.numerator, scale * per_tick.denominator)
    times.end[rows] = times.begin[rows] + length
    times.has_length[rows[negative]] = False
    times.flags[rows[negative]] |= np.uint32(Flag.NEGATIVE_DURATION)
    times.quality[rows] = np.maximum(times.quality[rows], np.uint8(ESTIMATED))
