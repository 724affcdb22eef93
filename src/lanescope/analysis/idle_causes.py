"""Sums of idle time: why lanes did not work, and for whom they waited."""

from __future__ import annotations

from functools import partial

import numpy as np

from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.analysis.idle import KINDS, QUALITIES, idle
from lanescope.analysis.instances import PARENT
from lanescope.analysis.lane_parts import of_parts
from lanescope.analysis.partition import BUSY, IDLE
from lanescope.common.intervals import INT64_MAX, Ints, sums
from lanescope.trace import Column, ColumnSpec, Dictionary, Table, TableSpec


def causes_spec(unit: str = "ns", *, each: bool = False) -> TableSpec:
    """Return the declaration of sums of idle intervals for a time unit."""
    where = ColumnSpec("track_id", "int64", "lane") if each else ColumnSpec("lane", "text", "name of the lanes")
    return TableSpec(
        "idle_causes",
        "sum of similar idle intervals of one lane"
        if each
        else "sum of similar idle intervals of all lanes of one name",
        (
            ColumnSpec("id", "int64", "dense, the longest total of a lane first"),
            where,
            ColumnSpec("kind", "text", "`wait` or `bubble`"),
            ColumnSpec("name", "text", "waiting region, or `between A and B` for a bubble"),
            ColumnSpec("waits_for", "text", "region that the lanes wait for; NULL if unknown", nullable=True),
            ColumnSpec("count", "int64", "idle intervals"),
            ColumnSpec(f"total_{unit}", "int64", "sum of their durations", unit=unit),
            ColumnSpec(f"blocked_{unit}", "int64", "part of the total before the producer ended", unit=unit),
            ColumnSpec(f"latency_{unit}", "int64", "part of the total after the producer ended", unit=unit),
            ColumnSpec("inferred", "int64", "idle intervals with an inferred producer"),
            ColumnSpec(
                "share", "float64", "total as a fraction of the recorded time of the lanes", nullable=True, unit="1"
            ),
        ),
    )


def causes(shared: AnalysisCache, role: str = PARENT, *, each: bool = False) -> Table:
    """Return idle stretches summed: why lanes did not work, and for whom they waited.

    Where a window selects slices, it is those stretches that a selected slice is part of, see ``idle``; the share is
    that of the recorded time of the lanes, whatever is selected.

    Args:
        shared: the trace.
        role: what an instance is, see ``Instances``.
        each: sum each lane by itself; else all lanes of one name together.

    Raises:
        UsageError: the trace has no such instances, or ``given`` a kind that is none.
    """
    unit, tree = shared.unit, shared.time.tree
    lanes, texts = Dictionary(), Dictionary()
    lane_of = np.arange(len(tree)) if each else lanes.codes(tree.names).astype(np.int64)
    summed = of_parts(shared, partial(_summed, role=role, lane_of=lane_of, texts=texts), role)
    recorded = np.sum([part[0] for part in summed], axis=0)
    keys, totals = (
        [np.concatenate(columns) for columns in zip(*(part[at] for part in summed), strict=True)] for at in (1, 2)
    )
    if len(summed) > 1:
        found, inverse = _group_similar(keys)
        keys, totals = [key[found] for key in keys], [sums(inverse, values, len(found)) for values in totals]
    lane, kind, name, producer = keys
    count, length, blocked, latency, inferred = totals
    rank = np.empty(len(texts) + 1, np.int64)  # of a text, by its code + 1; of none, the lowest
    rank[np.array([0, *(code + 1 for code in sorted(range(len(texts)), key=lambda code: texts.texts[code]))])] = (
        np.arange(len(texts) + 1)
    )
    sort = np.lexsort((rank[producer], rank[name + 1], kind, -length, lane))
    has_producer, of = producer[sort] > 0, recorded[lane[sort]]

    def text(codes: Ints, dictionary: Dictionary) -> Column:
        return Column.array(codes[sort].astype(np.int32), dictionary=dictionary)

    waits_for = np.where(has_producer, producer[sort] - 1, 0).astype(np.int32)
    return Table(
        causes_spec(unit, each=each),
        {
            "id": Column.array(np.arange(len(sort))),
            **({"track_id": Column.array(lane[sort])} if each else {"lane": text(lane, lanes)}),
            "kind": text(kind, Dictionary(KINDS)),
            "name": text(name, texts),
            "waits_for": Column.array(waits_for, valid=has_producer, dictionary=texts),
            "count": Column.array(count[sort]),
            f"total_{unit}": Column.array(length[sort]),
            f"blocked_{unit}": Column.array(blocked[sort]),
            f"latency_{unit}": Column.array(latency[sort]),
            "inferred": Column.array(inferred[sort]),
            "share": Column.array(length[sort] / np.where(of > 0, of, 1), valid=None if (of > 0).all() else of > 0),
        },
    )


def _summed(
    shared: AnalysisCache, role: str, lane_of: Ints, texts: Dictionary
) -> tuple[Ints, tuple[Ints, ...], tuple[Ints, ...]]:
    """Return the idle time of some lanes.

    Args:
        shared: the lanes.
        role: what an instance is.
        lane_of: int64 [tracks], lanes that are summed have the same number.
        texts: gets the names.

    Returns:
        How long the lanes of each number were recorded (int64). Of each group of similar stretches (int64 [groups]
        each): its number of lanes, kind, name, and producer + 1, 0 without one; its count, the sums of durations, of
        time before the producer ended and after it, and how many producers are inferred.
    """
    rows, unit = idle(shared, role), shared.unit
    spent = shared.lane_states[shared.lanes]
    recorded = sums(lane_of[shared.lanes], spent[:, BUSY] + spent[:, IDLE], int(lane_of.max(initial=-1)) + 1)
    coded = []
    for column in ("name", "waits_for"):
        dictionary = rows.column(column).dictionary
        codes, valid = rows.codes(column).astype(np.int64), rows.valid(column)
        used, inverse = np.unique(codes[valid], return_inverse=True)
        known = np.zeros(len(rows), np.int64)
        if dictionary is not None and len(used):
            mine = texts.codes([dictionary.texts[code] for code in used.tolist()]).astype(np.int64)
            known[valid] = mine[inverse.reshape(-1)] + 1
        coded.append(known)
    keys = [lane_of[rows.values("track_id")], rows.codes("kind").astype(np.int64), coded[0] - 1, coded[1]]
    found, inverse = _group_similar(keys)
    is_inferred = rows.valid("quality") & (rows.codes("quality") == QUALITIES.index("inferred"))
    values = (
        np.ones(len(rows), np.int64),
        *(rows.values(column) for column in ("dur", f"blocked_{unit}", f"latency_{unit}")),
        is_inferred.astype(np.int64),
    )
    return recorded, tuple(key[found] for key in keys), tuple(sums(inverse, each, len(found)) for each in values)


def _group_similar(keys: list[Ints]) -> tuple[Ints, Ints]:
    """Put rows together that agree in all keys (int64 [n] each, not negative).

    Returns:
        One row of each group (int64 [groups]), in the order of their keys; and the group of each row (int64 [n]).
    """
    code = keys[0]
    for key in keys[1:]:
        span = int(key.max(initial=0)) + 1
        if int(code.max(initial=0)) > INT64_MAX // span - 1:
            code = np.unique(code, return_inverse=True)[1]
        code = code * span + key
    _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
    return first, inverse
