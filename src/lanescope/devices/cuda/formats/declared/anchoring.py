"""The place of lanes on their clocks: by anchors in their headers, or by their first stamps."""

from __future__ import annotations

import numpy as np

from lanescope.declaration import frozen_class
from lanescope.devices.cuda.formats.buffer import Bounds, Summary, WrapOffsets
from lanescope.devices.cuda.formats.declared.declaration import ClockDecl
from lanescope.devices.cuda.formats.declared.lane_table import LaneTable
from lanescope.devices.cuda.formats.lane_columns import shared
from lanescope.devices.cuda.formats.lanes import I64, turns_of


@frozen_class
class Lanes:
    """What places lanes.

    Attributes:
        records: the lanes.
        clock: of their stamps.
        counters: int64 [lanes], which counter each lane reads; None: that of its SM.
        origin: the stamp from which stamps that are wider than the core's are counted.
        stamp_bits: width of the stamps in the core.
        in_cycles: whether they count anything but nanoseconds.
    """

    records: LaneTable
    clock: ClockDecl
    counters: I64 | None
    origin: int
    stamp_bits: int
    in_cycles: bool


def turns(of: Lanes, summary: Summary, anchor: int | None) -> WrapOffsets:
    """Return by how many ticks lanes have to move.

    Args:
        of: the lanes.
        summary: of all lanes.
        anchor: a full reading of the counter at or before the launch, from the user.
    """
    lanes = len(of.records.block)
    used = summary["records"] > 0
    if of.origin or of.clock.bits > of.stamp_bits:
        return WrapOffsets(shared(np.where(used, of.origin, 0)))
    if of.records.anchor is not None:
        return WrapOffsets(shared(_by_anchor(of, summary, of.records.anchor)))
    counters = of.counters
    if counters is None:
        assert of.records.sm is not None
        counters = of.records.sm
    ticks, doubtful = np.zeros(lanes, np.int64), np.zeros(lanes, np.bool_)
    order = np.argsort(counters, kind="stable")
    starts = np.flatnonzero(np.diff(counters[order])) + 1
    columns = {name: summary[name] for name in ("records", "first", "min")}
    for mine in np.split(order, starts):
        part = {name: column[mine] for name, column in columns.items()}
        found, certain = turns_of(part, None if of.in_cycles else anchor, of.stamp_bits)
        ticks[mine], doubtful[mine] = found, not certain
    return WrapOffsets(ticks, doubtful if doubtful.any() else None)


def _by_anchor(of: Lanes, summary: Summary, anchor: I64) -> I64:
    """Return the ticks by which lanes move to lie after, before or next to their anchors."""
    bits, unwrap = of.stamp_bits, of.clock.unwrap
    period = np.int64(1) << np.int64(bits)
    stamp = summary["max"] if unwrap == "before" else summary["min"]
    ahead = (stamp - anchor) % period
    if unwrap == "before":
        ahead = np.where(ahead == 0, 0, ahead - period)
    elif unwrap == "near":
        ahead = np.where(ahead >= period // 2, ahead - period, ahead)
    return np.where(summary["records"] > 0, anchor + ahead - stamp, 0)


def bounds(records: LaneTable, summary: Summary) -> Bounds | None:
    """Return readings of counter and timer, where the lanes have them."""
    pairs = records.pairs
    if not pairs:
        return None
    good = np.flatnonzero(summary["records"] > 0)
    if not len(good):
        return None
    cycles = np.concatenate([ticks[good] for ticks, _ in pairs])
    times = np.concatenate([ns[good] for _, ns in pairs])
    sound = times > 0
    if not sound.any():
        return None
    tick = max(1, int(np.gcd.reduce(times[sound] - times[sound][0])))
    return Bounds(np.tile(good, len(pairs))[sound], cycles[sound], times[sound], times[sound] + tick)
