"""Answers of lanes whose slices are on disk are those of the whole trace in memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanescope
from lanescope import Trace, TraceBuilder
from lanescope.analysis import lane_parts, lanes_on_disk
from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.analysis.idle_causes import causes
from lanescope.analysis.lanes_on_disk import LanesOnDisk, SlicesOnDisk
from lanescope.analysis.phases import BY, gaps, phases
from lanescope.devices.aie import decoder as aie
from lanescope.devices.cuda.emit import batches as cuda
from lanescope.errors import InputError
from lanescope.foreign.kineto import decoder as kineto
from lanescope.testing import strategies
from lanescope.trace import TimeBase
from passes import cut

ALL = 1 << 62


def answers(shared):
    """Return all answers of lanes, each of a fresh look."""
    found = [list(phases(shared(), by).rows()) for by in BY]
    for limit in (1, 3, ALL):
        table, count, *_ = gaps(shared(), limit)
        found.append([count, *table.rows()])
    for role, each in (("parent", False), ("all", False), ("parent", True)):
        found.append(list(causes(shared(), role, each=each).rows()))
    return found


def on_disk(batches, most=ALL, in_memory=0):
    """Return the answers of batches, with parts of that many slices, and how many parts there were."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes_on_disk, "IN_MEMORY", in_memory)
        patch.setattr(lane_parts, "MOST", most)
        patch.setattr(lane_parts, "PER_TRACK", 0)
        lanes = LanesOnDisk()
        for batch in batches:
            lanes.add(batch)
        shared = lanes.result()
        assert (shared.on_disk is not None) == (sum(len(batch.slices) for batch in batches) > in_memory)
        assert shared.on_disk is None or not len(shared.trace.slices)
        return answers(lambda: shared), len(lane_parts.of_parts(shared, lambda part: None))


def with_waits(trace):
    """The same trace with some of its names being ones that wait."""
    names = trace.slices.column("name").dictionary
    for at in range(0, len(names.texts) if names is not None else 0, 2):
        names.texts[at] = f"wait_{at}"
    return trace


@given(strategies.traces(), st.sampled_from([1, 2, 5, ALL]), st.lists(st.floats(0, 1), max_size=4), st.booleans())
def test_answers_of_any_batches_are_those_of_the_whole(trace, most, cuts, is_late):
    trace = with_waits(trace)
    batches = list(cut(trace, sorted(cuts)))
    wanted = answers(lambda: AnalysisCache(trace))
    assert on_disk(batches, most, in_memory=len(trace.slices) // 2 if is_late else 0)[0] == wanted


CASES = [
    ("cuda", {"blocks": 6, "sms": 3, "tiles": 4}),
    ("cuda", {"layout": "ls2", "blocks": 4, "tiles": 4, "across": True}),
    ("cuda", {"blocks": 6, "tiles": 4, "clock_step": 2, "unfinished": 2, "overflow": True}),
    ("ascend", {"tasks": 60}),
    ("levelzero", {"ops": 80}),
    ("aie", {"tiles": 3, "records": 300}),
    ("kineto", {"steps": 2}),
    ("perfetto", {"slices": 300}),
    ("chrome", {"events": 300}),
]


@pytest.mark.parametrize("window", [None, {"start": "+1000", "end": "-1000"}])
@pytest.mark.parametrize(("family", "options"), CASES)
def test_answers_of_captures_that_come_in_batches(tmp_path, monkeypatch, family, options, window):
    monkeypatch.setattr(kineto, "WHOLE", 1 << 12)
    monkeypatch.setattr(kineto, "WINDOW", 1 << 14)
    monkeypatch.setattr(cuda, "PART_RECORDS", 1 << 9)
    monkeypatch.setattr(aie, "BATCH_ROWS", 1 << 9)
    simulation = lanescope.simulate(family, seed=4, **options)
    for name, content in simulation.files.items():
        (tmp_path / name).write_bytes(content)
    path = tmp_path / next(iter(simulation.files))
    batches = list(lanescope.iter_batches(path, window=window))
    whole = Trace.concat(batches)
    wanted = answers(lambda: AnalysisCache(whole))
    for most in (1, len(whole.slices) // 3, ALL):
        assert on_disk(batches, most)[0] == wanted
    shared = LanesOnDisk()
    monkeypatch.setattr(lanes_on_disk, "IN_MEMORY", 0)
    for batch in batches:
        shared.add(batch)
    assert (shared.result().views == AnalysisCache(whole).views).all()


def test_timestamps_apart_from_all_others_are_found_in_all_batches(monkeypatch):
    """More of them than a sample holds, so that they are looked for once more, on disk."""
    monkeypatch.setattr("lanescope.analysis.plausibility.stamps.SAMPLE", 1 << 8)
    builder = TraceBuilder(TimeBase())
    lanes = [builder.track(f"core {number}", kind="lane", role="core") for number in range(3)]
    batches = []
    for number in range(6):
        ts = 1_000 * number + np.arange(0, 1_000, 5)
        builder.append("slices", track_id=np.resize(lanes, len(ts)), ts=ts, dur=3, name="mma")
        builder.append("instants", track_id=lanes[0], ts=ts[:3], name="mark")
        if number == 2:
            builder.append("slices", track_id=lanes[1], ts=10**14, dur=7, name="stray")
        batches.append(builder.batch())
    batches.append(builder.finish())
    whole = AnalysisCache(Trace.concat(batches))
    assert whole.time.attested.window is not None
    assert len(whole.time.attested.rows)
    found, count = on_disk(batches, most=300)
    assert count == 3
    assert found == answers(lambda: AnalysisCache(whole.trace))


def test_a_part_reads_its_lanes_only():
    builder = TraceBuilder(TimeBase())
    lanes = [builder.track(f"core {number}", kind="lane", role="core") for number in range(40)]
    stored = SlicesOnDisk()
    rows = []
    for number in range(5):
        track = np.roll(np.repeat(lanes, 3), number)
        builder.append("slices", track_id=track, ts=np.arange(120) + 120 * number, dur=1, name=[f"n{number}"] * 120)
        batch = builder.batch()
        rows += list(batch.slices.rows("id", "track_id", "ts", "dur", "name"))
        stored.add(batch.slices)
    number = np.arange(40) % 7
    read, least = [], []
    inner = stored._read
    stored._read = lambda one, runs: read.append(int((runs[:, 1] - runs[:, 0]).sum())) or inner(one, runs)
    for part in range(7):
        table, at = stored.part(number, part)
        assert list(table.rows("id", "track_id", "ts", "dur", "name")) == [rows[row] for row in at.tolist()]
        assert [row["track_id"] % 7 == part for row in table.rows()] == [True] * len(table)
        least.append(len(table))
    assert sum(least) == len(rows)
    assert sum(read) == 4 * len(rows)  # place, time, length and name of each once
    assert stored.per_track(40).tolist() == [15] * 40
    assert stored.tracks_of(np.array([599, 0, 7, -1, 600, 0])).tolist() == [
        rows[599]["track_id"], rows[0]["track_id"], rows[7]["track_id"], -1, -1, rows[0]["track_id"]
    ]  # fmt: skip


def test_ids_that_do_not_count_up_and_other_dictionaries():
    traces = []
    for names in (["a", "b"], ["b", "c"]):
        builder = TraceBuilder(TimeBase())
        lane = builder.track("core", kind="lane", role="core")
        builder.append("slices", track_id=lane, ts=[0, 5, 9], dur=[4, 3, 2], name=[names[0], names[1], names[0]])
        traces.append(builder.finish().slices.take(np.array([2, 0, 1])))
    stored = SlicesOnDisk()
    for table in traces:
        stored.add(table)
    table, rows = stored.part(np.zeros(1, np.int64), 0)
    assert rows.tolist() == list(range(6))
    assert table["id"].tolist() == [2, 0, 1] * 2
    assert table["name"].tolist() == ["a", "a", "b", "b", "b", "c"]


def test_a_full_disk_is_an_error_of_one_line(monkeypatch):
    builder = TraceBuilder(TimeBase())
    lane = builder.track("core", kind="lane", role="core")
    builder.append("slices", track_id=lane, ts=0, dur=4, name="a")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with pytest.raises(InputError, match="cannot create a temporary file: no space left on device"):
        SlicesOnDisk()
    monkeypatch.undo()
    monkeypatch.setattr("os.pwrite", full)
    with pytest.raises(InputError, match="cannot write to the temporary file: no space left on device") as caught:
        SlicesOnDisk().add(builder.finish().slices)
    assert "TMPDIR" in caught.value.hint
