"""What Numba-CUDA has no name for: timers, identities and bits; in the simulator plain Python takes their place."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

import numpy as np
from numba import config, cuda

from lanescope.devices.cuda.probes import sim_clock

#: Whether kernels run as Python threads and no code is made for a GPU.
SIMULATED = bool(config.ENABLE_CUDASIM)
_SMS = 4
_WORD = (1 << 64) - 1


if SIMULATED:
    device = cuda.jit(device=True)

    def verb(nothing: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Let a device function be another one, ``nothing``, where its first argument is None."""

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            made, parameters = device(function), signature(function)

            @wraps(function)
            def call(*arguments: Any, **named: Any) -> Any:
                # The simulator's device functions take no arguments by name.
                given = parameters.bind(*arguments, **named).args
                return nothing(*given) if given[0] is None else made(*given)

            return call

        return decorate

    def i64(x: Any) -> int:
        """Return a number as the device's signed integers have it."""
        return int(x)

    @device
    def _block():  # type: ignore[no-untyped-def]  # noqa: ANN202
        return int((cuda.blockIdx.z * cuda.gridDim.y + cuda.blockIdx.y) * cuda.gridDim.x + cuda.blockIdx.x)

    def u64(x: Any) -> Any:
        """Return the low 64 bits."""
        return np.uint64(int(x) & _WORD)

    def globaltimer() -> Any:
        """Return the timer, 64 bits."""
        return u64(sim_clock.now())

    def clock64() -> Any:
        """Return the counter of the multiprocessor, 64 bits."""
        return u64(sim_clock.cycles())

    def globaltimer_low() -> Any:
        """Return the low half of the timer."""
        return u64(sim_clock.now() & 0xFFFFFFFF)

    def clock_low() -> Any:
        """Return the low half of the counter."""
        return u64(sim_clock.cycles() & 0xFFFFFFFF)

    @device
    def place():  # type: ignore[no-untyped-def]  # noqa: ANN201
        """Return multiprocessor and warp as the header of a lane holds them."""
        return u64(_block() % _SMS | int(cuda.threadIdx.x) // 32 << 16)

    def grid_id() -> Any:
        """Return the driver's number of the launch."""
        return u64(1)

    def float_bits(x: Any) -> Any:
        """Return the bits of a float64."""
        return u64(struct.unpack("<Q", struct.pack("<d", float(x)))[0])

    def use(x: Any) -> None:
        """There is nothing to wait for."""

else:
    from llvmlite import ir
    from numba import float64, int64, types, uint32, uint64
    from numba.cuda.extending import intrinsic, overload

    device = cuda.jit(device=True, forceinline=True)

    def verb(nothing: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Let a device function be another one, ``nothing``, where its first argument is None."""

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(function)
            def called(*arguments: Any, **named: Any) -> Any:
                raise TypeError(f"cannot call {function.__name__} outside a kernel")

            @wraps(function)
            def choose(*arguments: Any, **named: Any) -> Any:
                return nothing if isinstance(arguments[0], types.NoneType) else function

            overload(called, jit_options={"forceinline": True})(choose)
            return called

        return decorate

    @device
    def i64(x):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, D103
        return int64(x)

    def _register(text: str, constraint: str, result: Any) -> Any:
        @intrinsic
        def read(typing_context: Any) -> Any:
            def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
                made = ir.FunctionType(context.get_value_type(signature.return_type), [])
                return builder.call(ir.InlineAsm(made, text, constraint, side_effect=True), [])

            return result(), lower

        return read

    globaltimer = _register("mov.u64 $0, %globaltimer;", "=l,~{memory}", uint64)
    clock64 = _register("mov.u64 $0, %clock64;", "=l,~{memory}", uint64)
    globaltimer_low = _register("mov.u32 $0, %globaltimer_lo;", "=r,~{memory}", uint32)
    clock_low = _register("mov.u32 $0, %clock;", "=r,~{memory}", uint32)
    grid_id = _register("mov.u64 $0, %gridid;", "=l", uint64)
    _sm = _register("mov.u32 $0, %smid;", "=r", uint32)

    @device
    def u64(x):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, D103
        return uint64(x)

    @device
    def place():  # type: ignore[no-untyped-def]  # noqa: ANN201, D103
        return uint64(_sm() & uint32(0xFFFF)) | (uint64(cuda.threadIdx.x // 32) << uint64(16))

    @intrinsic
    def _bits(typing_context: Any, x: Any) -> Any:
        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], ir.IntType(64))

        return uint64(float64), lower

    @device
    def float_bits(x):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, D103
        return _bits(float64(x))

    @intrinsic
    def use(typing_context: Any, x: Any) -> Any:
        """Use a number: a comparison and an instruction under its predicate."""
        wide = x.bitwidth == 64

        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            bits = builder.bitcast(arguments[0], ir.IntType(x.bitwidth))
            word = ir.IntType(32)
            bits = builder.trunc(bits, word) if wide else builder.zext(bits, word) if x.bitwidth < 32 else bits
            text = "{ .reg .pred p; setp.eq.u32 p, $0, 0x7fedcba9; @p pmevent 1; }"
            made = ir.FunctionType(ir.VoidType(), [word])
            builder.call(ir.InlineAsm(made, text, "r,~{memory}", side_effect=True), [bits])
            return context.get_dummy_value()

        return types.void(x), lower
