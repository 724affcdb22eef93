"""What a rule of ``check`` is and finds. Rules that hold for all traces stand in ``lanescope.analysis.check``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lanescope.trace import Trace

Ints = npt.NDArray[np.int64]

#: From the least to the worst.
SEVERITIES = ("notice", "warning", "error")
#: What a rule looks at: rows one by one, or the trace as a whole.
SCOPES = ("rows", "whole")


class RuleContext(Protocol):
    """A trace under examination, and what several rules need of it."""

    trace: Trace

    def rows_with_flag(self, table: str, flag: int) -> Ints:
        """Return the rows of slices or instants that carry a flag, int64."""

    def name(self, row: int) -> str:
        """Return the name of a slice."""

    def by_lane(self, table: str, rows: Ints) -> Iterator[tuple[int, Ints]]:
        """Yield (track id, its rows by time) for rows of ``slices``, ``instants`` or ``gaps``, lanes by id."""

    def violations(self, table: str, rows: Ints, detail: Callable[[Ints], str] = ...) -> Iterator[Violation]:
        """Yield a violation for each lane that the rows lie on; ``detail`` words it from the rows of the lane."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A promise that a sound trace keeps.

    Attributes:
        code: letters and three digits. ``LS`` are the rules for all traces; the first digit says what they are about:
            0 file and accounting, 1 lane, 2 causality, 3 clock, 4 attribution. Codes of a family begin with its name.
        title: a few words that name the fault.
        severity: ``notice`` (know it), ``warning`` (numbers may be wrong), ``error`` (something is contradictory);
            what the rule finds may be marked down or up where it says so in ``doc``.
        description: what a finding means.
        help: what to do about it.
        check: finds the violations in a ``RuleContext``; rows are positions in their table.
        scope: of a rule of a family: ``rows``: each row is judged by itself, so that large captures need not be held in
            memory; the context is one batch then, and what it has of the same detail on the same lane is one finding.
            ``whole``: the context is the whole trace.
    """

    code: str
    title: str
    severity: str
    description: str
    help: str
    check: Callable[[Any], Iterable[Violation]]
    scope: str = "whole"

    def __post_init__(self) -> None:
        """Refuse what no reader of a report would know."""
        if not re.fullmatch(r"[A-Z]{2,12}[0-9]{3}", self.code):
            raise ValueError(f"rule {self.code!r}: a code is 2 to 12 capital letters and three digits")
        if self.severity not in SEVERITIES or self.scope not in SCOPES:
            raise ValueError(f"rule {self.code} of severity {self.severity!r} and scope {self.scope!r}")


@dataclass(frozen=True, slots=True)
class Violation:
    """Result of a rule: violations of one kind at one location.

    Attributes:
        detail: one line, what exactly is wrong here; empty where the rule's title says it all.
        table: the table whose rows are the evidence.
        rows: their ids, int64 [n], all of them.
        count: how many faults; None: as many as rows.
        severity: where it differs from the rule's.
        track_id: lane concerned; the worst of several.
        ts: the earliest time concerned, on that lane if there is one.
        input_id: input concerned.
        offset: byte offset of the first fault in that input.
        stat: name of the stat that the violation comes from; empty if it comes from no stat.
    """

    detail: str = ""
    table: str = "slices"
    rows: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    count: int | None = None
    severity: str | None = None
    track_id: int | None = None
    ts: int | None = None
    input_id: int | None = None
    offset: int | None = None
    stat: str = ""
