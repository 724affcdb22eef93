"""The toolkit without a GPU: compile device code, read what came out."""

from __future__ import annotations

import ctypes
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lanescope.cuda import include_dir

ARCHITECTURES = (80, 90, 100)
INCLUDE = f"-I{include_dir()}"


@dataclass(frozen=True)
class Instruction:
    """One machine instruction.

    Attributes:
        text: as the disassembler writes it, its guard included.
        waits: numbers of the scoreboards that it waits for before it is issued.
        result: number of the scoreboard that is released when its result is there, or None.
    """

    text: str
    waits: frozenset[int]
    result: int | None

    @property
    def guard(self) -> str:
        """The predicate that it is carried out under, without its sign; empty: always."""
        found = re.match(r"@!?(\w+)", self.text)
        return found[1] if found else ""

    @property
    def opcode(self) -> str:
        return next(word for word in self.text.split() if not word.startswith("@"))

    @property
    def is_stamp(self) -> bool:
        """Whether it reads the low half of a clock; the lane header's readings are of 64 bits."""
        return bool(re.search(r"\b(S2UR|CS2R\.32|S2R) U?R\d+, SR_(GLOBALTIMERLO|CLOCKLO)", self.text))


#: An instruction is 16 bytes, written as two words; the upper one holds what the hardware has to wait for.
_CODE = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;\s+/\* 0x[0-9a-f]{16} \*/\s+/\* 0x([0-9a-f]{16}) \*/")


@dataclass(frozen=True)
class Toolkit:
    """A CUDA toolkit, from the folder that holds ``bin`` and ``lib``."""

    folder: Path

    def nvcc(self, source: Path, target: Path, *flags: str) -> str:
        """Compile; the suffix of the target (.ptx, .cubin) says what to. Return what the compiler says."""
        kind = {".ptx": "-ptx", ".cubin": "-cubin"}[target.suffix]
        command = [self.folder / "bin/nvcc", "-std=c++17", kind, INCLUDE, "-Werror=all-warnings", *flags]
        done = subprocess.run([*command, "-o", target, source], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def instructions(self, cubin: Path) -> list[Instruction]:
        """Return the machine code of a file with one kernel."""
        command = [self.folder / "bin/nvdisasm", "-c", "-hex", cubin]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        found = []
        for line, upper in _CODE.findall(text):
            control = int(upper, 16) >> 41
            result = control >> 5 & 7
            waits = frozenset(bit for bit in range(6) if control >> 11 & 1 << bit)
            found.append(Instruction(line, waits, None if result == 7 else result))
        assert found
        return found

    def nvrtc(self, source: str, architecture: int, *flags: str) -> Compiled:
        """Compile by NVRTC."""
        ctypes.CDLL(str(self.folder / "lib/libnvrtc-builtins.so.13.0"), ctypes.RTLD_GLOBAL)
        library = ctypes.CDLL(str(self.folder / "lib/libnvrtc.so.13"))
        program = ctypes.c_void_p()
        assert library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None) == 0
        options = [INCLUDE, f"-arch=sm_{architecture}", *flags]
        array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        status = library.nvrtcCompileProgram(program, len(options), array)

        def get(what: str) -> bytes:
            size = ctypes.c_size_t()
            assert library[f"nvrtcGet{what}Size"](program, ctypes.byref(size)) == 0
            content = ctypes.create_string_buffer(size.value)
            assert library[f"nvrtcGet{what}"](program, content) == 0
            return content.raw

        found = Compiled(
            status,
            get("ProgramLog").rstrip(b"\0").decode(),
            *(b"" if status else get(what) for what in ("PTX", "CUBIN")),
        )
        library.nvrtcDestroyProgram(ctypes.byref(program))
        return found


@dataclass(frozen=True)
class Compiled:
    """What NVRTC made: its status, 0 for success, its log, and the code."""

    status: int
    log: str
    ptx: bytes
    cubin: bytes


def without_markers(source: str) -> str:
    """Return a kernel's source without the header, the choice of options, and the lines that call verbs."""
    source = re.sub(r"struct \w+ : lanescope::Options \{.*?\n\};\n", "", source, flags=re.DOTALL)
    call = re.compile(r"\s*(\w+\.)?lane\w*\.\w+\(.*\);\s*(//.*)?$")
    return "\n".join(line for line in source.splitlines() if "lanescope" not in line and not call.match(line)) + "\n"
