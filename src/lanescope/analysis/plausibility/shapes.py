"""Shapes of tracks: which lanes are siblings, brothers and cousins."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from lanescope.analysis.track_tree import Tree
from lanescope.common.intervals import Ints
from lanescope.trace.column import Mask

_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")


class Shapes:
    """Numbers of the shapes of tracks.

    Two tracks have one shape, and two lanes are **siblings**, if device, role, nesting and path agree but for numbers.
    **Brothers** have one parent; **cousins** are siblings under different parents.

    Attributes:
        of: int32 [tracks], the shape of each track.
        device: int64 [tracks], the track of its device, or the topmost group; -1 for a track without a group.
        texts: path of each shape with ``#`` for numbers.
    """

    def __init__(self) -> None:
        self.of: npt.NDArray[np.int32] = np.empty(0, np.int32)
        self.device: Ints = np.empty(0, np.int64)
        self.texts: list[str] = []
        self._numbers: dict[tuple[int, str, str, str], int] = {}

    def add(self, tree: Tree) -> None:
        """Number the shapes of the tracks that are new in ``tree``."""
        known = len(self.of)
        if len(tree) == known:
            return
        roles, nestings = (tree.tracks.values(name).tolist() for name in ("role", "nesting"))
        shapes, devices = self.of.tolist(), self.device.tolist()
        masked: dict[int, str] = {-1: ""}
        for track in range(known, len(tree)):
            device = tree.device(track) if tree.parents[track] >= 0 or roles[track] == "device" else -1
            key = device, roles[track], nestings[track], self._path(tree, track, masked)
            shapes.append(self._numbers.setdefault(key, len(self._numbers)))
            devices.append(device)
            if shapes[-1] == len(self.texts):
                self.texts.append(key[3])
        self.of, self.device = np.array(shapes, np.int32), np.array(devices, np.int64)

    def _path(self, tree: Tree, track: int, masked: dict[int, str]) -> str:
        """Return the path of a track with its numbers masked."""
        parent = tree.parents[track]
        above = masked.get(parent)
        if above is None:
            above = masked[parent] = self._path(tree, parent, masked) + "/"
        return above + _NUMBER.sub("#", tree.names[track])


def siblings(shape: npt.NDArray[np.int32], lanes: Ints) -> list[Ints]:
    """Return the lanes of each shape, int64, for the ``lanes`` (int64 [n] rising)."""
    if not len(lanes):
        return []
    by_shape = lanes[np.argsort(shape[lanes], kind="stable")]
    return np.split(by_shape, np.flatnonzero(np.diff(shape[by_shape])) + 1)


def host_lanes(tree: Tree) -> Mask:
    """Return which tracks are lanes of host threads, bool [tracks]: always witnesses, never warned of."""
    found: Mask = tree.tracks.values("role") == "host_thread"
    return found
