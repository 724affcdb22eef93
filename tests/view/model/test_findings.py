"""Places of findings: the slice that is shown lies where the finding says that it is."""

import numpy as np
import pytest

import lanescope
from lanescope.view.model.view_model import ViewModel


def places(trace):
    slices = trace.slices
    for finding in ViewModel(trace).findings:
        for place in finding.places:
            if place.row is not None:
                yield place, int(slices.values("track_id")[place.row]), int(slices.values("ts")[place.row])


@pytest.fixture(scope="module")
def trace():
    (content,) = [data for name, data in lanescope.simulate("cuda", seed=3).files.items() if name.endswith(".npy")]
    return lanescope.open(content)


def test_the_slice_of_a_finding_is_on_its_lane_at_its_time(trace):
    found = list(places(trace))
    assert found
    for place, track, ts in found:
        assert (place.track, place.ts) == (track, ts)


def test_in_a_window_too(trace):
    ts = trace.slices.values("ts")
    found = list(places(trace.window(int(np.median(ts)))))
    assert found
    for place, track, at in found:
        assert (place.track, place.ts) == (track, at)
