"""Register writes in the order in which a host or a loader makes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from lanescope.devices.aie.config.register_writes import Write, unread_at, write_at

_ALL_BITS = 0xFFFFFFFF


@dataclass(slots=True)
class Replay:
    """What has been written so far.

    Attributes:
        writes: writes to registers of a trace.
        other: operations besides, by what they are.
        unread: registers that concern a trace and are not read.
        values: what masked writes change, by address.
    """

    writes: list[Write] = field(default_factory=list)
    other: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)
    values: dict[int, int] = field(default_factory=dict)

    def note(self, what: str, address: int, words: Sequence[int], mask: int = _ALL_BITS) -> None:
        """Note an operation: what it is, and the words that it writes from an address on, in the bits of a mask."""
        is_known = [self._word(address + 4 * index & _ALL_BITS, word, mask) for index, word in enumerate(words)]
        if not any(is_known):
            self.other[what] += 1

    def _word(self, address: int, value: int, mask: int) -> bool:
        """Note what a register holds after a write; return whether it is one of a trace."""
        value = self.values.get(address, 0) & ~mask | value & mask
        self.values[address] = value
        write = write_at(address, value)
        if write is not None:
            self.writes.append(write)
        elif name := unread_at(address, value):
            self.unread[name] += 1
        else:
            return False
        return True
