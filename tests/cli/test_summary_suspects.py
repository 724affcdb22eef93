"""``summary`` prints totals with and without the rows of every plausibility rule, as ``check`` does."""

from __future__ import annotations

import json

import numpy as np
import pytest

import lanescope
from lanescope.analysis import check
from plausibility import captures
from plausibility.columns import Columns
from plausibility.lies import LIES

TWICE, RATE = "8 rows twice", "lane x4, x10, x50, /10, /50"
CASES = [
    *((family, TWICE, "LS505") for family in ("aie", "cuda", "ascend", "levelzero")),
    *((family, RATE, "LS507") for family in ("cuda", "ascend", "levelzero")),
]
KEYS = {"name": "name", "lane": "lane", "device": "device", "category": "category", "region": "region"}


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    """Return the folder of a capture with a lie that a rule finds, and the finding."""
    made = {}

    def of(family, lie, code):
        if (family, lie) not in made:
            [make] = [one.make for one in LIES if one.name == lie]
            for seed in range(20):
                columns = make(Columns.of(captures.simulated(family, seed)), np.random.default_rng(seed))
                trace = None if columns is None else columns.to_trace()
                found = [] if trace is None else check.run(trace, select=["LS5"])
                if len(found) == 1 and found[0].code == code and found[0].evidence.table == "slices":
                    break
            else:
                pytest.fail("no seed makes a capture with this finding only")
            folder = tmp_path_factory.mktemp(family) / "damaged.parquet"
            lanescope.write(trace, folder)
            made[family, lie] = folder, found[0], trace
        return made[family, lie]

    return of


@pytest.mark.parametrize(("family", "lie", "code"), CASES)
@pytest.mark.parametrize("by", ["name", "lane", "device", "category"])
def test_groups_have_both_totals(call, damaged, family, lie, code, by):
    capture, finding, trace = damaged(family, lie, code)
    unit = trace.time.time_unit
    document = json.loads(call("summary", "--by", by, "--json", capture).out)
    assert document["suspect_slices"] == len(finding.evidence.ids)
    lost = 0
    for one in document["suspects"]:
        assert one["rules"] == [code]
        [row] = [row for row in document["rows"] if row[by] == one[by]]
        assert one[f"total_{unit}"] == row[f"total_{unit}"]
        lost += one[f"total_{unit}"] - one[f"total_without_{unit}"]
    change = finding.impact.total - finding.impact.total_without
    assert 0 <= lost <= change
    if by == "lane":
        assert lost == change > 0
    told = call("summary", "--by", by, capture).err
    assert code in told
    assert ("-> " in told) == bool(document["suspects"])
    assert ("no total changes by more than 1%" in told) == (not document["suspects"])


@pytest.mark.parametrize(("family", "lie", "code"), CASES)
def test_analyses_have_both_totals(call, damaged, family, lie, code):
    capture, finding, trace = damaged(family, lie, code)
    unit = trace.time.time_unit
    document = json.loads(call("summary", "--by", "region", "--json", capture).out)
    assert document["suspect_slices"] == len(finding.evidence.ids)
    names = trace.slices.values("name")[finding.evidence.ids]
    lengths = np.where(trace.slices.valid("dur"), trace.slices.values("dur"), 0)[finding.evidence.ids]
    found = [one for one in document["suspects"] if one["column"] == f"total_{unit}"]
    for one in found:
        assert one["rules"] == [code]
        assert one["total"] - (one["total_without"] or 0) == lengths[names == one["region"]].sum()
    for by in ("idle", "occupancy", "overlap")[: 2 if family == "levelzero" else 3]:
        done = call("summary", "--by", by, capture)
        assert code in done.err


def test_a_file_of_settings_chooses_the_rules(call, damaged, tmp_path):
    capture, _, _ = damaged("cuda", TWICE, "LS505")
    (tmp_path / "mine.toml").write_text('ignore = ["LS505"]\n')
    for by in ("name", "lane", "region"):
        assert "LS505" in call("summary", "--by", by, capture).err
        assert "LS505" not in call("summary", "--by", by, capture, "--settings", tmp_path / "mine.toml").err
