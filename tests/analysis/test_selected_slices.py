"""What windows select by name, duration or condition: answers are those of all slices, and show the selected part."""

import pickle

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import lanescope
from lanescope import TimeBase, TraceBuilder, UsageError
from lanescope.analysis import lane_parts, lanes_on_disk, occupancy, overlap
from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.analysis.idle import idle
from lanescope.analysis.idle_causes import causes
from lanescope.analysis.lanes_on_disk import LanesOnDisk
from lanescope.analysis.phases import BY, gaps, phases
from lanescope.analysis.windows.selected import SelectedSlices
from lanescope.common.intervals import known_extents
from lanescope.testing import strategies
from lanescope.trace import Column, Dictionary, Table, Trace
from passes import cut

ALL = 1 << 62


def rows(table, *drops):
    return [{name: value for name, value in row.items() if name not in ("id", *drops)} for row in table.rows()]


def named(trace):
    """The same trace, each of whose slices has a name of its own; every third one is of a name that waits."""
    builder_names = [f"{'wait' if at % 3 == 0 else 'mma'}_{at}" for at in range(len(trace.slices))]
    columns = {name: trace.slices.column(name) for name in trace.slices.spec.names}
    texts = Dictionary(builder_names or [""])
    columns["name"] = Column.array(texts.codes(builder_names), dictionary=texts)
    slices = Table(trace.slices.spec, columns)
    return Trace(trace.time, {**trace.tables(), "slices": slices}, trace.details)


def stretches_of(trace, names):
    """The stretches without work that one of some names is part of, by their texts: names have no spaces."""
    found = []
    for row in rows(idle(AnalysisCache(trace)), "producer_slice_id"):
        words = set(row["name"].split()) if row["kind"] == "bubble" else {row["name"]}
        if (words | {row["waits_for"]}) & names:
            found.append(row)
    return found


@given(strategies.traces(), st.data())
def test_the_selected_part_is_that_of_the_answer_of_all_slices(trace, data):
    trace = named(trace)
    assume(len(trace.slices))
    shortest = data.draw(st.sampled_from(sorted({row["dur"] or 0 for row in trace.slices.rows()})))
    times = sorted({time for row in trace.slices.rows() for time in (row["ts"], row["ts"] + (row["dur"] or 0))})
    edges = sorted(data.draw(st.lists(st.sampled_from(times), min_size=1, max_size=2, unique=True)))
    first, last = data.draw(st.sampled_from([(None, None), (edges[0], None), (*edges, None)[:2]]))
    asked = {"name": ["wait_0", "mma_*"], "min_dur": shortest}
    extents = known_extents(trace.slices)
    length = dict(zip(trace.slices["name"].tolist(), (extents.end - extents.begin).tolist(), strict=True))
    chosen = {name for name in length if (name == "wait_0" or name[0] == "m") and length[name] >= shortest}
    edge = {"start": None if first is None else f"@{first}", "end": None if last is None else f"@{last}"}
    whole, part = trace.window(**edge), trace.window(**edge, **asked)
    assert set(part.slices["name"].tolist()) == chosen & set(whole.slices["name"].tolist())
    # In any order, and pickled.
    others = [trace.window(**asked).window(**edge), pickle.loads(pickle.dumps(part))]
    for by in BY:
        wanted = [row for row in rows(whole.phases(by)) if row["name"] in chosen]
        for one in (part, *others) if by == "all" else [part]:
            assert rows(one.phases(by)) == wanted
    wanted = stretches_of(whole, chosen)
    found = AnalysisCache(part).over_all_slices
    assert rows(idle(found), "producer_slice_id") == wanted
    assert gaps(found, ALL).total == sum(row["dur"] for row in wanted)
    assert gaps(found, ALL).whole_total == sum(row["dur"] for row in rows(idle(AnalysisCache(whole))))
    sums = rows(causes(found))
    assert sum(row[f"total_{trace.time.time_unit}"] for row in sums) == sum(row["dur"] for row in wanted)
    # Ids are those of the window.
    names = dict(zip(part.slices["id"].tolist(), part.slices["name"].tolist(), strict=True))
    for row in idle(found).rows():
        assert (row["producer_slice_id"] is not None) == (row["waits_for"] in chosen)
        assert row["producer_slice_id"] is None or names[row["producer_slice_id"]] == row["waits_for"]


@given(strategies.traces(), st.sampled_from([1, 2, ALL]), st.lists(st.floats(0, 1), max_size=4), st.integers(1, 3))
def test_slices_on_disk_are_selected_as_those_in_memory(trace, most, cuts, step):
    trace = named(trace)
    mask = trace.slices["id"] % (step + 1) < step
    shared = AnalysisCache(trace)
    shared.selected = SelectedSlices.of(mask)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes_on_disk, "IN_MEMORY", 0)
        patch.setattr(lane_parts, "MOST", most)
        patch.setattr(lane_parts, "PER_TRACK", 0)
        lanes = LanesOnDisk()
        for batch in cut(trace, sorted(cuts)):
            lanes.add(batch)
        stored = lanes.result()
        stored.selected = SelectedSlices.of(mask)
        found = [
            rows(phases(stored, "group")),
            gaps(stored, 5)[1:],
            rows(gaps(stored, ALL).table),
            rows(causes(stored)),
        ]
    wanted = [rows(phases(shared, "group")), gaps(shared, 5)[1:], rows(gaps(shared, ALL).table), rows(causes(shared))]
    assert found == wanted


def attention():
    """A block that loads, waits and computes."""
    builder = TraceBuilder(TimeBase())
    block = builder.track("block 0", kind="group", role="block")
    a, b = (builder.track(name, kind="lane", role="group", parent=block) for name in ("load", "compute"))
    names = ["tma", "tma", "wait", "mma", "exp", "mma"]
    builder.append(
        "slices", track_id=[a, a, b, b, b, b], ts=[0, 60, 0, 60, 80, 90], dur=[50, 20, 60, 20, 5, 10], name=names
    )
    return builder.finish()


def test_tables_of_sql_are_those_of_all_slices():
    trace = attention()
    part = trace.window(name="mma")
    assert list(part.sql("select name, state, total_ns from phases order by track_id").rows()) == [
        {"name": "mma", "state": "busy", "total_ns": 30}
    ]
    assert [row["name"] for row in part.sql("select name from idle order by ts").rows()] == ["between exp and mma"]
    assert part.sql("select sum(dur) d from longest_gaps").rows().__next__()["d"] == 5
    # Loads of which nothing that computes was selected are hidden as before.
    loads = trace.window(name="tma").sql("select region, total_ns, hidden_ns from exposure where region is not null")
    assert list(loads.rows()) == [{"region": "tma", "total_ns": 70, "hidden_ns": 20}]
    used = trace.window(name="tma").sql("select busy_ns, compute_ns from utilization")
    assert list(used.rows()) == list(trace.sql("select busy_ns, compute_ns from utilization").rows())
    assert not len(trace.window(name="nothing").sql("select * from utilization"))
    active = trace.window(name="tma").sql("select counted, sum(dur * active) t from occupancy group by 1")
    assert list(active.rows()) == [{"counted": "tma", "t": 70}]


def test_nothing_selected_is_nothing_shown():
    part = attention().window(name="none")
    assert not len(part.phases())
    assert not len(part.longest_gaps())
    shared = AnalysisCache(part).over_all_slices
    assert not len(causes(shared))
    assert not len(occupancy.occupancy(shared))
    assert all(row["region"] for row in overlap.exposure(shared).rows())
    first = next(part.explain().rows())
    assert (first["topic"], first["share"]) == ("selected", 0.0)


@pytest.mark.parametrize("part", [{"name": "qk"}, {"min_dur": 400}, {"where": "dur > 400"}])
def test_a_trace_that_was_read_without_some_slices_says_what_to_do(tmp_path, part):
    simulation = lanescope.simulate("cuda", seed=1, blocks=2, tiles=4)
    for name, content in simulation.files.items():
        (tmp_path / name).write_bytes(content)
    path = tmp_path / next(iter(simulation.files))
    trace = lanescope.open(path, window=part)
    asked = [trace.phases, trace.longest_gaps, trace.explain, trace.critical_path, trace.window(0).phases]
    for ask in (*asked, lambda: trace.sql("select * from idle")):
        with pytest.raises(UsageError, match="this trace was read without") as error:
            ask()
        assert error.value.hint == (
            "read all of it and select then: --name, --min-dur, --where, or open(path).window(name=...)"
        )
    assert len(lanescope.open(path).window(**part).phases())


def test_the_sentence_on_selected_slices_has_their_figures(tmp_path):
    simulation = lanescope.simulate("kineto", seed=3, steps=2)
    for name, content in simulation.files.items():
        (tmp_path / name).write_bytes(content)
    trace = lanescope.open(tmp_path / next(iter(simulation.files)))
    work = [row for row in trace.critical_path().summary.rows() if row["cause"] == "work"]
    name = max(work, key=lambda row: row["dur"])["name"]
    part = trace.window(name=name)
    first, *rest = part.explain().rows()
    shares = {row["state"]: row["share"] for row in part.phases("all").rows()}
    assert first["topic"] == "selected"
    assert first["share"] == pytest.approx(shares.get("busy", 0.0))
    path = part.critical_path()
    assert path.selected_of(path.longest) > 0
    share = path.selected_of(path.longest) / path.longest.length
    assert f"are {share:.1%} of the critical path" in first["sentence"]
    whole = rows(trace.explain())
    assert rows(part.explain())[1:] == whole[: len(rest)]
