"""Captures with a known truth: lamps that blink at random, and records that get lost on the way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lanescope.families import Simulation
from lanescope_blinker.layout import HEADER, RECORD, RECORD_BYTES

TICK_HZ = 1_000_000


def simulate(options: Mapping[str, Any], seed: int) -> Simulation:
    """Return a capture of ``changes`` records, of which a share ``drop`` is lost, and what really happened."""
    changes, lamps, drop = options["changes"], options["lamps"], options["drop"]
    random = np.random.default_rng(seed)
    steps = random.integers(1, 1 << 20, changes)
    ticks = np.cumsum(steps) + (1 << 32) - (1 << 22)  # the stamps wrap soon
    lamp = random.integers(0, lamps, changes)
    kept = random.random(changes) >= drop
    kept[[0, -1]] = True  # a loss at either end cannot be seen by anybody
    lit: dict[int, int] = {}
    spans, records = [], []
    for i in range(changes):
        is_on = int(lamp[i]) not in lit
        if is_on:
            lit[int(lamp[i])] = i
        else:
            spans.append(
                [int(lamp[i]), int(ticks[lit.pop(int(lamp[i]))] - ticks[0]) * 1000, int(ticks[i] - ticks[0]) * 1000]
            )
        if kept[i]:
            word = RECORD.encode(
                {"time": int(ticks[i]) & 0xFFFFFFFF, "lamp": int(lamp[i]), "state": int(is_on), "sequence": i & 0xFFFF}
            )
            records.append(word.to_bytes(RECORD_BYTES, "little"))
    main = HEADER.encode({"lamps": lamps, "tick_hz": TICK_HZ}) + b"".join(records)
    return Simulation({"run.blink": main}, {"spans": spans, "open": len(lit), "lost": int((~kept).sum())})
