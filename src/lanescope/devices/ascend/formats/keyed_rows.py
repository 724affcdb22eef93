"""The two device streams put together: which dispatch of the schedulers is which execution on a core.

The key is (core, ``reg_task_id``), the core's own dispatch counter, and the run where a file holds several: a task id
may be dispatched to one core more than once. Rows that are the same in every cell count once. A key whose rows differ
is ambiguous: its executions stay, but none of them is joined. What has no partner is kept, its missing side unknown.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.common.key_join import Keys, duplicates
from lanescope.devices.ascend.formats.records import Section
from lanescope.trace.declaration import frozen_class

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
    cells = [section[cell.name][rows].astype(np.uint64) for cell in section.layout.cells]
    return [section.present[rows].astype(np.uint64), *cells]
