"""The gates of ``make gates`` can fail: they count what a program really does, and judge it by what is kept."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

import pytest

from lanescope.families.registry import BUILTIN

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"

WORK = "numbers = list(range(100_000))\ndef work():\n    sum(numbers)\n"
SLOWER = WORK + "    sum(numbers[:10_000])\n"


@pytest.fixture
def gates(monkeypatch):
    """The module; benchmarks are no package."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module("bench_gates")


@pytest.fixture
def counted(gates, require_tool):
    """Return a function from a program to its count."""
    require_tool("valgrind")
    return lambda program: gates.count(gates.Gate("work", program)).total


def content(gates, totals, **parts):
    """Return a file of gates; ``parts`` are shares of all of them."""
    return {
        "counted_with": gates.versions(),
        "references": {"python": 1_000_000, "numpy": 2_000_000},
        "instructions": {name: {"total": total, "parts": parts} for name, total in totals.items()},
    }


def kept_file(gates, tmp_path, **totals):
    path = tmp_path / "gates.json"
    path.write_text(json.dumps(content(gates, totals)), encoding="utf-8")
    return path


def counts(gates, totals):
    return {name: gates.Count(total) if isinstance(total, int) else total for name, total in totals.items()}


def judge(gates, found, kept, references=None, **parts):
    """Return the rows by name; without ``references`` those are as they were kept."""
    kept = content(gates, kept, **parts)
    rows = gates.judged(counts(gates, found), kept, counts(gates, references or kept["references"]))
    return {row.name: row for row in rows}


@pytest.fixture
def without_references(gates, monkeypatch):
    """References cost seconds, and what is kept here has no parts that they would scale."""
    monkeypatch.setattr(gates, "REFERENCES", {})


def test_a_gate_fails_beyond_its_tolerance_and_not_before(gates):
    found = {"much": 1_021_000, "little": 1_019_000, "same": 1_000_000, "less": 500_000}
    rows = judge(gates, found, dict.fromkeys(found, 1_000_000))
    assert {name for name, row in rows.items() if row.fails} == {"much"}
    assert "--renew" in rows["less"].note, "an improvement has to be kept, or half of it may be lost unseen"


def test_a_gate_that_fails_is_counted_again_and_its_least_count_is_judged(
    gates, without_references, tmp_path, monkeypatch
):
    kept = kept_file(gates, tmp_path, quiet=1_000_000, disturbed=1_000_000, worse=1_000_000)
    turns = {
        "quiet": [1_000_000],
        "disturbed": [1_500_000, "no callgrind", 1_010_000],
        "worse": [1_030_000, 1_040_000, 1_030_000],
    }
    monkeypatch.setattr(
        gates, "counts", lambda chosen: counts(gates, {gate.name: turns[gate.name].pop(0) for gate in chosen})
    )
    rows = {row.name: row for row in gates.run(kept, [gates.Gate(name, WORK) for name in turns])}
    assert {name for name, row in rows.items() if row.fails} == {"worse"}
    assert rows["disturbed"].value == pytest.approx(1.01)
    assert turns == {"quiet": [], "disturbed": [], "worse": []}


def test_what_is_not_kept_or_cannot_be_counted_fails(gates):
    rows = judge(gates, {"new": 1, "broken": "no callgrind"}, {"broken": 5})
    assert rows["new"].fails
    assert rows["broken"].fails
    assert rows["broken"].note == "no callgrind"


def test_python_and_numpy_of_another_build_are_told_from_our_own_code(gates):
    """Half of the gate is plain Python, a tenth numpy; Python takes a tenth more here, numpy half."""
    here = {"python": 1_100_000, "numpy": 1_000_000}
    found = {"same code": 1_000_000, "slower": 1_021_000}
    rows = judge(gates, found, dict.fromkeys(found, 1_000_000), here, python=0.5, numpy=0.1)
    assert rows["same code"].goal == pytest.approx(1.0 * (1 + gates.TOLERANCE))
    assert {name for name, row in rows.items() if row.fails} == {"slower"}
    (alone,) = judge(gates, {"a": 1_500_000}, {"a": 1_000_000}, {**here, "python": 2_000_000}, python=0.5).values()
    assert not alone.fails


def test_a_reference_that_cannot_be_counted_fails_every_gate(gates):
    (row,) = judge(gates, {"a": 100}, {"a": 100}, {"python": "no callgrind", "numpy": 2_000_000}).values()
    assert row.fails
    assert row.note == "reference python: no callgrind"


def test_other_versions_are_named_and_given_more_room(gates):
    kept = content(gates, {"a": 100, "b": 100})
    kept["counted_with"]["numpy"] = "1.0"
    much, little = gates.judged(counts(gates, {"a": 116, "b": 110}), kept, counts(gates, kept["references"]))
    assert much.fails
    assert not little.fails
    assert "numpy 1.0" in much.note


LINES = """\
ob=(1) /usr/lib/libpython3.11.so.1.0
fn=(1) eval
+3 100
cob=(2) /v/lib/python3.11/site-packages/numpy/_core/umath.so
cfn=(2) sort
calls=2 0
* 7000
-1 5
ob=(2)
fn=(2)
0 40
cob=(3) /v/lib/python3.11/site-packages/lanescope/_native/core.cpython-311-x86_64-linux-gnu.so
calls=1 0
+1 9000
ob=(3)
12 600
ob=(4) /usr/bin/python3.11
0 1
"""


def test_instructions_are_those_of_the_binary_that_executed_them(gates):
    assert gates.by_part(LINES.splitlines(keepends=True)) == {"python": 106, "numpy": 40, "other": 600}


def test_the_committed_file_keeps_each_gate(gates):
    content = json.loads((BENCHMARKS / "gates.json").read_text())
    assert list(content["instructions"]) == [gate.name for gate in gates.GATES]
    assert set(content["references"]) == set(gates.REFERENCES)
    assert min(gate["total"] for gate in content["instructions"].values()) > 1_000_000
    assert all(set(gate["parts"]) == set(gates.REFERENCES) for gate in content["instructions"].values())


def test_every_command_and_writer_that_is_gated_is_there_for_every_family(gates):
    names = {gate.name for gate in gates.GATES}
    for family in BUILTIN:
        assert {f"{what} {gates.SLICES[family]} slices, {family}" for what in ("decode", "check")} <= names
        assert f"check {gates.SLICES[family]} slices, {family} --json" in names
    assert {f"write 100000 slices, {writer}" for writer in ("perfetto", "chrome", "parquet")} <= names


def test_parts_are_of_who_executes_them(gates, require_tool):
    """The references are what they are called, and parts of another piece of work are not all theirs."""
    require_tool("valgrind")
    found = gates.counts(gates.REFERENCES.values())
    for name, count in found.items():
        assert count.parts[name] > 0.9, count


def test_a_count_is_of_the_work_alone(gates, counted):
    once, again, idle = counted(WORK), counted(WORK), counted("def work():\n    pass\n")
    assert abs(once - again) < 0.01 * once
    assert idle < 0.05 * once
    assert counted(SLOWER) > 1.05 * once


def test_make_bench_check_fails_when_work_grows(gates, counted, without_references, tmp_path, monkeypatch, capsys):
    """The same gate under `run.py --check`: passes with what it was kept with, fails once it does a tenth more."""
    run = import_module("run")
    monkeypatch.setattr(run, "OUT", tmp_path / "out")
    monkeypatch.setattr(sys, "argv", ["run.py", "--check", "--only", "gates"])
    monkeypatch.setattr(gates, "KEPT", kept_file(gates, tmp_path, work=counted(WORK)))
    monkeypatch.setattr(gates, "GATES", [gates.Gate("work", WORK)])
    assert run.main() == 0
    monkeypatch.setattr(gates, "GATES", [gates.Gate("work", SLOWER)])
    assert run.main() == 1
    assert "goals missed: gates: work" in capsys.readouterr().err


def test_renewing_keeps_what_is_counted(gates, require_tool, without_references, tmp_path, monkeypatch):
    require_tool("valgrind")
    path = kept_file(gates, tmp_path, gone=7)
    monkeypatch.setattr(gates, "GATES", [gates.Gate("work", WORK)])
    monkeypatch.setattr(sys, "argv", ["bench_gates.py", "--renew", "--kept", str(path)])
    assert gates.main() == 0
    content = json.loads(path.read_text())
    assert list(content["instructions"]) == ["work"]
    monkeypatch.setattr(sys, "argv", ["bench_gates.py", "--kept", str(path)])
    assert gates.main() == 0


def test_a_program_that_fails_gives_no_count(gates, counted):
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        counted("def work():\n    1 / 0\n")
