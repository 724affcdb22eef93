import hashlib
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanescope.analysis import check
from lanescope.errors import InternalError, MergeError
from lanescope.testing import assert_consistent
from lanescope.trace import ColumnSpec, StatSpec, Table, TableSpec, TimeBase, TraceBuilder, accounting
from lanescope.trace.merge import Inside, TimelineShift, align, merge
from lanescope.trace.merge_tables import RUN_ROLE
from lanescope.trace.schema import Flag

TASKS = TableSpec(
    "toy_tasks",
    "one task of the toy",
    (
        ColumnSpec("slice_id", "int64", "the slice", references="slices"),
        ColumnSpec("task", "uint64", "task id"),
        ColumnSpec("sent_ts", "int64", "when it was sent", nullable=True, unit="ns", is_time=True),
        ColumnSpec("wait_ns", "int64", "time in the queue", unit="ns"),
    ),
    key="slice_id",
)
WORDS = TableSpec(
    "toy_words",
    "one word of the toy",
    (
        ColumnSpec("input_id", "int64", "the input", references="inputs"),
        ColumnSpec("ts", "int64", "raw device time", unit="ticks"),
    ),
)
STATS = (StatSpec("toy_dropped", "data_loss", "the toy dropped a record"),)
UNIX = TimeBase(epoch_ns=1_700_000_000_000_000_000, epoch_kind="unix")


def toy(capture="run", *, time=UNIX, slices=((0, 10, "a"),), clocks=(), anchors=(), detail=True, lane_clock=None):
    """A trace of one group, one lane, and one of everything that a merge has to move."""
    made = TraceBuilder(time, details=(TASKS,) if detail else (), stats=STATS)
    digest = hashlib.sha256(repr((capture, time, slices)).encode()).hexdigest()
    main = made.input(capture=capture, path=f"{capture}.bin", size=8, sha256=digest, family="toy", format="v1")
    names = made.input(
        capture=capture, role="names", path="names.txt", size=1, sha256="shared", family="toy", format="names"
    )
    made.add_accounting(input_id=main, layer=0, unit="byte", unit_bytes=1, total=8, decoded=6, lost=2)
    made.add_accounting(input_id=names, layer=0, unit="byte", unit_bytes=1, total=1, decoded=1)
    clock_ids = [made.clock(**clock) for clock in clocks]
    for clock, ticks, ts, error in anchors:
        made.anchor(clock_id=clock_ids[clock], ticks=ticks, ts=ts, error_ns=error)
    group = made.track("device 0", kind="group", role="device")
    lane = made.track("core 0", kind="lane", role="core", parent=group, input_id=main, clock_id=lane_clock)
    made.add_stat("toy_dropped", 3, track_id=lane, input_id=main, first_offset=4, first_ts=2)
    if slices:
        ts, dur, name = zip(*slices, strict=True)
        first = made.append(
            "slices",
            track_id=lane,
            ts=list(ts),
            dur=[value or 0 for value in dur],
            dur_valid=[value is not None for value in dur],
            name=list(name),
            last_known_ts=list(ts),
            last_known_ts_valid=[value is None for value in dur],
        )
        ids = np.arange(first, first + len(slices))
        if detail:
            made.append("toy_tasks", slice_id=ids, task=ids, sent_ts=list(ts), wait_ns=5)
        made.append(
            "flows",
            kind="dispatch",
            src_track_id=lane,
            src_ts=ts[0],
            dst_track_id=lane,
            dst_ts=ts[-1],
            src_slice_id=first,
        )
    made.append("instants", track_id=lane, ts=1, name="mark")
    made.append("counters", track_id=lane, ts=1, value=0.5)
    made.append("gaps", track_id=lane, ts=3, dur=1, cause="overrun", input_id=main)
    made.append("coverage", track_id=lane, ts=0, dur=20)
    made.records("toy.word", lambda: Table.from_arrays(WORDS, {"input_id": [main], "ts": [77]}))
    return made.finish()


def at(epoch_ns, capture="run", **rest):
    return toy(capture, time=TimeBase(epoch_ns=epoch_ns, epoch_kind="unix"), **rest)


def rows(table, *names):
    return [tuple(row[name] for name in names) for row in table.rows()]


def test_one_trace_comes_back_as_it_is():
    trace = toy()
    assert merge([trace]) is trace


def test_nothing_to_merge():
    with pytest.raises(MergeError, match="no captures given"):
        merge([])


def test_times_move_to_the_earliest_epoch():
    a = at(1000, "a", slices=((0, 10, "x"), (20, None, "y")))
    b = at(400, "b", slices=((5, 10, "y"),))
    merged = merge([a, b])
    assert merged.time == TimeBase(epoch_ns=400, epoch_kind="unix")
    assert rows(merged.slices, "id", "track_id", "ts", "dur", "name", "last_known_ts") == [
        (0, 2, 600, 10, "x", None),
        (1, 2, 620, None, "y", 620),
        (2, 5, 5, 10, "y", None),
    ]
    assert rows(merged.details["toy_tasks"], "slice_id", "sent_ts", "wait_ns") == [(0, 600, 5), (1, 620, 5), (2, 5, 5)]
    assert rows(merged.flows, "src_track_id", "src_ts", "dst_ts", "src_slice_id", "dst_slice_id") == [
        (2, 600, 620, 0, None),
        (5, 5, 5, 2, None),
    ]
    assert rows(merged.stats, "track_id", "input_id", "first_ts", "first_offset") == [(2, 0, 602, 4), (5, 2, 2, 4)]
    assert rows(merged.gaps, "ts", "input_id") == [(603, 0), (3, 2)]


def test_each_capture_has_a_group_of_its_own():
    merged = merge([at(0, "run"), at(1, "run", slices=()), at(2, "other")])
    tracks = rows(merged.tracks, "id", "parent_id", "name", "role", "input_id")
    assert tracks == [
        (0, None, "run", RUN_ROLE, 0),
        (1, 0, "device 0", "device", None),
        (2, 1, "core 0", "core", 0),
        (3, None, "run (2)", RUN_ROLE, 2),
        (4, 3, "device 0", "device", None),
        (5, 4, "core 0", "core", 2),
        (6, None, "other", RUN_ROLE, 4),
        (7, 6, "device 0", "device", None),
        (8, 7, "core 0", "core", 4),
    ]
    assert rows(merged.tracks.where(~merged.tracks.valid("parent_id")), "sort_key") == [(0,), (1,), (2,)]


def test_accounting_still_adds_up():
    merged = merge([at(0, "a"), at(1, "b")])
    accounting.verify(merged.accounting, merged.inputs)
    assert rows(merged.accounting, "input_id", "lost") == [(0, 2), (1, 0), (2, 2), (3, 0)]


def test_detail_tables_and_records_of_one_family_only():
    merged = merge([at(0, "a", detail=False), at(1, "b", slices=((0, 1, "x"), (2, 1, "x")))])
    assert rows(merged.details["toy_tasks"], "slice_id") == [(1,), (2,)]
    assert rows(merged.records["toy.word"], "input_id", "ts") == [(0, 77), (2, 77)]


GROUPS = TableSpec(
    "toy_groups",
    "a group of the toy",
    (
        ColumnSpec("track_id", "int64", "its lane", references="tracks"),
        ColumnSpec("id", "int64", "the number that the toy gave it"),
        ColumnSpec("moment", "int64", "when it was made", unit="ns", is_time=True),
        ColumnSpec("device_ts", "int64", "the same on the device's own clock", unit="ticks"),
    ),
    key="track_id",
)
MEMBERS = TableSpec(
    "toy_members",
    "a member of a group",
    (
        ColumnSpec("instant_id", "int64", "the instant", references="instants"),
        ColumnSpec("group", "int64", "row of `toy_groups`", nullable=True, references="toy_groups"),
        ColumnSpec("slice_id", "int64", "number of a slice of bread"),
    ),
    key="instant_id",
)


def grouped(capture, epoch_ns):
    made = TraceBuilder(TimeBase(epoch_ns=epoch_ns, epoch_kind="unix"), details=(GROUPS, MEMBERS))
    main = made.input(capture=capture, path=capture, size=0, sha256=capture, family="toy", format="v1")
    made.add_accounting(input_id=main, layer=0, unit="byte", unit_bytes=1, total=0, decoded=0)
    lane = made.track("core 0", kind="lane", role="core")
    made.append("instants", track_id=lane, ts=[1, 2], name="mark")
    made.append("slices", track_id=lane, ts=1, dur=1, name="a")
    made.append("toy_groups", track_id=lane, id=[7, 9], moment=[1, 2], device_ts=[10, 20])
    made.append("toy_members", instant_id=[0, 1], group=[1, 0], group_valid=[True, False], slice_id=5)
    return made.finish()


def test_columns_of_a_plugin_move_by_their_declaration_and_not_by_their_name():
    merged = merge([grouped("a", 0), grouped("b", 100)])
    assert rows(merged.details["toy_groups"], "track_id", "id", "moment", "device_ts") == [
        (1, 7, 1, 10),
        (1, 9, 2, 20),
        (3, 7, 101, 10),
        (3, 9, 102, 20),
    ]
    assert rows(merged.details["toy_members"], "instant_id", "group", "slice_id") == [
        (0, 1, 5),
        (1, None, 5),
        (2, 3, 5),
        (3, None, 5),
    ]
    assert_consistent(merged)


def test_a_reference_to_no_table_is_refused_by_name():
    lost = TableSpec("toy_lost", "", (ColumnSpec("group", "int64", "", references="toy_groups"),))
    with pytest.raises(InternalError, match=r"toy_lost\.group references undeclared table toy_groups"):
        TraceBuilder(UNIX, details=(lost,))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"type": "int32", "references": "slices"}, "references and times must be int64, not int32"),
        ({"type": "uint64", "is_time": True}, "references and times must be int64, not uint64"),
        ({"type": "int64", "references": "slices", "is_time": True}, "reference and time are mutually exclusive"),
    ],
)
def test_a_column_that_no_merge_could_move_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        ColumnSpec("slice_id", doc="", **wrong)


def test_a_key_without_a_table_is_refused():
    with pytest.raises(ValueError, match="key slice_id requires a referenced table"):
        TableSpec("toy_tasks", "", (ColumnSpec("slice_id", "int64", "the slice"),), key="slice_id")


def test_the_same_capture_twice_is_refused():
    trace, other = at(0, "a"), at(0, "b")
    with pytest.raises(MergeError, match=r"a\.bin and a\.bin are the same capture; pass each capture once"):
        merge([trace, other, at(0, "a")])
    with pytest.raises(MergeError, match="same capture"):
        merge([merge([trace, other]), trace])


def test_cycles_and_nanoseconds_are_refused():
    cycles = toy("c", time=TimeBase(time_unit="cycles"))
    with pytest.raises(MergeError, match=r"c\.bin is in cycles, a\.bin in nanoseconds; pass the clock freq"):
        merge([at(0, "a"), cycles])


@pytest.mark.parametrize("kind", ["device", "first_event", "host_monotonic"])
def test_different_epochs_without_anchors_are_refused(kind):
    other = toy("b", time=TimeBase(epoch_kind=kind))
    with pytest.raises(MergeError, match="no common clock") as caught:
        merge([at(0, "a"), other])
    assert "--side-by-side" in caught.value.hint


def test_captures_without_a_common_clock_lie_side_by_side_if_asked_to():
    """Two of one clock, two of another, one alone: three time axes, each with an origin of its own."""
    gpu = [(0, 5_000, 0, 1)]
    traces = [
        at(100, "a"),
        toy("b", time=FIRST, clocks=(GPU,), anchors=gpu),
        at(0, "c"),
        toy("d", time=FIRST, clocks=(GPU,), anchors=[(0, 4_000, 0, 1)]),
        toy("e", time=FIRST),
    ]
    placed = align(traces, side_by_side=True)
    assert [(one.axis, one.shift) for one in placed] == [(0, 100), (1, 1_000), (0, 0), (1, 0), (2, 0)]
    merged = merge(traces, side_by_side=True)
    assert_consistent(merged)
    roots = [row["name"] for row in merged.tracks.rows() if row["parent_id"] is None]
    names = ("a", "b", "c", "d (clock globaltimer of GPU 0, ±2 ns)", "e")
    assert roots == [f"{name} (time axis {axis})" for name, axis in zip(names, (1, 2, 1, 2, 3), strict=True)]
    # No clock is the one of all: times are those of nothing but the axes.
    assert (merged.time.epoch_kind, merged.time.epoch_ns) == ("first_event", 0)
    found = [row for row in merged.stats.rows() if row["name"] == "unaligned_capture"]
    names = dict(zip(merged.inputs["id"].tolist(), merged.inputs["capture"].tolist(), strict=True))
    assert [names[row["input_id"]] for row in found] == ["b", "d", "e"]
    (finding,) = {(one.code, one.severity) for one in check.run(merged) if one.stat == "unaligned_capture"}
    assert finding == ("LS305", "warning")
    # What shares a clock is what it is without the others.
    alone = merge([traces[1], traces[3]])
    names = merged.tables()["slices"], alone.tables()["slices"]
    assert names[0]["ts"].tolist()[1:4:2] == names[1]["ts"].tolist()


def test_side_by_side_changes_nothing_where_clocks_agree():
    traces = [at(100, "a"), at(0, "b")]
    for name, table in merge(traces).tables().items():
        assert list(table.rows()) == list(merge(traces, side_by_side=True).tables()[name].rows())


def test_what_lies_side_by_side_is_not_merged_again():
    merged = merge([at(0, "a"), toy("b", time=FIRST)], side_by_side=True)
    for side_by_side in (False, True):
        with pytest.raises(MergeError, match="has several time axes; pass the captures"):
            merge([merged, at(5, "c")], side_by_side=side_by_side)
    assert merge([merged]) is merged


def test_two_captures_that_count_from_their_first_events_are_refused():
    first = TimeBase(epoch_kind="first_event")
    with pytest.raises(MergeError, match="no common clock"):
        merge([toy("a", time=first), toy("b", time=first)])


GPU = {"name": "globaltimer", "device": "GPU 0", "frequency": 10**9, "counter_bits": 64}
MONOTONIC = {"name": "host_monotonic", "device": "host a", "frequency": 10**9, "counter_bits": 64}
FIRST = TimeBase(epoch_kind="first_event")


def test_a_shared_clock_with_anchors_places_them():
    a = toy("a", time=FIRST, clocks=(GPU,), anchors=((0, 5000, 0, 3),))
    b = toy("b", time=FIRST, clocks=(GPU,), anchors=((0, 4000, 100, 4),))
    assert [(p.shift, p.clock, p.error_ns) for p in align([a, b])] == [
        (1100, "", 0),
        (0, "globaltimer of GPU 0", 7),
    ]
    assert merge([a, b]).slices["ts"].tolist() == [1100, 0]


@pytest.mark.parametrize(("errors", "expected"), [((3, 4), 7), ((3, None), None), ((None, None), None)])
def test_lanes_that_are_placed_on_a_common_epoch_by_anchors_are_as_far_off_as_these(errors, expected):
    traces = []
    for number, error in enumerate(errors):
        made = TraceBuilder(TimeBase(epoch_ns=1000 * number, epoch_kind="host_monotonic"))
        main = made.input(capture=str(number), path="x", size=1, sha256=str(number), family="toy", format="v1")
        made.add_accounting(input_id=main, layer=0, unit="byte", unit_bytes=1, total=1, decoded=1)
        clock = made.clock(name="counter", device=f"device {number}", frequency=10**9, counter_bits=64)
        host = made.clock(name="host_monotonic", device="host", frequency=10**9)
        made.anchor(clock_id=host, ticks=1000 * number, ts=0, error_ns=0)
        made.anchor(clock_id=clock, ticks=5, ts=0, error_ns=1)
        made.anchor(clock_id=clock, ticks=105, ts=100, error_ns=error)
        made.track("core 0", kind="lane", role="core", input_id=main, clock_id=clock)
        made.track("thread", kind="lane", role="host_thread", input_id=main, clock_id=host)
        traces.append(made.finish())
    assert [(p.shift, p.error_ns) for p in align(traces)] == [(0, 0), (1000, expected)]


def test_a_path_over_a_third_capture_places_them():
    a = at(10_000, "a")
    bridge = toy(
        "bridge", time=TimeBase(epoch_ns=20_000, epoch_kind="unix"), clocks=(GPU,), anchors=((0, 500, 50, None),)
    )
    b = toy("b", time=FIRST, clocks=(GPU,), anchors=((0, 450, 0, 1),))
    assert [(p.shift, p.error_ns) for p in align([a, b, bridge])] == [(0, 0), (10_000, None), (10_000, 0)]
    with pytest.raises(MergeError, match="no common clock"):
        align([a, b])


def test_the_closest_readings_of_a_clock_count():
    slow = {**GPU, "frequency": Fraction(10**9, 3)}
    a = toy("a", time=FIRST, clocks=(slow,), anchors=((0, 0, 7, 0), (0, 1000, 3000, 0)))
    b = toy("b", time=FIRST, clocks=(slow,), anchors=((0, 1010, 5, 0), (0, 9000, 20_000, 0)))
    # 1010 ticks are 5 on b's axis; on a's axis they are 10 ticks of 3 ns after 3000.
    assert [p.shift for p in align([a, b])] == [0, 3025]


@pytest.mark.parametrize(("errors", "expected"), [((3, 5), 1100), ((5, 3), 2200), ((None, 5), 2200), ((5, None), 1100)])
def test_of_two_shared_clocks_the_one_with_the_smaller_stated_error_counts(errors, expected):
    second = {**GPU, "device": "GPU 1"}
    first, other = errors
    a = toy("a", time=FIRST, clocks=(GPU, second), anchors=((0, 5000, 0, first), (1, 5000, 0, other)))
    b = toy("b", time=FIRST, clocks=(GPU, second), anchors=((0, 3900, 0, 0), (1, 2800, 0, 0)))
    assert [p.shift for p in align([a, b])] == [expected, 0]


@pytest.mark.parametrize(
    ("frequency", "places"), [(Fraction(1 << 40, 365 * 86_400), True), (Fraction((1 << 40) + 1, 365 * 86_400), False)]
)
def test_a_counter_places_captures_if_it_wraps_once_a_year_at_most(frequency, places):
    clock = {**GPU, "frequency": frequency, "counter_bits": 40}
    traces = [toy(name, time=FIRST, clocks=(clock,), anchors=((0, 0, 0, 1),)) for name in ("a", "b")]
    if places:
        assert [p.shift for p in align(traces)] == [0, 0]
    else:
        with pytest.raises(MergeError, match="no common clock"):
            align(traces)


NARROW = {**GPU, "name": "globaltimer_lo", "counter_bits": 32}
WRAP = 1 << 32


def launch(capture, ticks, **rest):
    """A capture whose times count on nothing but a counter of 32 bits, which showed ``ticks`` at its time 0."""
    return toy(capture, time=FIRST, clocks=(NARROW,), anchors=((0, ticks, 0, 1),), lane_clock=0, **rest)


def test_launches_on_one_narrow_counter_are_placed_by_assumption_and_say_so():
    made = [launch("a", 1_000), launch("b", 4_000), launch("c", WRAP - 500), launch("d", 3 * WRAP + 2_000)]
    assert [(p.shift, p.wrap_period, p.error_ns) for p in align(made)] == [
        (1_500, 0, 0),
        (4_500, WRAP, 2),
        (0, WRAP, 4),
        (2_500, WRAP, 6),
    ]
    merged = merge(made)
    assert_consistent(merged)
    for table in (merged.slices, merged.instants):
        assert (table["flags"] & Flag.WRAP_AMBIGUOUS != 0).tolist() == [False, True, True, True]
    assert {finding.code for finding in check.run(merged)} >= {"LS302"}


def test_flags_of_rows_survive_a_place_that_is_assumed():
    made = TraceBuilder(FIRST)
    clock = made.clock(**NARROW)
    lane = made.track("lane", kind="lane", role="core", clock_id=clock)
    made.append("slices", track_id=lane, ts=[0, 1], dur=1, name="a", flags=[1, 2])
    made.anchor(clock_id=clock, ticks=5, ts=0)
    merged = merge([launch("a", 5), made.finish()])
    assert merged.slices["flags"].tolist() == [0, 1 | Flag.WRAP_AMBIGUOUS, 2 | Flag.WRAP_AMBIGUOUS]


def test_a_clock_that_both_have_goes_before_a_narrow_counter():
    a, c = launch("a", 1_000), launch("c", 2_000)
    both = {"time": FIRST, "clocks": (NARROW, GPU), "lane_clock": 0}
    b = toy("b", **both, anchors=((0, 10, 0, 0), (1, 7 * WRAP, 0, 0)))
    wide = toy("wide", **both, anchors=((0, 20, 0, 0), (1, 7 * WRAP + 30, 0, 0)))
    assert [(p.shift, p.wrap_period) for p in align([b, wide])] == [(0, 0), (30, 0)]
    with pytest.raises(MergeError, match="no common clock"):  # a says nothing of the wraps that b has counted
        align([a, b, c])


@pytest.mark.parametrize(
    ("clock", "lane_clock"),
    [
        ({**NARROW, "device": ""}, 0),
        ({**NARROW, "counter_bits": 16}, 0),
        ({**NARROW, "frequency": None}, 0),
        (NARROW, None),  # lanes that count on something else
    ],
)
def test_a_counter_that_wraps_soon_places_nothing_else(clock, lane_clock):
    made = [
        toy(name, time=FIRST, clocks=(clock,), anchors=((0, 10, 0, 0),), lane_clock=lane_clock) for name in ("a", "b")
    ]
    with pytest.raises(MergeError, match="no common clock") as caught:
        merge(made)
    assert (caught.value.lacks, caught.value.traces) == ("clock", (0, 1))
    with pytest.raises(MergeError, match="no common clock"):
        merge([at(0, "unix"), launch("a", 10)])


def test_the_zero_of_the_only_counter_of_a_named_device_is_common():
    made = [
        toy(n, time=TimeBase(epoch_ns=epoch, epoch_kind="device"), clocks=(GPU,)) for n, epoch in (("a", 70), ("b", 50))
    ]
    assert [p.shift for p in align(made)] == [20, 0]
    nameless = [toy(n, time=TimeBase(), clocks=({**GPU, "device": ""},)) for n in "ab"]
    with pytest.raises(MergeError, match="no common clock"):
        align(nameless)


def test_cycles_merge_on_a_common_counter():
    unknown = {**GPU, "frequency": None}
    time = TimeBase(time_unit="cycles", epoch_kind="first_event")
    a = toy("a", time=time, clocks=(unknown,), anchors=((0, 100, 0, 0),))
    b = toy("b", time=time, clocks=(unknown,), anchors=((0, 130, 0, 0),))
    assert [p.shift for p in align([a, b])] == [0, 30]
    assert merge([a, b]).time.time_unit == "cycles"


def test_monotonic_clocks_of_two_hosts_are_not_one():
    time = TimeBase(epoch_ns=5, epoch_kind="host_monotonic")
    other = {**MONOTONIC, "device": "host b"}
    a, b, c = (toy(n, time=time, clocks=(clock,)) for n, clock in (("a", MONOTONIC), ("b", other), ("c", MONOTONIC)))
    assert [p.shift for p in align([a, c])] == [0, 0]
    with pytest.raises(MergeError, match="no common clock"):
        align([a, b])


def test_captures_too_far_apart_for_63_bits_are_refused():
    late = 2**62 + 10 * 86400 * 10**9
    with pytest.raises(MergeError, match=r"b\.bin starts 53386 days after the first"):
        merge([at(0, "a"), at(late, "b", slices=((2**62, 1, "x"),))])


@st.composite
def traces(draw):
    count = draw(st.integers(1, 4))
    return [
        at(
            draw(st.integers(-(10**12), 10**12)),
            f"run{number}",
            slices=tuple(
                draw(
                    st.lists(
                        st.tuples(st.integers(0, 10**12), st.none() | st.integers(0, 99), st.sampled_from("abc")),
                        max_size=4,
                    )
                )
            ),
        )
        for number in range(count)
    ]


@given(traces())
def test_a_merge_keeps_every_row_at_its_moment(made):
    merged = merge(made)
    base = merged.time.epoch_ns
    for name, table in merged.tables().items():
        parts = [trace.tables()[name] for trace in made if name in trace.tables()]
        assert len(table) == sum(map(len, parts)) + (len(made) if name == "tracks" and len(made) > 1 else 0)
        if "id" in table.spec.names:
            assert table["id"].tolist() == list(range(len(table)))
        for spec in table.spec.columns:
            if spec.is_time:
                moments = [value + base for value in table[spec.name][table.valid(spec.name)].tolist()]
                assert moments == [
                    value + trace.time.epoch_ns
                    for trace in made
                    for value in trace.tables()[name][spec.name][trace.tables()[name].valid(spec.name)].tolist()
                ]
                assert not table[spec.name][~table.valid(spec.name)].any()
            if spec.references:
                values = table[spec.name][table.valid(spec.name)]
                assert ((values >= 0) & (values < len(merged.tables()[spec.references]))).all()


@given(traces(), st.integers(1, 3))
def test_merging_in_steps_is_merging_at_once(made, cut):
    at_once = merge(made)
    in_steps = merge([merge(made[:cut]), *made[cut:]])
    assert in_steps.time == at_once.time
    for name, table in at_once.tables().items():
        assert list(in_steps.tables()[name].rows()) == list(table.rows())


def test_what_contains_a_capture_says_more_than_a_clock_that_both_have():
    inside = {1: Inside(0, TimelineShift(40, "kernels", 2), 1, "inside a (±2 ns)", np.array([0]), np.array([0]))}
    outer, inner = toy("outer", slices=((0, 90, "a"),)), toy("inner", slices=((0, 10, "b"),))
    assert [place.shift for place in align([outer, inner], inside=inside)] == [0, 40]
    merged = merge([outer, inner], inside=inside)
    assert_consistent(merged)
    assert merged.tracks["name"].tolist()[3] == "inside a (±2 ns)"
    assert [(row["src_ts"], row["dst_ts"]) for row in merged.flows.rows()][2:] == [(0, 40)]
    assert merged.stats["name"].tolist().count("kernel_placed_capture") == 1


def test_a_capture_that_clocks_placed_elsewhere_is_not_said_to_lie_inside():
    inside = {1: Inside(2, TimelineShift(40, "kernels", 2), 1, "inside a (±2 ns)", np.array([0]), np.array([0]))}
    traces = [toy("first"), toy("inner", slices=((0, 10, "b"),)), toy("outer", slices=((0, 90, "a"),))]
    assert [place.shift for place in align(traces, inside=inside)] == [0, 0, 0]
    merged = merge(traces, inside=inside)
    assert_consistent(merged)
    assert "inside a (±2 ns)" not in merged.tracks["name"].tolist()
    assert "kernel_placed_capture" not in merged.stats["name"].tolist()
