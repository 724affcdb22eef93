"""What the time of a trace can be summed by, and the sums: the same words in Python and on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lanescope.errors import UsageError
from lanescope.families import registry

if TYPE_CHECKING:
    from lanescope.analysis.analysis_cache import AnalysisCache
    from lanescope.families.family import Family
    from lanescope.trace import Table, Trace

#: Groups of slices.
SLICES = ("name", "lane", "device", "category")
#: Answers of analyses of regions, and what a unit is to each where it is not said.
REGIONS = {
    "region": ("sm", "block"),
    "overlap": ("block",),
    "idle": ("block",),
    "occupancy": ("block",),
}
#: Groups of lanes whose time can be summed.
UNITS = ("sm", "block", "core", "tile", "queue")
#: Those of them that are told by all slices of a window, whatever it selects.
OF_LANES = ("idle", "occupancy", *UNITS)


def families_with(by: str, names: Iterable[str]) -> list[Family]:
    """Return those of the named families that have a summary of this name."""
    known = set(names)
    # Finding the families of other packages takes a while: only where one of them may have the answer.
    others = registry.plugin_families() if known - set(registry.BUILTIN) else ()
    there = [family for family in (*registry.builtin(), *others) if family.name in known]
    return [family for family in there if by in [summary.name for summary in family.summaries]]


def family_of(trace: Trace, by: str) -> Family | None:
    """Return the family that has a summary; None where the question is one for every trace, or for none.

    Where no family of the trace has it, another one that has says better why it cannot be.
    """
    families = families_with(by, trace.inputs.values("family").tolist())
    if not families and by not in (*SLICES, *REGIONS, *UNITS):
        there = (*registry.builtin(), *registry.plugin_families())
        families = families_with(by, [family.name for family in there])
    return families[0] if families else None


def role_of(shared: AnalysisCache, by: str, within: str) -> str:
    """Return what a unit is to an analysis of regions; ``within``: as its user says, empty: the usual one."""
    return within or shared.known(*REGIONS.get(by, ()))


def region_answers(shared: AnalysisCache, by: str, within: str) -> list[Table]:
    """Return the tables of an analysis of regions or of units, all of one shape."""
    from lanescope.analysis import idle_causes, occupancy, overlap, region_stats

    role = role_of(shared, by, within)
    if by == "region":
        return [region_stats.regions(shared, role)]
    if by == "overlap":
        return [overlap.overlap(shared, role)]
    if by == "idle":
        return [idle_causes.causes(shared, role)]
    if by == "occupancy":
        parts = (occupancy.occupancy(shared, role), occupancy.occupancy(shared))
        return [occupancy.occupancy_stats(shared, part) for part in parts]
    return [occupancy.utilization(shared, by)]


def grouped(trace: Trace, by: str, within: str = "") -> Table:
    """Return the sums of a trace by one of the groupings, see ``lanescope.summary``.

    Raises:
        UsageError: no such grouping, or not for this trace; or a unit for sums that have none.
    """
    from lanescope.analysis.analysis_cache import AnalysisCache
    from lanescope.analysis.summary import summary
    from lanescope.trace import Table

    family = family_of(trace, by)
    if family is None and by not in (*SLICES, *REGIONS, *UNITS):
        own = [each.name for known in registry.builtin() for each in known.summaries]
        known = ", ".join(dict.fromkeys((*SLICES, *REGIONS, *UNITS, *own)))
        raise UsageError(f"unknown grouping {by!r} (choose from {known})")
    if within and (family is not None or by not in REGIONS):
        raise UsageError(f"sums by {by} take no unit", hint="use it with " + ", ".join(REGIONS))
    if family is not None:
        return family.summarise(by, trace)
    if by in SLICES:
        return summary(trace, by)
    shared = AnalysisCache(trace)
    if by in OF_LANES:
        shared = shared.over_all_slices  # a lane is not idle for what a window does not select
    tables = region_answers(shared, by, within)
    return tables[0] if len(tables) == 1 else Table.concat(tables).numbered()
