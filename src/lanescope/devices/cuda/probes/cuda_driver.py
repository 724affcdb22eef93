"""The few calls of the CUDA driver that bring a buffer to the host, without any package for it.

Source: the CUDA driver API: cuInit, cuPointerGetAttribute, cuCtxPushCurrent, cuCtxSynchronize, cuMemcpyDtoH.
"""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np
import numpy.typing as npt

from lanescope.errors import UsageError

LIBRARY = "libcuda.so.1"
#: CU_POINTER_ATTRIBUTE_CONTEXT
_CONTEXT = 1
_HINT = "copy the array to the host first"


@cache
def _driver(name: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(name)
    except OSError:
        raise UsageError("cannot copy the array from the GPU: CUDA driver not found", hint=_HINT) from None


def copy_to_host(out: npt.NDArray[np.uint8], pointer: int) -> None:
    """Copy from a GPU, after all work of the array's context is done.

    Args:
        out: uint8 [n], filled.
        pointer: address on the device.

    Raises:
        UsageError: the driver is missing or refuses, so nothing is known about the address.
    """
    driver = _driver(LIBRARY)
    context, device = ctypes.c_void_p(), ctypes.c_uint64(pointer)
    _check(driver, "cuInit", ctypes.c_uint(0))
    _check(driver, "cuPointerGetAttribute", ctypes.byref(context), ctypes.c_int(_CONTEXT), device)
    _check(driver, "cuCtxPushCurrent_v2", context)
    try:
        _check(driver, "cuCtxSynchronize")
        _check(driver, "cuMemcpyDtoH_v2", out.ctypes.data_as(ctypes.c_void_p), device, ctypes.c_size_t(len(out)))
    finally:
        driver.cuCtxPopCurrent_v2(ctypes.byref(context))


def _check(driver: ctypes.CDLL, name: str, *arguments: object) -> None:
    code = getattr(driver, name)(*arguments)
    if code:
        raise UsageError(f"cannot copy the array from the GPU: {name} failed with {code}", hint=_HINT)
