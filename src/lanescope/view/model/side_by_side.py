"""Two captures as one model: the same lanes one below the other, each capture from its own first time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING

from lanescope.analysis.partition import BUSY
from lanescope.errors import UsageError
from lanescope.trace import Table, Trace
from lanescope.trace.merge_tables import moved
from lanescope.view.model.findings import SEVERITIES, Place, RolledFinding
from lanescope.view.model.paired_tracks import PairedTracks
from lanescope.view.model.tables import ROWS, ViewColumn, ViewTable
from lanescope.view.model.tree import TreeRow
from lanescope.view.model.view_model import Side, ViewModel

if TYPE_CHECKING:
    from lanescope.analysis.compare.comparison import Comparison

#: What the captures are called.
NAMES = ("A", "B")
#: Groups that the verdict names, and sentences of each capture's own verdict.
_GROUPS, _SENTENCES = 4, 2
#: Tables that each capture has of its own.
_OWN = ("overlap", "idle", "phases")


class SideBySide(ViewModel):
    """Two traces as one model, and what differs between them.

    Rows and tracks of the second trace follow those of the first, in each table. Both begin at time 0: nothing tells
    that they were recorded at the same time.

    Args:
        one: the first trace.
        other: the second one.

    Raises:
        UsageError: one counts cycles, the other nanoseconds.
    """

    def __init__(self, one: Trace, other: Trace) -> None:
        units = [trace.time.time_unit for trace in (one, other)]
        if units[0] != units[1]:
            raise UsageError(
                f"A has times in {units[0]}, B in {units[1]}",
                hint="pass the frequency of the clock as a decode option to both captures, or to none",
            )
        self.models = ViewModel(one), ViewModel(other)
        super().__init__(_joined(self.models))

    @cached_property
    def sides(self) -> list[Side]:
        """The captures."""
        found = []
        for letter, model in zip(NAMES, self.models, strict=True):
            paths = [str(path) for path in model.trace.inputs.values("path").tolist()]
            name = PurePath(paths[0]).name if paths else ""
            found.append(
                Side(letter, name, model.window[0], model.span, len(model.trace.slices), len(model.tracks.lanes))
            )
        return found

    @cached_property
    def side(self) -> list[int]:
        """0 or 1 by track: which capture it is of."""
        return [number for number, model in enumerate(self.models) for _ in range(len(model.tracks))]

    @cached_property
    def comparison(self) -> Comparison:
        """What differs, as ``diff`` has it."""
        from lanescope.analysis.compare.verdicts import compare_runs
        from lanescope.pipeline.comparing import summarize

        by = ("name", "lane_kind")
        runs = [
            [summarize(model.trace, letter, by, has_sequences=True)]
            for letter, model in zip(NAMES, self.models, strict=True)
        ]
        return compare_runs(*runs)

    @cached_property
    def paired(self) -> PairedTracks:
        """Which tracks are the same in both."""
        first, second = self.models
        return PairedTracks((first.tracks, first.used), (second.tracks, second.used))

    @cached_property
    def tree(self) -> list[TreeRow]:
        """Rows of the lane list."""
        return self.paired.rows()

    @cached_property
    def busy(self) -> list[float | None]:
        """Part of its capture's span that slices of each track cover; None unless it is a lane."""
        return [share for model in self.models for share in model.busy]

    @cached_property
    def findings(self) -> list[RolledFinding]:
        """Findings of both by rule, those that only one has named so; the worst first."""
        places = [dict[tuple[str, str], RolledFinding](), dict[tuple[str, str], RolledFinding]()]
        for number, model in enumerate(self.models):
            places[number] = {(found.code, found.title): self._moved(found, number) for found in model.findings}
        found = [_both(places[0].get(key), places[1].get(key)) for key in dict.fromkeys([*places[0], *places[1]])]
        return sorted(found, key=lambda one: SEVERITIES.index(one.severity))

    def _moved(self, found: RolledFinding, side: int) -> RolledFinding:
        tracks, slices = (len(self.models[0].tracks), len(self.models[0].trace.slices)) if side else (0, 0)
        low = self.models[side].window[0]
        return found._replace(
            places=tuple(
                Place(
                    None if place.track is None else place.track + tracks,
                    None if place.ts is None else place.ts - low,
                    place.dur,
                    None if place.row is None else place.row + slices,
                    f"{NAMES[side]}: {place.detail}" if place.detail else NAMES[side],
                )
                for place in found.places
            )
        )

    @cached_property
    def words(self) -> list[tuple[str, str]]:
        """What differs in how they were recorded, in times and in groups of slices; then the verdict of each."""
        from lanescope.view.comparison.text import percent, remarks

        found = self.comparison
        words = [("Conditions", f"{one.kind} {one.name} differs: {one.detail}") for one in found.conditions[:_GROUPS]]
        for sentence in remarks(found):
            head, colon, rest = sentence.replace(" -> ", " → ").partition(": ")
            words.append((head.capitalize(), rest) if colon else ("", sentence))
        for group in found.named[:_GROUPS]:
            change = percent(group.effects["total"].change)
            words.append((" ".join(group.key[:1]), f"{group.verdict}{f': total {change}' if change else ''}"))
        for letter, model in zip(NAMES, self.models, strict=True):
            words += [(letter, f"{head}: {rest}" if head else rest) for head, rest in model.words[:_SENTENCES]]
        return words

    @property
    def path(self) -> None:
        """None: each capture has a critical path of its own."""

    @property
    def left_out(self) -> list[str]:
        """What a view of two captures does not have."""
        return ["The critical path: a report of one capture has that of it."]

    @cached_property
    def tables(self) -> list[ViewTable]:
        """What differs by name, lanes of both, and each capture's own tables."""
        found = [_compared(self.comparison), self._lanes()]
        own = [{table.id: table for table in model.tables} for model in self.models]
        for name in _OWN:
            found += [self._own(own[side][name], side) for side in (0, 1) if name in own[side]]
        return [table for table in found if table.rows]

    def _own(self, table: ViewTable, side: int) -> ViewTable:
        tracks, low = (len(self.models[0].tracks) if side else 0), self.models[side].window[0]
        kinds = [column.kind for column in table.columns]
        change = {"track": tracks, "moment": -low}
        rows = [
            [
                value + change[kind] if kind in change and value is not None else value
                for kind, value in zip(kinds, row, strict=True)
            ]
            for row in table.rows
        ]
        return table._replace(
            id=f"{table.id}-{NAMES[side].lower()}",
            title=f"{table.title} {NAMES[side]}",
            about=f"Of {NAMES[side]}. {table.about}",
            rows=rows,
        )

    def _lanes(self) -> ViewTable:
        unit = self.unit
        busy = [model.shared.lane_states[:, BUSY].tolist() for model in self.models]
        rows = []
        for one, other in self.paired.lanes():
            times = [None if at < 0 else int(busy[side][at]) for side, at in enumerate((one, other))]
            shares = [
                None if time is None else time / model.span for time, model in zip(times, self.models, strict=True)
            ]
            before, after = times
            change = after / before - 1 if before and after is not None else None
            track = one if one >= 0 else other + len(self.models[0].tracks)
            rows.append([track, *shares, *times, change])
        rows.sort(key=lambda row: -max(row[3] or 0, row[4] or 0))
        columns = [
            ViewColumn("lane", "track", about="lane; of B if A does not have it"),
            ViewColumn("share A", "share", about="busy time as a part of the span of A"),
            ViewColumn("share B", "share", about="busy time as a part of the span of B"),
            ViewColumn("busy A", "time", unit, "time that slices cover in A"),
            ViewColumn("busy B", "time", unit, "time that slices cover in B"),
            ViewColumn("change", "change", about="busy time of B as a part of that of A, minus 1"),
        ]
        about = "Lanes of the same name under groups of the same name are one row."
        return ViewTable("lanes", "Lanes", about, columns, rows[:ROWS], len(rows))


def _joined(models: tuple[ViewModel, ViewModel]) -> Trace:
    """Return a trace that has the rows of both, each from time 0, without raw records."""
    first, second = (model.trace.tables() for model in models)
    names = list(dict.fromkeys([*first, *second]))
    nothing = dict.fromkeys(names, 0)
    before = {name: len(first[name]) if name in first else 0 for name in names}
    tables: dict[str, Table] = {}
    for name in names:
        parts = []
        if name in first:
            parts.append(moved(first[name], nothing, -models[0].window[0]))
        if name in second:
            parts.append(moved(second[name], before, -models[1].window[0]))
        tables[name] = Table.concat(parts)
    details = {name: table for name, table in tables.items() if table.spec.key}
    return Trace(models[0].trace.time, tables, details)


def _both(one: RolledFinding | None, other: RolledFinding | None) -> RolledFinding:
    """Return the finding of a rule in both captures; ``one`` and ``other`` are not both None."""
    if one is None or other is None:
        found, letter = (other, NAMES[1]) if one is None else (one, NAMES[0])
        assert found is not None
        return found._replace(title=f"{found.title} (only {letter})")
    shares = [found.share for found in (one, other) if found.share is not None]
    places = sorted(
        (*one.places, *other.places),
        key=lambda place: (place.ts is None, place.ts or 0, place.track is None, place.track or 0),
    )
    return one._replace(
        severity=min(one.severity, other.severity, key=SEVERITIES.index),
        title=f"{one.title} (A {one.violations:,}, B {other.violations:,})",
        violations=one.violations + other.violations,
        share=max(shares) if shares else None,
        places=tuple(places),
    )


def _compared(found: Comparison) -> ViewTable:
    kinds = {"name": "name"}
    columns = [
        *(ViewColumn(by.replace("_", " "), kinds.get(by, "text"), about="identity of the group") for by in found.by),
        ViewColumn("verdict", "text", about="what the comparison says of it"),
        ViewColumn("change", "change", about="total of B as a part of that of A, minus 1"),
        ViewColumn("A", "time", found.unit, "time of all its slices in A"),
        ViewColumn("B", "time", found.unit, "time of all its slices in B"),
        ViewColumn("slices A", "count", about="slices in A"),
        ViewColumn("slices B", "count", about="slices in B"),
        ViewColumn("contribution", "time", found.unit, "what it adds to the change of all busy time"),
        ViewColumn("note", "text", about="why it was not tested, or how often it occurs"),
    ]
    rows = list(_groups(found))
    about = "Slices by name and kind of lane, B against A, those that the comparison names first."
    return ViewTable("compare", "Compare", about, columns, rows[:ROWS], len(rows))


def _groups(found: Comparison) -> Iterator[list[object]]:
    for group in found.groups:
        total, count = group.effects["total"], group.effects["count"]
        sums = [None if value is None else round(value) for value in (total.a, total.b, count.a, count.b)]
        yield [*group.key, group.verdict, total.change, *sums, group.contribution.change, group.reason]
