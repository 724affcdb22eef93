"""Runs of datasets compared: as the captures that they hold."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def fleet_of_runs(call):
    """Runs of one rank each: three of one seed's kind, three with twice the tiles."""
    for run, tiles in (("a1", 4), ("a2", 4), ("a3", 4), ("b1", 5), ("b2", 5), ("b3", 5)):
        seed = str(int(run[1]) + (tiles > 4) * 10)
        assert call("sim", "cuda", "--seed", seed, "-O", f"tiles={tiles}", "-o", f"{run}/rank_0").status == 0
    assert call("ingest", "a1", "a2", "a3", "b1", "b2", "b3", "-o", "fleet", "--jobs", "1").status == 0
    return "fleet"


def compared(call, *arguments):
    done = call("diff", "--json", *arguments)
    assert done.status == 0, done.err
    return json.loads(done.out)


def path(run):
    return f"{run}/rank_0/attention.npy"


def test_runs_of_a_dataset_compare_as_their_captures(call, fleet_of_runs):
    found = compared(call, f"{fleet_of_runs}#a*", "--", f"{fleet_of_runs}#b*")
    expected = compared(call, *map(path, ("a1", "a2", "a3")), "--", *map(path, ("b1", "b2", "b3")))
    assert found["groups"] == expected["groups"]
    assert found["groups"]
    assert found["runs"]["a"] == ["fleet#a1", "fleet#a2", "fleet#a3"]


def test_one_run_is_compared_with_one_slice_by_slice(call, fleet_of_runs):
    found = compared(call, f"{fleet_of_runs}#a1", f"{fleet_of_runs}#b1")
    expected = compared(call, path("a1"), path("b1"))
    assert found["method"] == expected["method"] == "pair"
    assert found["groups"] == expected["groups"]


def test_windows_of_runs_compare_as_those_of_their_captures(call, fleet_of_runs):
    window = ("--start", "1us", "--end", "3us", "--name", "q*", "--name", "wait*")
    found = compared(call, f"{fleet_of_runs}#a1", f"{fleet_of_runs}#b1", *window)
    assert found["groups"] == compared(call, path("a1"), path("b1"), *window)["groups"]
    assert found["groups"]
    assert found["groups"] != compared(call, path("a1"), path("b1"))["groups"]


def test_a_dataset_is_compared_with_captures(call, fleet_of_runs):
    assert compared(call, f"{fleet_of_runs}#a1", path("b1"))["groups"]


def test_ranks_of_a_run_are_one_run(call, fleet):
    assert call("ingest", fleet, "-o", "whole", "--jobs", "1").status == 0
    both = compared(call, "whole#kernels", "whole#kernels", "--ranks", "0-1")
    one = compared(call, "whole#kernels", "whole#kernels", "--ranks", "0")
    count = {str(each["key"]): each["effects"]["count"]["a"] for each in one["groups"]}
    assert all(each["effects"]["count"]["a"] == 2 * count[str(each["key"])] for each in both["groups"])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("fleet#c*", "fleet#a1"), "no capture of this run and rank"),
        (("fleet#a1", "fleet#b1", "--ranks", "7"), "no capture of this run and rank"),
        (("fleet#a1", "fleet#b1", "--lane", "nothing"), "no lane matches 'nothing'"),
        (("other#a1", "fleet#b1"), "no such file"),
    ],
)
def test_what_cannot_be_compared_is_one_error(call, fleet_of_runs, arguments, told):
    done = call("diff", *arguments)
    assert done.status in (2, 3)
    assert told in done.err
