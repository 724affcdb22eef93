"""Value change dumps (VCD): traces as waveforms, their signals as ``trace.signals`` has them; unknown is ``x``.

Writing takes pyvcd (the extra ``wave``).
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

import numpy as np

from lanescope.errors import MissingDependencyError
from lanescope.io.atomic_file import Output
from lanescope.io.file_sink import BlocksSink, drive
from lanescope.trace import Trace
from lanescope.trace.signals import UNKNOWN, Signal, signals
from lanescope.trace.streams import StreamInfo


class VcdSink(BlocksSink):
    """Writes a VCD file, from the whole trace.

    Args:
        out: a path, written under a temporary name and renamed; or a binary file object.
    """

    def __init__(self, out: Output) -> None:
        super().__init__(out, lambda trace: [_encoded(trace)])


def write(trace: Trace, out: Output) -> int:
    """Write a trace as a VCD file; return its bytes. One unit of a trace in cycles is written as 1 ns.

    Raises:
        MissingDependencyError: pyvcd is not installed.
    """
    return drive(VcdSink(out), [trace], StreamInfo(is_whole=True)).bytes


def _encoded(trace: Trace) -> bytes:
    try:
        from vcd import VCDWriter
    except ImportError:
        raise MissingDependencyError("writing VCD requires pyvcd", hint="run pip install 'lanescope[wave]'") from None
    known = signals(trace)
    text = io.StringIO()
    comment = "1 ns is one cycle" if trace.time.time_unit == "cycles" else ""
    with VCDWriter(text, timescale="1 ns", version="lanescope", comment=comment) as writer:
        variables = [
            writer.register_var(
                signal.name.rpartition(".")[0],
                signal.name.rpartition(".")[2],
                "integer" if not signal.bits else "wire" if signal.bits == 1 else "reg",
                size=signal.bits or 64,
                init=0 if signal.bits < 2 else "x",
            )
            for signal in known
        ]
        for time, which, value in _in_order(known):
            writer.change(variables[which], time, "x" if value == UNKNOWN else value)
    return text.getvalue().encode()


def _in_order(known: Sequence[Signal]) -> Iterator[tuple[int, int, int]]:
    if not known:
        return
    times = np.concatenate([signal.times for signal in known])
    values = np.concatenate([signal.values for signal in known])
    which = np.repeat(np.arange(len(known)), [len(signal.times) for signal in known])
    order = np.argsort(times, kind="stable")
    yield from zip(times[order].tolist(), which[order].tolist(), values[order].tolist(), strict=True)
