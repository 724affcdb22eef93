"""Configurations from what a build loads into the array: an xclbin, a PDI, or a CDO.

Compilers set up traces in the instruction stream, so most of these files only tell that no trace is set up. They do not
name the device: AIE2P differs from AIE2 in one core event.
"""

from __future__ import annotations

from lanescope.declaration import replace
from lanescope.devices.aie.config.model import Config
from lanescope.devices.aie.config.register_writes import from_writes
from lanescope.devices.aie.config.replay import Replay
from lanescope.devices.aie.config.validators import ConfigError
from lanescope.devices.aie.formats import cdo

_HINT = "pass the insts.bin or MLIR text of the build that was run, made with a trace"


def is_build(content: bytes) -> bool:
    """Return whether a file is an xclbin, or holds configuration data."""
    try:
        return content.startswith(cdo.XCLBIN_MAGIC) or next(cdo.lists(content), None) is not None
    except cdo.TruncatedError:
        return True


def read(content: bytes) -> Config:
    """Return what the configuration data of a file set up.

    Raises:
        ConfigError: they are cut, or set up no trace.
    """
    replay, count = Replay(), 0
    try:
        for words in cdo.lists(content):
            count += 1
            for command in cdo.commands(words):
                replay.note(*command)
    except cdo.TruncatedError:
        raise ConfigError("truncated configuration data (CDO)", "pass the complete file of the build") from None
    made = from_writes("aie2", replay.writes)
    if not made.places:
        done = sum(replay.other.values()) + len(replay.writes)
        what = (
            f"none of the {done} commands in {count} CDO{'s' * (count > 1)} writes to a trace unit"
            if count
            else "no CDO found"
        )
        raise ConfigError(f"the build loads no configuration of a trace: {what}", _HINT)
    return replace(made, unread=dict(replay.unread), other_operations=dict(replay.other))
