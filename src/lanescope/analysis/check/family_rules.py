"""Rules declared by the families of a trace, and by other packages, applied batch by batch.

A rule that judges the whole trace makes all batches be kept. One that judges rows sees batch after batch; of those only
the rows that it names are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lanescope.analysis.check.engine import apply, assess, evaluate, rank, rules, rules_of
from lanescope.analysis.check.model import CheckContext, Evidence, Finding
from lanescope.analysis.plausibility.layer import Plausibility
from lanescope.common.intervals import Ints
from lanescope.families.plugin_rules import plugin_rules
from lanescope.families.rules import Rule, Violation
from lanescope.trace import Table, Trace
from lanescope.trace.trace import SHARED

_NO_INTS = np.empty(0, np.int64)
#: Tables whose rows name the tracks that they are on.
_PLACED = ("slices", "instants", "counters", "gaps", "coverage", "flows")


class FamilyRules:
    """Looks at batches with the rules of the families that made them.

    The families are those of the inputs that stand in the first batch.
    """

    def __init__(self) -> None:
        self.families: list[str] = []
        self._rules: tuple[Rule, ...] = ()
        self._batches: list[Trace] = []
        self._seen: dict[str, int] = {}
        self._hits: dict[str, list[_Hit]] = {}

    def add(self, batch: Trace) -> None:
        """Look at the next batch; the first one names the families."""
        if not self.families:
            self.families = [str(name) for name in batch.inputs.values("family").tolist()]
            self._rules = (*plugin_rules().rules, *rules_of(dict.fromkeys(self.families)))
        if any(rule.scope == "whole" for rule in self._rules):
            self._batches.append(batch)
        elif self._rules:
            self._last = batch
            subject = CheckContext(batch)
            for rule in self._rules:
                self._hits.setdefault(rule.code, []).extend(self._kept(hit) for hit in apply(rule, subject))
            for name, table in batch.tables().items():
                self._seen[name] = self._seen.get(name, 0) + len(table)

    def findings(
        self, covered: Ints, plausibility: Plausibility, *, select: Iterable[str] = (), ignore: Iterable[str] = ()
    ) -> list[Finding]:
        """Return what the rules find.

        Args:
            covered: time that the slices of each track cover, int64 [tracks].
            plausibility: has sums over the trace.
            select: codes, or beginnings of codes, of the rules to apply; empty: all.
            ignore: codes to leave out.
        """
        allowed = rules(select, ignore, families=self.families)
        chosen = [rule for rule in self._rules if rule in allowed]
        if self._batches:
            self._batches = [Trace.concat(self._batches)]
            return evaluate(CheckContext(self._batches[0]), chosen)
        return rank([finding for rule in chosen for finding in self._assessed(rule, covered, plausibility)])

    def slices(self, ids: Ints) -> Table:
        """Return slices that are evidence of the findings, by id, int64 [n]; after ``findings``."""
        if self._batches:
            return self._batches[0].slices.take(ids)
        hits = [
            (hit.fault.rows, hit.rows) for hits in self._hits.values() for hit in hits if hit.fault.table == "slices"
        ]
        there, first = np.unique(np.concatenate([rows for rows, _ in hits]), return_index=True)
        return Table.concat([table for _, table in hits if table is not None]).take(first[np.searchsorted(there, ids)])

    def _kept(self, hit: Violation) -> _Hit:
        """Return what a batch has of a fault, with rows as they stand in the whole trace."""
        first = 0 if hit.table in SHARED else self._seen.get(hit.table, 0)
        rows = self._last.tables()[hit.table].take(hit.rows) if hit.table in _PLACED else None
        return _Hit(replace(hit, rows=hit.rows + first), rows)

    def _assessed(self, rule: Rule, covered: Ints, plausibility: Plausibility) -> list[Finding]:
        """Return the findings of a rule that judges rows: what batches have of one fault is one."""
        faults: dict[tuple[object, ...], list[_Hit]] = {}
        for hit in self._hits.get(rule.code, []):
            fault = hit.fault
            key = fault.detail, fault.table, fault.severity, fault.track_id, fault.input_id
            faults.setdefault(key, []).append(hit)
        if not faults:
            return []
        by_lane = sorted(faults.values(), key=_lane)
        joined = [_joined([hit.fault for hit in hits]) for hits in by_lane]
        parts: dict[str, list[Table]] = {"slices": [self._last.slices.take(_NO_INTS)]}
        local, at = [], dict.fromkeys(_PLACED, 0)
        for fault, hits in zip(joined, by_lane, strict=True):
            if fault.table in at:
                first = at[fault.table]
                at[fault.table] += len(fault.rows)
                local.append(replace(fault, rows=np.arange(first, at[fault.table])))
                parts.setdefault(fault.table, []).extend(hit.rows for hit in hits if hit.rows is not None)
            else:
                local.append(fault)
        tables = {name: getattr(self._last, name) for name in SHARED}
        tables |= {name: Table.concat(some) for name, some in parts.items()}
        positions = np.concatenate([_NO_INTS, *(fault.rows for fault in joined if fault.table == "slices")])
        subject = _Covered(Trace(self._last.time, tables), covered, plausibility, positions)
        found = assess(subject, rule, local)
        return [
            replace(finding, evidence=Evidence(fault.table, fault.rows))
            for finding, fault in zip(found, joined, strict=True)
        ]


class _Hit(NamedTuple):
    """A fault in a batch, and the rows that are its evidence; None of a table that names no tracks."""

    fault: Violation
    rows: Table | None


def _lane(hits: Sequence[_Hit]) -> int:
    track = hits[0].fault.track_id
    return -1 if track is None else track


class _Covered(CheckContext):
    """A few slices of a trace, of which it is known how much time all of them cover."""

    def __init__(self, trace: Trace, covered: Ints, plausibility: Plausibility, positions: Ints) -> None:
        super().__init__(trace)
        self._all, self._sums, self._positions = covered, plausibility, positions

    @cached_property
    def plausibility(self) -> Plausibility:
        """Sums over the trace."""
        return self._sums

    def slice_positions(self, rows: Ints) -> Ints:
        """Return where slices stand in the whole trace, int64 [n]."""
        return self._positions[rows]

    @cached_property
    def covered(self) -> Ints:
        """Time that the slices of each track cover, int64 [tracks]."""
        return self._all


def _joined(faults: Sequence[Violation]) -> Violation:
    counts = [len(fault.rows) if fault.count is None else fault.count for fault in faults]
    times = [fault.ts for fault in faults if fault.ts is not None]
    offsets = [fault.offset for fault in faults if fault.offset is not None]
    return replace(
        faults[0],
        rows=np.concatenate([fault.rows for fault in faults]),
        count=sum(counts),
        ts=min(times, default=None),
        offset=min(offsets, default=None),
    )
