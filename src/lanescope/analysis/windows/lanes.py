"""Which lanes and names are in a window."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from lanescope.analysis.track_tree import Tree
from lanescope.errors import UsageError

if TYPE_CHECKING:
    from lanescope.trace import Dictionary, Table
    from lanescope.trace.column import Mask

#: So many of the lanes or names that there are appear in a message.
_LISTED = 5


def _matches(text: str, globs: Sequence[str]) -> bool:
    """Return whether a text is one of ``globs`` or matches one: names may have brackets."""
    return any(text == glob or fnmatchcase(text, glob) for glob in globs)


def selected_tracks(tree: Tree, globs: Sequence[str]) -> Mask:
    """Return which tracks are selected, bool [tracks].

    Args:
        tree: the tracks.
        globs: of names and paths of tracks, of which one has to match the track or a group above it. Empty: all are.
    """
    if not globs:
        return np.ones(len(tree), np.bool_)
    found = np.zeros(len(tree), np.bool_)
    for track in tree.order.tolist():  # groups come before what is below them
        above = tree.parents[track]
        found[track] = (
            (above >= 0 and found[above])
            or _matches(tree.names[track], globs)
            or (above >= 0 and _matches(tree.path(track), globs))
        )
    return found


def require_lanes(tree: Tree, globs: Sequence[str]) -> None:
    """Refuse globs that no track matches.

    Raises:
        UsageError: there is one; the hint lists some lanes.
    """
    for glob in globs:
        if not selected_tracks(tree, (glob,)).any():
            some = [tree.path(lane) for lane in tree.lanes[:_LISTED].tolist()]
            more = ", ..." if len(tree.lanes) > _LISTED else ""
            hint = f"use a glob of one of these: {', '.join(some)}{more}" if some else ""
            raise UsageError(f"no lane matches {glob!r}", hint=hint)


class SelectedNames:
    """Which texts of a dictionary match one of several globs; the dictionary may grow."""

    def __init__(self, globs: Sequence[str]) -> None:
        self._globs = globs
        self._known: dict[int, tuple[Dictionary, Mask]] = {}

    def of(self, table: Table) -> Mask:
        """Return which rows of a table have such a name, bool [n]."""
        texts = table.column("name").dictionary
        if texts is None or not len(table):
            return np.ones(len(table), np.bool_)
        _, found = self._known.get(id(texts), (texts, np.empty(0, np.bool_)))
        if len(found) < len(texts):
            more = [_matches(text, self._globs) for text in texts.texts[len(found) :]]
            found = np.concatenate([found, np.array(more, np.bool_)])
            self._known[id(texts)] = texts, found  # with the dictionary, so that no other one gets its id
        rows: Mask = found[table.codes("name")]
        return rows


def below(tree: Tree, chosen: Mask) -> Mask:
    """Return which tracks are chosen or have a chosen one below them, bool [tracks]."""
    found = chosen.copy()
    for track in np.flatnonzero(chosen).tolist():
        for step in tree.ancestors(track)[:-1]:
            found[step] = True
    return found
