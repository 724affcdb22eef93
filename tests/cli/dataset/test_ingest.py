"""Ingesting: what was killed and resumed, done twice or side by side is equal to what was not."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from cli.dataset.contents import content, files, wait_for_captures
from effort import FULL
from lanescope._native import core
from lanescope.io import parquet
from lanescope.io.dataset import compact, parts, tables
from lanescope.io.dataset.records import Catalog
from lanescope.io.dataset.store import LocalStore, open_store
from lanescope.pipeline import session
from lanescope.pipeline.dataset import one_capture, workers
from lanescope.pipeline.dataset.one_capture import Work, ingest_one
from lanescope.pipeline.sources import CaptureSource

#: Ingests into a new folder again and again, each time in a process of its own that is killed right before the next
#: change of the file system; after each kill it reads what is committed, and ingests again to the end.
DRIVER = """
import os, signal, sys
from pathlib import Path
from lanescope.cli import main
from lanescope.cli.commands import ingest
from lanescope.io.dataset import tables
from lanescope.io.dataset.records import Catalog
from lanescope.io.dataset.store import open_store
from lanescope.pipeline.dataset import inputs, workers, cluster
folder, step, paths = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
def watched(call):
    def wrapped(*arguments, **named):
        global left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*arguments, **named)
    return wrapped
def status_of(call):
    child = os.fork()
    if not child:
        os._exit(call())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
def killed():
    for name in ("link", "fsync", "mkdir", "unlink", "rmdir", "open"):
        setattr(os, name, watched(getattr(os, name)))
    Path.replace, Path.write_bytes, Path.mkdir = watched(Path.replace), watched(Path.write_bytes), watched(Path.mkdir)
    return main(command)
def read():
    if Path(out, "lanescope-dataset.json").exists():
        catalog = Catalog(open_store(out))
        for record in catalog.captures:
            tables.read_capture(catalog, record)
    return 0
left = 1
while True:
    at, out = left, f"{folder}/{left}"
    command = ["ingest", *paths, "-o", out, "--jobs", "1"]
    status = status_of(killed)
    assert status in (0, -signal.SIGKILL), status
    if not status:
        break
    assert status_of(read) == 0, at
    assert status_of(lambda: main(command)) == 0, at
    left = at + step
"""


def ingest(*arguments, jobs=1, **options):
    command = [sys.executable, "-m", "lanescope", "ingest", *map(str, arguments), "--jobs", str(jobs)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **options)


@pytest.fixture(scope="session")
def whole(fleet, tmp_path_factory):
    """The dataset of one run that nothing interrupted."""
    out = tmp_path_factory.mktemp("whole") / "dataset"
    done = ingest(fleet, "-o", out)
    assert done.returncode == 0, done.stderr
    return out


def test_captures_come_back_as_they_are_decoded(fleet, whole):
    catalog = Catalog(open_store(str(whole)))
    assert [(each.run, each.rank, each.rank_from) for each in catalog.captures] == [
        *(("kernels", rank, "name") for rank in range(3)),
        *(("train", rank, "content") for rank in range(4)),
    ]
    for record in catalog.captures:
        trace, again = session.open(record.path), tables.read_capture(catalog, record)
        assert again.time == trace.time
        assert set(again.tables()) == set(trace.tables())
        for name, table in trace.tables().items():
            assert list(again.tables()[name].rows()) == list(table.rows()), name


@pytest.mark.parametrize("jobs", [1, 3])
def test_ingesting_again_changes_nothing(fleet, whole, tmp_path, jobs):
    out = tmp_path / "dataset"
    for _ in range(2):
        assert ingest(fleet, "-o", out, jobs=jobs).returncode == 0
        assert files(out) == files(whole)
        assert content(out) == content(whole)


@pytest.mark.parametrize("memory", [None, 256 << 20])
def test_a_worker_keeps_freed_memory_unless_it_is_limited(fleet, tmp_path, memory, monkeypatch):
    kept = []
    keep = core.keep_freed_memory
    monkeypatch.setattr(core, "keep_freed_memory", lambda: kept.append(keep()))
    # What a limit does is for processes of their own; here it would hold for all tests that come behind.
    monkeypatch.setattr(workers, "limited", lambda *_: nullcontext())
    work = Work(str(fleet / "train/r0.json"), str(tmp_path / "out"), memory=memory)
    assert workers.ingest_within(work).status == "ingested"
    assert kept == [True] * (memory is None)


def test_a_command_keeps_freed_memory(call, fleet, tmp_path, monkeypatch):
    kept = []
    keep = core.keep_freed_memory
    monkeypatch.setattr(core, "keep_freed_memory", lambda: kept.append(keep()))
    assert call("ingest", fleet / "train/r0.json", "-o", tmp_path / "out", "--jobs", "1").status == 0
    assert kept == [True]


@pytest.mark.full
def test_a_kill_before_any_change_of_the_file_system_is_resumed(fleet, tmp_path):
    paths = sorted((fleet / "train").glob("r?.json"))[:2]
    expected = tmp_path / "expected"
    assert ingest(*paths, "-o", expected).returncode == 0
    killed = tmp_path / "killed"
    killed.mkdir()
    command = [sys.executable, "-c", DRIVER, str(killed), "1" if FULL else "11", *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stderr
    resumed = sorted(path for path in killed.iterdir() if path.name.isdecimal())
    assert len(resumed) > 8
    for out in resumed[:-1]:
        assert content(out) == content(expected), out.name
        assert files(out) == files(expected), out.name
        assert list((out / "_staging").iterdir()) == [], out.name


@pytest.mark.parametrize("delay", [0.15, 0.4, 0.6, 0.8, 1.0, 1.3])
def test_a_kill_of_processes_side_by_side_is_resumed(fleet, whole, tmp_path, delay):
    out = tmp_path / "dataset"
    command = [sys.executable, "-m", "lanescope", "ingest", str(fleet), "-o", str(out), "--jobs", "2"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(delay)
    process.kill()
    process.wait()
    assert ingest(fleet, "-o", out, jobs=2).returncode == 0
    assert content(out) == content(whole)
    assert files(out) == files(whole)


@pytest.mark.full
def test_200_captures_killed_twice_are_resumed(many, many_ingested, tmp_path):
    out = tmp_path / "dataset"
    command = [sys.executable, "-m", "lanescope", "ingest", str(many), "-o", str(out), "--jobs", "2"]
    for after in (50, 130):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        done = wait_for_captures(process, out, after)
        process.kill()
        process.wait()
        assert done < 200, "it was killed too late to be missed"
    assert ingest(many, "-o", out, jobs=2).returncode == 0
    assert content(out) == content(many_ingested)
    assert files(out) == files(many_ingested)


def test_files_that_cannot_be_read_are_listed_and_stop_nothing(call, fleet, tmp_path):
    folder = tmp_path / "mixed"
    shutil.copytree(fleet / "train", folder)
    (folder / "broken.npy").write_bytes(b"\0" * 4096)
    (folder / "empty.bin").write_bytes(b"")
    unread = folder / "gone.json"
    done = call("ingest", *sorted(folder.iterdir()), unread, "-o", "fleet", "--jobs", "2")
    assert done.status == 3
    for name in ("broken.npy", "empty.bin", "gone.json"):
        assert name in done.out
    catalog = Catalog(open_store("fleet"))
    assert len(catalog.captures) == 4
    listed = {Path(each.path).name: each for each in catalog.failed}
    assert {"broken.npy", "empty.bin", "gone.json"} <= set(listed)
    assert "empty" in listed["empty.bin"].reason
    assert listed["empty.bin"].exit_status == 3
    # A file that can be read later leaves the list.
    shutil.copy(fleet / "kernels/rank_0/attention.npy", folder / "empty.bin")
    call("ingest", folder / "empty.bin", "-o", "fleet")
    assert "empty.bin" not in {Path(each.path).name for each in Catalog(open_store("fleet")).failed}


def test_a_worker_that_is_killed_is_one_failed_file(fleet, tmp_path):
    """A file on which the decoder ends its process: the others are ingested, and it is listed."""
    script = tmp_path / "run.py"
    script.write_text(
        "import os, signal\n"
        "from lanescope.pipeline.dataset import one_capture\n"
        "whole = one_capture.capture_id\n"
        "def ended(opened):\n"
        "    if opened.main.name == 'r2.json':\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return whole(opened)\n"
        "one_capture.capture_id = ended\n"
        "if __name__ == '__main__':\n"
        "    from lanescope.cli import main\n"
        f"    raise SystemExit(main(['ingest', {str(fleet)!r}, '-o', 'out', '--jobs', '2']))\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path
    )
    assert done.returncode == 3, done.stderr
    catalog = Catalog(LocalStore(str(tmp_path / "out")))
    assert len(catalog.captures) == 6
    assert [Path(each.path).name for each in catalog.failed] == ["r2.json"]
    assert "process that decoded it ended" in catalog.failed[0].reason


def test_the_same_content_is_one_capture(call, fleet, tmp_path):
    copy = tmp_path / "copy.json"
    shutil.copy(fleet / "train/r0.json", copy)
    done = call("ingest", fleet / "train/r0.json", copy, "-o", "fleet", "--jobs", "1")
    assert done.status == 0
    assert "has the content of" in done.err
    assert len(Catalog(open_store("fleet")).captures) == 1


def test_a_folder_of_something_else_is_refused(call, fleet, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos/a.jpg").touch()
    done = call("ingest", fleet, "-o", "photos")
    assert done.status == 2
    assert "not a dataset" in done.err


def test_joined_files_hold_the_same_rows(whole, tmp_path, call):
    out = tmp_path / "dataset"
    shutil.copytree(whole, out)
    before = content(out)
    assert call("compact", out).status == 0
    assert content(out) == before
    catalog = Catalog(open_store(str(out)))
    assert len(catalog.compacted) == 2
    assert {name for name in files(out) if "compacted" not in name} == set()
    for record in catalog.captures:
        again = tables.read_capture(catalog, record)
        assert list(again.tables()["slices"].rows()) == list(session.open(record.path).slices.rows())
    assert compact.plan(catalog) == []
    # Of one rank, only its rows.
    found = call("sql", out, "--ranks", "1", "--csv", "select distinct run, rank from slices order by all")
    assert found.out.split() == ["run,rank", "kernels,1", "train,1"]


def test_captures_are_joined_once_by_two_that_race(whole, tmp_path):
    out = tmp_path / "dataset"
    shutil.copytree(whole, out)
    first, second = Catalog(open_store(str(out))), Catalog(open_store(str(out)))
    groups = compact.plan(first)
    assert [compact.compact(first, group) is not None for group in groups] == [True] * len(groups)
    assert [compact.compact(second, group) for group in compact.plan(second)] == [None] * len(groups)
    assert content(out) == content(whole)


def test_work_done_twice_at_once_is_committed_once(fleet, tmp_path):
    out = tmp_path / "dataset"
    assert ingest(fleet / "train/r0.json", "-o", out).returncode == 0
    (record,) = (out / "_captures").iterdir()
    first = record.read_bytes()
    kept = record.rename(tmp_path / "record.json")
    kept.replace(record)
    outcome = ingest_one(Work(str(fleet / "train/r0.json"), str(out)))
    assert outcome.status == "present"
    assert record.read_bytes() == first


def test_captures_are_written_by_one_database_until_one_fails(fleet, tmp_path, monkeypatch):
    databases = []
    write_table = parquet.write_table

    def noted(connection, table, path, more):
        assert connection.execute("select current_setting('threads')").fetchall() == [(1,)]
        databases.append(parts._database(is_on_one_core=False))
        write_table(connection, table, path, more)

    def failing(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(parquet, "write_table", noted)
    work = [Work(str(fleet / f"train/r{rank}.json"), str(tmp_path / "out")) for rank in range(4)]
    assert [ingest_one(one).status for one in work[:2]] == ["ingested"] * 2
    assert len(set(map(id, databases))) == 1
    with monkeypatch.context() as patch:
        patch.setattr(parquet, "write_table", failing)
        assert ingest_one(work[2]).status == "failed"
    assert [ingest_one(one).status for one in work[2:]] == ["ingested"] * 2
    assert len(set(map(id, databases))) == 2


@pytest.mark.parametrize("is_beside_others", [False, True])
def test_a_capture_beside_others_takes_one_core(fleet, tmp_path, is_beside_others, monkeypatch):
    allowed, writing = [], set()
    write_table = parquet.write_table

    def noted(*arguments):
        allowed.append(core.allowed_threads())
        return CaptureSource(*arguments)

    def written(connection, *arguments):
        found = connection.execute("select value from duckdb_settings() where name in ('threads', 'async_threads')")
        writing.add(sum(int(threads) for (threads,) in found.fetchall()))
        write_table(connection, *arguments)

    monkeypatch.setattr(one_capture, "CaptureSource", noted)
    monkeypatch.setattr(parquet, "write_table", written)
    before = core.allowed_threads()
    assert before > 1
    work = Work(str(fleet / "train/r0.json"), str(tmp_path / "out"), is_beside_others=is_beside_others)
    assert ingest_one(work).status == "ingested"
    assert allowed == [1 if is_beside_others else before]
    assert not is_beside_others or writing == {1}
    assert core.allowed_threads() == before


def test_queries_open_only_the_files_of_the_ranks_they_ask_for(whole):
    catalog = Catalog(open_store(str(whole)))
    query = "select count(*) from slices where run = 'train' and rank = 2"
    with tables.connect(catalog, catalog.captures, query) as connection:
        plan = connection.execute(f"explain analyze {query}").fetchall()[0][1]
    assert "Scanning Files: 1/7" in plan


@pytest.mark.parametrize(
    "query", ["copy (select 1) to 'x.csv'", "create table x (a int)", "select * from read_csv('/etc/passwd')"]
)
def test_queries_neither_write_nor_read_elsewhere(call, whole, query):
    assert call("sql", whole, query).status == 2


def test_another_sidecar_file_is_not_taken_for_the_same_capture(call, tmp_path):
    """The content of the main file is known, that of the files around it is not: what they say would be lost."""
    for name, data in session.simulate("cuda", 1, tiles=1).files.items():
        (tmp_path / name).write_bytes(data)
    main, names = tmp_path / "attention.npy", tmp_path / "attention.events.json"
    assert call("ingest", main, "-o", "fleet", "--jobs", "1").status == 0
    before = files(tmp_path / "fleet")
    assert call("ingest", main, "-o", "fleet", "--jobs", "1").status == 0
    known = names.read_bytes()
    for change, expected in (
        (lambda: names.write_bytes(known.replace(b"}", b" }", 1)), "another sidecar file 'attention.events.json'"),
        (names.unlink, "without its sidecar file 'attention.events.json'"),
        (
            lambda: (names.write_bytes(known), (tmp_path / "attention.layout.toml").write_text("")),
            "a new sidecar file 'attention.layout.toml'",
        ),
    ):
        change()
        refused = call("ingest", main, "-o", "fleet", "--jobs", "1")
        assert refused.status == 3
        assert expected in refused.out
        assert files(tmp_path / "fleet") == before
