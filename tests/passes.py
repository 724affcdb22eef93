"""A source of batches that are at hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lanescope.trace import Trace
from lanescope.trace.streams import Progress, StreamInfo


class Passes:
    """Yields given batches at each pass, those of the last one again and again.

    Args:
        passes: the batches of each pass.
        info: what is promised of them.
    """

    def __init__(self, *passes: Sequence[Trace], info: StreamInfo | None = None) -> None:
        self.info = info or StreamInfo()
        self._passes = list(passes)

    def batches(self, progress: Progress | None = None) -> Iterator[Trace]:
        """Yield the batches of the next pass."""
        batches = self._passes.pop(0) if len(self._passes) > 1 else self._passes[0]
        yield from batches
