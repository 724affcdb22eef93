"""Tables: exact and tab-separated for programs, drawn for people, harmless for both."""

import io

from lanescope.view.table_output import show


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


ROWS = [["mma", 12345678, 0.1, None, True], ["a\tb\x1b[2J[red]", -1, 1 / 3, 2, False]]
LARGE = [[1234567.5, 2**63 + 1], [999.94, -1]]
COLUMNS = ["name", "total", "share", "open", "is_last"]


def test_programs_get_every_digit_and_one_line_for_each_row():
    out = io.StringIO()
    show(COLUMNS, ROWS, title="left out", file=out)
    assert out.getvalue().split("\n") == [
        "name\ttotal\tshare\topen\tis_last",
        "mma\t12345678\t0.1\t\ttrue",
        "a\\x09b\\x1b[2J[red]\t-1\t0.3333333333333333\t2\tfalse",
        "",
    ]


def test_people_get_a_table_and_names_stay_names(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal()
    show(COLUMNS, ROWS, title="slices", file=out)
    text = out.getvalue()
    assert "slices" in text
    assert "12\u202f345\u202f678" in text
    assert "0.3333 " in text
    assert "a\\x09b\\x1b[2J[red]" in text
    assert "\x1b[2J" not in text


def test_large_numbers_have_no_powers_of_ten(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    out = Terminal()
    show(["mean", "id"], LARGE, file=out)
    text = out.getvalue().replace("\u202f", " ")
    assert "1 234 568 " in text
    assert "9 223 372 036 854 775 809" in text
    assert "999.9" in text


def test_a_dumb_terminal_is_treated_as_a_program(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    out = Terminal()
    show(["a"], [[1]], file=out)
    assert out.getvalue() == "a\n1\n"
