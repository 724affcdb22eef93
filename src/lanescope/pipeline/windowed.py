"""A source of batches cut to a window.

Where the stream is sorted, and the window has no condition in SQL, batches are cut as they come. Rows of other streams
may refer to any batch: those in the window are kept until the last one. A condition in SQL sees the whole trace. Times
from the end, from the first row and of slices take a pass of their own before the first one, but where that pass shows
that there is one batch only: it is cut as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from lanescope.analysis.windows.cut import Limits, WindowCut
from lanescope.analysis.windows.marks import FilterMarks
from lanescope.analysis.windows.window import HIGHEST, LOWEST, Instance, Moment, Window, has_unit
from lanescope.common.intervals import Intervals
from lanescope.errors import UsageError
from lanescope.pipeline.observers import Counts
from lanescope.trace import Origin, Trace
from lanescope.trace.streams import Progress, StreamInfo, TracePart

if TYPE_CHECKING:
    from lanescope.analysis.windows.kept_ids import KeptIds
    from lanescope.io.dataset.parquet_folder import ParquetFolder
    from lanescope.trace.column import Mask
    from lanescope.trace.streams import TraceSource

#: What a time is relative to that is only known after all rows.
_LATE = ("first", "last", "slice")


class WindowedSource:
    """The batches of another source, cut to a window.

    Args:
        source: the other source.
        window: the window.
        folder: returns the folder of Parquet files that the source reads, None where it reads something else. Of such a
            folder only rows near the window are read.

    Errors are raised by ``batches``: ``UsageError`` for a window that is empty or fits nothing.
    """

    def __init__(
        self, source: TraceSource, window: Window, folder: Callable[[], ParquetFolder | None] | None = None
    ) -> None:
        self._source = source
        self._folder = folder or (lambda: None)
        self._window = window
        self._limits: Limits | None = None
        self._kept: KeptIds | None = None
        self._keeps_filtered = False
        self._selected: Mask | None = None

    def keep_filtered(self) -> None:
        """Have slices stay that the window leaves out by name, duration or condition: ``selected`` tells the others."""
        self._keeps_filtered = self._window.has_filter

    @property
    def selected(self) -> Mask | None:
        """Which slices of the last pass the window selects, bool [slices]; None: the others did not stay."""
        return self._selected

    @property
    def info(self) -> StreamInfo:
        """Properties of the stream: sorted, or one batch."""
        info = self._source.info
        if self._keeps_filtered and not (self._window.lanes or self._window.where or self._has_edges):
            return info
        return info._replace(is_whole=info.is_whole or not self._is_at_once)

    @property
    def _has_edges(self) -> bool:
        return self._window.start is not None or self._window.end is not None

    @property
    def _is_at_once(self) -> bool:
        info = self._source.info
        return info.is_sorted and not info.is_whole and not self._window.where

    def batches(self, progress: Progress | None = None) -> Iterator[Trace]:
        """Cut from the start.

        Raises:
            UsageError: the window is empty; a lane or slice it names does not exist; or an invalid condition.
        """
        decoded: list[Trace] = []
        if self._limits is None:
            self._limits = self._resolved(decoded, progress)
        limits = self._limits
        if self._keeps_filtered and FilterMarks.suffice(limits):
            yield from self._marked(FilterMarks(limits), decoded, progress)
            return
        folder = None if decoded or self._window.where else self._folder()
        if folder is not None and (limits.begin != LOWEST or limits.end != HIGHEST):
            cut = WindowCut(limits, at_once=False, keeps_filtered=self._keeps_filtered)
            yield self._done(cut, cut_folder(folder, limits, cut))
            return
        cut = WindowCut(limits, at_once=self._is_at_once, keeps_filtered=self._keeps_filtered)
        self._kept = cut.kept_slices
        part: TracePart | None = None
        near = getattr(self._source, "batches_near", None)
        if decoded:
            batches = _each_once(decoded)
        elif near is None or self._window.where or (limits.begin == LOWEST and limits.end == HIGHEST):
            batches = self._source.batches(progress)
        else:  # a decoder that can leaves out what is outside
            part = TracePart(limits.begin, limits.end)
            batches = near(part, progress)
        if self._window.where:
            whole = Trace.concat(batches)
            cut.add(whole, matching_slices(whole, self._window.where))
            del whole
        else:
            for batch in batches:
                found = cut.add(batch)
                del batch
                if found is not None:
                    yield found
                del found
        if part is not None:
            cut.leave_out(part.rows, Intervals(*part.hulls()))
        yield self._done(cut, cut.finish())

    def _marked(self, marks: FilterMarks, decoded: list[Trace], progress: Progress | None) -> Iterator[Trace]:
        """Yield the batches as they are: what the window selects of them is all that there is to find."""
        last: Trace | None = None
        for batch in _each_once(decoded) if decoded else self._source.batches(progress):
            if last is not None:
                yield last
            last = marks.mark(batch)
            del batch
        assert last is not None, "a stream has at least one batch"
        yield self._done(marks, marks.closed(last))

    def _done(self, cut: WindowCut, last: Trace) -> Trace:
        """Return the last batch, and keep which slices of all of them are selected."""
        if self._keeps_filtered:
            self._selected = cut.selected
        return last

    def origin(self, whole: Trace) -> Origin:
        """Return what the only batch of a source that is a trace is the window of, once it was cut."""
        limits, window = self._limits, self._window
        assert limits is not None, "batches are cut first"
        start = None if limits.begin == LOWEST else limits.begin
        end = None if limits.end == HIGHEST else limits.end
        return Origin(whole, start, end, window.lanes, window.has_filter, self._kept)

    def _resolved(self, decoded: list[Trace], progress: Progress | None) -> Limits:
        """Return the window with the times that it asks for.

        Args:
            decoded: gets the only batch, where the source turned out to have one: it need not be decoded again.
            progress: as ``batches`` takes it.
        """
        window = self._window
        asked = [one for one in (window.start, window.end) if one is not None and one.origin in _LATE]
        given = [one for one in (window.start, window.end, window.min_dur) if one is not None]
        seen = _Seen({one.instance for one in asked if one.instance is not None})
        folder = self._folder()
        if folder is not None and not seen.wants_slices:
            seen.unit = folder.time.time_unit
            seen.span = folder.span() if asked else None
        elif asked or any(has_unit(one) for one in given):
            only: Trace | None = None
            for number, batch in enumerate(self._source.batches(progress)):
                only = None if number else batch
                if asked or not number:
                    seen.add(batch)
                del batch
                if number and not asked:
                    break  # the unit of time is known, and that there are several batches
            if only is not None:
                decoded.append(only)
        if seen.unit != "ns" and (wrong := next(filter(has_unit, given), None)):
            raise UsageError(
                f"invalid time {wrong.text!r}: times are in {seen.unit}", hint=f"use a number of {seen.unit}"
            )
        begin = LOWEST if window.start is None else seen.time_of(window.start, is_end=False)
        end = HIGHEST if window.end is None else seen.time_of(window.end, is_end=True)
        if begin >= end:
            raise UsageError(f"the window is empty: it starts at {begin:,} and ends at {end:,} {seen.unit}")
        return Limits(window, begin, end, 0 if window.min_dur is None else window.min_dur.offset)


def cut_folder(folder: ParquetFolder, limits: Limits, cut: WindowCut | None = None) -> Trace:
    """Return the window of a folder of Parquet files, of which only what is near it is read; ``cut`` cuts it."""
    near, left_out = folder.between(
        None if limits.begin == LOWEST else limits.begin, None if limits.end == HIGHEST else limits.end
    )
    cut = cut or WindowCut(limits, at_once=False)
    cut.leave_out(left_out.rows, Intervals(left_out.track, left_out.first, left_out.last))
    cut.add(near)
    return cut.finish()


def _each_once(batches: list[Trace]) -> Iterator[Trace]:
    """Yield batches, and let go of each."""
    while batches:
        yield batches.pop(0)


class _Seen:
    """First and last time of a trace, and the slices of some names."""

    def __init__(self, instances: set[Instance]) -> None:
        self._counts = Counts()
        self._names = {one.name for one in instances}
        self._slices: dict[str, list[tuple[int, int]]] = {name: [] for name in self._names}
        self.unit = "ns"
        self.span: tuple[int, int] | None = None

    @property
    def wants_slices(self) -> bool:
        """Whether a time refers to a slice."""
        return bool(self._names)

    def add(self, batch: Trace) -> None:
        """Take in a batch."""
        self.unit = batch.time.time_unit
        self._counts.add(batch)
        if not self._names or not len(batch.slices):
            return
        slices = batch.slices
        texts = slices.column("name").dictionary
        assert texts is not None
        codes = slices.codes("name")
        for name in self._names & set(texts.texts):
            rows = np.flatnonzero(codes == texts.code(name))
            ts, known = slices.values("ts")[rows], slices.valid("dur")[rows]
            seen = np.where(slices.valid("last_known_ts"), slices.values("last_known_ts"), slices.values("ts"))[rows]
            end = np.where(known, ts + slices.values("dur")[rows], seen)
            self._slices[name] += zip(ts.tolist(), end.tolist(), strict=True)

    def time_of(self, asked: Moment, *, is_end: bool) -> int:
        """Return the time that was asked for, as the start or the end of a window.

        Raises:
            UsageError: the trace has no times, or no such slice.
        """
        if asked.origin == "zero":
            return asked.offset
        if asked.instance is not None:
            name, ordinal = asked.instance
            found = sorted(self._slices[name])  # stable: of one start and end, in the order of the table
            if not -len(found) <= ordinal < len(found):
                many = f"it has {len(found):,}" if found else "there is none"
                hint = f"use 0 to {len(found) - 1}" if found else "run 'lanescope summary CAPTURE' to list names"
                raise UsageError(f"no slice {asked.text!r}: {many} of this name", hint=hint)
            return found[ordinal][1 if is_end else 0]
        seen = self._counts.result()
        span = self.span
        if span is None and seen.begin is not None and seen.end is not None:
            span = seen.begin, seen.end
        if span is None:
            raise UsageError(f"{asked.text!r} is relative to the times of the trace, and it has none")
        return asked.offset + span[0 if asked.origin == "first" else 1]


def matching_slices(trace: Trace, condition: str) -> Mask:
    """Return which slices meet a condition, bool [n].

    Args:
        trace: the whole trace; the condition may ask for its other tables in subqueries.
        condition: SQL, as after ``where`` of ``select ... from slices``.

    Raises:
        UsageError: it is not a condition.
    """
    from lanescope.io import duckdb_sql

    with duckdb_sql.connect(trace) as connection:
        try:
            # A value in parentheses cannot end the query and go on with another one.
            first = f"select ({condition}\n) as one from slices limit 0"
            # By itself it is one as well: "true) or (false" fits between parentheses only.
            bare = f"select 1 from slices where {condition}\n"
            if len(connection.extract_statements(first)) != 1 or len(connection.extract_statements(bare)) != 1:
                raise UsageError(f"invalid condition {condition!r}: expected one SQL condition", hint=_CONDITION)
            connection.execute(first)
            query = f"select id from slices where ({condition}\n)"
            found: Any = connection.execute(query).fetchnumpy()["id"]
        except duckdb_sql.Error as error:
            text = " ".join(
                line for line in str(error).splitlines() if line and not line.lstrip().startswith(("LINE", "^"))
            )
            raise UsageError(f"invalid condition {condition!r}: {text}", hint=_CONDITION) from None
    return np.isin(trace.slices.values("id"), found)


_CONDITION = "use SQL over columns of slices, e.g. --where \"dur > 1000 and name like 'mma%'\""
