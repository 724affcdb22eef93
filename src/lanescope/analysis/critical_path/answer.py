"""Critical paths of a trace: parts, sums, slack, and what a change would gain."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.analysis.critical_path import tables
from lanescope.analysis.critical_path.event_graph import BOUNDS, CAUSES, ENOUGH, FREE, LAGS, PathParts
from lanescope.analysis.critical_path.selected_parts import Selection, is_alone
from lanescope.analysis.critical_path.trace_graph import EdgeCounts, TraceGraph
from lanescope.analysis.critical_path.windows import PathWindow, WindowChoice, windows
from lanescope.common.distinct import distinct
from lanescope.common.intervals import Ints
from lanescope.errors import UsageError
from lanescope.trace import Column, Dictionary, Table, Trace
from lanescope.trace.column import Mask

WORK, WAIT, LATENCY, DELAY, IDLE, RESOURCE, UNKNOWN, NO_CAUSE, AFTER = range(len(CAUSES))
#: Causes that say where the time went.
EXPLAINED = (WORK, LATENCY, RESOURCE)
#: What changes of kinds of causes begin with; else they are of the work of a name.
_OF_KIND = "kind:"
#: Causes whose parts are named after their slice.
_NAMED = (WORK, WAIT, LATENCY, DELAY, RESOURCE)
#: Qualities of parts, the best first.
_QUALITIES = ("exact", "estimated", "inferred")
ASSUMES = "same lanes, same order, lags that do not depend on load"


class Sensitivity(NamedTuple):
    """What the path would be if the second latest cause had bound the part that is least explained.

    Attributes:
        ts: begin of the part.
        dur: its length.
        cause: its cause, index into ``CAUSES``.
        kind: kind of the cause, empty without one.
        other: the second latest cause: a kind, ``lane`` or empty if none is known.
        shares: share of the window by cause with it, by index into ``CAUSES``; as they are without one.
    """

    ts: int
    dur: int
    cause: int
    kind: str
    other: str
    shares: tuple[float, ...]


class WindowPath:
    """The path of one window.

    Attributes:
        window: the window and its sink.
        parts: the parts.
        totals: int64 [causes], time by cause.
    """

    def __init__(self, made: TraceGraph, window: PathWindow) -> None:
        self._made = made
        self.window = window
        self.parts = self._walk(None)
        self.totals = _totals(self.parts)

    def _walk(self, swapped: tuple[int, int] | None) -> PathParts:
        made, window = self._made, self.window
        return made.graph.walk(
            window.begin,
            window.end,
            window.sink,
            cut=window.cut,
            gaps=made.gaps,
            idle=made.not_recorded,
            swapped=swapped,
        )

    @property
    def length(self) -> int:
        """Length of the window."""
        return self.window.end - self.window.begin

    @property
    def shares(self) -> tuple[float, ...]:
        """Share of the window by cause."""
        return tuple((self.totals / max(self.length, 1)).tolist())

    @property
    def explained(self) -> float:
        """Share of the window that is work, latency or waiting for a resource."""
        return sum(self.shares[cause] for cause in EXPLAINED)

    @property
    def inferred(self) -> float:
        """Share of the window that comes from inferred causes."""
        kinds = self._made.graph.kinds
        is_inferred = np.array([*(kind.is_inferred for kind in kinds), False])[self.parts.kind]
        lengths = self.parts.end - self.parts.begin
        return int(lengths[is_inferred].sum()) / max(self.length, 1)

    @property
    def at_ends(self) -> dict[str, int]:
        """Causes that the path follows from the end of their slice, as no moment is recorded: how many by kind."""
        graph = self._made.graph
        bound = graph.nodes["binding"][self.parts.steps]
        counts = np.bincount(graph.edges["kind"][bound[bound >= 0]], minlength=len(graph.kinds)).tolist()
        return {kind.name: count for kind, count in zip(graph.kinds, counts, strict=True) if kind.is_at_end and count}

    def sensitivity(self) -> Sensitivity | None:
        """Return what the second latest cause would change; None where all is explained."""
        parts = self.parts
        lengths = np.where(np.isin(parts.cause, (DELAY, IDLE)), parts.end - parts.begin, -1)
        if not len(lengths) or int(lengths.max()) < 0:
            return None
        at = int(lengths.argmax())
        node, graph = int(parts.node[at]), self._made.graph
        second = int(graph.native.second_binding(node))
        kind = graph.kinds[parts.kind[at]].name if parts.kind[at] >= 0 else ""
        other, shares = "", self.shares
        if second > -2 and node != self.window.cut:
            other = "lane" if second == -1 else graph.kinds[graph.edges["kind"][second]].name
            shares = tuple((_totals(self._walk((node, second))) / max(self.length, 1)).tolist())
        return Sensitivity(int(parts.begin[at]), int(lengths[at]), int(parts.cause[at]), kind, other, shares)


class CriticalPath:
    """The critical paths of a trace.

    Attributes:
        made: the event graph.
        paths: one a window.

    Args:
        trace: the trace, or what analyses of it share.
        choice: which windows are wanted.
        waits: names of further slices that wait, a regular expression.
        infer: add causes that follow from times only.
        selection: what of the paths the tables have; None: all.

    Raises:
        UsageError: no such window, lane or device; ``waits`` is not a regular expression.
        InputError: the families of the trace record no causes.
    """

    def __init__(
        self,
        trace: Trace | AnalysisCache,
        choice: WindowChoice | None = None,
        *,
        waits: str = "",
        infer: bool = False,
        selection: Selection | None = None,
    ) -> None:
        cache = AnalysisCache(trace) if isinstance(trace, Trace) else trace
        self.made = TraceGraph(cache, waits=waits, infer=infer)
        self.selection = selection
        self._choice: WindowChoice | None = choice
        self._options: dict[str, Any] = {"waits": waits, "infer": infer, "selection": selection}
        self._slacks: dict[str, Ints] = {}
        self.paths = [WindowPath(self.made, window) for window in windows(self.made, choice or WindowChoice())]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the trace and what was asked of it: the paths are found again."""
        return partial(CriticalPath, **self._options), (self.trace, self._choice)

    def __repr__(self) -> str:
        """Return what was found, and the first sums as aligned text."""
        shown = self.shown
        more = f" (one of {len(self.paths)} windows)" if len(self.paths) > 1 else ""
        length = f"{shown.length} {self.made.cache.unit}"
        part = ""
        if self.selection is not None:
            part = f", {self.selected_of(shown)} of it shown ({self.selection.asked})"
        part += ", of a window alone: causes outside of it are not followed" if is_alone(self.trace) else ""
        return f"<CriticalPath: {length}, {shown.explained:.1%} explained{more}{part}>\n{self.summary!r}"

    def _repr_html_(self) -> str:
        """Return the sums as HTML, for notebooks."""
        return self.summary._repr_html_()

    @property
    def trace(self) -> Trace:
        """The trace that the paths were found in; of a window, the whole."""
        return self.made.cache.trace

    @property
    def longest(self) -> WindowPath:
        """The path of the longest window."""
        return max(self.paths, key=lambda path: path.length)

    @property
    def shown(self) -> WindowPath:
        """The path of the longest window; with a selection, that of which most is selected."""
        return max(self.paths, key=lambda path: (self.selected_of(path), path.length))

    def selected_of(self, path: WindowPath) -> int:
        """Return how much of a path is selected, in the unit of the trace."""
        return path.length if self.selection is None else int(self._selected[self.paths.index(path)])

    @cached_property
    def _selected(self) -> Ints:
        """How much of each path is selected, int64 [paths]."""
        found = np.zeros(len(self.paths), np.int64)
        np.add.at(found, self._columns["window"], self._columns["end"] - self._columns["begin"])
        return found

    @cached_property
    def _columns(self) -> dict[str, Ints]:
        """Columns of the selected parts of all paths: window, begin, end, cause, kind, row, source."""
        paths, made = self.paths, self.made
        counts = [len(path.parts.begin) for path in paths]
        found: dict[str, Ints] = {"window": np.repeat(np.arange(len(paths)), counts)}
        for name in ("begin", "end", "cause", "kind", "row", "source"):
            found[name] = np.concatenate([getattr(path.parts, name) for path in paths]).astype(np.int64)
        if self.selection is None:
            return found
        row = found["row"]
        is_named = np.isin(found["cause"], _NAMED)
        shown = self.selection.of_parts(made.graph.rows.lane[row], made.slice_of[row], is_named)
        return {name: values[shown] for name, values in found.items()}

    def _ids(self, slices: Ints, known: Mask | None = None) -> Column:
        """Return a column of slices by their ids in the trace that was asked, NULL where it lacks them."""
        valid = np.ones(len(slices), np.bool_) if known is None else known
        if self.selection is not None:
            slices = np.where(valid, self.selection.ids[slices], -1)
            valid = valid & (slices >= 0)
        return Column.array(slices) if valid.all() else Column.array(np.where(valid, slices, 0), valid=valid)

    @cached_property
    def slices_of_parts(self) -> Ints:
        """The slice of each part by its id in ``trace``, int64 [parts]."""
        found: Ints = self.made.slice_of[self._columns["row"]]
        return found

    @cached_property
    def parts(self) -> Table:
        """Table ``critical_path_parts``: the parts fill their windows."""
        columns, made = self._columns, self.made
        source = columns["source"]
        slices = self.slices_of_parts
        rows, row, window = made.graph.rows, columns["row"], columns["window"]
        begins, ends = (np.array([getattr(path.window, edge) for path in self.paths]) for edge in ("begin", "end"))
        reaches = (rows.begin[row] < begins[window]) | (rows.end[row] > ends[window])
        of_kind = [*(kind.quality for kind in made.graph.kinds), _QUALITIES[0]]
        quality = np.array([_QUALITIES.index(text) for text in of_kind], np.int32)[columns["kind"]]
        spec = tables.parts_spec(made.cache.unit)
        return _table(
            spec,
            id=np.arange(len(slices)),
            window=self._window_names(columns["window"]),
            ts=columns["begin"],
            dur=columns["end"] - columns["begin"],
            cause=Column.array(columns["cause"].astype(np.int32), dictionary=Dictionary(CAUSES)),
            kind=self._kind_names(columns["kind"]),
            slice_id=self._ids(slices),
            from_slice_id=self._ids(np.where(source >= 0, made.slice_of[source], 0), source >= 0),
            track_id=rows.lane[row],
            quality=Column.array(quality, dictionary=Dictionary(_QUALITIES)),
            is_cut=reaches & np.isin(columns["cause"], (WORK, WAIT)),
        )

    def _window_names(self, window: Ints) -> Column:
        texts = Dictionary()
        codes = texts.codes(path.window.name for path in self.paths)
        return Column.array(codes[window], dictionary=texts)

    def _kind_names(self, kind: Ints) -> Column:
        texts = Dictionary((*(each.name for each in self.made.graph.kinds), ""))
        return Column.array(np.where(kind < 0, len(texts) - 1, kind).astype(np.int32), dictionary=texts)

    @cached_property
    def summary(self) -> Table:
        """Table ``critical_path_summary``: time by cause, kind, name and role, the longest first."""
        columns, made = self._columns, self.made
        graph, trace = made.graph, self.trace
        roles = trace.tracks.codes("role").astype(np.int64)[graph.rows.lane[columns["row"]]]
        names = np.where(np.isin(columns["cause"], _NAMED), graph.rows.name[columns["row"]], -1)
        name_count, role_count = len(made.cache.names) + 1, int(roles.max(initial=0)) + 1
        key = (columns["window"] * len(CAUSES) + columns["cause"]) * (len(graph.kinds) + 1) + columns["kind"] + 1
        group = distinct(key * name_count * role_count + (names + 1) * role_count + roles)
        place = np.searchsorted(group, key * name_count * role_count + (names + 1) * role_count + roles)
        dur = np.zeros(len(group), np.int64)
        np.add.at(dur, place, columns["end"] - columns["begin"])
        parts = np.bincount(place, minlength=len(group))
        first = np.zeros(len(group), np.int64)
        first[place[::-1]] = np.arange(len(place))[::-1]
        order = np.lexsort((group, -dur, columns["window"][first]))
        first, dur, parts = first[order], dur[order], parts[order]
        window, cause, name = columns["window"][first], columns["cause"][first], names[first]
        lengths = np.array([path.length for path in self.paths], np.int64)[window]
        is_work = cause == WORK
        work = np.zeros(name_count, np.int64)
        np.add.at(work, graph.rows.name, graph.own_work)
        least = np.full(name_count, FREE)
        np.minimum.at(least, graph.rows.name, self._slack_of("slack"))
        texts = Dictionary((*made.cache.names.texts, ""))
        blank = texts.code("")
        spec = tables.summary_spec(made.cache.unit)
        return _table(
            spec,
            id=np.arange(len(first)),
            window=self._window_names(window),
            cause=Column.array(cause.astype(np.int32), dictionary=Dictionary(CAUSES)),
            kind=self._kind_names(columns["kind"][first]),
            name=Column.array(np.where(name < 0, blank, name).astype(np.int32), dictionary=texts),
            role=Column.array(roles[first].astype(np.int32), dictionary=trace.tracks.column("role").dictionary),
            dur=dur,
            share=dur / np.maximum(lengths, 1),
            parts=parts,
            busy_share=Column.array(np.where(is_work, work[name] / max(int(work.sum()), 1), 0.0), valid=is_work),
            slack_min=Column.array(
                np.where(is_work & (least[name] < FREE), least[name], 0), valid=is_work & (least[name] < FREE)
            ),
        )

    @cached_property
    def edge_counts(self) -> list[EdgeCounts]:
        """What became of the causes, by kind."""
        return self.made.edge_counts()

    @property
    def edges(self) -> Table:
        """Table ``critical_path_edges``: kinds of causes."""
        found = self.edge_counts
        spec = tables.edges_spec(self.made.cache.unit)
        rows = [
            (
                number,
                each.kind.name,
                each.kind.quality,
                each.kept,
                each.floor_ns,
                each.floor_count,
                each.binding,
                each.backward,
                each.undecided,
                each.backward_max_ns,
                each.cyclic,
                each.unplaced,
            )
            for number, each in enumerate(found)
        ]
        return Table.from_arrays(spec, {name: [row[at] for row in rows] for at, name in enumerate(spec.names)})

    @property
    def waits(self) -> Table:
        """Table ``critical_path_waits``: names of waits, and what they cost at least."""
        graph = self.made.graph
        # As the walk has it: a wait from its begin to its end, without an event between.
        end = graph.end_of
        whole = graph.rows.waits & (end == graph.begin_of + 1) & (graph.nodes["linked"][end] != 0)
        counts = np.bincount(graph.rows.name[whole], minlength=len(self.made.cache.names))
        # What a wait costs is known from those that had nothing to wait for.
        source, target = graph.edges["source"], graph.edges["target"]
        is_needed = np.zeros(len(graph.time), bool)
        is_needed[target[graph.time[source] > graph.time[np.maximum(target - 1, 0)]]] = True
        needless = np.bincount(graph.rows.name[whole & ~is_needed[end]], minlength=len(counts))
        floors = graph.native.wait_floors()
        names = np.flatnonzero(counts)
        spec = tables.waits_spec(self.made.cache.unit)
        enough = counts[names] >= ENOUGH
        return _table(
            spec,
            id=np.arange(len(names)),
            name=Column.array(names.astype(np.int32), dictionary=Dictionary(self.made.cache.names.texts)),
            count=counts[names],
            floor=np.where(enough, floors[names], 0),
            floor_count=np.where(enough, needless[names], 0),
        )

    def _slack_of(self, kind: str) -> Ints:
        """Return the slack of rows of a kind, int64 [rows]; with several windows that of the last of them to end."""
        if kind not in self._slacks:
            graph = self.made.graph
            sink = max((path.window for path in self.paths), key=lambda window: window.end).sink
            self._slacks[kind] = graph.row_slack(graph.slack(sink, kind))
        return self._slacks[kind]

    @cached_property
    def slack(self) -> Table:
        """Table ``slack``: how much longer each slice may take."""
        made, columns = self.made, self._columns
        is_on_path = np.zeros(len(made.slice_of), bool)
        is_on_path[columns["row"][np.isin(columns["cause"], (WORK, WAIT))]] = True
        spec = tables.slack_spec(made.cache.unit)
        slacks = {kind: self._slack_of(kind) for kind in LAGS}
        shown = np.arange(len(made.slice_of))
        if self.selection is not None:
            shown = np.flatnonzero(self.selection.of_slices(made.graph.rows.lane, made.slice_of))
        found = {
            kind: Column.array(np.where(values < FREE, values, 0)[shown], valid=(values < FREE)[shown])
            for kind, values in slacks.items()
        }
        slices = self._ids(made.slice_of[shown])
        return _table(spec, id=np.arange(len(shown)), slice_id=slices, **found, is_on_path=is_on_path[shown])

    def what_if(self, changes: Sequence[str]) -> Table:
        """Return how long each window would be if the work of some names took more or less time.

        Args:
            changes: ``NAME=FACTOR``, each a question of its own; factors are decimals or fractions, not negative.
                ``kind:NAME=FACTOR`` changes what each cause of a kind costs at least; what it took beyond stays.

        Raises:
            UsageError: not of that form; no slice has the name; or it has no work of its own; no cause is of the kind,
                or nothing is known of what one costs at least.
        """
        made, rows = self.made, []
        for change in changes:
            name, factor = parse_change(change)
            if name.startswith(_OF_KIND):
                costs = self._more_of(name.removeprefix(_OF_KIND), factor)
                times = {bound: made.graph.replay(None, (), bound, costs) for bound in BOUNDS}
            else:
                share = self._share_of(name)
                pair = [(factor.numerator, factor.denominator)]
                times = {bound: made.graph.replay(share, pair, bound) for bound in BOUNDS}
            for path in self.paths:
                window = path.window
                more = {
                    bound: int(time[window.sink]) - int(made.graph.time[window.sink]) for bound, time in times.items()
                }
                rows.append(
                    [window.name, change, path.length, *(path.length + each for each in more.values()), ASSUMES]
                )
        spec = tables.what_if_spec(made.cache.unit)
        columns = {name: [row[at] for row in rows] for at, name in enumerate(spec.names[1:])}
        return Table.from_arrays(spec, {"id": list(range(len(rows))), **columns})

    def _more_of(self, kind: str, factor: Fraction) -> Ints:
        """Return how much more each cause costs if those of a kind cost so much of their floors, int64 [edges]."""
        graph = self.made.graph
        known = [each.name for each in graph.kinds]
        if kind not in known:
            hint = f"use one of {', '.join(known)}" if known else "see 'lanescope critical-path CAPTURE'"
            raise UsageError(f"no cause is of kind {kind!r}", hint=hint)
        floor = np.where(graph.edges["kind"] == known.index(kind), graph.edges["floor"], 0)
        if not floor.any():
            raise UsageError(
                f"nothing is known of what a cause of kind {kind!r} costs at least",
                hint="see floor and floor_count of table critical_path_edges",
            )
        if int(floor.max()) > FREE // max(factor.numerator, 1):
            raise UsageError(f"{kind!r} takes too long to be multiplied by {factor}", hint="use a shorter fraction")
        return floor * factor.numerator // factor.denominator - floor

    def _share_of(self, name: str) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        made = self.made
        texts = made.cache.names.texts
        mine = made.graph.rows.name == (texts.index(name) if name in texts else -1)
        if not mine.any():
            raise UsageError(f"no slice on the path's lanes is called {name!r}", hint="see 'lanescope summary CAPTURE'")
        if made.graph.rows.waits[mine].all():
            raise UsageError(f"{name!r} is a wait: its length is an outcome", hint="use a name that works")
        if not int(made.graph.own_work[mine].sum()):
            raise UsageError(f"{name!r} has no work of its own: its length is an outcome", hint="use a name that works")
        return np.where(mine, 0, -1).astype(np.int32)


def parse_change(text: str) -> tuple[str, Fraction]:
    """Return name and factor of ``NAME=FACTOR``; ``UsageError`` where it is something else."""
    name, equals, number = text.rpartition("=")
    try:
        factor = Fraction(number)
    except (ValueError, ZeroDivisionError):
        factor = Fraction(-1)
    if not equals or not name or not 0 <= factor <= 1000 or factor.denominator > 10**9:
        raise UsageError(
            f"invalid change {text!r}",
            hint="use NAME=FACTOR with a factor from 0 to 1000, e.g. matmul=0.8 or kind:launch=0.5",
        )
    return name, factor


def _totals(parts: PathParts) -> Ints:
    totals = np.zeros(len(CAUSES), np.int64)
    np.add.at(totals, parts.cause, parts.end - parts.begin)
    return totals


def _table(spec: object, **columns: object) -> Table:
    """Return a table of arrays and columns."""
    made = {
        name: value if isinstance(value, Column) else Column.array(np.asarray(value)) for name, value in columns.items()
    }
    return Table(spec, made)  # type: ignore[arg-type]
