"""Answers made of parts of lanes are those of the whole trace, however small the parts are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanescope
from lanescope import TimeBase, TraceBuilder
from lanescope.analysis import lane_parts
from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.analysis.phases import BY, gaps, phases
from lanescope.analysis.producer_votes import ProducerVotes
from lanescope.testing import strategies

ALL = 1 << 62


def with_waits(trace):
    """The same trace with some of its names being ones that wait."""
    names = trace.slices.column("name").dictionary
    for at in range(0, len(names.texts) if names is not None else 0, 2):
        names.texts[at] = f"wait_{at}"
    return trace


def answers(trace, most):
    """Return all answers with parts of that many slices, and how many parts there were."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lane_parts, "MOST", most)
        patch.setattr(lane_parts, "PER_TRACK", 0)
        found = [list(phases(AnalysisCache(trace), by).rows()) for by in BY]
        for limit in (1, 3, ALL):
            table, count, *_ = gaps(AnalysisCache(trace), limit)
            found.append([count, *table.rows()])
        return found, len(lane_parts.of_parts(AnalysisCache(trace), lambda part: None))


@given(strategies.traces(), st.sampled_from([1, 2, 5]))
def test_parts_of_any_size_change_nothing(trace, most):
    trace = with_waits(trace)
    assert answers(trace, most)[0] == answers(trace, ALL)[0]


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("cuda", {"blocks": 6, "sms": 3, "tiles": 4}),
        ("cuda", {"layout": "ls2", "blocks": 4, "tiles": 4, "across": True}),
        ("cuda", {"blocks": 6, "tiles": 4, "clock_step": 2, "unfinished": 2, "overflow": True}),
        ("ascend", {"tasks": 60}),
        ("levelzero", {"ops": 80}),
        ("aie", {"tiles": 3, "records": 300}),
        ("kineto", {"steps": 2}),
    ],
)
def test_parts_of_captures_change_nothing(family, options, tmp_path):
    simulation = lanescope.simulate(family, seed=3, **options)
    for name, content in simulation.files.items():
        (tmp_path / name).write_bytes(content)
    trace = lanescope.open(tmp_path / next(iter(simulation.files)))
    whole, _ = answers(trace, ALL)
    seen = set()
    for most in (1, len(trace.slices) // 3):
        found, count = answers(trace, most)
        assert found == whole
        seen.add(count)
    # Flows connect all lanes of a Level Zero trace.
    assert family == "levelzero" or max(seen) > 1


def lanes_that_wait(blocks):
    """Return blocks of two lanes; in all but one of them something ends between the load and the wait for it."""
    builder = TraceBuilder(TimeBase())
    for number in range(blocks):
        block = builder.track(f"block {number}", kind="group", role="block")
        lanes = [builder.track(name, kind="lane", role="group", parent=block) for name in ("load", "log", "compute")]
        names = ["tma", "print", "wait", "mma"]
        ends = [60, 55] if number else [60, 62]
        builder.append(
            "slices", track_id=[*lanes, lanes[2]], ts=[0, 0, 0, 70], dur=[ends[0], ends[1], 70, 50], name=names
        )
    return builder.finish()


def test_lanes_of_other_parts_tell_what_a_wait_mostly_waits_for():
    trace = lanes_that_wait(4)
    whole, _ = answers(trace, ALL)
    found, count = answers(trace, 1)
    assert count == 4
    assert found == whole
    waiting = [row for row in found[0] if row["state"] == "waiting"]
    assert [row["cause"] for row in waiting] == ["tma"] * 4
    alone = [row for row in phases(AnalysisCache(lanes_that_wait(1))).rows() if row["state"] == "waiting"]
    assert [row["cause"] for row in alone] == ["print"]  # by itself the first block does not tell


def test_lanes_that_flows_connect_are_in_one_part(monkeypatch):
    builder = TraceBuilder(TimeBase())
    groups = [builder.track(f"group {number}", kind="group", role="block") for number in range(6)]
    lanes = [builder.track("lane", kind="lane", role="group", parent=group) for group in groups]
    builder.append("slices", track_id=lanes, ts=[0] * 6, dur=[10] * 6, name=["work"] * 6)
    for source, target in ((0, 4), (4, 2)):
        ends = {"src_track_id": [lanes[source]], "dst_track_id": [lanes[target]]}
        builder.append("flows", **ends, src_ts=[10], dst_ts=[12], kind=["signal"])
    monkeypatch.setattr(lane_parts, "MOST", 1)
    monkeypatch.setattr(lane_parts, "PER_TRACK", 0)
    parts = lane_parts.of_parts(AnalysisCache(builder.finish()), lambda part: part.lanes.tolist())
    assert sorted(map(sorted, parts)) == sorted([[lanes[0], lanes[2], lanes[4]], [lanes[1]], [lanes[3]], [lanes[5]]])
    monkeypatch.setattr(lane_parts, "_PAIRS", 1)
    assert len(lane_parts.of_parts(AnalysisCache(builder.finish()), lambda part: None)) == 1


def test_votes_of_parts_are_those_of_all():
    random = np.random.default_rng(2)
    alike, name = random.integers(0, 5, 400), random.integers(0, 7, 400)
    whole = ProducerVotes.of(alike, name)
    joined = ProducerVotes.joined(
        ProducerVotes.of(alike[begin : begin + 30], name[begin : begin + 30]) for begin in range(0, 400, 30)
    )
    wanted = np.array([0, 4, 9, 2])
    assert joined.usual(wanted).tolist() == whole.usual(wanted).tolist()
    for each, found in zip(wanted.tolist(), whole.usual(wanted).tolist(), strict=True):
        counts = np.bincount(name[alike == each], minlength=7)
        assert found == (counts.argmax() if counts.any() else -1)
    assert ProducerVotes.joined([]).usual(wanted).tolist() == [-1] * 4
