"""Settings of check in a file: where it is found, what it may state, and that the command line has the last word."""

import json
import math
from pathlib import Path
from typing import Annotated

import pytest

import lanescope
from error_text import is_one_error
from lanescope.analysis import check
from lanescope.cli.settings import Settings, load, thresholds
from lanescope.declaration import frozen_class
from lanescope.errors import UsageError
from plausibility.kernels import kernel, on


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_a_file_nothing_is_set(folder):
    assert load() == Settings()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("lanescope.toml", 'select = ["LS1"]\nignore = ["LS103"]\nfail-on = "error"\n'),
        ("pyproject.toml", '[tool.lanescope]\nselect = ["LS1"]\nignore = ["LS103"]\nfail-on = "error"\n'),
    ],
)
def test_both_files_are_found_up_to_the_root_of_the_repository(folder, monkeypatch, name, text):
    (folder / ".git").mkdir()
    (folder / name).write_text(text)
    below = folder / "captures" / "today"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert load() == Settings(f"../../{name}", ("LS1",), ("LS103",), "error")


def test_a_file_above_the_repository_or_outside_of_any_is_not_read(folder, monkeypatch):
    (folder / "lanescope.toml").write_text('ignore = ["LS"]')
    below = folder / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    assert load() == Settings()
    (below / ".git").write_text("gitdir: elsewhere")
    assert load() == Settings()


def test_the_nearest_file_counts_and_lanescope_toml_before_a_project(folder, monkeypatch):
    (folder / ".git").mkdir()
    (folder / "lanescope.toml").write_text('ignore = ["LS1"]')
    below = folder / "below"
    below.mkdir()
    (below / "pyproject.toml").write_text('[tool.other]\nname = "lanescope"\n')
    monkeypatch.chdir(below)
    assert load().ignore == ("LS1",)
    (below / "pyproject.toml").write_text('[tool.lanescope]\nignore = ["LS2"]\n')
    assert load().ignore == ("LS2",)
    (below / "lanescope.toml").write_text('ignore = ["LS3"]')
    assert load().ignore == ("LS3",)


@pytest.mark.parametrize(
    "text",
    [
        '[tool]\nlanescope.ignore = ["LS2"]',
        '[tool]\nlanescope = {ignore = ["LS2"]}',
        'tool = {lanescope = {ignore = ["LS2"]}}',
        '[ tool . "lanescope" ]\nignore = ["LS2"]',
        "[\"tool\".'lanescope']\nignore = ['LS2']",
        'tool.lanescope.ignore = ["LS2"]',
        '["tool"]\n"lanescope".ignore = ["LS2"]',
        "'tool' = {lanescope.ignore = ['LS2']}",
    ],
)
def test_the_table_of_a_project_is_found_however_it_is_written(folder, text):
    (folder / "pyproject.toml").write_text(text)
    assert load().ignore == ("LS2",)


def test_a_project_that_is_none_of_ours_is_not_parsed(folder):
    (folder / "pyproject.toml").write_text("this is = not [TOML")
    assert load() == Settings()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("selekt = []", "unknown key 'selekt' (did you mean 'select'?)"),
        ("speed = 1", "unknown key 'speed' (choose from select, ignore, fail-on, thresholds, docs-url)"),
        ('select = "LS1"', "invalid select 'LS1': expected a list of rule codes or prefixes"),
        ("ignore = [1]", "invalid ignore [1]: expected a list of rule codes or prefixes"),
        ('ignore = [""]', "invalid ignore ['']: expected a list of rule codes or prefixes"),
        ('fail-on = "bad"', "invalid fail-on 'bad' (choose from notice, warning, error, never)"),
        ("thresholds = 3", "invalid thresholds: expected a table"),
        ('docs-url = "somewhere"', "invalid docs-url 'somewhere': expected a URL"),
        ("select = [", "invalid TOML: "),
        ("a = " + "[" * 9000, "invalid TOML: "),
        ("\udcff", "invalid TOML: "),
        ('select = ["LS9"]', "unknown rule 'LS9'"),
        ("thresholds.islands.max_lanes = 2", "thresholds.islands.max_lanes: invalid value 2: expected a number from 0"),
    ],
)
def test_each_mistake_is_one_line_that_names_the_file(call, run_file, text, problem):
    Path("lanescope.toml").write_text(text, errors="surrogateescape")
    done = call("check", run_file)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("lanescope: error: ")
    assert f"lanescope.toml: {problem}" in done.err
    assert is_one_error(done.err)


def test_a_named_file_has_to_exist_and_is_the_only_one(call, run_file):
    Path("lanescope.toml").write_text("broken")
    done = call("check", run_file, "--settings", "mine.toml")
    assert (done.status, done.out) == (2, "")
    assert "cannot read settings 'mine.toml': no such file or directory" in done.err
    Path("mine.toml").write_text('fail-on = "never"')
    assert call("check", run_file, "--settings", "mine.toml").status == 0
    Path("pyproject.toml").write_text("[project]")
    assert "table [tool.lanescope] not found" in call("check", run_file, "--settings", "pyproject.toml").err


def test_the_command_line_wins_and_json_states_what_was_applied(call, lossy_file):
    Path("lanescope.toml").write_text('ignore = ["LS", "BLINKER"]\nfail-on = "notice"\n')
    done = call("check", lossy_file)
    assert (done.status, done.out) == (0, "")
    assert "settings: lanescope.toml" in done.err
    told = json.loads(call("check", lossy_file, "--json").out)
    assert told["findings"] == told["rules"] == []
    assert told["settings"]["file"] == "lanescope.toml"
    assert (told["settings"]["ignore"], told["settings"]["fail_on"]) == (["LS", "BLINKER"], "notice")
    done = call("check", lossy_file, "--ignore", "LS1", "--fail-on", "never", "--json")
    told = json.loads(done.out)
    assert done.status == 0
    assert {finding["code"] for finding in told["findings"]} >= {"LS002"}
    assert (told["settings"]["ignore"], told["settings"]["fail_on"]) == (["LS1"], "never")
    assert call("check", lossy_file, "--ignore", "").status == 1


@frozen_class
class Gaps:
    ratio: Annotated[float, (0, math.inf)] = 8.0
    count: Annotated[int, (2, 9)] = 3


@frozen_class
class Limits:
    share: Annotated[float, (0, 1)] = 0.5
    gaps: Gaps = Gaps()


def test_any_declared_threshold_can_be_set():
    file = Settings("f", thresholds={"share": 1, "gaps": {"count": 9}})
    assert thresholds(Limits, file) == Limits(1.0, Gaps(8.0, 9))
    assert thresholds(Limits, Settings()) == Limits()


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"shares": 1}, "f: unknown threshold 'thresholds.shares' (did you mean 'thresholds.share'?)"),
        ({"gaps": {"cuont": 1}}, "f: unknown threshold 'thresholds.gaps.cuont' (did you mean 'thresholds.gaps.count'"),
        ({"gaps": 1}, "f: invalid thresholds.gaps: expected a table"),
        ({"share": 2}, "f: thresholds.share: invalid value 2: expected a number from 0 to 1"),
        ({"share": "much"}, "f: thresholds.share: invalid value 'much': expected a number from 0 to 1"),
        ({"share": True}, "f: thresholds.share: invalid value True: expected a number from 0 to 1"),
        ({"share": float("nan")}, "f: thresholds.share: invalid value nan: expected a number from 0 to 1"),
        ({"gaps": {"count": 1.5}}, "f: thresholds.gaps.count: invalid value 1.5: expected an integer from 2 to 9"),
        ({"gaps": {"count": 1}}, "f: thresholds.gaps.count: invalid value 1: expected an integer from 2 to 9"),
        ({"gaps": {"ratio": -1}}, "f: thresholds.gaps.ratio: invalid value -1: expected a number from 0"),
    ],
)
def test_a_threshold_has_a_name_a_type_and_a_range(table, problem):
    with pytest.raises(UsageError) as error:
        thresholds(Limits, Settings("f", thresholds=table))
    assert error.value.message.startswith(problem)


# --- the other commands that apply rules --------------------------------------------------------------------------

#: What leaves a record far from all others without a finding of LS501, and without an effect on summaries.
WITHOUT_ISLANDS = {
    "ignored": 'ignore = ["LS501"]',
    "not selected": 'select = ["LS1"]',
    "threshold": "[thresholds.islands]\ncore_spans = 1e12\ngap_rests = 1e12\nlone_gap_rests = 1e12",
}


@pytest.fixture
def island(tmp_path):
    """A trace with one slice far from all others: ``island.parquet``."""

    def late(start, end):
        start[-1] += 10**9
        end[-1] += 10**9 + 10**5
        return start, end

    lanescope.write(kernel(change=on(3, late), nesting="free"), tmp_path / "island.parquet")
    return tmp_path / "island.parquet"


def told_of_islands(call, island, *more):
    """Which commands tell of a record far from all others."""
    checked = call("check", island, "--fail-on", "never", *more)
    converted = call("convert", island, "-o", "out.json", "--force", *more)
    summed = call("summary", island, *more)
    assert checked.status == converted.status == summed.status == 0
    found = {"check": checked.out, "convert": Path("out.json").read_text(), "summary": summed.err}
    return {command for command, text in found.items() if "LS501" in text}


@pytest.mark.parametrize("reason", WITHOUT_ISLANDS)
def test_all_commands_apply_the_same_rules(call, island, reason):
    assert told_of_islands(call, island) == {"check", "convert", "summary"}
    Path("mine.toml").write_text(WITHOUT_ISLANDS[reason])
    assert told_of_islands(call, island, "--settings", "mine.toml") == set()
    Path("mine.toml").rename("lanescope.toml")
    assert told_of_islands(call, island) == set()


def test_a_threshold_of_islands_decides_where_evidence_ends(call, island):
    def uncovered():
        return json.loads(call("summary", island, "--by", "core", "--json").out)["rows"][0]["unknown_ns"]

    before = uncovered()
    Path("lanescope.toml").write_text(WITHOUT_ISLANDS["threshold"])
    assert before != uncovered()


def test_view_draws_the_findings_of_these_rules(call, island, monkeypatch):
    class Seen:
        def __init__(self, *given):
            raise UsageError(f"applied: {given}")

    monkeypatch.setattr("lanescope.view.server.find_ui", lambda: None)
    monkeypatch.setattr("lanescope.pipeline.observers.Annotations", Seen)
    Path("lanescope.toml").write_text('select = ["LS5"]\nignore = ["LS501"]\n[thresholds.islands]\nmin_stamps = 99\n')
    limits = check.Thresholds(islands=type(check.Thresholds().islands)(min_stamps=99))
    assert f"applied: (('LS5',), ('LS501',), {limits})" in call("view", island).err


@pytest.mark.parametrize("command", [("summary",), ("view",), ("convert", "-o", "out.json")])
def test_a_mistake_is_found_before_the_capture_is_read(call, command, monkeypatch):
    monkeypatch.setattr("lanescope.view.server.find_ui", lambda: None)
    Path("lanescope.toml").write_text("thresholds.islands.max_lanes = 2")
    done = call(*command, "missing.bin")
    assert done.status == 2
    assert "lanescope.toml: thresholds.islands.max_lanes: invalid value 2" in done.err
    assert is_one_error(done.err)


def test_output_without_findings_needs_no_settings(call, run_file):
    Path("lanescope.toml").write_text("broken")
    assert call("convert", run_file, "-o", "out.json", "--no-annotations").status == 0
