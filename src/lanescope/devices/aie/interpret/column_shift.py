"""What the headers of a capture tell: which column of the device a design begins in, and whether units share tiles."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.devices.aie.formats.detect import is_text
from lanescope.devices.aie.formats.layout import HEADER, module_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lanescope.devices.aie.config import Config, Place
    from lanescope.source import Source

U32 = npt.NDArray[np.uint32]

_ENTRIES = 1 << 15
_NO_OFFSETS = np.empty(0, np.int64)


def column_shift(source: Source, known: Config, given: int | None) -> tuple[int, int]:
    """Return column of a packet minus column of the design, and how many shifts fit as well.

    The one that is given, or stands in the configuration. Else that under which most traced units are configured ones;
    among equals none at all, or the one that puts the leftmost units over each other.
    """
    if given is not None or known.column_shift is not None:
        return (given if given is not None else known.column_shift or 0), 1
    if not known.places:
        return 0, 1
    units = _units(_headers(source.chunks(), source))
    fits = Counter(
        col - design_col
        for module, col, row in units
        for design_module, design_col, design_row in known.places
        if (module, row) == (design_module, design_row)
    )
    if not fits:
        return 0, 1
    most = max(fits.values())
    best = sorted(shift for shift, count in fits.items() if count == most)
    leftmost = min(col for _, col, _ in units) - min(col for _, col, _ in known.places)
    return next((shift for shift in (0, leftmost) if shift in best), best[0]), len(best)


def has_shared_tiles(source: Source) -> bool:
    """Return whether core and memory of any tile recorded, by the headers in the first bytes of a dump."""
    units = _units(_headers([source.head().data], source))
    return any(("mem", *tile) in units for module, *tile in units if module == "core")


def _units(headers: Iterable[int]) -> set[Place]:
    return {(module_of(header), header["column"], header["row"]) for header in map(HEADER.decode, headers)}


def _headers(chunks: Iterable[memoryview | bytes], source: Source) -> list[int]:
    """Return the headers of all sources in these parts of a dump."""
    reader = core.AieText() if is_text(source.head().data) else None
    scanner = core.AieScanner()
    entries = np.empty((_ENTRIES, 4), np.int32)
    rest = np.empty(0, np.uint32)

    def scan(words: U32, *, is_last: bool) -> U32:
        taken = 1
        while taken and len(words):
            taken, _ = scanner.scan(words, is_last, 0, _NO_OFFSETS, entries)
            words = words[taken:]
        return words.copy()

    waiting = b""
    for chunk in chunks:
        data = np.frombuffer(waiting + bytes(chunk), np.uint8)
        if reader is None:
            waiting = data[len(data) // 4 * 4 :].tobytes()
            words = data[: len(data) // 4 * 4].view("<u4")
        else:
            words, offsets = np.empty(len(data) // 2 + 2, np.uint32), np.empty(len(data) // 2 + 2, np.int64)
            words = words[: reader.read(data, words, offsets)]
        rest = scan(np.concatenate([rest, words]), is_last=False)
    if reader is not None:
        words, offsets = np.empty(1, np.uint32), np.empty(1, np.int64)
        rest = np.concatenate([rest, words[: reader.finish(words, offsets)]])
    scan(rest, is_last=True)
    return list(scanner.headers)
