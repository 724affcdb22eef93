"""The two device streams put together: which dispatch of the schedulers is which execution on a core.

The key is (core, ``reg_task_id``), the core's own dispatch counter, and the run where a file holds several: a task id
may be dispatched to one core more than once. Rows that are the same in every cell count once. A key whose rows differ
is ambiguous: its executions stay, but none of them is joined. What has no partner is kept, its missing side unknown.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.common.key_join import Keys, duplicates
from lanescope.declaration import frozen_class
from lanescope.devices.ascend.formats.records import Section

Int64 = npt.NDArray[np.int64]


@frozen_class
class KeyedRows:
    """The rows of one stream that count.

    Attributes:
        section: the rows without repetitions, in the order of the file.
        keys: their keys, core and counter.
        duplicates: rows that repeated another and were left out.
        duplicate_offset: byte offset of the first of them.
        ambiguous: keys with rows that differ.
        ambiguous_offset: byte offset of the first row with such a key.
    """

    section: Section
    keys: Keys
    duplicates: int
    duplicate_offset: int | None
    ambiguous: int
    ambiguous_offset: int | None


def keyed(section: Section, key: Int64 | None = None) -> KeyedRows:
    """Drop repeated rows of a stream and find its ambiguous keys.

    Args:
        section: the stream.
        key: int64 [n], see ``keys``; None: core and counter.
    """
    found = Keys.of(_keys(section) if key is None else key)
    count, offset = 0, None
    shared = found.ambiguous_rows
    if len(shared):
        repeated = shared[duplicates(_columns(section, shared))]
        if len(repeated):
            count, offset = len(repeated), int(section.begin[repeated].min())
            keep = np.ones(len(section), np.bool_)
            keep[repeated] = False
            section, found = section.take(keep), Keys.of(found.values[keep])
            shared = found.ambiguous_rows
    ambiguous = len(found.ambiguous_keys) if len(shared) else 0
    return KeyedRows(section, found, count, offset, ambiguous, int(section.begin[shared].min()) if ambiguous else None)


def repeated(section: Section, begin: Int64, end: Int64) -> Int64:
    """Return the rows that repeat an earlier row of their inner list in every cell, int64, rising.

    Rows of no length do not count: within one step of the counter a thread can do the same thing twice.

    Args:
        section: rows that their producer writes as they end, as it does with phases; others are sorted first.
        begin: first stamps, int64 [n].
        end: last stamps, int64 [n].
    """
    none = np.empty(0, np.int64)
    if len(section) < 2:
        return none
    lane, order = section.group, None
    if bool(((end[1:] < end[:-1]) & (lane[1:] == lane[:-1])).any()):
        order = np.lexsort((end, lane))
        lane, end, begin = lane[order], end[order], begin[order]
    # Rows that are equal end together, though others may stand between them.
    same = (end[1:] == end[:-1]) & (lane[1:] == lane[:-1])
    if not same.any():
        return none
    shared = np.flatnonzero((np.append(same, False) | np.append(False, same)) & (end > begin))
    rows = shared if order is None else np.sort(order[shared])
    return rows[duplicates([section.group[rows], *_columns(section, rows)])] if len(rows) else none


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


def _columns(section: Section, rows: Int64) -> list[npt.NDArray[np.uint64]]:
    """Return what rows hold, column by column, [rows] each: which cells are there, and their values."""
    cells = [section[cell.name][rows].astype(np.uint64).reshape(len(rows), -1) for cell in section.layout.cells]
    return [section.present[rows].astype(np.uint64), *(column for cell in cells for column in cell.T)]
