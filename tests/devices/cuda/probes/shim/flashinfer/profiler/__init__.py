"""A stand-in for FlashInfer's exporter: draws each word by ``tg4perfetto``."""

from __future__ import annotations

import torch
from tg4perfetto import TraceGenerator


def export_to_perfetto_trace(profiler_buffer: torch.Tensor, event_names: list[str], file_name: str) -> None:
    """Draw a buffer: the number in a tag is divided by the groups, as it was when it had the group in it."""
    drawing = TraceGenerator(file_name)
    assert profiler_buffer.dtype == torch.uint64
    first, *words = (int(word) for word in profiler_buffer.cpu())
    groups = first >> 32
    tracks = {}
    for word in filter(None, words):
        sm, number, event, kind = word >> 24 & 0xFF, word >> 12 & 0xFFF, word >> 2 & 0x3FF, word & 3
        block, group = divmod(number, groups)
        if (block, group) not in tracks:
            tracks[block, group] = drawing.create_group(f"SM_{sm:03d}").create_track(f"blk{block}_g{group}")
        if kind == 0:
            tracks[block, group].open(word >> 32, event_names[event])
        elif kind == 1:
            tracks[block, group].close(word >> 32)
    drawing.flush()
