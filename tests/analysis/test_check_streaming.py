"""Findings by batch are those of the whole trace, and sound rows are let go."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.spilling import few_rows_to_disk
from effort import QUICK, TRACES, some
from lanescope import InputError, LanescopeError, StatSpec, testing
from lanescope.analysis import check
from lanescope.analysis.check import kept_rows
from lanescope.analysis.check import streaming as by_batch
from lanescope.analysis.check.evidence_rows import EvidenceRows
from lanescope.families import registry
from lanescope.families.options import resolve_options
from lanescope.pipeline import session
from lanescope.pipeline.run import run
from lanescope.source import disk_arrays
from lanescope.testing.strategies import intervals
from lanescope.trace import Flag, TimeBase, Trace, TraceBuilder
from passes import Passes, cut


def watched(batches, **chosen):
    """What a checker finds in the batches, and whether it had to look again; the totals are checked on the way."""
    checker = check.StreamingChecker(**chosen)
    totals = check.StreamingTotals(checker)
    for batch in batches:
        checker.add(batch)
        totals.add(batch)
    looks = checker.wants_replay()
    again = [observer for observer, wants in ((checker, looks), (totals, totals.wants_replay())) if wants]
    for batch in batches:
        for observer in again:
            observer.replay(batch)
    found = checker.result()
    whole = Trace.concat(batches)
    assert totals.result(found) == (check.totals(whole), check.totals(whole, found))
    assert totals.result() == (check.totals(whole), check.totals(whole))
    return found, looks


def same(found, expected):
    """Compare field by field, and all evidence rows."""
    assert [finding.to_dict() for finding in found] == [finding.to_dict() for finding in expected]
    for finding, other in zip(found, expected, strict=True):
        assert finding.evidence.ids.tolist() == other.evidence.ids.tolist()


# --- the same findings ------------------------------------------------------------------------------------------------


@given(testing.traces(**TRACES), st.lists(st.floats(0, 1), max_size=4))
def test_any_trace_cut_anywhere(trace, cuts):
    same(watched(cut(trace, cuts))[0], check.run(trace))


@given(testing.batches(**TRACES))
def test_any_batches_of_a_decode(batches):
    same(watched(batches)[0], check.run(Trace.concat(batches)))


@st.composite
def _ordered(draw):
    """Batches whose lanes come in order, mostly sound, with what goes wrong now and then."""
    builder = TraceBuilder(TimeBase())
    clock = builder.clock(name="c", device="d", frequency=None)
    groups = [builder.track("device", kind="group", role="device")]
    groups.append(builder.track("tile", kind="group", role="tile", parent=groups[0]))
    rows = []
    lanes = []

    def lane():
        nesting = draw(st.sampled_from(("disjoint", "nested", "free")))
        parent = draw(st.sampled_from((None, *groups)))
        track = builder.track(
            f"lane {len(lanes)}", kind="lane", role="core", parent=parent, nesting=nesting, clock_id=clock
        )
        lanes.append((track, nesting))
        return track, nesting

    for _ in range(draw(st.integers(1, 3))):
        track, nesting = lane()
        lengths = list(draw(intervals(draw(st.sampled_from((nesting, nesting, "free"))), max_size=9)))
        shuffled = draw(st.integers(0, 9)) == 0
        for ts, dur in draw(st.permutations(lengths)) if shuffled else lengths:
            rows.append((ts, "slices", track, dur))
        rows += [(ts, "instants", track, 0) for ts in sorted(draw(st.lists(st.integers(0, 90), max_size=3)))]
    for _ in range(draw(st.integers(0, 3))):
        track = draw(st.sampled_from((*groups, *(track for track, _ in lanes))))
        ts, dur = draw(st.integers(0, 90)), draw(st.none() | st.integers(0, 30))
        rows.append((ts if dur is None else ts + dur, "gaps", track, dur))
    if draw(st.booleans()):
        rows.append((draw(st.integers(0, 200)), "coverage", draw(st.sampled_from(groups)), draw(st.integers(0, 200))))
    steps = draw(st.sampled_from((1, 3)))
    if draw(st.booleans()):  # as time goes by; else lane by lane
        rows.sort(key=lambda row: row[0])
    found = []
    for ts, table, track, dur in rows:
        odd = draw(st.integers(0, 12))
        flags = int(draw(st.sampled_from(list(Flag)))) if odd == 0 else 0
        ticks = draw(st.integers(0, 300)) if odd == 1 else None if odd == 2 else ts // steps
        if table == "slices":
            is_open = odd == 3
            builder.append(
                "slices",
                track_id=99 if odd == 4 else track,
                ts=ts,
                dur=None if is_open else -1 if odd == 5 else dur,
                ts_ticks=ticks,
                dur_ticks=-2 if odd == 6 else dur // steps,
                name=draw(st.sampled_from("ab")),
                flags=flags,
                last_known_ts=ts + draw(st.integers(-1, 9)) if is_open and draw(st.booleans()) else None,
            )
        elif table == "instants":
            builder.append("instants", track_id=track, ts=ts, ts_ticks=ticks, name="i", flags=flags)
        elif table == "gaps":
            builder.append("gaps", track_id=track, ts=ts - (dur or 0), dur=dur, cause="overrun")
        else:
            builder.append("coverage", track_id=track, ts=0, dur=ts)
        if draw(st.integers(0, 4)) == 0:
            if draw(st.booleans()):
                lane()
            found.append(builder.batch())
    count = sum(table == "slices" for _, table, _, _ in rows)
    for _ in range(draw(st.integers(0, 3))):
        ids = draw(st.none() | st.tuples(*[st.integers(0, max(count - 1, 0))] * 2))
        builder.append(
            "flows",
            kind="signal",
            src_track_id=lanes[0][0],
            src_ts=draw(st.integers(0, 90)),
            dst_track_id=lanes[-1][0],
            dst_ts=draw(st.integers(0, 90)),
            src_slice_id=ids and ids[0],
            dst_slice_id=ids and ids[1],
        )
    if draw(st.booleans()):
        builder.append("counters", track_id=groups[0], ts=draw(st.integers(-300, 300)), value=1.0)
    return [*found, builder.finish()]


@settings(max_examples=some(300))
@given(_ordered(), st.sampled_from((0, 3, 1 << 16)))
def test_batches_whose_lanes_come_in_order(batches, trial):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_batch, "_TRIAL", trial)
        same(watched(batches)[0], check.run(Trace.concat(batches)))


@given(_ordered(), st.sampled_from(("LS1", "LS104", "LS301", "LS3")))
def test_a_choice_of_rules(batches, choice):
    whole = Trace.concat(batches)
    same(watched(batches, select=[choice])[0], check.run(whole, select=[choice]))
    same(watched(batches, ignore=[choice])[0], check.run(whole, ignore=[choice]))


@pytest.mark.parametrize("family", [family.name for family in registry.builtin()])
def test_what_every_simulator_makes(family, tmp_path):
    chosen = registry.family(family)
    for seed in (1, 2):
        simulated = chosen.simulate(resolve_options(chosen.sim_options, {}, what="sim"), seed)
        for name, data in simulated.files.items():
            (tmp_path / name).write_bytes(data)
        path = tmp_path / next(iter(simulated.files))
        _same_in_pieces(path)


def _same_in_pieces(path):
    batches = list(session.iter_batches(path))
    whole = Trace.concat(batches)
    expected = check.run(whole)
    same(watched(batches)[0], expected)
    same(watched(cut(whole, (0.2, 0.21, 0.7)))[0], expected)


def test_what_devices_recorded(corpus):
    known = 0
    for path in sorted(corpus.rglob("*")):
        if QUICK and path.is_file() and path.stat().st_size > 30_000:
            continue
        if path.is_file() and path.suffix in (".bin", ".npy", ".json", ".bt_text_pretty", ".thapi_text_pretty"):
            try:
                session.open(path)
            except LanescopeError:
                continue
            _same_in_pieces(path)
            known += 1
    assert known >= 12


# --- what is kept -----------------------------------------------------------------------------------------------------


def _kept(watch):
    """How many rows of each table a watch has kept."""
    return {name: len(swept.rows.joined()[0]) for name, swept in watch._swept.items()}


@pytest.mark.parametrize("nesting", ["disjoint", "nested", "free"])
def test_sound_rows_are_let_go(nesting):
    builder, watch = TraceBuilder(TimeBase()), check.StreamingChecker()
    tracks = [builder.track(f"lane {n}", kind="lane", role="core", nesting=nesting) for n in range(3)]
    # In a nest every other slice lies at the end of the one before, and the first holds all batches.
    lengths = {"disjoint": (10, 10), "nested": (20, 10), "free": (15, 900)}[nesting]
    for number in range(8):
        ts = np.arange(1000 * number, 1000 * (number + 1), 10)
        dur = np.resize(lengths, len(ts))
        if nesting == "nested" and number == 0:
            dur[0] = 8000
        for track in tracks:
            ts = ts + 1  # no lane is a copy of another one
            builder.append("slices", track_id=track, ts=ts, dur=dur, ts_ticks=ts // 30, name="a")
            builder.append("instants", track_id=track, ts=ts, ts_ticks=ts // 30, name="i")
        watch.add(builder.batch())
    watch.add(builder.finish())
    assert _kept(watch) == {"slices": 0, "instants": 0}
    assert not watch.wants_replay()
    assert watch.result() == []


@given(_ordered())
def test_a_kept_row_is_evidence_flagged_or_beside_a_gap(batches):
    watch = check.StreamingChecker()
    for batch in batches:
        watch.add(batch)
    kept = {name: set(swept.rows.joined()[0].tolist()) for name, swept in watch._swept.items()}
    whole = Trace.concat(batches)
    found = watched(batches)[0]
    for table in ("slices", "instants"):
        rows = whole.tables()[table]
        mine = [set(f.evidence.ids.tolist()) for f in found if f.evidence.table == table]
        ends = {row["ts"] + row["dur"] for row in whole.gaps.rows() if row["dur"]}
        for row in sorted(kept[table] - set().union(*mine)):
            own = next(rows.take(np.array([row])).rows())
            known = 0 <= own["track_id"] < len(whole.tracks)
            assert not known or any(end <= own["ts"] for end in ends), own


def one_lane(rows, *, nesting="disjoint", cuts=(), **columns):
    builder = TraceBuilder(TimeBase())
    builder.track("lane", kind="lane", role="core", nesting=nesting)
    found = []
    for first, last in zip((0, *cuts), (*cuts, len(rows)), strict=True):
        ts, dur = zip(*rows[first:last], strict=True)
        builder.append("slices", track_id=0, ts=ts, dur=dur, name="a", **{n: v[first:last] for n, v in columns.items()})
        found.append(builder.batch())
    return [*found, builder.finish()]


def test_pairs_that_clash_across_batches_need_no_second_look():
    for nesting, rows in (
        ("disjoint", [(0, 10), (10, 25), (30, 1), (36, 4), (40, 5)]),
        ("nested", [(0, 100), (1, 40), (2, 5), (30, 30), (41, 2), (99, 2)]),
    ):
        expected = check.run(Trace.concat(one_lane(rows, nesting=nesting)))
        assert expected
        for cut_at in range(1, len(rows)):
            found, looked = watched(one_lane(rows, nesting=nesting, cuts=(cut_at,)))
            same(found, expected)
            assert not looked


def test_what_cannot_be_told_in_passing_is_looked_at_again():
    rows = [(0, 10), (20, 10), (40, 10)]
    late, early = TraceBuilder(TimeBase()), TraceBuilder(TimeBase())
    for builder in (late, early):
        builder.track("lane", kind="lane", role="core")
        builder.append("slices", track_id=0, ts=[0, 20, 40], dur=[5, 10, 5], name="a")
    recorded = [late.batch()]
    late.append("gaps", track_id=0, ts=5, dur=5, cause="overrun")
    late.append("instants", track_id=0, ts=60, name="i")
    recorded.append(late.finish())
    too_long = [early.batch()]
    early.append("coverage", track_id=0, ts=0, dur=9)
    too_long.append(early.finish())
    for batches, code, kept in (
        (one_lane([rows[1], rows[0], rows[2], (45, 1)], cuts=(1, 2)), "LS101", 4),
        (one_lane(rows, cuts=(1,), ts_ticks=[5, 9, 7]), "LS301", 3),
        (recorded, "LS104", 1),
        (too_long, "LS102", 1),
    ):
        watch = check.StreamingChecker()
        for batch in batches:
            watch.add(batch)
        assert watch.wants_replay()
        for batch in batches:
            watch.replay(batch)
        found = watch.result()
        same(found, check.run(Trace.concat(batches)))
        assert code in {finding.code for finding in found}
        assert _kept(watch)["slices"] == kept


def test_a_gap_of_a_group_concerns_lanes_of_later_batches():
    builder = TraceBuilder(TimeBase())
    group = builder.track("device", kind="group", role="device")
    batches = []
    for number in range(3):
        lane = builder.track(f"core {number}", kind="lane", role="core", parent=group)
        builder.append("slices", track_id=lane, ts=[20 + number, 40], dur=5, name="a")
        if number == 0:
            builder.append("gaps", track_id=group, ts=10, dur=8, cause="overrun")
        batches.append(builder.batch())
    batches.append(builder.finish())
    found, _ = watched(batches)
    same(found, check.run(Trace.concat(batches)))
    gaps = [(one.location.track, one.evidence.ids.tolist()) for one in found if one.code == "LS104"]
    assert gaps == [("device/core 0", [0]), ("device/core 1", [2]), ("device/core 2", [4])]


def test_slices_may_come_before_their_lanes_do():
    builder = TraceBuilder(TimeBase())
    builder.track("core 0", kind="lane", role="core")
    builder.append("slices", track_id=[0, 1, 1, 2, 2], ts=[0, 10, 15, 12, 20], dur=10, name="a")
    batches = [builder.batch()]
    for name in ("core 1", "core 2"):
        builder.track(name, kind="lane", role="core")
    builder.append("slices", track_id=[1, 2], ts=40, dur=10, name="a")
    batches.append(builder.finish())
    found, _ = watched(batches)
    clashes = [(one.location.track, one.evidence.ids.tolist()) for one in found]
    assert clashes == [("core 1", [1, 2]), ("core 2", [3, 4])]


def test_rows_of_evidence_are_those_of_their_batch():
    builder = TraceBuilder(TimeBase())
    lane = builder.track("core 0", kind="lane", role="core")
    batches = []
    for number in range(3):
        builder.append("slices", track_id=lane, ts=[100 * number + at for at in (0, 5, 50)], dur=10 + number, name="a")
        batches.append(builder.batch())
    findings = check.run(Trace.concat(batches))
    rows = EvidenceRows(findings)
    run(Passes(batches), observers=[rows])
    assert [(row.id, row.lane, row.ts, row.dur) for row in rows.result()] == [
        (3 * number + at, "core 0", 100 * number + 5 * at, 10 + number) for number in range(3) for at in range(2)
    ]


def test_many_open_slices_are_looked_at_again():
    stair = [(n, 1000) for n in range(200)]  # each crosses all before it
    tower = [(n, 20_000 - 2 * n) for n in range(5000)] + [(5000, 20_000)]
    for rows in (stair, tower):
        batches = one_lane(rows, nesting="nested", cuts=(150,))
        found, looked = watched(batches)
        same(found, check.run(Trace.concat(batches)))
        assert found[0].count == len(rows)
        assert looked


def test_other_rows_at_the_second_look_are_refused():
    batches = one_lane([(20, 10), (0, 10), (40, 10)], cuts=(1,))
    for other in (batches[:1], [*batches, *batches]):
        with pytest.raises(InputError, match="input changed between two passes"):
            run(Passes(batches, other), observers=[check.StreamingChecker()])


def test_one_batch_is_judged_as_it_is(monkeypatch):
    batch = one_lane([(20, 10), (0, 10), (5, 10)])[:1]
    for trial in (1 << 16, 1):  # disorder is found wherever it begins
        monkeypatch.setattr(by_batch, "_TRIAL", trial)
        found, looked = watched(batch)
        same(found, check.run(batch[0]))
        assert found
        assert not looked


def test_a_first_batch_in_disorder_is_followed_by_others():
    parts = one_lane([(20, 10), (0, 10), (5, 10), (6, 50), (60, 1)], cuts=(2, 3))
    found, looked = watched(parts)
    same(found, check.run(Trace.concat(parts)))
    assert looked


def test_shares_are_those_of_all_batches():
    spec = StatSpec("toy_odd", "notice", "odd facts", finding="LS305 notice", share_of="events")
    builder = TraceBuilder(TimeBase(), stats=[spec])
    run = builder.input(capture="run", path="run.bin", size=0, sha256="", family="toy", format="toy")
    builder.add_bytes(decoded=0, input_id=run)
    batches = []
    devices = [builder.track(f"npu {number}", kind="group", role="device") for number in range(2)]
    for number, quality in enumerate(("exact", "exact", "inferred", ["estimated", "inferred"])):
        lane = builder.track(f"core {number}", kind="lane", role="core", parent=devices[number // 3])
        builder.append(
            "slices", track_id=lane, ts=[number * 100, number * 100 + 30], dur=20, name="mma", quality=quality
        )
        builder.append("instants", track_id=lane, ts=number * 100, name="mark")
        batches.append(builder.batch())
    builder.add_stat("toy_odd", 6, input_id=run)
    batches.append(builder.finish())
    found, _ = watched(batches)
    same(found, check.run(Trace.concat(batches)))
    assert [(one.severity, one.location.track, one.detail) for one in found] == [
        ("warning", "", "odd facts: 6 of 12 events (50.0%)"),
        ("notice", "npu 1", "estimated or inferred slices: 100.0% of the busy time of 1 lane"),
    ]


def test_a_batch_of_exact_slices_may_come_after_guessed_ones():
    builder = TraceBuilder(TimeBase())
    lane = builder.track("core 0", kind="lane", role="core")
    quality = ["inferred", "exact", "exact"]
    builder.append("slices", track_id=lane, ts=[0, 70, 100], dur=[60, 20, 20], name="mma", quality=quality)
    trace = builder.finish()
    found, _ = watched(cut(trace, [0.4]))  # both batches have the words of all
    same(found, check.run(trace))
    assert [one.detail for one in found] == ["estimated or inferred slices: 60.0% of the busy time of 1 lane"]


def test_slices_that_wait_for_a_later_one_on_their_lane_may_be_of_any_number_of_batches():
    made = TraceBuilder(TimeBase())
    lanes = [made.track(f"lane {number}", kind="lane", role="core") for number in range(600)]
    for at, lane in enumerate(lanes):
        made.append("slices", track_id=lane, ts=10 * at, dur=5, name="a")
    # It clashes with the last of the first lane, which was looked at in the first batch.
    made.append("slices", track_id=lanes[0], ts=2, dur=5, name="b")
    trace = made.finish()
    found, _ = watched(cut(trace, [at / 601 for at in range(1, 601)]))
    same(found, check.run(trace))
    assert [finding.code for finding in found] == ["LS101"]


def test_rows_that_are_kept_are_the_same_on_disk(monkeypatch):
    spilled = few_rows_to_disk(monkeypatch, kept_rows)
    builder, batches = TraceBuilder(TimeBase()), []
    lanes = [builder.track(f"core {number}", kind="lane", role="core", nesting="nested") for number in range(2)]
    for number in range(5):
        ts = 1000 * number + 10 * np.arange(40)
        flags = np.where(ts % 30 < 10 * number, int(Flag.CLOCK_SUSPECT), 0).astype(np.uint32)
        name = ["a", "b"] * 20 if number % 2 else "c"
        builder.append("slices", track_id=lanes[0], ts=ts, dur=15, name=name, flags=flags)
        builder.append("slices", track_id=lanes[1], ts=ts, dur=0, dur_valid=ts % 20 > 0, name=name)
        builder.append("instants", track_id=lanes[1], ts=ts, name="i", flags=int(Flag.WRAP_AMBIGUOUS))
        batches.append(builder.batch())
    batches.append(builder.finish())
    expected = check.run(Trace.concat(batches))
    assert not spilled
    with disk_arrays.memory_limited(1 << 20):
        same(watched(batches)[0], expected)
    assert spilled
    assert len(expected) > 3


def test_a_flow_between_sound_slices_is_not_one_of_suspect_slices_that_are_kept():
    builder = TraceBuilder(TimeBase())
    lanes = [builder.track(f"core {number}", kind="lane", role="core") for number in range(2)]
    builder.append("slices", track_id=lanes[0], ts=[0, 20, 40, 60], dur=10, name="a")
    flags = [0, 0, *[int(Flag.CLOCK_SUSPECT)] * 3]
    builder.append("slices", track_id=lanes[1], ts=[5, 25, 45, 65, 85], dur=10, name="b", flags=flags)
    for source, target in ((3, 4), (3, 6)):
        ends = {"src_slice_id": source, "dst_slice_id": target, "src_track_id": lanes[0], "dst_track_id": lanes[1]}
        builder.append("flows", kind="signal", src_ts=70, dst_ts=[5, 45][target // 6], **ends)
    batches = [builder.batch(), builder.finish()]
    found, looked = watched(batches)
    same(found, check.run(Trace.concat(batches)))
    early = [(one.severity, one.detail, one.evidence.ids.tolist()) for one in found if one.code == "LS201"]
    assert early == [
        ("warning", "up to 65 ns early", [0]),
        ("notice", "up to 25 ns early, caused by a suspect clock", [1]),
    ]
    assert not looked


def test_a_flow_between_sound_slices_behind_all_that_are_kept():
    builder = TraceBuilder(TimeBase())
    lanes = [builder.track(f"core {number}", kind="lane", role="core") for number in range(3)]
    builder.append("slices", track_id=lanes[0], ts=[0, 20], dur=10, name="a", flags=int(Flag.CLOCK_SUSPECT))
    builder.append("slices", track_id=lanes[1:], ts=[60, 3], dur=10, name=["cause", "effect"])
    ends = {"src_slice_id": 2, "dst_slice_id": 3, "src_track_id": lanes[1], "dst_track_id": lanes[2]}
    builder.append("flows", kind="signal", src_ts=70, dst_ts=5, **ends)
    batches = [builder.batch(), builder.finish()]
    found, looked = watched(batches)
    same(found, check.run(Trace.concat(batches)))
    assert ("LS201", "warning", "up to 65 ns early") in {(one.code, one.severity, one.detail) for one in found}
    assert not looked
