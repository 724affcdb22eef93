"""What the slots of a bundle do to the control flow: branches, loop registers, pointers, locks; from their bits.

Everything else is told by its slot and bits only. Writes of pointers are complete: an access whose addressing mode is
not known counts as one that moves its pointer on. Source: facts of llvm-aie's instruction tables and of the register
codes of its encoder, checked on programs that Peano and Chess built; of AIE2P none was checked against a disassembler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lanescope.devices.aie.path.program.assembly import Effects

#: Contents of slots that do nothing; those of AIE2P are not all known.
_NOPS = {
    "aie2": {"lda": 0, "ldb": 0, "st": 0, "alu": 0, "lng": 0, "mv": 0x38, "vec": 0x1E0},
    "aie2p": {"lng": 0},
}


@dataclass(frozen=True, slots=True)
class RegisterCodes:
    """Numbers of registers in instructions of one family.

    Attributes:
        moved: of loop and stack registers as targets of moves, by number.
        pointer: the lowest four bits of a pointer as target of moves; above them is its number.
        scalar: number of r0 as a target of moves; the next ones are 4 apart.
        loaded_pointer: the lowest four bits of a pointer as target of loads.
        constant_pointer: of a pointer as target of constants in the slot of loads.
        constant_counter: the loop counter as target of such constants.
    """

    moved: Mapping[int, str]
    pointer: int
    scalar: int
    loaded_pointer: int
    constant_pointer: int = 0b1101
    constant_counter: int = 0b0010101


CODES = {
    "aie2": RegisterCodes({7: "ls", 71: "le", 87: "lc", 103: "sp", 39: "lr", 23: "dp"}, 0b0011, 0, 0b1101),
    "aie2p": RegisterCodes({15: "ls", 55: "le", 87: "lc", 79: "sp", 119: "lr"}, 0b0110, 1, 0b0011),
}


@dataclass(slots=True)
class Decoded:
    """A bundle as far as it is read: what it does, and the text of it in the syntax of listings."""

    effects: Effects
    text: str


def read(family: str, slots: Mapping[str, int]) -> Decoded:
    """Return what the slots of a bundle do."""
    effects = Effects()
    parts = []
    for name, word in slots.items():
        if _NOPS[family].get(name) == word:
            continue
        reader = _READERS.get(name)
        said = reader(family, word, effects) if reader is not None else None
        parts.append(said or f".{name} {word:#x}")
    return Decoded(effects, "; ".join(parts) or "nop")


def _bits(word: int, high: int, low: int = -1) -> int:
    low = high if low < 0 else low
    return word >> low & (1 << high - low + 1) - 1


def _signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> width - 1 else value


# -- control flow: alu and lng


def _alu(family: str, word: int, effects: Effects) -> str | None:
    if (word & 7) == 0b010:
        # The target is a scalar register or, for its one odd code, the loop counter.
        target = _bits(word, 14, 9)
        value = _signed(_bits(word, 19, 15) << 6 | _bits(word, 8, 3), 11)
        name = "lc" if target == 1 else f"r{target >> 1}"
        _write(effects, name, value)
        return f"movx {name}, #{value}"
    return _alu_aie2(word, effects) if family == "aie2" else _alu_aie2p(word, effects)


def _alu_aie2(word: int, effects: Effects) -> str | None:
    if not _bits(word, 19, 10) and _bits(word, 6, 0) in (0b0001000, 0b0101000):
        return _indirect(effects, is_call=_bits(word, 5) == 1, pointer=_bits(word, 9, 7))
    if _bits(word, 6, 0) == 0b0011000:
        return _decrement(effects, word)
    if word == 0x30:
        return _return(effects)
    if word == 0x10:
        effects.kind = "halt"
        return "done"
    if _bits(word, 17, 0) == 0x20:
        return f"event #{word >> 18}"
    if _bits(word, 4, 0) == 0b00100:
        return _lock(effects, word)
    return None


def _alu_aie2p(word: int, effects: Effects) -> str | None:
    low = _bits(word, 6, 0)
    if low == 0:
        what = _bits(word, 14, 12)
        if what in (0b100, 0b110):
            return _indirect(effects, is_call=what == 0b110, pointer=_bits(word, 9, 7))
        if what == 0b101:
            return _return(effects)
        if what == 0b001:
            effects.kind = "halt"
            return "done"
        if what == 0b010:
            return f"event #{word >> 18}"
        return None
    if low == 0b1000000:
        return _decrement(effects, word)
    if _bits(word, 4, 0) == 0b10000:
        return _lock(effects, word)
    return None


def _indirect(effects: Effects, *, is_call: bool, pointer: int) -> str:
    effects.kind = "call_indirect" if is_call else "jump_indirect"
    effects.register = f"p{pointer}"
    return f"{'jl' if is_call else 'j'} p{pointer}"


def _decrement(effects: Effects, word: int) -> str:
    effects.kind = "branch_indirect"
    effects.register = f"p{_bits(word, 9, 7)}"
    effects.writes[f"r{_bits(word, 14, 10)}"] = None
    return f"jnzd r{_bits(word, 14, 10)}, r{_bits(word, 19, 15)}, {effects.register}"


def _return(effects: Effects) -> str:
    effects.kind = "return"
    return "ret lr"


def _lock(effects: Effects, word: int) -> str:
    is_request, is_conditional = _bits(word, 10) == 1, _bits(word, 11) == 1
    effects.requests_lock |= is_request
    lock = f"r{_bits(word, 19, 15)}" if _bits(word, 13) else f"#{_bits(word, 19, 14)}"
    name = ("acq" if is_request else "rel") + (".cond" if is_conditional else "")
    return f"{name} {lock}, r{_bits(word, 9, 5)}"


def _lng(family: str, word: int, effects: Effects) -> str | None:
    what, target = word & 7, _bits(word, 36, 17)
    if what == 0b001:
        value = _bits(word, 41, 22) << 12 | _bits(word, 14, 3)
        name = _moved(family, _bits(word, 21, 15))
        value = _signed(value, 32)
        _write(effects, name, value)
        return f"movxm {name or f'.code{_bits(word, 21, 15)}'}, #{value:#x}"
    # The other bits are 0 in AIE2; in AIE2P they have no meaning.
    is_odd = family == "aie2" and _bits(word, 15, 3) != 0
    if is_odd or what not in (0b010, 0b100, 0b110):
        return None
    effects.target = target
    if what == 0b110:
        effects.kind = "branch"
        return f"{'jnz' if _bits(word, 16) else 'jz'} r{_bits(word, 41, 37)}, #{target:#x}"
    if family == "aie2" and (_bits(word, 41, 37) or _bits(word, 16)):
        effects.target = None
        return None
    effects.kind = "call" if what == 0b100 else "jump"
    return f"{'jl' if what == 0b100 else 'j'} #{target:#x}"


# -- moves


def _moved(family: str, code: int) -> str | None:
    """Return the name of a target of moves, as far as it matters or is a scalar register."""
    codes = CODES[family]
    if code & 15 == codes.pointer:
        return f"p{code >> 4}"
    return codes.moved.get(code) or (f"r{code >> 2}" if code & 3 == codes.scalar else None)


def _write(effects: Effects, name: str | None, value: int | None) -> None:
    if name == "ls" and value is not None:
        effects.ls = value
    elif name == "le" and value is not None:
        effects.le = value
    elif name == "lc":
        effects.sets_lc = True
    elif name is not None:
        effects.writes[name] = value


def _mv(family: str, word: int, effects: Effects) -> str | None:
    code = _bits(word, 21, 15)
    name = _moved(family, code)
    shown = name or f".code{code}"
    if family == "aie2":
        constant = (word & 7) == 0b100 and _bits(word, 5, 4) == 3
        value = _signed(_bits(word, 14, 6) << 1 | _bits(word, 3), 10)
        is_copy = _bits(word, 7, 0) == 0b10110010
        added = (word & 3) == 3 and _bits(word, 5, 4) == 3
        offset = f"#{_signed(_bits(word, 9, 6) << 2 | _bits(word, 3, 2), 6)}"
        # A lane of a vector goes to any register; of which width does not matter.
        is_lane = _bits(word, 5, 0) == 0b110101
    else:
        constant = _bits(word, 3, 0) == 0b0101
        value = _signed(_bits(word, 14, 4), 11)
        is_copy = _bits(word, 7, 0) == 0b00000111
        added = (word & 3) == 0 or _bits(word, 4, 0) == 0b01010
        offset = f"#{_signed(_bits(word, 9, 2), 8)}" if (word & 3) == 0 else f"r{_bits(word, 9, 5)}"
        is_lane = False
    if constant:
        _write(effects, name, value)
        return f"mov {shown}, #{value}"
    if is_copy:
        _write(effects, name, None)
        return f"mov {shown}, {_moved(family, _bits(word, 14, 8)) or f'.code{_bits(word, 14, 8)}'}"
    if added:
        _write(effects, name, None)
        return f"add.nc {shown}, r{_bits(word, 14, 10)}, {offset}"
    if is_lane and name is not None:
        _write(effects, name, None)
        return f"vextract {name}, .mv {word:#x}"
    return None


# -- loads and stores: what they do to pointers


def _lda(family: str, word: int, effects: Effects) -> str | None:
    return _lda_aie2(word, effects) if family == "aie2" else _lda_aie2p(word, effects)


def _constant(codes: RegisterCodes, code: int, value: int, effects: Effects) -> str | None:
    """A constant that the slot of loads moves."""
    if code == codes.constant_counter:
        effects.sets_lc = True
        return f"mova lc, #{value}"
    if code & 15 == codes.constant_pointer:
        effects.writes[f"p{code >> 4}"] = value
        return f"mova p{code >> 4}, #{value}"
    if code & 3 == 0:
        effects.writes[f"r{code >> 2}"] = value
        return f"mova r{code >> 2}, #{value}"
    return None


def _loaded(codes: RegisterCodes, code: int, word: int, address: str, effects: Effects) -> str | None:
    if code & 15 != codes.loaded_pointer:
        return None
    effects.writes[f"p{code >> 4}"] = None
    return f"lda p{code >> 4}, .lda {word:#x}{address}"


def _moves_aie2(word: int) -> bool:
    """Return whether an access with bits 20 to 8 as its address moves its pointer on, or may do so."""
    mode = word >> 8
    if mode & 3 == 0:
        # The short form, in bits 20 to 12.
        return mode >> 4 & 7 != 0b011
    is_stack = mode & 1 == 1
    is_indexed = mode & 15 == 0b1010 or mode & 127 == 0b1000010
    return not (is_stack or is_indexed)


def _lda_aie2(word: int, effects: Effects) -> str | None:
    code = _bits(word, 7, 1)
    if word & 1 and _bits(word, 9, 8) == 0 and code & 3 != 3:
        said = _constant(CODES["aie2"], code, _signed(_bits(word, 20, 10), 11), effects)
        return said or f".lda {word:#x}"
    address = _pointer(effects, _bits(word, 20, 18)) if _moves_aie2(word) else ""
    said = None
    if word & 1 and _bits(word, 9, 8):
        said = _loaded(CODES["aie2"], code, word, address, effects)
    return said or f".lda {word:#x}{address}"


def _lda_aie2p(word: int, effects: Effects) -> str | None:
    codes = CODES["aie2p"]
    if word & 3 == 0:
        return _constant(codes, _bits(word, 8, 2), _signed(_bits(word, 19, 9), 11), effects)
    if word & 15 == 0b0010:
        return _loaded(codes, _bits(word, 10, 4), word, "", effects)
    address = _pointer(effects, _bits(word, 19, 17)) if _moves_aie2p(_bits(word, 13, 11)) else ""
    said = _loaded(codes, _bits(word, 10, 4), word, address, effects) if word & 15 == 0b1101 else None
    return said or f".lda {word:#x}{address}"


def _moves_aie2p(mode: int) -> bool:
    return mode != 0 and mode & 3 != 1


def _pointer(effects: Effects, number: int) -> str:
    effects.writes[f"p{number}"] = None
    return f" [p{number}]!"


def _st(family: str, word: int, effects: Effects) -> str | None:
    if family == "aie2":
        # Moves to a stream have no pointer.
        is_stream = (word & 7) == 0b100 or _bits(word, 15, 8) == 0b01111000
        address = "" if is_stream or not _moves_aie2(word) else _pointer(effects, _bits(word, 20, 18))
        return f".st {word:#x}{address}"
    if _bits(word, 6, 0) == 0b0010110:
        if _bits(word, 16, 14) != 0b100:
            return None
        effects.writes[f"p{_bits(word, 19, 17)}"] = None
        return f"movs p{_bits(word, 19, 17)}, .st {word:#x}"
    return f".st {word:#x}" + (_pointer(effects, _bits(word, 19, 17)) if _moves_aie2p(_bits(word, 13, 11)) else "")


def _ldb(family: str, word: int, effects: Effects) -> str | None:
    if family == "aie2":
        if (word & 3) == 0 and _bits(word, 6, 5) == 3:
            # The stack pointer moves.
            return None
        is_moved = (word & 3) != 1 or _bits(word, 9, 7) != 0b011
        return f".ldb {word:#x}" + (_pointer(effects, _bits(word, 15, 13)) if is_moved else "")
    return f".ldb {word:#x}" + (_pointer(effects, _bits(word, 16, 14)) if _moves_aie2p(_bits(word, 10, 8)) else "")


_READERS: dict[str, Callable[[str, int, Effects], str | None]] = {
    "alu": _alu,
    "lng": _lng,
    "mv": _mv,
    "lda": _lda,
    "ldb": _ldb,
    "st": _st,
}
