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
from lanescope.devices.cuda.formats.declared.columns import Columns
from lanescope.devices.cuda.formats.declared.declaration import Declaration
from lanescope.devices.cuda.formats.declared.direct import CORE_BITS, FAR_BITS
from lanescope.devices.cuda.formats.declared.lane_table import LaneTable, of_columns, slot_identity
from lanescope.devices.cuda.formats.lanes import U32
from lanescope.errors import InputError

I64 = npt.NDArray[np.int64]

#: Kinds beyond those of a layout's records, as the native core has them.
UNREADABLE, EMPTY, IGNORED = 4, 5, 6
#: A region without an end, where a record is a whole region.
OPEN = layout.FINALIZE
CODES = {
    "begin": layout.BEGIN,
    "end": layout.END,
    "instant": layout.INSTANT,
    "finalize": layout.FINALIZE,
    "span": layout.BEGIN,
    "open": OPEN,
    "ignored": IGNORED,
}
_MOST_EVENTS = 1 << 16
#: Kinds of more bits are looked up, not indexed.
_TABLE_BITS = 12


@dataclass(kw_only=True)
class Records(LaneTable):
    """Records, lane after lane, those of a lane in write order.

    Attributes:
        begin: int64 [n], the only stamp, or that of the start; as stored.
        end: int64 [n], of regions of one record; None where records are starts and ends.
        kind: uint8 [n].
        event: uint16 [n], codes of ``ids``.
        tracks: int64, the track of each code; None: the layout has no tracks.
        payload: int64 [n]; None: the layout has none.
        payload2: the second one, likewise.
        token: int64 [n], what starts and ends of a region share besides their event; None: the layout has none.
        places: returns ``byte``.
        unit_bytes: bytes of a unit.
    """

    begin: I64
    end: I64 | None
    kind: npt.NDArray[np.uint8]
    event: npt.NDArray[np.uint16]
    tracks: I64 | None
    payload: I64 | None
    payload2: I64 | None
    token: I64 | None
    places: Callable[[], I64]
    unit_bytes: int

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
    roles = declaration.roles
    kind = kinds(declaration, columns)
    begin = columns.value(roles["begin" if declaration.is_spans else "time"]).copy()
    end = columns.value(roles["end"]).copy() if declaration.is_spans else None
    order, source, start, block, group = _lanes(
        declaration, columns, kind, begin, has_ignored=bool((kind == IGNORED).any())
    )
    orphans = ignored = 0
    carried = [columns.value(roles[of]) if of in roles else None for of in ("payload", "payload2", "token")]
    ids = columns.value(roles["id"]) if "id" in roles else np.zeros(len(kind), np.int64)
    sm = _sm_of_records(declaration, columns)
    if order is not None:
        ignored = int(np.count_nonzero(kind == IGNORED))
        orphans = int(np.count_nonzero(kind == UNREADABLE))
        kind, begin, ids = kind[order], begin[order], ids[order]
        orphans -= int(np.count_nonzero(kind == UNREADABLE))
        end = None if end is None else end[order]
        carried = [None if values is None else values[order] for values in carried]
        sm = None if sm is None else sm[order]
    payload, payload2, token = carried
    stale = columns.is_stale() if declaration.record.stale is not None else np.zeros(0, np.bool_)
    tracks: I64 | None = None
    numbers: I64 | None
    if "track" in roles:
        of_track = columns.value(roles["track"])
        event, numbers, tracks = _events_of_tracks(
            declaration, ids, of_track if order is None else of_track[order], kind
        )
    else:
        event, numbers = _events(declaration, ids, kind)
    sm_of, moved = _sms(declaration, columns, source, sm, kind, start)
    found = Records(
        start=start,
        begin=begin,
        end=end,
        kind=kind,
        event=event,
        ids=numbers,
        tracks=tracks,
        payload=payload,
        payload2=payload2,
        token=token,
        places=lambda: columns.byte if order is None else columns.byte[order],
        unit_bytes=declaration.unit_bytes,
        block=block,
        group=group,
        sm=sm_of,
        moved=moved,
        orphans=orphans,
        ignored=ignored,
        stale=int(np.count_nonzero(stale)),
        first_stale=int(columns.byte[stale.argmax()]) // declaration.unit_bytes if stale.any() else None,
        **of_columns(declaration, columns, source),
    )
    if declaration.pairing == "stack":
        _pair_as_stack(found)
    elif declaration.pairing == "boundary":
        _pair_at_boundaries(found)
    return found


def kinds(declaration: Declaration, columns: Columns) -> npt.NDArray[np.uint8]:
    """Return the kind of each position, uint8 [n]."""
    if declaration.kind is None:
        kind = np.full(len(columns), CODES[declaration.constant_kind], np.uint8)
    else:
        expression, table = declaration.kind
        codes = {value: CODES[name] for value, name in table.items()}
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
        kind[is_state] = IGNORED
    if declaration.record.stale is not None:
        kind[columns.is_stale()] = IGNORED
    if declaration.record.empty is not None:
        kind[columns.is_empty()] = EMPTY
    if declaration.record.extends is not None:
        kind[columns.is_continuation()] = IGNORED
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
    block, group = slot_identity(declaration, geometry)
    by_record = any(role in roles and roles[role].names & names for role in ("block", "group"))
    source = np.arange(geometry.lanes, dtype=np.int64)
    is_list = declaration.positions == "sequence"
    if not by_record:
        if is_list and not has_ignored:
            return None, source, columns.start, block, group
        order = np.flatnonzero((kind != IGNORED) if is_list else (kind < UNREADABLE))
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
    by = _by_lane(blocks, groups)
    order = usable[by]
    blocks, groups, of = blocks[by], groups[by], of[by]
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = (blocks[1:] != blocks[:-1]) | (groups[1:] != groups[:-1])
    first = np.flatnonzero(is_new)
    start = np.append(first, len(order)).astype(np.int64)
    last = np.append(first[1:], len(order)) - 1
    one = of[first] == of[last] if len(first) else np.zeros(0, np.bool_)
    return order, np.where(one, of[first], -1).astype(np.int64), start, blocks[first], groups[first]


def _by_lane(blocks: I64, groups: I64) -> I64:
    """Return the order of records by block and group, int64 [n]; those of a lane stay in their order."""
    if len(blocks):
        first_block, first_group = int(blocks.min()), int(groups.min())
        span = int(groups.max()) - first_group + 1
        if (int(blocks.max()) - first_block + 1) * span <= 1 << 16:
            # Numbers of 16 bits are sorted without a comparison.
            return np.argsort(((blocks - first_block) * span + (groups - first_group)).astype(np.uint16), kind="stable")
    return np.lexsort((groups, blocks))


def _events(
    declaration: Declaration, ids: I64, kind: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.uint16], I64 | None]:
    """Return a code of 16 bits for each event, and the numbers of the codes where those are not the same."""
    usable = kind < UNREADABLE
    good = ids if usable.all() else ids[usable]
    if not len(good) or (int(good.min()) >= 0 and int(good.max()) < _MOST_EVENTS):
        return np.where(usable, ids, 0).astype(np.uint16), None
    numbers = distinct(good)
    check_events(declaration, numbers)
    codes = np.searchsorted(numbers, ids)
    return np.where(usable, codes, 0).astype(np.uint16), numbers


def check_events(declaration: Declaration, numbers: I64) -> None:
    """Check that the decoder can tell all events apart.

    Raises:
        InputError: there are too many.
    """
    if len(numbers) > _MOST_EVENTS:
        raise InputError(
            f"layout {declaration.name}: {len(numbers)} different events, the limit is {_MOST_EVENTS}",
            hint="check the id of the layout with `lanescope cuda-layout check`",
        )


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


def rows_of(records: Records, lane: I64, index: U32) -> I64:
    """Return the numbers of records from their lanes and positions, int64 [n]."""
    at = index.astype(np.int64)
    if records.overwritten is not None:
        at = np.maximum(at - records.overwritten[lane], 0)
    # Position 0 of a ring represents records that are gone, and a lane may have no record left.
    found: I64 = np.minimum(records.start[lane] + at, max(0, len(records.slot) - 1))
    return found


def events_of(records: Records) -> list[tuple[int, int]]:
    """Return number and track of the events of records: of each code, or where codes are numbers of those in use."""
    ids = records.ids
    if ids is None:
        ids = distinct(records.event[records.kind < UNREADABLE].astype(np.int64))
    tracks = np.zeros(len(ids), np.int64) if records.tracks is None else records.tracks
    return list(zip(ids.tolist(), tracks.tolist(), strict=True))


def earliest(records: Records) -> int | None:
    """Return the earliest stamp; a count of 64 bits with its highest bit set has run for longer than any clock."""
    good = (records.kind < UNREADABLE) & (records.begin >= 0)
    return int(records.begin[good].min()) if good.any() else None


def rebase(declaration: Declaration, records: Records, origin: int) -> None:
    """Count stamps that are wider than the core's from ``origin``; those that are too far from it are unreadable."""
    bits, far_away = declaration.clock.bits, np.int64(1) << np.int64(FAR_BITS)
    mask = np.int64((1 << min(bits, CORE_BITS)) - 1)
    if bits > CORE_BITS:
        good = records.kind < UNREADABLE
        far = good & ((records.begin < 0) | (records.begin - origin >= far_away))
        if records.end is not None:
            has_end = good & (records.kind == layout.BEGIN)
            far |= has_end & (np.abs(records.end - records.begin) >= far_away)
        records.kind[far] = UNREADABLE
        good &= ~far
        records.begin = np.where(good, records.begin - origin, 0)
        if records.end is not None:
            records.end = np.where(good, records.end - origin, 0)
    records.begin &= mask
    if records.end is not None:
        records.end &= mask
    bad = records.kind == UNREADABLE
    records.bad = int(np.count_nonzero(bad))
    records.first_bad = int(records.slot[bad.argmax()]) if records.bad else None
