"""Datasets as what they say: records, failures and rows; and captures of ranks to ingest."""

from __future__ import annotations

import json
import time

from lanescope.io.dataset import tables
from lanescope.io.dataset.records import Catalog
from lanescope.io.dataset.store import open_store


def content(url):
    """All that a dataset says: its records without times, its failures, and the rows of each table."""
    catalog = Catalog(open_store(str(url)))
    rows = {}
    with tables.connect(catalog, catalog.captures) as connection:
        for name in tables.declarations(catalog, catalog.captures):
            found = connection.execute(f'select * from "{name}" order by all').fetchall()
            rows[name] = found
    return catalog.captures, catalog.failed, rows


def files(folder):
    """Content of all Parquet files that a folder holds."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.parquet")}


def wait_for_captures(process, out, count):
    """Wait until the process has committed so many captures to a dataset; return how many it has then."""
    deadline = time.monotonic() + 300
    while (done := len(list((out / "_captures").glob("*.json")))) < count:
        assert process.poll() is None, "it ended before"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return done


def write_ranks(folder, ranks, length):
    """Write a profile of each rank, ``r0.json`` and so on: 20 kernels of ``length(rank, step)`` us or a bit more."""
    for rank in range(ranks):
        events = [
            {
                "ph": "X", "cat": "kernel", "name": "matmul", "pid": 0, "tid": 7, "ts": 1000.0 * step,
                "dur": length(rank, step) + 0.1 * ((rank * 7 + step) % 5),
                "args": {"device": 0, "stream": 7, "correlation": step},
            }
            for step in range(20)
        ]  # fmt: skip
        document = {
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks},
            "schemaVersion": 1,
            "traceEvents": events,
        }
        (folder / f"r{rank}.json").write_text(json.dumps(document))
