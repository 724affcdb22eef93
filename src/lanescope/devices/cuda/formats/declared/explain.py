"""What a declaration reads from a buffer, field by field, and what does not fit: lines for people who write layouts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lanescope.devices.cuda.formats.declared.arrays import Arrays
from lanescope.devices.cuda.formats.declared.declaration import MOST_READING, Declaration, FieldSpec
from lanescope.devices.cuda.formats.declared.geometry import locate, parameters
from lanescope.devices.cuda.formats.declared.reference import (
    PLACE,
    Bytes,
    Scopes,
    lane_of,
    positions_of,
    read_record,
)
from lanescope.errors import InputError

#: Numbers from here on are shown in hex as well.
_LARGE = 1 << 16


def lines(
    declaration: Declaration, arrays: Arrays, params: Mapping[str, int], *, lane: int, limit: int
) -> Iterator[str]:
    """Yield what is read: numbers of the file, the header of a lane, and its records.

    Args:
        declaration: the layout.
        arrays: the file.
        params: parameters that the user gave.
        lane: number of the lane.
        limit: positions of the lane to show.

    Raises:
        InputError: the file does not have this layout, or it has no such lane.
        UsageError: a parameter is missing or unknown.
    """
    content = {name: data[:].tobytes() for name, data in arrays.data.items()}
    yield f"layout {declaration.name}: {declaration.title or declaration.source}"
    for name, data in content.items():
        yield f"array {name}: {len(data):,} bytes"
    # Where a layout does not fit, these numbers show why.
    scalars = parameters(declaration, arrays, params)
    at = declaration.header.at.exact(scalars) if declaration.header.at is not None else 0
    for spec in declaration.header.fields:
        bits = f"bits {spec.bit + spec.width - 1}..{spec.bit}"
        yield f"header {spec.name} = {_number(scalars[spec.name])}  byte {at:#x}, {bits}"
    for param in declaration.params:
        source = "given" if param.name in params else "default" if param.value is None else param.value.text
        yield f"param {param.name} = {_number(scalars[param.name])}  ({source})"
    for test in declaration.match:
        yield f"test {test.text}: {'holds' if test.value(scalars) else 'DOES NOT HOLD'}"
    geometry = locate(declaration, arrays, params)
    scopes = Scopes(declaration, content, params)
    sizes = ", ".join(f"{size} x {name}" for (name, _), size in zip(declaration.dims, scopes.sizes, strict=True))
    yield f"lanes: {geometry.lanes:,} ({sizes})"
    if not 0 <= lane < geometry.lanes:
        raise InputError(
            f"lane {lane} not found: there are {geometry.lanes} lanes", hint="use --lane with a smaller number"
        )
    yield from _lane(declaration, scopes, lane, limit)


def _lane(declaration: Declaration, scopes: Scopes, number: int, limit: int) -> Iterator[str]:
    scope = scopes.lane(scopes.lane_at(number))
    area = declaration.lane
    at = area.at.value(scope) if area.at is not None and area.fields else 0
    own = lane_of(declaration, scopes, scope, {spec.name for spec in declaration.record.fields} | {"k"})
    yield f"lane {number}: block {own.block}, group {own.group}" + (f", SM {own.sm}" if own.sm is not None else "")
    for spec in area.fields:
        yield f"  {spec.name} = {_number(scope[spec.name])}  {_where(scopes, spec, at, scope)}"
    for name, test in (("used", declaration.used), ("check", declaration.lane_check)):
        if test is not None:
            yield f"  {name} {test.text}: {'yes' if test.value(scope) else 'NO: the lane is not read'}"
    if own.anchor is not None and not 0 <= own.anchor < MOST_READING:
        yield f"  anchor = {_number(own.anchor)}: no counter reads this: the lane is not read"
    for name, expression in (("capacity", declaration.capacity), ("offered", declaration.offered)):
        if expression is not None:
            yield f"  {name} = {_number(expression.value(scope))}  ({expression.text})"
    positions = positions_of(declaration, scopes, scope, own)
    if own.lost is not None:
        yield f"  lost = {own.lost:,}"
    yield f"  positions to read: {len(positions):,}" + (f", from {positions[0]}" if positions else "")
    state: dict[str, int] = {}
    for number, k in enumerate(positions[:limit]):
        record = scopes.record(scope, k) | scopes.after(scope, positions[number + 1 : number + 3])
        yield from _record(declaration, scopes, record, k, state)
    if len(positions) > limit:
        yield f"  ... {len(positions) - limit:,} more positions (use --limit)"


def _record(
    declaration: Declaration, scopes: Scopes, scope: dict[str, int], k: int, state: dict[str, int]
) -> Iterator[str]:
    of, at = declaration.record, scope[PLACE]
    data: Bytes = scopes.arrays["buffer"]
    kind, row = read_record(declaration, scope, state)
    yield f"  k = {k}: {kind}  byte {at:#x}  {bytes(data[at : at + of.size]).hex(' ')}"
    if kind == "empty":
        return
    for spec in of.fields:
        yield f"    {spec.name} = {_number(scope[spec.name])}  {_where(scopes, spec, at, scope)}"
    if kind == "unreadable":
        yield f"    UNREADABLE: {_reason(declaration, scope, state)}"
    elif kind != "ignored":
        _, event, begin, end, payload, payload2, track, _ = row
        shown = {"id": event, "begin" if end is not None else "time": begin, "end": end, "payload": payload}
        shown |= {"payload2": payload2, "track": track}
        yield "    " + ", ".join(f"{name} = {_number(value)}" for name, value in shown.items() if value is not None)


def _reason(declaration: Declaration, scope: dict[str, int], state: dict[str, int]) -> str:
    """Return why a record is unreadable."""
    agree = declaration.record.agree
    if agree is not None and agree.value(scope) == 0:
        values = ", ".join(f"{name} = {scope[name]}" for name in sorted(agree.names))
        return f"{agree.text} does not hold ({values})"
    needed = {name for one in declaration.state for name in one.values} - set(state)
    if needed:
        return f"no record before it sets {', '.join(sorted(needed))}"
    if declaration.kind is not None:
        expression, table = declaration.kind
        known = ", ".join(str(value) for value in sorted(table))
        return f"{expression.text} = {expression.value({**scope, **state})} is not a known kind ({known})"
    return "its kind is unknown"


def _where(scopes: Scopes, spec: FieldSpec, at: int, scope: Mapping[str, int]) -> str:
    """Return the array, byte and bits of a field."""
    array, byte = scopes.place(spec, at, scope)
    name = "" if array == "buffer" else f"{array} "
    return f"{name}byte {byte:#x}, bits {spec.bit + spec.width - 1}..{spec.bit}"


def _number(value: int) -> str:
    return f"{value} ({value:#x})" if abs(value) >= _LARGE else str(value)
