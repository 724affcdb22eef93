"""The program from all files that are given: ELF file, xclbin or PDI, listing; each is compared with the others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from lanescope.devices.aie.path.program import build_image, code_walk, core_image, program
from lanescope.devices.aie.path.program.build_image import Tile
from lanescope.devices.aie.path.program.core_image import CoreImage
from lanescope.devices.aie.path.program.program import Bundle, Note, Program
from lanescope.errors import InputError, MissingDependencyError, UsageError, os_reason

#: An xclbin of a large array has some megabytes.
_MOST_BYTES = 256 << 20
#: Differences that a message names.
_MOST_NAMED = 3
_SAME_BUILD = "pass files of the build that ran"


@dataclass(frozen=True, slots=True)
class ProgramFiles:
    """Files that a program is read from; at least one of the first three.

    Attributes:
        listing: its listing.
        elf: the core's ELF file.
        xclbin: the xclbin or PDI of the build.
        tile: column and row of the core in the design, for builds with several programs.
    """

    listing: Path | None = None
    elf: Path | None = None
    xclbin: Path | None = None
    tile: Tile | None = None

    @property
    def main(self) -> Path | None:
        """The file that the program is named after."""
        return self.listing or self.elf or self.xclbin


def tile_of(text: str) -> Tile:
    """Read ``COL,ROW``.

    Raises:
        UsageError: it is something else.
    """
    found = re.fullmatch(r"\s*(\d{1,3})\s*,\s*(\d{1,3})\s*", text)
    if found is None:
        raise UsageError(f"invalid tile {text!r}: expected COL,ROW", hint="use e.g. 0,2")
    return int(found[1]), int(found[2])


def read(files: ProgramFiles) -> Program:
    """Read a program from its files.

    Raises:
        InputError: a file cannot be read, holds no program, or differs from another one.
        UsageError: a build has several programs and no tile is given.
        MissingDependencyError: a listing needs the symbols of an ELF file, and pyelftools is not installed.
    """
    image = core_image.from_elf(_content(files.elf), files.elf.name) if files.elf is not None else None
    if files.xclbin is not None:
        image = _loaded(files.xclbin, files.tile, image)
    found = code_walk.program_of(image) if image is not None else None
    if files.elf is not None and found is not None:
        found = with_lines(found, files.elf)
    if files.listing is None:
        assert found is not None
        return found
    listed = program.read(files.listing)
    if found is None:
        return listed
    _check(found, listed)
    functions = found.functions if files.elf is not None else listed.functions
    return replace(listed, functions=program.disjoint(functions, listed.bundles), lines=found.lines)


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"{path}: file is too large for a program", hint=_SAME_BUILD)
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot open {str(path)!r}: {os_reason(error)}", hint="check the path of the file") from None


def with_lines(found: Program, path: Path) -> Program:
    """Return a program with the source lines of its ELF file; if they cannot be read it says why."""
    from lanescope.devices.aie.path.program import elf

    try:
        return replace(found, lines=elf.read(path)[1])
    except MissingDependencyError:
        why = "pyelftools is not installed"
    except InputError:
        why = "the debug information of the ELF file is invalid"
    note = Note(found.bundles[0].address, f"source lines are not read: {why}")
    return replace(found, remarks=(*found.remarks, note))


def _loaded(path: Path, tile: Tile | None, core: CoreImage | None) -> CoreImage:
    """Return the program of one core of a build; that of the core's ELF file if that is given."""
    images = build_image.images(_content(path), path.name)
    places = ", ".join(f"{column},{row}" for column, row in images)
    if tile is not None and tile not in images:
        raise UsageError(f"{path}: no program for core {tile[0]},{tile[1]}", hint=f"use one of {places}")
    chosen = {tile: images[tile]} if tile is not None else images
    if core is not None:
        if not any(all(each.at(at, len(part)) == part for at, part in core.code) for each in chosen.values()):
            what = f"{path}: no core is loaded with the program of {core.source} (cores: {places})"
            raise InputError(what, hint=_SAME_BUILD)
        return core
    if len({each.code for each in chosen.values()}) > 1:
        raise UsageError(f"{path}: cores have different programs: {places}", hint="use --program-tile COL,ROW")
    return next(iter(chosen.values()))


# -- two witnesses


def _check(found: Program, listed: Program) -> None:
    """Compare a program read from bytes with its listing.

    Raises:
        InputError: they differ.
    """
    differences = list(differing(found, listed))
    if differences:
        named = "; ".join(f"{address:#x}: {what}" for address, what in differences[:_MOST_NAMED])
        more = f" and {len(differences) - _MOST_NAMED} more" if len(differences) > _MOST_NAMED else ""
        what = f"{listed.source} lists another program than {found.source}: {named.replace('; ', ', ')}{more}"
        raise InputError(what, hint=_SAME_BUILD)


def differing(found: Program, listed: Program) -> Iterator[tuple[int, str]]:
    """Yield addresses at which a program read from bytes differs in its control flow from its listing, and in what."""
    watched = found.watched | listed.watched
    for bundle in listed.bundles:
        mine = found.at.get(bundle.address)
        if mine is None:
            if not _is_nop(bundle):
                yield bundle.address, f"{bundle.text!r} is in the listing only"
        elif _flow(mine) != _flow(bundle) or not _agree(mine, bundle, watched):
            yield bundle.address, f"{mine.text!r} is listed as {bundle.text!r}"
    first, end = listed.bundles[0].address, listed.bundles[-1].end
    for mine in found.bundles:
        if first <= mine.address < end and mine.address not in listed.at and not _is_nop(mine):
            yield mine.address, f"{mine.text!r} is not in the listing"
    for mine, after in pairwise(listed.bundles):
        known = found.at.get(mine.address)
        if known is not None and known.end > after.address:
            yield mine.address, f"{known.size} bytes are listed as {after.address - mine.address}"


def _is_nop(bundle: Bundle) -> bool:
    return all(not slot.strip() or slot.strip().lower().startswith("nop") for slot in bundle.text.split(";"))


def _flow(bundle: Bundle) -> tuple[object, ...]:
    return (
        bundle.kind,
        bundle.target,
        bundle.register,
        bundle.ls,
        bundle.le,
        bundle.sets_lc,
        bundle.requests_lock,
    )


def _agree(mine: Bundle, listed: Bundle, watched: frozenset[str]) -> bool:
    """Return whether both write the same registers that are jumped through; bytes may say that one may be written."""
    ours, theirs = dict(mine.writes), dict(listed.writes)
    return all(
        (name in ours and ours[name] in (None, theirs[name])) if name in theirs else ours.get(name) is None
        for name in watched
    )
