import numpy as np
import pytest
from lanescope_blinker.family import FAMILY

import lanescope
from lanescope.source import FileHead
from lanescope.trace import Flag


@pytest.fixture
def decode(tmp_path):
    def run(seed=1, **options):
        chosen = {"changes": 500, "lamps": 4, "drop": 0.0} | options
        simulation = FAMILY.simulate(chosen, seed)
        path = tmp_path / "run.blink"
        path.write_bytes(next(iter(simulation.files.values())))
        return lanescope.open(path, family="blinker"), simulation.truth

    return run


def spans(trace, mask):
    slices = trace.slices.where(mask)
    lamps = [int(name.split()[1]) for name in trace.tracks["name"][slices["track_id"]]]
    return sorted(
        [lamp, ts, ts + dur] for lamp, ts, dur in zip(lamps, slices["ts"].tolist(), slices["dur"].tolist(), strict=True)
    )


@pytest.mark.parametrize("seed", range(20))
def test_a_clean_capture_gives_the_truth(decode, seed):
    trace, truth = decode(seed=seed)
    assert spans(trace, trace.slices["flags"] == 0) == sorted(truth["spans"])
    assert (trace.slices["flags"] == Flag.UNFINISHED).sum() == truth["open"]
    assert len(trace.stats) == 0


@pytest.mark.parametrize("seed", range(20))
def test_each_lost_record_is_counted_and_nothing_is_invented(decode, seed):
    trace, truth = decode(seed=seed, drop=0.05)
    lost = trace.stats.where(trace.stats["name"] == "blinker_lost")["count"].sum()
    assert lost == truth["lost"] > 0
    exact = spans(trace, trace.slices["flags"] == 0)
    assert all(span in truth["spans"] for span in exact)


@pytest.mark.parametrize("size", [1, 5, 16, 23, 24, 1001])
def test_a_cut_capture_is_accounted_for(tmp_path, size):
    content = next(iter(FAMILY.simulate({"changes": 500, "lamps": 4, "drop": 0.0}, 1).files.values()))
    path = tmp_path / "run.blink"
    path.write_bytes(content[:size])
    row = next(lanescope.open(path, family="blinker").accounting.rows())
    assert row["total"] == size == row["decoded"] + row["lost"]


def test_random_bytes_are_not_ours():
    data = np.random.default_rng(0).bytes(4096)
    assert FAMILY.detect(FileHead(data, len(data), "x")).score < 50
