"""Tests of a kernel that hold its captures to limits."""

import pytest


@pytest.mark.max_lost(0)
@pytest.mark.no_findings(select="LS1,LS2,LS3", fail_on="error")
def test_the_kernel_is_recorded_completely(lanescope_trace, capture):
    trace = lanescope_trace(capture(blocks=8))
    assert "softmax" in set(trace.slices["name"])


@pytest.mark.max_idle(0.6)
def test_the_cores_have_work(lanescope_trace, capture):
    lanescope_trace(capture("ascend"))
