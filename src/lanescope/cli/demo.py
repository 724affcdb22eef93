"""See all of it: simulate captures of every device family, decode, check, draw and convert them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from lanescope import devices, session
from lanescope.cli import sim
from lanescope.cli.common import losses, rows_text, span_text
from lanescope.devices import Family
from lanescope.errors import InputError, UsageError
from lanescope.view.tables import is_terminal, show
from lanescope.view.text import count_text, escape, time_text

EXAMPLES = ("lanescope demo", "lanescope demo -o my-demo")


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    parser.add_argument("-o", "--output", metavar="FOLDER", default="lanescope-demo", help="default: ./lanescope-demo")
    parser.add_argument("--corpus", metavar="DIR", help="show the captures in this folder instead of simulated ones")


def run(args: argparse.Namespace) -> int:
    """Show it."""
    folder = Path(args.output)
    folder.mkdir(parents=True, exist_ok=True)
    shown = 0
    for path, options in _corpus(Path(args.corpus)) if args.corpus else _simulated(folder):
        _show(path, options, folder / f"{path.name.split('.')[0]}.pftrace")
        shown += 1
    if not shown:
        raise InputError(f"{args.corpus}: no capture of any known device family in it", hint="name another folder")
    print(f"Open the .pftrace files in {escape(str(folder))} at https://ui.perfetto.dev (drag and drop),")
    print("or offline with `lanescope view FILE`.")
    return 0


def _simulated(folder: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    for family in devices.in_tree():
        options = devices.settle(family.sim_options, dict(family.demo), what=f"the simulator of {family.name}")
        simulation = family.simulate(options, 1)
        name = next(iter(simulation.files))
        if len(simulation.files) == 1:
            path = folder / f"{family.name}{Path(name).suffix}"
            sim.write(simulation, path, force=True)
        else:
            path = folder / family.name / name
            sim.write(simulation, path.parent, force=True)
        yield path, {}


def _corpus(folder: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder", hint="--corpus names a folder of captures")
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        try:
            candidates = session.probe(path)
        except InputError:
            continue
        if candidates and candidates[0].score >= 50:
            yield path, {}


def _show(path: Path, options: dict[str, str], out: Path) -> None:
    from lanescope.analysis import check
    from lanescope.analysis.summary import summary
    from lanescope.exchange import perfetto
    from lanescope.view.terminal import lane_strip

    trace = session.open(path, **options)
    findings = check.run(trace)
    report = perfetto.write(trace, out, findings=check.to_table(findings))
    span = span_text(trace)
    inputs = next(trace.inputs.rows())
    length = time_text(span[1] - span[0], trace.time.time_unit) if span else "no time"
    print(f"== {escape(str(path))}: {inputs['family']}, {inputs['format']}: {rows_text(trace)} in {length}")
    print()
    print(lane_strip(trace, findings=findings, color=is_terminal(sys.stdout)))
    print()
    table = list(summary(trace).rows())[:6]
    columns = ("name", "count", "total", "median", "max", "share")
    show(columns, ([row[name] for name in columns] for row in table), title=f"times in {trace.time.time_unit}")
    lost = sum(row["lost"] for row in trace.accounting.rows() if row["scope"] == "input")
    total = sum(row["total"] for row in trace.accounting.rows() if row["layer"] == 0 and row["scope"] == "input")
    print()
    print(f"accounting: {total} bytes, all of them decoded, filler or lost ({count_text(lost, 'unit')} lost)")
    if findings or losses(trace):
        shown = ("severity", "code", "place", "count", "title")
        show(shown, ([f.severity, f.code, f.place.track or f.place.input, f.count, f.title] for f in findings[:6]))
        if len(findings) > 6:
            print(f"... and {len(findings) - 6} more: lanescope check {escape(str(path))}")
    else:
        print(f"check: {count_text(len(check.RULES), 'rule')}, no findings")
    print(f"written: {escape(str(out))}, {report.bytes} bytes")
    print()
