"""Summaries give totals without implausible slices: those that LS501 names, in any batches."""

import numpy as np
import pytest

from lanescope.analysis import check
from lanescope.analysis.plausibility import stamps
from lanescope.analysis.plausibility.suspect_totals import Suspects, SuspectTotals
from lanescope.analysis.summary import GROUPS, summary
from lanescope.pipeline.run import run
from passes import Passes, cut
from plausibility.kernels import kernel, on


def totals(trace, by, cuts=()):
    found = SuspectTotals(by)
    report = run(Passes(cut(trace, cuts)), observers=[found])
    return found.result(), report.passes


def late(start, end):
    end[-3] += 10**8
    start[-1] += 10**9
    end[-1] += 10**9
    return start, end


TRACE = kernel(change=on(3, late), nesting="free")


@pytest.mark.parametrize("by", GROUPS)
@pytest.mark.parametrize("sample", [40, 1 << 18])
def test_they_are_the_evidence_of_islands(monkeypatch, by, sample):
    monkeypatch.setattr(stamps, "SAMPLE", sample)
    evidence = np.concatenate([one.evidence.ids for one in check.run(TRACE, select=["LS501"])])
    assert evidence.tolist() == [157, 159]
    slices = TRACE.slices.take(evidence)
    expected = {}
    for name, category, dur in zip(*(slices.values(column) for column in ("name", "category", "dur")), strict=True):
        group = {"name": name, "lane": "gpu 0/lane 3", "device": "gpu 0", "category": category}[by]
        before = expected.get(group, (0, 0))
        expected[group] = Suspects(before[0] + 1, before[1] + int(dur))
    for cuts in ((), (0.4, 0.66), (0.1, 0.9, 0.91)):
        assert totals(TRACE, by, cuts)[0] == expected
    assert expected.keys() <= set(summary(TRACE, by).values(by).tolist())


def test_an_even_trace_has_none_and_takes_one_pass():
    assert totals(kernel(), "name", (0.5,)) == ({}, 1)
