"""Attributed records -> the rows of the timeline."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.asof_join import Int64, Mask, join, pick
from lanescope.common.coverage import evidence_spans, extremes
from lanescope.common.distinct import distinct
from lanescope.devices.levelzero.emit.device_tracks import Lanes, Queues
from lanescope.devices.levelzero.emit.host_tracks import Hosts
from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.event_model import is_text
from lanescope.devices.levelzero.interpret.resolved import Attributed
from lanescope.trace import TraceBuilder
from lanescope.trace.schema import QUALITIES

#: Places in ``layout.MEMORIES`` plus 1, and 0 for none.
_MEMORY_LETTERS = ("", *(layout.MEMORY_LETTERS[memory] for memory in layout.MEMORIES))


class Timeline:
    """Draws attributed records into a builder.

    Args:
        builder: where to; its time counts from ``zero``.
        found: what to draw.
        zero: ns that the builder's times count from, on the clock of the records.
        input_id: the input that it came from.
    """

    def __init__(self, builder: TraceBuilder, found: Attributed, *, zero: int, input_id: int) -> None:
        self.builder, self.found, self.zero, self.input_id = builder, found, zero, input_id

    def draw(self, is_complete: Mask | None = None) -> None:
        """Append all rows, and what was noticed on the way.

        Args:
            is_complete: bool [threads], whether the recorder guarantees that no record is missing at the end of a
                thread; None: of none.
        """
        self.hosts = Hosts(self.builder, self.found, zero=self.zero, input_id=self.input_id)
        queues = Queues(self.builder, self.found, zero=self.zero, input_id=self.input_id)
        self.lanes: Lanes = queues.lanes()
        self.found.operations.notes.emit(self.builder, None, zero=self.zero)
        if len(self.found.operations.append):
            self._operations()
            self._flows()
            self._loads()
        if len(self.found.events["host_waits"]):
            self._host_waits()
        self._launched(queues)
        if len(self.found.events["samplings"]):
            from lanescope.devices.levelzero.emit.telemetry import Telemetry

            Telemetry(self.builder, self.found, queues, zero=self.zero, input_id=self.input_id).draw()
        self._recorder()
        threads = len(self.found.events["threads"])
        self._coverage(np.zeros(threads, np.bool_) if is_complete is None else is_complete)

    def _launched(self, queues: Queues) -> None:
        """Append operations of CUDA and OpenCL."""
        made = self.found.launched
        if made is None:
            return
        made.notes.emit(self.builder, None, zero=self.zero)
        if len(made.launch):
            from lanescope.devices.levelzero.emit.launch_tracks import LaunchTracks

            where = {"zero": self.zero, "input_id": self.input_id}
            LaunchTracks(self.builder, self.found, made, self.hosts, queues, **where).draw()

    # --- operations ---------------------------------------------------------------------------------------------

    def _operations(self) -> None:
        times, operations, builder = self.found.times, self.found.operations, self.builder
        shift = self.found.base - self.zero
        names = self._names()
        table = self.found.events["appends"]
        quality = builder.dictionary("slices", "quality").codes(QUALITIES)[times.quality]
        kinds = builder.categories.codes(_texts(table, "kind"))
        harvest = self.found.events["results"].values("ts")[operations.result] - self.zero
        begin = times.begin + shift
        first = builder.append(
            "slices",
            track_id=self.lanes.track,
            ts=begin,
            dur=times.end - times.begin,
            dur_valid=times.has_length,
            ts_ticks=times.ticks,
            ts_ticks_valid=times.has_ticks,
            dur_ticks=times.length,
            dur_ticks_valid=times.has_ticks & times.has_length,
            name=names,
            category=kinds[table.codes("kind")[operations.append]],
            quality=quality,
            flags=times.flags,
            last_known_ts=np.maximum(harvest, begin),
            last_known_ts_valid=times.error,
        )
        self.slices: Int64 = first + np.arange(len(begin))
        self._details(harvest)

    def _names(self) -> npt.NDArray[np.int32]:
        """Return the name of each operation as a code: the kernel's, else the function's with the memory it touches."""
        found, builder = self.found, self.builder
        append, table = found.operations.append, found.events["appends"]
        functions = _texts(table, "function")
        # A few combinations of function and memory stand for all operations.
        width = len(_MEMORY_LETTERS)
        combination = table.codes("function").astype(np.int64) * width * width
        combination += found.appends.src.astype(np.int64) * width + found.appends.dst
        combination = combination[append]
        codes = np.zeros(len(functions) * width * width, np.int32)
        for number in np.flatnonzero(np.bincount(combination, minlength=len(codes))).tolist():
            function, src, dst = number // width // width, number // width % width, number % width
            codes[number] = builder.names.code(operation_name(functions[function], src, dst))
        names = codes[combination]
        kernels = found.events["kernels"]
        is_kernel = is_text(table, "kind", layout.KERNEL)[append]
        row = self._kernel_row("row_name")[append]
        named = np.flatnonzero(is_kernel & (row >= 0))
        names[named] = builder.names.codes(_texts(kernels, "name"))[kernels.codes("name")[row[named]]]
        unnamed = np.flatnonzero(is_kernel & (row < 0))
        if len(unnamed):
            first = int(found.times.submit[unnamed[0]]) + found.base - self.zero
            builder.add_stat("levelzero_unnamed_kernel", len(unnamed), first_ts=first)
        return names

    def _kernel_row(self, what: str) -> Int64:
        """Return the row of ``kernels`` that says something of the kernel of each Append, int64 [appends], -1: none."""
        known = self.found.appends.kernel
        rows: Int64 = np.append(getattr(self.found.appends.states, what), -1)
        return rows[known]

    def _details(self, harvest: Int64) -> None:
        found, builder, hosts = self.found, self.builder, self.hosts
        events, operations, times = found.events, found.operations, found.times
        table, results, kernels = events["appends"], events["results"], events["kernels"]
        append, result = operations.append, operations.result
        call = found.appends.call[append]
        submit_call = self._submit_calls()
        simd, size = self._kernel_row("row_simd")[append], self._kernel_row("row_group")[append]
        columns: dict[str, Any] = {}

        def put(name: str, values: npt.NDArray[Any], valid: Mask | None = None) -> None:
            columns[name] = values
            if valid is not None:
                columns[f"{name}_valid"] = valid

        def put_text(name: str, source: Any, column: str, rows: Int64) -> None:
            codes = np.append(
                builder.dictionary("levelzero_operations", name).codes(_texts(source, column)), np.int32(0)
            )
            put(name, codes[source.codes(column)[rows]])

        put("slice_id", self.slices)
        put_text("kind", table, "kind", append)
        put_text("function", table, "function", append)
        put("op_id", table.values("op_id")[append], table.valid("op_id")[append])
        put("execution_index", operations.run)
        put("thread_track_id", hosts.threads[table.values("thread_id")[append]])
        put("readback_track_id", hosts.threads[results.values("thread_id")[result]])
        put("append_slice_id", pick(hosts.calls, call), call >= 0)
        put("submit_slice_id", pick(hosts.calls, submit_call), submit_call >= 0)
        put("append_ts", found.appends.begin[append] - self.zero)
        put("submit_ts", times.submit + found.base - self.zero)
        put("readback_ts", harvest)
        put("readback_seq", results.values("seq")[result])
        put("command_list", table.values("list")[append])
        put("ordinal", np.maximum(self.lanes.ordinal, 0), self.lanes.ordinal >= 0)
        put("queue_index", np.maximum(self.lanes.index, 0), self.lanes.index >= 0)
        put("simd", pick(kernels.values("simd"), simd), simd >= 0)
        for axis in "xyz":
            put(f"groups_{axis}", table.values(f"groups_{axis}")[append], table.valid(f"groups_{axis}")[append])
            put(f"group_{axis}", pick(kernels.values(f"group_{axis}"), size), size >= 0)
        put("bytes", table.values("bytes")[append], table.valid("bytes")[append])
        for name, codes in (("dst_memory", found.appends.dst), ("src_memory", found.appends.src)):
            texts = builder.dictionary("levelzero_operations", name).codes(["", *layout.MEMORIES])
            put(name, texts[codes[append]], codes[append] > 0)
        put_text("query_status", results, "status", result)
        put("error", times.error)
        for name in ("global_start", "global_end", "context_start", "context_end"):
            put(name, results.values(name)[result])
        builder.append("levelzero_operations", **columns)
        self._submit_call = submit_call

    def _submit_calls(self) -> Int64:
        """Return the call that gave each operation to the device, int64 [operations], a row of ``Calls`` or -1."""
        found, events = self.found, self.found.events
        calls, runs, table = found.calls, events["runs"], events["calls"]
        given = found.appends.call[found.operations.append]
        executed = np.flatnonzero(found.operations.submit >= 0)
        if len(executed) and len(calls.entry):
            is_execute = np.flatnonzero(is_text(table, "function", *layout.EXECUTES)[calls.entry])
            of_run = join(
                [runs.values("thread_id")],
                runs.values("seq"),
                [table.values("thread_id")[calls.entry[is_execute]]],
                calls.seq[is_execute],
                strict=False,
            ).last_before()
            call = np.append(is_execute, -1)[of_run]
            call[(call >= 0) & (calls.exit_seq[call] < runs.values("seq"))] = -1
            self._note_begins(call)
            given[executed] = call[found.operations.submit[executed]]
        return given

    def _note_begins(self, call: Int64) -> None:
        """Note executions that say they began at another time than their call, int64 [runs], a row of ``Calls``."""
        runs, table = self.found.events["runs"], self.found.events["calls"]
        told = np.flatnonzero((call >= 0) & runs.valid("run"))
        begin = runs.values("ts")[told]
        wrong = begin != table.values("ts")[self.found.calls.entry[call[told]]]
        if wrong.any():
            first = int(begin[wrong][0]) - self.zero
            self.builder.add_stat("levelzero_execution_time", int(wrong.sum()), first_ts=first)

    # --- what joins and adds up ---------------------------------------------------------------------------------

    def _flows(self) -> None:
        """Append arrows from the call that gave each operation to the device, and from the Append where it differs."""
        found = self.found
        call, given = found.appends.call[found.operations.append], self._submit_call
        self._arrows("dispatch", given)
        recorded = np.where(found.operations.submit >= 0, call, -1)
        self._arrows("dependency", recorded)
        self._signals()

    def _signals(self) -> None:
        """Append arrows from operations to those that waited for their events."""
        found, shift = self.found, self.found.base - self.zero
        if not len(found.events["waits"]):
            return
        from lanescope.devices.levelzero.emit.event_waits import event_waits

        source, target = event_waits(found)
        if not len(source):
            return
        self.builder.append(
            "flows",
            kind="signal",
            src_track_id=self.lanes.track[source],
            src_ts=np.maximum(found.times.end, found.times.begin)[source] + shift,
            dst_track_id=self.lanes.track[target],
            dst_ts=found.times.begin[target] + shift,
            src_slice_id=self.slices[source],
            dst_slice_id=self.slices[target],
        )

    def _host_waits(self) -> None:
        """Append what calls waited for, and the operation that ended last of it."""
        from lanescope.devices.levelzero.emit.host_waits import HostWaits

        has_operations = len(self.found.operations.append) > 0
        waits = HostWaits(self.found, self._submit_call if has_operations else np.empty(0, np.int64))
        known = waits.operation >= 0
        codes = self.builder.dictionary("levelzero_waits", "target").codes(_texts(waits.table, "target"))
        self.builder.append(
            "levelzero_waits",
            slice_id=self.hosts.calls[waits.call],
            target=codes[waits.table.codes("target")],
            handle=waits.table.values("handle"),
            operation_slice_id=pick(self.slices, waits.operation) if has_operations else 0,
            operation_slice_id_valid=known,
        )

    def _arrows(self, kind: str, call: Int64) -> None:
        rows = np.flatnonzero(call >= 0)
        if not len(rows):
            return
        found, table = self.found, self.found.events["calls"]
        entry = found.calls.entry[call[rows]]
        self.builder.append(
            "flows",
            kind=kind,
            src_track_id=self.hosts.threads[table.values("thread_id")[entry]],
            src_ts=table.values("ts")[entry] - self.zero,
            dst_track_id=self.lanes.track[rows],
            dst_ts=found.times.begin[rows] + found.base - self.zero,
            src_slice_id=self.hosts.calls[call[rows]],
            dst_slice_id=self.slices[rows],
        )

    def _loads(self) -> None:
        """Append the counters of each device: operations and bytes under way, copies and kernels at the same time."""
        found, table = self.found, self.found.events["appends"]
        times, append = found.times, found.operations.append
        shift = found.base - self.zero
        usable = times.has_length & ~times.error
        size = np.where(table.valid("bytes")[append], table.values("bytes")[append], 0).astype(np.float64)
        is_copy = is_text(table, "kind", layout.COPY, layout.FILL)[append]
        is_kernel = is_text(table, "kind", layout.KERNEL)[append]
        begin, end = times.submit + shift, np.maximum(times.end, times.submit) + shift
        for root in distinct(self.lanes.root).tolist():
            mine = (self.lanes.root == root) & usable
            self._counter(root, "outstanding operations", "1", begin[mine], end[mine], np.ones(int(mine.sum())))
            moving = mine & (size > 0)
            if moving.any():
                self._counter(root, "bytes in flight", "bytes", begin[moving], end[moving], size[moving])
            copies, kernels = mine & is_copy, mine & is_kernel
            if copies.any() and kernels.any():
                self._overlap(root, copies, kernels)

    def _counter(
        self, root: int, name: str, unit: str, begin: Int64, end: Int64, weight: npt.NDArray[np.float64]
    ) -> None:
        ts, value = steps(begin, end, weight)
        track = self._counter_track(root, name, unit)
        self.builder.append("counters", track_id=track, ts=ts, value=value)

    def _counter_track(self, root: int, name: str, unit: str) -> int:
        return self.builder.track(name, kind="counter", role="counter", parent=root, input_id=self.input_id, unit=unit)

    def _overlap(self, root: int, copies: Mask, kernels: Mask) -> None:
        times, shift = self.found.times, self.found.base - self.zero
        spans = [(times.begin[rows] + shift, times.end[rows] + shift) for rows in (copies, kernels)]
        ts, value = both(*spans[0], *spans[1])
        if len(ts):
            track = self._counter_track(root, "copies and kernels at once", "1")
            self.builder.append("counters", track_id=track, ts=ts, value=value)

    # --- what the recorder says of itself -----------------------------------------------------------------------

    def _recorder(self) -> None:
        """Append what the recorder gave up, on a lane of its process."""
        events, builder = self.found.events, self.builder
        losses, degradations = events["losses"], events["degradations"]
        tracks: dict[int, int] = {}

        def track_of(processes: list[int]) -> Int64:
            for process in processes:
                if process not in tracks:
                    parent = self.hosts.processes[process]
                    tracks[process] = builder.track(
                        "recorder", kind="lane", role="recorder", parent=parent, input_id=self.input_id
                    )
            return np.array([tracks[process] for process in processes], np.int64)

        if len(losses):
            names = np.array([f"lost: {text}" if text else "lost" for text in losses.values("reason").tolist()], object)
            ts = losses.values("ts") - self.zero
            builder.append("instants", track_id=track_of(events.process("losses").tolist()), ts=ts, name=names.tolist())
            undrained = is_text(losses, "reason", layout.NOT_DRAINED)
            ambiguous = np.any([is_text(losses, "reason", reason) for reason in layout.AMBIGUOUS], axis=0)
            for name, which in (
                ("levelzero_unsynchronized", undrained),
                ("levelzero_result_ambiguous", ambiguous),
                ("levelzero_result_abandoned", ~undrained & ~ambiguous),
            ):
                if which.any():
                    builder.add_stat(name, int(which.sum()), input_id=self.input_id, first_ts=int(ts[which][0]))
        if len(degradations):
            ts = degradations.values("ts") - self.zero
            names = np.array(
                [
                    f"{reason} ({scope} {number})"
                    for reason, scope, number in zip(
                        degradations.values("reason").tolist(),
                        degradations.values("scope").tolist(),
                        degradations.values("number").tolist(),
                        strict=True,
                    )
                ],
                object,
            )
            builder.append(
                "instants", track_id=track_of(events.process("degradations").tolist()), ts=ts, name=names.tolist()
            )
            # Those of one reason are counted one by one, as operations.
            prologue = is_text(degradations, "reason", layout.PROLOGUE)
            others = ~is_text(degradations, "reason", layout.NO_RESET) & ~prologue
            for name, which in (("levelzero_prologue", prologue), ("levelzero_degraded", others)):
                if which.any():
                    count = int(degradations.values("count")[which].sum())
                    builder.add_stat(name, count, first_ts=int(ts[which][0]))
        if len(losses):
            recorded = len(events["results"])
            builder.add_dropped(
                unit="result", unit_bytes=1, recorded=recorded, dropped=len(losses), input_id=self.input_id
            )

    def _coverage(self, is_complete: Mask) -> None:
        """Append the time for which each lane was recorded.

        Evidence for a thread are its own records. A queue has no recorder of its own: what it runs is recorded by the
        threads of its process, so a record of any of them is evidence for it, and so is the end of an operation.
        """
        found, events = self.found, self.found.events
        process_of = events["threads"].values("process_id").astype(np.int64)
        tables = [table for table in events.values() if {"ts", "thread_id"} <= set(table.spec.names) and len(table)]
        thread, seen = extremes(len(process_of), [(table.values("thread_id"), table.values("ts")) for table in tables])
        seen -= self.zero
        ends = found.times.end + found.base - self.zero
        end = max(int(ends.max(initial=0)), int(seen.max(initial=found.base - self.zero)))
        threads = evidence_spans(
            self.hosts.threads, self.hosts.threads[thread], seen, start=0, end=end, is_complete=is_complete
        )
        self.builder.add_coverage(*threads)
        queues, first = np.unique(self.lanes.track, return_index=True)
        if not len(queues):
            return
        owner = events.process("appends")[found.operations.append[first]]
        is_open = np.zeros(len(events["processes"]), np.bool_)
        is_open[process_of[~is_complete]] = True
        last = np.full(len(is_open), np.iinfo(np.int64).min)
        np.maximum.at(last, process_of[thread], seen)
        evidence = np.concatenate([self.lanes.track, queues]), np.concatenate([ends, last[owner]])
        spans = evidence_spans(queues, *evidence, start=0, end=end, is_complete=~is_open[owner])
        self.builder.add_coverage(*spans)


def operation_name(function: str, src: int, dst: int) -> str:
    """Return the name of an operation other than a kernel: ``zeCommandListAppendMemoryCopy(S2D)``.

    Args:
        function: name of the function.
        src: place in ``layout.MEMORIES`` plus 1 of the memory read, 0: none.
        dst: the same of the memory written.

    Example:
        >>> operation_name("zeCommandListAppendMemoryFill", 0, 2)
        'zeCommandListAppendMemoryFill(D)'
    """
    if not dst:
        return function
    source = f"{_MEMORY_LETTERS[src]}2" if src else ""
    return f"{function}({source}{_MEMORY_LETTERS[dst]})"


def steps(begin: Int64, end: Int64, weight: npt.NDArray[np.float64]) -> tuple[Int64, npt.NDArray[np.float64]]:
    """Return how much is under way over time: the times at which it changes, and the sum from there on.

    Args:
        begin: int64 [n].
        end: int64 [n], not before ``begin``.
        weight: float64 [n], what each adds while it lasts.

    Returns:
        int64 [m] times, rising; float64 [m] sums.
    """
    ts = np.concatenate([begin, end])
    # Mostly in order in long runs, which are merged.
    order = np.argsort(ts, kind="stable")
    ts = ts[order]
    total = np.cumsum(np.concatenate([weight, -weight])[order])
    last = np.append(ts[1:] != ts[:-1], True) if len(ts) else np.empty(0, np.bool_)
    return ts[last], np.maximum(total[last], 0.0)


def both(begin: Int64, end: Int64, other_begin: Int64, other_end: Int64) -> tuple[Int64, npt.NDArray[np.float64]]:
    """Return when intervals of two sets run at the same time: times of change, and 1.0 while they do.

    Args:
        begin: int64 [n], of the first set.
        end: int64 [n].
        other_begin: int64 [m], of the second.
        other_end: int64 [m].
    """
    ts = np.concatenate([begin, end, other_begin, other_end])
    one = np.zeros(len(ts), np.int64)
    one[: len(begin)], one[len(begin) : 2 * len(begin)] = 1, -1
    other = np.zeros(len(ts), np.int64)
    other[2 * len(begin) : 2 * len(begin) + len(other_begin)] = 1
    other[2 * len(begin) + len(other_begin) :] = -1
    order = np.argsort(ts, kind="stable")
    ts = ts[order]
    running = (np.cumsum(one[order]) > 0) & (np.cumsum(other[order]) > 0)
    last = np.append(ts[1:] != ts[:-1], True)
    ts, running = ts[last], running[last]
    changes = np.diff(running.astype(np.int8), prepend=np.int8(0)) != 0
    return ts[changes], running[changes].astype(np.float64)


def _texts(table: Any, column: str) -> list[str]:
    dictionary = table.column(column).dictionary
    return list(dictionary.texts) if dictionary else []
