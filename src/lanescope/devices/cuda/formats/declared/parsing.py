"""Declarations from TOML text, key by key: unknown keys and values of the wrong kind are errors."""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from lanescope.devices.cuda.formats.declared.declaration import (
    KINDS,
    MAIN,
    OVERFLOWS,
    PAIRINGS,
    ROLES,
    SCOPES,
    STATUSES,
    UNITS,
    UNWRAPS,
    Area,
    ClockDecl,
    Declaration,
    Example,
    FieldSpec,
    Param,
    RecordSpec,
    Search,
    StateSpec,
)
from lanescope.devices.cuda.formats.declared.expression import Expression
from lanescope.errors import InputError

_HINT = "see the how-to on layout files"
#: Bytes of a slot, unless headers or records are of fewer.
_MOST_UNIT = 8
_LARGEST_UNIT = 64


class _Keys:
    """The keys of one table of the file: each is taken once, by name and type; what is left is an error."""

    def __init__(self, place: str, values: Any) -> None:
        if not isinstance(values, dict):
            raise InputError(f"{place}: expected a table", hint=_HINT)
        self._place, self._left = place, dict(values)
        self._known: list[str] = []

    def at(self, key: str) -> str:
        return f"{self._place}.{key}" if self._place else key

    def error(self, key: str, problem: str) -> InputError:
        return InputError(f"{self.at(key)}: {problem}", hint=_HINT)

    def take(self, key: str, kind: type, default: Any = None, *, required: bool = False) -> Any:
        self._known.append(key)
        if key not in self._left:
            if required:
                near = difflib.get_close_matches(key, self._left, 1)
                raise self.error(key, "missing" + (f" (there is an unknown key {near[0]})" if near else ""))
            return default
        value = self._left.pop(key)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            is_number = kind is str and isinstance(value, int) and not isinstance(value, bool)
            raise self.error(key, f"expected {_TYPES[kind]}" + (f', as "{value}"' if is_number else ""))
        return value

    def choice(self, key: str, choices: Sequence[str], default: str) -> str:
        value: str = self.take(key, str, default)
        if value not in choices:
            raise self.error(key, f"unknown value {value!r} (choose from {', '.join(choices)})")
        return value

    def natural(self, key: str, default: int, *, least: int = 0, most: int = 1 << 32) -> int:
        value: int = self.take(key, int, default)
        if not least <= value <= most:
            raise self.error(key, f"expected a number from {least} to {most}")
        return value

    def done(self) -> None:
        if self._left:
            key = next(iter(self._left))
            near = difflib.get_close_matches(key, self._known, 1)
            raise self.error(key, "unknown key" + (f" (did you mean {near[0]}?)" if near else ""))


_TYPES = {str: "a string", int: "an integer", bool: "true or false", dict: "a table", list: "a list"}


class _Parser:
    def __init__(self, tables: Mapping[str, Mapping[int, int]]) -> None:
        self.tables = tables

    def expression(self, keys: _Keys, key: str, *, required: bool = False) -> Expression | None:
        text = keys.take(key, str, required=required)
        return None if text is None else Expression(text, keys.at(key), tables=self.tables)

    def fields(self, keys: _Keys, key: str) -> tuple[FieldSpec, ...]:
        return tuple(
            self._field(keys, f"{key}.{name}", name, value) for name, value in keys.take(key, dict, {}).items()
        )

    def _field(self, keys: _Keys, key: str, name: str, value: Any) -> FieldSpec:
        if not name.isidentifier() or name.startswith("_"):
            raise keys.error(key, "not a name that expressions can use")
        match value:
            case [int(bit), int(width)]:
                spec = FieldSpec(name, bit, width)
            case [str(array), str(byte), int(width)]:
                spec = FieldSpec(name, 0, width, array or None, Expression(byte, keys.at(key), tables=self.tables))
            case _:
                raise keys.error(key, 'expected [bit, width] or ["array", "byte", width]')
        if not (0 <= spec.bit < 1 << 20 and 1 <= spec.width <= 64):
            raise keys.error(key, "expected a width from 1 to 64 bits")
        if spec.bit % 8 + spec.width > 64:
            raise keys.error(key, "the field crosses more than 8 bytes")
        return spec

    def area(self, keys: _Keys) -> Area:
        found = Area(self.expression(keys, "at"), keys.natural("size", 0), self.fields(keys, "fields"))
        if found.at is None:
            return Area(Expression("0", keys.at("at")), found.size, found.fields)
        return found


def _table(keys: _Keys, key: str, values: Mapping[str, Any], kind: type) -> dict[int, Any]:
    found: dict[int, Any] = {}
    for text, value in values.items():
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 20) or not isinstance(value, kind):
            raise keys.error(key, f"expected numbers as keys and {_TYPES[kind].split()[-1]}s as values")
        found[int(text)] = value
    return found


def parse(text: str, where: str = "layout") -> Declaration:
    """Return the declaration in a TOML text; what it says together is checked by ``validation.check``.

    Args:
        text: the file's content.
        where: the file, for errors.

    Raises:
        InputError: it is not TOML, a key is unknown or missing, or a value is of the wrong kind.
    """
    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{where}: invalid TOML: {error}", hint=_HINT) from None
    try:
        return _parse(values, text)
    except InputError as error:
        raise InputError(f"{where}: {error.message}", hint=error.hint) from None


def _parse(values: dict[str, Any], text: str) -> Declaration:
    keys = _Keys("", values)
    tables = {name: _table(keys, f"tables.{name}", table, int) for name, table in keys.take("tables", dict, {}).items()}
    parser = _Parser(tables)
    name = keys.take("name", str, required=True)
    title, source = keys.take("title", str, ""), keys.take("source", str, required=True)
    license_, status = keys.take("license", str, ""), keys.choice("status", STATUSES, "read")
    unit = keys.take("unit_bytes", int)
    if unit is not None and not 1 <= unit <= _LARGEST_UNIT:
        raise keys.error("unit_bytes", f"expected a number from 1 to {_LARGEST_UNIT}")
    arrays = (MAIN, *keys.take("arrays", list, []))
    if not all(isinstance(array, str) and array.isidentifier() for array in arrays) or len(set(arrays)) < len(arrays):
        raise keys.error("arrays", "expected different names")
    main = keys.take("main", str, MAIN)
    if not main.isidentifier() or main in arrays[1:]:
        raise keys.error("main", "expected the name of the main array in an .npz file")
    header_keys = _Keys("header", keys.take("header", dict, {}))
    header = parser.area(header_keys)
    header_keys.done()
    params = tuple(_param(parser, name, value) for name, value in keys.take("params", dict, {}).items())
    dims = _dims(keys, tables)
    lane_keys = _Keys("lane", keys.take("lane", dict, {}))
    lane = parser.area(lane_keys)
    used, lane_check = parser.expression(lane_keys, "used"), parser.expression(lane_keys, "check")
    lane_keys.done()
    record, kind, constant = _record(parser, keys)
    clock = _clock(parser, keys)
    names_keys = _Keys("names", keys.take("names", dict, {}))
    names = _table(names_keys, "table", names_keys.take("table", dict, {}), str)
    pointers = names_keys.choice("source", ("user", "table", "pointer"), "user") == "pointer"
    names_keys.done()
    roles = {role: found for role in ROLES if (found := parser.expression(keys, role)) is not None}
    made = Declaration(
        name=name,
        title=title,
        source=source,
        license=license_,
        status=status,
        # Headers and records are whole units.
        unit_bytes=unit or math.gcd(_MOST_UNIT, header.size, lane.size, record.size),
        arrays=arrays,
        header=header,
        params=params,
        dims=dims,
        lane=lane,
        used=used,
        lane_check=lane_check,
        capacity=parser.expression(keys, "capacity"),
        offered=parser.expression(keys, "offered"),
        next=parser.expression(keys, "next"),
        overflow=keys.choice("overflow", OVERFLOWS, "unchecked"),
        record=record,
        kind=kind,
        constant_kind=constant,
        roles=roles,
        clock=clock,
        pairing=keys.choice("pairing", PAIRINGS, "lifo-by-id"),
        positions=keys.choice("positions", ("sequence", "events"), "sequence"),
        names=names,
        pointers=pointers,
        match=tuple(Expression(str(test), "match", tables=tables) for test in keys.take("match", list, [])),
        length_bits=keys.natural("length_bits", 0, most=62) or None,
        overwrites_instants=keys.take("overwrites_instants", bool, default=False),
        state=tuple(_state(parser, keys, number, one) for number, one in enumerate(keys.take("state", list, []))),
        tables=tables,
        example=_example(parser, keys),
        text=text,
        main_name=main,
        search=_search(parser, keys),
    )
    keys.done()
    return made


def _param(parser: _Parser, name: str, value: Any) -> Param:
    keys = _Keys("params", {name: value})
    if not name.isidentifier() or name.startswith("_"):
        raise keys.error(name, "not a name that expressions can use")
    if isinstance(value, str):
        return Param(name, parser.expression(keys, name))
    of = _Keys(f"params.{name}", value)
    if of.take("from", str, required=True) != "user":
        raise of.error("from", 'expected "user"')
    found = Param(name, None, of.take("help", str, ""), of.take("default", int))
    of.done()
    return found


def _example(parser: _Parser, keys: _Keys) -> Example | None:
    values = keys.take("example", dict)
    if values is None:
        return None
    of = _Keys("example", values)
    fields = of.take("fields", dict, {})
    field_keys = _Keys("example.fields", fields)
    found = Example(
        _numbers(of, "sizes", required=True),
        _numbers(of, "params"),
        {name: e for name in fields if (e := parser.expression(field_keys, name)) is not None},
        parser.expression(of, "records"),
    )
    of.done()
    return found


def _search(parser: _Parser, keys: _Keys) -> Search | None:
    values = keys.take("search", dict)
    if values is None:
        return None
    of = _Keys("search", values)
    stride = parser.expression(of, "stride", required=True)
    assert stride is not None
    also = _numbers(of, "also")
    if len(also) > 1:
        raise of.error("also", "expected one parameter")
    tests, records = (
        tuple(Expression(str(test), f"search.{key}", tables=parser.tables) for test in of.take(key, list, []))
        for key in ("tests", "records")
    )
    found = Search(
        of.take("param", str, required=True),
        of.natural("least", 1, least=1),
        stride,
        next(iter(also.items()), None),
        tests,
        records,
        bool(of.take("paired", bool, default=False)),
        _numbers(of, "given"),
    )
    of.done()
    return found


def _numbers(keys: _Keys, key: str, *, required: bool = False) -> dict[str, int]:
    values = keys.take(key, dict, {}, required=required)
    if not all(isinstance(value, int) and not isinstance(value, bool) for value in values.values()):
        raise keys.error(key, "expected numbers by name")
    return dict(values)


def _state(parser: _Parser, keys: _Keys, number: int, value: Any) -> StateSpec:
    match value:
        case [str(test), dict(values)] if values and all(name.isidentifier() for name in values):
            place = keys.at(f"state.{number}")
            of = _Keys(place, values)
            found = {name: parser.expression(of, name) for name in values}
            return StateSpec(
                Expression(test, place, tables=parser.tables), {name: e for name, e in found.items() if e is not None}
            )
    raise keys.error("state", 'expected ["test", {name = "expression"}] for each')


def _dims(keys: _Keys, tables: Mapping[str, Mapping[int, int]]) -> tuple[tuple[str, Expression], ...]:
    found = []
    for number, dim in enumerate(keys.take("lanes", list, required=True)):
        match dim:
            case [str(name), str(count)] if name.isidentifier():
                found.append((name, Expression(count, f"lanes.{number}", tables=tables)))
            case _:
                raise keys.error("lanes", 'expected ["name", "count"] for each dimension')
    if not found:
        raise keys.error("lanes", "expected at least one dimension")
    return tuple(found)


def _record(parser: _Parser, keys: _Keys) -> tuple[RecordSpec, tuple[Expression, Mapping[int, str]] | None, str]:
    of = _Keys("record", keys.take("record", dict, required=True))
    at = parser.expression(of, "at", required=True)
    assert at is not None
    size = of.natural("size", 0, least=1, most=1 << 20)
    record = RecordSpec(
        at,
        size,
        parser.fields(of, "fields"),
        parser.fields(of, "views"),
        parser.expression(of, "empty"),
        parser.expression(of, "agree"),
        parser.expression(of, "stale"),
        parser.expression(of, "extends"),
    )
    of.done()
    kind = keys.take("kind", object, required=True)
    match kind:
        case "span" | "instant":
            return record, None, kind
        case [str(text), dict(table)]:
            expression = Expression(text, "kind", tables=parser.tables)
            named = _table(keys, "kind", table, str)
            for value in named.values():
                if value not in KINDS:
                    raise keys.error("kind", f"unknown kind {value!r} (choose from {', '.join(KINDS)})")
            return record, (expression, named), ""
    raise keys.error("kind", 'expected "span", "instant" or ["expression", {number = "kind"}]')


def _clock(parser: _Parser, keys: _Keys) -> ClockDecl:
    of = _Keys("clock", keys.take("clock", dict, {}))
    pairs = []
    for number, pair in enumerate(of.take("pairs", list, [])):
        match pair:
            case [str(ticks), str(ns)]:
                place = f"clock.pairs.{number}"
                pairs.append(
                    (
                        Expression(ticks, place, tables=parser.tables),
                        Expression(ns, place, tables=parser.tables),
                    )
                )
            case _:
                raise of.error("pairs", 'expected ["counter", "nanoseconds"]')
    found = ClockDecl(
        of.take("name", str, "globaltimer"),
        of.choice("unit", UNITS, "ns"),
        of.natural("bits", 64, least=16, most=64),
        of.choice("unwrap", UNWRAPS, "lane"),
        parser.expression(of, "anchor"),
        of.choice("across", SCOPES, "device"),
        of.take("hz", int),
        tuple(pairs),
    )
    of.done()
    return found
