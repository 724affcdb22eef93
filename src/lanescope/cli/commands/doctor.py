"""Check the installation: required and optional packages, device families. With a capture: what it cannot prove."""

from __future__ import annotations

import argparse
import platform
import shutil
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

import lanescope
from lanescope._native import why_missing
from lanescope.cli.arguments import add_input
from lanescope.cli.console import echo, print_json
from lanescope.cli.reading import opened, passed
from lanescope.cli.tables import add_formats, print_table, print_wrapped
from lanescope.families import registry
from lanescope.families.declaration import UPDATE
from lanescope.families.family import Family
from lanescope.families.plugin_rules import plugin_rules

WINDOWLESS = "it looks at what is installed and at the first bytes of a capture, not at times"
EXAMPLES = ("lanescope doctor", "lanescope doctor capture.bin")

_NEEDED = ("numpy", "duckdb", "msgspec", "isal", "rich", "shtab")
_OPTIONAL = {
    "viztracer": ("`lanescope view`", "pip install 'lanescope[viewer]'"),
    "pyelftools": ("`lanescope aie-path --elf`", "pip install 'lanescope[elf]'"),
    "pyvcd": ("writing .vcd", "pip install 'lanescope[wave]'"),
    "pywellen": ("`lanescope aie-wavediff`", "pip install 'lanescope[wave]'"),
}
_TOOLS = {"babeltrace2": "reads the traces of `lanescope record` independently"}


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    add_input(parser, families, is_strict=False, is_optional=True)
    add_formats(parser, "lanescope.doctor/1", is_timed=False)


def run(args: argparse.Namespace) -> int:
    """Print the state; return 1 if a required package is missing or a plugin is broken."""
    if args.input is not None:
        return _print_limits(args)
    rows = [("lanescope", lanescope.__version__, "ok", ""), ("python", platform.python_version(), "ok", "")]
    reason = why_missing()
    if reason:
        rows.append(("native core", "", "missing", f"{reason}; pip install --force-reinstall lanescope"))
    else:
        rows.append(("native core", "built", "ok", ""))
    for name in _NEEDED:
        found = _version(name)
        rows.append((name, found, "ok" if found else "missing", "" if found else f"pip install {name}"))
    for name, (what, how) in _OPTIONAL.items():
        found = _version(name)
        rows.append((name, found, "ok" if found else "optional", "" if found else f"for {what}: {how}"))
    for name, what in _TOOLS.items():
        found = "found" if shutil.which(name) else ""
        rows.append((name, found, "ok" if found else "optional", "" if found else what))
    families = (*registry.builtin(), *registry.plugin_families())
    rows += [(f"family {family.name}", "", "ok", family.title) for family in families]
    broken = registry.plugins().broken
    rows += [(f"family {name}", "", "broken", f"{reason}; {UPDATE}") for name, reason in broken]
    others = plugin_rules()
    rows += [
        (f"rule {rule.code}", "", "ok", f"{rule.title} (package {name})") for rule, name in others.packages.values()
    ]
    rows += [(f"rules {name}", "", "broken", f"{reason}; {UPDATE}") for name, reason in others.broken]
    columns = ("what", "version", "state", "remark")
    if args.json:
        print_json("lanescope.doctor/1", rows=[dict(zip(columns, row, strict=True)) for row in rows])
    else:
        print_table(args, columns, rows)
    return 1 if any(state in ("missing", "broken") for _, _, state, _ in rows) else 0


def _print_limits(args: argparse.Namespace) -> int:
    """Print what a capture cannot prove, and what to record differently."""
    from lanescope.analysis.limits import Unproven, unproven
    from lanescope.pipeline.observers import Overview

    overview = Overview()
    with opened(args.input, args) as source:
        passed(source, args.input, observers=[overview])
    found = unproven(overview.result())
    if args.json:
        print_json("lanescope.doctor/1", limits=[each._asdict() for each in found])
        return 0
    if args.csv:
        print_table(args, Unproven._fields, found)
        return 0
    for each in found:
        print_wrapped(args, f"{each.family} {each.name}: {each.where}")
        print_wrapped(args, f"  cannot prove: {each.cannot}", "    ")
        print_wrapped(args, f"  instead: {each.instead}", "    ")
    if not found:
        echo("No known limits.")
    return 0


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
