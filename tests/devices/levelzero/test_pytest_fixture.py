"""The fixture of the pytest plugin records programs on the software driver."""

import pytest

from lanescope.testing import limits

# The first test of a session compiles the driver and the programs.
pytestmark = pytest.mark.timeout(1200)


def test_the_fixture_records_a_program_and_markers_measure_it(fake_ze, tmp_path, monkeypatch):
    for name, value in fake_ze.environment(execute="inline", clock="virtual").items():
        monkeypatch.setenv(name, value)
    captures = limits.Captures(tmp_path)
    trace = captures.record([fake_ze.app, "saxpy"], "--no-summary", timeout=120)
    assert len(trace.slices)
    assert [opened.trace for opened in captures.opened] == [trace]
    measured, texts = limits.measure([limits.MaxLost(0)], captures.opened)
    assert '"holds": true' in measured
    assert texts == []
    second = captures.record([fake_ze.app, "saxpy"], "--no-summary", timeout=120)
    assert captures.opened[0].path != captures.opened[1].path
    assert len(second.slices) == len(trace.slices)
