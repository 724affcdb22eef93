"""Files of a declared layout, written from its declaration: the inverse of the readers."""

from __future__ import annotations

import random
from collections.abc import Mapping

from lanescope.devices.cuda.formats.declared.declaration import Declaration, FieldSpec
from lanescope.devices.cuda.formats.declared.expression import Expression
from lanescope.devices.cuda.formats.declared.reference import Scopes, write_field
from lanescope.errors import InputError


def encode(
    declaration: Declaration,
    *,
    sizes: Mapping[str, int],
    params: Mapping[str, int],
    fields: Mapping[str, Expression],
    records: Expression | None = None,
    seed: int = 1,
) -> dict[str, bytearray]:
    """Return the arrays of a file.

    Args:
        declaration: the layout.
        sizes: bytes of each array.
        params: parameters that the user gives.
        fields: the value of each field of headers and records, from the numbers that its readers know; fields that are
            left out hold arbitrary bits.
        records: records of each lane; None: as many as it has room for.
        seed: of the arbitrary bits.

    Returns:
        The content by array; bytes that nothing is declared for are 0.

    Raises:
        InputError: a field or record is outside of its array.
    """
    bits = random.Random(seed)
    arrays = {name: bytearray(sizes[name]) for name in declaration.arrays}

    def store(spec: FieldSpec, array: str, byte: int, scope: Mapping[str, int]) -> None:
        expression = fields.get(spec.name)
        value = bits.getrandbits(spec.width) if expression is None else int(expression.value(scope))
        write_field(arrays[array], byte, spec, value)

    numbers = {"size": sizes["buffer"]} | {f"size_{name}": sizes[name] for name in declaration.arrays[1:]}
    start = declaration.header.at.value(numbers) if declaration.header.at is not None else 0
    for spec in declaration.header.fields:
        store(spec, "buffer", start, numbers)
    scopes = Scopes(declaration, arrays, params)
    for scope in scopes.dims():
        area = declaration.lane
        at = area.at.value(scope) if area.at is not None and area.fields else 0
        for spec in area.fields:
            store(spec, *scopes.place(spec, at, scope), scope)
        inner = scopes.lane(scope)
        count = scopes.capacity(inner) if records is None else int(records.value(inner))
        for k in range(count):
            place = {**inner, "k": k}
            at = declaration.record.at.value(place)
            for spec in declaration.record.fields:
                store(spec, *scopes.place(spec, at, place), place)
    return arrays


def example(declaration: Declaration, seed: int = 1) -> tuple[dict[str, bytearray], Mapping[str, int]]:
    """Return the arrays of the file that a declaration gives as an example, and the parameters to read it with.

    Raises:
        InputError: it gives none.
    """
    of = declaration.example
    if of is None:
        raise InputError(f"layout {declaration.name} has no example", hint="add [example] to the layout file")
    found = encode(declaration, sizes=of.sizes, params=of.params, fields=of.fields, records=of.records, seed=seed)
    return found, of.params
