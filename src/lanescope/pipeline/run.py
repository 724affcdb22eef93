"""The pipeline: source, decode, transforms, observers, sink.

``run`` pulls. A source is asked for its next batch when every observer and the sink have returned from the one before,
so nothing queues up, and memory does not grow with the capture: at most two batches are alive here, and a sink may hold
two more while it encodes them next to the decoder.

What cannot work batch by batch, and why:

* **A stream that is not sorted, into a drawing** (``StreamInfo.is_sorted`` is false; sinks that take ``sorted``
  batches: Perfetto, Chrome JSON). A slice may come batches after those that it encloses, and flows may lead from one
  batch to another. ``run`` keeps the batches and hands over one joined trace. Parquet and observers take such batches
  as they come.
* **VCD**: its head names all signals, and its changes come in order of time over all lanes.
* **Exports of a family** (``convert --format NAME``): each sorts or groups over the whole trace.
* **A merge of several captures**: where each lies is known only when the clocks of all are.
* **SQL, ``overlap``, ``idle``, ``occupancy``, regions, summaries of a family**: they need whole lanes, so they observe
  with ``Collect``.
* **Families that do not stream** (``Format.is_streaming`` is false), and texts of Level Zero: their decoders join whole
  streams of records, and yield few batches, often one.

What one pass over sound batches cannot tell takes a second one: lanes that turn out to be out of order, gaps that come
late, coverage that ends before a slice does (``StreamingChecker``, ``Summary``), findings on lanes whose slices may
share time with what was let go (``StreamingTotals``). ``run`` reads the source at most once
more for all observers together, and compares the numbers of rows.

Which rows are suspect is known after all of them. Where some are, what the sink has written so far is removed, and it
writes all batches again with the marks: a further pass, which captures without suspect rows do not need.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lanescope.declaration import frozen_class
from lanescope.errors import InputError
from lanescope.pipeline.diagnostics import losses
from lanescope.trace import Trace
from lanescope.trace.streams import (
    Annotator,
    Marks,
    Observer,
    Progress,
    Sink,
    StreamInfo,
    TraceSource,
    Transform,
    Written,
    bare,
)
from lanescope.trace.trace import SHARED


@frozen_class
class RunReport:
    """Summary of a pipeline run.

    Attributes:
        last: the last batch without its events: time base, shared tables, stats and accounting of the whole stream.
        rows: number of rows by table, over all batches.
        losses: what was lost, by name: stats of severity ``data_loss`` and ``error``, then units of the accounting.
        written: what the sink reports; None without a sink.
        passes: how often the source was read, 1 to 3.
        unmarked: suspect rows without a mark, as the sink cannot start over.
    """

    last: Trace
    rows: Mapping[str, int]
    losses: Mapping[str, int]
    written: Written | None
    passes: int
    unmarked: int = 0


def run(
    source: TraceSource,
    *,
    transforms: Sequence[Transform] = (),
    observers: Sequence[Observer[Any]] = (),
    sink: Sink | None = None,
    annotate: Annotator | None = None,
    progress: Progress | None = None,
) -> RunReport:
    """Pass the batches of a source through transforms to observers and a sink.

    Args:
        source: where the batches come from.
        transforms: applied to each batch, in this order.
        observers: see every batch; ask them for their results afterwards.
        sink: writes every batch. Its output appears when all has gone well, else it is removed.
        annotate: an observer whose result (findings) the sink draws, and whose marks it writes.
        progress: is told how far the first pass is.

    Raises:
        InputError: the second pass gave other rows than the first; and whatever the parts raise.
    """
    info = source.info
    for transform in transforms:
        info = transform.start(info)
    watching = [*observers] if annotate is None else [*observers, annotate]
    for observer in watching:
        observer.start(info)
    if sink is None:
        return _passed(source, transforms, watching, None, annotate, info, progress)
    try:
        sink.start(info)
        return _passed(source, transforms, watching, sink, annotate, info, progress)
    except BaseException:
        sink.abort()
        raise


def _passed(
    source: TraceSource,
    transforms: Sequence[Transform],
    watching: Sequence[Observer[Any]],
    sink: Sink | None,
    annotate: Annotator | None,
    info: StreamInfo,
    progress: Progress | None,
) -> RunReport:
    """Make the passes and finish the sink."""
    needs_all = sink is not None and (sink.takes == "whole" or (sink.takes == "sorted" and not info.is_sorted))
    kept: list[Trace] = []  # all batches where they are needed joined, else the first while it is the only one
    rows: dict[str, int] = {}
    last: Trace | None = None
    for batch in _changed(source.batches(progress), transforms):
        _count(batch, rows)
        for observer in watching:
            observer.add(batch)
        batch = batch.without_records()  # no sink reads them
        if sink is not None and not needs_all:
            sink.write(batch)
        if needs_all or last is None:
            kept.append(batch)
        else:
            kept.clear()
        last = bare(batch)
        del batch  # the decoder writes the next one where it lies
    if last is None:
        raise ValueError("a stream has at least one batch")
    if sink is not None and needs_all:
        kept = [Trace.concat(kept)]
        sink.write(kept[0])
    passes = 1
    again = [observer for observer in watching if observer.wants_replay()]
    if again:
        passes += not kept
        seen: dict[str, int] = {}
        for batch in kept or _changed(source.batches(), transforms):
            _count(batch, seen)
            for observer in again:
                observer.replay(batch)
            del batch
        _require_same(seen, rows)
    written, unmarked = None, 0
    if sink is not None:
        marks = None if annotate is None else annotate.marks()
        if marks is not None and not sink.can_restart:
            unmarked = marks.count
        elif marks is not None:
            passes += not kept
            _write_again(sink, info, kept or _changed(source.batches(), transforms), marks, rows)
        kept.clear()
        written = sink.finish(None if annotate is None else annotate.result())
    return RunReport(last, rows, losses(last), written, passes, unmarked)


def _write_again(sink: Sink, info: StreamInfo, batches: Iterable[Trace], marks: Marks, rows: dict[str, int]) -> None:
    """Write the batches of another pass, with marks, in place of what the sink has written."""
    sink.abort()
    sink.start(marks.start(info))
    seen: dict[str, int] = {}
    for batch in batches:
        _count(batch, seen)
        sink.write(marks.apply(batch))
        del batch
    _require_same(seen, rows)


def _require_same(seen: dict[str, int], rows: dict[str, int]) -> None:
    if seen != rows:
        raise InputError("input changed between two passes", hint="run again after the writer has finished")


def _changed(batches: Iterator[Trace], transforms: Sequence[Transform]) -> Iterator[Trace]:
    for batch in batches:
        for transform in transforms:
            batch = transform.apply(batch)
        yield batch
        del batch


def _count(batch: Trace, rows: dict[str, int]) -> None:
    """Add the rows of a batch; shared tables are complete in the last one."""
    for name, table in batch.tables().items():
        rows[name] = len(table) + (0 if name in SHARED else rows.get(name, 0))
