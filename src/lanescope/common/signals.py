"""Signals and their value changes: lanes as signals, and waveforms of simulators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]

#: In place of a value: it is not known.
UNKNOWN = -1


@dataclass(frozen=True, slots=True, eq=False)
class Signal:
    """One signal and when it changes.

    Attributes:
        name: scopes and name, with dots between.
        bits: its width; 0: an integer.
        times: int64 [n], rising, in the time unit of its trace or file.
        values: int64 [n], from each time on; ``UNKNOWN`` where it is not known. No two in a row are equal.
    """

    name: str
    bits: int
    times: I64
    values: I64


def last_of_each(times: I64, values: I64) -> tuple[I64, I64]:
    """Of several values at one time the last counts."""
    keep = np.append(times[1:] != times[:-1], np.ones(min(1, len(times)), np.bool_))
    return times[keep], values[keep]


def only_changes(times: I64, values: I64) -> tuple[I64, I64]:
    """Return the changes at which the value becomes another one."""
    keep = np.append(np.ones(min(1, len(values)), np.bool_), values[1:] != values[:-1])
    return times[keep], values[keep]
