"""How traces are checked: what a file of settings states, for all commands that apply rules."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NamedTuple

from lanescope.cli.console import echo
from lanescope.cli.settings import NAME, PROJECT, Settings, load, thresholds
from lanescope.errors import UsageError
from lanescope.view.formatting import escape

if TYPE_CHECKING:
    from lanescope.analysis.plausibility.thresholds import IslandThresholds, Thresholds


class CheckSettings(NamedTuple):
    """What is applied.

    Attributes:
        settings: what the file states; its codes fit rules.
        thresholds: of the plausibility rules; None: the defaults.
    """

    settings: Settings
    thresholds: Thresholds | None = None

    @property
    def islands(self) -> IslandThresholds | None:
        """The thresholds of LS501, which also decide where evidence ends; None: the defaults."""
        return None if self.thresholds is None else self.thresholds.islands

    def applied(self, prefix: str) -> list[str] | None:
        """Return the codes with this prefix of the rules that are applied; None: all of them."""
        if not self.settings.file:
            return None
        from lanescope.analysis import check

        rules = check.rules(self.settings.select, self.settings.ignore)
        return [rule.code for rule in rules if rule.code.startswith(prefix)]


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names the file."""
    parser.add_argument(
        "--settings",
        metavar="FILE",
        help=f"file with settings of the rules (default: nearest {NAME} or {PROJECT} of the repository)",
    )


def check_settings(args: argparse.Namespace) -> CheckSettings:
    """Return what the named file, or the nearest one, states, and tell which one it is.

    Raises:
        UsageError: the file cannot be read, or states something that it cannot; the error names it.
    """
    found = load(args.settings)
    if not found.file:
        return CheckSettings(found)
    from lanescope.analysis import check

    try:
        check.rules(found.select, found.ignore)
    except UsageError as error:
        raise UsageError(f"{found.file}: {error.message}", hint=error.hint) from None
    limits = thresholds(check.Thresholds, found)
    if not vars(args).get("json"):
        echo(f"settings: {escape(found.file)}")
    return CheckSettings(found, limits)
