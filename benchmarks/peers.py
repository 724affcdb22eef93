"""Programs of others, installed into environments of their own under ``.tools/peers``.

What is installed is pinned in ``pyproject.toml``, in the groups ``peers`` and ``peers-large``. They are no part of the
development environment: one of them needs a compiler of its own, and what they ask for must not decide what we run
with. The large ones take over a GiB and come only where ``LANESCOPE_BENCH_LARGE=1`` asks for them.
"""

from __future__ import annotations

import os
import subprocess
import tomllib
import venv
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".tools"
PEERS, LARGE = "peers", "peers-large"
#: Readers of JSON, and the analyses of PyTorch traces.
JSON, HTA = "peers-json", "peers-hta"
#: Groups that come only where large ones are asked for, and their sizes.
_LARGE = {LARGE: "over a GiB", HTA: "half a GiB"}

#: Not built by its own rules: see ``python``.
BY_HAND = "tg4perfetto"


class MissingPeerError(Exception):
    """The peers cannot be installed here; the text says why, on one line."""


def pins(group: str = PEERS) -> list[str]:
    """Return the pinned requirements of a group and of those it includes."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        groups = tomllib.load(file)["dependency-groups"]
    found: list[str] = []
    for entry in groups[group]:
        found += pins(entry["include-group"]) if isinstance(entry, dict) else [entry]
    return found


@cache
def python(group: str = PEERS) -> str:
    """Return a Python that has the peers of a group; installs them the first time.

    The source distribution of tg4perfetto builds only with a protobuf compiler on the path, and then leaves its
    generated module out; so it is installed without its build's requirements, and the module is made here.

    Raises:
        MissingPeerError: no network, or a package that is gone, or large ones that nobody asked for.
    """
    home, given = HOME / group, pins(group)
    interpreter, done = home / "bin" / "python", home / "installed.txt"
    wanted = "\n".join(given)
    if not done.exists() or done.read_text() != wanted:
        if group in _LARGE and os.environ.get("LANESCOPE_BENCH_LARGE") != "1":
            raise MissingPeerError(f"{_LARGE[group]} to install: say LANESCOPE_BENCH_LARGE=1")
        try:
            venv.create(home, with_pip=True, clear=True)
            pip = [str(interpreter), "-m", "pip", "--quiet", "--quiet", "--disable-pip-version-check", "install"]
            by_hand = [pin for pin in given if pin.startswith(BY_HAND)]
            subprocess.run([*pip, *(pin for pin in given if pin not in by_hand)], check=True, capture_output=True)
            if by_hand:
                _make_by_hand(home, interpreter, [*pip, "--no-build-isolation", "--no-deps", *by_hand])
        except (OSError, subprocess.CalledProcessError, StopIteration) as error:
            raise MissingPeerError(f"peers not installable: {type(error).__name__}") from error
        done.write_text(wanted)
    return str(interpreter)


def _make_by_hand(home: Path, interpreter: Path, install: list[str]) -> None:
    subprocess.run(install, check=True, capture_output=True)
    package = next(home.glob(f"lib/python*/site-packages/{BY_HAND}"))
    make = [str(interpreter), "-m", "grpc_tools.protoc", "-I.", "--python_out=.", "perfetto_trace.proto"]
    subprocess.run(make, cwd=package, check=True, capture_output=True)


def version(name: str) -> str:
    """Return a peer with its pinned version, as ``name 1.2.3``."""
    known = (pin for group in (LARGE, JSON, HTA) for pin in pins(group))
    return next(pin for pin in known if pin.startswith(name + "==")).replace("==", " ")


def run(code: str, *arguments: str | Path, group: str = PEERS) -> str:
    """Return what a program prints that runs among the peers of a group.

    Raises:
        MissingPeerError: they cannot be installed, or the program fails.
    """
    command = [python(group), "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MissingPeerError((done.stderr.strip().splitlines() or ["no word of why"])[-1][:120])
    return done.stdout
