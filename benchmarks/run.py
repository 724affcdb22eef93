"""Run the benchmarks: ``python benchmarks/run.py [--quick] [--only NAME] [--check] [--json] [--keep]``.

First the table of all families (``table.py``), then the figures that have goals: each ``bench_NAME.py`` beside this
file has ``run() -> list[Row]``. What was measured is left in ``out/bench`` as JSON and as Markdown.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import shutil
import sys
import time
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from measure import Row

HERE = Path(__file__).resolve().parent
OUT = HERE.parent / "out" / "bench"
#: Version of the JSON.
SCHEMA = 2
TABLE = "families"
#: What a quick run measures: what takes seconds.
QUICK = (TABLE, "aie", "perfetto")


def names() -> list[str]:
    """Return the names of all benchmarks."""
    return [TABLE, *sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))]


def figure(value: float | None, unit: str) -> str:
    """Return a figure with three digits that count."""
    if value is None:
        return "-"
    return f"{value:,.0f} {unit}".strip() if abs(value) >= 1000 else f"{value:.3g} {unit}".strip()


def machine() -> dict[str, Any]:
    """Return what figures depend on, and nothing that names a machine or its owner."""
    model = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    memory = [int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")]
    packages = ("numpy", "duckdb", "pyarrow", "protobuf", "perfetto")
    return {
        "processor": model[0] if model else platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory[0] / 2**20) if memory else None,
        "system": platform.system(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in ("lanescope", *packages)},
    }


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def goals(rows: list[tuple[str, Row]]) -> list[list[str]]:
    """Return the lines of the table of figures with goals, the heading first."""
    lines = [["benchmark", "measured", "goal", "verdict", ""]]
    for name, row in rows:
        sign = "≥ " if row.higher_is_better else "≤ "
        goal = "" if row.goal is None else sign + figure(row.goal, row.unit)
        lines.append([f"{name}: {row.name}", figure(row.value, row.unit), goal, row.verdict, row.note])
    return lines


def aligned(lines: list[list[str]]) -> str:
    """Return lines with their columns below each other, the last as wide as it likes."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[-1]]).rstrip()
        for line in lines
    )


def page(report: dict[str, Any], table_text: str, legend: list[str], lines: list[list[str]]) -> str:
    """Return what was measured as Markdown."""
    on = report["machine"]
    parts = [
        "# Benchmarks",
        "Made by `make bench`. Compare ratios within one run: absolute figures are those of one machine.",
        f"{on['processor']}, {on['cores']} cores, {on['memory_gib']} GiB, Python {on['python']}; "
        + ", ".join(f"{name} {number}" for name, number in on["packages"].items()),
    ]
    if table_text:
        parts += ["## All families", table_text, "\n".join(f"- {line}" for line in legend)]
    if len(lines) > 1:
        rows = [lines[0], ["---"] * 5, *lines[1:]]
        parts += ["## Goals", "\n".join("| " + " | ".join(line) + " |" for line in rows)]
    return "\n\n".join(parts) + "\n"


def arguments() -> argparse.Namespace:
    """Return what is asked for."""
    parser = argparse.ArgumentParser(description="Run the benchmarks.")
    parser.add_argument("--only", metavar="NAME", action="append", choices=names(), help=", ".join(names()))
    parser.add_argument("--family", metavar="NAME", action="append", help="rows of the table: these families only")
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument("--quick", dest="extent", action="store_const", const="quick", default="usual",
                        help=f"small sizes, and only {', '.join(QUICK)}")  # fmt: skip
    extent.add_argument(
        "--full", dest="extent", action="store_const", const="full", help="a million slices of all families"
    )
    parser.add_argument("--check", action="store_true", help="exit 1 when a goal is missed")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--keep", action="store_true", help="keep the results beside the benchmarks, to be committed")
    return parser.parse_args()


def main() -> int:
    """Run what is asked for."""
    import table

    args = arguments()
    chosen = args.only or (QUICK if args.extent == "quick" else names())
    begin = time.monotonic()

    def say(what: str) -> None:
        print(f"{time.monotonic() - begin:4.0f} s  {what} ...", file=sys.stderr, flush=True)

    measured: list[dict[str, Any]] = []
    if TABLE in chosen:
        measured = table.measure(args.family or table.FAMILIES, extent=args.extent, say=say)
        if not args.json:
            print(table.text_table(measured), *table.legend(measured), "", sep="\n", flush=True)
    rows: list[tuple[str, Row]] = []
    for name in chosen:
        if name != TABLE:
            say(name)
            rows += [(name, row) for row in import_module(f"bench_{name}").run()]
    report = {
        "schema": SCHEMA,
        "machine": machine(),
        "extent": args.extent,
        "families": measured,
        "goals": [{"benchmark": name, **dataclasses.asdict(row), "verdict": row.verdict} for name, row in rows],
    }
    lines = goals(rows)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "results.json").write_text(json.dumps(report, indent=1, sort_keys=True) + "\n")
    text = page(report, table.markdown_table(measured) if measured else "", table.legend(measured), lines)
    (OUT / "results.md").write_text(text)
    if args.keep:
        for name in ("results.json", "results.md"):
            shutil.copy(OUT / name, HERE / name)
    if args.json:
        print(json.dumps(report, indent=1, sort_keys=True))
    elif rows:
        print(aligned(lines))
    missed = [f"{name}: {row.name}" for name, row in rows if row.fails]
    if args.check and missed:
        print("goals missed: " + ", ".join(missed), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
