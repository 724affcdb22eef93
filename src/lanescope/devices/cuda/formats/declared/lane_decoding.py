"""The lanes of a declared buffer, decoded part by part: straight from the bytes, or by columns of their fields."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.common.distinct import distinct
from lanescope.devices.cuda.formats import layout
from lanescope.devices.cuda.formats.buffer import UNKNOWN, Summary
from lanescope.devices.cuda.formats.declared import earlier_regions, earlier_words
from lanescope.devices.cuda.formats.declared.arrays import Arrays
from lanescope.devices.cuda.formats.declared.columns import Columns
from lanescope.devices.cuda.formats.declared.declaration import MAIN, Declaration
from lanescope.devices.cuda.formats.declared.direct import (
    BAD,
    BEGINS,
    CORE_BITS,
    FIRST_BAD,
    OTHERS,
    DirectLanes,
    Roles,
    roles_of,
)
from lanescope.devices.cuda.formats.declared.geometry import Geometry, extent_of_record
from lanescope.devices.cuda.formats.declared.lane_table import LaneTable, joined, of_columns, slot_identity
from lanescope.devices.cuda.formats.declared.record_list import RecordList, is_list
from lanescope.devices.cuda.formats.declared.records import (
    CODES,
    UNREADABLE,
    Records,
    check_events,
    earliest,
    events_of,
    rebase,
    records_of,
    rows_of,
)
from lanescope.devices.cuda.formats.declared.windows import Windows, cut
from lanescope.devices.cuda.formats.earlier_launch import NEVER, odd_lanes
from lanescope.devices.cuda.formats.lane_columns import end_to_end, shared
from lanescope.devices.cuda.formats.lanes import I64, U32, Decoded, Outputs
from lanescope.devices.cuda.formats.word_source import FileBytes

Part = tuple[int, int]

#: Most records of a part that is read by columns, unless one lane has more.
PART_RECORDS = 1 << 17


class Lanes(Protocol):
    """The lanes of a buffer.

    Attributes:
        table: what is known of them apart from their records.
        origin: the stamp from which stamps that are wider than the core's are counted.
        is_read_whole: whether a file that is large had to be read whole.
    """

    @property
    def is_read_whole(self) -> bool: ...  # noqa: D102
    @property
    def table(self) -> LaneTable: ...  # noqa: D102
    @property
    def origin(self) -> int: ...  # noqa: D102

    def cut(self, limit: int) -> list[Part]:
        """Cut the lanes such that no part has many more records than ``limit``, where they can be read alone."""

    def decode(self, part: Part, *, split: bool, step_back: int) -> Decoded:
        """Decode the lanes of a part."""

    def part_launches(self, summary: Summary, *, keep: bool, launch_ns: int | None) -> tuple[int, int] | None:
        """Leave out or tell apart what earlier launches left; return how many records, and the slot of the first."""

    def slots_of(self, lane: U32 | I64, index: U32) -> I64:
        """Return the slots of records from their lanes and positions."""

    def kinds_of(self, lane: U32 | I64, index: U32) -> npt.NDArray[np.uint8]:
        """Return the kinds of records of the part that was decoded last."""

    def carried(self, slots: I64, role: str) -> I64:
        """Return the values of a role, ``payload``, ``payload2`` or ``token``, of records of the part decoded last."""

    def records(self) -> Records:
        """Return all records."""


def lanes_of(declaration: Declaration, arrays: Arrays, geometry: Geometry) -> Lanes:
    """Return what decodes the lanes of a buffer."""
    codes = {} if declaration.kind is None else {value: CODES[name] for value, name in declaration.kind[1].items()}
    roles = roles_of(declaration, codes, UNREADABLE) if codes else None
    if roles is None:
        return ColumnLanes(declaration, arrays, geometry)
    return WordLanes(declaration, arrays, geometry, roles)


class _LanesInOrder:
    """What both ways of decoding share."""

    @property
    def is_read_whole(self) -> bool:
        """Whether a file that is large had to be read whole."""
        return self._is_file_read or self._windows.is_whole

    @property
    def origin(self) -> int:
        """The stamp from which wide stamps are counted."""
        return self._origin

    def __init__(self, declaration: Declaration, arrays: Arrays, geometry: Geometry) -> None:
        self._declaration, self._arrays, self._geometry = declaration, arrays, geometry
        self._parts: list[Part] = [(0, geometry.lanes)]
        self._is_file_read = False
        self._origin = 0

    @cached_property
    def _windows(self) -> Windows:
        return Windows(self._arrays, self._geometry, self._declaration.record.size, self._parts)

    @property
    def _is_in_memory(self) -> bool:
        return not isinstance(self._arrays.main, FileBytes)

    def _places(self, table: LaneTable, lane: U32 | I64, index: U32, first: I64, ring: I64) -> I64:
        """Return the slots of records, int64 [n]."""
        at = index.astype(np.int64)
        if table.overwritten is not None:
            # Position 0 of a ring represents records that are gone, and a lane may have no record left.
            at = np.maximum(at - table.overwritten[lane], 0)
        if ring.any():
            rings = ring[lane]
            at = np.where(rings > 0, (first[lane] + at) % np.maximum(rings, 1), at)
        found: I64 = (self._geometry.base[lane] + at * self._geometry.stride) // self._declaration.unit_bytes
        return found

    def records(self) -> Records:
        """Return all records, however many they are."""
        arrays = self._arrays.in_memory()
        found = records_of(self._declaration, Columns(self._declaration, arrays, self._geometry))
        rebase(self._declaration, found, self.origin)
        return found


class WordLanes(_LanesInOrder):
    """Lanes that the native core reads itself."""

    def __init__(self, declaration: Declaration, arrays: Arrays, geometry: Geometry, roles: Roles) -> None:
        super().__init__(declaration, arrays, geometry)
        self._columns = Columns(declaration, arrays, geometry)
        self._direct = DirectLanes(roles, self._columns)
        self._is_counted = False

    def cut(self, limit: int) -> list[Part]:
        """Cut the lanes: by their records where they can be counted at once, else by their positions."""
        counts = self._geometry.room
        if self._is_in_memory:
            self._count()
            counts = self._direct.counts[:, (BEGINS, OTHERS, BAD)].sum(axis=1)
        self._parts = cut(counts, limit)
        self.__dict__.pop("_windows", None)
        return self._parts

    def _count(self) -> None:
        if self._is_counted:
            return
        self._is_counted = True
        for part in self._parts:
            self._direct.count(part, self._windows.of(part))
        if self._direct.roles.is_wide:
            self._origin = self._direct.set_origin()
            for part in self._parts:
                self._direct.count(part, self._windows.of(part))

    @cached_property
    def table(self) -> LaneTable:
        """What is known of the lanes apart from their records."""
        self._count()
        declaration, columns, counts = self._declaration, self._columns, self._direct.counts
        block, group = slot_identity(declaration, self._geometry)
        sm, moved = None, 0
        role = declaration.roles.get("sm")
        if role is not None:
            sm, moved = self._direct.sms()
            if role.names <= set(self._geometry.lane_scope):
                sm, moved = self._geometry.lane_value(role), 0
        bad = np.flatnonzero(counts[:, BAD] > 0)
        first_bad = None
        if len(bad):
            lane, position = bad[:1], counts[bad[:1], FIRST_BAD]
            first, ring = self._columns.first[lane], self._columns.ring[lane]
            at = (first + position) % np.where(ring > 0, ring, self._geometry.room[lane] + 1)
            first_bad = int((self._geometry.base[lane] + at * self._geometry.stride)[0]) // declaration.unit_bytes
        return LaneTable(
            start=columns.start,
            block=block,
            group=group,
            sm=sm,
            moved=moved,
            bad=int(counts[:, BAD].sum()),
            first_bad=first_bad,
            **of_columns(declaration, columns, np.arange(len(block), dtype=np.int64)),
        )

    def decode(self, part: Part, *, split: bool, step_back: int) -> Decoded:
        """Decode the lanes of a part."""
        lanes, table = slice(*part), self.table
        overwritten = np.zeros(part[1] - part[0], np.uint8)
        if table.overwritten is not None:
            overwritten = table.overwritten[lanes].astype(np.uint8)
        return self._direct.decode(
            part,
            self._windows.of(part),
            overwritten=overwritten,
            is_full=table.is_full[lanes].astype(np.uint8),
            stamp_bits=min(self._declaration.clock.bits, CORE_BITS),
            split=split,
            step_back=step_back,
        )

    def part_launches(self, summary: Summary, *, keep: bool, launch_ns: int | None) -> tuple[int, int] | None:
        """Leave out or tell apart what earlier launches left; return how many records, and the slot of the first."""
        declaration, geometry, table = self._declaration, self._geometry, self.table
        if not earlier_words.is_alike(declaration, geometry):
            return None
        earlier_words.slots_in(self._arrays.main, geometry)
        if not odd_lanes(summary).any():
            # Nothing is to be found, so no word has to be shown as TIRx would have stored it.
            return None
        words = earlier_words.AsTirx(self._arrays.main, geometry, self._direct)
        clock_of = table.sm if declaration.clock.across != "device" else None
        found = earlier_words.find(words, summary, keep=keep, sm=clock_of, launch_ns=launch_ns)
        if found is None:
            return None
        self._direct.cuts, self._direct.keeps_earlier = found.cuts, keep
        if not keep and table.moved and table.sm is not None:
            # The earlier launch may have run elsewhere.
            lanes = np.flatnonzero((table.sm == UNKNOWN) & (found.cuts[:, 0] > 0) & (found.cuts[:, 0] < NEVER))
            table.sm[lanes] = words.sm_of(lanes)
            table.moved -= len(lanes)
        at = int(geometry.base[0]) + (found.slot - 1) * declaration.record.size
        return found.records, at // declaration.unit_bytes

    def slots_of(self, lane: U32 | I64, index: U32) -> I64:
        """Return the slots of records from their lanes and positions."""
        return self._places(self.table, lane, index, self._columns.first, self._columns.ring)

    def kinds_of(self, lane: U32 | I64, index: U32) -> npt.NDArray[np.uint8]:
        """Lanes of regions that end in other lanes are read by columns."""
        raise NotImplementedError

    def carried(self, slots: I64, role: str) -> I64:
        """Layouts of payloads and tokens are read by columns."""
        raise NotImplementedError


class ColumnLanes(_LanesInOrder):
    """Lanes whose records are computed by columns, those of a part at a time where a part can be read alone."""

    def __init__(self, declaration: Declaration, arrays: Arrays, geometry: Geometry) -> None:
        super().__init__(declaration, arrays, geometry)
        self._first, self._ring = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._last: tuple[Part, Records] | None = None
        self._codes: list[tuple[int, int]] = []
        self._is_in_order = False
        self._cuts: I64 | None = None
        #: Lanes of the buffer that are read together, and what becomes of which of them.
        self._pieces, self._piece_of = self._parts, dict(zip(self._parts, self._parts, strict=True))
        record, roles = declaration.record, declaration.roles
        names = {spec.name for spec in (*record.fields, *record.views)} | {"k"}
        self._by_record = {role for role in ("block", "group") if role in roles and roles[role].names & names}
        kinds = () if declaration.kind is None else declaration.kind[1].values()
        is_dense = not (declaration.state or record.extends or record.stale or "ignored" in kinds)
        #: Whether the place of a record follows from its position in its lane.
        self._is_placed = is_dense and declaration.positions == "sequence" and not self._by_record
        self._is_by_parts = declaration.pairing != "token" and self._extent is not None and self._has_own_lanes
        self._list: RecordList | None = None
        if not self._is_by_parts and is_list(declaration, geometry):
            found = RecordList(declaration, arrays, geometry)
            if found.is_possible:
                self._list = found
                self._pieces = self._parts = [(0, len(found.counts))]
        if not self._is_by_parts and self._list is None:
            self._read_file()

    @cached_property
    def _extent(self) -> int | None:
        """Bytes from the beginning of a record on that have all of its fields; None: they are elsewhere."""
        return extent_of_record(self._declaration, self._geometry)

    @property
    def _has_own_lanes(self) -> bool:
        """Whether the records of a lane of the buffer are of no lane of which others have records."""
        block, _ = slot_identity(self._declaration, self._geometry)
        return not self._by_record or ("block" not in self._by_record and bool((np.diff(block) > 0).all()))

    @cached_property
    def _windows(self) -> Windows:
        return Windows(self._arrays, self._geometry, self._extent or 0, self._pieces)

    def _read_file(self) -> None:
        """Read a file that is not in memory."""
        self._is_file_read |= not self._is_in_memory
        self._arrays = self._arrays.in_memory()

    def cut(self, limit: int) -> list[Part]:
        """Cut the lanes by their positions."""
        # The columns of a record take as many bytes as two records that the core reads itself, and more.
        few = min(-(-limit // 2), PART_RECORDS)
        if self._list is not None:
            self._pieces = self._parts = cut(self._list.counts, few)
            self._piece_of = dict(zip(self._parts, self._parts, strict=True))
            self._last, self._is_in_order = None, False
            self.__dict__.pop("table", None)
            return self._parts
        if not self._is_by_parts:
            return self._parts
        pieces = cut(self._geometry.room, few)
        if self._geometry.lanes == 1:
            self._read_file()
        for name in ("_windows", "table"):
            self.__dict__.pop(name, None)
        self._last, self._pieces, self._parts = None, pieces, pieces
        if self._by_record and len(pieces) > 1:
            ends = np.cumsum([len(self._stored(piece)[0]) for piece in pieces]).tolist()
            self._parts = list(zip([0, *ends[:-1]], ends, strict=True))
        self._piece_of = {part: piece for part, piece in zip(self._parts, pieces, strict=True) if part[0] < part[1]}
        self._parts = list(self._piece_of) or pieces
        return self._parts

    def _columns(self, piece: Part) -> Columns:
        if self._list is not None:
            if not self._is_in_order:
                self._list.put_in_order(self._parts)
                self._is_in_order = True
            return self._list.of(piece)
        if len(self._pieces) == 1 and self._is_in_memory:
            return Columns(self._declaration, self._arrays, self._geometry)
        window = self._windows.of(piece)
        arrays = Arrays({**self._arrays.data, MAIN: window.data}, self._arrays.at)
        return Columns(self._declaration, arrays, self._geometry.part(*piece, window))

    @cached_property
    def table(self) -> LaneTable:
        """What is known of the lanes apart from their records, after a pass over all of them."""
        if len(self._pieces) == 1:
            return self._read(self._pieces[0])
        found, of = self._joined(), self._list
        if of is not None:
            # What the list counted is said of lanes only if all of its records are of one.
            headers = of_columns(self._declaration, of.whole, np.zeros(len(found), np.int64))
            found = replace(found, **headers, orphans=of.orphans, ignored=of.ignored)
        return found

    def _joined(self) -> LaneTable:
        """Return the lanes of all pieces."""
        if self._declaration.clock.bits > CORE_BITS:
            firsts = [first for piece in self._pieces if (first := earliest(self._stored(piece)[0])) is not None]
            self._origin = min(firsts, default=0)
        tables, has_ids, oldest, rings = [], False, [], []
        codes: set[tuple[int, int]] = set()
        for piece in self._pieces:
            records, columns = self._stored(piece)
            rebase(self._declaration, records, self.origin)
            tables.append(_without_records(records))
            codes |= set(events_of(records))
            has_ids |= records.ids is not None
            oldest.append(shared(columns.first))
            rings.append(shared(columns.ring))
        self._first, self._ring = end_to_end(oldest), end_to_end(rings)
        if not has_ids:
            return joined(tables, None)
        self._codes = sorted(codes)
        ids = np.array([number for number, _ in self._codes], np.int64)
        check_events(self._declaration, ids)
        return joined(tables, ids)

    def _stored(self, piece: Part) -> tuple[Records, Columns]:
        """Return the records of a piece with their stamps as stored, and their columns."""
        columns = self._columns(piece)
        records = records_of(self._declaration, columns)
        if self._list is not None:
            records.orphans, records.ignored = self._list.orphans, self._list.ignored
        return records, columns

    def _read(self, part: Part) -> Records:
        """Return the records of a part; those that were returned last are kept."""
        piece = self._pieces[0] if len(self._pieces) == 1 else self._piece_of[part]
        if self._last is not None and self._last[0] == piece:
            return self._last[1]
        self._last = None
        is_alone = len(self._pieces) == 1
        ids = None if is_alone else self.table.ids
        records, columns = self._stored(piece)
        if is_alone:
            self._origin = (earliest(records) or 0) if self._declaration.clock.bits > CORE_BITS else 0
            self._first, self._ring = columns.first, columns.ring
        rebase(self._declaration, records, self.origin)
        if not is_alone:
            lanes, table = slice(*part), self.table
            records.is_full = table.is_full[lanes]
            records.overwritten = None if table.overwritten is None else table.overwritten[lanes]
        if ids is not None:
            codes, at = np.zeros(1 << 16, np.uint16), {code: n for n, code in enumerate(self._codes)}
            for code, event in enumerate(events_of(records)):
                codes[code if records.ids is not None else event[0]] = at[event]
            records.event, records.ids = np.where(records.kind < UNREADABLE, codes[records.event], np.uint16(0)), ids
        if self._cuts is not None:
            earlier_regions.leave_out(records, self._cuts[slice(*part)] if not is_alone else self._cuts)
        self._last = piece, records
        return records

    def decode(self, part: Part, *, split: bool, step_back: int) -> Decoded:
        """Decode the lanes of a part."""
        of, records = self._declaration, self._read(part)
        lanes, kind = len(records), records.kind
        if of.pairing == "token":
            kind = np.where(kind < UNREADABLE, np.uint8(layout.INSTANT), kind)
        starts = kind == layout.BEGIN
        if records.end is not None:
            starts |= kind == layout.FINALIZE
        slices = int(np.count_nonzero(starts))
        readable = int(np.count_nonzero(kind < UNREADABLE))
        out = Outputs(lanes, slices=slices, instants=readable - slices, gaps=len(kind) + lanes)
        overwritten = np.zeros(lanes, np.uint8)
        if records.overwritten is not None:
            overwritten = records.overwritten.astype(np.uint8)
        stamp_bits = min(of.clock.bits, CORE_BITS)
        shared = (records.event, kind, records.start, overwritten, records.is_full.astype(np.uint8), stamp_bits)
        begin = records.begin.view(np.uint64)
        if records.end is not None:
            result = core.cuda_decode_spans(begin, records.end.view(np.uint64), *shared, *out.arguments())
        else:
            result = core.cuda_decode_columns(begin, *shared, step_back, split, *out.arguments())
        return out.done(result, stamp_wrap=1 << stamp_bits, base=part[0])

    def part_launches(self, summary: Summary, *, keep: bool, launch_ns: int | None) -> tuple[int, int] | None:
        """Leave out what earlier launches left, where it can be told; return how many records, and the first slot."""
        if not earlier_regions.is_alike(self._declaration, self._geometry):
            return None
        found = earlier_regions.find((self._read(part) for part in self._parts), launch_ns)
        if found is None:
            return None
        if not keep:
            self._cuts, self._last = found.cuts, None
            self.__dict__.pop("table", None)
        return found.records, found.first_slot

    def slots_of(self, lane: U32 | I64, index: U32) -> I64:
        """Return the slots of records from their lanes and positions."""
        table = self.table
        if self._is_placed:
            return self._places(table, lane, index, self._first, self._ring)
        of_part = np.searchsorted(np.array([first for first, _ in self._parts]), lane, side="right") - 1
        slots = np.zeros(len(lane), np.int64)
        for number in distinct(of_part.astype(np.int64)).tolist():
            rows, part = of_part == number, self._parts[number]
            records = self._read(part)
            if len(records.slot):
                slots[rows] = records.slot[rows_of(records, lane[rows].astype(np.int64) - part[0], index[rows])]
        return slots

    def kinds_of(self, lane: U32 | I64, index: U32) -> npt.NDArray[np.uint8]:
        """Return the kinds of records; all are in memory where this matters."""
        records = self._read(self._parts[0])
        return records.kind[rows_of(records, lane.astype(np.int64), index)]

    def carried(self, slots: I64, role: str) -> I64:
        """Return the values of a role of records of the part that was decoded last."""
        records = self._read(self._parts[0]) if self._last is None else self._last[1]
        values: I64 = getattr(records, role)
        order = np.argsort(records.slot, kind="stable")
        at = np.searchsorted(records.slot, slots, sorter=order)
        found: I64 = values[order[np.minimum(at, len(order) - 1)]]
        return found


def _without_records(records: Records) -> LaneTable:
    """Return the lanes of records; columns of one value take no memory."""
    found = {of.name: getattr(records, of.name) for of in fields(LaneTable)}
    found |= {
        name: shared(value)
        for name, value in found.items()
        if isinstance(value, np.ndarray) and value.dtype == np.int64
    }
    return LaneTable(**found)
