"""Tables: text that fits a terminal, the same text in full elsewhere, CSV with every digit; harmless for all."""

import csv
import io
import re
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lanescope.errors import UsageError
from lanescope.trace import ColumnSpec
from lanescope.view.formatting import display_width, duration, number, percent
from lanescope.view.table_output import Look, print_csv, show, terminal_width
from lanescope.view.tables.cells import cell
from lanescope.view.tables.columns import KINDS, Col, column, columns_of, declared
from lanescope.view.tables.layout import Layout, Room, distinct_cuts, wrapped


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


class Plain(Terminal):
    encoding = "ascii"


@pytest.fixture
def terminal(monkeypatch):
    """Return a function that shows a table on a terminal of some width."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")

    def shown(width, columns, rows, stream=Terminal, **options):
        monkeypatch.setenv("COLUMNS", str(width))
        out = stream()
        show(columns, rows, file=out, **options)
        return out.getvalue()

    return shown


def piped(columns, rows, **options):
    out = io.StringIO()
    show(columns, rows, file=out, **options)
    return out.getvalue()


TIMES = ("total", "min", "median", "p99", "max")
SUMMARY = [
    *(column("name", "text"), column("count", "count"), column("unfinished", "count")),
    *(column(name, "duration", "ns") for name in TIMES),
    *(column("share", "percent"), Col("", kind="bar")),
]
LONG = 0.36221874973827844
ROWS = [
    ["zeCommandQueueSynchronize", 1_825_504, 0, 15_800_000, 19_200, 24_700, 380_000, 380_000, LONG, 0.362],
    ["softmax", 596, 0, 6_210_000, 400, 10_600, 19_800, 20_000, 0.0001, 0.0001],
    ["a\tb\x1b[2J[red]", 1, 3, 0, None, None, None, None, 0.0, 0.0],
]  # fmt: skip


def test_a_pipe_gets_all_of_it_and_no_digit_that_says_nothing():
    assert piped(SUMMARY, ROWS, title="one run", notes=["below"]).split("\n") == [
        "one run",
        "name                           count  unfinished    total      min   median      p99      max  share",
        "─────────────────────────  ─────────  ──────────  ───────  ───────  ───────  ───────  ───────  ─────",
        "zeCommandQueueSynchronize  1,825,504           0  15.8 ms  19.2 µs  24.7 µs   380 µs   380 µs  36.2%",
        "softmax                          596           0  6.21 ms   400 ns  10.6 µs  19.8 µs  20.0 µs  <0.1%",
        "a\\x09b\\x1b[2J[red]                 1           3     0 ns        -        -        -        -   0.0%",
        "below",
        "",
    ]


def test_a_narrow_terminal_shortens_texts_then_bars_then_hides_columns_by_priority(terminal):
    lines = terminal(160, SUMMARY, ROWS).splitlines()
    assert lines[2].endswith("36.2%  ██████████████▌")
    assert "hidden" not in lines[-1]
    lines = terminal(110, SUMMARY, ROWS).splitlines()
    assert lines[2].startswith("zeCommandQ…nchronize  1,825,504"), "a name gave way as long as it reads well"
    assert lines[2].endswith("36.2%  ████▊"), "then the bar"
    assert "unfinished" in lines[0]
    lines = terminal(80, SUMMARY, ROWS).splitlines()
    assert lines[2].startswith("zeCommandQ…nchronize  1,825,504"), "then the columns that matter least"
    assert lines[0].split() == ["name", "count", "total", "min", "median", "max", "share"]
    assert lines[-1] == "hidden: unfinished, p99 (--wide)"
    lines = terminal(60, SUMMARY, ROWS).splitlines()
    assert lines[0].split() == ["name", "count", "total", "median", "max", "share"]
    assert lines[-1] == "hidden: unfinished, min, p99 (--wide)"
    wide = terminal(60, SUMMARY, ROWS, look=Look(is_wide=True)).splitlines()
    assert wide[2].startswith("zeCommandQueueSynchronize  1,825,504           0  15.8 ms")


def test_names_that_differ_do_not_look_alike_while_a_column_can_go(terminal):
    names = [f"zeCommandListAppend{what}({way})" for what in ("MemoryCopy", "MemoryFill") for way in ("H2D", "D2H")]
    names += ["zeCommandListAppendLaunchKernel", "zeCommandQueueSynchronize", "zeCommandListHostSynchronize"]
    rows = [[name, 1, 0, *[12_300] * 5, 0.1, 0.1] for name in names]
    for width in range(60, 161):
        lines = terminal(width, SUMMARY, rows).splitlines()
        assert len({line.split()[0] for line in lines[2 : 2 + len(rows)]}) == len(rows), width
    assert terminal(65, SUMMARY, rows).splitlines()[0].split() == ["name", "count", "total", "median", "max", "share"]


def test_a_column_without_a_value_is_hidden_on_a_terminal(terminal):
    columns = [column("name", "text"), column("cause", "text"), column("count", "count")]
    lines = terminal(16, columns, [["one", None, 1], ["two", "", 2]]).splitlines()
    assert lines[0].split() == ["name", "count"]
    assert lines[-2:] == ["hidden: cause", "  (--wide)"]
    assert "cause" in terminal(80, columns, [["one", None, 1], ["two", "x", 2]]).splitlines()[0]


CELLS = st.one_of(st.none(), st.integers(-(1 << 63), 1 << 64), st.floats(), st.booleans(), st.text(max_size=40))


@given(
    st.lists(st.sampled_from(KINDS), min_size=1, max_size=9).flatmap(
        lambda kinds: st.tuples(
            st.just(kinds),
            st.lists(st.tuples(*(st.floats(0, 1) if kind == "bar" else CELLS for kind in kinds)), max_size=6),
        )
    ),
    st.integers(60, 200),
)
@example((["text", "count"], [("名前" * 40, 1 << 60)]), 60)
def test_any_table_fits_and_cells_that_are_left_are_whole(table, width):
    kinds, rows = table
    columns = [Col(f"column {at}", kind=kind, priority=at % 3) for at, kind in enumerate(kinds)]
    narrow, full = Layout(columns, rows, Room(width)), Layout(columns, rows, Room())
    lines = [*narrow.head(), *narrow.lines(rows)]
    is_text = kinds[0] in ("text",)
    longest = max([display_width(line) for line in lines], default=0)
    # One column that is never shortened may be wider than a line by itself.
    assert longest <= width or (len(lines[0].split("  ")) == 1 and not is_text)
    everything = " ".join([*full.head(), *full.lines(rows)])
    for line in lines[2:]:
        for text in re.split(r"  +", line.strip()):
            assert "…" in text or text.strip("▏▎▍▌▋▊▉█ ") in everything
    heads = [f"column {at}" for at, kind in enumerate(kinds) if kind != "bar"]
    shown = [head for head in heads if head not in narrow.hidden]
    assert all(head in lines[0] for head in shown)


def test_more_rows_than_tell_the_widths_are_shown_all():
    rows = ((at, "x" * (1 + at // 9_999)) for at in range(25_000))
    lines = piped(["n", "text"], rows).splitlines()
    assert len(lines) == 25_002
    assert lines[-1].split() == ["24,999", "xxx"]


def test_a_unit_of_choice_is_in_the_header(terminal):
    lines = piped(SUMMARY[:1] + SUMMARY[3:4], [["a", 1_240_123], ["b", 3], ["c", 0]], look=Look(unit="us")).splitlines()
    assert lines == ["name  total [µs]", "────  ──────────", "a      1,240.123", "b          0.003", "c          0.000"]
    with pytest.raises(UsageError, match="cannot show cycles in us"):
        piped([column("total", "cycles", "cycles")], [[1]], look=Look(unit="us"))
    assert piped([column("total", "cycles", "cycles")], [[893326]]).splitlines()[::2] == [
        "total [cycles]",
        "       893,326",
    ]


def test_csv_is_exact_with_units_in_names():
    columns = [*SUMMARY, column("size", "bytes"), column("total_us", "duration", "us"), column("ok", "plain")]
    rows = [[*row, 1 << 40, 1.5, True] for row in ROWS]
    out = io.StringIO(newline="")
    print_csv(columns, [*rows, ['say "a, b"\n', *[None] * 12]], file=out)
    text = out.getvalue()
    assert text.startswith(
        "name,count,unfinished,total_ns,min_ns,median_ns,p99_ns,max_ns,share,size_bytes,total_us,ok\r\n"
    )
    read = list(csv.reader(io.StringIO(text, newline="")))
    assert read[1][8] == "0.36221874973827844"
    assert read[3] == [ROWS[2][0], "1", "3", "0", "", "", "", "", "0.0", str(1 << 40), "1.5", "true"]
    assert read[4] == ['say "a, b"\n', *[""] * 11]
    seen = Terminal()
    print_csv(columns, rows, file=seen)
    assert "\x1b" not in seen.getvalue()


@pytest.mark.parametrize(
    ("spec", "kind", "title", "name"),
    [
        (ColumnSpec("total_ns", "int64", "", unit="ns"), "duration", "total", "total_ns"),
        (ColumnSpec("total", "int64", "", unit="cycles"), "cycles", "total", "total_cycles"),
        (ColumnSpec("average", "float64", "", unit="ns"), "duration", "average", "average_ns"),
        (ColumnSpec("ts", "int64", "", unit="ns", is_time=True), "count", "ts", "ts_ns"),
        (ColumnSpec("first_ts", "int64", "", unit="ns"), "count", "first_ts", "first_ts_ns"),
        (ColumnSpec("busy_share", "float64", "", unit="1"), "percent", "busy_share", "busy_share"),
        (ColumnSpec("size", "int64", "", unit="bytes"), "bytes", "size", "size_bytes"),
        (ColumnSpec("instance_id", "int64", ""), "id", "instance_id", "instance_id"),
        (ColumnSpec("first_offset", "int64", "", unit="bytes"), "offset", "first_offset", "first_offset"),
        (ColumnSpec("count", "int64", ""), "count", "count", "count"),
        (ColumnSpec("name", "text", ""), "text", "name", "name"),
    ],
)  # fmt: skip
def test_declared_columns_are_shown_by_type_and_unit(spec, kind, title, name):
    found = declared(spec)
    assert (found.kind, found.title, found.csv_name) == (kind, title, name)
    assert columns_of([spec, "a", found])[0] == found


def test_numbers_of_every_kind():
    assert [duration(ns) for ns in (0, 1, 999, 1000, 999_499, 999_500, 3_600_000_000_000)] == [
        "0 ns", "1 ns", "999 ns", "1.00 µs", "999 µs", "1.00 ms", "3,600 s"
    ]  # fmt: skip
    assert [percent(share) for share in (0.0, 1e-9, 0.00051, 0.2468, 1.0, 12.5)] == [
        "0.0%", "<0.1%", "0.1%", "24.7%", "100.0%", "1,250.0%"
    ]  # fmt: skip
    assert [number(value) for value in (1 << 64, 1234567.5, 1 / 3, 0.0, 99.96, 1e-7)] == [
        "18,446,744,073,709,551,616", "1,234,568", "0.333", "0.00", "100", "1e-07"
    ]  # fmt: skip
    kinds = {"offset": "0x3e4", "bytes": "996 B", "id": "996", "count": "996", "ratio": "996", "duration": "996 ns"}
    assert {kind: cell(996, Col("x", kind=kind)) for kind in kinds} == kinds
    assert cell(float("nan"), Col("x", kind="ratio")) == cell(None, Col("x", kind="count")) == "-"


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_a_duration_is_within_half_a_percent(ns):
    value, unit = duration(ns).replace(",", "").split()
    assert abs(float(value) * {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit] - ns) <= 0.00501 * abs(ns)


def test_colors_are_asked_for_or_of_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert [Look(color).has_color(Terminal()) for color in ("auto", "always", "never")] == [True, True, False]
    assert not Look().has_color(io.StringIO())
    assert piped(["a"], [[1]], look=Look("always")).startswith("\x1b[1ma\x1b[0m\n")
    monkeypatch.setenv("NO_COLOR", "1")
    assert [Look(color).has_color(Terminal()) for color in ("auto", "always", "never")] == [False, True, False]
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not Look().has_color(Terminal())


def test_ascii_terminals_get_ascii(terminal):
    text = terminal(80, SUMMARY, ROWS, stream=Plain)
    assert text.isascii()
    assert "19.2 us" in text
    assert "---" in text
    assert re.search(r"^zeCommandQ~nchronize ", text, re.MULTILINE)


@pytest.mark.parametrize(("stated", "width"), [("120", 120), ("0", 80), ("x", 80), ("3", 20), ("9" * 30, 80)])
def test_the_width_of_a_terminal(monkeypatch, stated, width):
    monkeypatch.setenv("COLUMNS", stated)
    assert terminal_width(Terminal()) == width
    assert terminal_width(SimpleNamespace()) == width


def test_names_that_differ_in_their_middle_are_cut_where_they_differ():
    names = [f"void library::gemm_{tile}_stage3::Kernel::Params)" for tile in ("128x64_nn", "128x64_tn", "64x64_nn")]
    names += ["load", "void library::gemm_64x64_nt_stage3::Kernel::Params)"]
    for width in (12, 14, 16, 24):
        cut = distinct_cuts(names, width)
        assert set(cut) == {name for name in names if name != "load"}
        assert len(set(cut.values())) == len(cut), (width, cut)
        assert {len(each) for each in cut.values()} == {width}
    assert distinct_cuts(names, 80) == {}


def test_names_that_differ_at_their_ends_are_cut_in_the_middle():
    assert distinct_cuts(["a_long_name_of_a_kernel_1", "a_long_name_of_a_kernel_2"], 12) == {}


@pytest.mark.parametrize("width", range(20, 80))
def test_a_number_stays_on_the_line_of_its_unit(width):
    text = "time  from 0 to 540,795,000 ns, 12 lanes, 1.5 ms -> 20 µs (99 %), 74,937 slices of 3 GiB and 7"
    lines = wrapped(text, width, "    ")
    assert " ".join(line.strip() for line in lines) == text
    assert max(map(display_width, lines)) <= width
    assert not [line for line in lines[:-1] if re.search(r"\d$", line)]
