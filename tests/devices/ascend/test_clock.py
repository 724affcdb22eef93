"""Stamps to times, and how the host's clock joins the device's."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.ascend.helpers import CLOCK, decode, edges, graph, lane, records, stats, tasks
from lanescope.devices.ascend.interpret.clock import MAX_NS, Alignment, Reading, align, longest, times

SAMPLES = {"pre_host_orchestration": (1000, 10_000_000), "post_device_execution": (6000, 10_100_400)}


def sample(position, index, before, cycles, trip, **more):
    return {
        "position": position,
        "sample_idx": index,
        "host_before_ns": before,
        "device_cycles": cycles,
        "host_after_ns": before + trip,
        "error": None,
        **more,
    }


def anchors(**more):
    """The device gains 400 ns over 5000 cycles of 20 ns."""
    samples = [
        sample(position, index, host - 40 * (index + 1), cycles, 80 * (index + 1))
        for position, (cycles, host) in SAMPLES.items()
        for index in range(3)
    ]
    return {
        "clock_anchors": {"schema_version": 1, "raw_device_timestamp_unit": "syscnt_cycles", "samples": samples, **more}
    }


def host_run(**metadata):
    """One execution at 3000, submitted on the host before it; the copies end at 10020000."""
    return records(
        [[0, 1, 1, 3010, 4000, 10]],
        [[0, 1, 2990, 4050]],
        key="chip_swimlane_level",
        level=4,
        metadata={"orchestrator_source": "host", **metadata},
        host_orchestrator_phases=[
            [{"submit_idx": 0, "task_id": 1, "start_host_ns": 10_010_000, "end_host_ns": 10_012_000}]
        ],
        host_device_uploads=[
            {"phase": "sm_h2d", "start_host_ns": 10_012_500, "end_host_ns": 10_020_000, "detail": 4096}
        ],
    )


def by_hand(cycles):
    """The published formula, in Python integers that truncate toward zero."""
    (c0, h0), (c1, h1) = SAMPLES.values()

    def cut(numerator, denominator):
        return abs(numerator) // denominator * (1 if numerator >= 0 else -1)

    correction = h1 - (h0 + cut((c1 - c0) * 10**9, CLOCK))
    return h0 + cut((cycles - c0) * 10**9, CLOCK) + cut(correction * (cycles - c0), c1 - c0)


def test_host_and_device_on_the_clock_of_the_host():
    trace = decode(host_run(**anchors()))
    assert trace.time.epoch_kind == "host_monotonic"
    assert trace.time.epoch_ns == 10_010_000
    assert lane(trace, "Host_0") == [("submit", 0, 2000)]
    assert lane(trace, "H2D") == [("sm_h2d", 2500, 7500)]
    begin, end = by_hand(3010) - 10_010_000, by_hand(4000) - 10_010_000
    assert lane(trace, "AIC_0") == [
        ("setup", by_hand(3000) - 10_010_000, by_hand(3010) - by_hand(3000)),
        ("task", begin, end - begin),
    ]
    assert trace.details["ascend_runs"]["clocks"].tolist() == ["aligned"]
    # The interval says what the host measured, the figures of the task what the device counted.
    assert tasks(trace, "duration_ns") == [("task(t1)", 990 * 20)]
    assert stats(trace) == {}


def test_anchors_stand_with_their_error():
    trace = decode(host_run(**anchors()))
    clocks = trace.clocks["name"].tolist()
    rows = [(clocks[row["clock_id"]], row["ticks"], row["ts"], row["error_ns"]) for row in trace.anchors.rows()]
    # The samples with the shortest exchange, 80 ns: half of it is the error.
    assert rows == [
        ("host_monotonic", 10_010_000, 0, 0),
        ("syscnt", 1000, -10_000, 40),
        ("syscnt", 6000, 90_400, 40),
    ]


def test_a_raw_unit_of_microseconds_widens_the_error():
    trace = decode(host_run(**anchors(raw_device_timestamp_unit="device_uptime_us")))
    assert trace.anchors["error_ns"].tolist() == [0, 1040, 1040]


def only(first, last):
    return lambda metadata: metadata["clock_anchors"].update(samples=metadata["clock_anchors"]["samples"][first:last])


def change(first, last, **values):
    return lambda metadata: [row.update(values) for row in metadata["clock_anchors"]["samples"][first:last]]


BEFORE, AFTER = "no valid anchor before the run", "no valid anchor after the run"
OUTSIDE = "a device stamp lies outside of the anchors"


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda metadata: metadata.pop("clock_anchors"), "no clock anchors"),
        (lambda metadata: metadata.update(clock_anchors=[1]), "malformed clock anchors"),
        (only(3, 6), BEFORE),
        (only(0, 3), AFTER),
        (change(0, 3, error={"stage": "x"}), BEFORE),
        (change(3, 6, device_cycles=None), AFTER),
        (change(0, 3, host_after_ns=1), BEFORE),
        (change(3, 6, device_cycles=900), "anchors out of order"),
        (change(3, 6, device_cycles=3500), OUTSIDE),
        (change(0, 3, device_cycles=2995), OUTSIDE),
    ],
)
def test_without_good_anchors_only_the_order_is_known(spoil, reason):
    given_anchors = copy.deepcopy(anchors())
    spoil(given_anchors)
    trace = decode(host_run(**given_anchors))
    of_both = given_anchors.get("clock_anchors")
    readings = [row for row in of_both["samples"] if not row.get("error")] if isinstance(of_both, dict) else []
    assert trace.details["ascend_runs"]["clocks"].tolist() == [reason]
    counts = stats(trace)
    # Readings of no time, and those that end before they begin, are counted besides.
    bad = sum(not (row["host_after_ns"] or 0) >= row["host_before_ns"] or not row["device_cycles"] for row in readings)
    assert counts.pop("ascend_clock_contradicts", 0) == bad
    assert counts == {"ascend_host_clock_unaligned": 1}
    assert lane(trace, "Host_0") == [("submit", 0, 2000)]
    # The device's part begins where the host's ends; its own base is the dispatch at 2990.
    assert lane(trace, "AIC_0") == [("setup", 10_000 + 200, 200), ("task", 10_000 + 400, 990 * 20)]
    assert set(trace.slices["quality"][trace.slices["name"] == "submit"]) == {"inferred"}
    anchor = next(row for row in trace.anchors.rows() if row["ticks"] == 2990)
    assert (anchor["ts"], anchor["error_ns"]) == (10_000, None)


@pytest.mark.parametrize("is_aligned", [True, False])
def test_no_edge_crosses_clocks_that_are_not_joined(is_aligned):
    deps = graph({1: (0, -1, -1)}, [(7, 1)])
    deps["edges"][0]["source"] = "creator"
    content = host_run(**(anchors() if is_aligned else {}))
    content["host_orchestrator_phases"][0].append(
        {"submit_idx": 1, "task_id": 7, "start_host_ns": 10_012_000, "end_host_ns": 10_012_400}
    )
    trace = decode(content, deps=deps)
    assert [edge[:2] for edge in edges(trace)] == ([(7, 1)] if is_aligned else [])
    assert stats(trace) == ({} if is_aligned else {"ascend_host_clock_unaligned": 1, "ascend_edge_no_kernel": 1})


def test_what_the_host_dropped_is_known():
    capture = {"status": "dropped", "expected_records": 9, "recorded_records": 7, "dropped_records": 2}
    trace = decode(host_run(**anchors(), host_capture=capture))
    # One submission is in the file, not seven.
    assert stats(trace) == {"ascend_host_dropped": 2, "ascend_count_contradicts": 1}
    (row,) = [row for row in trace.accounting.rows() if row["scope"] == "producer"]
    assert (row["total"], row["decoded"], row["lost"]) == (9, 7, 2)


def test_a_capture_of_the_host_alone():
    content = host_run()
    content["aicore_tasks"], content["aicpu_tasks"] = [], []
    trace = decode(content)
    assert lane(trace, "Host_0") == [("submit", 0, 2000)]
    assert trace.time.epoch_ns == 10_010_000


def test_low_bits_survive_large_counters():
    first, last = Reading((1 << 60) + 3, 5, 0), Reading((1 << 60) + 3 + 10**9, 10**9 + 5 + 333, 0)
    alignment = Alignment(first, last, 10**9)
    steps = np.arange(7) * 100_000_007
    expected = [5 + int(s) + 333 * int(s) // 10**9 for s in steps]
    assert alignment.host_ns(first.cycles + steps).tolist() == expected


@given(
    st.integers(1, 10**10),
    st.integers(1, 10**13),
    st.integers(1_000_000, 10**10),
    st.lists(st.integers(0, 10**6), min_size=1, max_size=9),
)
def test_alignment_is_the_published_formula(span, host_span, frequency, parts):
    first, last = Reading(17, 1000, 0), Reading(17 + span, 1000 + host_span, 0)
    cycles = [17 + span * part // 10**6 for part in parts]

    def cut(numerator, denominator):
        return abs(numerator) // denominator * (1 if numerator >= 0 else -1)

    correction = host_span - cut(span * 10**9, frequency)
    expected = [1000 + cut((c - 17) * 10**9, frequency) + cut(correction * (c - 17), span) for c in cycles]
    assert Alignment(first, last, frequency).host_ns(np.array(cycles)).tolist() == expected


def test_numbers_of_the_shortest_exchange_decide_between_equals():
    samples = [sample("pre_host_orchestration", 2, 100, 10, 8), sample("pre_host_orchestration", 1, 200, 20, 8)]
    samples.append(sample("post_device_execution", 0, 10_000, 500, 3))
    found = align({"clock_anchors": {"samples": samples}}, CLOCK, None)
    assert found.first == Reading(20, 204, 4)
    assert found.last == Reading(500, 10_001, 2)


def test_a_frequency_that_does_not_divide_a_second():
    trace = decode(records([[0, 1, 1, 1007, 1010, 7]], [[0, 1, 1001, 1013]], clock=3_000_000))
    # Base 1000, a third of a microsecond a tick.
    assert lane(trace, "AIC_0") == [("setup", 0, 2333), ("task", 2333, 1000)]
    assert tasks(trace, "propagation_ns", "local_setup_ns", "head_ns", "tail_ns", "duration_ns") == [
        ("task(t1)", -334, 2333, 2000, 1000, 1000)
    ]
    assert (trace.clocks["frequency_num"][0], trace.clocks["frequency_den"][0]) == (3_000_000, 1)


def test_what_was_measured_negative_stays_negative():
    trace = decode(records([[0, 1, 1, 1000, 1100, 0]], [[0, 1, 1010, 1090]]))
    assert tasks(trace, "propagation_ticks", "propagation_ns", "tail_ticks", "tail_ns") == [
        ("task(t1)", -10, -200, -10, -200)
    ]


@pytest.mark.parametrize(("frequency", "epoch_kind"), [(CLOCK, "device"), (10, "first_event")])
def test_the_epoch_of_a_device_is_its_counter(frequency, epoch_kind):
    made = times({}, frequency, (10**11, 10**11 + 5), None)
    assert made.base.epoch_kind == epoch_kind
    assert made.base.epoch_ns == (10**11 * 20 if epoch_kind == "device" else 0)
    assert made.device(np.array([10**11 + 5])).tolist() == [5 * 10**9 // frequency]


@pytest.mark.parametrize("frequency", [1, 3, CLOCK, 10**9, 10**12, 1 << 62])
def test_the_longest_capture_fits(frequency):
    made = times({}, frequency, (1, 1), None)
    assert (
        0 < int(made.device(np.array([1 + longest(frequency)]))[0]) <= MAX_NS or longest(frequency) * 10**9 < frequency
    )
