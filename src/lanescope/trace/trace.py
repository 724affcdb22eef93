"""Trace: one timeline as an immutable set of tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from lanescope.declaration import frozen_class
from lanescope.lazy_names import from_room
from lanescope.trace.schema import CORE_TABLES
from lanescope.trace.table import Table

if TYPE_CHECKING:
    import os

EPOCH_KINDS = ("unix", "host_monotonic", "device", "first_event")
TIME_UNITS = ("ns", "cycles")

#: Tables that all batches of one decode share, complete so far; the last batch has them in full.
SHARED = ("inputs", "tracks", "clocks", "anchors")


@frozen_class
class TimeBase:
    """Unit and epoch of the timestamps of a trace.

    Attributes:
        epoch_ns: the moment of ``ts == 0`` on the clock that ``epoch_kind`` names.
        epoch_kind: ``unix``, ``host_monotonic``, ``device`` (the device counter's own zero) or ``first_event``.
        time_unit: ``ns``; or ``cycles`` when the frequency is unknown (drawn as 1 cycle = 1 ns, labelled so).
    """

    epoch_ns: int = 0
    epoch_kind: str = "device"
    time_unit: str = "ns"

    def __post_init__(self) -> None:
        """Reject unknown values."""
        if self.epoch_kind not in EPOCH_KINDS or self.time_unit not in TIME_UNITS:
            raise ValueError(f"unknown time base {self.epoch_kind!r}, {self.time_unit!r}")


class Records(Mapping[str, Table]):
    """Raw records by name, decoded at the first read."""

    def __init__(self, makers: Mapping[str, Callable[[], Table]] = {}) -> None:
        self._makers = dict(makers)
        self._made: dict[str, Table] = {}

    def __getitem__(self, name: str) -> Table:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the tables, all of them decoded: what they are decoded from stays behind."""
        return _stored_records, (dict(self),)

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


def _stored_records(tables: dict[str, Table]) -> Records:
    """Return pickled records."""
    return Records({name: partial(_itself, table) for name, table in tables.items()})


def _itself(table: Table) -> Table:
    return table


class Origin(NamedTuple):
    """What a trace is the window of: causes lead out of windows, so paths are found over the whole.

    Attributes:
        whole: the trace that the window is part of, which may be that of a window itself.
        start: first moment of the window; None: it has no such edge.
        end: first moment after it; None likewise.
        lanes: globs of its lanes; empty: all.
        has_filter: whether it selects slices by name, duration or condition.
        kept: new ids of those slices of ``whole`` that it has: ``of(ids, valid)`` returns -1 for others.
    """

    whole: Trace
    start: int | None
    end: int | None
    lanes: tuple[str, ...]
    has_filter: bool
    kept: Any


class Trace:
    """A timeline: the core tables, the detail tables of its families, the raw records on request.

    Attributes:
        time: what its timestamps count.
        details: detail tables by name (``aie_segments``), joined to a core table by their key.
        records: raw records by name (``aie.frame``), decoded when first asked for.
        origin: what it is the window of; None: of nothing that is in memory.
    """

    __slots__ = ("_core", "details", "origin", "records", "time")

    def __init__(
        self,
        time: TimeBase,
        core: Mapping[str, Table],
        details: Mapping[str, Table] | None = None,
        records: Records | None = None,
        origin: Origin | None = None,
    ) -> None:
        self.time = time
        self._core = {s.name: core[s.name] if s.name in core else Table.empty(s) for s in CORE_TABLES}
        self.details: Mapping[str, Table] = dict(details or {})
        self.records = records or Records()
        self.origin = origin

    def __repr__(self) -> str:
        return f"<Trace: {len(self.slices)} slices on {len(self.tracks)} tracks, in {self.time.time_unit}>"

    def _repr_html_(self) -> str:
        """Return what it is as HTML, for notebooks."""
        return str(from_room("view.table_text", "trace_html")(self))

    # --- what rooms above make of it --------------------------------------------------------------------------

    def sql(self, query: str) -> Table:
        """Return the answer to a SQL query over its tables, see ``lanescope.sql``."""
        found: Table = from_room("pipeline.trace_queries", "sql")(self, query)
        return found

    def check(self, *, select: Iterable[str] = (), ignore: Iterable[str] = ()) -> Table:
        """Return the findings about lost data and impossible timings, the worst first.

        ``lanescope.check`` returns them as objects, with all evidence.

        Args:
            select: codes, or beginnings of codes, of the rules to apply; empty: all.
            ignore: codes to skip.

        Raises:
            UsageError: a choice fits no rule.
        """
        findings = from_room("pipeline.session", "check")(self, select=select, ignore=ignore)
        table: Table = from_room("analysis.check", "to_table")(findings)
        return table

    def summary(self, by: str = "name", within: str = "") -> Table:
        """Return where its time goes by name, lane, idle cause, tile, ..., see ``lanescope.summary``."""
        found: Table = from_room("pipeline.session", "summary")(self, by, within)
        return found

    def phases(self, by: str = "lane") -> Table:
        """Return where the time of its lanes went, see ``lanescope.phases``."""
        found: Table = from_room("pipeline.trace_queries", "phases")(self, by)
        return found

    def explain(self) -> Table:
        """Return what bounds the run, what is exposed, uncertain and not recorded, see ``lanescope.explain``."""
        found: Table = from_room("pipeline.session", "explain")(self)
        return found

    def overview(self, buckets: int = 0) -> Trace:
        """Return a trace of about a million slices in which short ones are sums, see ``lanescope.overview``."""
        found: Trace = from_room("pipeline.trace_queries", "overview")(self, buckets)
        return found

    def longest_gaps(self, limit: int = 20) -> Table:
        """Return the longest stretches without work, see ``lanescope.longest_gaps``."""
        found: Table = from_room("pipeline.trace_queries", "longest_gaps")(self, limit)
        return found

    def align(
        self,
        *,
        rate_ppm: float = 100,
        at: int | None = None,
        method: str = "auto",
        reading_error: int | None = None,
    ) -> Any:
        """Return the offsets between its clocks, as intervals that contain them, see ``lanescope.align``."""
        function = from_room("pipeline.trace_queries", "align")
        found: Any = function(self, rate_ppm=rate_ppm, at=at, method=method, reading_error=reading_error)
        return found

    def window(
        self,
        start: str | int | None = None,
        end: str | int | None = None,
        *,
        lane: str | Sequence[str] | None = None,
        name: str | Sequence[str] | None = None,
        min_dur: str | int | None = None,
        where: str | None = None,
    ) -> Trace:
        """Return the part of it that lies in a window, see ``lanescope.window``."""
        function = from_room("pipeline.trace_queries", "window")
        found: Trace = function(self, start, end, lane=lane, name=name, min_dur=min_dur, where=where)
        return found

    def critical_path(
        self,
        *,
        window: str = "",
        start: str | int | None = None,
        end: str | int | None = None,
        lane: str | Sequence[str] | None = None,
        name: str | Sequence[str] | None = None,
        min_dur: str | int | None = None,
        where: str | None = None,
        sink: str = "",
        device: str = "",
        waits: str = "",
        infer: bool = False,
    ) -> Any:
        """Return what each nanosecond of it waited for, see ``lanescope.critical_path``."""
        function = from_room("pipeline.trace_queries", "critical_path")
        part = {"lane": lane, "name": name, "min_dur": min_dur, "where": where}
        how = {"sink": sink, "device": device, "waits": waits, "infer": infer}
        found: Any = function(self, window=window, start=start, end=end, **part, **how)
        return found

    def save(self, out: str | os.PathLike[str], format: str | None = None, *, replace: bool = False) -> None:
        """Write it as a file, or a folder of Parquet files, which ``lanescope.open`` reads again.

        Args:
            out: where to; the suffix selects the format: ``.parquet``, ``.pftrace``, ``.json``, ``.json.gz``, ``.vcd``.
            format: the format, whatever the suffix.
            replace: replace what is there.

        Raises:
            UsageError: no format is known; ``out`` exists, or cannot be written.
        """
        from_room("pipeline.trace_queries", "save")(self, out, format, replace=replace)

    def view(self, *, inline: bool | None = None, browser: bool = True, port: int = 0) -> Any:
        """Show it with its findings: in a notebook as its report, else in the Perfetto UI on this machine, offline.

        Args:
            inline: show the report in the notebook; None: where a notebook runs this.
            browser: start a browser for the Perfetto UI.
            port: port to serve the Perfetto UI on; 0 for any free one.

        Returns:
            What a notebook shows; or the viewer: ``address`` is what to open, ``close()`` ends it; it ends with the
            process at the latest.

        Raises:
            MissingDependencyError: the viewer is not installed.
            UsageError: the port is taken.
        """
        if inline is None:
            inline = from_room("view.notebook", "is_in_notebook")()
        if inline:
            return from_room("view.notebook", "InlineReport")(self)
        return from_room("view.trace_viewer", "serve")(self, browser=browser, port=port)

    def report(
        self,
        out: str | os.PathLike[str],
        *,
        title: str = "",
        max_size: int = 2_000_000,
        other: Trace | None = None,
    ) -> Any:
        """Write it as one HTML file with verdict, findings, timeline and tables, which loads nothing else.

        Args:
            out: path of the file; what is there is replaced.
            title: title of the page; empty: the name of the capture.
            max_size: bytes that the file should have at most: slices are bundled until it fits.
            other: a second trace, which is shown next to this one and compared with it.

        Returns:
            What the page holds; ``left_out`` says in sentences what it has not.

        Raises:
            UsageError: ``out`` is a folder, a device or a pipe; one trace counts cycles, the other nanoseconds.
            OSError: it cannot be written.
        """
        return from_room("view.report.write", "write_report")(self, out, title=title, max_size=max_size, other=other)

    # --- tables -----------------------------------------------------------------------------------------------

    def tables(self) -> dict[str, Table]:
        """Return every table by name: core tables, then detail tables."""
        return {**self._core, **self.details}

    def without_records(self) -> Trace:
        """Return the same tables without the raw records, which may be larger than all tables together."""
        return Trace(self.time, self._core, self.details, origin=self.origin) if self.records else self

    @property
    def inputs(self) -> Table:
        """The files it was decoded from."""
        return self._core["inputs"]

    @property
    def tracks(self) -> Table:
        """The tree of groups, lanes and counters."""
        return self._core["tracks"]

    @property
    def slices(self) -> Table:
        """Intervals on lanes."""
        return self._core["slices"]

    @property
    def instants(self) -> Table:
        """Points on lanes."""
        return self._core["instants"]

    @property
    def counters(self) -> Table:
        """Samples of counter tracks."""
        return self._core["counters"]

    @property
    def flows(self) -> Table:
        """Edges from causes to effects."""
        return self._core["flows"]

    @property
    def gaps(self) -> Table:
        """Periods in which a lane's state is unknown."""
        return self._core["gaps"]

    @property
    def coverage(self) -> Table:
        """Periods in which a lane was recorded."""
        return self._core["coverage"]

    @property
    def clocks(self) -> Table:
        """Counters behind the ticks."""
        return self._core["clocks"]

    @property
    def anchors(self) -> Table:
        """Counter readings with known trace times."""
        return self._core["anchors"]

    @property
    def stats(self) -> Table:
        """Decode diagnostics."""
        return self._core["stats"]

    @property
    def accounting(self) -> Table:
        """Accounting of every byte: decoded, padding or lost."""
        return self._core["accounting"]

    @staticmethod
    def concat(batches: Iterable[Trace]) -> Trace:
        """Join the batches of one decode, in order; they share tracks, clocks and texts already."""
        traces = list(batches)
        last = traces[-1]
        if len(traces) == 1:
            return last
        tables = {
            name: table if name in SHARED else Table.concat([trace.tables()[name] for trace in traces])
            for name, table in last.tables().items()
        }
        return Trace(last.time, tables, {name: tables[name] for name in last.details}, last.records)
