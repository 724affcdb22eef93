"""Captures side by side on the workers of a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from lanescope.errors import InputError, MissingDependencyError, UsageError
from lanescope.io.dataset.store import is_url
from lanescope.pipeline.dataset.one_capture import Outcome, Work, failed, ingest_one
from lanescope.pipeline.dataset.workers import record_failure

SCHEME = "dask://"
#: How long a scheduler may take to answer, s.
_ANSWER_S = 10


def ingest_on(place: str, works: Sequence[Work]) -> Iterator[Outcome]:
    """Ingest captures on the workers of a cluster; yield outcomes as they come.

    Workers need lanescope, and the same paths or URLs. A capture whose worker ends is done again on another one; what
    was done twice is committed once.

    Args:
        place: address of a Dask scheduler, ``dask://HOST:PORT``.
        works: what to ingest.

    Raises:
        MissingDependencyError: the extra ``cluster`` is not installed.
        UsageError: no scheduler answers, or it has no workers.
    """
    try:
        import distributed
    except ImportError:
        raise MissingDependencyError(
            f"--on {place} requires dask.distributed, which is not installed",
            hint="run pip install 'lanescope[cluster]'",
        ) from None
    library: Any = distributed  # without types
    address = "tcp://" + place.removeprefix(SCHEME)
    try:
        client = library.Client(address, timeout=_ANSWER_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"cannot reach the scheduler at {place}: {type(error).__name__}",
            hint="run 'dask scheduler', and pass its address",
        ) from None
    with client:
        if not client.scheduler_info()["workers"]:
            raise UsageError(f"the scheduler at {place} has no workers", hint="run 'dask worker' with its address")
        shared = [
            work._replace(path=_shared(work.path), dataset=_shared(work.dataset), is_beside_others=True)
            for work in works
        ]
        # Each is work of its own: the results of an earlier command must not be taken for these.
        futures = client.map(ingest_one, shared, pure=False)
        work_of = {future.key: work for future, work in zip(futures, shared, strict=True)}
        waiting = library.as_completed(futures, loop=client.loop)
        del futures  # each result is let go once it is here
        for future in waiting:
            work = work_of[future.key]
            raised = future.exception()
            if raised is None:
                outcome: Outcome = future.result()
            elif isinstance(raised, library.KilledWorker):
                ended = InputError("every worker that decoded it ended", hint="check the memory of the workers")
                outcome = record_failure(work, failed(work.path, ended))
            else:  # the dataset cannot be written
                raise raised
            yield outcome


def _shared(path: str) -> str:
    """Return a path as other processes understand it."""
    return path if is_url(path) else os.path.abspath(path)  # noqa: PTH100
