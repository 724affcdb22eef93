"""What trace units are told to record, in every form that says it: short JSON, register writes, MLIR.

``find`` and ``read`` take any form; ``units`` is what they make of it, and the other modules are one form each.
"""

from lanescope.devices.aie.config.defaults import apply_defaults
from lanescope.devices.aie.config.discovery import find, load, load_mlir, read
from lanescope.devices.aie.config.model import SLOTS, Config, Place, Unit, config_of
from lanescope.devices.aie.config.validators import ConfigError

__all__ = [
    "SLOTS",
    "Config",
    "ConfigError",
    "Place",
    "Unit",
    "apply_defaults",
    "config_of",
    "find",
    "load",
    "load_mlir",
    "read",
]
