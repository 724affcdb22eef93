"""Simulate a capture with known ground truth: the same options and seed always give the same bytes."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from lanescope.cli.arguments import add_option_pairs, add_options, parse_options, whole
from lanescope.cli.console import check_output, is_stdout, print_written
from lanescope.errors import UsageError
from lanescope.families import registry
from lanescope.families.family import Family, Simulation
from lanescope.families.options import resolve_options
from lanescope.io.atomic_file import atomic_writer

WINDOWLESS = "it makes whole captures: what reads them takes one"
EXAMPLES = ("lanescope sim aie --seed 1 -o run.bin", "lanescope sim cuda --seed 7 -o run.npy")


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments; the options are those of the family that is named, or of all for help."""
    parser.add_argument("family", metavar="FAMILY", help="device family")
    parser.add_argument("--seed", metavar="N", type=whole, default=0, help="seed of the simulation (default: 0)")
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="main file, or a directory")
    parser.add_argument("--force", action="store_true", help="overwrite existing output")
    add_option_pairs(parser)
    named = [family for family in families if family.name in arguments]
    add_options(parser, [(family, family.sim_options) for family in named or families])


def run(args: argparse.Namespace) -> int:
    """Simulate and write."""
    if is_stdout(args.output):
        raise UsageError("cannot write several files to standard output", hint="use -o FILE or -o DIR")
    family = registry.family(args.family)
    options = resolve_options(family.sim_options, parse_options(args), what=f"the simulator of {family.name}")
    for path in write(family.simulate(options, args.seed), Path(args.output), force=args.force):
        print_written(str(path), size=path.stat().st_size)
    return 0


def write(simulation: Simulation, out: Path, *, force: bool = False) -> list[Path]:
    """Write a simulation and its truth.

    ``out`` names the main file when it has the same suffix, or when there is only one file; neighbours take its name
    (``run.npy``, ``run.events.json``, ``run.npy.truth.json``). Else it names a folder for all of them.

    Raises:
        UsageError: something is there already, unless ``force`` replaces it.
    """
    truth = json.dumps(simulation.truth, indent=1).encode()
    main = Path(next(iter(simulation.files)))
    if not out.is_dir() and (len(simulation.files) == 1 or (out.suffix and out.suffix == main.suffix)):
        content = {out.with_name(_renamed(name, main, out)): data for name, data in simulation.files.items()}
        content[out.with_name(out.name + ".truth.json")] = truth
    else:
        content = {out / name: data for name, data in simulation.files.items()}
        content[out / "truth.json"] = truth
    for path in content:
        path.parent.mkdir(parents=True, exist_ok=True)
        check_output(str(path), force=force)
    with ExitStack() as stack:
        # They take their names together, once all of them are written.
        files = {path: stack.enter_context(atomic_writer(path)) for path in content}
        for path, data in content.items():
            files[path].write(data)
            files[path].flush()  # a full disk shows here, before the first has its name
    return list(content)


def _renamed(name: str, main: Path, out: Path) -> str:
    """Return the name of a file of the simulation when its main file is called ``out``."""
    if name == main.name:
        return out.name
    return name.replace(main.stem, out.stem, 1) if name.startswith(main.stem) else name
