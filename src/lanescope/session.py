"""Open a capture: what is it, which family reads it, and its trace."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from lanescope import devices
from lanescope.devices import Family
from lanescope.errors import InputError, UsageError
from lanescope.source import MINE, TIE, Capture, Match
from lanescope.trace import Trace

PathLike = str | os.PathLike[str]


def recognise(capture: Capture, family: str | None = None) -> tuple[Family, Match]:
    """Return the family of a capture and how surely it is recognised.

    Args:
        capture: the opened capture.
        family: name of the family, when the user says it; its own probe still gives the format.

    Raises:
        InputError: no family recognises it.
        UsageError: two families recognise it about equally; or ``family`` is unknown.
    """
    head = capture.main.head()
    if family is not None:
        chosen = devices.family(family)
        return chosen, chosen.probe(head)
    if not head.size:
        raise InputError(f"{capture.main.path} is empty", hint="was the capture written?")
    matches = _matches(devices.in_tree(), head)
    if not matches:
        matches = _matches(devices.strangers(), head)
    if not matches:
        what = "holds only zeros" if not any(head.data) else "is not a capture of any known device family"
        raise InputError(f"{capture.main.path} {what}", hint="if you know its family, say --family NAME")
    if len(matches) > 1 and matches[0][1].score - matches[1][1].score < TIE:
        reasons = " or ".join(f"{f.name} ({m.reason})" for f, m in matches[:2])
        raise UsageError(f"{capture.main.path} may be {reasons}", hint="say --family NAME")
    return matches[0]


def _matches(families: tuple[Family, ...], head: Any) -> list[tuple[Family, Match]]:
    found = [(family, family.probe(head)) for family in families]
    return sorted((pair for pair in found if pair[1].score >= MINE), key=lambda pair: -pair[1].score)


def batches(path: PathLike, family: str | None = None, **options: Any) -> Iterator[Trace]:
    """Decode a capture piece by piece: yields traces that share tracks, clocks and texts.

    Args and errors as ``open``.
    """
    capture = Capture(path)
    try:
        chosen, _ = recognise(capture, family)
        decoder = chosen.decode(capture, devices.settle(chosen.options, options, what=f"family {chosen.name}"))
        for chunk in capture.main.chunks():
            yield from decoder.feed(chunk)
        yield from decoder.finish()
    finally:
        capture.close()


def open(path: PathLike, family: str | None = None, **options: Any) -> Trace:
    """Decode a capture into one trace.

    Args:
        path: the capture's main file, or ``-``; its neighbours are found by the family.
        family: device family; recognised from the bytes when not given.
        **options: decode options of the family.

    Returns:
        The whole trace, in memory.

    Raises:
        InputError: the file cannot be read, or is no capture.
        UsageError: an unknown family or option, or two families that recognise it equally.
    """
    return Trace.concat(batches(path, family, **options))
