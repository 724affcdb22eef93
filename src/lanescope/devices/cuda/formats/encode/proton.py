"""Entries -> files of Proton's instrumentation; the exact inverse of ``proton.py``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lanescope.devices.cuda.formats.layout import METRIC, PROTON_BLOCK, PROTON_HEADER, PROTON_PREAMBLE

I64 = npt.NDArray[np.int64]

#: The areas of two CTAs lie so many bytes apart, or a multiple.
_ALIGN = 128


@dataclass(frozen=True, slots=True)
class Entries:
    """Entries of many warps, those of one warp in write order.

    Attributes:
        lane: int64 [n], CTA * recorded warps + number of the warp among those.
        scope: int64 [n].
        type: int64 [n], ``layout.SCOPE`` and so on.
        is_end: bool [n].
        time: int64 [n], cycles, 43 bits; of a metric its value.
    """

    lane: I64
    scope: I64
    type: I64
    is_end: npt.NDArray[np.bool_]
    time: I64


@dataclass(frozen=True, slots=True)
class ProtonSetup:
    """Contents of a file besides its entries.

    Attributes:
        sm: int64 [blocks].
        warps: warps of a CTA.
        uids: those of them that are recorded.
        entries: room of each of them.
        times: int64 [blocks, 3], ns: begin, end, done; None: a file of an older version.
    """

    sm: I64
    warps: int
    uids: tuple[int, ...]
    entries: int
    times: I64 | None = None


def encode(entries: Entries, setup: ProtonSetup) -> tuple[bytes, npt.NDArray[np.bool_]]:
    """Store entries as Proton does: each warp in its ring.

    Returns:
        The file, and which entries are in it, bool [n].
    """
    blocks, count = len(setup.sm), len(setup.uids)
    order = np.argsort(entries.lane, kind="stable")
    offered = np.bincount(entries.lane, minlength=blocks * count)
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order)) - (np.cumsum(offered) - offered)[entries.lane[order]]
    stored = position >= (offered - setup.entries)[entries.lane]
    head = 10 if setup.times is not None else 4
    meta = head + setup.warps
    data = count * setup.entries * 2
    scratch = -(-(meta + data) * 4 // _ALIGN) * _ALIGN // 4
    areas = np.zeros((blocks, scratch), np.uint32)
    areas[:, 0], areas[:, 1], areas[:, 2], areas[:, 3] = PROTON_PREAMBLE, np.arange(blocks), setup.sm, data * 4
    if setup.times is not None:
        for column, name in enumerate(("begin_ns", "end_ns", "done_ns")):
            word = PROTON_BLOCK[name].lsb // 32
            areas[:, word] = setup.times[:, column] & 0xFFFFFFFF
            areas[:, word + 1] = setup.times[:, column] >> 32
    areas[:, head + np.array(setup.uids)] = 2 * offered.reshape(blocks, count)
    block, warp = np.divmod(entries.lane[stored], count)
    at = meta + (warp * setup.entries + position[stored] % setup.entries) * 2
    is_value = entries.type == METRIC
    tag = np.where(is_value, 0, entries.time >> 32 & 0x7FF) | entries.type << 20 | entries.scope << 23
    tag |= entries.is_end.astype(np.int64) << 31
    areas[block, at] = tag[stored]
    areas[block, at + 1] = entries.time[stored] & 0xFFFFFFFF
    fields = {
        "version": 1,
        "header_offset": 4,
        "header_size": 40 + 4 * count,
        "payload_offset": 40 + 4 * count,
        "payload_size": areas.nbytes,
        "device": 1,
        "blocks": blocks,
        "units": setup.warps,
        "scratch": scratch * 4,
        "uids": count,
    }
    header = PROTON_HEADER.encode(fields).to_bytes(PROTON_HEADER.bits // 8, "little")
    return header + np.array(setup.uids, "<u4").tobytes() + areas.astype("<u4").tobytes(), stored
