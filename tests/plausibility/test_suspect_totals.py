"""Summaries give totals without suspect slices: those of the findings of all plausibility rules, in any batches."""

import numpy as np
import pytest

from lanescope.analysis import check
from lanescope.analysis.groupings import SLICES
from lanescope.analysis.plausibility import stamps
from lanescope.analysis.plausibility.suspect_totals import SuspectSum, SuspectTotals
from lanescope.analysis.summary import summary
from lanescope.analysis.track_tree import Tree
from lanescope.pipeline.run import run
from passes import Passes, cut
from plausibility import captures
from plausibility.columns import Columns
from plausibility.kernels import kernel, on
from plausibility.lies import LIES

FAMILIES = ("aie", "cuda", "ascend", "levelzero")


def totals(trace, by, cuts=(), **chosen):
    found = SuspectTotals(by, **chosen)
    report = run(Passes(cut(trace, cuts)), observers=[found])
    return found.result(), report.passes


def evidence(trace, select=("LS5",)):
    """The slices that each rule suspects, by its code, from the findings of a check."""
    found, tree = {}, Tree(trace.tracks)
    for one in check.run(trace, select=select):
        rows = one.evidence.ids if one.evidence.table == "slices" else []
        if one.evidence.table == "clocks" and len(one.evidence.ids):
            clocks = trace.tracks.values("clock_id")
            concerned = [track for track in range(len(tree)) if clocks[track] in one.evidence.ids]
            rows = np.flatnonzero(np.isin(trace.slices.values("track_id"), concerned))
        if len(rows):
            found[one.code] = np.union1d(found.get(one.code, np.empty(0, np.int64)), rows)
    return found


def expected(trace, by, rows):
    """The sums of such slices by group: rule by rule, then of all."""
    slices, tree, found = trace.slices, Tree(trace.tracks), {}
    lengths = np.where(slices.valid("dur"), slices.values("dur"), 0)
    if by in ("name", "category"):
        group = np.array([str(text) for text in slices.values(by)])
    else:
        tracks = slices.values("track_id").tolist()
        group = np.array([tree.path(tree.device(track) if by == "device" else track) for track in tracks])
    for one in sorted(set(group.tolist())):
        parts = {code: mine for code in sorted(rows) if len(mine := rows[code][group[rows[code]] == one])}
        sets = [((code,), mine) for code, mine in parts.items()]
        if len(sets) > 1:
            sets.append((tuple(parts), np.unique(np.concatenate(list(parts.values())))))
        if sets:
            found[one] = [SuspectSum(codes, len(mine), int(lengths[mine].sum())) for codes, mine in sets]
    return found


def late(start, end):
    end[-3] += 10**8
    start[-1] += 10**9
    end[-1] += 10**9
    return start, end


TRACE = kernel(change=on(3, late), nesting="free")


@pytest.mark.parametrize("by", SLICES)
@pytest.mark.parametrize("sample", [40, 1 << 18])
def test_they_are_the_evidence_of_islands(monkeypatch, by, sample):
    monkeypatch.setattr(stamps, "SAMPLE", sample)
    rows = evidence(TRACE, ["LS501"])
    assert rows["LS501"].tolist() == [157, 159]
    wanted = expected(TRACE, by, rows)
    for cuts in ((), (0.4, 0.66), (0.1, 0.9, 0.91)):
        assert totals(TRACE, by, cuts, codes=["LS501"])[0] == wanted
    assert wanted.keys() <= set(summary(TRACE, by).values(by).tolist())


def test_an_even_trace_has_none_and_takes_one_pass():
    assert totals(kernel(), "name", (0.5,)) == ({}, 1)


@pytest.mark.parametrize("number", range(len(LIES)), ids=[lie.name for lie in LIES])
def test_they_are_the_evidence_of_all_rules(number):
    rng, family = np.random.default_rng(number), FAMILIES[(number // 2) % len(FAMILIES)]
    columns = Columns.of(captures.simulated(family, 11 + number % 3))
    damaged = LIES[number].make(columns, rng)
    trace = (columns if damaged is None else damaged).to_trace()
    rows = evidence(trace)
    for by, cuts in zip(SLICES, ((), (0.5,), (0.2, 0.6), (0.3, 0.31, 0.9)), strict=True):
        assert totals(trace, by, cuts)[0] == expected(trace, by, rows)


@pytest.mark.parametrize(
    ("family", "lie", "code"),
    [
        *((family, "8 rows twice", "LS505") for family in FAMILIES),
        *((family, "lane x4, x10, x50, /10, /50", "LS507") for family in ("cuda", "ascend", "levelzero")),
    ],
)
def test_duplicates_and_rates_change_the_total_as_their_finding_does(family, lie, code):
    [make] = [one.make for one in LIES if one.name == lie]
    for seed in range(20):
        damaged = make(Columns.of(captures.simulated(family, seed)), np.random.default_rng(seed))
        trace = None if damaged is None else damaged.to_trace()
        findings = [] if trace is None else check.run(trace, select=[code])
        if len(findings) == 1 and findings[0].evidence.table == "slices":
            break
    else:
        pytest.fail("no seed makes a capture whose finding names slices")
    impact = findings[0].impact
    for by in SLICES:
        sums = [one for group in totals(trace, by, (0.5,))[0].values() for one in group if one.rules == (code,)]
        assert sum(one.total for one in sums) == impact.total - impact.total_without
        assert sum(one.slices for one in sums) == len(findings[0].evidence.ids)


def test_rules_that_are_not_chosen_suspect_nothing():
    assert totals(TRACE, "name", codes=["LS505"]) == ({}, 1)
