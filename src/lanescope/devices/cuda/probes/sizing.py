"""Required size of a probe buffer: records per lane, and lanes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lanescope.trace import Trace


@dataclass(frozen=True, slots=True)
class Dropped:
    """Records dropped by one or several launches because lanes overflowed.

    Attributes:
        launches: launches with dropped records.
        lanes: their lanes.
        full: lanes that overflowed.
        lost: dropped records; None: not counted.
        at_least: dropped records at least: ``lost`` if they were counted.
        room: ``records_per_lane`` that holds them, or the next to try if they were not counted.
    """

    launches: int
    lanes: int
    full: int
    lost: int | None
    at_least: int
    room: int

    def __add__(self, other: Dropped) -> Dropped:
        lost = None if self.lost is None or other.lost is None else self.lost + other.lost
        return Dropped(
            self.launches + other.launches,
            self.lanes + other.lanes,
            self.full + other.full,
            lost,
            self.at_least + other.at_least,
            max(self.room, other.room),
        )

    def __str__(self) -> str:
        """Return the counts and the remedy as text."""
        text = f"{self.full} of {self.lanes} lanes overflowed"
        if self.launches > 1:
            text += f" in {self.launches} launches"
        if self.lost is None:
            return (
                f"{text}: at least {self.at_least:,} records dropped, which were not counted; "
                f"try records_per_lane={self.room}"
            )
        return f"{text}: {self.lost:,} records dropped; set records_per_lane={self.room}"


@dataclass(frozen=True, slots=True)
class Unallocated:
    """Lanes without space in the buffer, of one launch or of several.

    Attributes:
        lanes: how many.
        blocks, groups: size of the buffer.
        required_blocks, required_groups: required size; the size of the buffer if unknown.
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
        """Return the counts and the remedy as text."""
        found, room = [], []
        if self.required_blocks > self.blocks:
            found.append(f"buffer holds {self.blocks} of {self.required_blocks} blocks")
            room.append(f"blocks={self.required_blocks}")
        if self.required_groups > self.groups:
            found.append(f"buffer holds {self.groups} of {self.required_groups} groups")
            room.append(f"groups={self.required_groups}")
        why = ", ".join(found) or "kernel received a part of the buffer only"
        lanes = "1 lane" if self.lanes == 1 else f"{self.lanes:,} lanes"
        text = f"{why}: {lanes} without records"
        return f"{text}; set {', '.join(room)}" if room else text


def unallocated(trace: Trace) -> dict[str, Unallocated]:
    """Return the lanes without space in each launch of a trace, by the name of its capture.

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
    """Return the dropped records of each launch with loss, by the name of its capture.

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
            # The capacity of a lane is a power of two.
            count, room = (
                int(lost[here].sum()),
                1 << max(0, int(lanes.values("attempted")[here].max()) - 1).bit_length(),
            )
        else:
            count, room = None, 2 * int(lanes.values("capacity")[here].max())
        of_launch = int(np.count_nonzero(input_of == number))
        least = int(lanes.values("dropped_at_least")[here].sum())
        found[names[number]] = Dropped(1, of_launch, int(np.count_nonzero(here)), count, least, room)
    return found


def advice(trace: Trace) -> list[str]:
    """Return dropped records and the required size for each launch with data loss.

    One line for lanes that overflowed, one for lanes without space in the buffer.
    """
    return [f"{name}: {loss}" for found in (dropped(trace), unallocated(trace)) for name, loss in found.items()]
