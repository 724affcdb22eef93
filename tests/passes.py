"""A source of batches that are at hand, and traces cut into batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lanescope.trace import Trace
from lanescope.trace.streams import Progress, StreamInfo
from lanescope.trace.trace import SHARED


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


def cut(trace: Trace, cuts: Sequence[float]) -> list[Trace]:
    """Return the rows of a trace in batches: each of its row tables cut at the same shares of its length."""
    tables = trace.tables()
    found = []
    edges = [0.0, *sorted(cuts), 1.0]
    for number in range(len(edges) - 1):
        is_last = number == len(edges) - 2
        part = {}
        for name, table in tables.items():
            if name in SHARED:
                part[name] = table
            elif name in ("stats", "accounting"):
                part[name] = table if is_last else table.take(np.arange(0))
            else:
                first, last = (int(edge * len(table)) for edge in edges[number : number + 2])
                part[name] = table.take(np.arange(first, last))
        found.append(Trace(trace.time, part, {name: part[name] for name in trace.details}))
    return found
