"""Print the completion script of a shell: commands, flags and file names.

The script contains the flags of all installed families: print it again after installing a family.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

import shtab

from lanescope import cli
from lanescope.cli.arguments import configure_command
from lanescope.cli.parser import Parser
from lanescope.errors import MissingDependencyError
from lanescope.families import registry
from lanescope.families.family import Family

WINDOWLESS = "it reads no capture"
EXAMPLES = (
    "lanescope completion bash",
    "lanescope completion zsh",
)

#: Words of the name of an argument that say that it is a file, or a folder.
_FILES, _FOLDERS = {"FILE", "BUFFER", "WAVE"}, {"DIR", "FOLDER", "DATASET"}
#: Names of arguments that are rules, and the values at the end of a line of help.
_CODES, _LIST = ("CODE", "CODES"), re.compile(r": [\w-]+(, [\w-]+)+$")
_SHELLS = ("bash", "zsh", "fish", "tcsh")


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    parser.description = f"{parser.description}\n\n{_INSTALL}"
    parser.add_argument("shell", choices=_SHELLS, help="shell to print the script for")


_INSTALL = """\
where to put it:
  bash  ~/.local/share/bash-completion/completions/lanescope
  zsh   a file _lanescope in a folder of $fpath
  fish  ~/.config/fish/completions/lanescope.fish
  tcsh  a file that ~/.tcshrc sources"""


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    print(shtab.complete(full_parser(), shell=args.shell), end="")
    return 0


def full_parser() -> Parser:
    """Return one parser of all verbs with all their flags, which no command line needs but this one."""
    families = (*registry.builtin(), *registry.plugin_families())
    names = [family.name for family in families]
    parser = Parser(prog="lanescope")
    parser.add_argument("--version", action="version", version="", help="print the version")
    verbs = parser.add_subparsers(dest="verb", metavar="COMMAND")
    for verb, line in cli.COMMANDS.items():
        of_verb = verbs.add_parser(verb, help=line, allow_abbrev=False)
        of_verb.shown = names
        import_module(f"lanescope.cli.commands.{verb.replace('-', '_')}").configure(of_verb, families, [])
        of_verb.description = line  # which shells show next to the verb
        _hint_all(of_verb, names)
    known = set(cli.COMMANDS)
    for family in families:
        for command in family.commands:
            if command.name in known:
                continue
            known.add(command.name)
            of_verb = verbs.add_parser(command.name, help=command.help, allow_abbrev=False)
            try:
                configure_command(of_verb, command, family)
            except MissingDependencyError:  # of another package: completion works without its broken command
                continue
            _hint_all(of_verb, names)
    return parser


@cache
def rule_codes() -> list[str]:
    """Return the codes of all rules."""
    from lanescope.analysis import check

    return [rule.code for rule in check.rules(families=registry.BUILTIN)]


def _hint_all(parser: Parser, families: Sequence[str]) -> None:
    for action in parser._actions:  # argparse offers no other way to all arguments of a parser
        hint(action, families)


def hint(action: Any, families: Sequence[str]) -> None:
    """Set the completion of an argument: families, rules, files; beside values, what they are without their list."""
    if action.choices is not None and action.help:
        action.help = _LIST.sub("", action.help)
    if action.dest in ("family", "help_family"):
        action.choices = list(families)
    elif action.metavar in _CODES:
        action.choices = rule_codes()
    elif action.choices is None and action.nargs != 0:
        words = set(re.findall(r"[A-Z]+", str(action.metavar)))
        if words & _FOLDERS:
            action.complete = shtab.DIRECTORY
        elif words & _FILES or action.dest in ("input", "inputs", "output", "layout"):
            action.complete = shtab.FILE
