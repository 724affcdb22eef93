"""What a family knows of the limits of a run: ``lanescope explain`` puts it into words."""

from __future__ import annotations

from typing import NamedTuple

#: What can limit a run, as far as a family tells from its own records.
SCHEDULER, DEPENDENCY, COMMUNICATION, COMPUTE, MEMORY, STREAM, LOCK = (
    "scheduler",
    "dependency",
    "communication",
    "compute",
    "memory",
    "stream",
    "lock",
)
CAUSES = (SCHEDULER, DEPENDENCY, COMMUNICATION, COMPUTE, MEMORY, STREAM, LOCK)

#: Share of the time of cores, or of the time in which any of them idled, from which a scheduler is late.
LATE = 0.05
#: Subject of time in which cores of at least one type idled, not summed over cores.
ANY_CORES = "cores"


class Bound(NamedTuple):
    """Time that one cause took from a run.

    Attributes:
        cause: one of ``CAUSES``.
        subject: what it was taken from: ``core (1, 2)``, ``all aic``.
        dur: how long, in the trace's time unit, summed over lanes.
        window: of how much time, summed over the same lanes.
        at_most: how long it may have been where the records do not decide; equal to ``dur`` where they do.
        shown_by: the command that shows it, without the file: ``summary --by verdict``.
    """

    cause: str
    subject: str
    dur: int
    window: int
    at_most: int
    shown_by: str
