"""Draws the pictures of pages when the documentation is built: nothing that a command can draw is kept by hand.

A page shows ``images/made/PAGE/FILE.svg``. The page is run, and FILE, a capture that its commands make or read, is
drawn by ``lanescope convert``. A command of the page may write FILE.svg itself.

Pictures are drawn for paper; beside each lies FILE.dark.svg, with the colours of dark pages, which are shown on those.

``python docs/page_pictures.py`` draws the picture of the repository's first page, which is kept.
"""

from __future__ import annotations

import re
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import page_runner

from lanescope.view.model.palette import LIGHT

if TYPE_CHECKING:
    from sphinx.application import Sphinx

#: The picture of the first page of the repository, where no documentation is built.
FIRST = page_runner.DOCS / "images/first-screen.svg"

#: Colours of dark pages by what they are for; slices and their labels have the same in both.
_DARK = {
    "background": "#131416", "background2": "#19202a", "panel": "#151b23", "ink": "#e4e9f0", "dim": "#9aa7b6",
    "line": "#202834", "edge": "#2f3947", "accent": "#6ba6ff", "bad": "#ff8a80", "warn": "#f0b860",
    "neutral": "#8a95a3", "hatch": "#303c4b", "loss": "#6d3d3b", "area": "#46648c", "flow": "#ff7ab2",
}  # fmt: skip
_OF_LIGHT = {LIGHT[use]: colour for use, colour in _DARK.items()}
_COLOUR = re.compile(r'(?<=fill="|roke=")#[0-9a-f]{6}(?=")')
_SHOWN = re.compile(r"(!\[[^\]]*\]\([^)]*images/made/[^)]*)\.svg\)")


def setup(app: Sphinx) -> dict[str, bool]:
    """Draw and pack before Sphinx reads its sources."""
    app.connect("builder-inited", lambda app: draw_all(Path(app.srcdir)))
    app.connect("builder-inited", lambda app: pack(Path(app.srcdir) / "images/made/captures.zip"))
    app.connect("source-read", lambda app, name, source: source.__setitem__(0, in_both_themes(source[0])))
    return {"parallel_read_safe": True}


def in_both_themes(text: str) -> str:
    """Return a page that shows each picture that its commands make once on light pages and once on dark ones.

    Example:
        >>> in_both_themes("![Lanes](images/made/aie/run.svg)")
        '![Lanes](images/made/aie/run.svg){.only-light}![Lanes](images/made/aie/run.dark.svg){.only-dark}'
    """
    return _SHOWN.sub(r"\1.svg){.only-light}\1.dark.svg){.only-dark}", text)


def dark(drawn: str) -> str:
    """Return a picture in the colours of dark pages."""
    return _COLOUR.sub(lambda found: _OF_LIGHT.get(found[0], found[0]), drawn)


def draw_all(source: Path) -> None:
    """Draw the pictures of all pages below ``images/made``."""
    for page in page_runner.pages():
        text = page.read_text()
        wanted = page_runner.pictures(text)
        if not wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            page_runner.run_page(text, Path(folder), name=page.name)
            for below, name in wanted:
                drawn = picture(Path(folder), name)
                target = source / "images/made" / below / name
                target.parent.mkdir(parents=True, exist_ok=True)
                for path, content in ((target, drawn), (target.with_suffix(".dark.svg"), dark(drawn))):
                    if not path.exists() or path.read_text() != content:
                        path.write_text(content)


def pack(target: Path) -> None:
    """Pack the captures that pages read, for readers without a checkout: below ``captures``, as the pages name them."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(page_runner.CAPTURES.rglob("*")):
            if path.is_file():
                # Always the same bytes, so that a build that changes nothing changes no file.
                entry = zipfile.ZipInfo(f"captures/{path.relative_to(page_runner.CAPTURES).as_posix()}")
                packed.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)


def picture(folder: Path, name: str) -> str:
    """Return the picture ``CAPTURE.svg`` of a capture in a folder.

    Raises:
        PageError: there is neither the picture nor the capture.
    """
    made = folder / name
    if made.is_file():
        return made.read_text()
    capture = folder / name.removesuffix(".svg")
    if not capture.exists():
        raise page_runner.PageError(f"no command makes {name} or {capture.name}")
    words = ["lanescope", "convert", name.removesuffix(".svg"), "-o", name]
    status, printed = page_runner.call(words, folder)
    if status:
        raise page_runner.PageError(f"$ {' '.join(words)}\n{printed}")
    return made.read_text()


def first() -> str:
    """Return the picture of the first page of the repository: that of the capture which its commands make."""
    with tempfile.TemporaryDirectory() as folder:
        text = (page_runner.ROOT / "README.md").read_text()
        page_runner.run_page(text, Path(folder), name="README.md")
        return picture(Path(folder), "run.npy.svg")


if __name__ == "__main__":
    FIRST.write_text(first())
