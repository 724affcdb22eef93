"""``doctor CAPTURE`` says what a capture cannot prove; recorded differently, the same run proves it."""

import json

import pytest

from lanescope.analysis import limits
from lanescope.families import registry
from lanescope.testing import check_family

AIE = ("aie", "--tiles", "3", "--records", "200")
CUDA = ("cuda", "--blocks", "4", "--tiles", "4", "--layout")
ASCEND = ("ascend", "--tasks", "40", "--format-version")
KINETO = ("kineto", "--steps", "1", "--kernels", "8")
LEVELZERO = ("levelzero", "--ops", "60")
#: A capture, the limits that it has, and those that it has not.
CAPTURES = {
    "aie": (AIE, {"time-in-stream", "event-names", "clock-frequency", "clock-rate"}, {"end-of-stream"}),
    "aie-shared-stop": ((*AIE, "--shared-stop"), {"event-names"}, {"time-in-stream", "end-of-stream"}),
    "aie-cut": ((*AIE, "--lost-tail", "3"), {"end-of-stream"}, {"cycles-without-events"}),
    "aie-execution": ((*AIE, "--mode", "2"), {"cycles-without-events"}, set()),
    "cuda-tirx": ((*CUDA, "tirx"), {"lost-records", "lost-lanes", "counter-wraps", "clock-rate"}, {"clock-frequency"}),
    "cuda-flashinfer": ((*CUDA, "flashinfer2"), {"lost-records", "counter-wraps"}, set()),
    "cuda-ls2": ((*CUDA, "ls2"), set(), {"lost-records", "lost-lanes", "counter-wraps", "clock-rate"}),
    "ascend-cores": ((*ASCEND, "v3", "--level", "1"), {"one-stream", "lost-records"}, {"task-order"}),
    "ascend-both": ((*ASCEND, "v3"), {"lost-records"}, {"one-stream", "task-order"}),
    "ascend-graphless": ((*ASCEND, "v3", "--no-deps"), {"task-order"}, {"one-stream"}),
    "ascend-counted": ((*ASCEND, "v4"), set(), {"one-stream", "lost-records", "task-order"}),
    "ascend-anchors": ((*ASCEND, "v3c", "--host"), set(), {"clock-rate"}),
    "ascend-anchorless": ((*ASCEND, "v3c", "--host", "--no-anchors"), {"clock-rate"}, set()),
    "kineto": (KINETO, {"device-clock", "lost-activities"}, set()),
    "kineto-host": ((*KINETO, "--no-device"), {"lost-activities"}, {"device-clock"}),
    "levelzero-short": (LEVELZERO, {"clock-rate", "lost-events", "date"}, set()),
    "levelzero-long": ((*LEVELZERO, "--pause-us", "200000"), {"lost-events"}, {"clock-rate"}),
}


@pytest.fixture
def doctor(call):
    def doctor(arguments, *more):
        done = call("sim", *arguments, "--seed", "3", "--force", "-o", "run")
        assert done.status == 0, done.err
        done = call("doctor", "run", "--json", *more)
        assert done.status == 0, done.err
        return {each["name"]: each for each in json.loads(done.out)["limits"]}

    return doctor


@pytest.mark.parametrize("name", CAPTURES)
def test_each_limit_is_told_of_captures_that_have_it_and_of_no_others(doctor, name):
    arguments, wanted, unwanted = CAPTURES[name]
    found = doctor(arguments)
    assert wanted <= found.keys()
    assert not unwanted & found.keys()
    assert all(each["where"] and each["cannot"] and each["instead"] for each in found.values())


def test_every_declared_limit_is_tried_both_ways():
    declared = {limit.name for family in registry.builtin() for limit in family.limits}
    declared |= {limit.name for limit in limits.COMMON}
    told = set().union(*(wanted for _, wanted, _ in CAPTURES.values()))
    not_told = set().union(*(unwanted for _, _, unwanted in CAPTURES.values()))
    assert told | {"recorded-time"} == declared
    # Names of events, dates and counts of lost events come with files and options, see below; no profiler of PyTorch
    # counts what it drops.
    assert declared - not_told == {"recorded-time", "event-names", "lost-events", "date", "lost-activities"}


@pytest.mark.parametrize(
    ("name", "arguments", "options"),
    [
        ("counter-wraps", (*CUDA, "tirx"), ("--launch-ns", "1000000")),
        ("clock-frequency", AIE, ("--frequency", "1e9")),
        ("date", LEVELZERO, ("--start-date", "2026-01-31")),
    ],
)
def test_what_is_stated_when_decoding_is_no_limit(doctor, name, arguments, options):
    assert name not in doctor(arguments, *options)


def test_a_configuration_names_the_events(doctor, call, tmp_path):
    assert "event-names" in doctor(AIE)
    tile = {"type": "core", "col": 1, "row": 2, "events": ["INSTR_EVENT_0"]}
    (tmp_path / "run.config.json").write_text(json.dumps({"device": "aie2", "tiles": [tile]}))
    told = json.loads(call("doctor", "run", "--json").out)["limits"]
    assert "event-names" not in {each["name"] for each in told}


def test_text_names_what_and_what_instead(call):
    assert call("sim", *AIE, "--seed", "3", "-o", "run").status == 0
    done = call("doctor", "run")
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    (at,) = [number for number, line in enumerate(lines) if line.startswith("aie time-in-stream: ")]
    assert lines[at + 1].startswith("  cannot prove: That no time is lost or added inside a stream")
    assert lines[at + 2].startswith("  instead: Let all trace units stop on one broadcast event")


def test_a_capture_that_proves_all_and_one_that_is_none(call, tmp_path):
    assert call("sim", *CUDA, "ls2", "-o", "run").status == 0
    assert call("doctor", "run")[::2] == (0, "No known limits.\n")
    (tmp_path / "text").write_text("no capture")
    assert call("doctor", "text").status == 3
    assert call("doctor", "missing").status == 3


def test_a_family_without_coverage_cannot_tell_idle_time(monkeypatch):
    from lanescope import TimeBase, TraceBuilder

    builder = TraceBuilder(TimeBase())
    lane = builder.track("core 0", kind="lane", role="core")
    builder.append("slices", track_id=lane, ts=0, dur=1, name="mma")
    trace = builder.batch()
    assert [each.name for each in limits.unproven(trace)] == ["recorded-time"]


@pytest.mark.parametrize("name", registry.BUILTIN)
def test_families_still_keep_their_promises(name):
    check_family(registry.family(name), seeds=())
