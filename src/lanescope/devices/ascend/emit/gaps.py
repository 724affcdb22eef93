"""What was recorded, what is known to be missing, and what became of every byte."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np

from lanescope.common.stat_tally import StatTally
from lanescope.devices.ascend import schema
from lanescope.devices.ascend.emit.context import TimelineBuilder, some
from lanescope.devices.ascend.emit.stream_stats import add_stream_stats
from lanescope.devices.ascend.formats.collection import collection_of
from lanescope.devices.ascend.formats.layout import (
    AICORE,
    AICPU,
    HOST_SUBMITS,
    PHASES,
    RECORD_BYTES,
    RECORDS,
    SUBMITS,
    V4_AICPU,
    V4_PHASES,
)
from lanescope.devices.ascend.formats.records import Section
from lanescope.devices.ascend.interpret import consistency, cross_checks, declared_checks, scheduler_checks
from lanescope.trace import Column, Dictionary, Table

#: Lists whose records a collector gets from the device.
_COLLECTED = frozenset(layout.name for layout in (AICORE, AICPU, V4_AICPU, PHASES, V4_PHASES, SUBMITS))


def draw_gaps(canvas: TimelineBuilder) -> None:
    """Draw the places where executions are known to be lost."""
    told, lost = canvas.told, canvas.told.lost
    if not len(lost.core):
        return
    begin = told.times.device(lost.begin)
    canvas.builder.append(
        "gaps",
        track_id=canvas.lane("core")[lost.core],
        ts=begin,
        dur=told.times.device(lost.end) - begin,
        cause="lost_records",
        lost_count=lost.count,
        input_id=canvas.main,
    )


def note(canvas: TimelineBuilder) -> None:
    """Count what was met on the way."""
    told, builder, lost = canvas.told, canvas.builder, canvas.told.lost
    tally, lane = StatTally(schema.STATS), canvas.lane("core")
    for name, rows in (("ascend_aicore_unmatched", told.unmatched), ("ascend_aicpu_unmatched", told.orphans)):
        if len(rows):
            tally.add_rows(name, np.argsort(rows.begin), offset=rows.begin, track=lane[rows["core_id"]])
    tally.add("ascend_missing_dispatch", lost.holes)
    if len(canvas.steps.core):
        stamps = told.times.device(told.runs.start[canvas.steps.row])
        steps = lane[canvas.steps.core]
        builder.append(
            "ascend_clock_steps", track_id=steps, core=canvas.steps.core, ts=stamps, size_ticks=canvas.steps.size
        )
        for track, ts in zip(steps.tolist(), stamps.tolist(), strict=True):
            tally.add("ascend_clock_step", track=track, ts=ts)
    # Where phases are known to be missing it proves nothing that a stamp has none.
    has_phases = PHASES.name not in told.records.partial
    dispatched, finished = (found & has_phases for found in consistency.outside_phase(told))
    for name, where in (
        ("ascend_dispatch_unmatched", dispatched),
        ("ascend_finish_unmatched", finished),
        ("ascend_timestamp_order", consistency.disordered(told.runs, told.frequency, canvas.steps.suspect)),
        ("ascend_core_overcommitted", consistency.overcommitted_cores(told.runs)),
    ):
        of_run = lane[told.runs.core[where]]
        tally.add_rows(name, np.arange(len(of_run)), track=of_run)
    _note_contradictions(canvas, tally)
    for name, count, first in (
        *cross_checks.found(told),
        *declared_checks.found(told),
        *scheduler_checks.found(told),
    ):
        tally.add(name, count, offset=first)
    tally.add("ascend_submit_duplicate", consistency.duplicate_submits(told))
    tally.add("ascend_ambiguous_name_map", int(told.parts.is_ambiguous))
    tally.add("ascend_host_clock_unaligned", int(isinstance(told.times.alignment, str)))
    lists = {layout.name for layout in RECORDS}
    for key, at, _ in told.records.unknown:
        tally.add("ascend_bad_section" if key in lists else "ascend_unknown_section", offset=at)
    if told.records.cut is not None:
        tally.add("truncated", offset=told.records.cut)
    for name, count, first in told.problems:
        tally.add(name, count, offset=first)
    tally.emit(builder, canvas.main)
    builder.add_stat("ascend_graph_cycle", told.in_rings, input_id=canvas.input_of.get("deps", canvas.main))
    for part in sorted(told.parts.broken):
        # A sidecar file that could not be opened is not an input.
        builder.add_stat("ascend_unreadable_sidecar", input_id=canvas.input_of.get(part, canvas.main))


def _note_contradictions(canvas: TimelineBuilder, tally: StatTally) -> None:
    """Count contradictions between the executions, the task graph, the submissions and the metadata."""
    told, cores, lane = canvas.told, canvas.lanes["core"], canvas.lane("core")
    start = told.runs.start
    for name, where in (
        ("ascend_kind_contradicts", consistency.on_wrong_kind(told)),
        ("ascend_submit_order", consistency.before_submit(told, canvas.steps.suspect)),
        ("ascend_dispatch_order", scheduler_checks.dispatched_early(told)),
        ("ascend_receive_order", scheduler_checks.received_early(told, canvas.steps.suspect)),
    ):
        wrong = np.flatnonzero(where)
        if len(wrong):
            wrong = wrong[np.argsort(start[wrong], kind="stable")]
            rows, ts = told.streams[0].section, told.times.device(start)
            tally.add_rows(name, wrong, offset=rows.begin, ts=ts, track=lane[told.runs.core])
    for core in consistency.contradicted_cores(told):
        tally.add("ascend_cores_contradict", track=cores.get(core))


def account(canvas: TimelineBuilder) -> None:
    """Add the accounting of every byte of the files, and of the records that never reached them."""
    told, builder, records = canvas.told, canvas.builder, canvas.told.records
    unknown = sum(end - begin for _, begin, end in records.unknown)
    behind = 0 if records.cut is None else records.size - records.cut
    if records.accounts is None:
        _account_file(canvas, "main", records.size, records.as_read.values(), unknown + behind)
    else:
        decoded, padding, lost = records.accounts
        builder.add_bytes(decoded=decoded, padding=padding, lost=lost, input_id=canvas.main)
    deps = told.parts.deps
    if deps is not None:
        _account_file(canvas, "deps", deps.size, (deps.tasks, deps.edges), 0)
    if "names" in told.parts.sources and "names" not in told.parts.broken:
        builder.add_bytes(decoded=told.parts.sources["names"].size, input_id=canvas.input_of["names"])
    if told.parts.has_more:
        from lanescope.devices.ascend.emit import sidecar_files

        sidecar_files.account(canvas)
    for part in told.parts.broken & set(told.parts.sources):
        builder.add_bytes(decoded=0, input_id=canvas.input_of[part])
    told_of = add_stream_stats(canvas)
    missing = told.lost.lost + told.lost.holes
    lacking = len(told.unmatched) + told.lost.holes if told.has_dispatches else 0
    for layout, stream, lost in ((AICORE, told.streams[0], missing), (AICPU, told.streams[1], lacking)):
        # What a list that is cut off lacks was perhaps in the file once.
        if lost and layout.name not in told_of and layout.name not in records.partial:
            _producer(canvas, layout.name, len(stream.keys.unique_rows) + stream.ambiguous, lost)
    host = records.metadata.get("host_capture")
    if isinstance(host, dict):
        expected, recorded = (host.get(key) for key in ("expected_records", "recorded_records"))
        if type(expected) is int and type(recorded) is int and 0 <= recorded < expected <= 1 << 62:
            builder.add_stat("ascend_host_dropped", expected - recorded, input_id=canvas.main)
            _producer(canvas, HOST_SUBMITS.name, recorded, expected - recorded)
    _account_collection(canvas)


def _account_collection(canvas: TimelineBuilder) -> None:
    """Count what the collector says is missing."""
    records, builder = canvas.told.records, canvas.builder
    told = collection_of(records.metadata)
    for name, count in (
        ("ascend_collection_lost", told.lost),
        ("ascend_collection_buffers_lost", told.buffers),
        ("ascend_collection_incomplete", told.doubts),
    ):
        builder.add_stat(name, count, input_id=canvas.main)
    if told.lost:
        recorded = sum(len(rows) for name, rows in records.as_read.items() if name in _COLLECTED)
        builder.add_dropped(
            unit="collected record",
            unit_bytes=1,  # records of all kinds, which differ in size
            recorded=recorded,
            dropped=told.lost,
            input_id=canvas.main,
        )


def _account_file(canvas: TimelineBuilder, part: str, size: int, sections: Iterable[Section], other: int) -> None:
    sections = list(sections)
    decoded = sum(section.tally.good_bytes for section in sections)
    lost = other + sum(section.tally.bad_bytes for section in sections)
    canvas.builder.add_bytes(decoded=decoded, padding=size - decoded - lost, input_id=canvas.input_of[part])
    for section in sections:
        tally = section.tally
        for name, count, first in (
            ("ascend_invalid_row", tally.bad_count, tally.bad_first),
            ("ascend_unknown_key", tally.unknown_keys, tally.unknown_first),
        ):
            canvas.builder.add_stat(name, count, input_id=canvas.input_of[part], first_offset=first)


def _producer(canvas: TimelineBuilder, unit: str, recorded: int, lost: int) -> None:
    canvas.builder.add_dropped(
        unit=f"{unit} record",
        unit_bytes=RECORD_BYTES[unit],
        recorded=recorded,
        dropped=lost,
        input_id=canvas.main,
    )


def keep_records(canvas: TimelineBuilder) -> None:
    """Keep the raw records within reach."""
    for name, section in canvas.told.records.as_read.items():
        canvas.builder.records(f"ascend.{name}", partial(raw_table, section))


def raw_table(section: Section) -> Table:
    """Return the elements of a list as they stand."""
    columns: dict[str, Column] = {
        "offset": Column.array(section.begin.astype(np.int64)),
        "group": Column.array(section.group),
    }
    spec = schema.raw(section.layout)
    for cell in section.layout.cells:
        valid = None if cell.is_required else some(section.has(cell.name))
        values = section[cell.name]
        for place, name in enumerate(schema.column_names(cell)):
            array = values if cell.count == 1 else np.ascontiguousarray(values[:, place])
            if cell.kind == "text":
                dictionary = Dictionary(section.texts)
                columns[name] = Column.array(dictionary.codes(section.texts)[array], valid=valid, dictionary=dictionary)
            else:
                kind = spec.column(name).type
                columns[name] = Column.array(array.astype(kind), valid=valid)
    return Table(spec, columns)
