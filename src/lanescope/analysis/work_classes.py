"""Classification of regions by kind of work: load, compute, store, wait."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

import numpy as np

from lanescope.analysis.partition import LeafIntervals
from lanescope.common.intervals import Ints
from lanescope.errors import UsageError
from lanescope.trace import Trace

#: Kinds of work, as far as a name tells: what moves data in, what computes, what moves it out, what waits; and regions
#: that only enclose others, of whose own time nothing tells what happens in it.
LOAD, COMPUTE, STORE, WAIT, OUTER = "load", "compute", "store", "wait", "outer"
CLASSES = (LOAD, COMPUTE, STORE, WAIT, OUTER)

#: Words of a region's name by which its kind is known; waiting wins, as in ``wait_load``.
_WORDS = (
    (WAIT, {"wait", "waits", "waiting", "barrier", "bar", "sync", "acquire", "spin", "poll", "stall", "idle", "sleep"}),
    (LOAD, {"load", "loads", "loading", "ld", "ldg", "ldgsts", "fetch", "prefetch", "copyin", "g2s", "read", "mte2"}),
    (STORE, {"store", "stores", "storing", "st", "stg", "s2g", "write", "writeback", "copyout", "mte3"}),
    # Copies that do not say which way they go mostly bring something in.
    (LOAD, {"tma", "cp", "copy", "dma"}),
)
#: Calls that wait, of any runtime.
WAITING_CALLS = re.compile(
    r"(?:ze(?:CommandQueue|CommandListHost|EventHost|FenceHost|Device)Synchronize"
    r"|(?:cuda|hip)(?:Device|Stream|Event)Synchronize(?:_\w+)?|cu(?:Ctx|Stream|Event)Synchronize)$"
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")


def classify(name: str, given: Mapping[str, str] = {}, *, is_outer: bool = False) -> str:
    """Return the kind of work of a region: one of ``CLASSES``.

    Args:
        name: the region's name. Its words tell (``wait_full`` waits, ``loadK`` and ``tma_load`` load); whatever no word
            tells otherwise computes, unless it only encloses other regions.
        given: patterns that say it better, by kind: ``{"load": "tma*,cp_*"}``; the first that fits wins.
        is_outer: whether the region mostly encloses others.

    Example:
        >>> [classify(name) for name in ("wait_full", "loadK", "qk", "epilogue_store")]
        ['wait', 'load', 'compute', 'store']
        >>> classify("qk", {"load": "q*"})
        'load'
    """
    for kind, patterns in given.items():
        if any(fnmatchcase(name, pattern.strip()) for pattern in patterns.split(",")):
            return kind
    if WAITING_CALLS.match(name):
        return WAIT
    words = {word.lower() for word in _WORD.findall(name)}
    words |= {word.rstrip("0123456789") for word in words}
    for kind, known in _WORDS:
        if words & known:
            return kind
    return OUTER if is_outer else COMPUTE


def classes(trace: Trace, pieces: LeafIntervals, given: Mapping[str, str] = {}) -> Ints:
    """Return the kind of each name of slices, int64 [names], indices into ``CLASSES``.

    A region is outer if more than half of its slices have another one nested in them and no word of its name says more:
    an outer region around each tile must not pass for computing while nothing in it runs.

    Args:
        trace: the trace.
        pieces: what ``leaf_intervals`` returned for it.
        given: patterns of names by kind, see ``classify``.

    Raises:
        UsageError: ``given`` names a kind that is none.
    """
    column = trace.slices.column("name")
    texts = column.dictionary.texts if column.dictionary is not None else []
    count = np.bincount(column.values, minlength=len(texts))
    return kinds(texts, count, np.bincount(column.values[pieces.encloses], minlength=len(texts)), given)


def kinds(texts: Sequence[str], count: Ints, enclosing: Ints, given: Mapping[str, str] = {}) -> Ints:
    """Return what ``classes`` does, of names, how many slices have each, and how many of these enclose others."""
    check(given)
    outer = (2 * enclosing > count).tolist()
    found = [classify(name, given, is_outer=is_outer) for name, is_outer in zip(texts, outer, strict=True)]
    return np.array([CLASSES.index(kind) for kind in found], np.int64).reshape(-1)


def check(given: Mapping[str, str]) -> None:
    """Raise ``UsageError`` if ``given`` names a kind that is none."""
    for kind in given:
        if kind not in CLASSES:
            raise UsageError(f"unknown kind of work {kind!r} (choose from {', '.join(CLASSES)})")
