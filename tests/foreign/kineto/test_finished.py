"""Searches for what ended last or began first among rows of device work, against looking at all rows."""

import numpy as np
import pytest

from lanescope.foreign.kineto.analysis.causes import _Finished, _Launched, _Work


def looked_at_all(work, stream, device, begin, end):
    fits = work.launched <= begin
    if stream >= 0 and (work.stream == stream).any():
        fits &= work.stream == stream
    if device >= 0 and (work.device == device).any():
        fits &= work.device == device
    before = np.flatnonzero(fits & (work.end <= end))
    return int(before[-1]) if len(before) else -1


@pytest.mark.parametrize("seed", range(60))
def test_the_last_that_ended_is_that_of_all_rows(seed):
    draw = np.random.default_rng(seed)
    count = int(draw.integers(0, 900))
    end = np.sort(draw.integers(0, 1000, count))
    launched, unknown = end - draw.integers(0, 400, count), np.full(count, -1)
    places = draw.integers(-2, 3, count), draw.integers(-2, 4, count)
    work = _Work(np.arange(count), end - 5, end, *places, launched, unknown)
    finished = _Finished(work)
    for stream, device, begin, length in zip(
        *(draw.integers(low, high, 20).tolist() for low, high in ((-2, 6), (-2, 5), (0, 1000), (0, 100))), strict=True
    ):
        asked = stream, device, begin, begin + length
        assert finished.last(*asked) == looked_at_all(work, *asked)


@pytest.mark.parametrize("seed", range(60))
def test_rows_around_a_launch_are_those_of_all_rows(seed):
    draw = np.random.default_rng(seed)
    count = int(draw.integers(0, 300))
    end = np.sort(draw.integers(0, 300, count))
    begin, launched = end - draw.integers(0, 90, count), end - draw.integers(0, 400, count)
    launched[draw.random(count) < 0.1] = np.iinfo(np.int64).min
    streams, unknown = draw.integers(-2, 4, count), np.full(count, -1)
    work = _Work(np.arange(count), begin, end, unknown, streams, launched, unknown)
    searched = _Launched(work)
    for stream, ts in zip(draw.integers(-2, 6, 20).tolist(), draw.integers(-400, 300, 20).tolist(), strict=True):
        before = np.flatnonzero((streams == stream) & (launched <= ts))
        behind = np.flatnonzero((streams == stream) & (launched >= ts))
        assert searched.last_until(stream, ts) == (before[-1] if len(before) else -1)
        assert searched.first_from(stream, ts) == (behind[begin[behind].argmin()] if len(behind) else -1)
