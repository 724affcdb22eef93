"""Totals without the slices that plausibility rules suspect, for summaries."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lanescope.analysis.plausibility.layer import Placed, Plausibility
from lanescope.analysis.plausibility.suspicion import Suspects
from lanescope.analysis.track_tree import Tree
from lanescope.common.intervals import group_starts
from lanescope.trace import Dictionary, Table, TableSpec, TimeBase, Trace
from lanescope.trace.schema import INSTANTS, SLICES
from lanescope.trace.streams import StreamInfo, bare

if TYPE_CHECKING:
    from lanescope.analysis.plausibility.thresholds import Thresholds

#: Columns that rules and sums read.
_READ = {
    SLICES: ("track_id", "ts", "dur", "name", "category", "last_known_ts"),
    INSTANTS: ("track_id", "ts"),
}
_SPECS = {
    spec.name: TableSpec(spec.name, spec.doc, tuple(spec.column(name) for name in names), spec.key)
    for spec, names in _READ.items()
}


class SuspectSum(NamedTuple):
    """Suspect slices of one group.

    Attributes:
        rules: codes of the rules; several: slices that any of them suspects.
        slices: how many slices.
        total: sum of their lengths, in the trace's unit.
    """

    rules: tuple[str, ...]
    slices: int
    total: int


class SuspectTotals:
    """An observer whose result is what the slices that plausibility rules suspect make of each group of a summary.

    One pass gives the profile that the rules judge. A second one sums up the slices that they suspect. Where that
    judgement needs rows itself (``Plausibility.is_settled``), these are kept until its end.

    Args:
        by: a grouping of ``groupings.SLICES``.
        thresholds: of the rules; None: the defaults.
        codes: rules that count; None: all.
    """

    def __init__(self, by: str, thresholds: Thresholds | None = None, codes: Collection[str] | None = None) -> None:
        self._by = by
        self._codes = codes
        self._plausibility = Plausibility(thresholds)
        self._last = Trace(TimeBase(), {})
        self._likely: Suspects | None = None
        self._suspects: Suspects | None = None
        self._seen = dict.fromkeys(_SPECS, 0)
        self._kept: dict[str, list[Placed]] = {name: [] for name in _SPECS}
        self._sums: dict[tuple[str | int, int], tuple[int, int]] = {}  # slices and length by group and rules

    def start(self, info: StreamInfo) -> None:
        """Begin; there is nothing to do."""

    def add(self, batch: Trace) -> None:
        """Take in the rows of the next batch."""
        self._last = bare(batch)
        self._plausibility.add(batch)

    def wants_replay(self) -> bool:
        """Tell whether some slices are suspect, or may be."""
        if not self._plausibility.needs_rows():
            return False
        self._likely = Suspects(self._plausibility.suspicions, self._plausibility.profile, self._codes)
        if self._plausibility.is_settled:
            self._suspects = self._likely
            return bool(self._suspects.codes)
        return True

    def replay(self, batch: Trace) -> None:
        """Sum up the suspect slices of the next batch, or keep what may be suspect."""
        for name, table in (("slices", batch.slices), ("instants", batch.instants)):
            positions = np.arange(self._seen[name], self._seen[name] + len(table))
            self._seen[name] += len(table)
            if self._suspects is None:
                wanted = self._plausibility.wanted(name, positions, table)
                if self._likely is not None:
                    wanted |= self._likely.among(name, positions, table) != 0
                rows = np.flatnonzero(wanted)
                if len(rows):
                    columns = {column: table.column(column).take(rows) for column in _SPECS[name].names}
                    self._kept[name].append((positions[rows], Table(_SPECS[name], columns)))
            elif name == "slices":
                self._add(self._suspects, (positions, table))

    def has_some(self) -> bool:
        """Return whether rules suspect any rows, of instants also; after ``result`` it is known for sure."""
        self.result()
        return self._suspects is not None and bool(self._suspects.codes)

    def result(self) -> dict[str, list[SuspectSum]]:
        """Return the suspects of each group that has some, by its text: rule by rule, then of all of them."""
        if self._suspects is None:
            if not any(self._seen.values()):
                return {}
            slices, instants = (_joined(self._kept[name], spec) for name, spec in _SPECS.items())
            self._plausibility.judge(slices, instants)
            self._suspects = Suspects(self._plausibility.suspicions, self._plausibility.profile, self._codes)
            self._add(self._suspects, slices)
        groups: dict[str, dict[int, tuple[int, int]]] = {}
        for (group, rules), (count, total) in self._sums.items():
            sums = groups.setdefault(self._text(group), {})
            before = sums.get(rules, (0, 0))
            sums[rules] = before[0] + count, before[1] + total
        return {group: list(_by_rules(self._suspects, sums)) for group, sums in groups.items()}

    def _add(self, suspects: Suspects, placed: Placed) -> None:
        """Sum up the suspect slices among some rows."""
        rules = suspects.among("slices", *placed)
        rows = np.flatnonzero(rules)
        if not len(rows):
            return
        slices = placed[1]
        column = self._by if self._by in ("name", "category") else "track_id"
        group, rules = slices.column(column).values[rows].astype(np.int64), rules[rows]
        length = np.where(slices.valid("dur"), slices.values("dur"), 0)[rows]
        order = np.lexsort((rules, group))
        group, rules, length = group[order], rules[order], length[order]
        first = np.flatnonzero(group_starts(group) | group_starts(rules))
        counts = np.diff(np.append(first, len(group)))
        totals = np.add.reduceat(length, first)
        keys: list[str | int] = group[first].tolist()
        if column != "track_id":
            texts = slices.column(column).dictionary or Dictionary([""])
            keys = [texts.texts[int(code)] for code in keys]
        for key, of, count, total in zip(keys, rules[first].tolist(), counts.tolist(), totals.tolist(), strict=True):
            before = self._sums.get((key, of), (0, 0))
            self._sums[key, of] = before[0] + count, before[1] + total

    def _text(self, group: str | int) -> str:
        """Return the text of a group, given as its name or as a track."""
        if isinstance(group, str):
            return group
        tree = self._tree
        return tree.path(tree.device(group) if self._by == "device" and 0 <= group < len(tree) else group)

    @cached_property
    def _tree(self) -> Tree:
        return Tree(self._last.tracks)


def _joined(kept: list[Placed], spec: TableSpec) -> Placed:
    """Return kept rows of a table as one."""
    if not kept:
        return np.empty(0, np.int64), Table.empty(spec)
    return np.concatenate([positions for positions, _ in kept]), Table.concat([table for _, table in kept])


def _by_rules(suspects: Suspects, sums: Mapping[int, tuple[int, int]]) -> Iterator[SuspectSum]:
    """Yield what each rule, then what all together suspect of a group, from its sums by set of rules."""
    for codes, bits in suspects.sets(sums):
        mine = [one for rules, one in sums.items() if rules & bits]
        yield SuspectSum(codes, sum(count for count, _ in mine), sum(total for _, total in mine))
