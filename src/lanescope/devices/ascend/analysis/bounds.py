"""What limits a run, as far as its dispatches and task graph tell: the scheduler, or tasks that wait for others."""

from __future__ import annotations

from collections.abc import Iterator

from lanescope.devices.ascend.analysis.overhead_report import core_idle, verdict
from lanescope.families.bounds import DEPENDENCY, SCHEDULER, Bound
from lanescope.trace import Trace


def bounds(trace: Trace) -> Iterator[Bound]:
    """Yield what limits a trace; nothing where no executions were recorded."""
    if "ascend_cores" not in trace.details:
        return
    for row in verdict(trace).rows():
        if row["group"] == "any type":
            yield Bound(SCHEDULER, "cores", row["overhead"], row["window"], row["at_most"], "summary --by overhead")
    for row in core_idle(trace).rows():
        # Cores of a type that no task needs wait for nothing.
        if row["group"].startswith("all ") and row["busy"]:
            waited = row["no_ready_task"]
            kind = row["group"].removeprefix("all ")
            subject = f"{kind.upper() if kind in ('aic', 'aiv') else kind} cores"
            yield Bound(DEPENDENCY, subject, waited, row["window"], waited, "summary --by core-idle")
