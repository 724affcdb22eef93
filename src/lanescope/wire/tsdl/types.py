"""The types of CTF 1.8 and CTF 2: what bytes of a stream mean."""

from __future__ import annotations

from dataclasses import dataclass

from lanescope.errors import InputError

#: Names from the outside in: of a field, or of where to look for one.
Path = tuple[str, ...]
#: Begins steps of paths that are no names: into the elements of an array, into an option of a variant.
MARK = "\0"
ELEMENT = MARK + "[]"


class TsdlError(InputError):
    """A description that cannot be read.

    Args:
        what: what is wrong.
        line: where, counted from 1; 0 where no line can be named.
    """

    def __init__(self, what: str, line: int = 0) -> None:
        place = f"line {line} of the metadata" if line else "the metadata"
        super().__init__(f"{place}: {what}", hint="check the trace with babeltrace2")


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer, or an enumeration.

    Attributes:
        size: bits, 1 to 64.
        align: bits.
        signed: whether it has a sign.
        big: whether it is big-endian; None: as the trace is.
        base: how it is written: 2, 8, 10 or 16.
        encoded: whether it is a character.
        clock: name of the clock that it is a reading of; empty if it is of none.
        labels: of an enumeration: label, first and last value of each mapping; None for a mere integer.
        meaning: what it tells a reader of packets and events, one of ``MEANINGS``, empty: nothing; None: its name says.
    """

    size: int
    align: int
    signed: bool = False
    big: bool | None = None
    base: int = 10
    encoded: bool = False
    clock: str = ""
    labels: tuple[tuple[str, int, int], ...] | None = None
    meaning: str | None = None


@dataclass(frozen=True, slots=True)
class Real:
    """A number of IEEE 754.

    Attributes:
        size: bits, 32 or 64.
        align: bits.
        big: as of ``Integer``.
    """

    size: int
    align: int
    big: bool | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """Bytes up to a zero."""


@dataclass(frozen=True, slots=True)
class Struct:
    """Fields one after the other.

    Attributes:
        fields: name and type of each; names as they are written.
        align: least alignment, bits.
    """

    fields: tuple[tuple[str, Type], ...]
    align: int = 1


@dataclass(frozen=True, slots=True)
class Variant:
    """One of several types, selected by a field before it.

    Attributes:
        tag: where that field is; empty for a variant that has been declared without one.
        options: name and type of each.
        line: where it was declared.
        choices: name of an option, first and last value that select it; None: the labels of the tag do.
        is_optional: whether other values select nothing; there is one option then, and no level for it.
    """

    tag: Path
    options: tuple[tuple[str, Type], ...]
    line: int = 0
    choices: tuple[tuple[str, int, int], ...] | None = None
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class Array:
    """Elements of one type, as many as a number or a field before it says.

    Attributes:
        element: their type.
        length: how many, or where the field is.
        line: where it was declared.
        align: least alignment, bits.
        meaning: as of ``Integer``.
    """

    element: Type
    length: int | Path
    line: int = 0
    align: int = 1
    meaning: str | None = None

    @property
    def is_text(self) -> bool:
        """Whether its elements are characters: all of it is text up to a zero."""
        element = self.element
        return isinstance(element, Integer) and element.encoded and element.size == 8 and element.labels is None


Type = Integer | Real | Text | Struct | Variant | Array


def alignment(kind: Type) -> int:
    """Return the alignment of a type in bits; a variant has none, its options have theirs."""
    match kind:
        case Integer() | Real():
            return kind.align
        case Text():
            return 8
        case Struct():
            return max([kind.align, *(alignment(field) for _, field in kind.fields)])
        case Array():
            return max(kind.align, alignment(kind.element))
    return 1


def without_marks(path: Path) -> Path:
    """Return a path without the steps into elements and options, which references do not name."""
    return tuple(name for name in path if not name.startswith(MARK))


def plain(name: str) -> str:
    """Return a name without the underscore that may stand before it to make it differ from keywords."""
    return name.removeprefix("_")
