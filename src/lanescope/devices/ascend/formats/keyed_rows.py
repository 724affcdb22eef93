"""The two device streams put together: which dispatch of the schedulers is which execution on a core.

The key is (core, ``reg_task_id``), the core's own dispatch counter, and the run where a file holds several: a task id
may be dispatched to one core more than once. Rows that are the same in every cell count once. A key whose rows differ
is ambiguous: its executions stay, but none of them is joined. What has no partner is kept, its missing side unknown.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.devices.ascend.formats.records import Section
from lanescope.families.declaration import frozen_class
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]


@frozen_class
class KeyedRows:
    """The rows of one stream that count.

    Attributes:
        section: the rows without repetitions, in the order of the file.
        key: int64 [n], core and counter.
        is_unique: bool [n], False where other rows have the same key.
        duplicates: rows that repeated another and were left out.
        duplicate_offset: byte offset of the first of them.
        ambiguous: keys with rows that differ.
        ambiguous_offset: byte offset of the first row with such a key.
        by_key: int64 [unique rows], the rows whose key is unique, in the order of their keys.
    """

    section: Section
    key: Int64
    is_unique: Mask
    duplicates: int
    duplicate_offset: int | None
    ambiguous: int
    ambiguous_offset: int | None
    by_key: Int64


def keyed(section: Section, key: Int64 | None = None) -> KeyedRows:
    """Drop repeated rows of a stream and find its ambiguous keys.

    Args:
        section: the stream.
        key: int64 [n], see ``keys``; None: core and counter.
    """
    key = _keys(section) if key is None else key
    if len(key) < 2 or bool((key[1:] > key[:-1]).all()):
        return KeyedRows(section, key, np.ones(len(key), np.bool_), 0, None, 0, None, np.arange(len(key)))
    order = np.argsort(key, kind="stable")
    same = key[order][1:] == key[order][:-1]
    duplicates, duplicate_offset = 0, None
    if same.any():
        repeated = _repetitions(section, order[_touching(same)])
        if len(repeated):
            duplicates, duplicate_offset = len(repeated), int(section.begin[repeated].min())
            keep = np.ones(len(key), np.bool_)
            keep[repeated] = False
            section, key = section.take(keep), key[keep]
            order = np.argsort(key, kind="stable")
            same = key[order][1:] == key[order][:-1]
    is_unique = np.ones(len(key), np.bool_)
    shared = order[_touching(same)]
    is_unique[shared] = False
    ambiguous = len(np.unique(key[shared]))
    offset = int(section.begin[shared].min()) if ambiguous else None
    return KeyedRows(section, key, is_unique, duplicates, duplicate_offset, ambiguous, offset, order[is_unique[order]])


def keys(aicore: Section, aicpu: Section) -> tuple[Int64, Int64]:
    """Return the keys of both streams: core and counter, and the run where rows of several runs are among them."""
    first, second = _keys(aicore), _keys(aicpu)
    epochs = np.concatenate([aicore["run_epoch"], aicpu["run_epoch"]])
    if not len(epochs) or epochs.min() == epochs.max():
        return first, second
    _, epoch = np.unique(epochs, return_inverse=True)
    distinct, key = np.unique(np.concatenate([first, second]), return_inverse=True)
    joined = epoch.reshape(-1).astype(np.int64) * len(distinct) + key.reshape(-1)
    return joined[: len(first)], joined[len(first) :]


def _keys(section: Section) -> Int64:
    return (section["core_id"].astype(np.int64) << 32) | section["reg_task_id"].astype(np.int64)


def _touching(same: Mask) -> Mask:
    """Return which of n sorted values equal a neighbour, from which of the n - 1 pairs are equal."""
    touching = np.zeros(len(same) + 1, np.bool_)
    touching[1:] = same
    touching[:-1] |= same
    return touching


def _repetitions(section: Section, rows: Int64) -> Int64:
    """Return those of ``rows`` that equal an earlier row in every cell."""
    table = [section.present[rows].astype(np.uint64)]
    table += [section[cell.name][rows].astype(np.uint64) for cell in section.layout.cells]
    order = np.lexsort((rows, *table))
    equal = np.ones(len(rows) - 1, np.bool_)
    for column in table:
        equal &= column[order][1:] == column[order][:-1]
    return rows[order[1:][equal]]


def partners(aicore: KeyedRows, aicpu: KeyedRows) -> tuple[Int64, Int64]:
    """Join the streams.

    Returns:
        int64 [aicore rows], the AICPU row of each, -1 without one; and the AICPU rows that no execution belongs to.
        Rows of ambiguous keys, in either stream, have no partner and belong to somebody.
    """
    partner = np.full(len(aicore.key), -1, np.int64)
    mine, theirs = aicore.by_key, aicpu.by_key
    my_keys, their_keys = aicore.key[mine], aicpu.key[theirs]
    if np.array_equal(my_keys, their_keys):
        partner[mine] = theirs
        return partner, np.empty(0, np.int64)
    if len(theirs):
        at = np.minimum(np.searchsorted(their_keys, my_keys), len(theirs) - 1)
        hit = their_keys[at] == my_keys
        partner[mine[hit]] = theirs[at[hit]]
    left = np.zeros(len(aicpu.key), np.bool_)
    left[theirs] = True
    left[partner[partner >= 0]] = False
    candidates = np.flatnonzero(left)
    return partner, candidates[~np.isin(aicpu.key[candidates], aicore.key[~aicore.is_unique])]
