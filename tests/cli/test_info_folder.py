"""``info`` of a folder that holds several captures: a list of them."""

import json
import os
import shutil

import pytest

from lanescope.pipeline import capture_folders


@pytest.fixture
def runs(call, tmp_path):
    """Simulate two captures of Ascend with sidecar files in folders below one, and one of AMD AIE above."""
    for name, seed in (("a", 1), ("b", 2)):
        assert call("sim", "ascend", "--tasks", 20, "--seed", seed, "-o", f"runs/{name}").status == 0
    assert call("sim", "aie", "--records", 50, "-o", "runs/run.bin").status == 0
    (tmp_path / "runs" / "notes.txt").write_text("nothing\n")
    (tmp_path / "runs" / ".hidden").mkdir()
    shutil.copy(tmp_path / "runs" / "run.bin", tmp_path / "runs" / ".hidden" / "run.bin")
    return tmp_path / "runs"


def test_the_captures_below_a_folder_are_listed(call, runs):
    main = next(path.name for path in (runs / "a").glob("*records.json"))
    size = [(runs / name).stat().st_size for name in ("run.bin", f"a/{main}", f"b/{main}")]
    done = call("info", "runs", "--csv")
    assert (done.status, done.out.splitlines()) == (
        0,
        [
            "path,family,format,size_bytes",
            f"runs/run.bin,aie,aie-trace,{size[0]}",
            f"runs/a/{main},ascend,v3,{size[1]}",
            f"runs/b/{main},ascend,v3,{size[2]}",
        ],
    )
    assert done.err == "3 captures in runs; open one with 'lanescope info runs/run.bin'\n"


def test_the_list_as_json_and_of_one_family(call, runs):
    done = call("info", "--json", "--family", "ascend", "runs")
    content = json.loads(done.out)
    assert (content["schema"], content["folder"], content["is_complete"]) == ("lanescope.info.folder/1", "runs", True)
    assert [(each["family"], each["format"]) for each in content["captures"]] == [("ascend", "v3")] * 2
    done = call("info", "--family", "cuda", "runs")
    assert (done.status, done.err.splitlines()[0]) == (
        3,
        "lanescope: error: 'runs' contains no capture of family cuda",
    )


def test_several_captures_in_one_folder_are_listed(call, runs):
    shutil.copy(runs / "run.bin", runs / "a" / "second.bin")
    done = call("info", "runs/a")
    assert [line.split()[1] for line in done.out.splitlines()[2:]] == ["ascend", "aie"]


def test_one_capture_and_none_are_as_before(call, runs, tmp_path):
    assert call("info", "runs/a").out.startswith("runs/a/")
    # What was made of the capture is none.
    main = next(path.name for path in (runs / "a").glob("*records.json"))
    assert call("convert", f"runs/a/{main}", "-o", "runs/a/timeline.json").status == 0
    assert call("info", "runs/a").out.startswith(f"runs/a/{main}\n  format     v3 (ascend), ")
    assert "timeline.json" not in call("info", "runs").out
    (tmp_path / "empty" / "below").mkdir(parents=True)
    done = call("info", "empty")
    assert (done.status, "is a directory" in done.err) == (3, True)


def test_converted_folders_are_listed_and_not_searched(call, runs):
    assert call("convert", "runs/run.bin", "-o", "runs/out.parquet").status == 0
    lines = call("info", "runs", "--csv").out.splitlines()
    assert [line for line in lines if "out.parquet" in line] == ["runs/out.parquet,,parquet,"]


def test_a_search_that_is_not_complete_says_so(call, runs, monkeypatch):
    assert "not all folders" not in call("info", "runs").err
    with monkeypatch.context() as few:
        few.setattr(capture_folders, "MOST_LOOKED_AT", 2)
        done = call("info", "runs")
    assert (done.status, "not all folders were searched" in done.err) == (0, True)
    walked = os.walk

    def walk(folder, onerror):
        onerror(PermissionError(13, os.strerror(13)))
        yield from walked(folder)

    monkeypatch.setattr(os, "walk", walk)
    assert "not all folders were searched" in call("info", "runs").err
