"""A terminal is given the first rows of a long answer, and told how many follow; a pipe is given all."""

import json
import re

import pytest

from cli.conftest import csv_rows
from cli.test_screens import shown
from lanescope.cli import main
from lanescope.view.formatting import display_width


@pytest.fixture
def step(tmp_path, monkeypatch, capfd):
    """A capture with more names than a screen has rows."""
    monkeypatch.chdir(tmp_path)
    assert main(["sim", "kineto", "--seed", "1", "-o", "step.json"]) == 0
    capfd.readouterr()
    return "step.json"


def rows(text):
    lines = text.splitlines()
    rule = next(at for at, line in enumerate(lines) if line.startswith("─"))
    return [line for line in lines[rule + 1 :] if re.search(r"%( |$)", line)]


@pytest.mark.parametrize("verb", [["summary"], ["summary", "--by", "block"], ["phases", "--by", "lane"]])
def test_a_terminal_has_the_first_rows_and_a_pipe_all(step, monkeypatch, capfd, verb):
    if "--by" in verb:
        step = "run.npy"
        assert main(["sim", "cuda", "--blocks", "40", "--seed", "1", "-o", step]) == 0
    _, piped = shown(monkeypatch, capfd, [verb[0], step, *verb[1:]])
    _, seen = shown(monkeypatch, capfd, [verb[0], step, *verb[1:]], 100)
    total = len(rows(piped))
    assert total > 35
    assert len(rows(seen)) == 30
    _, whole = shown(monkeypatch, capfd, [verb[0], step, *verb[1:], "--limit", str(total)], 100)
    assert len(rows(whole)) == total
    _, table = shown(monkeypatch, capfd, [verb[0], step, *verb[1:], "--csv"], 100)
    assert len(csv_rows(table)) == total + 1


def test_what_follows_is_said_with_what_shows_it(step, monkeypatch, capfd):
    monkeypatch.setattr("lanescope.cli.paging.is_terminal", lambda stream: True)
    assert main(["summary", step]) == 0
    assert "70 more rows: use --limit 100, --json or --csv\n" in capfd.readouterr().err


def test_a_long_name_does_not_fill_the_rows_of_others_with_blanks(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    long = "n" * 1700
    events = [
        {"ph": "X", "pid": 1, "tid": 1, "ts": at, "dur": 1, "name": name} for at, name in enumerate(["a", "b", long])
    ]
    (tmp_path / "run.json").write_text(json.dumps({"traceEvents": events}))
    _, piped = shown(monkeypatch, capfd, ["summary", "run.json"])
    widths = sorted(map(display_width, piped.splitlines()))
    assert widths[-1] > 1700 > 200 > widths[-2]
    assert long in piped


def test_a_folder_of_parquet_files_says_what_it_is_and_what_its_stats_mean(step, monkeypatch, capfd):
    assert main(["convert", step, "-o", "run.parquet"]) == 0
    assert re.fullmatch(r"wrote run.parquet \(433 slices, .*, \d+ tables, [\d.]+ KiB\)\n", capfd.readouterr().err)
    _, text = shown(monkeypatch, capfd, ["info", "run.parquet"])
    _, of_file = shown(monkeypatch, capfd, ["info", step])
    assert text.startswith("run.parquet, made of step.json\n")
    assert text.partition("Decode diagnostics")[2] == of_file.partition("Decode diagnostics")[2] != ""


def test_runs_of_a_baseline_have_durations_with_their_unit(step, monkeypatch, capfd):
    assert main(["baseline", "add", "kept", step]) == 0
    assert capfd.readouterr().err.endswith("(100 groups)\n")
    _, text = shown(monkeypatch, capfd, ["baseline", "list", "kept"])
    assert "5.29 ms" in text
    _, table = shown(monkeypatch, capfd, ["baseline", "list", "kept", "--csv"])
    head, row = csv_rows(table)
    assert dict(zip(head, row, strict=True))["span"] == "5290187"


def test_a_terminal_has_the_first_tasks_of_a_graph(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert main(["sim", "ascend", "--tasks", "60", "--seed", "1", "-o", "run"]) == 0
    capfd.readouterr()
    verb = ["ascend-deps", "run/l2_swimlane_records.json"]
    _, piped = shown(monkeypatch, capfd, verb)
    _, seen = shown(monkeypatch, capfd, verb, 200)
    tasks = [
        sum(line.startswith(("t", "r")) and line[1].isdigit() for line in text.splitlines()) for text in (piped, seen)
    ]
    assert tasks[0] > tasks[1] == 30
    monkeypatch.setattr("lanescope.view.table_output.is_terminal", lambda stream: True)
    assert main(verb) == 0
    assert f"{tasks[0] - 30} more rows: use --json or --csv\n" in capfd.readouterr().err
