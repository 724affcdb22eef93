"""Run the benchmarks: ``python benchmarks/run.py [--only NAME] [--check] [--json]``.

Each ``bench_NAME.py`` beside this file has ``run() -> list[Row]``. ``--check`` exits 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from measure import Row

HERE = Path(__file__).parent


def names() -> list[str]:
    """Return the names of all benchmarks."""
    return sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))


def figure(value: float | None, unit: str) -> str:
    """Return a figure with three digits that count."""
    if value is None:
        return "-"
    return f"{value:,.0f} {unit}".strip() if abs(value) >= 1000 else f"{value:.3g} {unit}".strip()


def show(rows: list[tuple[str, Row]]) -> None:
    """Print the table."""
    lines = [("benchmark", "measured", "goal", "verdict", "")]
    for name, row in rows:
        sign = "≥ " if row.higher_is_better else "≤ "
        goal = "" if row.goal is None else sign + figure(row.goal, row.unit)
        lines.append((f"{name}: {row.name}", figure(row.value, row.unit), goal, row.verdict, row.note))
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line[:4], widths, strict=True)), line[4], sep="  ")


def main() -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description="Run the benchmarks.")
    parser.add_argument("--only", metavar="NAME", action="append", choices=names(), help=", ".join(names()))
    parser.add_argument("--check", action="store_true", help="exit 1 when a goal is missed")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    args = parser.parse_args()
    rows = []
    for name in args.only or names():
        print(f"{name} ...", file=sys.stderr)
        rows += [(name, row) for row in import_module(f"bench_{name}").run()]
    if args.json:
        machine = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
        listed = [{"benchmark": name, **dataclasses.asdict(row), "verdict": row.verdict} for name, row in rows]
        print(json.dumps({"version": 1, **machine, "rows": listed}, indent=1))
    else:
        show(rows)
    missed = [f"{name}: {row.name}" for name, row in rows if row.fails]
    if args.check and missed:
        print("goals missed: " + ", ".join(missed), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
