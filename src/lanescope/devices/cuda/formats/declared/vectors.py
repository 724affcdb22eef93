"""Test vectors of a declaration: its example, and files in which single bits of single fields differ from it.

Each field is filled to its top and beyond its edges, so a declaration that reads one bit more, less or elsewhere reads
other numbers from at least one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from lanescope.devices.cuda.formats.declared.declaration import MAIN, Declaration, FieldSpec
from lanescope.devices.cuda.formats.declared.encode import example
from lanescope.devices.cuda.formats.declared.reference import Scopes


class Vector(NamedTuple):
    """A file of the layout.

    Attributes:
        label: what it is.
        field: the field that it is about; empty for the example.
        arrays: content by array.
        params: parameters to read it with.
    """

    label: str
    field: str
    arrays: Mapping[str, bytes]
    params: Mapping[str, int]


class _Site(NamedTuple):
    """Where a field is: bits of an array from ``bit`` on, in an area of ``size`` bytes from ``at`` on."""

    spec: FieldSpec
    array: str
    bit: int
    at: int
    size: int
    is_header: bool = False


def vectors(declaration: Declaration) -> Iterator[Vector]:
    """Yield the vectors of a declaration that has an example.

    Raises:
        InputError: it has none.
    """
    arrays, params = example(declaration)
    whole = {name: bytes(data) for name, data in arrays.items()}
    yield Vector("example", "", whole, params)
    for site in _sites(declaration, whole, params):
        name, first, width = site.spec.name, site.bit, site.spec.width
        changes = {
            "lowest bit changed": [first],
            "highest bit changed": [first + width - 1],
            "bit below changed": [first - 1],
            "bit above changed": [first + width],
        }
        for label, bits in changes.items():
            if all(0 <= bit < 8 * len(whole[site.array]) for bit in bits):
                data = bytearray(whole[site.array])
                for bit in bits:
                    data[bit // 8] ^= 1 << bit % 8
                yield Vector(f"{name}: {label}", name, {**whole, site.array: bytes(data)}, params)
        beyond = first + width
        if beyond < 8 * len(whole[site.array]):
            data = bytearray(whole[site.array])
            for bit in range(first, beyond):
                data[bit // 8] &= ~(1 << bit % 8)
            data[beyond // 8] |= 1 << beyond % 8
            yield Vector(f"{name}: cleared, bit above set", name, {**whole, site.array: bytes(data)}, params)
        for label, alone in (("highest bit only", [first + width - 1]), ("all bits only", range(first, first + width))):
            data = bytearray(whole[site.array])
            data[site.at : site.at + site.size] = bytes(site.size)
            for bit in alone:
                data[bit // 8] |= 1 << bit % 8
            yield Vector(f"{name}: {label}", name, {**whole, site.array: bytes(data)}, params)
        if site.is_header:
            for number in _NUMBERS:
                yield Vector(f"{name}: {number}", name, {**whole, site.array: _with(whole, site, number)}, params)


def vector_with(vector: Vector, declaration: Declaration, field: str, number: int) -> Vector:
    """Return a vector whose field holds another number, in the first lane and its first record where it is in these.

    Raises:
        StopIteration: the header, lane and record lack such a field.
    """
    site = next(site for site in _sites(declaration, vector.arrays, vector.params) if site.spec.name == field)
    arrays = {**vector.arrays, site.array: _with(vector.arrays, site, number)}
    return Vector(f"{field}: {number}", field, arrays, vector.params)


def _with(arrays: Mapping[str, bytes], site: _Site, number: int) -> bytes:
    """Return an array with a number in a field, cut to its width."""
    data = bytearray(arrays[site.array])
    for bit in range(site.spec.width):
        at = site.bit + bit
        data[at // 8] = data[at // 8] & ~(1 << at % 8) | (number >> bit & 1) << at % 8
    return bytes(data)


def _sites(declaration: Declaration, arrays: Mapping[str, bytes], params: Mapping[str, int]) -> Iterator[_Site]:
    """Yield where fields are: those of the header, and of the first and the last lane and some of their records."""
    scopes = Scopes(declaration, arrays, params)
    at = declaration.header.at.value(scopes.scalars) if declaration.header.at is not None else 0
    for spec in declaration.header.fields:
        yield _site(scopes, spec, at, declaration.header.size, scopes.scalars, is_header=True)
    lanes = scopes.dims()
    for scope in (lanes[0], lanes[-1]) if len(lanes) > 1 else lanes:
        area = declaration.lane
        at = area.at.value(scope) if area.at is not None and area.fields else 0
        for spec in area.fields:
            yield _site(scopes, spec, at, area.size, scope, is_header=True)
        inner = scopes.lane(scope)
        record = declaration.record
        for k in range(min(scopes.capacity(inner), _RECORDS)):
            if not scopes.has(inner, k):
                break
            place = {**inner, "k": k}
            at = record.at.value(place)
            for spec in (*record.fields, *record.views):
                yield _site(scopes, spec, at, record.size, place)


#: Records of a lane in which fields are changed.
_RECORDS = 2
#: What fields of headers hold as well: where counts, sizes and flags begin.
_NUMBERS = (0, 1, 2)


def _site(
    scopes: Scopes, spec: FieldSpec, at: int, size: int, scope: Mapping[str, int], *, is_header: bool = False
) -> _Site:
    array, byte = scopes.place(spec, at, scope)
    if spec.byte is not None:
        return _Site(spec, array, 8 * byte, byte, (spec.width + 7) // 8, is_header)
    return _Site(spec, MAIN, 8 * byte + spec.bit, at, size, is_header)
