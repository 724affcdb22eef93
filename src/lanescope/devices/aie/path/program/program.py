"""The program of a core, as far as its branches go: bundles with their branch classes, loops, functions, lines.

Here it is read from listings: the text of ``llvm-objdump -d`` (llvm-aie), the ``.lst`` of Chess, or JSON with the same
assembly in it. ``code_walk`` reads it from bytes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from lanescope.devices.aie.path.program import assembly
from lanescope.devices.aie.path.program.assembly import Effects
from lanescope.devices.aie.path.program.symbols import Function
from lanescope.errors import InputError, os_reason

#: Bundles that always run behind a branch, before it transfers.
DELAY_SLOTS = 5
#: What a listing may take; program memory holds 16 KiB of code.
_MOST_TEXT = 64 << 20
_MOST_BUNDLES = 1 << 15

PLAIN, HALT, JUMP, CALL, BRANCH, BRANCH_INDIRECT, JUMP_INDIRECT, CALL_INDIRECT, RETURN = (
    "plain",
    "halt",
    "jump",
    "call",
    "branch",
    "branch_indirect",
    "jump_indirect",
    "call_indirect",
    "return",
)
#: Branches whose target stands in the program.
DIRECT = frozenset({JUMP, CALL})
#: Branches whose outcome is an atom, and those whose outcome is an address.
ATOM = frozenset({BRANCH, BRANCH_INDIRECT})
ADDRESS = frozenset({JUMP_INDIRECT, CALL_INDIRECT, RETURN})
CALLS = frozenset({CALL, CALL_INDIRECT})
BRANCHES = DIRECT | ATOM | ADDRESS


@dataclass(frozen=True, slots=True)
class Bundle:
    """One bundle.

    Attributes:
        address: byte address.
        size: bytes.
        text: its instructions as the listing has them.
        line: number of its line in the listing, from 1; 0: it is in none.
        kind: branch class: ``plain``, ``halt``, ``jump``, ``call``, ``branch`` (conditional), ``branch_indirect``
            (conditional, target in a register), ``jump_indirect``, ``call_indirect``, ``return``.
        target: where a direct branch goes.
        register: that holds the target of an indirect branch.
        writes: registers that it writes, with the constant or None.
        ls: first bundle of a zero-overhead loop that it sets up.
        le: last bundle of such a loop.
        sets_lc: it loads the loop counter.
        requests_lock: it waits for a lock.
        is_swept: nothing is known to lead to it: it was read because it lies behind other code.
    """

    address: int
    size: int
    text: str = ""
    line: int = 0
    kind: str = PLAIN
    target: int | None = None
    register: str | None = None
    writes: tuple[tuple[str, int | None], ...] = ()
    ls: int | None = None
    le: int | None = None
    sets_lc: bool = False
    requests_lock: bool = False
    is_swept: bool = False

    @property
    def end(self) -> int:
        """The address behind it."""
        return self.address + self.size

    @staticmethod
    def of(address: int, size: int, text: str, line: int = 0) -> Bundle:
        """Read the instructions of a bundle."""
        return Bundle.doing(assembly.read(text), address, size, text, line)

    @staticmethod
    def doing(effects: Effects, address: int, size: int, text: str, line: int = 0, *, is_swept: bool = False) -> Bundle:
        """Return a bundle with these effects."""
        return Bundle(
            address,
            size,
            text,
            line,
            effects.kind,
            effects.target,
            effects.register,
            tuple(effects.writes.items()),
            effects.ls,
            effects.le,
            effects.sets_lc,
            effects.requests_lock,
            is_swept,
        )


@dataclass(frozen=True, slots=True)
class Note:
    """Something about a program that limits what can be said of its path."""

    address: int
    text: str


@dataclass(frozen=True, eq=False)
class Program:
    """A program image.

    Attributes:
        bundles: by address.
        functions: by address, disjoint; all bundles before the first are of none.
        source: name of the listing.
        listing: its lines, as they are.
        marked_loops: (first, last) bundle of loops that the listing marks.
        lines: source line by address, from debug information: address -> (file, line).
        remarks: what its reader has to say of it.
    """

    bundles: tuple[Bundle, ...]
    functions: tuple[Function, ...] = ()
    source: str = ""
    listing: tuple[str, ...] = ()
    marked_loops: tuple[tuple[int, int], ...] = ()
    lines: dict[int, tuple[str, int]] = field(default_factory=dict)
    remarks: tuple[Note, ...] = ()

    @cached_property
    def at(self) -> dict[int, Bundle]:
        """Bundle by address."""
        return {bundle.address: bundle for bundle in self.bundles}

    @cached_property
    def index(self) -> dict[int, int]:
        """Position among the bundles by address."""
        return {bundle.address: i for i, bundle in enumerate(self.bundles)}

    @cached_property
    def slots(self) -> dict[int, tuple[Bundle, int]]:
        """The branch in whose delay slots a bundle lies, and which slot it is, from 1."""
        found: dict[int, tuple[Bundle, int]] = {}
        for i, bundle in enumerate(self.bundles):
            if bundle.kind not in BRANCHES or bundle.address in found:
                continue
            end = bundle.end
            for j, slot in enumerate(self.bundles[i + 1 : i + 1 + DELAY_SLOTS], 1):
                if slot.address != end:
                    break
                found[slot.address] = (bundle, j)
                end = slot.end
        return found

    @cached_property
    def behind(self) -> dict[int, int]:
        """Address behind the delay slots, by address of the branch; branches whose slots are cut off have none."""
        ends = {slot: self.at[slot].end for slot, (_, j) in self.slots.items() if j == DELAY_SLOTS}
        return {self.slots[slot][0].address: end for slot, end in ends.items()}

    @cached_property
    def loops(self) -> dict[int, tuple[int, ...]]:
        """Zero-overhead loops: first bundles by last bundle; there is one as a rule."""
        found: dict[int, set[int]] = {}
        for ls, le in self.marked_loops:
            found.setdefault(le, set()).add(ls)
        starts = sorted({b.ls for b in self.bundles if b.ls is not None})
        for bundle in self.bundles:
            # Bodies do not lie in each other: the nearest begin before an end is its own.
            i = bisect_right(starts, bundle.le) - 1 if bundle.le is not None else -1
            if bundle.le is not None and bundle.le not in found and i >= 0:
                found[bundle.le] = {starts[i]}
        return {le: tuple(sorted(ls)) for le, ls in sorted(found.items())}

    @cached_property
    def leaders(self) -> tuple[int, ...]:
        """First bundles of basic blocks, sorted: what can be reached from elsewhere, as far as the listing shows."""
        found = {function.address for function in self.functions} | set(self.behind.values())
        found |= {b.target for b in self.bundles if b.kind in BRANCHES and b.target is not None}
        for le, starts in self.loops.items():
            found |= set(starts)
            if le in self.at:
                found.add(self.at[le].end)
        found |= {value for b in self.bundles for name, value in b.writes if value is not None and name in self.watched}
        for before, after in zip((None, *self.bundles), self.bundles, strict=False):
            if before is None or before.end != after.address:
                found.add(after.address)
        return tuple(sorted(found & self.at.keys()))

    @cached_property
    def watched(self) -> frozenset[str]:
        """Registers that hold targets of conditional branches."""
        return frozenset(b.register for b in self.bundles if b.kind == BRANCH_INDIRECT and b.register is not None)

    @cached_property
    def constants(self) -> dict[str, int]:
        """Of the watched registers those to which the whole program writes one constant and nothing else."""
        written: dict[str, set[int | None]] = {}
        for bundle in self.bundles:
            for name, value in bundle.writes:
                written.setdefault(name, set()).add(value)
        found = {name: next(iter(values)) for name, values in written.items() if len(values) == 1}
        return {name: value for name, value in found.items() if name in self.watched and value is not None}

    @cached_property
    def is_self_contained(self) -> bool:
        """Whether each load of the loop counter stands in one block with writes of both loop addresses."""
        leaders = set(self.leaders)
        has_lc = has_ls = has_le = False
        for bundle in self.bundles:
            if bundle.address in leaders:
                if has_lc and not (has_ls and has_le):
                    return False
                has_lc = has_ls = has_le = False
            has_lc |= bundle.sets_lc
            has_ls |= bundle.ls is not None
            has_le |= bundle.le is not None
        return not has_lc or (has_ls and has_le)

    @cached_property
    def _function_starts(self) -> list[int]:
        return [function.address for function in self.functions]

    def function_at(self, address: int) -> int:
        """Return the position of the function that holds an address; -1: none does."""
        i = bisect_right(self._function_starts, address) - 1
        return i if i >= 0 and address < self.functions[i].end else -1

    def function_name(self, address: int) -> str:
        """Return the name of the function that holds an address; the address in hex if none does."""
        i = self.function_at(address)
        return self.functions[i].name if i >= 0 else f"{address:#x}"

    def extent(self, address: int) -> tuple[int, int]:
        """Return the first address and that behind the last one of the function that holds an address.

        Outside of all functions: from the end of the one before to the begin of the next.
        """
        i = bisect_right(self._function_starts, address) - 1
        if i >= 0 and address < self.functions[i].end:
            return self.functions[i].address, self.functions[i].end
        first = self.functions[i].end if i >= 0 else 0
        return first, self.functions[i + 1].address if i + 1 < len(self.functions) else 1 << 62

    def block_at(self, address: int) -> int:
        """Return the first address of the basic block that holds a bundle."""
        i = bisect_right(self.leaders, address) - 1
        return self.leaders[i] if i >= 0 else address

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """Unexpected or ambiguous parts of the program and its listing."""
        found: list[Note] = list(self.remarks)
        les = set(self.loops)
        for i, bundle in enumerate(self.bundles):
            where = bundle.address
            if {"ls", "le"} & {name for name, _ in bundle.writes}:
                found.append(Note(where, "loop addresses from a register: this loop is not followed"))
            if bundle.kind not in BRANCHES:
                continue
            if where in self.slots:
                found.append(Note(where, "a branch in a delay slot: what it does there is not known"))
            slots = self.bundles[i + 1 : i + 1 + DELAY_SLOTS]
            if len(slots) < DELAY_SLOTS or any(
                a.end != b.address for a, b in zip((bundle, *slots), slots, strict=False)
            ):
                found.append(Note(where, "the program ends among its delay slots"))
            if les & {bundle.address, *(slot.address for slot in slots[:-1])}:
                found.append(Note(where, "its delay slots lie across the end of a zero-overhead loop"))
            if bundle.target is not None and bundle.target not in self.at:
                found.append(Note(where, f"its target {bundle.target:#x} is not in the program"))
        for le, starts in self.loops.items():
            if le not in self.at or any(ls not in self.at for ls in starts):
                found.append(Note(le, "a zero-overhead loop whose ends are not in the program"))
        if self.bundles and self.bundles[-1].address >> 14:
            found.append(Note(self.bundles[-1].address, "addresses beyond 14 bits, which frames do not tell"))
        return tuple(sorted(found, key=lambda note: note.address))


def read(path: Path) -> Program:
    """Read a listing of any form.

    Raises:
        InputError: it is not there, or no listing.
    """
    try:
        if path.stat().st_size > _MOST_TEXT:
            raise InputError(
                f"{path}: file is too large for a listing", hint="pass a listing of at most 16 KiB of program memory"
            )
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(
            f"cannot open {str(path)!r}: {os_reason(error)}", hint="check the path of the listing"
        ) from None
    return parse(text, path.name)


def parse(text: str, source: str = "") -> Program:
    """Read the text of a listing: JSON, ``llvm-objdump -d``, or Chess ``.lst``.

    Raises:
        InputError: it is none of these, or of an object file that is not linked.
    """
    if text.lstrip()[:1] == "{":
        return _from_json(text, source)
    lines = tuple(text.splitlines())
    found = _objdump(lines) if any(map(_OBJDUMP.match, lines)) else _lst(lines)
    if not found.rows:
        raise InputError(
            f"{source or 'text'}: unrecognized listing format",
            hint="use the output of `llvm-objdump -d` of llvm-aie or the .lst file of Chess",
        )
    return found.program(source, lines)


#: ``     120: 55 00 12 0e 80 07     movxm   p7, #288``
_OBJDUMP = re.compile(r"\s*([0-9a-f]{1,8}):(?:\s+((?:[0-9a-f]{2} )*[0-9a-f]{2})(?=\s|$))?\s*(.*)$")
_SYMBOL = re.compile(r"([0-9a-f]{6,16}) <(.+)>:\s*$")
_RELOCATION = re.compile(r"\s*[0-9a-f]+:\s+R_[A-Z0-9_]+\s")
#: ``         960    VLDA wl0, [p1], #128;  ...``; between address and instructions there may be the encoding.
_LST = re.compile(r"\s*(\d+)\s+((?:(?:0x[0-9a-fA-F]+|[01]{8,}|\d[0-9a-fA-F]*|[0-9a-fA-F]{2})\s+)*)(\S.*)$")
_LOOP_MARK = re.compile(r"(ZLS|ZLE)_")


@dataclass
class _Rows:
    """Contents of a listing.

    Attributes:
        rows: address, size (0: up to the next), instructions, line.
        names: first address -> name of a function.
        marks: (ZLS or ZLE, address), in order.
        holes: addresses behind which the listing leaves out zeros, which are nops of two bytes.
    """

    rows: list[tuple[int, int, str, int]] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    marks: list[tuple[str, int]] = field(default_factory=list)
    holes: set[int] = field(default_factory=set)

    def program(self, source: str, lines: tuple[str, ...]) -> Program:
        rows = sorted(self.rows)
        if len(rows) > _MOST_BUNDLES:
            raise InputError(
                f"{source}: too many bundles: {len(rows)}", hint="pass the listing of one core: at most 8192 bundles"
            )
        bundles: list[Bundle] = []
        for (address, size, text, line), after in zip(rows, (*rows[1:], None), strict=True):
            follows = after[0] if after is not None else None
            if follows == address or (size and follows is not None and address + size > follows):
                raise InputError(
                    f"{source}: bundles overlap at {address:#x}", hint="pass the listing of the linked program"
                )
            if not size:
                size = assembly.MOST_BYTES if follows is None else min(follows - address, assembly.MOST_BYTES)
                if address in self.holes and follows is not None and follows - address > 2:
                    size = assembly.least_bytes(text)
            bundles.append(Bundle.of(address, size, text, line))
            if address in self.holes and follows is not None:
                at = address + size
                # No program memory is that large; a hostile listing may say so.
                if follows - at > 1 << 16:
                    raise InputError(f"{source}: {follows - at} bytes missing at {at:#x}")
                bundles += [Bundle(nop, 2, "nop") for nop in range(at, follows - 1, 2)]
        loops = []
        start: int | None = None
        for mark, address in self.marks:
            if mark == "ZLS":
                start = address
            elif start is not None:
                loops.append((start, address))
        names = [Function(name, address, 1 << 62) for address, name in sorted(self.names.items())]
        if not names:
            # Without symbols: what is called is a function.
            called = {b.target for b in bundles if b.kind == CALL and b.target is not None}
            entries = sorted({bundles[0].address, *called}) if bundles else []
            names = [Function(f"f_{address:x}", address, 1 << 62) for address in entries]
        return Program(tuple(bundles), disjoint(names, bundles), source, lines, tuple(loops))


def disjoint(functions: Iterable[Function], bundles: Iterable[Bundle]) -> tuple[Function, ...]:
    """Cut functions at the begin of the next one, and at the end of the program; the first name of an address stays."""
    by_address: dict[int, Function] = {}
    for function in functions:
        by_address.setdefault(function.address, function)
    ordered = [by_address[address] for address in sorted(by_address)]
    last = max((bundle.end for bundle in bundles), default=0)
    cut = [
        replace(function, end=min(function.end, after.address if after is not None else last))
        for function, after in zip(ordered, (*ordered[1:], None), strict=True)
    ]
    return tuple(function for function in cut if function.end > function.address)


def _objdump(lines: Iterable[str]) -> _Rows:
    found = _Rows()
    for number, line in enumerate(lines, 1):
        symbol = _SYMBOL.match(line)
        if symbol:
            # Labels inside of functions, where the assembler kept them.
            if not symbol[2].startswith((".L", "$")):
                found.names.setdefault(int(symbol[1], 16), symbol[2])
            continue
        if line.strip() == "..." and found.rows:
            found.holes.add(found.rows[-1][0])
            continue
        row = None if _RELOCATION.match(line) else _OBJDUMP.match(line)
        if row and row[3]:
            size = len((row[2] or "").split())
            found.rows.append((int(row[1], 16), size, assembly.clean(row[3]), number))
    return found


def _lst(lines: Iterable[str]) -> _Rows:
    found = _Rows()
    waiting: list[str] = []
    starts_function = False
    has_starts = False
    labels: dict[int, str] = {}
    for number, line in enumerate(lines, 1):
        stripped = line.strip()
        if stripped.startswith(".label"):
            waiting += stripped.split()[1:2]
            continue
        if stripped.startswith((".function_start", ".function ")):
            starts_function = has_starts = True
            continue
        row = _LST.match(line)
        if not row:
            continue
        address = int(row[1])
        found.rows.append((address, 0, assembly.clean(row[3]), number))
        for label in waiting:
            mark = _LOOP_MARK.match(label)
            if mark:
                found.marks.append((mark[1], address))
            elif starts_function:
                found.names.setdefault(address, label)
            else:
                labels.setdefault(address, label)
        waiting, starts_function = [], False
    if not has_starts:
        found.names = {address: name for address, name in labels.items() if not name.startswith("TGT_")}
    return found


def _from_json(text: str, source: str) -> Program:
    from lanescope.devices.aie.path.program import listing_json as form

    document = form.decode(text, source)
    rows = _Rows()
    for number, row in enumerate(document.bundles, 1):
        if not 0 <= row.address < 1 << 32 or not 0 <= row.size <= assembly.MOST_BYTES:
            raise InputError(f"{source}: invalid bundle at address {row.address}: size {row.size}")
        rows.rows.append((row.address, row.size, assembly.clean(row.text), number))
    rows.names = {function.address: function.name for function in document.functions}
    if not rows.rows:
        raise InputError(f"{source}: no bundles found", hint="pass the listing of the whole program")
    return rows.program(source, tuple(f"{row.address:8x}: {row.text}" for row in document.bundles))


def straight_runs(program: Program, addresses: Iterable[int]) -> Iterator[tuple[int, int, int]]:
    """Yield (first, last, bundles) of stretches of a path in which each bundle follows the one before in memory."""
    first = last = None
    count = 0
    for address in addresses:
        if last is not None and first is not None:
            if program.at[last].end == address:
                last, count = address, count + 1
                continue
            yield first, last, count
        first, last, count = address, address, 1
    if first is not None and last is not None:
        yield first, last, count
