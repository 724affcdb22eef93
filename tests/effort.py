"""How much the tests try: ``LANESCOPE_EFFORT`` is ``quick`` (unless set), ``ci`` or ``full``.

``quick`` and ``ci`` try the same things on every run and on every machine; ``full`` tries something new each time and
prints the seed that repeats it. ``quick`` leaves out the tests marked ``full``. Only this file and ``conftest.py`` read
the variable: a test asks :func:`some` for how many cases to try, or :func:`seeds` for the cases themselves.

Cases with numbered seeds are the same ones in each run: ``LANESCOPE_FIRST_SEED`` (0 unless set) is added to each of
them, for cases that were never tried before.
"""

from __future__ import annotations

import os

#: Of so many cases one is tried.
ONE_IN = {"quick": 10, "ci": 4, "full": 1}

EFFORT = os.environ.get("LANESCOPE_EFFORT") or "quick"
if EFFORT not in ONE_IN:
    raise ValueError(f"LANESCOPE_EFFORT is {EFFORT!r}, not one of: {', '.join(ONE_IN)}")

#: What is added to the seeds of all cases.
FIRST_SEED = int(os.environ.get("LANESCOPE_FIRST_SEED") or 0)

#: The sanitizer under which the native core runs, ``address`` or ``thread`` (`tools/test_sanitized`); empty: none.
SANITIZED = os.environ.get("LANESCOPE_TESTS_SANITIZED", "")
#: Why a test that limits addresses skips under one, and a test that measures memory under that of threads.
OWN_MEMORY = "a sanitizer reserves terabytes of addresses, and its own pages count as the program's"
#: Why a test of Polars skips under that of threads.
NO_POLARS = "the import of Polars ends with a segmentation fault under the thread sanitizer"

#: Whether this run tries all there is, at random.
FULL = EFFORT == "full"
#: Whether this run leaves out the tests marked ``full``.
QUICK = EFFORT == "quick"


def giving_back() -> dict[str, str]:
    """Return the environment of a program whose memory is measured: sanitized, it gives back what it frees.

    The address sanitizer keeps 256 MiB of freed memory, to notice that something still uses it.
    """
    options = f"{os.environ.get('ASAN_OPTIONS', '')}:quarantine_size_mb=0:thread_local_quarantine_size_kb=0"
    return {**os.environ, "ASAN_OPTIONS": options} if SANITIZED == "address" else dict(os.environ)


def some(count: int, least: int = 12) -> int:
    """Return how many of ``count`` cases to try now: all, or the share of this effort but no fewer than ``least``."""
    return min(count, max(least, count // ONE_IN[EFFORT]))


def seeds(count: int, least: int = 12, first: int = 0) -> range:
    """Return the seeds of so many of ``count`` cases, from ``first`` and what is added to all."""
    return range(FIRST_SEED + first, FIRST_SEED + first + some(count, least))


def cuts(size: int, every: int = 1) -> list[int]:
    """Return where to cut a file short: each so many bytes; in quick runs a fifth of these places, and the last 40."""
    places = range(0, size, every)
    return [*places[:-40:5], *places[-40:]] if QUICK else list(places)


#: What ``testing.traces`` is told: small traces are drawn in half the time of large ones, and drawing takes most of it.
TRACES = {"max_slices": some(12, 4), "max_lanes": some(5, 3)}
