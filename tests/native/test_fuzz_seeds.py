"""Seeds and dictionaries of the fuzz targets: each target has some, and they are what the target reads."""

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
    [pattern] = re.findall(
        r"for source in native/fuzz/\$\(or \$\(FUZZ\),(\S+)\)\.cpp;", (ROOT / "Makefile").read_text()
    )
    assert {path.stem for path in ROOT.glob(f"native/fuzz/{pattern}.cpp")} == TARGETS
