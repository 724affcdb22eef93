"""CUDA probe buffers from Python: decode what is at hand, on the host or on the GPU.

Example:
    >>> import numpy as np
    >>> from lanescope import cuda
    >>> words = np.array([1 << 32 | 1, 100 << 32 | 0, 164 << 32 | 1, 196 << 32 | 3], np.uint64)
    >>> trace = cuda.decode(words, events=["load"])
    >>> [(row["name"], row["ts"], row["dur"]) for row in trace.slices.rows()]
    [('load', 0, 64)]
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanescope import UsageError

if TYPE_CHECKING:
    from lanescope import Trace
    from lanescope.devices.cuda.probes import numba as numba_probes  # noqa: F401
    from lanescope.devices.cuda.probes import triton as triton_probes  # noqa: F401
    from lanescope.devices.cuda.probes.session import PROBES, DroppedRecordsWarning, session
    from lanescope.devices.cuda.probes.sizing import advice

__all__ = [
    "PROBES",
    "DroppedRecordsWarning",
    "advice",
    "decode",
    "export_to_perfetto_trace",
    "include_dir",
    "iter_batches",
    "session",
]

#: Where the names are that are imported when they are asked for: the probes import the packages that they are for.
_LATER = {
    "PROBES": "session",
    "DroppedRecordsWarning": "session",
    "advice": "sizing",
    "numba_probes": "numba",
    "session": "session",
    "triton_probes": "triton",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f"lanescope.devices.cuda.probes.{_LATER[name]}")
    return module if name.endswith("_probes") else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_LATER})


def iter_batches(buffer: Any, *, name: str = "buffer", **options: Any) -> Iterator[Trace]:
    """Decode a probe buffer piece by piece; arguments and errors as ``decode``."""
    from lanescope.devices.cuda.probes.array_input import to_bytes
    from lanescope.devices.cuda.probes.memory_decode import decode_bytes

    yield from decode_bytes(to_bytes(buffer), name, options)


def decode(buffer: Any, *, name: str = "buffer", **options: Any) -> Trace:
    """Decode a probe buffer into a trace.

    Args:
        buffer: the words as the device stored them: a NumPy array, bytes, anything with ``__cuda_array_interface__`` or
            ``__dlpack__`` (CuPy, PyTorch, Numba, JAX), on the host or on the GPU.
        name: what the trace calls its input.
        **options: decode options of the family, as ``lanescope.open`` takes them: ``layout``, ``events`` (a list, a
            mapping, an ``Enum`` class), ``groups``, ``stride``, ``anchor``, ``launch_ns``, ...

    Raises:
        InputError: the bytes are no buffer of the layout; the message says what is wrong with the header.
        UsageError: an unknown option, or an array that cannot be read.
    """
    from lanescope import Trace

    return Trace.concat(iter_batches(buffer, name=name, **options))


def export_to_perfetto_trace(
    profiler_buffer: Any,
    file_name: Any = None,
    event_type_names: Any = None,
    *,
    event_names: Any = None,
    **options: Any,
) -> None:
    """Write a probe buffer as a Perfetto trace: takes the place of the functions of that name in TIRx and FlashInfer.

    TIRx gives the file before the names, FlashInfer the names before the file; both orders are understood. What those
    functions get wrong is right here: stamps that run through zero, regions that never end, groups of one block in
    FlashInfer's second layout, event numbers without a name. A buffer whose header was never written is refused with
    the reason, and the file is written under pytest too.

    Args:
        profiler_buffer: as ``decode`` takes it.
        file_name: the file; it is replaced if it is there.
        event_type_names: names of the events: a list, a mapping, an ``Enum`` class.
        event_names: the same, by FlashInfer's name for it.
        **options: further decode options, as ``decode`` takes them.

    Raises:
        InputError: the bytes are no probe buffer.
        UsageError: no file or no names were given.
    """
    from lanescope import write
    from lanescope.devices.cuda.probes.array_input import to_bytes
    from lanescope.devices.cuda.probes.memory_decode import layout_of_peers

    given = [value for value in (file_name, event_type_names, event_names) if value is not None]
    files = [value for value in given if isinstance(value, str | os.PathLike)]
    names = [value for value in given if not isinstance(value, str | os.PathLike)]
    if len(files) != 1 or len(names) != 1:
        raise UsageError(
            f"got {len(files)} files and {len(names)} lists of names: expected one of each",
            hint="call export_to_perfetto_trace(buffer, file_name, event_type_names)",
        )
    data = to_bytes(profiler_buffer)
    if options.get("layout") is None:
        options["layout"] = layout_of_peers(data)
    write(decode(data, events=names[0], **options), files[0], "perfetto")


def include_dir() -> Path:
    """Return the folder to give to nvcc or NVRTC by ``-I``, for ``#include <lanescope/probe.cuh>``.

    Example:
        >>> (include_dir() / "lanescope" / "probe.cuh").is_file()
        True
    """
    return Path(__file__).parent / "devices" / "cuda" / "probes" / "include"
