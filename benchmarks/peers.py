"""Programs of others, installed into environments of their own under ``.tools/peers``.

What is installed is pinned in ``pyproject.toml``, group ``peers``. They are no part of the development environment: one
of them needs a compiler of its own, and what they ask for must not decide what we run with.
"""

from __future__ import annotations

import subprocess
import tomllib
import venv
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".tools" / "peers"

#: Not built by its own rules: see ``python``.
BY_HAND = "tg4perfetto"


class MissingPeerError(Exception):
    """The peers cannot be installed here; the text says why, on one line."""


def pins() -> list[str]:
    """Return the pinned requirements."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        found: list[str] = tomllib.load(file)["dependency-groups"]["peers"]
    return found


@cache
def python() -> str:
    """Return a Python that has the peers; installs them the first time.

    The source distribution of tg4perfetto builds only with a protobuf compiler on the path, and then leaves its
    generated module out; so it is installed without its build's requirements, and the module is made here.

    Raises:
        MissingPeerError: no network, or a package that is gone.
    """
    interpreter, done = HOME / "bin" / "python", HOME / "installed.txt"
    wanted = "\n".join(pins())
    if not done.exists() or done.read_text() != wanted:
        try:
            venv.create(HOME, with_pip=True, clear=True)
            pip = [str(interpreter), "-m", "pip", "--quiet", "--quiet", "--disable-pip-version-check", "install"]
            by_hand = [pin for pin in pins() if pin.startswith(BY_HAND)]
            subprocess.run([*pip, *(pin for pin in pins() if pin not in by_hand)], check=True, capture_output=True)
            subprocess.run([*pip, "--no-build-isolation", "--no-deps", *by_hand], check=True, capture_output=True)
            package = next(HOME.glob(f"lib/python*/site-packages/{BY_HAND}"))
            make = [str(interpreter), "-m", "grpc_tools.protoc", "-I.", "--python_out=.", "perfetto_trace.proto"]
            subprocess.run(make, cwd=package, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError, StopIteration) as error:
            raise MissingPeerError(f"peers not installable: {type(error).__name__}") from error
        done.write_text(wanted)
    return str(interpreter)


def version(name: str) -> str:
    """Return a peer with its pinned version, as ``name 1.2.3``."""
    return next(pin for pin in pins() if pin.startswith(name + "==")).replace("==", " ")


def run(code: str, *arguments: str | Path) -> str:
    """Return what a program prints that runs among the peers.

    Raises:
        MissingPeerError: they cannot be installed, or the program fails.
    """
    command = [python(), "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MissingPeerError((done.stderr.strip().splitlines() or ["no word of why"])[-1][:120])
    return done.stdout
