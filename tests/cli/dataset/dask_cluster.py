"""A Dask cluster of processes on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import contextmanager


@contextmanager
def cluster(folder, workers):
    """Yield the address of a scheduler, and the processes of its workers."""
    file = folder / "scheduler.json"
    log = (folder / "log").open("w")
    started = []

    def start(*arguments):
        command = [sys.executable, "-m", "dask", *arguments]
        started.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=folder))
        return started[-1]

    try:
        start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
        deadline = time.monotonic() + 60
        while not (file.exists() and file.stat().st_size):
            assert time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"].removeprefix("tcp://")
        flags = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
        made = [start("worker", f"tcp://{address}", *flags) for _ in range(workers)]
        _wait_for(address, workers)
        yield f"dask://{address}", made
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()
        log.close()


def _wait_for(address, workers):
    from distributed import Client

    with Client(f"tcp://{address}", timeout=30, set_as_default=False) as client:
        client.wait_for_workers(workers, timeout=60)
