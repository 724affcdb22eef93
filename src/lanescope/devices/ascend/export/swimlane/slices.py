"""Bars, counters and the names of lanes, as the peer's converter writes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np

from lanescope.common.distinct import distinct
from lanescope.devices.ascend.export.swimlane.trace_view import (
    ORCHESTRATOR,
    SCHEDULER,
    SCHEDULER_VIEW,
    WORKER_VIEW,
    Content,
    scheduler_tid,
    worker_tid,
)
from lanescope.devices.ascend.formats.layout import QUEUES

#: Setups below one step of the slow chip's counter have no bar.
_LEAST_SETUP_US = 0.02
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


def bars(content: Content, numbers: count[int]) -> Iterator[str]:
    """Yield everything but the arrows; ``numbers`` gives events their ids."""
    yield from _processes(content)
    yield from _kernels(content, numbers)
    yield from _flights(content, numbers)
    yield from _phases(content)
    yield from _submits(content)
    yield from _headerless(content)
    yield from _counters(content)


def _meta(name: str, pid: int, args: dict[str, Any], tid: int | None = None) -> str:
    event: dict[str, Any] = {"args": args, "cat": "__metadata", "name": name, "ph": "M", "pid": pid}
    return json.dumps(event | ({} if tid is None else {"tid": tid}))


def _processes(content: Content) -> Iterator[str]:
    run, details, names = content.run, content.trace.details, content.trace.tracks.values("name")
    is_joined = any(content.is_joined)
    title = "Host Orchestrator" if content.on_host else f"AICPU {run['orchestrator'] or 'Orchestrator'}"
    for pid, name, is_there in (
        (ORCHESTRATOR, title, len(content.submits) > 0),
        (SCHEDULER, "AICPU Scheduler", len(content.phases) > 0),
        (SCHEDULER_VIEW, "Scheduler View", is_joined),
        (WORKER_VIEW, "Worker View", True),
    ):
        if is_there:
            yield _meta("process_name", pid, {"name": name})
            yield _meta("process_sort_index", pid, {"sort_index": pid})
    lanes = {core: str(names[track]) for core, track in _pairs(details["ascend_cores"], "core")}
    for core, name in lanes.items():
        yield _meta("thread_name", WORKER_VIEW, {"name": name}, worker_tid(core))
    flights = {
        (tid, core)
        for tid, core, joined in zip(content.flight_tid, content.core, content.is_joined, strict=True)
        if joined
    }
    for tid, core in sorted(flights):
        yield _meta("thread_name", SCHEDULER_VIEW, {"name": lanes[core]}, tid)
    for thread, _ in _pairs(details["ascend_threads"], "thread"):
        yield _meta("thread_name", SCHEDULER, {"name": f"Sched_{thread}"}, scheduler_tid(content, thread))
    word = "Host" if content.on_host else "Orch"
    for number in sorted(set(content.submits.list("orchestrator"))):
        yield _meta("thread_name", ORCHESTRATOR, {"name": f"{word}_{number}"}, 4000 + number)
    bare = zip(content.bare.name, content.bare.track.tolist(), strict=True)
    for tid, name in sorted({_bare_lane(content, name, str(names[track])) for name, track in set(bare)}):
        yield _meta("thread_name", WORKER_VIEW, {"name": name}, tid)
    if len(content.phases):
        yield _meta("thread_name", SCHEDULER, {"name": "shared_ready_queue (global)"}, 3999)
        yield _meta("thread_sort_index", SCHEDULER, {"sort_index": 100}, 3999)


def _pairs(table: Any, name: str) -> Iterator[tuple[int, int]]:
    return zip(table.values(name).tolist(), table.values("track_id").tolist(), strict=True)


def _kernels(content: Content, numbers: count[int]) -> Iterator[str]:
    fans = _hints(content)
    columns = zip(
        *(content.start, content.end, content.bar, content.receive, content.setup, content.core, content.ids),
        *(content.functions, content.task.tolist(), content.label, content.text),
        strict=True,
    )
    for start, end, bar, receive, setup, core, task_id, function, task, label, text in columns:
        hint = f"Task:{text}, FuncId:{function}, CoreId:{core}"
        more = f',"kernel-duration-us":{end - start!r},"local_setup_us":{setup!r}' if content.is_chip else ""
        yield (
            f'{{"args":{{"event-hint":"{hint}",{fans[task]},"duration-us":{end - bar!r}{more},"taskId":{task_id}}},'
            f'"cat":"event","id":{next(numbers)},"name":"{label}","ph":"X","pid":{WORKER_VIEW},'
            f'"tid":{worker_tid(core)},"ts":{bar!r},"dur":{end - bar!r}}}'
        )
        if not content.is_chip and setup >= _LEAST_SETUP_US:
            yield (
                f'{{"args":{{"event-hint":"{hint}","local_setup_us":{setup!r},"taskId":{task_id}}},"cat":"event",'
                f'"id":{next(numbers)},"name":"setup","ph":"X","pid":{WORKER_VIEW},"tid":{worker_tid(core)},'
                f'"ts":{receive!r},"dur":{setup!r}}}'
            )


def _hints(content: Content) -> list[str]:
    """Return the argument texts that list consumers and producers, by task."""
    edges = content.trace.details["ascend_edges"]
    out: dict[int, list[int]] = {}
    into: dict[int, list[int]] = {}
    for pred, succ in zip(edges.values("pred_task_id").tolist(), edges.values("succ_task_id").tolist(), strict=True):
        out.setdefault(pred, []).append(succ)
        into.setdefault(succ, []).append(pred)
    return [
        f'"fanout-hint":"{len(out.get(task, ()))}: {out.get(task, [])}",'
        f'"fanin-hint":"{len(into.get(task, ()))}: {into.get(task, [])}"'
        for task in content.known
    ]


def _flights(content: Content, numbers: count[int]) -> Iterator[str]:
    columns = zip(
        *(content.is_joined, content.dispatch, content.finish, content.core, content.ids),
        *(content.label, content.text, content.flight_tid),
        strict=True,
    )
    for is_joined, begin, end, core, task_id, label, text, tid in columns:
        if is_joined:
            yield (
                f'{{"args":{{"event-hint":"Task:{text}, CoreId:{core}","dispatch-time-us":{begin!r},'
                f'"finish-time-us":{end!r},"aicpu-duration-us":{end - begin!r},"taskId":{task_id}}},'
                f'"cat":"event","id":{next(numbers)},"name":"{label}","ph":"X","pid":{SCHEDULER_VIEW},'
                f'"tid":{tid},"ts":{begin!r},"dur":{end - begin!r}}}'
            )


def _phases(content: Content) -> Iterator[str]:
    phases, table = content.phases, content.phases.table
    names = {kind: json.dumps(kind)[1:-1] for kind in set(phases.name)}
    queues = []
    for where in ("local", "shared"):
        for when in ("start", "end"):
            columns = [f"{where}_{when}_{queue.lower()}" for queue in QUEUES]
            values = np.stack([table.values(name) for name in columns], 1).tolist()
            queues.append((f"{where}_at_{when} (aic,aiv,mix)", values, table.valid(columns[0]).tolist()))
    rows = zip(
        *(phases.name, phases.list("thread"), phases.begin, phases.end),
        *(phases.list("loop_iter"), phases.list("tasks_processed")),
        strict=True,
    )
    for row, (kind, thread, begin, end, loop, tasks) in enumerate(rows):
        args = f'"phase":"{names[kind]}","loop_iter":{loop},"tasks_processed":{tasks}'
        if kind == "complete":
            args += f',"finishes_processed":{tasks}'
        for key, values, known in queues:
            if known[row]:
                args += f',"{key}":"{values[row]}"'
        color = f'"cname":"{_COLORS[kind]}",' if kind in _COLORS else ""
        yield (
            f'{{"args":{{{args}}},"cat":"scheduler",{color}"name":"{names[kind]}({tasks})","ph":"X",'
            f'"pid":{SCHEDULER},"tid":{scheduler_tid(content, thread, kind)},"ts":{begin!r},"dur":{end - begin!r}}}'
        )


def _submits(content: Content) -> Iterator[str]:
    submits = content.submits
    rows = zip(
        *(submits.begin, submits.end, submits.table.values("task").tolist(), submits.list("task_id")),
        *(submits.list("submit_idx"), submits.list("orchestrator")),
        strict=True,
    )
    for begin, end, task, task_id, index, number in rows:
        yield (
            f'{{"args":{{"phase":"orch_submit","submit_idx":{index},"task_id":{task_id}}},"cat":"orchestrator",'
            f'"cname":"rail_animation","name":"submit({task})","ph":"X","pid":{ORCHESTRATOR},'
            f'"tid":{4000 + number},"ts":{begin!r},"dur":{end - begin!r}}}'
        )


def _bare_lane(content: Content, name: str, lane: str) -> tuple[int, str]:
    number = int(lane.rpartition("_")[2])
    if content.is_chip:
        # Schedulers first, then orchestrators.
        index = number + (len(content.trace.details["ascend_threads"]) if name == "alloc" else 0)
        return 19_000 + index, f"AICPU_{index}"
    return (18_000 + number, f"ALLOC_T{number}") if name == "alloc" else (19_000 + number, f"DUMMY_T{number}")


def _headerless(content: Content) -> Iterator[str]:
    bare, names = content.bare, content.trace.tracks.values("name")
    rows = zip(
        *(bare.name, bare.track.tolist(), bare.begin, bare.end),
        *(bare.table.values("task").tolist(), bare.list("task_id"), bare.table.valid("task_id").tolist()),
        strict=True,
    )
    for name, track, begin, end, task, task_id, is_known in rows:
        tid, _ = _bare_lane(content, name, str(names[track]))
        word = _BARE.get(name, name)
        color = "olive" if word == "alloc" else "grey"
        argument = f',"task_id":{task_id}' if is_known else ""
        yield (
            f'{{"args":{{"phase":"{word}"{argument}}},"cat":"event","cname":"{color}",'
            f'"name":"{word}({task if is_known else "?"})","ph":"X","pid":{WORKER_VIEW},"tid":{tid},'
            f'"ts":{begin!r},"dur":{max(end - begin, 0.02)!r}}}'
        )


def _counters(content: Content) -> Iterator[str]:
    """One counter a value: three in one event, as the peer writes them, break the import of Perfetto."""
    tracks, counters = content.trace.tracks.values("name"), content.trace.counters
    names = {track: json.dumps(str(tracks[track])) for track in distinct(counters.values("track_id")).tolist()}
    rows = zip(
        counters.values("track_id").tolist(),
        counters.values("ts").tolist(),
        counters.values("value").tolist(),
        strict=True,
    )
    for track, ts, value in rows:
        yield (
            f'{{"args":{{{names[track]}:{value!r}}},"name":{names[track]},"ph":"C","pid":{SCHEDULER},"tid":3999,'
            f'"ts":{ts / 1000!r}}}'
        )
