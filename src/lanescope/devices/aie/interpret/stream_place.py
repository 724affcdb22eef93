"""The place of a stream without packet headers: from an option, or from the configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lanescope.devices.aie.formats.detect import detect, is_without_headers, words_of
from lanescope.devices.aie.formats.events import MODULES
from lanescope.errors import UsageError

if TYPE_CHECKING:
    from lanescope.devices.aie.config import Config
    from lanescope.source import Capture

_TILE = re.compile(r"\s*(\d{1,3})\s*,\s*(\d{1,2})\s*,\s*(\w+)\s*")
_LAST_COLUMN, _LAST_ROW = 127, 31
_EVENT_TIME = 0


def header_of(capture: Capture, options: Mapping[str, Any], known: Config) -> int | None:
    """Return the header that a stream without headers gets; None: the capture has packets.

    Args:
        capture: the capture.
        options: decode options; ``tile`` is the place of the unit.
        known: the configuration; its only unit of the stream's mode is taken if no tile is given.

    Raises:
        UsageError: no place is known, or it is none.
    """
    head = capture.main.head()
    tile = options.get("tile")
    if not is_without_headers(head):
        if tile and detect(head).format:
            raise UsageError("--tile is only for streams without packet headers", hint="remove --tile")
        if tile:
            raise UsageError(
                f"{capture.main.path}: neither packets with headers nor the frames of one trace unit: streams of "
                "several units without headers cannot be separated",
                hint="record with keep_pkt_header on the trace route",
            )
        return None
    if tile:
        return _header(*_place(str(tile)))
    from lanescope.devices.aie.formats.layout import mode_of

    mode = mode_of(words_of(head.data[:64])[0])
    fitting = [
        unit
        for unit in known.units.values()
        if (unit.mode or _EVENT_TIME) == mode and (mode == _EVENT_TIME or unit.module == "core")
    ]
    if len(fitting) != 1:
        count = f"{len(fitting)} units of the configuration fit" if known.units else "its tile is unknown"
        what = f"{capture.main.path}: packets without headers: {count}"
        raise UsageError(what, hint="use --tile COL,ROW,TYPE, e.g. 1,2,core")
    return _header(fitting[0].col, fitting[0].row, fitting[0].module)


def _place(text: str) -> tuple[int, int, str]:
    found = _TILE.fullmatch(text)
    if found is None or found[3] not in MODULES or int(found[1]) > _LAST_COLUMN or int(found[2]) > _LAST_ROW:
        raise UsageError(
            f"invalid tile {text!r}: expected COL,ROW,TYPE", hint=f"use a TYPE of {', '.join(MODULES)}, e.g. 1,2,core"
        )
    return int(found[1]), int(found[2]), found[3]


def _header(column: int, row: int, module: str) -> int:
    from lanescope.devices.aie.formats.encode import header

    return header(MODULES.index(module), column, row, 0)
