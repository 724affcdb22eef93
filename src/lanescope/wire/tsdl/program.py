"""Types -> steps, which the native core executes: see ``native/core/wire/ctf/program.hpp``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lanescope.wire.tsdl.trace_kinds import Description, EventKind, StreamKind
from lanescope.wire.tsdl.types import (
    ELEMENT,
    MARK,
    Array,
    Integer,
    Path,
    Real,
    Struct,
    Text,
    TsdlError,
    Type,
    Variant,
    alignment,
    plain,
    without_marks,
)

END, ALIGN, INTEGER, TEXT, ARRAY, LOOP, AGAIN, CHOICE, JUMP, SKIP = range(10)
BIG, SIGNED, CLOCK, COUNTED = 1, 2, 4, 8
NONE = -1
#: What integers of headers mean, by their names. Source: CTF 1.8.3, sections 5.1 and 5.2, and babeltrace2.
MEANINGS = (
    "magic",
    "stream_id",
    "stream_instance_id",
    "timestamp_end",
    "content_size",
    "packet_size",
    "events_discarded",
    "packet_seq_num",
    "id",
    "uuid",
)
_BY_ROOT = {
    "trace.packet.header": ("magic", "stream_id", "stream_instance_id", "uuid"),
    "stream.packet.context": ("timestamp_end", "content_size", "packet_size", "events_discarded", "packet_seq_num"),
    "stream.event.header": ("id",),
}
#: The places of fields, from the outside in.
ROOTS = (
    "trace.packet.header",
    "stream.packet.context",
    "stream.event.header",
    "stream.event.context",
    "event.context",
    "event.fields",
)
_MOST_STEPS = 1 << 20


@dataclass(frozen=True, slots=True)
class Leaf:
    """One field that ends up in columns.

    Attributes:
        root: one of ``ROOTS``.
        name: names from the outside in, joined by dots.
        kind: its type: an integer, real number, text, or array.
    """

    root: str
    name: str
    kind: Integer | Real | Text | Array


@dataclass(slots=True)
class Step:
    """One step.

    Attributes:
        op: what to do.
        flags: how.
        size: bits of an integer or of one element; number of choices.
        slot: where the integer is kept, or where the number of elements or the tag is.
        meaning: index into ``MEANINGS``.
        leaf: the column that takes the value.
        arg: bits to align to or to skip; number of elements; first choice; the step to go to.
        target: the step behind a loop.
    """

    op: int
    flags: int = 0
    size: int = 0
    slot: int = NONE
    meaning: int = NONE
    leaf: int = NONE
    arg: int = 0
    target: int = 0

    def row(self) -> tuple[int, ...]:
        """Return the row for the native core."""
        return self.op, self.flags, self.size, self.slot, self.meaning, self.leaf, self.arg, self.target


@dataclass(slots=True)
class _Frame:
    """An open structure: where it is, and its fields so far."""

    path: Path
    seen: dict[str, tuple[Path, Type]] = field(default_factory=dict)


class Compiler:
    """Compiles the types of a trace.

    Args:
        description: the trace.

    Attributes:
        steps: all steps.
        choices: first and last value (unsigned 64 bits, or of two's complement), step, whether signed.
    """

    def __init__(self, description: Description) -> None:
        self._description = description
        self.steps: list[Step] = []
        self.choices: list[tuple[int, int, int]] = []
        self._slots: dict[Path, int] = {}
        self._integers: dict[Path, list[Step]] = {}
        self._roots: dict[str, _Frame] = {}
        self._frames: list[_Frame] = []
        self._leaves: list[Leaf] | None = None
        self._root = ""
        self._in_loop = 0

    def program(self, parts: Iterable[tuple[str, Type | None]], leaves: list[Leaf] | None = None) -> int:
        """Compile types that follow one another; return their first step.

        Args:
            parts: root and type of each; None: there is none.
            leaves: takes the leaves, in the order of columns; None: there are no columns.
        """
        begin = len(self.steps)
        self._leaves = leaves
        for root, kind in parts:
            self._root = root
            self._frames, self._in_loop = [], 0
            self._roots.pop(root, None)
            if kind is not None:
                assert isinstance(kind, Struct)
                self._struct(kind, (root,), "", is_root=True)
        self._add(Step(END))
        return begin

    @property
    def slot_count(self) -> int:
        """How many slots there are."""
        return len(self._slots)

    def _add(self, step: Step) -> Step:
        if len(self.steps) >= _MOST_STEPS:
            raise TsdlError("too many fields")
        self.steps.append(step)
        return step

    def _align(self, bits: int) -> None:
        if bits > 1:
            self._add(Step(ALIGN, arg=bits))

    def _leaf(self, name: str, kind: Integer | Real | Text | Array) -> int:
        if self._leaves is None or self._in_loop:
            return NONE
        self._leaves.append(Leaf(self._root, name, kind))
        return len(self._leaves) - 1

    def _is_big(self, kind: Integer | Real) -> int:
        big = self._description.big if kind.big is None else kind.big
        return BIG if big else 0

    def _field(self, kind: Type, path: Path, name: str) -> None:
        match kind:
            case Integer():
                self._integer(kind, path, name)
            case Real():
                self._align(kind.align)
                self._add(Step(INTEGER, self._is_big(kind), kind.size, leaf=self._leaf(name, kind)))
            case Text():
                self._align(8)
                self._add(Step(TEXT, leaf=self._leaf(name, kind)))
            case Struct():
                self._struct(kind, path, name)
            case Variant():
                self._variant(kind, path, name)
            case Array():
                self._array(kind, path, name)

    def _integer(self, kind: Integer, path: Path, name: str) -> None:
        self._align(kind.align)
        meaning = self._meaning(path[-1], kind)
        flags = self._is_big(kind) | (SIGNED if kind.signed else 0)
        # The end of a packet does not move its clock on.
        if kind.clock and not (meaning != NONE and MEANINGS[meaning] == "timestamp_end"):
            flags |= CLOCK
        step = Step(INTEGER, flags, kind.size, self._slots.get(path, NONE), meaning, self._leaf(name, kind))
        self._add(step)
        self._integers.setdefault(path, []).append(step)

    def _meaning(self, name: str, kind: Integer | Array) -> int:
        name = name.removeprefix(MARK) if kind.meaning is None else kind.meaning
        return MEANINGS.index(name) if name in _BY_ROOT.get(self._root, ()) else NONE

    def _struct(self, kind: Struct, path: Path, name: str, *, is_root: bool = False) -> None:
        self._align(alignment(kind))
        frame = _Frame(path)
        self._frames.append(frame)
        if is_root:
            self._roots[self._root] = frame
        for written, member in kind.fields:
            key = plain(written)
            where = (*path, key)
            self._field(member, where, f"{name}.{key}" if name else key)
            # A field is known by its name as it is written, and without the underscore.
            frame.seen[written] = (where, member)
            frame.seen.setdefault(key, (where, member))
        self._frames.pop()

    def _variant(self, kind: Variant, path: Path, name: str) -> None:
        if not kind.tag:
            raise TsdlError(f"variant {name!r} has no tag", kind.line)
        slot, tag = self._reference(kind.tag, kind.line)
        labels = tag.labels if kind.choices is None else kind.choices
        if labels is None:
            raise TsdlError(f"variant {name!r}: its tag is not an enumeration", kind.line)
        options = {plain(written): option for written, option in kind.options}
        choice = self._add(Step(CHOICE, SIGNED if tag.signed else 0, slot=slot, arg=len(self.choices)))
        rows: list[tuple[int, int, str]] = []
        for label, first, last in labels:
            if plain(label) in options:
                rows.append((first & (1 << 64) - 1, last & (1 << 64) - 1, plain(label)))
        others = _others(kind.choices or (), signed=tag.signed) if kind.is_optional else []
        choice.size = len(rows) + len(others)
        self.choices += [(first, last, 0) for first, last, _ in rows]
        self.choices += [(first & (1 << 64) - 1, last & (1 << 64) - 1, 0) for first, last in others]
        ends: list[Step] = []
        begins: dict[str, int] = {}
        for key, option in options.items():
            begins[key] = len(self.steps)
            inner = (*path, MARK + key)
            self._frames.append(_Frame(inner))
            self._field(option, inner, name if kind.is_optional else f"{name}.{key}" if name else key)
            self._frames.pop()
            ends.append(self._add(Step(JUMP)))
        for step in ends:
            step.arg = len(self.steps)
        for at in range(choice.arg, choice.arg + choice.size):
            first, last, _ = self.choices[at]
            row = at - choice.arg
            self.choices[at] = first, last, begins[rows[row][2]] if row < len(rows) else len(self.steps)

    def _array(self, kind: Array, path: Path, name: str) -> None:
        element = kind.element
        count, slot = 0, NONE
        if isinstance(kind.length, int):
            count = kind.length
        else:
            slot, length = self._reference(kind.length, kind.line)
            if length.signed:
                raise TsdlError(f"length of {name!r} has a sign", kind.line)
        flags = COUNTED if slot != NONE else 0
        self._align(alignment(kind))
        is_packed = isinstance(element, Integer | Real) and element.size % element.align == 0
        if is_packed and not (isinstance(element, Integer) and element.clock):
            assert isinstance(element, Integer | Real)
            self._add(
                Step(
                    ARRAY,
                    flags | self._is_big(element),
                    element.size,
                    slot,
                    self._meaning(path[-1], kind),
                    self._leaf(name, kind),
                    count,
                )
            )
            return
        begin = self._add(Step(LOOP, flags, 0, slot, NONE, self._leaf(name, kind), count))
        first = len(self.steps)
        self._in_loop += 1
        if self._in_loop > 16:
            raise TsdlError("arrays in arrays, more than 16 deep", kind.line)
        self._frames.append(_Frame((*path, ELEMENT)))
        self._field(element, (*path, ELEMENT), name)
        self._frames.pop()
        self._in_loop -= 1
        if len(self.steps) == first:
            self._add(Step(SKIP))  # an element without fields
        self._add(Step(AGAIN, arg=first))
        begin.target = len(self.steps)

    # --- references ---------------------------------------------------------------------------------------------

    def _reference(self, path: Path, line: int) -> tuple[int, Integer]:
        """Return the slot of an integer before, and its type."""
        found = self._find(path)
        if found is None:
            raise TsdlError(f"unknown field {'.'.join(path)!r}", line)
        where, kind = found
        if not isinstance(kind, Integer):
            raise TsdlError(f"field {'.'.join(path)!r} is not an integer", line)
        slot = self._slots.setdefault(where, len(self._slots))
        for step in self._integers.get(where, ()):
            step.slot = slot
        return slot, kind

    def _find(self, path: Path) -> tuple[Path, Type] | None:
        for root in ROOTS:
            parts = tuple(root.split("."))
            if path[: len(parts)] == parts and root in self._roots:
                return self._find_below(root, path[len(parts) :])
        for frame in reversed(self._frames):
            found = _inside(frame, path)
            if found is not None:
                return found
        for root in reversed(ROOTS):
            if root in self._roots and root != self._root:
                found = _inside(self._roots[root], path)
                if found is not None:
                    return found
        return None

    def _find_below(self, root: str, names: Path) -> tuple[Path, Type] | None:
        """Return a field by its names below a root: one in a structure that is still open, too."""
        for frame in reversed(self._frames if root == self._root else ()):
            around = without_marks(frame.path[1:])
            if tuple(map(plain, names[: len(around)])) == around:
                found = _inside(frame, names[len(around) :])
                if found is not None:
                    return found
        return _inside(self._roots[root], names)


def _others(choices: Iterable[tuple[str, int, int]], *, signed: bool) -> list[tuple[int, int]]:
    """Return first and last value of all ranges of 64 bits that are in no choice."""
    at, end = (-(1 << 63), 1 << 63) if signed else (0, 1 << 64)
    found = []
    for _, first, last in sorted(choices, key=lambda choice: choice[1]):
        if first > at:
            found.append((at, min(first, end) - 1))
        at = max(at, last + 1)
    return [*found, (at, end - 1)] if at < end else found


def _inside(frame: _Frame, path: Path) -> tuple[Path, Type] | None:
    if not path:
        return None
    found = frame.seen.get(path[0]) or frame.seen.get(plain(path[0]))
    for name in path[1:]:
        if found is None or not isinstance(found[1], Struct):
            return None
        members = {plain(written): member for written, member in found[1].fields}
        if plain(name) not in members:
            return None
        found = (*found[0], plain(name)), members[plain(name)]
    return found


def shortened(
    steps: Sequence[Step], choices: Sequence[tuple[int, int, int]], entries: Sequence[int], wanted: frozenset[int]
) -> tuple[list[Step], list[tuple[int, int, int]], list[int]]:
    """Join steps over fields that are not wanted.

    Args:
        steps: all steps.
        choices: as of ``Compiler``.
        entries: first steps of programs.
        wanted: columns that are taken; all others are passed over.

    Returns:
        The steps, choices and entries.
    """
    targets = {step.arg for step in steps if step.op in (JUMP, AGAIN)}
    targets |= {step.target for step in steps if step.op == LOOP} | {target for _, _, target in choices} | set(entries)
    made: list[Step] = []
    place: dict[int, int] = {}
    # Where the bits behind what was read are known modulo an alignment.
    known, offset = 1, 0
    for number, step in enumerate(steps):
        if number in targets:
            known, offset = 1, 0
        place[number] = len(made)
        mergeable = number not in targets and bool(made) and made[-1].op == SKIP
        if step.op == ALIGN:
            if step.arg <= known:
                if gap := -offset % step.arg:
                    offset += gap
                    if mergeable:
                        made[-1].arg += gap
                    else:
                        made.append(Step(SKIP, arg=gap))
                continue
            known, offset = step.arg, 0
            made.append(Step(ALIGN, arg=step.arg))
            continue
        leaf = step.leaf if step.leaf in wanted else NONE
        is_plain = step.slot == NONE and step.meaning == NONE and leaf == NONE
        size = NONE
        if step.op == INTEGER:
            size = step.size
            is_plain = is_plain and not step.flags & CLOCK
        elif step.op == ARRAY and not step.flags & COUNTED:
            size = step.size * step.arg
        if size != NONE:
            offset = (offset + size) % known
            if is_plain and size < 1 << 31:
                if mergeable:
                    made[-1].arg += size
                else:
                    made.append(Step(SKIP, arg=size))
                continue
        elif step.op == TEXT:
            known, offset = 8, 0
        elif step.op in (LOOP, AGAIN, CHOICE, JUMP) or step.op == ARRAY:
            known, offset = 1, 0
        copy = Step(*step.row())
        copy.leaf = leaf
        made.append(copy)
    place[len(steps)] = len(made)
    for step in made:
        if step.op in (JUMP, AGAIN):
            step.arg = place[step.arg]
        elif step.op == LOOP:
            step.target = place[step.target]
    return made, [(a, b, place[target]) for a, b, target in choices], [place[entry] for entry in entries]


def rows_of(steps: Sequence[Step]) -> npt.NDArray[np.int64]:
    """Return steps as the native core takes them, int64 [steps, 8]."""
    return np.array([step.row() for step in steps], np.int64).reshape(-1, 8)


def event_parts(stream: StreamKind, event: EventKind) -> list[tuple[str, Type | None]]:
    """Return what an event has behind its header."""
    return [
        ("stream.event.context", stream.event_context),
        ("event.context", event.context),
        ("event.fields", event.fields),
    ]
