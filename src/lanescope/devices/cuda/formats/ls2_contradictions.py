"""What the headers of an LS2 buffer and of its lanes say that cannot all be true, whatever the program did."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class
from lanescope.devices.cuda.formats import layout
from lanescope.devices.cuda.formats.buffer import Grid, LaneSpan, Summary
from lanescope.devices.cuda.formats.lanes import I64

Mask = npt.NDArray[np.bool_]

#: No timer and no counter of cycles shows so much: it would have run for decades.
UNREADABLE = 1 << 62
#: No cluster has so many blocks: the largest have 16.
MOST_CLUSTER_RANKS = 64
#: A group's other blocks say which warp leads it if there are so many, of which at most this share differ (or one).
_FEWEST_BLOCKS, _EXCEPTIONS = 4, 0.1

_BEGIN_NS, _BEGIN_CYCLES, _END_NS, _END_CYCLES = range(2, 6)


@frozen_class
class LaneContradictions:
    """Lanes whose headers contradict something, bool [lanes] each.

    Attributes:
        impossible: times or places that no lane can have, or that the lane's records or the host's readings exclude.
        elsewhere: another SM than lanes of the same block, or another launch than most lanes.
        other_warp: another warp than the same group has in nearly all other blocks.
    """

    impossible: Mask
    elsewhere: Mask
    other_warp: Mask


def of_header(fields: Mapping[str, int]) -> list[int]:
    """Return the words of a file header that contradict others, rising; ``fields`` as ``layout.LS2_HEADER`` has them.

    A kernel stores a required size only when it counts a lane that found no room. The host stores an anchor as a whole.
    """
    found = []
    for name, size in (("required_blocks", "num_blocks"), ("required_groups", "num_groups")):
        needed = fields[name]
        if fields["version"] != 1 and needed and (not fields["refused"] or needed <= fields[size]):
            found.append(name)
    for name in ("anchor", "anchor2"):
        ticks, unix, error = (fields[f"{name}_{part}"] for part in ("ticks", "unix", "error"))
        if max(ticks, unix, error) >= UNREADABLE or (not unix and (ticks or error)):
            found.append(f"{name}_ticks")
    if not found and fields["anchor2_unix"] and fields["anchor_unix"]:
        # The host reads both clocks before the launch, and again after it.
        found += [
            f"anchor2_{part}" for part in ("ticks", "unix") if fields[f"anchor2_{part}"] < fields[f"anchor_{part}"]
        ]
    return sorted(layout.LS2_HEADER[name].lsb // 64 for name in found)


def launch_window(fields: Mapping[str, int]) -> tuple[int, int]:
    """Return the host's readings of the timer before and after the launch; 0 and ``UNREADABLE`` without them."""
    first, last = (fields[f"{name}_ticks"] if fields[f"{name}_unix"] else 0 for name in ("anchor", "anchor2"))
    if of_header(fields):
        return 0, UNREADABLE
    return first, last or UNREADABLE


def of_lanes(
    grid: Grid,
    heads: npt.NDArray[np.uint64],
    state: I64,
    window: tuple[int, int],
    summary: Summary,
    extent: LaneSpan,
) -> LaneContradictions:
    """Return which lanes' headers contradict something.

    Args:
        grid: the lanes.
        heads: uint64 [lanes, 8], the lane headers.
        state: int64 [lanes], how far the writer of each came.
        window: as ``launch_window`` returns it.
        summary: of all lanes, placed.
        extent: when each was begun and finalized, in ticks of the stamps.
    """
    assert grid.sm is not None
    assert grid.warp is not None
    assert grid.cluster_rank is not None
    assert grid.grid_id is not None
    finalized = state == layout.FINALIZED
    # The header of a lane that was killed as it began may be incomplete.
    begun = finalized | ((state == layout.RUNNING) & (heads[:, _BEGIN_NS] > 0))
    lanes = np.flatnonzero(begun)
    block = grid.block[lanes]
    # Lanes of one block follow each other.
    starts = np.flatnonzero(np.diff(block, prepend=-1))
    first = np.repeat(lanes[starts], np.diff(np.append(starts, len(lanes))))
    impossible = begun & (
        (grid.warp >= layout.MOST_WARPS) | (grid.sm >= layout.MOST_SMS) | (grid.cluster_rank >= MOST_CLUSTER_RANKS)
    )
    impossible[lanes] |= grid.cluster_rank[lanes] != grid.cluster_rank[first]
    impossible |= _timeless(heads, begun, finalized, window)
    used = summary["records"] > 0
    impossible |= used & extent.begun & begun & (summary["first"] < extent.begin)
    impossible |= used & extent.ended & (summary["last"] > extent.end)
    elsewhere = np.zeros(len(begun), np.bool_)
    elsewhere[lanes] = (grid.sm[lanes] != grid.sm[first]) | _unusual(grid.grid_id[lanes])
    other_warp = np.zeros(len(begun), np.bool_)
    other_warp[lanes] = _exceptions(grid.group[lanes], grid.warp[lanes])
    return LaneContradictions(impossible, elsewhere, other_warp & ~impossible)


def _timeless(heads: npt.NDArray[np.uint64], begun: Mask, finalized: Mask, window: tuple[int, int]) -> Mask:
    """Return lanes with readings that no clock shows, that fall, or that lie outside of the launch, bool [lanes]."""
    begin, end = heads[:, _BEGIN_NS], heads[:, _END_NS]
    unreadable = np.uint64(UNREADABLE)
    bad_begin = (begin >= unreadable) | (heads[:, _BEGIN_CYCLES] >= unreadable) | (begin < np.uint64(window[0]))
    bad_end = (end >= unreadable) | (heads[:, _END_CYCLES] >= unreadable) | (end < begin)
    found: Mask = (begun & bad_begin) | (finalized & (bad_end | (end > np.uint64(window[1]))))
    return found


def _unusual(values: npt.NDArray[np.uint64]) -> Mask:
    """Return which values are not the most common one, bool [n]."""
    if not len(values) or (values == values[0]).all():
        return np.zeros(len(values), np.bool_)
    distinct, counts = np.unique(values, return_counts=True)
    found: Mask = values != distinct[counts.argmax()]
    return found


def _exceptions(group: I64, warp: I64) -> Mask:
    """Return where the warp of a group is another one than in nearly all blocks, bool [lanes]."""
    found = np.zeros(len(group), np.bool_)
    if not len(group):
        return found
    usual = np.zeros(int(group.max()) + 1, np.int64)
    usual[group] = warp
    if (usual[group] == warp).all():
        return found
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    for rows in np.split(order, starts[1:]):
        if len(rows) >= _FEWEST_BLOCKS:
            odd = _unusual(warp[rows].astype(np.uint64))
            found[rows] = odd & (np.count_nonzero(odd) <= max(1, int(len(rows) * _EXCEPTIONS)))
    return found
