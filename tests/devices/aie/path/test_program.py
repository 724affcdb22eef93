"""Listings of all forms to the same program: branch classes, delay slots, loops, functions, lines."""

import json
import random
import subprocess
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import some
from lanescope.devices.aie.path.program import assembly, elf, program, witnesses
from lanescope.errors import InputError

OBJDUMP = """
core.elf:\tfile format elf32-aie

Disassembly of section .text:

00000100 <main>:
     100: 18 00 70 1d  \tadd.nc\tlc, r0, #0x0
     104: 44 00 e0 01 00 00    \tmovxm\tls, #0x120
     10a: 44 00 e0 06 00 00    \tmovxm\tle, #0x12e; nopv
     110: 12 00 00 68 10 f6 2c 00      \tnopa\t;\t\tmovxm\tp7, #256;\t\tnopx\t
     118: 00 00 00 00 00 00 00 00      \tpadda\t [p6], m1

00000120 <.LBB0_1>:
     120: 18 00 70 1d  \tlda\t r25, [p5], #4
     124: 00 00        \tnop\t
\t\t...
     12e: 00 00        \tnop\t
     130: 15 01 00 10           jl      #0x148
     134: 19 10                 nop                     // Delay Slot 5
     136: 19 10                 nop
     138: 19 10                 nop
     13a: 19 10                 nop
     13c: 19 10 00 00           jnzd r17, r17, p7
     140: 00 00 \tnop
     142: 00 00 \tdone

00000148 <leaf>:
     148: 5c 00 50 50 85 03    \tvst\t wl0, [p0], #0x20;\t\tret\tlr
     14e: 00 00        \tnop\t
     150: 00 00        \tnop\t
     152: 00 00        \tnop\t
     154: 00 00        \tnop\t
     156: 00 00        \tnop\t
"""

LST = """
.label main
.function_start
         256    ADD.NC lc, r0, #0
         260    MOVXM ls, #288
         266    1a2b3c4d   MOVXM le, #302;           NOPV
         272    NOPA;         MOVXM p7, #256;   NOPX
         280    PADDA [p6], m1
.label ZLS_F_main_288
.loop_nesting 1
.begin_of_loop
         288    LDA r25, [p5], #4
         292    NOP
         294    NOP
         296    NOP
         298    NOP
         300    NOP
.label ZLE_F_main_302
.end_of_loop
         302    NOP
         304    JL #328
         308    NOP
         310    NOP
         312    NOP
         314    NOP
         316    JNZD r17, r17, p7
         320    NOP
         322    DONE
.label leaf
.function_start
         328    VST wl0, [p0], #32;   RET lr
         334    NOP
         336    NOP
         338    NOP
         340    NOP
         342    NOP
"""


def as_json():
    rows = [{"address": b.address, "size": b.size, "text": b.text} for b in program.parse(OBJDUMP, "core.s").bundles]
    names = [{"name": "main", "address": 256}, {"name": "leaf", "address": 328}]
    return json.dumps({"bundles": rows, "functions": names})


@pytest.mark.parametrize("text", [OBJDUMP, LST, as_json()], ids=["objdump", "lst", "json"])
def test_all_forms_say_the_same(text):
    found = program.parse(text, "core.s")
    kinds = {b.address: b.kind for b in found.bundles if b.kind != "plain"}
    assert kinds == {0x130: "call", 0x13C: "branch_indirect", 0x142: "halt", 0x148: "return"}
    assert found.at[0x130].target == 0x148
    assert found.at[0x13C].register == "p7"
    assert found.loops == {0x12E: (0x120,)}
    assert found.at[0x100].sets_lc
    assert [(f.name, f.address) for f in found.functions] == [("main", 0x100), ("leaf", 0x148)]
    assert found.constants == {"p7": 256}
    assert found.behind[0x130] == 0x140
    assert found.slots[0x134][1] == 1
    # What the listing leaves out are zeros: nops of two bytes.
    assert [b.address for b in found.bundles if 0x120 <= b.address <= 0x12E] == [0x120, *range(0x124, 0x130, 2)]
    assert found.is_self_contained


def test_a_branch_among_delay_slots_and_what_the_listing_lacks_are_said():
    notes = {note.address: note.text for note in program.parse(OBJDUMP).notes}
    assert "delay slot" in notes[0x13C]
    assert 0x148 not in notes


@pytest.mark.parametrize(
    ("text", "register", "value"),
    [
        ("movxm p7, #0x120", "p7", 0x120),
        ("mova p7, #-4", "p7", -4),
        ("lda p7, [sp, #-32]", "p7", None),
        ("mov p7, p6", "p7", None),
        ("lda r0, [p7], #4", "p7", None),
        ("padda [p7], m0", "p7", None),
        ("st r0, [p7], #4", "p7", None),
    ],
)
def test_writes_of_pointers(text, register, value):
    assert assembly.read(f"nopa ; {text}").writes[register] == value


@pytest.mark.parametrize("text", ["lda r0, [p7, #4]", "st p7, [sp, #-4]", "jl p7", "jnzd r1, r1, p7", "mov r0, p7", ""])
def test_reads_of_pointers_are_no_writes(text):
    assert "p7" not in assembly.read(text).writes


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nothing of that kind", "unrecognized listing format"),
        ("{", "invalid JSON listing"),
        ('{"bundles": []}', "no bundles"),
        ('{"bundles": [{"address": -2, "text": "nop"}]}', "invalid bundle at address -2"),
        ("   0: 00 00 nop\n   0: 00 00 nop\n", "overlap"),
        ("   0: 00 00 nop\n\t...\nffffff: 00 00 nop\n", "bytes missing at 0x2"),
    ],
)
def test_what_is_no_listing_is_refused(text, says):
    with pytest.raises(InputError, match=says):
        program.parse(text, "main.lst")


@given(st.text(max_size=400) | st.lists(st.sampled_from(OBJDUMP.splitlines() + LST.splitlines())).map("\n".join))
def test_no_text_upsets_the_reader(text):
    try:
        found = program.parse(text)
    except InputError:
        return
    assert all(a.end <= b.address for a, b in zip(found.bundles, found.bundles[1:], strict=False))
    assert found.notes is not None
    assert found.leaders


def test_large_hostile_listings_take_linear_time():
    """Each of these would take hours if it were looked at once for each of its parts."""
    assert assembly.read("lda r0, " + "[p1" * 200_000).writes == {"r0": None}
    assert assembly.read("nop;" * 200_000).kind == "plain"
    rows = "\n".join(f"{4 * i:x}: 00 00 00 00 add.nc lc, r0, #0" for i in range(20_000))
    found = program.parse(rows)
    assert not found.is_self_contained
    assert found.notes == (program.Note(79996, "addresses beyond 14 bits, which frames do not tell"),)
    with pytest.raises(InputError, match="too many bundles"):
        program.parse("\n".join(f"{2 * i:x}: 00 00 nop" for i in range(40_000)))


def test_symbols_and_lines_of_an_elf_file(tmp_path, require_tool):
    gcc = require_tool("gcc")
    (tmp_path / "main.c").write_text(
        "int leaf(int a)\n{\n  return a + 1;\n}\nint _start(void)\n{\n  return leaf(2);\n}\n"
    )
    flags = ["-g", "-O0", "-nostdlib", "-static", "-Wl,-Ttext=0x400000", "-o", "main.elf"]
    subprocess.run([gcc, *flags, "main.c"], cwd=tmp_path, check=True, timeout=60)
    rows = [{"address": 0x400000 + 4 * i, "size": 4, "text": "nop"} for i in range(20)]
    found = witnesses.with_lines(program.parse(json.dumps({"bundles": rows})), tmp_path / "main.elf")
    assert {f.name for f in elf.read(tmp_path / "main.elf")[0]} == {"leaf", "_start"}
    lines = {line for _, line in found.lines.values()}
    assert {3, 7} <= lines
    assert {file.rpartition("/")[2] for file, _ in found.lines.values()} == {"main.c"}
    with pytest.raises(InputError, match="invalid ELF file"):
        elf.read(tmp_path / "main.c")


def test_broken_debug_information_is_refused_or_read(tmp_path, require_tool):
    """Whatever the reader stumbles over is one line."""
    gcc = require_tool("gcc")
    (tmp_path / "main.c").write_text("int _start(int a)\n{\n  return a + 1;\n}\n")
    flags = ["-g", "-O0", "-nostdlib", "-static", "-o", "main.elf"]
    subprocess.run([gcc, *flags, "main.c"], cwd=tmp_path, check=True, timeout=60)
    raw = (tmp_path / "main.elf").read_bytes()
    rng = random.Random(1)
    found = Counter()
    for _ in range(some(400, 100)):
        content = bytearray(raw)
        for _ in range(rng.randint(1, 30)):
            content[rng.randrange(len(content))] = rng.choice((0, 255, rng.randrange(256)))
        (tmp_path / "broken.elf").write_bytes(content)
        try:
            found["read"] += bool(elf.read(tmp_path / "broken.elf"))
        except InputError:
            found["refused"] += 1
    assert found["read"] > 10
    assert found["refused"] > 10
