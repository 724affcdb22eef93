"""The views for queries in Perfetto, answered by its own trace processor: they hold what the tables hold."""

import subprocess
import sys
from collections import Counter

import pytest

import lanescope
from lanescope.pipeline import session
from lanescope.view import perfetto_views


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("views")
    subprocess.run(
        [sys.executable, "-m", "lanescope", "sim", "levelzero", "-O", "lost=0.05", "-o", str(folder / "run.txt")],
        check=True, timeout=60, capture_output=True,
    )  # fmt: skip
    session.convert(folder / "run.txt", folder / "run.pftrace")
    return lanescope.open(folder / "run.txt"), folder / "run.pftrace"


def test_views_hold_what_the_tables_hold(written, trace_processor):
    trace, file = written
    answers = trace_processor(
        file,
        perfetto_views.sql(),
        perfetto_views.sql(),  # they may be made again
        "select name, count, total from lanescope_names",
        "select cause, dur from lanescope_gaps",
        "select severity, code, title, detail, count from lanescope_findings",
        "select from_name, to_name, delay from lanescope_flows",
        "select whole_name from lanescope_tracks",
        "select sum(busy) as busy, sum(slices) as slices from lanescope_lanes",
        "select sum(max(dur, 0)) as busy, count(*) as slices from lanescope_slices where depth = 0",
    )
    names, gaps, findings, flows, tracks, lanes, slices = answers[2:]
    known = trace.slices.valid("dur")
    total: Counter[str] = Counter()
    for name, dur, is_known in zip(trace.slices.values("name"), trace.slices.values("dur"), known, strict=True):
        total[name] += int(dur) if is_known else 0
    of_slices = {name for name in total if name not in set(trace.instants.values("name"))}
    assert {row["name"]: int(row["total"]) for row in names if row["name"] in of_slices} == {
        name: total[name] for name in of_slices
    }
    assert Counter(row["cause"] for row in gaps) == Counter(trace.gaps.values("cause").tolist())
    found = [finding for finding in session.check(trace) if finding.location.ts is not None]
    assert found
    assert Counter((row["severity"], row["code"], row["title"], row["detail"], row["count"]) for row in findings) == (
        Counter((one.severity, one.code, one.title, one.detail, one.count) for one in found)
    )
    assert len(flows) > 100
    assert {row["whole_name"] for row in tracks} >= set(trace.tracks.values("name").tolist())
    assert lanes == slices


@pytest.mark.parametrize("family", ["ascend", "levelzero", "kineto"])
def test_every_arrow_leads_from_the_slice_of_its_cause_to_that_of_its_effect(family, trace_processor, tmp_path):
    made = tmp_path / ("run.json" if family == "kineto" else "run")
    simulate = [sys.executable, "-m", "lanescope", "sim", family, "-o", str(made)]
    subprocess.run(simulate, check=True, timeout=60, capture_output=True)
    trace = lanescope.open(made)
    session.convert(made, tmp_path / "run.pftrace")
    (arrows,) = trace_processor(
        tmp_path / "run.pftrace",
        "select o.ts as out_ts, o.dur as out_dur, o.name as out_name, i.ts as in_ts, i.dur as in_dur, i.name as in_name"
        " from flow f join slice o on o.id = f.slice_out join slice i on i.id = f.slice_in",
    )
    slices, flows = trace.slices, trace.flows
    row = {int(number): at for at, number in enumerate(slices.values("id"))}
    shape = list(zip(slices.values("ts").tolist(), slices.values("dur").tolist(), slices.values("name"), strict=True))
    assert flows.valid("src_slice_id").all()
    assert flows.valid("dst_slice_id").all()
    wanted = Counter(
        (*shape[row[int(source)]], *shape[row[int(destination)]])
        for source, destination in zip(flows.values("src_slice_id"), flows.values("dst_slice_id"), strict=True)
    )
    assert wanted.total() > 100
    drawn = Counter(
        (int(a["out_ts"]), int(a["out_dur"]), a["out_name"], int(a["in_ts"]), int(a["in_dur"]), a["in_name"])
        for a in arrows
    )
    assert drawn == wanted


def test_the_command_prints_them():
    command = [sys.executable, "-m", "lanescope", "sql", "--perfetto-views"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == perfetto_views.sql() + "\n"
