"""The documentation made from layouts, and the examples in the docstrings."""

import doctest
import importlib

import pytest

from lanescope.wire import Field, Record
from lanescope.wire.reference_docs import table
from wire.formats import FRAME_SETS, HEADER, MODE2, PHASE, STRUCTS


def rows_of(text):
    """Split the first Markdown table into cells."""
    return [line.strip("| ").split(" | ") for line in text.split("\n\n")[0].splitlines()]


@pytest.mark.parametrize("layout", [HEADER, *STRUCTS, *FRAME_SETS], ids=lambda layout: layout.name)
def test_every_table_is_rectangular(layout):
    for block in table(layout).split("\n\n"):
        if block.startswith("|"):
            assert len({line.count("|") for line in block.splitlines()}) == 1


def test_record_table_says_what_lies_where():
    rows = rows_of(table(HEADER))
    assert rows[2:5] == [
        ["31", "`parity`", "", "documented"],
        ["30:28", "`reserved_high`", "", "documented"],
        ["27:21", "`column`", "", "documented"],
    ]
    assert ["14:12", "`type`", "0 = `core`, 1 = `mem`, 2 = `shim`, 3 = `memtile`", "documented"] in rows
    assert table(HEADER).endswith("Source: AMD AM020 chapter 2")


def test_struct_table_says_what_lies_where():
    rows = rows_of(table(PHASE))
    assert ["36", "6", "`local_depth_at_start`", "i16[3]", "Ready tasks: AIC, AIV, MIX.", "documented"] in rows
    assert ["0", "8", "`start_time`", "u64", "in cycles", "documented"] in rows


def test_frame_set_table_names_frames_fields_and_open_codes():
    frames, fields, codes = table(MODE2).split("\n\n")
    assert "| `loop_count` | 32 | `010` overflow[1] count[28] |  | published |  |" in frames.splitlines()
    assert "| `pc` | `new_pc`, `start` |  | that of its frame |" in fields.splitlines()
    assert "filled up with `filler0`" in codes
    assert "Unassigned codes: `0011`, `011`," in codes


def test_bars_and_line_breaks_cannot_break_a_table():
    record = Record("r", bits=1, fields=(Field("a", lsb=0, width=1, doc="yes|no\nmaybe"),))
    assert table(record).splitlines()[2] == "| 0 | `a` | yes\\|no maybe | documented |"


@pytest.mark.parametrize("module", ["record", "frame_codec", "c_struct", "reference_docs", "strategies"])
def test_docstring_examples(module):
    found = doctest.testmod(importlib.import_module(f"lanescope.wire.{module}"))
    assert found.attempted > 0
    assert found.failed == 0
