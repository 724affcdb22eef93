"""Overhead of probes: measured per kernel, stored with the trace, and never subtracted from its times."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from lanescope.devices.cuda.schema import OVERHEAD
from lanescope.trace import Table, Trace


@dataclass(frozen=True, slots=True)
class Overhead:
    """A kernel with its probes and without.

    Attributes:
        kernel: what it is called.
        runs: how often each was run.
        instrumented_ns, baseline_ns: how long it took with its probes and without, the median.
        instrumented_min_ns, baseline_min_ns: the shortest.
        min_delta_ticks: the smallest distance of two stamps in a row of one lane; None: no lane has two.
        resolution_ticks: the step of the stamps' clock, as far as this launch shows it; None: too few stamps.
        clock: the clock that ticks are of, ``globaltimer`` (ns) or ``clock64`` (cycles).
        is_simulated: there was no GPU; times are those of the simulated clock and mean nothing for one.
    """

    kernel: str
    runs: int
    instrumented_ns: float
    baseline_ns: float
    instrumented_min_ns: float
    baseline_min_ns: float
    min_delta_ticks: int | None
    resolution_ticks: int | None
    clock: str
    is_simulated: bool

    @property
    def slowdown(self) -> float | None:
        """Ratio of the median times with and without probes; None if the kernel took no time without them."""
        return self.instrumented_ns / self.baseline_ns if self.baseline_ns > 0 else None

    def __str__(self) -> str:
        """Return the figures on one line."""
        ratio = "no slowdown" if self.slowdown is None else f"x {self.slowdown:.4f}"
        unit = "ns" if self.clock == "globaltimer" else "cycles"
        gap = (
            "no two stamps" if self.min_delta_ticks is None else f"stamps at least {self.min_delta_ticks} {unit} apart"
        )
        step = "unknown" if self.resolution_ticks is None else f"{self.resolution_ticks} {unit}"
        simulated = ", on a simulated clock" if self.is_simulated else ""
        return (
            f"{self.kernel}: {self.instrumented_ns:,.0f} ns with probes, {self.baseline_ns:,.0f} ns without, {ratio}"
            f" ({self.runs} runs, medians{simulated}); {gap}, step of the clock {step}"
        )


def smallest_gap(trace: Trace) -> tuple[int | None, int | None]:
    """Return the smallest distance of two stamps in a row of one lane, and the step of their clock, in ticks."""
    (name,) = (name for name in ("cuda_ls2_records", "cuda_records") if name in trace.records)
    records = trace.records[name]
    is_stamp = records.values("kind") != "value"
    if name == "cuda_records":
        is_stamp = is_stamp & (records.values("slot") > 0)
    lane, stamp = records.values("lane")[is_stamp].astype(np.int64), records.values("time")[is_stamp].astype(np.int64)
    order = np.argsort(lane, kind="stable")
    lane, stamp = lane[order], stamp[order]
    # Stamps are 32 bits wide: a distance through zero is a small one, a ring's seam a large one.
    gaps = np.diff(stamp)[np.diff(lane) == 0] & 0xFFFFFFFF
    steps = trace.clocks.values("resolution_ticks")[trace.clocks.valid("resolution_ticks")]
    return int(gaps.min()) if len(gaps) else None, int(steps.min()) if len(steps) else None


def with_overhead(trace: Trace, found: Overhead) -> Trace:
    """Return the trace of one launch with the figures of its kernel in it."""
    row = {**asdict(found), "slowdown": found.slowdown, "input_id": int(trace.inputs.values("id")[0])}
    table = Table.from_arrays(OVERHEAD, {name: [row[name]] for name in OVERHEAD.names})
    core = {name: table for name, table in trace.tables().items() if name not in trace.details}
    return Trace(trace.time, core, {**trace.details, OVERHEAD.name: table}, trace.records)
