"""Instructions of AI engines, as far as they steer the program: branches, loop registers, writes of pointers.

Source: llvm-aie's assembler syntax (branches, ``movxm ls``, ``add.nc lc``), Chess listings (the same in upper case).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

#: The largest bundle.
MOST_BYTES = 16
_SIZES = {1: 2, 2: 4}
_IMMEDIATE = re.compile(r"#\s*(-?)(0x[0-9a-f]+|\d+)$")
_REGISTER = re.compile(r"[a-z]+\d*$")
_BRACKET = re.compile(r"\[\s*([a-z]+\d*)[^\[\]]*\](\s*,|\s*!)?")
#: Instructions that write none of their operands, but for what is in brackets.
_READS_ONLY = re.compile(r"(st|vst|j$|jl$|jz$|jnz$|ret$|nop|acq|rel|event|done$)")


@dataclass(slots=True)
class Effects:
    """Effect of a bundle on the control flow; the attributes are those of ``Bundle``."""

    kind: str = "plain"
    target: int | None = None
    register: str | None = None
    writes: dict[str, int | None] = field(default_factory=dict)
    ls: int | None = None
    le: int | None = None
    sets_lc: bool = False
    requests_lock: bool = False


def clean(text: str) -> str:
    """Return instructions without comments, and with single spaces."""
    return " ".join(text.split("//", 1)[0].split())


def least_bytes(text: str) -> int:
    """Return what a bundle takes at least, by its instructions."""
    slots = [slot for slot in text.split(";") if slot.strip()]
    if len(slots) == 1 and slots[0].strip().lower() == "nop":
        return 2
    return _SIZES.get(len(slots), 6) if len(slots) > 1 else 4


def read(text: str) -> Effects:
    """Read the instructions of a bundle, separated by semicolons."""
    effects = Effects()
    for slot in text.lower().split(";"):
        mnemonic, _, rest = slot.strip().partition(" ")
        operands = [part.strip() for part in _split(rest)]
        if mnemonic in ("j", "jl", "jz", "jnz", "jnzd", "ret"):
            _branch(effects, mnemonic, operands)
        elif mnemonic.split(".")[0] in ("acq", "acqc", "acquire"):
            effects.requests_lock = True
        elif mnemonic == "done":
            effects.kind = "halt"
        if mnemonic:
            _writes(effects, mnemonic, operands, rest)
    return effects


def _split(operands: str) -> list[str]:
    """Split at commas outside of brackets."""
    parts, depth, part = [], 0, ""
    for character in operands:
        depth += (character == "[") - (character == "]")
        if character == "," and depth <= 0:
            parts.append(part)
            part = ""
        else:
            part += character
    return [*parts, part] if part.strip() else parts


def _immediate(operand: str) -> int | None:
    found = _IMMEDIATE.match(operand)
    # What no address has is cut off: int() of a huge number takes long.
    if not found or len(found[2]) > 20:
        return None
    return int(found[1] + found[2], 0) if found[2].startswith("0x") else int(found[1] + found[2])


def _branch(effects: Effects, mnemonic: str, operands: list[str]) -> None:
    last = operands[-1].split("<")[0].strip() if operands else ""
    target = _immediate(last)
    is_direct = target is not None
    if mnemonic == "ret":
        effects.kind = "return"
        return
    if mnemonic in ("j", "jl"):
        names = ("jump", "jump_indirect") if mnemonic == "j" else ("call", "call_indirect")
    else:
        names = ("branch", "branch_indirect")
    effects.kind = names[0] if is_direct else names[1]
    effects.target = target
    effects.register = None if is_direct else last


def _writes(effects: Effects, mnemonic: str, operands: list[str], rest: str) -> None:
    # A pointer is moved on behind an access: `lda r0, [p1], #4`; by itself: `padda [p0], m1`.
    for found in _BRACKET.finditer(rest):
        if found[2] or mnemonic.startswith(("padd", "vpadd")):
            effects.writes[found[1]] = None
    if not operands or _READS_ONLY.match(mnemonic) or not _REGISTER.match(operands[0]):
        return
    name = operands[0]
    constant = _immediate(operands[1]) if mnemonic.startswith("mov") and len(operands) == 2 else None
    if name == "ls" and constant is not None:
        effects.ls = constant
    elif name == "le" and constant is not None:
        effects.le = constant
    elif name == "lc":
        effects.sets_lc = True
    else:
        effects.writes[name] = constant
