"""Ingesting on the workers of a Dask cluster: processes on this machine, of which one is killed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cli.dataset.contents import content, files, wait_for_captures
from cli.dataset.dask_cluster import cluster
from lanescope.io.dataset.records import Catalog
from lanescope.io.dataset.store import open_store

pytest.importorskip("distributed")
pytestmark = pytest.mark.full


def test_a_worker_killed_in_the_middle_loses_nothing(many, many_ingested, tmp_path):
    command = [sys.executable, "-m", "lanescope", "ingest", str(many), "-o"]
    out = tmp_path / "dataset"
    with cluster(tmp_path, 2) as (place, workers):
        process = subprocess.Popen([*command, str(out), "--on", place], stderr=subprocess.PIPE, text=True)
        done = wait_for_captures(process, out, 60)
        workers[0].kill()
        _, err = process.communicate(timeout=300)
    assert done < 200, "the worker was killed too late to be missed"
    assert process.returncode == 0, err
    assert content(out) == content(many_ingested)
    assert files(out) == files(many_ingested)


def test_a_capture_that_ends_its_workers_is_listed(many, tmp_path, monkeypatch):
    """The workers know a module in which decoding one of the captures ends the process."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal\n"
        "from lanescope.pipeline.dataset import one_capture\n"
        "whole = one_capture.capture_id\n"
        "def ended(opened):\n"
        "    if 'rank_7/' in opened.main.path:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return whole(opened)\n"
        "one_capture.capture_id = ended\n"
    )
    command = [sys.executable, "-m", "lanescope", "ingest", "--on"]
    with monkeypatch.context() as patched:
        patched.setenv("PYTHONPATH", str(tmp_path))
        patched.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "1")
        started = cluster(tmp_path, 4)
        place, _ = started.__enter__()
    try:
        out = tmp_path / "dataset"
        paths = [many / f"rank_{rank}/attention.npy" for rank in range(5, 10)]
        done = subprocess.run(
            [*command, place, *map(str, paths), "-o", str(out)],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    finally:
        started.__exit__(None, None, None)
    assert done.returncode == 3, done.stderr
    catalog = Catalog(open_store(str(out)))
    assert sorted(record.rank for record in catalog.captures) == [5, 6, 8, 9]
    assert ["rank_7" in each.path for each in catalog.failed] == [True]


def test_no_scheduler_is_a_clear_error(call, fleet):
    done = call("ingest", fleet, "-o", "fleet", "--on", "dask://127.0.0.1:9")
    assert done.status == 2
    assert "cannot reach the scheduler" in done.err


@pytest.mark.parametrize("place", ["ray://x", "dask:/x"])
def test_unknown_places_are_refused(call, fleet, place):
    assert call("ingest", fleet, "-o", "fleet", "--on", place).status == 2
