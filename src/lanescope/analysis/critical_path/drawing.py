"""Critical paths drawn into their trace: a lane of their own, and an arrow for each cause on them."""

from __future__ import annotations

import numpy as np

from lanescope.analysis.critical_path.answer import CriticalPath
from lanescope.common.intervals import Ints
from lanescope.trace import Column, Table, Trace

_NAME = "critical path"


def drawn(path: CriticalPath) -> Trace:
    """Return the trace with a lane of the paths' parts, and flows along the causes that they follow.

    Parts are named after their slice where it works, else after the cause. Paths of several windows may overlap.
    """
    trace, parts = path.trace, path.parts
    track = len(trace.tracks)
    tracks = Table.concat(
        [
            trace.tracks,
            _rows(
                trace.tracks,
                1,
                id=np.array([track]),
                kind="lane",
                role=_NAME,
                name=np.array([_NAME], object),
                sort_key=trace.tracks.values("sort_key").min(initial=0, keepdims=True) - 1,
                nesting="free" if len(path.paths) > 1 else "disjoint",
                unit="",
            ),
        ]
    )
    names = trace.slices.values("name")[path.slices_of_parts]
    causes, kinds = parts.values("cause"), parts.values("kind")
    texts = [
        name if cause == "work" else f"{cause}: {kind or name}" if kind or cause == "wait without cause" else cause
        for name, cause, kind in zip(names.tolist(), causes.tolist(), kinds.tolist(), strict=True)
    ]
    slices = Table.concat(
        [
            trace.slices,
            _rows(
                trace.slices,
                len(parts),
                id=len(trace.slices) + np.arange(len(parts)),
                track_id=np.full(len(parts), track),
                ts=parts.values("ts"),
                dur=parts.values("dur"),
                name=np.array(texts, object),
                category=_NAME,
                quality=parts.values("quality"),
                flags=0,
            ),
        ]
    )
    kept = {name: table for name, table in trace.tables().items() if name not in trace.details}
    core = {**kept, "tracks": tracks, "slices": slices, "flows": _flows(path)}
    return Trace(trace.time, core, trace.details, trace.records)


def _flows(path: CriticalPath) -> Table:
    """Return the flows of the trace, and one for each cause on the paths, from where it came to where it arrived."""
    trace, graph, slice_of = path.trace, path.made.graph, path.made.slice_of
    source: list[Ints] = []
    target: list[Ints] = []
    for each in path.paths:
        bound = graph.nodes["binding"][each.parts.steps]
        edges = bound[bound >= 0]
        if path.selection is not None:
            row = graph.nodes["row"][graph.edges["target"][edges]]
            edges = edges[path.selection.of_parts(graph.rows.lane[row], slice_of[row], np.ones(len(row), np.bool_))]
        source.append(graph.edges["source"][edges])
        target.append(graph.edges["target"][edges])
    ends = [np.concatenate([np.empty(0, np.int64), *nodes]).astype(np.int64) for nodes in (source, target)]
    rows = [graph.nodes["row"][nodes] for nodes in ends]
    count = len(ends[0])
    found = _rows(
        trace.flows,
        count,
        id=len(trace.flows) + np.arange(count),
        kind=_NAME,
        src_track_id=graph.rows.lane[rows[0]],
        src_ts=graph.time[ends[0]],
        dst_track_id=graph.rows.lane[rows[1]],
        dst_ts=graph.time[ends[1]],
        src_slice_id=slice_of[rows[0]],
        dst_slice_id=slice_of[rows[1]],
    )
    return Table.concat([trace.flows, found])


def _rows(like: Table, count: int, **given: object) -> Table:
    """Return rows of a table's declaration; texts for all rows or each, nullable columns that are not given unknown."""
    columns = {}
    for spec in like.spec.columns:
        value = given.get(spec.name)
        if value is None:
            assert spec.nullable, spec.name
            columns[spec.name] = Column.null(
                count, like.column(spec.name).values.dtype, dictionary=like.column(spec.name).dictionary
            )
            continue
        dictionary = like.column(spec.name).dictionary
        if dictionary is not None:
            texts = [value] * count if isinstance(value, str) else np.asarray(value).tolist()
            codes = dictionary.codes(texts)
            columns[spec.name] = Column.array(codes, dictionary=dictionary)
        else:
            dtype = like.column(spec.name).values.dtype
            columns[spec.name] = Column.array(np.broadcast_to(np.asarray(value, dtype), (count,)).copy())
    return Table(like.spec, columns)
