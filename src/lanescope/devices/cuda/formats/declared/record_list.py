"""One list of the records of all lanes, which name their lanes: put in the order of lanes, so that few are in memory.

The records of a lane are anywhere in the list. Two passes over it, some records at a time: the first one counts the
records of each lane, the second one writes the fields that matter to a temporary file, part of the lanes by part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.common.distinct import distinct
from lanescope.devices.cuda.formats.declared.arrays import Arrays
from lanescope.devices.cuda.formats.declared.columns import Columns
from lanescope.devices.cuda.formats.declared.declaration import MAIN, Declaration, FieldSpec
from lanescope.devices.cuda.formats.declared.geometry import Geometry, out_type
from lanescope.devices.cuda.formats.declared.records import IGNORED, UNREADABLE, kinds
from lanescope.devices.cuda.formats.declared.windows import Part
from lanescope.source import SpooledFile

I64 = npt.NDArray[np.int64]
Raw = npt.NDArray[Any]

#: Lists of no more records are put in order in memory.
FEW_RECORDS = 1 << 19
#: Records of a pass that are in memory at a time.
PIECE_RECORDS = 1 << 18
_HALF_BITS = 32
_POSITION = "k"


def is_list(declaration: Declaration, geometry: Geometry) -> bool:
    """Return whether a buffer is one long list of records, of which each can be read alone."""
    record, names = declaration.record, _names_of_fields(declaration)
    roles = declaration.roles
    by_record = any(role in roles and roles[role].names & names for role in ("block", "group"))
    is_alone = not (declaration.state or record.extends or record.stale or declaration.next or declaration.next_names)
    return (
        geometry.lanes == 1
        and by_record
        and is_alone
        and declaration.positions == "sequence"
        and declaration.pairing != "token"
        and declaration.overflow != "ring-by-time"
        and int(geometry.room[0]) > FEW_RECORDS
    )


class Listed(Columns):
    """Some records of a list.

    Args:
        whole: the list.
        position: int64 [n], where in the list each record is.
        fields: fields of the records, unsigned [n]; None: the records follow each other in the file.
    """

    def __init__(self, whole: Columns, position: I64, fields: Mapping[str, Raw] | None) -> None:
        self.__dict__.update(whole.__dict__)
        self._position = position
        self._gathered = dict(fields or {})
        self.start = np.array([0, len(position)], np.int64)

    @property
    def position(self) -> I64:
        """The position of each record in the list, int64 [n]."""
        return self._position

    @property
    def byte(self) -> I64:
        """The byte of each record in the main array, int64 [n]."""
        found: I64 = self.geometry.base[0] + self._position * self.geometry.stride
        return found

    def spread(self, values: I64) -> I64:
        """Return the value of the only lane of the buffer for each record, int64 [n]."""
        return np.full(len(self), values[0], np.int64)

    def _gather(self, spec: FieldSpec) -> Raw:
        geometry, count = self.geometry, len(self)
        out = np.empty(count, out_type(spec.width))
        if not count:
            return out
        first, step = int(geometry.base[0]), geometry.stride
        if spec.byte is not None:
            first, second = (int(spec.byte.value(self._scope_at(k))) for k in (0, 1))
            step = second - first
        ends = [first + int(self._position[at]) * step for at in (0, -1)]
        low = min(ends)
        data = self._arrays.data[spec.array or MAIN][low : max(ends) + (spec.bit + spec.width + 7) // 8]
        at = np.array([ends[0] - low], np.int64)
        nothing = np.zeros(1, np.int64)
        core.cuda_gather(np.ascontiguousarray(data), at, nothing, nothing, self.start, step, spec.bit, spec.width, out)
        return out

    def _scope_at(self, position: int) -> dict[str, int]:
        scope = {name: int(np.asarray(value).flat[0]) for name, value in self.geometry.lane_scope.items()}
        return {**scope, _POSITION: position}


class RecordList:
    """A list, and its records in the order of their lanes.

    Args:
        declaration: the layout, one of ``is_list``.
        arrays: the file.
        geometry: where its records are.

    Attributes:
        whole: the list as it is stored.
        counts: int64 [lanes], records of each lane.
        orphans: unreadable records, of which none is in a lane.
        ignored: records that are not events.
    """

    def __init__(self, declaration: Declaration, arrays: Arrays, geometry: Geometry) -> None:
        self._declaration = declaration
        self.whole = Columns(declaration, arrays, geometry)
        self.orphans = self.ignored = 0
        fields = _names_of_fields(declaration)
        expressions = [*declaration.roles.values()]
        expressions += [test for test in (declaration.record.empty, declaration.record.agree) if test is not None]
        expressions += [] if declaration.kind is None else [declaration.kind[0]]
        self._names = sorted({name for each in expressions for name in each.names} & (fields - {_POSITION}))
        self._keys, self.counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._spool: SpooledFile | None = None
        self._at: dict[Part, int] = {}
        self._types: dict[str, np.dtype[Any]] = {}
        self.is_possible = self._count()

    def _pieces(self) -> Iterator[tuple[Listed, npt.NDArray[np.uint8]]]:
        """Yield the records and their kinds, some at a time."""
        count = int(self.whole.count[0])
        for at in range(0, count, PIECE_RECORDS):
            position = np.arange(at, min(at + PIECE_RECORDS, count), dtype=np.int64)
            if self.whole.ring[0]:
                position = (self.whole.first[0] + position) % self.whole.ring[0]
                # What is behind the end of the ring is not next to what is before it.
                turn = int(np.argmin(position))
                pieces = [position[:turn], position[turn:]] if turn else [position]
            else:
                pieces = [position]
            for piece in pieces:
                columns = Listed(self.whole, piece, None)
                yield columns, kinds(self._declaration, columns)

    def _lanes_of(self, columns: Listed, usable: I64) -> I64 | None:
        """Return numbers that are in the order of the lanes, int64 [n]; None: there are none of 64 bits."""
        found = []
        for name in ("block", "group"):
            role = self._declaration.roles.get(name)
            value = np.zeros(len(usable), np.int64) if role is None else columns.value(role)[usable]
            if len(value) and not 0 <= int(value.min()) <= int(value.max()) < 1 << _HALF_BITS:
                return None
            found.append(value)
        block, group = found
        return ((block - (1 << (_HALF_BITS - 1))) << _HALF_BITS) | group

    def _count(self) -> bool:
        for columns, kind in self._pieces():
            usable = np.flatnonzero(kind < UNREADABLE)
            self.orphans += int(np.count_nonzero(kind == UNREADABLE))
            self.ignored += int(np.count_nonzero(kind == IGNORED))
            keys = self._lanes_of(columns, usable)
            if keys is None:
                return False
            keys, counts = np.unique(keys, return_counts=True)
            if len(keys) == len(self._keys) and (keys == self._keys).all():
                self.counts += counts
                continue
            known, before = self._keys, self.counts
            self._keys = distinct(np.concatenate((known, keys)))
            self.counts = np.zeros(len(self._keys), np.int64)
            self.counts[np.searchsorted(self._keys, known)] = before
            self.counts[np.searchsorted(self._keys, keys)] += counts
        return True

    def put_in_order(self, parts: Sequence[Part]) -> None:
        """Write the records of each of these parts of the lanes, together all, such that ``of`` can read them.

        Raises:
            InputError: the temporary folder's disk has no room.
        """
        specs = {spec.name: spec for spec in (*self._declaration.record.fields, *self._declaration.record.views)}
        self._types = {name: np.dtype(out_type(specs[name].width)) for name in self._names}
        self._types[_POSITION] = np.dtype(np.uint32)
        each = sum(dtype.itemsize for dtype in self._types.values())
        starts = np.concatenate(([0], np.cumsum(self.counts)))
        self._at = {part: int(starts[part[0]]) * each for part in parts}
        sizes = [int(starts[last] - starts[first]) for first, last in parts]
        part_of = np.repeat(np.arange(len(parts)), [last - first for first, last in parts])
        self._spool = SpooledFile(int(starts[-1]) * each)
        done = np.zeros(len(parts), np.int64)
        for columns, kind in self._pieces():
            usable = np.flatnonzero(kind < UNREADABLE)
            keys = self._lanes_of(columns, usable)
            assert keys is not None
            part = part_of[np.searchsorted(self._keys, keys)]
            order = np.argsort(part, kind="stable")
            bounds = np.searchsorted(part[order], np.arange(len(parts) + 1))
            rows = usable[order]
            before = 0
            for name, dtype in self._types.items():
                values = columns.position if name == _POSITION else columns.raw(name)
                sorted_values = values[rows].astype(dtype, copy=False)
                for number in np.flatnonzero(np.diff(bounds)).tolist():
                    at = self._at[parts[number]] + sizes[number] * before + int(done[number]) * dtype.itemsize
                    self._spool.write(at, sorted_values[bounds[number] : bounds[number + 1]])
                before += dtype.itemsize
            done += np.diff(bounds)

    def of(self, part: Part) -> Listed:
        """Return the records of a part of the lanes, in the order of the list."""
        assert self._spool is not None
        count, at = int(self.counts[slice(*part)].sum()), self._at[part]
        found: dict[str, Raw] = {}
        for name, dtype in self._types.items():
            size = count * dtype.itemsize
            found[name] = self._spool.read(at, size).view(dtype)
            at += size
        position = found.pop(_POSITION).astype(np.int64)
        return Listed(self.whole, position, found)


def _names_of_fields(declaration: Declaration) -> set[str]:
    record = declaration.record
    return {spec.name for spec in (*record.fields, *record.views)} | {_POSITION}
