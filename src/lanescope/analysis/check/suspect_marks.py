"""Marks on suspect rows: which slices and instants the plausibility rules suspect, and the codes of those rules.

A batch gets the marks as detail tables, so writers treat them as they treat any other argument of a slice or an
instant.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.analysis.check.common_rules.plausibility import CODES
from lanescope.analysis.check.model import Finding
from lanescope.common.intervals import Ints
from lanescope.trace import Column, ColumnSpec, Dictionary, Table, TableSpec, Trace
from lanescope.trace.streams import StreamInfo

_CODES = ColumnSpec(
    "suspect", "text", "codes of the plausibility rules that suspect the row, joined by commas", is_argument=True
)
#: Marks of slices.
SUSPECT_SLICES = TableSpec(
    "suspect_slices",
    "slice that a plausibility rule suspects",
    (ColumnSpec("slice_id", "int64", "the slice", references="slices"), _CODES),
    key="slice_id",
)
#: Marks of instants.
SUSPECT_INSTANTS = TableSpec(
    "suspect_instants",
    "instant that a plausibility rule suspects",
    (ColumnSpec("instant_id", "int64", "the instant", references="instants"), _CODES),
    key="instant_id",
)
_SPECS = {"slices": SUSPECT_SLICES, "instants": SUSPECT_INSTANTS}


class Suspected(NamedTuple):
    """Suspect rows of one table.

    Attributes:
        positions: int64 [n] rising, where they stand in the whole trace.
        codes: int32 [n], the codes of the rules, joined by commas, in ``texts``.
        texts: each combination of codes once.
    """

    positions: Ints
    codes: npt.NDArray[np.int32]
    texts: Dictionary

    def among(self, table: Table, first: int, spec: TableSpec) -> Table:
        """Return the marks of rows, the first of which stands at ``first``."""
        begin, end = np.searchsorted(self.positions, [first, first + len(table)]).tolist()
        ids = table.values("id")[self.positions[begin:end] - first]
        codes = Column.array(self.codes[begin:end], dictionary=self.texts)
        return Table(spec, {spec.key: Column.array(ids), "suspect": codes})


def suspected(findings: Iterable[Finding], table: str) -> Suspected:
    """Return the rows of ``slices`` or ``instants`` that plausibility rules suspect."""
    by_code: dict[str, list[Ints]] = {}
    for finding in findings:
        if finding.code in CODES and finding.evidence.table == table and len(finding.evidence.ids):
            by_code.setdefault(finding.code, []).append(finding.evidence.ids)
    texts = Dictionary()
    if not by_code:
        return Suspected(np.empty(0, np.int64), np.empty(0, np.int32), texts)
    names = sorted(by_code)
    positions, row = np.unique(np.concatenate([ids for name in names for ids in by_code[name]]), return_inverse=True)
    bits = np.zeros(len(positions), np.int64)
    lengths = [sum(map(len, by_code[name])) for name in names]
    np.bitwise_or.at(bits, row.reshape(-1), np.repeat(1 << np.arange(len(names)), lengths))
    sets, which = np.unique(bits, return_inverse=True)
    codes = texts.codes(",".join(name for bit, name in enumerate(names) if one >> bit & 1) for one in sets.tolist())
    return Suspected(positions, codes[which.reshape(-1)], texts)


class SuspectMarks:
    """A transform that gives suspect slices and instants their marks.

    Args:
        findings: what is known of the whole stream.

    Attributes:
        count: number of suspect rows.
    """

    def __init__(self, findings: Iterable[Finding]) -> None:
        found = list(findings)
        self._suspected = {name: suspected(found, name) for name in _SPECS}
        self._seen = dict.fromkeys(_SPECS, 0)
        self.count = sum(len(one.positions) for one in self._suspected.values())

    def start(self, info: StreamInfo) -> StreamInfo:
        """Return the properties of the stream, which stay the same."""
        self._seen = dict.fromkeys(_SPECS, 0)
        return info

    def apply(self, batch: Trace) -> Trace:
        """Return the batch with its marks."""
        core, marks = batch.tables(), {}
        for name, spec in _SPECS.items():
            table = core[name]
            found = self._suspected[name].among(table, self._seen[name], spec)
            self._seen[name] += len(table)
            if len(found):
                marks[spec.name] = found
        if not marks:
            return batch
        events = {name: table for name, table in core.items() if name not in batch.details}
        return Trace(batch.time, events, {**batch.details, **marks}, batch.records)
