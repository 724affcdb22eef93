"""Which layout a buffer has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.cuda.formats import layout, word_layouts
from lanescope.devices.cuda.formats.buffer import Buffer
from lanescope.devices.cuda.formats.ls2 import Ls2Buffer
from lanescope.devices.cuda.formats.proton import ProtonBuffer
from lanescope.devices.cuda.formats.strided import StridedBuffer
from lanescope.devices.cuda.formats.word_source import FileBytes, WordSource
from lanescope.errors import InputError, UsageError


def layout_of(content: WordSource) -> str:
    """Return the layout of a buffer that is one of a probe; ``judge`` says how.

    Raises:
        InputError: several layouts fit, and nothing distinguishes them.
    """
    return judge(content)[0]


def judge(content: WordSource) -> tuple[str, bool]:
    """Return the layout of a buffer that is one of a probe, and whether it is assumed: others fit as well.

    LS2 and Proton's file begin with words of their own. Of the others that one is concluded which nothing excludes.
    FlashInfer's first layout and warpscope's are words of TIRx and are never concluded. TIRx is assumed where several
    fit and it is one of them, and where none does.

    Args:
        content: the whole buffer, or its beginning.

    Raises:
        InputError: several other layouts fit, and nothing distinguishes them.
    """
    first = content.beginning()
    words = first.words(8)
    if len(words) and int(words[0]) == layout.LS2_MAGIC:
        return layout.LS2, False
    if is_proton(first.words(4)):
        return layout.PROTON, False
    try:
        told = word_layouts.tell(first, content.length, content.store())
    except InputError:
        return declared_layout(first, content.length) or layout.TIRX_V1, False
    if told.is_ambiguous:
        if not told.may_be_tirx:
            raise word_layouts.ambiguity(told)
        # The beginning of a large grid has few records of each lane.
        is_known = set(told.names) == {layout.TIRX_V1, word_layouts.TRANSPILER} and len(words) < content.length // 8
        return layout.TIRX_V1, not (is_known and word_layouts.is_finalized(content.store()))
    name = told.name or declared_layout(first, content.length)
    # A header without records is the same in all of these layouts.
    return name or layout.TIRX_V1, name is None and told.used > 0


def declared_layout(content: WordSource, size: int) -> str | None:
    """Return the declared layout of larger records that the beginning of a buffer has without doubt; None without.

    Args:
        content: the beginning of the buffer, in memory.
        size: bytes of the whole buffer.
    """
    from lanescope.devices.cuda.formats.declared import recognition

    found = (
        fit.name for fit in recognition.fits(content, size) if fit.is_certain and fit.name not in word_layouts.TAGS
    )
    return next(found, None)


def is_proton(words: npt.NDArray[np.uint32]) -> bool:
    """Return whether 32-bit words, the whole file or its head, start like a Proton file."""
    if len(words) < 11 or words[0] != 1 or words[1] != 4 or words[2] != 40 + 4 * int(words[9]):
        return False
    first, rest = divmod(int(words[3]), 4)
    return not rest and (first >= len(words) or words[first] == layout.PROTON_PREAMBLE or not words[6])


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
    name, is_assumed = (options["layout"], False) if options["layout"] else judge(content)
    if name not in layout.SHORT_NAMES.values():
        return _declared(content, name, options)
    if options["layout_params"]:
        raise UsageError(f"layout {name} has no parameters", hint="remove --layout-params")
    if name in (layout.LS2, layout.PROTON):
        for option in ("stride", "max_records"):
            if options[option] is not None:
                raise UsageError(f"--{option} and layout {name} are mutually exclusive", hint=f"remove --{option}")
        if name == layout.LS2:
            return Ls2Buffer(content.store())
        data = content.bytes()
        return ProtonBuffer(data if isinstance(data, FileBytes) else content.words(4))
    return StridedBuffer(
        content.store(),
        name,
        stride=options["stride"],
        max_records=options["max_records"],
        is_assumed=is_assumed,
    )
