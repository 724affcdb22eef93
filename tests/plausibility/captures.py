"""Simulated captures without a fault: all layouts, format versions and styles, some 6 to 400 lanes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lanescope.errors import UsageError
from lanescope.families import registry
from lanescope.families.options import resolve_options
from lanescope.pipeline import session
from lanescope.trace import Trace

Options = dict[str, Any]

#: Attempts to draw options that the simulator accepts.
_ATTEMPTS = 20


def _aie(rng: np.random.Generator) -> Options:
    return {
        "tiles": int(rng.integers(1, 25)),
        "mode": int(rng.choice([0, 0, 0, 1, 2])),
        "records": int(rng.integers(60, 600)),
        "runs": int(rng.choice([1, 1, 2])),
        "shared_stop": bool(rng.integers(0, 2)),
    }


def _cuda(rng: np.random.Generator) -> Options:
    layout = str(rng.choice(["tirx", "flashinfer1", "flashinfer2", "warpscope", "ls2", "proton"]))
    groups = int(rng.integers(1, 5))
    blocks = int(rng.integers(-(-6 // groups), 1 + 400 // groups))
    return {
        "layout": layout,
        "blocks": blocks,
        "groups": groups,
        "tiles": int(rng.integers(3, 24)),
        "sms": max(int(blocks * rng.choice([0.25, 0.5, 1.0, 1.0])), 1),
        "tick": int(rng.choice([1, 32, 32])),
        "nested": bool(rng.integers(0, 2)),
        "instants": bool(rng.integers(0, 2)),
        "clock64": layout == "ls2" and bool(rng.integers(0, 3) == 0),
    }


def _ascend(rng: np.random.Generator) -> Options:
    aic = int(rng.integers(2, 25))
    return {
        "format_version": str(rng.choice(["v1a", "v1b", "v1c", "v2", "v3", "v3c", "v4"])),
        "aic": aic,
        "aiv": 2 * aic,
        "tasks": int(rng.integers(60, 1500)),
        "threads": int(rng.integers(1, 5)),
        "level": int(rng.choice([1, 2, 3, 4, 4])),
        "clock": int(rng.choice([50_000_000, 50_000_000, 1_000_000_000])),
    }


def _levelzero(rng: np.random.Generator) -> Options:
    return {
        "style": str(rng.choice(["numbered", "thapi"])),
        "ops": int(rng.integers(200, 2500)),
        "processes": int(rng.integers(1, 4)),
        "threads": int(rng.integers(1, 5)),
        "devices": int(rng.integers(1, 5)),
        "subdevices": int(rng.integers(0, 4)),
        "sharing": str(rng.choice(["mixed", "one", "shared"])),
        "frequency": int(rng.choice([12_500_000, 19_200_000, 1_000_000_000])),
    }


_DRAW: dict[str, Callable[[np.random.Generator], Options]] = {
    "aie": _aie,
    "cuda": _cuda,
    "ascend": _ascend,
    "levelzero": _levelzero,
}
FAMILIES = tuple(_DRAW)


def options(family: str, seed: int) -> Options:
    """Return the options of the simulator that a seed draws."""
    return _DRAW[family](np.random.default_rng([seed, FAMILIES.index(family)]))


def simulated(family: str, seed: int) -> Trace:
    """Return the trace of a simulated capture; the same seed gives the same trace.

    Raises:
        UsageError: the simulator accepts none of the options that the seed draws.
    """
    rng = np.random.default_rng([seed, FAMILIES.index(family)])
    made = registry.family(family)
    for attempt in range(_ATTEMPTS):
        given = resolve_options(made.sim_options, _DRAW[family](rng), what=f"simulator {family}")
        try:
            simulation = made.simulate(given, seed)
        except UsageError:
            if attempt == _ATTEMPTS - 1:
                raise
            continue
        break
    with tempfile.TemporaryDirectory() as folder:
        for name, content in simulation.files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        # Words of a few records, or with timestamps of no common step, may be those of several layouts.
        layout = {"layout": given["layout"]} if family == "cuda" else {}
        return session.open(Path(folder, next(iter(simulation.files))), **layout)
