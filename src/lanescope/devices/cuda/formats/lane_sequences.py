"""Records of lanes, and what else a sound lane could have held: regions that open and close, in order of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lanescope.devices.cuda.formats import layout
from lanescope.devices.cuda.formats.layout import BEGIN, END, FINALIZE, INSTANT
from lanescope.families.field_sites import CUT, DROPPED, DUPLICATED, Possible, Value

CHOSEN = "a value of the program"
_SOUND = "a sound sequence of regions, at times that its lane and the launch allow"
#: Kind of a counter in rows, which have a ``FINALIZE``.
COUNTER = layout.COUNTER + 1


class Row(NamedTuple):
    """A record: the bit of its word in the file, what it says, and where it stands among those of its lane."""

    at: int
    kind: int
    event: int
    time: int
    lane: int
    other: int = 0


class Lanes:
    """The records of all lanes, and what a sound lane could have held instead."""

    def __init__(
        self,
        rows: Sequence[Row],
        bits: int,
        *,
        ends: bool,
        is_shared: bool = True,
        bounds: Mapping[int, tuple[int, int]] = {},
    ) -> None:
        self.rows = list(rows)
        self._is_shared, self._bounds = is_shared, bounds
        self.ends, self._half = ends, 1 << (bits - 1)
        self._mask = (1 << bits) - 1
        self.of: dict[int, list[int]] = {}
        for index, row in enumerate(self.rows):
            self.of.setdefault(row.lane, []).append(index)
        anchor = self.rows[0].time if self.rows else 0
        passed = [self._after(anchor, row.time) for row in self.rows]
        self._anchor, self._window = anchor, (min(passed, default=0), max(passed, default=0))

    def _after(self, first: int, then: int) -> int:
        """Return how much later a stamp is than another one, less than half its wrap period either way."""
        return (then - first + self._half & self._mask) - self._half

    def _window_of(self, before: Sequence[Row]) -> tuple[int, int]:
        """Return when records of a lane may stand: in the launch, or where clocks are the SMs' in the lane's own time.

        Readings of the clock at both ends of a lane are closer bounds.
        """
        low, high = self._window
        if not self._is_shared and before:
            passed = [self._after(self._anchor, row.time) for row in before]
            low, high = passed[0], passed[-1]
        if before and before[0].lane in self._bounds:
            low, high = (self._after(self._anchor, bound) for bound in self._bounds[before[0].lane])
        return low, high

    def reason(self, name: str, values: Mapping[int, Value]) -> str:
        """Return why records of one lane could say something else as well."""
        lane = self.of[self.rows[next(iter(values))].lane]
        before = [self.rows[place] for place in lane]
        new: Any = {at: {name: value} for at, value in values.items()}
        rows = [self.rows[at]._replace(**new.get(at, {})) for at in lane]
        found = self.sound(rows, before)
        if found and name == "event" and all(self.rows[place].kind in (INSTANT, COUNTER) for place in values):
            return "the number of a mark or counter, which the program chooses"
        return found

    def sound(self, rows: Sequence[Row], before: Sequence[Row]) -> str:
        """Return why a lane could have held these records; empty: it could not."""
        low, high = self._window_of(before)
        passed = [self._after(self._anchor, row.time) for row in rows]
        if self.ends and rows and rows[-1].kind == FINALIZE:
            high = max(high, passed[-1])  # the program may end its lane at any later time
        if not all(first <= then for first, then in zip([low, *passed], [*passed, high], strict=True)):
            return ""
        stack: list[Row] = []
        for place, row in enumerate(rows):
            if row.kind == BEGIN:
                stack.append(row)
            elif row.kind == END:
                if not _closes(stack, row, rows[place + 1 :]):
                    return ""
            elif row.kind == FINALIZE and self.ends and (place != len(rows) - 1 or row.event):
                return ""
        return _SOUND if not stack and _joined(rows) == _joined(before) else ""

    def possible(self, name: str) -> Possible:
        """Return which values of a field are possible."""
        return lambda values: self.reason(name, values)

    def turned(self, values: Mapping[int, Value]) -> str:
        """Return why begins and ends of a lane could stand the other way round."""
        if not all(self.rows[at].kind in (BEGIN, END) for at in values):
            return ""
        return self.reason("kind", {at: END if value else BEGIN for at, value in values.items()})

    def valued(self, values: Mapping[int, Value]) -> str:
        """Return why a mark of Proton could be a value of the record in front of it instead."""
        rows = [(self.rows[at], self.of[self.rows[at].lane][0] != at) for at in values]
        marks = all(row.kind == INSTANT and follows for row, follows in rows)
        marks &= set(values.values()) <= {layout.MARK, layout.METRIC}
        return CHOSEN if marks else ""

    def change(self, change: str, index: int) -> str:
        """Return why the records of a lane could have been these: slots are left empty at the end only."""
        lane = self.of[self.rows[index].lane]
        place = lane.index(index)
        rows = [self.rows[each] for each in lane]
        if change == CUT or (change == DROPPED and place != len(rows) - 1):
            return ""
        made = list(rows)
        if change == DROPPED:
            made.pop()
        elif place + 1 == len(rows):
            return ""
        elif change == DUPLICATED:
            made[place + 1] = rows[place]
        else:
            made[place : place + 2] = rows[place + 1], rows[place]
        return self.sound(made, rows)


def _joined(rows: Sequence[Row]) -> list[Row]:
    """Return what rows say that another one repeats; the program may choose the rest."""
    return [row._replace(time=0, at=0) for row in rows if row.kind > INSTANT and row.kind != COUNTER]


def _closes(stack: list[Row], end: Row, later: Sequence[Row]) -> bool:
    """Close the innermost region of an event; those inside may be open only if they overlap it for no time."""
    at = next((at for at in reversed(range(len(stack))) if stack[at].event == end.event), None)
    if at is None:
        return False
    begin = stack.pop(at)
    tied = {row.event for row in later if row.kind == END and row.time == end.time}
    return all(row.time in (begin.time, end.time) or row.event in tied for row in stack[at:])
