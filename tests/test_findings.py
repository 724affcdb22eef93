"""Checks on simulated captures of every family: all injected faults are found, and nothing else."""

import numpy as np
import pytest

import lanescope
from effort import some
from lanescope.analysis import check
from lanescope.families.options import resolve_options
from lanescope.families.registry import family

SMALL = {
    "aie": {"tiles": 3, "records": 60},
    "ascend": {"tasks": 40},
    "cuda": {"blocks": 4, "tiles": 3},
}

#: An injected fault, and the rules that must find it.
INJECTED = [
    ("aie", {"overruns": 1}, {"LS002", "LS104"}),
    ("aie", {"lost_tail": 4}, {"LS002"}),
    ("aie", {"bad_headers": 0.2, "records": 300}, {"LS002"}),
    ("aie", {"stale": 4}, {"LS002"}),
    ("ascend", {"drop_aicore": 4}, {"LS002", "LS401"}),
    ("ascend", {"drop_aicpu": 4}, {"LS002", "LS401"}),
    ("ascend", {"duplicates": 3}, {"LS402"}),
    ("ascend", {"ambiguous": 2}, {"LS402"}),
    ("ascend", {"bad_rows": 2}, {"LS002"}),
    ("ascend", {"violations": 4, "tasks": 120}, {"LS201"}),
    ("cuda", {"unfinished": 2}, {"LS103"}),
    ("cuda", {"two_writers": 2}, {"LS301", "LS304"}),
    ("cuda", {"clock_step": 1}, {"LS002"}),
    ("cuda", {"holes": 2}, {"LS002"}),
    ("cuda", {"corrupt": 2}, {"LS002"}),
    ("cuda", {"stray_ends": 2}, {"LS401"}),
    ("cuda", {"slots": 80}, {"LS002"}),
]


@pytest.fixture
def opened(tmp_path):
    def run(name, seed, **options):
        chosen = family(name)
        simulation = chosen.simulate(
            resolve_options(chosen.sim_options, SMALL[name] | options, what="the simulator"), seed
        )
        for file, content in simulation.files.items():
            (tmp_path / file).write_bytes(content)
        # A few records without a finalize may be those of several layouts.
        layout = {"layout": "tirx"} if name == "cuda" else {}
        return lanescope.open(tmp_path / next(iter(simulation.files)), **layout)

    return run


def is_plain_fact(trace, finding):
    """Tell whether a notice says only what any sound recording holds: that it ends, and that its clock steps."""
    if finding.severity != "notice" or finding.evidence.table != "slices":
        return False
    slices = trace.slices.take(finding.evidence.ids)
    if finding.code == "LS303":
        steps = trace.clocks["resolution_ticks"][trace.clocks.valid("resolution_ticks")]
        per_second = trace.clocks["frequency_num"] / np.maximum(trace.clocks["frequency_den"], 1)
        step_ns = max(
            (1e9 / rate * step for rate, step in zip(per_second, [*steps, 1], strict=False) if rate), default=0
        )
        return bool((slices.values("dur") < 2 * step_ns).all())
    # What was asserted already when the recording began, or still when it stopped.
    edges = {row["track_id"]: (row["ts"], row["ts"] + row["dur"]) for row in trace.coverage.rows()}
    if finding.code != "LS103":
        return False
    for lane, ts, dur in zip(slices["track_id"].tolist(), slices["ts"].tolist(), slices.values("dur"), strict=True):
        begin, end = edges.get(lane) or edges[int(trace.tracks["parent_id"][lane])]
        if ts > begin + 1 and ts + dur != end:
            return False
    return True


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("part", range(some(10, 2)))
def test_a_clean_capture_gives_no_false_finding(opened, name, part):
    captures, strange = 20, []
    for seed in range(captures * part, captures * (part + 1)):
        trace = opened(name, seed)
        false = [finding for finding in check.run(trace) if not is_plain_fact(trace, finding)]
        # What is implausible may be true: a notice says no more.
        implausible = [found for found in false if found.code.startswith("LS5") and found.severity == "notice"]
        strange += [seed] if implausible else []
        false = [found for found in false if found not in implausible]
        assert not false, (seed, [(finding.code, finding.detail) for finding in false])
    # At full effort, 4 of 200 AIE captures have such a notice, two of them among these twenty, and none of the others.
    assert len(strange) <= (2 if name == "aie" else 0), strange


@pytest.mark.parametrize(("name", "fault", "codes"), INJECTED, ids=[f"{n}-{next(iter(f))}" for n, f, _ in INJECTED])
@pytest.mark.parametrize("seed", range(some(10, 2)))
def test_an_injected_fault_is_found(opened, name, fault, codes, seed):
    found = {finding.code for finding in check.run(opened(name, seed, **fault))}
    assert codes <= found


def test_short_slices_are_one_finding_a_clock_and_not_one_a_lane(opened):
    trace = opened("cuda", 1, blocks=20, tick=100)
    (finding,) = (found for found in check.run(trace) if found.code == "LS303")
    assert len(trace.clocks) == 1
    assert len(set(trace.slices["track_id"][finding.evidence.ids].tolist())) > 10
