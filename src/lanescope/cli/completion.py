"""Print what a shell needs to complete verbs, flags and file names.

The families declare their flags, those of other packages too, so the script is made from what is installed: print it
again after installing a family.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import shtab

from lanescope import cli, devices
from lanescope.devices import Family

EXAMPLES = (
    "lanescope completion bash",
    "lanescope completion zsh",
)

_SHELLS = ("bash", "zsh", "tcsh")


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    parser.description = f"{parser.description}\n\n{_INSTALL}"
    parser.add_argument("shell", choices=_SHELLS, help="the shell to print it for")


_INSTALL = """\
where to put it:
  bash  ~/.local/share/bash-completion/completions/lanescope
  zsh   a file _lanescope in a folder of $fpath
  tcsh  a file that ~/.tcshrc sources"""


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    print(shtab.complete(full_parser(), shell=args.shell), end="")
    return 0


def full_parser() -> argparse.ArgumentParser:
    """Return one parser of all verbs with all their flags, which no command line needs but this one."""
    families = (*devices.builtin(), *devices.plugin_families())
    parser = cli.Parser(prog="lanescope")
    parser.add_argument("--version", action="version", version="", help="print the version")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    for verb, module, line in _verbs(families):
        command = import_module(module)
        of_verb = verbs.add_parser(verb, help=line, allow_abbrev=False)
        command.configure(of_verb, families, [])
        for action in of_verb._actions:  # argparse offers no other way to all arguments of a parser
            hint(action, [family.name for family in families])
    return parser


def _verbs(families: Sequence[Family]) -> Iterator[tuple[str, str, str]]:
    """Yield each verb, its module, and one line about it."""
    for verb, line in cli.VERBS.items():
        yield verb, f"lanescope.cli.{verb}", line
    of_families: Mapping[str, str] = {
        verb: module for family in reversed(families) for verb, module in family.verbs.items()
    }
    for verb, module in of_families.items():
        try:
            text = import_module(module).__doc__ or ""
        except Exception:  # of another package: completion works without its broken command
            if verb in cli.FAMILY_VERBS:
                raise
            continue
        yield verb, module, text.partition("\n")[0].rstrip(".")


def hint(action: Any, families: Sequence[str]) -> None:
    """Say what may stand for an argument: a family, a file."""
    if action.dest == "family":
        action.choices = list(families)
    elif action.dest in ("input", "inputs", "output"):
        action.complete = shtab.FILE
