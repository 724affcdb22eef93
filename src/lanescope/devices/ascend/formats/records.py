"""The records of a capture as columns, in the terms that all format versions share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class, replace
from lanescope.devices.ascend.formats.layout import MAX_I32, JsonField, Layout
from lanescope.trace.column import Array, Mask

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]


@frozen_class
class Tally:
    """Accounting of a list: decoded elements, invalid elements and the location of the first one.

    Attributes:
        good_bytes: of decoded elements.
        bad_bytes: of invalid elements.
        bad_count: invalid elements.
        bad_first: where the first one begins.
        unknown_keys: values in decoded elements whose key no known writer has.
        unknown_first: where the first such key stands.
    """

    good_bytes: int = 0
    bad_bytes: int = 0
    bad_count: int = 0
    bad_first: int | None = None
    unknown_keys: int = 0
    unknown_first: int | None = None


@frozen_class
class Section:
    """The elements of one list.

    Attributes:
        layout: what an element looks like.
        columns: cell name to values [n], or [n, count] of cells that are lists. ``token`` uint64; ``text`` int32 codes
            of ``texts``; ``boolean`` bool; ``words`` uint32; numbers int32 or int64, as their limit asks. 0 where
            missing.
        present: uint32 [n], bit i set where cell i was there.
        group: int32 [n], index of the inner list; 0 in flat lists.
        groups: how many inner lists there are.
        begin: int64 [n] (uint32 of a file whose offsets fit), byte offset of the element in its file.
        end: the same, the byte behind it.
        texts: the texts of the list's text cells.
        tally: what became of its bytes.
    """

    layout: Layout
    columns: dict[str, Array]
    present: UInt32
    group: Int32
    groups: int
    begin: Int64 | UInt32
    end: Int64 | UInt32
    texts: tuple[str, ...] = ()
    tally: Tally = Tally()

    def __len__(self) -> int:
        return len(self.present)

    def __getitem__(self, name: str) -> Array:
        """Return the values of a cell."""
        return self.columns[name]

    @cached_property
    def _everywhere(self) -> int:
        """Bits of the cells that are there in all elements."""
        return int(np.bitwise_and.reduce(self.present))

    def has(self, name: str) -> Mask:
        """Return bool [n], where a cell was there."""
        bit = self.layout.bit(name)
        if self._everywhere & bit:
            return np.ones(len(self), np.bool_)
        mask: Mask = (self.present & np.uint32(bit)) != 0
        return mask

    def only(self, *names: str) -> Section:
        """Return the elements with some of their cells; where they stood in the file is let go."""
        nowhere = np.broadcast_to(np.uint32(0), (len(self),))
        columns = {name: self.columns[name] for name in names}
        return replace(self, columns=columns, begin=nowhere, end=nowhere)

    def take(self, rows: Array | slice) -> Section:
        """Return some of the elements (int64 [m], bool [n] or a range); bytes stay tallied as they were."""
        return Section(
            self.layout,
            {name: values[rows] for name, values in self.columns.items()},
            self.present[rows],
            self.group[rows],
            self.groups,
            self.begin[rows],
            self.end[rows],
            self.texts,
            self.tally,
        )


def section(layout: Layout, columns: dict[str, Any], *, group: Any = None, texts: Iterable[str] = ()) -> Section:
    """Make a section from columns; what ``columns`` leaves out is missing in all elements.

    Args:
        layout: the declaration.
        columns: cell name to values [n] or [n, count]; ``NAME_valid`` (bool [n]) marks where it is there.
        group: index of the inner list, int [n], not falling; None: one inner list.
        texts: the texts behind text cells.
    """
    length = len(next(iter(columns.values())))
    present = np.zeros(length, np.uint32)
    made = {}
    for cell in layout.cells:
        values = columns.get(cell.name)
        shape = (length,) if cell.count == 1 else (length, cell.count)
        if values is None:
            made[cell.name] = np.zeros(shape, dtype_of(cell))
            continue
        valid = columns.get(f"{cell.name}_valid", True)
        made[cell.name] = np.where(
            valid if cell.count == 1 else np.reshape(np.broadcast_to(valid, length), (length, 1)),
            np.asarray(values).reshape(shape),
            0,
        ).astype(dtype_of(cell))
        present |= np.where(valid, np.uint32(layout.bit(cell.name)), np.uint32(0))
    groups = np.zeros(length, np.int32) if group is None else np.asarray(group, np.int32)
    count = int(groups.max(initial=-1)) + 1
    offsets = np.zeros(length, np.int64)
    return Section(layout, made, present, groups, count if layout.depth == 2 else 0, offsets, offsets, tuple(texts))


def empty(layout: Layout) -> Section:
    """Return a section without elements."""
    return section(layout, {cell.name: np.empty((0, cell.count)) for cell in layout.cells})


def concat(layout: Layout, parts: Sequence[tuple[int, Section]]) -> Section:
    """Put lists one behind the other, each as the inner list of the number beside it; numbers do not fall."""
    if not parts:
        return empty(layout)
    sections = [part for _, part in parts]
    texts = list(dict.fromkeys(text for part in sections for text in part.texts)) or [""]
    place = {text: code for code, text in enumerate(texts)}
    columns = {}
    for cell in layout.cells:
        values = [part[cell.name] for part in sections]
        if cell.kind == "text":
            codes = [np.array([place[text] for text in part.texts] or [0], np.int32) for part in sections]
            values = [code[value] for code, value in zip(codes, values, strict=True)]
        columns[cell.name] = np.concatenate(values)
    tallies = [part.tally for part in sections]
    tally = Tally(
        sum(tally.good_bytes for tally in tallies),
        sum(tally.bad_bytes for tally in tallies),
        sum(tally.bad_count for tally in tallies),
        min((tally.bad_first for tally in tallies if tally.bad_first is not None), default=None),
        sum(tally.unknown_keys for tally in tallies),
        min((tally.unknown_first for tally in tallies if tally.unknown_first is not None), default=None),
    )
    return Section(
        layout,
        columns,
        np.concatenate([part.present for part in sections]),
        np.concatenate([np.full(len(part), number, np.int32) for number, part in parts]),
        parts[-1][0] + 1 if layout.depth == 2 else 0,
        np.concatenate([part.begin for part in sections]),
        np.concatenate([part.end for part in sections]),
        tuple(texts),
        tally,
    )


@frozen_class
class Stream:
    """One stream of records as its producer tells of it.

    Attributes:
        kind: ``aicore_task``, ``aicpu_task``, ``sched_phase`` or ``orch_phase``.
        index: core or thread.
        total: attempts to write a record; None: not told.
        dropped: those that the producer knows to have failed; None: not told.
        collected: records that arrived.
        producer: which processor wrote it; empty: not told.
        platform: on which chip; empty: not told.
        is_truncated: the producer stopped early; None: not told.
    """

    kind: str
    index: int
    total: int | None
    dropped: int | None
    collected: int
    producer: str = ""
    platform: str = ""
    is_truncated: bool | None = None

    @property
    def unaccounted(self) -> int | None:
        """Records that were written, not dropped, and did not arrive; negative: more arrived. None: not known."""
        return None if self.total is None else self.total - (self.dropped or 0) - self.collected


@frozen_class
class Records:
    """One capture of records, in the terms that all format versions share.

    Attributes:
        level_key: the key that held the level.
        level: 1 to 4, see ``layout.LEVELS``.
        metadata: the metadata object as it stands; for v1, which has none, what it would hold.
        sections: the lists of ``layout.RECORDS`` by name; those that the file does not have are not in it.
        unknown: keys that are not of this format, with begin and end of their values.
        size: bytes of the file.
        format_version: see ``format_versions``; empty: told by the shape of the rows.
        lists: the lists as they stand in the file; None: they are ``sections``.
        fanout: edges that stand in the records themselves (v1a).
        streams: what producers tell of their streams (v4, raw dumps).
        problems: what a reader met: stat, count, byte offset of the first.
        accounts: bytes decoded, of padding, and lost, where not every byte is text; None: as the lists tell.
        cut: of a file that is cut off: the byte behind the last element that was read; what follows is lost.
        partial: names of the lists that such a file ends in or before: their missing records are unknown; of a raw
            dump without header: the lists that it has no buffers of.
    """

    level_key: str
    level: int
    metadata: dict[str, Any]
    sections: dict[str, Section]
    unknown: tuple[tuple[str, int, int], ...] = ()
    size: int = 0
    format_version: str = ""
    lists: dict[str, Section] | None = None
    fanout: Deps | None = None
    streams: tuple[Stream, ...] = ()
    problems: tuple[tuple[str, int, int | None], ...] = ()
    accounts: tuple[int, int, int] | None = None
    cut: int | None = None
    partial: frozenset[str] = frozenset()

    def __getitem__(self, layout: Layout) -> Section:
        """Return a list, an empty one if the file has none."""
        return self.sections[layout.name] if layout.name in self.sections else empty(layout)

    @property
    def absent(self) -> frozenset[str]:
        """Names of the lists that are in other files: their records are not lost."""
        return self.partial if self.cut is None else frozenset()

    @property
    def as_read(self) -> dict[str, Section]:
        """The lists as they stand in the file, by name."""
        return self.sections if self.lists is None else self.lists


@frozen_class
class Deps:
    """One task graph file.

    Attributes:
        tasks: its tasks.
        edges: its edges, as they stand: several a pair, self edges among them.
        size: bytes of the file.
    """

    tasks: Section
    edges: Section
    size: int = 0


def dtype_of(cell: JsonField) -> np.dtype[Any]:
    """Return the type of a cell's values."""
    kinds = {"token": np.uint64, "boolean": np.bool_, "text": np.int32, "words": np.uint32}
    return np.dtype(kinds.get(cell.kind, np.int32 if cell.limit <= MAX_I32 else np.int64))
