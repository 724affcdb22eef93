"""Parsers whose complaints are one line like all others."""

from __future__ import annotations

import argparse
from collections.abc import Container

from lanescope.errors import UsageError

TYPE_CHECKING = False  # as in ``typing``, which costs more to import than all of this
if TYPE_CHECKING:
    from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """A parser that raises what is wrong with a call.

    Attributes:
        shown: names of the families whose options stand in the help; those of all others are taken all the same.
    """

    shown: Container[str] = ()

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the call, and where its help is."""
        raise UsageError(message, hint=f"see {self.prog} --help")
