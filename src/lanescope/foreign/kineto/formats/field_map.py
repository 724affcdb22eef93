"""Where the fields of a file lie, and which other values a healthy run could have written.

Rows are not counted, and stand in no order. What ties them together is compared when a file is checked: correlations,
the order of calls and their work, the streams of rows, nesting, sizes with durations and rates, launch configurations
with the device, groups with their sizes. What is left is free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lanescope.common.trace_event_sites import Cell, event_sites
from lanescope.families.field_sites import CUT, FieldMap, Possible, PossibleChange, Value, each

_MOST = 1 << 64
_TIMES = frozenset({"ts", "dur"})
_PLACES = frozenset({"pid", "tid"})
#: Ties between rows that others may have as well.
_TIES = frozenset(
    {"args.correlation", "args.External id", "args.Ev Idx", "args.Python id", "args.Python parent id", "id"}
)
_TIME = "another time that keeps rows of a lane apart or nested, and calls before their work"


def field_map(files: Mapping[str, bytes]) -> FieldMap:
    """Return the sites of a file, the first of ``files``."""
    return event_sites(files, _kind, _possible, _possible_change)


def _kind(event: Mapping[str, Any]) -> str:
    """Return the category of a row; of other events their phase, with the category if they have one."""
    phase, category = str(event.get("ph", "")), str(event.get("cat", ""))
    return category if phase == "X" else f"{phase} {category}".strip()


def _possible(record: str, name: str, cells: Sequence[Cell], events: Sequence[Mapping[str, Any]]) -> Possible:
    reason = "a number or name that nothing else tells"
    if record == "file":
        reason = "a property of the run or its device that nothing else tells"
    elif name in _TIMES:
        return each(lambda _, value: _TIME if isinstance(value, int) and abs(value) < _MOST else "")
    elif name in _PLACES:
        reason = "another process, thread or stream that may have such a row"
    elif name in _TIES:
        reason = "another tie that the rows of the file allow"
    elif name == "name":
        reason = "another name"
    elif name in ("ph", "cat", "s", "bp"):
        reason = "another kind of event that may have these members"
    return each(lambda _, value: reason if _is_sound(value) else "")


def _possible_change(kind: str, numbers: Sequence[int], events: Sequence[Mapping[str, Any]]) -> PossibleChange:
    return lambda change, _: "" if change == CUT else "rows are not counted, and come in any order"


def _is_sound(value: Value) -> bool:
    return (isinstance(value, int) and abs(value) < _MOST) or (isinstance(value, bytes) and b"\\" not in value)
