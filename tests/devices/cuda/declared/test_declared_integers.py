"""Shipped declarations with any one of their integers changed by one bit: a file shows the change, or it is explained.

Integers are all that a declaration has: bits and widths of fields, positions, numbers in expressions, values of kinds,
the width and the rate of the clock. A change that no file of these shows would go unnoticed in a release.
"""

from __future__ import annotations

import ast
import io
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devices.cuda.declared.producers import WRITERS, Shape
from devices.cuda.declared.test_declared_vectors import outcome
from effort import some
from lanescope import cuda
from lanescope.devices.cuda.formats.declared import catalog
from lanescope.devices.cuda.formats.declared.arrays import Arrays
from lanescope.devices.cuda.formats.declared.declaration import Declaration
from lanescope.devices.cuda.formats.declared.encode import encode
from lanescope.devices.cuda.formats.declared.expression import Expression
from lanescope.devices.cuda.formats.declared.geometry import locate
from lanescope.devices.cuda.formats.declared.reference import Scopes
from lanescope.devices.cuda.formats.declared.vectors import Vector, vector_with, vectors
from lanescope.errors import LanescopeError

#: What only people read, and what only tests and the search of parameters do.
NOT_READ = {"name", "title", "source", "license", "status", "example", "search", "names"}
SHAPES = [
    Shape(),
    Shape(blocks=3, groups=5, capacity=5, regions=20, wrap=True, seed=3),
    Shape(blocks=9, groups=2, capacity=16, regions=None),
    Shape(blocks=1, groups=1, capacity=1, regions=3),
    Shape(blocks=19, groups=1, capacity=4, regions=2),
]
#: Files of other sizes: bytes, parameters, and fields that are not those of the example.
FILES: dict[str, list[tuple[dict[str, int], dict[str, int], dict[str, str]]]] = {
    "cutedsl-trace-static": [
        ({"buffer": 160}, {"row": 40, "words": 2}, {}),
        ({"buffer": 240}, {"row": 60, "words": 3}, {}),
    ],
    "nanotrace": [({"buffer": 640}, {"row": 160, "lanes": 2}, {})],
    "nanotrace-static": [({"buffer": 240}, {"row": 60, "words": 3}, {})],
    "flydsl": [({"buffer": 1024}, {"max_events": 11, "grid_x": 3, "grid_y": 2}, {"bz": "2"})],
    "flydsl-static": [
        ({"buffer": 1024}, {"sites": sites, "hardware": hardware}, {"tick": "(1 << 51) + 4294967001"})
        for sites in (3, 10, 11, 12, 27, 45)
        for hardware in (0, 1)
    ],
    "nuggets-compact": [
        ({"buffer": 120}, {"max_events": 4}, {"start": f"1761000000000000000 + {apart} * k"})
        for apart in (150, 40_000, 20_000_000)
    ],
    "npkit": [
        ({"buffer": 160}, {"gpu_mhz": 2000, "cpu_mhz": 1000}, {"type": "1 if k == 0 else (2 if k == 1 else 12 + k)"})
    ],
    "mosaic-gpu": [({"buffer": 192}, {"words": 12}, {})],
}
#: Fields that hold a number at which a rule begins to hold, or ends to.
NUMBERS = {
    "cutedsl-trace": [("end_byte", 16), ("end_byte", 31)],
    "cutedsl-trace-static": [("end_byte", 8)],
    "nanotrace": [("end_byte", 8), ("end_byte", 15)],
    "nanotrace-static": [("end_byte", 8), ("end_byte", 15)],
    "flydsl-static": [("end_tick", (1 << 51) + 4294967000 + 4294967296)],
}
#: What the producers' code has, where a user gives no number.
DEFAULTS = {
    "cutedsl-trace": {"lanes": 1},
    "cutedsl-trace-static": {"lanes": 1, "words": 2},
    "flydsl": {"offset": 0, "max_events": 256, "grid_x": 65536, "grid_y": 65536},
    "flydsl-static": {"waves_per_block": 1, "hardware": 0},
    "megakernels": {"slots": 128},
    "mori": {"max_events": 16384},
    "mosaic-gpu": {"groups": 1},
    "nanotrace": {"lanes": 1},
    "nanotrace-static": {"lanes": 1, "words": 2},
    "npkit": {"cpu_mhz": 1000},
    "open-cuprof": {"max_events": 128, "max_warps": 32},
    "quack": {"warps": 1},
    "thunderkittens": {"rows": 1, "width": 128},
    "tileops": {"groups": 1, "spare": 1},
    "tt-metal": {"words": 16000, "riscs": 5, "control_words": 32},
}
#: Changes without a difference.
SAME: dict[str, list[str]] = {
    # Sizes are multiples of 4, and of 128: to round up to 8, or to 64, adding less does as well.
    "flydsl": [f"params.stride = (64 + 12 * max_events + {more}) // 64 * 64" for more in (61, 62)],
    "flydsl-static": [f"params.stride = (16 + 4 * sites + 8 * hardware + {more}) // 64 * 64" for more in (61, 62)],
    "open-cuprof": [f"params.stride = (events + 4 * max_warps + 8 + {more}) // 8 * 8" for more in (5, 6)],
    "sm-profiler": [
        *(f"params.data = 16 + (4 * total + {n}) // 8 * 8 + (128 * total + 7) // 8 * 8" for n in (5, 6)),
        *(f"params.data = 16 + (4 * total + 7) // 8 * 8 + (128 * total + {n}) // 8 * 8" for n in (3, 5, 6)),
    ],
    # A count below 0 is none, and no kind has a negative number.
    "nuggets-legacy": ["offered = asked if asked > 0 else 0 - 3"],
    "npkit": ["kind.0 = type % 2 if type >= 16 else 0 - 3"],
    # Only a file with more blocks than the 16 bits of the tag can name shows them.
    "quack": [
        *(f"sm = smid if block < {65536 | 1 << bit} else 0 - 1" for bit in (*range(16), 17)),
        *(f"sm = smid if block < 65536 else {number}" for number in ("1 - 1", "2 - 1", "0 - 0", "0 - 3")),
    ],
    # The timestamps have 32 bits, and count from 0.
    "thunderkittens": [f"clock.bits = {bits}" for bits in (33, 34, 36, 40, 48)],
    # No core has a sixth processor. The upper half of a payload is shifted beyond 64 bits.
    "tt-metal": [
        *(f"lane.fields.full.2 = {bits}" for bits in (7, 13)),
        *(f"record.views.first.1 = {bits}" for bits in (33, 34, 36, 40, 48)),
    ],
}

INTEGER = re.compile(r"(?<![A-Za-z_0-9])\d+(?![A-Za-z_0-9])")


def flips(number: int) -> Iterator[int]:
    """The numbers that differ in one bit, the one above its highest included."""
    yield from (number ^ 1 << bit for bit in range(max(1, number.bit_length()) + 1))


def changes(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """What changed, and the value with one bit of one of its integers changed."""
    if isinstance(value, int):
        yield from ((f"{place} = {number}", number) for number in flips(value) if not isinstance(value, bool))
    elif isinstance(value, str):
        for found in INTEGER.finditer(value):
            for number in flips(int(found[0])):
                text = f"{value[: found.start()]}{number}{value[found.end() :]}"
                yield f"{place} = {text}", text
    elif isinstance(value, list):
        for at, part in enumerate(value):
            for what, changed in changes(part, f"{place}.{at}"):
                yield what, [*value[:at], changed, *value[at + 1 :]]
    elif isinstance(value, dict):
        for key, part in value.items():
            if not place and key in NOT_READ:
                continue
            for what, changed in changes(part, f"{place}.{key}" if place else key):
                yield what, {**value, key: changed}
            if key.isdigit():
                for number in map(str, flips(int(key))):
                    if value.get(number) != part:
                        rest = {other: of for other, of in value.items() if other not in (key, number)}
                        yield f"{place}.{key} at {number}", rest | {number: part}


def toml(value: Any) -> str:
    """A value of a declaration as TOML."""
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case str():
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case list():
            return f"[{', '.join(map(toml, value))}]"
    return "{" + ", ".join(f'"{key}" = {toml(part)}' for key, part in value.items()) + "}"


def text_of(values: dict[str, Any]) -> str:
    return "".join(f'"{key}" = {toml(value)}\n' for key, value in values.items())


def files_of(name: str, declaration: Declaration) -> Iterator[Vector]:
    """The vectors of a declaration, files of its writers, and those above."""
    made = list(vectors(declaration))
    yield from made
    for field, number in NUMBERS.get(name, ()):
        yield vector_with(made[0], declaration, field, number)
    for sizes, params, fields in FILES.get(name, ()):
        content = dict(declaration.example.fields) | {key: Expression(text, key) for key, text in fields.items()}
        arrays = encode(declaration, sizes=sizes, params=params, fields=content)
        yield Vector(f"{params}", "", {key: bytes(data) for key, data in arrays.items()}, params)
    for writer in WRITERS.get(name, ()):
        for written in map(writer, SHAPES):
            arrays = {key: array.tobytes() for key, array in written.arrays.items()}
            yield Vector(writer.__name__, "", arrays, written.params)


def read(declaration: Declaration, vector: Vector) -> object:
    """What the columns say of a file, and which headers of lanes are possible."""
    found = outcome(declaration, vector.arrays, vector.params)
    if found is None:
        return None
    arrays = Arrays(
        {name: np.frombuffer(data, np.uint8) for name, data in vector.arrays.items()}, dict.fromkeys(vector.arrays, 0)
    )
    return found, locate(declaration, arrays, vector.params).is_sound.tolist()


def matches(declaration: Declaration, vector: Vector) -> list[bool] | None:
    """Which tests of detection a file meets."""
    try:
        scalars = Scopes(declaration, vector.arrays, vector.params).scalars
        return [bool(test.value(scalars)) for test in declaration.match]
    except LanescopeError:
        return None


def rows(text: str, vector: Vector, path: Path) -> object:
    """All that is decoded from a file."""
    path.write_text(text)
    data = vector.arrays["buffer"]
    if len(vector.arrays) > 1:
        file = io.BytesIO()
        np.savez(file, **{key: np.frombuffer(array, np.uint8) for key, array in vector.arrays.items()})
        data = file.getvalue()
    options = {"layout": str(path)} | ({"layout_params": vector.params} if vector.params else {})
    # A launch that is shorter than the wrap period of lengths has none that wrapped.
    lengths = [{"launch_ns": 10_000_000}, {"launch_ns": 20_000_000}] if "length_bits" in text else [{}]
    try:
        traces = [cuda.decode(data, **options, **length) for length in lengths]
    except LanescopeError:
        return None
    return [
        ([[str(row) for row in table.rows()] for table in each.tables().values()], str(each.time)) for each in traces
    ]


def of_width(name: str, declaration: Declaration) -> set[str]:
    """Changes of what a number is compared with modulo the values of its field, or of a timestamp: it has to be those.

    A file that shows them has more lanes than the field has values.
    """
    widths = {spec.name: spec.width for spec in (*declaration.record.fields, *declaration.lane.fields)}
    found = set()
    for place, test in (("record.agree", declaration.record.agree), ("lane.check", declaration.lane_check)):
        if test is None:
            continue
        for node in ast.walk(ast.parse(test.text, mode="eval")):
            match node:
                case ast.Compare(ast.Name(id=field), [ast.Eq()], [ast.BinOp(ast.Name(), ast.Mod(), modulus)]):
                    assert isinstance(modulus, ast.Constant)
                    assert modulus.value == 1 << widths[field], (name, test.text)
                    start, stop = modulus.col_offset, modulus.end_col_offset
                    found |= {f"{place} = {test.text[:start]}{n}{test.text[stop:]}" for n in flips(modulus.value)}
    return found


@pytest.mark.full
@pytest.mark.parametrize("name", catalog.shipped())
def test_an_integer_changed_by_one_bit_is_noticed(name, tmp_path):
    declaration = catalog.load(name)
    values = tomllib.loads(declaration.text)
    unread = {spec.name for spec in (*declaration.lane.fields, *declaration.record.fields)} - read_names(declaration)
    explained = of_width(name, declaration) | set(SAME.get(name, ()))
    known = [(vector, read(declaration, vector)) for vector in files_of(name, declaration)]
    first_file = known[0][0]
    headers = [vector for vector, _ in known] + [
        vector_with(first_file, declaration, spec.name, number)
        for spec in (declaration.header.fields if declaration.match else ())
        for number in range(64)
    ]
    met = [matches(declaration, vector) for vector in headers]
    whole: dict[int, object] = {}
    missed, count, first = [], 0, 0
    path = tmp_path / "changed.toml"
    tried = list(changes(values))
    for what, changed in tried[:: len(tried) // some(len(tried))]:
        place = what.split(" ")[0].split(".")
        if place[-1] in ("help", "default") or (place[1:2] in (["fields"], ["views"]) and place[2] in unread):
            continue
        count += 1
        if what in explained:
            continue
        try:
            mutant = catalog.read(text_of(changed), name)
        except LanescopeError:
            continue
        if place[0] == "match":
            is_seen = any(matches(mutant, vector) != had for vector, had in zip(headers, met, strict=True))
        else:
            order = [first, *range(first), *range(first + 1, len(known))]
            seen = (at for at in order if read(mutant, known[at][0]) != known[at][1])
            at = next(seen, None)
            is_seen = at is not None
            first = first if at is None else at
        decoded = [0, *range(len(known) - 8, len(known))] if not is_seen and {place[0], place[-1]} & WHOLE else []
        for at in decoded:
            if at not in whole:
                whole[at] = rows(text_of(values), known[at][0], path)
            if rows(text_of(changed), known[at][0], path) != whole[at]:
                is_seen = True
                break
        if not is_seen:
            missed.append(what)
    assert count > 8
    assert not missed, "\n".join(missed)


#: What concerns how records become regions and times, and which bytes they are.
WHOLE = {"clock", "length_bits", "unit_bytes", "size"}


def read_names(declaration: Declaration) -> set[str]:
    """Names that any expression of a declaration reads."""
    return set(
        re.findall(
            r"[A-Za-z_]\w*", re.sub(r"fields = \{.*?\}\n", "", re.split(r"\[search\]|\[example\]", declaration.text)[0])
        )
    )


@pytest.mark.parametrize("name", catalog.shipped())
def test_what_a_user_need_not_give_is_what_the_producer_has(name):
    params = catalog.load(name).user_params
    assert {param.name: param.default for param in params if param.default is not None} == DEFAULTS.get(name, {})
