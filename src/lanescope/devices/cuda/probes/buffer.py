"""The host's side of a probe buffer: how large, what stands in its header, what its numbers mean, what is in it after.

Example:
    >>> plan = Plan.of(events=["load", "compute"], blocks=2, groups=1, records_per_lane=6)
    >>> plan.records_per_lane, plan.words
    (8, 48)
    >>> plan.events["compute"]
    1
    >>> words = plan.new(launch=1)
    >>> plan.decode(words).slices["name"].tolist()
    []
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.cuda.formats import layout
from lanescope.devices.cuda.formats.encode.ls2 import Ls2Setup, header_words
from lanescope.devices.cuda.interpret.names import load_names
from lanescope.errors import UsageError
from lanescope.trace import Trace

Words = npt.NDArray[np.uint64]
Anchor = tuple[int, int, int]

CLOCKS = {"globaltimer": layout.GLOBALTIMER, "clock64": layout.CLOCK64}
LAYOUTS = {"ls2": layout.LS2, "tirx": layout.TIRX_V1}
#: File header word where each host anchor begins: globaltimer, Unix time, bound of the error.
ANCHOR_WORDS = (6, 9)
_EVENTS = {layout.LS2: 1 << layout.LS2_RECORD["event"].width, layout.TIRX_V1: 1 << layout.TIRX_RECORD["event"].width}
#: A larger buffer is a slip of the pen; the decoder takes no more words either.
_MAX_WORDS = 1 << 34


class Events(Mapping[str, int]):
    """The events of a kernel: names for the host, numbers for the device.

    Args:
        given: a list of names, a mapping between names and numbers, or an ``Enum`` class.
        limit: one more than the largest number that the layout can store.

    Raises:
        UsageError: it is none of these; a number is too large or has two names.

    Example:
        >>> events = Events(["load", "compute"])
        >>> events["compute"], events.load, dict(events)
        (1, 0, {'load': 0, 'compute': 1})
    """

    def __init__(self, given: Any, limit: int = 1 << 16) -> None:
        try:
            names = load_names(given)
        except ValueError as error:
            raise UsageError(f"invalid events: {error}", hint='pass a list, e.g. events=["load", "compute"]') from None
        self._numbers = {name: number for number, name in names.items()}
        if len(self._numbers) < len(names):
            raise UsageError("duplicate event name", hint="list each event once")
        too_large = max(names, default=0)
        if too_large >= limit:
            raise UsageError(
                f"invalid event number {too_large}: must be at most {limit - 1}", hint="use smaller numbers"
            )
        self.names = names

    def __getitem__(self, name: str) -> int:
        return self._numbers[name]

    def __getattr__(self, name: str) -> int:
        try:
            return self._numbers[name]
        except KeyError:
            raise AttributeError(f"unknown event {name!r}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __repr__(self) -> str:
        return f"Events({self._numbers!r})"


def count_of(blocks: int | Sequence[int]) -> int:
    """Return the blocks of a grid: a number, or one for each dimension.

    Raises:
        UsageError: it is not a grid.
    """
    sizes = (blocks,) if isinstance(blocks, int | np.integer) else tuple(blocks)
    if not sizes or not all(isinstance(size, int | np.integer) and size > 0 for size in sizes):
        raise UsageError(
            f"invalid blocks {blocks!r}: expected a grid", hint="pass the number of blocks or the sizes of the grid"
        )
    return math.prod(int(size) for size in sizes)


@dataclass(frozen=True, slots=True)
class BufferPlan:
    """All that the host decides about the buffers of a kernel; make one by ``of``.

    Attributes:
        events: names and numbers of the events.
        groups: names of the groups of a block, in order.
        blocks: blocks of the grid, all dimensions multiplied.
        records_per_lane: records that a lane has room for.
        layout: ``ls2`` or ``tirx-v1``.
        payload: LS2: every record has a word of payload, whether the kernel gives one or not.
        ring: LS2: a full lane keeps the newest records, not the oldest.
        clock: LS2: ``globaltimer`` or ``clock64``.
    """

    events: Events
    groups: tuple[str, ...]
    blocks: int
    records_per_lane: int
    layout: str = layout.LS2
    payload: bool = False
    ring: bool = False
    clock: str = "globaltimer"

    @classmethod
    def of(
        cls,
        *,
        events: Any,
        blocks: int | Sequence[int],
        groups: int | Sequence[str] = 1,
        records_per_lane: int = 64,
        layout: str = "ls2",
        payload: bool = False,
        ring: bool = False,
        clock: str = "globaltimer",
    ) -> BufferPlan:
        """Check a plan and complete it.

        Args:
            events: names of the events, as ``Events`` takes them.
            blocks: blocks of the grid, or the sizes of its dimensions.
            groups: groups of a block that write a lane each: how many, or their names.
            records_per_lane: records that a lane shall have room for; LS2 takes the next power of two. A region is
                two records; a value is two, unless there are payloads.
            layout: ``ls2``, or ``tirx`` for kernels that carry TIRx's own probes.
            payload: LS2: every record has a second word.
            ring: LS2: of a full lane the newest records are kept, not the oldest.
            clock: LS2: ``globaltimer``, or ``clock64`` for chips whose common timer is coarse.

        Raises:
            UsageError: something is out of range, or not to be had with the layout.
        """
        chosen = LAYOUTS.get(layout, layout)
        if chosen not in LAYOUTS.values():
            raise UsageError(f"unknown layout {layout!r}", hint="use layout='ls2' or layout='tirx'")
        if clock not in CLOCKS:
            raise UsageError(f"unknown clock {clock!r}", hint="use clock='globaltimer' or clock='clock64'")
        if chosen != LAYOUTS["ls2"] and (payload or ring or clock != "globaltimer"):
            raise UsageError("payload, ring and clock require layout 'ls2'", hint="remove them or use layout='ls2'")
        if not isinstance(records_per_lane, int | np.integer) or records_per_lane < 1:
            raise UsageError(
                f"invalid records_per_lane {records_per_lane!r}: must be a positive integer", hint="pass 1 or more"
            )
        names = tuple(f"group {n}" for n in range(groups)) if isinstance(groups, int) else tuple(groups)
        room = int(records_per_lane)
        plan = cls(
            Events(events, _EVENTS[chosen]),
            names,
            count_of(blocks),
            1 << (room - 1).bit_length() if chosen == LAYOUTS["ls2"] else room,
            chosen,
            payload,
            ring,
            clock,
        )
        plan._check()
        return plan

    def _check(self) -> None:
        if not 1 <= self.lanes <= layout.TIRX_MAX_LANES:
            raise UsageError(
                f"too many lanes: {self.blocks} blocks of {len(self.groups)} groups are {self.lanes} lanes",
                hint=f"use 1 to {layout.TIRX_MAX_LANES} lanes",
            )
        if self.records_per_lane > layout.LS2_MAX_CAPACITY or self.words > _MAX_WORDS:
            raise UsageError(f"buffer is too large: {self.words * 8:,} bytes", hint="use a smaller records_per_lane")

    @property
    def lanes(self) -> int:
        """Lanes: one for each group of each block."""
        return self.blocks * len(self.groups)

    @property
    def words(self) -> int:
        """Size of the buffer in words of 8 bytes."""
        if self.layout == layout.TIRX_V1:
            # A lane ends with a finalize, which takes a slot too.
            return 1 + self.lanes * (self.records_per_lane + 1)
        setup = self._setup(0, 0, ())
        return layout.LS2_FILE_WORDS + setup.lanes * setup.lane_words

    @property
    def stride(self) -> int:
        """TIRx: ``write_stride``, what the kernel adds to go to the next record of its lane."""
        return self.lanes

    def _setup(self, launch: int, ordinal: int, anchors: Sequence[Anchor]) -> Ls2Setup:
        return Ls2Setup(
            self.blocks,
            len(self.groups),
            self.records_per_lane,
            record_words=1 + self.payload,
            clock=CLOCKS[self.clock],
            is_ring=self.ring,
            launch=launch,
            ordinal=ordinal,
            anchors=tuple(anchors),
        )

    def header(self, *, launch: int = 0, ordinal: int = 0, anchors: Sequence[Anchor] = ()) -> Words:
        """Return the words that the host writes before the launch, at the start of a buffer of zeros, uint64 [n].

        Args:
            launch: a number for the launch.
            ordinal: the number of the GPU.
            anchors: at most two of (globaltimer, Unix time, bound of the error), all in ns.
        """
        if self.layout == layout.TIRX_V1:
            return np.zeros(1, np.uint64)  # its kernels write the header themselves
        return header_words(self._setup(launch, ordinal, anchors))

    def new(self, *, launch: int = 0, ordinal: int = 0, anchors: Sequence[Anchor] = ()) -> Words:
        """Return a buffer as it has to be on the device before the launch, uint64 [words]; arguments as ``header``."""
        words = np.zeros(self.words, np.uint64)
        header = self.header(launch=launch, ordinal=ordinal, anchors=anchors)
        words[: len(header)] = header
        return words

    def anchor(self, words: Words, anchor: Anchor, which: int) -> None:
        """Write a host anchor into a buffer of LS2 that is on the host: 0 the one before the launch, 1 after it."""
        if self.layout == layout.LS2:
            at = ANCHOR_WORDS[which]
            words[at : at + 3] = np.array(anchor, np.uint64)

    def decode(self, words: Words, *, name: str = "buffer", **options: Any) -> Trace:
        """Decode a buffer that came back.

        Args:
            words: uint64 [words].
            name: what the trace calls its input.
            **options: further decode options of the family.

        Raises:
            InputError: the buffer's header is not there.
            UsageError: an unknown option.
        """
        from lanescope.devices.cuda.probes.memory_decode import decode_bytes

        given: dict[str, Any] = {"events": self.events.names, "groups": list(self.groups), "layout": self.layout}
        if self.layout == layout.TIRX_V1:
            given["stride"] = self.stride
        data = np.ascontiguousarray(words, "<u8").view(np.uint8)
        return Trace.concat(decode_bytes(data, name, {**given, **options}))
