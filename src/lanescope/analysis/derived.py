"""Registry of the analyses that SQL and reports request by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from lanescope.analysis import idle, idle_causes, occupancy, overlap, phases, region_stats
from lanescope.analysis.analysis_cache import AnalysisCache, once
from lanescope.analysis.critical_path import tables as path_tables
from lanescope.analysis.instances import PARENT
from lanescope.declaration import replace
from lanescope.errors import LanescopeError
from lanescope.trace import Column, ColumnSpec, Dictionary, LazyTable, Table, TableSpec

if TYPE_CHECKING:
    from lanescope.analysis.critical_path.answer import CriticalPath
    from lanescope.families.family import Family


@dataclass(frozen=True, slots=True)
class Analysis:
    """An analysis: its function and the declaration of its table.

    Attributes:
        spec: its declaration for a time unit.
        make: from what analyses share, and what an instance is, to the table.
    """

    spec: Callable[[str], TableSpec]
    make: Callable[[AnalysisCache, str], Table]


def _suspects_spec(unit: str) -> TableSpec:
    """Return the declaration of suspect slices; no column depends on the time unit."""
    return TableSpec(
        "suspects",
        "one slice that one finding of rules LS501 to LS510 suspects",
        (
            ColumnSpec("id", "int64", "dense, by finding and slice"),
            ColumnSpec("slice_id", "int64", "slice", references="slices"),
            ColumnSpec("code", "text", "rule code"),
            ColumnSpec("severity", "text", "severity of the finding: notice, warning, error"),
            ColumnSpec("detail", "text", "measured values of the finding"),
        ),
    )


def _suspects(shared: AnalysisCache, role: str) -> Table:
    """Return the slices that plausibility rules suspect, the findings in descending order of severity.

    They are the same whatever an instance is.
    """
    from lanescope.analysis import check  # only what reads the table pays for it

    findings = [
        finding
        for finding in check.run(shared.trace, select=["LS5"])
        if finding.evidence.table == "slices" and len(finding.evidence.ids)
    ]
    lengths = [len(finding.evidence.ids) for finding in findings]
    columns = {"id": Column.array(np.arange(sum(lengths)))}
    parts = [finding.evidence.ids for finding in findings]
    columns["slice_id"] = Column.array(np.concatenate([np.empty(0, np.int64), *parts]))
    for name in ("code", "severity", "detail"):
        texts = Dictionary()
        codes = texts.codes(getattr(finding, name) for finding in findings)
        columns[name] = Column.array(np.repeat(codes, lengths), dictionary=texts)
    return Table(_suspects_spec(shared.unit), columns)


def _in_units(spec: TableSpec, unit: str) -> TableSpec:
    """Return a declaration whose columns of durations name the time unit, as tables of SQL have it."""
    columns = {
        column.name: f"{column.name}_{unit}"
        for column in spec.columns
        if column.unit == unit and not column.name.endswith(("ts", "dur"))
    }
    return rename_spec(spec, spec.name, columns=columns)


def _for_sql(spec: Callable[[str], TableSpec], make: Callable[[AnalysisCache], Table]) -> Analysis:
    """Return the analysis of a table that the commands have, with columns as ``_in_units`` names them."""

    def made(shared: AnalysisCache, _: str) -> Table:
        table, named = make(shared), _in_units(spec(shared.unit), shared.unit)
        return Table(named, dict(zip(named.names, map(table.column, table.spec.names), strict=True)))

    return Analysis(lambda unit: _in_units(spec(unit), unit), made)


@once
def _path(shared: AnalysisCache, role: str) -> CriticalPath | None:
    """Return the critical paths; None where the families record no causes, or the trace has no slices."""
    from lanescope.analysis.critical_path.selection import path_of  # only what reads the tables pays for it
    from lanescope.analysis.critical_path.windows import WindowChoice

    try:
        return path_of(shared, WindowChoice())
    except LanescopeError:
        return None


def _path_table(spec: Callable[[str], TableSpec], make: Callable[[CriticalPath], Table]) -> Analysis:
    """Return the analysis of a table of critical paths; it is empty without any."""

    def made(shared: AnalysisCache) -> Table:
        path = _path(shared, PARENT)
        return Table.empty(spec(shared.unit)) if path is None else make(path)

    return _for_sql(spec, made)


ANALYSES: dict[str, Analysis] = {
    "overlap": Analysis(overlap.spec, overlap.overlap),
    "overlap_each": Analysis(partial(overlap.spec, each=True), partial(overlap.overlap, each=True)),
    "exposure": Analysis(overlap.exposure_spec, overlap.exposure),
    "occupancy": Analysis(occupancy.spec, lambda shared, _: occupancy.occupancy(shared)),
    "residency": Analysis(occupancy.spec, occupancy.occupancy),
    "residency_each": Analysis(occupancy.residency_spec, occupancy.residency_steps),
    "utilization": Analysis(occupancy.utilization_spec, occupancy.utilization),
    "idle": Analysis(idle.spec, idle.idle),
    "idle_causes": Analysis(idle_causes.causes_spec, idle_causes.causes),
    "idle_causes_each": Analysis(partial(idle_causes.causes_spec, each=True), partial(idle_causes.causes, each=True)),
    "region_stats": Analysis(region_stats.spec, region_stats.regions),
    "suspects": Analysis(_suspects_spec, _suspects),
    "phases": _for_sql(phases.phases_spec, phases.phases),
    "longest_gaps": _for_sql(phases.longest_spec, phases.longest_gaps),
    "critical_path_parts": _path_table(path_tables.parts_spec, lambda path: path.parts),
    "critical_path_summary": _path_table(path_tables.summary_spec, lambda path: path.summary),
    "critical_path_edges": _path_table(path_tables.edges_spec, lambda path: path.edges),
    "critical_path_waits": _path_table(path_tables.waits_spec, lambda path: path.waits),
    "slack": _path_table(path_tables.slack_spec, lambda path: path.slack),
}
#: Those about the slices that are there. Others are about lanes, whose time is told by all slices of the window.
_OF_ANY_SLICES = {"overlap", "overlap_each", "region_stats", "suspects"}
#: Paths are found over all slices, whatever a window leaves out.
_OF_PATHS = ("critical_path_", "slack")
#: Those that every trace has as a table, lanes of one group being an instance.
GENERIC = (
    "overlap",
    "exposure",
    "region_stats",
    "occupancy",
    "idle",
    "idle_causes",
    "utilization",
    "suspects",
    "phases",
    "longest_gaps",
    "critical_path_parts",
    "critical_path_summary",
    "critical_path_edges",
    "critical_path_waits",
    "slack",
)


def is_of_lanes(analysis: str) -> bool:
    """Return whether an analysis is about lanes, whose time is told by all slices of the window."""
    return bool(analysis) and analysis not in _OF_ANY_SLICES and not analysis.startswith(_OF_PATHS)


def names_of_lanes(families: Iterable[Family]) -> list[str]:
    """Return the names of the tables about lanes: those of every trace, and those of families."""
    own = [derived.name for family in families for derived in family.derived if is_of_lanes(derived.analysis)]
    return [name for name in GENERIC if is_of_lanes(name)] + own


def generic_table(shared: AnalysisCache, name: str) -> LazyTable:
    """Return the default table of an analysis."""
    return as_table(shared, name, name, (PARENT,))


def as_table(
    shared: AnalysisCache,
    analysis: str,
    name: str,
    wanted: tuple[str, ...],
    *,
    doc: str = "",
    columns: Mapping[str, str | None] = {},
) -> LazyTable:
    """Return the table of an analysis under another name.

    Args:
        shared: the trace.
        analysis: a name of ``ANALYSES``.
        name: the table's name.
        wanted: what an instance is; of several the first that the trace knows. The table is empty when it knows none.
        doc: what a row is; empty: as the analysis says.
        columns: other names of columns; None leaves a column out.

    Raises:
        KeyError: unknown analysis, or unknown column of it.
        UsageError: when the table is read: it needs slices that a window left out while it was read.
    """
    declared = ANALYSES[analysis].spec(shared.trace.time.time_unit)
    spec = rename_spec(declared, name, doc=doc, columns=columns)

    def make() -> Table:
        role = shared.first_known(wanted)
        if role is None:
            return Table.empty(spec)
        table = ANALYSES[analysis].make(shared.over_all_slices if is_of_lanes(analysis) else shared, role)
        kept = [column for column in table.spec.names if columns.get(column, column) is not None]
        return Table(spec, {new: table.column(old) for new, old in zip(spec.names, kept, strict=True)})

    return LazyTable(spec, make)


def rename_spec(spec: TableSpec, name: str, *, doc: str = "", columns: Mapping[str, str | None] = {}) -> TableSpec:
    """Return a declaration under another name; arguments as ``named``."""
    for column in columns:
        spec.column(column)
    kept = [(columns.get(column.name, column.name), column) for column in spec.columns]
    return TableSpec(
        name, doc or spec.doc, tuple(replace(column, name=new) for new, column in kept if new is not None), spec.key
    )
