"""From the bytes of a program memory to a program: a walk along its branches, and a sweep of what they leave.

The walk begins at the entries and goes on at targets of branches and behind their delay slots. Compilers put bytes
between functions that are no code, so code that nothing leads to is read in order of addresses and marked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lanescope.devices.aie.path.program import bundle_formats, slots
from lanescope.devices.aie.path.program.assembly import MOST_BYTES
from lanescope.devices.aie.path.program.bundle_formats import FAMILIES
from lanescope.devices.aie.path.program.core_image import CoreImage
from lanescope.devices.aie.path.program.program import (
    BRANCHES,
    CALL,
    CALLS,
    DELAY_SLOTS,
    HALT,
    JUMP,
    JUMP_INDIRECT,
    RETURN,
    Bundle,
    Note,
    Program,
    disjoint,
)
from lanescope.devices.aie.path.program.symbols import Function
from lanescope.errors import InputError

_TITLES = {"aie2": "AIE2", "aie2p": "AIE2P"}
#: Branches behind whose delay slots nothing follows.
_LEAVES = frozenset({JUMP, JUMP_INDIRECT, RETURN})
_HINT = "pass the core's ELF file, xclbin or PDI of the build that ran"


class _NoCodeError(Exception):
    """What is read is not code of the family."""


def program_of(image: CoreImage) -> Program:
    """Return the program that a program memory holds.

    Raises:
        InputError: it is not code of the family that the file names, or of any if it names none.
    """
    if image.family is not None:
        return _of_family(image, image.family)
    found, reasons = [], []
    for family in FAMILIES:
        try:
            found.append(_Walk(image, family).program())
        except _NoCodeError as error:
            reasons.append(f"{_TITLES[family]}: {error}")
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(f"{image.source}: code of AIE2 and AIE2P alike", hint="pass the core's ELF file")
    raise InputError(f"{image.source}: code of no known device: {', '.join(reasons)}", hint=_HINT)


def _of_family(image: CoreImage, family: str) -> Program:
    try:
        return _Walk(image, family).program()
    except _NoCodeError as error:
        (other,) = set(FAMILIES) - {family}
        try:
            _Walk(image, other).program()
        except _NoCodeError:
            what = "the file is corrupted"
        else:
            what = f"it is code of {_TITLES[other]}"
        raise InputError(f"{image.source}: no code of {_TITLES[family]}: {error}: {what}", hint=_HINT) from None


@dataclass(frozen=True, slots=True)
class _Read:
    size: int
    decoded: slots.Decoded


class _Walk:
    """One walk through an image, by the rules of one family."""

    def __init__(self, image: CoreImage, family: str) -> None:
        self._image, self._family = image, family
        self._found: dict[int, _Read] = {}
        #: First byte of the bundle that a byte is of.
        self._owner: dict[int, int] = {}
        self._swept: set[int] = set()
        #: Addresses that were gone through, with the delay slots left and whether nothing follows them.
        self._seen: set[tuple[int, int, bool]] = set()
        #: The branch whose delay slots come next.
        self._kind, self._call = "", -1
        self._remarks: list[Note] = []

    def program(self) -> Program:
        """Return the program.

        Raises:
            _NoCodeError: a bundle of no format, two bundles in each other, or a target outside.
        """
        self._follow(self._image.entries)
        self._try_pointers()
        self._sweep()
        bundles, listing = [], []
        for number, (address, read) in enumerate(sorted(self._found.items()), 1):
            raw = self._image.at(address, read.size).hex(" ")
            listing.append(f"{address:8x}: {raw:<{3 * MOST_BYTES}}\t{read.decoded.text}")
            effects, is_swept = read.decoded.effects, address in self._swept
            bundles.append(Bundle.doing(effects, address, read.size, read.decoded.text, number, is_swept=is_swept))
        return Program(
            tuple(bundles),
            disjoint(self._image.functions or self._called(bundles), bundles),
            self._image.source,
            tuple(listing),
            remarks=tuple(self._remarks),
        )

    @staticmethod
    def _called(bundles: list[Bundle]) -> list[Function]:
        """Functions of a program without names: what is called, and what it begins with."""
        entries = {b.target for b in bundles if b.kind == CALL and b.target is not None}
        entries |= {bundle.address for bundle in bundles[:1]}
        return [Function(f"f_{address:x}", address, 1 << 62) for address in sorted(entries)]

    # -- along branches

    def _follow(self, entries: Iterable[int]) -> None:
        waiting = [(address, f"entry {address:#x}") for address in entries]
        while waiting:
            self._straight(*waiting.pop(), waiting)

    def _straight(self, address: int, origin: str, waiting: list[tuple[int, str]]) -> None:
        """Read bundles one behind the other; note where else the program goes on."""
        left, is_last = 0, False
        #: Bundles behind a call that were new; None: no call, or a branch since.
        behind_call: list[int] | None = None
        while (address, left, is_last) not in self._seen:
            self._seen.add((address, left, is_last))
            try:
                read, is_new = self._read(address, origin)
            except _NoCodeError:
                if behind_call is None:
                    raise
                # A call that never returns has anything behind it.
                for at in behind_call:
                    self._remove(at)
                what = "the bytes behind this call are no code: it is assumed that it does not return"
                self._remarks.append(Note(self._call, what))
                return
            if is_new and behind_call is not None:
                behind_call.append(address)
            effects = read.decoded.effects
            origin = f"{address:#x}"
            waiting += [(each, origin) for each in (effects.ls, effects.le) if each is not None]
            if left:
                left -= 1
                if not left and is_last:
                    return
                if not left and self._kind in CALLS:
                    behind_call = []
            elif effects.kind in BRANCHES:
                left, is_last, behind_call = DELAY_SLOTS, effects.kind in _LEAVES, None
                self._kind, self._call = effects.kind, address
                if effects.target is not None:
                    waiting.append((effects.target, origin))
            elif effects.kind == HALT:
                return
            address += read.size

    def _read(self, address: int, origin: str) -> tuple[_Read, bool]:
        """Return the bundle at an address, and whether it is new."""
        read = self._found.get(address)
        if read is not None:
            return read, False
        read = self._decode(address)
        if read is None:
            is_inside = bool(self._image.at(address))
            what = "a bundle of no format" if is_inside else "no code"
            raise _NoCodeError(f"{what} at {address:#x}, reached from {origin}")
        clash = next((self._owner[at] for at in range(address, address + read.size) if at in self._owner), None)
        if clash is not None:
            raise _NoCodeError(f"bundles at {clash:#x} and {address:#x} overlap, reached from {origin}")
        self._add(address, read)
        return read, True

    def _remove(self, address: int) -> None:
        for at in range(address, address + self._found.pop(address).size):
            del self._owner[at]

    def _add(self, address: int, read: _Read) -> None:
        self._found[address] = read
        for at in range(address, address + read.size):
            self._owner[at] = address

    def _decode(self, address: int) -> _Read | None:
        raw = self._image.at(address, MOST_BYTES)
        form = bundle_formats.recognize(self._family, raw)
        if form is None:
            return None
        contents = form.read(int.from_bytes(raw[: form.size], "little"))
        return _Read(form.size, slots.read(self._family, contents))

    # -- what no branch names

    def _try_pointers(self) -> None:
        """Walk from constants in registers that are jumped through, unless what follows does not decode."""
        effects = [read.decoded.effects for read in self._found.values()]
        watched = {each.register for each in effects if each.register is not None}
        written = {value for each in effects for name, value in each.writes.items() if name in watched}
        for address in sorted(value for value in written if value is not None):
            if address in self._found or not self._image.at(address):
                continue
            before = set(self._found)
            try:
                self._follow((address,))
            except _NoCodeError:
                for at in self._found.keys() - before:
                    self._remove(at)

    def _sweep(self) -> None:
        unread = 0
        for first, end in list(self._gaps()):
            raw = self._image.at(first, end - first)
            if not any(raw):
                continue
            at = first
            while at < end:
                read = self._decode(at)
                if read is None or at + read.size > end:
                    break
                self._add(at, read)
                self._swept.add(at)
                at += read.size
            if at > first:
                what = f"no branch is known to lead to the {at - first} bytes from here on: they are read in order"
                self._remarks.append(Note(first, what))
            if at < end:
                unread += end - at
                self._remarks.append(Note(at, f"{end - at} bytes from here on are no code, and nothing leads to them"))
        total = sum(len(content) for _, content in self._image.code)
        if 2 * unread > total:
            # By chance the code of another device may begin with a return.
            raise _NoCodeError(f"{unread} of {total} bytes are no code")

    def _gaps(self) -> Iterator[tuple[int, int]]:
        """Yield first address and end of stretches of code that no bundle is of."""
        for first, content in self._image.code:
            begin: int | None = None
            for at in range(first, first + len(content)):
                if at in self._owner:
                    if begin is not None:
                        yield begin, at
                    begin = None
                elif begin is None:
                    begin = at
            if begin is not None:
                yield begin, first + len(content)
