"""The readers in Python as fuzz targets: any bytes give an answer or one clear error, and accounting adds up.

``test_readers.py`` tries changed seeds in the usual tests. As a program this is one libFuzzer target by atheris
(`tools/fetch_tools atheris`), guided by the coverage of lanescope: ``readers.py TARGET [ARGUMENTS]``; or, with
``--seeds FOLDER``, it writes the seeds of all targets. `make fuzz` does both.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import types
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Longer seeds slow a target down and reach no more of it.
MOST_BYTES = 4096
CTF = b"""/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
trace { major = 1; minor = 8; byte_order = le;
  packet.header := struct { uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; }; };
env { hostname = "h"; domain = "ust"; };
clock { name = "m"; freq = 1000000000; offset_s = 3; description = "\\"quoted\\""; };
typealias integer { size = 27; map = clock.m.value; } := stamp;
stream { id = 0;
  packet.context := struct { uint32_t content_size; uint32_t packet_size; };
  event.header := struct { enum : uint8_t { few = 0 ... 30, many = 31 } id;
    variant <id> { struct { stamp t; } few; struct { uint32_t id; stamp t; } many; } v; } align(8); };
event { name = "a:b"; id = 0; stream_id = 0;
  fields := struct { uint8_t n; uint32_t list[n]; string text; enum : uint8_t { "x" = 1, y } e; floating_point { exp_dig = 8; mant_dig = 24; } f; }; };
"""  # noqa: E501
#: What readers of text trip over.
HOSTILE = (b"[" * 3000, b"{", b"}", b'"', b"-1", b"1e999", b"9" * 40, b"\\u0000", b"\xff\xfe", b"(")
LISTING = b"""
00000000 <main>:
       0: 00 00 00 00  \tmovxm\tp7, #0x10
       4: 00 00 00 00  \tjl\t#0x20
       8: 00 00 00 00  \tnop
      20: 00 00 00 00  \tret lr
"""
LST = b"     960    VLDA wl0, [p1], #128;  NOP\n     968  0x1234  JNZ r1, #960\n     976  RET lr\nZLS_x\n"
VCD = b"""$timescale 1 ns $end
$scope module top $end
$var wire 1 ! a $end
$var wire 8 # b $end
$upscope $end
$enddefinitions $end
#0
0!
b00000000 #
#5
1!
b1010xx01 #
#9
"""
_memory = Path("/dev/shm")
_folder = _memory if _memory.is_dir() else None


def _capture(data: bytes, family: str) -> None:
    """Decode bytes as a capture of a family; each layer of its accounting adds up."""
    import lanescope

    trace = lanescope.open(data, family=family)
    for row in range(len(trace.accounting)):
        total, *parts = (int(trace.accounting[name][row]) for name in ("total", "decoded", "padding", "lost"))
        assert total == sum(parts), (total, parts)
        assert min(parts) >= 0, parts
    ends = trace.slices["dur"]
    assert len(ends) == len(trace.slices)


def _with_file(data: bytes, suffix: str, read: Callable[[Path], object]) -> None:
    """Call a reader that takes a path."""
    with tempfile.NamedTemporaryFile(suffix=suffix, dir=_folder) as file:
        file.write(data)
        file.flush()
        read(Path(file.name))


def read_ctf_metadata(data: bytes) -> None:
    """CTF metadata, of any producer and of the recorder: described and compiled, or refused."""
    from lanescope.wire.ctf import metadata
    from lanescope.wire.tsdl import description, files
    from lanescope.wire.tsdl.reader import Reader
    from lanescope.wire.tsdl.types import TsdlError

    try:
        Reader(description.describe(files.metadata_text(data)))
    except TsdlError:
        metadata.describe(data)


def read_mlir(data: bytes) -> None:
    """MLIR designs of AI engines: the configuration of their trace units, written again as MLIR."""
    from lanescope.devices.aie.config import ConfigError, mlir_parser
    from lanescope.errors import UsageError

    try:
        mlir_parser.read(data.decode(errors="replace"))
    except ConfigError as error:
        raise UsageError(str(error)) from None


def read_aie_config(data: bytes) -> None:
    """Configurations of trace units as JSON, registers, instruction streams, xclbin and PDI."""
    from lanescope.devices.aie.config import discovery

    _with_file(data, ".json", discovery.load)


def read_listing(data: bytes) -> None:
    """Listings of llvm-objdump, Chess and JSON: bundles lie where they are, and notes can be made of them."""
    from lanescope.devices.aie.path.program import program

    found = program.parse(data.decode(errors="replace"), "core.lst")
    assert set(found.at) == {bundle.address for bundle in found.bundles}


def read_elf(data: bytes) -> None:
    """ELF files of cores: their code is walked and listed; symbols and lines are read by pyelftools."""
    from lanescope.devices.aie.path.program import code_walk, core_image, elf
    from lanescope.errors import LanescopeError

    try:
        code_walk.program_of(core_image.from_elf(data, "core.elf"))
    except LanescopeError:
        _with_file(data, ".elf", elf.read)


def read_layout_toml(data: bytes) -> None:
    """Layout files of CUDA buffers (TOML)."""
    from lanescope.devices.cuda.formats.declared import parsing

    parsing.parse(data.decode(errors="replace"))


def read_settings_toml(data: bytes) -> None:
    """Settings of the command line (lanescope.toml)."""
    from lanescope.cli import settings

    _with_file(data, ".toml", lambda path: settings.load(str(path)))


def read_vcd(data: bytes) -> None:
    """Waveforms of simulators: every signal has rising times."""
    from lanescope.devices.aie.analysis.wave_diff import Waveform

    def read(path: Path) -> None:
        waveform = Waveform(path)
        for name in waveform.names:
            waveform.signal(name)

    _with_file(data, ".vcd", read)


def read_levelzero_text(data: bytes) -> None:
    """Texts of THAPI (babeltrace's pretty printer) as captures."""
    _capture(data, "levelzero")


def read_kineto(data: bytes) -> None:
    """Files of the PyTorch profiler as captures."""
    _capture(data, "kineto")


def read_chrome(data: bytes) -> None:
    """Trace event files as captures."""
    _capture(data, "chrome")


def read_perfetto(data: bytes) -> None:
    """Perfetto traces as captures."""
    _capture(data, "perfetto")


def read_ascend(data: bytes) -> None:
    """Ascend records as captures."""
    _capture(data, "ascend")


def read_aie(data: bytes) -> None:
    """AIE trace dumps, in binary and as text, as captures."""
    _capture(data, "aie")


def read_cuda(data: bytes) -> None:
    """CUDA buffers (npy and all layouts that are known) as captures."""
    _capture(data, "cuda")


#: By name.
TARGETS: dict[str, Callable[[bytes], None]] = {
    name: each for name, each in globals().items() if name.startswith("read_")
}


def _simulated(family: str, **options: object) -> bytes:
    import lanescope

    return next(iter(lanescope.simulate(family, seed=1, **options).files.values()))


def seeds(name: str) -> list[bytes]:
    """Return small valid inputs of a target."""
    if name == "read_ctf_metadata":
        return [CTF]
    if name == "read_mlir":
        return [path.read_bytes() for path in sorted((ROOT / "tests/scenarios/data/aie").glob("*.mlir"))]
    if name == "read_aie_config":
        from lanescope.devices.aie.config import build_file, instruction_stream, json_config, mlir_parser, register_json

        known = mlir_parser.read((ROOT / "tests/scenarios/data/aie/combo.mlir").read_text())
        documents = (json_config.to_json(known), register_json.to_document(known))
        binaries = [instruction_stream.written(known), build_file.to_cdo(known)]
        return [*(json.dumps(document).encode() for document in documents), *binaries]
    if name == "read_listing":
        return [LISTING, LST]
    if name == "read_elf":
        from lanescope.devices.aie.simulate import assembler

        return [assembler.assemble(family, {"main": ["nop", "done"]})[0] for family in ("aie2", "aie2p")]
    if name == "read_layout_toml":
        return [path.read_bytes() for path in sorted((ROOT / "src").rglob("declared/shipped/*.toml"))]
    if name == "read_settings_toml":
        return [b'select = ["LS1"]\nignore = ["LS103"]\nfail-on = "error"\n']
    if name == "read_vcd":
        return [VCD]
    made = {
        "read_levelzero_text": lambda: _simulated("levelzero"),
        "read_kineto": lambda: _simulated("kineto", steps=1, kernels=1, streams=1),
        "read_chrome": lambda: _simulated("chrome", events=4, pairs=2, flows=1, threads=1),
        "read_perfetto": lambda: _simulated("perfetto", slices=30, threads=1, samples=3, other=1),
        "read_ascend": lambda: _simulated("ascend", tasks=2, aic=1, aiv=1, threads=1),
        "read_aie": lambda: _simulated("aie", tiles=1, records=60),
        "read_cuda": lambda: _simulated("cuda", tiles=1, blocks=1, groups=1),
    }
    return [made[name]()[:MOST_BYTES]]


def changed(content: bytes, other: bytes, chosen: random.Random) -> bytes:
    """Return a seed with a few changes: of bits, bytes, numbers and pieces, and with pieces of another seed."""
    made = bytearray(content)
    for _ in range(chosen.choice((1, 1, 2, 4, 16))):
        at = chosen.randrange(len(made) + 1)
        length = chosen.choice((1, 2, 4, 8, 32, 200))
        match chosen.randrange(8):
            case 0:
                made[at : at + 1] = bytes([chosen.randrange(256)])
            case 1:
                made[at:at] = made[at : at + length] * chosen.choice((1, 2, 50))
            case 2:
                del made[at : at + length]
            case 3:
                start = chosen.randrange(len(other) + 1)
                made[at : at + length] = other[start : start + length]
            case 4:
                made[at : at + length] = chosen.choice((b"\x00", b"\xff", b"\x7f")) * length
            case 5:
                made[at:at] = chosen.choice(HOSTILE)
            case 6:
                del made[at:]
            case _:
                if at < len(made):
                    made[at] ^= 1 << chosen.randrange(8)
    return bytes(made)


def attempt(name: str, data: bytes) -> bool:
    """Give bytes to a target; return whether it took them. Only errors with a clear message are let pass."""
    import warnings

    from lanescope.errors import InternalError, LanescopeError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            TARGETS[name](data)
    except InternalError:
        raise
    except LanescopeError as error:
        refused = str(error)
    else:
        return True
    assert "\n" not in refused, refused
    return False


def _functions() -> list[types.FunctionType]:
    """Return all functions and methods of the modules of lanescope that are imported."""
    found: dict[int, types.FunctionType] = {}
    for module in [each for name, each in sys.modules.items() if name.partition(".")[0] == "lanescope"]:
        for value in list(vars(module).values()):
            inside = vars(value).values() if isinstance(value, type) else ()
            for each in (value, *inside):
                function = getattr(each, "__func__", getattr(each, "fget", each))
                if isinstance(function, types.FunctionType) and function.__module__.startswith("lanescope"):
                    found[id(function)] = function
    return list(found.values())


def main() -> None:
    """Run a target under libFuzzer, or write the seeds."""
    if sys.argv[1] == "--seeds":
        for name in TARGETS:
            folder = Path(sys.argv[2]) / name
            folder.mkdir(parents=True, exist_ok=True)
            for number, content in enumerate(seeds(name)):
                (folder / f"{number}").write_bytes(content)
        return
    sys.path.insert(0, str(ROOT / ".tools/atheris"))
    import atheris

    name = sys.argv.pop(1)
    # All modules that reading takes are imported first. Those of an editable install have a loader of their own, which
    # atheris passes over: their functions are instrumented one by one.
    for content in seeds(name):
        attempt(name, content)
    for function in _functions():
        atheris.instrument_func(function)
    atheris.Setup(sys.argv, lambda data: attempt(name, data) and None)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
