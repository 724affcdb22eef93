"""Simulations of every layout: a kernel with probes, what goes wrong, and the truth.

Times come from raw PCG64 output, so a seed gives the same bytes with every version of NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lanescope.devices.cuda.formats.layout import LS2, PROTON
from lanescope.devices.cuda.simulate import sim_ls2, sim_proton, sim_strided
from lanescope.devices.cuda.simulate.sim_kernel import Setup
from lanescope.errors import UsageError
from lanescope.families.family import Simulation

_SIMULATORS = {LS2: sim_ls2.simulate, PROTON: sim_proton.simulate}


def simulate(options: Mapping[str, Any], seed: int) -> Simulation:
    """Make a buffer and its truth.

    Args:
        options: as ``family.Cuda.sim_options`` declares them.
        seed: the same options and seed give the same bytes.

    Returns:
        ``attention.npy`` and the names of its events; the truth has the keys of the golden buffers (``spans``,
        ``instants``, ``unfinished_regions``, ``lost_by_lane``, ... with full 64-bit times) and one key for each fault.

    Raises:
        UsageError: the options contradict each other.
    """
    setup = Setup.of(options)
    if options["launches"] > 1 and not options["stale"]:
        raise UsageError("--launches requires --stale", hint="use --stale TILES")
    return _SIMULATORS.get(setup.layout, sim_strided.simulate)(setup, options, seed)
