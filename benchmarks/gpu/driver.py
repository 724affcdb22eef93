"""The CUDA driver by ctypes: what running a kernel takes, and nothing that has to be installed besides the driver."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from lanescope import MissingDependencyError

#: CUdevice_attribute.
_MULTIPROCESSORS, _MAJOR, _MINOR = 16, 75, 76


class DriverError(RuntimeError):
    """A call of the driver failed."""


class Memory:
    """Memory of the GPU that holds an array; freed with the driver's context."""

    def __init__(self, gpu: Gpu, array: np.ndarray) -> None:
        self._gpu, self._like = gpu, array
        self.pointer = ctypes.c_uint64()
        gpu.call("cuMemAlloc_v2", ctypes.byref(self.pointer), ctypes.c_size_t(max(8, array.nbytes)))
        self.put(array)

    def put(self, array: np.ndarray) -> None:
        self._gpu.call(
            "cuMemcpyHtoD_v2", self.pointer, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes)
        )

    def get(self) -> np.ndarray:
        found = np.empty_like(self._like)
        self._gpu.call(
            "cuMemcpyDtoH_v2", ctypes.c_void_p(found.ctypes.data), self.pointer, ctypes.c_size_t(found.nbytes)
        )
        return found

    def free(self) -> None:
        self._gpu.call("cuMemFree_v2", self.pointer)


class Gpu:
    """The first GPU.

    Args:
        library: the driver's library.

    Raises:
        MissingDependencyError: there is no driver, or no GPU.
    """

    def __init__(self, library: str = "libcuda.so.1") -> None:
        try:
            self._library = ctypes.CDLL(library)
        except OSError as error:
            raise MissingDependencyError(
                f"no GPU: the CUDA driver cannot be loaded ({error})", hint="run this where one is"
            ) from None
        count, version, context = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
        try:
            self.call("cuInit", ctypes.c_uint(0))
            self.call("cuDeviceGetCount", ctypes.byref(count))
        except DriverError as error:
            raise MissingDependencyError(f"no GPU: {error}", hint="run this where one is") from None
        if count.value == 0:
            raise MissingDependencyError("no GPU: the CUDA driver finds none", hint="run this where one is")
        self._device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(self._device), ctypes.c_int(0))
        self.call("cuDriverGetVersion", ctypes.byref(version))
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, ctypes.c_int(len(name)), self._device)
        self.name = name.value.decode()
        self.driver = f"{version.value // 1000}.{version.value % 1000 // 10}"
        self.architecture = 10 * self._attribute(_MAJOR) + self._attribute(_MINOR)
        self.multiprocessors = self._attribute(_MULTIPROCESSORS)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device)
        self.call("cuCtxSetCurrent", context)
        self._module = ctypes.c_void_p()
        self._begin, self._end = ctypes.c_void_p(), ctypes.c_void_p()
        for event in (self._begin, self._end):
            self.call("cuEventCreate", ctypes.byref(event), ctypes.c_uint(0))

    def call(self, function: str, *arguments: Any) -> None:
        """Call a function of the driver.

        Raises:
            DriverError: it failed.
        """
        status = self._library[function](*arguments)
        if status:
            text = ctypes.c_char_p()
            with suppress(AttributeError):
                self._library.cuGetErrorString(ctypes.c_int(status), ctypes.byref(text))
            said = text.value.decode() if text.value else "no description"
            raise DriverError(f"{function}: {said} (status {status})")

    def _attribute(self, number: int) -> int:
        found = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(found), ctypes.c_int(number), self._device)
        return found.value

    def load(self, cubin: bytes) -> None:
        """Load the machine code that ``kernel`` looks names up in."""
        self.call("cuModuleLoadData", ctypes.byref(self._module), ctypes.c_char_p(cubin))

    def array(self, array: np.ndarray) -> Memory:
        """Put an array into memory of the GPU."""
        return Memory(self, np.ascontiguousarray(array))

    def kernel(
        self, name: str, blocks: int, threads: int, *arguments: Memory | np.generic | None, shared: int = 0
    ) -> Callable[[], None]:
        """Return what launches a kernel.

        Args:
            name: of the kernel.
            blocks: of the grid.
            threads: of a block.
            arguments: memory, NumPy scalars of the right type, None for no pointer.
            shared: bytes of dynamic shared memory.
        """
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), self._module, name.encode())
        values = [
            np.uint64(0) if a is None else np.uint64(a.pointer.value) if isinstance(a, Memory) else a for a in arguments
        ]
        cells = [np.array([value]) for value in values]
        pointers = (ctypes.c_void_p * len(cells))(*(cell.ctypes.data for cell in cells))
        sizes = [ctypes.c_uint(n) for n in (blocks, 1, 1, threads, 1, 1, shared)]

        def launch(_keep: Sequence[Any] = cells) -> None:
            self.call("cuLaunchKernel", function, *sizes, None, pointers, None)

        return launch

    def wait(self) -> None:
        """Wait for all kernels."""
        self.call("cuCtxSynchronize")

    def elapsed_ns(self, launch: Callable[[], None]) -> float:
        """Return how long a launch took on the GPU."""
        found = ctypes.c_float()
        self.call("cuEventRecord", self._begin, None)
        launch()
        self.call("cuEventRecord", self._end, None)
        self.call("cuEventSynchronize", self._end)
        self.call("cuEventElapsedTime", ctypes.byref(found), self._begin, self._end)
        return found.value * 1e6


if __name__ == "__main__":  # whether there is a GPU: exit status 0
    try:
        Gpu()
    except (MissingDependencyError, DriverError):
        raise SystemExit(1) from None
