"""Formatting of text and numbers for a terminal."""

from __future__ import annotations

#: Categories of characters that could move the cursor, hide text or turn its direction around.
_UNSAFE = {"Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn"}
_SIZES = ("KiB", "MiB", "GiB", "TiB")
#: Units that a person can ask for, how they are written, and how many ns they have.
UNITS = {"ns": ("ns", 1), "us": ("µs", 1_000), "ms": ("ms", 1_000_000), "s": ("s", 1_000_000_000)}
_STEPS = (("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1_000))
#: Below this share one decimal shows nothing.
_SMALL = 0.0005
#: From here on, digits after the point are not shown.
_WHOLE = 1000


def escape(text: str) -> str:
    r"""Return the text with control, bidirectional and invisible characters written as escapes.

    Bytes of a file name that is not UTF-8 become ``\xNN``.

    Example:
        >>> print(escape("core\x1b[2J\u202e0"))
        core\x1b[2J\u202e0
    """
    if text.isascii() and text.isprintable():
        return text
    from unicodedata import category

    return "".join(c if category(c) not in _UNSAFE else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # how Python carries a byte that it could not decode
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def number(value: float) -> str:
    """Return a number with separators; of one that is not whole, three digits or all before the point.

    Example:
        >>> number(1234567), number(0.36221874973827844), number(1234.5), number(12.0)
        ('1,234,567', '0.362', '1,234', '12.0')
    """
    if isinstance(value, int):
        return f"{value:,}"
    if abs(value) >= _WHOLE - 0.5:
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.3g}"
    return three_digits(value) if value == 0 or abs(value) >= 0.001 else f"{value:.3g}"


def percent(value: float) -> str:
    """Return a share with one decimal; one too small for it is not called nothing.

    Example:
        >>> percent(0.2468), percent(0.0001), percent(0.0), percent(1.0)
        ('24.7%', '<0.1%', '0.0%', '100.0%')
    """
    return "<0.1%" if 0 < value < _SMALL else f"{value:,.1%}"


def duration(value: float, unit: str = "") -> str:
    """Return a time in ns with three digits and the unit that fits, or in one unit with three decimals.

    Example:
        >>> duration(1_240_000), duration(608), duration(15_800_000), duration(0), duration(999_500)
        ('1.24 ms', '608 ns', '15.8 ms', '0 ns', '1.00 ms')
        >>> duration(1_240_123, "us"), duration(12, "ms"), duration(12, "ns")
        ('1,240.123', '<0.001', '12')
    """
    if unit:
        scaled = value / UNITS[unit][1]
        if unit == "ns":
            return number(value)
        return "<0.001" if 0 < scaled < 0.0005 else f"{scaled:,.3f}"
    size = abs(value)
    for name, step in _STEPS:
        if size >= step * 0.9995:  # what would be rounded up to the next unit belongs there
            return f"{three_digits(value / step)} {name}"
    return f"{value} ns" if isinstance(value, int) else f"{three_digits(value)} ns"


def format_duration(value: int, unit: str = "ns") -> str:
    """Return a length of time as text: three digits for ns, all of them for cycles.

    Example:
        >>> format_duration(18_560), format_duration(11_652_771, "cycles"), format_duration(1, "cycles")
        ('18.6 µs', '11,652,771 cycles', '1 cycle')
    """
    return duration(value) if unit == "ns" else f"{value:,} {'cycle' if (value, unit) == (1, 'cycles') else unit}"


def three_digits(value: float) -> str:
    """Return three digits, or all before the point."""
    size = abs(value)
    decimals = 2 if size < 9.995 else 1 if size < 99.95 else 0
    if 0 < size < 0.0995:
        return f"{value:.3g}"
    return f"{value:,.{3 if 0 < size < 0.9995 else decimals}f}"


def format_count(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun and thousands separators.

    Example:
        >>> format_count(19008, "slice"), format_count(1, "slice")
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
        return f"{size} byte" if size == 1 else f"{size} bytes"
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


def fit_width(text: str, width: int, ellipsis: str = "…", head_share: float = 0.5) -> str:
    """Return the text in exactly ``width`` columns: padded, or with its middle left out, as its ends tell most.

    Args:
        text: the text.
        width: columns of a terminal.
        ellipsis: what replaces the middle.
        head_share: part of the characters that are left which comes from the beginning.

    Example:
        >>> fit_width("core", 6), fit_width("gemm_kernel_17", 9), fit_width("gemm_kernel_17", 9, head_share=0.25)
        ('core  ', 'gemm…l_17', 'ge…nel_17')
    """
    if display_width(text) > width:
        room = max(width - display_width(ellipsis), 0)
        first = room - int(room * (1 - head_share))
        head, tail = text[:width], text[-width:]  # a hostile name may be very long
        while display_width(head) > first:
            head = head[:-1]
        while display_width(tail) > room - first:
            tail = tail[1:]
        text = (head + ellipsis + tail) if width >= display_width(ellipsis) else ""
    return text + " " * (width - display_width(text))
