"""The host's side of the timeline: hosts over processes over threads, and the calls on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from lanescope.common.asof_join import Int64
from lanescope.devices.levelzero.formats.event_model import thread_name
from lanescope.devices.levelzero.interpret.call_matching import is_error
from lanescope.devices.levelzero.interpret.resolved import Attributed
from lanescope.devices.levelzero.schema import ARGUMENT_DETAILS
from lanescope.trace import Flag, TraceBuilder

#: So far may the clock of a thread step when it is read anew.
_CLOCK_STEP_NS = 1000


class Hosts:
    """Draws the host's side.

    Args:
        builder: where to; its time counts from ``zero``.
        found: what to draw.
        zero: ns that the builder's times count from, on the clock of the records.
        input_id: the input that it came from.

    Attributes:
        processes: track of each process, by row.
        threads: int64 [threads], track of each thread.
        calls: int64 [calls], slice of each row of ``Calls``.
    """

    def __init__(self, builder: TraceBuilder, found: Attributed, *, zero: int, input_id: int) -> None:
        self._builder, self._found, self._zero = builder, found, zero
        self.processes: list[int] = []
        self.threads = self._tracks(input_id)
        self.calls = self._calls()

    def _tracks(self, input_id: int) -> Int64:
        events, builder = self._found.events, self._builder
        processes, threads = events["processes"], events["threads"]
        hosts: dict[str, int] = {}
        rank = {row["process_id"]: int(row["rank"]) for row in events["ranks"].rows()}
        rows = zip(processes.values("host").tolist(), processes.values("pid").tolist(), strict=True)
        for number, (host, pid) in enumerate(rows):
            name = f"rank {rank[number]}, process {pid}" if number in rank else f"process {pid}"
            name = name if pid >= 0 else "all processes"
            if host not in hosts:
                hosts[host] = builder.track(host, kind="group", role="host", input_id=input_id)
            self.processes.append(
                builder.track(name, kind="group", role="process", parent=hosts[host], input_id=input_id)
            )
        tracks = [
            builder.track(name, kind="lane", role="host_thread", parent=parent, input_id=input_id, nesting="nested")
            for name, parent in self._lanes()
        ]
        if tracks:
            of = threads.values("process_id")
            builder.append(
                "levelzero_threads",
                track_id=np.array(tracks, np.int64),
                host=processes.values("host")[of],
                pid=processes.values("pid")[of],
                tid=threads.values("tid"),
                rank=np.array([rank.get(process, 0) for process in of.tolist()], np.int64),
                rank_valid=np.array([process in rank for process in of.tolist()], np.bool_),
            )
        return np.array(tracks, np.int64)

    def _lanes(self) -> Iterator[tuple[str, int]]:
        """Yield name and parent of the lane of each row of ``threads``."""
        events = self._found.events
        threads = events["threads"]
        samplers = set(events["samplings"].values("thread_id").tolist())
        seen: Counter[tuple[int, int]] = Counter()
        rows = zip(threads.values("process_id").tolist(), threads.values("tid").tolist(), strict=True)
        for number, (process, tid) in enumerate(rows):
            # Those of a thread behind its own are of events and domains of ITT.
            lane = seen[process, tid]
            seen[process, tid] += 1
            more = " (recorder's sampler)" if number in samplers else f", ITT {lane}" if lane else ""
            yield thread_name(tid) + more, self.processes[process]

    def _calls(self) -> Int64:
        events, calls, builder = self._found.events, self._found.calls, self._builder
        table, count = events["calls"], len(calls.entry)
        ts = table.values("ts") - self._zero
        if len(calls.stray):
            builder.add_stat("levelzero_exit_unmatched", len(calls.stray), first_ts=int(ts[calls.stray[0]]))
        if not count:
            return np.empty(0, np.int64)
        begin, returned = ts[calls.entry], calls.exit >= 0
        end = np.where(returned, ts[calls.exit], 0)
        # Clocks of two cores may disagree by a little: such a call has no known length.
        backwards = returned & (end < begin)
        flags = np.zeros(count, np.uint32)
        flags[~returned] = Flag.UNFINISHED
        flags[backwards] = Flag.NEGATIVE_DURATION
        open_rows = np.flatnonzero(~returned)
        if len(open_rows):
            builder.add_stat("levelzero_unfinished_call", len(open_rows), first_ts=int(begin[open_rows[0]]))
        function = table.column("function")
        names = builder.names.codes(function.dictionary.texts if function.dictionary else [])
        first = builder.append(
            "slices",
            track_id=self.threads[table.values("thread_id")[calls.entry]],
            ts=begin,
            dur=end - begin,
            dur_valid=returned & ~backwards,
            name=names[function.values[calls.entry]],
            category="api",
            flags=flags,
            last_known_ts=self._last_seen(ts, open_rows),
            last_known_ts_valid=~returned,
        )
        own, measured = self._own_times()
        impossible = np.flatnonzero(measured & ~backwards & (own > end - begin + _CLOCK_STEP_NS))
        if len(impossible):
            builder.add_stat("levelzero_recorder_time", len(impossible), first_ts=int(begin[impossible[0]]))
        slices = first + np.arange(count)
        self._details(slices, returned, own, measured)
        self._arguments(slices)
        return slices

    def _own_times(self) -> tuple[Int64, npt.NDArray[np.bool_]]:
        """Return the recorder's time within each call, and whether it was measured, [calls]."""
        table, exits = self._found.events["recorder_times"], self._found.calls.exit_seq
        if not len(table):
            return np.zeros(len(exits), np.int64), np.zeros(len(exits), np.bool_)
        place = np.minimum(np.searchsorted(table.values("seq"), exits), len(table) - 1)
        measured = table.values("seq")[place] == exits
        return np.where(measured, table.values("dur")[place], 0), measured

    def _last_seen(self, ts: Int64, open_rows: Int64) -> Int64:
        """Return the time of the last record of the thread of each open call, 0 for all others, int64 [calls]."""
        calls, table = self._found.calls, self._found.events["calls"]
        found = np.zeros(len(calls.entry), np.int64)
        if len(open_rows):
            latest = np.zeros(len(self.threads), np.int64)
            np.maximum.at(latest, table.values("thread_id"), ts)
            found[open_rows] = latest[table.values("thread_id")[calls.entry[open_rows]]]
        return found

    def _arguments(self, slices: Int64) -> None:
        """Append the structures of calls: their records are the entries themselves."""
        arguments, seq = self._found.events["arguments"], self._found.calls.seq
        if not len(arguments):
            return
        place = np.minimum(np.searchsorted(seq, arguments.values("seq")), len(seq) - 1)
        mine = np.flatnonzero(seq[place] == arguments.values("seq"))
        columns: dict[str, npt.NDArray[np.generic]] = {"slice_id": slices[place[mine]]}
        for name in ARGUMENT_DETAILS.names[1:]:
            values, valid = arguments.values(name)[mine], arguments.valid(name)[mine]
            column = arguments.column(name)
            if column.dictionary is not None:
                texts = [*column.dictionary.texts, ""]
                codes = self._builder.dictionary("levelzero_arguments", name).codes(texts)
                values = codes[np.where(valid, column.values[mine], len(texts) - 1)]
            columns[name], columns[f"{name}_valid"] = values, valid
        self._builder.append("levelzero_arguments", **columns)

    def _details(
        self, slices: Int64, returned: npt.NDArray[np.bool_], own: Int64, measured: npt.NDArray[np.bool_]
    ) -> None:
        calls, table = self._found.calls, self._found.events["calls"]
        results = table.column("result")
        texts = results.dictionary.texts if results.dictionary else []
        known = returned & table.valid("result")[calls.exit]
        # One more text than there are, so that there is one where nothing is known.
        result = np.where(known, results.values[calls.exit], len(texts))
        codes = self._builder.dictionary("levelzero_calls", "result").codes([*texts, ""])
        self._builder.append(
            "levelzero_calls",
            slice_id=slices,
            exit_seq=np.where(returned, calls.exit_seq, 0),
            exit_seq_valid=returned,
            result=codes[result],
            result_valid=known,
            error=is_error([*texts, ""])[result],
            bytes=table.values("bytes")[calls.entry],
            bytes_valid=table.valid("bytes")[calls.entry],
            recorder_ns=own,
            recorder_ns_valid=measured,
        )
