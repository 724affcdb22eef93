"""LS507: rates and units that cannot be."""

import numpy as np
import pytest

from lanescope.analysis import check
from lanescope.families import registry
from lanescope.trace import TimeBase, TraceBuilder
from plausibility.kernels import found, kernel, on


def clocked(frequency, anchors=(), *, name="syscnt", family="ascend"):
    builder = TraceBuilder(TimeBase())
    source = builder.input(capture="c", path="p", size=1, sha256="", family=family, format="f")
    builder.add_accounting(input_id=source, layer=0, unit="byte", unit_bytes=1, total=1, decoded=1)
    clock = builder.clock(name=name, device="", frequency=frequency)
    for ticks, ts, error in anchors:
        builder.anchor(clock_id=clock, ticks=ticks, ts=ts, error_ns=error)
    return builder.finish()


def details(trace):
    return [finding.detail for finding in check.run(trace, select=["LS507"])]


@pytest.mark.parametrize(
    ("family", "name", "rates", "wrong"),
    [
        ("ascend", "syscnt", (50e6, 49.5e6, 1e9), (500e6, 2.5e6, 53e6)),
        ("cuda", "globaltimer", (1e9,), (31.25e6,)),
        ("cuda", "clock64", (1.41e9, 0.2e9), (28.2e6, 1.4e12)),
        ("aie", "module clock", (1.25e9, 0.3e9), (25e6, 12.5e9)),
        ("levelzero", "device timestamp", (19.2e6, 12.5e6, 1.95e9), (1e5, 1.92e10)),
    ],
)
def test_declared_rates(family, name, rates, wrong):
    for rate in rates:
        assert details(clocked(int(rate), name=name, family=family)) == []
        assert details(clocked(int(rate), name=name, family="no such family")) == []
    for rate in wrong:
        [detail] = details(clocked(int(rate), name=name, family=family))
        assert detail.startswith(f"{name} has a rate of {rate / 1e6:.6g} MHz; such counters have ")


def test_a_rate_that_was_estimated_is_no_declared_rate():
    stat = next(one for one in registry.family("cuda").stats if one.name == "cuda_rate_estimated")
    for name, expected in (("clock64", 0), ("globaltimer", 1)):
        builder = TraceBuilder(TimeBase(), stats=[stat])
        source = builder.input(capture="c", path="p", size=1, sha256="", family="cuda", format="f")
        builder.add_accounting(input_id=source, layer=0, unit="byte", unit_bytes=1, total=1, decoded=1)
        builder.clock(name=name, device="", frequency=83_000_000)
        builder.add_stat("cuda_rate_estimated", 1)
        assert len(details(builder.finish())) == expected


def test_every_family_declares_its_counters():
    for family in registry.devices():
        for spec in family.clocks:
            assert all(0 < low < high for low, high in spec.rates_hz)
        assert family.clocks, family.name
        stats = {stat.name for stat in family.stats} | {""}
        assert {spec.estimated for spec in family.clocks} <= stats


def test_anchors_against_the_declared_rate():
    second = 1_000_000_000
    assert details(clocked(second, [(0, 0, 0), (second, second, 0)], name="x")) == []
    assert details(clocked(second, [(0, 0, 0), (second, second + second // 2000, 0)], name="x")) == []
    assert details(clocked(second, [(0, 0, 0), (second, 2 * second, 0)], name="x")) == [
        "the anchors of x give 500 MHz, 1000 MHz is declared"
    ]
    # What the anchors themselves do not know does not contradict, nor is a pair within a few ticks.
    assert details(clocked(second, [(0, 0, second), (second, 2 * second, second)], name="x")) == []
    assert details(clocked(1000, [(0, 0, 0), (1, 2_000_000, 0)], name="x")) == []


def test_a_unit_that_no_clock_has():
    coarse = kernel(change=lambda number, start, end: (start * 32_000, end * 32_000))
    assert details(coarse) == ["all timestamps are multiples of 32000 ns: a wrong unit or rate"]
    assert details(kernel(change=lambda number, start, end: (start * 4096, end * 4096))) == []


@pytest.mark.parametrize(("factor", "expected"), [(2, []), (1 / 2, []), (10, ["warning"]), (1 / 10, ["warning"])])
def test_a_lane_whose_slices_all_are_longer(factor, expected):
    trace = kernel(lanes=8, change=on(5, lambda start, end: (start, start + (end - start) * factor)), nesting="free")
    assert [severity for severity, _, _ in found(trace, "LS507")] == expected
    if expected:
        [(_, lane, rows)] = found(trace, "LS507")
        assert (lane, rows) == ("gpu 0/lane 5", list(range(200, 240)))


def test_some_longer_slices_are_no_rate():
    def some_longer(start, end):
        end[::2] += 20 * (end[::2] - start[::2])
        return start, end

    assert found(kernel(lanes=8, change=on(5, some_longer), nesting="free"), "LS507") == []


def test_few_siblings_or_uneven_ones_are_not_compared():
    slow = on(1, lambda start, end: (start, start + (end - start) * 10))
    assert found(kernel(lanes=3, change=slow, nesting="free"), "LS507") == []
    uneven = kernel(lanes=8, change=lambda n, start, end: (start, start + (end - start) * 2**n), nesting="free")
    assert found(uneven, "LS507") == []


def test_a_large_trace_is_judged_by_a_sample():
    trace = kernel(8, 70_000, on(5, lambda start, end: (start, start + (end - start) * 10)), nesting="free")
    assert [lane for _, lane, _ in found(trace, "LS507")] == ["gpu 0/lane 5"]


def test_lengths_that_span_all_64_bits():
    trace = kernel(change=on(2, lambda start, end: (start, np.where(np.arange(len(start)) % 2, 2**62, end))))
    check.run(trace, select=["LS507"])
