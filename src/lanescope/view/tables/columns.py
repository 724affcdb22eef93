"""Columns of tables that are shown: what their values are, and which of them matter least."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lanescope.declaration import frozen_class

if TYPE_CHECKING:
    from lanescope.trace import ColumnSpec

#: What values can be. ``text`` is shortened where room is short, the others never are; ``id`` is a number without
#: separators, ``plain`` a short word or a text that is never shortened, ``bar`` a share that is drawn.
KINDS = ("duration", "cycles", "count", "bytes", "percent", "ratio", "offset", "text", "id", "plain", "bar")
#: Units of times.
_TIMES = ("ns", "cycles", "ticks")
#: Columns of this priority are hidden before those of a smaller one; 0: only if nothing else helps.
USUAL = 5
#: Priorities by name: what is asked for is seen in a narrow window, how it spreads in a wide one.
_PRIORITIES = {
    "name": 0, "count": 1, "total": 1, "dur": 1, "busy": 2, "share": 2, "self": 2, "max": 3, "median": 3, "p50": 3,
    "average": 3, "mean": 3, "min": 6, "p99": 7, "p90": 7, "unfinished": 8, "slowest_instance": 6, "slack_min": 8,
    "severity": 1, "code": 1, "location": 1, "title": 2, "affected_fraction": 8, "is_balanced": 8, "input_id": 7,
    "layer": 8, "first_ts": 8, "first_offset": 6, "meaning": 3, "remark": 3, "state": 1, "quality": 7, "detail": 4,
    "ended_by_track": 6, "latency": 6,
}  # fmt: skip
#: Whole numbers that are names: no separators.
_NUMBERED = ("id", "process", "thread", "pid", "tid", "rank", "most_rank", "least_rank", "col", "row", "line", "core")
#: Words that end the names of moments: they are exact, as one of three digits could be any of many.
_MOMENTS = ("ts", "begin", "end")


@frozen_class
class Col:
    """One column of a table that is shown.

    Attributes:
        key: its name for machines, without the unit.
        header: what is above it; by default the key.
        kind: one of ``KINDS``; empty: by its values.
        unit: of durations ``ns``, ``cycles`` or ``ticks``; of others what the header adds in brackets.
        priority: columns with a larger one are hidden first, and of equal ones the last.
        align: ``left`` or ``right``; by default texts are to the left.
    """

    key: str
    header: str = ""
    kind: str = ""
    unit: str = ""
    priority: int = USUAL
    align: str = ""

    @property
    def title(self) -> str:
        """What is above it, without the unit."""
        return self.header or self.key

    @property
    def is_right(self) -> bool:
        """Whether its cells are to the right."""
        return self.align == "right" or (not self.align and self.kind not in ("text", "plain", "bar", ""))

    @property
    def csv_name(self) -> str:
        """Its name in files for machines: with the unit, ``total_ns``."""
        unit = self.unit or ("bytes" if self.kind == "bytes" else "")
        return f"{self.key}_{unit}" if unit and unit != "1" and not self.key.endswith(f"_{unit}") else self.key


def column(name: str, kind: str = "", unit: str = "", *, header: str = "") -> Col:
    """Return a column with the priority that its name has everywhere."""
    return Col(name, header, kind, unit, _PRIORITIES.get(header or name, USUAL))


def declared(spec: ColumnSpec) -> Col:
    """Return how a column of a table of a trace, or of an analysis, is shown.

    Names that end in a unit, as in ``total_ns``, have it in the cells instead.
    """
    name, unit = spec.name, spec.unit if spec.unit != "1" else ""
    header = name.removesuffix(f"_{unit}") if unit else name
    if spec.type in ("text", "utf8"):
        kind = "text"
    elif spec.type == "bool":
        kind = "plain"
    elif spec.references or is_id(name):
        kind = "id"
    elif is_share(name):
        kind = "percent"
    elif spec.is_time or (unit and header.split("_")[-1] in _MOMENTS):
        kind = "count"
    elif unit in _TIMES:
        kind = "duration" if unit == "ns" else "cycles"
    elif name.endswith("offset"):
        kind, unit = "offset", ""
    elif unit == "bytes" and spec.type != "float64":
        kind = "bytes"
    else:
        kind = "ratio" if spec.type == "float64" else "count"
    return column(name, kind, unit, header=header if header != name else "")


def is_share(name: str) -> bool:
    """Return whether values of this name are parts of a whole."""
    return name.endswith(("share", "fraction", "hit_rate")) or name.startswith("of_")


def is_id(name: str) -> bool:
    """Return whether whole numbers of this name tell things apart, and are not counts."""
    return name in _NUMBERED or name.endswith("_id")


def columns_of(names: Iterable[str | Col | ColumnSpec]) -> list[Col]:
    """Return columns, of which some are names or declarations of a trace's tables."""
    return [
        each if isinstance(each, Col) else column(each) if isinstance(each, str) else declared(each) for each in names
    ]


def settled(columns: Sequence[Col], rows: Sequence[Sequence[object]]) -> list[Col]:
    """Return the columns with a kind each: where none is declared, that of the values.

    Args:
        columns: the columns.
        rows: the rows that tell, [rows][columns].
    """
    found = []
    for at, each in enumerate(columns):
        if each.kind:
            found.append(each)
            continue
        values = [row[at] for row in rows if row[at] is not None]
        types = {type(value.item() if hasattr(value, "item") else value) for value in values}
        kind = "text"
        if types and types <= {int, float}:
            offset = each.key.endswith("offset")
            kind = "ratio" if float in types else "offset" if offset else "id" if is_id(each.key) else "count"
            kind = "percent" if is_share(each.key) else kind
        elif types == {bool}:
            kind = "plain"
        found.append(Col(each.key, each.header, kind, each.unit, each.priority, each.align))
    return found
