"""The critical path beside that of HolisticTraceAnalysis, on a profile of its own tests."""

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
ANNOTATION = "[param|pytorch.model.alex_net|0|0|0|measure|forward]"


@pytest.fixture
def side_by_side(monkeypatch):
    """The module; benchmarks are no package."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import path_beside_hta

    yield path_beside_hta
    for name in ("path_beside_hta", "peers"):
        sys.modules.pop(name, None)


@pytest.fixture
def capture(corpus):
    return corpus / "foreign/hta/critical_path_simple_add.json.gz"


def test_ours_fills_the_window_and_is_what_the_page_says(side_by_side, capture):
    ours = side_by_side.of_lanescope(capture, ANNOTATION, 1)
    assert ours.total == sum(ours.names.values()) == sum(ours.kinds.values()) == 242_881
    assert ours.kinds == {"work": 241_697, "lane idle": 1_146, "wait without cause": 38}


@pytest.mark.full
def test_hta_s_sum_lacks_what_ours_names(side_by_side, capture):
    try:
        theirs = side_by_side.of_hta(capture, ANNOTATION, 1)
    except side_by_side.peers.MissingPeerError as error:
        pytest.skip(f"HolisticTraceAnalysis is not here: {error}")
    ours = side_by_side.of_lanescope(capture, ANNOTATION, 1)
    assert theirs.total == sum(theirs.kinds.values()) == 241_724
    assert round(theirs.kinds["cpu_bound"] / theirs.total, 4) == 0.9978
    assert theirs.counts == {
        "nodes": 315,
        "events": 159,
        "OPERATOR_KERNEL": 288,
        "DEPENDENCY": 20,
        "KERNEL_KERNEL_DELAY": 5,
        "KERNEL_LAUNCH_DELAY": 1,
    }
    # Both walk the host; at the end HTA takes the kernels that the host need not wait for.
    kernels = {name: dur for name, dur in theirs.names.items() if name not in ours.names}
    assert sum(kernels.values()) - theirs.kinds["gpu_compute_bound"] in (0, theirs.kinds["gpu_kernel_kernel_overhead"])
    host = {name: dur for name, dur in theirs.names.items() if name and name in ours.names}
    assert sum(host.values()) == theirs.kinds["cpu_bound"]
    assert all(dur <= ours.names[name] for name, dur in host.items())
    same = [name for name, dur in host.items() if dur == ours.names[name]]
    assert len(same) > len(host) / 2
    assert ours.names["cudaMalloc"] == host["cudaMalloc"] == 235_418
    text = side_by_side.table(theirs, ours)
    assert text.splitlines()[-1].split() == ["sum", "241,724", "242,881.000"]
