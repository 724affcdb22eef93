"""Colours of names: the same name has the same colour everywhere, as far as eight colours allow."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: Fills of slices, in light and in dark themes. Any two of them, and each of them and grey, differ by 13 (CIEDE2000) or
#: more for normal, protan, deutan and tritan vision; none is red, which is for what is wrong.
FILLS = ("#8ec2fd", "#fcaa2b", "#5a947e", "#966cd7", "#d06217", "#b488a9", "#afaf7b", "#fbe1b0")
#: Text on them.
LABEL = "#10151c"
#: Instead of a number of ``FILLS``: the grey of what waits, so that work stands out.
NEUTRAL = -1
#: Further colours of the light theme, which printed pictures have.
LIGHT = {
    "background": "#ffffff", "background2": "#f4f6f9", "panel": "#fafbfc", "ink": "#1b2430", "dim": "#5a6675",
    "line": "#e9edf2", "edge": "#d5dbe3", "accent": "#1a66dd", "bad": "#b42318", "warn": "#9a5b00",
    "neutral": "#cfd6de", "hatch": "#d3dae3", "loss": "#e6bcb6", "area": "#9db8d9", "flow": "#c2185b",
}  # fmt: skip

_COUNT = len(FILLS)
#: The way to the next colour if one is taken; prime to their number, so that it reaches all.
_STEP = 3
_OFFSET, _PRIME = 0x811C9DC5, 0x01000193


def fnv1a(text: str) -> int:
    """Return the 32-bit FNV-1a hash of a text as UTF-8.

    Source: RFC 9923, sections 2 and 5.

    Example:
        >>> hex(fnv1a("")), hex(fnv1a("foobar"))
        ('0x811c9dc5', '0xbf9cf968')
    """
    found = _OFFSET
    for byte in text.encode("utf-8", "replace"):
        found = ((found ^ byte) * _PRIME) & 0xFFFFFFFF
    return found


def colours(names: Sequence[str], kinds: Sequence[str]) -> list[int]:
    """Return the number of the colour of each name, in ``FILLS``, or ``NEUTRAL`` for what waits.

    Names that differ in digits only have one colour, unless all do. Of the most frequent ones no two have the same.

    Args:
        names: the most frequent first; for two traces side by side, those of both.
        kinds: kind of work of each.

    Example:
        >>> colours(["mma 1", "mma 2", "load", "wait_full"], ["compute", "compute", "load", "wait"])
        [4, 4, 2, -1]
    """
    stems = [re.sub("[0-9]+", "#", name) for name in names]
    working = [stem for stem, kind in zip(stems, kinds, strict=True) if kind != "wait"]
    if len(set(working)) == 1:
        stems = list(names)
        working = [stem for stem, kind in zip(stems, kinds, strict=True) if kind != "wait"]
    chosen: dict[str, int] = {}
    for stem in dict.fromkeys(working):
        colour = fnv1a(stem) % _COUNT
        while len(chosen) < _COUNT and colour in chosen.values():
            colour = (colour + _STEP) % _COUNT
        chosen[stem] = colour
    return [NEUTRAL if kind == "wait" else chosen[stem] for stem, kind in zip(stems, kinds, strict=True)]
