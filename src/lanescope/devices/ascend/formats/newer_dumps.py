"""Dumps of newer runtimes, which are refused: nothing in them says how their phases are laid out.

Since runs are kept apart, each buffer has the number of its run and its own within that run behind its count, and heads
of pools count what they handed over; pools are as many as the chip has room for, whatever is in use. Records of cores
and dispatches stayed as they were. Those of phases were changed twice, without a version: the task moved in front of
the counts, and then the number of the kind behind them, with a list of kinds for each runtime. A reader that guessed
would take one kind of phase for another.

Source: hw-native-sys/simpler at 04c88e9, ``src/common/platform/include/common/chip_swimlane_profiling.h``, and
``scheduler_profiling.h`` of its chips.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.devices.ascend.formats.device_structs import POOL, REGIONS, Region
from lanescope.devices.ascend.formats.dump_parts import Dump, buffer_of, record_dtype, stated_cores, valid_count
from lanescope.devices.ascend.formats.records import Bytes

#: Streams whose buffers are cleared before they are used: what is behind their count was written.
_CLEARED = ("aicore_task", "aicpu_task")
#: Behind the count: four bytes of nothing, the run (8), the buffer's number in it (4), and nothing.
_RUN, _NUMBER_END = slice(8, 16), 20
#: Counts in the head of a pool of newer runtimes, in what was padding: records that it holds, and has handed over.
_COUNTED = slice(0, 12)
#: Phases that a buffer needs for its layout to be seen.
_PHASES = 16
_DISTINCT = 4
#: Words of a phase: where its iteration was, and where it is.
_OLD_LOOP, _NEW_LOOP = 4, 6


def newer_pools(content: Bytes) -> bool:
    """Return whether bytes begin with the shared memory of a newer runtime."""
    return any(_counts(content, region, cores) for region in REGIONS for cores in stated_cores(content, region))


def _counts(content: Bytes, region: Region, cores: int) -> bool:
    """Return whether pools for the whole chip count what they handed over, and only those of cores in use do."""
    number = 2 * (region.cores + region.threads)
    if len(content) < region.header.size + number * POOL.size:
        return False
    pools = np.frombuffer(content, POOL.dtype, number, region.header.size)
    is_idle = np.arange(number) % region.cores >= cores
    is_idle[2 * region.cores :] = False
    is_used = pools["total_record_count"] > 0
    live, records, buffers = pools["head_padding"][:, _COUNTED].copy().view("<u4").T
    total = pools["total_record_count"].astype(np.int64)
    fits = (live.astype(np.int64) + records + pools["dropped_record_count"] <= total) & (buffers <= total)
    fits &= ~pools["head_padding"][:, _COUNTED.stop :].any(axis=1) & ~pools["padding"].any(axis=1)
    fits &= pools["free_tail"] - pools["free_head"] <= POOL["free_ptrs"].count
    counts = is_used & (live + records > 0)
    return bool(fits.all() and counts.any() and not (is_idle & is_used).any()) and 2 * counts.sum() > is_used.sum()


def newer_buffers(content: Bytes, dump: Dump) -> bool:
    """Return whether most buffers of a dump are those of a newer runtime, by what they hold behind their records."""
    told = newer = 0
    for piece in dump.buffers:
        _, _, size = record_dtype(piece.stream, "v3")
        if piece.end - piece.begin < size:
            continue
        if piece.stream in _CLEARED:
            at = piece.begin + buffer_of(piece.stream, "v3")["count"].offset
            behind = content[at : piece.begin + size]
            told += 1
            newer += bool(behind[_RUN].any()) and not behind[_NUMBER_END:].any()
        elif piece.stream == "sched_phase":
            words = content[piece.begin : piece.begin + size].view("<u4")
            words = words[: valid_count(content, dump, piece) * 16].reshape(-1, 16)
            if len(words) >= _PHASES:
                told += 1
                newer += _is_moved(words)
    return newer * 2 > told


def _is_moved(words: npt.NDArray[np.uint32]) -> bool:
    """Return whether the iteration of phases, which never falls in a thread, stands where newer runtimes have it."""
    old, new = (words[:, place].astype(np.int64) for place in (_OLD_LOOP, _NEW_LOOP))
    rises = bool((np.diff(new) >= 0).all()) and len(distinct(new)) >= _DISTINCT
    return rises and (bool((np.diff(old) < 0).any()) or old.min() == old.max())
