"""The rooms that one buffer passes: at most six per command, and never back up.

A room handles a buffer if a function of it takes, returns or yields a capture, bytes of it, a batch or a table.
Vocabulary (``errors``, ``wire``, ``trace``, ``families``, ``common``) is not counted: all others use it. Columns that
are derived when they are first read call back from ``trace`` into the decoder that declared them; that is the price of
not computing what is not read.
"""

import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import lanescope
from lanescope import cli
from lanescope.source import Capture, Source
from lanescope.trace import Table, Trace

ROOT = f"{Path(lanescope.__file__).parent}/"
#: From the ground floor up; rooms on one floor do not see each other.
FLOORS = {
    "source": 1,
    "devices": 2,
    "io": 2,
    "analysis": 2,
    "pipeline": 3,
    "cuda": 4,
    "levelzero": 4,
    "view": 5,
    "testing": 5,
    "cli": 6,
}
HANDLED = (Trace, Table, Capture, Source, memoryview, np.ndarray)


def room_of(code):
    file = code.co_filename
    return file[len(ROOT) :].split("/")[0].removesuffix(".py") if file.startswith(ROOT) else None


class Walk:
    """Which rooms were handed something, and which calls went up."""

    def __init__(self):
        self.rooms = set()
        self.upward = set()

    def __call__(self, frame, event, value):
        room = room_of(frame.f_code)
        if room not in FLOORS:
            return
        if not (self._handles(frame) if event == "call" else event == "return" and isinstance(value, HANDLED)):
            return
        self.rooms.add(room)
        caller = frame.f_back
        while caller is not None and room_of(caller.f_code) is None:
            caller = caller.f_back
        above = None if caller is None else room_of(caller.f_code)
        if above in FLOORS and FLOORS[above] < FLOORS[room]:
            self.upward.add(f"{above}.{caller.f_code.co_qualname} -> {room}.{frame.f_code.co_qualname}")

    @staticmethod
    def _handles(frame):
        names = frame.f_code.co_varnames[: frame.f_code.co_argcount + frame.f_code.co_kwonlyargcount]
        return any(isinstance(frame.f_locals.get(name), HANDLED) for name in names)


@pytest.fixture
def walk(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def walk(*arguments):
        assert cli.main(["sim", "aie", "--records", "300", "--overruns", "1", "--seed", "1", "-o", "run.bin"]) == 0
        seen = Walk()
        threading.setprofile(seen)
        sys.setprofile(seen)
        try:
            assert cli.main([*arguments, "run.bin"]) in (0, 1)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        return seen

    return walk


@pytest.mark.parametrize(
    ("arguments", "rooms"),
    [
        (("convert", "-o", "run.pftrace"), {"cli", "pipeline", "source", "devices", "analysis", "io"}),
        (("convert", "-o", "run.json"), {"cli", "pipeline", "source", "devices", "analysis", "io"}),
        (("check",), {"cli", "pipeline", "source", "devices", "analysis", "view"}),
        (("summary",), {"cli", "pipeline", "source", "devices", "analysis", "view"}),
    ],
    ids=["convert to Perfetto", "convert to Chrome JSON", "check", "summary"],
)
def test_a_buffer_passes_six_rooms_and_never_climbs(walk, arguments, rooms):
    seen = walk(*arguments)
    assert seen.rooms <= rooms
    assert {"pipeline", "source", "devices", "analysis"} <= seen.rooms, "the walk saw nothing"
    assert not seen.upward
