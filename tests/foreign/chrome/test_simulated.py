"""The simulator: its file holds what it says that a reader finds."""

from collections import Counter

import pytest

from foreign.chrome.reading import flows, instants, read, samples, slices, stats
from lanescope.families import registry
from lanescope.families.options import resolve_options
from lanescope.testing import assert_accounted

KINDS = ("events", "pairs", "asynchronous", "instants", "counters", "flows")
FAULTS = ("unfinished", "unmatched", "timeless")


@pytest.mark.parametrize("kind", [*KINDS, *FAULTS, "all"])
def test_a_reader_finds_what_the_simulator_says(tmp_path, kind):
    chosen = registry.family("chrome")
    options = {name: 7 if kind in (name, "all") else 0 for name in (*KINDS, *FAULTS)}
    made = chosen.simulate(resolve_options(chosen.sim_options, options, what="sim"), 3)
    (content,) = made.files.values()
    trace = read(tmp_path, content)
    truth = made.truth
    assert Counter((ts, dur, name) for _, ts, dur, name, _ in slices(trace)) == Counter(
        (one["ts"], one["dur"], one["name"]) for one in truth["slices"]
    )
    assert (instants(trace).total(), samples(trace).total(), flows(trace).total()) == (
        truth["instants"], truth["samples"], truth["flows"],
    )  # fmt: skip
    assert stats(trace) == truth["stats"]
    assert_accounted(trace)
