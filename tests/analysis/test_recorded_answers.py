"""Answers about what devices and profilers recorded: phases add up, and sentences are whole, in every capture."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

import lanescope
from effort import QUICK

#: Quick runs read one in so many captures.
_ONE_IN = 12 if QUICK else 1


@pytest.fixture
def captures(corpus):
    """Return what opens each capture whose format needs no option, by its name."""
    found = []
    for path in sorted(corpus.rglob("*"))[::_ONE_IN]:
        if path.is_dir() or path.suffix in (".md", ".txt", ".toml", ".mlir", ".elf"):
            continue
        try:
            found.append((str(path.relative_to(corpus)), lanescope.open(path)))
        except lanescope.LanescopeError:
            continue  # sidecar files, and layouts that are declared
    assert found
    return found


def test_phases_add_up_to_the_window_for_each_lane_group_and_device(captures):
    for name, trace in captures:
        of_lane: dict[int, int] = defaultdict(int)
        for row in trace.phases(by="lane").rows():
            of_lane[row["track_id"]] += row["total"]
        assert len(set(of_lane.values())) <= 1, name
        window = next(iter(of_lane.values()), 0)
        for by in ("group", "device", "all"):
            total, shares = defaultdict(int), defaultdict(float)
            for row in trace.phases(by=by).rows():
                total[row["track_id"]] += row["total"]
                shares[row["track_id"]] += row["share"]
            assert sum(total.values()) == window * len(of_lane), (name, by)
            assert all(of % window == 0 for of in total.values()), (name, by)
            assert all(share == pytest.approx(1) for share in shares.values()), (name, by)


def test_sentences_are_whole_and_shares_are_shares(captures):
    for name, trace in captures:
        rows = list(lanescope.explain(trace).rows())
        assert 1 <= len(rows) <= 5, name
        for row in rows:
            assert 0 <= row["share"] <= 1, (name, row)
            assert row["gain"] is None or 0 <= row["gain"] <= 1, (name, row)
            assert re.fullmatch(r"[A-Z0-9].*[^.]\.", row["sentence"]) or row["subject"] in row["sentence"], row[
                "sentence"
            ]
            assert not re.search(r"  |-\d|more than less|\bnan\b|None|\{|\}", row["sentence"]), row["sentence"]
            assert row["command"].startswith("lanescope "), (name, row)
