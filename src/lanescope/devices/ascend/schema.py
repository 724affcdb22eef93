"""Detail tables, raw tables and stats of the Ascend family."""

from __future__ import annotations

from lanescope.devices.ascend.layout import QUEUES, RECORDS, Cell, Layout
from lanescope.trace.schema import ColumnSpec, TableSpec
from lanescope.trace.stats import StatSpec


def _span(name: str, doc: str, *, is_argument: bool = False) -> tuple[ColumnSpec, ColumnSpec]:
    return (
        ColumnSpec(f"{name}_ns", "int64", doc, nullable=True, unit="ns", is_argument=is_argument),
        ColumnSpec(f"{name}_ticks", "int64", f"the same on the device's counter: {doc}", nullable=True, unit="ticks"),
    )


def _stamp(name: str, doc: str) -> tuple[ColumnSpec, ColumnSpec]:
    return (
        ColumnSpec(f"{name}_ts", "int64", doc, nullable=True, unit="ns"),
        ColumnSpec(f"{name}_ticks", "int64", f"the same, as the device counts: {doc}", nullable=True, unit="ticks"),
    )


_TASK_ID = ColumnSpec("task_id", "uint64", "task id, 64 bits", is_argument=True)
_TASK = ColumnSpec("task", "utf8", "task id as people write it: t5, r2t5")

TASKS = TableSpec(
    "ascend_tasks",
    "one dispatch of a task (a block, a half of a MIX task) on a core; its slice is the execution",
    (
        ColumnSpec("slice_id", "int64", "the slice of the execution"),
        _TASK_ID,
        _TASK,
        ColumnSpec("label", "utf8", "name and task, as in matmul(r2t5)"),
        ColumnSpec("function", "int64", "number of the function", nullable=True),
        ColumnSpec("core", "int32", "index of the core"),
        ColumnSpec("core_type", "text", "aic, aiv; empty: the capture does not say"),
        ColumnSpec("reg_task_id", "uint32", "the core's dispatch counter"),
        ColumnSpec("block", "int32", "ordinal among the rows of its task on cores of this type, by start; concluded"),
        ColumnSpec("blocks", "int64", "blocks that the task runs as, from the task graph", nullable=True),
        *_stamp("dispatch", "just before the dispatch registers of its batch were written"),
        *_stamp("receive", "the core took it; v3c: before a wait for its producers, v3: after it"),
        *_stamp("finish", "the scheduler observed the end"),
        *_stamp("ready", "the last of its producers had ended; only those with rows count"),
        *_span("duration", "execution: start to end", is_argument=True),
        *_span("propagation", "dispatch to receive; negative ones stand as measured", is_argument=True),
        *_span("local_setup", "receive to start, without the wait for producers", is_argument=True),
        *_span("gate_wait", "receive to ready of a task that was staged early; an estimate"),
        *_span("head", "dispatch to start"),
        *_span("tail", "end to finish; negative ones stand as measured"),
        ColumnSpec("judged_ts", "int64", "when it counts as begun for its producers", unit="ns"),
        ColumnSpec("judged_at", "text", "receive, or start where the receive stamp is missing or no proof"),
        ColumnSpec("may_be_staged", "bool", "may have been staged before its producers ended; v3c only", nullable=True),
    ),
    key="slice_id",
)
PHASES = TableSpec(
    "ascend_phases",
    "one piece of work of a scheduler thread; its kind is the slice's name",
    (
        ColumnSpec("slice_id", "int64", "the slice"),
        ColumnSpec("thread", "int32", "scheduler thread"),
        ColumnSpec("role", "text", "outer, inner, marker; empty: unknown kind"),
        ColumnSpec("loop_iter", "uint32", "iteration of the thread's loop", nullable=True),
        ColumnSpec(
            "tasks_processed",
            "uint32",
            "what was counted; its meaning depends on the kind",
            nullable=True,
            is_argument=True,
        ),
        ColumnSpec("pop_hit", "uint32", "pops that yielded a task since the last dispatch record", nullable=True),
        ColumnSpec("pop_miss", "uint32", "pops that did not", nullable=True),
        ColumnSpec("task_id", "uint64", "task id, markers only; v3 has its lower half alone", nullable=True),
        *(
            ColumnSpec(
                f"{where}_{when}_{queue.lower()}",
                "int32",
                f"tasks in the {'shared ready queue' if where == 'shared' else 'own ready buffer'}"
                f" for {queue} at the {when}",
                nullable=True,
            )
            for where in ("shared", "local")
            for when in ("start", "end")
            for queue in QUEUES
        ),
    ),
    key="slice_id",
)
SUBMITS = TableSpec(
    "ascend_submits",
    "one task submitted by an orchestrator",
    (
        ColumnSpec("slice_id", "int64", "the slice"),
        ColumnSpec("orchestrator", "int32", "which of the orchestrators"),
        ColumnSpec("submit_idx", "uint32", "running number of the submit", nullable=True),
        _TASK_ID,
        _TASK,
    ),
    key="slice_id",
)
UPLOADS = TableSpec(
    "ascend_uploads",
    "one copy from host to device",
    (
        ColumnSpec("slice_id", "int64", "the slice"),
        ColumnSpec("bytes", "int64", "bytes copied", nullable=True, unit="bytes", is_argument=True),
    ),
    key="slice_id",
)
EDGES = TableSpec(
    "ascend_edges",
    "the tasks that a dependency joins",
    (
        ColumnSpec("flow_id", "int64", "the flow"),
        ColumnSpec("pred_task_id", "uint64", "producer"),
        ColumnSpec("succ_task_id", "uint64", "consumer"),
    ),
    key="flow_id",
)
RUNS = TableSpec(
    "ascend_runs",
    "one records file: what it is and what it was put together with",
    (
        ColumnSpec("input_id", "int64", "the input"),
        ColumnSpec("generation", "text", "v2, v3, v3c"),
        ColumnSpec("level_key", "text", "key of the level in the file"),
        ColumnSpec("level", "int32", "1 core timing, 2 and dispatch, 3 and scheduler phases, 4 and submits"),
        ColumnSpec("orchestrator", "utf8", "name of the orchestrator, from the name map", nullable=True),
        ColumnSpec("orchestrator_on_host", "bool", "submits were made by the host"),
        ColumnSpec("clocks", "utf8", "host and device: aligned, or why not; NULL without host records", nullable=True),
        ColumnSpec("base_ticks", "int64", "smallest stamp of the device", unit="ticks"),
        ColumnSpec("tasks", "int64", "tasks that the capture knows"),
        ColumnSpec(
            "edges", "int64", "pairs of tasks that wait for one another; NULL without a task graph", nullable=True
        ),
        ColumnSpec("edges_repeated", "int64", "further reasons of the same pairs", nullable=True),
        ColumnSpec("edges_to_self", "int64", "edges from a task to itself, ignored", nullable=True),
        ColumnSpec("edges_retain_only", "int64", "edges that keep memory alive and order nothing", nullable=True),
    ),
    key="input_id",
)
TABLES = (TASKS, PHASES, SUBMITS, UPLOADS, EDGES, RUNS)

STATS = (
    StatSpec("ascend_bad_row", "data_loss", "an element of a list is not of the list's shape; its bytes count as lost"),
    StatSpec("ascend_bad_section", "data_loss", "a list of the format is no list; its bytes count as lost"),
    StatSpec("ascend_unknown_section", "notice", "a key at the top is not of the format; its bytes count as lost"),
    StatSpec("ascend_mixed_rows", "notice", "rows without a receive stamp stand among rows with one"),
    StatSpec("ascend_unknown_kind", "notice", "a scheduler phase has a kind that is not in the format; it is kept"),
    StatSpec(
        "ascend_unstamped", "data_loss", "a record has no begin: it was reserved and never written; it has no place"
    ),
    StatSpec(
        "ascend_unplaceable", "error", "a stamp is too far from the smallest one to have a time; the record is left out"
    ),
    StatSpec("ascend_bad_delta", "error", "receive to start is longer than the start is old; receive is unknown"),
    StatSpec(
        "ascend_aicore_unmatched",
        "data_loss",
        "an execution without its dispatch record: dispatch and finish are unknown",
    ),
    StatSpec(
        "ascend_aicpu_unmatched", "data_loss", "a dispatch without its execution record: the core's record was lost"
    ),
    StatSpec(
        "ascend_hole", "data_loss", "dispatches that neither stream has, by the cores' counters; at least so many"
    ),
    StatSpec("ascend_row_duplicate", "notice", "a row stands in the file more than once; it counts once"),
    StatSpec("ascend_key_duplicate", "error", "rows that differ share core and counter: none of them is joined"),
    StatSpec("ascend_gate_wait", "info", "a wait for producers was taken out of the setup: an estimate"),
    StatSpec(
        "ascend_edge_without_place", "info", "a dependency of a task that stands nowhere on the timeline is not drawn"
    ),
    StatSpec("ascend_task_ambiguous", "notice", "a marker names only half of its task id, and not one task fits"),
    StatSpec("ascend_no_names", "notice", "several name maps lie beside the capture: none is used, say --names"),
    StatSpec("ascend_bad_neighbour", "error", "a file beside the capture cannot be read; it counts as lost"),
    StatSpec(
        "ascend_host_apart", "notice", "host and device clocks are not joined: only the order of the two parts is known"
    ),
    StatSpec("ascend_host_dropped", "data_loss", "the host's recorder dropped records of submits"),
)


def raw(layout: Layout) -> TableSpec:
    """Return the declaration of the raw table of a list: one row an element, one column a number."""
    columns = [
        ColumnSpec("offset", "int64", "byte offset in the file", unit="bytes"),
        ColumnSpec("group", "int32", "index of the inner list"),
    ]
    for cell in layout.cells:
        columns += [
            ColumnSpec(name, _TYPES.get(cell.kind, "int64"), cell.doc, nullable=not cell.is_required, unit=cell.unit)
            for name in column_names(cell)
        ]
    return TableSpec(f"ascend.{layout.name}", layout.doc, tuple(columns))


def column_names(cell: Cell) -> list[str]:
    """Return the raw columns of a cell: one, or one for each number of a list."""
    return [cell.name] if cell.count == 1 else [f"{cell.name}_{i}" for i in range(cell.count)]


_TYPES = {"token": "uint64", "boolean": "bool", "text": "text", "words": "uint32"}

RAW = {layout.name: raw(layout) for layout in RECORDS}
