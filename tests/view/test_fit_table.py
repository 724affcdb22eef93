"""Tables that are too wide for a terminal."""

from lanescope.view.fit_table import blocks, fitted

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


def test_a_table_that_is_still_too_wide_comes_in_parts():
    names = ["group", "kind", "window", "busy", "idle", ""]
    rows = [[f"AIC_{n}", "core", 355_000, 5_000 * n, 1.25, "====="] for n in range(7)]
    assert blocks(names, rows, 80) == [(names, rows)]
    found = blocks(names, rows, 34)
    assert [part for part, _ in found] == [["group", "kind", "window", "busy"], ["group", "kind", "idle"]]
    assert [row for _, part in found for row in part[:2]] == [
        ["AIC_0", "core", 355_000, 0],
        ["AIC_1", "core", 355_000, 5_000],
        ["AIC_0", "core", 1.25],
        ["AIC_1", "core", 1.25],
    ]
    # What tells rows apart leaves room for a value, and a line too short for both has one value.
    assert [part for part, _ in blocks(names, rows, 15)] == [
        ["group", "kind"], ["group", "window"], ["group", "busy"], ["group", "idle"],
    ]  # fmt: skip
    assert blocks(names, [], 1) == [(names, [])]
