"""The gates of ``make bench-check`` can fail: they count what a program really does, and judge it by what is kept."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

import pytest

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
    return lambda program: gates.count(gates.Gate("work", program))


def kept_file(gates, tmp_path, **instructions):
    path = tmp_path / "gates.json"
    path.write_text(
        json.dumps({"tolerance": 0.05, "counted_with": gates.versions(), "instructions": instructions}),
        encoding="utf-8",
    )
    return path


def judge(gates, found, kept, tolerance=0.05):
    content = {"tolerance": tolerance, "counted_with": gates.versions(), "instructions": kept}
    return {row.name: row for row in gates.judged(found, content)}


def test_a_gate_fails_beyond_its_tolerance_and_not_before(gates):
    found = {"much": 1_060_000, "little": 1_040_000, "same": 1_000_000, "less": 500_000}
    rows = judge(gates, found, dict.fromkeys(found, 1_000_000))
    assert {name for name, row in rows.items() if row.fails} == {"much"}
    assert "--renew" in rows["less"].note, "an improvement has to be kept, or half of it may be lost unseen"


def test_what_is_not_kept_or_cannot_be_counted_fails(gates):
    rows = judge(gates, {"new": 1, "broken": "no callgrind"}, {"broken": 5})
    assert rows["new"].fails
    assert rows["broken"].fails
    assert rows["broken"].note == "no callgrind"


def test_other_versions_are_named(gates):
    content = {"tolerance": 0.05, "counted_with": {**gates.versions(), "numpy": "1.0"}, "instructions": {"a": 100}}
    (row,) = gates.judged({"a": 200}, content)
    assert row.fails
    assert "numpy 1.0" in row.note


def test_the_committed_file_keeps_each_gate(gates):
    content = json.loads((BENCHMARKS / "gates.json").read_text())
    assert list(content["instructions"]) == [gate.name for gate in gates.GATES]
    assert content["tolerance"] == gates.TOLERANCE
    assert min(content["instructions"].values()) > 1_000_000


def test_a_count_is_of_the_work_alone(gates, counted):
    once, again, idle = counted(WORK), counted(WORK), counted("def work():\n    pass\n")
    assert abs(once - again) < 0.01 * once
    assert idle < 0.05 * once
    assert counted(SLOWER) > 1.05 * once


def test_make_bench_check_fails_when_work_grows(gates, counted, tmp_path, monkeypatch, capsys):
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


def test_renewing_keeps_what_is_counted(gates, require_tool, tmp_path, monkeypatch):
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
