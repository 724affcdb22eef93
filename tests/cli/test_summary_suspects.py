"""``summary`` prints totals with and without the rows of every plausibility rule, as ``check`` does."""

from __future__ import annotations

import json

import numpy as np
import pytest

import lanescope
from lanescope.analysis import check
from plausibility import captures
from plausibility.columns import Columns
from plausibility.lies import LIES

TWICE, RATE = "8 rows twice", "lane x4, x10, x50, /10, /50"
CASES = [
    *((family, TWICE, "LS505") for family in ("aie", "cuda", "ascend", "levelzero")),
    *((family, RATE, "LS507") for family in ("cuda", "ascend", "levelzero")),
]
KEYS = {"name": "name", "lane": "lane", "device": "device", "category": "category", "region": "region"}


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    """Return the folder of a capture with a lie that a rule finds, and the finding."""
    made = {}

    def of(family, lie, code):
        if (family, lie) not in made:
            [make] = [one.make for one in LIES if one.name == lie]
            for seed in range(20):
                columns = make(Columns.of(captures.simulated(family, seed)), np.random.default_rng(seed))
                trace = None if columns is None else columns.to_trace()
                found = [] if trace is None else check.run(trace, select=["LS5"])
                if len(found) == 1 and found[0].code == code and found[0].evidence.table == "slices":
                    break
            else:
                pytest.fail("no seed makes a capture with this finding only")
            folder = tmp_path_factory.mktemp(family) / "damaged.parquet"
            lanescope.write(trace, folder)
            made[family, lie] = folder, found[0], trace
        return made[family, lie]

    return of


@pytest.mark.parametrize(("family", "lie", "code"), CASES)
@pytest.mark.parametrize("by", ["name", "lane", "device", "category"])
def test_groups_have_both_totals(call, damaged, family, lie, code, by):
    capture, finding, trace = damaged(family, lie, code)
    unit = trace.time.time_unit
    document = json.loads(call("summary", "--by", by, "--json", capture).out)
    assert document["suspect_slices"] == len(finding.evidence.ids)
    lost = 0
    for one in document["suspects"]:
        assert one["rules"] == [code]
        [row] = [row for row in document["rows"] if row[by] == one[by]]
        assert one[f"total_{unit}"] == row[f"total_{unit}"]
        lost += one[f"total_{unit}"] - one[f"total_without_{unit}"]
    change = finding.impact.total - finding.impact.total_without
    assert 0 <= lost <= change
    if by == "lane":
        assert lost == change > 0
    told = call("summary", "--by", by, capture).err
    assert code in told
    assert ("-> " in told) == bool(document["suspects"])
    assert ("no total changes by more than 1%" in told) == (not document["suspects"])


@pytest.mark.parametrize(("family", "lie", "code"), CASES)
def test_analyses_have_both_totals(call, damaged, family, lie, code):
    capture, finding, trace = damaged(family, lie, code)
    unit = trace.time.time_unit
    document = json.loads(call("summary", "--by", "region", "--json", capture).out)
    assert document["suspect_slices"] == len(finding.evidence.ids)
    names = trace.slices.values("name")[finding.evidence.ids]
    lengths = np.where(trace.slices.valid("dur"), trace.slices.values("dur"), 0)[finding.evidence.ids]
    found = [one for one in document["suspects"] if one["column"] == f"total_{unit}"]
    for one in found:
        assert one["rules"] == [code]
        assert one["total"] - (one["total_without"] or 0) == lengths[names == one["region"]].sum()
    for by in ("idle", "occupancy", "overlap")[: 2 if family in ("ascend", "levelzero") else 3]:
        done = call("summary", "--by", by, capture)
        assert code in done.err


def test_a_file_of_settings_chooses_the_rules(call, damaged, tmp_path):
    capture, _, _ = damaged("cuda", TWICE, "LS505")
    (tmp_path / "mine.toml").write_text('ignore = ["LS505"]\n')
    for by in ("name", "lane", "region"):
        assert "LS505" in call("summary", "--by", by, capture).err
        assert "LS505" not in call("summary", "--by", by, capture, "--settings", tmp_path / "mine.toml").err


@pytest.fixture
def swimlane(tmp_path):
    """Return an Ascend capture after a change of its records file."""

    def made(change):
        files = lanescope.simulate("ascend", seed=3, tasks=300, aic=4, aiv=8).files
        main = next(iter(files))
        records = json.loads(files[main])
        change(records)
        for name, content in files.items():
            (tmp_path / name).write_bytes(content)
        (tmp_path / main).write_text(json.dumps(records))
        return tmp_path / main

    return made


def repeat_completions(records):
    """Let a thread have its longer completions again, in the next iteration."""
    phases = []
    for phase in records["aicpu_scheduler_phases"][0]:
        phases.append(phase)
        if phase["kind"] == "complete" and phase["end_cycles"] - phase["start_cycles"] >= 8:
            phases.append({**phase, "loop_iter": phase["loop_iter"] + 1})
    records["aicpu_scheduler_phases"][0] = phases


def test_reports_of_ascend_have_both_totals_of_phases_that_are_repeated(call, swimlane):
    capture = swimlane(repeat_completions)
    [finding] = [one for one in check.run(lanescope.open(capture)) if one.code == "LS505"]
    lost = finding.impact.total - finding.impact.total_without
    for by, group in (("phase", "complete"), ("thread-phase", "Sched_0")):
        document = json.loads(call("summary", "--by", by, "--json", capture).out)
        [one] = document["suspects"]
        assert (one["group"], one["column"], one["rules"]) == (group, "total", ["LS505"])
        assert one["total"] - one["total_without"] == lost
        assert f"{group}, " in call("summary", "--by", by, capture).err
    # The time of a thread counts what shares time once.
    for by in ("scheduler", "core", "function", "round"):
        assert "no total changes by more than 1%" in call("summary", "--by", by, capture).err


def test_reports_of_ascend_tell_that_no_total_holds_with_an_implausible_rate(call, swimlane):
    def change(records):
        records["metadata"]["clock_freq_hz"] = 500_000_000

    capture = swimlane(change)
    count = len(lanescope.open(capture).slices)
    for by in ("name", "core", "scheduler", "phase", "core-idle", "overhead", "region"):
        document = json.loads(call("summary", "--by", by, "--json", capture).out)
        assert document["suspect_slices"] == count
        assert {tuple(one["rules"]) for one in document["suspects"]} == {("LS507",)}
        without = "total_without" if by != "name" else "total_without_ns"
        assert not any(one[without] for one in document["suspects"])
        told = call("summary", "--by", by, capture).err
        assert f"all {count:,} slices are suspect (LS507): no total holds; run 'lanescope check'" in told
        assert "without suspect" not in told
