"""Seeds and dictionaries of the fuzz targets: each target has some, and they are what the target reads."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lanescope

ROOT = Path(__file__).resolve().parents[2]
TARGETS = {path.stem for path in (ROOT / "native/fuzz").glob("fuzz_*.cpp")}


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("seeds")
    subprocess.run([sys.executable, ROOT / "tools/make_fuzz_seeds", folder], check=True, timeout=200)
    return folder


def test_each_target_has_seeds_that_are_short(seeds):
    assert {path.name for path in seeds.iterdir() if path.is_dir()} == TARGETS
    for target in TARGETS:
        sizes = [path.stat().st_size for path in (seeds / target).iterdir()]
        assert len(sizes) >= 3, target
        assert 0 < min(sizes) <= max(sizes) <= 4096, target


def test_dictionaries_are_of_targets_and_well_formed(seeds):
    found = list(seeds.glob("*.dict"))
    assert len(found) >= 5
    for path in found:
        assert path.stem in TARGETS
        lines = path.read_text().splitlines()
        assert lines
        assert all(re.fullmatch(r'"(\\x[0-9a-f]{2})+"', line) for line in lines)


@pytest.mark.parametrize("target", ["fuzz_aie", "fuzz_aie_text"])
def test_aie_seeds_decode_in_all_modes(seeds, target):
    modes = set()
    for path in (seeds / target).iterdir():
        modes |= set(lanescope.open(path, family="aie").details["aie_segments"]["mode"].tolist())
    assert modes == {0, 1, 2}


def test_make_fuzz_runs_each_target():
    listed = subprocess.run(
        [sys.executable, ROOT / "tools/fuzz.py", "--list"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    purposes = dict(line.split(": ", 1) for line in listed)
    assert set(purposes) >= TARGETS
    assert all(len(purpose) > 40 for purpose in purposes.values())
    assert re.search(r"^fuzz:.*\n(\t.*\n)*\t.*tools/fuzz\.py ", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_each_codec_has_a_target():
    """Each header of the core is one that a target reaches, or has a reason to be left out."""
    core, known = ROOT / "native/core", set()

    def reach(path):
        for name in re.findall(r'#include "([^"]+)"', path.read_text()):
            for header in (ROOT / "native" / name, path.parent / name):
                if not header.exists() or header in known:
                    continue
                known.add(header)
                for file in (header, header.with_suffix(".cpp")):
                    if file.exists():
                        reach(file)

    for path in (ROOT / "native/fuzz").glob("fuzz_*.cpp"):
        reach(path)
    # Mapped files are pages of the system: tests/source writes over files while they are read. Pages hold no input.
    left_out = {core / "source/mapped_file.hpp", core / "wire/pages.hpp"}
    assert set(core.rglob("*.hpp")) - known == left_out


def libfuzzer_log(executions, features):
    begun = f"#1\tINITED cov: 5 ft: {features // 2} corp: 1\n"
    ended = f"#{executions}\tDONE   cov: 9 ft: {features} corp: 3\n"
    return f"{begun}{ended}stat::number_of_executed_units: {executions}\n"


@pytest.fixture
def driver(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("fuzz_driver", ROOT / "tools/fuzz.py")
    driver = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "fuzz_driver", driver)
    spec.loader.exec_module(driver)
    monkeypatch.setattr(driver, "BUILD", tmp_path)
    return driver


@pytest.mark.parametrize(
    ("executions", "features", "fault"), [(5000, 40, ""), (5000, 20, "stands still"), (10, 40, "stands still")]
)
def test_a_target_that_stands_still_fails(executions, features, fault, driver, monkeypatch):
    runs = [(libfuzzer_log(9, 20), 0), (libfuzzer_log(executions // 5, 20), 0)]
    logs = iter([*runs, (libfuzzer_log(executions - executions // 5, features), 0)])
    ways = []
    monkeypatch.setattr(driver, "run", lambda *_, way="comparing": ways.append(way) or next(logs))
    figures, found = driver.fuzz("fuzz_aie", 1)
    assert ways == ["comparing", "comparing", "fast"]
    assert (figures.executions, figures.seed_features, figures.features) == (executions, 20, features)
    assert found.startswith(fault)
    assert bool(found) == bool(fault)


@pytest.mark.parametrize(("again", "fault"), [(0, ""), (70, "a fault")])
def test_an_input_that_takes_long_is_a_fault_only_if_it_does_again(again, fault, driver, monkeypatch):
    """A machine that stands still for ten seconds is none of the input's doing."""
    slow = "#900 REDUCE cov: 30 ft: 40 corp: 9/9b\nTest unit written to /b/fuzz_aie-timeout-0f\n"
    slow += "stat::number_of_executed_units: 5000\n"
    asked = []
    logs = iter([(libfuzzer_log(9, 20), 0), (libfuzzer_log(1000, 40), 0), (slow, 70), ("", again)])
    monkeypatch.setattr(driver, "run", lambda *given, **_: asked.append(given) or next(logs))
    figures, found = driver.fuzz("fuzz_aie", 1)
    assert asked[-1] == ("fuzz_aie", "-timeout=10", "/b/fuzz_aie-timeout-0f")
    assert found.startswith(fault)
    assert bool(found) == bool(fault)
    if not fault:
        assert (figures.executions, figures.edges, figures.features) == (6000, 30, 40)
