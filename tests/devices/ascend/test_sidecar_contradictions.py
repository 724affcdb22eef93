"""What is wrong inside of the files next to a capture: order, numbers that no system gives, unknown keys."""

from __future__ import annotations

import json

import pytest

import lanescope
from devices.ascend import helpers
from lanescope.testing.mutations import Judge
from mutations.seeds import seeds

FILES = next(seed for seed in seeds("ascend") if seed.format == "swimlane v3c, all files").files


def stats(tmp_path, name, change):
    assert change(FILES[name]) != FILES[name]
    for file, content in (*FILES.items(), (name, change(FILES[name]))):
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    trace = lanescope.open(tmp_path / next(iter(FILES)))
    return helpers.stats(trace)


def of_phases(change):
    def changed(content):
        run = json.loads(content)
        change(run)
        return json.dumps(run).encode() + b"\n"

    return changed


def exchange(run):
    run["records"][2:4] = reversed(run["records"][2:4])


@pytest.mark.parametrize(
    ("change", "stat", "count"),
    [
        (lambda run: run.update(more=1), "ascend_unknown_key", 1),
        (lambda run: [row.update(cpu=1, node=0) for row in run["records"][:2]], "ascend_unknown_key", 4),
        (lambda run: run.update(pid=0, inv=0), "ascend_unknown_value", 2),
        (lambda run: run.update(pid=(1 << 22) + 1), "ascend_unknown_value", 1),
        (exchange, "ascend_host_phases_unordered", 1),
    ],
)
def test_phases(tmp_path, change, stat, count):
    assert stats(tmp_path, "host_phase_records.jsonl", of_phases(change))[stat] == count


def cell(row, column, value):
    def changed(content):
        lines = [line.split(b",") for line in content.split(b"\n")]
        lines[row][column] = value
        return b"\n".join(b",".join(line) for line in lines)

    return changed


def same_core(content):
    lines = content.split(b"\n")
    core = lines[1].split(b",")[1]
    other = next(at for at in range(2, len(lines)) if lines[at].split(b",")[1] == core)
    lines[1], lines[other] = lines[other], lines[1]
    return b"\n".join(lines)


@pytest.mark.parametrize("change", [cell(1, 0, b"77"), cell(2, 14, b"4"), cell(3, 5, b"99999999"), same_core])
def test_counters(tmp_path, change):
    assert stats(tmp_path, "pmu.csv", change)["ascend_pmu_contradicts"] == 1


def lines_exchanged(content):
    lines = content.split(b"\n")
    lines[2:4] = lines[3], lines[2]
    return b"\n".join(lines)


@pytest.mark.parametrize(
    "change",
    [
        lines_exchanged,
        lambda content: content.replace(b"dur=19000", b"dur=19001", 1),
        lambda content: content.replace(b"inv=2", b"inv=0", 1),
        lambda content: content.replace(b"depth=1", b"depth=0", 1),
        lambda content: content.replace(b"dur=134240", b"dur=134240000", 1),
    ],
)
def test_spans(tmp_path, change):
    assert stats(tmp_path, "host.1000.log", change)["ascend_host_spans_contradict"] >= 1


def test_version_0_of_scopes_is_not_valid():
    name = "scope_stats/scope_stats.jsonl"
    with Judge(FILES) as judge:
        assert judge.judge({name: FILES[name].replace(b'"version": 6', b'"version": 0')}).is_detected
