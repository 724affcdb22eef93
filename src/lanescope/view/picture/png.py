"""A picture as PNG, from its SVG: with resvg (the extra ``png``)."""

from __future__ import annotations

from lanescope.errors import MissingDependencyError

#: Pixels of the file for each pixel of the picture: sharp in print.
SCALE = 2
#: Fonts, the first of which that this machine has is taken where the picture leaves the choice.
_FONTS = ("Inter", "Segoe UI", "Helvetica Neue", "Arial", "Liberation Sans", "Noto Sans", "DejaVu Sans", "Verdana")
_PROBE = '<svg xmlns="http://www.w3.org/2000/svg" width="30" height="12" font-family="{}"><text y="10">{}</text></svg>'


def render(svg: bytes) -> bytes:
    """Return a picture as PNG.

    Raises:
        MissingDependencyError: resvg is not installed, or this machine has no font.
    """
    try:
        import resvg_py
    except ImportError:
        raise MissingDependencyError("writing PNG requires resvg", hint="run pip install 'lanescope[png]'") from None
    empty = bytes(resvg_py.svg_to_bytes(svg_string=_PROBE.format("", "")))
    probes = ((font, resvg_py.svg_to_bytes(svg_string=_PROBE.format(font, "Mg"))) for font in _FONTS)
    # Where no font fits, texts are left out without a word.
    found = next((font for font, drawn in probes if bytes(drawn) != empty), None)
    if found is None:
        raise MissingDependencyError("no known font on this machine for the texts of a PNG", hint="write .svg instead")
    return bytes(resvg_py.svg_to_bytes(svg_string=svg.decode(), zoom=SCALE, sans_serif_family=found))
