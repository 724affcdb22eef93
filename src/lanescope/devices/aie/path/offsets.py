"""Where in the capture the rows of a recording lie: its frames are looked up in the file again, when somebody asks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lanescope.devices.aie.formats import encode
from lanescope.devices.aie.formats.detect import PAYLOAD
from lanescope.devices.aie.formats.layout import FLOW_KINDS, FRAMES, HEADER
from lanescope.devices.aie.formats.raw_frames import Items, Packets, Words
from lanescope.devices.aie.path.segments import Segment
from lanescope.errors import InputError
from lanescope.source import Source
from lanescope.trace import Trace

I64 = npt.NDArray[np.int64]

_EXECUTION = 2
#: Payload words that are split into frames at a time.
_CHUNK = 1 << 16
#: For each frame: the kind of row that it makes; -1: none. A Start of either sort counts as one.
_KIND_OF = np.array([FLOW_KINDS.index(name) if name in FLOW_KINDS else -1 for name in FRAMES] + [-1] * 256)
_START, _RESTART = FLOW_KINDS.index("start"), FLOW_KINDS.index("restart")


class Dump:
    """The words of a capture, read again.

    Args:
        path: the capture.
        header: that the packets of a stream without headers got.

    Raises:
        InputError: it is gone.
    """

    def __init__(self, path: str, header: int | None = None) -> None:
        source = Source(path)
        try:
            self._words = Words.of(source.read(), header)
        finally:
            source.close()
        self._packets = Packets.of(self._words)

    def offsets(self, recording: Segment, rows: Sequence[int]) -> I64:
        """Return the byte offset of the word that holds the frame of each row, int64 [n]; -1: it was not found.

        Args:
            recording: whose rows.
            rows: their numbers, from 0, the Start.
        """
        wanted = np.asarray(rows, np.int64)
        found = np.full(len(wanted), -1, np.int64)
        kinds = np.where(recording.stream.kind == _RESTART, _START, recording.stream.kind)
        for source, header in enumerate(self._packets.headers):
            if tuple(int(HEADER[name].of(header)) for name in ("type", "column", "row", "id")) != recording.source:
                continue
            at = self._packets.payload(source)
            offsets = self._words.offsets[at]
            begin = int(np.searchsorted(offsets, recording.start_offset))
            known = 0
            while begin < len(at) and known <= wanted.max(initial=-1):
                items = Items.of(self._words.values[at[begin : begin + _CHUNK]], _EXECUTION)
                kind = _KIND_OF[items.frame]
                is_row = kind >= 0
                kind, places = kind[is_row], offsets[begin + items.word[is_row]]
                count = min(len(kind), len(kinds) - known)
                # What was decoded from another file, or otherwise, has no place here.
                if not count or (kind[:count] != kinds[known : known + count]).any():
                    break
                inside = (wanted >= known) & (wanted < known + count)
                found[inside] = places[wanted[inside] - known]
                known += count
                begin += _CHUNK
        return found


def dump_for(trace: Trace) -> Dump | None:
    """Return the capture that a trace was decoded from; None if there is none any more, or several."""
    mains = [row for row in trace.inputs.rows() if row["family"] == "aie" and row["role"] == "main"]
    if len(mains) != 1 or mains[0]["path"] == "-":
        return None
    header = None
    if mains[0]["format"] == PAYLOAD:
        unit = next(iter(trace.details["aie_segments"].rows()), None)
        if unit is None:
            return None
        header = encode.header(*(int(unit[name]) for name in ("packet_type", "col", "row", "packet_id")))
    try:
        return Dump(str(mains[0]["path"]), header)
    except InputError:
        return None
