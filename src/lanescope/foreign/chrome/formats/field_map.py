"""Where the fields of a file lie, and which other values they could hold.

The format checks nothing by itself: events are not counted, come in no order, and mean what their writer says. So a
change is seen where it leaves the format, or breaks a pair or a nesting. Else it is what some writer may write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lanescope.common.trace_event_sites import Cell, event_sites
from lanescope.families.field_sites import CUT, FieldMap, Possible, PossibleChange, Value, each, never

_TIMES = frozenset({"ts", "dur"})
_TEXTS = frozenset({"name", "cat", "ph", "s", "id", "bp"})
_MOST = 1 << 64
#: Why another value is possible: what the format lacks to see it.
_TIME = "another time that keeps the nesting of its lane and its pairs: the format has each time once"
_ARGUMENT = "an argument: the format does not define what it means, and has it once"
_PLACE = "another process or thread: events name their lane once, and lanes need no declaration"
_TEXT = "another name or category: events have it once, and the format has no list of them"


def field_map(files: Mapping[str, bytes]) -> FieldMap:
    """Return the sites of a file, the first of ``files``."""
    return event_sites(files, _kind, _possible, _possible_change)


def _kind(event: Mapping[str, Any]) -> str:
    return str(event.get("ph", ""))


def _possible(record: str, name: str, cells: Sequence[Cell], events: Sequence[Mapping[str, Any]]) -> Possible:
    if name in _TIMES:
        return each(lambda _, value: _TIME if _is_number(value) else "")
    if record == "file" or name.startswith("args"):
        return each(lambda _, value: _ARGUMENT if _is_sound(value) else "")
    if name in ("pid", "tid"):
        return each(lambda _, value: _PLACE if _is_number(value) else "")
    if name in _TEXTS:
        return each(lambda _, value: _TEXT if _is_sound(value) else "")
    return never


def _possible_change(kind: str, numbers: Sequence[int], events: Sequence[Mapping[str, Any]]) -> PossibleChange:
    return lambda change, _: "" if change == CUT else "events are not counted, have no number, and come in any order"


def _is_number(value: Value) -> bool:
    return isinstance(value, int) and abs(value) < _MOST


def _is_sound(value: Value) -> bool:
    return _is_number(value) or (isinstance(value, bytes) and b"\\" not in value)
