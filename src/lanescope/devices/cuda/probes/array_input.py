"""Bytes of whatever holds an array: NumPy, bytes, DLPack, ``__cuda_array_interface__``; from the GPU if need be."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.errors import UsageError

Bytes = npt.NDArray[np.uint8]

_HINT = "pass a NumPy array, bytes, or a host or GPU array of CuPy, PyTorch, Numba or JAX"


def to_bytes(buffer: Any) -> Bytes:
    """Return the bytes of an array in C order, uint8 [n]; those on the host are not copied where that can be.

    Args:
        buffer: an array of integers.

    Raises:
        UsageError: it is not a contiguous array of integers, or the GPU cannot be reached.
    """
    if isinstance(buffer, bytes | bytearray | memoryview):
        return np.frombuffer(buffer, np.uint8)
    interface = getattr(buffer, "__cuda_array_interface__", None)
    if interface is not None:
        return _from_device(interface)
    if isinstance(buffer, np.ndarray):
        return _flat(buffer)
    if hasattr(buffer, "__dlpack__"):
        return _flat(_from_dlpack(buffer))
    try:
        array = np.asarray(buffer)
    except (TypeError, ValueError, RuntimeError) as error:
        raise UsageError(f"cannot read {type(buffer).__name__} as an array: {error}", hint=_HINT) from None
    if array.dtype == object or not array.shape:
        raise UsageError(f"cannot read {type(buffer).__name__} as an array", hint=_HINT)
    return _flat(array)


def _flat(array: npt.NDArray[Any]) -> Bytes:
    if array.dtype.kind not in "ui" or array.dtype.byteorder == ">":
        raise UsageError(f"unsupported array type {array.dtype}: expected uint64", hint="pass the buffer unconverted")
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _from_dlpack(buffer: Any) -> npt.NDArray[Any]:
    try:
        return np.from_dlpack(buffer)
    except (TypeError, ValueError, RuntimeError, BufferError):
        pass
    try:
        # The producer knows how to bring it to the host.
        return np.from_dlpack(buffer, device="cpu", copy=True)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise UsageError(
            f"cannot copy {type(buffer).__name__} to the host: {error}", hint="copy the array to the host first"
        ) from None


def _from_device(interface: dict[str, Any]) -> Bytes:
    """Copy an array from the GPU.

    Source: the CUDA array interface, version 3, as Numba documents it.
    """
    from lanescope.devices.cuda.probes.cuda_driver import copy_to_host

    dtype = np.dtype(interface["typestr"])
    shape, strides = tuple(interface["shape"]), interface.get("strides")
    if dtype.kind not in "ui" or dtype.byteorder == ">":
        raise UsageError(f"unsupported array type {dtype}: expected uint64", hint="pass the buffer unconverted")
    if strides is not None and tuple(strides) != _c_strides(shape, dtype.itemsize):
        raise UsageError("GPU array is not contiguous", hint="pass the whole buffer instead of a view")
    size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    found = np.empty(size, np.uint8)
    if size:
        copy_to_host(found, int(interface["data"][0]))
    return found


def _c_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    strides = []
    for length in reversed(shape):
        strides.append(itemsize)
        itemsize *= length
    return tuple(reversed(strides))
