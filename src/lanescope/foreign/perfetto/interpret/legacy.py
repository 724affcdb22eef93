"""Events of the older form: async ones on rows of their own, threads by override, arrows by phases.

Source: google/perfetto, protos/perfetto/trace/track_event/track_event.proto (LegacyEvent), and the Chrome trace event
format, whose phases these are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.foreign.perfetto.formats.packets import Columns, Found

Int64 = npt.NDArray[np.int64]

_ASYNC = frozenset(map(ord, "beSFnTp"))
_FLOW = {ord("s"): 0, ord("t"): 0, ord("f"): 1}
_FLOW_IN, _FLOW_OUT, _ENCLOSING = 1, 2, 4
_LOCAL = 2


class AsyncKey(NamedTuple):
    """What tells rows of async events apart."""

    pid: int | None
    scope: str
    id: int


class ThreadKey(NamedTuple):
    """A thread by numbers."""

    pid: int | None
    tid: int


@dataclass(slots=True)
class LegacyEvents:
    """What the older events say beyond their type.

    Attributes:
        rows: for each further row, its key and the name of its first event.
        event, row: int64 [n], events that lie on further rows, and on which.
        complete, dur: int64 [m], events with a duration, and their durations in ns, -1: unknown.
        flow_event, flow_key, flow_role: events at the ends of arrows, int64 [k]; which arrow; 0 goes on, 1 ends.
        is_point: bool [k], whether the event is but an end of an arrow, which lies on a slice around it or after it.
        is_next: bool [k], whether that slice is the next one.
        bind: arrows from one start to many ends: (event, id, is start, is end).
    """

    rows: dict[AsyncKey | ThreadKey, int] = field(default_factory=dict)
    names: list[int] = field(default_factory=list)
    event: list[int] = field(default_factory=list)
    row: list[int] = field(default_factory=list)
    complete: list[int] = field(default_factory=list)
    dur: list[int] = field(default_factory=list)
    flow_event: list[int] = field(default_factory=list)
    flow_key: list[tuple[str, int, int]] = field(default_factory=list)
    flow_role: list[int] = field(default_factory=list)
    is_next: list[bool] = field(default_factory=list)
    bind: list[tuple[int, int, bool, bool]] = field(default_factory=list)


def read(legacy: Columns, events: Columns, file: Found, pids: Int64) -> LegacyEvents:
    """Return what the older events mean.

    Args:
        legacy: their columns.
        events: columns of all events.
        file: what the file has, for its texts.
        pids: int64 [events of ``legacy``], the process of each by its track, -1: unknown.
    """
    found = LegacyEvents()
    columns = ("event", "phase", "dur", "id", "id_kind", "scope", "bind_id", "flow", "pid", "tid")
    rows = zip(*(legacy[name].tolist() for name in columns), pids.tolist(), strict=True)
    for event, phase, dur, number, id_kind, scope, bind_id, flow, pid, tid, own_pid in rows:
        process = pid if pid >= 0 else own_pid if own_pid >= 0 else None
        category = int(events["category"][event])
        if phase == ord("X"):
            found.complete.append(event)
            found.dur.append(dur)
        if phase in _FLOW:
            name = int(events["name"][event])
            found.flow_event.append(event)
            found.flow_key.append((file.categories[category] if category >= 0 else "", name, number or bind_id))
            found.flow_role.append(_FLOW[phase])
            found.is_next.append(phase == ord("f") and not flow & _ENCLOSING)
        elif bind_id and flow & (_FLOW_IN | _FLOW_OUT):
            found.bind.append((event, bind_id, bool(flow & _FLOW_OUT), bool(flow & _FLOW_IN)))
        key: AsyncKey | ThreadKey | None = None
        if phase in _ASYNC and id_kind:
            named = file.categories[category] if category >= 0 else ""
            if scope >= 0:
                named = f"{named}:{file.texts[scope]}"
            key = AsyncKey(process if id_kind == _LOCAL else None, named, number)
        elif tid >= 0 or pid >= 0:
            key = ThreadKey(process, tid if tid >= 0 else process or 0)
        if key is not None:
            row = found.rows.setdefault(key, len(found.rows))
            if row == len(found.names):
                found.names.append(int(events["name"][event]))
            found.event.append(event)
            found.row.append(row)
    return found
