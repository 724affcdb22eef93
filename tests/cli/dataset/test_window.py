"""Many ranks on one clock, and windows of them: as the captures that were ingested."""

from __future__ import annotations

import pytest

import lanescope


@pytest.fixture
def dataset(call, fleet):
    assert call("ingest", fleet / "train", "-o", "ranks", "--jobs", "1").status == 0
    return "ranks"


def events(path):
    """What a reader finds, whatever the order of captures."""
    trace = lanescope.open(path)
    tracks = trace.tracks
    names, parents = tracks.values("name").tolist(), tracks.values("parent_id").tolist()
    known = tracks.valid("parent_id").tolist()

    def path_of(track):
        return (*(path_of(parents[track]) if known[track] else ()), names[track])

    slices = sorted(
        (path_of(row["track_id"])[1:], row["ts"], str(row["dur"]), row["name"]) for row in trace.slices.rows()
    )
    return slices, len(trace.instants), len(trace.counters), len(trace.flows)


@pytest.mark.parametrize(
    "window",
    [
        (),
        ("--start", "1ms", "--end", "2ms"),
        ("--start", "-1ms"),
        ("--start", "+300us", "--end", "+900us", "--name", "*"),
        ("--end", "1500us", "--min-dur", "20us"),
        ("--start", "1ms", "--where", "dur > 1000"),
        ("--start", "1ms", "--lane", "stream*"),
    ],
)
def test_ranks_of_a_dataset_are_drawn_as_their_captures(call, fleet, dataset, window):
    captures = [fleet / f"train/r{rank}.json" for rank in range(4)]
    usual = call("convert", *captures, "-o", "usual.pftrace", "--no-annotations", *window)
    assert usual.status == 0, usual.err
    done = call("convert", dataset, "-o", "ranks.pftrace", "--no-annotations", *window)
    assert done.status == 0, done.err
    assert "4 captures on one timeline" in done.err
    expected = events("usual.pftrace")
    assert expected[0]
    assert events("ranks.pftrace") == expected


def test_ranks_are_selected(call, fleet, dataset):
    assert call("convert", fleet / "train/r2.json", "-o", "usual.pftrace", "--no-annotations").status == 0
    assert call("convert", dataset, "--ranks", "2", "-o", "two.pftrace", "--no-annotations").status == 0
    assert len(events("two.pftrace")[0]) == len(events("usual.pftrace")[0])


def test_several_runs_are_one_error(call, fleet):
    assert call("ingest", fleet, "-o", "all", "--jobs", "1").status == 0
    done = call("convert", "all", "-o", "out.pftrace")
    assert done.status == 2
    assert "use one of all#kernels, all#train" in done.err
