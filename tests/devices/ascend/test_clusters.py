"""Which vector kernel of a task a core ran: the runtime sends the second one to a cluster's second vector core."""

import itertools

import numpy as np
import pytest

from devices.ascend.helpers import decode, graph, records, stats, tasks
from lanescope.devices.ascend.interpret.graph import AIC, AIV, UNKNOWN, vector_halves

CHIP = ("aic", "aic", "aiv", "aiv", "aiv", "aiv")
CODES = {"aic": AIC, "aiv": AIV, None: UNKNOWN}


def halves(*types):
    return vector_halves(np.array([CODES[kind] for kind in types], np.uint8)).tolist()


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (CHIP, [-1, -1, 0, 1, 0, 1]),
        (("aic", "aiv", "aiv") * 2, [-1, 0, 1, -1, 0, 1]),
        # Types of cores that ran alone are known: what stands behind all cube cores is counted from there.
        (("aic", "aic", "aiv", None, None, "aiv"), [-1, -1, 0, -1, -1, 1]),
        (("aic", "aic", "aiv", "aiv", "aiv"), [-1, -1, 0, 1, 0]),
        # Where the first vector core may not be the first there is, nothing is known.
        (("aic", None, "aiv", "aiv"), [-1] * 4),
        (("aic", None, None, "aiv"), [-1] * 4),
        (("aic", "aiv", "aiv", "aiv"), [-1] * 4),
        (("aiv", "aiv"), [-1] * 2),
        (("aic", "aiv", "aic"), [-1] * 3),
        ((), []),
    ],
)
def test_places_in_clusters(types, expected):
    assert halves(*types) == expected


def test_each_vector_kernel_has_its_name():
    rows = [[core, 1, 1, 100, 200, 0] for core in range(6)] + [[core, 2, 2, 300, 400, 0] for core in (2, 3)]
    deps = graph({1: (0, 7, 8), 2: (-1, 9, -1)})
    deps["tasks"][0]["block_num"] = 2
    deps["tasks"][1]["block_num"] = 2
    trace = decode(records(rows, level=1, cores=CHIP), deps=deps)
    found = tasks(trace, "core", "function", "block")
    assert [(core, function) for _, core, function, _ in found] == [
        *enumerate([0, 0, 7, 8, 7, 8]),
        (2, 9),
        (3, 9),  # a task of one vector kernel runs on any vector core
    ]
    assert [block for *_, block in found] == [0, 1, 0, 0, 1, 1, 0, 1]
    assert [label for label, *_ in found][2:4] == ["func_7_h_spmd(t1)", "func_8_i_spmd(t1)"]


def test_a_kernel_of_two_is_not_named_if_the_place_in_the_cluster_is_not_known():
    rows = [[core, 1, 1, 100, 200, 0] for core in (0, 1, 2)]
    trace = decode(records(rows, level=1, cores=("aic", "aiv", "aiv", "aiv")), deps=graph({1: (0, 7, 8)}))
    assert tasks(trace, "function") == [("func_0_a(t1)", 0), ("task(t1)", None), ("task(t1)", None)]
    assert stats(trace) == {}
    # The same kernel in both slots ran on either core.
    trace = decode(records(rows, level=1, cores=("aic", "aiv", "aiv", "aiv")), deps=graph({1: (0, 7, 7)}))
    assert tasks(trace, "function") == [("func_0_a(t1)", 0), ("func_7_h(t1)", 7), ("func_7_h(t1)", 7)]


def test_places_do_not_depend_on_cores_that_ran_nothing():
    """Whatever vector cores are unknown, those that are known keep their place, or have none."""
    for lost in itertools.chain.from_iterable(itertools.combinations(range(2, 6), n) for n in range(5)):
        found = halves(*(None if core in lost else kind for core, kind in enumerate(CHIP)))
        assert all(half in (-1, expected) for half, expected in zip(found, halves(*CHIP), strict=True)), lost
