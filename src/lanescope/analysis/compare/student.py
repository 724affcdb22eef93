"""Student's t distribution for whole degrees of freedom, in closed form."""

from __future__ import annotations

from math import atan, cos, inf, pi, sin, sqrt


def two_sided_p(t: float, freedom: int) -> float:
    """Return the chance of a ``|t|`` at least as large.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.

    Example:
        >>> round(two_sided_p(2.776, 4), 4), round(two_sided_p(12.706, 1), 4)
        (0.05, 0.05)
    """
    if t == inf:
        return 0.0
    angle = atan(abs(t) / sqrt(freedom))
    term, total = (cos(angle), cos(angle)) if freedom % 2 else (1.0, 1.0)
    for step in range(3 if freedom % 2 else 2, freedom - 1, 2):
        term *= cos(angle) ** 2 * (step - 1) / step
        total += term
    inside = sin(angle) * total if freedom > 1 else 0.0
    if freedom % 2:
        inside = 2 / pi * (angle + inside)
    return max(0.0, 1.0 - inside)


def critical_t(p: float, freedom: int) -> float:
    """Return the ``t`` that ``|t|`` reaches with chance ``p``, 0 < p < 1.

    Example:
        >>> round(critical_t(0.05, 4), 3)
        2.776
    """
    low, high = 0.0, 1.0
    while two_sided_p(high, freedom) > p:
        low, high = high, high * 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if two_sided_p(middle, freedom) > p else (low, middle)
    return high
