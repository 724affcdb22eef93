"""The table of all families: its arithmetic, its JSON, and every stage on a small capture."""

from __future__ import annotations

import json
import socket
from importlib import import_module
from pathlib import Path

import pytest

from lanescope.families.registry import BUILTIN

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def table(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module("table")


def row(slices, seconds, peak, rivals=(), **more):
    return {
        "family": "f", "stage": "decode", "size": slices, "slices": slices, "seconds": seconds, "bytes": 8 * slices,
        "memcpy_seconds": seconds / 50, "peak_rss": peak, "idle_rss": 0, "rivals": list(rivals), **more,
    }  # fmt: skip


def test_ratios_are_of_time_a_slice_and_growth_of_a_decade(table):
    rival = {"column": "peer", "name": "p 1", "slices": 500, "seconds": 0.5}
    rows = [row(1000, 0.01, 5_000_000, [rival]), row(100_000, 4.0, 203_000_000)]
    (line,) = table.lines(rows)
    assert line["ns_a_slice"] == pytest.approx(40_000)
    assert line["of_memcpy"] == pytest.approx(50)
    assert line["peer"] == pytest.approx(1e6 / 40_000)
    assert line["reference"] is None
    assert line["bytes_a_slice"] == 8
    assert line["time_for_10x"] == pytest.approx(20), "400 times the time for two decades"
    assert line["rss_a_slice"] == pytest.approx(2000)


def test_a_peer_that_is_missing_is_named_and_has_no_figure(table):
    rival = {"column": "peer", "name": "p 1", "slices": 0, "seconds": None, "missing": "no network"}
    rows = [row(1000, 0.01, 1, [rival]), row(10_000, 0.1, 2)]
    assert table.lines(rows)[0]["peer"] is None
    assert "p 1 (not measured: no network)" in "\n".join(table.legend(rows))


def test_both_renderings_have_the_same_cells(table):
    rows = [row(1000, 0.01, 5_000_000), row(10_000, 0.1, 9_000_000)]
    text, markdown = table.text_table(rows).splitlines(), table.markdown_table(rows).splitlines()
    assert text[1].split() == [cell.strip() for cell in markdown[2].strip("|").split("|")]


@pytest.mark.full
@pytest.mark.parametrize("family", BUILTIN)
def test_every_stage_and_comparison_runs(table, tmp_path, family):
    """Not how fast: that each does its work on this family and counts the same slices."""
    path = table.make(family, 1000, tmp_path)
    case = import_module("case")
    found = {name: case.ours(name, family, path) for name in case.STAGES}
    slices = found["decode"]["slices"]
    assert 500 < slices < 2000
    assert {entry["slices"] for entry in found.values()} == {slices}
    assert all(entry["seconds"] > 0 and entry["memcpy_seconds"] > 0 for entry in found.values())
    assert [name for name, entry in found.items() if not entry["bytes"]] == ["check", "summary"]
    for name in case.OTHERS:
        assert case.other(name, family, path)["slices"] == pytest.approx(slices, rel=0.1), name


def test_results_do_not_say_whose_machine_it_was(table):
    said = json.dumps(import_module("run").machine())
    assert socket.gethostname() not in said
    assert str(Path.home()) not in said
    assert str(BENCHMARKS.parent) not in said
