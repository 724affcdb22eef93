"""How much room the lanes of a probe buffer would have needed, and how many lanes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lanescope.trace import Trace


@dataclass(frozen=True, slots=True)
class Dropped:
    """What one launch or several lost for want of room.

    Attributes:
        launches: launches that lost something.
        lanes: their lanes.
        full: lanes that were full.
        lost: records that had no room; None: not counted.
        room: ``records_per_lane`` that would have held them, or is worth a try where nothing was counted.
    """

    launches: int
    lanes: int
    full: int
    lost: int | None
    room: int

    def __add__(self, other: Dropped) -> Dropped:
        lost = None if self.lost is None or other.lost is None else self.lost + other.lost
        return Dropped(
            self.launches + other.launches,
            self.lanes + other.lanes,
            self.full + other.full,
            lost,
            max(self.room, other.room),
        )

    def __str__(self) -> str:
        """Return it in words, with what to do."""
        text = f"{self.full} of {self.lanes} lanes were full"
        if self.launches > 1:
            text += f" in {self.launches} launches"
        if self.lost is None:
            return f"{text}, what was lost was not counted; try records_per_lane={self.room}"
        return f"{text}, {self.lost:,} records were lost; records_per_lane={self.room} would have held them"


@dataclass(frozen=True, slots=True)
class Unallocated:
    """Lanes that found no room in a buffer, of one launch or of several.

    Attributes:
        lanes: how many.
        blocks, groups: what the buffer has room for.
        required_blocks, required_groups: what would have held them; no more than the buffer's where nothing says.
    """

    lanes: int
    blocks: int
    groups: int
    required_blocks: int
    required_groups: int

    def __add__(self, other: Unallocated) -> Unallocated:
        return Unallocated(
            self.lanes + other.lanes,
            self.blocks,
            self.groups,
            max(self.required_blocks, other.required_blocks),
            max(self.required_groups, other.required_groups),
        )

    def __str__(self) -> str:
        """Return it in words, with what to do."""
        found, room = [], []
        if self.required_blocks > self.blocks:
            found.append(f"the grid has {self.required_blocks} blocks and the buffer room for {self.blocks}")
            room.append(f"blocks={self.required_blocks}")
        if self.required_groups > self.groups:
            found.append(f"the kernel has {self.required_groups} groups and the buffer room for {self.groups}")
            room.append(f"groups={self.required_groups}")
        why = "; ".join(found) or "the kernel got a part of the buffer only"
        lanes = "1 lane" if self.lanes == 1 else f"{self.lanes:,} lanes"
        text = f"{why}: {lanes} left no record at all"
        return f"{text}; {', '.join(room)} would have held them" if room else text


def unallocated(trace: Trace) -> dict[str, Unallocated]:
    """Return the lanes that found no room in each launch of a trace, by the name of its capture.

    Args:
        trace: a trace of the CUDA family, of one launch or of several.
    """
    names = dict(zip(trace.inputs.values("id").tolist(), trace.inputs.values("capture").tolist(), strict=True))
    return {
        names[row["input_id"]]: Unallocated(
            row["unallocated_lanes"],
            row["num_blocks"],
            row["num_groups"],
            row["required_blocks"] or row["num_blocks"],
            row["required_groups"] or row["num_groups"],
        )
        for row in trace.details["cuda_buffers"].rows()
        if row["unallocated_lanes"]
    }


def dropped(trace: Trace) -> dict[str, Dropped]:
    """Return what each launch of a trace lost, by the name of its capture; launches that lost nothing are not there.

    Args:
        trace: a trace of the CUDA family, of one launch or of several.
    """
    lanes = trace.details["cuda_lanes"]
    input_of = trace.tracks.values("input_id")[lanes.values("track_id")]
    lost = np.where(lanes.valid("dropped"), lanes.values("dropped"), 0)
    full = (lost > 0) | lanes.values("is_full").astype(bool)
    names = dict(zip(trace.inputs.values("id").tolist(), trace.inputs.values("capture").tolist(), strict=True))
    found = {}
    for number in sorted(set(input_of[full].tolist())):
        here = full & (input_of == number)
        if (lanes.valid("attempted") & here).any():
            # A lane has room for a power of two.
            count, room = (
                int(lost[here].sum()),
                1 << max(0, int(lanes.values("attempted")[here].max()) - 1).bit_length(),
            )
        else:
            count, room = None, 2 * int(lanes.values("capacity")[here].max())
        of_launch = int(np.count_nonzero(input_of == number))
        found[names[number]] = Dropped(1, of_launch, int(np.count_nonzero(here)), count, room)
    return found


def advice(trace: Trace) -> list[str]:
    """Say of each launch that lost records how many, and what would have held them; [] if none did.

    A line for full lanes, and one for lanes that the buffer had no room for.
    """
    return [f"{name}: {loss}" for found in (dropped(trace), unallocated(trace)) for name, loss in found.items()]
