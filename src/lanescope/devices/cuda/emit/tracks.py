"""The tree of tracks: GPU, SM where it is known, block, and the lanes of its groups."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from lanescope.devices.cuda.formats.buffer import Grid
from lanescope.trace import TraceBuilder

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
        self._parent: dict[int, int] = {}
        self._further: dict[tuple[int, int], int] = {}
        root = builder.track(device, kind="group", role="device", input_id=input_id)
        lanes = np.flatnonzero(known)
        if grid.sm is not None:
            lanes = lanes[np.lexsort((grid.group[lanes], grid.block[lanes], self._sm_of_blocks(lanes)))]
        # One row a track, made without a call for each: there may be a million lanes.
        rows: list[tuple[int | None, str, str, str, int, str, int | None]] = []
        names: dict[int, str] = {}
        sms: dict[int, int] = {}
        block, parent, track = -1, root, root
        of_lanes = (column[lanes].tolist() for column in (grid.block, grid.group, clock_of))
        for lane, at, group, clock in zip(lanes.tolist(), *of_lanes, strict=True):
            if at != block:
                block, parent = at, root
                sm = -1 if grid.sm is None else self._block_sm[block]
                if sm >= 0:
                    if sm not in sms:
                        sms[sm] = track = track + 1
                        rows.append((root, "group", "sm", f"SM {sm}", sm, "disjoint", None))
                    parent = sms[sm]
                rows.append((parent, "group", "block", f"block {block}", block, "disjoint", None))
                parent = track = track + 1
            if group not in names:
                names[group] = self._name(group)
            rows.append((parent, "lane", "group", names[group], group, "nested", clock))
            track += 1
            self._parent[lane] = parent
            self.lane[lane] = track
        first = builder.tracks(rows, input_id=input_id)
        assert first == root + 1

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
                parent=self._parent[lane],
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
                parent=self._parent[lane],
                input_id=self._input,
                clock_id=int(self._clock_of[lane]),
                sort_key=self._grid.num_groups + event,
            )
        return self._further[lane, event]
