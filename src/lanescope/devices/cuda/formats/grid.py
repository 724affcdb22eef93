"""The lanes of a buffer, whatever its layout: whose they are, where they ran, what had room in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]

#: In columns of ``Grid``: not known of this lane.
UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Grid:
    """What is known of each lane besides its records; None: the layout does not say.

    Attributes:
        num_blocks: from the header.
        num_groups: from the header.
        block: int64 [lanes].
        group: int64 [lanes].
        sm: int64 [lanes], ``UNKNOWN`` where a lane has none.
        warp: int64 [lanes].
        cluster_rank: int64 [lanes].
        grid_id: uint64 [lanes].
        capacity: int64 [lanes], records that have room.
        offered: int64 [lanes], records that the kernel wanted to store.
        lost: int64 [lanes], those of them that had no room.
        torn: int64 [lanes], positions that hold half of what a ring has overwritten.
        counted: bool [lanes], where ``offered`` and ``lost`` are exact; elsewhere they are the least that it was.
        refused: lanes that the kernel began and that found no room in the buffer.
    """

    num_blocks: int
    num_groups: int
    block: I64
    group: I64
    sm: I64 | None = None
    warp: I64 | None = None
    cluster_rank: I64 | None = None
    grid_id: npt.NDArray[np.uint64] | None = None
    capacity: I64 | None = None
    offered: I64 | None = None
    lost: I64 | None = None
    torn: I64 | None = None
    counted: npt.NDArray[np.bool_] | None = None
    refused: int | None = None

    def __len__(self) -> int:
        return len(self.block)

    @classmethod
    def dense(cls, num_blocks: int, num_groups: int, **known: I64 | None) -> Grid:
        """Return the grid whose lane is ``block * num_groups + group``."""
        lane = np.arange(num_blocks * num_groups, dtype=np.int64)
        return cls(num_blocks, num_groups, lane // num_groups, lane % num_groups, **known)  # type: ignore[arg-type]
