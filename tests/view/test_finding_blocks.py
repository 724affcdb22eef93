"""Findings for people: a block for each rule; nothing is lost on a pipe, nothing is too long for a terminal."""

import re

import pytest

import lanescope
from cli.test_screens import shown
from lanescope.cli import main
from lanescope.view.finding_blocks import blocks, sums
from lanescope.view.formatting import display_width, escape


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Return a capture with many findings: its path, and they."""
    folder = tmp_path_factory.mktemp("found")
    made = lanescope.simulate("cuda", seed=7, unfinished=40)
    for name, content in made.files.items():
        (folder / name).write_bytes(content)
    path = str(folder / next(iter(made.files)))
    return path, lanescope.check(lanescope.open(path))


def test_a_pipe_gets_each_finding_with_its_place_count_and_help(found):
    path, findings = found
    lines = list(blocks(findings, findings, path, "ns"))
    assert lines[0] == escape(path)
    for finding in findings:
        place = finding.location
        where = "(all of it)" if place.track == "" and place.input in ("", path) else place.track or place.input
        shown = [line for line in lines if where in line and finding.detail in line]
        assert any(f"{place.ts:,} ns" in line for line in shown if place.ts is not None) or place.ts is None
        assert any(f"{finding.count:,} " in line for line in shown) or finding.count == 1
        assert f"  help: {finding.help}" in lines
    assert not any("2 x 2 slices" in line for line in lines), "a count that the detail begins with"
    assert sum(line.startswith("  help: ") for line in lines) == len({finding.code for finding in findings})


@pytest.mark.parametrize("width", [40, 60, 80, 110, 200])
def test_lines_fit_a_terminal(found, width):
    path, findings = found
    lines = list(blocks(findings, findings[:9], path, "ns", width))
    assert max(map(display_width, lines[1:])) <= width
    whole = " ".join(" ".join(lines).split())
    for finding in findings[:9]:
        assert " ".join(finding.detail.split()) in whole
    crowd = sum(finding.code == "LS103" for finding in findings[9:])
    assert f"... {crowd} more locations" in whole


def test_names_of_a_capture_print_nothing_but_themselves(found):
    _, findings = found
    assert next(blocks(findings, findings, "run\x1b[2J.npy", "ns")) == "run\\x1b[2J.npy"


def test_sums_by_severity(found):
    _, findings = found
    assert sums(findings, 31) == "Found 45 findings: 2 warnings, 43 notices (31 rules)."
    assert sums(findings[:1], 1) == "Found 1 finding: 1 warning (1 rule)."


def test_a_terminal_says_what_a_pipe_gets_on_more_lines(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert main(["sim", "cuda", "--blocks", "8", "--unfinished", "3", "--seed", "1", "-o", "run.npy"]) == 0
    command = ["check", "run.npy", "--fail-on", "never", "--all"]
    _, piped = shown(monkeypatch, capfd, command)
    _, seen = shown(monkeypatch, capfd, command, 90)
    assert seen.split() == piped.split()
    assert max(map(display_width, seen.splitlines())) <= 90 < max(map(display_width, piped.splitlines()))
    assert "Found 6 findings: 1 warning, 5 notices (31 rules)." in seen.splitlines()


def test_severities_have_colors_where_colors_are_asked_for(found, capfd):
    path, findings = found
    assert main(["check", path, "--fail-on", "never", "--color", "always"]) == 0
    colored = capfd.readouterr().out
    assert main(["check", path, "--fail-on", "never", "--color", "never"]) == 0
    plain = capfd.readouterr().out
    assert re.sub(r"\x1b\[\d*m", "", colored) == plain
    assert {finding.severity for finding in findings} == set(re.findall(r"\x1b\[\d\dm(\w+)\x1b\[0m", colored))
