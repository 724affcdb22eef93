"""Device results -> the operations that they belong to.

Where operations have numbers, a result names its operation and run. Where they have not, a result names an event, and
events are shared by operations and used again; then the uses of an event form a ring that results walk through.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.asof_join import Int64, Mask, group, join, pick
from lanescope.common.stat_tally import StatTally
from lanescope.declaration import frozen_class
from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.event_model import Events, is_text
from lanescope.devices.levelzero.interpret.appends import Appends
from lanescope.devices.levelzero.interpret.call_matching import NEVER, Calls, is_error
from lanescope.devices.levelzero.schema import STATS

#: How an operation is timed that is not.
UNTIMED = "UNTIMED"


@frozen_class
class Operations:
    """Runs of operations that have a result, in the order of the results. All arrays are [n].

    Attributes:
        append: int64, row of ``appends``.
        result: int64, row of ``results``.
        run: int64, which run of the appended operation, 1 the first.
        submit: int64, row of ``runs`` that gave it to the device, -1: its Append did.
        inferred: bool, whether another operation may own the result.
        notes: what was noticed, with the time of the first (ns).
    """

    append: Int64
    result: Int64
    run: Int64
    submit: Int64
    inferred: Mask
    notes: StatTally


def attribute(events: Events, calls: Calls, appends: Appends) -> Operations:
    """Assign every result to the execution of the operation that it belongs to.

    Args:
        events: the event model.
        calls: its calls.
        appends: what is known of its Appends.

    Returns:
        One row for each result that belongs to an operation of the device, in the order of the stream.

    Complexity:
        A fixed number of sorts of the records; no record is looked at on its own.
    """
    notes = StatTally(STATS)
    results = events["results"]
    ts = results.values("ts")
    not_ready = is_text(results, "status", layout.NOT_READY)
    notes.add_times("levelzero_result_not_ready", ts[not_ready])
    numbered = results.valid("op_id") & ~not_ready
    by_number = _by_number(events, appends, np.flatnonzero(numbered), notes)
    by_event = _by_ring(events, calls, appends, np.flatnonzero(~results.valid("op_id") & ~not_ready), notes)
    parts = [part for part in (by_number, by_event) if len(part.append)]
    found = parts[0] if len(parts) == 1 else _together(by_number, by_event)
    return Operations(found.append, found.result, found.run, found.submit, found.inferred, notes)


def _together(one: Operations, other: Operations) -> Operations:
    order = np.argsort(np.concatenate([one.result, other.result]), kind="stable")

    def both(name: str) -> npt.NDArray[Any]:
        joined: npt.NDArray[Any] = np.concatenate([getattr(one, name), getattr(other, name)])[order]
        return joined

    return Operations(both("append"), both("result"), both("run"), both("submit"), both("inferred"), one.notes)


def _by_number(events: Events, appends: Appends, rows: Int64, notes: StatTally) -> Operations:
    """Attribute the results at ``rows`` by the numbers of their operations."""
    results, table = events["results"], events["appends"]
    process = events.process("results")[rows]
    run = np.where(results.valid("run")[rows], results.values("run")[rows], 1)
    numbered = np.flatnonzero(table.valid("op_id"))
    append_process = events.process("appends")[numbered]
    op = table.values("op_id")[numbered]
    twice = _repeats([append_process, op])
    notes.add_times("levelzero_append_duplicate", table.values("ts")[numbered[twice]])
    numbered, append_process, op = numbered[~twice], append_process[~twice], op[~twice]
    # Records of several threads may be out of order, so the join is by number alone.
    joined = join([process, results.values("op_id")[rows]], rows, [append_process, op], np.full(len(op), -1))
    place = joined.last_before()
    known = place >= 0
    notes.add_times("levelzero_result_unmatched", results.values("ts")[rows[~known]])
    append, rows, run = numbered[place[known]], rows[known], run[known]
    again = _repeats([append, run])
    notes.add_times("levelzero_result_duplicate", results.values("ts")[rows[again]])
    append, rows, run = append[~again], rows[~again], run[~again]
    submit = _submissions(events, append, run, results.values("seq")[rows])
    _note_missing(events, appends, numbered, append, notes)
    is_work = ~is_text(table, "kind", layout.SIGNAL)[append]
    append, rows, run, submit = append[is_work], rows[is_work], run[is_work], submit[is_work]
    return Operations(append, rows, run, submit, np.zeros(len(rows), np.bool_), notes)


def _repeats(keys: list[npt.NDArray[Any]]) -> Mask:
    """Return which rows have the keys of an earlier row, bool [n]."""
    count = len(keys[0])
    groups = group(keys, np.arange(count))
    found = np.zeros(count, np.bool_)
    found[groups.order[~groups.first]] = True
    return found


def _submissions(events: Events, append: Int64, run: Int64, before: Int64) -> Int64:
    """Return the row of ``runs`` that gave numbered runs to the device, int64 [n], -1: their Append did."""
    runs, table = events["runs"], events["appends"]
    if not len(runs) or not len(append):
        return np.full(len(append), -1, np.int64)
    process = events.process("appends")[append]
    joined = join(
        [process, table.values("list")[append], run],
        np.full(len(append), NEVER),
        [events.process("runs"), runs.values("list"), np.where(runs.valid("run"), runs.values("run"), 0)],
        runs.values("seq"),
    )
    return joined.last_before()


def _note_missing(events: Events, appends: Appends, numbered: Int64, append: Int64, notes: StatTally) -> None:
    """Note runs that were given to the device, were neither reported nor given up, and so are missing."""
    table, runs, losses = events["appends"], events["runs"], events["losses"]
    timed = numbered[~is_text(table, "how", UNTIMED)[numbered]]
    process = events.process("appends")
    loud = ~runs.values("quiet")
    of_list = join(
        [process[timed], table.values("list")[timed]],
        table.values("seq")[timed],
        [events.process("runs")[loud], runs.values("list")[loud]],
        runs.values("seq")[loud],
    )
    expected = _expected(events, appends.listed[timed], of_list.high - of_list.low)
    notes.add_times("levelzero_never_executed", table.values("ts")[timed[expected == 0]])
    seen = np.bincount(append, minlength=len(table))[timed]
    lost = join(
        [process[timed], table.values("op_id")[timed]],
        table.values("seq")[timed],
        [events.process("losses"), losses.values("op_id")],
        losses.values("seq"),
    )
    missing = np.maximum(expected - seen - (lost.high - lost.low), 0)
    notes.add_times("levelzero_operation_unmatched", np.repeat(table.values("ts")[timed], missing))


def _expected(events: Events, listed: Int64, executed: Int64) -> Int64:
    """Return how often operations were given to the device, int64 [n].

    Args:
        events: the event model.
        listed: int64 [n], row of ``lists`` that made their list, -1 when it was not seen.
        executed: int64 [n], how often that list was executed.
    """
    lists = events["lists"]
    known = pick(lists.valid("immediate"), listed)
    immediate = np.where(known, pick(lists.values("immediate"), listed), executed == 0)
    return np.where(immediate, 1, executed)


# --- the ring -----------------------------------------------------------------------------------------------------

_PUSH, _RESULT, _END = 0, 1, 2


def _by_ring(events: Events, calls: Calls, appends: Appends, rows: Int64, notes: StatTally) -> Operations:
    """Attribute the results at ``rows`` by the rings of their events.

    The uses of an event since the last time that one followed a result are its ring; results walk round it. A use after
    a result begins a new ring; a destroyed event has none.
    """
    table, pushes, results, ends = events["appends"], events["pushes"], events["results"], events["event_ends"]
    owner = _owners(events, calls, appends)
    _note_untimed(events, calls, appends, owner, notes)
    ignored = owner < 0
    notes.add_times("levelzero_push_ignored", pushes.values("ts")[ignored])
    push = np.flatnonzero(~ignored)
    push_process, result_process = events.process("pushes"), events.process("results")
    keys = [
        np.concatenate([push_process[push], result_process[rows], events.process("event_ends")]),
        np.concatenate([pushes.values("event")[push], results.values("event")[rows], ends.values("event")]),
    ]
    uses = group(keys, np.concatenate([pushes.values("seq")[push], results.values("seq")[rows], ends.values("seq")]))
    count = len(uses.order)
    if not count:
        none = np.empty(0, np.int64)
        return Operations(none, none, none, none, np.empty(0, np.bool_), notes)
    kind = np.repeat(np.array([_PUSH, _RESULT, _END], np.int8), [len(push), len(rows), len(ends)])[uses.order]
    is_push, is_result = kind == _PUSH, kind == _RESULT
    begins_life = uses.first.copy()
    begins_life[1:] |= kind[:-1] == _END
    begins = begins_life.copy()
    begins[1:] |= is_push[1:] & is_result[:-1]
    ring = np.cumsum(begins) - 1
    start = np.flatnonzero(begins)
    pushed = np.bincount(ring[is_push], minlength=len(start))
    walked = np.bincount(ring[is_result], minlength=len(start))
    doubtful = _interleaved(begins_life[start], pushed, walked)
    # Within a ring all uses come before all results, so a result's turn is its distance from the first one.
    of_ring = ring[is_result]
    size = pushed[of_ring]
    stray = rows[uses.order[is_result][size == 0] - len(push)]
    _note_strays(events, stray, np.flatnonzero(ignored), notes)
    at = np.flatnonzero(is_result)[size > 0]
    of_ring, size = of_ring[size > 0], size[size > 0]
    turn = at - (start + pushed)[of_ring]
    use = push[uses.order[start[of_ring] + turn % size]]
    found = rows[uses.order[at] - len(push)]
    executions = _Executions(events, push_process, pushes.values("seq"), pick(table.values("list"), owner))
    run = turn // size + 1
    submit = executions.of(use, run, results.values("seq")[found])
    # The ring goes by the order of the Appends. Where lists were given to the device in another one, who knows.
    given = np.where(submit >= 0, pick(events["runs"].values("seq"), submit), pushes.values("seq")[use])
    is_known = (submit >= 0) | (run == 1)
    turned = (given[1:] < given[:-1]) | ((given[1:] == given[:-1]) & (submit[1:] < submit[:-1]))
    turned &= (of_ring[1:] == of_ring[:-1]) & is_known[1:] & is_known[:-1]
    doubtful[of_ring[1:][turned]] = True
    order = np.argsort(found)
    use, found, run, submit = use[order], found[order], run[order], submit[order]
    inferred = doubtful[of_ring][order]
    notes.add_times("levelzero_interleaved_duplicate", results.values("ts")[found[inferred]])

    of_push = np.empty(len(pushes), np.int64)
    of_push[push[uses.order[is_push]]] = ring[is_push]
    last_of_life = np.append(begins_life[start][1:], True)
    sure = (~doubtful | last_of_life)[of_push[push]]
    _note_unwalked(events, appends, push[sure], owner, executions, np.bincount(use, minlength=len(pushes)), notes)

    append = owner[use]
    is_work = ~is_text(table, "kind", layout.SIGNAL)[append]
    return Operations(append[is_work], found[is_work], run[is_work], submit[is_work], inferred[is_work], notes)


def _owners(events: Events, calls: Calls, appends: Appends) -> Int64:
    """Return the Append inside which each push was recorded, int64 [pushes], -1 for none.

    An Append has one push at most: a second one inside it belongs to nothing.
    """
    table, pushes = events["appends"], events["pushes"]
    joined = join([pushes.values("thread_id")], pushes.values("seq"), [table.values("thread_id")], table.values("seq"))
    owner = joined.last_before()
    known = owner >= 0
    call = pick(appends.call, owner, -1)
    owner[pick(calls.exit_seq, call, NEVER) < pushes.values("seq")] = -1
    again = known & _repeats([np.where(owner >= 0, owner, -1 - np.arange(len(owner)))])
    owner[again] = -1
    return owner


def _interleaved(first_of_life: Mask, pushed: Int64, walked: Int64) -> Mask:
    """Return the rings in which a result may belong to another use than the one it is given to, bool [rings].

    A ring leaves uses behind when fewer results than uses came before the next one. Their results may come among those
    of later rings, until as many results came as there were uses in all. Inside one ring, results that end in the
    middle of a round leave open which uses they skipped.

    Args:
        first_of_life: bool [rings], in the order of event and time: whether the ring is the first of an event's life.
        pushed: int64 [rings], uses.
        walked: int64 [rings], results.
    """
    count = len(pushed)
    if not count:
        return np.empty(0, np.bool_)
    balance = np.cumsum(pushed - walked)
    life = np.cumsum(first_of_life) - 1
    before = (balance - (pushed - walked))[first_of_life][life]
    balance -= before
    # What is left over never falls below nothing: subtract the lowest balance so far, each life lifted off the others.
    step = int(np.abs(balance).max()) + 1
    lifted = np.minimum(balance, 0) - life * 2 * step
    left_over = balance - (np.minimum.accumulate(lifted) + life * 2 * step)
    inherits = np.zeros(count, np.bool_)
    inherits[1:] = (left_over[:-1] > 0) & ~first_of_life[1:]
    cut_short = (pushed > 1) & (walked > 0) & (walked % np.maximum(pushed, 1) > 0)
    return (inherits & (walked > 0)) | cut_short


def _note_strays(events: Events, stray: Int64, ignored: Int64, notes: StatTally) -> None:
    """Note results that belong to no use, unless timing was announced for them outside any Append."""
    results, pushes = events["results"], events["pushes"]
    announced = join(
        [events.process("results")[stray], results.values("event")[stray]],
        results.values("seq")[stray],
        [events.process("pushes")[ignored], pushes.values("event")[ignored]],
        pushes.values("seq")[ignored],
    ).last_before()
    notes.add_times("levelzero_result_unmatched", results.values("ts")[stray[announced < 0]])


class _Executions:
    """Executions of the lists that uses of events stand in.

    Args:
        events: the event model.
        process: int32 [uses].
        seq: int64 [uses], when each use was recorded.
        listed: uint64 [uses], handle of its list.
    """

    def __init__(
        self, events: Events, process: npt.NDArray[np.int32], seq: Int64, listed: npt.NDArray[np.uint64]
    ) -> None:
        runs, lists = events["runs"], events["lists"]
        self._seq = runs.values("seq")
        # A handle names another list, or the same one with other contents, after a creation, Reset or destruction.
        run_process, of = events.process("runs"), (events.process("lists"), lists.values("list"))
        life = join([process, listed], seq, of, lists.values("seq")).at
        run_life = join([run_process, runs.values("list")], runs.values("seq"), of, lists.values("seq")).at
        self._uses: tuple[npt.NDArray[Any], ...] = (process, listed, life)
        self._runs: tuple[npt.NDArray[Any], ...] = (run_process, runs.values("list"), run_life)
        self._join = join(self._uses, seq, self._runs, runs.values("seq"))

    def count(self) -> Int64:
        """Return how often the list was executed with each use in it, int64 [uses]."""
        return self._join.high - self._join.at

    def of(self, use: Int64, run: Int64, before: Int64) -> Int64:
        """Return the execution that made each result, int64 [n], a row of ``runs`` or -1.

        The first run of an operation is the first execution of its list after it was appended, and so on. Where there
        was none yet, it is the latest one before the result.

        Args:
            use: int64 [n].
            run: int64 [n], 1 the first.
            before: int64 [n], when the result was recorded.
        """
        joined = self._join
        in_list = joined.high[use] > joined.at[use]
        place = np.minimum(joined.at[use] + run - 1, joined.high[use] - 1)
        found = np.full(len(use), -1, np.int64)
        found[in_list] = joined.rows[place[in_list]]
        late = np.flatnonzero(in_list)
        late = late[self._seq[found[late]] > before[late]]
        if len(late):
            keys = [column[use[late]] for column in self._uses]
            latest = join(keys, before[late], self._runs, self._seq)
            found[late] = np.where(latest.at > joined.at[use[late]], latest.last_before(), -1)
        return found


def _note_unwalked(
    events: Events,
    appends: Appends,
    push: Int64,
    owner: Int64,
    executions: _Executions,
    seen: Int64,
    notes: StatTally,
) -> None:
    """Note uses that got fewer results than their lists were executed."""
    pushes = events["pushes"]
    expected = _expected(events, appends.listed[owner[push]], executions.count()[push])
    notes.add_times("levelzero_never_executed", pushes.values("ts")[push[expected == 0]])
    missing = np.maximum(expected - seen[push], 0)
    notes.add_times("levelzero_operation_unmatched", np.repeat(pushes.values("ts")[push], missing))


def _note_untimed(events: Events, calls: Calls, appends: Appends, owner: Int64, notes: StatTally) -> None:
    """Note Appends that succeeded and for which no timing was announced."""
    table = events["appends"]
    timed = table.valid("op_id") & ~is_text(table, "how", UNTIMED)
    timed[owner[owner >= 0]] = True
    exits = pick(calls.exit, appends.call, -1)
    results = events["calls"].column("result")
    ended = np.flatnonzero(exits >= 0)
    ended = ended[events["calls"].valid("result")[exits[ended]]]
    failed = is_error(results.dictionary.texts if results.dictionary else [])
    timed[ended] |= failed[results.values[exits[ended]]]
    timed |= is_text(table, "kind", layout.SIGNAL)
    by_resets = is_text(table, "reason", layout.NO_RESET)
    notes.add_times("levelzero_untimed", table.values("ts")[~timed & ~by_resets])
    notes.add_times("levelzero_untimed_resets", table.values("ts")[~timed & by_resets])
