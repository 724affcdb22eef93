"""Tables that views show, from the products of the analyses, with a kind for each column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lanescope.analysis import idle_causes, overlap, phases
from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.analysis.critical_path.selected_parts import is_alone
from lanescope.analysis.partition import BUSY, IDLE, LOST, UNRECORDED
from lanescope.analysis.summary import summary
from lanescope.analysis.work_classes import CLASSES
from lanescope.errors import LanescopeError

if TYPE_CHECKING:
    from lanescope.analysis.critical_path.answer import CriticalPath
    from lanescope.trace import ColumnSpec, Table

#: Kinds of columns: a duration, a moment, a number of things, a part of a whole, any other number, a track, a name of
#: slices, a text; a signed part of a whole.
KINDS = ("time", "moment", "count", "share", "number", "track", "name", "text", "change")
#: Rows of a table that views get, and of the matrix of overlap.
ROWS, MATRIX = 400, 40
_TEXTS = ("text", "utf8")
#: Columns that mean something to machines only, or repeat another one.
_LEFT_OUT = {"id", "track", "window", "quality_id"}


class ViewColumn(NamedTuple):
    """One column.

    Attributes:
        name: what is above it.
        kind: one of ``KINDS``.
        unit: of ``time`` and ``moment`` that of the trace, else empty.
        about: what it is, in a phrase.
    """

    name: str
    kind: str
    unit: str = ""
    about: str = ""


class Matrix(NamedTuple):
    """How long each two names run at the same time.

    Attributes:
        names, kinds: of rows and columns, by time.
        shared: [names][names], time; all time of a name on the diagonal.
    """

    names: list[str]
    kinds: list[str]
    shared: list[list[int]]


class ViewTable(NamedTuple):
    """A table.

    Attributes:
        id, title, about: its name, its heading, and what it shows.
        columns: the columns.
        rows: the first ``ROWS``; None for what is unknown.
        total: how many there are.
        matrix: of overlap only.
    """

    id: str
    title: str
    about: str
    columns: list[ViewColumn]
    rows: list[list[Any]]
    total: int
    matrix: Matrix | None = None


def tables(shared: AnalysisCache, role: str, path: CriticalPath | None = None) -> list[ViewTable]:
    """Return the tables that have rows.

    Args:
        shared: the trace.
        role: what a unit is, in which names overlap and lanes wait for each other.
        path: its critical path; None: without a table of it.
    """
    found = [_names(shared)]
    for make in (_lanes, _overlap, _idle, _phases):
        try:
            found.append(make(shared, role))
        except LanescopeError:  # the trace knows no such units, or was read without some slices
            continue
    if path is not None:
        found.append(_path(shared, path))
    return [table for table in found if table.rows]


def _names(shared: AnalysisCache) -> ViewTable:
    about = "Slices by name. Medians and percentiles are lengths that occurred."
    return _made("names", "Names", about, summary(shared.trace), shared.unit, {"name": "name"})


def _lanes(shared: AnalysisCache, role: str) -> ViewTable:
    shared = shared.over_all_slices
    unit, tree = shared.unit, shared.time.tree
    states = shared.lane_states
    tracks = np.asarray(shared.trace.slices.values("track_id"))
    counts = np.bincount(tracks[(tracks >= 0) & (tracks < len(tree))], minlength=len(tree))
    span = max(shared.window, 1)
    columns = [
        ViewColumn("lane", "track", about="lane"),
        ViewColumn("slices", "count", about="slices on it"),
        ViewColumn("busy", "time", unit, "time that its slices cover"),
        ViewColumn("idle", "time", unit, "recorded time without a slice"),
        ViewColumn("unknown", "time", unit, "time in gaps, or after an unfinished slice"),
        ViewColumn("not recorded", "time", unit, "time that was not recorded"),
        ViewColumn("share", "share", about="busy time as a part of the whole span"),
    ]
    rows = []
    lanes = sorted(tree.lanes.tolist(), key=lambda lane: -int(states[lane, BUSY]))
    for lane in lanes[:ROWS]:
        mine = [int(states[lane, state]) for state in (BUSY, IDLE, LOST, UNRECORDED)]
        rows.append([lane, int(counts[lane]), *mine, mine[0] / span])
    about = "busy + idle + unknown + not recorded = the whole span, for each lane."
    return ViewTable("lanes", "Lanes", about, columns, rows, len(lanes))


def _overlap(shared: AnalysisCache, role: str) -> ViewTable:
    found = overlap.shared_time(shared, role)
    most = min(found.regions, MATRIX)
    matrix = Matrix(
        found.names[:most],
        [CLASSES[kind] for kind in found.kinds[:most].tolist()],
        found.matrix[:most, :most].tolist(),
    )
    table = overlap.overlap(shared, role)
    about = f"Time in which both run on lanes of one {_noun(role)}; only innermost names count."
    made = _made(
        "overlap", "Overlap", about, table, shared.unit, {"region": "name", "other_region": "name"},
        keep=lambda row: row["region"] != row["other_region"] and bool(row[f"overlap_{shared.unit}"]),
    )  # fmt: skip
    return made._replace(matrix=matrix)


def _idle(shared: AnalysisCache, role: str) -> ViewTable:
    about = "Why lanes do no work: waits, and bubbles between two slices, with what ended them."
    return _made(
        "idle", "Idle", about, idle_causes.causes(shared.over_all_slices, role), shared.unit, {"waits_for": "name"}
    )


def _phases(shared: AnalysisCache, role: str) -> ViewTable:
    table = phases.phases(shared.over_all_slices, "all")
    about = "All time of all lanes together, by what they did."
    made = _made("phases", "Phases", about, table, shared.unit, {"name": "name"})
    at = [number for number, column in enumerate(made.columns) if column.name != "track"]
    return made._replace(
        columns=[made.columns[number] for number in at], rows=[[row[number] for number in at] for row in made.rows]
    )


def _path(shared: AnalysisCache, path: CriticalPath) -> ViewTable:
    about = f"The critical path: what each {'cycle' if shared.unit == 'cycles' else 'nanosecond'} waited for."
    if path.selection is not None:
        about += f" It is that of all slices; shown is what is selected: {path.selection.asked}."
    elif is_alone(path.trace):
        about += " The trace is that of a window, read without the rest: causes outside of it are not followed."
    return _made("path", "Critical path", about, path.summary, shared.unit, {"name": "name"})


def _made(
    key: str,
    title: str,
    about: str,
    table: Table,
    unit: str,
    kinds: dict[str, str],
    keep: Callable[[dict[str, Any]], bool] | None = None,
) -> ViewTable:
    """Return a table of an analysis as views have it; ``kinds``: of columns of which their declaration cannot tell."""
    specs = [spec for spec in table.spec.columns if spec.name not in _LEFT_OUT]
    columns = [_column(spec, unit, kinds.get(spec.name, "")) for spec in specs]
    taken = {column.name for column in columns if column.kind != "time"}
    columns = [  # `region` and `region_ns`
        column._replace(name=f"{column.name} time") if column.kind == "time" and column.name in taken else column
        for column in columns
    ]
    rows: Iterator[dict[str, Any]] | list[dict[str, Any]] = iter(table.rows())
    total = len(table)
    if keep is not None:
        rows = [row for row in rows if keep(row)]
        total = len(rows)
    names = [spec.name for spec in specs]
    return ViewTable(key, title, about, columns, [_values(row, names) for row in islice(rows, ROWS)], total)


def _column(spec: ColumnSpec, unit: str, kind: str) -> ViewColumn:
    is_timed = spec.unit == unit or (spec.unit == "ns" and unit == "cycles")
    if not kind:
        if spec.type in _TEXTS or spec.type == "bool":
            kind = "text"
        elif spec.references == "tracks":
            kind = "track"
        elif spec.is_time:
            kind = "moment"
        elif is_timed:
            kind = "time"
        elif spec.name.endswith(("share", "fraction")) or spec.unit == "1":
            kind = "share"
        else:
            kind = "number" if spec.type == "float64" else "count"
    name = spec.name.removesuffix(f"_{unit}").removesuffix("_id").replace("_", " ")
    return ViewColumn(name, kind, unit if kind in ("time", "moment") else "", spec.doc.replace("`", ""))


def _values(row: dict[str, Any], names: Sequence[str]) -> list[Any]:
    return [row[name].item() if hasattr(row[name], "item") else row[name] for name in names]


def _noun(role: str) -> str:
    return {"parent": "group", "all": "trace", "sm": "SM"}.get(role, role)
