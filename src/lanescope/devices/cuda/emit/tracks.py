"""The tree of tracks: GPU, SM where it is known, block, and the lanes of its groups."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.devices.cuda.formats.buffer import Grid
from lanescope.trace import Column, Dictionary, TraceBuilder

I64 = npt.NDArray[np.int64]


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
        self._parent = np.full(len(grid), -1, np.int64)
        self._further: dict[tuple[int, int], int] = {}
        root = builder.track(device, kind="group", role="device", input_id=input_id)
        lanes = np.flatnonzero(known)
        if grid.sm is not None:
            lanes = lanes[np.lexsort((grid.group[lanes], grid.block[lanes], self._sm_of_blocks(lanes)))]
        if len(lanes):
            self._grow(root, lanes)

    def _grow(self, root: int, lanes: I64) -> None:
        """Add the tracks of lanes, in this order: a table of columns, as there may be a million of them."""
        grid = self._grid
        block, group = grid.block[lanes], grid.group[lanes]
        begins_block = np.diff(block, prepend=block[:1] - 1) != 0
        sm = np.full(len(lanes), -1, np.int64) if grid.sm is None else self._sm_of_blocks(lanes)
        # Blocks come by SM, those without one first.
        begins_sm = begins_block & (sm >= 0) & (np.diff(sm, prepend=-1) != 0)
        at = np.cumsum(1 + begins_block + begins_sm) - 1  # of each lane among the new tracks
        block_at, sm_at = at[begins_block] - 1, at[begins_sm] - 2
        count = int(at[-1]) + 1
        role = np.zeros(count, np.int32)
        role[block_at], role[sm_at] = 1, 2
        sort_key, clock, parent = np.empty(count, np.int64), np.zeros(count, np.int64), np.full(count, root, np.int64)
        name = np.empty(count, object)
        sort_key[at], sort_key[block_at], sort_key[sm_at] = group, block[begins_block], sm[begins_sm]
        clock[at] = self._clock_of[lanes]
        first = root + 1
        number_of_sm = np.cumsum(begins_sm)[begins_block]
        parent[block_at] = np.where(number_of_sm > 0, first + np.append(root, sm_at)[number_of_sm], root)
        parent[at] = first + block_at[np.cumsum(begins_block) - 1]
        numbers = distinct(group)
        names = np.array([self._name(number) for number in numbers.tolist()], object)
        name[at] = names[np.searchsorted(numbers, group)]
        name[block_at] = [f"block {number}" for number in block[begins_block].tolist()]
        name[sm_at] = [f"SM {number}" for number in sm[begins_sm].tolist()]
        is_group = (role > 0).astype(np.int32)
        added = self._builder.tracks(
            parent_id=parent,
            kind=Column.array(is_group, dictionary=Dictionary(["lane", "group"])),
            role=Column.array(role, dictionary=Dictionary(["group", "block", "sm"])),
            name=name,
            sort_key=sort_key,
            nesting=Column.array(is_group, dictionary=Dictionary(["nested", "disjoint"])),
            clock_id=Column.array(clock, valid=is_group == 0),
            input_id=self._input,
        )
        assert added == first
        self._parent[lanes], self.lane[lanes] = parent[at], first + at

    def _sm_of_blocks(self, lanes: I64) -> I64:
        """Return the SM of each lane's block: that of its first lane that names one."""
        assert self._grid.sm is not None
        self._block_sm: dict[int, int] = {}
        for block, sm in zip(self._grid.block[lanes].tolist(), self._grid.sm[lanes].tolist(), strict=True):
            if self._block_sm.get(block, -1) < 0:
                self._block_sm[block] = sm
        return np.array([self._block_sm[block] for block in self._grid.block[lanes].tolist()], np.int64)

    def name(self, lane: int) -> str:
        """Return the name of a lane."""
        return self._name(int(self._grid.group[lane]))

    def _name(self, group: int) -> str:
        return self._groups.get(group, f"group {group}")

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
