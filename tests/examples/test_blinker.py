"""The recipe "add a device", worked out as a package from outside the tree and used as its user would."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lanescope.families import registry
from lanescope.testing import check_family

EXAMPLE = Path(__file__).parents[2] / "examples" / "blinker"


@pytest.fixture(scope="module")
def environment(blinker_site):
    """The environment of a machine on which the package is installed."""
    return {**os.environ, "PYTHONPATH": str(blinker_site)}


@pytest.fixture(scope="module")
def lanescope(environment):
    def run(*arguments, cwd, status=0):
        done = subprocess.run(
            [sys.executable, "-m", "lanescope", *map(str, arguments)],
            env=environment,
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == status, done.stderr
        return done.stdout

    return run


@pytest.mark.full
def test_its_own_tests_pass(environment, tmp_path):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLE / "tests")]
    done = subprocess.run(
        [*command, "-c", os.devnull, "--rootdir", str(EXAMPLE)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_the_recipe_is_short():
    (source,) = (EXAMPLE / "src").rglob("*.py")
    assert len(source.read_text().splitlines()) < 200


def test_it_keeps_what_all_families_promise(plugins):
    check_family(registry.family("blinker"))


def test_its_stages_and_formats_are_there(lanescope, tmp_path):
    lanescope(
        "sim", "blinker", "--changes", 40, "--extra", 0.2, "--seed", 3, "-o", tmp_path / "run.blink", cwd=tmp_path
    )
    lines = lanescope("dump", "run.blink", cwd=tmp_path).splitlines()
    assert len(lines) == 41
    assert "blinker.header  magic=1263422530 version=1 lamps=4" in lines[0]
    assert lines[1].startswith("0x00000010  ")
    assert {line.split(" kind=")[1].split()[0] for line in lines[1:]} == {"on", "off", "flash", "level"}
    lanescope("convert", "run.blink", "--format", "blinker-csv", "-o", "run.csv", cwd=tmp_path)
    head, *rows = (tmp_path / "run.csv").read_text().splitlines()
    truth = json.loads((tmp_path / "run.blink.truth.json").read_text())
    assert head == "lamp,start_ns,dur_ns"
    assert len(rows) == len(truth["spans"]) + truth["open"]
    assert "BLINKER101 flicker (notice)" in lanescope("check", "--explain", "BLINKER101", cwd=tmp_path)


def test_converted_checked_and_drawn_by_the_same_commands(lanescope, tmp_path, trace_processor):
    lanescope("sim", "blinker", "--changes", 300, "--seed", 3, "-o", tmp_path / "run.blink", cwd=tmp_path)
    truth = json.loads((tmp_path / "run.blink.truth.json").read_text())

    info = json.loads(lanescope("info", "--json", "run.blink", cwd=tmp_path))
    assert info["family"] == "blinker"
    lanescope("check", "--select", "LS001,LS002,LS101,LS102", "run.blink", cwd=tmp_path)
    count, busy = json.loads(
        lanescope("sql", "--json", "run.blink", "select count(dur) n, sum(dur)::bigint busy from slices", cwd=tmp_path)
    )["rows"][0]
    assert count == len(truth["spans"])
    assert busy == sum(end - begin for _, begin, end in truth["spans"])

    lanescope("convert", "run.blink", "-o", "out.pftrace", "--lamps", "red,green,blue,white", cwd=tmp_path)
    names, faults = trace_processor(
        tmp_path / "out.pftrace",
        "select distinct name from track where name in ('red', 'green', 'blue', 'white') order by 1",
        "select name, value from stats where severity in ('error', 'data_loss') and value > 0",
    )
    assert [row["name"] for row in names] == ["blue", "green", "red", "white"]
    assert faults == []


def test_its_losses_are_found(lanescope, tmp_path):
    lanescope("sim", "blinker", "--drop", 0.1, "--seed", 3, "-o", tmp_path / "run.blink", cwd=tmp_path)
    truth = json.loads((tmp_path / "run.blink.truth.json").read_text())
    query = "select sum(count)::bigint from stats where name = 'blinker_lost'"
    assert json.loads(lanescope("sql", "--json", "run.blink", query, cwd=tmp_path))["rows"] == [[truth["lost"]]]
    lanescope("check", "run.blink", cwd=tmp_path, status=1)
    lanescope("check", "--strict", "run.blink", cwd=tmp_path, status=4)
