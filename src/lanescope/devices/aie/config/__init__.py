"""What trace units are told to record, in every form that says it: short JSON, register writes, MLIR.

``find`` and ``read`` take any form; ``units`` is what they make of it, and the other modules are one form each.
"""

from lanescope.devices.aie.config.defaults import complete
from lanescope.devices.aie.config.files import find, load, load_mlir, read
from lanescope.devices.aie.config.units import SLOTS, Config, Place, Unit, config_of
from lanescope.devices.aie.config.values import ConfigError

__all__ = [
    "SLOTS",
    "Config",
    "ConfigError",
    "Place",
    "Unit",
    "complete",
    "config_of",
    "find",
    "load",
    "load_mlir",
    "read",
]
