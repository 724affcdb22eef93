"""Where the declared fields of the JSON files of a capture lie, by path, and which other values they could hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from lanescope.devices.ascend.formats.field_map.task_ids import Execution, TaskGraph, possible_tasks
from lanescope.devices.ascend.formats.layout import (
    AICORE,
    AICPU,
    DEPS,
    DEPS_EDGES,
    DEPS_TASKS,
    HOST_SUBMITS,
    LEVEL_KEYS,
    PHASE_KINDS,
    PHASES,
    RECORDS,
    SUBMITS,
    UPLOADS,
    V1_PHASES,
    V1_SUBMITS,
    V1_TASKS,
    V4_AICPU,
    V4_METRICS,
    V4_PHASES,
    Layout,
)
from lanescope.families.field_sites import (
    DROPPED,
    DUPLICATED,
    EXCHANGED,
    FieldMap,
    FieldSites,
    Possible,
    PossibleChange,
    RecordSites,
    Value,
    each,
    never,
)
from lanescope.wire.json_spans import Path, Span, spans

#: Values next to the lists, by their path in the records file; ``#`` is any position in a list.
SINGLE_VALUES: dict[Path, str] = {
    **dict.fromkeys(((key,) for key in LEVEL_KEYS), "Level of the capture: which lists it has."),
    ("metadata", "clock_freq_hz"): "Frequency of the device's counter.",
    ("metadata", "num_cores"): "Cores of the run.",
    ("metadata", "core_types", "#"): "Type of a core.",
    ("metadata", "core_to_thread", "#"): "Scheduler thread of a core.",
    ("metadata", "runtime"): "Runtime that made the capture.",
    ("metadata", "orchestrator_source"): "Who orchestrates: device or host.",
    ("metadata", "collection", "*"): "What the collector says of its own work.",
    ("metadata", "clock_anchors", "samples", "#", "position"): "When both clocks were read.",
    ("metadata", "clock_anchors", "samples", "#", "host_before_ns"): "Host's clock before the reading.",
    ("metadata", "clock_anchors", "samples", "#", "device_cycles"): "Device's counter.",
    ("metadata", "clock_anchors", "samples", "#", "host_after_ns"): "Host's clock after the reading.",
    ("metadata", "clock_anchors", "raw_device_timestamp_unit"): "Unit of the readings as they were taken.",
    ("core_to_thread", "#"): "Scheduler thread of a core (v1).",
    ("scheduler_tasks", "producer"): "Who wrote the schedulers' rows.",
    ("scheduler_records", "streams", "#", "platform"): "Chip of a stream.",
    ("scheduler_records", "streams", "#", "producer"): "Who wrote a stream.",
    ("scheduler_records", "streams", "#", "scheduler_id"): "Scheduler of a stream.",
    ("scheduler_records", "streams", "#", "worker_id"): "Worker of a stream.",
    ("scheduler_records", "streams", "#", "capture", "committed"): "Records that a stream wrote.",
    ("scheduler_records", "streams", "#", "capture", "dropped"): "Records that found no room.",
    ("scheduler_records", "streams", "#", "capture", "truncated"): "Whether its end is missing.",
    ("callable_id_to_name", "*"): "Name of a function.",
    ("orchestrator_name",): "Name of the orchestrator.",
}
#: Lists by path; ``#`` is any position in a list.
_LISTS: dict[Path, Layout] = {
    **{(layout.key, *(["#"] * layout.depth)): layout for layout in (*RECORDS, *DEPS)},
    (V1_TASKS.key, "#"): V1_TASKS,
    ("scheduler_tasks", V4_AICPU.key, "#"): V4_AICPU,
    ("scheduler_records", "streams", "#", V4_PHASES.key, "#"): V4_PHASES,
    ("scheduler_records", "streams", "#", V4_METRICS.key, "#"): V4_METRICS,
}
_DECIMAL: dict[str, Layout] = {PHASES.name: V1_PHASES, SUBMITS.name: V1_SUBMITS}
_PAYLOADS = {
    "pop_hit": "a count that nothing else tells",
    "pop_miss": "a count that nothing else tells",
    "detail": "a size that nothing else tells",
    "early_dispatch": "a hint to the scheduler that nothing else tells",
}
#: Kinds of phases whose counts other records show, or that count one.
_SHOWN_KINDS = ("complete", "dispatch", "dummy", "dummy_task", "predicated_skip")
_DEPTHS = ("local_at_start", "shared_at_start", "local_at_end", "shared_at_end")
_MOST_DEPTH = (1 << 15) - 1
#: One part in so many: two chips of one kind differ by less.
_FREQUENCY_TOLERANCE = 50
_V1_ORDER = ("dispatch_time_us", "start_time_us", "end_time_us", "finish_time_us")
_TIMED = (PHASES, V4_PHASES, SUBMITS, V1_PHASES, V1_SUBMITS, HOST_SUBMITS, UPLOADS)
_BETWEEN = "between what came before and after it in its lane and in the other stream"
_NEARLY = "within what stamps of cores and schedulers may disagree"
_OUTERMOST = "the first or last of its thread, a little longer"
_LAST_NUMBER = "the last number of its thread, no less than the one before it"
#: Cores and schedulers stamp within a microsecond, as ``interpret.consistency`` has it.
_TOLERANCE = 1_000_000
#: Functions that a runtime has room for.
_FUNCTIONS = 1024


class _Cell(NamedTuple):
    layout: Layout
    row: Path
    name: str
    span: Span


def add_json(made: FieldMap, file: str, content: bytes, deps: Any = None) -> None:
    """Add the sites of a JSON file: records, task graph or names.

    Args:
        made: the map.
        file: name of the file.
        content: its bytes.
        deps: content of the task graph file of the capture; None without one.
    """
    data = json.loads(content)
    cells: dict[tuple[str, str], list[_Cell]] = {}
    rows: dict[str, list[Span]] = {}
    single: dict[Path, list[Span]] = {}
    for span in spans(content):
        general = tuple("#" if isinstance(part, int) else part for part in span.path)
        layout, depth = _layout_at(general, data)
        if layout is not None and len(general) == depth:
            rows.setdefault(layout.name, []).append(span)
        elif layout is not None and span.is_leaf:
            part = span.path[depth]
            known = [cell.name for cell in layout.cells]
            cell = known[part] if isinstance(part, int) and part < len(known) else str(part)
            if cell in known:
                cells.setdefault((layout.name, cell), []).append(_Cell(layout, span.path[:depth], cell, span))
        elif span.is_leaf:
            key: Path = general if general in SINGLE_VALUES else (*general[:-1], "*")
            if key in SINGLE_VALUES:
                single.setdefault(key, []).append(span)
    possible = PossibleValues(data, deps)
    for (layout_name, name), found in cells.items():
        begin, end = [cell.span.begin for cell in found], [cell.span.end for cell in found]
        lane = _numbered([(*cell.row[:-1], *cell.span.path[len(cell.row) + 1 :]) for cell in found])
        doc = found[0].layout[name].doc
        made.fields.append(
            FieldSites(
                layout_name, name, doc, file, begin, end=end, lane=lane, possible=possible.of(found[0].layout, found)
            )
        )
    for key, places in single.items():
        record = ".".join(str(part) for part in key[:-1] if part not in ("#", "*")) or "file"
        name = str(key[-1] if key[-1] not in ("#", "*") else key[-2])
        begin, end = [span.begin for span in places], [span.end for span in places]
        reason = possible.single(key, places)
        made.fields.append(
            FieldSites(record, name, SINGLE_VALUES[key], file, begin, end=end, lane=[0] * len(begin), possible=reason)
        )
    for layout_name, elements in rows.items():
        begin, end = [span.begin for span in elements], [span.end for span in elements]
        lane = _numbered([span.path[:-1] for span in elements])
        made.records.append(
            RecordSites(
                layout_name, file, begin, end, lane, joint=b",", possible=possible.change(layout_name, elements)
            )
        )


def _layout_at(general: Path, data: Any) -> tuple[Layout | None, int]:
    """Return the list that a path leads into, and the length of the path of its elements."""
    for depth in range(1, len(general) + 1):
        layout = _LISTS.get(general[:depth])
        if layout is V1_TASKS and "edges" in data:
            layout = DEPS_TASKS
        if layout is not None:
            is_decimal = layout.name in _DECIMAL and V1_TASKS.key in data
            return (_DECIMAL[layout.name] if is_decimal else layout), depth
    return None, 0


def _numbered(keys: Sequence[Any]) -> list[int]:
    numbers: dict[Any, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def _at(data: Any, path: Path) -> Any:
    for part in path:
        data = data[part]
    return data


class PossibleValues:
    """Which values of a JSON file a healthy run could have written.

    Args:
        data: the file; of dumps only the rows of both streams, and the frequency.
        deps: the task graph; None without one.
    """

    def __init__(self, data: Any, deps: Any = None) -> None:
        self.data = data
        self.graph = TaskGraph(deps, data) if deps is not None else None
        frequency = (data.get("metadata") or {}).get("clock_freq_hz") or 0
        self.tolerance = frequency // _TOLERANCE
        rows = data.get(AICORE.key) or []
        streams = data.get(AICPU.key) or (data.get("scheduler_tasks") or {}).get("records") or []
        keys = _keys(rows, AICORE), _keys(streams, AICPU)
        self.core, self.dispatch = dict(zip(keys[0], rows, strict=True)), dict(zip(keys[1], streams, strict=True))
        self.of_row = keys
        self.sides: dict[str, dict[int, tuple[int, int]]] = {}
        self.sides[AICORE.name] = _sides(rows, [(row[0],) for row in rows], 3, 4)
        self.sides[AICPU.name] = _sides(streams, [(row[0],) for row in streams], 2, 3)

    def of(self, layout: Layout, cells: Sequence[_Cell]) -> Possible:
        """Return which values of a cell are possible."""
        name = cells[0].name
        if name in _PAYLOADS:
            return each(lambda index, value: _PAYLOADS[name] if _is_count(value) else "")
        if name in _DEPTHS:
            return each(lambda index, value: "a depth that nothing else tells" if _is_depth(value) else "")
        if name == "tasks_processed":
            shown = {_at(self.data, cell.row).get("kind", _at(self.data, cell.row).get("phase")) for cell in cells}
            return each(self._processed(cells)) if shown - set(_SHOWN_KINDS) else never
        if name == "kind" or (name == "phase" and layout is V1_PHASES):
            return each(self._kind(cells))
        if layout is AICORE and name == "task_token_raw":
            return possible_tasks(self.graph, self._executions(), [int(cell.row[-1]) for cell in cells])
        if layout is V1_TASKS and name == "task_id":
            return possible_tasks(self.graph, self._joined_executions(), [int(cell.row[-1]) for cell in cells])
        if layout in (AICORE, AICPU, V4_AICPU):
            return self.dispatch_time(layout, name, [int(cell.row[-1]) for cell in cells])
        if layout is V1_TASKS and name in _V1_ORDER:
            return each(self._joined_time(cells))
        if layout in _TIMED and name.startswith(("start_", "end_")):
            return each(self._phase_time(cells))
        if name in ("loop_iter", "submit_idx"):
            return each(self._rising(cells))
        if layout is DEPS_EDGES and name in ("pred", "succ"):
            tasks = {int(task["task_id"]) for task in self.data.get("tasks") or []}
            return each(lambda index, value: _edge(tasks, value))
        if layout is DEPS_TASKS and name == "kernel_ids":
            return each(self._kernel(cells))
        return never

    def change(self, layout_name: str, elements: Sequence[Span]) -> PossibleChange:
        """Return which changes to the elements of a list can leave a sound capture."""

        def possible(change: str, index: int) -> str:
            if change == EXCHANGED:
                return "several collectors write in any order"
            if layout_name == UPLOADS.name and change == DROPPED:
                return "copies are not counted"
            if layout_name in (PHASES.name, V4_PHASES.name) and change == DROPPED:
                row = _at(self.data, elements[index].path)
                is_empty = row.get("kind") == "release" and row.get("tasks_processed") == 0
                return "a pass that released nothing, which nothing else tells" if is_empty else ""
            if layout_name == DEPS_EDGES.name:
                return "edges are not counted, and several may join a pair" if change in (DROPPED, DUPLICATED) else ""
            return ""

        return possible

    def single(self, key: Path, places: Sequence[Span]) -> Possible:
        """Return which values of a place outside of lists are possible."""
        if key[-1] in ("*", "orchestrator_name"):
            return each(lambda index, value: "a name that nothing else tells" if _is_name(value) else "")
        if key[-1] == "clock_freq_hz":
            frequency = int(self.data["metadata"]["clock_freq_hz"])
            return each(lambda index, value: _is_near(frequency, value))
        return never

    def dispatch_time(self, layout: Layout, name: str, rows: Sequence[int]) -> Possible:
        """Return what holds for the stamps of dispatches: both streams saw each, and a core does one at a time.

        Args:
            layout: the stream.
            name: the cell, by its name in the JSON files.
            rows: the row of each site.
        """
        is_core = layout is AICORE
        if not name.endswith("_cycles"):
            return never
        sides, keys = self.sides[AICORE.name if is_core else AICPU.name], self.of_row[0 if is_core else 1]

        def possible(index: int, value: Value) -> str:
            at = rows[index]
            mine, other = keys[at], (self.dispatch if is_core else self.core).get(keys[at])
            if other is None or not isinstance(value, int):
                return ""
            core = self.core.get(mine, other)
            dispatch = self.dispatch[mine]
            before, after = sides[at]
            wait = core[5] if len(core) > 5 else 0

            def limits(slack: int) -> tuple[float, float]:
                return {
                    "start_cycles": (max(before, dispatch[2] - slack) + wait, core[4]),
                    "end_cycles": (core[3], min(after, dispatch[3] + slack)),
                    "receive_to_start_cycles": (0, core[3] - max(before, dispatch[2] - slack)),
                    "dispatch_cycles": (before, core[3] - wait + slack),
                    "finish_cycles": (core[4] - slack, after),
                }.get(name, (1, 0))

            for slack, reason in ((0, _BETWEEN), (self.tolerance, _NEARLY)):
                low, high = limits(slack)
                if low <= value <= high:
                    return reason
            return ""

        return each(possible)

    def _executions(self) -> list[Execution]:
        types = self.data["metadata"]["core_types"]
        found = []
        for key, row in zip(self.of_row[0], self.data[AICORE.key], strict=True):
            dispatch = self.dispatch.get(key, (0, 0, 0, 0))
            found.append(Execution(row[1], types[row[0]], dispatch[2], dispatch[3]))
        return found

    def _joined_executions(self) -> list[Execution]:
        names = ("task_id", "core_type", "dispatch_time_us", "finish_time_us")
        return [Execution(*(row[name] for name in names)) for row in self.data[V1_TASKS.key]]

    def _phase_time(self, cells: Sequence[_Cell]) -> Callable[[int, Value], str]:
        """Return what holds for the times of phases: those of a thread follow each other, those inside stay inside."""
        name = cells[0].name
        names = name.replace("end_", "start_"), name.replace("start_", "end_")
        factor = 1000 if name.endswith("_us") else 1

        def possible(index: int, value: Value) -> str:
            row = cells[index].row
            thread, at = _at(self.data, row[:-1]), row[-1]
            assert isinstance(at, int)
            assert isinstance(value, int)
            times = [(round(each[names[0]] * factor), round(each[names[1]] * factor)) for each in thread]
            begin, end = times[at]
            mine = (value, end) if name == names[0] else (begin, value)
            rest = [span for place, span in enumerate(times) if place != at]
            first, last = min(span[0] for span in times), max(span[1] for span in times)
            is_apart = all(_stays(mine, times[at], span) for span in rest)
            if not mine[0] <= mine[1] or not is_apart:
                return ""
            if first <= mine[0] and mine[1] <= last:
                return _BETWEEN
            return _OUTERMOST if mine[1] - mine[0] <= 2 * max(end - begin for begin, end in times) else ""

        return possible

    def _joined_time(self, cells: Sequence[_Cell]) -> Callable[[int, Value], str]:
        """Return what holds for the times of v1, where an element has those of both streams."""
        name = cells[0].name
        rows = self.data[V1_TASKS.key]

        def possible(index: int, value: Value) -> str:
            at = cells[index].row[-1]
            assert isinstance(at, int)
            made = {**rows[at], name: int(value) / 1000}
            order = [made[each] for each in _V1_ORDER if made.get(each)]
            others = [row for place, row in enumerate(rows) if place != at and row["core_id"] == made["core_id"]]
            is_apart = all(
                made["end_time_us"] <= row["start_time_us"] or row["end_time_us"] <= made["start_time_us"]
                for row in others
            )
            is_near = 0 <= int(value) / 1000 <= max(row["end_time_us"] for row in rows)
            return _BETWEEN if order == sorted(order) and is_apart and is_near else ""

        return possible

    def _rising(self, cells: Sequence[_Cell]) -> Callable[[int, Value], str]:
        """Return what holds for numbers that never fall within a thread."""
        name = cells[0].name

        def possible(index: int, value: Value) -> str:
            row = cells[index].row
            thread, at = _at(self.data, row[:-1]), row[-1]
            assert isinstance(at, int)
            before = thread[at - 1].get(name, 0) if at else 0
            after = thread[at + 1].get(name, before) if at + 1 < len(thread) else None
            if not isinstance(value, int) or value < before:
                return ""
            if after is not None:
                return "a number between those before and after it" if value <= after else ""
            # The iterations of a thread; submissions are numbered without gaps.
            passed = _begin(thread[at]) - _begin(thread[at - 1]) if at and name == "loop_iter" else 0
            return _LAST_NUMBER if value - before <= passed else ""

        return possible

    def _kind(self, cells: Sequence[_Cell]) -> Callable[[int, Value], str]:
        def possible(index: int, value: Value) -> str:
            row = _at(self.data, cells[index].row)
            known, was = PHASE_KINDS.get(_text(value)), PHASE_KINDS.get(str(row.get(cells[index].name)))
            fits = (
                known is not None and was is not None and (known.role, known.has_depths) == (was.role, was.has_depths)
            )
            return "another kind of phase that may stand there" if fits else ""

        return possible

    def _processed(self, cells: Sequence[_Cell]) -> Callable[[int, Value], str]:
        """Return what holds for counts of phases: work of kinds that no other record shows may be any number."""

        def possible(index: int, value: Value) -> str:
            row = _at(self.data, cells[index].row)
            kind = row.get("kind", row.get("phase"))
            return _PAYLOADS["pop_hit"] if kind not in _SHOWN_KINDS and _is_count(value) else ""

        return possible

    def _kernel(self, cells: Sequence[_Cell]) -> Callable[[int, Value], str]:
        """Return what holds for the functions of a task: another one of that type of core, with or without a name."""

        def possible(index: int, value: Value) -> str:
            path = cells[index].span.path
            before = _at(self.data, path)
            slots = (0,) if path[-1] else (1, 2)
            others = {task["kernel_ids"][slot] for task in self.data["tasks"] for slot in slots}
            fits = isinstance(value, int) and 0 <= value < _FUNCTIONS and value not in others
            return "another function of that type of core" if before >= 0 and fits else ""

        return possible


def _keys(rows: Sequence[Any], layout: Layout) -> list[tuple[int, ...]]:
    """Return what joins the rows of both streams: core and dispatch counter, and the run in v4."""
    counter = 2 if layout is AICORE else 1
    epoch = [cell.name for cell in layout.cells].index("run_epoch")
    return [(row[0], row[counter], *row[epoch : epoch + 1]) for row in rows]


def _sides(rows: Sequence[Any], lanes: Sequence[Any], begin: int, end: int) -> dict[int, tuple[int, int]]:
    """Return for each row the end of the one before it on its core and the begin of the one after it."""
    # Nothing came before the first one of a core, or after its last one.
    first, last = 0, 1 << 62
    found: dict[int, tuple[int, int]] = {}
    for lane in set(lanes):
        mine = sorted((index for index in range(len(rows)) if lanes[index] == lane), key=lambda at: rows[at][begin])
        for place, index in enumerate(mine):
            before = rows[mine[place - 1]][end if begin == 3 else begin] if place else first
            after = rows[mine[place + 1]][begin if begin == 3 else end] if place + 1 < len(mine) else last
            found[index] = before, after
    return found


def _begin(row: Any) -> int:
    """Return when a phase began, in cycles or nanoseconds."""
    return int(row["start_cycles"]) if "start_cycles" in row else round(row["start_time_us"] * 1000)


def _relation(one: tuple[int, int], other: tuple[int, int]) -> str:
    """Return how two spans lie: apart, one inside the other, or across."""
    if one[1] <= other[0]:
        return "before"
    if other[1] <= one[0]:
        return "after"
    if other[0] <= one[0] and one[1] <= other[1]:
        return "inside"
    return "around" if one[0] <= other[0] and other[1] <= one[1] else "across"


def _stays(one: tuple[int, int], before: tuple[int, int], other: tuple[int, int]) -> bool:
    """Return whether a span lies to another as it did; what it was around, a moment too, it may begin or end with."""
    is_around = one[0] <= other[0] and other[1] <= one[1]
    return _relation(one, other) == _relation(before, other) or (is_around and _relation(before, other) == "around")


def _edge(tasks: set[int], value: Value) -> str:
    number = _text(value)
    return "another task of the graph" if number.isdigit() and int(number) in tasks else ""


def _text(value: Value) -> str:
    return str(value) if isinstance(value, int) else value.decode(errors="replace").strip('"')


def _is_near(frequency: int, value: Value) -> str:
    is_near = isinstance(value, int) and abs(value - frequency) * _FREQUENCY_TOLERANCE <= frequency
    return "within what counters of a chip differ" if is_near else ""


def _is_count(value: Value) -> bool:
    return value in (b"true", b"false") or (isinstance(value, int) and 0 <= value < 1 << 32)


def _is_depth(value: Value) -> bool:
    return isinstance(value, int) and 0 <= value <= _MOST_DEPTH


def _is_name(value: Value) -> bool:
    return isinstance(value, bytes) and value[1:-1].isascii() and b"\\" not in value
