"""Counters of packets: events that the producer discarded, and packets that are missing by their numbers.

Files that a producer rotates go on with the counters of the file before, so those of one stream are seen in order.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from lanescope.common.asof_join import Int64
from lanescope.devices.levelzero.formats.foreign.streams import Stream

#: Trace, kind of stream, and instance: what files of one stream share.
Key = tuple[int, int, int]
#: Steps beyond these are no counts: of a counter that was damaged.
_MOST_EVENTS, _MOST_PACKETS = 1 << 40, 1 << 32
#: -1 as 64 bits.
_UNKNOWN = (1 << 64) - 1
_LAST_NUMBER = np.uint64(1 << 62)


def key_of(stream: Stream) -> Key:
    """Return what the files of one stream share; a stream without an instance is one file."""
    walk = stream.walk
    is_known = len(walk.packets) and bool(walk.has("stream_instance_id")[0])
    instance = int(walk.packet("instance")[0]) if is_known else -1 - stream.number
    return id(stream.trace), int(walk.packet("stream")[0]) if len(walk.packets) else 0, instance


def counter_bits(stream: Stream) -> int:
    """Return the bits of the counter of discarded events, 64 if none is declared."""
    for number in sorted(set(stream.walk.packet("stream").tolist())):
        context = stream.trace.reader.streams[number].packet_context
        for name, member in context.fields if context else ():
            if name.removeprefix("_") == "events_discarded":
                return int(getattr(member, "size", 64))
    return 64


def discarded_steps(counts: npt.NDArray[np.uint64], bits: int, *, before: int = 0) -> Int64:
    """Return how many events each packet discarded: its counter less that before, which may have wrapped; -1: unknown.

    Args:
        counts: uint64 [packets], the counters.
        bits: of the counter.
        before: the counter before the first packet.
    """
    steps = np.diff(counts, prepend=np.uint64(before))
    if bits < 64:
        steps &= np.uint64((1 << bits) - 1)
    return np.where(steps <= np.uint64(_MOST_EVENTS), steps, np.uint64(_UNKNOWN)).astype(np.int64)


def numbers_of(stream: Stream) -> tuple[Int64, Int64]:
    """Return the packets that have a number, and those numbers."""
    packets = np.flatnonzero(stream.walk.has("packet_seq_num"))
    numbers = np.minimum(stream.walk.packet("sequence")[packets], _LAST_NUMBER).astype(np.int64)
    return packets, numbers


def missing_steps(numbers: Int64, before: int) -> Int64:
    """Return how many packets are missing in front of each; -1: unknown.

    Args:
        numbers: int64 [n], of packets.
        before: number of the packet before the first, -1: none.
    """
    if not len(numbers):
        return numbers
    steps = np.diff(numbers, prepend=numbers[0] - 1 if before < 0 else before)
    return np.where(steps > 1, np.where(steps - 1 <= _MOST_PACKETS, steps - 1, -1), 0)


class PacketCounters:
    """Those of one file, which is read window by window."""

    def __init__(self) -> None:
        self._key: Key = (0, 0, 0)
        self._begin = -1
        self._bits = 64
        self._counters: tuple[int, int] | None = None
        self._numbers: tuple[int, int] | None = None
        self._discarded = self._missing = 0
        #: Steps that are no counts.
        self._damaged = 0

    def add(self, stream: Stream) -> None:
        """Add the packets of the next window."""
        walk = stream.walk
        if not len(walk.packets):
            return
        if self._begin < 0:
            self._begin, self._key, self._bits = int(walk.packet("begin")[0]), key_of(stream), counter_bits(stream)
        counts = walk.packet("discarded")[walk.has("events_discarded")]
        if len(counts):
            first, before = self._counters or (int(counts[0]),) * 2
            self._discarded += self._counted(discarded_steps(counts, self._bits, before=before))
            self._counters = first, int(counts[-1])
        _, numbers = numbers_of(stream)
        if len(numbers):
            first, last = self._numbers or (int(numbers[0]), -1)
            self._missing += self._counted(missing_steps(numbers, last))
            self._numbers = first, int(numbers[-1])

    def _counted(self, steps: Int64) -> int:
        self._damaged += int(np.count_nonzero(steps < 0))
        return int(steps[steps > 0].sum())

    @staticmethod
    def joined(files: Iterable[PacketCounters]) -> tuple[int, int, int]:
        """Return how many events were discarded, how many packets are missing, and how many counts are unknown."""
        discarded = missing = damaged = 0
        before: dict[Key, tuple[int, int]] = {}
        for file in sorted(files, key=lambda file: file._begin):
            count, number = before.get(file._key, (0, -1))
            discarded, missing = discarded + file._discarded, missing + file._missing
            if file._counters is not None:
                first, last = file._counters
                discarded += file._counted(discarded_steps(np.array([first], np.uint64), file._bits, before=count))
                count = last
            if file._numbers is not None:
                first, last = file._numbers
                missing += file._counted(missing_steps(np.array([first]), number))
                number = last
            before[file._key] = count, number
            damaged += file._damaged
        return discarded, missing, damaged
