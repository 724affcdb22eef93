"""Resources of the scopes of an orchestration. They have no timestamps, so only a table has them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.devices.ascend.emit.context import TimelineBuilder
from lanescope.devices.ascend.formats.scope_stats import RESOURCES, RINGED, VERSION, ScopeStats
from lanescope.devices.ascend.interpret import scope_checks
from lanescope.trace import Column
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]

_SIDES = ("start_tail", "start_head", "end_tail", "end_head")


def add_scopes(canvas: TimelineBuilder) -> None:
    """Add the scopes, one row per resource, with what follows from both of their boundaries."""
    scopes = canvas.told.parts.scope_stats
    if scopes is None or not len(scopes):
        return
    builder = canvas.builder
    begin, end, unmatched = pair(scopes)
    either = np.where(begin >= 0, begin, end)
    wide = len(RESOURCES)
    tail, head = _positions(scopes)
    values = {}
    for side, rows in (("start", begin), ("end", end)):
        for name, array in (("tail", tail), ("head", head)):
            values[f"{side}_{name}"] = np.where(rows[:, None] >= 0, array[rows], -1).reshape(-1)
    start_tail, start_head, end_tail, end_head = (values[name] for name in _SIDES)
    resource = np.tile(np.arange(wide), len(begin))
    # What it was allotted of a resource without positions is not known, nor of a heap whose positions wrap.
    is_ringed = (resource < len(RINGED)) & ((scopes.version >= VERSION) | (resource != RINGED.index("heap")))
    both = is_ringed & (start_head >= 0) & (end_head >= 0)
    capacity = _capacity(scopes, np.repeat(scopes.ring[either], wide), resource)
    builder.append(
        "ascend_scopes",
        input_id=Column.constant(canvas.input_of["scope_stats"], len(resource), np.int64),
        scope=np.repeat(np.arange(len(begin)), wide),
        site=np.repeat(builder.dictionary("ascend_scopes", "site").codes(scopes.site.tolist())[either], wide),
        depth=np.repeat(scopes.depth[either], wide).astype(np.int32),
        ring=np.repeat(scopes.ring[either], wide).astype(np.int32),
        resource=builder.dictionary("ascend_scopes", "resource").codes(RESOURCES)[resource],
        **{name: _known(column, column >= 0) for name, column in values.items()},
        allocated=_known(end_head - start_head, both),
        peak_at_most=_known(end_head - start_tail, both),
        used_at_end=_known(
            end_head - np.maximum(end_tail, 0), (end_head >= 0) & (is_ringed | (resource == len(RINGED)))
        ),
        capacity=_known(capacity, capacity >= 0),
    )
    note = canvas.told.problems.append
    note(("ascend_scope_unmatched", unmatched, None))
    wrong = contradicted(scopes) | scope_checks.moved_between(scopes)
    beyond, missing = scope_checks.tasks_of_scopes(canvas.told, scopes)
    note(("ascend_scope_contradicts", int(np.count_nonzero(wrong)), None))
    note(("ascend_scope_tasks_contradict", beyond, None))
    note(("ascend_scope_tasks_missing", missing, None))
    note(("ascend_scopes_untimed", len(begin), None))


def _known(values: Int64, valid: Mask) -> Column:
    return Column.array(np.where(valid, values, 0), valid=None if valid.all() else valid)


def _positions(scopes: ScopeStats) -> tuple[Int64, Int64]:
    """Return tails and heads of resources at boundaries, int64 [n, resources]; a tail is -1 where there is none."""
    none = np.full(len(scopes), -1, np.int64)
    return np.column_stack([scopes.tail, none]), np.column_stack([scopes.head, scopes.entries])


def _capacity(scopes: ScopeStats, ring: Int64, resource: Int64) -> Int64:
    """Return the capacity of resources of rings, int64 [n], -1 where it is not known."""
    if not len(scopes.capacity):
        return np.full(len(ring), -1, np.int64)
    has_ring = ring < len(scopes.capacity)
    return np.where(has_ring, scopes.capacity[np.where(has_ring, ring, 0), resource], -1)


def pair(scopes: ScopeStats) -> tuple[Int64, Int64, int]:
    """Return the boundaries of each scope, in the order of the file.

    Returns:
        Rows of the starts and of the ends, int64 [scopes], -1 for a missing one; and how many are missing.
    """
    begins: list[int] = []
    ends: list[int] = []
    # Scopes that have not ended, the innermost last: their depth, site and ring, and their place among all.
    inside: list[tuple[int, str, int, int]] = []
    keys = zip(scopes.is_begin.tolist(), scopes.depth.tolist(), scopes.site.tolist(), scopes.ring.tolist(), strict=True)
    for row, (is_begin, depth, site, ring) in enumerate(keys):
        # What begins at this depth, or ends, is not inside of these: their ends are missing.
        while inside and inside[-1][0] >= depth + (not is_begin):
            inside.pop()
        if is_begin:
            inside.append((depth, site, ring, len(begins)))
        elif inside and inside[-1][:3] == (depth, site, ring):
            ends[inside.pop()[3]] = row
            continue
        begins.append(row if is_begin else -1)
        ends.append(-1 if is_begin else row)
    start, end = np.array(begins, np.int64), np.array(ends, np.int64)
    return start, end, int(np.count_nonzero(start < 0) + np.count_nonzero(end < 0))


def contradicted(scopes: ScopeStats) -> Mask:
    """Return the boundaries that no run has, bool [n].

    Tails and heads of a ring never fall, a tail is never behind its head, and no more is in use than the capacity. The
    ring follows from the depth, or there is one ring.
    """
    tail, head, rings = scopes.tail, scopes.head, len(scopes.capacity)
    checked = np.arange(len(RINGED)) != RINGED.index("heap") if scopes.version < VERSION else slice(None)
    tail, head = tail[:, checked], head[:, checked]
    wrong = np.zeros(len(scopes), np.bool_)
    wrong |= (tail > head).any(axis=1)
    if rings:
        resources = np.arange(len(RINGED))[checked]
        most = np.column_stack([_capacity(scopes, scopes.ring, np.full(len(scopes), place)) for place in resources])
        wrong |= ((head - tail > most) & (most >= 0)).any(axis=1)
        most_entries = _capacity(scopes, scopes.ring, np.full(len(scopes), len(RINGED)))
        wrong |= (scopes.entries > most_entries) & (most_entries >= 0)
        expected = np.minimum(scopes.depth, rings - 1) if scopes.ring.any() else np.zeros(len(scopes), np.int64)
        wrong |= scopes.ring != expected
    order = np.argsort(scopes.ring, kind="stable")
    ring = scopes.ring[order]
    falls = np.zeros(len(scopes), np.bool_)
    for values in (tail[order], head[order]):
        falls[1:] |= ((values[1:] < values[:-1]).any(axis=1)) & (ring[1:] == ring[:-1])
    wrong[order] |= falls
    return wrong


def account_scopes(canvas: TimelineBuilder, scopes: ScopeStats, size: int) -> None:
    """Add the accounting of the bytes, and of the records that never reached the file."""
    builder, part = canvas.builder, canvas.input_of["scope_stats"]
    canvas.account_lines("scope_stats", scopes.tally, size)
    builder.add_stat("ascend_unknown_key", scopes.unknown_keys, input_id=part)
    builder.add_stat("ascend_unknown_value", int(scopes.version not in (0, VERSION)), input_id=part)
    builder.add_stat("ascend_scopes_fatal", int(scopes.is_fatal), input_id=part)
    builder.add_stat("ascend_scopes_headless", int(not scopes.version), input_id=part)
    # A line that is not valid did arrive; it is lost as bytes.
    arrived = len(scopes) + scopes.tally.bad_count
    if scopes.dropped:
        builder.add_stat("ascend_scopes_dropped", scopes.dropped, input_id=part)
        builder.add_dropped(
            unit="scope_stats record", unit_bytes=200, recorded=arrived, dropped=scopes.dropped, input_id=part
        )
    # Whether the file is cut off or the rest was not collected does not show: only what was dropped was never written.
    missing = 0 if scopes.total is None else scopes.total - scopes.dropped - arrived
    builder.add_stat("ascend_scopes_missing", max(missing, 0), input_id=part)
    builder.add_stat("ascend_extra_records", max(-missing, 0), input_id=part)
