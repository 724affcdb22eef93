"""Pictures that are kept show what is today: the import contract, and what the tool draws."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("name", "function"), [("rooms.svg", "rooms"), ("way-of-a-buffer.svg", "way")])
def test_the_picture_is_drawn_from_the_contract(name, function):
    drawn = runpy.run_path(str(ROOT / "tools/draw_rooms.py"))[function]()
    assert (ROOT / "docs/images" / name).read_text() == drawn, "run tools/draw_rooms.py"


def test_every_room_of_the_package_is_in_the_picture():
    tools = runpy.run_path(str(ROOT / "tools/draw_rooms.py"))
    drawn = {room for floor in tools["floors"]() for room in floor}
    source = ROOT / "src/lanescope"
    rooms = {path.stem for path in source.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert drawn == rooms - {"__init__", "__main__", "__pycache__", "_native", "lazy_names", "py"}


def test_the_picture_of_the_first_page_is_that_of_its_commands(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import page_pictures

    assert page_pictures.FIRST.read_text() == page_pictures.first(), "run docs/page_pictures.py"


def test_dark_pages_have_dark_pictures_that_say_the_same(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import page_pictures

    from lanescope.view.model.palette import FILLS, LABEL, LIGHT

    drawn = page_pictures.FIRST.read_text()
    dark = page_pictures.dark(drawn)
    assert re.sub("#[0-9a-f]{6}", "", dark) == re.sub("#[0-9a-f]{6}", "", drawn)
    colours = {light: set(re.findall("#[0-9a-f]{6}", text)) for light, text in ((True, drawn), (False, dark))}
    assert set(LIGHT.values()) & colours[False] == set()
    assert {LABEL, *FILLS} & colours[False] == {LABEL, *FILLS} & colours[True] != set()
    on_page = page_pictures.in_both_themes("a ![x](../images/made/cuda/run.npy.svg) b ![y](images/rooms.svg)")
    assert on_page == (
        "a ![x](../images/made/cuda/run.npy.svg){.only-light}![x](../images/made/cuda/run.npy.dark.svg){.only-dark}"
        " b ![y](images/rooms.svg)"
    )
