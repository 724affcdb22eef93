"""Text for terminals: nothing in it can move the cursor, and times keep their digits."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanescope.view.formatting import display_width, escape, fit_width, format_count, format_duration


@given(st.text())
def test_escaped_text_holds_no_control_or_invisible_characters(text):
    safe = escape(text)
    assert {unicodedata.category(c) for c in safe}.isdisjoint({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
    safe.encode("utf-8")


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("mma[0] {x} \\n", "mma[0] {x} \\n"),
        ("名前 é 🙂", "名前 é 🙂"),
        ("\x1b[2J\x07\x9b\x7f", "\\x1b[2J\\x07\\x9b\\x7f"),
        ("\u202egpj\u2066\u200b\u2028", "\\u202egpj\\u2066\\u200b\\u2028"),
        ("\ud800\U000e0001", "\\ud800\\U000e0001"),
        ("a\tb\nc", "a\\x09b\\x0ac"),
    ],
)
def test_escapes(text, safe):
    assert escape(text) == safe


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1000, "1.00 µs"),
        (-1500, "-1.50 µs"),
        (999_499, "999 µs"),
        (999_500, "1.00 ms"),
        (999_999_999, "1.00 s"),
        (1_234_567_890, "1.23 s"),
        (3_600_000_000_000, "3,600 s"),
        (123_456_000_000_000, "123,456 s"),
    ],
)
def test_times(ns, text):
    assert format_duration(ns) == text


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_a_time_is_within_half_a_percent(ns):
    number, unit = format_duration(ns).split()
    value = float(number.replace(",", "")) * {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]
    assert abs(value - ns) <= 0.005 * abs(ns)
    assert "e" not in number


def test_cycles_stay_cycles():
    assert format_duration(1_234_567, "cycles") == "1,234,567 cycles"
    assert format_duration(1, "cycles") == "1 cycle"


def test_counts():
    assert [format_count(n, "lane") for n in (0, 1, 2, 1234)] == ["0 lanes", "1 lane", "2 lanes", "1,234 lanes"]
    assert format_count(2, "entry", "entries") == "2 entries"


@given(st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs", "Mn", "Me"])), st.integers(1, 30))
def test_fitted_text_has_exactly_its_width(text, width):
    fitted = fit_width(text, width)
    assert display_width(fitted) == width
    if display_width(text) <= width:
        assert fitted.startswith(text)
    else:
        assert "…" in fitted
