"""What is known of each Append: its call, its list, its kernel, the memory that it touches."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.common.asof_join import Int64, Mask, group, join
from lanescope.declaration import frozen_class
from lanescope.devices.levelzero.formats.event_model import Events, is_text
from lanescope.devices.levelzero.interpret.allocations import kinds_of
from lanescope.devices.levelzero.interpret.call_matching import Calls
from lanescope.trace import Table


@frozen_class
class Appends:
    """Properties of each Append. All arrays are [appends].

    Attributes:
        call: int64, row of ``Calls`` of the Append call, -1 where it is not recorded.
        begin: int64, begin of the call, ns.
        listed: int64, row of ``lists`` that made its list, -1 when that was not seen.
        kernel: int64, row of ``KernelStates``, -1: nothing known.
        dst: uint8, place in ``layout.MEMORIES`` plus 1 of the memory written; 0: it writes none that is known.
        src: uint8, the same of the memory read.
        states: what is known of kernels, [kernels].
    """

    call: Int64
    begin: Int64
    listed: Int64
    kernel: Int64
    dst: npt.NDArray[np.uint8]
    src: npt.NDArray[np.uint8]
    states: KernelStates


def describe(events: Events, calls: Calls) -> Appends:
    """Find the call, the list, the kernel and the memory of each Append."""
    appends = events["appends"]
    process = events.process("appends")
    call = _enclosing(events, calls)
    begin = appends.values("ts").copy()
    known = call >= 0
    begin[known] = events["calls"].values("ts")[calls.entry[call[known]]]
    dst, src = kinds_of(events, process)
    states = kernel_states(events)
    listed, kernel = _lists_of(events, appends, process), _kernels_of(events, process, states)
    return Appends(call, begin, listed, kernel, dst, src, states)


def _enclosing(events: Events, calls: Calls) -> Int64:
    """Return the call in which each Append was recorded, int64 [appends], -1 for none.

    An Append is recorded at its entry, or by the recorder shortly before it returns.
    """
    appends, table = events["appends"], events["calls"]
    if not len(appends) or not len(calls.entry):
        return np.full(len(appends), -1, np.int64)
    names = {text: code for code, text in enumerate(table.column("function").dictionary.texts)}  # type: ignore[union-attr]
    texts = appends.column("function").dictionary.texts  # type: ignore[union-attr]
    function = np.array([names.get(text, -1) for text in texts], np.int64)[appends.codes("function")]
    found = join(
        [appends.values("thread_id"), function],
        appends.values("seq"),
        [table.values("thread_id")[calls.entry], table.codes("function")[calls.entry].astype(np.int64)],
        calls.seq,
        strict=False,
    ).last_before()
    closed = (found >= 0) & (calls.exit_seq[found] < appends.values("seq"))
    found[closed] = -1
    return found


def _lists_of(events: Events, appends: Table, process: npt.NDArray[np.int32]) -> Int64:
    """Return the row of ``lists`` that made the list of each Append, int64 [appends], -1 when it was not seen."""
    lists = events["lists"]
    numbered = appends.valid("op_id")
    found = join(
        [process, appends.values("list")],
        appends.values("seq"),
        [events.process("lists"), lists.values("list")],
        lists.values("seq"),
    )
    # Numbers of lists are never used again, so order does not matter; it may be off between threads.
    row = np.where(numbered, found.nearest(), found.last_before())
    return _made(events, row)


def _made(events: Events, row: Int64) -> Int64:
    """Return the creation that rows of ``lists`` lead back to, int64 [n]; -1 where the list is destroyed.

    A Reset empties a list and leaves it what it is.
    """
    lists = events["lists"]
    if not len(lists):
        return row
    by_list = group([events.process("lists"), lists.values("list")], lists.values("seq"))
    place = np.arange(len(lists))
    created = np.maximum.accumulate(np.where(is_text(lists, "action", "create")[by_list.order], place, -1))
    ended = np.maximum.accumulate(np.where(is_text(lists, "action", "destroy")[by_list.order], place, -1))
    alive = (created >= by_list.start) & (created > ended)
    creation = np.full(len(lists), -1, np.int64)
    creation[by_list.order[alive]] = by_list.order[created[alive]]
    return np.where(row >= 0, creation[row], -1)


@frozen_class
class KernelStates:
    """Properties of a kernel after each row of ``kernels``. All arrays are [kernels].

    Attributes:
        row_name: int64, row whose name holds, -1: unknown.
        row_simd: int64, row whose ``simd`` holds.
        row_group: int64, row whose group size holds.
        alive: bool, False after a destruction.
    """

    row_name: Int64
    row_simd: Int64
    row_group: Int64
    alive: Mask


def kernel_states(events: Events) -> KernelStates:
    """Carry what is known of each kernel forward until it is created anew or destroyed."""
    kernels = events["kernels"]
    count = len(kernels)
    if not count:
        none = np.empty(0, np.int64)
        return KernelStates(none, none, none, np.empty(0, np.bool_))
    by_kernel = group([events.process("kernels"), kernels.values("kernel")], kernels.values("seq"))
    order = by_kernel.order
    place = np.arange(count)
    begins = by_kernel.first | ~is_text(kernels, "action", "update")[order]
    life = np.maximum.accumulate(np.where(begins, place, 0))

    def latest(column: str) -> Int64:
        known = kernels.valid(column)[order]
        last = np.maximum.accumulate(np.where(known, place, -1))
        found = np.full(count, -1, np.int64)
        holds = last >= life
        found[order[holds]] = order[last[holds]]
        return found

    alive = np.empty(count, np.bool_)
    alive[order] = ~is_text(kernels, "action", "destroy")[order[life]]
    return KernelStates(latest("name"), latest("simd"), latest("group_x"), alive)


def _kernels_of(events: Events, process: npt.NDArray[np.int32], states: KernelStates) -> Int64:
    """Return the row of ``kernels`` that tells the most of the kernel of each Append, int64 [appends], -1 for none."""
    appends, kernels = events["appends"], events["kernels"]
    wanted = np.flatnonzero(appends.valid("kernel"))
    found = np.full(len(appends), -1, np.int64)
    if len(kernels) and len(wanted):
        by_kernel = join(
            [process[wanted], appends.values("kernel")[wanted]],
            appends.values("seq")[wanted],
            [events.process("kernels"), kernels.values("kernel")],
            kernels.values("seq"),
        )
        numbered = appends.valid("op_id")[wanted]
        found[wanted] = np.where(numbered, by_kernel.nearest(), by_kernel.last_before())
        found[(found >= 0) & ~states.alive[found]] = -1
    return found
