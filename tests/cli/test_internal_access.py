"""Internal code reads columns with ``Table.values``, never with ``[]``, which masks nulls and is for users."""

import sys
from pathlib import Path

import pytest

import lanescope
from lanescope.families import registry
from lanescope.pipeline import session
from lanescope.trace import Table

PACKAGE = str(Path(lanescope.__file__).parent)

#: Options of the simulators that leave nulls in every kind of column.
SIMULATED = {
    "aie": ("run.bin", "--overruns", 2, "--lost-tail", 3),
    "ascend": ("chip", "--drop-aicore", 5, "--drop-aicpu", 5, "--tasks", 60),
    "cuda": ("run.npy", "--unfinished", 1, "--blocks", 2, "--tiles", 2),
    "levelzero": ("run.txt", "--ops", 100, "--lost", 0.1),
    "kineto": ("run.json", "--steps", 1, "--overlaps", 1, "--unlaunched", 2, "--unreadable", 1),
    "perfetto": ("run.pftrace", "--lost", 0.2),
    "chrome": ("run.trace.json", "--unfinished", 2, "--broken", 1),
}


@pytest.fixture
def culprits(monkeypatch):
    """Locations in the package that used ``[]``."""
    found = set()
    public = Table.__getitem__

    def watched(table, name):
        frame = sys._getframe(1)
        if frame.f_code.co_filename.startswith(PACKAGE):
            found.add(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        return public(table, name)

    monkeypatch.setattr(Table, "__getitem__", watched)
    return found


@pytest.mark.parametrize("name", registry.BUILTIN)
def test_no_command_reads_a_column_as_users_do(call, tmp_path, culprits, name):
    out, *options = SIMULATED[name]
    assert call("sim", name, "--seed", 1, *options, "-o", out).status == 0
    files = sorted((path for path in tmp_path.rglob("*records.json")), key=str) or [tmp_path / out]
    family = registry.family(name)
    exports = [export.name for export in family.exports]
    for target in ("out.pftrace", "out.json", "out.parquet", *(f"out.{export}" for export in exports)):
        format = target.removeprefix("out.")
        extra = ("--format", format) if format in exports else ()
        done = call("convert", files[0], "-o", target, *extra)
        assert done.status in (0, 2), done.err  # 2: an export that wants a configuration
    for by in (
        "name",
        "lane",
        "overlap",
        "idle",
        "region",
        "occupancy",
        *(summary.name for summary in family.summaries),
    ):
        done = call("summary", "--by", by, files[0])
        assert done.status in (0, 2), done.err  # 2: what was not recorded, such as sensors
    for stage in ("record", "row"):
        assert call("dump", "--stage", stage, files[0]).status == 0
    assert call("info", files[0]).status == 0
    assert call("check", files[0], "--json").status in (0, 1)
    assert call("check", "out.parquet").status in (0, 1)
    trace = lanescope.open(files[0])
    for lazy in session.derived_tables(trace).values():
        assert len(lazy.table) >= 0
    for record in trace.records.values():
        assert len(record) >= 0
    assert culprits == set()
