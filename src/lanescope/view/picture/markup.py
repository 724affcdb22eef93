"""Pieces of SVG: numbers, texts, boxes, steps of counters and marks of findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape as html_escape
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.view.formatting import display_width, escape, fit_width

Floats = npt.NDArray[np.float64]

#: Font of marks, width of one of its characters, about, and room from the tip of a mark to its text.
_MARK_FONT, _CHARACTER, _BESIDE = 9, 5.6, 6
#: Widths of characters by the size of the font, at most, of the fonts that pictures name; all others are as `_USUAL`.
_USUAL = 0.64
_WIDTHS = {
    **dict.fromkeys("ijl|!.,:;' `", 0.4),
    **dict.fromkeys('frtI()[]{}/\\"-_', 0.53),
    **dict.fromkeys("ABCDGHKNOPQRUVXw&", 0.82),
    **dict.fromkeys("mMW@%…+<>=#~^", 1.0),
}
#: Values beyond this are drawn as this: their difference is a number, too.
_LARGEST = 1e300


def safe(text: str) -> str:
    """Return a text for the inside of an element: what moves or hides text as escapes, no markup."""
    return html_escape(escape(text), quote=True)


def text_width(text: str, size: float) -> float:
    """Return how wide a text is at most, in a font of this size."""
    return size * sum(_WIDTHS.get(c, _USUAL) if c.isascii() or c == "…" else display_width(c) for c in text)


def fitted(text: str, room: float, size: float) -> str:
    """Return a text that fits the room: as it is, or with its middle left out.

    Example:
        >>> fitted("gemm", 40, 10), fitted("matmul_spmd", 40, 10), fitted("silu_filtill", 40, 10)
        ('gemm', 'ma…d', 'sil…ill')
    """
    if text_width(text, size) <= room:
        return text
    most = min(len(text) - 1, int(room / size / min(_WIDTHS.values())))
    while most > 0 and text_width(cut := fit_width(text, most).rstrip(), size) > room:
        most -= 1
    return cut if most > 0 else ""


def coordinate(value: float) -> str:
    """Return a coordinate with two decimals at most."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def boxes(places: Iterable[tuple[float, float]], y: float, height: float) -> str:
    """Return a path of boxes between left and right edges."""

    def each() -> Iterator[str]:
        for left, right in places:
            wide = right - left
            yield (f"M{coordinate(left)} {coordinate(y)}h{coordinate(wide)}v{coordinate(height)}h{coordinate(-wide)}z")

    return "".join(each())


class Steps(NamedTuple):
    """A counter as an area between its values and zero: its path, and its least and largest value."""

    path: str
    low: float
    high: float


def steps(x: Floats, value: Floats, box: tuple[float, float, float, float]) -> Steps:
    """Return samples as an area: each value holds until the next sample, of a column of pixels the extreme is shown.

    Args:
        x: float64 [n], pixels from the left edge of the box, rising; 1 at least.
        value: float64 [n].
        box: left, top, right and bottom edge.
    """
    left, top, right, bottom = box
    value = np.clip(np.nan_to_num(value), -_LARGEST, _LARGEST)
    low, high = min(float(value.min()), 0.0), max(float(value.max()), 0.0)
    scale = (bottom - top) / ((high - low) or 1.0)
    column = np.floor(x).astype(np.int64)
    first = np.flatnonzero(np.diff(column, prepend=column[0] - 1))
    last = np.append(first[1:], len(value)) - 1
    most, least = np.maximum.reduceat(value, first), np.minimum.reduceat(value, first)
    extreme = np.where(most >= -least, most, least)
    found = [f"M{coordinate(left + int(column[0]))} {coordinate(bottom + low * scale)}"]
    for at, far, then in zip(column[first].tolist(), extreme.tolist(), value[last].tolist(), strict=True):
        found.append(f"H{coordinate(left + at)}V{coordinate(bottom - (far - low) * scale)}")
        if then != far:
            found.append(f"H{coordinate(left + at + 1)}V{coordinate(bottom - (then - low) * scale)}")
    found.append(f"H{coordinate(right)}V{coordinate(bottom + low * scale)}Z")
    return Steps("".join(found), low, high)


class Mark(NamedTuple):
    """A finding at its place: where, its colour, how bad it is (0 the worst), its code, its severity and its title."""

    x: float
    colour: str
    rank: int
    code: str
    severity: str
    title: str


def marks(found: Sequence[Mark], y: float, right: float) -> list[str]:
    """Return triangles with the codes behind them; of those that lie close together the codes stand behind the last.

    Args:
        found: the findings of a lane.
        y: where the tips are.
        right: edge that no text goes beyond.
    """
    parts: list[str] = []
    clusters: list[list[Mark]] = []
    for mark in sorted(found, key=lambda one: one.x):
        if clusters and mark.x - clusters[-1][-1].x < _width(_text(clusters[-1])) + 2 * _BESIDE:
            clusters[-1].append(mark)
        else:
            clusters.append([mark])
    for cluster in clusters:
        for one in sorted(cluster, key=lambda one: -one.rank):  # the worst on top
            told = safe(f"{one.code} {one.severity}: {one.title}")
            tip = f"M{coordinate(one.x)} {coordinate(y)}l4 7h-8z"
            parts.append(f'<path fill="{one.colour}" d="{tip}"><title>{told}</title></path>')
        text, worst = _text(cluster), min(cluster, key=lambda one: one.rank)
        x, anchor = cluster[-1].x + _BESIDE, ""
        if x + _width(text) > right:
            x, anchor = cluster[0].x - _BESIDE, ' text-anchor="end"'
        parts.append(
            f'<text x="{coordinate(x)}" y="{coordinate(y + 7)}" font-size="{_MARK_FONT}" fill="{worst.colour}"{anchor}>'
            f"{safe(text)}</text>"
        )
    return parts


def _text(cluster: Sequence[Mark]) -> str:
    """Return the codes of a cluster, the worst first, each severity once."""
    by_severity: dict[str, dict[str, None]] = {}
    for one in sorted(cluster, key=lambda one: one.rank):
        by_severity.setdefault(one.severity, {})[one.code] = None
    return "; ".join(f"{', '.join(codes)} {severity}" for severity, codes in by_severity.items())


def _width(text: str) -> float:
    return len(text) * _CHARACTER
