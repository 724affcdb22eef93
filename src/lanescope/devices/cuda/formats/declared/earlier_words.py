"""Records of earlier launches in buffers of declared layouts whose records are words and whose lanes take turns.

A host that does not clear such a buffer leaves behind the records of a lane what an earlier launch has stored there.
The rules that find it are those of TIRx, so the words are shown to them as words of TIRx.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.devices.cuda.formats import earlier_launch
from lanescope.devices.cuda.formats.buffer import Summary
from lanescope.devices.cuda.formats.declared.declaration import Declaration
from lanescope.devices.cuda.formats.declared.direct import DirectLanes
from lanescope.devices.cuda.formats.declared.geometry import Geometry
from lanescope.devices.cuda.formats.lanes import I64
from lanescope.devices.cuda.formats.layout import STAMP_BITS, TIRX_MAX_LANES
from lanescope.devices.cuda.formats.tirx import TirxBuffer, check_size
from lanescope.devices.cuda.formats.word_source import FileBytes, Words, WordStore

_WORD = 8
#: The row of the fields that names the SM.
_SM = 5


def is_alike(declaration: Declaration, geometry: Geometry) -> bool:
    """Return whether records of a layout are where those of TIRx are: a word each, one of each lane in turn."""
    lanes, base = geometry.lanes, geometry.base
    is_words = declaration.record.size == _WORD and declaration.overflow == "unchecked"
    is_stamped = declaration.clock.bits == STAMP_BITS and declaration.clock.anchor is None
    if not (is_words and is_stamped and 0 < lanes <= TIRX_MAX_LANES) or int(base[0]) % _WORD:
        return False
    return geometry.stride == _WORD * lanes and bool((np.diff(base) == _WORD).all())


def slots_in(main: FileBytes | npt.NDArray[np.uint8], geometry: Geometry) -> int:
    """Return how many words a buffer has that ``is_alike``, counted as TIRx would: one for the header.

    Raises:
        InputError: it has none for some lane, or more than can be counted.
    """
    slots = 1 + (len(main) - int(geometry.base[0])) // _WORD
    check_size(slots, geometry.lanes)
    return slots


class AsTirx(WordStore):
    """The words of a buffer as TIRx would have stored them; those that are no record of their lane name another one.

    Args:
        main: the bytes of the buffer.
        geometry: where its records are, as ``is_alike`` wants them.
        direct: what its fields mean.
    """

    def __init__(self, main: FileBytes | npt.NDArray[np.uint8], geometry: Geometry, direct: DirectLanes) -> None:
        self._main, self._lanes, self._direct = main, geometry.lanes, direct
        self._first = int(geometry.base[0])
        self.is_in_memory = not isinstance(main, FileBytes)
        self._count = slots_in(main, geometry)
        if self.is_in_memory:
            self._made = self._translated(0, self._count)

    def __len__(self) -> int:
        return self._count

    def window(self, first: int, last: int) -> Words:
        """Return the words from ``first`` to before ``last``, or to the end, uint64 [m]."""
        return self._made[first:last] if self.is_in_memory else self._translated(first, min(last, self._count))

    def sm_of(self, lanes: I64) -> I64:
        """Return the SM that the first record of lanes names, int64 [n]."""
        _, shift, width = self._direct.roles.fields[_SM].tolist()
        words: Words = self._bytes(1, 1 + self._lanes).view("<u8")[lanes]
        return (words >> np.uint64(shift) & np.uint64((1 << width) - 1)).astype(np.int64)

    def _bytes(self, first: int, last: int) -> npt.NDArray[np.uint8]:
        """Return the records from slot ``first`` on as they are stored, uint8; slot 0 is the header."""
        begin, end = (self._first + (slot - 1) * _WORD for slot in (first, max(first, last)))
        return np.ascontiguousarray(self._main[begin:end])

    def _translated(self, first: int, last: int) -> Words:
        made = np.empty(max(0, last - first), np.uint64)
        of_header = max(0, min(1, last) - first)
        made[:of_header] = self._lanes | 1 << 32
        slot = first + of_header
        core.cuda_words_as_tirx(
            self._bytes(slot, last), self._direct.roles_of_lanes(), (slot - 1) % self._lanes, made[of_header:]
        )
        return made


class EarlierWords:
    """What earlier launches left.

    Args:
        words: the buffer.
        found: of the latest launch.
        keep: whether they become launches of their own.
        sm: int64 [lanes], the SM of each lane where the layout has it.
        launch_ns: how long the launch took by the host's clock, if that is known.

    Attributes:
        cuts: int64 [lanes, launches], the first position of each launch but the latest.
        records: records that they left, and ``slot``: that of the first, of the words as TIRx would have them.
    """

    def __init__(
        self,
        buffer: TirxBuffer,
        found: earlier_launch.Earlier,
        *,
        keep: bool,
        sm: I64 | None,
        launch_ns: int | None,
    ) -> None:
        self.keep, self.records, self.slot = keep, found.records, found.first_slot
        self.cuts = found.cuts[:, None]
        if keep:
            self.cuts = earlier_launch.generations(buffer, found, sm=sm, launch_ns=launch_ns)


def find(words: AsTirx, summary: Summary, *, keep: bool, sm: I64 | None, launch_ns: int | None) -> EarlierWords | None:
    """Return what earlier launches left in a buffer; None: nothing that could be told from the latest one.

    Args:
        words: the buffer.
        summary: of all lanes, all records taken for those of one launch.
        keep: whether what is left becomes launches of its own.
        sm: int64 [lanes], the SM of each lane where the layout has it: the clock may be the SM's own.
        launch_ns: how long the launch took by the host's clock, if that is known.
    """
    buffer = TirxBuffer.read(words, stride=max(1, len(summary["records"])))
    found = earlier_launch.find(buffer, summary, sm=sm, launch_ns=launch_ns)
    return None if found is None else EarlierWords(buffer, found, keep=keep, sm=sm, launch_ns=launch_ns)
