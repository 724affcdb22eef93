"""What the user gives besides the capture: the files of the program, what is known of the device."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanescope.devices.aie.path.program import witnesses
from lanescope.devices.aie.path.program.program import Program
from lanescope.devices.aie.path.program.witnesses import ProgramFiles
from lanescope.devices.aie.path.walk.core_state import Erratum, settled
from lanescope.devices.aie.schema import PROGRAM_FILES
from lanescope.errors import InputError, UsageError
from lanescope.source import Source

if TYPE_CHECKING:
    from lanescope.trace import Trace


@dataclass(frozen=True, slots=True, eq=False)
class PathOptions:
    """A program and what is known of the device.

    Attributes:
        program: the program.
        errata: what the device does.
        files: what the program was read from.
    """

    program: Program
    errata: Erratum
    files: ProgramFiles


def errata_of(text: str) -> Erratum:
    """Read names of errata, separated by commas.

    Raises:
        UsageError: there is none of such a name.
    """
    known = {erratum.flag: erratum for erratum in Erratum}
    found = Erratum(0)
    for name in filter(None, (part.strip() for part in text.split(","))):
        if name not in known:
            raise UsageError(f"unknown erratum {name!r}", hint="use one of " + ", ".join(known))
        found |= known[name]
    return settled(found)


def has_program(options: Mapping[str, Any]) -> bool:
    """Return whether decode options name a file of a program."""
    return any(options.get(name) for name in PROGRAM_FILES)


def of_options(options: Mapping[str, Any]) -> PathOptions | None:
    """Return what decode options give; None: no file of a program.

    Raises:
        InputError: a file cannot be read, is of something else, or differs from another one.
        UsageError: an unknown erratum, or a file with several programs and no tile.
    """
    errata = errata_of(str(options.get("errata") or ""))
    tile = options.get("program_tile")
    place = witnesses.tile_of(str(tile)) if tile else None
    if not has_program(options):
        if tile:
            raise UsageError("--program-tile requires --xclbin", hint="use --xclbin FILE")
        return None
    paths = {name: Path(options[name]) for name in PROGRAM_FILES if options.get(name)}
    files = ProgramFiles(**paths, tile=place)
    return PathOptions(witnesses.read(files), errata, files)


def options_of(trace: Trace) -> dict[str, Any]:
    """Return the options that a trace was decoded with; none of captures that were decoded with different ones."""
    options = {str(row["options"]) for row in trace.inputs.rows() if row["family"] == "aie" and row["role"] == "main"}
    found: dict[str, Any] = json.loads(options.pop() or "{}") if len(options) == 1 else {}
    return found


def of_trace(trace: Trace) -> PathOptions | None:
    """Return what a trace was opened with; None without a program, or with several of merged captures.

    Raises:
        InputError: a file of the program is gone, or no longer the one that the trace was opened with.
    """
    given = of_options(options_of(trace))
    for row in trace.inputs.rows():
        if given is not None and row["family"] == "aie" and row["role"] in PROGRAM_FILES:
            with closing(Source(row["path"])) as source:
                if source.sha256 != row["sha256"]:
                    what = f"{row['path']}: file changed after the capture was opened"
                    raise InputError(what, hint="open the capture again")
    return given
