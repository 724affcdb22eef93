"""The seam: what a device family declares, and how families are found.

A family of another package takes all it needs from here. Names are loaded when they are first used, as those of
``lanescope`` are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanescope.lazy_names import lazy_names

if TYPE_CHECKING:
    from lanescope.families.causes import CauseEdges, CauseKind, Causes, NaturalWindow
    from lanescope.families.clock_pairs import ClockPairs, Orders, TimeDomain
    from lanescope.families.command import Argument, CommandContext, Values
    from lanescope.families.family import (
        Command,
        Decoder,
        Derived,
        Export,
        Family,
        Format,
        Simulation,
        Simulator,
        Summary,
    )
    from lanescope.families.kernel_spans import KernelSpans
    from lanescope.families.limit import Limit
    from lanescope.families.options import Option
    from lanescope.families.rules import Rule, RuleContext, Violation
    from lanescope.families.whole_file import DecodeContext

#: The module that holds each public name.
_HOME = {
    "Argument": "command",
    "CauseEdges": "causes",
    "CauseKind": "causes",
    "Causes": "causes",
    "ClockPairs": "clock_pairs",
    "Command": "family",
    "CommandContext": "command",
    "DecodeContext": "whole_file",
    "Decoder": "family",
    "Derived": "family",
    "Export": "family",
    "Family": "family",
    "Format": "family",
    "KernelSpans": "kernel_spans",
    "Limit": "limit",
    "NaturalWindow": "causes",
    "Option": "options",
    "Orders": "clock_pairs",
    "Rule": "rules",
    "RuleContext": "rules",
    "Simulation": "family",
    "Simulator": "family",
    "Summary": "family",
    "TimeDomain": "clock_pairs",
    "Values": "command",
    "Violation": "rules",
}

__all__ = [
    "Argument",
    "CauseEdges",
    "CauseKind",
    "Causes",
    "ClockPairs",
    "Command",
    "CommandContext",
    "DecodeContext",
    "Decoder",
    "Derived",
    "Export",
    "Family",
    "Format",
    "KernelSpans",
    "Limit",
    "NaturalWindow",
    "Option",
    "Orders",
    "Rule",
    "RuleContext",
    "Simulation",
    "Simulator",
    "Summary",
    "TimeDomain",
    "Values",
    "Violation",
]

__getattr__ = lazy_names(__name__, _HOME, globals())
