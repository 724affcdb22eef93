"""Text that is safe and pleasant on a terminal."""

from __future__ import annotations

import unicodedata

#: Categories of characters that could move the cursor, hide text or turn its direction around.
_UNSAFE = {"Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn"}
_STEPS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))


def escape(text: str) -> str:
    r"""Return the text with control, bidirectional and invisible characters written as escapes.

    Example:
        >>> print(escape("core\x1b[2J\u202e0"))
        core\x1b[2J\u202e0
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if unicodedata.category(c) not in _UNSAFE else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def time_text(value: int, unit: str = "ns") -> str:
    """Return a time with a unit that fits; cycles stay cycles.

    Example:
        >>> time_text(1_234_500), time_text(999), time_text(16737, "cycles")
        ('1.23 ms', '999 ns', '16737 cycles')
    """
    if unit != "ns":
        return f"{value} {unit}"
    for size, name in _STEPS:
        if abs(value) >= size:
            return f"{value} ns" if size == 1 else f"{value / size:.3g} {name}"
    return f"{value} ns"


def count_text(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun: ``1 slice``, ``2 slices``."""
    return f"{count} {one if count == 1 else many or one + 's'}"
