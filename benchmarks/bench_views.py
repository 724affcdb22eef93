"""Tables that analyses make on request: a million slices of an attention kernel, decoded before."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lanescope import Trace, cuda
from lanescope.analysis import derived
from lanescope.devices.cuda.family import FAMILY
from lanescope.families.options import resolve_options
from measure import Row, seconds

#: 132 blocks of three groups, 12 regions of a block in each tile: a little over a million slices.
TILES = 635
#: What the tables are compared with: a sort of the slices by time, which none of them does without.
ANALYSES = derived.GENERIC
TURNS = 2


def made(trace: Trace, name: str) -> None:
    """Make one table and read every column of it, as SQL does; nothing is shared with a table made before."""
    table = derived.generic_table(derived.AnalysisCache(trace), name).table
    for column in table.spec.names:
        table.column(column).values  # noqa: B018 (made by reading)


def run() -> list[Row]:
    """Measure."""
    options = resolve_options(FAMILY.sim_options, {"layout": "ls2", "tiles": TILES}, what="simulator")
    simulation = FAMILY.simulate(options, seed=1)
    trace = cuda.decode(next(iter(simulation.files.values())), events=simulation.truth["event_names"])
    slices = trace.slices
    begin, track = slices.values("ts"), slices.values("track_id")

    def sort() -> None:
        np.lexsort((begin, track))

    work: list[Callable[[], object]] = [sort]
    work += [lambda name=name: made(trace, name) for name in ANALYSES]  # type: ignore[misc]
    least, *taken = seconds(*work, repeats=TURNS)
    return [
        Row(
            f"{name}, beside a sort of the slices",
            one.least / least.least,
            "x",
            note=f"{len(slices)} slices: {one.least:.2f} s, sort {least.least:.2f} s",
        )
        for name, one in zip(ANALYSES, taken, strict=True)
    ]
