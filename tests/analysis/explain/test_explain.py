"""Verdicts in words: the one cause that was made dominant is named, and none where there is none."""

from __future__ import annotations

import json
import random
import shlex
from pathlib import Path

import pytest

import lanescope
from analysis import aie_core
from cli.test_screens import shown
from lanescope.analysis.explain import MOST, Evidence, explain
from lanescope.cli import main
from lanescope.devices.ascend.analysis import bounds as ascend_bounds
from lanescope.devices.ascend.analysis.columns import table_of
from lanescope.devices.ascend.analysis.overhead_report import CORE_IDLE
from lanescope.devices.cuda.simulate import sim_kernel
from lanescope.families.bounds import CAUSES, Bound
from lanescope.trace import TimeBase, TraceBuilder


def said(trace, **known):
    return [(row["topic"], row["cause"]) for row in explain(Evidence(trace, **known)).rows()]


def only(trace, topic):
    (row,) = [row for row in explain(Evidence(trace)).rows() if row["topic"] == topic]
    return row


def bounds(trace):
    return [row["cause"] for row in lanescope.explain(trace).rows() if row["topic"] == "bound"]


# --- rules, on timelines of a few rows ------------------------------------------------------------------------------


class Timeline:
    """Lanes with slices, recorded from 0 to the end."""

    def __init__(self):
        self.builder = TraceBuilder(TimeBase())
        self.rows = []
        self.lanes = []

    def group(self, name, role, parent=None):
        return self.builder.track(name, kind="group", role=role, parent=parent)

    def lane(self, name, role, slices, parent=None):
        track = self.builder.track(name, kind="lane", role=role, parent=parent, nesting="nested")
        self.lanes.append(track)
        self.rows += [(track, ts, dur, text) for ts, dur, text in slices]
        return track

    def finish(self, end=1000, flows=(), gaps=()):
        track, ts, dur, name = map(list, zip(*self.rows, strict=True))
        self.builder.append("slices", track_id=track, ts=ts, dur=dur, name=name)
        zero = [0] * len(self.lanes)
        self.builder.append("coverage", track_id=self.lanes, ts=zero, dur=[end] * len(self.lanes))
        for source, src_ts, target, row in flows:
            self.builder.append(
                "flows",
                kind=["dispatch"],
                src_track_id=[source],
                src_ts=[src_ts],
                dst_track_id=[target],
                dst_ts=[ts[row]],
                dst_slice_id=[row],
            )
        for lane, begin, length in gaps:
            self.builder.append("gaps", track_id=[lane], ts=[begin], dur=[length], cause=["overflow"])
        return self.builder.finish()


def cores(*spans, role="core"):
    made = Timeline()
    for number, slices in enumerate(spans):
        made.lane(f"AIC_{number}", role, slices)
    return made


def work(*pairs):
    return [(begin, end - begin, "matmul") for begin, end in pairs]


def test_cores_that_work_all_the_time():
    row = only(cores(work((0, 500), (510, 1000)), work((0, 980))).finish(), "bound")
    assert (row["cause"], row["subject"]) == ("work", "AIC")
    assert row["share"] == (990 + 980) / 2000
    assert row["gain"] == pytest.approx(1 - row["share"])
    assert row["sentence"].startswith("2 AICs work 98.5% of the time")
    assert row["command"] == "lanescope summary --by core FILE"


def test_one_core_with_most_of_the_work():
    spans = [work(*((at, at + 30) for at in range(0, 1000, 100))) for _ in range(7)]
    row = only(cores(*spans, work(*((at, at + 95) for at in range(0, 1000, 100)))).finish(), "bound")
    assert (row["cause"], row["subject"]) == ("imbalance", "AIC_7")
    window = 995
    assert row["share"] == pytest.approx((950 - (950 + 7 * 300) / 8) / window)


def test_the_longest_of_random_sums_is_no_imbalance():
    for seed in range(40):
        draw = random.Random(seed)
        spans = []
        for _ in range(48):
            at, slices = 0, []
            while at < 900:
                dur = draw.randrange(20, 120)
                slices.append((at, dur, "matmul"))
                at += dur + draw.randrange(20, 120)
            spans.append(slices)
        assert said(cores(*spans).finish(1200)) == [("nothing", "no single cause")], seed


def test_a_tail():
    row = only(cores(work((0, 600)), work((0, 590)), work((0, 600), (610, 1000)), work((0, 600))).finish(), "bound")
    assert (row["cause"], row["subject"], row["share"]) == ("tail", "AIC_2", 0.4)
    assert "only AIC_2 works" in row["sentence"]


def test_workers_of_one_kind_are_judged_by_the_time_of_all():
    """What works for a short while only does not bound the run, and it makes no tail while others work."""
    made = cores(*[work((0, 300), (900, 1000))] * 4)
    made.lane("AIV_4", "core", work((400, 500)))
    trace = made.finish(gaps=[(4, 0, 300), (4, 600, 400)])
    assert "bound" not in [topic for topic, _ in said(trace)]
    crew = Evidence(trace).crew
    assert (crew.begin, crew.end, len(crew)) == (0, 1000, 5)
    assert all(workers.share <= 1 for workers in Evidence(trace).workers)


def test_a_tail_is_of_all_kinds_together():
    made = cores(work((0, 600)), work((0, 600)), work((0, 1000)), work((0, 600)))
    assert only(made.finish(), "bound")["cause"] == "tail"
    made = cores(work((0, 600)), work((0, 600)), work((0, 1000)), work((0, 600)))
    made.lane("AIV_4", "core", work((0, 990)))
    assert ("bound", "tail") not in said(made.finish())


def test_an_idle_time_that_is_nearly_nothing_is_not_rounded_to_nothing():
    row = only(cores(work((0, 99_980)), work((0, 100_000))).finish(100_000), "bound")
    assert row["sentence"].endswith("filling the idle time gains at most 0.1%.")


def test_a_gain_of_nothing_is_not_a_figure():
    row = only(cores(work((0, 1000)), work((0, 1000))).finish(), "bound")
    assert (row["cause"], row["gain"]) == ("work", 0.0)
    assert row["sentence"].endswith("less or faster work makes the run shorter, no idle time is left.")
    assert "at most 0.0%" not in row["sentence"]


def test_devices_that_are_there_for_a_small_part_of_the_run_do_not_bound_it():
    made = Timeline()
    thread = made.lane("thread", "host_thread", [(at, 40, "main") for at in range(0, 10_000, 100)])
    made.lane("stream 7", "stream", [(9_000, 90, "gemm"), (9_095, 105, "gemm")], made.group("GPU 0", "device"))
    trace = made.finish(10_000, [(thread, 8_000, 1, 100)])
    (row,) = explain(Evidence(trace)).rows()
    assert (row["topic"], row["share"]) == ("nothing", 195 / 200)
    assert "from its first to its last operation, 2.0% of the run" in row["sentence"]


def test_devices_of_one_name_are_of_one_kind():
    made = Timeline()
    for name in ("Max 1550", "Max 1550 (2)"):
        made.lane("queue", "queue", work((0, 990)), made.group(name, "device"))
    row = only(made.finish(), "bound")
    assert row["sentence"].startswith("2 devices work 100.0% of the time from their first to their last operation")


def test_lanes_of_a_block_set_no_pace():
    """Asynchronous regions are of their block, whatever their role."""
    made = Timeline()
    group = made.group("block 0", "block", made.group("GPU", "device"))
    made.lane("warp 0", "group", [(0, 100, "mma"), (500, 100, "mma")], group)
    made.lane("load async", "async", [(0, 1000, "fetch")], group)
    assert "lane" not in [row["cause"] for row in explain(Evidence(made.finish())).rows()]


def test_work_on_the_path():
    made = cores(work((0, 300)), [(310, 600, "softmax"), (920, 80, "store")])
    source = {"src_track_id": [0], "src_ts": [300], "src_slice_id": [0]}
    target = {"dst_track_id": [1], "dst_ts": [310], "dst_slice_id": [1]}
    made.builder.append("flows", kind=["dependency"], **source, **target)
    row = only(made.finish(), "path")
    assert (row["subject"], row["share"]) == ("softmax", 0.6)


def test_a_lane_that_sets_the_pace():
    made = cores(work((0, 10), (400, 410)), work((200, 210), (900, 910)))
    made.lane("Orch_0", "orchestrator", [(at, 95, "submit") for at in range(0, 1000, 100)])
    row = only(made.finish(), "bound")
    assert (row["cause"], row["subject"]) == ("lane", "Orch_0")


def test_a_lane_that_waits_sets_no_pace():
    made = cores(work((0, 10), (400, 410)), work((200, 210), (900, 910)))
    made.lane("thread", "host_thread", [(at, 95, "cudaDeviceSynchronize") for at in range(0, 1000, 100)])
    assert said(made.finish()) == [("nothing", "no single cause")]


def launched(delay):
    """Operations of 50 every 100: the host calls ``delay`` after the device has become idle, they start 10 later."""
    made = Timeline()
    host = made.group("python", "process")
    thread = made.lane("thread", "host_thread", [(0, 1, "main")], host)
    gpu = made.group("GPU 0", "device")
    ops = [(at, 50, "gemm") for at in range(100, 1100, 100)]
    stream = made.lane("stream 7", "stream", ops, gpu)
    return made.finish(1200, [(thread, at - 50 + delay, stream, 1 + row) for row, (at, _, _) in enumerate(ops)])


def test_a_device_that_waits_for_launches():
    row = only(launched(40), "bound")
    # Nine idle stretches of 50; in each the call came after 40.
    assert (row["cause"], row["subject"], row["share"]) == ("launch", "GPU 0", 9 * 40 / 950)


def test_a_device_that_idles_though_all_was_launched():
    assert said(launched(-20)) == [("nothing", "no single cause")]


def block(*lanes):
    made = Timeline()
    group = made.group("block 0", "block", made.group("GPU", "device"))
    for number, slices in enumerate(lanes):
        made.lane(f"warp {number}", "group", slices, group)
    return made.finish()


def test_computing_that_waits_for_loads():
    loads = [(at, 90, "tma_load") for at in range(0, 1000, 100)]
    computes = [row for at in range(0, 1000, 100) for row in ((at, 92, "wait_full"), (at + 92, 8, "mma"))]
    trace = block(loads, computes)
    assert ("bound", "load") in said(trace)
    row = next(row for row in explain(Evidence(trace)).rows() if row["cause"] == "load" and row["topic"] == "bound")
    assert row["subject"] == "tma_load"
    assert row["share"] == pytest.approx(0.9)
    exposed = only(trace, "exposed")
    assert exposed["share"] == pytest.approx(0.9)


def test_loads_behind_computing_are_hidden():
    loads = [(at, 50, "tma_load") for at in range(0, 1000, 100)]
    computes = [(at, 100, "mma") for at in range(0, 1000, 100)]
    assert said(block(loads, computes)) == [("bound", "work")]


def test_time_that_lanes_lost_at_their_end_was_not_recorded():
    """Buffers that filled up: what followed the last region is lost, though no region comes behind it."""
    made = lanescope.simulate("cuda", seed=1, blocks=4, tiles=8, slots=200)
    trace = lanescope.open(next(iter(made.files.values())))
    lost, time = Evidence(trace).unrecorded
    phases = [row for row in trace.phases(by="all").rows() if row["cause"] == "gap or unfinished slice"]
    assert lost >= sum(row["total"] for row in phases) > 0.3 * time


def test_time_that_was_not_recorded_and_losses():
    made = cores(work((0, 400), (600, 1000)))
    trace = made.finish(gaps=[(made.lanes[0], 400, 200)])
    row = only(trace, "not recorded")
    assert (row["cause"], row["share"]) == ("gaps", 0.2)


def test_findings_make_figures_uncertain():
    trace = cores(work((0, 500), (510, 1000))).finish()
    assert ("uncertain", "findings") in said(trace, findings={"warning": 2, "notice": 5})
    assert ("uncertain", "findings") not in said(trace, findings={"notice": 5})


@pytest.mark.parametrize("cause", CAUSES)
def test_every_cause_that_a_family_may_report_has_its_words(cause):
    trace = cores(work((0, 300), (600, 1000)), work((0, 300), (600, 1000))).finish()
    strong, weak = (Bound(cause, "tile (1, 2)", dur, 1000, dur, "summary --by tile") for dur in (700, 40))
    assert ("bound", cause) in said(trace, bounds=[strong])
    assert ("bound", cause) not in said(trace, bounds=[weak])


@pytest.mark.parametrize(("lacks", "is_named"), [(170, False), (200, False), (201, True), (390, True)])
def test_cores_that_lack_tasks_do_not_bound_a_run_whose_other_cores_have_some(lacks, is_named):
    """Of the others a scheduler that is late may be said: they had something to do all the time."""
    trace = cores(work((0, 100), (800, 1000))).finish(1000)
    reports = [
        Bound("dependency", "AIC cores", 420, 1000, 420, "summary --by core-idle"),
        Bound("dependency", "AIV cores", lacks, 1000, lacks, "summary --by core-idle"),
    ]
    rows = [row for row in explain(Evidence(trace, reports)).rows() if row["cause"] == "dependency"]
    assert [row["subject"] for row in rows].count("AIC cores") == is_named


def test_no_more_sentences_than_promised():
    trace = cores(work((0, 990)), work((0, 1000))).finish()
    reports = [Bound(cause, "x", 900, 1000, 900, "info") for cause in CAUSES]
    rows = said(trace, bounds=reports, findings={"error": 1})
    assert len(rows) <= MOST
    assert ("uncertain", "findings") in rows


def test_a_trace_without_workers_and_an_empty_one():
    made = Timeline()
    made.lane("lane", "", work((0, 10)))
    assert said(made.finish()) == [("nothing", "no workers")]
    assert said(TraceBuilder(TimeBase()).finish()) == [("nothing", "no workers")]


# --- captures of each family ----------------------------------------------------------------------------------------


def simulated(tmp_path, family, **options):
    made = lanescope.simulate(family, seed=options.pop("seed", 3), **options)
    for name, data in made.files.items():
        (tmp_path / name).write_bytes(data)
    return lanescope.open(tmp_path / next(iter(made.files)))


def test_cuda_blocks_that_work(tmp_path):
    assert bounds(simulated(tmp_path, "cuda")) == ["work"]


def test_cuda_last_wave(tmp_path):
    assert bounds(simulated(tmp_path, "cuda", blocks=140, sms=132)) == ["tail"]


def test_cuda_loads(tmp_path, monkeypatch):
    lengths = {**sim_kernel._LENGTHS, sim_kernel.LOAD_K: 4200, sim_kernel.LOAD_V: 4400}
    monkeypatch.setattr(sim_kernel, "_LENGTHS", lengths)
    assert bounds(simulated(tmp_path, "cuda"))[0] == "load"


def test_ascend_schedulers(tmp_path):
    assert bounds(simulated(tmp_path, "ascend", threads=8, tasks=2000))[0] == "scheduler"


def test_ascend_dependencies(tmp_path):
    """Tasks wait for three others each, and cores of both types are more than those that are ready keep busy."""
    trace = simulated(tmp_path, "ascend", producers=3.0, tasks=100, aic=24, aiv=48, fan_in=0)
    assert bounds(trace)[0] == "dependency"


def test_ascend_cores_that_no_task_needs_wait_for_nothing(tmp_path, monkeypatch):
    trace = simulated(tmp_path, "ascend", tasks=60)
    rows = [
        {"group": group, "window": 1000, "busy": busy, "launch": 0, "scheduler_late": 0, "share": busy / 1000}
        | {"no_ready_task": 1000 - busy, "unknown": 0}
        for group, busy in (("all aic", 0), ("all aiv", 10), ("AIV_0", 10))
    ]
    monkeypatch.setattr(ascend_bounds, "core_idle", lambda _: table_of(CORE_IDLE, rows))
    found = [bound for bound in ascend_bounds.bounds(trace) if bound.cause == "dependency"]
    assert [(bound.subject, bound.dur) for bound in found] == [("AIV cores", 990)]


def test_levelzero_launches(tmp_path):
    alone = {"threads": 1, "devices": 1, "subdevices": 0, "ops": 600}
    assert bounds(simulated(tmp_path, "levelzero", pause_us=2000, **alone)) == ["launch"]


def test_levelzero_without_pauses(tmp_path):
    alone = {"threads": 1, "devices": 1, "subdevices": 0, "ops": 600}
    assert bounds(simulated(tmp_path, "levelzero", pause_us=0, **alone)) == []


@pytest.mark.parametrize(("cause", "slot"), [("compute", 2), ("memory", 3), ("stream", 4), ("lock", 5)])
def test_aie_stalls(tmp_path, cause, slot):
    runs = [(1, 1), (4, 10), (1 << slot, 80), (2, 1), (0, 5), (1, 1), (4, 10), (1 << slot, 80), (2, 1)]
    assert bounds(aie_core.opened(tmp_path, runs)) == [cause]


def kineto(tmp_path, rows):
    """Write a trace of (category, name, thread or stream, begin in us, length, correlation)."""
    events = [
        {
            "ph": "X",
            "cat": category,
            "name": name,
            "pid": 0 if category in ("kernel", "gpu_memcpy") else 100,
            "tid": tid,
            "ts": ts,
            "dur": dur,
            "args": {"correlation": correlation, **({"device": 0, "stream": tid} if category == "kernel" else {})},
        }
        for category, name, tid, ts, dur, correlation in rows
    ]
    head = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}], "baseTimeNanoseconds": 0}
    (tmp_path / "run.json").write_text(json.dumps({**head, "traceEvents": events}))
    return lanescope.open(tmp_path / "run.json")


def steps(delay, length=50, name="gemm"):
    """Kernels of ``length`` us every 100 us, each launched ``delay`` us after the end of the one before it."""
    rows = []
    for number in range(40):
        begin = 1000 + 100 * number
        rows.append(("cuda_runtime", "cudaLaunchKernel", 100, begin - 100 + length + delay, 4, number + 1))
        rows.append(("kernel", name, 7, begin, length, number + 1))
    return rows


def test_kineto_launches(tmp_path):
    assert bounds(kineto(tmp_path, steps(delay=40))) == ["launch"]


def test_kineto_kernels_that_were_launched_in_time(tmp_path):
    assert bounds(kineto(tmp_path, steps(delay=-30))) == []


def test_kineto_work(tmp_path):
    assert bounds(kineto(tmp_path, steps(delay=-50, length=98))) == ["work"]


def test_kineto_annotations_set_no_pace(tmp_path):
    rows = steps(delay=40)
    rows.append(("user_annotation", "ProfilerStep#1", 100, 900, 4200, 0))
    assert bounds(kineto(tmp_path, rows)) == ["launch"]


def test_kineto_exposed_communication(tmp_path):
    rows = steps(delay=-30)
    rows += [("kernel", "ncclDevKernel_AllReduce", 9, 1055 + 100 * n, 40, 1000 + n) for n in range(40)]
    assert "communication" in bounds(kineto(tmp_path, rows))


# --- the command ----------------------------------------------------------------------------------------------------


def test_command(tmp_path, capsys):
    def call(*arguments):
        assert main(list(arguments)) == 0
        return capsys.readouterr().out

    made = lanescope.simulate("cuda", seed=1)
    name = next(iter(made.files))
    (tmp_path / name).write_bytes(made.files[name])
    sentence, command = call("explain", str(tmp_path / name)).splitlines()[:2]
    assert sentence.startswith("132 blocks work")
    assert "\n\nblock  " in call(*shlex.split(command)[1:])
    answer = json.loads(call("explain", str(tmp_path / name), "--json"))
    assert answer["schema"] == "lanescope.explain/1"
    assert answer["rows"][0]["sentence"] == sentence
    assert set(answer["rows"][0]) == {"topic", "cause", "subject", "share", "gain", "sentence", "command"}


def test_a_terminal_says_what_a_pipe_gets_on_more_lines(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[3] / "docs/howto/explain.md").read_text()
    sim, explain = (shlex.split(line)[2:] for line in page.splitlines() if line.startswith("$ lanescope "))
    assert main(sim) == 0
    _, piped = shown(monkeypatch, capfd, explain)
    _, seen = shown(monkeypatch, capfd, explain, 90)
    assert seen.split() == piped.split()
    assert max(map(len, seen.splitlines())) <= 90 < max(map(len, piped.splitlines()))


def test_sentences_print_whole(monkeypatch):
    """Tables shorten texts that do not fit; sentences are what this one is about."""
    trace = cores(work((0, 500), (510, 1000)), work((0, 980))).finish()
    (row,) = explain(Evidence(trace)).rows()
    for columns in ("60", "200"):
        monkeypatch.setenv("COLUMNS", columns)
        first, *lines, command = repr(explain(Evidence(trace))).splitlines()
        assert first == "explain: 1 row"
        assert " ".join(line.strip() for line in lines) == row["sentence"]
        assert all(len(line) <= int(columns) for line in lines)
        assert command.strip() == row["command"] == "lanescope summary --by core FILE"
