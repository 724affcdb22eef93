"""A trace unit, one cycle or one retired instruction at a time: slow, obvious, the measure of the fast encoders.

What it is told goes through frames and words into a buffer. When that has no room the unit overruns: it loses frames
until somebody drains the buffer, then fills its packet, and goes on behind a Start that says so.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.devices.aie.formats.layout import FRAME_SETS, PAYLOAD_WORDS, SYNC_CYCLES, WRAPPED_TRIPS
from lanescope.devices.aie.simulate.ref_mode2 import PC_MASK, Retired

U32 = npt.NDArray[np.uint32]

_MOST_REPEATS = 1023
_SHORT_REPEATS = 15
_START_WORDS = 2


class _Overrun(Exception):
    """The buffer cannot hold another frame."""


class _Buffer:
    """Frames to words; words wait until they are drained."""

    def __init__(self, mode: int, room: int | None) -> None:
        self.frame_set = FRAME_SETS[mode]
        self.words: list[int] = []
        self.room = room
        self.waiting = 0
        self._word = 0
        self._free = 32

    @property
    def rest_of_packet(self) -> int:
        """Words that fill the packet, a word that is begun among them."""
        begun = int(self._free < 32)
        return begun + -(len(self.words) + begun) % PAYLOAD_WORDS

    def has_room(self, words: int) -> bool:
        return self.room is None or self.waiting + words <= self.room

    def emit(self, name: str, **values: int) -> None:
        record = self.frame_set[name]
        is_large = record.bits > self._free
        if not self.has_room(-(-record.bits // 32) + (1 if is_large and self._free < 32 else 0)):
            raise _Overrun
        if is_large:
            self.fill_word()
        self._put(record.encode(values), record.bits)

    def fill_word(self) -> None:
        padding = self.frame_set[self.frame_set.padding]
        while self._free < 32:
            self._put(padding.prefix_bits, padding.bits)

    def fill_packet(self) -> None:
        padding = self.frame_set[self.frame_set.padding]
        self.fill_word()
        while len(self.words) % PAYLOAD_WORDS:
            self._put(padding.prefix_bits, padding.bits)

    def _put(self, raw: int, bits: int) -> None:
        if bits == 64:
            self._put(raw >> 32, 32)
            raw, bits = raw & 0xFFFFFFFF, 32
        self._word, self._free = self._word << bits | raw, self._free - bits
        if not self._free:
            self.words.append(self._word)
            self.waiting += 1
            self._word, self._free = 0, 32


class _Unit:
    """Common part of all trace modes.

    Args:
        mode: trace mode.
        room: words that its buffer holds; None: all there are.
    """

    def __init__(self, mode: int, room: int | None = None) -> None:
        self.mode = mode
        self.buffer = _Buffer(mode, room)
        self.is_running = False
        self.is_overrun = False

    @property
    def payload(self) -> U32:
        """The payload words so far, uint32 [words]; whole packets once it has stopped."""
        return np.array(self.buffer.words, np.uint32)

    def drain(self, words: int) -> None:
        """Take words out of the buffer, on their way to memory."""
        self.buffer.waiting = max(self.buffer.waiting - words, 0)

    def _repeat(self, count: int) -> None:
        while count > _SHORT_REPEATS:
            chunk = min(count, _MOST_REPEATS)
            self.buffer.emit("repeat1", repeats=chunk)
            count -= chunk
        if count:
            self.buffer.emit("repeat0", repeats=count)

    def _begin(self, *, restart: bool, **values: int) -> bool:
        """Start at the first word of a packet; return False if the buffer is too full."""
        if restart and not self.buffer.has_room(self.buffer.rest_of_packet + _START_WORDS):
            return False
        self.buffer.fill_packet()
        self.buffer.emit("start", restart=int(restart), mode=self.mode, **values)
        self.is_running, self.is_overrun = True, False
        return True


class EventUnit(_Unit):
    """Modes 0 and 1: is told what is asserted in each cycle, in mode 1 also which address is fetched."""

    now = 0  # cycles since Start
    _idle = 0
    _repeats = 0
    _last: tuple[int, int] | None = None

    def start(self, timer: int) -> None:
        """Start: recording begins with the next cycle."""
        self.now = 0
        self._forget()
        self._begin(restart=False, timer=timer)

    def cycles(self, count: int, mask: int, pc: int = 0) -> None:
        """Let so many cycles pass, the same in all of them."""
        for _ in range(count):
            self.cycle(mask, pc)

    def cycle(self, mask: int, pc: int = 0) -> None:
        """Let one cycle pass."""
        self.now += 1
        if not self.is_running:
            return
        if self.is_overrun:
            self._forget()
            if not self._begin(restart=True, timer=self.now - 1):
                return
        try:
            self._record(mask, pc if self.mode == 1 else 0)
        except _Overrun:
            self.is_overrun = True

    def stop(self) -> None:
        """Stop in the next cycle: what happens in it is not recorded."""
        try:
            if not self.is_overrun:
                self._repeat(self._repeats)
                self._sync()
                self.buffer.emit("stop", mask=0, cycles=self._idle)
        except _Overrun:
            self.is_overrun = True
        self.is_running = False
        self._forget()
        self.buffer.fill_packet()

    def _record(self, mask: int, pc: int) -> None:
        if not mask:
            self._idle += 1
            return
        if not self._idle and self._last == (mask, pc):
            self._repeats += 1
            return
        repeats, self._repeats = self._repeats, 0
        self._repeat(repeats)
        if self.mode == 1:
            self.buffer.emit("event_pc", mask=mask, pc=pc)
            self._last = mask, pc
        else:
            self._sync()
            self._event(mask)
            # A Repeat now would repeat the idle cycles as well.
            self._last = None if self._idle else (mask, pc)
        self._idle = 0

    def _event(self, mask: int) -> None:
        form = 0 if self._idle < 1 << 4 else 1 if self._idle < 1 << 10 else 2
        if mask.bit_count() == 1:
            self.buffer.emit(f"single{form}", slot=mask.bit_length() - 1, cycles=self._idle)
        else:
            self.buffer.emit(f"multiple{form}", mask=mask, cycles=self._idle)

    def _sync(self) -> None:
        while self._idle >= SYNC_CYCLES:
            self.buffer.emit("sync")
            self._idle -= SYNC_CYCLES

    def _forget(self) -> None:
        self._idle = self._repeats = 0
        self._last = None


class FlowUnit(_Unit):
    """Mode 2: is told which instructions retire."""

    _atom = ""
    _count = 0

    def __init__(self, room: int | None = None) -> None:
        super().__init__(2, room)

    def start(self, pc: int) -> None:
        """Start, while ``pc`` is fetched: recording begins with the next instruction to retire."""
        self._count = 0
        self._begin(restart=False, pc=pc & PC_MASK)

    def retire(self, kind: Retired, value: int = 0, pc: int = 0) -> None:
        """Take a retired instruction, while ``pc`` is fetched."""
        if not self.is_running:
            return
        if self.is_overrun:
            self._count = 0
            if not self._begin(restart=True, pc=pc & PC_MASK):
                return
        try:
            self._record(kind, value)
        except _Overrun:
            self.is_overrun = True

    def stop(self) -> None:
        """Stop: what retires in this cycle is not recorded."""
        try:
            if not self.is_overrun:
                self._flush()
                self.buffer.emit("stop", mask=0, cycles=0)
        except _Overrun:
            self.is_overrun = True
        self.is_running = False
        self.buffer.fill_packet()

    def _record(self, kind: Retired, value: int) -> None:
        if kind == Retired.DIRECT:
            return
        if kind == Retired.BRANCH:
            atom = "taken" if value else "not_taken"
            if not self._count or atom != self._atom:
                self._flush()
                self._atom = atom
            self._count += 1
            return
        self._flush()
        if kind == Retired.TARGET:
            self.buffer.emit("new_pc", pc=value & PC_MASK)
        else:
            self.buffer.emit("loop", is_wrapped=int(value >= WRAPPED_TRIPS), count=value % WRAPPED_TRIPS)

    def _flush(self) -> None:
        count, self._count = self._count, 0
        if count:
            self.buffer.emit(self._atom)
            self._repeat(count - 1)
