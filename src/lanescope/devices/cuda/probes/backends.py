"""Memory, time and the timer of a GPU, through whichever package is there; none of them is imported before it is asked.

Under Numba's simulator and Triton's interpreter the same calls go to the host, and the clock is ``simclock``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from lanescope.devices.cuda.probes import sim_clock
from lanescope.devices.cuda.probes.buffer import Words
from lanescope.errors import MissingDependencyError, UsageError

_HINT = "install CuPy, PyTorch or Numba; without a GPU set NUMBA_ENABLE_CUDASIM=1 or TRITON_INTERPRET=1"
_MS = 1_000_000
_TIMER = """
extern "C" __global__ void lanescope_timer(unsigned long long *out) {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(*out));
}
"""


class Backend(Protocol):
    """One GPU, or what takes its place.

    Attributes:
        name: the package.
        ordinal: the number of the GPU.
        is_simulated: True without a GPU, with times from ``sim_clock``.
    """

    name: str
    ordinal: int
    is_simulated: bool

    def is_available(self) -> AbstractContextManager[Any]:
        """Return a context in which the package works on this GPU."""

    def allocate(self, words: int, header: Words) -> Any:
        """Return an array of zeros on the GPU that begins with a header."""

    def fetch(self, array: Any) -> Words:
        """Return a copy of an array on the host, after all kernels are done."""

    def timer(self) -> int | None:
        """Return the GPU's timer now, in ns; None: the package cannot read it."""

    def elapsed_ns(self, run: Callable[[], object]) -> float:
        """Run something and return how long the GPU took, in ns."""

    def describe(self) -> str:
        """Return what the GPU is called."""


class _Cupy:
    name, is_simulated = "cupy", False

    def __init__(self, ordinal: int | None) -> None:
        self._cupy = import_module("cupy")
        self.ordinal = int(self._cupy.cuda.Device().id if ordinal is None else ordinal)

    def is_available(self) -> AbstractContextManager[Any]:
        device: AbstractContextManager[Any] = self._cupy.cuda.Device(self.ordinal)
        return device

    def allocate(self, words: int, header: Words) -> Any:
        with self.is_available():
            array = self._cupy.zeros(words, np.uint64)
            array[: len(header)] = self._cupy.asarray(header)
            return array

    def fetch(self, array: Any) -> Words:
        with self.is_available():
            self._cupy.cuda.Device().synchronize()
            return np.asarray(array.get(), np.uint64)

    def timer(self) -> int:
        with self.is_available():
            out = self._cupy.zeros(1, np.uint64)
            _cupy_timer()((1,), (1,), (out,))
            return int(out.get()[0])

    def elapsed_ns(self, run: Callable[[], object]) -> float:
        with self.is_available():
            begin, end = self._cupy.cuda.Event(), self._cupy.cuda.Event()
            begin.record()
            run()
            end.record()
            end.synchronize()
            return float(self._cupy.cuda.get_elapsed_time(begin, end)) * _MS

    def describe(self) -> str:
        name = self._cupy.cuda.runtime.getDeviceProperties(self.ordinal)["name"]
        return name.decode() if isinstance(name, bytes) else str(name)


@cache
def _cupy_timer() -> Any:
    return import_module("cupy").RawKernel(_TIMER, "lanescope_timer")


class _Torch:
    name, is_simulated = "torch", False

    def __init__(self, ordinal: int | None) -> None:
        self._torch = import_module("torch")
        self.ordinal = int(self._torch.cuda.current_device() if ordinal is None else ordinal)

    def is_available(self) -> AbstractContextManager[Any]:
        device: AbstractContextManager[Any] = self._torch.cuda.device(self.ordinal)
        return device

    def allocate(self, words: int, header: Words) -> Any:
        # Signed: few operations of PyTorch know unsigned words. The bits are the same.
        torch = self._torch
        array = torch.zeros(words, dtype=torch.int64, device=f"cuda:{self.ordinal}")
        array[: len(header)].copy_(torch.from_numpy(header.view(np.int64).copy()))
        return array

    def fetch(self, array: Any) -> Words:
        self._torch.cuda.synchronize(self.ordinal)
        words: Words = array.cpu().numpy().view(np.uint64)
        return words

    def timer(self) -> int | None:
        if find_spec("triton") is None:
            return None
        from lanescope.devices.cuda.probes.triton import read_timer

        with self.is_available():
            out = self._torch.zeros(1, dtype=self._torch.int64, device=f"cuda:{self.ordinal}")
            read_timer[(1,)](out, num_warps=1)
            return int(out.cpu()[0])

    def elapsed_ns(self, run: Callable[[], object]) -> float:
        with self.is_available():
            begin, end = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            run()
            end.record()
            end.synchronize()
            return float(begin.elapsed_time(end)) * _MS

    def describe(self) -> str:
        return str(self._torch.cuda.get_device_name(self.ordinal))


class _Numba:
    name = "numba"

    def __init__(self, ordinal: int | None) -> None:
        self._cuda = import_module("numba.cuda")
        self.is_simulated = bool(import_module("numba").config.ENABLE_CUDASIM)
        current = 0 if self.is_simulated else self._cuda.get_current_device().id
        self.ordinal = int(current if ordinal is None else ordinal)

    def is_available(self) -> AbstractContextManager[Any]:
        if self.is_simulated:
            return nullcontext()
        device: AbstractContextManager[Any] = self._cuda.gpus[self.ordinal]
        return device

    def allocate(self, words: int, header: Words) -> Any:
        whole = np.zeros(words, np.uint64)
        whole[: len(header)] = header
        with self.is_available():
            return self._cuda.to_device(whole)

    def fetch(self, array: Any) -> Words:
        with self.is_available():
            self._cuda.synchronize()
            return np.asarray(array.copy_to_host(), np.uint64)

    def timer(self) -> int:
        if self.is_simulated:
            return sim_clock.now()
        with self.is_available():
            out = self._cuda.to_device(np.zeros(1, np.uint64))
            _numba_timer()[1, 1](out)
            return int(out.copy_to_host()[0])

    def elapsed_ns(self, run: Callable[[], object]) -> float:
        if self.is_simulated:
            return _simulated(run)
        with self.is_available():
            begin, end = self._cuda.event(timing=True), self._cuda.event(timing=True)
            begin.record()
            run()
            end.record()
            end.synchronize()
            return float(self._cuda.event_elapsed_time(begin, end)) * _MS

    def describe(self) -> str:
        if self.is_simulated:
            return "Numba's simulator"
        with self.is_available():
            name = self._cuda.get_current_device().name
            return name.decode() if isinstance(name, bytes) else str(name)


@cache
def _numba_timer() -> Any:
    from lanescope.devices.cuda.probes.numba_sim import globaltimer

    def lanescope_timer(out: Any) -> None:
        out[0] = globaltimer()

    return import_module("numba.cuda").jit(lanescope_timer)


class _Interpreter:
    """Triton's interpreter: kernels run on the host, one program after the other."""

    name, is_simulated = "triton", True

    def __init__(self, ordinal: int | None) -> None:
        self.ordinal = ordinal or 0

    @contextmanager
    def is_available(self) -> Iterator[None]:
        from lanescope.devices.cuda.probes.triton_interp import interpreted

        with interpreted():
            yield

    def allocate(self, words: int, header: Words) -> Any:
        from lanescope.devices.cuda.probes.triton_interp import HostArray

        whole = np.zeros(words, np.uint64)
        whole[: len(header)] = header
        return HostArray(whole)

    def fetch(self, array: Any) -> Words:
        return np.array(array.values)

    def timer(self) -> int:
        return sim_clock.now()

    def elapsed_ns(self, run: Callable[[], object]) -> float:
        return _simulated(run)

    def describe(self) -> str:
        return "Triton's interpreter"


def _simulated(run: Callable[[], object]) -> float:
    begin = sim_clock.now()
    run()
    return float(sim_clock.now() - begin)


_BACKENDS: dict[str, Callable[[int | None], Backend]] = {
    "torch": _Torch,
    "cupy": _Cupy,
    "numba": _Numba,
    "triton": _Interpreter,
}
NAMES = ("cupy", "torch", "numba", "triton")


def choose(backend: str | None = None, ordinal: int | None = None) -> Backend:
    """Return what is to allocate buffers.

    Args:
        backend: ``cupy``, ``torch``, ``numba``, or ``triton`` for its interpreter; None: the simulator or the
            interpreter that the environment asks for, else a package that is loaded already, else one that is there.
        ordinal: the number of the GPU; None: the current one.

    Raises:
        MissingDependencyError: none is there.
        UsageError: ``backend`` is none of these.
    """
    if backend is not None:
        if backend not in _BACKENDS:
            raise UsageError(f"unknown backend {backend!r}", hint=f"use one of {', '.join(NAMES)}")
        return _instantiate(backend, ordinal)
    if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1" and "numba" in sys.modules:
        return _instantiate("numba", ordinal)
    if os.environ.get("TRITON_INTERPRET") == "1" and "triton" in sys.modules:
        return _instantiate("triton", ordinal)
    packages = ("torch", "cupy", "numba")
    for name in (*(n for n in packages if n in sys.modules), *(n for n in packages if find_spec(n) is not None)):
        return _instantiate(name, ordinal)
    raise MissingDependencyError("no package for GPU memory found", hint=_HINT)


def _instantiate(name: str, ordinal: int | None) -> Backend:
    try:
        return _BACKENDS[name](ordinal)
    except ImportError as error:
        raise MissingDependencyError(f"cannot import {name}: {error}", hint=_HINT) from None
    except Exception as error:
        # Each package has an exception of its own for a machine without a GPU.
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise MissingDependencyError(f"{name} found no GPU: {reason}", hint=_HINT) from error
