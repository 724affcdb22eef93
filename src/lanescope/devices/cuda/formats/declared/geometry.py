"""Where the records of a file are: parameters, lanes and positions, computed from a declaration and the file's size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.declaration import frozen_class
from lanescope.devices.cuda.formats.declared.arrays import Arrays
from lanescope.devices.cuda.formats.declared.declaration import MAIN, MOST_READING, Declaration, FieldSpec
from lanescope.devices.cuda.formats.declared.expression import Expression
from lanescope.devices.cuda.formats.lane_columns import shared
from lanescope.devices.cuda.formats.word_source import FileBytes
from lanescope.errors import InputError, UsageError

I64 = npt.NDArray[np.int64]

#: Positions of a lane are 32 bits wide in the native core.
_MOST_POSITIONS = 1 << 31
#: Bytes of a file that are read at once for fields that lie apart.
READ_AHEAD = 1 << 20
#: Bytes behind all lanes that are looked at together.
_PIECE = 1 << 22


def full(value: Any, count: int) -> I64:
    """Return a value as a column, int64 [count]."""
    return np.ascontiguousarray(np.broadcast_to(np.asarray(value, np.int64), count))


def out_type(width: int) -> type[np.unsignedinteger[Any]]:
    """Return the type of the columns of fields of so many bits, as the native core gathers them."""
    return np.uint8 if width <= 8 else np.uint16 if width <= 16 else np.uint32 if width <= 32 else np.uint64


def to_signed(column: npt.NDArray[Any]) -> I64:
    """Return unsigned values as int64, those of 64 bits as two's complement."""
    return column.view(np.int64) if column.dtype == np.uint64 else column.astype(np.int64)


@frozen_class
class Window:
    """Bytes that hold the records of lanes.

    Attributes:
        data: uint8 [n].
        at: int64 [lanes], the first byte of position 0 of each lane.
        step: bytes from one position to the next.
    """

    data: npt.NDArray[np.uint8]
    at: I64
    step: int


@dataclass
class Geometry:
    """Positions of the records of all lanes.

    Attributes:
        scalars: numbers of the whole file: sizes, header fields, parameters.
        sizes: of the dimensions.
        lane_scope: columns of the lanes by name: dimensions, fields of their headers; and the scalars.
        lanes: number of lanes.
        base: first byte of position 0, int64 [lanes].
        stride: bytes from one position to the next.
        capacity: records that lanes have room for, int64 [lanes].
        room: those of them that are inside the file, int64 [lanes].
        offered: what lanes counted, int64 [lanes]; negative: nothing; None: the layout has no count.
        is_used: bool [lanes], lanes that were written.
        is_sound: bool [lanes], lanes whose header is possible.
        window: the bytes at hand, where they are not the whole main array.
    """

    scalars: dict[str, int]
    sizes: tuple[int, ...]
    lane_scope: dict[str, Any]
    lanes: int
    base: I64
    stride: int
    capacity: I64
    room: I64
    offered: I64 | None
    is_used: npt.NDArray[np.bool_]
    is_sound: npt.NDArray[np.bool_]
    window: Window | None = None

    @property
    def place(self) -> tuple[I64, int]:
        """First byte of position 0, int64 [lanes], and the bytes between positions, in the data at hand."""
        return (self.base, self.stride) if self.window is None else (self.window.at, self.window.step)

    def part(self, first: int, last: int, window: Window) -> Geometry:
        """Return the lanes from ``first`` to before ``last``, whose records are in a window."""
        lanes = slice(first, last)
        scope = {
            name: value[lanes] if isinstance(value, np.ndarray) else value for name, value in self.lane_scope.items()
        }
        return replace(
            self,
            lane_scope=scope,
            lanes=last - first,
            base=self.base[lanes],
            capacity=self.capacity[lanes],
            room=self.room[lanes],
            offered=None if self.offered is None else self.offered[lanes],
            is_used=self.is_used[lanes],
            is_sound=self.is_sound[lanes],
            window=window,
        )

    def lane_value(self, expression: Expression) -> I64:
        """Return the values of an expression for all lanes, int64 [lanes]."""
        return full(expression.value(self.lane_scope), self.lanes)


def parameters(declaration: Declaration, arrays: Arrays, given: Mapping[str, int]) -> dict[str, int]:
    """Return the numbers of the whole file: sizes, header fields and parameters.

    Raises:
        InputError: the file is shorter than its header, or a parameter cannot be computed.
        UsageError: a required parameter is not given, or one is given that the layout does not have.
    """
    scalars: dict[str, int] = {"size": len(arrays.main) if arrays.whole is None else arrays.whole}
    for name in declaration.arrays[1:]:
        scalars[f"size_{name}"] = len(arrays.data[name])
    header = declaration.header
    at = header.at.exact(scalars) if header.at is not None else 0
    for spec in header.fields:
        first = spec.byte.exact(scalars) if spec.byte is not None else at
        values = gather(arrays, spec, full(first, 1))
        if values is None:
            raise InputError(
                f"file is shorter than the header of layout {declaration.name}",
                hint="check that the buffer was copied from the device",
            )
        scalars[spec.name] = int(values[0])
    require(declaration, given)
    for param in declaration.params:
        if param.value is not None:
            scalars[param.name] = param.value.exact(scalars)
        else:
            scalars[param.name] = int(given.get(param.name, param.default or 0))
    return scalars


def require(declaration: Declaration, given: Mapping[str, int]) -> None:
    """Check that the user gave what the layout needs, and nothing else.

    Raises:
        UsageError: a required parameter is not given, or one is given that the layout does not have.
    """
    known = {param.name for param in declaration.user_params}
    if unknown := sorted(set(given) - known):
        there = ", ".join(sorted(known)) or "none"
        raise UsageError(
            f"layout {declaration.name} has no parameter {unknown[0]!r} (it has {there})",
            hint="remove it from --layout-params",
        )
    for param in declaration.user_params:
        if param.name not in given and param.default is None:
            raise UsageError(
                f"layout {declaration.name} requires the parameter {param.name}: {param.help or 'not in the file'}",
                hint=f"use --layout-params {param.name}=NUMBER",
            )


def gather(arrays: Arrays, spec: FieldSpec, first: I64) -> I64 | None:
    """Return a field at absolute bytes, int64 [n]; None if any is outside of its array."""
    data = arrays.data[spec.array or MAIN]
    if isinstance(data, FileBytes):
        data, first = _beside(data, first, (spec.bit + spec.width + 7) // 8)
    out = np.empty(len(first), out_type(spec.width))
    zeros = np.zeros(len(first), np.int64)
    start = np.arange(len(first) + 1, dtype=np.int64)
    try:
        core.cuda_gather(np.ascontiguousarray(data), first, zeros, zeros, start, 0, spec.bit, spec.width, out)
    except ValueError:
        return None
    return to_signed(out)


def _beside(file: FileBytes, first: I64, size: int) -> tuple[npt.NDArray[np.uint8], I64]:
    """Return bytes of a file that hold a field of so many bytes at absolute bytes, and where it is in those."""
    low, high = int(first.min(initial=0)), int(first.max(initial=0)) + size
    if low < 0 or high > len(file):
        return np.empty(0, np.uint8), first
    low = int(first.min(initial=high))
    if high - low <= max(READ_AHEAD, 2 * size * len(first)):
        return file[low:high], first - low
    return np.concatenate([file[at : at + size] for at in first.tolist()]), np.arange(len(first), dtype=np.int64) * size


def locate(declaration: Declaration, arrays: Arrays, given: Mapping[str, int]) -> Geometry:
    """Find out where the records of a file are.

    Raises:
        InputError: the file does not have this layout.
        UsageError: see ``parameters``.
    """
    scalars = parameters(declaration, arrays, given)
    sizes = tuple(count.exact(scalars) for _, count in declaration.dims)
    names = [name for name, _ in declaration.dims]
    lanes = 1
    for name, size in zip(names, sizes, strict=True):
        lanes *= size
        if size < 1 or lanes > max(1, arrays.size, arrays.whole or 0):
            raise InputError(
                f"layout {declaration.name} does not fit: {size} for {name!r} in a file of {arrays.size} bytes",
                hint="compare the header and the parameters with `lanescope cuda-layout explain`",
            )
    number = np.arange(lanes, dtype=np.int64)
    scope: dict[str, Any] = {**scalars, "lane": number}
    rest = number
    for name, size in zip(reversed(names), reversed(sizes), strict=True):
        # Of a million lanes, a dimension of one and the outermost one need no column of their own.
        scope[name] = shared(rest % size) if rest is not number or size < lanes else number
        rest = rest // size if size > 1 else rest
    _lane_fields(declaration, arrays, scope, lanes)
    record = declaration.record
    base, second = (full(record.at.value({**scope, "k": k}), lanes) for k in (0, 1))
    stride = int(second[0] - base[0])
    if (second - base != stride).any():
        raise InputError(f"layout {declaration.name}: lanes differ in the distance of records", hint="check record.at")
    room = _room(declaration, arrays, scope, base, stride)
    capacity = room
    if declaration.capacity is not None:
        capacity = np.maximum(full(declaration.capacity.value(scope), lanes), 0)
        room = np.minimum(room, capacity)
    elif stride <= 0:
        raise InputError(f"layout {declaration.name}: records do not ascend", hint="add capacity to the layout")
    _check_apart(declaration, base, stride, room)
    offered = None if declaration.offered is None else shared(full(declaration.offered.value(scope), lanes))
    capacity, room = shared(capacity), shared(room)
    is_used, is_sound = np.ones(lanes, np.bool_), np.ones(lanes, np.bool_)
    if declaration.used is not None:
        is_used = full(declaration.used.value(scope), lanes) != 0
    if declaration.lane_check is not None:
        # The header of a lane that was not written is whatever was there before.
        is_sound = (full(declaration.lane_check.value(scope), lanes) != 0) | ~is_used
    if declaration.clock.anchor is not None:
        is_sound &= is_reading(declaration.clock.anchor.value(scope)) | ~is_used
    return Geometry(scalars, sizes, scope, lanes, base, stride, capacity, room, offered, is_used, is_sound)


def is_reading(value: Any) -> Any:
    """Return whether a number, or each of a column, can be the full reading of a counter."""
    return (value >= 0) & (value < MOST_READING)


def bytes_behind(declaration: Declaration, arrays: Arrays, geometry: Geometry) -> int:
    """Return how many bytes behind the last lane belong to none, in all arrays; zeros are room that was not used."""
    found = 0
    for name, data in arrays.data.items():
        end = end_of_lanes(declaration, geometry) if name == MAIN else _end_in(name, declaration, geometry)
        end = min(len(data), end)
        pieces = (data[at : at + _PIECE] for at in range(end, len(data), _PIECE))
        found += len(data) - end if any(bool(piece.any()) for piece in pieces) else 0
    return found


def _end_in(array: str, declaration: Declaration, geometry: Geometry) -> int:
    """Return the byte of another array than the main one behind what the lanes have there."""
    scope, names = geometry.lane_scope, [name for name, _ in declaration.dims]
    outside = {**geometry.scalars, **dict.fromkeys(names, 0), names[0]: geometry.sizes[0], "lane": geometry.lanes}
    ends = [
        spec.byte.exact(geometry.scalars) + (spec.width + 7) // 8
        for spec in declaration.header.fields
        if spec.array == array and spec.byte is not None
    ]
    following = []
    for spec in declaration.lane.fields:
        if spec.array == array and spec.byte is not None:
            ends.append(int(full(spec.byte.value(scope), geometry.lanes).max()) + (spec.width + 7) // 8)
            following.append(int(spec.byte.value(outside)))
    last = np.maximum(geometry.capacity - 1, 0)
    for spec in (*declaration.record.fields, *declaration.record.views):
        if spec.array == array and spec.byte is not None:
            at = full(spec.byte.value({**scope, "k": last}), geometry.lanes)
            ends.append(int(at.max()) + (spec.width + 7) // 8)
    return max(0, *ends, min(following, default=0))


def end_of_lanes(declaration: Declaration, geometry: Geometry) -> int:
    """Return the byte of the main array behind all headers and records, where one more lane would begin."""
    of, scope, area = declaration.record, geometry.lane_scope, declaration.lane
    last = geometry.base + np.maximum(geometry.room - 1, 0) * max(0, geometry.stride)
    specs = [spec for spec in (*declaration.header.fields, *area.fields) if spec.array in (None, MAIN)]
    ends = [
        int(full(spec.byte.value(scope), geometry.lanes).max()) + (spec.width + 7) // 8
        for spec in specs
        if spec.byte is not None
    ]
    names = [name for name, _ in declaration.dims]
    outside = {**geometry.scalars, **dict.fromkeys(names, 0), names[0]: geometry.sizes[0], "lane": geometry.lanes}
    following = [of.at.value({**outside, "k": 0})]
    if area.at is not None and area.size:
        ends.append(int(full(area.at.value(scope), geometry.lanes).max()) + area.size)
        following.append(area.at.value(outside))
    return max(declaration.header.size, int((last + of.size).max()), int(min(following)), *ends)


def _check_apart(declaration: Declaration, base: I64, stride: int, room: I64) -> None:
    """Check that no byte is part of two records: a layout without a capacity may run from one lane into the next.

    Lanes follow each other, or take turns: then those whose records have the same remainder by the stride follow each
    other, and those of others lie in between.
    """
    length = max((spec.bit + spec.width + 7) // 8 for spec in _inside(declaration)) if _inside(declaration) else 0
    step = abs(stride)
    used = np.flatnonzero(room > 0)
    problem = InputError(
        f"layout {declaration.name}: records of two lanes overlap",
        hint="add capacity to the layout, or check record.at",
    )
    if not len(used) or not length:
        return
    if step < length:
        if (room[used] > 1).any() or len(used) > 1:
            raise problem
        return
    first = np.where(stride > 0, base, base + (room - 1) * stride)[used]
    end = first + (room[used] - 1) * step + length
    by_place = np.argsort(first, kind="stable")
    first, end = first[by_place], end[by_place]
    if (end[:-1] <= first[1:]).all():
        return
    # Lanes that take turns are between each other; those of the next block, say, begin behind all of them.
    is_behind = first[1:] >= np.maximum.accumulate(end)[:-1]
    turns = np.concatenate(([0], np.cumsum(is_behind)))
    order = np.lexsort((first, first % step, turns))
    turns, rest, first, end = turns[order], (first % step)[order], first[order], end[order]
    is_together = turns[1:] == turns[:-1]
    is_same = is_together & (rest[1:] == rest[:-1])
    is_close = is_together & ~is_same & (np.diff(rest) < length)
    begins, stops = (np.concatenate(ends) for ends in (([True], ~is_together), (~is_together, [True])))
    around = rest[begins] + step - rest[stops]
    if (is_same & (end[:-1] > first[1:])).any() or is_close.any() or (around < length).any():
        raise problem


def _lane_fields(declaration: Declaration, arrays: Arrays, scope: dict[str, Any], lanes: int) -> None:
    """Add the fields of the headers of lanes to the scope."""
    area = declaration.lane
    if not area.fields:
        return
    assert area.at is not None
    at = full(area.at.value(scope), lanes)
    found = {}
    for spec in area.fields:
        first = at if spec.byte is None else full(spec.byte.value(scope), lanes)
        values = gather(arrays, spec, first)
        if values is None:
            raise InputError(
                f"file is too short for the {lanes} lanes of layout {declaration.name}",
                hint="save the complete buffer, or check the layout's parameters",
            )
        found[spec.name] = values
    scope.update(found)


def _room(declaration: Declaration, arrays: Arrays, scope: dict[str, Any], base: I64, stride: int) -> I64:
    """Return how many records of each lane are inside the file, int64 [lanes]."""
    room = np.full(len(base), _MOST_POSITIONS, np.int64)
    end = max((spec.bit + spec.width + 7) // 8 for spec in _inside(declaration)) if _inside(declaration) else 0
    places = [(base, stride, end, len(arrays.main))] if end else []
    for spec in declaration.record.fields:
        if spec.byte is not None:
            first, second = (full(spec.byte.value({**scope, "k": k}), len(base)) for k in (0, 1))
            step = int(second[0] - first[0])
            places.append((first, step, (spec.width + 7) // 8, len(arrays.data[spec.array or MAIN])))
    for first, step, length, size in places:
        if step > 0:
            fitting = (size - length - first) // step + 1
        else:
            fitting = np.full(len(base), _MOST_POSITIONS) if step == 0 else first // -step + 1
        room = np.minimum(room, np.where((first >= 0) & (first + length <= size), np.maximum(fitting, 0), 0))
    return room


def extent_of_record(declaration: Declaration, geometry: Geometry) -> int | None:
    """Return the bytes from the beginning of a record on that have all of its fields; None: some are elsewhere."""
    extent = declaration.record.size
    for spec in (*declaration.record.fields, *declaration.record.views):
        if spec.byte is None:
            continue
        first, second = (full(spec.byte.value({**geometry.lane_scope, "k": k}), geometry.lanes) for k in (0, 1))
        behind = first - geometry.base
        is_near = behind[0] >= 0 and (behind == behind[0]).all() and (second - first == geometry.stride).all()
        if spec.array not in (None, MAIN) or not is_near:
            return None
        extent = max(extent, int(behind[0]) + (spec.width + 7) // 8)
    return extent


def _inside(declaration: Declaration) -> list[FieldSpec]:
    """Return the fields that lie in the record itself."""
    return [spec for spec in (*declaration.record.fields, *declaration.record.views) if spec.byte is None]
