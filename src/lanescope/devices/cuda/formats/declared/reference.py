"""The reference codec of declared layouts: one record after the other, in plain Python, as the declaration reads.

It is slow and obvious; the columns of ``columns.py`` and ``records.py`` are tested against it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lanescope.devices.cuda.formats.declared.declaration import MAIN, MOST_READING, Declaration, FieldSpec
from lanescope.errors import InputError

_SIGN = 1 << 63
#: Where ``Scopes.record`` puts the byte of the record; no expression can read the name.
PLACE = "_at"
Bytes = bytes | bytearray


@dataclass(slots=True)
class Lane:
    """A lane as the reference reads it.

    Attributes:
        block: its block.
        group: its group.
        sm: its SM; None: not recorded, or several.
        lost: records that it counted and that had no room, or the least number of them; None: not counted.
        anchor: its anchor.
        pairs: its readings of counter and timer.
        is_full: whether the count stopped at the capacity, where it does so.
        records: kind, event, start, end (None where records are starts and ends), payload, second payload, track (None:
            there are none) and byte of each record, and of unreadable ones the kind and the byte.
    """

    block: int
    group: int
    sm: int | None = None
    lost: int | None = None
    anchor: int | None = None
    pairs: tuple[tuple[int, int], ...] = ()
    is_full: bool = False
    records: list[tuple[Any, ...]] = field(default_factory=list)


def read_field(data: Bytes, byte: int, spec: FieldSpec) -> int:
    """Return a field whose header or record begins at ``byte``.

    Raises:
        InputError: it is outside of the data.
    """
    first, count = _place(data, byte, spec)
    value = int.from_bytes(data[first : first + count], "little") >> spec.bit % 8 & spec.mask
    return value - (1 << 64) if value >= _SIGN else value


def write_field(data: bytearray, byte: int, spec: FieldSpec, value: int) -> None:
    """Store a field; the value is cut to its width as a device does it.

    Raises:
        InputError: it is outside of the data.
    """
    first, count = _place(data, byte, spec)
    word = int.from_bytes(data[first : first + count], "little")
    shift = spec.bit % 8
    word = word & ~(spec.mask << shift) | (value & spec.mask) << shift
    data[first : first + count] = word.to_bytes(count, "little")


def _place(data: Bytes, byte: int, spec: FieldSpec) -> tuple[int, int]:
    """Return the first byte that a field has bits in, and the number of such bytes."""
    first = byte + spec.bit // 8
    count = (spec.bit % 8 + spec.width + 7) // 8
    if first < 0 or first + count > len(data):
        raise InputError(f"field {spec.name} is outside of the buffer", hint="check the layout")
    return first, count


class Scopes:
    """The names that expressions of a declaration read, level by level.

    Args:
        declaration: the layout.
        arrays: the content of the arrays.
        params: parameters that the user gave.
    """

    def __init__(self, declaration: Declaration, arrays: Mapping[str, Bytes], params: Mapping[str, int]) -> None:
        self.of, self.arrays = declaration, arrays
        self.scalars = {"size": len(arrays[MAIN])}
        self.scalars |= {f"size_{name}": len(arrays[name]) for name in declaration.arrays[1:]}
        at = declaration.header.at.exact(self.scalars) if declaration.header.at is not None else 0
        self.scalars |= self._fields(declaration.header.fields, at, self.scalars)
        for param in declaration.params:
            if param.value is not None:
                self.scalars[param.name] = param.value.exact(self.scalars)
            else:
                self.scalars[param.name] = params[param.name] if param.name in params else int(param.default or 0)
        self.sizes = [count.exact(self.scalars) for _, count in declaration.dims]
        if any(size < 1 for size in self.sizes) or math.prod(self.sizes) > sum(map(len, arrays.values())):
            raise InputError(f"layout {declaration.name} does not fit", hint="check the parameters")

    def _fields(self, fields: tuple[FieldSpec, ...], at: int, scope: Mapping[str, int]) -> dict[str, int]:
        return {spec.name: self.field(spec, at, scope) for spec in fields}

    def after(self, scope: dict[str, int], following: Sequence[int]) -> dict[str, int]:
        """Return the fields that payloads read of the positions after a record; 0 where there is none."""
        return {
            name: self.record(scope, following[steps - 1])[field] if len(following) >= steps else 0
            for name, (steps, field) in self.of.next_names.items()
        }

    def place(self, spec: FieldSpec, at: int, scope: Mapping[str, int]) -> tuple[str, int]:
        """Return the array of a field and the byte from which its bits are counted."""
        return spec.array or MAIN, int(spec.byte.value(scope)) if spec.byte is not None else at

    def field(self, spec: FieldSpec, at: int, scope: Mapping[str, int]) -> int:
        """Return the value of a field of a header or record at a byte."""
        array, byte = self.place(spec, at, scope)
        return read_field(self.arrays[array], byte, spec)

    def dims(self) -> list[dict[str, int]]:
        """Return the scope of each lane before its header is read."""
        names = [name for name, _ in self.of.dims]
        found = []
        for number, indices in enumerate(itertools.product(*(range(size) for size in self.sizes))):
            found.append({**self.scalars, **dict(zip(names, indices, strict=True)), "lane": number})
        return found

    def lane_at(self, number: int) -> dict[str, int]:
        """Return the scope of one lane before its header is read."""
        found, rest = {**self.scalars, "lane": number}, number
        for (name, _), size in zip(reversed(self.of.dims), reversed(self.sizes), strict=True):
            rest, found[name] = divmod(rest, size)
        return found

    def lane(self, scope: dict[str, int]) -> dict[str, int]:
        """Return the scope of a lane with the fields of its header."""
        area = self.of.lane
        at = area.at.value(scope) if area.at is not None and area.fields else 0
        return {**scope, **self._fields(area.fields, at, scope)}

    def record(self, scope: dict[str, int], k: int) -> dict[str, int]:
        """Return the scope of a record; ``byte`` is not a name that expressions read, so it holds the place."""
        inner = {**scope, "k": k}
        at = self.of.record.at.value(inner)
        fields = self._fields((*self.of.record.fields, *self.of.record.views), at, inner)
        return {**inner, **fields, PLACE: at}

    def capacity(self, scope: dict[str, int]) -> int:
        """Return the records that a lane has room for, all of them inside of the file."""
        if self.of.capacity is not None:
            return max(0, int(self.of.capacity.value(scope)))
        count = 0
        while self.has(scope, count):
            count += 1
        return count

    def has(self, scope: dict[str, int], k: int) -> bool:
        """Return whether a position is inside of the file."""
        try:
            self.record(scope, k)
        except InputError:
            return False
        return True


def decode(
    declaration: Declaration, arrays: Mapping[str, Bytes], params: Mapping[str, int]
) -> tuple[list[Lane], int, int]:
    """Return the lanes of a file, the unreadable records that belong to none, and the records that are not events.

    Raises:
        InputError: the file does not have this layout.
    """
    scopes = Scopes(declaration, arrays, params)
    roles = declaration.roles
    by_record = False
    names = {spec.name for spec in (*declaration.record.fields, *declaration.record.views)} | {"k"}
    for role in ("block", "group"):
        by_record |= role in roles and bool(roles[role].names & names)
    lanes: dict[Any, Lane] = {}
    orphans = ignored = 0
    owners: dict[int, set[int]] = {}
    users: dict[int, set[int]] = {}
    for before in scopes.dims():
        scope = scopes.lane(before)
        own = lane_of(declaration, scopes, scope, names)
        if not by_record:
            lanes[scope["lane"]] = own
        sms: dict[int, set[int]] = {}
        state: dict[str, int] = {}
        positions = positions_of(declaration, scopes, scope, own)
        if positions:
            owners[scope["lane"]] = set()
        after = 0
        for number, k in enumerate(positions):
            record = scopes.record(scope, k)
            if number < after:
                ignored += 1
                continue
            if declaration.record.extends is not None:
                after = number + 1 + max(0, int(declaration.record.extends.value(record)))
            record |= scopes.after(scope, positions[number + 1 : number + 3])
            kind, row = read_record(declaration, record, state)
            if kind == "empty":
                continue
            if kind == "ignored":
                ignored += 1
                continue
            lane = own
            if by_record:
                if kind == "unreadable":
                    orphans += 1
                    continue
                identity = tuple(
                    int(roles[role].value(record)) if role in roles else value
                    for role, value in (("block", own.block), ("group", own.group))
                )
                lane = lanes.setdefault(
                    identity, Lane(identity[0], identity[1], own.sm, own.lost, own.anchor, own.pairs)
                )
            lane.records.append(row)
            owners[scope["lane"]].add(id(lane))
            users.setdefault(id(lane), set()).add(scope["lane"])
            if kind != "unreadable" and "sm" in roles and roles["sm"].names & names:
                seen = sms.setdefault(id(lane), set())
                seen.add(int(roles["sm"].value(record)))
                lane.sm = next(iter(seen)) if len(seen) == 1 else None
    found = [lanes[key] for key in sorted(lanes)]
    if by_record and any(len(one) != 1 for one in (*owners.values(), *users.values())):
        # What a lane of the buffer counted cannot be said of one of several.
        for lane in found:
            lane.lost = None
    if by_record:
        for lane in found:
            _of_several(lane, users[id(lane)])
    if declaration.positions == "events":
        for lane in found:
            orphans += sum(row[0] == "unreadable" for row in lane.records)
            lane.records = sorted((row for row in lane.records if row[0] != "unreadable"), key=lambda row: row[2])
    return found, orphans, ignored


def _of_several(lane: Lane, sources: set[int]) -> None:
    """Forget what one of several lanes of the buffer said."""
    if len(sources) > 1:
        lane.anchor = None if lane.anchor is None else 0
        lane.pairs = tuple((0, 0) for _ in lane.pairs)


def lane_of(declaration: Declaration, scopes: Scopes, scope: dict[str, int], names: set[str]) -> Lane:
    """Return a lane of the buffer without its records; ``names`` are those that only records have."""
    roles, clock = declaration.roles, declaration.clock
    dims = [name for name, _ in declaration.dims]
    outer = "block" if "block" in dims else dims[0]
    block, group = scope[outer], 0
    for name, size in zip(dims, scopes.sizes, strict=True):
        if name != outer:
            group = group * size + scope[name]
    if "block" in roles and not roles["block"].names & names:
        block = roles["block"].value(scope)
    if "group" in roles and not roles["group"].names & names:
        group = roles["group"].value(scope)
    sm = roles["sm"].value(scope) if "sm" in roles and not roles["sm"].names & names else None
    return Lane(
        block,
        group,
        sm,
        anchor=None if clock.anchor is None else clock.anchor.value(scope),
        pairs=tuple((ticks.value(scope), ns.value(scope)) for ticks, ns in clock.pairs),
    )


def positions_of(declaration: Declaration, scopes: Scopes, scope: dict[str, int], lane: Lane) -> list[int]:
    """Return the positions of a lane that are read, oldest first; and note in the lane what it lost."""
    usable = (
        (declaration.used is None or declaration.used.value(scope) != 0)
        and (declaration.lane_check is None or declaration.lane_check.value(scope) != 0)
        and (lane.anchor is None or 0 <= lane.anchor < MOST_READING)
    )
    capacity = scopes.capacity(scope)
    room = next((k for k in range(capacity) if not scopes.has(scope, k)), capacity)
    offered = -1 if declaration.offered is None else int(declaration.offered.value(scope))
    lane.is_full = declaration.overflow == "saturated" and offered >= capacity > 0
    if declaration.offered is not None and declaration.overflow != "saturated" and offered >= 0:
        lane.lost = max(0, offered - capacity) if usable else 0
    if not usable:
        return []
    if declaration.next is not None or declaration.overflow == "ring-by-time":
        return _turned(declaration, scopes, scope, lane, capacity, room)
    if offered < 0:
        return list(range(room))
    stored = min(offered, capacity, room)
    if declaration.overflow == "ring" and offered > capacity and room == capacity > 0:
        first = offered % capacity
        return [(first + i) % capacity for i in range(capacity)]
    return list(range(stored))


def _turned(
    declaration: Declaration, scopes: Scopes, scope: dict[str, int], lane: Lane, capacity: int, room: int
) -> list[int]:
    """Return the positions of a ring that does not count."""
    first = None
    if declaration.next is not None:
        at = max(0, min(int(declaration.next.value(scope)), room - 1))
        holds = room == capacity > 0 and not is_empty(declaration, scopes.record(scope, at))
        if not holds:
            lane.lost = 0
            return list(range(min(room, at)))
        first = at
    elif room == capacity > 1 and not is_empty(declaration, scopes.record(scope, capacity - 1)):
        role = declaration.roles.get("time") or declaration.roles["end"]
        stamps = [role.value(scopes.record(scope, k)) for k in range(capacity)]
        half = 1 << declaration.clock.bits - 1
        steps = [later - earlier for earlier, later in itertools.pairwise(stamps)]
        if declaration.clock.bits < 64:
            steps = [step + 2 * half if step < -half else step - 2 * half if step > half else step for step in steps]
        back = [k + 1 for k, step in enumerate(steps) if step < 0]
        first = back[0] if len(back) == 1 else None
    lane.lost = first or 0
    return [((first or 0) + i) % capacity for i in range(capacity)] if first else list(range(room))


def is_empty(declaration: Declaration, scope: dict[str, int]) -> bool:
    """Return whether a record of this scope holds nothing."""
    return declaration.record.empty is not None and declaration.record.empty.value(scope) != 0


def read_record(declaration: Declaration, scope: dict[str, int], state: dict[str, int]) -> tuple[str, tuple[Any, ...]]:
    """Return the kind of a record and its row; ``state`` takes what it sets for those after it."""
    at, roles = scope[PLACE], declaration.roles
    if is_empty(declaration, scope):
        return "empty", ()
    for one in declaration.state:
        if one.test.value(scope) != 0:
            state |= {name: value.value(scope) for name, value in one.values.items()}
            return "ignored", ()
    if declaration.record.stale is not None and declaration.record.stale.value(scope) != 0:
        return "ignored", ()
    needed = {name for one in declaration.state for name in one.values}
    unreadable = "unreadable", ("unreadable", at)
    if needed - set(state) or (declaration.record.agree is not None and declaration.record.agree.value(scope) == 0):
        return unreadable
    scope = {**scope, **state}
    kind = declaration.constant_kind
    if declaration.kind is not None:
        expression, table = declaration.kind
        kind = table.get(expression.value(scope), "unreadable")
    if kind == "unreadable":
        return unreadable
    if kind == "ignored":
        return kind, ()
    if kind == "span" and "open" in roles and roles["open"].value(scope) != 0:
        kind = "open"
    event = roles["id"].value(scope) if "id" in roles else 0
    begin = roles["begin" if declaration.is_spans else "time"].value(scope)
    end = roles["end"].value(scope) if declaration.is_spans else None
    payload = roles["payload"].value(scope) if "payload" in roles else None
    payload2 = roles["payload2"].value(scope) if "payload2" in roles else None
    track = roles["track"].value(scope) if "track" in roles else None
    return kind, (kind, event, begin, end, payload, payload2, track, at)
