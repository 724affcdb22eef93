"""Draws the pictures of pages when the documentation is built: nothing that a command can draw is kept by hand.

A page shows ``images/made/PAGE/FILE.svg``. The page is run, and FILE, a capture that its commands make or read, is
drawn by ``lanescope convert``. A command of the page may write FILE.svg itself.

``python docs/page_pictures.py`` draws the picture of the repository's first page, which is kept.
"""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import page_runner

if TYPE_CHECKING:
    from sphinx.application import Sphinx

#: The picture of the first page of the repository, where no documentation is built.
FIRST = page_runner.DOCS / "images/first-screen.svg"


def setup(app: Sphinx) -> dict[str, bool]:
    """Draw and pack before Sphinx reads its sources."""
    app.connect("builder-inited", lambda app: draw_all(Path(app.srcdir)))
    app.connect("builder-inited", lambda app: pack(Path(app.srcdir) / "images/made/captures.zip"))
    return {"parallel_read_safe": True}


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
                target = source / "images/made" / below / name
                drawn = picture(Path(folder), name)
                target.parent.mkdir(parents=True, exist_ok=True)
                if not target.exists() or target.read_text() != drawn:
                    target.write_text(drawn)


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
