"""What makes the bytes of a picture, for sinks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lanescope.trace import Trace


def encoder(format_: str, **options: Any) -> Callable[[Trace], Iterable[bytes]]:
    """Return what makes a file of a trace.

    Args:
        format_: ``svg`` or ``png``.
        options: as ``svg.draw`` takes them.
    """

    def encode(trace: Trace) -> Iterable[bytes]:
        from lanescope.view.picture import png, svg

        drawn = svg.draw(trace, **options)
        return [png.render(drawn) if format_ == "png" else drawn]

    return encode
