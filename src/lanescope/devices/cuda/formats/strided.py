"""Buffers whose slots are shared by all lanes in turn: TIRx v1, warpscope and FlashInfer's two layouts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.cuda.formats import earlier_launch, flashinfer, layout
from lanescope.devices.cuda.formats.buffer import (
    UNKNOWN,
    Bounds,
    Grid,
    LaneSpan,
    Mask,
    OwnNumbers,
    Summary,
    TaggedRecords,
    WrapOffsets,
)
from lanescope.devices.cuda.formats.lanes import I64, U32, Decoded, turns_of
from lanescope.devices.cuda.formats.raw_records import RECORDS, strided_records
from lanescope.devices.cuda.formats.tirx import TirxBuffer, find_stride, header
from lanescope.devices.cuda.formats.word_source import Words, WordStore, store_of
from lanescope.errors import UsageError
from lanescope.trace import Table


class StridedBuffer(OwnNumbers):
    """A buffer of one of these layouts.

    Args:
        words: the whole buffer.
        name: which layout, of ``layout.TIRX_V1`` and so on.
        stride: slots between two records of a lane; found when None.
        max_records: records that a lane may have, where the probe has a limit.
        is_assumed: whether other layouts fit as well, and nothing distinguishes them.

    Raises:
        InputError: the header is missing, or no kernel writes it.
        UsageError: the stride or the limit cannot be.

    Attributes:
        words: the words as they stand.
        tirx: the same as a buffer of TIRx v1.
    """

    clock = "globaltimer_lo"
    in_cycles = False
    stamp_bits = layout.STAMP_BITS
    is_full_clock = False
    unit_bytes = 8
    cut = 0
    behind = 0
    overwritten = None
    has_special = False
    has_tokens = False
    has_payloads = False

    def __init__(
        self,
        words: Words | WordStore,
        name: str,
        *,
        stride: int | None = None,
        max_records: int | None = None,
        is_assumed: bool = False,
    ) -> None:
        self.format, self._is_assumed = name, is_assumed
        self.words = store_of(words)
        self._max_records = max_records
        self._sm: I64 | None = None
        self._earlier: earlier_launch.Earlier | None = None
        made, lanes = self.words, None
        if name in (layout.FLASHINFER_V1, layout.FLASHINFER_V2):
            lanes = header(made).lanes
            if stride not in (None, lanes):
                raise UsageError(
                    f"invalid stride: layout {name} uses the number of lanes, {lanes}", hint="remove --stride"
                )
            if name == layout.FLASHINFER_V2:
                made = rewritten = flashinfer.Rewritten(made)
                self._sm = rewritten.sm
            made = flashinfer.WithoutFinalize(made)
        self._made = made
        if max_records is not None:
            if name != layout.WARPSCOPE:
                raise UsageError(f"layout {name} has no record limit", hint="remove --max-records")
            if stride is None:
                stride = find_stride(made, header(made))[0].stride or None
            if stride is not None:
                made = made.beginning(1 + max_records * stride)
        self.tirx = TirxBuffer.read(made, stride=stride or lanes)

    @property
    def slots(self) -> int:
        """Words of the buffer."""
        return len(self.words)

    @cached_property
    def grid(self) -> Grid:
        """All lanes of the header."""
        geometry = self.tirx.geometry
        blocks, groups = geometry.num_blocks, geometry.num_groups
        sm = self._sm
        return Grid.dense(
            blocks,
            groups,
            sm=None if sm is None else np.where(sm < 0, UNKNOWN, sm),
            capacity=geometry.capacity(len(self.tirx.words)) if geometry.stride else None,
        )

    def parts(self, limit: int) -> list[tuple[int, int]]:
        """Cut the lanes into runs of about equal size."""
        return self.tirx.parts(limit)

    def part_launches(self, summary: Summary, *, keep: bool, launch_ns: int | None) -> bool:
        """Find what an earlier launch left in a buffer that was not cleared; see ``earlier.find``."""
        found = earlier_launch.find(self.tirx, summary, sm=self._sm, launch_ns=launch_ns)
        if found is None:
            return False
        self._earlier = found
        self.tirx.cuts, self.tirx.keeps_earlier = found.cuts[:, None], keep
        if keep:
            self.tirx.cuts = earlier_launch.generations(self.tirx, found, sm=self._sm, launch_ns=launch_ns)
        if self._sm is not None and not keep:
            # The earlier launch may have run elsewhere.
            self._sm = flashinfer.Rewritten(earlier_launch.Latest(self.words, self.tirx.geometry.stride, found.cuts)).sm
            self.__dict__.pop("grid", None)
        return True

    def decode(self, part: tuple[int, int], *, split: bool, step_back: int) -> Decoded:
        """Decode lanes; arguments as ``buffer.Buffer.decode`` describes them."""
        return self.tirx.decode(split=split, step_back=step_back, part=part)

    def turns(self, summary: Summary, anchor: int | None, step_back: int) -> WrapOffsets:
        """Place the lanes by their first stamps."""
        ticks, certain = turns_of(summary, anchor, layout.STAMP_BITS)
        if summary["finalizes"].any():
            summary["finalize"] = np.where(summary["finalizes"] > 0, summary["finalize"] + ticks, 0)
        return WrapOffsets(ticks, None if certain else np.ones(len(ticks), np.bool_))

    def extent(self, summary: Summary) -> LaneSpan:
        """Only a finalize says anything: when a lane ended."""
        nothing = np.zeros(len(summary["records"]), np.int64)
        ended = summary["finalizes"] > 0
        return LaneSpan(nothing, np.where(ended, summary["finalize"], 0), nothing != 0, ended)

    def clock_bounds(self, summary: Summary, extent: LaneSpan) -> Bounds | None:
        """Ticks are nanoseconds."""
        return None

    def slots_of(self, lane: U32 | I64, index: U32) -> I64:
        """Return the slots of records from their lanes and positions."""
        return self.tirx.slots_of(lane, index)  # type: ignore[arg-type]

    def special(self, lane: U32, index: U32) -> TaggedRecords:
        """There is nothing but instants."""
        nothing = np.zeros(len(lane), np.int64)
        return TaggedRecords(nothing + layout.INSTANT, nothing, self.slots_of(lane, index))

    def tokens(self, slots: I64) -> I64:
        """There are none."""
        return np.zeros(len(slots), np.int64)

    def payloads(self, slots: I64) -> tuple[npt.NDArray[np.uint64], Mask | None]:
        """There are none."""
        return np.zeros(len(slots), np.uint64), np.zeros(len(slots), np.bool_)

    def values(self, slots: I64, tokens: I64) -> npt.NDArray[np.float64]:
        """There are none."""
        return np.zeros(len(slots))

    def describe(self) -> Mapping[str, Any]:
        """Return the stride, and how it was found."""
        geometry = self.tirx.geometry

        def room(times: float) -> int:
            capacity = geometry.capacity(len(self.tirx.words))
            return 1 + geometry.stride * int(np.ceil(times * int(capacity.max())))

        known: dict[str, Any] = {"stride": geometry.stride or None, "stride_source": geometry.source}
        return known | ({"room": room} if geometry.stride else {})

    def account(self, summary: Summary) -> tuple[int, int]:
        """Count the header and the records; words of other lanes and holes are lost.

        Records of an earlier launch that are left out carry nothing of this one.
        """
        records = int(summary["records"].sum())
        holes = int((summary["missing"] - summary["bad"]).sum())
        left = 0 if self._earlier is None or self.tirx.keeps_earlier else self._earlier.records
        return 1 + records, self.tirx.found.used - records - left + holes + self._beyond[0]

    @cached_property
    def _beyond(self) -> tuple[int, int | None]:
        """Number of words after the limit of the lanes, and the slot of the first."""
        count, first_slot = 0, None
        for first, piece in self._made.pieces(len(self.tirx.words), len(self._made), 1):
            found = np.flatnonzero(piece)
            if len(found) and first_slot is None:
                first_slot = first + int(found[0])
            count += len(found)
        return count, first_slot

    def stats(self, summary: Summary) -> Iterator[tuple[str, int, int | None]]:
        """Yield what the stride and the tags give reason to say."""
        geometry, found = self.tirx.geometry, self.tirx.found
        if self._earlier is not None:
            yield "cuda_stale", self._earlier.records, self._earlier.first_slot
        yield "cuda_layout_assumed", int(self._is_assumed), None
        yield "cuda_stride_inferred", int(geometry.source == "inferred"), None
        yield "cuda_stride_unknown", int(not geometry.stride), None
        yield "cuda_corrupt_record", self.tirx.unreadable, found.first_misplaced
        if self._max_records is not None:
            yield "cuda_corrupt_record", *self._beyond
        if self._sm is not None:
            marks = int((summary["instants"] - summary["unmatched"]).sum())
            yield "cuda_instants_unreliable", marks, None
            yield "cuda_multiple_sms", int(np.count_nonzero(self._sm == flashinfer.SEVERAL_SMS)), None
            unknown = (self._sm == UNKNOWN) & (summary["records"] > 0)
            yield "cuda_sm_unknown", int(np.count_nonzero(unknown)), None

    def raw(self) -> tuple[str, Callable[[int], Table]]:
        """Return what makes the table of words."""
        return RECORDS.name, lambda before: strided_records(self.words.whole(), self.tirx, self.format, before)
