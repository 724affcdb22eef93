"""Decoding of a probe buffer that is in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lanescope.devices.cuda.family import FAMILY
from lanescope.devices.cuda.formats.layout import FLASHINFER_V2, TIRX_V1
from lanescope.devices.cuda.formats.word_layouts import tell
from lanescope.devices.cuda.formats.word_source import content_of
from lanescope.devices.cuda.probes.array_input import Bytes
from lanescope.errors import InputError
from lanescope.families.options import resolve_options
from lanescope.source.memory import MemoryCapture, own
from lanescope.trace import Trace


def decode_bytes(data: Bytes, name: str, options: Mapping[str, Any]) -> Iterator[Trace]:
    """Yield the batches of a buffer.

    Args:
        data: uint8 [n]; it may change afterwards.
        name: what the trace calls its input.
        options: decode options of the family as given; they are checked and completed here.

    Raises:
        InputError: the bytes are no buffer of the layout.
        UsageError: an unknown option, or an invalid value.
    """
    with MemoryCapture(own(data), name) as capture:
        yield from FAMILY.decode(capture, resolve_options(FAMILY.options, options, what=FAMILY.name)).finish()


def layout_of_peers(data: Bytes) -> str | None:
    """Return which layout of TIRx and FlashInfer a buffer has that is of one of them; None where neither fits alone.

    Args:
        data: uint8 [n].
    """
    try:
        content = content_of(data)
        names = tell(content, content.length).names
    except InputError:
        return None
    return next((name for name in (TIRX_V1, FLASHINFER_V2) if name in names), None)
