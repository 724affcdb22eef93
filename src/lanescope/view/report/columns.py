"""Columns of a report, from the tables of a trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.trace import ColumnSpec, Table, row_packing
from lanescope.view.model.view_model import ViewModel
from lanescope.view.report.bundles import Rows, main_names
from lanescope.view.report.pack import Column, deltas, scale_of

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Whole numbers that JavaScript has exactly.
EXACT = 2**53 - 1
_NONE = np.empty(0, np.int64)


def coded(table: Table, name: str) -> tuple[list[str], Ints]:
    """Return the texts that a column of texts has, and which of them each row has, int64 [n]."""
    column = table.column(name)
    if column.dictionary is None or not len(table):
        return [], _NONE
    codes = table.codes(name).astype(np.int64)
    used = np.flatnonzero(np.bincount(codes, minlength=1))
    place = np.zeros(int(codes.max()) + 1, np.int64)
    place[used] = np.arange(len(used))
    texts = column.dictionary.texts
    return [texts[code] for code in used.tolist()], place[codes]


class SliceColumns(NamedTuple):
    """Columns of slices, and what is behind their codes."""

    columns: list[Column]
    scale: int
    categories: list[str]
    qualities: list[str]


def slice_columns(model: ViewModel, rows: Rows) -> SliceColumns:
    """Return the columns of strips, slices and bundles."""
    slices, strips = model.trace.slices, model.strips
    previous = np.concatenate([[model.window[0]], rows.end[:-1]])[: len(rows.begin)].astype(np.int64)
    previous[rows.start[:-1]] = model.window[0]
    gap, length = rows.begin - previous, rows.end - rows.begin
    is_bundle = rows.slices > 1
    busy = rows.busy[is_bundle]
    scale = scale_of(gap, length, busy)
    categories, category = coded(slices, "category")
    qualities, quality = coded(slices, "quality")
    flags = slices.values("flags").astype(np.int64)[strips.order]
    if len(flags):
        flags = np.bitwise_or.reduceat(flags, np.cumsum(rows.slices) - rows.slices)
    ids = slices.values("id")[rows.first]
    columns = [
        Column("strip.start", "u", deltas(rows.start)),
        Column("strip.row", "u", strips.row),
        Column("strip.level", "u", strips.level),
        Column("s.gap", "u", gap // scale),
        Column("s.dur", "u", length // scale),
        Column("s.name", "u", main_names(rows, strips, model.name_of)),
        Column("s.cat", "u", category[rows.first]),
        Column("s.quality", "u", quality[rows.first]),
        Column("s.flags", "u", flags),
        Column("s.id", "z", deltas(ids)),
        Column("b.row", "u", deltas(rows.bundles)),
        Column("b.count", "u", rows.slices[is_bundle]),
        Column("b.busy", "u", busy // scale),
    ]
    return SliceColumns(columns, scale, categories, qualities)


class CodedColumns(NamedTuple):
    """Columns with the texts behind their codes, and how many rows they cannot have."""

    columns: list[Column]
    texts: list[str]
    without: int = 0


def flow_columns(
    model: ViewModel, rows: Rows, *, is_exact: bool = False, most: int | None = None, first: Mask | None = None
) -> CodedColumns:
    """Return the columns of flows between rows.

    Args:
        model: the trace.
        rows: what is drawn.
        is_exact: without those that begin or end in a bundle.
        most: how many, the more important ones first: between rows of ``first``, then by the length of what they join.
        first: bool [rows].
    """
    flows = model.trace.flows
    kinds, kind = coded(flows, "kind")
    find = row_packing.RowsById(model.trace.slices.values("id")).find
    ends = [np.asarray(flows.values(name)) for name in ("src_slice_id", "dst_slice_id")]
    slices = [find(np.ascontiguousarray(end)) for end in ends]
    known = flows.valid("src_slice_id") & flows.valid("dst_slice_id") & (slices[0] >= 0) & (slices[1] >= 0)
    source, target = (rows.row_of[end[known]] for end in slices)
    out = flows.values("src_ts")[known] - rows.end[source]
    into = flows.values("dst_ts")[known] - rows.begin[target]
    kind = kind[known]
    keep = np.arange(len(source))
    if is_exact:
        keep = np.flatnonzero((rows.slices[source] == 1) & (rows.slices[target] == 1))
    if most is not None and most < len(keep):
        length = rows.end - rows.begin
        rank = -np.minimum(length[source[keep]], length[target[keep]])
        if first is not None:
            rank[first[source[keep]] & first[target[keep]]] = np.iinfo(np.int64).min
        keep = np.sort(keep[np.argsort(rank, kind="stable")[:most]])
    by = keep[np.argsort(source[keep], kind="stable")]
    columns = [
        Column("f.src", "u", deltas(source[by])),
        Column("f.dst", "z", (target - source)[by]),
        Column("f.kind", "u", kind[by]),
        Column("f.out", "z", out[by]),
        Column("f.in", "z", into[by]),
    ]
    return CodedColumns(columns, kinds, int(np.count_nonzero(~known)))


def instant_columns(model: ViewModel, *, is_empty: bool = False) -> CodedColumns:
    """Return the columns of instants, by track and time."""
    instants = model.trace.instants
    names, name = coded(instants, "name")
    track, ts = instants.values("track_id"), instants.values("ts") - model.window[0]
    by = _NONE if is_empty else np.lexsort((ts, track))
    columns = [
        Column("i.track", "u", deltas(track[by])),
        Column("i.ts", "z", deltas(ts[by])),
        Column("i.name", "u", name[by]),
    ]
    return CodedColumns(columns, [] if is_empty else names)


def counter_columns(model: ViewModel, *, is_empty: bool = False) -> list[Column]:
    """Return the columns of samples, by track and time."""
    counters = model.trace.counters
    track, ts = counters.values("track_id"), counters.values("ts") - model.window[0]
    by = _NONE if is_empty else np.lexsort((ts, track))
    value = counters.values("value")[by]
    is_whole = bool(np.all(np.isfinite(value))) and bool(np.all((value == np.round(value)) & (np.abs(value) < EXACT)))
    return [
        Column("c.track", "u", deltas(track[by])),
        Column("c.ts", "z", deltas(ts[by])),
        Column("c.value", "z", deltas(value.astype(np.int64))) if is_whole else Column("c.value", "f", value),
    ]


def gap_columns(model: ViewModel) -> CodedColumns:
    """Return the columns of gaps and of what was not recorded."""
    gaps, (low, high) = model.trace.gaps, model.window
    causes, cause = coded(gaps, "cause")
    ts = gaps.values("ts")
    length = np.where(gaps.valid("dur"), gaps.values("dur"), high - ts)
    lost = np.where(gaps.valid("lost_count"), gaps.values("lost_count") + 1, 0)
    bare = model.shared.time.uncovered
    is_shown = np.isin(bare.group, np.array(sorted(model.used), np.int64)) & (bare.end > bare.begin)
    is_shown &= np.isin(bare.group, model.tracks.lanes)
    group, begin, end = bare.take(is_shown)
    columns = [
        Column("g.track", "u", gaps.values("track_id")),
        Column("g.ts", "u", ts - low),
        Column("g.dur", "u", np.maximum(length, 0)),
        Column("g.cause", "u", cause),
        Column("g.lost", "u", np.maximum(lost, 0)),
        Column("n.track", "u", group),
        Column("n.ts", "u", begin - low),
        Column("n.dur", "u", end - begin),
    ]
    return CodedColumns(columns, causes)


def path_columns(model: ViewModel, rows: Rows) -> CodedColumns:
    """Return the columns of the critical path; none where there is none."""
    if model.path is None:
        return CodedColumns([], [])
    parts, (low, high) = model.path.parts, model.window
    # That of the whole, of which a window selects slices, may reach beyond these.
    inside = (parts.values("ts") + parts.values("dur") > low) & (parts.values("ts") < high)
    parts = parts if inside.all() else parts.where(inside)
    causes, cause = _path_causes(parts)
    begin = np.maximum(parts.values("ts"), low)
    end = np.minimum(parts.values("ts") + parts.values("dur"), high)
    by = np.argsort(begin, kind="stable")
    slices = row_packing.RowsById(model.trace.slices.values("id")).find(np.ascontiguousarray(parts.values("slice_id")))
    slices = np.where(parts.valid("slice_id"), slices, -1)
    row = np.where(slices >= 0, rows.row_of[np.maximum(slices, 0)] + 1, 0)
    columns = [
        Column("p.ts", "u", deltas(begin[by] - low)),
        Column("p.dur", "u", (end - begin)[by]),
        Column("p.row", "u", row[by]),
        Column("p.cause", "u", cause[by]),
    ]
    return CodedColumns(columns, causes)


def _path_causes(parts: Table) -> tuple[list[str], Ints]:
    """Return the causes that parts of a path have, with the kind that was waited for, and which each has, int64 [n]."""
    (causes, cause), (kinds, kind) = coded(parts, "cause"), coded(parts, "kind")
    used, place = np.unique(cause * max(len(kinds), 1) + kind, return_inverse=True)
    pairs = (divmod(code, max(len(kinds), 1)) for code in used.tolist())
    return [f"{causes[a]}: {kinds[b]}" if kinds[b] else causes[a] for a, b in pairs], place.astype(np.int64)


class Argument(NamedTuple):
    """An argument of slices: its entry in the header, and its columns, named when it has a number."""

    entry: dict[str, Any]
    row: Ints
    kind: str
    values: npt.NDArray[Any]

    def columns(self, number: int) -> list[Column]:
        """Return its columns."""
        return [Column(f"a.{number}.row", "u", deltas(self.row)), Column(f"a.{number}", self.kind, self.values)]


def arguments(model: ViewModel, rows: Rows) -> Iterator[Argument]:
    """Yield the arguments that slices have in detail tables, of those rows that are one slice."""
    for table in model.trace.details.values():
        if table.spec.key != "slice_id" or not len(table):
            continue
        find = row_packing.RowsById(model.trace.slices.values("id")).find
        slices = find(np.ascontiguousarray(table.values("slice_id")))
        row = np.where(slices >= 0, rows.row_of[np.maximum(slices, 0)], -1)
        is_shown = (row >= 0) & (rows.slices[np.maximum(row, 0)] == 1)
        for spec in table.spec.columns:
            if spec.is_argument and spec.name != "slice_id":
                at = np.flatnonzero(is_shown & table.valid(spec.name))
                if len(at):
                    at = at[np.argsort(row[at], kind="stable")]
                    yield _argument(table, spec, at, row[at])


def _argument(table: Table, spec: ColumnSpec, at: Ints, row: Ints) -> Argument:
    entry: dict[str, Any] = {"name": spec.name, "unit": spec.unit, "about": spec.doc.replace("`", "")}
    values = np.asarray(table.values(spec.name))[at]
    if spec.type == "float64":
        return Argument({**entry, "type": "float"}, row, "f", values.astype(np.float64))
    if spec.type not in ("text", "utf8", "bool") and int(np.abs(values.astype(np.float64)).max()) <= EXACT:
        return Argument({**entry, "type": "int"}, row, "z", deltas(values.astype(np.int64)))
    texts: dict[str, int] = {}
    codes = [texts.setdefault(text, len(texts)) for text in map(str, values.tolist())]
    return Argument({**entry, "type": "text", "texts": list(texts)}, row, "u", np.array(codes, np.int64))
