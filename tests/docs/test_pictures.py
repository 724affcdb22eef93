"""Pictures that are kept show what is today: the import contract, and what the tool draws."""

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
