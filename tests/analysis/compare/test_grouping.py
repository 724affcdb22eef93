"""The groups of slices, whichever way they are numbered."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lanescope
from lanescope.analysis.compare import grouping
from lanescope.analysis.track_tree import Tree


@pytest.mark.parametrize("by", [["name"], ["name", "lane_kind"], ["lane", "category", "name"]])
def test_a_table_of_groups_and_a_sort_give_the_same(
    by: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = lanescope.simulate("cuda", seed=3, blocks=4).files
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    trace = lanescope.open(tmp_path / next(iter(files)))
    tree = Tree(trace.tracks)
    found = []
    for few in (0, 1 << 20):
        monkeypatch.setattr(grouping, "_FEW_PER_SLICE", few)
        found.append(grouping.group_slices(trace, tree, by))
    (keys, groups), (other_keys, other_groups) = found
    assert keys == other_keys == sorted(set(keys))
    np.testing.assert_array_equal(groups, other_groups)

    # Each slice is in the group of its own texts.
    names, roles = trace.slices.column("name").texts, trace.tracks.values("role")
    tracks = trace.slices.values("track_id")
    said = {
        "name": names,
        "lane_kind": roles[tracks],
        "lane": [tree.path(track) for track in tracks.tolist()],
        "category": trace.slices.column("category").texts,
    }
    expected = list(zip(*(list(said[column]) for column in by), strict=True))
    assert [keys[group] for group in groups.tolist()] == expected
