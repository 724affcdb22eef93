"""Which operation signalled an event: the one that was given to the device with it last, where records show that."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.asof_join import Int64, join, pick
from lanescope.devices.levelzero.interpret.resolved import Attributed

#: Before all Appends of a submission.
_FIRST = np.iinfo(np.int64).min


class EventSignals:
    """Operations in the order in which the device was given them: by submission, then by Append.

    An event is reset and used again, which neither an Append nor a result shows. What was given with it last before
    a wait is what signals it, unless something that has no result may have been given with it since: an Append
    of an immediate list, or another execution of the same list. Then no operation is known.

    Args:
        found: attributed records.

    Attributes:
        given: int64 [operations], number of the record that gave each to the device: its Append or the execution.
    """

    def __init__(self, found: Attributed) -> None:
        self._found, events = found, found.events
        operations, appends, runs = found.operations, events["appends"], events["runs"]
        self._append_seq: Int64 = appends.values("seq")
        self._process = events.process("appends")
        executed = operations.submit >= 0
        self.given: Int64 = np.where(
            executed, pick(runs.values("seq"), operations.submit), self._append_seq[operations.append]
        )
        self._signals = np.flatnonzero(appends.valid("event") & (appends.values("event") != 0))
        mine = np.zeros(len(appends), np.bool_)
        mine[self._signals] = True
        self._candidates = np.flatnonzero(mine[operations.append])

    def last_appended(self, process: npt.NDArray[Any], event: npt.NDArray[np.uint64], seq: Int64) -> Int64:
        """Return the last Append of each event before a record, int64 [n], rows of ``appends`` or -1."""
        events = self._found.events["appends"].values("event")
        keys: list[npt.NDArray[Any]] = [self._process[self._signals], events[self._signals]]
        last = join([process, event], seq, keys, self._append_seq[self._signals]).last_before()
        return pick(self._signals, last, -1)

    def of_calls(self, process: npt.NDArray[Any], event: npt.NDArray[np.uint64], seq: Int64) -> Int64:
        """Return the operation that signals an event which a call waits for.

        Args:
            process: int32 [n], of the call.
            event: uint64 [n], handle of the event.
            seq: int64 [n], number of the record of the call.

        Returns:
            int64 [n], row of the operations, -1 where none is known.
        """
        return self._signaller(process, event, seq, seq, np.full(len(seq), _FIRST), np.full(len(seq), -1))

    def of_operations(self, waiting: Int64, event: npt.NDArray[np.uint64]) -> Int64:
        """Return the operation that signals an event which an operation waits for.

        Args:
            waiting: int64 [n], rows of the operations that wait.
            event: uint64 [n], handle of the event.

        Returns:
            int64 [n], row of the operations, -1 where none is known.
        """
        append = self._found.operations.append[waiting]
        seq = self._append_seq[append]
        listed = self._found.appends.listed[append]
        return self._signaller(self._process[append], event, seq, self.given[waiting], seq, listed)

    def _signaller(
        self,
        process: npt.NDArray[Any],
        event: npt.NDArray[np.uint64],
        seq: Int64,
        given: Int64,
        within: Int64,
        listed: Int64,
    ) -> Int64:
        """Return the operation last given with the event before (``given``, ``within``), unless in doubt."""
        append, rows = self._found.operations.append, self._candidates
        if not len(rows) or not len(seq):
            return np.full(len(seq), -1, np.int64)
        events = self._found.events["appends"].values("event")
        order = _ranks(
            np.concatenate([given, self.given[rows]]), np.concatenate([within, self._append_seq[append[rows]]])
        )
        mine = [self._process[append[rows]], events[append[rows]]]
        last = join([process, event], order[: len(seq)], mine, order[len(seq) :]).last_before()
        chosen = pick(rows, last, -1)
        known = np.flatnonzero(chosen >= 0)
        of = chosen[known]
        sure = ~self._appended_since(process[known], event[known], seq[known], of)
        sure &= ~self._executed_since(given[known], within[known], listed[known], of)
        sure &= self._same_life(process[known], event[known], seq[known], of)
        chosen[known[~sure]] = -1
        return chosen

    def _appended_since(
        self, process: npt.NDArray[Any], event: npt.NDArray[np.uint64], seq: Int64, of: Int64
    ) -> npt.NDArray[np.bool_]:
        """Return whether another Append was given the event after the operation was given to the device."""
        last = self.last_appended(process, event, seq)
        later: npt.NDArray[np.bool_] = pick(self._append_seq, last, _FIRST) > self.given[of]
        later &= last != self._found.operations.append[of]
        return later

    def _executed_since(self, given: Int64, within: Int64, listed: Int64, of: Int64) -> npt.NDArray[np.bool_]:
        """Return whether the list of the operation was executed again, by an execution whose result is lost."""
        operations, runs = self._found.operations, self._found.events["runs"]
        submit = operations.submit[of]
        since = np.zeros(len(of), np.bool_)
        rows = np.flatnonzero(submit >= 0)
        if not len(rows):
            return since
        keys: list[npt.NDArray[Any]] = [self._found.events.process("runs"), runs.values("list")]
        mine = submit[rows]
        # In its own list an operation that waits comes before or behind the other one of each execution.
        is_before = self._append_seq[operations.append[of[rows]]] < within[rows]
        own = listed[rows] == self._found.appends.listed[operations.append[of[rows]]]
        wanted = np.where(own & is_before, given[rows] + 1, given[rows])
        last = join([keys[0][mine], keys[1][mine]], wanted, keys, runs.values("seq")).last_before()
        since[rows] = last != mine
        return since

    def _same_life(
        self, process: npt.NDArray[Any], event: npt.NDArray[np.uint64], seq: Int64, of: Int64
    ) -> npt.NDArray[np.bool_]:
        """Return whether the event was not destroyed, and its handle given again, between the two."""
        ends = self._found.events["event_ends"]
        if not len(ends):
            return np.ones(len(of), np.bool_)
        keys: list[npt.NDArray[Any]] = [self._found.events.process("event_ends"), ends.values("event")]
        appended = self._append_seq[self._found.operations.append[of]]
        one, other = (join([process, event], when, keys, ends.values("seq")).last_before() for when in (seq, appended))
        same: npt.NDArray[np.bool_] = one == other
        return same


def _ranks(first: Int64, second: Int64) -> Int64:
    """Return the place of each pair in their order, int64 [n]; equal pairs have one place."""
    order = np.lexsort((second, first))
    changes = (np.diff(first[order]) != 0) | (np.diff(second[order]) != 0)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.concatenate([[0], np.cumsum(changes)]) if len(order) else 0
    return ranks
