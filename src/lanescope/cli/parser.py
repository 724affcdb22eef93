"""Argument parser that reports invalid calls like all other errors."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Container, Iterable

from lanescope.errors import UsageError

TYPE_CHECKING = False  # as in ``typing``, which costs more to import than all of this
if TYPE_CHECKING:
    from typing import Any, NoReturn

# argparse searches the disk for a translation of each of its own messages; those here are in English, as all others.
argparse._ = str  # type: ignore[attr-defined]

#: How argparse starts messages about an argument; of several flags the last one is the long one.
_ARGUMENT = re.compile(r"^argument (?:\S+/)?(\S+): ")


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Finds out itself how wide the terminal is: argparse asks for every argument, and imports a module for it."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **{"width": _columns() - 2, **named})


def _columns() -> int:
    """Return the width of the terminal, as ``shutil.get_terminal_size`` does."""
    told = os.environ.get("COLUMNS", "")
    columns = int(told) if told.isdecimal() else 0
    if columns == 0 and sys.__stdout__ is not None:
        try:
            columns = os.get_terminal_size(sys.__stdout__.fileno()).columns
        except (ValueError, OSError):  # closed, or no terminal
            columns = 0
    return columns or 80


class Parser(argparse.ArgumentParser):
    """A parser that raises ``UsageError`` for invalid calls.

    Attributes:
        shown: names of the families whose options are in the help; options of others are accepted, too.
    """

    shown: Container[str] = ()

    def error(self, message: str) -> NoReturn:
        """Raise the error of an invalid call; the hint names the command with the help."""
        raise UsageError(_ARGUMENT.sub(r"\1: ", message), hint=f"see {self.prog} --help")

    def _get_value(self, action: argparse.Action, text: str) -> Any:
        """Return the value of an argument; the error contains text, flag and reason."""
        try:
            return super()._get_value(action, text)
        except argparse.ArgumentError as error:
            raise UsageError(f"invalid value {text!r} for {_name(action)}: {error.message}") from None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse values other than the choices of an argument."""
        if action.choices is None or value in action.choices:
            return
        choices = ", ".join(map(str, action.choices))
        if isinstance(action, argparse._SubParsersAction):
            hint = _alike(value, action.choices) or f"see {self.prog} --help"
            raise UsageError(f"unknown command {value!r} (choose from {choices})", hint=hint)
        raise UsageError(
            f"invalid value {value!r} for {_name(action)} (choose from {choices})", hint=_alike(value, action.choices)
        )


def _alike(value: object, choices: Iterable[object]) -> str:
    """Return the question whether the choice that looks most like a value was meant; empty if none does."""
    from difflib import get_close_matches

    found = get_close_matches(str(value), [str(each) for each in choices], n=1)
    return f"did you mean {found[0]!r}?" if found else ""


def _name(action: argparse.Action) -> str:
    """Return an argument as the command line spells it: its last flag, or the name in the help."""
    return action.option_strings[-1] if action.option_strings else str(action.metavar or action.dest)
