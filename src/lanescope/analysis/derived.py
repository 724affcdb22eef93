"""Registry of the analyses that SQL and reports request by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from lanescope.analysis import idle, occupancy, overlap, region_stats
from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.analysis.instances import PARENT
from lanescope.declaration import replace
from lanescope.trace import Column, ColumnSpec, Dictionary, LazyTable, Table, TableSpec


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


ANALYSES: dict[str, Analysis] = {
    "overlap": Analysis(overlap.spec, overlap.overlap),
    "overlap_each": Analysis(partial(overlap.spec, each=True), partial(overlap.overlap, each=True)),
    "exposure": Analysis(overlap.exposure_spec, overlap.exposure),
    "occupancy": Analysis(occupancy.spec, lambda shared, _: occupancy.occupancy(shared)),
    "residency": Analysis(occupancy.spec, occupancy.occupancy),
    "residency_each": Analysis(occupancy.residency_spec, occupancy.residency_steps),
    "utilization": Analysis(occupancy.utilization_spec, occupancy.utilization),
    "idle": Analysis(idle.spec, idle.idle),
    "idle_causes": Analysis(idle.causes_spec, idle.causes),
    "idle_causes_each": Analysis(partial(idle.causes_spec, each=True), partial(idle.causes, each=True)),
    "region_stats": Analysis(region_stats.spec, region_stats.regions),
    "suspects": Analysis(_suspects_spec, _suspects),
}
#: Those that every trace has as a table, lanes of one group being an instance.
GENERIC = ("overlap", "exposure", "region_stats", "occupancy", "idle", "idle_causes", "utilization", "suspects")


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
    """
    declared = ANALYSES[analysis].spec(shared.trace.time.time_unit)
    spec = rename_spec(declared, name, doc=doc, columns=columns)

    def make() -> Table:
        role = shared.first_known(wanted)
        if role is None:
            return Table.empty(spec)
        table = ANALYSES[analysis].make(shared, role)
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
