"""Probes in Triton's interpreter, which lacks inline assembly, and arrays for it in place of PyTorch's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.cuda.probes import sim_clock
from lanescope.errors import MissingDependencyError

#: Blocks of a simulated GPU run on this many multiprocessors in turn.
_SMS = 4


class HostArray:
    """A NumPy array in the shape in which Triton's interpreter wants its arguments: what it calls of a PyTorch tensor.

    Args:
        values: the array; kernels write into it.
    """

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self.values = values
        self.dtype = values.dtype.name

    def data_ptr(self) -> int:  # noqa: D102
        return int(self.values.ctypes.data)

    def untyped_storage(self) -> HostArray:  # noqa: D102
        return self

    def cpu(self) -> HostArray:  # noqa: D102
        return self

    def copy_(self, other: HostArray) -> None:  # noqa: D102
        assert other.values is self.values  # it was never anywhere else

    def new_empty(self, size: int, device: str) -> HostArray:  # noqa: D102
        return HostArray(self.values[:0])

    def set_(self, storage: HostArray, *geometry: Any) -> None:  # noqa: D102
        self.values = storage.values

    def storage_offset(self) -> int:  # noqa: D102
        return 0

    def size(self) -> tuple[int, ...]:  # noqa: D102
        return self.values.shape

    def stride(self) -> tuple[int, ...]:  # noqa: D102
        return tuple(step // self.values.itemsize for step in self.values.strides)


class _Result:
    """What the interpreter's semantic layer asks of an operation with several results."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle

    def get_result(self, index: int) -> Any:
        assert index == 0
        return self.handle


@contextmanager
def interpreted() -> Iterator[None]:
    """Let Triton's interpreter run the assembly of the probes: the timer is ``simclock``, the rest is plausible.

    Raises:
        MissingDependencyError: this version of Triton has no hook for it.
    """
    try:
        import triton
        from triton.runtime import interpreter

        builder, handle_type = interpreter.InterpreterBuilder, interpreter.TensorHandle
        before = builder.create_inline_asm
        _ = (builder.set_grid_idx, builder.set_grid_dim)
    except (ImportError, AttributeError) as error:
        version = "" if isinstance(error, ImportError) else f" {triton.__version__}"
        raise MissingDependencyError(
            f"unsupported interpreter of Triton{version}: {error}",
            hint="run python -m pip install triton==3.9.0",
        ) from None

    def create_inline_asm(self: Any, asm: str, _constraints: str, values: Any, types: Any, *_others: Any) -> _Result:
        type_ = types[0] if isinstance(types, list | tuple) else types
        scalar = getattr(type_, "scalar", type_)
        wide = "u64" in asm
        shape = values[0].data.shape if values else (1,)
        dtype = np.uint64 if wide else np.uint32
        number = _answer(asm, values, tuple(self.grid_idx), tuple(self.grid_dim))
        return _Result(handle_type(np.full(shape, number & (2**64 - 1 if wide else 2**32 - 1), dtype), scalar))

    builder.create_inline_asm = create_inline_asm
    try:
        yield
    finally:
        builder.create_inline_asm = before


def _answer(asm: str, values: Any, index: tuple[int, ...], grid: tuple[int, ...]) -> int:
    """Return what a piece of the probes' assembly yields."""
    if "%globaltimer_lo" in asm:
        return sim_clock.cycles() if values[0].data.any() else sim_clock.now()
    if "%globaltimer" in asm:
        return sim_clock.now()
    if "%clock64" in asm:
        return sim_clock.cycles()
    if "%smid" in asm:
        return ((index[2] * grid[1] + index[1]) * grid[0] + index[0]) % _SMS
    if "%gridid" in asm:
        return 1
    return 0
