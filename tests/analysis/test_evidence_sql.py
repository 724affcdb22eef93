"""The query of a finding returns its evidence rows and no others, whatever they are and however the trace is cut."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import TRACES, some
from lanescope import TimeBase, TraceBuilder
from lanescope.analysis import check
from lanescope.analysis.check.evidence_sql import TERMS, condition, query
from lanescope.io import duckdb_sql
from lanescope.testing import strategies
from lanescope.trace import Flag


def rows_of(trace, sql):
    with duckdb_sql.connect(trace) as connection:
        answer = connection.execute(sql)
        column = [name for name, *_ in answer.description].index("id")
        return [row[column] for row in answer.fetchall()]


def proves(trace, finding):
    """Assert that DuckDB finds the evidence of a finding by its query."""
    told = finding.to_dict()
    ids = np.sort(finding.evidence.ids).tolist()
    assert told["sql"] == finding.sql
    assert rows_of(trace, finding.sql) == ids[: told["sql_rows"]]
    if told["sql_rows"] < len(ids):
        assert finding.sql.startswith(f"/* the first {told['sql_rows']} of {len(ids)} rows */ ")
    return told["sql_rows"] == len(ids)


@settings(max_examples=some(60))
@given(strategies.traces(**TRACES))
def test_duckdb_finds_the_evidence_of_any_trace(trace):
    for finding in check.run(trace):
        assert proves(trace, finding)


@settings(max_examples=some(300))
@given(st.lists(st.integers(0, 3000), unique=True, max_size=400))
def test_any_ids_come_back_or_the_first_of_them(ids):
    builder = TraceBuilder(TimeBase())
    lane = builder.track("core 0", kind="lane", role="core")
    builder.append("slices", track_id=lane, ts=np.arange(3001) * 2, dur=1, name="mma")
    sql, count = query("slices", np.array(ids, np.int64))
    assert rows_of(builder.finish(), sql) == sorted(ids)[:count]
    assert count == len(ids) or count >= TERMS
    assert len(sql) < 60 * TERMS + 200


def test_a_query_says_that_it_is_not_whole_only_where_rows_are_left_out():
    scattered_ids = np.cumsum(np.arange(TERMS + 1))  # no two steps are the same
    sql, count = query("slices", scattered_ids[:TERMS])
    assert (sql.startswith("select * from slices where id in (0, 1, 3, "), count) == (True, TERMS)
    sql, count = query("slices", scattered_ids)
    assert (sql.startswith(f"/* the first {TERMS} of {TERMS + 1} rows */ "), count) == (True, TERMS)


def scattered(flag, size=4000):
    """Return a trace of two lanes where rows at random carry a flag, and those rows."""
    random = np.random.default_rng(1)
    marked = random.random(size) < 0.5
    builder = TraceBuilder(TimeBase())
    lanes = np.array([builder.track(f"core {i}", kind="lane", role="core") for i in range(2)])
    of = random.integers(0, 2, size)
    builder.append(
        "slices",
        track_id=lanes[of],
        ts=np.arange(size) * 2,
        dur=1,
        dur_valid=~(marked & (flag == Flag.UNFINISHED)),
        last_known_ts=np.arange(size) * 2,
        last_known_ts_valid=marked & (flag == Flag.UNFINISHED),
        name="mma",
        flags=np.where(marked, int(flag), 0).astype(np.uint32),
    )
    return builder.finish(), np.flatnonzero(marked), of


@pytest.mark.parametrize(
    ("flag", "code"),
    [(Flag.UNFINISHED, "LS103"), (Flag.BELOW_RESOLUTION, "LS303"), (Flag.CLOCK_SUSPECT, "LS304")],
)
def test_scattered_rows_of_one_flag_are_a_condition_on_it(flag, code):
    trace, marked, _ = scattered(flag)
    found = check.run(trace, select=[code])
    assert sum(len(finding.evidence.ids) for finding in found) == len(marked) > 10 * TERMS
    for finding in found:
        assert f"flags & {int(flag)} <> 0" in finding.sql
        assert proves(trace, finding)


@pytest.mark.parametrize("step", [1, 2])
def test_a_condition_needs_all_rows_of_the_evidence(step):
    """Slices in a row and slices with gaps between them are looked up in two ways."""
    trace, marked, _ = scattered(Flag.BELOW_RESOLUTION)
    first = int(marked[0])
    slices, ids = trace.slices.between(first, len(trace.slices)), marked * step
    positions = np.arange(first, len(trace.slices)) * step + 9000
    wanted = f"flags & {int(Flag.BELOW_RESOLUTION)} <> 0"
    assert condition(ids + 9000, positions, slices) == wanted
    with_gap = np.append(positions[:-1], positions[-1] + 1)  # the last row is not evidence
    assert condition(ids + 9000, with_gap, slices) == wanted
    away = len(positions) - 1 - step  # the first row lies as far off as if all others stood between
    apart, rest = np.append(positions[:1], positions[1:] + away), np.append(ids[:1], ids[1:] + away)
    assert condition(rest + 9000, apart, slices) == wanted
    for missing in (0, first * step, int(positions[-1]) + 50):
        assert condition(np.append(ids[1:] + 9000, missing), positions, slices) == ""


@pytest.mark.parametrize("more", [0, 1])
def test_as_many_ranges_as_a_query_names_need_no_condition(more):
    begins = np.cumsum(10 + np.arange(TERMS + more))  # no two lie equally far apart
    ids = (begins[:, None] + np.arange(3)).reshape(-1)
    positions = np.arange(ids[-1] + 9)
    flags = np.where(np.isin(positions, ids), int(Flag.BELOW_RESOLUTION), 0).astype(np.uint32)
    builder = TraceBuilder(TimeBase())
    lane = builder.track("core 0", kind="lane", role="core")
    builder.append("slices", track_id=lane, ts=positions * 2, dur=1, name="mma", flags=flags)
    trace = builder.finish()
    found = condition(ids, positions, trace.slices)
    assert found == (f"flags & {int(Flag.BELOW_RESOLUTION)} <> 0" if more else "")
    sql, count = query("slices", ids, found)
    assert (rows_of(trace, sql), count) == (ids.tolist(), len(ids))


def test_scattered_rows_without_a_condition_are_counted(monkeypatch):
    trace, _, of = scattered(0)
    rule = check.Rule(
        "TOY101", "odd", "notice", "", "", lambda context: context.violations("slices", np.flatnonzero(of))
    )
    monkeypatch.setattr("lanescope.analysis.check.RULES", (rule,))
    monkeypatch.setattr("lanescope.analysis.check.engine.RULES", (rule,))
    (finding,) = check.run(trace)
    assert not proves(trace, finding)
    assert re.match(r"/\* the first [0-9]+ of 20[0-9]{2} rows \*/ select", finding.sql)


def test_rows_of_a_detail_table_are_found_by_their_position():
    trace, _, _ = scattered(0, 8)
    with duckdb_sql.connect(trace) as connection:
        connection.execute("create table toy_details as select id as slice_id from slices order by id")
        sql, _ = query("toy_details", np.array([1, 6]))
        assert connection.execute(sql).fetchall() == [(1, 1), (6, 6)]
