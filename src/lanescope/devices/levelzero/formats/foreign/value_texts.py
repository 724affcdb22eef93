"""Values of fields as THAPI's text has them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lanescope.devices.levelzero.formats.foreign import structures
from lanescope.wire import tsdl


def is_word(label: str) -> bool:
    """Return whether a label can be told from a number, a text and a list."""
    return label.replace("_", "a").isalnum()


def written(event: str, name: str, column: tsdl.Columns) -> list[str | None]:
    """Return a field of each event as ``name: value``; None where it is missing."""
    kind = column.leaf.kind
    members = structures.members_of(event, name)
    if members is not None and isinstance(kind, tsdl.Array):
        return [
            f"{name}: {structures.text(members, column.data[at // 8 : at // 8 + n - 1].tobytes())}" if n else None
            for at, n in zip(column.values.tolist(), column.extents.tolist(), strict=True)
        ]
    labels: Mapping[int, str] = {}
    if isinstance(kind, tsdl.Integer) and kind.labels:
        labels = {first: label for label, first, last in reversed(kind.labels) if first == last}
    return [None if value is None else f"{name}: {value_text(value, labels)}" for value in column.python()]


def value_text(value: Any, labels: Mapping[int, str] | None = None) -> str:
    """Return a value as records have it: a number, a name, a text in quotes, or a list of them."""
    if isinstance(value, bytes):
        return structures.quoted(value)
    if isinstance(value, list):
        return "[ " + ", ".join(value_text(item) for item in value) + " ]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name}: {value_text(item)}" for name, item in value.items()) + " }"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if labels and value in labels and is_word(labels[value]):
        return labels[value]
    return str(value)
