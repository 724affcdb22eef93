"""What is asked of a trace that is in memory: an answer to SQL, a part of it, where its time went."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lanescope.errors import UsageError
from lanescope.pipeline import session
from lanescope.pipeline.run import RunReport, run
from lanescope.pipeline.sinks import make_sink
from lanescope.pipeline.sources import InMemory
from lanescope.trace import Table, Trace

if TYPE_CHECKING:
    from lanescope.analysis.align.answer import Alignment
    from lanescope.analysis.analysis_cache import AnalysisCache
    from lanescope.analysis.critical_path.answer import CriticalPath
    from lanescope.analysis.windows.window import Window
    from lanescope.pipeline.detection import PathLike


def sql(trace: Trace, query: str) -> Table:
    """Return the answer to a SQL query over the tables of a trace.

    Args:
        trace: the trace. Its tables, and those of ``derived_tables``, are views; nothing else is within reach.
        query: one statement of DuckDB's SQL.

    Returns:
        A row for each row of the answer. Integers are exact; what no column type holds (lists, structs, integers of
        more than 64 bits) is text. Columns of one name are numbered.

    Raises:
        UsageError: an invalid query.

    Example:
        >>> from lanescope import TimeBase, TraceBuilder
        >>> builder = TraceBuilder(TimeBase())
        >>> core = builder.track("core 0", kind="lane", role="core")
        >>> _ = builder.append("slices", track_id=core, ts=[0, 40], dur=[30, 40], name=["a", "b"])
        >>> list(sql(builder.finish(), "select name, sum(dur) busy from slices group by 1 order by 1"))
        [{'name': 'a', 'busy': 30}, {'name': 'b', 'busy': 40}]
    """
    from lanescope.io import duckdb_sql

    return duckdb_sql.answer(trace, session.derived_tables(trace).values(), query)


def save(trace: Trace, out: PathLike, format: str | None = None, *, replace: bool = False) -> RunReport:
    """Write a trace as a file, or a folder of Parquet files, as ``write`` does; replaces only if asked to.

    Raises:
        UsageError: as ``write``; and ``out`` exists.
    """
    if Path(out).exists() and not replace:
        raise UsageError(f"{os.fspath(out)} already exists", hint="use replace=True to replace it")
    chosen, is_gzip = format or session.format_named_by(Path(out)), str(out).endswith(".gz")
    return run(InMemory(trace), sink=make_sink(Path(out), chosen, replace=replace, is_gzip=is_gzip))


def window(
    trace: Trace,
    start: str | int | None = None,
    end: str | int | None = None,
    *,
    lane: str | Sequence[str] | None = None,
    name: str | Sequence[str] | None = None,
    min_dur: str | int | None = None,
    where: str | None = None,
) -> Trace:
    """Return the part of a trace that lies in a window.

    Slices, gaps and coverage that reach over an edge are cut there; cut slices have the flag ``cut``, and their ticks
    beyond the edge are unknown. Instants and flows are in the window or not: a flow with one end in it is excluded and
    counted. Counters have a sample at the start with the value that they hold there. All lanes stay, also those without
    rows; stats, accounting and raw records stay those of the whole trace. Stats with names that begin with
    ``window_`` say where the window starts and ends, and what it excludes.

    The window keeps the trace that it was cut from (``origin``), also when it is pickled: its critical path leads
    through all of it. ``open`` with ``window`` reads the part alone.

    Args:
        trace: the trace.
        start: first moment: ``"1.5ms"``, ``"12us"``, ``34567`` (in the trace's unit), ``"-1ms"`` (before the last
            time), ``"+1ms"`` (after the first one), ``"@-1ms"`` (before time 0), ``"NAME#K"`` (the start of the Kth
            slice of this name, from 0). Negative integers count from the last time, as texts do.
        end: first moment after the window, as ``start``; ``"NAME#K"`` is the end of that slice.
        lane: glob, or globs, of names or paths of lanes and groups.
        name: glob, or globs, of names of slices and instants.
        min_dur: shortest duration of a slice, before it is cut.
        where: SQL condition on rows of ``slices``, before they are cut.

    Raises:
        UsageError: a time is none, the window is empty, no lane is called so, or an invalid condition.

    Example:
        >>> from lanescope import TimeBase, TraceBuilder
        >>> builder = TraceBuilder(TimeBase())
        >>> core = builder.track("core 0", kind="lane", role="core")
        >>> _ = builder.append("slices", track_id=core, ts=[0, 40, 90], dur=[30, 40, 9], name=["a", "b", "c"])
        >>> part = window(builder.finish(), 20, 60)
        >>> part.slices["ts"].tolist(), part.slices["dur"].tolist()
        ([20, 40], [10, 20])
    """
    from lanescope.analysis.windows.window import make_window

    made = make_window(start=start, end=end, lane=lane, name=name, min_dur=min_dur, where=where)
    return windowed(trace, made, keeps_whole=True)


def windowed(trace: Trace, window: Window | None, *, keeps_whole: bool = False) -> Trace:
    """Do what ``window`` does with a window that is made already.

    Args:
        trace: the trace.
        window: the window; None is the whole trace.
        keeps_whole: the window keeps the trace, for what needs all of it.
    """
    if window is None:
        return trace
    from lanescope.pipeline.windowed import WindowedSource

    source = WindowedSource(InMemory(trace), window)
    (found,) = source.batches()
    if not keeps_whole:
        return found
    return Trace(found.time, found.tables(), found.details, found.records, source.origin(trace))


def phases(trace: Trace | AnalysisCache, by: str = "lane") -> Table:
    """Return where the time of lanes went: busy by name, waiting by cause, idle, not recorded.

    Of a window that selects slices (``name``, ``min_dur``, ``where``), it is the time in selected ones, as all slices
    of the window tell it: shares are of all time.

    Args:
        trace: the trace; or what an observer of its batches kept of it, ``LanesOnDisk``.
        by: whose lanes are added up: ``lane``, ``group``, ``device`` or ``all``.

    Returns:
        A row for each owner, state, name and cause. The totals of an owner add up to the span of the trace, times the
        number of its lanes, exactly.

    Raises:
        UsageError: ``by`` is something else; or slices were left out by name, duration or condition while the trace was
            read.
    """
    from lanescope.analysis import phases as analysis

    return analysis.phases(_shared(trace).over_all_slices, by)


def longest_gaps(trace: Trace, limit: int = 20) -> Table:
    """Return the longest stretches in which lanes waited or were idle, each with what ended it.

    Of a window that selects slices (``name``, ``min_dur``, ``where``), they are the stretches that a selected one is
    part of: that it waits in, that lie between it and another one, or for whose end a lane waits.

    Args:
        trace: the trace.
        limit: how many.

    Returns:
        The longest first. ``ended_by`` is the last region to end that the lane waited for.

    Raises:
        UsageError: slices were left out by name, duration or condition while the trace was read.
    """
    from lanescope.analysis.phases import longest_gaps as longest

    return longest(_shared(trace).over_all_slices, limit)


def overview(trace: Trace, buckets: int = 0) -> Trace:
    """Return a trace of about a million slices in which short ones are sums, as ``convert --overview`` writes it.

    Args:
        trace: the trace.
        buckets: into how many the time axis is divided; 0: as many as make about a million slices.

    Returns:
        Its slices have the names of innermost regions. Their times by lane and name are those of the trace, exactly,
        and no time moves out of its bucket. Without instants, samples of counters, and flows.

    Raises:
        UsageError: the number of buckets is negative; or slices were left out by name, duration or condition while the
            trace was read.

    Example:
        >>> from lanescope import TimeBase, TraceBuilder
        >>> builder = TraceBuilder(TimeBase())
        >>> core = builder.track("core 0", kind="lane", role="core")
        >>> _ = builder.append("slices", track_id=core, ts=[0, 20, 40, 60], dur=[9] * 4, name=["a", "b"] * 2)
        >>> overview(builder.finish(), 1).slices["dur"].tolist()
        [18, 18]
    """
    from lanescope.analysis.overview import overview as made

    return made(_shared(trace).over_all_slices, buckets).trace


def _shared(trace: Trace | AnalysisCache) -> AnalysisCache:
    from lanescope.analysis.analysis_cache import AnalysisCache

    return AnalysisCache(trace) if isinstance(trace, Trace) else trace


def critical_path(
    trace: Trace,
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
) -> CriticalPath:
    """Find what each nanosecond of a run waited for, as the command ``critical-path`` does.

    A path is found over all slices, as causes lead through all of them. ``start`` and ``end`` say for which stretch of
    time; ``lane``, ``name``, ``min_dur`` and ``where`` which parts of the path the tables have: those on such lanes,
    and of such slices. Shares stay those of the stretch. ``trace.window(...).critical_path()`` is the same.

    Args:
        trace: the trace, or a window of one: then the paths are those of the trace that it was cut from.
        window: ``NAME#K``: the Kth slice of a name, from 0, or a run or launch that its family tells apart.
        start: begin of the window, a time as ``window`` takes it; None: the first slice.
        end: end of the window; None: the last slice.
        lane: glob, or globs, of names or paths of lanes and groups.
        name: glob, or globs, of names of slices. Time in which a lane is idle belongs to no slice.
        min_dur: shortest duration of a slice.
        where: SQL condition on rows of ``slices``.
        sink: lane at whose last end the path ends, a glob pattern of its path or name.
        device: device whose lanes count, likewise.
        waits: names of further slices that wait, a regular expression.
        infer: add causes that follow from times only.

    Returns:
        The paths: tables ``parts``, ``summary``, ``edges`` and ``slack``; ``what_if(["matmul=0.8"])`` is one, too.

    Raises:
        UsageError: no such window, lane or device; ``waits`` is not a regular expression, or ``where`` no condition; or
            the trace is that of a window that was read without the rest, and left slices out by name, duration or
            condition.
        InputError: the families of the trace record no causes; the hint says what answers instead.
    """
    from lanescope.analysis.analysis_cache import AnalysisCache
    from lanescope.analysis.critical_path.selection import path_of
    from lanescope.analysis.critical_path.windows import WindowChoice
    from lanescope.analysis.windows.report import require_all_slices
    from lanescope.analysis.windows.window import make_window

    if trace.origin is None:
        require_all_slices(trace)
    part = trace
    if any(given is not None for given in (lane, name, min_dur, where)):
        made = make_window(lane=lane, name=name, min_dur=min_dur, where=where)
        part = windowed(trace, made, keeps_whole=True)
    begin, last = (None if given is None else str(given) for given in (start, end))
    return path_of(AnalysisCache(part), WindowChoice(window, begin, last, sink, device), waits=waits, infer=infer)


def align(
    trace: Trace,
    *,
    rate_ppm: float = 100,
    at: int | None = None,
    method: str = "auto",
    reading_error: int | None = None,
) -> Alignment:
    """Return the offsets between the clocks of a trace, as intervals that contain them.

    A cause is not later than its effect: a launch and the begin of its kernel limit the offset of two clocks from one
    side, the end of work and the return of a call that waited for it from the other, readings of both clocks from both.
    Nothing is averaged: what the interval leaves out contradicts the capture.

    Args:
        trace: the trace; of several captures, what ``merge`` makes of them.
        rate_ppm: how far the rates of two clocks may differ, in parts per million.
        at: the moment that offsets are asked for, in the trace's unit; None: where they are known best.
        method: ``auto``: a straight clock, of one offset and one rate, where one satisfies all pairs; else any clock
            within the bound of the rate. ``rate``: the latter at once. ``segments``: straight pieces.
        reading_error: how far readings whose error a capture does not state may be off, in the trace's unit.

    Returns:
        ``table()`` has a row for each two clocks; ``place()`` is the trace with its clocks placed.

    Raises:
        UsageError: an unknown method or an impossible rate.
    """
    from lanescope.analysis.align.answer import Alignment

    return Alignment(trace, rate_ppm=rate_ppm, at=at, method=method, reading_error=reading_error)
