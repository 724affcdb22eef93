"""Numbers in the sentences of findings: all digits of what was measured, three of what was divided."""

from __future__ import annotations

import math


def exact(value: float, unit: str) -> str:
    """Return a time, or a distance of two, with all its digits.

    Example:
        >>> exact(1_999_999_264, "ns")
        '1,999,999,264 ns'
    """
    return f"{value:,.0f} {unit}" if isinstance(value, float) else f"{value:,} {unit}"


def times_text(value: float) -> str:
    """Return how many times something is as large as something else, with three digits and no exponent.

    Example:
        >>> times_text(2.8176), times_text(281_760.3), times_text(1500.0)
        ('2.82', '282,000', '1,500')
    """
    if value < 1000 or not math.isfinite(value):
        return f"{value:.3g}"
    step = 10 ** (math.floor(math.log10(value)) - 2)
    return f"{round(value / step) * step:,}"
