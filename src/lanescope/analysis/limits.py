"""What a capture cannot prove, because of how it was recorded; and what to record differently."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from lanescope.errors import MissingDependencyError, UsageError
from lanescope.families import registry
from lanescope.families.declaration import described
from lanescope.families.limit import Limit
from lanescope.trace import Trace


class Unproven(NamedTuple):
    """One thing that a capture cannot prove.

    Attributes:
        family: the family that declares it; ``all`` if it holds for any capture.
        name: name of the limit.
        where: what of the capture it concerns.
        cannot: what cannot be proven.
        instead: what to record differently.
    """

    family: str
    name: str
    where: str
    cannot: str
    instead: str


def unproven(trace: Trace) -> list[Unproven]:
    """Return what a trace cannot prove; those of all captures first.

    Args:
        trace: tables of events may be empty, see ``Limit``.
    """
    found = [one for limit in COMMON for one in _apply("all", limit, trace)]
    for name in dict.fromkeys(str(name) for name in trace.inputs.values("family").tolist()):
        try:
            limits = registry.family(name).limits
        except (UsageError, MissingDependencyError):  # read from a folder; its family is not installed
            continue
        found += [one for limit in limits for one in _apply(name, limit, trace)]
    return found


def _apply(family: str, limit: Limit, trace: Trace) -> Iterator[Unproven]:
    try:
        where = list(limit.where(trace))
    except Exception as error:
        if family in registry.BUILTIN or family == "all":
            raise
        where = [f"not determined: {described(error)}"]
    if where:
        yield Unproven(family, limit.name, _listed(where), limit.cannot, limit.instead)


def _listed(where: Sequence[str], most: int = 4) -> str:
    more = len(where) - most
    return ", ".join(where[:most]) + (f" and {more} more" if more > 0 else "")


def _without_frequency(trace: Trace) -> Iterator[str]:
    if trace.time.time_unit == "cycles":
        yield from dict.fromkeys(trace.clocks.values("name").tolist() or ["all clocks"])


def _with_few_readings(trace: Trace) -> Iterator[str]:
    """Name the clocks of lanes that were read next to another clock fewer than twice.

    A clock without lanes is the other clock: its readings count for all. So is the clock of a host, which has no
    readings of its own.
    """
    clocks, anchors, tracks = trace.clocks, trace.anchors, trace.tracks
    readings = np.bincount(anchors.values("clock_id"), minlength=len(clocks))
    used = np.zeros(len(clocks), np.bool_)
    used[tracks.values("clock_id")[tracks.valid("clock_id")]] = True
    if (readings[~used] >= 2).any():
        return
    for clock in np.flatnonzero(used & (readings < 2)).tolist():
        device = str(clocks.values("device")[clock])
        if device != "host":
            yield f"{clocks.values('name')[clock]}{' of ' if device else ''}{device}"


def _without_coverage(trace: Trace) -> Iterator[str]:
    if not len(trace.coverage):
        yield "all lanes"


#: What any capture may be unable to prove.
COMMON = (
    Limit(
        "clock-frequency",
        "Durations in seconds: the frequency of the clock is not recorded.",
        "Note the clock frequency of the run, and pass it with --frequency or in the configuration.",
        _without_frequency,
    ),
    Limit(
        "clock-rate",
        "That the device clock ran at its rate from start to end, and where the run lies on the host's clock: both "
        "clocks were read together fewer than two times.",
        "Read device and host clock together before and after the run (anchors at both ends).",
        _with_few_readings,
    ),
    Limit(
        "recorded-time",
        "When lanes were recorded: idle time cannot be told from time that was not recorded.",
        "Record the start and the end of the recording of each lane.",
        _without_coverage,
    ),
)
