"""The decoder of recordings: folders of CTF that ``lanescope record`` makes -> one ``Trace``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.levelzero.emit.timeline import Timeline
from lanescope.devices.levelzero.folder_decoder import FolderDecoder, keep_records
from lanescope.devices.levelzero.formats import ctf_reader, layout
from lanescope.devices.levelzero.interpret.resolved import attributed
from lanescope.devices.levelzero.schema import DETAILS, STATS
from lanescope.trace import TimeBase, Trace, TraceBuilder


class RecordingDecoder(FolderDecoder):
    """Decodes one recording."""

    format, what = layout.CTF_FORMAT, "a recording"

    def finish(self) -> list[Trace]:
        """Read, attribute and draw."""
        recording = ctf_reader.read(self._capture)
        found = attributed(recording.events, tolerance=self._tolerance)
        zero = found.origin()
        builder = TraceBuilder(TimeBase(zero, "unix"), details=DETAILS, stats=STATS)
        sources = [(f"{process.part}/metadata", process.source) for process in recording.processes]
        sources += [(stream.part, stream.source) for stream in recording.streams]
        drawing = _Drawing(builder, recording, zero, self._inputs(builder, sources))
        timeline = Timeline(builder, found, zero=zero, input_id=drawing.main)
        timeline.draw(complete_threads(recording))
        drawing.draw(timeline.hosts.threads)
        keep_records(builder, recording.events)
        return [builder.finish()]


class _Drawing:
    """Stats about the losses of a recording, and accounting of its bytes."""

    def __init__(
        self, builder: TraceBuilder, recording: ctf_reader.Recording, zero: int, inputs: Mapping[str, int]
    ) -> None:
        self._builder, self._recording, self._zero, self._inputs = builder, recording, zero, inputs
        self.main = next(iter(inputs.values()))

    def draw(self, lanes: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        """Append gaps, stats and accounting; ``lanes`` are the tracks of threads."""
        self._lanes = lanes
        for number, process in enumerate(self._recording.processes):
            described = self._inputs[f"{process.part}/metadata"]
            self._builder.add_bytes(decoded=process.source.size, input_id=described)
            if not process.unrecorded and not process.measures_itself():
                self._builder.add_stat("levelzero_recorder_unmeasured", input_id=described)
            waits = process.statistics.get("lock_waits", 0)
            if waits:
                self._builder.add_stat("levelzero_recorder_contention", waits, input_id=described)
            streams = [stream for stream in self._recording.streams if stream.process == number]
            if process.unrecorded:
                self._builder.add_stat("levelzero_unrecorded_process", input_id=described)
            elif not process.ended and not any(stream.is_open for stream in streams):
                # Of a process that ended in order, or still runs, there is one or the other.
                self._builder.add_stat("levelzero_abnormal_exit", input_id=described)
        self._host_clocks()
        self._missing_packets()
        for stream in self._recording.streams:
            found = stream.events
            input_id = self._inputs[stream.part]
            self._builder.add_bytes(decoded=found.decoded, padding=found.padding, lost=found.lost, input_id=input_id)
            self._losses(stream)
            self._late_events(stream)
            self._discarded(stream)
            if stream.is_open and not self._recording.processes[stream.process].ended:
                self._cut_short(stream)
        self._pauses()

    def _host_clocks(self) -> None:
        """Count what is unknown of the clocks of several hosts; processes of one boot share a clock."""
        errors: dict[object, int | None] = {}
        for process in self._recording.processes:
            known = process.reader.about.environment
            error = known.get("clock_error")
            errors.setdefault(known.get("boot") or process.part, error if isinstance(error, int) else None)
        if len(errors) < 2:
            return
        stated = sorted(error for error in errors.values() if error is not None)
        if len(stated) < len(errors):
            self._builder.add_stat("levelzero_host_clock_unknown", len(errors) - len(stated), input_id=self.main)
        if len(stated) > 1:
            worst = max(sum(stated[-2:]), 1)
            self._builder.add_stat("levelzero_host_clock_error", worst, input_id=self.main)

    def _gap(
        self, stream: ctf_reader.Stream, begin: int, end: int | None, thread: int, cause: str, **more: Any
    ) -> None:
        """Append time of a thread in which calls may be missing."""
        begin = max(begin - self._zero, 0)
        self._builder.append(
            "gaps",
            track_id=int(self._lanes[thread]),
            ts=begin,
            dur=0 if end is None else max(end - self._zero - begin, 0),
            dur_valid=[end is not None],
            cause=cause,
            input_id=self._inputs[stream.part],
            **more,
        )

    def _losses(self, stream: ctf_reader.Stream) -> None:
        """Count bytes that are not events: at the ends of packets, and between them."""
        found, input_id = stream.events, self._inputs[stream.part]
        lost, events = found.packet("lost").astype(np.int64), found.packet("events").astype(np.int64)
        last = found.packet("first_event").astype(np.int64) + events
        places = [(int(found.packet("offset")[row]), int(row)) for row in np.flatnonzero(lost)]
        for offset, row in places:
            self._bad(stream, offset, int(lost[row]), int(last[row]))
        starts = found.packet("offset").astype(np.int64)
        for offset, size in found.losses.tolist():
            before = int(np.searchsorted(starts, offset)) - 1
            self._bad(stream, offset, size, int(last[before]) if before >= 0 else 0)
        cut = found.packet("cut").astype(np.int64)
        if cut.any():
            self._builder.add_stat(
                "truncated", int(cut.sum()), input_id=input_id, first_offset=int(starts[np.flatnonzero(cut)[0]])
            )

    def _bad(self, stream: ctf_reader.Stream, offset: int, size: int, event: int) -> None:
        """Count lost bytes before event number ``event`` of the stream."""
        self._builder.add_stat("levelzero_invalid_event", size, input_id=self._inputs[stream.part], first_offset=offset)
        if not len(stream.ts):
            return
        after = min(event, len(stream.ts) - 1)
        begin = int(stream.ts[max(event - 1, 0)])
        end = int(stream.ts[after]) if event < len(stream.ts) else None
        self._gap(stream, begin, end, int(stream.thread[after]), "bad_bytes", first_offset=offset)

    def _missing_packets(self) -> None:
        """Count packets that are missing: the packets of a stream, also the one being filled, are numbered from 0."""
        following: dict[str, int] = {}
        for stream in self._recording.streams:
            base = stream.part.removesuffix(ctf_reader.LIVE)
            numbers = np.minimum(stream.events.packet("sequence"), np.uint64(1 << 32)).astype(np.int64)
            steps = np.diff(numbers, prepend=following.get(base, 0) - 1)
            wrong = np.flatnonzero(steps != 1)
            if len(wrong):
                missing = int(np.where(steps > 1, steps - 1, 1)[wrong].sum())
                offset = int(stream.events.packet("offset")[wrong[0]])
                self._builder.add_stat(
                    "levelzero_missing_packet", missing, input_id=self._inputs[stream.part], first_offset=offset
                )
            if len(numbers):
                following[base] = int(numbers[-1]) + 1
        self._missing_last_packets(following)

    def _missing_last_packets(self, following: Mapping[str, int]) -> None:
        """Count packets that are missing behind all others of their stream: at its end, the recorder states how many."""
        for number, process in enumerate(self._recording.processes):
            streams = [stream.part for stream in self._recording.streams if stream.process == number]
            there = sum(following.get(part, 0) for part in {part.removesuffix(ctf_reader.LIVE) for part in streams})
            missing = process.statistics.get("packets", 0) - there
            if missing > 0 and process.is_original:
                described = self._inputs[f"{process.part}/metadata"]
                self._builder.add_stat("levelzero_missing_packet", missing, input_id=described)

    def _late_events(self, stream: ctf_reader.Stream) -> None:
        """Count complete packets that do not end with their last event: its time, or one before it, is wrong."""
        found = stream.events
        complete = (found.packet("complete").astype(np.int64) & 1 == 1) & (found.packet("events") > 0)
        last = (found.packet("first_event") + found.packet("events")).astype(np.int64)[complete] - 1
        ends = found.packet("end")[complete]
        # Who rewrites a recording may end packets later.
        is_original = self._recording.processes[stream.process].is_original
        late = np.flatnonzero(found.times[last] != ends if is_original else found.times[last] > ends)
        if len(late):
            row, event = int(np.flatnonzero(complete)[late[0]]), int(last[late[0]])
            self._builder.add_stat(
                "levelzero_late_event",
                len(late),
                input_id=self._inputs[stream.part],
                first_offset=int(found.packet("offset")[row]),
                first_ts=int(stream.ts[event]) - self._zero,
            )

    def _discarded(self, stream: ctf_reader.Stream) -> None:
        """Count the events that the recorder discarded, from the counters of the packets."""
        found = stream.events
        count = np.maximum.accumulate(np.minimum(found.packet("discarded"), np.uint64(1 << 62)).astype(np.int64))
        steps = np.diff(count, prepend=0)
        rows_ = np.flatnonzero(steps)
        first, events = found.packet("first_event").astype(np.int64), found.packet("events").astype(np.int64)
        for row in rows_.tolist():
            # They are missing somewhere in this packet or behind it.
            begin, end = int(first[row]), int(first[row] + events[row])
            if not len(stream.ts):
                continue
            at = min(begin, len(stream.ts) - 1)
            until = int(stream.ts[end]) if end < len(stream.ts) else None
            self._gap(
                stream, int(stream.ts[at]), until, int(stream.thread[at]), "discarded", lost_count=int(steps[row])
            )
        if len(count) and count[-1]:
            lost, input_id = int(count[-1]), self._inputs[stream.part]
            self._builder.add_stat("levelzero_discarded", lost, input_id=input_id)
            self._builder.add_dropped(
                unit="event", unit_bytes=1, recorded=len(found.classes), dropped=lost, input_id=input_id
            )

    def _cut_short(self, stream: ctf_reader.Stream) -> None:
        if not len(stream.ts):
            return
        last = int(stream.ts[-1])
        self._builder.add_stat(
            "levelzero_abnormal_exit", input_id=self._inputs[stream.part], first_ts=last - self._zero
        )
        self._gap(stream, last, None, int(stream.thread[-1]), "cut_short")

    def _pauses(self) -> None:
        """Mark the time outside of regions as not recorded."""
        events = self._recording.events
        process_of = events["threads"].values("process_id")
        for pause in self._recording.pauses:
            for thread in np.flatnonzero(process_of == pause.process).tolist():
                begin = max(pause.begin - self._zero, 0)
                end = None if pause.end is None else max(pause.end - self._zero, begin)
                self._builder.append(
                    "gaps",
                    track_id=int(self._lanes[thread]),
                    ts=begin,
                    dur=0 if end is None else end - begin,
                    dur_valid=[end is not None],
                    cause="paused",
                    input_id=self.main,
                )


def complete_threads(recording: ctf_reader.Recording) -> npt.NDArray[np.bool_]:
    """Return which threads were recorded to their end, bool [threads]: all of which no stream was left open.

    The recorder closes the stream of a thread that ends, and all streams of a process that ends in order.
    """
    is_complete = np.ones(len(recording.events["threads"]), np.bool_)
    for stream in recording.streams:
        if stream.is_open and not recording.processes[stream.process].ended and len(stream.thread):
            is_complete[stream.thread[-1]] = False
    return is_complete
