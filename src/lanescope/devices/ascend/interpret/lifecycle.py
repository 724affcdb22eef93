"""What control processors do around a run whose cores schedule themselves: they start the cores, and end them.

Each thread stamps begin and end of the stages that it has a part in; a stage that it has none in has 0 for both. Older
writers have one element a core, with what the threads did for it: some stages have one stamp there.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.declaration import frozen_class
from lanescope.devices.ascend.formats.layout import CORE_STAGES, STAGES
from lanescope.devices.ascend.formats.records import Section
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]

#: Names of all stages.
NAMES = tuple(dict.fromkeys(name for name, _, _ in (*STAGES, *CORE_STAGES)))
#: Stages of a thread, and of a core, of which each begins when the one before it has ended.
_IN_TURN = ("handshake", "register_release", "exit_signal", "exit_wait")
_CORE_IN_TURN = ("handshake", "register_release", "exit")


@frozen_class
class Stages:
    """Stages that have a place in time.

    Attributes:
        lane: int64 [n], place in ``lanes``.
        stage: int64 [n], place in ``NAMES``.
        begin, end: int64 [n], cycles; an end of 0 was not recorded.
        lanes: names of lanes: threads that wrote a record, rising, and behind them the cores that elements are of.
        problems: stats: name, count, byte offset of the first.
    """

    lane: Int64
    stage: Int64
    begin: Int64
    end: Int64
    lanes: tuple[str, ...]
    problems: tuple[tuple[str, int, int | None], ...] = ()

    def __len__(self) -> int:
        return len(self.begin)


def stages(rows: Section, limit: int) -> Stages:
    """Return the stages of a list of records.

    Args:
        rows: the list.
        limit: stamps beyond it are no times.
    """
    of_core = rows.has("worker_id")
    none = np.empty(0, np.int64)
    parts, lanes = [(none, none, none, none)], list[str]()
    problems: list[tuple[str, int, int | None]] = []
    for which, known in ((~of_core, STAGES), (of_core, CORE_STAGES)):
        mine = rows.take(which)
        if not len(mine):
            continue
        thread = mine["aicpu_thread_id"].astype(np.int64)
        number = thread if known is STAGES else mine["worker_id"].astype(np.int64)
        numbers = distinct(number)
        begin, end = (np.stack([mine[stage[side]] for stage in known], axis=1) for side in (1, 2))
        far = (begin > limit) | (end > limit)
        unstamped = (begin == 0) & (end > 0) & ~far
        row, stage = np.nonzero((begin > 0) & ~far)
        order = np.lexsort((begin[row, stage], number[row]))
        row, stage = row[order], stage[order]
        lane = len(lanes) + np.searchsorted(numbers, number[row])
        name = np.array([NAMES.index(name) for name, _, _ in known])
        parts.append((lane, name[stage], begin[row, stage], end[row, stage]))
        if known is STAGES:
            contradict = _contradict(thread, begin, end)
            lanes += [f"AICPU_{number}" for number in numbers.tolist()]
        else:
            contradict = _cores_contradict(number, begin, end)
            by_core = np.argsort(number, kind="stable")
            first = thread[by_core[np.searchsorted(number[by_core], numbers)]]
            lanes += [f"AICPU_{of} Core_{core}" for of, core in zip(first.tolist(), numbers.tolist(), strict=True)]
        for problem, where in (
            ("ascend_timestamp_out_of_range", far.any(axis=1)),
            ("ascend_missing_start", unstamped.any(axis=1)),
            ("ascend_lifecycle_contradicts", contradict),
        ):
            if where.any():
                problems.append((problem, int(np.count_nonzero(where)), int(mine.begin[where].min())))
    lane, stage, begin, end = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Stages(lane, stage, begin, end, tuple(lanes), tuple(problems))


def _contradict(thread: Int64, begin: Int64, end: Int64) -> Mask:
    """Return which records contradict themselves or another, bool [n]: stages out of turn, a thread that is another's.

    Threads are numbered from 0 on; which of them configures the run is the first.
    """
    wrong = _out_of_turn([name for name, _, _ in STAGES], _IN_TURN, begin, end)
    configuration = [name for name, _, _ in STAGES].index("configuration")
    wrong |= (begin[:, configuration] > 0) & (thread != thread.min())
    found: Mask = wrong | (thread != np.arange(len(thread)))
    return found


def _cores_contradict(core: Int64, begin: Int64, end: Int64) -> Mask:
    """Return the same of the elements of cores, which are numbered from 0 on."""
    wrong = _out_of_turn([name for name, _, _ in CORE_STAGES], _CORE_IN_TURN, begin, end)
    order = np.argsort(core, kind="stable")
    wrong[order[1:]] |= core[order][1:] == core[order][:-1]
    return wrong


def _out_of_turn(names: list[str], turn: tuple[str, ...], begin: Int64, end: Int64) -> Mask:
    wrong = np.zeros(len(begin), np.bool_)
    wrong |= ((begin > 0) & (end > 0) & (end < begin)).any(axis=1)
    for before, after in pairwise(names.index(name) for name in turn):
        known = (end[:, before] > 0) & (begin[:, after] > 0)
        wrong |= known & (begin[:, after] < end[:, before])
    return wrong
