"""Registry of the analyses that SQL and reports request by name, and their shared intermediate results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

from lanescope.analysis import idle, occupancy, overlap, region_stats
from lanescope.analysis.instances import ALL, LANE, PARENT, roles
from lanescope.analysis.lane_time import LaneTime
from lanescope.analysis.partition import LeafIntervals, Partition, leaf_intervals, partition
from lanescope.analysis.work_classes import CLASSES, classes, waits
from lanescope.trace import LazyTable, Table, TableSpec, Trace


class AnalysisCache:
    """Intermediate results of one trace, computed once for all analyses.

    Attributes:
        trace: the trace.
        given: patterns of names by kind of work, see ``work_classes.classify``.
    """

    def __init__(self, trace: Trace, given: Mapping[str, str] = {}) -> None:
        self.trace = trace
        self.given = given
        self._overlaps: dict[str, overlap.Overlap] = {}
        self._idle: dict[str, Table] = {}

    @cached_property
    def time(self) -> LaneTime:
        """The trace's lane times."""
        return LaneTime(self.trace)

    @cached_property
    def pieces(self) -> LeafIntervals:
        """Innermost region of each lane over time."""
        return leaf_intervals(self.time)

    @cached_property
    def partition(self) -> Partition:
        """Division of the time of each lane into states."""
        return partition(self.time, waits(self.trace, self.pieces, self.given), self.pieces)

    @cached_property
    def kinds(self) -> dict[str, str]:
        """The kind of work of each region by its name."""
        column = self.trace.slices.column("name")
        texts = column.dictionary.texts if column.dictionary is not None else []
        found = classes(self.trace, self.pieces, self.given).tolist()
        return {text: CLASSES[kind] for text, kind in zip(texts, found, strict=True)}

    def overlap(self, role: str) -> overlap.Overlap:
        """Concurrent time of regions."""
        if role not in self._overlaps:
            self._overlaps[role] = overlap.Overlap(self.time, role, self.given, self.pieces)
        return self._overlaps[role]

    def idle(self, role: str) -> Table:
        """Stretches in which lanes do no work."""
        if role not in self._idle:
            self._idle[role] = idle.idle(
                self.trace, role, given=self.given, time=self.time, pieces=self.pieces, parts=self.partition
            )
        return self._idle[role]

    def utilization(self, role: str) -> Table:
        """Division of the time of each instance into states."""
        return occupancy.utilization(
            self.trace, role, given=self.given, time=self.time, pieces=self.pieces, parts=self.partition
        )

    def known(self, *wanted: str) -> str:
        """Return the first of the units ``wanted`` that the trace knows, else the group right above a lane."""
        return self.first_known(wanted) or PARENT

    def first_known(self, wanted: tuple[str, ...]) -> str | None:
        """Return the first of the units ``wanted`` that the trace knows, None if it knows none."""
        known = {ALL, PARENT, LANE, *roles(self.trace)}
        return next((role for role in wanted if role in known), None)


@dataclass(frozen=True, slots=True)
class Analysis:
    """An analysis: its function and the declaration of its table.

    Attributes:
        spec: its declaration for a time unit.
        make: from what analyses share, and what an instance is, to the table.
    """

    spec: Callable[[str], TableSpec]
    make: Callable[[AnalysisCache, str], Table]


ANALYSES: dict[str, Analysis] = {
    "overlap": Analysis(overlap.spec, lambda s, role: overlap.overlap(s.trace, role, known=s.overlap(role))),
    "overlap_each": Analysis(
        partial(overlap.spec, each=True),
        lambda s, role: overlap.overlap(s.trace, role, each=True, known=s.overlap(role)),
    ),
    "exposure": Analysis(overlap.exposure_spec, lambda s, role: overlap.exposure(s.trace, role, known=s.overlap(role))),
    "occupancy": Analysis(
        occupancy.spec, lambda s, _: occupancy.occupancy(s.trace, None, time=s.time, pieces=s.pieces)
    ),
    "residency": Analysis(occupancy.spec, lambda s, role: occupancy.occupancy(s.trace, role, time=s.time)),
    "residency_each": Analysis(
        occupancy.residency_spec, lambda s, role: occupancy.residency_steps(s.trace, role, time=s.time)
    ),
    "utilization": Analysis(occupancy.utilization_spec, lambda s, role: s.utilization(role)),
    "idle": Analysis(idle.spec, lambda s, role: s.idle(role)),
    "idle_causes": Analysis(
        idle.causes_spec, lambda s, role: idle.causes(s.trace, role, time=s.time, rows=s.idle(role))
    ),
    "idle_causes_each": Analysis(
        partial(idle.causes_spec, each=True),
        lambda s, role: idle.causes(s.trace, role, each=True, time=s.time, rows=s.idle(role)),
    ),
    "region_stats": Analysis(
        region_stats.spec, lambda s, role: region_stats.regions(s.trace, role, time=s.time, pieces=s.pieces)
    ),
}
#: Those that every trace has as a table, lanes of one group being an instance.
GENERIC = ("overlap", "exposure", "region_stats", "occupancy", "idle", "idle_causes", "utilization")


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
