"""Arguments of drawn events: values of detail tables, quality and flags, gaps and findings."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lanescope._native import core
from lanescope.declaration import frozen_class
from lanescope.io.event_stream import EventStream, Int64, Mask, UInt8, encode_utf8
from lanescope.trace import Column, Dictionary, Flag, Table, Trace
from lanescope.trace.row_packing import RowsById

_NO_ROWS = np.empty(0, np.int64)
_NO_BYTES = np.empty(0, np.uint8)


def drawn_events(trace: Trace, drawing: EventStream) -> tuple[core.PerfettoEvents, core.PerfettoEvents]:
    """Return the spans and the points of a drawing with all that goes with them, as the native writers read them."""
    placed, points = drawing.placement, drawing.points
    flows = drawing.span_flows
    slices = core.PerfettoEvents(
        placed.moved,
        placed.begin,
        placed.length if placed.comes_by_lane else placed.end,
        drawing.span_name,
        drawing.span_category,
        flows.first,
        flows.id,
        flows.end,
        placed.comes_by_lane,
    )
    flows, timed = drawing.point_flows, drawing.points_in_time
    instants = core.PerfettoEvents(
        timed.order, timed.ts, _NO_ROWS, points.name, points.category, flows.first, flows.id, flows.end
    )
    _facts(trace.slices).attach(slices)
    _Arguments(len(trace.slices), len(trace.gaps), _declared(trace.gaps, ("lost_count", "first_offset"))).attach(slices)
    _facts(trace.instants).attach(instants)
    if drawing.finding_table is not None:
        columns = _declared(drawing.finding_table, ("severity", "detail", "count"))
        _Arguments(drawing.instants, drawing.findings, columns).attach(instants)
    for detail in trace.details.values():
        if columns := _known_arguments(detail):
            if detail.spec.key == "slice_id":
                _detail(detail, columns, drawing.slice_rows).attach(slices)
            elif detail.spec.key == "instant_id":
                _detail(detail, columns, drawing.instant_rows).attach(instants)
    return slices, instants


def with_arguments(trace: Trace) -> Trace:
    """Return a trace with those of its detail tables and their columns that are drawn."""
    details = {}
    for name, table in trace.details.items():
        drawn = [spec.name for spec in table.spec.columns if spec.is_argument]
        if drawn and table.spec.key in ("slice_id", "instant_id"):
            details[name] = table.only([table.spec.key, *drawn])
    return Trace(
        trace.time, {name: table for name, table in trace.tables().items() if name not in trace.details}, details
    )


def drawn_samples(trace: Trace, drawing: EventStream) -> core.PerfettoSamples:
    """Return the counter samples of a drawing as the native writers read them."""
    timed = drawing.samples_in_time
    return core.PerfettoSamples(timed.order, timed.ts, np.ascontiguousarray(trace.counters.values("value")))


@frozen_class
class _Arguments:
    """Columns of one table that go with events.

    Attributes:
        base: the first event concerned.
        count: how many events, from there.
        columns: name, type and values of each.
        first: int64 [count + 1]: event ``base + i`` has the rows ``row[first[i]:first[i + 1]]``; empty: it has row i.
        row: int64, rows by event.
    """

    base: int
    count: int
    columns: list[tuple[str, str, Column]]
    first: Int64 = _NO_ROWS
    row: Int64 = _NO_ROWS

    def attach(self, events: core.PerfettoEvents) -> None:
        """Hand the columns to the encoder's events; those without any known value are left out."""
        if not self.count:
            return
        for name, type_, column in self.columns:
            if column.is_unknown or (column.valid is not None and not column.valid.any()):
                continue
            texts: Iterable[str] = ()
            if type_ == "utf8" and column.encode is None:
                texts = column.values.tolist()
            elif column.dictionary is not None:
                texts = column.dictionary.texts
            encoded = encode_utf8(texts) if column.encode is None else core.PerfettoTexts(*column.encode())
            values = _NO_BYTES if type_ == "utf8" else np.ascontiguousarray(column.values)
            known = _known(column.valid)
            events.argument(name, type_, values, known, encoded, self.base, self.count, self.first, self.row)


def _known(valid: Mask | None) -> UInt8:
    return _NO_BYTES if valid is None or valid.all() else np.ascontiguousarray(valid).view(np.uint8)


def _declared(table: Table, names: Iterable[str]) -> list[tuple[str, str, Column]]:
    return [(name, table.spec.column(name).type, table.column(name)) for name in names]


def _facts(table: Table) -> _Arguments:
    """Return what slices or instants say of themselves, where it is unusual."""
    columns = []
    quality = table.column("quality")
    texts = quality.dictionary.texts if quality.dictionary is not None else []
    exact = texts.index("exact") if "exact" in texts else -1
    if quality.constant_value != exact:
        valid = quality.values != exact
        columns.append(("quality", "text", Column.array(quality.values, valid=valid, dictionary=quality.dictionary)))
    flags = table.column("flags")
    if flags.constant_value != 0:
        codes, known = core.large_memory(4 * len(flags)).view(np.int32), np.empty(len(flags), np.bool_)
        found = core.distinct_bits(np.ascontiguousarray(flags.values), codes, known.view(np.uint8))
        if any(found):
            words = Dictionary(map(_words, found))
            columns.append(("flags", "text", Column.array(codes, valid=known, dictionary=words)))
    if "last_known_ts" in table.spec.names:
        columns += _declared(table, ["last_known_ts"])
    return _Arguments(0, len(table), columns)


def _words(bits: int) -> str:
    """Return the names of the flags that are set, and what no flag is declared for as a number."""
    names = [str(flag.name).lower() for flag in Flag if bits & flag]
    rest = bits & ~sum(Flag)
    return "|".join([*names, hex(rest)] if rest else names)


def _known_arguments(table: Table) -> list[tuple[str, str, Column]]:
    """Return the columns of a table that are arguments, without those that hold nothing."""
    names = [spec.name for spec in table.spec.columns if spec.is_argument] if len(table) else []
    return [argument for argument in _declared(table, names) if not argument[2].is_unknown]


def _detail(table: Table, columns: list[tuple[str, str, Column]], by_id: RowsById) -> _Arguments:
    """Return columns of a detail table as arguments of the events of its keys; other keys have no event here."""
    events = by_id.find(table.column(table.spec.key).read_once())
    step = np.diff(events)
    begin = int(events[0])
    if begin >= 0 and bool((step == 1).all()):
        return _Arguments(begin, len(events), columns)
    by_event = _NO_ROWS if bool((step >= 0).all()) else np.argsort(events, kind="stable")
    elsewhere = int(np.count_nonzero(events < 0))  # they come first
    known = events[events >= 0] if elsewhere else events
    if not len(known):
        return _Arguments(0, 0, [])
    begin = int(known.min())
    per_event = np.bincount(known - begin)
    first = np.empty(len(per_event) + 1, np.int64)
    first[0] = elsewhere
    np.cumsum(per_event, out=first[1:])
    first[1:] += elsewhere
    return _Arguments(begin, len(per_event), columns, first, by_event)
