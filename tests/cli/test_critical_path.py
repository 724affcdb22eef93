"""The command ``critical-path``: what it prints, draws and refuses."""

import json

import pytest

import lanescope
from lanescope.cli import main


@pytest.fixture
def capture(tmp_path):
    for name, content in lanescope.simulate("cuda", seed=1, layout="ls2", across=True, blocks=6, sms=2).files.items():
        (tmp_path / name).write_bytes(content)
    return str(tmp_path / "attention.npy")


def test_table_and_what_it_rests_on(capture, capsys):
    assert main(["critical-path", capture, "--limit", "2"]) == 0
    out, err = capsys.readouterr()
    about, empty, *lines = out.splitlines()
    assert (about, empty) == (f"{capture}: 53.8 µs, 24 lanes, 936 slices", "")
    assert lines[0].startswith("critical path: ")
    assert lines[1].split()[:5] == ["cause", "kind", "name", "role", "dur"]
    assert len(lines) == 5
    for word in ("window: ", "sink: last end, on GPU 0/", "explained: ", "sensitivity: ", "more rows"):
        assert word in err


def test_json_sums_to_the_window(capture, capsys):
    assert main(["critical-path", capture, "--json", "--what-if", "qk=0.5"]) == 0
    found = json.loads(capsys.readouterr().out)
    (window,) = found["windows"]
    assert sum(row["dur"] for row in found["summary"]) == window["end"] - window["begin"]
    assert window["explained"] == pytest.approx(
        sum(window["shares"].get(c, 0) for c in ("work", "latency", "resource"))
    )
    (answer,) = found["what_if"]
    assert answer["low"] <= answer["nominal"] <= answer["high"] <= answer["observed"]


def test_the_path_is_drawn(capture, tmp_path, capsys):
    out = str(tmp_path / "path.pftrace")
    assert main(["critical-path", capture, "-o", out]) == 0
    trace = lanescope.open(out)
    assert "critical path" in trace.tracks["name"].tolist()
    assert main(["critical-path", capture, "-o", out]) == 2
    assert "already exists" in capsys.readouterr().err
    assert main(["critical-path", capture, "-o", out, "--force"]) == 0


def test_little_explained_is_said(capture, capsys):
    assert main(["critical-path", capture, "--waits", "."]) == 0
    assert "warning: the path is not known: only " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "status", "text"),
    [
        (["--window", "nothing"], 2, "no slice or window 'nothing'"),
        (["--window", "tile", "--from", "3"], 2, "mutually exclusive"),
        (["--from", "9", "--to", "3"], 2, "is empty"),
        (["--what-if", "qk"], 2, "invalid change"),
        (["-o", "x.bin"], 2, "cannot infer the format"),
        (["--waits", "("], 2, "invalid regular expression"),
    ],
)
def test_refused(capture, capsys, more, status, text):
    assert main(["critical-path", capture, *more]) == status
    assert text in capsys.readouterr().err


def test_captures_without_causes(tmp_path, capsys):
    content = next(iter(lanescope.simulate("aie", seed=1).files.values()))
    (tmp_path / "a.bin").write_bytes(content)
    assert main(["critical-path", str(tmp_path / "a.bin")]) == 3
    assert "phases" in capsys.readouterr().err


def test_the_api_is_the_command(capture):
    path = lanescope.critical_path(lanescope.open(capture), window="tile#2")
    assert [each.window.name for each in path.paths] == ["tile#2"]
    assert sum(path.parts["dur"].tolist()) == path.longest.length
    again = lanescope.open(capture).critical_path(window="tile#2")
    assert list(again.summary.rows()) == list(path.summary.rows())
    assert repr(again).startswith("<CriticalPath: ")
    assert repr(again).partition("\n")[2] == repr(again.summary)
    assert "explained" in repr(again)
    assert "<table" in again._repr_html_()
