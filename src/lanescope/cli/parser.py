"""Parsers whose complaints are one line like all others."""

from __future__ import annotations

import argparse
from collections.abc import Container
from typing import NoReturn

from lanescope.errors import UsageError


class Parser(argparse.ArgumentParser):
    """A parser that raises what is wrong with a call.

    Attributes:
        shown: names of the families whose options stand in the help; those of all others are taken all the same.
    """

    shown: Container[str] = ()

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the call, and where its help is."""
        raise UsageError(message, hint=f"see {self.prog} --help")
