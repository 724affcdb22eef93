"""How much room the lanes of a probe buffer would have needed, and how many lanes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lanescope.trace import Trace


@dataclass(frozen=True, slots=True)
class Loss:
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

    def __add__(self, other: Loss) -> Loss:
        lost = None if self.lost is None or other.lost is None else self.lost + other.lost
        return Loss(
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
class Refusal:
    """Lanes that found no room in a buffer, of one launch or of several.

    Attributes:
        lanes: how many.
        blocks, groups: what the buffer has room for.
        wanted_blocks, wanted_groups: what would have held them; no more than the buffer's where nothing says.
    """

    lanes: int
    blocks: int
    groups: int
    wanted_blocks: int
    wanted_groups: int

    def __add__(self, other: Refusal) -> Refusal:
        return Refusal(
            self.lanes + other.lanes,
            self.blocks,
            self.groups,
            max(self.wanted_blocks, other.wanted_blocks),
            max(self.wanted_groups, other.wanted_groups),
        )

    def __str__(self) -> str:
        """Return it in words, with what to do."""
        found, room = [], []
        if self.wanted_blocks > self.blocks:
            found.append(f"the grid has {self.wanted_blocks} blocks and the buffer room for {self.blocks}")
            room.append(f"blocks={self.wanted_blocks}")
        if self.wanted_groups > self.groups:
            found.append(f"the kernel has {self.wanted_groups} groups and the buffer room for {self.groups}")
            room.append(f"groups={self.wanted_groups}")
        why = "; ".join(found) or "the kernel got a part of the buffer only"
        lanes = "1 lane" if self.lanes == 1 else f"{self.lanes:,} lanes"
        text = f"{why}: {lanes} left no record at all"
        return f"{text}; {', '.join(room)} would have held them" if room else text


def refusals(trace: Trace) -> dict[str, Refusal]:
    """Return the lanes that found no room in each launch of a trace, by the name of its capture.

    Args:
        trace: a trace of the CUDA family, of one launch or of several.
    """
    names = dict(zip(trace.inputs.values("id").tolist(), trace.inputs.values("capture").tolist(), strict=True))
    return {
        names[row["input_id"]]: Refusal(
            row["refused_lanes"],
            row["num_blocks"],
            row["num_groups"],
            row["wanted_blocks"] or row["num_blocks"],
            row["wanted_groups"] or row["num_groups"],
        )
        for row in trace.details["cuda_buffers"].rows()
        if row["refused_lanes"]
    }


def losses(trace: Trace) -> dict[str, Loss]:
    """Return what each launch of a trace lost, by the name of its capture; launches that lost nothing are not there.

    Args:
        trace: a trace of the CUDA family, of one launch or of several.
    """
    lanes = trace.details["cuda_lanes"]
    input_of = trace.tracks.values("input_id")[lanes.values("track_id")]
    lost = np.where(lanes.valid("lost"), lanes.values("lost"), 0)
    full = (lost > 0) | lanes.values("is_full").astype(bool)
    names = dict(zip(trace.inputs.values("id").tolist(), trace.inputs.values("capture").tolist(), strict=True))
    found = {}
    for number in sorted(set(input_of[full].tolist())):
        here = full & (input_of == number)
        if (lanes.valid("offered") & here).any():
            # A lane has room for a power of two.
            count, room = int(lost[here].sum()), 1 << max(0, int(lanes.values("offered")[here].max()) - 1).bit_length()
        else:
            count, room = None, 2 * int(lanes.values("capacity")[here].max())
        of_launch = int(np.count_nonzero(input_of == number))
        found[names[number]] = Loss(1, of_launch, int(np.count_nonzero(here)), count, room)
    return found


def advice(trace: Trace) -> list[str]:
    """Say of each launch that lost records how many, and what would have held them; [] if none did.

    A line for full lanes, and one for lanes that the buffer had no room for.
    """
    return [f"{name}: {loss}" for found in (losses(trace), refusals(trace)) for name, loss in found.items()]
