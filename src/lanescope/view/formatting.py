"""Formatting of text and numbers for a terminal."""

from __future__ import annotations

#: Categories of characters that could move the cursor, hide text or turn its direction around.
_UNSAFE = {"Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn"}
_SIZES = ("KiB", "MiB", "GiB", "TiB")
_STEPS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))


def escape(text: str) -> str:
    r"""Return the text with control, bidirectional and invisible characters written as escapes.

    Bytes of a file name that is not UTF-8 become ``\xNN``.

    Example:
        >>> print(escape("core\x1b[2J\u202e0"))
        core\x1b[2J\u202e0
    """
    if text.isascii() and text.isprintable():
        return text
    if text.isascii() and text.isprintable():
        return text
    from unicodedata import category

    return "".join(c if category(c) not in _UNSAFE else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # how Python carries a byte that it could not decode
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def format_duration(value: int, unit: str = "ns") -> str:
    """Return a time of three digits with a unit that fits; cycles stay cycles.

    Example:
        >>> format_duration(1_234_500), format_duration(999_999), format_duration(999), format_duration(16737, "cycles")
        ('1.23 ms', '1 ms', '999 ns', '16737 cycles')
    """
    if unit != "ns":
        return f"{value} {unit}"
    for size, name in _STEPS[:-1]:
        if abs(value) * 2000 >= size * 1999:  # what would round up to the next unit belongs there
            scaled = value / size
            return f"{scaled:.3g} {name}" if abs(scaled) < 999.5 else f"{scaled:.0f} {name}"
    return f"{value} ns"


def format_count(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun: ``1 slice``, ``2 slices``."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def format_total(count: int, one: str, many: str = "") -> str:
    """Return a total with its noun and thousands separators.

    Example:
        >>> format_total(19008, "slice"), format_total(1, "slice")
        ('19,008 slices', '1 slice')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def format_bytes(size: int) -> str:
    """Return a size in the largest binary unit that it reaches.

    Example:
        >>> format_bytes(1), format_bytes(1023), format_bytes(83332), format_bytes(1 << 30)
        ('1 byte', '1023 bytes', '81.4 KiB', '1.0 GiB')
    """
    if size < 1024:
        return format_count(size, "byte")
    exponent = min((size.bit_length() - 1) // 10, len(_SIZES))
    return f"{size / 1024**exponent:.1f} {_SIZES[exponent - 1]}"


def display_width(text: str) -> int:
    """Return how many columns of a terminal the text takes.

    Example:
        >>> display_width("core"), display_width("名前"), display_width("e\u0301")
        (4, 4, 1)
    """
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def fit_width(text: str, width: int, ellipsis: str = "…") -> str:
    """Return the text in exactly ``width`` columns: padded, or with its middle left out, as its ends tell most.

    Example:
        >>> fit("core", 6), fit("gemm_kernel_17", 9)
        ('core  ', 'gemm…l_17')
    """
    if display_width(text) > width:
        room = max(width - display_width(ellipsis), 0)
        head, tail = text[:width], text[-width:]  # a hostile name may be very long
        while display_width(head) > (room + 1) // 2:
            head = head[:-1]
        while display_width(tail) > room // 2:
            tail = tail[1:]
        text = (head + ellipsis + tail) if width >= display_width(ellipsis) else ""
    return text + " " * (width - display_width(text))
