"""Tables made on request: declared, renamed, made only when somebody reads them."""

import numpy as np
import pytest

from lanescope.analysis import derived, idle
from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.families import registry
from lanescope.io import duckdb_sql
from lanescope.pipeline import session
from lanescope.trace import LazyTable, Table, TimeBase, TraceBuilder


def small(unit="ns"):
    builder = TraceBuilder(TimeBase(time_unit=unit))
    block = builder.track("block 0", kind="group", role="block")
    load, compute = (builder.track(name, kind="lane", role="group", parent=block) for name in ("load", "compute"))
    builder.append("slices", track_id=[load, compute, compute], ts=[0, 0, 120], dur=[100, 120, 9],
                   name=["tma", "wait", "mma"])  # fmt: skip
    return builder.finish()


def test_every_table_has_the_columns_it_declares():
    for unit in ("ns", "cycles"):
        found = session.derived_tables(small(unit))
        assert set(derived.GENERIC) == set(found)
        for name, lazy in found.items():
            assert lazy.table.spec == lazy.spec
            assert lazy.spec.name == name
            for column in lazy.spec.columns:
                assert column.doc
                assert column.unit not in ("ns", "cycles") or column.unit == unit
                if column.unit == unit:
                    assert column.name.endswith((f"_{unit}", "ts", "dur"))


@pytest.mark.parametrize("family", registry.builtin(), ids=lambda family: family.name)
def test_families_declare_tables_that_analyses_can_make(family):
    shared = AnalysisCache(small())
    for view in (declared for declared in family.derived if declared.analysis):
        assert view.name.startswith(family.name + "_")
        lazy = derived.as_table(shared, view.analysis, view.name, view.roles, doc=view.doc, columns=view.columns)
        assert lazy.table.spec is lazy.spec
        assert not set(lazy.spec.names) & {old for old, new in view.columns.items() if new != old} - set(
            view.columns.values()
        )


def test_a_unit_that_the_trace_does_not_know_gives_an_empty_table():
    lazy = derived.as_table(AnalysisCache(small()), "utilization", "x", ("sm", "rank"))
    assert len(lazy.table) == 0
    assert len(derived.as_table(AnalysisCache(small()), "utilization", "x", ("sm", "block")).table) == 1


def test_nothing_is_made_until_a_query_reads_it(monkeypatch):
    made = []
    trace = small()

    def counted(name, make):
        def run():
            made.append(name)
            return make()

        return run

    lazies = [
        LazyTable(lazy.spec, counted(name, lambda lazy=lazy: lazy.table))
        for name, lazy in session.derived_tables(trace).items()
    ]
    with duckdb_sql.connect(trace, lazies) as connection:
        assert connection.execute("select count(*) from slices").fetchall() == [(3,)]
        tables = {row[0] for row in connection.execute("show tables").fetchall()}
        assert tables >= {"slices", "overlap", "idle"}
        assert made == []
        query = "select waits_for, sum(dur) from idle where kind = 'wait' group by 1"
        assert connection.execute(query).fetchall() == [("tma", 120)]
        assert made == ["idle"]
        connection.execute(query).fetchall()
        assert made == ["idle"]


def test_a_table_of_the_trace_hides_one_made_on_request():
    trace = small()
    lazy = LazyTable(trace.slices.spec, lambda: Table.empty(trace.slices.spec))
    with duckdb_sql.connect(trace, [lazy]) as connection:
        assert connection.execute("select count(*) from slices").fetchall() == [(3,)]


def test_what_analyses_share_is_worked_out_once(monkeypatch):
    calls = []
    original = idle._by_flow
    monkeypatch.setattr(idle, "_by_flow", lambda *args: calls.append(args) or original(*args))
    found = session.derived_tables(small())
    assert int(np.sum(found["idle_causes"].table["total_ns"])) == int(np.sum(found["idle"].table["dur"]))
    assert len(calls) == 1
