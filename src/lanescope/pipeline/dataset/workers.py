"""Captures side by side in processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing.connection import wait as wait_for

from lanescope.errors import InputError
from lanescope.pipeline.dataset.one_capture import Outcome, Work, failed, ingest_one
from lanescope.pipeline.memory import LEAST, limited

#: Status of a worker that would have taken more memory than it may.
_TOO_LARGE = 73
#: Memory of the process that waits for the workers, and of the one that Python starts beside it; 54 MiB were seen.
_OWN = 60 << 20


def default_jobs() -> int:
    """Return the number of cores that this process may use."""
    with suppress(AttributeError):  # not Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def ingest_local(works: Sequence[Work], jobs: int) -> Iterator[Outcome]:
    """Ingest captures in processes; yield outcomes as they come.

    A process that ends in the middle of a capture (no memory, a crash) does not end the others: those captures that
    were in work are done again, one at a time. The one that ends its process again is the failed one.

    Args:
        works: what to ingest.
        jobs: number of processes; 1: this one.
    """
    limit = works[0].memory if works else None
    if limit is None and (jobs <= 1 or len(works) <= 1):
        for work in works:
            yield ingest_one(work)
        return
    if limit is not None:
        # This process takes a part of it, and each worker as much as the others.
        jobs = max(1, min(jobs, (limit - _OWN) // LEAST))
        works = [work._replace(memory=(limit - _OWN) // jobs) for work in works]
    left = deque(work._replace(is_beside_others=jobs > 1) for work in works)
    while left:
        suspects: list[Work] = []
        yield from _pooled(left, jobs, suspects)
        for work in suspects:
            yield from _alone(work if limit is None else work._replace(memory=limit - _OWN))


def ingest_within(work: Work) -> Outcome:
    """Ingest a capture in a worker, whose process ends if it takes more memory than it may."""
    if work.memory is None:
        from lanescope._native import core

        core.keep_freed_memory()  # the worker is of this command, and has the next capture in the same memory
    with limited(work.memory, "", _TOO_LARGE):
        return ingest_one(work)


def _pool(jobs: int) -> ProcessPoolExecutor:
    # Not by a fork: this process may have threads, of DuckDB for example.
    return ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _prepare)


def _prepare() -> None:
    """Let a worker end with its parent, however that ends; Ctrl-C is for the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait_for([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _pooled(left: deque[Work], jobs: int, suspects: list[Work]) -> Iterator[Outcome]:
    """Take captures from ``left``; those in work when a process ends go to ``suspects``."""
    pool = _pool(min(jobs, len(left)))
    running: dict[Future[Outcome], Work] = {}
    try:
        while left or running:
            while left and len(running) < jobs:
                work = left.popleft()
                try:
                    running[pool.submit(ingest_within, work)] = work
                except BrokenProcessPool:
                    left.appendleft(work)
                    break
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            is_broken = False
            for each in done:
                work = running.pop(each)
                try:
                    outcome = each.result()
                except BrokenProcessPool:
                    suspects.append(work)
                    is_broken = True
                else:
                    yield outcome
            if is_broken:
                suspects.extend(running.values())
                return
    finally:
        _end(pool)


def _alone(work: Work) -> Iterator[Outcome]:
    """Ingest one capture in a process of its own."""
    pool = _pool(1)
    try:
        running = pool.submit(ingest_within, work)
        processes = list((pool._processes or {}).values())
        yield running.result()
    except BrokenProcessPool:
        pool.shutdown()  # its thread waits for the process, too: only one of the two is told the status
        for process in processes:
            process.join()
        error = InputError(
            "the process that decoded it ended", hint="check the memory of the machine, or use --memory SIZE"
        )
        if work.memory is not None and any(process.exitcode == _TOO_LARGE for process in processes):
            what = f"decoding needs more than {work.memory >> 20:,} MiB of memory"
            error = InputError(what, hint="use a larger --memory")
        yield record_failure(work, failed(work.path, error))
    finally:
        _end(pool)


def record_failure(work: Work, outcome: Outcome) -> Outcome:
    """List a failure in the dataset that the worker could not list itself, and return it."""
    from lanescope.io.dataset.store import open_store
    from lanescope.pipeline.dataset.one_capture import list_failure

    list_failure(open_store(work.dataset), outcome)
    return outcome


def _end(pool: ProcessPoolExecutor) -> None:
    """End the processes at once: what they have begun and not committed does not count."""
    processes = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        with suppress(OSError):
            process.terminate()
    for process in processes:
        process.join()
