"""Parallel programs: recordings by rank, chosen ranks, sums over ranks, and clocks of several hosts."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys

import pytest

import lanescope
from lanescope.cli import main
from lanescope.devices.levelzero.analysis.rank_tally import rank_tally
from lanescope.devices.levelzero.analysis.tally import tally
from lanescope.devices.levelzero.recorder import children, ranks

pytestmark = pytest.mark.timeout(1200)

RECORD = (sys.executable, "-m", "lanescope", "record")


@pytest.fixture
def mpirun(require_tool):
    """Return the command that starts ranks on this machine, however few cores it has, without any network."""
    options = "--allow-run-as-root --oversubscribe --mca btl self,vader --mca oob_tcp_if_include lo -n 4"
    return [require_tool("mpirun"), *options.split()]


def execute(command, environment, status=0):
    done = subprocess.run(
        [str(word) for word in command], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == status, done.stderr
    return done


@pytest.fixture
def recorded(fake_ze, tmp_path):
    """Return a function that records the program as a rank, and returns the folder of the recording."""

    def recorded(rank, folder="run", what="saxpy"):
        environment = {**fake_ze.environment(execute="inline", clock="virtual"), "PMI_RANK": str(rank), "PMI_SIZE": "3"}
        execute([*RECORD, "-o", tmp_path / folder, "--", fake_ze.app, what], environment)
        return tmp_path / folder / f"rank-{rank}"

    return recorded


def test_ranks_that_record_write_one_folder_each(fake_ze, mpirun, tmp_path):
    folder = tmp_path / "run"
    command = [*mpirun, *RECORD, "-o", folder, "--ranks", "0,2-3", "--", fake_ze.app, "saxpy"]
    done = execute(command, fake_ze.environment())
    assert done.stdout == "saxpy: right\n" * 4
    assert sorted(path.name for path in folder.iterdir()) == ["rank-0", "rank-2", "rank-3"]
    trace = lanescope.open(folder)
    names = [row["name"] for row in trace.tracks.rows() if row["role"] == "process"]
    assert [name.partition(",")[0] for name in names] == ["rank 0", "rank 2", "rank 3"]
    assert set(trace.details["levelzero_threads"]["rank"].tolist()) == {0, 2, 3}
    # One machine, one clock: all ranks lie on one timeline, and nothing is to be said of its error.
    assert not [row for row in trace.stats.rows() if row["name"].startswith("levelzero_host_clock")]


def test_one_recorder_around_the_launcher_names_ranks_too(fake_ze, mpirun, tmp_path):
    folder = tmp_path / "run"
    command = [*RECORD, "-o", folder, "--ranks", "1,3", "--", *mpirun, fake_ze.app, "saxpy"]
    done = execute(command, fake_ze.environment())
    assert done.stdout == "saxpy: right\n" * 4
    assert sorted(re.sub(r"-\d+$", "", path.name)[:7] for path in folder.iterdir()) == ["rank-1-", "rank-3-"]
    assert set(lanescope.open(folder).details["levelzero_threads"]["rank"].tolist()) == {1, 3}


def test_other_ranks_have_nothing_of_the_recorder(fake_ze, tmp_path):
    environment = {**fake_ze.environment(), "PMI_RANK": "1"}
    shown = execute([*RECORD, "-o", tmp_path / "run", "--ranks", "0", "--", "env"], environment).stdout
    assert "LANESCOPE_ZE" not in shown
    assert "ZE_ENABLE_TRACING_LAYER" not in shown
    assert not (tmp_path / "run").exists()
    # Signals that Python ignores are as the program expects them, whatever this test was started with.
    command = ["sh", "-c", "grep SigIgn /proc/self/status"]
    shown = execute([*RECORD, "-o", tmp_path / "run", "--ranks", "0", "--", *command], environment).stdout
    assert shown == execute(command, environment).stdout


@pytest.mark.parametrize("variables", ranks.LAUNCHERS, ids=lambda variables: variables[0])
def test_ranks_of_all_launchers_are_known_inside_and_outside(fake_ze, tmp_path, variables):
    name, size, needed = variables
    given = {name: "7", **({size: "9"} if size else {}), **({needed: "0"} if needed else {})}
    assert ranks.rank_of(given) == (7, 9 if size else 0)
    words = [f"{key}={value}" for key, value in given.items()]
    execute([*RECORD, "-o", tmp_path / "in", "--", "env", *words, fake_ze.app, "saxpy"], fake_ze.environment())
    (folder,) = (tmp_path / "in").iterdir()
    assert folder.name.startswith("rank-7-")
    text = (folder / "metadata").read_text()
    assert "rank = 7;" in text
    assert ("ranks = 9;" in text) == bool(size)
    execute([*RECORD, "-o", tmp_path / "out", "--", fake_ze.app, "saxpy"], {**fake_ze.environment(), **given})
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["rank-7"]


def test_a_batch_script_is_no_rank(fake_ze, tmp_path):
    environment = {**fake_ze.environment(), "SLURM_PROCID": "0", "SLURM_NTASKS": "4"}
    assert ranks.rank_of(environment) is None
    execute([*RECORD, "-o", tmp_path / "run", "--", fake_ze.app, "saxpy"], environment)
    assert not [path for path in (tmp_path / "run").iterdir() if path.name.startswith("rank")]


@pytest.mark.parametrize("text", ["", "a", "3-1", "1,,2", "-1", "1-", "1234567890"])
def test_invalid_ranks_are_refused(text, capsys):
    assert main(["record", f"--ranks={text}", "--", "true"]) == 2
    assert "ranks" in capsys.readouterr().err


def test_selections():
    assert [rank for rank in range(10) if ranks.is_selected(ranks.Rank(rank, 10), "0,4-6,8")] == [0, 4, 5, 6, 8]
    assert ranks.is_selected(None, "")
    assert not ranks.is_selected(None, "0")


def test_no_rank_of_the_selection_is_said(fake_ze, tmp_path):
    done = execute([*RECORD, "-o", tmp_path / "run", "--ranks", "0", "--", fake_ze.app, "saxpy"], fake_ze.environment())
    assert "no process was one of the ranks 0; remove --ranks" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_folder_with_something_else_is_refused(fake_ze, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/notes").write_text("mine")
    environment = {**fake_ze.environment(), "PMI_RANK": "0"}
    done = execute([*RECORD, "-o", tmp_path / "run", "--", fake_ze.app, "saxpy"], environment, status=2)
    assert "contains 'notes', not recordings of ranks" in done.stderr
    assert (tmp_path / "run/notes").read_text() == "mine"


def test_all_ranks_of_a_start_share_the_default_folder():
    assert ranks.job_of({"PMIX_NAMESPACE": "prterun/4711@0", "PMI_JOBID": "9"}) == "prterun-4711-0"
    assert ranks.job_of({}) == ""


def test_sums_of_ranks(recorded, capsys):
    folders = [recorded(rank, what=what) for rank, what in enumerate(["saxpy", "mixed", "saxpy"])]
    assert main(["summary", "--by", "tally", "--json", *map(str, folders)]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    whole = {(row["section"], row["name"]): row for row in rows if row["rank"] == "all"}
    parts = {}
    for rank, folder in enumerate(folders):
        for row in tally(lanescope.open(folder)).rows():
            parts.setdefault((row["section"], row["name"]), {})[str(rank)] = row
    assert set(whole) == set(parts)
    for key, row in whole.items():
        totals = {str(rank): parts[key].get(str(rank), {"total": 0})["total"] for rank in range(3)}
        assert row["total"] == sum(totals.values())
        assert row["count"] == sum(part["count"] for part in parts[key].values())
        assert row["ranks"] == len(parts[key])
        assert (row["least"], row["most"]) == (min(totals.values()), max(totals.values()))
        assert totals[row["most_rank"]] == row["most"]
        if row["total"]:
            assert row["imbalance"] == pytest.approx(row["most"] / (row["total"] / 3) - 1)
        mins = [part["min"] for part in parts[key].values() if part["min"] is not None]
        assert row["min"] == min(mins, default=None)
    single = {(row["rank"], row["section"], row["name"]): row for row in rows if row["rank"] != "all"}
    assert len(single) == sum(len(part) for part in parts.values())
    for (rank, *key), row in single.items():
        expected = parts[tuple(key)][rank]
        assert [row[name] for name in ("count", "errors", "open", "total", "min", "max", "average")] == [
            expected[name] for name in ("count", "errors", "open", "total", "min", "max", "average")
        ]
    # The folder around them is one recording with the same sums.
    around = list(rank_tally(lanescope.open(folders[0].parent)).rows())
    assert [(row["rank"], row["name"], row["count"]) for row in around if row["section"] == "traffic"] == [
        (row["rank"], row["name"], row["count"]) for row in rows if row["section"] == "traffic"
    ]


def test_recordings_without_ranks_count_by_name(fake_ze, tmp_path, capsys):
    folders = [tmp_path / name for name in ("before", "after")]
    for folder in folders:
        execute([*RECORD, "-o", folder, "--", fake_ze.app, "saxpy"], fake_ze.environment())
    assert main(["summary", "--by", "tally", "--json", *map(str, folders)]) == 0
    labels = {row["rank"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert labels == {"all", *map(str, folders)}


def test_only_some_summaries_take_several_captures(recorded, capsys):
    folder = str(recorded(0))
    for by in ("name", "overlap"):
        assert main(["summary", "--by", by, folder, folder]) == 2
        assert "takes one capture" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ((2000, 500), {"levelzero_host_clock_error": 2500}),
        ((2000, None), {"levelzero_host_clock_unknown": 1}),
        ((None, None), {"levelzero_host_clock_unknown": 2}),
    ],
)
def test_clocks_of_several_hosts_have_a_stated_error(recorded, tmp_path, errors, expected):
    folders = [recorded(rank) for rank in range(2)]
    shutil.copytree(folders[0].parent, tmp_path / "hosts")
    for number, (folder, error) in enumerate(zip(folders, errors, strict=True)):
        (metadata,) = (tmp_path / "hosts" / folder.name).glob("*/metadata")
        text = re.sub(r" clock_error = \d+;", "", metadata.read_text())
        stated = "" if error is None else f" clock_error = {error};"
        metadata.write_text(re.sub(r'boot = "[^"]*";', f'boot = "host {number}";{stated}', text))
    trace = lanescope.open(tmp_path / "hosts")
    found = {row["name"]: row["count"] for row in trace.stats.rows() if row["name"].startswith("levelzero_host_clock")}
    assert found == expected
    codes = {finding.stat for finding in lanescope.check(trace)}
    assert set(expected) <= codes


def test_a_rank_that_was_recorded_is_not_named_as_one_that_was_not(tmp_path):
    # A look at a process that has just begun to start finds it without the recorder.
    watched = children.Children({}, "/layer")
    for pid in (41, 42):
        watched._found[pid] = children.Child(pid, "/bin/program", "ZE_ENABLE_TRACING_LAYER")
    made = tmp_path / f"rank-3-{children._host()}-41"
    made.mkdir()
    (made / "metadata").write_text("")
    assert [child.pid for child in watched.unrecorded(tmp_path)] == [42]


@pytest.mark.parametrize(("rank", "expected"), [("0", 0), ("1", 1), (None, 1)])
def test_a_rank_that_is_not_to_be_recorded_lacks_nothing(tmp_path, rank, expected):
    """While it starts, a process has the driver and not yet the recorder: of ranks left out, it never comes."""
    names = ("libze_loader.so.1", "libze_intel_gpu.so.1")
    for name in names:
        (tmp_path / name).write_bytes(b"\0" * 4096)
    program = (
        "import mmap, sys\n"
        "files = [open(path, 'rb') for path in sys.argv[1:]]\n"
        "held = [mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) for file in files]\n"
        "print('mapped', flush=True)\n"
        "sys.stdin.read()\n"
    )
    made = {"LANESCOPE_ZE_OUTPUT": "out", "ZE_ENABLE_TRACING_LAYER": "1", "LD_LIBRARY_PATH": "/layer"}
    made["LANESCOPE_ZE_RANKS"] = "1,3"
    environment = {**made, **({"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": "4"} if rank else {})}
    watched = children.Children(made, "/layer")
    with subprocess.Popen(
        [sys.executable, "-c", program, *(str(tmp_path / name) for name in names)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as running:
        assert running.stdout.readline() == b"mapped\n"
        watched.begin(running.pid)
        watched.look(is_last=True)
        running.communicate()
    assert len(watched.unrecorded(tmp_path)) == expected
