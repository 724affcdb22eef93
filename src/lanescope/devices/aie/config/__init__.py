"""What trace units are told to record, in every form that says it: short JSON, register writes, MLIR.

``find`` and ``read`` take any form; ``units`` is what they make of it, and the other modules are one form each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanescope.devices.aie.config.discovery import find, load, load_mlir, read
from lanescope.devices.aie.config.model import SLOTS, Config, Place, Unit, config_of

if TYPE_CHECKING:
    from lanescope.devices.aie.config.defaults import apply_defaults
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

#: The modules of what a capture without a configuration does not need.
_HOME = {"ConfigError": "validators", "apply_defaults": "defaults"}


def __getattr__(name: str) -> object:
    """Load what few need at its first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
