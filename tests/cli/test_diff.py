"""The commands ``diff`` and ``baseline``: sides, exit statuses, kept summaries, pages."""

from __future__ import annotations

import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import lanescope
from lanescope.analysis.compare import summary_file
from lanescope.analysis.compare.run_summary import summarize_run
from lanescope.cli import main
from lanescope.devices.cuda.simulate import sim_kernel
from lanescope.errors import InputError


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs a1 to a8, and b1 to b5 with a softmax that takes a tenth more."""
    folder = tmp_path_factory.mktemp("runs")
    lengths = dict(sim_kernel._LENGTHS)
    try:
        for side, count, factor in (("a", 8, 1.0), ("b", 5, 1.1)):
            sim_kernel._LENGTHS[sim_kernel.SOFTMAX] = lengths[sim_kernel.SOFTMAX] * factor
            for seed in range(1, count + 1):
                files = lanescope.simulate("cuda", seed + 100 * (side == "b"), groups=1, blocks=66).files
                for name, content in files.items():
                    (folder / name.replace("attention", f"{side}{seed}")).write_bytes(content)
    finally:
        sim_kernel._LENGTHS.update(lengths)
    return folder


def paths(folder: Path, side: str, count: int) -> list[str]:
    return [str(folder / f"{side}{number}.npy") for number in range(1, count + 1)]


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(list(arguments))
    out, err = capsys.readouterr()
    return status, out, err


def named(text: str) -> dict[str, str]:
    return {
        group["key"]["name"]: group["verdict"]
        for group in json.loads(text)["groups"]
        if group["verdict"] not in ("no difference found", "not tested")
    }


def test_sides_are_parted_by_two_dashes(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys, "diff", "--json", *paths(runs, "a", 5), "--", *paths(runs, "b", 5))
    assert status == 0
    assert named(out) == {"softmax": "slower"}
    found = json.loads(out)
    assert found["schema"] == "lanescope.diff/1"
    assert sum(group["contribution"]["change"] for group in found["groups"]) == found["change"]
    status, out, _ = call(capsys, "diff", "--json", *paths(runs, "a", 1), *paths(runs, "b", 1))
    assert named(out) == {"softmax": "differs in these two captures"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["A"], "1 run without a second side"),
        (["A", "A", "A"], "3 runs without a second side"),
        (["--", "A", "A"], "without a second side"),
        (["A", "--", "A", "--", "A"], "more than one --"),
        (["A", "--", "A", "--limit", "8"], "option --limit after --"),
        (["--fail-if", "nonsense", "A", "A"], "invalid condition 'nonsense'"),
        (["--floor", "7", "A", "A"], "invalid value '7' for --floor"),
        (["--by", "colour", "A", "A"], "unknown column 'colour'"),
        (["--by", "name,name", "A", "A"], "contains a column twice"),
        (["--by", "task", "A", "A"], "no slice of the capture has a task"),
        (["--series", "A", "--", "A"], "--series takes runs in order"),
    ],
)
def test_calls_that_are_refused(
    runs: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    given = [str(runs / "a1.npy") if argument == "A" else argument for argument in arguments]
    status, out, err = call(capsys, "diff", *given)
    assert (status, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_a_condition_that_holds_sets_the_status(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sides = [*paths(runs, "a", 5), "--", *paths(runs, "b", 5)]
    status, _, err = call(capsys, "diff", "--fail-if", "mean(softmax) > +5%", *sides)
    assert status == 1
    assert "failed: mean(softmax) > +5%: softmax, group: +" in err
    assert call(capsys, "diff", "--fail-if", "mean(softmax) > +50%", *sides)[0] == 0
    status, out, err = call(capsys, "diff", "--fail-if", "mean(softmax) > +5%", sides[0], sides[-1])
    assert status == 2
    assert "softmax" in out
    assert "requires --floor" in err
    status, out, _ = call(
        capsys, "diff", "--json", "--floor", "2%", "--fail-if", "mean(softmax) > +5%", sides[0], sides[-1]
    )
    assert status == 1
    assert json.loads(out)["fail_if"][0]["failed"] == [{"name": "softmax", "lane_kind": "group"}]


def test_baselines(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "baseline")
    assert call(capsys, "baseline", "list", folder)[0] == 3
    assert call(capsys, "baseline", "add", folder, *paths(runs, "a", 6))[0] == 0
    status, _, err = call(capsys, "baseline", "add", folder, *paths(runs, "a", 1))
    assert status == 2
    assert "already exists" in err
    status, out, _ = call(capsys, "baseline", "list", "--json", folder)
    assert [Path(run["name"]).name for run in json.loads(out)["runs"]] == [f"a{at}.npy" for at in range(1, 7)]
    status, out, _ = call(capsys, "baseline", "check", "--json", folder, str(runs / "a8.npy"))
    assert (status, named(out)) == (0, {})
    arguments = ("--json", "--fail-if", "total(softmax) > 3%", folder, str(runs / "b1.npy"))
    status, out, _ = call(capsys, "baseline", "check", *arguments)
    assert (status, named(out)) == (1, {"softmax": "slower"})
    status, _, err = call(capsys, "baseline", "check", folder, str(runs / "a2.npy"))
    assert "excluded from the baseline: 1" in err
    status, out, _ = call(capsys, "diff", "--json", folder, "--", *paths(runs, "b", 5))
    assert named(out) == {"softmax": "slower"}
    status, _, err = call(capsys, "baseline", "add", "--by", "lane", folder, str(runs / "a7.npy"))
    assert status == 2
    assert "use another folder" in err


def test_series(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    series = [*paths(runs, "a", 5), *paths(runs, "b", 5)]
    status, out, err = call(capsys, "diff", "--series", "--json", *series)
    assert status == 0
    found = json.loads(out)["changes"]
    assert [(change["key"]["name"], Path(change["run"]).name) for change in found] == [("softmax", "b1.npy")]
    status, out, err = call(capsys, "diff", "--series", *series)
    assert "false alarms: at most 5%" in err
    assert re.search(r"b1\.npy +6  softmax", out)


class Page(HTMLParser):
    """The texts and the elements of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_page_shows_hostile_names_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "<script src=//x>\u202e</td></table>&amp;\x1b[2J"
    events = [{"ph": "X", "pid": 1, "tid": 1, "ts": at * 10, "dur": 5, "name": hostile} for at in range(20)]
    for name, dur in (("a", 5), ("b", 8)):
        content = [{**event, "dur": dur} for event in events]
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    target = tmp_path / "page.html"
    status, _, _ = call(capsys, "diff", "--html", str(target), str(tmp_path / "a.json"), str(tmp_path / "b.json"))
    assert status == 0
    text = target.read_text()
    page = Page(text)
    assert not {"script", "link", "img", "iframe"} & page.tags
    assert any("<script src=//x>" in each and "</table>&amp;" in each for each in page.texts)
    assert not {"\u202e", "\x1b"} & set(text)
    assert "default-src 'none'" in text
    assert call(capsys, "diff", "--html", str(target), str(tmp_path / "a.json"), str(tmp_path / "b.json"))[0] == 2


def test_kept_summaries_come_back(runs: Path) -> None:
    trace = lanescope.open(runs / "a1.npy")
    summary = summarize_run(trace, "a1", ("name", "lane"), {"lost": 3})
    text = summary_file.to_text(summary)
    assert summary_file.from_text(text, "x") == summary
    assert summary_file.to_text(summary_file.from_text(text, "x")) == text
    assert str(runs) not in text


def altered(text: str, **members: object) -> str:
    return json.dumps({**json.loads(text), **members})


def test_kept_summaries_are_checked(runs: Path) -> None:
    good = summary_file.to_text(summarize_run(lanescope.open(runs / "a1.npy"), "a1"))
    group = ["a", "b"], {"slices": 2, "unfinished": 0, "total": 7, "median": 3, "p99": 4}
    assert summary_file.from_text(altered(good, groups=[group]), "x").total == 7
    bad = [
        "",
        "[]",
        "{}",
        "[" * 10**5,
        good[:-20],
        good.replace('"span"', '"unit"'),
        altered(good, schema="lanescope.run_summary/2"),
        altered(good, more=1),
        altered(good, span=-1),
        altered(good, span=True),
        altered(good, unit="s"),
        altered(good, by=[]),
        altered(good, by=["name", "name"]),
        altered(good, groups={}),
        altered(good, groups=[group, group]),
        altered(good, groups=[[["a"], group[1]]]),
        altered(good, groups=[[group[0], {**group[1], "total": 1.5}]]),
        altered(good, groups=[[group[0], {**group[1], "median": 5}]]),
        altered(good, groups=[[group[0], {**group[1], "slices": 0}]]),
        altered(good, groups=[[group[0], {**group[1], "total": 2**63}]]),
        altered(good, conditions={}),
        altered(good, conditions={**json.loads(good)["conditions"], "clocks": {"a": [1]}}),
        good.replace('"coverage": {', '"coverage": {"x": 1e999, ').replace(", }", "}"),
    ]
    for text in bad:
        with pytest.raises(InputError, match="x: ") as caught:
            summary_file.from_text(text, "x")
        assert caught.value.hint


CORPUS = os.environ.get("LANESCOPE_CORPUS")


@pytest.mark.skipif(not CORPUS, reason="LANESCOPE_CORPUS is not set")
def test_real_files_of_the_pytorch_profiler(capsys: pytest.CaptureFixture[str]) -> None:
    """One iteration of two captures, as HolisticTraceAnalysis compares them."""
    folder = Path(str(CORPUS)) / "foreign" / "hta"
    window = ["--start", "ProfilerStep#1010#0", "--end", "ProfilerStep#1010#0"]
    both = [str(folder / f"trace_compare_{name}.json.gz") for name in ("base", "test")]
    status, out, _ = call(capsys, "diff", "--json", *window, *both)
    assert status == 0
    groups = json.loads(out)["groups"]
    host = {group["key"]["name"]: group for group in groups if group["key"]["lane_kind"] == "host_thread"}
    verdicts = {name: group["verdict"] for name, group in host.items()}
    assert verdicts == {
        **dict.fromkeys(("AddmmBackward0", "All2All_Pooled_Req", "CatBackward0"), "appeared"),
        "nccl:all_reduce": "vanished",
        **dict.fromkeys(
            ("ProfilerStep#1010", "aten::as_strided", "aten::empty", "cudaEventQuery", "cudaLaunchKernel"),
            "no difference found",
        ),
    }
    assert host["nccl:all_reduce"]["contribution"]["change"] == -67_000
    base = {name: group["effects"]["total"]["a"] for name, group in host.items()}
    assert base["ProfilerStep#1010"] == pytest.approx(122_149_000)
    assert base["cudaEventQuery"] == base["cudaLaunchKernel"] == pytest.approx(4_000)
    # The kernel that is missing ran after the iteration.
    whole = json.loads(call(capsys, "diff", "--json", *both)[1])["groups"]
    counts = [group["effects"]["count"] for group in whole if group["key"]["lane_kind"] == "stream"]
    assert sorted(round(count["a"]) - round(count["b"]) for count in counts) == [0] * (len(counts) - 1) + [1]


@pytest.mark.skipif(not CORPUS, reason="LANESCOPE_CORPUS is not set")
def test_a_real_file_does_not_differ_from_itself(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(Path(str(CORPUS)) / "foreign" / "hta" / "trace_diff_control.json.gz")
    status, out, _ = call(capsys, "diff", "--json", path, path)
    found = json.loads(out)
    assert (status, named(out), found["change"], found["conditions"]) == (0, {}, 0, [])
    assert "is specified 2 times" in " ".join(found["notes"])
