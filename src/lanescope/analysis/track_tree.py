"""Tree of tracks: drawing order, paths as text, device of a lane."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from lanescope.common.distinct import distinct
from lanescope.trace import Column, Table
from lanescope.trace.column import Array, Mask

SEPARATOR = "/"


class Tree:
    """The groups, lanes and counters of a trace as a tree.

    A parent that does not exist, or that would close a ring, is ignored: the track is at the top.

    Attributes:
        tracks: the table; a track's id is its row.
    """

    def __init__(self, tracks: Table) -> None:
        self.tracks = tracks
        self.names: list[str] = tracks.values("name").tolist()
        self.parents = _parents(tracks)
        self._groups: dict[int, str] = {}  # paths of groups, as their lanes ask for them again and again

    def __len__(self) -> int:
        return len(self.parents)

    @cached_property
    def lanes(self) -> Array:
        """Ids of the lanes, int64, in drawing order."""
        is_lane = self.tracks.values("kind") == "lane"
        return self.order[is_lane[self.order]] if len(self) else np.empty(0, np.int64)

    @cached_property
    def order(self) -> Array:
        """All track ids, int64 [n]: depth first, siblings by ``sort_key`` and then by id."""
        children: dict[int, list[int]] = {}
        for track, parent in enumerate(self.parents):
            children.setdefault(parent, []).append(track)
        keys = self.tracks.values("sort_key").tolist()
        for siblings in children.values():
            siblings.sort(key=lambda track: (-keys[track], -track))
        stack, found = children.get(-1, []), []
        while stack:
            track = stack.pop()
            found.append(track)
            stack.extend(children.get(track, ()))
        return np.array(found, np.int64)

    @cached_property
    def depths(self) -> list[int]:
        """Number of groups above each track."""
        return [len(self.ancestors(track)) - 1 for track in range(len(self))]

    def ancestors(self, track: int) -> list[int]:
        """Return the track and the groups above it, from the top down."""
        chain = []
        while track >= 0:
            chain.append(track)
            track = self.parents[track]
        return chain[::-1]

    def path(self, track: int) -> str:
        """Return the names from the top down to the track: ``npu 0/core 3/aic``; empty for a track that is none."""
        if not 0 <= track < len(self):
            return ""
        above = self.parents[track]
        if above < 0:
            return self.names[track]
        prefix = self._groups.get(above)
        if prefix is None:
            prefix = self._groups[above] = SEPARATOR.join(self.names[step] for step in self.ancestors(above))
        return prefix + SEPARATOR + self.names[track]

    def device(self, track: int) -> int:
        """Return the nearest track of role ``device`` at or above ``track``, else the topmost."""
        chain = self.ancestors(track)
        for step in reversed(chain):
            if self._is_device[step]:
                return step
        return chain[0]

    @cached_property
    def _is_device(self) -> Mask:
        found: Mask = self.tracks.values("role") == "device"
        return found

    def on_clocks(self, clocks: Array) -> Array:
        """Return the lanes with one of some clocks (int64 [n], ids), their own or their group's; int64, rising."""
        tracks = self.tracks
        wanted = np.flatnonzero(tracks.valid("clock_id") & np.isin(tracks.values("clock_id"), clocks))
        lanes: Array = distinct(self.spread(wanted)[1])
        return lanes

    def spread(self, wanted: Array) -> tuple[Array, Array]:
        """Hand what is said of groups down to their lanes.

        Args:
            wanted: int64 [n], the track of each row.

        Returns:
            rows (int64 [m]) and the track of each (int64 [m]): a row on a lane once, a row on a group once for each
            lane beneath it; rows on unknown tracks not at all.
        """
        known = np.flatnonzero((wanted >= 0) & (wanted < len(self)))
        tracks = wanted[known]
        if not len(known):
            return known, tracks
        is_group = (self.tracks.values("kind") == "group")[tracks]
        if not is_group.any():
            return known, tracks
        below: dict[int, list[int]] = {group: [] for group in set(tracks[is_group].tolist())}
        for lane in self.lanes.tolist():
            for step in self.ancestors(lane)[:-1]:
                if step in below:
                    below[step].append(lane)
        rows, lanes = [known[~is_group]], [tracks[~is_group]]
        for row in known[is_group].tolist():
            under = below[int(wanted[row])]
            rows.append(np.full(len(under), row, np.int64))
            lanes.append(np.array(under, np.int64))
        return np.concatenate(rows), np.concatenate(lanes)


def _parents(tracks: Table) -> list[int]:
    """Return the parent of each track, -1 at the top, rings cut."""
    known = tracks.valid("parent_id") & (tracks.values("parent_id") >= 0) & (tracks.values("parent_id") < len(tracks))
    parents: list[int] = np.where(known, tracks.values("parent_id"), -1).tolist()
    if all(parent < track for track, parent in enumerate(parents)):
        return parents
    settled = [False] * len(parents)
    for track in range(len(parents)):
        chain: dict[int, None] = {}  # a set that keeps its order
        while track >= 0 and not settled[track]:
            if track in chain:
                parents[track] = -1
                break
            chain[track] = None
            track = parents[track]
        for step in chain:
            settled[step] = True
    return parents


def text_column(texts: list[str]) -> Column:
    """Return ``texts`` as a utf8 column."""
    column = np.empty(len(texts), object)
    column[:] = texts
    return Column.array(column)
