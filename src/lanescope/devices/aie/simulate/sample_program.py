"""A program to look at paths with: a kernel that waits for buffers, works in a zero-overhead loop, hands them on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

#: Delay slots.
_SLOTS = ("nop",) * 5
#: Functions: name, first address, bundles.
_FUNCTIONS: tuple[tuple[str, int, tuple[str, ...]], ...] = (
    (
        "core_1_2",
        0x00,
        (
            "movxm p7, #0x0c",
            "mova r17, #4",
            "nop",
            "jl #0x100",  # wait for input
            *_SLOTS,
            "jl #0x120",  # wait for room for output
            *_SLOTS,
            "jl #0x180",  # work
            *_SLOTS,
            "jl #0x140",  # hand both on
            *_SLOTS,
            "jnzd r17, r17, p7",
            *_SLOTS,
            "done",
        ),
    ),
    ("acquire_input", 0x100, ("acq r0, r1", "ret lr", *_SLOTS)),
    ("acquire_output", 0x120, ("acq r2, r3", "ret lr", *_SLOTS)),
    ("release_both", 0x140, ("rel r0, r1", "rel r2, r3", "ret lr", *_SLOTS)),
    (
        "scale",
        0x180,
        (
            "add.nc lc, r4, #0",
            "movxm ls, #0x190",
            "movxm le, #0x19c",
            "vbcst.32 x2, r5",
            "vlda wl0, [p0], #32",
            "vmac cm0, cm0, x0, x2, r6",
            "vst.srs.s16.s32 cm0, s0, [p1], #32",
            "nop",
            "jz r7, #0x1d0",  # was anything clipped?
            *_SLOTS,
            "st r7, [p2], #4",
            "nop",
            "nop",
            "nop",
            "nop",
            "nop",
            "ret lr",
            *_SLOTS,
        ),
    ),
)
#: How the loop of ``core_1_2`` goes: four passes.
LOOP_BRANCH = 0x6C


def listing() -> str:
    """Return its listing as llvm-objdump writes it."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "core_1_2.elf:\tfile format elf32-aie"
    yield ""
    yield "Disassembly of section .text:"
    for name, address, bundles in _FUNCTIONS:
        yield ""
        yield f"{address:08x} <{name}>:"
        for i, text in enumerate(bundles):
            yield f"{address + 4 * i:8x}: 00 00 00 00 \t{text}"


def outcomes() -> Mapping[int, tuple[bool, ...]]:
    """Return how its conditional branches go, again and again; those that are not told are drawn."""
    return {LOOP_BRANCH: (True, True, True, False)}
