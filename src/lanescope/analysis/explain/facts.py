"""Facts that sentences rest on: of the critical path, and of what a window selects."""

from __future__ import annotations

from typing import NamedTuple


class PathWork(NamedTuple):
    """The work that takes most of the critical path.

    Attributes:
        name: its name; empty: nothing can be said of the path.
        share: its share of the path.
        explained: how much of the path is explained.
        selected: share of the selected slices, where a window selects some.
        is_alone: whether causes outside of a window could not be followed.
    """

    name: str = ""
    share: float = 0.0
    explained: float = 0.0
    selected: float = 0.0
    is_alone: bool = False


class SelectedWork(NamedTuple):
    """What a window selects by name, duration or condition; times in the unit of the trace.

    Attributes:
        asked: what it selects, in words.
        slices: how many they are.
        busy: time that lanes work in them.
        waiting: time that lanes wait in them.
        time: time of all lanes.
    """

    asked: str
    slices: int
    busy: int
    waiting: int
    time: int
