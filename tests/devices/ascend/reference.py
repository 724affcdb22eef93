"""The slow, obvious reader: Python's own JSON, and the rules of the layouts spelled out. Knows nothing of columns."""

from __future__ import annotations

import json
import re

MISSING = object()
DIGITS = re.compile(r"-?(0|[1-9][0-9]*)\Z")


def elements(items, layout):
    """Return ([(group, {cell: value})], number of elements that are not of the layout) of a parsed list."""
    if layout.depth == 1:
        grouped = [(0, item) for item in items]
    else:
        grouped = [
            (group, item) for group, inner in enumerate(items) for item in (inner if type(inner) is list else [MISSING])
        ]
    good = [(group, element(item, layout)) for group, item in grouped]
    return [row for row in good if row[1] is not None], sum(row[1] is None for row in good)


def element(item, layout):
    """Return the values of an element, or None if it is not of the layout."""
    if layout.is_object:
        if type(item) is not dict:
            return None
        given = {cell.name: item[cell.name] for cell in layout.cells if item.get(cell.name) is not None}
    else:
        if type(item) is not list or len(item) > len(layout.cells):
            return None
        given = dict(zip((cell.name for cell in layout.cells), item, strict=False))
    values = {}
    for cell in layout.cells:
        if cell.name not in given:
            if cell.is_required:
                return None
            continue
        value = given[cell.name]
        if cell.count > 1:
            if type(value) is not list or len(value) != cell.count:
                return None
            value = [number(cell, one) for one in value]
            if MISSING in value:
                return None
        else:
            value = number(cell, value)
            if value is MISSING:
                return None
        values[cell.name] = value
    return values


def unknown_keys(items, layout):
    """Return how many values of the elements that are of the layout have a key that the layout does not know."""
    inner = items if layout.depth == 1 else [item for part in items if type(part) is list for item in part]
    known = {*(cell.name for cell in layout.cells), *layout.unused}
    return sum(len(item.keys() - known) for item in inner if element(item, layout) is not None and layout.is_object)


def number(cell, value):
    """Return what a cell's value means, MISSING if it is not of its kind."""
    kind = type(value)
    if cell.kind == "token":
        if kind is str and DIGITS.match(value):
            value, kind = int(value), int
        return value % 2**64 if kind is int and -(2**63) <= value < 2**64 else MISSING
    if cell.kind == "boolean":
        return value if kind is bool else MISSING
    if cell.kind == "text":
        return value if kind is str else MISSING
    if cell.kind == "words":
        if kind is not list or any(type(word) is not str for word in value):
            return MISSING
        places = {cell.words.index(word) if word in cell.words else len(cell.words) for word in value}
        return sum(1 << place for place in places)
    low = 0 if cell.kind == "number" else -cell.limit
    return value if kind is int and low <= value <= cell.limit else MISSING


def is_json_object(content):
    """Tell whether bytes are one JSON object by the strict rules: no NaN, nothing behind it."""

    def refuse(name):
        raise ValueError(name)

    try:
        return type(json.loads(content.decode("latin-1"), parse_constant=refuse)) is dict
    except (ValueError, RecursionError):
        return False
