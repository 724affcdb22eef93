"""Identity of groups of slices across runs: which columns make it, and which group each slice is in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from lanescope.analysis.track_tree import Tree
from lanescope.common.intervals import Ints
from lanescope.errors import UsageError
from lanescope.trace import Table, Trace
from lanescope.trace.column import Array

#: One text per column of the identity.
Key: TypeAlias = tuple[str, ...]

#: Columns of the identity that every trace has.
CORE_COLUMNS = ("name", "lane_kind", "lane", "category")
#: Columns of the identity -> how detail tables of the families call them.
DETAIL_COLUMNS = {
    "phase": ("phase", "kind"),
    "task": ("task_id", "task"),
    "kernel": ("kernel", "function"),
}

#: Up to so many possible groups per slice, a table of them is made.
_FEW_PER_SLICE = 4


def group_slices(trace: Trace, tree: Tree, by: Sequence[str]) -> tuple[list[Key], Ints]:
    """Return the groups of the slices of a trace.

    Args:
        trace: the trace.
        tree: its tracks.
        by: columns that make the identity, at least one: ``name``; ``lane_kind``, the role of the lane; ``lane``, its
            path; ``category``; ``phase``, ``task`` and ``kernel``, as far as a detail table has them; or any column of
            a detail table of slices, as ``TABLE.COLUMN``.

    Returns:
        The keys of the groups, sorted, and the group of each slice, int64 [n], an index of the keys. A slice for which
        a column holds no value has an empty text for it.

    Raises:
        UsageError: a column is unknown, or specified twice.
    """
    if len(set(by)) < len(by):
        raise UsageError(f"--by {','.join(by)} contains a column twice", hint="remove one of them")
    if not by:
        raise UsageError("no column to group by", hint="use --by name")
    codes = np.zeros(len(trace.slices), np.int64)
    keys: list[Key] = [()]
    for name in by:
        texts, more = _column(trace, tree, name)
        # Only combinations that occur become groups.
        present, codes = _renumbered(codes * max(len(texts), 1) + more, len(keys) * max(len(texts), 1))
        keys = [(*keys[one // len(texts)], texts[one % len(texts)]) for one in present.tolist()]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    place = np.empty(len(keys), np.int64)
    place[order] = np.arange(len(keys))
    return _joined([keys[at] for at in order], place[codes])


def _renumbered(codes: Ints, count: int) -> tuple[Ints, Ints]:
    """Return which of the codes (int64 [n], below ``count``) occur, rising, and the place of each among these."""
    if count > _FEW_PER_SLICE * len(codes):
        present, places = np.unique(codes, return_inverse=True)
        return present, places
    # A table of all codes is several times faster than sorting the slices.
    occurs = np.zeros(count, np.bool_)
    occurs[codes] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[codes]


def _joined(keys: list[Key], codes: Ints) -> tuple[list[Key], Ints]:
    """Return the groups with equal keys as one: a dictionary of texts may hold one twice."""
    first = {key: at for at, key in reversed(list(enumerate(keys)))}
    if len(first) == len(keys):
        return keys, codes
    found = sorted(first)
    place = {key: at for at, key in enumerate(found)}
    return found, np.array([place[key] for key in keys], np.int64)[codes]


def _column(trace: Trace, tree: Tree, name: str) -> tuple[list[str], Ints]:
    """Return the texts of a column of the identity, and the code of each slice, int64 [n]."""
    if name in ("name", "category"):
        column = trace.slices.column(name)
        texts = column.dictionary.texts if column.dictionary is not None else [""]
        return texts or [""], column.values.astype(np.int64)
    if name in ("lane_kind", "lane"):
        track = trace.slices.values("track_id")
        names = [tree.path(each) for each in range(len(tree))] if name == "lane" else _roles(trace)
        texts = sorted({*names, ""})
        position = {text: at for at, text in enumerate(texts)}
        of_track = np.array([position[text] for text in (*names, "")], np.int64)
        return texts, of_track[np.where((track >= 0) & (track < len(names)), track, len(names))]
    codes = np.zeros(len(trace.slices), np.int64)
    texts = [""]
    found = list(_details(trace, name))
    if not found and name in DETAIL_COLUMNS:
        raise UsageError(f"no slice of the capture has a {name}", hint="use --by name, or TABLE.COLUMN")
    if not found:
        raise UsageError(
            f"unknown column {name!r} of --by",
            hint="use " + ", ".join((*CORE_COLUMNS, *DETAIL_COLUMNS)) + " or TABLE.COLUMN of a detail table of slices",
        )
    for table, field in found:
        rows = table.values("slice_id")
        known = np.flatnonzero(table.valid(field) & (rows >= 0) & (rows < len(codes)))
        stored: Array = table.values(field)[known].astype(str)
        values, place = np.unique(stored, return_inverse=True)
        codes[rows[known]] = len(texts) + place
        texts += values.tolist()
    return texts, codes


def _roles(trace: Trace) -> list[str]:
    roles: list[str] = trace.tracks.values("role").tolist()
    return roles


def _details(trace: Trace, name: str) -> Iterator[tuple[Table, str]]:
    """Yield the detail tables of slices with a column of the identity, and what they call it."""
    for table in trace.details.values():
        if table.spec.key != "slice_id":
            continue
        if "." in name:
            wanted, _, column = name.partition(".")
            if wanted == table.spec.name and column in table.spec.names:
                yield table, column
            continue
        for column in DETAIL_COLUMNS.get(name, ()):
            if column in table.spec.names:
                yield table, column
                break
