"""Which layout a buffer has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.cuda.formats import layout
from lanescope.devices.cuda.formats.buffer import Buffer
from lanescope.devices.cuda.formats.flashinfer import Rewritten
from lanescope.devices.cuda.formats.ls2 import Ls2Buffer
from lanescope.devices.cuda.formats.proton import ProtonBuffer
from lanescope.devices.cuda.formats.strided import StridedBuffer
from lanescope.devices.cuda.formats.tirx import header, scan
from lanescope.devices.cuda.formats.word_source import Words, WordSource, WordStore
from lanescope.errors import InputError, UsageError

#: Words that are looked at to tell the most common layout.
_FIRST = 1 << 12


def layout_of(content: WordSource) -> str:
    """Return the layout of a buffer, from its bytes.

    LS2 and Proton's file begin with words of their own. A tag of FlashInfer's second layout names the block of its slot
    and nothing else does so for all words; where TIRx's tags fit as well, they win. FlashInfer's first layout and
    warpscope's are words of TIRx and are never concluded.

    Args:
        content: the whole buffer, or its beginning.
    """
    first = content.beginning()
    words = first.words(8)
    if len(words) and int(words[0]) == layout.LS2_MAGIC:
        return layout.LS2
    if is_proton(first.words(4)):
        return layout.PROTON
    try:
        if is_flashinfer2(content.store()):
            return layout.FLASHINFER_V2
        return layout.TIRX_V1 if _names_lanes(words) else declared_layout(first, content.length) or layout.TIRX_V1
    except InputError:
        return declared_layout(first, content.length) or layout.TIRX_V1


def _names_lanes(words: Words) -> bool:
    """Return whether most words name the lane of their slot, as TIRx's do if the stride is the number of lanes.

    Raises:
        InputError: the header is missing, or no kernel writes it.
    """
    lanes = header(words).lanes
    found = scan(words[: max(_FIRST, 2 * lanes + 1)], lanes, lanes)
    return 2 * found.misplaced < found.used


def declared_layout(content: WordSource, size: int) -> str | None:
    """Return the declared layout that the beginning of a buffer has without doubt; None if there is none.

    Args:
        content: the beginning of the buffer, in memory.
        size: bytes of the whole buffer.
    """
    from lanescope.devices.cuda.formats.declared import recognition

    found = next(recognition.fits(content, size), None)
    return found.name if found is not None and found.is_certain else None


def is_proton(words: npt.NDArray[np.uint32]) -> bool:
    """Return whether 32-bit words, the whole file or its head, start like a Proton file."""
    if len(words) < 11 or words[0] != 1 or words[1] != 4 or words[2] != 40 + 4 * int(words[9]):
        return False
    first, rest = divmod(int(words[3]), 4)
    return not rest and (first >= len(words) or words[first] == layout.PROTON_PREAMBLE or not words[6])


def is_flashinfer2(words: WordStore) -> bool:
    """Return whether all words name the block of their slot, and not all of them the lane.

    Raises:
        InputError: the header is missing, or no kernel writes it.
    """
    geometry = header(words)
    # A lane stays on its SM, so where the first rows fit TIRx's tags all do.
    found = scan(words.beginning(max(_FIRST, 2 * geometry.lanes + 1)), geometry.lanes, geometry.lanes)
    if found.used and not found.misplaced:
        return False
    found = scan(words, geometry.lanes, geometry.lanes)
    if not found.misplaced:
        return False
    return Rewritten(words).agree == found.used


def _declared(content: WordSource, name: str, options: Mapping[str, Any]) -> Buffer:
    """Return the buffer of a file whose layout is declared."""
    from lanescope.devices.cuda.formats.declared import catalog
    from lanescope.devices.cuda.formats.declared.arrays import arrays_of
    from lanescope.devices.cuda.formats.declared.reader import DeclaredBuffer

    for option in ("stride", "max_records"):
        if options[option] is not None:
            flag = option.replace("_", "-")
            raise UsageError(f"--{flag} and layout {name} are mutually exclusive", hint=f"remove --{flag}")
    declaration = catalog.load(name)
    params = dict(options["layout_params"] or {})
    rate = options["clock_mhz"]
    if rate is not None and any(param.name == "clock_mhz" for param in declaration.user_params):
        params.setdefault("clock_mhz", round(rate))
    return DeclaredBuffer(declaration, arrays_of(content, declaration), params)


def read(content: WordSource, options: Mapping[str, Any]) -> Buffer:
    """Return the buffer of a file, its headers understood.

    Args:
        content: the whole file.
        options: of the family; ``layout`` and its parameters, ``stride``, ``max_records`` and ``clock_mhz`` matter.

    Raises:
        InputError: the file does not hold a buffer of the layout.
        UsageError: an option does not go with the layout.
    """
    name = options["layout"] or layout_of(content)
    if name not in layout.SHORT_NAMES.values():
        return _declared(content, name, options)
    if options["layout_params"]:
        raise UsageError(f"layout {name} has no parameters", hint="remove --layout-params")
    if name in (layout.LS2, layout.PROTON):
        for option in ("stride", "max_records"):
            if options[option] is not None:
                raise UsageError(f"--{option} and layout {name} are mutually exclusive", hint=f"remove --{option}")
        return Ls2Buffer(content.store()) if name == layout.LS2 else ProtonBuffer(content.words(4))
    return StridedBuffer(content.store(), name, stride=options["stride"], max_records=options["max_records"])
