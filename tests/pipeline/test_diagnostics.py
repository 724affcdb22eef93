"""What commands warn of follows from the rules that report the stats, not from their names."""

import pytest

from lanescope.pipeline.diagnostics import ambiguous_meanings
from lanescope.trace import TimeBase, TraceBuilder
from lanescope.trace.stats import StatSpec


@pytest.mark.parametrize(
    ("finding", "expected"),
    [("LS404 warning", {"odd labels": 5}), ("LS404", {"odd labels": 5}), ("LS404 notice", {}), ("LS003 warning", {})],
)
def test_stats_of_ambiguous_meaning_are_warned_of(finding, expected):
    builder = TraceBuilder(TimeBase(), stats=(StatSpec("toy_config", "notice", "odd labels: of others", finding),))
    builder.add_stat("toy_config", 2)
    builder.add_stat("toy_config", 3, track_id=builder.track("a", kind="lane", role="core"))
    assert ambiguous_meanings(builder.finish()) == expected
