"""What is drawn of regions: numbers as in the tables, names that cannot hurt, and lines that fit."""

import io
import re

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from effort import TRACES, some
from lanescope import testing
from lanescope.analysis import idle_causes, occupancy, overlap, region_stats
from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.trace import TimeBase, TraceBuilder
from lanescope.view import analysis_report


class Terminal(io.StringIO):
    """A stream with an encoding."""

    def __init__(self, encoding="utf-8"):
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self):
        return self._encoding

    def isatty(self):
        return True


def pipeline(*names):
    builder = TraceBuilder(TimeBase())
    block = builder.track("block 0", kind="group", role="block")
    load, compute = (builder.track(name, kind="lane", role="group", parent=block) for name in ("loader", "worker"))
    one, wait, two = names or ("tma_load", "wait_full", "mma")
    builder.append("slices", track_id=[load, compute, compute], ts=[0, 0, 40], dur=[100, 40, 80], name=[one, wait, two])
    return AnalysisCache(builder.finish())


def drawn(draw, *arguments, encoding="utf-8", columns=100, monkeypatch=None):
    stream = Terminal(encoding)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm-256color")
    draw(*arguments, analysis_report.Screen(stream))
    text = stream.getvalue()
    assert all(cell_len(line) <= columns for line in text.splitlines())
    return text


def test_the_matrix_has_the_shares_and_says_what_is_hidden(monkeypatch):
    text = drawn(analysis_report.overlap_matrix, pipeline(), "block", monkeypatch=monkeypatch)
    lines = {line.split()[0]: line.split() for line in text.splitlines() if line and line[0] != " "}
    # tma_load runs 100 ns: 60 beside mma, 40 beside wait_full.
    assert lines["tma_load"] == ["tma_load", "·", "60.0%", "40.0%", "100", "ns"]
    assert lines["mma"] == ["mma", "75.0%", "·", "·", "80", "ns"]
    assert "load: 60.0% of 100 ns hidden behind compute (60 ns), 40 ns exposed" in text
    assert "compute: runs 66.7% of the time that blocks are there; no lane works in 0.0%" in text


def test_a_narrow_terminal_shows_what_fits_and_says_so(monkeypatch):
    text = drawn(analysis_report.overlap_matrix, pipeline(), "block", columns=62, monkeypatch=monkeypatch)
    assert " hidden (table" not in text
    text = drawn(analysis_report.overlap_matrix, pipeline(), "block", columns=52, monkeypatch=monkeypatch)
    assert "1 shorter region hidden (table 'overlap' has all)" in " ".join(text.split())


def test_idle_says_who_waits_for_whom(monkeypatch):
    shared = pipeline()
    table = idle_causes.causes(shared, "block")
    builder_text = drawn(lambda stream: analysis_report.idle_causes(table, "ns", stream), monkeypatch=monkeypatch)
    # Nothing ended within the wait, so its cause is unknown.
    assert re.search(r"waits in wait_full +cause unknown +40 ns +33.3%", builder_text)
    assert "most of it" not in builder_text
    builder = TraceBuilder(TimeBase())
    block = builder.track("b", kind="group", role="block")
    load, compute = (builder.track(name, kind="lane", role="group", parent=block) for name in ("loader", "worker"))
    builder.append("slices", track_id=[load, compute, compute], ts=[0, 0, 40], dur=[30, 40, 80],
                   name=["load", "wait", "mma"])  # fmt: skip
    shared = AnalysisCache(builder.finish())
    table = idle_causes.causes(shared, "block")
    text = drawn(lambda stream: analysis_report.idle_causes(table, "ns", stream), monkeypatch=monkeypatch)
    assert re.search(r"waits in wait +on load \(inferred\) +40 ns", text)
    assert "most of it: worker waits 40 ns in wait for load, 10 ns of that after load was done" in text
    assert "inferred: no flow names the producer" in text


def test_strips_show_averages(monkeypatch):
    shared = pipeline()
    tables = [occupancy.occupancy(shared, "block"), occupancy.occupancy(shared)]
    text = drawn(
        lambda stream: analysis_report.occupancy_strips(shared, tables, stream), columns=72, monkeypatch=monkeypatch
    )
    rows = {line[:18].strip(): line[18:] for line in text.splitlines()[3:]}
    assert list(rows) == ["block", "tma_load", "mma", "wait_full"]
    mean, most, strip = rows["mma"].split(maxsplit=2)
    assert (mean, most) == ("0.67", "1")
    assert strip == "█" * 20  # 40 of 120 ns come before, the last 80 fill 20 of 30 cells
    assert rows["tma_load"].split(maxsplit=2)[2].strip() == "█" * 25


def test_plain_encodings_get_plain_characters(monkeypatch):
    shared = pipeline("löad", "wait", "mma")
    text = drawn(analysis_report.overlap_matrix, shared, "block", encoding="ascii", monkeypatch=monkeypatch)
    assert text.isascii()
    assert "l\\xf6ad" in text


def test_names_do_nothing_to_a_terminal(monkeypatch):
    shared = pipeline("\x1b]0;owned\x07", "wait\x1b[2J", "[red]mma[/red]")
    monkeypatch.setenv("NO_COLOR", "1")
    table = idle_causes.causes(shared, "block")
    text = drawn(analysis_report.overlap_matrix, shared, "block", columns=200, monkeypatch=monkeypatch)
    text += drawn(lambda stream: analysis_report.idle_causes(table, "ns", stream), columns=200, monkeypatch=monkeypatch)
    assert "\x1b]" not in text
    assert "\x1b[2J" not in text
    assert "[red]mma[/red]" in text


@given(testing.traces(**TRACES), st.sampled_from(["parent", "all", "lane"]), st.integers(30, 120))
@settings(max_examples=some(30), phases=[Phase.generate])
def test_any_trace_can_be_drawn(trace, role, columns):
    shared = AnalysisCache(trace)
    unit = trace.time.time_unit
    with pytest.MonkeyPatch.context() as monkeypatch:
        drawn(analysis_report.overlap_matrix, shared, role, columns=columns, monkeypatch=monkeypatch)
        causes = idle_causes.causes(shared, role)
        drawn(
            lambda stream: analysis_report.idle_causes(causes, unit, stream), columns=columns, monkeypatch=monkeypatch
        )
        tables = [occupancy.occupancy(shared, role), occupancy.occupancy(shared)]
        drawn(
            lambda stream: analysis_report.occupancy_strips(shared, tables, stream),
            columns=columns,
            monkeypatch=monkeypatch,
        )
    table = region_stats.regions(shared, role)
    heads, rows = analysis_report.region_table(shared, table, role, list(table.rows()))
    listed = list(rows)
    assert len(listed) == len(table)
    assert all(len(row) == len(heads) for row in listed)
    units = occupancy.utilization(shared, role)
    heads, rows = analysis_report.unit_table(units, role, unit, list(units.rows()))
    assert all(len(row) == len(heads) for row in rows)
    assert all(analysis_report.unit_words(units, role, unit))
    assert all(overlap.overlap(shared, role).valid("share") | (overlap.overlap(shared, role)[f"region_{unit}"] == 0))
