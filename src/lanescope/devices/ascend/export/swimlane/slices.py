"""Bars, counters and the names of lanes, as the peer's converter writes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from lanescope._native import core
from lanescope.common.distinct import distinct
from lanescope.devices.ascend.export.swimlane.event_rows import SEPARATOR, Numbers, Words, meta, write
from lanescope.devices.ascend.export.swimlane.graphs import graph_bars
from lanescope.devices.ascend.export.swimlane.trace_view import (
    ORCHESTRATOR,
    SCHEDULER,
    SCHEDULER_VIEW,
    WORKER_VIEW,
    Content,
    Int64,
    bare_lanes,
    bare_tids,
    passes,
    scheduler_tid,
    worker_tid,
)
from lanescope.devices.ascend.formats.layout import QUEUES
from lanescope.devices.ascend.formats.records import UInt64

#: Setups below one step of the slow chip's counter have no bar.
_LEAST_SETUP_US = 0.02
#: Length of the bars of tasks that take no time.
_LEAST_BAR_US = 0.02
#: Lane of the copies from the host.
_UPLOAD_TID = 4100
_COLORS = {
    "complete": "good",
    "dispatch": "terrible",
    "release": "olive",
    "resolve": "vsync_highlight_color",
    "early_dispatch": "rail_animation",
    "dummy_task": "grey",
    "dummy": "grey",
    "async_poll": "yellow",
    "drain": "cq_build_running",
    "drain_prepare": "cq_build_attempt_runnable",
    "drain_publish": "cq_build_attempt_passed",
    "graph_prepare": "rail_animation",
}
#: The peer's words for tasks that run on no core.
_BARE = {"dummy task": "dummy", "skipped task": "predicated_skip"}
#: Phases of no length that stand for a task.
_MARKERS = ("dummy_task", "predicated_skip")


def bars(content: Content, numbers: Numbers) -> Iterator[bytes]:
    """Yield everything but the arrows, as parts of the list of events; ``numbers`` gives events their ids."""
    yield SEPARATOR.join(_processes(content)).encode()
    yield from _kernels(content, numbers)
    yield from _flights(content, numbers)
    yield from _phases(content)
    yield from _submits(content)
    yield from _uploads(content)
    yield from _headerless(content)
    if content.is_chip:
        yield from graph_bars(content)
    yield from _counters(content)


def _processes(content: Content) -> Iterator[str]:
    run, details, names = content.run, content.trace.details, content.trace.tracks.values("name")
    joined = np.flatnonzero(content.is_joined)
    title = "Host Orchestrator" if content.on_host else f"AICPU {run['orchestrator'] or 'Orchestrator'}"
    for pid, name, is_there in (
        (ORCHESTRATOR, title, len(content.submits) > 0),
        (SCHEDULER, "AICPU Scheduler", len(content.phases) > 0),
        (SCHEDULER_VIEW, "Scheduler View", len(joined) > 0),
        (WORKER_VIEW, "Worker View", True),
    ):
        if is_there:
            yield meta("process_name", pid, {"name": name})
            yield meta("process_sort_index", pid, {"sort_index": pid})
    if len(content.uploads):
        yield meta("process_name", ORCHESTRATOR, {"name": "Host Prepare"})
        yield meta("thread_name", ORCHESTRATOR, {"name": "H2D"}, _UPLOAD_TID)
    cores, threads = details["ascend_cores"], details["ascend_threads"].values("thread").astype(np.int64)
    used = set(distinct(content.core).tolist())
    lanes = {
        core: str(names[track])
        for core, track in zip(cores.values("core").tolist(), cores.values("track_id").tolist(), strict=True)
        # The newer converter does not name cores that ran nothing.
        if core in used or not content.is_chip
    }
    for tid, name in zip(worker_tid(np.array(list(lanes), np.int64)).tolist(), lanes.values(), strict=True):
        yield meta("thread_name", WORKER_VIEW, {"name": name}, tid)
    tids, first = np.unique(content.flight_tid[joined], return_index=True)
    for tid, place in zip(tids.tolist(), content.core[joined[first]].tolist(), strict=True):
        yield meta("thread_name", SCHEDULER_VIEW, {"name": lanes[place]}, tid)
    for thread, tid in zip(threads.tolist(), scheduler_tid(content, threads).tolist(), strict=True):
        yield meta("thread_name", SCHEDULER, {"name": f"Sched_{thread}"}, tid)
    word = "Host" if content.on_host else "Orch"
    for number in content.orchestrators:
        yield meta("thread_name", ORCHESTRATOR, {"name": f"{word}_{number}"}, 4000 + number)
    lanes_of_bare = set(bare_lanes(content).values())
    if content.is_chip:
        resolving = distinct(content.phases.integers("thread")[content.phases.is_named("resolve")])
        for thread, tid in zip(resolving.tolist(), (scheduler_tid(content, resolving) + 1).tolist(), strict=True):
            yield meta("thread_name", SCHEDULER, {"name": f"Sched_{thread}"}, tid)
        count = len(threads) + len(content.orchestrators)
        lanes_of_bare |= {(19_000 + index, f"AICPU_{index}") for index in range(count)}
    for tid, name in sorted(lanes_of_bare):
        yield meta("thread_name", WORKER_VIEW, {"name": name}, tid)
    if len(content.phases):
        yield meta("thread_name", SCHEDULER, {"name": "shared_ready_queue (global)"}, 3999)
        yield meta("thread_sort_index", SCHEDULER, {"sort_index": 100}, 3999)


def _inside(words: Words) -> Words:
    """Return texts as they stand inside of a JSON text: names come from the capture."""
    return Words([json.dumps(text)[1:-1] for text in words.texts], words.index)


_KERNEL = (
    '{"args":{"event-hint":"Task:$text, FuncId:$function, CoreId:$core",$fans,"duration-us":$length$more,'
    '"taskId":$task_id},"cat":"event","id":$number,"name":"$name($text)","ph":"X",'
    f'"pid":{WORKER_VIEW},"tid":$tid,"ts":$bar,"dur":$length}}'
)
_SETUP = (
    '{"args":{"event-hint":"Task:$text, FuncId:$function, CoreId:$core","local_setup_us":$setup,"taskId":$task_id},'
    f'"cat":"event","id":$next,"name":"setup","ph":"X","pid":{WORKER_VIEW},"tid":$tid,"ts":$receive,"dur":$setup}}'
)


def _kernels(content: Content, numbers: Numbers) -> Iterator[bytes]:
    c = content
    if c.is_chip:
        templates = [_KERNEL.replace("$more", ',"kernel-duration-us":$kernel,"local_setup_us":$setup')]
        has_setup = np.zeros(len(c.task), np.bool_)
    else:
        templates = [kernel := _KERNEL.replace("$more", ""), kernel + SEPARATOR + _SETUP]
        has_setup = c.setup >= _LEAST_SETUP_US
    number = numbers.take(1 + has_setup)
    yield from write(
        templates,
        has_setup,
        text=c.text,
        function=c.function,
        core=c.core,
        fans=Words(_hints(c), c.task),
        length=c.bar_length,
        kernel=c.tasks.length,
        setup=c.setup,
        task_id=c.known[c.task],
        number=number,
        next=number + 1,
        name=_inside(c.tasks.name),
        tid=worker_tid(c.core),
        bar=c.bar,
        receive=c.receive,
    )


def _hints(content: Content) -> list[str]:
    """Return the argument texts that list consumers and producers, by task: their ids, with newer naming names.

    Consumers are in the order of their edges. Producers are in that of the first edge of each, whoever consumes it.
    """
    pred, succ = content.edges
    known = (content.texts if content.is_chip else content.ids.astype(str)).tolist()
    out_first, out_item = _listed(content, pred, succ)
    count = len(pred)
    seen = np.zeros(len(known), np.int64)
    seen[pred[::-1]] = np.arange(count - 1, -1, -1)
    rank = seen[pred]
    if not bool((rank[1:] >= rank[:-1]).all()):
        order = np.argsort(rank, kind="stable")
        pred, succ = pred[order], succ[order]
    in_first, in_item = _listed(content, succ, pred)
    return core.ascend_hints(known, out_first, out_item, in_first, in_item)


def _listed(content: Content, tasks: Int64, others: Int64) -> tuple[Int64, Int64]:
    """Return which tasks are joined to each task that ran: where its own begin, int64 [ran + 1], and indices of all.

    Args:
        content: the trace.
        tasks: int64 [edges], indices into its ids.
        others: int64 [edges], the other ends.
    """
    place = content.place[tasks]
    order = np.flatnonzero(place >= 0)
    place = place[order]
    if not bool((place[1:] >= place[:-1]).all()):
        order = order[np.argsort(place, kind="stable")]
    first = np.zeros(len(content.known) + 1, np.int64)
    np.cumsum(np.bincount(place, minlength=len(content.known)), out=first[1:])
    return first, others[order]


def _flights(content: Content, numbers: Numbers) -> Iterator[bytes]:
    c, rows = content, np.flatnonzero(content.is_joined)
    length = c.latency[rows]
    names = _inside(c.tasks.name)
    yield from write(
        '{"args":{"event-hint":"Task:$text, FuncId:$function, CoreId:$core","dispatch-time-us":$begin,'
        '"finish-time-us":$end,"aicpu-duration-us":$length,"taskId":$task_id},"cat":"event","id":$number,"name":"$name($text)","ph":"X",'
        f'"pid":{SCHEDULER_VIEW},"tid":$tid,"ts":$begin,"dur":$length}}',
        text=Words(c.text.texts, c.task[rows]),
        function=c.function[rows],
        core=c.core[rows],
        begin=c.dispatch[rows],
        end=c.finish[rows],
        length=length,
        task_id=c.known[c.task[rows]],
        number=numbers.take(np.ones(len(rows), np.int64)),
        name=Words(names.texts, names.index[rows]),
        tid=c.flight_tid[rows],
    )


def _phases(content: Content) -> Iterator[bytes]:
    phases, table = content.phases, content.phases.table
    # With the newer naming, markers of tasks are bars of these tasks only.
    rows = np.flatnonzero(~phases.is_named(*_MARKERS)) if content.is_chip else np.arange(len(phases))
    tasks = phases.integers("tasks_processed")[rows]
    columns: dict[str, Any] = {}
    texts = []
    has_depths = np.zeros(len(rows), np.int64)
    depths = []
    for where in ("local", "shared"):
        for when in ("start", "end"):
            names = [f"{where}_{when}_{queue.lower()}" for queue in QUEUES]
            columns |= {name: phases.integers(name)[rows] for name in names}
            has_depths = 2 * has_depths + table.valid(names[0])[rows]
            depths.append(f',"{where}_at_{when} (aic,aiv,mix)":[{", ".join("$" + name for name in names)}]')
    is_complete = phases.is_named("complete")[rows]
    kind_of = 2 * has_depths + is_complete
    finished = ',"finishes_processed":$tasks'
    if content.is_chip:
        seen = passes(content, np.flatnonzero(content.is_joined))
        columns["seen"] = np.bincount(seen[seen >= 0], minlength=len(phases))[rows]
        finished += ',"finish_rows_attributed":$seen'
    counts = np.bincount(kind_of)
    kinds = np.flatnonzero(counts)
    which = (np.cumsum(counts > 0) - 1)[kind_of]
    for kind in kinds.tolist():
        shown = finished if kind & 1 else ""
        shown += "".join(text for place, text in enumerate(depths) if kind >> (len(depths) - place) & 1)
        texts.append(
            f'{{"args":{{"phase":"$name","loop_iter":$loop,"tasks_processed":$tasks{shown}}},'
            '"cat":"scheduler",$color"name":"$name($tasks)","ph":"X",'
            f'"pid":{SCHEDULER},"tid":$tid,"ts":$begin,"dur":$length}}'
        )
    colors = [f'"cname":"{_COLORS[name]}",' if name in _COLORS else "" for name in phases.name.texts]
    yield from write(
        texts,
        which,
        name=Words(_inside(phases.name).texts, phases.name.index[rows]),
        loop=phases.integers("loop_iter")[rows],
        tasks=tasks,
        color=Words(colors, phases.name.index[rows]),
        tid=scheduler_tid(content, phases.integers("thread"), phases.is_named("resolve"))[rows],
        begin=phases.begin[rows],
        length=phases.length[rows],
        **columns,
    )


def _submits(content: Content) -> Iterator[bytes]:
    submits = content.submits
    yield from write(
        '{"args":{"phase":"orch_submit","submit_idx":$index,"task_id":$task_id},"cat":"orchestrator",'
        f'"cname":"rail_animation","name":"submit($task)","ph":"X","pid":{ORCHESTRATOR},'
        '"tid":$tid,"ts":$begin,"dur":$length}',
        index=submits.integers("submit_idx"),
        task_id=submits.table.values("task_id"),
        task=_words(submits.table.values("task")),
        tid=4000 + submits.integers("orchestrator"),
        begin=submits.begin,
        length=submits.length,
    )


def _uploads(content: Content) -> Iterator[bytes]:
    uploads = content.uploads
    yield from write(
        f'{{"name":"$name","cat":"host_h2d","ph":"X","pid":{ORCHESTRATOR},"tid":{_UPLOAD_TID},"ts":$begin,"dur":$length,'
        '"cname":"thread_state_iowait","args":{"bytes":$bytes}}',
        name=_inside(uploads.name),
        begin=uploads.begin,
        length=uploads.length,
        bytes=uploads.integers("bytes"),
    )


def _words(texts: Any) -> Words:
    return Words(list(map(str, texts.tolist())), np.arange(len(texts)))


def _titles(content: Content, words: list[str]) -> tuple[list[str], Int64]:
    """Return what the bars of tasks without executions are called: with the newer naming skipped ones by function."""
    bare, tasks = content.bare, content.trace.details["ascend_graph_tasks"]
    texts, index = list(words), bare.name.index.copy()
    if content.is_chip:
        rows = np.flatnonzero(bare.is_named("skipped task") & bare.table.valid("task_id"))
        by_id = np.argsort(tasks.values("task_id"), kind="stable")
        found = by_id[np.searchsorted(tasks.values("task_id")[by_id], bare.table.values("task_id")[rows])]
        has_name = tasks.valid("functions")[found]
        functions, which = np.unique(tasks.values("functions")[found[has_name]].astype(str), return_inverse=True)
        index[rows[has_name]] = len(texts) + which.reshape(-1)
        texts += [json.dumps(text)[1:-1] for text in functions.tolist()]
    return texts, index


def _headerless(content: Content) -> Iterator[bytes]:
    bare = content.bare
    if not len(bare):
        return
    words = [_BARE.get(name, name) for name in bare.name.texts]
    titles, title = _titles(content, words)
    is_known, task_id = bare.table.valid("task_id"), bare.table.values("task_id")
    if content.is_chip:
        # By kind: allocations, dummies, and what was skipped; then those whose task is not known.
        kind = np.array([_NEWER.index(word) if word in _NEWER else 0 for word in words])[bare.name.index]
        templates = [_BAR.replace("$args", args) for args in _NEWER_ARGS]
        templates += [text.replace(',"task_id":$task_id', "").replace("$task", "?") for text in templates]
        which = kind + len(_NEWER) * ~is_known
    else:
        templates = [_BAR.replace("$args", '"phase":"$word"').replace("$task", "?"), _BAR.replace("$args", _OLDER_ARGS)]
        which = is_known
    yield from write(
        templates,
        which,
        word=Words(words, bare.name.index),
        title=Words(titles, title),
        color=Words([_color(word, is_chip=content.is_chip) for word in words], bare.name.index),
        task=_words(bare.table.values("task")),
        task_id=task_id,
        loop=_iterations(content, task_id),
        tid=bare_tids(content),
        begin=bare.begin,
        length=np.maximum(bare.length, _LEAST_BAR_US),
    )


_BAR = (
    '{"args":{$args},"cat":"event",$color"name":"$title($task)","ph":"X",'
    f'"pid":{WORKER_VIEW},"tid":$tid,"ts":$begin,"dur":$length}}'
)
_OLDER_ARGS = '"phase":"$word","task_id":$task_id'
_NEWER = ("alloc", "dummy", "predicated_skip")
_NEWER_ARGS = (
    '"phase":"alloc","task_id":$task_id,"event-hint":"$title($task)"',
    '"loop_iter":$loop,"task_id":$task_id,"event-hint":"$title($task)","phase":"dummy_task"',
    '"loop_iter":$loop,"task_id":$task_id,"event-hint":"$title($task)","predicated_pass":false',
)


def _color(word: str, *, is_chip: bool) -> str:
    """Return the color of bars of tasks without executions; with the newer naming only allocations have one."""
    color = "olive" if word == "alloc" else "" if is_chip else "grey"
    return f'"cname":"{color}",' if color else ""


def _iterations(content: Content, tasks: UInt64) -> Int64:
    """Return the iteration of the marker of each task, int64 [n], 0 for those without."""
    phases = content.phases
    rows = np.flatnonzero(phases.is_named(*_MARKERS) & phases.table.valid("task_id"))
    if not len(rows):
        return np.zeros(len(tasks), np.int64)
    ids = phases.table.values("task_id")[rows]
    rows = rows[np.argsort(ids, kind="stable")]
    ids = phases.table.values("task_id")[rows]
    at = np.minimum(np.searchsorted(ids, tasks), len(ids) - 1)
    return np.where(ids[at] == tasks, phases.integers("loop_iter")[rows[at]], 0)


def _counters(content: Content) -> Iterator[bytes]:
    """One counter a value: three in one event, as the peer writes them, break the import of Perfetto."""
    tracks, counters = content.trace.tracks.values("name"), content.trace.counters
    track = counters.values("track_id").astype(np.int64)
    yield from write(
        f'{{"args":{{$name:$value}},"name":$name,"ph":"C","pid":{SCHEDULER},"tid":3999,"ts":$ts}}',
        name=Words([json.dumps(str(name)) for name in tracks.tolist()], track),
        value=counters.values("value"),
        ts=counters.values("ts") / 1000,
    )
