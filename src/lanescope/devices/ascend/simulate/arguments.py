"""What a task graph file of v3c tells beside tasks and edges: scopes, arguments, tensors, overlaps."""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt

from lanescope.devices.ascend.formats.encode import Annotations
from lanescope.devices.ascend.formats.records import Deps
from lanescope.devices.ascend.simulate.graph import SOURCES
from lanescope.devices.ascend.simulate.scenario import Scenario
from lanescope.devices.ascend.simulate.workload import ALLOC, DUMMY, Tasks

_TENSOR = "9514117477438350967"
_SHAPE = {"dtype": "FLOAT16", "shape": [128, 128], "start_offset": "0", "strides": [128, 1]}
#: By which edges a task uses a tensor, and with which arguments it does.
_USES = ((), ("INPUT", "OUTPUT"), ("INOUT",), ("INPUT", "OUTPUT_EXISTING"))
_CONSUMER = {f"consumer_{name}": value for name, value in _SHAPE.items()}
_PRODUCER = {f"producer_{name}": value for name, value in _SHAPE.items() if name != "dtype"}


def annotate(scenario: Scenario, tasks: Tasks, deps: Deps) -> Annotations:
    """Return what is to be written with the tasks and edges of a graph."""
    listed = np.flatnonzero(tasks.kind != ALLOC)
    # A barrier need not use any tensor; its scope may be one that declares dependencies itself.
    is_barrier = tasks.kind[listed] == DUMMY
    uses: npt.NDArray[np.int64] = np.where(is_barrier, listed % len(_USES), 1 + listed % (len(_USES) - 1))
    # Only the runtime on the device is known to declare by hand.
    manual = np.zeros_like(listed) if scenario.host else listed // 8 % 2
    return Annotations(
        tasks=[_task(use, scope) for scope in ("auto", "manual") for use in _USES],
        of_task=uses + manual * len(_USES),
        edges=[_edge(source) for source in SOURCES],
        of_edge=deps.edges["source"],
        tensors=json.dumps(
            [
                {
                    "tensor_id": _TENSOR,
                    "buffer_addr": "140446274688000",
                    "version": 0,
                    "dtype": _SHAPE["dtype"],
                    "buffer_numel": "16384",
                }
            ],
            separators=(",", ":"),
        ),
    )


def _task(use: tuple[str, ...], scope: str) -> str:
    """Return the text of a task's scope and arguments."""
    arguments = [
        {"idx": number, "type": kind} | ({} if kind == "OUTPUT" else {"tensor_id": _TENSOR, **_SHAPE})
        for number, kind in enumerate(use)
    ]
    return _text({"scope": scope, "args": arguments})


def _edge(source: str) -> str:
    """Return the text of how the two tasks of an edge use their tensor."""
    if source == "explicit":
        return _text({"arg": -1})
    used = {"arg": 0, "tensor_id": _TENSOR, **_CONSUMER}
    return _text(used | ({"overlap": "covered", **_PRODUCER} if source == "tensormap" else {}))


def _text(members: dict[str, object]) -> str:
    """Return members of an object as they follow others."""
    return "," + json.dumps(members, separators=(",", ":"))[1:-1]
