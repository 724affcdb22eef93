"""Configurations from what a build loads into the array, and back: an xclbin, a PDI, a CDO, or control packets.

Compilers set up traces in the instruction stream, so most of these files only tell that no trace is set up. They do not
name the device: AIE2P differs from AIE2 in one core event. Control packets do not name the column of a tile either if
all columns have the same controller ids.
"""

from __future__ import annotations

from collections.abc import Sequence

from lanescope.declaration import replace
from lanescope.devices.aie.config.model import Config
from lanescope.devices.aie.config.register_writes import from_writes, start_writes
from lanescope.devices.aie.config.replay import Replay
from lanescope.devices.aie.config.validators import ConfigError
from lanescope.devices.aie.formats import cdo, control_packets
from lanescope.devices.aie.formats.registers import COLUMN_SHIFT, ROW_SHIFT

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


def from_packets(words: Sequence[int], device: str = "aie2") -> Config:
    """Return what control packets set up, which may be nothing of a trace.

    Args:
        words: the packets, see ``control_packets.are_packets``.
        device: for which they are, if that is known.

    Raises:
        ConfigError: a packet goes to a tile that cannot be told.
    """
    replay, without_column = Replay(), 0
    for count, packet in enumerate(control_packets.packets(words), 1):
        assert packet is not None
        if packet.tile is None:
            raise ConfigError(
                f"control packet {count} goes to controller id {packet.controller}, which mlir-aie gives to no tile",
                "pass the MLIR text of the build, which has the ids",
            )
        col, row = packet.tile
        what = "register reads" if packet.opcode == control_packets.READ else "control packets"
        known = len(replay.writes)
        replay.note(what, (col or 0) << COLUMN_SHIFT | row << ROW_SHIFT | packet.offset, packet.words)
        without_column += col is None and len(replay.writes) > known
    made = from_writes(device, replay.writes)
    if without_column:
        replay.unread["columns of control packets (all taken as column 0)"] += without_column
    return replace(made, unread=dict(replay.unread), other_operations=dict(replay.other))


def to_cdo(known: Config) -> bytes:
    """Return a CDO that sets up and starts the trace; what stops it comes after the run, from the host.

    Raises:
        ConfigError: registers cannot hold the configuration, or its trigger cannot start all units.
    """
    return cdo.written(
        (one.col << COLUMN_SHIFT | one.row << ROW_SHIFT | one.register.offset, one.value) for one in start_writes(known)
    )


def to_packets(known: Config) -> bytes:
    """Return control packets that do the same, by the controller ids of mlir-aie.

    Raises:
        ConfigError: as above; units in several columns, or in a row without a controller id.
    """
    writes = start_writes(known)
    columns = sorted({one.col for one in writes})
    if len(columns) > 1:
        raise ConfigError(
            f"control packets do not name columns, and the units are in columns {', '.join(map(str, columns))}",
            "use --to writes: mlir-aie makes packets of them, or trace one column",
        )
    try:
        return control_packets.written((one.row, one.register.offset, one.value) for one in writes)
    except ValueError as error:
        raise ConfigError(f"row {error} has no controller id for control packets", "use --to writes or insts") from None
