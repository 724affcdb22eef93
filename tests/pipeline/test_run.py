"""The pipeline drives its parts in order, and leaves nothing behind when one of them fails."""

from __future__ import annotations

import numpy as np
import pytest

from lanescope import InputError
from lanescope.io.chrome import ChromeSink
from lanescope.io.parquet import ParquetSink
from lanescope.io.perfetto import PerfettoSink
from lanescope.pipeline.observers import Annotations, Collect, Counts, Overview
from lanescope.pipeline.run import run
from lanescope.pipeline.sources import InMemory
from lanescope.trace import TimeBase, Trace, TraceBuilder
from lanescope.trace.stats import CORE_STATS
from lanescope.trace.streams import SinglePass, StreamInfo
from lanescope.trace.trace import Records
from passes import Passes

SORTED = StreamInfo(is_sorted=True)


def batches(*starts):
    builder = TraceBuilder(TimeBase())
    lane = builder.track("core", kind="lane", role="core")
    found = []
    for start in starts:
        builder.append("slices", track_id=lane, ts=[start, start + 20], dur=[10, 10], name=["a", "b"])
        found.append(builder.batch())
    return [*found, builder.finish()]


class Log:
    """An observer and a sink that write down what is asked of them."""

    def __init__(self, takes="sorted", *, replays=False):
        self.takes = takes
        self.calls = []
        self._replays = replays

    def start(self, info):
        self.calls.append("start")

    def add(self, batch):
        self.calls.append(f"add {len(batch.slices)}")

    def write(self, batch):
        self.calls.append(f"write {len(batch.slices)}")

    def wants_replay(self):
        self.calls.append("asked")
        return self._replays

    def replay(self, batch):
        self.calls.append(f"replay {len(batch.slices)}")

    def result(self):
        return self.calls

    def marks(self):
        return None

    def finish(self, annotations):
        self.calls.append(f"finish {annotations}")
        return "written"

    def abort(self):
        self.calls.append("abort")


def test_a_batch_goes_through_all_before_the_next_one_is_made():
    order = []

    class Source(Passes):
        def batches(self, progress=None):
            for batch in super().batches(progress):
                order.append("made")
                yield batch

    class Seen(Log):
        def add(self, batch):
            order.append("seen")

        def write(self, batch):
            order.append("written")

    seen = Seen()
    report = run(Source(batches(0, 100), info=SORTED), observers=[seen], sink=Seen())
    assert order == ["made", "seen", "written"] * 3
    assert (report.rows["slices"], report.rows["tracks"], report.written, report.passes) == (4, 1, "written", 1)
    assert len(report.last.slices) == 0
    assert len(report.last.tracks) == 1


def test_raw_records_reach_observers_and_no_sink():
    given = [Trace(one.time, one.tables(), records=Records({"raw": dict})) for one in batches(0, 100)]
    whole, sink = Collect(), []

    class Kept(Log):
        def write(self, batch):
            sink.append(batch)

    run(Passes(given), observers=[whole], sink=Kept("whole"))
    assert (list(whole.result().records), [list(one.records) for one in sink]) == (["raw"], [[]])


@pytest.mark.parametrize(
    ("takes", "is_sorted", "written"),
    [
        ("batches", False, ["write 2", "write 2", "write 0"]),
        ("sorted", True, ["write 2", "write 2", "write 0"]),
        ("sorted", False, ["write 4"]),
        ("whole", True, ["write 4"]),
    ],
)
def test_a_sink_gets_the_batches_it_takes(takes, is_sorted, written):
    sink = Log(takes)
    run(Passes(batches(0, 100), info=StreamInfo(is_sorted=is_sorted)), sink=sink)
    assert sink.calls == ["start", *written, "finish None"]


def test_one_second_pass_serves_all_who_want_it():
    logs = [Log(replays=True), Log(), Log(replays=True)]
    sink = Log("batches")
    report = run(Passes(batches(0, 100)), observers=logs[:2], annotate=logs[2], sink=sink)
    assert report.passes == 2
    for log, more in zip(
        logs, (["replay 2", "replay 2", "replay 0"], [], ["replay 2", "replay 2", "replay 0"]), strict=True
    ):
        assert log.calls == ["start", "add 2", "add 2", "add 0", "asked", *more]
    assert [call for call in sink.calls if call.startswith("write")] == ["write 2", "write 2", "write 0"]


def test_what_is_in_memory_is_not_read_again():
    whole = Trace.concat(batches(0, 100))
    for source, sink in ((InMemory(whole), None), (Passes(batches(0, 100), []), Log())):
        log = Log(replays=True)
        assert run(source, observers=[log], sink=sink).passes == 1
        assert log.calls[-1] == "replay 4"


def test_other_rows_in_the_second_pass_are_refused_and_nothing_is_written(tmp_path):
    source = Passes(batches(0, 100), batches(0))
    with pytest.raises(InputError, match="input changed between two passes"):
        run(source, observers=[Log(replays=True)], sink=ParquetSink(tmp_path / "out.parquet"))
    assert list(tmp_path.iterdir()) == []


class Fails(SinglePass):
    """An observer that fails at its second batch, or at the end."""

    def __init__(self, *, at_end):
        self._left = None if at_end else 1

    def add(self, batch):
        if self._left == 0:
            raise ZeroDivisionError
        if self._left is not None:
            self._left -= 1

    def marks(self):
        return None

    def result(self):
        raise ZeroDivisionError


@pytest.mark.parametrize("at_end", [False, True])
@pytest.mark.parametrize("is_sorted", [False, True])
@pytest.mark.parametrize("make", [PerfettoSink, ChromeSink, lambda out: ChromeSink(out, compress=True), ParquetSink])
def test_whatever_fails_the_file_that_was_there_stays(make, is_sorted, at_end, tmp_path):
    out = tmp_path / "out"
    if make is not ParquetSink:
        out.write_text("before")
    with pytest.raises(ZeroDivisionError):
        run(
            Passes(batches(0, 100), info=StreamInfo(is_sorted=is_sorted)), annotate=Fails(at_end=at_end), sink=make(out)
        )
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"] * (make is not ParquetSink)


def test_a_sink_can_be_aborted_at_any_time(tmp_path):
    first, *_ = batches(0)
    for steps in range(4):
        sink = PerfettoSink(tmp_path / "out.pftrace")
        for step in (lambda s: s.start(SORTED), lambda s: s.write(first), lambda s: s.finish(None))[:steps]:
            step(sink)
        sink.abort()
        assert [path.name for path in tmp_path.iterdir()] == (["out.pftrace"] if steps == 3 else [])


def test_transforms_change_what_all_others_see():
    class Early:
        """Rows that begin before a time."""

        def __init__(self, end):
            self.end = end

        def start(self, info):
            return info._replace(is_sorted=False)

        def apply(self, batch):
            rows = np.flatnonzero(batch.slices.values("ts") < self.end)
            tables = {**batch.tables(), "slices": batch.slices.take(rows)}
            return Trace(batch.time, tables)

    counts, whole, sink = Counts(), Collect(), Log()
    source = Passes(batches(0, 100), info=SORTED)
    report = run(source, transforms=[Early(200), Early(110)], observers=[counts, whole], sink=sink)
    assert counts.result().rows["slices"] == len(whole.result().slices) == report.rows["slices"] == 3
    assert (counts.result().begin, counts.result().end) == (0, 110)
    assert sink.calls == ["start", "write 3", "finish None"]


def test_an_overview_has_all_that_is_small_and_keeps_no_batch_without_it():
    builder = TraceBuilder(TimeBase())
    overview, given = Overview(), []
    for number in range(300):
        lane = builder.track(f"core {number}", kind="lane", role="core")
        builder.append("slices", track_id=lane, ts=[number], dur=[1], name="a")
        if number % 100 == 7:
            builder.append("coverage", track_id=lane, ts=[number], dur=[1])
        given.append(builder.batch())
        overview.add(given[-1])
    given.append(builder.finish())
    overview.add(given[-1])
    assert len(overview._batches) == 4
    found, whole = overview.result(), Trace.concat(given)
    assert len(found.coverage) == 3
    assert len(found.tracks) == 300
    small = [name for name in found.tables() if name not in ("slices", "instants", "counters", "flows")]
    assert {name: list(found.tables()[name].rows()) for name in small} == {
        name: list(whole.tables()[name].rows()) for name in small
    }


def test_losses_are_those_of_the_last_batch():
    builder = TraceBuilder(TimeBase())
    builder.track("core", kind="lane", role="core")
    [lost] = [stat.name for stat in CORE_STATS if stat.severity == "data_loss"]
    builder.add_stat(lost, count=3)
    assert run(Passes([builder.batch(), builder.finish()]), annotate=Annotations()).losses == {lost: 3}


def test_findings_stay_when_what_they_were_found_with_is_let_go():
    annotate = Annotations()
    report = run(Passes(batches(0, 15)), sink=Log("whole"), annotate=annotate)
    assert (report.written, annotate.result().values("code").tolist()) == ("written", ["LS101"])
