"""What ``check`` examines traces of the PyTorch profiler for, beyond what it does for all traces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.common.intervals import Intervals, Ints, order, partially_overlapping
from lanescope.families.rules import Rule, RuleContext, Violation
from lanescope.foreign.kineto.analysis import device_rows
from lanescope.foreign.kineto.analysis.clock_contradictions import contradictions
from lanescope.foreign.kineto.analysis.configurations import (
    graph_contradictions,
    group_contradictions,
    launch_contradictions,
)
from lanescope.foreign.kineto.analysis.stream_overlap import stream_overlaps
from lanescope.foreign.kineto.formats import layout
from lanescope.foreign.kineto.interpret.classes import LAUNCH
from lanescope.trace import Trace

#: So many launches at the begin of the record without execution are no accident.
_HEAD = 5
#: No link between host and device is faster, and no memory of a device, in bytes a ns.
_LINK_LIMIT, _MEMORY_LIMIT = 1_000, 20_000
#: How far the bandwidth of the producer may be off what size and duration give.
_BANDWIDTH_SHARE = 0.02
_LONGEST_QUOTE = 160
_NO_ID = np.iinfo(np.int64).min


def _texts(trace: Trace, column: str) -> list[str]:
    found = trace.slices.column(column).dictionary
    return list(found.texts) if found is not None else []


def _table(trace: Trace, column: str, fits: Any) -> npt.NDArray[np.bool_]:
    """Return which slices have a text that fits, bool [slices]."""
    known = np.array([*(bool(fits(text)) for text in _texts(trace, column)), False], np.bool_)
    found: npt.NDArray[np.bool_] = known[trace.slices.column(column).values]
    return found


def _is_work(trace: Trace) -> npt.NDArray[np.bool_]:
    return device_rows.rows_of(trace, layout.KERNELS | layout.COPIES)


def _log_errors(context: RuleContext) -> Iterator[Violation]:
    log = context.trace.details.get("kineto_log")
    if log is None or not len(log):
        return
    messages = [row["message"] for row in log.rows() if row["level"] == "ERROR"]
    if messages:
        quote = " ".join(messages[0].split())
        quote = quote if len(quote) <= _LONGEST_QUOTE else quote[: _LONGEST_QUOTE - 3] + "..."
        yield Violation(detail=f"the first: {quote}", table="inputs", count=len(messages), input_id=0)


def _overlap(context: RuleContext) -> Iterator[Violation]:
    for found in stream_overlaps(context.trace):
        share = found.excess_ns / found.lane_ns
        yield Violation(
            detail=f"{found.excess_ns} ns run into the next row, {share:.1%} of the {found.lane_ns} ns of the stream",
            rows=found.rows,
            track_id=found.track_id,
            ts=int(context.trace.slices.values("ts")[found.rows[0]]),
        )


def _clamped(context: RuleContext) -> Iterator[Violation]:
    slices = context.trace.slices
    empty = slices.valid("dur") & (slices.values("dur") == 0) & _is_work(context.trace)
    yield from context.violations("slices", np.flatnonzero(empty), lambda _: "negative durations are written as 0")


def _crossing(context: RuleContext) -> Iterator[Violation]:
    trace = context.trace
    slices, tracks = trace.slices, trace.tracks
    is_free = (tracks.values("nesting") == "free") & device_rows.lanes_of_profiler(trace)
    work = device_rows.rows_of(trace, device_rows.ALL)
    lane = slices.values("track_id")
    rows = np.flatnonzero(is_free[lane] & ~work & slices.valid("dur") & (slices.values("dur") > 0))
    if not len(rows):
        return
    ts = slices.values("ts")[rows]
    extents = Intervals(lane[rows], ts, ts + slices.values("dur")[rows])
    sort = order(*extents)
    some = sort[partially_overlapping(extents.take(sort))]
    found = rows[some[_reaching_beyond(extents.take(some))]]
    yield from context.violations("slices", found, lambda ids: "rows end after the row that they start in")


def _reaching_beyond(extents: Intervals) -> list[int]:
    """Return which of the sorted rows end after the innermost row of their lane that they start in."""
    found = []
    open_until: list[int] = []
    lane = -1
    for row, (group, begin, end) in enumerate(zip(*(part.tolist() for part in extents), strict=True)):
        if group != lane:
            open_until, lane = [], group
        while open_until and open_until[-1] <= begin:
            open_until.pop()
        if open_until and open_until[-1] < end:
            found.append(row)
        open_until.append(end)
    return found


def _outside(context: RuleContext) -> Iterator[Violation]:
    trace = context.trace
    coverage, slices = trace.coverage, trace.slices
    lanes, inputs = device_rows.lanes_of_profiler(trace), trace.tracks.values("input_id")
    of_slice = np.where(lanes, inputs, -1)[slices.values("track_id")]
    of_row = np.where(lanes, inputs, -1)[coverage.values("track_id")]
    last = slices.values("ts") + np.where(slices.valid("dur"), slices.values("dur"), 0)
    for number in distinct(of_row[of_row >= 0]).tolist():
        mine = of_row == number
        begin = int(coverage.values("ts")[mine].min())
        end = int((coverage.values("ts") + coverage.values("dur"))[mine].max())
        beyond = np.where(of_slice == number, np.maximum(last - end, begin - slices.values("ts")), 0)
        yield from _beyond(context, beyond, begin, end)


def _beyond(context: RuleContext, beyond: Ints, begin: int, end: int) -> Iterator[Violation]:
    """Yield the rows of one file that are not within its record; ``beyond``: by how much, int64 [slices]."""

    def detail(rows: Ints) -> str:
        return f"up to {int(beyond[rows].max())} ns outside of the {end - begin} ns that were recorded"

    for found in context.violations("slices", np.flatnonzero(beyond > 0), detail):
        is_far = int(beyond[found.rows].max()) > end - begin
        yield Violation(
            detail=found.detail,
            rows=found.rows,
            severity="warning" if is_far else None,
            track_id=found.track_id,
            ts=found.ts,
        )


def _clocks(context: RuleContext) -> Iterator[Violation]:
    found = contradictions(context.trace)
    rows = distinct(np.concatenate([found.early, found.late]))
    if len(rows):
        ts = context.trace.slices.values("ts")[rows]
        first = int(np.argmin(ts))
        yield Violation(
            detail=found.words,
            rows=rows,
            track_id=int(context.trace.slices.values("track_id")[rows[first]]),
            ts=int(ts[first]),
        )


def _unexecuted(context: RuleContext) -> Iterator[Violation]:
    trace = context.trace
    slices, flows = trace.slices, trace.flows
    if not _is_work(trace).any():
        return
    is_call = _table(trace, "category", lambda text: text in layout.RUNTIME)
    launches = np.flatnonzero(is_call & _table(trace, "name", lambda text: LAUNCH.fullmatch(text) is not None))
    launches = launches[np.argsort(slices.values("ts")[launches], kind="stable")]
    executed = np.isin(launches, flows.values("src_slice_id")[flows.column("kind").texts == "submit"])
    missing = np.flatnonzero(~executed)
    there = np.flatnonzero(executed)
    first, last = (int(there[0]), int(there[-1])) if len(there) else (len(launches), -1)
    # Those before the first call that was executed are the head, those after the last one the tail.
    for words, mine in (
        ("at the start of the record", missing[missing < first]),
        ("at the end of the record", missing[(missing > last) & (missing >= first)]),
        ("between others that were executed", missing[(missing > first) & (missing < last)]),
    ):
        if len(mine):
            rows = launches[mine]
            is_head = words.endswith("start of the record") and len(mine) >= _HEAD
            yield Violation(
                detail=f"{len(mine)} of {len(launches)} launches, {words}",
                rows=rows,
                severity="warning" if is_head else None,
                track_id=int(slices.values("track_id")[rows[0]]),
                ts=int(slices.values("ts")[rows[0]]),
            )


def _repeated(context: RuleContext) -> Iterator[Violation]:
    trace = context.trace
    flows = trace.flows
    mine = np.flatnonzero(flows.column("kind").texts == "submit") if len(flows) else np.empty(0, np.int64)
    call, work = flows.values("src_slice_id")[mine], flows.values("dst_slice_id")[mine]
    is_one = ~_table(trace, "name", lambda text: "Graph" in text)[call] & _is_work(trace)[work]
    call, work = call[is_one], work[is_one]
    numbers, count = np.unique(call, return_counts=True)
    rows = np.sort(work[np.isin(call, numbers[count > 1])])
    yield from context.violations("slices", rows, lambda ids: f"{len(ids)} rows of calls that launch one each")


def _operators(context: RuleContext) -> Iterator[Violation]:
    """Compare the External id of each call with that of the device rows that it started."""
    trace = context.trace
    flows, ops = trace.flows, trace.details.get("kineto_ops")
    if not len(flows) or ops is None or not len(ops):
        return
    mine = flows.column("kind").texts == "submit"
    call, work = flows.values("src_slice_id")[mine], flows.values("dst_slice_id")[mine]
    number = np.full(len(trace.slices), _NO_ID, np.int64)
    has = ops.valid("external_id")
    number[ops.values("slice_id")[has]] = ops.values("external_id")[has]
    is_known = (number[call] != _NO_ID) & (number[work] != _NO_ID)
    rows = np.sort(work[is_known & (number[call] != number[work])])
    yield from context.violations("slices", rows, lambda ids: f"{len(ids)} device rows")


def _bandwidth(context: RuleContext) -> Iterator[Violation]:
    trace = context.trace
    copies = trace.details.get("kineto_copies")
    if copies is None or not len(copies):
        return
    slices = trace.slices
    row = copies.values("slice_id")
    size, told = copies.values("bytes").astype(np.float64), copies.values("bandwidth")
    dur = slices.values("dur")[row].astype(np.float64)
    usable = copies.valid("bytes") & slices.valid("dur")[row] & (dur > 0) & _is_work(trace)[row]
    rate = np.divide(size, dur, out=np.zeros(len(row)), where=usable)
    is_link = _table(
        trace, "name", lambda text: "HtoD" in text or "DtoH" in text or "HostToDevice" in text or "DeviceToHost" in text
    )[row]
    too_fast = usable & (rate > np.where(is_link, _LINK_LIMIT, _MEMORY_LIMIT))
    # Of times in whole microseconds each end may be off by one.
    grain = 1000 if not (slices.values("dur") % 1000).any() else 1
    low, high = size / (dur + grain), np.divide(size, dur - grain, out=np.full(len(row), np.inf), where=dur > grain)
    is_told = usable & copies.valid("bandwidth") & (told > 0)
    differs = is_told & ((told < low * (1 - _BANDWIDTH_SHARE)) | (told > high * (1 + _BANDWIDTH_SHARE)))
    words = (
        ("faster than any link or memory", too_fast),
        ("not of the bandwidth that the producer gives", differs & ~too_fast),
    )
    for text, mask in words:
        yield from context.violations("slices", np.sort(row[mask]), lambda ids, text=text: f"{len(ids)} copies {text}")  # type: ignore[misc]


RULES = (
    Rule(
        "KINETO001",
        "errors of the profiler",
        "notice",
        "The profiler wrote errors into the log that is part of the file. Rows may be missing or have wrong times.",
        "Read them in the table kineto_log.",
        _log_errors,
    ),
    Rule(
        "KINETO101",
        "overlap on a stream",
        "warning",
        "Rows of a stream run one after the other, but some end after the next one started, by more than 5 us. Nodes "
        "of a graph, and kernels that may start early (compute capability 9 and above), are not counted. The duration "
        "of the named rows is wrong.",
        "Exclude these rows from totals of the stream. Report them to the producer together with the file.",
        _overlap,
    ),
    Rule(
        "KINETO102",
        "empty device row",
        "notice",
        "The producer writes a negative duration as 0. A kernel or copy of no length has wrong timestamps.",
        "Do not use the duration of these rows.",
        _clamped,
    ),
    Rule(
        "KINETO103",
        "crossing host rows",
        "notice",
        "Rows of one thread and kind are a stack, but some end inside another one that began later. Two readings of "
        "the clock are apart, or the rows belong to different threads.",
        "Do not derive parents of these rows from their times.",
        _crossing,
    ),
    Rule(
        "KINETO104",
        "rows outside of the record",
        "notice",
        "Rows start before the profiler did, or end after it ended. It is a warning if they end later by more than the "
        "length of the record: their times are wrong.",
        "Exclude these rows from totals.",
        _outside,
    ),
    Rule(
        "KINETO201",
        "device time contradicts host time",
        "warning",
        "Device rows start before the call that launched them, or end after a call returned that had waited for them. "
        "The producer converted the clock of the device with an error.",
        "Do not compare times of host and device at a finer scale than the shift that the finding names.",
        _clocks,
    ),
    Rule(
        "KINETO202",
        "launches without execution",
        "notice",
        "Calls that start device work have no row of it. The producer drops rows outside of its window and does not "
        "count them; fills of no bytes start nothing. It is a warning if all launches at the start of the record "
        "lack it.",
        "Run a few warm-up steps before the record starts, so that the device activities are enabled in time.",
        _unexecuted,
    ),
    Rule(
        "KINETO203",
        "several rows for one launch",
        "warning",
        "A call that launches one kernel or copy has several rows. Correlations were given twice, so launches and "
        "their rows may be joined wrongly.",
        "Do not use the flows of these rows.",
        _repeated,
    ),
    Rule(
        "KINETO204",
        "device rows of another operator than their call",
        "warning",
        "The External id, which names the operator, differs between a call and the device row of its correlation. The "
        "profiler writes the same one into both. The call, the row, or their correlation is wrong.",
        "Do not assign the time of these rows to operators.",
        _operators,
    ),
    Rule(
        "KINETO205",
        "device rows of another graph than their launch",
        "notice",
        "The rows of one launch are nodes of one graph, but some name another graph than most of them. The graph or "
        "the correlation of these rows is wrong.",
        "Do not assign these rows to nodes of a graph.",
        graph_contradictions,
    ),
    Rule(
        "KINETO401",
        "impossible bandwidth",
        "warning",
        "A copy is faster than 1 TB/s between host and device, or 20 TB/s within a device. Or its size and duration "
        "contradict the recorded bandwidth. Its size or its duration is wrong.",
        "Exclude these rows from totals.",
        _bandwidth,
    ),
    Rule(
        "KINETO402",
        "impossible launch configuration",
        "warning",
        "Blocks and warps on an SM follow from grid, block and the number of SMs of the device, but differ from what "
        "the row has. Or the occupancy is above 100 percent. One of these arguments is wrong.",
        "Do not use the launch configuration of these rows.",
        launch_contradictions,
    ),
    Rule(
        "KINETO403",
        "groups contradict their sizes",
        "warning",
        "The rank of the file is not below the number of ranks, or a process group lists more or fewer ranks than its "
        "size. Or a collective lists other ranks than its group, or (a notice) has another description of it. The "
        "description of the run or the arguments of a collective are wrong.",
        "Do not join this file with those of other ranks before it is clear which one it is.",
        group_contradictions,
    ),
)
