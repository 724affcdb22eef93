"""The tree of tracks: GPU, SM where it is known, block, and the lanes of its groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from lanescope.common.numbered_texts import NO_NUMBER, numbered
from lanescope.devices.cuda.formats.buffer import Grid
from lanescope.trace import Column, Dictionary, TraceBuilder
from lanescope.trace.column import Encoded

I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]

#: The columns of more lanes than this are computed where they are read, some lanes at a time; nothing is kept that they
#: are computed from.
_MANY = 1 << 16


class Tree:
    """Adds tracks to a trace: those of all lanes at once, others when they are needed.

    Args:
        builder: the trace.
        grid: the lanes.
        known: bool [lanes], lanes that have a track.
        clock_of: int64 [lanes], the clock of each lane.
        groups: names of groups by number.
        device: name of the GPU.
        input_id: the input.

    Attributes:
        lane: int64 [lanes], the track of each lane, -1 where nothing is known.
    """

    def __init__(
        self,
        builder: TraceBuilder,
        grid: Grid,
        known: npt.NDArray[np.bool_],
        clock_of: I64,
        groups: Mapping[int, str],
        device: str,
        input_id: int,
    ) -> None:
        self._builder, self._grid, self._clock_of, self._input = builder, grid, clock_of, input_id
        self._groups = groups
        self.lane = np.full(len(grid), -1, np.int64)
        self._parent = np.full(len(grid), -1, np.int32)
        self._further: dict[tuple[int, int], int] = {}
        root = builder.track(device, kind="group", role="device", input_id=input_id)
        lanes = np.flatnonzero(known)
        if grid.sm is not None:
            lanes = lanes[np.lexsort((grid.group[lanes], grid.block[lanes], _sm_of_blocks(grid, lanes)))]
        keeps, first = len(lanes) <= _MANY, root + 1
        for some in [lanes] if keeps else _pieces(grid, lanes):
            if len(some):
                first += self._grow(root, first, some, keeps=keeps)

    def _grow(self, root: int, first: int, lanes: I64, *, keeps: bool) -> int:
        """Add the tracks of lanes, in this order: a table of columns, as there may be a million of them.

        Args:
            root: the track of the GPU.
            first: the id of the first of them.
            lanes: int64, the lanes.
            keeps: keep what the columns are computed from.

        Returns:
            How many there are.
        """
        # What columns are computed from must not lead back to the builder, or all of a trace waits for the collector.
        grid, names_of, clock_of = self._grid, self._groups, self._clock_of
        at, block_at, _ = places = _positions(grid, lanes)
        count = int(at[-1]) + 1
        kept = lanes.astype(np.uint32)
        known = places if keeps else None
        del places

        def positions() -> tuple[I64, I64, I64]:
            return _positions(grid, kept) if known is None else known

        def parents() -> I64:
            at, block_at, sm_at = positions()
            parent = np.full(count, root, np.int64)
            number_of_sm = np.searchsorted(sm_at, block_at, side="right")
            parent[block_at] = np.where(number_of_sm > 0, first + np.append(root, sm_at)[number_of_sm], root)
            parent[at] = first + block_at[np.searchsorted(block_at, at, side="right") - 1]
            return parent

        def roles() -> npt.NDArray[np.int32]:
            _, block_at, sm_at = positions()
            role = np.zeros(count, np.int32)
            role[block_at], role[sm_at] = 1, 2
            return role

        def numbers() -> I64:
            at, block_at, sm_at = positions()
            found = np.empty(count, np.int64)
            begins = np.searchsorted(at, block_at)
            found[at], found[block_at] = grid.group[kept], grid.block[kept[begins]]
            if len(sm_at):
                found[sm_at] = _sm_of_blocks(grid, kept)[np.searchsorted(at, sm_at)]
            return found

        def names() -> npt.NDArray[np.object_]:
            role, number = roles(), numbers()
            found = np.empty(count, object)
            groups, of = np.unique(number[role == 0], return_inverse=True)
            found[role == 0] = np.array([_name(names_of, group) for group in groups.tolist()], object)[of]
            found[role == 1] = [f"block {block}" for block in number[role == 1].tolist()]
            found[role == 2] = [f"SM {sm}" for sm in number[role == 2].tolist()]
            return found

        def encoded_names() -> Encoded:
            role, number = roles(), numbers()
            groups, of = np.unique(number[role == 0], return_inverse=True)
            before = np.empty(count, np.int32)
            before[role == 0], before[role == 1], before[role == 2] = of, len(groups), len(groups) + 1
            number[role == 0] = NO_NUMBER
            return numbered([*(_name(names_of, group) for group in groups.tolist()), "block ", "SM "], before, number)

        def clocks() -> I64:
            clock = np.zeros(count, np.int64)
            clock[positions()[0]] = clock_of[kept]
            return clock

        def is_group() -> npt.NDArray[np.int32]:
            return (roles() > 0).astype(np.int32)

        name = Column.derived(count, names)
        name.encode = encoded_names
        added = self._builder.tracks(
            parent_id=Column.derived(count, parents),
            kind=Column.derived(count, is_group, dictionary=Dictionary(["lane", "group"])),
            role=Column.derived(count, roles, dictionary=Dictionary(["group", "block", "sm"])),
            name=name,
            sort_key=Column.derived(count, numbers),
            nesting=Column.derived(count, is_group, dictionary=Dictionary(["nested", "disjoint"])),
            clock_id=Column.derived(count, clocks, valid=lambda: roles() == 0),
            input_id=self._input,
        )
        assert added == first
        self.lane[lanes] = first + at
        self._parent[lanes] = first + block_at[np.searchsorted(block_at, at, side="right") - 1]
        return count

    def name(self, lane: int) -> str:
        """Return the name of a lane."""
        return _name(self._groups, int(self._grid.group[lane]))

    def asynchronous(self, lane: int) -> int:
        """Return the track of a lane's asynchronous regions, which may overlap."""
        if (lane, -1) not in self._further:
            self._further[lane, -1] = self._builder.track(
                f"{self.name(lane)} async",
                kind="lane",
                role="async",
                parent=int(self._parent[lane]),
                input_id=self._input,
                nesting="free",
                clock_id=int(self._clock_of[lane]),
                sort_key=int(self._grid.group[lane]),
            )
        return self._further[lane, -1]

    def counter(self, lane: int, event: int, name: str) -> int:
        """Return the track of a counter of a lane."""
        if (lane, event) not in self._further:
            self._further[lane, event] = self._builder.track(
                f"{self.name(lane)} {name}",
                kind="counter",
                role="counter",
                parent=int(self._parent[lane]),
                input_id=self._input,
                clock_id=int(self._clock_of[lane]),
                sort_key=self._grid.num_groups + event,
            )
        return self._further[lane, event]


def _name(groups: Mapping[int, str], group: int) -> str:
    return groups.get(group, f"group {group}")


def _pieces(grid: Grid, lanes: I64) -> Iterator[I64]:
    """Yield lanes in pieces of about ``_MANY``; those of an SM, or of a block without one, are in one piece."""
    block = grid.block[lanes]
    begins = np.diff(block, prepend=block[:1] - 1) != 0
    if grid.sm is not None:
        sm = _sm_of_blocks(grid, lanes)
        begins &= (sm < 0) | (np.diff(sm, prepend=-1) != 0)
    at = np.append(np.flatnonzero(begins), len(lanes))
    first = 0
    while first < len(lanes):
        last = int(at[min(int(np.searchsorted(at, first + _MANY)), len(at) - 1)])
        yield lanes[first:last]
        first = last


def _positions(grid: Grid, lanes: I64 | U32) -> tuple[I64, I64, I64]:
    """Return the positions of lanes among their tracks, and those of their blocks and SMs: a parent comes first."""
    block = grid.block[lanes]
    begins_block = np.diff(block, prepend=block[:1] - 1) != 0
    sm = np.full(len(lanes), -1, np.int64) if grid.sm is None else _sm_of_blocks(grid, lanes)
    # Blocks come by SM, those without one first.
    begins_sm = begins_block & (sm >= 0) & (np.diff(sm, prepend=-1) != 0)
    at = np.cumsum(1 + begins_block + begins_sm) - 1
    return at, at[begins_block] - 1, at[begins_sm] - 2


def _sm_of_blocks(grid: Grid, lanes: I64 | U32) -> I64:
    """Return the SM of each lane's block: that of its first lane that names one."""
    assert grid.sm is not None
    sm = grid.sm[lanes]
    blocks, row = np.unique(grid.block[lanes], return_inverse=True)
    found = np.full(len(blocks), -1, np.int64)
    named = np.flatnonzero(sm >= 0)[::-1]  # of values for one place, the last one stays
    found[row[named]] = sm[named]
    return found[row]
