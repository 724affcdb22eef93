"""The evidence rows of findings, fetched from the batches of a trace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from lanescope.analysis.check.kept_rows import KeptRows
from lanescope.analysis.check.model import Finding
from lanescope.analysis.track_tree import Tree
from lanescope.common.distinct import distinct
from lanescope.common.intervals import Ints
from lanescope.trace import Table, Trace
from lanescope.trace.streams import SinglePass
from lanescope.trace.trace import SHARED

#: Columns that hold the lane, the start and the name of a row; the first that its table has.
_LANE = ("track_id", "src_track_id")
_TS = ("ts", "src_ts", "first_ts")
_NAME = ("name", "kind", "cause", "unit", "path")
#: All columns that are shown, of whatever table.
_SHOWN = frozenset((*_LANE, *_TS, *_NAME, "dur", "dst_ts"))
#: Rows that are objects at a time.
_AT_ONCE = 1 << 13


class EvidenceRow(NamedTuple):
    """One evidence row of a finding, whatever its table.

    Attributes:
        code: code of the rule.
        table: table of the row.
        id: its id.
        lane: path of its lane; of a flow, of its cause; empty without a lane.
        ts: its start, in the trace's unit; None without one.
        dur: its duration, in the same unit; None if it has none, or it is unknown.
        name: name of the work; of rows without a name their kind, cause or unit.
    """

    code: str
    table: str
    id: int
    lane: str
    ts: int | None
    dur: int | None
    name: str


class EvidenceRows(SinglePass):
    """An observer that keeps the evidence rows of findings about the batches that it sees.

    Where the memory is limited, they are on disk: of a long capture they may be millions.

    Args:
        findings: the findings.
        limit: rows to keep per finding, the first ones; None: all.
    """

    def __init__(self, findings: Iterable[Finding], limit: int | None = None) -> None:
        self._findings = [(finding, finding.evidence.ids[:limit]) for finding in findings]
        wanted: dict[str, list[Ints]] = {}
        for finding, ids in self._findings:
            wanted.setdefault(finding.evidence.table, []).append(ids)
        self._wanted = {name: distinct(np.concatenate(parts)) for name, parts in wanted.items()}
        self._kept: dict[str, KeptRows] = {}
        self._seen = dict.fromkeys(wanted, 0)
        self._tracks: Table | None = None

    def __len__(self) -> int:
        return sum(len(ids) for _, ids in self._findings)

    def add(self, batch: Trace) -> None:
        """Keep the wanted rows of the next batch."""
        self._tracks = batch.tracks
        tables = batch.tables()
        for name, ids in self._wanted.items():
            if name not in tables:
                continue
            table = tables[name].only(_SHOWN)
            if name in SHARED or name not in self._kept:  # of shared tables the last batch has all rows
                self._kept[name] = KeptRows(table.spec)
            first = 0 if name in SHARED else self._seen[name]
            begin, end = np.searchsorted(ids, [first, first + len(table)]).tolist()
            self._kept[name].add(ids[begin:end], table, ids[begin:end] - first)
            self._seen[name] = first + len(table)

    def result(self) -> Iterator[EvidenceRow]:
        """Yield the rows, finding by finding."""
        assert self._tracks is not None, "a stream has at least one batch"
        tree = Tree(self._tracks)
        kept = {name: rows.joined() for name, rows in self._kept.items()}
        for finding, ids in self._findings:
            name = finding.evidence.table
            for first in range(0, len(ids), _AT_ONCE):
                some = ids[first : first + _AT_ONCE]
                places, table = kept[name]
                rows = table.take(np.searchsorted(places, some)).rows()
                for row, values in zip(some.tolist(), rows, strict=True):
                    yield _described(finding.code, name, row, values, tree)


def _described(code: str, table: str, row: int, values: dict[str, Any], tree: Tree) -> EvidenceRow:
    track = _first(values, _LANE)
    ts, dur = _first(values, _TS), values.get("dur")
    if "dst_ts" in values and ts is not None:
        dur = values["dst_ts"] - ts
    if table == "tracks":
        track = row
    lane = tree.path(track) if track is not None and 0 <= track < len(tree) else ""
    return EvidenceRow(code, table, row, lane, ts, dur, str(_first(values, _NAME) or ""))


def _first(values: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((values[name] for name in names if name in values), None)
