"""What ``make gpu`` leaves in the repository: captures that decode as they did, figures, a table in the docs."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import lanescope

ROOT = Path(__file__).resolve().parents[4]
GPU = ROOT / "benchmarks" / "gpu"
GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture(scope="module")
def record():
    """Return the module, which is in no package."""
    spec = importlib.util.spec_from_file_location("gpu_record", GPU / "record.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def repository(tmp_path):
    """Return a folder with the page of the docs."""
    (tmp_path / "docs/explain").mkdir(parents=True)
    shutil.copy(ROOT / "docs/explain/probe-cost.md", tmp_path / "docs/explain")
    return tmp_path


def report(name="A GPU", **figures):
    device = {"name": name, "architecture": 90, "multiprocessors": 4, "driver": "13.0"}
    known = {"date": "2026-11-28", "lanescope": "0", "device": device, "compiler": "NVRTC", "sizes": {}}
    return {**known, "figures": {"globaltimer": {"step_ns": 32}, **figures}, "checks": []}


def test_the_docs_have_the_table_of_the_chips_in_the_repository(record):
    text = (ROOT / record.PAGE).read_text()
    assert record.table(ROOT) == text.split(record.BEGIN)[1].split(record.END)[0].strip()


def test_captures_in_the_repository_decode_as_they_did(record):
    found = list(record.kept(ROOT / record.CAPTURES))
    # One folder a chip whose figures are here: neither is there without the other.
    chips = {path.stem for path in (ROOT / record.FIGURES).glob("*.json")}
    assert {path.parent.name for path, _ in found} == chips
    for path, expected in found:
        options = expected.pop("options")
        assert json.loads(json.dumps(record.truth(lanescope.open(path, **options)))) == expected, path


def test_a_capture_that_decodes_otherwise_is_noticed(record, tmp_path):
    made = record.keep_captures(tmp_path, "A GPU", [(GOLDEN / "tirx_4x2_nested.npy", {"layout": "tirx"})])
    assert [path.name for path in made] == ["tirx_4x2_nested.npy", "tirx_4x2_nested.truth.json"]
    ((path, expected),) = record.kept(tmp_path / record.CAPTURES)
    assert path.parent.name == "a-gpu"
    options = expected.pop("options")
    assert json.loads(json.dumps(record.truth(lanescope.open(path, **options)))) == expected
    words = np.load(path)
    words[np.flatnonzero(words)[3]] += np.uint64(64 << 32)
    np.save(path, words)
    assert json.loads(json.dumps(record.truth(lanescope.open(path, **options)))) != expected


def test_large_captures_are_left_out(record, tmp_path):
    path = tmp_path / "large.npy"
    np.save(path, np.zeros(record.MAX_BYTES, np.uint8))
    assert record.keep_captures(tmp_path, "A GPU", [(path, {})]) == []


def test_figures_become_rows_of_the_table(record, repository):
    assert record.table(repository) == record.NOTHING
    cost = {"ls2": {"cycles": 40.25, "ns": 20.1}, "tirx": {"cycles": 31.0}}
    seen = {"same": 48, "only_lanescope": 1, "only_exporter": 2}
    producers = {
        "tirx": {"recognized": "tirx-v1", "exporter": seen},
        "proton": {"not_run": "no | Triton"},
    }
    stages = {"ls2": {"slowdown": 1.0234}}
    record.keep_figures(repository, report("NVIDIA H200", marker_cost=cost, stages=stages, producers=producers))
    record.keep_figures(repository, report("NVIDIA A100-SXM4"))
    page = record.write_page(repository).read_text()
    assert page.count(record.BEGIN) == page.count(record.END) == 1
    assert record.NOTHING not in page
    assert "| NVIDIA H200 | 32 ns | 40.2 (20.1) | - | - | - | 31.0 | x 1.023 | 2026-11-28 |" in page
    assert "| NVIDIA A100-SXM4 | 32 ns | - | - | - | - | - | - | 2026-11-28 |" in page
    assert "| tirx | NVIDIA H200 | tirx-v1 | 48 | 1 | 2 |" in page
    assert "| proton | NVIDIA H200 | - | not run: no / Triton | - | - |" in page
    # A second run of a chip replaces the first, and the page does not grow.
    record.keep_figures(repository, report("NVIDIA H200", marker_cost=cost, stages=stages, producers=producers))
    assert record.write_page(repository).read_text() == page
