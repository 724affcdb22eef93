"""Each of these tests exceeds a limit, or has one that cannot be enforced: run them to see what is reported."""

import pytest


@pytest.mark.max_lost(0)
def test_records_are_lost(lanescope_trace, capture):
    lanescope_trace(capture("aie", overruns=2))


@pytest.mark.no_findings(select="LS101")
def test_two_writers_share_a_lane(lanescope_trace, capture):
    lanescope_trace(capture(blocks=8, two_writers=1))


@pytest.mark.max_idle(0.05)
def test_the_cores_wait_for_work(lanescope_trace, capture):
    lanescope_trace(capture("ascend"))


@pytest.mark.max_lost(0)
def test_without_a_capture(lanescope_trace):
    pass


@pytest.mark.max_lost(0)
def test_without_the_fixture(capture):
    capture()
