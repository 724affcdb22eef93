"""What a benchmark hands in, and how to take a time that means something on a busy machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Row:
    """One measured figure.

    Attributes:
        name: what was measured, unique in its module.
        value: the figure; None: it could not be measured here, ``note`` says why.
        unit: its unit; ``x`` for ratios, which are what goals should speak of.
        goal: the figure to reach; None: it is only reported.
        higher_is_better: how the goal is meant.
        note: the absolute figures behind a ratio, versions of peers, sizes.
    """

    name: str
    value: float | None
    unit: str
    goal: float | None = None
    higher_is_better: bool = False
    note: str = ""

    @property
    def verdict(self) -> str:
        """``met``, ``MISSED``, ``not measured``, or empty where there is no goal."""
        if self.value is None:
            return "not measured"
        if self.goal is None:
            return ""
        is_met = self.value >= self.goal if self.higher_is_better else self.value <= self.goal
        return "met" if is_met else "MISSED"

    @property
    def fails(self) -> bool:
        """Whether ``--check`` fails for it: a goal that is missed, or that nobody could measure."""
        return self.goal is not None and self.verdict != "met"


class Seconds(NamedTuple):
    """Wall times of one function."""

    least: float
    median: float


def seconds(*functions: Callable[[], object], repeats: int = 5) -> list[Seconds]:
    """Return the times of functions that are to be compared.

    They run in turn, so that what else the machine does hits all of them alike; the first round is not counted, it
    pays for imports and page faults.
    """
    times: list[list[float]] = [[] for _ in functions]
    for turn in range(repeats + 1):
        for function, taken in zip(functions, times, strict=True):
            start = time.perf_counter()
            function()
            if turn:
                taken.append(time.perf_counter() - start)
    return [Seconds(min(taken), statistics.median(taken)) for taken in times]
