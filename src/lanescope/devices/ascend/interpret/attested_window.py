"""The attested window of a capture: the time with more evidence than a few timestamps far from all others.

The definition and the thresholds are those of rule LS501 for one device. Time beyond the window is not known for any
lane, and one wrong timestamp must not make other lanes idle.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.devices.ascend.formats.records import Section
from lanescope.devices.ascend.interpret.execution_table import Executions
from lanescope.devices.ascend.interpret.sorted_index import distinct

Int64 = npt.NDArray[np.int64]

#: Fewer timestamps are not judged.
_MIN_STAMPS = 32
#: Bins of the quick test, and how many neighboring ones hold half of the timestamps where a gap may dwarf the rest.
_BINS, _NEAR = 64, 16
#: Timestamps further than this from the core are far, in lengths of the core; and gaps that split, in lengths of the
#: rest, where at most two lanes (or 2 %) stand apart, and where more do.
_CORE_SPANS, _GAP_RESTS, _LONE_GAP_RESTS = 8.0, 4.0, 8.0
#: More lanes or timestamps do not stand apart, as a share of all.
_MAX_LANES, _MAX_STAMPS = 0.34, 0.10
_ROUNDS = 64


def of_capture(runs: Executions, phases: Section, submits: Section) -> tuple[int, int]:
    """Return first and last timestamp of the device that is attested, cycles."""
    lanes = [(runs.core, runs.start), (runs.core, runs.end)]
    lanes += [(runs.core + (1 << 20), stamps) for stamps in (runs.dispatch, runs.finish)]
    for role, rows in enumerate((phases, submits), 2):
        group = rows.group.astype(np.int64) + (role << 20)
        lanes += [(group, rows[name]) for name in ("start_cycles", "end_cycles")]
    lane, time = (np.concatenate(column).astype(np.int64) for column in zip(*lanes, strict=True))
    return attested_window(time[time > 0], lane[time > 0])


def attested_window(time: Int64, lane: Int64) -> tuple[int, int]:
    """Return first and last timestamp that does not stand apart from the rest; (0, 0) without any.

    Args:
        time: int64 [n], cycles.
        lane: int64 [n], lane of each.
    """
    if not len(time):
        return 0, 0
    low, high = int(time.min()), int(time.max())
    if len(time) < _MIN_STAMPS or _is_spread(time, low, high):
        return low, high
    order = np.argsort(time, kind="stable")
    time, lane = time[order], lane[order]
    lanes, total = len(distinct(lane)), len(time)
    first, last = _without_far(time, lanes)
    gaps = np.diff(time)
    for _ in range(_ROUNDS):
        if last - first < _MIN_STAMPS // 2:
            break
        at = first + int(np.argmax(gaps[first : last - 1]))
        rest = max(int(time[last - 1]) - int(time[first]) - int(gaps[at]), 1)
        if gaps[at] <= _GAP_RESTS * rest:
            break
        is_left = at + 1 - first < last - at - 1
        few = slice(first, at + 1) if is_left else slice(at + 1, last)
        if not _is_apart(len(distinct(lane[few])), lanes, (few.stop - few.start) / total, gaps[at] / rest):
            break
        first, last = (at + 1, last) if is_left else (first, at + 1)
    return int(time[first]), int(time[last - 1])


def _is_spread(time: Int64, low: int, high: int) -> bool:
    """Tell whether no gap can dwarf the rest: the normal case."""
    if low == high:
        return True
    scale = _BINS / (float(high) - float(low) + 1.0)
    bins = np.minimum(((time - low).astype(np.float64) * scale).astype(np.int64), _BINS - 1)
    sums = np.concatenate([[0], np.cumsum(np.bincount(bins, minlength=_BINS))])
    return bool((sums[_NEAR:] - sums[:-_NEAR]).max() < 0.5 * sums[-1])


def _without_far(time: Int64, lanes: int) -> tuple[int, int]:
    """Return from where and up to where sorted timestamps are near their core."""
    total = len(time)
    if lanes < 3:
        return 0, total
    ends = max(total // 100 if total >= 64 else 0, min(8, total // 16))
    low, high = int(time[ends]), int(time[total - 1 - ends])
    reach = int(_CORE_SPANS * max(high - low, 1))
    first, last = np.searchsorted(time, low - reach), np.searchsorted(time, high + reach, "right")
    return int(first), int(last)


def _is_apart(lanes: int, all_lanes: int, share: float, gap_rests: float) -> bool:
    """Tell whether so few timestamps are not a second launch."""
    if share > 0.5 or (lanes > max(2, _MAX_LANES * all_lanes) and share > 0.01):
        return False
    is_lone = lanes <= max(2, 0.02 * all_lanes)
    if not is_lone and (gap_rests <= _LONE_GAP_RESTS or (share > _MAX_STAMPS and lanes > 0.1 * all_lanes)):
        return False
    return all_lanes >= 3 or share <= 0.02
