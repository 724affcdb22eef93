"""The tables that are made of a trace on request."""

from __future__ import annotations

from lanescope.devices.aie.analysis import tile_time
from lanescope.devices.aie.path import path_tables
from lanescope.families.family import Derived

DERIVED = (
    *path_tables.DERIVED,
    Derived("aie_invocation_stalls", specs=tile_time.DERIVED, make=tile_time.invocation_stalls),
)
