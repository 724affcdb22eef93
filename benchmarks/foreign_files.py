"""Large files of trace events as other tools write them, made from what the simulators write, in seconds."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

import lanescope
from bench_perfetto import realistic
from lanescope.io import perfetto

#: Kernels of the training step that is repeated; with its other rows some 5,000 slices.
KERNELS = 1_500
#: Numbers that differ from step to step: times, and what ties rows together.
_NUMBER = re.compile(rb'("ts"|"correlation"|"External id"|"id"|"Seq"|"Python id"|"Python parent id"): (\d+)(\.\d{3})?')
_SEPARATOR = b",\n"


def kineto(path: Path, size: int) -> int:
    """Write a file of at least ``size`` bytes; return its steps.

    A simulated step is repeated as often as that takes, each with times and ties of its own. First come the calls of
    all steps, then the device rows of all, as the profiler writes them.
    """
    text = next(iter(lanescope.simulate("kineto", seed=1, steps=1, kernels=KERNELS).files.values()))
    head, _, body = text.partition(b'"traceEvents": [\n')
    body, _, tail = body.partition(b"\n  ]")
    calls, work, rest = [], [], []
    for event in body.split(_SEPARATOR + b"  {"):
        event = event if event.startswith(b"  {") else b"  {" + event
        is_rest = b'"ph": "M"' in event or b'"cat": "Trace"' in event or b'"ph": "i"' in event
        (rest if is_rest else work if b'"pid": 0,' in event else calls).append(event)
    begin, end = (1000 * int(number) for number in re.findall(rb'"ts": (\d{9,})\.', rest[-2] + rest[-1]))
    length, ties = end - begin + 100_000, 1 + text.count(b'"ph": "X"')
    count = -(-size // (len(_SEPARATOR.join(calls)) + len(_SEPARATOR.join(work))))
    with path.open("wb") as file:
        file.write(head + b'"traceEvents": [\n')
        for part in (calls, work):
            for made in _repeated(_SEPARATOR.join(part), count, length, ties):
                file.write(made + _SEPARATOR)
        span = re.sub(rb'"dur": \d+', b'"dur": %d' % (count * length // 1000), rest[-2])
        stop = next(_repeated(rest[-1], 1, length, ties, first=count - 1))
        file.write(_SEPARATOR.join([*rest[:-2], span, stop]) + b"\n  ]" + tail)
    return count


def _repeated(part: bytes, count: int, length: int, ties: int, first: int = 0) -> Iterator[bytes]:
    """Yield a part of a file once for each step, ``length`` ns and so many ``ties`` apart."""
    numbers = [(match[3] is not None, int(match[2])) for match in _NUMBER.finditer(part)]
    digits = [int(match[3][1:]) if match[3] else 0 for match in _NUMBER.finditer(part)]
    form = _NUMBER.sub(lambda match: match[1] + (b": %d.%03d" if match[3] else b": %d"), part.replace(b"%", b"%%"))
    for step in range(first, first + count):
        values: list[int] = []
        for (is_time, number), rest in zip(numbers, digits, strict=True):
            if is_time:
                values += divmod(number * 1000 + rest + step * length, 1000)
            else:
                values.append(number + step * ties)
        yield form % tuple(values)


def chrome(path: Path, size: int) -> None:
    """Write a bare list of at least ``size`` bytes of short complete events without arguments: the densest there is."""
    with path.open("wb") as file:
        file.write(b"[\n")
        number = 0
        while file.tell() < size:
            lines = [
                b'{"ph":"X","name":"%s","cat":"work","pid":%d,"tid":%d,"ts":%d.%03d,"dur":%d.%03d}'
                % (_NAMES[at % len(_NAMES)], 1 + at % 2, at % 8, at * 3, at % 1000, 2 + at % 9, at % 997)
                for at in range(number, number + 10_000)
            ]
            file.write((_SEPARATOR if number else b"") + _SEPARATOR.join(lines))
            number += len(lines)
        file.write(b"\n]\n")


_NAMES = [b"task_%02d" % number for number in range(40)]


def perfetto_file(path: Path, slices: int) -> None:
    """Write so many slices of 72 lanes as we write them, packets not compressed."""
    made = io.BytesIO()
    perfetto.write(realistic(slices=slices), made, compress=False)
    path.write_bytes(made.getbuffer())


def perfetto_of_sdk(path: Path, slices: int) -> None:
    """Write about so many slices as an SDK writes them: texts by number, steps of a clock, arguments and flows."""
    # Of each slice of a thread there are 1.34 with those inside of it.
    made = lanescope.simulate("perfetto", seed=1, slices=round(slices / 4 / 1.34), threads=4, samples=100)
    path.write_bytes(next(iter(made.files.values())))
