"""Checks of a declaration as a whole: what is read exists, lies where it can, and has one meaning."""

from __future__ import annotations

from collections.abc import Iterable

from lanescope.devices.cuda.formats.declared.declaration import NEXT, Area, Declaration, FieldSpec
from lanescope.devices.cuda.formats.declared.expression import Expression
from lanescope.errors import InputError

_HINT = "see the how-to on layout files"
#: Roles that are timestamps; their fields mean nothing else.
_STAMPS = ("time", "begin", "end")
_IDENTITIES = ("id", "block", "group", "sm")
_ALL_BITS = 64


def check(declaration: Declaration) -> None:
    """Check that a declaration makes sense.

    Raises:
        InputError: an expression reads an unknown name, records are not at places that are affine in ``k``, fields
            overlap or lie outside of their record, a role is missing, or two roles read the same field.
    """
    scalars = _scalars(declaration)
    places = scalars | {name for name, _ in declaration.dims} | {"lane"}
    lane_fields = _fields(declaration.lane, "lane", scalars)
    _check_names(declaration.lane.at, places)
    for spec in declaration.lane.fields:
        _check_array(declaration, spec, places)
    lane = places | lane_fields
    for expression in (declaration.used, declaration.lane_check, declaration.capacity, declaration.offered):
        _check_names(expression, lane)
    _check_names(declaration.next, lane)
    _check_names(declaration.clock.anchor, lane)
    for pair in declaration.clock.pairs:
        for expression in pair:
            _check_names(expression, lane)
    record = _check_record(declaration, places, lane)
    data = record | lane_fields
    for state in declaration.state:
        for expression in (state.test, *state.values.values()):
            _check_names(expression, lane | record | {"k"})
    named = {name for state in declaration.state for name in state.values}
    if taken := sorted(named & (lane | record | {"k"})):
        raise _error("state", f"the name {taken[0]!r} has another meaning already")
    record |= named
    after = {before + name for before in NEXT for name in record}
    for expression in _record_expressions(declaration):
        is_payload = any(expression is declaration.roles.get(role) for role in ("payload", "payload2"))
        _check_names(expression, lane | record | {"k"} | (after if is_payload else set()))
        found = sorted(expression.operand_names & (data | after))
        if found:
            raise _error(expression.place, f"divisor or shift depends on the field {found[0]!r}: use a parameter")
    _check_search(declaration, lane, lane | record | {"k"})
    _check_roles(declaration, record)
    _check_reach(declaration)
    _check_overflow(declaration)
    _check_clock(declaration)


def _error(place: str, problem: str) -> InputError:
    return InputError(f"{place}: {problem}", hint=_HINT)


def _check_names(expression: Expression | None, known: Iterable[str]) -> None:
    if expression is None:
        return
    unknown = sorted(expression.names - set(known))
    if unknown:
        raise _error(expression.place, f"unknown name {unknown[0]!r} in {expression.text!r}")


def _scalars(declaration: Declaration) -> set[str]:
    """Return the names of numbers of the whole file; what they are computed of comes before them."""
    known = {"size"} | {f"size_{array}" for array in declaration.arrays[1:]}
    _check_names(declaration.header.at, known)
    known |= _fields(declaration.header, "header", known)
    for param in declaration.params:
        _check_names(param.value, known)
        if param.name in known:
            raise _error(f"params.{param.name}", "the name has another meaning already")
        known.add(param.name)
    for number, (name, count) in enumerate(declaration.dims):
        _check_names(count, known)
        if name in known | {"lane", "k"} | {dim for dim, _ in declaration.dims[:number]}:
            raise _error("lanes", f"the name {name!r} has another meaning already")
    return known


def _fields(area: Area, place: str, known: set[str]) -> set[str]:
    _check_layout(area.fields, area.size, place)
    names = {spec.name for spec in area.fields}
    if taken := sorted(names & (known | {"k", "lane", "size"})):
        raise _error(f"{place}.fields.{taken[0]}", "the name has another meaning already")
    return names


def _check_layout(fields: tuple[FieldSpec, ...], size: int, place: str) -> None:
    """Check that fields lie inside their record, and that no two of them share a bit."""
    inside = sorted((spec for spec in fields if spec.array is None and spec.byte is None), key=lambda spec: spec.bit)
    end, before = 0, ""
    for spec in inside:
        if spec.bit + spec.width > 8 * size:
            raise _error(f"{place}.fields.{spec.name}", f"outside of the {size} bytes")
        if spec.bit < end:
            raise _error(f"{place}.fields.{spec.name}", f"overlaps the field {before!r}: use views for tests")
        end, before = spec.bit + spec.width, spec.name


def _check_array(declaration: Declaration, spec: FieldSpec, known: set[str]) -> None:
    if spec.array is not None and spec.array not in declaration.arrays:
        raise _error(spec.name, f"unknown array {spec.array!r} (choose from {', '.join(declaration.arrays)})")
    _check_names(spec.byte, known)


def _check_record(declaration: Declaration, places: set[str], lane: set[str]) -> set[str]:
    record = declaration.record
    _check_names(record.at, places | {"k"})
    names: set[str] = set()
    for spec in (*record.fields, *record.views):
        if spec.name in names | lane | {"k"}:
            raise _error(f"record.fields.{spec.name}", "the name has another meaning already")
        names.add(spec.name)
        _check_array(declaration, spec, places | {"k"})
    _check_layout(record.fields, record.size, "record")
    for view in record.views:
        _check_layout((view,), record.size, "record")
    for expression in (record.at, *(spec.byte for spec in record.fields if spec.byte is not None)):
        if not expression.is_affine_in("k"):
            raise _error(expression.place, f"{expression.text!r} is not affine in k")
    return names


def _check_reach(declaration: Declaration) -> None:
    """Check that no field is compared with a number that it cannot hold: such a test would never say anything."""
    of = declaration.record
    fields = (*declaration.header.fields, *declaration.lane.fields, *of.fields, *of.views)
    # All 64 bits are read as a signed number.
    widths = {spec.name: spec.width for spec in fields if spec.width < _ALL_BITS}
    tests = [
        *declaration.match,
        declaration.used,
        declaration.lane_check,
        declaration.offered,
        *_record_expressions(declaration),
    ]
    for test in filter(None, tests):
        for name, number in test.compared:
            if name in widths and not 0 <= number < 1 << widths[name]:
                raise _error(
                    test.place,
                    f"{name!r} is never {number}: its bits are {widths[name]}, 0 to {(1 << widths[name]) - 1}",
                )
    if declaration.kind is not None and declaration.kind[0].name in widths:
        name, width = declaration.kind[0].name, widths[declaration.kind[0].name]
        if beyond := [value for value in declaration.kind[1] if not 0 <= value < 1 << width]:
            raise _error("kind", f"{name!r} is never {beyond[0]}: its bits are {width}, 0 to {(1 << width) - 1}")


def _record_expressions(declaration: Declaration) -> list[Expression]:
    of, found = declaration.record, [*declaration.roles.values()]
    found += [declaration.kind[0]] if declaration.kind is not None else []
    found += [e for e in (of.empty, of.agree, of.stale, of.extends) if e]
    return found


def _check_roles(declaration: Declaration, record: set[str]) -> None:
    roles = declaration.roles
    kinds = set(declaration.kind[1].values()) if declaration.kind is not None else {declaration.constant_kind}
    spans = kinds & {"span", "open"}
    if spans and kinds & {"begin", "end", "finalize"}:
        raise _error("kind", "regions of one record and of two in the same lane")
    needed = ("begin", "end") if spans else ("time",)
    for role in needed:
        if role not in roles:
            raise _error(role, "missing")
    for role in set(_STAMPS) - set(needed):
        if role in roles:
            raise _error(role, f"not used: the kind makes {', '.join(needed)} the timestamps")
    if ("begin" in kinds) != ("end" in kinds) and declaration.pairing != "boundary":
        raise _error("kind", "one of begin and end is missing")
    if declaration.length_bits is not None and not spans:
        raise _error("length_bits", "only regions of one record have a length")
    if "payload2" in roles and "instant" not in kinds:
        raise _error("payload2", "only instants have a second payload")
    if "token" in roles and declaration.pairing != "token":
        raise _error("token", "used with pairing = 'token' only")
    if declaration.pairing == "token" and spans:
        raise _error("pairing", "a record that is a whole region has its end")
    if "open" in roles and not spans:
        raise _error("open", "only regions of one record can be open")
    readers: dict[str, str] = {}
    for role in (*_STAMPS, *_IDENTITIES):
        for name in roles[role].names & record if role in roles else ():
            other = readers.setdefault(name, role)
            if other != role and (role in _STAMPS) != (other in _STAMPS):
                raise _error(role, f"reads the field {name!r}, which is part of the {other}")
    if spans and roles["begin"].text == roles["end"].text:
        raise _error("end", "the same as begin")


def _check_overflow(declaration: Declaration) -> None:
    overflow, capacity = declaration.overflow, declaration.capacity
    if overflow != "unchecked" and capacity is None:
        raise _error("capacity", f"missing: overflow is {overflow!r}, so a lane has room for a number of records")
    if overflow in ("drop", "saturated") and declaration.offered is None:
        raise _error(
            "offered",
            f"missing: with overflow {overflow!r} a lane counts its records; if none does, it is 'unchecked'",
        )
    if overflow == "ring" and (declaration.offered is None) == (declaration.next is None):
        raise _error("offered", "a ring needs either a count of records (offered) or a position (next)")


def _check_search(declaration: Declaration, lane: set[str], record: set[str]) -> None:
    search = declaration.search
    if search is None:
        return
    of_user = {param.name for param in declaration.user_params}
    names = {search.param, *([search.also[0]] if search.also else []), *search.given}
    if unknown := sorted(names - of_user):
        raise _error("search", f"unknown parameter {unknown[0]!r}: expected one that the user gives")
    _check_names(search.stride, {param.name for param in declaration.params})
    for test in search.tests:
        _check_names(test, lane)
    for test in search.records:
        _check_names(test, record)


def _check_clock(declaration: Declaration) -> None:
    clock = declaration.clock
    if (clock.unit == "ticks") != (clock.hz is not None):
        raise _error("clock.hz", "required for ticks, and only for them")
    if clock.hz is not None and not 1000 <= clock.hz <= 100_000_000_000:
        raise _error("clock.hz", "expected 1 kHz to 100 GHz")
    if (clock.unwrap != "lane") != (clock.anchor is not None):
        raise _error("clock.anchor", "required unless timestamps are unwrapped along the lane")
    if clock.pairs and clock.unit != "cycles":
        raise _error("clock.pairs", "only cycles need them")
    if clock.across == "block" and "block" not in declaration.roles and "block" not in dict(declaration.dims):
        raise _error("clock.across", "there are no blocks: name a dimension block, or give the role")
