"""The log of a host: its spans, of which those of the capture's run are drawn, and its messages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import numpy.typing as npt

from lanescope.devices.ascend.emit.context import TimelineBuilder, some
from lanescope.devices.ascend.emit.schedulers import host_quality
from lanescope.devices.ascend.formats.strace import HostLog
from lanescope.devices.ascend.interpret import sidecar_checks
from lanescope.trace import Column

Int64 = npt.NDArray[np.int64]


def add_log(canvas: TimelineBuilder, slice_of: Mapping[int, int]) -> None:
    """Add the spans and messages, with or without a place on the timeline, and draw the messages that have one.

    Args:
        canvas: takes them.
        slice_of: the slices of spans, by their rows.
    """
    canvas.told.problems.extend((name, number, None) for name, number in sidecar_checks.found(canvas.told))
    placed = canvas.told.parts.placed_log
    if placed is None:
        return
    log, builder, count = placed.log, canvas.builder, len(placed.log)
    slices = np.full(count, -1, np.int64)
    slices[list(slice_of)] = list(slice_of.values())
    walls = canvas.told.walls
    if walls is not None and len(walls.row):
        track = np.full(len(walls.row), canvas.lanes["wall"][0])
        names = builder.names.codes(log.name[walls.row].tolist())
        first = canvas.slices(track, walls.begin, walls.end, canvas.told.times.device, name=names, category="host")
        slices[walls.row] = first + np.arange(len(walls.row))
    clocks = builder.dictionary("ascend_host_spans", "clock").codes(("host", "device"))
    functions = builder.dictionary("ascend_host_spans", "function")
    if count:
        builder.append(
            "ascend_host_spans",
            slice_id=Column.array(np.maximum(slices, 0), valid=some(slices >= 0)),
            input_id=Column.constant(canvas.main, count, np.int64),
            name=builder.dictionary("ascend_host_spans", "name").codes(log.name.tolist()),
            process=log.process,
            thread=log.thread,
            run=log.run,
            depth=log.depth.astype(np.int32),
            clock=clocks[log.of_device.astype(np.int64)],
            start_ns=log.begin,
            duration_ns=log.length,
            function=functions.codes(log.function.tolist()),
            attributes=Column.array(log.attributes, valid=some(log.attributes.astype(np.bool_))),
        )
    _messages(canvas, log, placed.messages)
    note = canvas.told.problems.append
    of_device = int(np.count_nonzero(log.of_device))
    note(("ascend_host_spans_of_device", of_device - (0 if walls is None else len(walls.row)), None))
    note(("ascend_host_spans_contradict", placed.contradictions, None))
    note(("ascend_host_spans_of_others", placed.of_others, None))
    note(("ascend_host_spans_unplaced", count - of_device if placed.reason else 0, None))


def _messages(canvas: TimelineBuilder, log: HostLog, rows: Int64) -> None:
    if not len(log.message_at):
        return
    builder, instants = canvas.builder, np.full(len(log.message_at), -1, np.int64)
    if len(rows) and "log" in canvas.lanes:
        at = log.message_at[rows]
        first = builder.append(
            "instants",
            track_id=Column.constant(canvas.lanes["log"][0], len(rows), np.int64),
            ts=Column.derived(len(rows), partial(canvas.told.times.host, at)),
            ts_ticks=Column.array(at),
            name=builder.names.codes(log.message_source[rows].tolist()),
            category="log",
            quality=host_quality(canvas),
        )
        instants[rows] = first + np.arange(len(rows))
    builder.append(
        "ascend_log_messages",
        instant_id=Column.array(np.maximum(instants, 0), valid=some(instants >= 0)),
        at_ns=log.message_at,
        level=builder.dictionary("ascend_log_messages", "level").codes(log.message_level.tolist()),
        thread=builder.dictionary("ascend_log_messages", "thread").codes(log.message_thread.tolist()),
        source=builder.dictionary("ascend_log_messages", "source").codes(log.message_source.tolist()),
        text=log.message_text,
    )


def account_log(canvas: TimelineBuilder, part: str, log: HostLog, size: int) -> None:
    """Add the accounting of the bytes of one file, and of the records that its writers dropped.

    Lines of other programs in a console's log are padding.
    """
    builder, input_id = canvas.builder, canvas.input_of[part]
    canvas.account_lines(part, log.tally, size)
    if log.dropped:
        builder.add_stat("ascend_log_dropped", log.dropped, input_id=input_id)
        builder.add_dropped(
            unit="host_log record",
            unit_bytes=512,
            recorded=len(log) + log.tally.bad_count + len(log.message_at),
            dropped=log.dropped,
            input_id=input_id,
        )
