"""Launches of CUDA and OpenCL -> the operations that were measured: whose a result is, on which device, when.

A launch is announced in its thread with events; a result names these. Neither API's records relate the clock of a
device to that of the host: an operation of CUDA is drawn at its launch, one of OpenCL later by its time in the queue.
Source: THAPI backends/cuda/btx_cudainterval_callbacks.cpp, context_manager.cpp, backends/opencl/
btx_clinterval_callbacks.cpp.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.asof_join import Int64, Mask, group, join, pick
from lanescope.common.stat_tally import StatTally
from lanescope.declaration import frozen_class
from lanescope.devices.levelzero.formats.event_model import Events
from lanescope.devices.levelzero.formats.text_launches import CUDA_API, OPENCL_API
from lanescope.devices.levelzero.interpret.call_matching import Calls, is_error
from lanescope.devices.levelzero.schema import STATS
from lanescope.trace import Table

#: The APIs, by their numbers here.
APIS = (CUDA_API.title, OPENCL_API.title)
_CUDA, _OPENCL = range(2)
#: Streams of CUDA that every context has: the default one, and those that stand for it. Source: cuda.h.
_DEFAULT_STREAMS = (0, 1, 2)


@frozen_class
class Device:
    """A device of CUDA or OpenCL in a process.

    Attributes:
        process: row of ``processes``.
        api: which of ``APIS``.
        number: number or handle, None: unknown.
        parent: handle of the root device of OpenCL, None where it was not seen.
        name: model name, empty if unknown.
        uuid: UUID, hexadecimal; empty if unknown.
    """

    process: int
    api: int
    number: int | None
    parent: int | None
    name: str = ""
    uuid: str = ""


@frozen_class
class Launched:
    """Operations that have a result, in the order in which they became known. All arrays are [n].

    Attributes:
        launch: int64, row of ``launches``.
        result: int64, row of ``launch_results``.
        call: int64, row of ``Calls`` of the launch, -1 where it is not recorded.
        seq: int64, position of the record by which the operation was known.
        begin: int64, host time, ns.
        length: int64, ns; 0 where it is unknown.
        has_length: bool, whether it is known.
        error: bool, whether the operation or a query failed.
        late: bool, whether it would end after its result was read.
        kernel: int64, row of ``launch_objects`` with its name, -1: unknown.
        device: int64, which of ``devices``.
        devices: the devices.
        notes: what was noticed, with the time of the first (ns).
    """

    launch: Int64
    result: Int64
    call: Int64
    seq: Int64
    begin: Int64
    length: Int64
    has_length: Mask
    error: Mask
    late: Mask
    kernel: Int64
    device: Int64
    devices: list[Device]
    notes: StatTally


def launched(events: Events, calls: Calls, *, tolerance: int) -> Launched:
    """Find the launch, the device and the time of each result.

    Args:
        events: the event model.
        calls: its calls.
        tolerance: how far host and device clocks may be off, ns.
    """
    notes = StatTally(STATS)
    launches, pushes, results = events["launches"], events["launch_events"], events["launch_results"]
    owner = _owners(launches, pushes)
    call = _calls_of(calls, launches)
    notes.add_times("levelzero_push_ignored", pushes.values("ts")[owner < 0])
    push, result, seq = _pairs(events, owner)
    _note_unpaired(events, calls, owner, call, push, result, notes)
    order = np.argsort(seq, kind="stable")
    launch, result, seq = owner[push[order]], result[order], seq[order]
    status = results.column("status")
    error = is_error(status.dictionary.texts if status.dictionary else [])[status.values[result]]
    if not len(result):
        error = np.zeros(0, np.bool_)
    begin, length, known = _times(launches, results, launch, result, error, notes)
    late = known & (begin + length > results.values("ts")[result] + tolerance)
    notes.add_times("levelzero_launch_time", begin[late])
    notes.add_times("levelzero_result_error", launches.values("ts")[launch[error]])
    notes.add_times("levelzero_launch_estimated", begin)
    device, devices = _devices(events, launch)
    unknown = np.array([one.number is None for one in devices] or [False], np.bool_)[device]
    notes.add_times("levelzero_launch_device", launches.values("ts")[launch[unknown]])
    kernel = _kernels(events, launch)
    unnamed = (kernel < 0) & launches.valid("kernel")[launch]
    notes.add_times("levelzero_unnamed_kernel", launches.values("ts")[launch[unnamed]])
    return Launched(
        launch, result, call[launch], seq, begin, length, known, error, late, kernel, device, devices, notes
    )


def apis_of(table: Table) -> Int64:
    """Return which of ``APIS`` each row of a table is of, int64 [n]."""
    column = table.column("api")
    numbers = [APIS.index(text) for text in (column.dictionary.texts if column.dictionary else [])]
    return np.array(numbers or [0], np.int64)[column.values]


def _calls_of(calls: Calls, launches: Table) -> Int64:
    """Return the call of each launch, int64 [launches], a row of ``Calls`` or -1: their records are its entries."""
    seq = launches.values("seq")
    if not len(calls.seq):
        return np.full(len(seq), -1, np.int64)
    place = np.minimum(np.searchsorted(calls.seq, seq), len(calls.seq) - 1)
    return np.where(calls.seq[place] == seq, place, -1)


def _owners(launches: Table, pushes: Table) -> Int64:
    """Return the launch that each announcement is of, int64 [launch_events], -1 for none.

    It is the last one of the thread; a launch is announced once.
    """
    owner = join(
        [pushes.values("thread_id"), apis_of(pushes)],
        pushes.values("seq"),
        [launches.values("thread_id"), apis_of(launches)],
        launches.values("seq"),
    ).last_before()
    if len(owner):
        again = group([np.where(owner >= 0, owner, -1 - np.arange(len(owner)))], np.arange(len(owner)))
        owner[again.order[~again.first]] = -1
    return owner


def _pairs(events: Events, owner: Int64) -> tuple[Int64, Int64, Int64]:
    """Return announcements and their results, int64 [n] rows of each, and the position of the later one.

    A result belongs to the announcement of its events before it. OpenCL's may come first, but not before the launch.
    """
    launches, pushes, results = events["launches"], events["launch_events"], events["launch_results"]
    push = np.flatnonzero(owner >= 0)
    keys: list[npt.NDArray[Any]] = [
        np.concatenate([events.process("launch_events")[push], events.process("launch_results")]),
        np.concatenate([apis_of(pushes)[push], apis_of(results)]),
        np.concatenate([pushes.values("event")[push], results.values("event")]),
        np.concatenate([pushes.values("stop")[push], results.values("stop")]),
    ]
    seq = np.concatenate([pushes.values("seq")[push], results.values("seq")])
    uses = group(keys, seq)
    order = uses.order
    if not len(order):
        none = np.empty(0, np.int64)
        return none, none, none
    is_push = order < len(push)
    behind = ~uses.first
    behind[1:] &= is_push[1:] != is_push[:-1]
    behind[0] = False
    at = np.flatnonzero(behind & ~is_push)
    first, second = at - 1, at
    early = np.flatnonzero(behind & is_push & (keys[1][order] == _OPENCL))
    if len(early):
        begun = launches.values("seq")[owner[push[order[early]]]]
        early = early[begun < seq[order[early - 1]]]
    if len(early):
        first, second = _walked(uses.start, is_push, at, early, seq[order], launches.values("seq")[owner[push]], order)
    one, other = order[first], order[second]
    pushed = np.where(one < len(push), one, other)
    return push[pushed], np.where(one < len(push), other, one) - len(push), seq[other]


def _walked(
    start: Int64, is_push: Mask, at: Int64, early: Int64, seq: Int64, begun: Int64, order: Int64
) -> tuple[Int64, Int64]:
    """Return the places of pairs where results may come first: the groups with such are walked one by one."""
    groups = dict.fromkeys(start[early].tolist())
    ordinary = ~np.isin(start[at], np.array(list(groups), np.int64))
    first, second = (at[ordinary] - 1).tolist(), at[ordinary].tolist()
    for begin in groups:
        push, result = -1, -1
        for place in range(begin, len(start)):
            if start[place] != begin:
                break
            if not is_push[place]:
                if push >= 0:
                    first.append(push)
                    second.append(place)
                    push = -1
                else:
                    result = place
            elif result >= 0 and begun[order[place]] < seq[result]:
                first.append(result)
                second.append(place)
                result = -1
            else:
                push, result = place, -1
    return np.array(first, np.int64), np.array(second, np.int64)


def _note_unpaired(
    events: Events, calls: Calls, owner: Int64, call: Int64, push: Int64, result: Int64, notes: StatTally
) -> None:
    """Note results of no launch, announcements without a result, launches that succeeded without either."""
    launches, pushes, results = events["launches"], events["launch_events"], events["launch_results"]
    stray = np.ones(len(results), np.bool_)
    stray[result] = False
    notes.add_times("levelzero_result_unmatched", results.values("ts")[stray])
    waiting = owner >= 0
    waiting[push] = False
    notes.add_times("levelzero_operation_unmatched", pushes.values("ts")[waiting])
    table = events["calls"]
    exits = pick(calls.exit, call, -1)
    column = table.column("result")
    failed = np.append(is_error(column.dictionary.texts if column.dictionary else []), False)
    ended = np.flatnonzero(exits >= 0)
    ended = ended[table.valid("result")[exits[ended]]]
    timed = np.zeros(len(launches), np.bool_)
    timed[owner[owner >= 0]] = True
    timed[ended] |= failed[column.values[exits[ended]]]
    notes.add_times("levelzero_untimed", launches.values("ts")[~timed])


def _times(
    launches: Table, results: Table, launch: Int64, result: Int64, error: Mask, notes: StatTally
) -> tuple[Int64, Int64, Mask]:
    """Return begin and length of operations, and whether the length is known, [n] each."""
    begin = launches.values("ts")[launch].copy()
    length = results.values("dur")[result].copy()
    known = ~error
    clocked = np.flatnonzero(known & results.valid("start")[result])
    queued, start, end = (results.values(name)[result[clocked]] for name in ("queued", "start", "end"))
    length[clocked] = (end - start).view(np.int64)
    delay = (start - queued).view(np.int64)
    # Times of 30 years are none.
    wrong = (delay < 0) | (length[clocked] < 0) | (np.maximum(delay, length[clocked]) >= 1 << 60)
    notes.add_times("levelzero_launch_time", begin[clocked[wrong]])
    known[clocked[wrong]] = False
    begin[clocked] += np.where(wrong, 0, delay)
    return begin, np.where(known, length, 0), known


def _kernels(events: Events, launch: Int64) -> Int64:
    """Return the row of ``launch_objects`` with the name of the kernel of each launch, int64 [n], -1: unknown."""
    launches, objects = events["launches"], events["launch_objects"]
    wanted = np.flatnonzero(launches.valid("kernel")[launch])
    found = np.full(len(launch), -1, np.int64)
    named = _rows(objects, "kernel")
    if len(wanted) and len(named):
        rows = launch[wanted]
        place = join(
            [events.process("launches")[rows], apis_of(launches)[rows], launches.values("kernel")[rows]],
            launches.values("seq")[rows],
            [
                events.process("launch_objects")[named],
                apis_of(objects)[named],
                objects.values("object")[named],
            ],
            objects.values("seq")[named],
        ).last_before()
        found[wanted] = np.append(named, -1)[place]
    return found


def _rows(objects: Table, *actions: str) -> Int64:
    column = objects.column("action")
    texts = column.dictionary.texts if column.dictionary else []
    return np.flatnonzero(np.array([text in actions for text in texts] or [False], np.bool_)[column.values])


# --- devices ------------------------------------------------------------------------------------------------------


def _devices(events: Events, launch: Int64) -> tuple[Int64, list[Device]]:
    """Return the device of each launch, int64 [n], and the devices."""
    launches = events["launches"]
    api, process = apis_of(launches)[launch], events.process("launches")[launch]
    number = np.full(len(launch), -1, np.int64)
    # Handles are 64 bits wide: they are numbered.
    known: list[int] = []
    for kind, states in ((_CUDA, _Contexts(events)), (_OPENCL, _CommandQueues(events))):
        mine = np.flatnonzero(api == kind)
        if len(mine):
            number[mine] = states.of(launch[mine], known)
    roots, about = _described(events)
    lanes = group([process, api, number], np.arange(len(launch)))
    device = np.empty(len(launch), np.int64)
    device[lanes.order] = np.cumsum(lanes.first) - 1
    made = []
    for row in lanes.order[lanes.first].tolist():
        where, of, place = int(process[row]), int(api[row]), int(number[row])
        handle = known[place] if place >= 0 else None
        name, uuid = about.get((where, of, handle), ("", ""))
        made.append(Device(where, of, handle, roots.get((where, handle)), name, uuid))
    return device, made


def _described(events: Events) -> tuple[dict[tuple[int, Any], int], dict[tuple[int, int, Any], tuple[str, str]]]:
    """Return the root devices of OpenCL by process and handle; names and UUIDs by process, API and number."""
    objects = events["launch_objects"]
    chosen = _rows(objects, "device", "about")
    roots, about = dict[tuple[int, Any], int](), dict[tuple[int, int, Any], tuple[str, str]]()
    columns = (
        events.process("launch_objects")[chosen],
        apis_of(objects)[chosen],
        objects.values("object")[chosen],
        objects.values("parent")[chosen],
        objects.valid("parent")[chosen],
        objects.values("name")[chosen],
        objects.values("uuid")[chosen],
    )
    describes = np.isin(chosen, _rows(objects, "about")).tolist()
    for process, api, number, parent, has_parent, name, uuid, is_about in zip(
        *(column.tolist() for column in columns), describes, strict=True
    ):
        if is_about:
            about[process, api, number] = name, uuid
        elif not has_parent:
            roots[process, number] = number
        elif (process, parent) in roots:
            roots[process, number] = roots[process, parent]
    return roots, about


class _Contexts:
    """Devices of CUDA's streams and of the contexts that are current: a stack for each thread.

    Args:
        events: the event model.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        objects = events["launch_objects"]
        chosen = _rows(objects, "context", "current", "push", "pop", "destroy", "stream")
        columns = (
            objects.values("seq")[chosen],
            objects.values("thread_id")[chosen],
            events.process("launch_objects")[chosen],
            objects.codes("action")[chosen],
            objects.values("object")[chosen],
            objects.values("parent")[chosen],
            objects.valid("parent")[chosen],
        )
        actions = objects.column("action").dictionary
        texts = actions.texts if actions else []
        stacks: dict[int, list[int]] = {}
        devices: dict[tuple[int, int], int] = {}
        #: Position, thread, device or -1 of the current context; the same of streams with process and handle.
        self._current: list[tuple[int, int, int]] = []
        self._streams: list[tuple[int, int, int, int]] = []
        for seq, thread, process, action, number, parent, has_parent in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            stack = stacks.setdefault(thread, [])
            what = texts[action]
            if what == "context":
                devices[process, number] = parent if has_parent else -1
            elif what == "stream":
                self._streams.append((seq, process, number, devices.get((process, stack[-1]), -1) if stack else -1))
                continue
            elif what == "push":
                stack.append(number)
            elif what == "destroy":
                devices.pop((process, number), None)
                if stack and stack[-1] == number:
                    stack.pop()
            else:
                if stack:
                    stack.pop()
                if what == "current" and number:
                    stack.append(number)
            self._current.append((seq, thread, devices.get((process, stack[-1]), -1) if stack else -1))

    def of(self, launch: Int64, known: list[int]) -> Int64:
        """Return the device of each launch as an index into ``known``, which grows, int64 [n], -1: unknown."""
        launches = self._events["launches"]
        seq = launches.values("seq")[launch]
        stream = launches.values("queue")[launch]
        device = np.full(len(launch), -1, np.int64)
        current = np.array(self._current, np.int64).reshape(-1, 3)
        is_default = ~launches.valid("queue")[launch] | np.isin(stream, np.array(_DEFAULT_STREAMS, np.uint64))
        thread = launches.values("thread_id")[launch]
        place = join([thread[is_default]], seq[is_default], [current[:, 1]], current[:, 0]).last_before()
        device[is_default] = np.append(current[:, 2], -1)[place]
        others = ~is_default
        streams = np.array([(a, b, d) for a, b, _, d in self._streams], np.int64).reshape(-1, 3)
        handles = np.array([handle for _, _, handle, _ in self._streams], np.uint64)
        place = join(
            [self._events.process("launches")[launch[others]], stream[others]],
            seq[others],
            [streams[:, 1], handles],
            streams[:, 0],
        ).last_before()
        device[others] = np.append(streams[:, 2], -1)[place]
        return _numbered(device, known)


class _CommandQueues:
    """Devices of OpenCL's queues.

    Args:
        events: the event model.
    """

    def __init__(self, events: Events) -> None:
        self._events = events

    def of(self, launch: Int64, known: list[int]) -> Int64:
        """Return the device of each launch as an index into ``known``, which grows, int64 [n], -1: unknown."""
        events = self._events
        launches, objects = events["launches"], events["launch_objects"]
        queues = _rows(objects, "queue")
        place = join(
            [events.process("launches")[launch], launches.values("queue")[launch]],
            launches.values("seq")[launch],
            [events.process("launch_objects")[queues], objects.values("object")[queues]],
            objects.values("seq")[queues],
        ).last_before()
        row = np.append(queues, -1)[place]
        row[(row >= 0) & ~pick(objects.valid("parent"), row)] = -1
        found = np.full(len(launch), -1, np.int64)
        has = row >= 0
        handles, which = np.unique(objects.values("parent")[row[has]], return_inverse=True)
        places = np.array([_place(handle, known) for handle in handles.tolist()], np.int64)
        if len(places):
            found[has] = places[which]
        return found


def _numbered(device: Int64, known: list[int]) -> Int64:
    found = np.full(len(device), -1, np.int64)
    for number in dict.fromkeys(device[device >= 0].tolist()):
        found[device == number] = _place(number, known)
    return found


def _place(number: int, known: list[int]) -> int:
    if number not in known:
        known.append(number)
    return known.index(number)
