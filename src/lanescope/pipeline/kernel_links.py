"""Captures that kernels recorded, on the timeline of the tool that saw those kernels run, without a common clock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lanescope.analysis.align.containment import containments
from lanescope.errors import MergeError, MissingDependencyError, UsageError
from lanescope.families import registry
from lanescope.trace.merge import Inside, TimelineShift, name_of

if TYPE_CHECKING:
    from lanescope.analysis.align.containment import Containment
    from lanescope.families import KernelSpans
    from lanescope.trace import Trace

#: So many kernels are named in a message.
_MOST_NAMED = 3


class _Kernels:
    """Kernels as the user chooses them: ``TEXT``, a part of their names, or ``TEXT#K``, from the Kth of them on."""

    def __init__(self, text: str) -> None:
        name, hash_, number = text.rpartition("#")
        # Names of C++ may have a hash themselves.
        is_numbered = hash_ != "" and number.isdecimal()
        self.part = name if is_numbered else text
        self.first = int(number) if is_numbered else None

    def of(self, kernels: KernelSpans) -> np.ndarray:
        """Return the rows of the kernels, in order of time, without those before the first that is wanted."""
        rows = np.flatnonzero([self.part in name for name in kernels.name.tolist()])
        return rows if self.first is None else rows[self.first :]


def kernel_links(traces: Sequence[Trace], chosen: str | None = None) -> dict[int, Inside]:
    """Find the traces whose launches lie inside kernels of another one of ``traces``.

    Args:
        traces: those to be merged.
        chosen: which kernels: ``TEXT``, a part of their names, or ``TEXT#K`` where the first launch is in the Kth of
            them, from 0. None: where the launches know no name of their own, all kernels.

    Returns:
        By the number of a trace, what contains it; traces without launches or without a place are not there.

    Raises:
        MergeError: the launches of a trace fit several places, or none although ``chosen`` names kernels.
        UsageError: no kernel is called as ``chosen`` says, or no trace has kernels or launches.
    """
    asked = None if chosen is None else _Kernels(chosen)
    outers = [(at, found) for at, trace in enumerate(traces) if (found := _spans(trace, "kernels")) is not None]
    inners = [(at, found) for at, trace in enumerate(traces) if (found := _spans(trace, "launches")) is not None]
    if asked is not None and not (outers and inners):
        missing = "launches that kernels recorded" if outers else "kernels that a tool of the host saw"
        raise UsageError(f"--inside: the captures contain no {missing}", hint="remove --inside")
    if asked is not None and not any(len(asked.of(kernels)) for _, kernels in outers):
        there = _listed(name for _, kernels in outers for name in kernels.name.tolist())
        raise UsageError(f"no kernel has {chosen!r} in its name (there are {there})")
    links: dict[int, Inside] = {}
    for at, launches in inners:
        places = [
            (outer, kernels, rows, place)
            for outer, kernels in outers
            if outer != at
            for rows in (_candidates(kernels, launches, asked),)
            for place in _places(launches, kernels, rows, asked)
        ]
        name = name_of(traces[at])
        if len(places) > 1:
            firsts = _listed(_numbered(kernels, rows[place.outer[0]]) for _, kernels, rows, place in places)
            raise MergeError(
                f"cannot merge: the {len(launches.begin):,} launches of {name} fit several kernels: {firsts}",
                hint="use --inside NAME or NAME#K for the kernel of the first launch, or --side-by-side",
                traces=(at,),
            )
        if not places and asked is not None:
            raise MergeError(
                f"cannot merge: the {len(launches.begin):,} launches of {name} do not fit the kernels {chosen!r}",
                hint="use --inside with the kernel that recorded them, or --side-by-side",
                traces=(at,),
            )
        for outer, kernels, rows, place in places:
            links[at] = _inside(outer, kernels, rows[place.outer], launches, place, traces)
    return links


def _spans(trace: Trace, what: str) -> KernelSpans | None:
    """Return the kernels or launches of a trace of one family; None where it has none."""
    names = dict.fromkeys(trace.inputs.values("family").tolist())
    if len(names) != 1 or trace.time.time_unit != "ns":
        return None
    try:
        find = getattr(registry.family(next(iter(names))), what)
    except (UsageError, MissingDependencyError):  # read from a folder; its family is not installed here
        return None
    found: KernelSpans | None = None if find is None else find(trace)
    return found if found is not None and len(found.begin) else None


def _candidates(kernels: KernelSpans, launches: KernelSpans, asked: _Kernels | None) -> np.ndarray:
    """Return the rows of the kernels that may have run the launches."""
    if asked is not None:
        return asked.of(kernels)
    own = {name for name in launches.name.tolist() if name}
    rows = np.arange(len(kernels.begin))
    return rows[[name in own for name in kernels.name.tolist()]] if own else rows


def _places(
    launches: KernelSpans, kernels: KernelSpans, rows: np.ndarray, asked: _Kernels | None
) -> Iterable[Containment]:
    found = containments((launches.begin, launches.end), (kernels.begin[rows], kernels.end[rows]))
    if found is None:
        raise MergeError(
            "cannot merge: the launches fit too many kernels to try all",
            hint="use --inside NAME#K for the kernel of the first launch, or --side-by-side",
        )
    if asked is not None and asked.first is not None:
        return [place for place in found if place.outer[0] == 0]
    return found


def _numbered(kernels: KernelSpans, row: int) -> str:
    """Return a kernel as ``--inside`` takes it."""
    name = kernels.name[row]
    return f"{name}#{sum(name in other for other in kernels.name[:row].tolist())}"


def _inside(
    outer: int,
    kernels: KernelSpans,
    rows: np.ndarray,
    launches: KernelSpans,
    place: Containment,
    traces: Sequence[Trace],
) -> Inside:
    names = dict.fromkeys(kernels.name[rows].tolist())
    named = _listed(names)
    shift = TimelineShift(place.shift, f"kernels {named} of {name_of(traces[outer])}", place.error)
    return Inside(
        outer=outer,
        link=shift,
        track=int(kernels.track[rows[0]]),
        name=f"inside {named} (±{place.error:,} ns)",
        causes=kernels.slice[rows],
        effects=launches.slice,
    )


def _listed(names: Iterable[str]) -> str:
    found = list(dict.fromkeys(names))
    return ", ".join(found[:_MOST_NAMED]) + (", ..." if len(found) > _MOST_NAMED else "")
