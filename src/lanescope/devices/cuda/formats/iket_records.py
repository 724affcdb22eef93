"""What a file of IKET holds: launches of kernels and their events."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Place:
    """Where an event happened.

    Attributes:
        block: linear index of the block in its grid.
        warp: warp of the block.
        sm: SM; None: not recorded.
        tpc: texture processing cluster.
        gpc: graphics processing cluster.
    """

    block: int
    warp: int
    sm: int | None = None
    tpc: int | None = None
    gpc: int | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """A range, a marker, or the lifetime of a warp.

    Attributes:
        name: of the event.
        begin: ns.
        end: ns; None: a marker, or a range without an end.
        place: where it began.
        end_place: where it ended.
        type: of a range: ``START_END``, ``PUSH_POP``, ``SEVERAL``; 0: anything else.
        payload: value of the first event as text; None: no payload.
        payload_type: of it.
        inner: times of events of a range between the first and the last.
    """

    name: str
    begin: int
    end: int | None
    place: Place
    end_place: Place
    type: int = 0
    payload: str | None = None
    payload_type: str | None = None
    inner: tuple[int, ...] = ()


@dataclass(slots=True)
class Launch:
    """A launch of a kernel.

    Attributes:
        kernel: name of the kernel.
        grid_id: of the driver; None: not recorded.
        context_id: of the driver; None: not recorded.
        graph: key of the graph that launched it; None: none did.
        ranges: its ranges.
        markers: its markers.
        lifetimes: of its warps.
    """

    kernel: str
    grid_id: int | None
    context_id: int | None
    graph: str | None
    ranges: list[Event] = field(default_factory=list)
    markers: list[Event] = field(default_factory=list)
    lifetimes: list[Event] = field(default_factory=list)
