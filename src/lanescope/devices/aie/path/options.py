"""What the user gives besides the capture: the listing, the ELF file, what is known of the device."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanescope.devices.aie.path.program import program as programs
from lanescope.devices.aie.path.program.program import Program
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
        listing: where the listing is.
    """

    program: Program
    errata: Erratum
    listing: str


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


def of_options(options: Mapping[str, Any]) -> PathOptions | None:
    """Return what decode options give; None: no listing.

    Raises:
        InputError: listing or ELF file cannot be read.
        UsageError: an unknown erratum, or an ELF file without a listing.
    """
    errata = errata_of(str(options.get("errata") or ""))
    listing, elf = options.get("listing"), options.get("elf")
    if not listing:
        if elf:
            raise UsageError("--elf requires --listing", hint="use --listing FILE")
        return None
    program = programs.read(Path(listing))
    return PathOptions(program.with_elf(Path(elf)) if elf else program, errata, str(listing))


def options_of(trace: Trace) -> dict[str, Any]:
    """Return the options that a trace was decoded with; none of captures that were decoded with different ones."""
    options = {str(row["options"]) for row in trace.inputs.rows() if row["family"] == "aie" and row["role"] == "main"}
    found: dict[str, Any] = json.loads(options.pop() or "{}") if len(options) == 1 else {}
    return found


def of_trace(trace: Trace) -> PathOptions | None:
    """Return what a trace was opened with; None without a listing, or with several of merged captures.

    Raises:
        InputError: the listing or the ELF file is gone, or no longer the one that the trace was opened with.
    """
    given = of_options(options_of(trace))
    for row in trace.inputs.rows():
        if given is not None and row["family"] == "aie" and row["role"] in PROGRAM_FILES:
            with closing(Source(row["path"])) as source:
                if source.sha256 != row["sha256"]:
                    what = f"{row['path']}: file changed after the capture was opened"
                    raise InputError(what, hint="open the capture again")
    return given
