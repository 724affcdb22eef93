"""Make a capture whose truth is known: the same options and seed always give the same bytes."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from lanescope import devices
from lanescope.cli.common import add_options, given_options, say
from lanescope.devices import Family, Simulation
from lanescope.errors import UsageError
from lanescope.view.text import escape

EXAMPLES = ("lanescope sim aie --seed 1 -o run.bin", "lanescope sim cuda --seed 7 -o run.npy")


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments; the options are those of the family that is named."""
    parser.add_argument("family", metavar="FAMILY", help="device family")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="the same seed gives the same bytes")
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="file, or folder for several files")
    parser.add_argument("--force", action="store_true", help="replace what is there")
    named = arguments[0] if arguments else ""
    add_options(parser, [(f"options of {f.name}", f.sim_options) for f in families if f.name == named])


def run(args: argparse.Namespace) -> int:
    """Simulate and write."""
    family = devices.family(args.family)
    options = devices.settle(family.sim_options, given_options(args), what=f"the simulator of {family.name}")
    for path in write(family.simulate(options, args.seed), Path(args.output), force=args.force):
        say(escape(str(path)))
    return 0


def write(simulation: Simulation, out: Path, *, force: bool = False) -> list[Path]:
    """Write a simulation: one file as ``out`` with ``out.truth.json`` beside it, several into the folder ``out``."""
    truth = json.dumps(simulation.truth, indent=1).encode()
    if len(simulation.files) == 1:
        content = {out: next(iter(simulation.files.values())), out.with_name(out.name + ".truth.json"): truth}
    else:
        content = {out / name: data for name, data in simulation.files.items()}
        content[out / "truth.json"] = truth
    for path in content:
        if path.exists() and not force:
            raise UsageError(f"{path} is there already", hint="say --force to replace it")
    for path, data in content.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return list(content)
