"""A listing that is made up to fit the public capture in execution mode: no listing of that build is published.

Eight lock calls in a loop that a conditional-indirect branch closes, two stubs that acquire and release, a ``main``.
"""

STUBS = {800: "acquire", 832: "release"}
CALLS = ((304, 800), (336, 800), (448, 832), (480, 800), (512, 800), (544, 800), (656, 832), (688, 832))


def rows(*, is_computed=False):
    """Yield (address, size, text)."""

    def run(at, *parts):
        for size, text in parts:
            yield at, size, text
            at += size

    def branch(at, text, slots=(4, 6, 6, 6, 6)):
        yield from run(at, (4, text), *((size, "nop") for size in slots))

    yield from branch(100, "jl #256", (8,) * 5)
    yield from branch(144, "jl p0", (4,) * 5)
    yield from run(168, (4, "done"))
    pointer = "lda p7, [sp, #-32]" if is_computed else "movxm p7, #288"
    yield from run(256, (12, pointer), (4, "nop"), (16, "mov r17, #3"), (12, "nop"), (4, "nop"))
    for call, stub in CALLS:
        yield from branch(call, f"jl #{stub}")
    for gap in (368, 576):
        yield from run(gap, *((16, "lda r25, [p4, #4]; nopb; nops; nopx; nopv"),) * 5)
    yield from branch(720, "jnzd r17, r17, p7", (4,) * 5)
    yield from branch(744, "ret lr", (4,) * 5)
    for stub in STUBS:
        what = "acq r0, r1" if stub == 800 else "rel r0, r1"
        yield from run(stub, (4, what), (4, "ret lr"), *((2, "nop"),) * 4, (16, "nopa ; nopb ; nops ; nopx ; nopv"))
    yield from branch(864, "jz r0, #920", (4,) * 5)
    yield from run(888, (16, "done"))
    yield from branch(920, "jl p1", (4,) * 5)
    yield from run(944, (4, "done"))
    yield from branch(1168, "jz r0, #1200", (4,) * 5)
    yield from run(1192, (4, "done"))
    yield from run(1200, (4, "done"))


FUNCTIONS = {100: "_start", 256: "core_1_2", 800: "acquire", 832: "release", 864: "after", 1168: "last"}


def listing(*, is_computed=False):
    """The text that llvm-objdump would write."""
    out = ["core_1_2.elf:\tfile format elf32-aie", "", "Disassembly of section .text:"]
    for address, size, text in sorted(rows(is_computed=is_computed)):
        if address in FUNCTIONS:
            out += ["", f"{address:08x} <{FUNCTIONS[address]}>:"]
        out.append(f"{address:8x}: {' '.join(['00'] * size)} \t{text}")
    return "\n".join(out) + "\n"
