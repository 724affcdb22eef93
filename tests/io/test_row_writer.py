"""The native writer of rows as text, against Python's own formatting."""

import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lanescope._native import core


def bits(*columns):
    """Return columns (lists of one value) as the writer takes them."""
    return np.array([np.asarray(column).view(np.uint64) for column in columns], np.uint64)


def test_rows_are_checked_before_they_are_written():
    values, which = np.zeros((1, 2), np.uint64), np.zeros(2, np.uint32)
    good = core.RowWriter([(["a", "b"], [0], "u")], [])
    assert good.format(which, values, ",") == b"a0b,a0b"
    for texts, columns, kinds in ((["a"], [0], "u"), (["a", "b"], [0], ""), (["a", "b"], [0], "x")):
        with pytest.raises(ValueError, match=r"one text more|unknown kind"):
            core.RowWriter([(texts, columns, kinds)], [])
    for rows, matrix, message in (
        (which, np.zeros((0, 2), np.uint64), "do not fit"),
        (which[:1], values, "do not fit"),
        (which + np.uint32(1), values, "a line that is not there"),
    ):
        with pytest.raises(ValueError, match=message):
            good.format(rows, matrix, ",")
    with pytest.raises(ValueError, match="a text that is not there"):
        core.RowWriter([(["", ""], [0], "t")], ["x"]).format(which, values + np.uint64(1), "")
    for number in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match="JSON has no number"):
            core.RowWriter([(["", ""], [0], "f")], []).format(which[:1], bits([number]), "")


@given(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**64 - 1))
def test_integers_of_any_size_are_written(signed, unsigned):
    values = bits([np.int64(signed)], [np.uint64(unsigned)])
    writer = core.RowWriter([(["", " ", ""], [0, 1], "iu")], [])
    assert writer.format(np.zeros(1, np.uint32), values, "").decode() == f"{signed} {unsigned}"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_reals_read_back_as_they_were(number):
    text = core.RowWriter([(["", ""], [0], "f")], []).format(np.zeros(1, np.uint32), bits([number]), "").decode()
    assert json.loads(text) == number
    assert isinstance(json.loads(text), float)
    assert len(text) <= len(repr(number)) or 1e-4 <= abs(number) < 1e16


@given(st.integers(-(10**15), 10**15), st.sampled_from([1, 10, 1000, 10_000, 3]))
@example(-1, 1000)
@example(999_999_999_999_999, 1000)
def test_reals_are_as_short_as_python_writes_them(number, parts):
    text = (
        core.RowWriter([(["", ""], [0], "f")], []).format(np.zeros(1, np.uint32), bits([number / parts]), "").decode()
    )
    assert text == repr(number / parts) or abs(number / parts) < 1e-4 or abs(number / parts) >= 1e16
    assert json.loads(text) == number / parts


def test_a_negative_zero_keeps_its_sign():
    assert core.RowWriter([(["", ""], [0], "f")], []).format(np.zeros(1, np.uint32), bits([-0.0]), "") == b"-0.0"


@given(st.lists(st.tuples(st.integers(0, 1), st.text(max_size=4), st.integers(-99, 99)), max_size=5))
def test_each_row_has_its_template(rows):
    which = np.array([row[0] for row in rows], np.uint32)
    values = bits([np.int64(row[2]) for row in rows], np.arange(len(rows)))
    writer = core.RowWriter([(["<", ">"], [0], "i"), (["[", "|", "]"], [1, 0], "ti")], [row[1] for row in rows])
    expected = ";".join(f"[{text}|{number}]" if kind else f"<{number}>" for kind, text, number in rows)
    assert writer.format(which, values.reshape(2, -1), ";").decode() == expected
