"""What a trace shows of its clocks: readings of two clocks at once, and what its families find."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np

from lanescope.common.time_domains import TrackRoots, lanes_of_clocks, merged_pairs
from lanescope.errors import MissingDependencyError, UsageError
from lanescope.families import registry
from lanescope.families.clock_pairs import ClockPairs, Int64, Orders, TimeDomain
from lanescope.trace import Trace

_NS = 1_000_000_000
#: Clocks of hosts, on which traces count.
_OF_HOSTS = ("unix", "host_monotonic")
#: Readings that are converted with a clock's nominal frequency: rounding of ticks, twice.
_ROUNDING_NS = 2


def clock_pairs(trace: Trace, rate: Fraction) -> list[ClockPairs]:
    """Return what joins the clocks of a trace, one entry for two clocks.

    Args:
        trace: the trace.
        rate: how far the rates of two clocks may differ.
    """
    return merged_pairs([*_of_families(trace), *_anchored(trace, rate)])


def _of_families(trace: Trace) -> Iterator[ClockPairs]:
    from lanescope.common.time_domains import flow_pairs

    for name in dict.fromkeys(str(name) for name in trace.inputs.values("family").tolist()):
        try:
            find = registry.family(name).clock_pairs
        except (UsageError, MissingDependencyError):  # read from a folder; its family is not installed
            find = None
        yield from (find or flow_pairs)(trace)
    if not len(trace.inputs):
        yield from flow_pairs(trace)


def _anchored(trace: Trace, rate: Fraction) -> Iterable[ClockPairs]:
    """Yield for each clock with lanes how far these are from where the clock's anchors put them, within their errors.

    Of a clock without lanes, such as the Unix time that a host read together with a device's counter, the anchors show
    where the axis of the trace lies on it.
    """
    if trace.time.time_unit != "ns" or not len(trace.anchors):
        return
    domains, number = lanes_of_clocks(trace)
    clocks, anchors = trace.clocks, trace.anchors
    names = clocks.values("name").tolist()
    axes = _axes(trace, domains, names)
    stated = anchors.valid("error_ns")
    for clock in dict.fromkeys(anchors.values("clock_id").tolist()):
        rows = np.flatnonzero((anchors.values("clock_id") == clock) & stated)
        known = clocks.valid("frequency_num")[clock] and clocks.valid("frequency_den")[clock]
        if not len(rows) or not known or names[clock] == trace.time.epoch_kind:
            continue
        hertz = Fraction(int(clocks.values("frequency_num")[clock]), int(clocks.values("frequency_den")[clock]))
        ticks, ts, error = (anchors.values(name)[rows] for name in ("ticks", "ts", "error_ns"))
        domain = domains.get(clock)
        if domain is None:
            if hertz == _NS and len(domains) == 1:
                base = int(ticks.min())
                only = next(iter(domains.values()))
                yield _read(TimeDomain(names[clock], np.empty(0, np.int64)), only, ticks - base, ts, error, base)
        elif clock in axes:
            shown, off = _shown(trace, number == clock, ticks, hertz, rate)
            if shown is not None:
                yield _read(axes[clock], domain, ts, shown, error + off)


def _axes(trace: Trace, domains: dict[int, TimeDomain], names: list[str]) -> dict[int, TimeDomain]:
    """Return for each clock that lanes count on the axis of its capture, where lanes count on another one, too.

    That axis is the host's clock if the capture has one. Captures of a merged trace have one each.
    """
    roots = TrackRoots(trace.tracks)
    captures: dict[int, list[int]] = {}
    for clock, domain in domains.items():
        captures.setdefault(int(roots.root[domain.tracks[0]]) if roots.is_merged else -1, []).append(clock)
    found: dict[int, TimeDomain] = {}
    for members in captures.values():
        if len(members) < 2:
            continue
        axis = next((at for at in members if at >= len(names) or names[at] in _OF_HOSTS), -1)
        run = roots.run_name(int(domains[members[0]].tracks[0]))
        shared = domains[axis] if axis >= 0 else TimeDomain(f"{run}time axis", np.empty(0, np.int64))
        found |= {clock: shared for clock in members if clock != axis}
    return found


def _shown(
    trace: Trace, wanted: np.ndarray, ticks: Int64, hertz: Fraction, rate: Fraction
) -> tuple[Int64 | None, Int64]:
    """Return the times that lanes of a clock show when it shows ``ticks``, and how far that may be off."""
    slices = trace.slices
    rows = np.flatnonzero(slices.valid("ts_ticks") & wanted[slices.values("track_id")])
    if not len(rows):
        return None, ticks
    rows = rows[np.argsort(slices.values("ts_ticks")[rows], kind="stable")]
    lane_ticks, lane_ts = slices.values("ts_ticks")[rows], slices.values("ts")[rows]
    place = np.minimum(np.searchsorted(lane_ticks, ticks), len(rows) - 1)
    before = np.maximum(place - 1, 0)
    nearer = np.abs(ticks - lane_ticks[before]) < np.abs(ticks - lane_ticks[place])
    place = np.where(nearer, before, place)
    away = [int(delta) * _NS / hertz for delta in (ticks - lane_ticks[place]).tolist()]
    shown = np.array([int(ts + ns // 1) for ts, ns in zip(lane_ts[place].tolist(), away, strict=True)], np.int64)
    off = np.array([int(abs(ns) * rate) + _ROUNDING_NS for ns in away], np.int64)
    return shown, off


def _read(
    first: TimeDomain, second: TimeDomain, first_ts: Int64, second_ts: Int64, error: Int64, base: int = 0
) -> ClockPairs:
    return ClockPairs(first, second, *Orders.read(first_ts, second_ts, error), base=base)
