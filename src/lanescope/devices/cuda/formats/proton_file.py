"""Words and header of the host file of Proton's instrumentation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class
from lanescope.devices.cuda.formats.layout import PROTON_HEADER
from lanescope.devices.cuda.formats.word_source import FileBytes
from lanescope.errors import InputError

Words32 = npt.NDArray[np.uint32]

#: Words of the header, without the numbers of the recorded warps.
HEADER_WORDS = PROTON_HEADER.bits // 32
#: Words in front of the write indices of a CTA, in versions without times.
OLD_WORDS = 4
#: No GPU has more warps a CTA, and none more CTAs than its grid's 31 bits.
MAX_WARPS = 1 << 10
#: Kind of device in the file header.
_CUDA = 1


@frozen_class
class ProtonHeader:
    """Contents of the file header; sizes in 32-bit words.

    Attributes:
        payload: where the areas begin.
        blocks: CTAs.
        units: warps of a CTA.
        scratch: words of a CTA's area.
        uids: warps that were recorded.
        size: words of the file.
        is_cuda: whether the GPU is one of CUDA.
    """

    payload: int
    blocks: int
    units: int
    scratch: int
    uids: tuple[int, ...]
    size: int
    is_cuda: bool

    @classmethod
    def read(cls, words: Words32) -> ProtonHeader:
        """Return the header of a file.

        Raises:
            InputError: it is none, of another version, or contradicts itself.
        """
        if len(words) < HEADER_WORDS:
            raise InputError("Proton file is shorter than its header", hint="copy the complete file")
        fields = PROTON_HEADER.decode(int.from_bytes(words[:HEADER_WORDS].tobytes(), "little"))
        count = fields["uids"]
        if fields["version"] != 1 or fields["header_size"] != 40 + 4 * count or not 1 <= count <= MAX_WARPS:
            raise InputError(
                "Proton header not found: expected version 1", hint="copy the complete file or use --layout"
            )
        uids = tuple(words[HEADER_WORDS : HEADER_WORDS + count].tolist())
        sound = (
            fields["payload_offset"] % 4 == 0
            and fields["payload_offset"] >= 40 + 4 * count
            and fields["scratch"] % 4 == 0
            and fields["scratch"] >= 4 * (OLD_WORDS + fields["units"])
            and 1 <= fields["units"] <= MAX_WARPS
            and len(uids) == count
            and len(set(uids)) == count
            and max(uids) < fields["units"]
            and fields["payload_size"] == fields["blocks"] * fields["scratch"]
        )
        if not sound:
            raise InputError("contradictory Proton header", hint="record the file with Proton format version 1")
        payload, scratch = fields["payload_offset"] // 4, fields["scratch"] // 4
        size = payload + fields["blocks"] * scratch
        is_cuda = fields["device"] == _CUDA
        return cls(payload, fields["blocks"], fields["units"], scratch, uids, size, is_cuda)


class ProtonWords:
    """The 32-bit words of a file, in memory or where they are.

    Args:
        words: uint32 [n], or the bytes of the file.
    """

    def __init__(self, words: Words32 | FileBytes) -> None:
        self._words = words
        self.is_in_memory = not isinstance(words, FileBytes)

    def __len__(self) -> int:
        return len(self._words) // 4 if isinstance(self._words, FileBytes) else len(self._words)

    def window(self, first: int, last: int) -> Words32:
        """Return the words from ``first`` to before ``last``, or to the end, uint32 [m]."""
        if isinstance(self._words, FileBytes):
            return self._words[4 * first : 4 * min(last, len(self))].view("<u4")
        return self._words[first:last]
