"""Overviews on the command line: what any reader adds up is exact, and what they cannot answer is refused."""

import json
from collections import Counter
from pathlib import Path

import pytest

import lanescope


@pytest.fixture
def kernel(call):
    assert call("sim", "cuda", "--seed", 2, "--blocks", 6, "--tiles", 40, "-o", "k.npy").status == 0
    return "k.npy"


def totals(call, *arguments):
    done = call("summary", "--json", *arguments)
    return {row["name"]: row["total_ns"] for row in json.loads(done.out)["rows"]}


@pytest.mark.parametrize("suffix", [".pftrace", ".json", ".parquet"])
def test_any_reader_finds_the_exact_times(call, kernel, suffix):
    done = call("convert", kernel, "--overview", "15", "-o", f"o{suffix}")
    assert done.status == 0, done.err
    assert "overview: " in done.err
    assert "15 buckets of at most" in done.err
    wanted = {
        row["name"]: row["total_ns"]
        for row in json.loads(call("phases", kernel, "--by", "all", "--json").out)["rows"]
        if row["state"] == "busy"
    }
    found = totals(call, f"o{suffix}")
    assert wanted.items() <= found.items()
    assert len(lanescope.open(f"o{suffix}").slices) < len(lanescope.open(kernel).slices) / 2


def test_perfetto_adds_up_the_exact_times(call, kernel, trace_processor):
    assert call("convert", kernel, "--overview", "25", "-o", "o.pftrace").status == 0
    done = json.loads(call("phases", kernel, "--by", "all", "--json").out)["rows"]
    wanted = Counter()
    for row in done:
        if row["name"]:
            wanted[row["name"]] += row["total_ns"]
    (found,) = trace_processor("o.pftrace", "select name, sum(dur) as total from slice group by name")
    assert {row["name"]: row["total"] for row in found} == wanted


def test_answers_about_lanes_are_refused_of_it(call, kernel):
    assert call("convert", kernel, "--overview", "-o", "o.parquet").status == 0
    for verb in (["phases"], ["gaps"], ["explain"], ["critical-path"], ["summary", "--by", "idle"]):
        done = call(*verb, "o.parquet")
        assert (done.status, done.out) == (2, "")
        assert "sums in place of short ones" in done.err
    assert "overview: short slices are sums" in call("summary", "o.parquet").err
    assert "overview: short slices are sums" in call("check", "o.parquet").err


def test_what_it_lacks_is_said(call):
    assert call("sim", "kineto", "--seed", 1, "-o", "k.json").status == 0
    trace = lanescope.open("k.json")
    done = call("convert", "k.json", "--overview", "20", "-o", "o.pftrace")
    counts = len(trace.instants), len(trace.counters), len(trace.flows)
    assert all(counts)
    assert "left out: {} instants, {} samples, {} flows\n".format(*counts) in done.err


def test_ranks_of_a_dataset_and_several_captures(call):
    for rank in range(2):
        assert call("sim", "cuda", "--seed", rank, "--tiles", 4, "-o", f"job/rank_{rank}").status == 0
    assert call("ingest", "job", "-o", "fleet", "--jobs", "1").status == 0
    assert call("convert", "fleet", "--overview", "10", "-o", "ranks.json").status == 0
    paths = [f"job/rank_{rank}/attention.npy" for rank in range(2)]
    assert call("convert", *paths, "--overview", "10", "-o", "files.json").status == 0
    wanted = Counter()
    for path in paths:
        wanted.update(totals(call, path))
    del wanted["tile"]  # it encloses others all the time
    assert totals(call, "ranks.json").items() >= wanted.items()
    assert totals(call, "files.json") == totals(call, "ranks.json")


def test_a_window_has_an_overview(call, kernel):
    window = ("--start", "2us", "--end", "6us")
    assert call("convert", kernel, "--overview", "10", *window, "-o", "o.json").status == 0
    wanted = totals(call, kernel, *window)
    found = totals(call, "o.json")
    assert {name: found[name] for name in ("load_k", "qk", "pv")} == {
        name: wanted[name] for name in ("load_k", "qk", "pv")
    }
    assert call("convert", kernel, "--overview", "0", "-o", "x.json").status == 2


def test_the_api_gives_what_the_command_writes(call, kernel):
    assert call("convert", kernel, "--overview", "12", "-o", "o.parquet").status == 0
    trace = lanescope.open(kernel)
    columns = ("track_id", "ts", "dur", "name")
    assert list(trace.overview(12).slices.rows(*columns)) == list(lanescope.open("o.parquet").slices.rows(*columns))
    assert list(lanescope.overview(trace, 12).slices.rows(*columns)) == list(trace.overview(12).slices.rows(*columns))


def test_a_window_of_slices_that_are_called_overview_is_none(call):
    event = {"ph": "X", "pid": 1, "tid": 1, "dur": 5}
    events = [{**event, "ts": 10 * at, "name": name} for at, name in enumerate(["overview", "rest", "overview"])]
    Path("run.json").write_text(json.dumps({"traceEvents": events}))
    assert call("convert", "run.json", "--name", "overview", "-o", "part.parquet").status == 0
    assert "this trace was read without 1 of them" in call("phases", "part.parquet").err
    done = call("summary", "part.parquet")
    assert "window: name overview (1 slice filtered out)" in done.err
    assert "sums" not in done.err


def test_unfinished_slices_are_said(call):
    assert call("sim", "cuda", "--blocks", 4, "--unfinished", 3, "-o", "k.npy").status == 0
    count = int((~lanescope.open("k.npy").slices.valid("dur")).sum())
    assert count > 2
    assert (
        f"{count} unfinished slices: drawn up to where they were last seen\n"
        in call("convert", "k.npy", "--overview", "5", "-o", "o.json").err
    )


def test_what_cannot_be_asked_is_one_error(call, kernel):
    done = call("convert", "--overview", kernel, "-o", "o.json")
    assert (done.status, "inputs come before --overview" in done.err) == (2, True)
    assert call("sim", "ascend", "--tasks", 9, "-o", "run").status == 0
    done = call("convert", "run", "--overview", "--format", "swimlane", "-o", "o.json")
    assert (done.status, done.err.splitlines()[0]) == (2, "lanescope: error: --format swimlane is of single slices")
