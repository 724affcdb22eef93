"""A buffer as the common decoder sees it, whatever its layout: its lanes, and what a reader of a layout provides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class
from lanescope.devices.cuda.formats.lanes import I64, U32, Decoded
from lanescope.trace import Table

Mask = npt.NDArray[np.bool_]
Summary = MutableMapping[str, I64]

#: In columns of ``Grid``: not known of this lane.
UNKNOWN = -1


@frozen_class
class Grid:
    """Properties of each lane besides its records; None if the layout does not record them.

    Attributes:
        num_blocks: from the header.
        num_groups: from the header.
        block: int64 [lanes].
        group: int64 [lanes].
        sm: int64 [lanes], ``UNKNOWN`` where a lane has none.
        warp: int64 [lanes].
        cluster_rank: int64 [lanes].
        grid_id: uint64 [lanes].
        capacity: int64 [lanes], records that have room.
        offered: int64 [lanes], records that the kernel wanted to store.
        lost: int64 [lanes], those of them that had no room.
        torn: int64 [lanes], positions that hold half of what a ring has overwritten.
        counted: bool [lanes], where ``offered`` and ``lost`` are exact; elsewhere they are the least that it was.
        at_capacity: bool [lanes], lanes without room that were killed before they wrote their last count.
        refused: lanes that the kernel began and that found no room in the buffer.
    """

    num_blocks: int
    num_groups: int
    block: I64
    group: I64
    sm: I64 | None = None
    warp: I64 | None = None
    cluster_rank: I64 | None = None
    grid_id: npt.NDArray[np.uint64] | None = None
    capacity: I64 | None = None
    offered: I64 | None = None
    lost: I64 | None = None
    torn: I64 | None = None
    counted: npt.NDArray[np.bool_] | None = None
    at_capacity: npt.NDArray[np.bool_] | None = None
    refused: int | None = None

    def __len__(self) -> int:
        return len(self.block)

    @classmethod
    def dense(cls, num_blocks: int, num_groups: int, **known: I64 | None) -> Grid:
        """Return the grid whose lane is ``block * num_groups + group``."""
        lane = np.arange(num_blocks * num_groups, dtype=np.int64)
        return cls(num_blocks, num_groups, lane // num_groups, lane % num_groups, **known)  # type: ignore[arg-type]


@frozen_class
class Bounds:
    """Readings of counter and timer.

    Attributes:
        lane: int64 [n], the lane of the reading.
        cycles: int64 [n], the counter.
        earliest: int64 [n], ns: the timer showed at least this then.
        latest: int64 [n], ns: and less than this; a reading with step s lies in [t, t + s).
    """

    lane: I64
    cycles: I64
    earliest: I64
    latest: I64


@frozen_class
class WrapOffsets:
    """The wrap period of the counter that each lane starts in.

    Attributes:
        ticks: int64 [lanes], by how much the lane moves.
        doubtful: bool [lanes], True if the period is not certain; None: all are.
        sure: bool [lanes], True if both ends of the lane prove the times between them; None: no lane does.
    """

    ticks: I64
    doubtful: Mask | None = None
    sure: Mask | None = None


@frozen_class
class TaggedRecords:
    """What instants of the core really are.

    Attributes:
        kind: int64 [n], of ``layout.LS2_KINDS``; -1: the value of the record before it.
        token: int64 [n].
        slot: int64 [n], where the record stands.
    """

    kind: I64
    token: I64
    slot: I64


@frozen_class
class LaneSpan:
    """When the lanes were begun and finalized, as the buffer itself says, in ticks.

    Attributes:
        begin: int64 [lanes], 0 where it is not known.
        end: int64 [lanes], likewise.
        begun: bool [lanes], where it is known.
        ended: bool [lanes], likewise.
    """

    begin: I64
    end: I64
    begun: Mask
    ended: Mask


class OwnNumbers:
    """What readers of layouts have in common whose file is one array, and whose event numbers need no table."""

    counters: I64 | None = None
    frequency_hz: int | None = None
    event_ids: I64 | None = None
    event_names: Mapping[int, str] = {}
    main_at = envelope = 0
    tokens_leave_lanes = True
    has_second_payloads = False
    length_wrap: int | None = None

    def second_payloads(self, slots: I64) -> npt.NDArray[np.uint64]:
        """There are none."""
        return np.zeros(len(slots), np.uint64)


class Buffer(Protocol):
    """A buffer whose layout's reader has understood its headers.

    Attributes:
        format: name of the layout.
        clock: name of the counter behind the stamps.
        in_cycles: whether that counts cycles of an SM, not nanoseconds of the GPU.
        stamp_bits: width of the stamps.
        is_full_clock: whether ticks, once aligned, are readings of the whole counter.
        unit_bytes: bytes of a slot.
        slots: slots of the buffer.
        cut: bytes that the header promises and that are not there.
        behind: bytes behind the buffer.
        grid: the lanes.
        overwritten: int64 [lanes], 1 if position 0 of the lane represents overwritten records; None: no lane has any.
        has_special: whether instants may be anything else.
        has_tokens: whether records have tokens.
        tokens_leave_lanes: whether a region with a token other than 0 may end in another lane of its block.
        has_payloads: whether records have payloads.
        has_second_payloads: whether instants have a second one.
        length_wrap: what the lengths of regions are stored modulo; None: they are complete.
        counters: int64 [lanes], which counter each lane reads; None: that of its SM, or the GPU's.
        frequency_hz: rate of the counter where the layout declares it.
        event_ids: int64, the event number of each code in the core's columns; None: codes are numbers.
        event_names: names of events that the layout declares, by number.
        main_at: bytes before slot 0 in what ``WordSource`` takes for the array.
        envelope: bytes of that besides the slots, and besides those before slot 0.
    """

    @property
    def format(self) -> str: ...  # noqa: D102
    @property
    def clock(self) -> str: ...  # noqa: D102
    @property
    def in_cycles(self) -> bool: ...  # noqa: D102
    @property
    def stamp_bits(self) -> int: ...  # noqa: D102
    @property
    def is_full_clock(self) -> bool: ...  # noqa: D102
    @property
    def unit_bytes(self) -> int: ...  # noqa: D102
    @property
    def slots(self) -> int: ...  # noqa: D102
    @property
    def cut(self) -> int: ...  # noqa: D102
    @property
    def behind(self) -> int: ...  # noqa: D102
    @property
    def grid(self) -> Grid: ...  # noqa: D102
    @property
    def overwritten(self) -> I64 | None: ...  # noqa: D102
    @property
    def has_special(self) -> bool: ...  # noqa: D102
    @property
    def has_tokens(self) -> bool: ...  # noqa: D102
    @property
    def tokens_leave_lanes(self) -> bool: ...  # noqa: D102
    @property
    def has_payloads(self) -> bool: ...  # noqa: D102
    @property
    def has_second_payloads(self) -> bool: ...  # noqa: D102
    @property
    def length_wrap(self) -> int | None: ...  # noqa: D102
    @property
    def counters(self) -> I64 | None: ...  # noqa: D102
    @property
    def frequency_hz(self) -> int | None: ...  # noqa: D102
    @property
    def event_ids(self) -> I64 | None: ...  # noqa: D102
    @property
    def event_names(self) -> Mapping[int, str]: ...  # noqa: D102
    @property
    def main_at(self) -> int: ...  # noqa: D102
    @property
    def envelope(self) -> int: ...  # noqa: D102

    def parts(self, limit: int) -> list[tuple[int, int]]:
        """Cut the lanes, first and last + 1, such that none has more than about ``limit`` records."""

    def part_launches(self, summary: Summary, *, keep: bool, launch_ns: int | None) -> bool:
        """Look for records that an earlier launch left; return whether there are any, and ``decode`` has changed.

        Args:
            summary: of all lanes, all records taken for those of one launch.
            keep: they become a launch of their own; else they are left out.
            launch_ns: how long the launch took by the host's clock, if that is known.
        """

    def decode(self, part: tuple[int, int], *, split: bool, step_back: int) -> Decoded:
        """Decode lanes.

        Args:
            part: from ``parts``.
            split: records behind a finalize begin a further launch; else they are left out.
            step_back: ticks by which a timestamp may step back while its wrap period stays certain.
        """

    def turns(self, summary: Summary, anchor: int | None, step_back: int) -> WrapOffsets:
        """Place the lanes on their counters; complete the ``summary`` of all lanes by what the headers say."""

    def extent(self, summary: Summary) -> LaneSpan:
        """Return when lanes were begun and finalized; the summary is aligned."""

    def clock_bounds(self, summary: Summary, extent: LaneSpan) -> Bounds | None:
        """Return how cycles become nanoseconds; None: ticks are nanoseconds, or nothing says."""

    def slots_of(self, lane: U32 | I64, index: U32) -> I64:
        """Return the slots of records from their lanes and positions."""

    def special(self, lane: U32, index: U32) -> TaggedRecords:
        """Say what instants of the core really are."""

    def tokens(self, slots: I64) -> I64:
        """Return the tokens of records, int64 [n]."""

    def payloads(self, slots: I64) -> tuple[npt.NDArray[np.uint64], Mask | None]:
        """Return the payloads of records, uint64 [n], and where there are any (None: everywhere)."""

    def second_payloads(self, slots: I64) -> npt.NDArray[np.uint64]:
        """Return the second payloads of records, uint64 [n]."""

    def values(self, slots: I64, tokens: I64) -> npt.NDArray[np.float64]:
        """Return the values of counters, float64 [n]."""

    def describe(self) -> Mapping[str, Any]:
        """Return the columns of ``cuda_buffers`` that the headers fill."""

    def account(self, summary: Summary) -> tuple[int, int]:
        """Return how many slots were understood and how many were lost; the others carry nothing."""

    def stats(self, summary: Summary) -> Iterator[tuple[str, int, int | None]]:
        """Yield stats of this layout alone: name, count, first slot."""

    def raw(self) -> tuple[str, Callable[[int], Table]]:
        """Return the name of the table of raw records, and what makes it from the bytes before the buffer."""
