"""Contradictions between the resources of scopes and the tasks of a capture, and between scopes.

Source: hw-native-sys/simpler at 6ebaf77, a run of its simulated platform and its manual of scope stats: each scope uses
the ring of its depth, positions only rise, and a task takes one place of the window of its ring, as its number says.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.devices.ascend.formats.layout import SUBMITS
from lanescope.devices.ascend.formats.scope_stats import RINGED, VERSION, ScopeStats
from lanescope.devices.ascend.formats.versions import RINGS
from lanescope.devices.ascend.interpret.resolve import Interpreter
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]

_WINDOW = RINGED.index("task_window")
#: Resources that the orchestrator alone takes from; the pool of dependencies is what schedulers published of it.
_TAKEN = (_WINDOW, RINGED.index("heap"))
#: Format versions whose tasks are numbered by the places of the window.
_NUMBERED = ("v3c", "v4")
_RING, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
#: Level from which on submissions are recorded.
_LEVEL = 4


def tasks_of_scopes(told: Interpreter, scopes: ScopeStats) -> tuple[int, int]:
    """Compare the tasks of a capture with the windows of the rings at the end of the scopes.

    Only of the runtime with rings is it known that they agree, and only if all boundaries arrived.

    Returns:
        How many tasks have a number that no scope took, and how many that scopes took are not among the submissions,
        of which otherwise none is missing.
    """
    is_known = told.runtime == RINGS and told.format_version in _NUMBERED and scopes.version >= VERSION
    is_complete = scopes.total == len(scopes) and not (scopes.dropped or scopes.tally.bad_count or scopes.is_fatal)
    # The last boundary is the end of the outermost scope.
    is_closed = len(scopes) > 0 and scopes.depth[-1] == 0 and not scopes.is_begin[-1]
    if not (is_known and is_complete and is_closed) or told.graph.runs is not None or told.records.cut is not None:
        return 0, 0
    taken = np.zeros(256, np.int64)
    np.maximum.at(taken, scopes.ring, scopes.head[:, _WINDOW])
    ids = told.graph.ids
    ids = ids[ids >> _RING < len(taken)]
    beyond = (ids & _LOW).astype(np.int64) >= taken[(ids >> _RING).astype(np.int64)]
    missing = 0
    if told.records.level >= _LEVEL and len(told.submits) and told.is_whole(SUBMITS):
        sent = distinct(told.submits["task_id"])
        missing = max(int(taken.sum()) - len(sent), 0) if not beyond.any() else 0
    return int(np.count_nonzero(beyond)), missing


def moved_between(scopes: ScopeStats) -> Mask:
    """Return the starts of scopes at which more was taken of their ring than at the end of the one before, bool [n].

    From the end of a scope to the start of the next on its ring only scopes of other rings take resources, unless the
    ring is the last one, which all deeper scopes share.
    """
    wrong = np.zeros(len(scopes), np.bool_)
    if scopes.version < VERSION or not len(scopes):
        return wrong
    order = np.argsort(scopes.ring, kind="stable")
    one, other = order[:-1], order[1:]
    follows = (scopes.ring[one] == scopes.ring[other]) & ~scopes.is_begin[one] & scopes.is_begin[other]
    # With one ring, or on the last one, the scope around both takes from it as well.
    alone = (scopes.ring == scopes.depth) & bool(scopes.ring.any())
    follows &= alone[one] & alone[other]
    taken = scopes.head[:, _TAKEN]
    wrong[other] = follows & (taken[one] != taken[other]).any(axis=1)
    return wrong
