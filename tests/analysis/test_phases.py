"""Phases of lanes against one moment at a time, and the longest stretches without work against a plain sort."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanescope
from lanescope import InputError, TimeBase, TraceBuilder, UsageError
from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.analysis.phases import BY
from lanescope.analysis.track_tree import Tree
from lanescope.analysis.work_classes import WAIT, classify
from lanescope.testing import strategies


def span(trace):
    """The first and the last time that any row names."""
    times = [0][:0]
    for name in ("slices", "instants", "counters", "gaps", "coverage"):
        for row in trace.tables()[name].rows():
            times += [row["ts"], row["ts"] + (row.get("dur") or 0)]
    return (min(times), max(times)) if times else (0, 0)


def moments(trace):
    """How many moments each lane spends in each state and name, looking at each moment by itself."""
    tree = Tree(trace.tracks)
    low, high = span(trace)
    found = {}
    for lane in tree.lanes.tolist():
        above = tree.ancestors(lane)
        slices = [row for row in trace.slices.rows() if row["track_id"] == lane]
        gaps = [row for row in trace.gaps.rows() if row["track_id"] in above]
        coverage = [row for row in trace.coverage.rows() if row["track_id"] in above]
        own = [(row["ts"], row["ts"] + row["dur"]) for row in slices]
        own += [(row["ts"], row["ts"]) for row in trace.instants.rows() if row["track_id"] == lane]
        hull = (min(begin for begin, _ in own), max(end for _, end in own)) if own else None
        is_free = trace.tracks["nesting"][lane] == "free"
        counts = Counter()
        for now in range(low, high):
            runs = [row for row in slices if row["ts"] <= now < row["ts"] + row["dur"]]
            runs.sort(key=lambda row: (row["ts"], -row["dur"], row["id"]))
            if not is_free:
                runs = runs[-1:]
            working = [row for row in runs if classify(row["name"]) != WAIT]
            if any(row["ts"] <= now and (row["dur"] is None or now < row["ts"] + row["dur"]) for row in gaps):
                counts["not recorded", ""] += 1
            elif working:
                counts["busy", working[0]["name"]] += 1
            elif runs:
                counts["waiting", runs[0]["name"]] += 1
            elif any(row["ts"] <= now < row["ts"] + row["dur"] for row in coverage) or (
                not coverage and hull is not None and hull[0] <= now < hull[1]
            ):
                counts["idle", ""] += 1
            else:
                counts["not recorded", ""] += 1
        found[lane] = counts
    return found


def waiting_names(trace):
    """The same trace with one of its names being one that waits."""
    names = trace.slices.column("name").dictionary
    if names is not None and names.texts:
        names.texts[0] = "wait_full"
    return trace


@given(strategies.valid_traces(max_slices=6, max_lanes=4), st.sampled_from(BY))
def test_phases_are_those_of_each_moment(trace, by):
    trace = waiting_names(trace)
    tree = Tree(trace.tracks)
    owner = {
        "lane": lambda lane: lane,
        "group": lambda lane: tree.parents[lane] if tree.parents[lane] >= 0 else lane,
        "device": tree.device,
        "all": lambda _: None,
    }[by]
    wanted = Counter()
    for lane, counts in moments(trace).items():
        for (state, name), count in counts.items():
            wanted[owner(lane), state, name] += count
    got = Counter()
    for row in lanescope.phases(trace, by).rows():
        got[row["track_id"], row["state"], row["name"]] += row["total"]
    assert got == wanted


@given(strategies.traces(), st.sampled_from(BY))
def test_phases_add_up_exactly(trace, by):
    table = lanescope.phases(trace, by)
    shared = AnalysisCache(trace)
    tree = shared.time.tree
    lanes = Counter()
    for lane in tree.lanes.tolist():
        parent = tree.parents[lane]
        group = parent if parent >= 0 else lane
        lanes[{"lane": lane, "group": group, "device": tree.device(lane), "all": None}[by]] += 1
    totals = Counter()
    for row in table.rows():
        totals[row["track_id"]] += row["total"]
    assert totals == Counter({owner: count * shared.window for owner, count in lanes.items() if shared.window})
    shares = Counter()
    for row in table.rows():
        shares[row["track_id"]] += row["share"]
    assert all(share == pytest.approx(1) for share in shares.values())


@given(strategies.traces(), st.integers(1, 6))
def test_the_longest_gaps_are_the_longest(trace, limit):
    from lanescope.analysis.idle import idle

    rows = sorted(idle(AnalysisCache(trace)).rows(), key=lambda row: (-row["dur"], row["id"]))[:limit]
    found = list(lanescope.longest_gaps(trace, limit).rows())
    assert [(row["track_id"], row["ts"], row["dur"], row["name"], row["ended_by"]) for row in found] == [
        (row["track_id"], row["ts"], row["dur"], row["name"], row["waits_for"]) for row in rows
    ]
    assert [row["state"] for row in found] == ["idle" if row["kind"] == "bubble" else "waiting" for row in rows]


def two_lanes():
    builder = TraceBuilder(TimeBase())
    block = builder.track("block 0", kind="group", role="block")
    a, b = (builder.track(name, kind="lane", role="group", parent=block) for name in ("load", "compute"))
    first = builder.append("slices", track_id=[a, a], ts=[0, 70], dur=[50, 30], name=["tma", "tma"])
    second = builder.append("slices", track_id=[b, b], ts=[0, 60], dur=[60, 20], name=["wait", "mma"])
    builder.append("coverage", track_id=block, ts=0, dur=120)
    builder.append("gaps", track_id=b, ts=110, dur=10, cause="overrun")
    builder.append(
        "flows", kind="signal", src_track_id=a, src_ts=50, dst_track_id=b, dst_ts=55,
        src_slice_id=first, dst_slice_id=second,
    )  # fmt: skip
    return builder.finish()


def test_causes_are_named():
    rows = {
        (row["track"], row["state"], row["name"]): (row["cause"], row["quality"], row["total"])
        for row in lanescope.phases(two_lanes()).rows()
    }
    assert rows == {
        ("block 0/load", "busy", "tma"): (None, None, 80),
        ("block 0/load", "idle", ""): (None, None, 40),
        ("block 0/compute", "waiting", "wait"): ("tma", "exact", 60),
        ("block 0/compute", "busy", "mma"): (None, None, 20),
        ("block 0/compute", "idle", ""): (None, None, 30),
        ("block 0/compute", "not recorded", ""): ("gap or unfinished slice", None, 10),
    }
    longest = next(lanescope.longest_gaps(two_lanes()).rows())
    assert (longest["track"], longest["dur"], longest["ended_by"]) == ("block 0/compute", 60, "tma")
    assert (longest["ended_by_track"], longest["quality"], longest["latency"]) == ("block 0/load", "exact", 10)


def test_calls_that_wait_for_a_device_wait():
    builder = TraceBuilder(TimeBase())
    thread = builder.track("thread", kind="lane", role="host_thread")
    names = ["zeCommandQueueSynchronize", "cudaStreamSynchronize", "zeCommandListAppendLaunchKernel"]
    builder.append("slices", track_id=thread, ts=[0, 10, 30], dur=[10, 20, 5], name=names)
    states = {row["name"]: row["state"] for row in lanescope.phases(builder.finish()).rows()}
    assert states == dict(zip(names, ["waiting", "waiting", "busy"], strict=True))


def test_windows_and_phases_agree():
    trace = two_lanes()
    part = trace.window(20, 90)
    assert sum(row["total"] for row in part.phases("all").rows()) == 2 * 70
    assert np.sum([row["total"] for row in part.phases().rows() if row["state"] == "busy"]) == 30 + 20 + 20
    (row,) = trace.window(name="mma").phases("all").rows()
    assert (row["name"], row["state"]) == ("mma", "busy")
    with pytest.raises(UsageError, match="unknown --by"):
        trace.phases("sm")


@pytest.mark.parametrize("family", ["kineto", "ascend"])
def test_lanes_that_show_what_others_show_count_once(tmp_path, family):
    simulated = lanescope.simulate(family)
    for name, content in simulated.files.items():
        (tmp_path / name).write_bytes(content)
    trace = lanescope.open(tmp_path / next(iter(simulated.files)))
    tree = Tree(trace.tracks)
    roles = trace.tracks["role"].tolist()
    category = {row["track_id"]: row["category"] for row in trace.slices.rows()}
    shown = {"user_annotation", "gpu_user_annotation", "python_function", "cuda_sync", "overhead"}
    views = {
        lane for lane in tree.lanes.tolist() if roles[lane] in ("flight", "profiler") or category.get(lane) in shown
    }
    own = [lane for lane in tree.lanes.tolist() if lane not in views]
    assert views
    assert own
    assert {row["track_id"] for row in trace.phases("lane").rows()} == set(own)
    low, high = span(trace)
    assert sum(row["total"] for row in trace.phases("all").rows()) == len(own) * (high - low)
    assert not {row["track"] for row in trace.longest_gaps(10_000).rows()} & {tree.path(lane) for lane in views}


def lanes_of(*rows, lanes=2):
    """Return a trace of slices, each a lane, a begin and a duration."""
    builder = TraceBuilder(TimeBase())
    tracks = [builder.track(f"lane {number}", kind="lane", role="core") for number in range(lanes)]
    lane, ts, dur = zip(*rows, strict=True)
    builder.append("slices", track_id=[tracks[at] for at in lane], ts=ts, dur=dur, name=["work"] * len(rows))
    return builder.finish()


def test_any_number_of_longest_gaps_may_be_asked_for():
    trace = lanes_of((0, 0, 5), (0, 7, 5), (1, 0, 2), (1, 9, 3))
    found = [list(lanescope.longest_gaps(trace, limit).rows()) for limit in (0, 1, 2, 1 << 62)]
    assert [[row["dur"] for row in rows] for rows in found] == [[], [7], [7, 2], [7, 2]]
    with pytest.raises(UsageError, match="invalid limit -1"):
        lanescope.longest_gaps(trace, -1)


def test_sums_beyond_63_bits_are_refused():
    far = 1 << 62
    trace = lanes_of((0, 0, far), (1, 5, far))
    assert {row["total"] for row in lanescope.phases(trace, "lane")} == {far, 5}
    with pytest.raises(UsageError, match="summed by all, take more than 63 bits"):
        lanescope.phases(trace, "all")
    for ask in (lanescope.phases, lanescope.longest_gaps, lanescope.explain):
        with pytest.raises(InputError, match="too far apart"):
            ask(lanes_of((0, -far, 5), (1, far, 5)))
