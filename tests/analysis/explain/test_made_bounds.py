"""One cause is made to bound a run, for causes of each family, with fresh seeds, and named; balanced runs name none."""

from __future__ import annotations

import pytest

import lanescope
from analysis.critical_path.test_late_causes import Profile, Queue
from analysis.explain import made_causes
from analysis.explain.made_causes import simulated
from effort import seeds
from lanescope.families import registry

SEEDS = seeds(30, least=4, first=9_300)


def bounds(trace):
    return [row["cause"] for row in lanescope.explain(trace).rows() if row["topic"] == "bound"]


@pytest.mark.parametrize("family", made_causes.FAMILIES)
@pytest.mark.parametrize("cause", made_causes.ALL)
def test_each_family_has_a_run_of_each_cause_or_a_reason_why_not(family, cause):
    assert ((family, cause) in made_causes.MADE) != ((family, cause) in made_causes.REASONS)


def test_the_families_are_those_of_the_package():
    assert sorted(family.name for family in registry.builtin()) == sorted(made_causes.FAMILIES)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("family", "cause"), list(made_causes.MADE))
def test_the_cause_that_was_made_is_named(tmp_path, family, cause, seed):
    found = bounds(made_causes.MADE[family, cause](tmp_path, seed=seed))
    assert cause in found
    assert set(found) <= {cause, *BESIDE.get((family, cause), ())}


@pytest.mark.parametrize("seed", [709_307])
def test_a_scheduler_that_is_late_for_one_type_of_cores_is_all_that_is_named(tmp_path, seed):
    """Cores of the other type lack tasks for 42 % of their time: their rounds end with those of the late ones."""
    assert bounds(made_causes.MADE["ascend", "scheduler"](tmp_path, seed=seed)) == ["scheduler"]


#: What follows from a cause, and may be named beside it.
BESIDE = {
    ("ascend", "lane"): ["dependency"],  # tasks that are not submitted are not ready
    ("ascend", "imbalance"): ["dependency"],  # the others wait for the core with most work
    ("ascend", "tail"): ["dependency"],  # what is left waits for nothing, but there is too little of it
    ("ascend", "dependency"): ["scheduler"],  # which takes a moment between each two
    ("cuda", "imbalance"): ["load"],
    ("cuda", "load"): ["work"],
    ("cuda", "tail"): ["load"],  # blocks of few tiles wait for the first loads
    ("kineto", "communication"): ["work"],  # communication is work of the device as well
    ("kineto", "lane"): ["launch"],
    ("levelzero", "lane"): ["launch"],
}


@pytest.mark.parametrize("seed", SEEDS)
def test_an_ascend_scheduler_is_late_with_tasks_that_wait_for_no_other(tmp_path, seed):
    """Their submission tells since when they were ready, so the records name what holds the cores up."""
    found = list(lanescope.explain(made_causes.on_chip(tmp_path, seed, made_causes.short_tasks)).rows())
    assert "scheduler" in [row["cause"] for row in found if row["topic"] == "bound"]
    assert "nothing" not in [row["topic"] for row in found]


# --- runs that nothing bounds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_a_device_that_idles_for_no_recorded_reason_names_none(tmp_path, seed):
    """Kernels that were launched long before they begin, at half of the time."""
    run = Profile(seed)
    for number in range(40):
        run.work(7, run.random.randint(40_000, 60_000), after=2_000_000 + 100_000 * number)
    assert bounds(run.open(tmp_path)) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_levelzero_operations_that_were_given_in_time_name_none(tmp_path, seed):
    run = Queue(seed)
    run.made.immediate(1)
    events = [run.append("MemoryFill", 1) for _ in range(30)]
    for number, event in enumerate(events):
        begin = 100_000 + 40_000 * number
        end = run.ran(event, begin, begin + run.random.randint(15_000, 22_000))
    run.wait("zeCommandListHostSynchronize", end, hCommandList=1)
    assert bounds(run.made.open(tmp_path)) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_cuda_blocks_that_share_their_time_evenly_name_nothing_but_work(tmp_path, seed):
    """All begin together; where twelve of the sixteen have ended by chance for a tenth of the run, that is a tail."""
    trace = simulated(tmp_path, "cuda", seed, blocks=16, sms=16)
    begins, ends = {}, {}
    for row in trace.sql("select s.ts, s.dur, r.block from slices s join cuda_regions r on r.slice_id = s.id").rows():
        begins[row["block"]] = min(begins.get(row["block"], row["ts"]), row["ts"])
        ends[row["block"]] = max(ends.get(row["block"], 0), row["ts"] + row["dur"])
    last = sorted(ends.values())
    is_tailed = last[-1] - last[11] >= 0.1 * (last[-1] - min(begins.values()))
    assert len(last) == 16
    assert set(bounds(trace)) <= ({"work", "tail"} if is_tailed else {"work"})


@pytest.mark.parametrize("seed", SEEDS)
def test_aie_simulated_tiles_without_a_dominant_stall_name_none(tmp_path, seed):
    assert bounds(simulated(tmp_path, "aie", seed)) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_aie_idle_tiles_name_none(tmp_path, seed):
    assert bounds(made_causes.tile(tmp_path, seed)) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_ascend_tasks_that_take_all_cores_evenly_name_nothing_but_work(tmp_path, seed):
    """Each round waits for the round before, and takes long beside what schedulers and orchestrator need."""
    assert bounds(made_causes.on_chip(tmp_path, seed, made_causes.even_rounds)) == ["work"]


@pytest.mark.parametrize("seed", SEEDS)
def test_ascend_rounds_in_which_another_core_is_last_each_time_name_none(tmp_path, seed):
    assert bounds(made_causes.on_chip(tmp_path, seed, made_causes.rounds_by_chance)) == []


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("other", [40_000, 35_000])
def test_two_devices_with_about_as_much_to_do_name_none(tmp_path, other, seed):
    assert bounds(made_causes.two_devices(seed, other, first=40_000).open(tmp_path)) == []
