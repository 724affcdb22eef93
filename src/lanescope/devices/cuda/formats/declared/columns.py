"""Records of a declared layout as columns: which of them are stored, and the values of fields and expressions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.devices.cuda.formats.declared.arrays import Arrays
from lanescope.devices.cuda.formats.declared.declaration import MAIN, Declaration, FieldSpec, StateSpec
from lanescope.devices.cuda.formats.declared.expression import Expression
from lanescope.devices.cuda.formats.declared.geometry import Geometry, full, gather, out_type, to_signed

I64 = npt.NDArray[np.int64]


class Columns:
    """The stored records of all lanes, lane after lane, oldest first.

    Args:
        declaration: the layout.
        arrays: the file.
        geometry: where its records are.

    Attributes:
        count: int64 [lanes], positions to read.
        first: int64 [lanes], the oldest of them.
        ring: int64 [lanes], positions after which the next one is 0; 0: no ring.
        start: int64 [lanes + 1], where the records of each lane begin in a column.
        lost: int64 [lanes], records without room, where they are counted; else 0.
        counted: bool [lanes], lanes that counted their records; None: the layout has no exact count.
        is_full: bool [lanes], whether more records may have been dropped than are counted.
        bad_count: lanes whose count is impossible.
        missing: records that lanes counted and that are not in the file.
    """

    def __init__(self, declaration: Declaration, arrays: Arrays, geometry: Geometry) -> None:
        self._declaration, self._arrays, self.geometry = declaration, arrays, geometry
        self._fields = {spec.name: spec for spec in (*declaration.record.fields, *declaration.record.views)}
        self._gathered: dict[str, npt.NDArray[Any]] = {}
        self._states = {name: state for state in declaration.state for name in state.values}
        self._place()

    def _place(self) -> None:
        geometry, overflow = self.geometry, self._declaration.overflow
        capacity, room = geometry.capacity, geometry.room
        lanes = geometry.lanes
        self.first, self.ring = np.zeros(lanes, np.int64), np.zeros(lanes, np.int64)
        self.lost = np.zeros(lanes, np.int64)
        self.counted: npt.NDArray[np.bool_] | None = None
        self.is_full = np.zeros(lanes, np.bool_)
        self.bad_count = self.missing = 0
        count = room.copy()
        offered = geometry.offered
        usable = geometry.is_used & geometry.is_sound
        if offered is not None:
            is_known = offered >= 0
            stored = np.minimum(offered, capacity)
            count = np.where(is_known, np.minimum(stored, room), room)
            self.missing = int(np.where(is_known & usable, np.maximum(stored - room, 0), 0).sum())
            if overflow == "saturated":
                self.bad_count = int(np.count_nonzero(usable & (offered > capacity)))
                self.is_full = is_known & (offered >= capacity) & (capacity > 0)
            else:
                self.counted = is_known
                self.lost = np.where(is_known & usable, np.maximum(offered - capacity, 0), 0)
            if overflow == "ring":
                turned = (self.lost > 0) & (room == capacity)
                self.first = np.where(turned, offered % np.maximum(capacity, 1), 0)
                self.ring = np.where(turned, capacity, 0)
        self.count = np.where(usable, count, 0)
        self._start()
        if self._declaration.next is not None:
            self._turn_by_position(self._declaration.next)
        elif overflow == "ring-by-time":
            self._turn_by_time()
        elif self._declaration.positions == "events":
            pass  # a position is an event: none is after the last one
        elif overflow == "unchecked" or (self.counted is not None and not self.counted.all()):
            self.is_full = self._has_last()

    def _start(self) -> None:
        self.start = np.concatenate(([0], np.cumsum(self.count))).astype(np.int64)
        self._gathered.clear()

    def _has_last(self) -> npt.NDArray[np.bool_]:
        """Return where the last position of a lane holds a record, of lanes that are not counted."""
        found = np.zeros(len(self.count), np.bool_)
        capacity = self.geometry.capacity
        rows = np.flatnonzero((self.count > 0) & (self.count == capacity))
        if self.counted is not None:
            rows = rows[~self.counted[rows]]
        if len(rows):
            found[rows] = ~self._is_empty_at(rows, capacity[rows] - 1)
        return found

    def _is_empty_at(self, rows: I64, position: I64) -> npt.NDArray[np.bool_]:
        """Return which positions of lanes hold no record, bool [rows], without a look at all others."""
        test, geometry = self._declaration.record.empty, self.geometry
        if test is None:
            return np.zeros(len(rows), np.bool_)
        scope: dict[str, Any] = {"k": position}
        for name, value in geometry.lane_scope.items():
            scope[name] = value[rows] if isinstance(value, np.ndarray) else value
        for name in test.names & set(self._fields):
            spec = self._fields[name]
            base, stride = geometry.place
            first = base[rows] + position * stride
            if spec.byte is not None:
                first = full(spec.byte.value(scope), len(rows))
                first += base[rows] - geometry.base[rows]
            values = gather(self._arrays, spec, first)
            assert values is not None  # the position is inside of the file
            scope[name] = values
        found = test.value(scope)
        return np.broadcast_to(np.asarray(found) != 0, len(rows))

    def _turn_by_position(self, expression: Expression) -> None:
        """Begin rings at the next position to write where that holds a record already."""
        geometry = self.geometry
        at = np.clip(geometry.lane_value(expression), 0, np.maximum(geometry.room - 1, 0))
        rows = np.flatnonzero((self.count > 0) & (self.count == geometry.capacity))
        holds = np.zeros(geometry.lanes, np.bool_)
        holds[rows] = ~self.is_empty()[self.start[rows] + at[rows]]
        self.first = np.where(holds, at, 0)
        self.ring = np.where(holds, geometry.capacity, 0)
        self.is_full = holds
        self.count = np.where(holds, self.count, np.minimum(self.count, at))
        self._start()
        self._count_overwritten()

    def _turn_by_time(self) -> None:
        """Begin full rings at their only step back in time; where there are several, at position 0."""
        geometry, clock = self.geometry, self._declaration.clock
        role = self._declaration.roles.get("time") or self._declaration.roles["end"]
        stamps, empty = self.value(role), self.is_empty()
        half = 1 << (clock.bits - 1)
        for lane in np.flatnonzero((self.count > 1) & (self.count == geometry.capacity)).tolist():
            part = slice(int(self.start[lane]), int(self.start[lane + 1]))
            if empty[part][-1]:
                continue
            self.is_full[lane] = True
            step = np.diff(stamps[part])
            if clock.bits < 64:
                # A fall by more than half of the range is a wrap of the counter.
                step = np.where(step < -half, step + 2 * half, np.where(step > half, step - 2 * half, step))
            back = np.flatnonzero(step < 0)
            if len(back) == 1:
                self.first[lane], self.ring[lane] = int(back[0]) + 1, geometry.capacity[lane]
        self._start()
        self._count_overwritten()

    def _count_overwritten(self) -> None:
        """Take the positions before the oldest record for the least that rings without a count have overwritten.

        Each of them has been written twice. A ring that begins at position 0 may be just full.
        """
        turned = (self.ring > 0) & (self.first > 0)
        self.lost = np.where(turned, self.first, 0)
        self.counted = np.zeros(len(turned), np.bool_)
        self.is_full &= ~turned

    def __len__(self) -> int:
        return int(self.start[-1])

    def raw(self, name: str) -> npt.NDArray[Any]:
        """Return a field of all records as it is stored, unsigned [n]."""
        if name not in self._gathered:
            self._gathered[name] = self._gather(self._fields[name])
        return self._gathered[name]

    def bits(self, low: int, width: int) -> npt.NDArray[Any]:
        """Return bits of all records in the main array that need not be those of a field, unsigned [n]."""
        return self._gather(FieldSpec("", low, width))

    def _gather(self, spec: FieldSpec) -> npt.NDArray[Any]:
        geometry = self.geometry
        base, stride = geometry.place
        data = self._arrays.data[spec.array or MAIN]
        if spec.byte is not None:
            first, second = (full(spec.byte.value({**geometry.lane_scope, "k": k}), geometry.lanes) for k in (0, 1))
            if geometry.window is None:
                base, stride = first, int(second[0] - first[0])
            else:  # as far behind the record as in the file
                base = base + (first - geometry.base)
        out = np.empty(len(self), out_type(spec.width))
        if not len(out):
            return out
        core.cuda_gather(
            np.ascontiguousarray(data), base, self.first, self.ring, self.start, stride, spec.bit, spec.width, out
        )
        return out

    @property
    def position(self) -> I64:
        """The position of each record in its lane, int64 [n]."""
        at = np.arange(len(self)) - np.repeat(self.start[:-1], self.count)
        if not self.ring.any():
            return at
        first, ring = np.repeat(self.first, self.count), np.repeat(self.ring, self.count)
        return np.where(ring > 0, (first + at) % np.maximum(ring, 1), at)

    @property
    def byte(self) -> I64:
        """The byte of each record in the main array, int64 [n]."""
        found: I64 = np.repeat(self.geometry.base, self.count) + self.position * self.geometry.stride
        return found

    def spread(self, values: I64) -> I64:
        """Return values of lanes for each record, int64 [n]."""
        return np.repeat(values, self.count)

    def scope(self, expression: Expression) -> dict[str, Any]:
        """Return what an expression reads, for all records."""
        found: dict[str, Any] = {}
        for name in expression.names:
            if name in self._fields:
                found[name] = to_signed(self.raw(name))
            elif name in self._declaration.next_names:
                found[name] = self._next(*self._declaration.next_names[name])
            elif name in self._states:
                found[name] = self._last_state(name)
            elif name == "k":
                found[name] = self.position
            else:
                value = self.geometry.lane_scope[name]
                found[name] = self.spread(value) if isinstance(value, np.ndarray) else value
        return found

    def _next(self, steps: int, name: str) -> I64:
        """Return a field of the position so many after each one, int64 [n]; 0 where its lane has none."""
        found, ends = np.zeros(len(self), np.int64), self.spread(self.start[1:])
        at = np.arange(steps, len(self), dtype=np.int64)
        found[: len(at)] = np.where(at < ends[: len(at)], to_signed(self.raw(name))[steps:], 0)
        return found

    def value(self, expression: Expression) -> I64:
        """Return the values of an expression, int64 [n]."""
        found = expression.value(self.scope(expression))
        if isinstance(found, np.ndarray) and found.shape == (len(self),):
            return found.astype(np.int64, copy=False)
        return np.full(len(self), found, np.int64)

    def is_state(self) -> npt.NDArray[np.bool_]:
        """Return which records set values for those after them, bool [n]."""
        found = np.zeros(len(self), np.bool_)
        for state in self._declaration.state:
            found |= self.value(state.test) != 0
        return found

    def is_continuation(self) -> npt.NDArray[np.bool_]:
        """Return which positions belong to a record before them, bool [n]; of those, none has any of its own."""
        found = np.zeros(len(self), np.bool_)
        test = self._declaration.record.extends
        if test is None:
            return found
        more = self.value(test)
        ends = self.spread(self.start[1:])
        after = 0
        for at in np.flatnonzero(more > 0).tolist():
            if at >= after:
                after = min(at + 1 + int(more[at]), int(ends[at]))
                found[at + 1 : after] = True
        return found

    def lacks_state(self) -> npt.NDArray[np.bool_]:
        """Return which records come before a value that the layout's records need is set, bool [n]."""
        found = np.zeros(len(self), np.bool_)
        for state in self._declaration.state:
            found |= self._setter(state) < 0
        return found

    def _setter(self, state: StateSpec) -> I64:
        """Return the record of its lane that set the values last, int64 [n]; -1 for none."""
        at = np.arange(len(self), dtype=np.int64)
        last = np.maximum.accumulate(np.where(self.value(state.test) != 0, at, -1))
        return np.where(last >= self.spread(self.start[:-1]), last, -1)

    def _last_state(self, name: str) -> I64:
        state = self._states[name]
        setter = self._setter(state)
        values = self.value(state.values[name])
        return np.where(setter >= 0, values[np.maximum(setter, 0)], 0) if len(values) else values

    def is_empty(self) -> npt.NDArray[np.bool_]:
        """Return which positions hold no record, bool [n]."""
        test = self._declaration.record.empty
        return np.zeros(len(self), np.bool_) if test is None else self.value(test) != 0

    def is_stale(self) -> npt.NDArray[np.bool_]:
        """Return which positions hold a record of an earlier launch, bool [n]."""
        test = self._declaration.record.stale
        return np.zeros(len(self), np.bool_) if test is None else (self.value(test) != 0) & ~self.is_empty()

    def is_field(self, expression: Expression) -> str | None:
        """Return the name of the field that an expression is, None if it is anything else."""
        return expression.text.strip() if expression.text.strip() in self._fields else None
