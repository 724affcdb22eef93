"""The command `report`."""

import subprocess
import sys

import pytest
from tests.view.report.decoded import Decoded

import lanescope


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "run.bin"
    path.write_bytes(next(iter(lanescope.simulate("aie", tiles=2, records=40).files.values())))
    return path


def run(*arguments):
    command = [sys.executable, "-m", "lanescope", "report", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, timeout=60, check=False)


def test_a_file_is_written_and_only_replaced_with_force(capture, tmp_path):
    out = tmp_path / "report.html"
    done = run(capture, "-o", out, "--title", "mine")
    assert done.returncode == 0, done.stderr
    assert b"wrote" in done.stderr
    assert not done.stdout
    report = Decoded(out.read_bytes())
    assert report.head["title"] == "mine"
    assert report.head["unit"] == "cycles"
    assert str(tmp_path) not in str(report.head)
    again = run(capture, "-o", out)
    assert again.returncode == 2
    assert b"--force" in again.stderr
    assert run(capture, "-o", out, "--force").returncode == 0


def test_standard_output_and_python_have_the_same_bytes(capture, tmp_path):
    done = run(capture, "-o", "-")
    lanescope.open(capture).report(tmp_path / "x.html")
    assert done.stdout == (tmp_path / "x.html").read_bytes()


def test_a_window_is_a_part(capture):
    whole, part = (Decoded(run(capture, "-o", "-", *more).stdout).head for more in ([], ["--end", "5000"]))
    assert 0 < part["rows"] < whole["rows"]


@pytest.mark.parametrize("size", ["0", "-1MB", "2XB", "MB", "nan", "inf"])
def test_sizes_that_are_none_are_refused(capture, size):
    done = run(capture, "-o", "-", f"--max-size={size}")
    assert done.returncode == 2
    assert b"must be a size" in done.stderr
