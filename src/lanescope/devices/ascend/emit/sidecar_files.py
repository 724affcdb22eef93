"""What the files beside a capture add to its timeline: loaded only where there are any, as most captures have none."""

from __future__ import annotations

from lanescope.devices.ascend.emit import host_log, host_phases, pmu, scopes
from lanescope.devices.ascend.emit.context import RecordSlices, TimelineBuilder


def add_counters(canvas: TimelineBuilder, runs: RecordSlices) -> None:
    """Add hardware counters and resources of scopes."""
    pmu.add_pmu(canvas, runs)
    scopes.add_scopes(canvas)


def draw_host(canvas: TimelineBuilder) -> None:
    """Draw what the host did, by its own records and by its log."""
    host_log.add_log(canvas, host_phases.draw_host_phases(canvas))


def account(canvas: TimelineBuilder) -> None:
    """Add the accounting of every byte of these files, and of the records that never reached them."""
    parts = canvas.told.parts
    if parts.host_file is not None:
        host_phases.account_host_phases(canvas, parts.host_file, parts.sources["host_phases"].size)
    if parts.pmu is not None:
        pmu.account_pmu(canvas, parts.pmu, parts.sources["pmu"].size)
    if parts.scope_stats is not None:
        scopes.account_scopes(canvas, parts.scope_stats, parts.sources["scope_stats"].size)
    for part, log in parts.logs.items():
        host_log.account_log(canvas, part, log, parts.sources[part].size)
