"""Captures of several ranks on one time base: by what each says of the host's clock, and not without."""

import json

import numpy as np
import pytest

from devices.ascend.helpers import records
from lanescope import cli
from lanescope.devices.ascend.analysis.report import summarize
from lanescope.errors import MergeError
from lanescope.pipeline import session
from lanescope.trace.merge import align

CLOCK = 50_000_000
NAME = "chip_swimlane_records.json"


def anchors(first, last):
    """Return readings before and behind a run: (cycles, host ns) each."""
    samples = [
        {
            "position": position,
            "sample_idx": index,
            "host_before_ns": host - width,
            "device_cycles": cycles,
            "host_after_ns": host + width,
            "error": None,
        }
        for position, (cycles, host) in (("pre_host_orchestration", first), ("post_device_execution", last))
        for index, width in enumerate((500, 20, 300))
    ]
    return {"clock_anchors": {"schema_version": 1, "raw_device_timestamp_unit": "syscnt_cycles", "samples": samples}}


def bounded(cycles, host, error):
    return {
        "runtime": "tensormap_and_ringbuffer",
        "clock_alignment": {
            "status": "bounded",
            "device_anchor_cycles": cycles,
            "host_anchor_ns": host,
            "host_anchor_min_ns": host - error,
            "host_anchor_max_ns": host + error,
        },
    }


def rank_file(folder, rank, content):
    path = folder / f"rank{rank}" / "d0" / NAME
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(content))
    return path


def capture(base, metadata, *, epochs=()):
    """Return a capture of two executions that begin at ``base`` cycles."""
    rows = [[0, 5, 1, base + 20, base + 70, 10], [1, 6, 1, base + 120, base + 170, 10]]
    pairs = [[0, 1, base, base + 80], [1, 1, base + 90, base + 180]]
    if epochs:
        rows = [
            [*row, epoch]
            for epoch in epochs
            for row in [[*r[:3], r[3] + 1000 * epoch, r[4] + 1000 * epoch, 10] for r in rows]
        ]
        pairs = [[*p[:2], p[2] + 1000 * epoch, p[3] + 1000 * epoch, epoch] for epoch in epochs for p in pairs]
        more = {"scheduler_tasks": {"producer": "aicpu", "records": pairs}}
        made = records(rows, key="chip_swimlane_level", metadata=metadata, **more)
        del made["aicpu_tasks"]
        return made
    return records(rows, pairs, key="chip_swimlane_level", metadata=metadata)


def test_ranks_with_anchors_share_the_hosts_time(tmp_path):
    # The counters differ; the runs were 3 us apart on the host: 1000 cycles = 20 us.
    first = rank_file(tmp_path, 0, capture(7_000_000, anchors((6_999_000, 10_000_000), (7_001_000, 10_040_000))))
    second = rank_file(tmp_path, 1, capture(90_000, anchors((89_000, 10_003_000), (91_000, 10_043_000))))
    traces = [session.open(first), session.open(second)]
    assert [trace.time.epoch_kind for trace in traces] == ["host_monotonic"] * 2
    merged = session.merge(traces)
    starts = merged.slices["ts"][merged.details["ascend_tasks"]["slice_id"]]
    assert starts.tolist() == [400, 2400, 3400, 5400]
    assert merged.time.epoch_ns == 10_000_000 + 20_000
    assert merged.details["ascend_tasks"]["rank"].tolist() == [0, 0, 1, 1]
    assert merged.details["ascend_runs"]["device"].tolist() == [0, 0]
    names = [row["name"] for row in merged.tracks.rows() if row["role"] == "run"]
    assert names == ["rank0/d0", "rank1/d0 (clock host_monotonic of host, ±40 ns)"]
    errors = [row["error_ns"] for row in merged.anchors.rows() if row["error_ns"]]
    assert errors == [20] * 4


def test_a_bounded_clock_keeps_its_bounds(tmp_path):
    paths = [
        rank_file(tmp_path, rank, capture(base, bounded(base, host, 700), epochs=(1, 2)))
        for rank, base, host in ((0, 5000, 1_000_000), (3, 900_000, 1_000_500))
    ]
    merged = session.merge([session.open(path) for path in paths])
    tasks = merged.details["ascend_tasks"]
    identity = set(zip(*(tasks[name].tolist() for name in ("rank", "run_epoch", "task_id")), strict=True))
    assert identity == {(rank, epoch, task) for rank in (0, 3) for epoch in (1, 2) for task in (5, 6)}
    assert len(tasks) == len(identity)
    starts = merged.slices["ts"][tasks["slice_id"]].reshape(2, 4)
    assert (starts[1] - starts[0]).tolist() == [500] * 4
    assert [row["error_ns"] for row in merged.anchors.rows() if row["error_ns"]] == [700, 700]


@pytest.mark.parametrize("metadata", [{}, bounded(0, 0, 0), anchors((1, 5000), (2, 6000))])
def test_ranks_without_usable_anchors_are_refused(tmp_path, metadata):
    whole = rank_file(tmp_path, 0, capture(7_000_000, anchors((6_999_000, 10_000_000), (7_001_000, 10_040_000))))
    bare = [rank_file(tmp_path, rank, capture(1000 * rank, metadata)) for rank in (1, 2)]
    for paths in ((whole, bare[0]), bare):
        with pytest.raises(MergeError, match="no common clock"):
            session.merge([session.open(path) for path in paths])


def test_captures_of_one_named_chip_share_its_counter(tmp_path):
    paths = [rank_file(tmp_path, rank, capture(base, {})) for rank, base in ((0, 1000), (1, 1500))]
    merged = session.merge([session.open(path, device="npu0") for path in paths])
    starts = merged.slices["ts"][merged.details["ascend_tasks"]["slice_id"]]
    assert starts.tolist() == [400, 2400, 10_400, 12_400]
    with pytest.raises(MergeError):
        session.merge([session.open(path, device=f"npu{number}") for number, path in enumerate(paths)])


def test_a_rank_that_is_said_wins_over_the_folder(tmp_path):
    path = rank_file(tmp_path, 4, capture(1000, {}))
    assert session.open(path).details["ascend_tasks"]["rank"].tolist() == [4, 4]
    assert session.open(path, rank=9).details["ascend_tasks"]["rank"].tolist() == [9, 9]
    plain = tmp_path / NAME
    plain.write_text(json.dumps(capture(1000, {})))
    assert not session.open(plain).details["ascend_tasks"].valid("rank").any()


def test_one_command_for_many_ranks(tmp_path, capsys):
    paths = [
        rank_file(tmp_path, rank, capture(500 * rank + 1000, bounded(1000, 10_000 + rank, 5))) for rank in range(8)
    ]
    out = tmp_path / "all.pftrace"
    assert cli.main(["convert", *map(str, paths), "-o", str(out)]) == 0
    assert out.stat().st_size > 0
    alone = rank_file(tmp_path, 8, capture(1000, {}))
    assert cli.main(["convert", *map(str, paths), str(alone), "-o", str(tmp_path / "no.pftrace")]) != 0
    assert "no common clock" in capsys.readouterr().err
    assert not (tmp_path / "no.pftrace").exists()


def test_a_host_of_records_and_one_of_anchors_agree(tmp_path):
    # With the host's own records the axis is the host's clock as well.
    metadata = anchors((6_999_000, 10_000_000), (7_001_000, 10_040_000))
    content = capture(7_000_000, metadata)
    with_host = {
        **content,
        "host_orchestrator_phases": [
            [{"submit_idx": 0, "task_id": 5, "start_host_ns": 9_000_000, "end_host_ns": 9_000_100}]
        ],
    }
    first, second = (session.open(rank_file(tmp_path, rank, made)) for rank, made in enumerate((content, with_host)))
    starts = [
        trace.time.epoch_ns + trace.slices["ts"][trace.details["ascend_tasks"]["slice_id"]] for trace in (first, second)
    ]
    assert np.array_equal(*starts)


@pytest.mark.parametrize("with_host", [False, True])
def test_ranks_say_how_far_off_their_anchors_may_be(tmp_path, capsys, with_host):
    # The shortest exchange at either end took 40 ns, so a stamp is off by up to 20 ns, and two ranks by twice that.
    host = {"submit_idx": 0, "task_id": 5, "start_host_ns": 9_000_000, "end_host_ns": 9_000_100}
    paths = []
    for rank, (cycles, since) in enumerate(((7_000_000, 10_000_000), (90_000, 10_003_000), (500_000, 10_001_000))):
        metadata = anchors((cycles - 1000, since), (cycles + 1000, since + 40_000))
        more = {"host_orchestrator_phases": [[host]]} if with_host and rank else {}
        paths.append(rank_file(tmp_path, rank, {**capture(cycles, metadata), **more}))
    placed = align([session.open(path) for path in paths])
    assert [placement.error_ns for placement in placed] == [0, 40, 40]
    assert cli.main(["convert", *map(str, paths), "-o", str(tmp_path / "all.pftrace")]) == 0
    said = capsys.readouterr().err.splitlines()
    assert [line.endswith("error at most 40 ns)") for line in said[:3]] == [False, True, True]


def test_a_rank_that_only_comes_after_its_host_has_an_unknown_error(tmp_path):
    host = {"submit_idx": 0, "task_id": 5, "start_host_ns": 9_000_000, "end_host_ns": 9_000_100}
    paths = [
        rank_file(tmp_path, 0, capture(7_000_000, anchors((6_999_000, 10_000_000), (7_001_000, 10_040_000)))),
        rank_file(tmp_path, 1, {**capture(90_000, {}), "host_orchestrator_phases": [[host]]}),
    ]
    assert [placement.error_ns for placement in align([session.open(path) for path in paths])] == [0, None]


def test_edges_and_arrows_of_ranks_with_the_same_tasks_stay_in_their_rank(corpus, tmp_path):
    made = []
    for rank, path in enumerate(sorted((corpus / "producers" / "ascend" / "graph_l4").iterdir())):
        folder = tmp_path / f"rank{rank}" / "d0"
        folder.mkdir(parents=True)
        for name in (NAME, "deps.json"):
            (folder / name).write_bytes((path / name).read_bytes())
        made.append(session.open(folder / NAME))
    merged = session.merge(made)
    edges, flows, slices = merged.details["ascend_edges"], merged.flows, merged.slices
    file_of = merged.tracks["input_id"][slices["track_id"]]
    src, dst = (file_of[flows[f"{side}_slice_id"]] for side in ("src", "dst"))
    assert (src == dst).all()
    drawn = edges.valid("flow_id")
    assert drawn.sum() > 4
    assert (edges["input_id"][drawn] == src[edges.values("flow_id")[drawn]]).all()
    # Both ranks have the same tasks and edges: only the file tells them apart.
    pairs = list(zip(edges["pred_task_id"].tolist(), edges["succ_task_id"].tolist(), strict=True))
    assert len(set(pairs)) * 2 == len(pairs) == len(set(zip(edges["input_id"].tolist(), pairs, strict=True)))
    # What a core could have run is the same as in each capture alone.
    alone = [row for trace in made for row in summarize("core-idle", trace).rows()]
    parts = ("launch", "scheduler_late", "no_ready_task", "unknown")
    found = list(summarize("core-idle", merged).rows())
    for part in parts:
        assert sum(row[part] for row in found) == sum(row[part] for row in alone), part
