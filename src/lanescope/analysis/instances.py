"""Groups of lanes that form an instance: blocks, SMs, cores, devices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lanescope.analysis.lane_time import LaneTime
from lanescope.analysis.partition import (
    NO_ROW,
    STATES,
    UNRECORDED,
    VACANT,
    Partition,
)
from lanescope.common.intervals import Intervals, Ints, concurrent_keys, hulls, join
from lanescope.errors import UsageError
from lanescope.trace import Column, Table, Trace
from lanescope.trace.column import Mask

#: Units that every trace has: all lanes as one, the group right above a lane, each lane by itself.
ALL, PARENT, LANE = "all", "parent", "lane"


@dataclass(frozen=True, eq=False)
class Instances:
    """Instance that each track belongs to.

    Attributes:
        role: what an instance is: ``all``, ``parent``, ``lane``, a role of tracks (``block``), or a column of the
            lanes' detail table (``sm``).
        of: int64 [tracks], the unit of each lane; -1 for tracks that are not lanes, or belong to none.
        labels: name of each instance; its path where names alone are alike.
        numbers: int64 [units], the number that the detail table gives it; None where no table does.
    """

    role: str
    of: Ints
    labels: list[str]
    numbers: Ints | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def label_column(self) -> Ints:
        """The labels as an object array, str [units]."""
        found = np.empty(len(self.labels), object)
        found[:] = self.labels
        return found

    def number_column(self, unit: Ints) -> Column:
        """Return the numbers of units (int64 [n]) as a column, NULL where they have none."""
        if self.numbers is None:
            return Column.array(np.zeros(len(unit), np.int64), valid=np.zeros(len(unit), np.bool_))
        return Column.array(self.numbers[unit])


def units(time: LaneTime, role: str) -> Instances:
    """Put the lanes of a trace together.

    A unit of a role is the nearest track of that role at or above the lane. Where a detail table keyed by ``track_id``
    has a column of that name, it says the unit instead: lanes of one device with equal values belong together.

    Args:
        time: the trace's lane times.
        role: see ``Instances``.

    Raises:
        UsageError: the trace has no such instances; the hint lists those it knows.
    """
    tree, trace = time.tree, time.trace
    is_lane = tree.tracks.values("kind") == "lane"
    if role == ALL:
        return Instances(role, np.where(is_lane, 0, -1), ["all"])
    if role == LANE:
        return _of_tracks(time, role, np.where(is_lane, np.arange(len(tree)), -1))
    if role == PARENT:
        parents = np.array(tree.parents, np.int64).reshape(-1)
        own = np.where(parents < 0, np.arange(len(tree)), parents)
        return _of_tracks(time, role, np.where(is_lane, own, -1))
    column = _detail(trace, role)
    if column is not None:
        return _of_numbers(time, role, *column)
    matches = tree.tracks.values("role") == role
    if not matches.any():
        known = ", ".join(roles(trace))
        raise UsageError(f"this trace has no {role} information (available: {known})")
    return _of_tracks(time, role, np.where(is_lane, _nearest(time, matches), -1))


def roles(trace: Trace) -> list[str]:
    """Return the units that the lanes of a trace can be put together to."""
    columns = [
        column.name
        for table in _lane_tables(trace)
        for column in table.spec.columns
        if column.name in _DETAIL_ROLES and table.valid(column.name).any()
    ]
    return list(
        dict.fromkeys([*columns, *(str(role) for role in dict.fromkeys(trace.tracks.values("role").tolist()) if role)])
    )


#: Columns of lanes' detail tables that say where a lane ran.
_DETAIL_ROLES = ("sm", "block", "core", "rank")


def _lane_tables(trace: Trace) -> list[Table]:
    return [table for table in trace.details.values() if table.spec.key == "track_id"]


def _detail(trace: Trace, role: str) -> tuple[Ints, Column] | None:
    """Return the tracks and the integer column of the detail table that says units of a role."""
    if role not in _DETAIL_ROLES:
        return None
    for table in _lane_tables(trace):
        if role in table.spec.names:
            column = table.column(role)
            if np.issubdtype(column.values.dtype, np.integer) and table.valid(role).any():
                return table.values("track_id"), column
    return None


def _of_numbers(time: LaneTime, role: str, tracks: Ints, column: Column) -> Instances:
    tree = time.tree
    known = (tracks >= 0) & (tracks < len(tree))
    if column.valid is not None:
        known &= column.valid
    rows = np.flatnonzero(known)
    lanes, values = tracks[rows], column.values[rows].astype(np.int64)
    devices = np.array([tree.device(lane) for lane in lanes.tolist()], np.int64)
    pairs, unit = np.unique(np.stack([devices, values]), axis=1, return_inverse=True)
    of = np.full(len(tree), -1, np.int64)
    of[lanes] = unit.reshape(-1)
    # The table may leave lanes out that belong to another one: they are where the others of their group are, if those
    # are all in one place.
    parents = np.array(tree.parents, np.int64).reshape(-1)
    lowest, highest = hulls(Intervals(parents[lanes], of[lanes], of[lanes]), len(tree) + 1)
    of_group = np.where(lowest == highest, highest, -1)
    of_group[-1] = -1  # lanes at the top have no group
    left_out = np.flatnonzero((of < 0) & (tree.tracks.values("kind") == "lane"))
    of[left_out] = of_group[parents[left_out]]
    labels = [f"{role} {number}" for number in pairs[1].tolist()]
    if len(set(pairs[0].tolist())) > 1:
        labels = [f"{tree.path(device)}/{label}" for device, label in zip(pairs[0].tolist(), labels, strict=True)]
    return Instances(role, of, labels, pairs[1])


def _of_tracks(time: LaneTime, role: str, wanted: Ints) -> Instances:
    """Make units of the tracks named in ``wanted`` (int64 [tracks], -1: none), in drawing order."""
    tree = time.tree
    used = np.zeros(len(tree), np.bool_)
    used[wanted[wanted >= 0]] = True
    shown = tree.order[used[tree.order]] if len(tree) else np.empty(0, np.int64)
    number = np.full(len(tree) + 1, -1, np.int64)
    number[shown] = np.arange(len(shown))
    names = [tree.names[track] for track in shown.tolist()]
    labels = names if len(set(names)) == len(names) else [tree.path(track) for track in shown.tolist()]
    return Instances(role, number[wanted], labels)


def _nearest(time: LaneTime, matches: Mask) -> Ints:
    """Return for each track the nearest matching one at or above it, -1 for none."""
    tree = time.tree
    found = np.full(len(tree) + 1, -1, np.int64).tolist()
    is_match = matches.tolist()
    for track in tree.order.tolist():  # a group comes before what stands in it
        found[track] = track if is_match[track] else found[tree.parents[track]]
    return np.array(found[:-1], np.int64)


# --- their time ---------------------------------------------------------------------------------------------------


def residency(time: LaneTime, instances: Instances) -> Intervals:
    """Return the time from the first to the last known moment of each group of lanes; ``group`` is the instance.

    A block is resident from the first timestamp of any of its lanes to the last of any, an SM while one of its blocks
    is. Lanes of several instances may have one parent: those of each instance count as a group of their own, so nothing
    of one instance makes another one seem resident. A lane at the top is a group by itself.

    Args:
        time: the trace's lane times.
        instances: which instance each lane belongs to.

    Returns:
        One interval per instance and group of lanes; those of one instance may overlap.
    """
    tree, of, groups = time.tree, instances.of, len(instances)
    begin, end = time.bounds
    lanes = np.flatnonzero((of >= 0) & (begin <= end))
    parents = np.array(tree.parents, np.int64).reshape(-1)[lanes]
    group_of = np.where(parents < 0, lanes, parents)
    found, member = np.unique(group_of * groups + of[lanes], return_inverse=True)
    first, last = hulls(Intervals(member.reshape(-1), begin[lanes], end[lanes]), len(found))
    return Intervals(found % max(groups, 1), first, last)


#: Of each set of states, bits, the first: that of the instance.
_FIRST = np.array([0, *((states & -states).bit_length() - 1 for states in range(1, 1 << STATES))], np.uint8)


def combine(parts: Partition, instances: Instances, resident: Intervals, window: tuple[int, int]) -> Partition:
    """Divide the window of every instance into states, from those of its lanes.

    BUSY while any lane is; else LOST while any lane is; else WAITING, else IDLE while any lane is; else UNRECORDED
    while it is resident, as no lane tells what happened; else VACANT.

    Args:
        parts: what ``partition`` returned.
        instances: which instance each lane belongs to.
        resident: what ``residency`` returned.
        window: first and last time of the trace.

    Returns:
        The states of all instances; rows are -1.
    """
    parts = parts.merged()  # regions do not matter here
    of = instances.of[parts.lane]
    used = (of >= 0) & (parts.state != UNRECORDED)
    # A resident instance of which no lane tells anything is not recorded, and vacant is what it is without all that.
    lanes = parts.time._replace(group=of * STATES + parts.state).take(used)
    there = resident._replace(group=resident.group * STATES + UNRECORDED)
    every = np.arange(len(instances)) * STATES + VACANT
    whole = Intervals(every, np.full(len(every), window[0]), np.full(len(every), window[1]))
    time, states = concurrent_keys(join(lanes, there, whole), STATES)
    return Partition(*time, _FIRST[states], np.full(len(states), NO_ROW)).merged()
