"""The command ``align``: what it prints, writes and refuses."""

import json

import pytest

import lanescope
from cli.conftest import csv_rows
from lanescope.cli import main


@pytest.fixture
def profiles(tmp_path):
    """Two ranks of one run, the clock of the second one's host 3 ms late."""
    paths = []
    for rank in (0, 1):
        files = lanescope.simulate("kineto", seed=7, rank=rank).files
        profile = json.loads(next(iter(files.values())))
        profile["baseTimeNanoseconds"] += 3_000_000 * rank
        paths.append(tmp_path / f"rank{rank}.json")
        paths[-1].write_text(json.dumps(profile))
    return [str(path) for path in paths]


def test_table_of_one_capture(profiles, capsys):
    assert main(["align", "--csv", profiles[0]]) == 0
    head, row = csv_rows(capsys.readouterr().out)
    found = dict(zip([name.removesuffix("_ns") for name in head], row, strict=True))
    assert (found["first"], found["second"], found["status"], found["method"]) == ("host", "GPU 0", "holds", "straight")
    assert int(found["least"]) <= int(found["offset"]) <= int(found["most"])
    assert " -> cudaDeviceSynchronize (slice " in found["least_by"]


def test_json_has_the_same_rows_and_options_count(profiles, capsys):
    assert main(["align", "--json", "--method", "rate", "--rate", "20", "--at", "5", profiles[0]]) == 0
    document = json.loads(capsys.readouterr().out)
    (row,) = document["rows"]
    assert (document["schema"], document["unit"], document["rate_ppm"]) == ("lanescope.align/1", "ns", 20.0)
    assert (row["method"], row["at"], row["rate_most_ppm"]) == ("rate", 5, 20.0)


def test_placed_timelines_of_ranks_agree(profiles, tmp_path, capsys):
    out = tmp_path / "placed.parquet"
    assert main(["align", "--csv", *profiles, "-o", str(out)]) == 0
    statuses = [row[2] for row in csv_rows(capsys.readouterr().out)[1:]]
    assert statuses == ["holds", "holds", "off", "off", "off"]
    assert main(["align", "--csv", str(out)]) == 0
    statuses = [row[2] for row in csv_rows(capsys.readouterr().out)[1:]]
    assert set(statuses) == {"holds"}
    placed = lanescope.open(out)
    names = placed.tracks.values("name").tolist()
    assert sum("(placed, ±" in name for name in names) >= 2
    assert main(["align", *profiles, "-o", str(out)]) == 2
    assert "already exists" in capsys.readouterr().err
    assert main(["align", profiles[0], "-o", str(tmp_path / "out.unknown")]) == 2


def test_contradictions_have_the_status_of_findings(profiles, tmp_path, capsys):
    profile = json.loads((tmp_path / "rank0.json").read_text())
    device = [event for event in profile["traceEvents"] if event.get("cat") == "kernel"]
    device[len(device) // 2]["ts"] -= 900
    (tmp_path / "wrong.json").write_text(json.dumps(profile))
    assert main(["align", "--json", str(tmp_path / "wrong.json")]) == 1
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["status"] == "contradiction"
    assert device[len(device) // 2]["name"] in row["most_by"]
    assert row["detail"].startswith("the two pairs miss each other by ")
    assert main(["align", str(tmp_path / "wrong.json")]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == f"{row['first']} to {row['second']}: {row['detail']}"


def test_one_clock_has_no_offsets(tmp_path, capsys):
    content = next(iter(lanescope.simulate("cuda", tiles=1).files.values()))
    (tmp_path / "run.npy").write_bytes(content)
    assert main(["align", str(tmp_path / "run.npy")]) == 0
    out, err = capsys.readouterr()
    assert not out
    assert "all lanes count on one clock" in err


@pytest.mark.parametrize("bad", [["--rate", "0"], ["--reading-error", "-1"]])
def test_bad_options_are_refused(profiles, capsys, bad):
    assert main(["align", profiles[0], *bad]) == 2
    assert "invalid " in capsys.readouterr().err
