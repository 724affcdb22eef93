"""Programs from bytes: formats of bundles, instructions, the walk through a program memory, ELF files, xclbins."""

import struct
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.aie.path import language
from devices.aie.path.test_truth import stream_of
from effort import some
from lanescope import cli
from lanescope.devices.aie.path.program import (
    assembly,
    build_image,
    bundle_formats,
    code_walk,
    core_image,
    program,
    slots,
    witnesses,
)
from lanescope.devices.aie.path.program import elf as elf_lines
from lanescope.devices.aie.path.program.program import BRANCHES, DELAY_SLOTS
from lanescope.devices.aie.path.program.witnesses import ProgramFiles
from lanescope.devices.aie.path.walk.core_state import UNKNOWN
from lanescope.devices.aie.path.walk.walker import Walker
from lanescope.devices.aie.simulate import assembler, program_runs
from lanescope.errors import InputError, LanescopeError, MissingDependencyError, UsageError

FAMILIES = ("aie2", "aie2p")
ELFS = ("iree_pi", "iree_5a51cd32_64x64_64xbf16", "iree_e96db215_64x64_64xi8", "iree_matmul_core_0_2")
SLOTS = ["nop"] * DELAY_SLOTS
MAIN = ["movxm p7, #{main+1}", "jl #{work}", *SLOTS, "jnzd r17, r17, p7", *SLOTS, "done"]
WORK = [
    "add.nc lc, r0, #0",
    "movxm ls, #{work+4}",
    "movxm le, #{work+5}",
    "nop",
    "lda r1, [sp, #-32]",
    "lda p3, [sp, #-8]; mov r1, r2",
    "jz r2, #{work+12}",
    *SLOTS,
    "acq r0, r1",
    "ret lr",
    *SLOTS,
]
PROGRAM = {"main": MAIN, "work": WORK}


def image_of(family, bundles, *, functions=None):
    """A program memory with these bundles from address 0 on."""
    raw = b"".join(assembler.encode(family, assembler.slots_of(family, text)) for text in bundles)
    return core_image.from_elf(assembler.elf(family, [(0, raw)], functions or {"main": 0}), "core.elf")


def of_elf(content):
    return code_walk.program_of(core_image.from_elf(content, "core.elf"))


# -- formats


@pytest.mark.parametrize(("family", "count"), [("aie2", 78), ("aie2p", 77)])
def test_formats_have_the_bits_of_their_length_and_exclude_each_other(family, count):
    every = {size: bundle_formats.formats(family, size) for size in range(2, 17, 2)}
    assert sum(map(len, every.values())) == count
    for size, formats in every.items():
        for each in formats:
            taken = each.mask
            for _, low, width in each.slots:
                bits = (1 << width) - 1 << low
                assert not taken & bits
                taken |= bits
            assert taken >> 8 * size == 0
            assert bundle_formats.length(family, each.value & 0xFF) == size
        for a, b in combinations(formats, 2):
            assert (a.value ^ b.value) & a.mask & b.mask, (family, size, a.slots, b.slots)


@pytest.mark.parametrize("family", FAMILIES)
def test_each_first_byte_has_a_length(family):
    lengths = Counter(bundle_formats.length(family, first) for first in range(256))
    assert lengths == {16: 128, 6: 32, **dict.fromkeys((2, 4, 8, 10, 12, 14), 16)}


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
def test_bundles_come_back_from_their_bytes(family, data):
    size = data.draw(st.sampled_from(range(2, 17, 2)))
    form = data.draw(st.sampled_from(bundle_formats.formats(family, size)))
    contents = {name: data.draw(st.integers(0, (1 << width) - 1)) for name, _, width in form.slots}
    raw = form.write(contents)
    assert bundle_formats.recognize(family, raw + b"\xff" * 16) == form
    assert form.read(int.from_bytes(raw, "little")) == contents
    assert bundle_formats.recognize(family, raw[:-1]) is None


# -- instructions

#: Bytes as disassemblers of the two compilers show them.
SEEN = [
    ("aie2", "15 01 00 d8 00 00", "jl #0x1b0"),
    ("aie2", "95 00 00 68 00 00", "j #0xd0"),
    ("aie2", "95 01 40 40 00 c0", "jnz r24, #0x80"),
    ("aie2", "19 cc 63 14", "jnzd r17, r17, p7"),
    ("aie2", "19 14 00 10", "jl p0"),
    ("aie2", "19 18 00 10", "ret lr"),
    ("aie2", "19 08 00 10", "done"),
    ("aie2", "19 12 12 10", "acq r0, r1"),
    ("aie2", "19 12 10 10", "rel r0, r1"),
    ("aie2", "55 60 62 0e 00 00", "movxm p7, #0x130"),
    ("aie2", "55 00 e0 0c 07 00", "movxm sp, #0x70000"),
    ("aie2", "55 f8 7f fc ff ff", "movxm p6, #-0x4"),
    ("aie2", "59 76 30 1f", "mov p7, p0"),
    ("aie2", "99 06 30 18", "mov p0, #0"),
    ("aie2", "03 70 c3 66 03 c0 77 e0", ".st 0x1c0ef8 [p7]!; add.nc r27, r27, #1"),
    ("aie2", "c0 03 00 88 03" + " 00" * 11, "nop"),
    ("aie2p", "44 00 e0 01 00 00", "movxm ls, #0x0"),
    ("aie2p", "44 00 e0 06 00 00", "movxm le, #0x0"),
    ("aie2p", "18 00 70 1d", "add.nc lc, r0, #0"),
    ("aie2p", "5c 00 50 50 85 03", ".st 0x3855 [p0]!; ret lr"),
]


@pytest.mark.parametrize(("family", "raw", "text"), SEEN)
def test_instructions_are_read_as_disassemblers_show_them(family, raw, text):
    data = bytes.fromhex(raw)
    form = bundle_formats.recognize(family, data)
    assert form is not None
    assert form.size == len(data)
    found = slots.read(family, form.read(int.from_bytes(data, "little")))
    assert found.text == text
    assert assembly.read(found.text) == found.effects


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
def test_what_a_bundle_does_is_what_its_text_says(family, data):
    """Text and effects come from the same bits by different ways: a listing of the text steers the same program."""
    form = data.draw(st.sampled_from([f for size in range(2, 17, 2) for f in bundle_formats.formats(family, size)]))
    found = slots.read(family, {name: data.draw(st.integers(0, (1 << width) - 1)) for name, _, width in form.slots})
    said = assembly.read(found.text)
    branches = sum(
        part.strip().split(" ")[0] in ("j", "jl", "jz", "jnz", "jnzd", "ret") for part in found.text.split(";")
    )
    if branches <= 1 and " done" not in f" {found.text}":
        names = {f"p{n}" for n in range(8)}
        ours = {name: value for name, value in found.effects.writes.items() if name in names}
        theirs = {name: value for name, value in said.writes.items() if name in names}
        assert theirs.keys() == ours.keys()
        found.effects.writes = said.writes = {}
        assert said == found.effects


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "text",
    [
        "j #0x120",
        "jl #0xffffe",
        "jz r31, #0x10",
        "jnz r0, #0x20",
        "j p3",
        "jl p7",
        "jnzd r17, r18, p2",
        "ret lr",
        "done",
        "acq r4, r5",
        "rel r6, r7",
        "movxm ls, #0x370",
        "movxm le, #0x3d0",
        "movxm p1, #0x70400",
        "movxm p5, #-0x4",
        "mov p2, #17",
        "mov p2, #-3",
        "mov lc, r3",
        "mov p1, p6",
        "add.nc lc, r9, #-1",
        "add.nc p0, r1, #3",
    ],
)
def test_instructions_are_read_as_they_were_written(family, text):
    found = slots.read(family, assembler.slots_of(family, text))
    assert found.text == text
    assert found.effects == assembly.read(text)


def test_constants_that_other_slots_move_are_read():
    assert slots.read("aie2", {"lda": 20 << 10 | 21 << 1 | 1}).effects.sets_lc
    found = slots.read("aie2", {"lda": 20 << 10 | (16 * 6 + 13) << 1 | 1})
    assert (found.text, found.effects.writes) == ("mova p6, #20", {"p6": 20})
    found = slots.read("aie2p", {"lda": 0x7FF << 9 | (16 * 2 + 13) << 2})
    assert (found.text, found.effects.writes) == ("mova p2, #-1", {"p2": -1})
    for family in FAMILIES:
        found = slots.read(family, {"alu": 1 << 9 | 5 << 3 | 0b010})
        assert found.text == "movx lc, #5"
        assert found.effects.sets_lc


def test_accesses_that_move_a_pointer_on_write_it():
    """Stack and indexed accesses leave their pointer as it is; what is not known counts as a write."""
    store, load = (lambda mode: mode << 8 | 4 << 1), (lambda mode: mode << 8 | 4 << 1 | 1)
    for make, slot in ((store, "st"), (load, "lda")):
        for mode, is_moved in (
            (5 << 10 | 0x3FF, False),  # from the stack
            (5 << 10 | 7 << 4 | 0b1010, False),  # an offset
            (5 << 10 | 3 << 7 | 0b1000010, False),  # a register
            (5 << 10 | 9 << 3 | 0b110, True),  # an offset, afterwards
            (5 << 10 | 3 << 7 | 0b0000010, True),
        ):
            assert slots.read("aie2", {slot: make(mode)}).effects.writes == ({"p5": None} if is_moved else {})
    assert slots.read("aie2", {"ldb": 0x78}).effects.writes == {}  # the stack pointer
    assert slots.read("aie2", {"ldb": 0b1010100000000010}).effects.writes == {"p5": None}
    for mode, is_moved in ((0b000, False), (0b001, False), (0b101, False), (0b010, True), (0b100, True), (0b111, True)):
        for slot, high in (("st", 17), ("lda", 17)):
            found = slots.read("aie2p", {slot: 5 << high | mode << 11 | 0b0101})
            assert found.effects.writes == ({"p5": None} if is_moved else {}), (slot, mode)


# -- the walk


@pytest.mark.parametrize("family", FAMILIES)
def test_a_program_is_what_its_listing_says(family):
    content, text = assembler.assemble(family, PROGRAM)
    found, listed = of_elf(content), program.parse(text, "core.lst")
    assert [(b.address, b.size, b.kind, b.target) for b in found.bundles] == [
        (b.address, b.size, b.kind, b.target) for b in listed.bundles
    ]
    assert found.functions == listed.functions
    assert found.loops == listed.loops
    assert found.constants == listed.constants == {"p7": 6}
    assert found.notes == listed.notes == ()
    assert not any(bundle.is_swept for bundle in found.bundles)
    again = program.parse("\n".join(found.listing), "again")
    assert [(b.address, b.size, b.kind, b.target, b.ls, b.le) for b in again.bundles] == [
        (b.address, b.size, b.kind, b.target, b.ls, b.le) for b in found.bundles
    ]


@pytest.mark.parametrize("family", FAMILIES)
def test_simulated_programs_are_the_same_from_their_bytes_and_from_their_listing(family, tmp_path):
    """The programs, and what is known of a recording of each: counts, stretches, assumptions."""
    bundles = 0
    for number in range(some(60, 12)):
        case = language.make(f"elf {family} {number}", family=family)
        found, listed = of_elf(case.source.elf()), program.parse(case.source.listing(), "core.lst")
        bundles += len(found.bundles)
        assert list(witnesses.differing(found, listed)) == []
        assert [bundle.address for bundle in found.bundles] == [bundle.address for bundle in listed.bundles]
        assert (found.constants, found.loops, found.leaders) == (listed.constants, listed.loops, listed.leaders)
        stream = stream_of(case, tmp_path)
        walks = [Walker(each, UNKNOWN, max_states=400).walk(stream) for each in (found, listed)]
        assert walks[0].counts == walks[1].counts or vars(walks[0].counts) == vars(walks[1].counts)
        assert walks[0].unresolved == walks[1].unresolved
    assert bundles > 3000


def test_code_that_nothing_leads_to_is_read_and_marked():
    content = image_of("aie2", ["j #0x1e", *SLOTS, "mov r1, r2", "nop", "nop", "movxm r1, #1", "done"])
    found = code_walk.program_of(content)
    assert [bundle.address for bundle in found.bundles if bundle.is_swept] == [16, 20, 22, 24]
    content = image_of("aie2", ["ret lr", *SLOTS, "jnz r3, #0x0", *SLOTS])
    found = code_walk.program_of(content)
    swept = [bundle for bundle in found.bundles if bundle.is_swept]
    assert (swept[0].address, swept[0].kind, len(swept)) == (14, "branch", 6)
    assert [(note.address, note.text) for note in found.notes] == [
        (14, "no branch is known to lead to the 16 bytes from here on: they are read in order")
    ]


def test_bytes_between_functions_that_are_no_code_are_left_out():
    head = b"".join(assembler.encode("aie2", assembler.slots_of("aie2", text)) for text in ("jl #0x20", *SLOTS, "done"))
    tail = b"".join(assembler.encode("aie2", assembler.slots_of("aie2", text)) for text in ("ret lr", *SLOTS))
    junk = bytes.fromhex("ff" * 10)
    assert bundle_formats.recognize("aie2", junk + bytes(16)) is None
    code = (head + junk).ljust(0x20, b"\xff") + tail
    found = of_elf(assembler.elf("aie2", [(0, code)], {"main": 0, "leaf": 0x20}))
    assert found.at[0x20].kind == "return"
    assert found.notes[-1].text == f"{0x20 - len(head)} bytes from here on are no code, and nothing leads to them"
    # Behind a call that does not return there is anything.
    call = b"".join(assembler.encode("aie2", assembler.slots_of("aie2", text)) for text in ("jl #0x20", *SLOTS))
    found = of_elf(assembler.elf("aie2", [(0, (call + junk).ljust(0x20, b"\xff") + tail)], {"main": 0}))
    assert found.at[0x20].kind == "return"
    assert "it does not return" in found.notes[0].text
    # Where little of it is code, it is code of something else.
    with pytest.raises(InputError, match="166 of 200 bytes do not decode"):
        of_elf(assembler.elf("aie2", [(0, (head + junk).ljust(0x20, b"\xff") + tail + b"\xff" * 154)], {"main": 0}))


def test_zeros_are_no_program():
    code = image_of("aie2", ["ret lr", *SLOTS]).code[0][1]
    found = of_elf(assembler.elf("aie2", [(0, code + bytes(64))], {"main": 0}))
    assert len(found.bundles) == 6
    assert found.notes == ()


@pytest.mark.parametrize(
    ("family", "bundles", "says"),
    [
        ("aie2", ["j #0x3000", *SLOTS], "no code at 0x3000, reached from 0x0"),
        ("aie2", ["nop", "nop"], "no code at 0x4"),
        ("aie2", ["j #0x4", *SLOTS, "done"], "overlap"),
        ("aie2p", ["jz r0, #0x3000", *SLOTS, "done"], "no code at 0x3000"),
    ],
)
def test_a_program_that_does_not_hold_together_is_refused(family, bundles, says):
    with pytest.raises(InputError, match=says) as raised:
        code_walk.program_of(image_of(family, bundles))
    assert raised.value.hint


@pytest.mark.parametrize("family", FAMILIES)
def test_a_program_of_the_other_family_is_told(family):
    (other,) = set(FAMILIES) - {family}
    noticed = 0
    for number in range(some(40, 10)):
        source = language.make(f"other {family} {number}", family=family).source
        first, raw = source.code()
        flags = {"aie2": 2, "aie2p": 3}[other]
        wrong = assembler.elf(other, [(first, raw)], {"main": first}, flags=flags)
        with pytest.raises(InputError) as raised:
            of_elf(wrong)
        noticed += f"it is code of {family.upper()}" in str(raised.value)
        # Without flags the family is found.
        image = core_image.CoreImage("build", None, ((first, raw),), (first,))
        assert [b.address for b in code_walk.program_of(image).bundles] == [line.address for line in source.lines]
    assert noticed


# -- files


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"machine": 62}, "not of an AI Engine core: machine 62"),
        ({"kind": 1}, "object file is not linked"),
        ({"flags": 1}, "AIE1"),
        ({"flags": 7}, "unknown device family"),
    ],
)
def test_other_elf_files_are_refused_with_the_reason(change, says):
    content = assembler.elf("aie2", [(0, image_of("aie2", ["done"]).code[0][1])], {"main": 0}, **change)
    with pytest.raises(InputError, match=says) as raised:
        core_image.from_elf(content, "core.elf")
    assert raised.value.hint


def test_elf_files_that_are_cut_or_empty_are_refused():
    content = assembler.assemble("aie2", PROGRAM)[0]
    with pytest.raises(InputError, match="truncated"):
        core_image.from_elf(content[:-8], "core.elf")
    with pytest.raises(InputError, match="not 32-bit"):
        core_image.from_elf(b"\x7fELF\x02\x01".ljust(64, b"\0"), "core.elf")
    with pytest.raises(InputError, match="no code"):
        core_image.from_elf(assembler.elf("aie2", [], {}), "core.elf")
    with pytest.raises(InputError, match="more code"):
        core_image.from_elf(assembler.elf("aie2", [(0, bytes(1 << 17))], {}), "core.elf")
    with pytest.raises(InputError, match="two sections"):
        core_image.from_elf(assembler.elf("aie2", [(0, bytes(64)), (32, bytes(64))], {}), "core.elf")


CONTENT = assembler.assemble("aie2", PROGRAM)[0]


@given(st.lists(st.tuples(st.integers(0, len(CONTENT) - 1), st.integers(0, 255)), max_size=8), st.integers(0, 400))
def test_no_bytes_upset_the_readers(changes, cut):
    content = bytearray(CONTENT)
    for at, value in changes:
        content[at] = value
    for read in (
        lambda raw: of_elf(raw),
        lambda raw: build_image.images(raw, "build.xclbin"),
        lambda raw: code_walk.program_of(core_image.CoreImage("x", None, ((0, raw),), (0,))),
    ):
        for raw in (bytes(content), bytes(content[: len(content) - cut])):
            try:
                found = read(raw)
            except LanescopeError:
                continue
            assert found


def cdo(*commands):
    """Configuration data that holds these commands: code and payload."""
    words = []
    for code, *payload in commands:
        words += [code | min(len(payload), 255) << 16, *([len(payload)] if len(payload) >= 255 else []), *payload]
    header = [4, 0x004F4443, 0x200, len(words)]
    header.append(~sum(header) & 0xFFFFFFFF)
    return struct.pack(f"<{len(header) + len(words)}I", *header, *words)


def load(column, row, raw, *, offset=0x20000, step=None):
    """Commands that load a program."""
    raw += bytes(-len(raw) % 4)
    words = struct.unpack(f"<{len(raw) // 4}I", raw)
    address = column << 25 | row << 20 | offset
    if step is None:
        return [(0x105, 0, address, *words)]
    return [(step, *([0] if step == 0x108 else []), address + 4 * i, word) for i, word in enumerate(words)]


RAW = core_image.from_elf(CONTENT, "core.elf").code[0][1]


@pytest.mark.parametrize("step", [None, 0x103, 0x108])
def test_programs_are_found_in_what_a_build_loads(step, tmp_path):
    other = image_of("aie2", ["done"]).code[0][1]
    noise = [(0x111, 1, 2, 3), (0x102, 1, 2, 3), (0x103, 0x1D000, 5)]
    parts = [*noise, *load(0, 2, RAW, step=step), *load(1, 3, RAW), *load(0, 1, other), *load(0, 2, b"abcd", offset=0)]
    content = b"xclbin2\0" + bytes(24) + cdo(*noise) + b"CDO\0junk" + cdo(*parts)
    found = build_image.images(content, "build.xclbin")
    assert list(found) == [(0, 2), (1, 3)]
    assert {each.code[0][1][: len(RAW)] for each in found.values()} == {RAW}
    path = tmp_path / "build.xclbin"
    path.write_bytes(content)
    # Without names what is called is a function.
    names = [function.name for function in witnesses.read(ProgramFiles(xclbin=path)).functions]
    assert names == ["f_0", "f_30"]
    elf = tmp_path / "core.elf"
    elf.write_bytes(CONTENT)
    assert [each.name for each in witnesses.read(ProgramFiles(elf=elf, xclbin=path)).functions] == ["main", "work"]
    path.write_bytes(content + cdo(*load(2, 4, other)))
    with pytest.raises(UsageError, match=r"different programs: 0,2, 1,3, 2,4.*--program-tile"):
        witnesses.read(ProgramFiles(xclbin=path))
    assert len(witnesses.read(ProgramFiles(xclbin=path, tile=(2, 4))).bundles) == 1
    with pytest.raises(InputError, match="no core is loaded"):
        witnesses.read(ProgramFiles(elf=elf, xclbin=path, tile=(2, 4)))
    with pytest.raises(UsageError, match="no program for core 5,5"):
        witnesses.read(ProgramFiles(xclbin=path, tile=(5, 5)))


def test_builds_without_one_program_are_refused():
    for content, says in (
        (b"xclbin2\0" + bytes(64), "no configuration data"),
        (cdo((0x103, 0x1D000, 5)), "none of the 1 CDOs"),
        (cdo(*load(0, 2, RAW))[:-4], "truncated"),
        (cdo((0x103, 0x220000, 5), (0x103, 0x220000, 6)), "two programs for core 0,2"),
        (cdo((0x103, 0x220000, 5))[:-8] + struct.pack("<I", 0x40103), "no configuration data|truncated"),
    ):
        with pytest.raises(InputError, match=says) as raised:
            build_image.images(content, "build.xclbin")
        assert raised.value.hint


# -- two witnesses


def written(folder, family="aie2"):
    content, text = assembler.assemble(family, PROGRAM)
    (folder / "core.elf").write_bytes(content)
    (folder / "core.lst").write_text(text)
    return text


def test_a_listing_of_another_build_is_refused(tmp_path):
    text = written(tmp_path)
    files = ProgramFiles(listing=tmp_path / "core.lst", elf=tmp_path / "core.elf")
    assert witnesses.read(files).listing == tuple(text.splitlines())
    for old, new, says in (
        ("jz r2, #0x5c", "jz r2, #0x62", "'jz r2, #0x5c' is listed as 'jz r2, #0x62'"),
        ("jz r2", "nop", "is listed as"),
        ("add.nc lc", "add.nc r4", "is listed as"),
        ("movxm le", "movxm r4", "is listed as"),
        ("acq r0, r1", "nop", "is listed as"),
        ("movxm p7, #0x6", "movxm p7, #0x8", "is listed as"),
    ):
        (tmp_path / "core.lst").write_text(text.replace(old, new))
        with pytest.raises(InputError, match=says) as raised:
            witnesses.read(files)
        assert "lists another program than core.elf" in raised.value.message
    (tmp_path / "core.lst").write_text(text.replace("      24: 19 08 00 10", "      26: 19 08 00 10"))
    with pytest.raises(InputError, match=r"'done' is in the listing only.*'done' is not in the listing"):
        witnesses.read(files)


def test_the_command_reads_a_program_from_its_elf_file(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path)
    run = program_runs.run(program.read(Path("core.lst")), seed=1, bundles=400)
    Path("run.bin").write_bytes(run.data)
    truth = Counter(run.path)
    shown = {}
    for name in ("listing", "elf"):
        file = {"listing": "core.lst", "elf": "core.elf"}[name]
        for what in ("--path", "--calls"):
            assert cli.main(["aie-path", "run.bin", f"--{name}", file, what]) == 0
            shown[name, what] = capsys.readouterr().out
        assert cli.main(["aie-path", "run.bin", f"--{name}", file, "--annotate"]) == 0
        lines = [line.split("|") for line in capsys.readouterr().out.splitlines()[1:] if "|" in line and ":" in line]
        for count, line in lines:
            if line.strip()[:1].isalnum() and "file format" not in line and "section" not in line and "<" not in line:
                least, _, most = count.strip().replace("-", "0").partition("..")
                executed = truth[int(line.split(":")[0], 16)]
                assert int(least) <= executed <= int(most or least), line
    assert shown["elf", "--path"] == shown["listing", "--path"]
    assert shown["elf", "--calls"] == shown["listing", "--calls"]
    assert cli.main(["aie-path", "run.bin", "--elf", "core.elf", "--lcov", "run.info"]) == 2
    assert "no source lines" in capsys.readouterr().err
    assert cli.main(["aie-path", "run.bin", "--elf", "core.elf", "--listing", "core.lst", "--lcov", "run.info"]) == 0
    Path("build.xclbin").write_bytes(cdo(*load(0, 2, RAW)))
    assert cli.main(["aie-path", "run.bin", "--xclbin", "build.xclbin", "--program-tile", "0,2", "--path"]) == 0
    capsys.readouterr()
    assert (
        cli.main(["sql", "run.bin", "select count(*) from aie_path_bundles", "--xclbin", "build.xclbin", "--csv"]) == 0
    )
    assert capsys.readouterr().out.splitlines() == ["count_star()", str(len(MAIN) + len(WORK))]
    for wrong, status, says in (
        (["--program-tile", "0,2"], 2, "--program-tile requires --xclbin"),
        (["--xclbin", "build.xclbin", "--program-tile", "x"], 2, "expected COL,ROW"),
        (["--elf", "none.elf"], 3, "cannot open"),
        (["--elf", "run.bin"], 3, "not of an AI Engine core"),
        (["--xclbin", "run.bin"], 3, "no configuration data"),
        ([], 2, "use --elf, --xclbin or --listing"),
    ):
        assert cli.main(["aie-path", "run.bin", *wrong]) == status, wrong
        said = capsys.readouterr().err
        assert says in said
        assert "Traceback" not in said


def test_source_lines_of_the_elf_file_are_counted(tmp_path, capsys, monkeypatch):
    """Whatever debug information there is: a line's code begins at an address."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path)
    run = program_runs.run(program.read(Path("core.lst")), seed=1, bundles=400)
    Path("run.bin").write_bytes(run.data)
    lines = {0: ("main.cc", 3), 6: ("main.cc", 4), 0x30: ("work.cc", 10), 0x42: ("work.cc", 12)}
    monkeypatch.setattr(elf_lines, "read", lambda _: ([], lines))
    assert cli.main(["aie-path", "run.bin", "--elf", "core.elf", "--lcov", "run.info"]) == 0
    capsys.readouterr()
    found = Path("run.info").read_text().splitlines()
    assert [line for line in found if line.startswith("SF")] == ["SF:main.cc", "SF:work.cc"]
    truth = Counter(run.path)
    hits = {int(line[3:].split(",")[0]): int(line.split(",")[1]) for line in found if line.startswith("DA:")}
    assert hits.keys() == {3, 4, 10, 12}
    # The last decision leaves open whether what follows was executed.
    assert truth[0x42] - 1 <= hits[12] <= truth[0x42]

    def missing(_):
        raise MissingDependencyError("--elf requires pyelftools")

    monkeypatch.setattr(elf_lines, "read", missing)
    found = witnesses.read(ProgramFiles(elf=Path("core.elf")))
    assert [note.text for note in found.notes] == ["source lines are not read: pyelftools is not installed"]


# -- programs that compilers built


@pytest.mark.parametrize("name", ELFS)
def test_programs_that_compilers_built_are_read_without_a_gap(corpus, name):
    image = core_image.from_elf((corpus / "aie-next" / f"{name}.elf").read_bytes(), name)
    found = code_walk.program_of(image)
    assert image.family == "aie2"
    assert all(function.address in found.at for function in found.functions)
    code = {at + i for at, part in image.code for i in range(len(part))}
    walked = {at for b in found.bundles for at in range(b.address, b.end) if not b.is_swept}
    read = {at for bundle in found.bundles for at in range(bundle.address, bundle.end)}
    assert walked <= read <= code
    assert len(walked) >= 0.95 * len(code)
    # What is not read is padding.
    assert not any(image.at(at, 1) != b"\0" for at in code - read)
    assert not [note for note in found.notes if "no code" in note.text]
    for bundle in found.bundles:
        effects = assembly.read(bundle.text)
        assert (effects.kind, effects.target, effects.ls, effects.le) == (
            bundle.kind,
            bundle.target,
            bundle.ls,
            bundle.le,
        )
        if bundle.kind in BRANCHES:
            assert bundle.address not in found.slots
            assert bundle.address in found.behind
            assert bundle.target is None or (bundle.target in found.at and bundle.target not in found.slots)
    listed = program.parse("\n".join(found.listing), name)
    assert list(witnesses.differing(found, listed)) == []
    with pytest.raises(InputError, match="it is code of AIE2"):
        code_walk.program_of(core_image.CoreImage(name, "aie2p", image.code, image.entries, image.functions))


def test_the_programs_of_a_public_xclbin_are_those_of_its_elf_file(corpus):
    folder = corpus / "aie-next"
    elf = core_image.from_elf((folder / "iree_matmul_core_0_2.elf").read_bytes(), "elf")
    loaded = build_image.images((folder / "iree_matmul.xclbin").read_bytes(), "xclbin")
    assert list(loaded) == [(0, 2), (0, 3), (0, 4), (0, 5)]
    mine = code_walk.program_of(elf)
    for image in loaded.values():
        assert all(image.at(at, len(part)) == part for at, part in elf.code)
        found = code_walk.program_of(image)
        assert not [note for note in found.notes if "no code" in note.text]
        assert [(b.address, b.text) for b in found.bundles] == [(b.address, b.text) for b in mine.bundles]
    assert len(mine.bundles) == 1005
    read = witnesses.read(ProgramFiles(elf=folder / "iree_matmul_core_0_2.elf", xclbin=folder / "iree_matmul.xclbin"))
    assert "core_0_2" in {function.name for function in read.functions}


def test_files_without_a_program_are_refused(corpus):
    folder = corpus / "aie-next"
    for name in ("xdna_emu_insts.bin", "fffe1bff_aie_cdo_init.bin"):
        with pytest.raises(InputError):
            build_image.images((folder / name).read_bytes(), name)
