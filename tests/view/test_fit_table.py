"""Tables that are too wide for a terminal."""

from lanescope.view.fit_table import fitted

NAMES = ["group", "window", "nothing", "idle", "bar"]
ROWS = [["Sched_0", 355_000, 0, 1.25, ""], ["Sched_1", 355_000, None, 0, ""]]


def test_a_table_that_fits_stays():
    assert fitted(NAMES, ROWS, 80) == (NAMES, ROWS, [])
    assert fitted(["group"], [], 1) == (["group"], [], [])


def test_columns_without_values_go_first():
    names, rows, left_out = fitted(NAMES, ROWS, 34)
    assert (names, left_out) == (["group", "window", "idle"], ["nothing", "bar"])
    assert rows == [["Sched_0", 355_000, 1.25], ["Sched_1", 355_000, 0]]


def test_then_a_short_table_is_turned():
    names, rows, left_out = fitted(NAMES, ROWS, 20)
    assert (names, left_out) == (["", "Sched_0", "Sched_1"], ["nothing", "bar"])
    assert rows == [["window", 355_000, 355_000], ["idle", 1.25, 0]]
    long = [[f"AIC_{n}", 355_000, 0, 1.25, ""] for n in range(7)]
    assert fitted(NAMES, long, 20)[0] == ["group", "window", "idle"]
