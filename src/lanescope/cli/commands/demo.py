"""Simulate a capture of every device family; decode, check, plot and convert it."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lanescope.cli.commands import sim
from lanescope.cli.console import format_row_counts, is_stdout
from lanescope.cli.context import listed
from lanescope.errors import InputError, UsageError
from lanescope.families import registry
from lanescope.families.family import Family
from lanescope.families.options import resolve_options
from lanescope.pipeline import session
from lanescope.pipeline.diagnostics import described_contradictions, described_losses
from lanescope.pipeline.observers import Counts
from lanescope.view.formatting import escape, format_bytes, format_count, format_duration
from lanescope.view.table_output import is_terminal, show
from lanescope.view.tables.columns import declared

if TYPE_CHECKING:
    from lanescope import Trace

WINDOWLESS = "it makes whole captures: what reads them takes one"
EXAMPLES = ("lanescope demo", "lanescope demo -o my-demo")


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    parser.add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        default="lanescope-demo",
        help="output directory (default: ./lanescope-demo)",
    )
    parser.add_argument("--corpus", metavar="DIR", help="directory with captures to use instead of simulated ones")


def run(args: argparse.Namespace) -> int:
    """Show it."""
    if is_stdout(args.output):
        raise UsageError("cannot write several files to standard output", hint="use -o DIR")
    folder = Path(args.output)
    folder.mkdir(parents=True, exist_ok=True)
    shown = 0
    for name, path in _corpus(Path(args.corpus)) if args.corpus else _simulated(folder):
        _show(path, folder / f"{name}.pftrace")
        shown += 1
    if not shown:
        raise InputError(f"{args.corpus}: no supported captures found", hint="use another directory")
    print(f"Drag a .pftrace file from {escape(str(folder))} to https://ui.perfetto.dev, or see a capture offline:")
    print(f"  lanescope view {escape(shlex.quote(str(path)))}")
    return 0


def _simulated(folder: Path) -> Iterator[tuple[str, Path]]:
    """Simulate a capture of each family; yield what to call it, and its main file."""
    for family in registry.builtin():
        if family.simulator is None:
            continue
        demo = dict(family.simulator.demo)
        options = resolve_options(family.sim_options, demo, what=f"the simulator of {family.name}")
        simulation = family.simulate(options, 1)
        home = folder / family.name
        home.mkdir(exist_ok=True)
        sim.write(simulation, home, force=True)
        yield family.name, home / next(iter(simulation.files))


def _corpus(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield every file below a directory that a family detects."""
    if not folder.is_dir():
        raise UsageError(
            f"cannot open {str(folder)!r}: not a directory", hint="use a directory of captures for --corpus"
        )
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        try:
            candidates = session.detect(path)
        except InputError:
            continue
        if candidates and candidates[0].is_recognized:
            yield "-".join(path.relative_to(folder).with_suffix("").parts), path


def accounted(trace: Trace) -> str:
    """Return the byte accounting of a capture in words, and the losses on the device."""
    rows = [row for row in trace.accounting.rows() if row["scope"] == "input"]
    total, decoded, padding, lost = (
        sum(row[name] for row in rows if row["layer"] == 0) for name in ("total", "decoded", "padding", "lost")
    )
    text = f"{format_count(total, 'byte')}: {decoded:,} decoded, {padding:,} padding, {lost:,} lost"
    missing = described_losses(trace) | described_contradictions(trace)
    missing.pop("bytes lost", None)
    if missing:
        text += "; missing or inconsistent data: " + escape(listed(missing))
    return text


def _show(path: Path, out: Path) -> None:
    from lanescope.analysis import check
    from lanescope.analysis.summary import summary
    from lanescope.io import perfetto
    from lanescope.view.lane_strip import lane_strip

    trace = session.open(path)
    findings = check.run(trace)
    report = perfetto.write(trace, out, findings=check.to_table(findings))
    counts = Counts()
    counts.add(trace)
    counted = counts.result()
    inputs = next(trace.inputs.rows())
    length = "no time"
    if counted.begin is not None and counted.end is not None:
        length = format_duration(counted.end - counted.begin, trace.time.time_unit)
    print(
        f"== {escape(str(path))}: {inputs['family']}, {inputs['format']}: {format_row_counts(counted.rows)} in {length}"
    )
    print()
    serious = [finding for finding in findings if finding.severity != "notice"]
    print(lane_strip(trace, findings=serious, rows=12, color=is_terminal(sys.stdout)))
    print()
    table = summary(trace)
    names = ("name", "count", "total", "median", "max", "share")
    columns = [declared(spec) for spec in table.spec.columns if spec.name in names]
    show(columns, ([row[name] for name in names] for row in list(table.rows())[:6]))
    print()
    print(f"accounting: {accounted(trace)}")
    if findings:
        # One line per rule: count, and number of lanes.
        found: dict[tuple[str, str, str], list[int]] = {}
        for finding in findings:
            found.setdefault((finding.severity, finding.code, finding.title), []).append(finding.count)
        rows = [(*what, sum(counts), len(counts)) for what, counts in found.items()]
        show(("severity", "code", "what", "count", "locations"), rows, title="check")
        print(f"  lanescope check {escape(shlex.quote(str(path)))}")
    else:
        print(f"check: all checks passed ({format_count(len(check.RULES), 'rule')})")
    print(f"wrote {escape(str(out))} ({format_bytes(report.bytes)})")
    print()
