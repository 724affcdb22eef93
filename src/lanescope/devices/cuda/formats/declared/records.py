"""What the records of a declared layout mean: kinds, stamps, events and the lanes that they belong to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.devices.cuda.formats import layout
from lanescope.devices.cuda.formats.buffer import UNKNOWN
from lanescope.devices.cuda.formats.declared import direct
from lanescope.devices.cuda.formats.declared.columns import Columns
from lanescope.devices.cuda.formats.declared.declaration import Declaration
from lanescope.errors import InputError

I64 = npt.NDArray[np.int64]

#: Kinds beyond those of a layout's records, as the native core has them.
UNREADABLE, EMPTY, _IGNORED = 4, 5, 6
#: A region without an end, where a record is a whole region.
OPEN = layout.FINALIZE
_CODES = {
    "begin": layout.BEGIN,
    "end": layout.END,
    "instant": layout.INSTANT,
    "finalize": layout.FINALIZE,
    "span": layout.BEGIN,
    "open": OPEN,
    "ignored": _IGNORED,
}
_MOST_EVENTS = 1 << 16
#: Kinds of more bits are looked up, not indexed.
_TABLE_BITS = 12


@dataclass
class Records:
    """Records, lane after lane, those of a lane in write order.

    Attributes:
        start: int64 [lanes + 1], where each lane begins.
        begin: int64 [n], the only stamp, or that of the start; as stored.
        end: int64 [n], of regions of one record; None where records are starts and ends.
        kind: uint8 [n].
        event: uint16 [n], codes of ``ids``.
        ids: int64, the event number of each code; None: codes are numbers.
        tracks: int64, the track of each code; None: the layout has no tracks.
        payload: int64 [n]; None: the layout has none.
        places: returns ``byte``.
        unit_bytes: bytes of a unit.
        block: int64 [lanes].
        group: int64 [lanes].
        sm: int64 [lanes], ``UNKNOWN`` where a lane has none or several; None: the layout does not record it.
        moved: lanes with several SMs.
        anchor: int64 [lanes], a full reading of the clock; None: the layout has none.
        pairs: readings of counter and timer, int64 [lanes] each.
        capacity: int64 [lanes]; None where lanes are not those of the buffer.
        offered: int64 [lanes], records that lanes counted; None: not counted.
        lost: int64 [lanes], those of them without room.
        counted: bool [lanes]; None: all lanes counted, or none.
        is_full: bool [lanes].
        overwritten: int64 [lanes], 1 if position 0 represents overwritten records; None: no lane has any.
        is_narrow: whether no stamp is wider than the clock.
        orphans: unreadable records that belong to no lane.
        ignored: records that are not events.
    """

    start: I64
    begin: I64
    end: I64 | None
    kind: npt.NDArray[np.uint8]
    event: npt.NDArray[np.uint16]
    ids: I64 | None
    tracks: I64 | None
    payload: I64 | None
    places: Callable[[], I64]
    unit_bytes: int
    block: I64
    group: I64
    sm: I64 | None
    moved: int
    anchor: I64 | None
    pairs: tuple[tuple[I64, I64], ...]
    capacity: I64 | None
    offered: I64 | None
    lost: I64 | None
    counted: npt.NDArray[np.bool_] | None
    is_full: npt.NDArray[np.bool_]
    overwritten: I64 | None
    is_narrow: bool = False
    orphans: int = 0
    ignored: int = 0

    @cached_property
    def byte(self) -> I64:
        """Where each record is, int64 [n] bytes of the main array."""
        return self.places()

    @cached_property
    def slot(self) -> I64:
        """Where each record is, int64 [n] units."""
        return self.byte // self.unit_bytes


def records_of(declaration: Declaration, columns: Columns) -> Records:
    """Return what the records mean.

    Raises:
        InputError: there are more different events than the decoder tells apart.
    """
    roles, geometry = declaration.roles, columns.geometry
    at_once = None
    if declaration.kind is not None:
        codes = {value: _CODES[name] for value, name in declaration.kind[1].items()}
        is_plain = declaration.record.extends is None and "track" not in roles
        if _IGNORED not in codes.values() and is_plain:
            at_once = direct.read(declaration, columns, codes, UNREADABLE)
    if at_once is not None:
        begin, event_of, kind, _ = at_once
    else:
        kind = kinds(declaration, columns)
        begin = columns.value(roles["begin" if declaration.is_spans else "time"]).copy()
    end = columns.value(roles["end"]).copy() if declaration.is_spans else None
    has_ignored = at_once is None and bool((kind == _IGNORED).any())
    order, source, start, block, group = _lanes(declaration, columns, kind, begin, has_ignored=has_ignored)
    orphans = ignored = 0
    payload = columns.value(roles["payload"]) if "payload" in roles else None
    ids = None
    if at_once is None:
        ids = columns.value(roles["id"]) if "id" in roles else np.zeros(len(kind), np.int64)
    sm = _sm_of_records(declaration, columns)
    if order is not None:
        ignored = int(np.count_nonzero(kind == _IGNORED))
        orphans = int(np.count_nonzero(kind == UNREADABLE))
        kind, begin = kind[order], begin[order]
        orphans -= int(np.count_nonzero(kind == UNREADABLE))
        end = None if end is None else end[order]
        payload = None if payload is None else payload[order]
        sm = None if sm is None else sm[order]
    tracks = None
    if ids is None:
        event, numbers = event_of if order is None else event_of[order], None
    elif "track" in roles:
        of_track = columns.value(roles["track"])
        by_lane = (ids, of_track) if order is None else (ids[order], of_track[order])
        event, numbers, tracks = _events_of_tracks(declaration, *by_lane, kind)
    else:
        event, numbers = _events(declaration, ids if order is None else ids[order], kind)
    lost, counted, is_full, offered, capacity, overwritten = _losses(declaration, columns, source)
    sm_of, moved = _sms(declaration, columns, source, sm, kind, start)
    clock = declaration.clock
    of_lane = _of_source(source)
    found = Records(
        start=start,
        begin=begin,
        end=end,
        kind=kind,
        event=event,
        ids=numbers,
        tracks=tracks,
        payload=payload,
        places=lambda: columns.byte if order is None else columns.byte[order],
        unit_bytes=declaration.unit_bytes,
        block=block,
        group=group,
        sm=sm_of,
        moved=moved,
        is_narrow=at_once is not None and at_once.stamp_bits <= clock.bits,
        anchor=None if clock.anchor is None else of_lane(geometry.lane_value(clock.anchor)),
        pairs=tuple((of_lane(geometry.lane_value(a)), of_lane(geometry.lane_value(b))) for a, b in clock.pairs),
        capacity=capacity,
        offered=offered,
        lost=lost,
        counted=counted,
        is_full=is_full,
        overwritten=overwritten,
        orphans=orphans,
        ignored=ignored,
    )
    if declaration.pairing == "stack":
        _pair_as_stack(found)
    elif declaration.pairing == "boundary":
        _pair_at_boundaries(found)
    return found


def kinds(declaration: Declaration, columns: Columns) -> npt.NDArray[np.uint8]:
    """Return the kind of each position, uint8 [n]."""
    if declaration.kind is None:
        kind = np.full(len(columns), _CODES[declaration.constant_kind], np.uint8)
    else:
        expression, table = declaration.kind
        codes = {value: _CODES[name] for value, name in table.items()}
        name = columns.is_field(expression)
        raw = columns.raw(name) if name is not None else None
        if raw is not None and raw.dtype.itemsize <= 2 and max(codes) < 1 << _TABLE_BITS:
            by_value = np.full(np.iinfo(raw.dtype).max + 1, UNREADABLE, np.uint8)
            for value, code in codes.items():
                by_value[value] = code
            kind = by_value[raw]
        else:
            values = columns.value(expression)
            kind = np.full(len(columns), UNREADABLE, np.uint8)
            for value, code in codes.items():
                kind[values == value] = code
    if "open" in declaration.roles:
        is_open = columns.value(declaration.roles["open"]) != 0
        kind[is_open & (kind == layout.BEGIN)] = OPEN
    if declaration.record.agree is not None:
        kind[columns.value(declaration.record.agree) == 0] = UNREADABLE
    if declaration.state:
        is_state = columns.is_state()
        kind[columns.lacks_state() & ~is_state] = UNREADABLE
        kind[is_state] = _IGNORED
    if declaration.record.empty is not None:
        kind[columns.is_empty()] = EMPTY
    if declaration.record.extends is not None:
        kind[columns.is_continuation()] = _IGNORED
    return kind


def _lanes(
    declaration: Declaration, columns: Columns, kind: npt.NDArray[np.uint8], begin: I64, *, has_ignored: bool
) -> tuple[I64 | None, I64, I64, I64, I64]:
    """Find the lanes.

    Returns:
        The records in the order of the lanes, int64 [n], None if they are stored so; the lane of the buffer of each
        lane, int64 [lanes], -1 if they are several; where lanes begin; their blocks; their groups.
    """
    geometry, roles = columns.geometry, declaration.roles
    names = {spec.name for spec in (*declaration.record.fields, *declaration.record.views)} | {"k"}
    block, group = _slot_identity(declaration, columns)
    by_record = any(role in roles and roles[role].names & names for role in ("block", "group"))
    source = np.arange(geometry.lanes, dtype=np.int64)
    is_list = declaration.positions == "sequence"
    if not by_record:
        if is_list and not has_ignored:
            return None, source, columns.start, block, group
        order = np.flatnonzero((kind != _IGNORED) if is_list else (kind < EMPTY))
        lane_of = columns.spread(source)[order]
        if not is_list:
            by = np.lexsort((begin[order], lane_of))
            order, lane_of = order[by], lane_of[by]
        start = np.searchsorted(lane_of, np.arange(geometry.lanes + 1)).astype(np.int64)
        return order, source, start, block, group
    values = [
        columns.value(roles[role]) if role in roles and roles[role].names & names else columns.spread(default)
        for role, default in (("block", block), ("group", group))
    ]
    usable = np.flatnonzero(kind < UNREADABLE)
    blocks, groups, of = values[0][usable], values[1][usable], columns.spread(source)[usable]
    by = np.lexsort((np.arange(len(usable)), of, groups, blocks))
    order = usable[by]
    blocks, groups, of = blocks[by], groups[by], of[by]
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = (blocks[1:] != blocks[:-1]) | (groups[1:] != groups[:-1])
    first = np.flatnonzero(is_new)
    start = np.append(first, len(order)).astype(np.int64)
    last = np.append(first[1:], len(order)) - 1
    one = of[first] == of[last] if len(first) else np.zeros(0, np.bool_)
    return order, np.where(one, of[first], -1).astype(np.int64), start, blocks[first], groups[first]


def _slot_identity(declaration: Declaration, columns: Columns) -> tuple[I64, I64]:
    """Return block and group of each lane of the buffer, int64 [lanes]: of its dimensions unless declared."""
    geometry = columns.geometry
    names = [name for name, _ in declaration.dims]
    outer = "block" if "block" in names else names[0]
    block = np.asarray(geometry.lane_scope[outer], np.int64)
    group = np.zeros(geometry.lanes, np.int64)
    for name, size in zip(names, geometry.sizes, strict=True):
        if name != outer:
            group = group * size + geometry.lane_scope[name]
    known = set(geometry.lane_scope)
    found = []
    for role, value in (("block", block), ("group", group)):
        expression = declaration.roles.get(role)
        found.append(geometry.lane_value(expression) if expression is not None and expression.names <= known else value)
    return found[0], found[1]


def _events(
    declaration: Declaration, ids: I64, kind: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.uint16], I64 | None]:
    """Return a code of 16 bits for each event, and the numbers of the codes where those are not the same."""
    usable = kind < UNREADABLE
    good = ids if usable.all() else ids[usable]
    if not len(good) or (int(good.min()) >= 0 and int(good.max()) < _MOST_EVENTS):
        return np.where(usable, ids, 0).astype(np.uint16), None
    numbers = distinct(good)
    if len(numbers) > _MOST_EVENTS:
        raise InputError(
            f"layout {declaration.name}: {len(numbers)} different events, the limit is {_MOST_EVENTS}",
            hint="check the id of the layout with `lanescope cuda-layout check`",
        )
    codes = np.searchsorted(numbers, ids)
    return np.where(usable, codes, 0).astype(np.uint16), numbers


def _events_of_tracks(
    declaration: Declaration, ids: I64, tracks: I64, kind: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.uint16], I64, I64]:
    """Return a code for each pair of an event and a track, as regions pair within a track; and both for each code."""
    usable = kind < UNREADABLE
    numbers, names = distinct(ids[usable]), distinct(tracks[usable])
    pair = np.searchsorted(numbers, ids) * max(1, len(names)) + np.searchsorted(names, tracks)
    pairs = distinct(pair[usable])
    codes, _ = _events(declaration, np.searchsorted(pairs, pair).astype(np.int64), kind)
    return codes, numbers[pairs // max(1, len(names))], names[pairs % max(1, len(names))]


def _of_source(source: I64) -> Any:
    """Return what takes values of the buffer's lanes to the lanes; 0 where a lane is of several."""

    def of(values: I64) -> I64:
        return np.where(source >= 0, values[np.maximum(source, 0)], 0)

    return of


def _losses(declaration: Declaration, columns: Columns, source: I64) -> tuple[Any, ...]:
    """Return lost, counted, is_full, offered, capacity and overwritten for each lane."""
    geometry, count = columns.geometry, len(source)
    is_same = count == geometry.lanes and bool((source == np.arange(count)).all())
    # What a lane of the buffer counted is said of one lane only if all of its records are of that lane.
    owners = np.bincount(source[source >= 0], minlength=geometry.lanes)
    is_clear = is_same or (bool((source >= 0).all()) and bool((owners[columns.count > 0] == 1).all()))
    if not is_clear:
        nothing = np.zeros(count, np.bool_)
        return None, None, nothing, None, None, None
    capacity, is_full = geometry.capacity[source], columns.is_full[source].copy()
    if columns.counted is None:
        return None, None, is_full, None, capacity, None
    lost, counted = columns.lost[source], columns.counted[source]
    offered = (columns.count + columns.lost if geometry.offered is None else geometry.offered)[source]
    is_ring = declaration.overflow in ("ring", "ring-by-time")
    overwritten = (lost > 0).astype(np.int64) if is_ring and lost.any() else None
    if not is_ring:
        is_full |= lost > 0
    return lost, None if counted.all() else counted, is_full, np.maximum(offered, 0), capacity, overwritten


def _sm_of_records(declaration: Declaration, columns: Columns) -> npt.NDArray[np.signedinteger[Any]] | None:
    """Return the SM that each record names, signed [n]; None where they name none."""
    role = declaration.roles.get("sm")
    if role is None or role.names <= set(columns.geometry.lane_scope):
        return None
    name = columns.is_field(role)
    raw = None if name is None else columns.raw(name)
    return raw.astype(np.int16) if raw is not None and raw.dtype.itemsize == 1 else columns.value(role)


def _sms(
    declaration: Declaration,
    columns: Columns,
    source: I64,
    of_records: npt.NDArray[np.signedinteger[Any]] | None,
    kind: npt.NDArray[np.uint8],
    start: I64,
) -> tuple[I64 | None, int]:
    """Return the SM of each lane, and how many lanes name several."""
    role = declaration.roles.get("sm")
    if role is None:
        return None, 0
    if of_records is None:
        values = columns.geometry.lane_value(role)
        return np.where(source >= 0, values[np.maximum(source, 0)], UNKNOWN), 0
    lanes = len(start) - 1
    low, high = np.full(lanes, UNKNOWN, np.int64), np.full(lanes, UNKNOWN, np.int64)
    usable = kind < UNREADABLE
    some = np.flatnonzero(np.diff(start) > 0)
    if len(some):
        first = start[:-1][some]
        far = of_records.dtype.type(np.iinfo(of_records.dtype).max)
        low[some] = np.minimum.reduceat(np.where(usable, of_records, far), first)
        high[some] = np.maximum.reduceat(np.where(usable, of_records, of_records.dtype.type(UNKNOWN)), first)
    several = (high != UNKNOWN) & (low != high)
    return np.where(several, UNKNOWN, high), int(np.count_nonzero(several))


def _pair_as_stack(records: Records) -> None:
    """Give each end the event of the region that began last: an end names no event of its own."""
    usable = np.flatnonzero(records.kind <= layout.END)
    if not len(usable):
        return
    lane = np.searchsorted(records.start, usable, side="right") - 1
    is_end = records.kind[usable] == layout.END
    step = np.where(is_end, -1, 1)
    level = np.cumsum(step)
    first = np.flatnonzero(np.diff(lane, prepend=-1))
    before = level[first] - step[first]
    level -= np.repeat(before, np.diff(first, append=len(lane)))
    # Ends of nothing must not make what comes later look deeper than it is.
    apart = lane * (2 * len(usable) + 2)
    lowest = np.minimum.accumulate(level - apart) + apart
    level -= np.minimum(lowest, 0)
    depth = np.where(is_end, level + 1, level)
    order = np.lexsort((np.arange(len(usable)), depth, lane))
    ends = is_end[order]
    follows = np.zeros(len(order), np.bool_)
    follows[1:] = (
        ends[1:] & ~ends[:-1] & (lane[order][1:] == lane[order][:-1]) & (depth[order][1:] == depth[order][:-1])
    )
    at = np.flatnonzero(follows)
    records.event[usable[order[at]]] = records.event[usable[order[at - 1]]]


def _pair_at_boundaries(records: Records) -> None:
    """Let each record end the region before it and begin its own; the last one of a lane stays open."""
    usable = np.flatnonzero(records.kind < UNREADABLE)
    lane = np.searchsorted(records.start, usable, side="right") - 1
    end = records.begin.copy()
    has_next = np.zeros(len(usable), np.bool_)
    has_next[:-1] = lane[1:] == lane[:-1]
    end[usable[:-1]] = records.begin[usable[1:]]
    records.kind[usable] = np.where(has_next, layout.BEGIN, OPEN)
    records.end = end
