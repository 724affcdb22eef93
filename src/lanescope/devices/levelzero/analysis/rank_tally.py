"""Sums of a parallel program: of all ranks together, with how unequal they are, and of each rank.

A process without a rank counts under the name of its recording, or as its host and number.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lanescope.devices.levelzero.analysis.sums import SUMS, Sums
from lanescope.devices.levelzero.analysis.tally import SECTIONS, entries
from lanescope.trace import ColumnSpec, Table, TableSpec, Trace

#: What stands in place of a rank where all are summed.
ALL = "all"

TALLY = TableSpec(
    "levelzero_rank_tally",
    "host calls, device operations or memory traffic with the same name, of all ranks or of one",
    (
        ColumnSpec("id", "int64", "row number, dense: all ranks together, then each; by section and descending total"),
        ColumnSpec("rank", "utf8", "rank of a parallel program, or name of the recording; all: the sum"),
        ColumnSpec("section", "utf8", "section: host, device, traffic"),
        ColumnSpec("name", "utf8", "function, kernel, or copy with its memory kinds"),
        ColumnSpec("ranks", "int64", "number of ranks in which it occurs"),
        *SUMS,
        ColumnSpec("least", "int64", "smallest total of a rank; NULL in rows of one rank", nullable=True),
        ColumnSpec("most", "int64", "largest total of a rank; NULL in rows of one rank", nullable=True),
        ColumnSpec("most_rank", "utf8", "rank with the largest total; NULL in rows of one rank", nullable=True),
        ColumnSpec(
            "imbalance",
            "float64",
            "largest total of a rank over the mean of all ranks, less 1; NULL if that is 0, or in rows of one rank",
            nullable=True,
            unit="1",
        ),
    ),
)


class RankTally:
    """Sums recordings one after the other; what it keeps grows with ranks and names only."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str], dict[str, Sums]] = {}
        self._order: dict[str, tuple[int, int, str]] = {}

    def add(self, trace: Trace, name: str) -> None:
        """Add a trace.

        Args:
            trace: a trace of this family.
            name: of the recording, where its processes have no ranks; empty: they are named one by one.

        Raises:
            UsageError: the trace is of another family.
        """
        found = entries(trace, each=True)
        labels: dict[tuple[Any, Any], str] = {}
        for row in trace.details["levelzero_threads"].rows():
            rank = row.get("rank")
            label = name or f"{row['host']}:{row['pid']}" if rank is None else str(rank)
            labels[row["host"], row["pid"]] = label
            self._order.setdefault(label, (1, 0, label) if rank is None else (0, rank, ""))
        for entry in found:
            label = labels[entry.where[0], entry.where[1]]
            self._sums.setdefault((entry.section, entry.name), {}).setdefault(label, Sums()).add(entry)

    def result(self) -> Table:
        """Return the sums."""
        ranks = sorted(self._order, key=self._order.__getitem__)
        rows = [self._whole(*key, parts, ranks) for key, parts in self._sums.items()]
        rows.sort(key=lambda row: (SECTIONS.index(row["section"]), -row["total"], row["name"]))
        whole = list(rows)
        for rank in ranks:
            for row in whole:
                part = self._sums[row["section"], row["name"]].get(rank)
                if part is not None:
                    rows.append(self._row(rank, row["section"], row["name"], part))
        return Table.from_arrays(
            TALLY,
            {
                "id": range(len(rows)),
                **{name: [row[name] for row in rows] for name in TALLY.names if name != "id"},
            },
        )

    def _whole(self, section: str, name: str, parts: dict[str, Sums], ranks: list[str]) -> dict[str, Any]:
        whole = Sums()
        for part in parts.values():
            whole.add(part)
        totals = [parts.get(rank, Sums()) for rank in ranks]
        least, most = (choose(totals, key=lambda part: part.total) for choose in (min, max))
        return {
            **self._row(ALL, section, name, whole),
            "ranks": len(parts),
            "least": least.stored,
            "most": most.stored,
            "most_rank": ranks[totals.index(most)],
            "imbalance": most.total * len(ranks) / whole.total - 1 if whole.total else None,
        }

    @staticmethod
    def _row(rank: str, section: str, name: str, part: Sums) -> dict[str, Any]:
        return {
            "rank": rank,
            "section": section,
            "name": name,
            "ranks": 1,
            "count": part.count,
            "errors": part.errors,
            "open": part.open,
            "total": part.stored,
            "average": part.average,
            "min": part.min,
            "max": part.max,
            "least": None,
            "most": None,
            "most_rank": None,
            "imbalance": None,
        }


def rank_tally(trace: Trace) -> Table:
    """Return the sums of the ranks of one recording."""
    made = RankTally()
    made.add(trace, "")
    return made.result()


def rank_tally_of_all(traces: Iterable[tuple[str, Trace]]) -> Table:
    """Return the sums of several recordings, each read when its turn comes.

    Args:
        traces: names and traces; of recordings whose processes have no ranks, each counts as one.
    """
    made = RankTally()
    for name, trace in traces:
        made.add(trace, name)
    return made.result()
