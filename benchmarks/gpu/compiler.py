"""Compile the kernels for a chip: by NVRTC (a pip package or the toolkit's library), else by nvcc."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lanescope import MissingDependencyError
from lanescope.cuda import include_dir

ROOT = Path(__file__).resolve().parents[2]
_HINT = "pip install nvidia-cuda-nvrtc, or install the CUDA toolkit (nvcc)"


def compile_(source: Path, architecture: int, folders: Sequence[Path] = ()) -> tuple[bytes, str]:
    """Return the machine code for an architecture (90: compute capability 9.0), and the compiler's name and version.

    Args:
        source: file.
        architecture: of the chip.
        folders: where included files are, besides the probe header's.

    Raises:
        MissingDependencyError: there is no compiler, or it does not know the chip.
    """
    library = nvrtc()
    if library is not None:
        return _by_nvrtc(library, source, architecture, folders)
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise MissingDependencyError("no CUDA compiler is here", hint=_HINT)
    return _by_nvcc(nvcc, source, architecture, folders)


def has_compiler() -> bool:
    """Return whether there is any compiler."""
    return nvrtc() is not None or shutil.which("nvcc") is not None


def nvrtc() -> ctypes.CDLL | None:
    """Load NVRTC: from pip packages, what `make test-tools` fetched, or where the system has it."""
    folders = [Path(entry) / "nvidia" for entry in sys.path if entry]
    folders.append(ROOT / ".tools/cuda/nvidia")
    for folder in folders:
        for pattern in ("cu*/lib", "cuda_nvrtc/lib"):
            for place in sorted(folder.glob(pattern), reverse=True):
                found = sorted(place.glob("libnvrtc.so.*"))
                if found:
                    # It looks for its builtins by name only; once they are loaded it finds them.
                    for builtins in place.glob("libnvrtc-builtins.so.*"):
                        if ".alt." not in builtins.name:
                            ctypes.CDLL(str(builtins), ctypes.RTLD_GLOBAL)
                    return ctypes.CDLL(str(found[-1]))
    for name in ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _by_nvrtc(library: ctypes.CDLL, source: Path, architecture: int, folders: Sequence[Path]) -> tuple[bytes, str]:
    program, major, minor = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    version = f"NVRTC {major.value}.{minor.value}"
    library.nvrtcCreateProgram(ctypes.byref(program), source.read_bytes(), source.name.encode(), 0, None, None)
    places = [f"-I{folder}" for folder in (include_dir(), *folders)]
    options = [*places, f"-arch=sm_{architecture}", "-std=c++17"]
    array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    status = library.nvrtcCompileProgram(program, len(options), array)
    size = ctypes.c_size_t()
    if status:
        library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(program, log)
        raise MissingDependencyError(
            f"{version} cannot compile for sm_{architecture}: {log.value.decode().strip()}", hint=_HINT
        )
    library.nvrtcGetCUBINSize(program, ctypes.byref(size))
    code = ctypes.create_string_buffer(size.value)
    library.nvrtcGetCUBIN(program, code)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return code.raw, version


def _by_nvcc(nvcc: str, source: Path, architecture: int, folders: Sequence[Path]) -> tuple[bytes, str]:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "kernels.cubin")
        places = [f"-I{folder}" for folder in (include_dir(), *folders)]
        command = [nvcc, "-std=c++17", *places, f"-arch=sm_{architecture}", "-cubin", "-o", target, source]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise MissingDependencyError(
                f"nvcc cannot compile for sm_{architecture}: {done.stderr.strip()}", hint=_HINT
            )
        said = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
        release = next((line.split("release ")[1] for line in said.splitlines() if "release " in line), "")
        return target.read_bytes(), f"nvcc {release}".strip()
