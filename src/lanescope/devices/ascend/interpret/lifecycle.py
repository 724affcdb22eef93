"""What control processors do around a run whose cores schedule themselves: they start the cores, and end them.

Each thread stamps begin and end of the stages that it has a part in; a stage that it has none in has 0 for both.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.declaration import frozen_class
from lanescope.devices.ascend.formats.layout import STAGES
from lanescope.devices.ascend.formats.records import Section
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]

#: Stages of a thread of which each begins when the one before it has ended.
_IN_TURN = ("handshake", "register_release", "exit_signal", "exit_wait")


@frozen_class
class Stages:
    """Stages that have a place in time.

    Attributes:
        thread: int64 [n].
        stage: int64 [n], place in ``layout.STAGES``.
        begin, end: int64 [n], cycles; an end of 0 was not recorded.
        threads: all threads that wrote a record, rising.
        problems: stats: name, count, byte offset of the first.
    """

    thread: Int64
    stage: Int64
    begin: Int64
    end: Int64
    threads: list[int]
    problems: tuple[tuple[str, int, int | None], ...] = ()

    def __len__(self) -> int:
        return len(self.begin)


def stages(rows: Section, limit: int) -> Stages:
    """Return the stages of a list of records.

    Args:
        rows: the list.
        limit: stamps beyond it are no times.
    """
    if not len(rows):
        none = np.empty(0, np.int64)
        return Stages(none, none, none, none, [])
    thread = rows["aicpu_thread_id"].astype(np.int64)
    begin, end = (np.stack([rows[stage[side]] for stage in STAGES], axis=1) for side in (1, 2))
    far = (begin > limit) | (end > limit)
    unstamped = (begin == 0) & (end > 0) & ~far
    row, stage = np.nonzero((begin > 0) & ~far)
    order = np.lexsort((begin[row, stage], thread[row]))
    row, stage = row[order], stage[order]
    problems = []
    for name, where in (
        ("ascend_timestamp_out_of_range", far.any(axis=1)),
        ("ascend_missing_start", unstamped.any(axis=1)),
        ("ascend_lifecycle_contradicts", _contradict(thread, begin, end)),
    ):
        if where.any():
            problems.append((name, int(np.count_nonzero(where)), int(rows.begin[where].min())))
    return Stages(thread[row], stage, begin[row, stage], end[row, stage], distinct(thread).tolist(), tuple(problems))


def _contradict(thread: Int64, begin: Int64, end: Int64) -> Mask:
    """Return which records contradict themselves or another, bool [n]: stages out of turn, a thread that is another's.

    Threads are numbered from 0 on; which of them configures the run is the first.
    """
    names = [name for name, _, _ in STAGES]
    wrong = ((begin > 0) & (end > 0) & (end < begin)).any(axis=1)
    turn = [names.index(name) for name in _IN_TURN]
    for before, after in pairwise(turn):
        known = (end[:, before] > 0) & (begin[:, after] > 0)
        wrong |= known & (begin[:, after] < end[:, before])
    configuration = names.index("configuration")
    wrong |= (begin[:, configuration] > 0) & (thread != thread.min())
    found: Mask = wrong | (thread != np.arange(len(thread)))
    return found
