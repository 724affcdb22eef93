"""The parser's formatter knows how wide the terminal is as ``shutil`` does, without importing it."""

import os
import shutil
from pathlib import Path

import pytest

from lanescope.cli import parser


@pytest.mark.parametrize("columns", [None, "", "0", "40", "123", "wide"])
@pytest.mark.parametrize("of_terminal", [None, 0, 97])
def test_the_width_is_that_of_shutil(monkeypatch, columns, of_terminal):
    def size(number):
        if of_terminal is None:
            raise OSError("no terminal")
        return os.terminal_size((of_terminal, 24))

    monkeypatch.setattr(os, "get_terminal_size", size)
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    with Path(os.devnull).open() as stdout:
        monkeypatch.setattr("sys.__stdout__", stdout)
        assert parser._columns() == shutil.get_terminal_size().columns
