"""What ``info``, ``summary`` and ``check`` print of datasets."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lanescope.cli.arguments import parse_window
from lanescope.cli.console import echo, print_json
from lanescope.cli.dataset_input import close, listed_ranks, selected, state_window, unit_of, window_document
from lanescope.cli.paging import part
from lanescope.cli.tables import print_table
from lanescope.errors import UsageError
from lanescope.view.formatting import escape, format_bytes, format_count
from lanescope.view.tables.columns import column, columns_of

if TYPE_CHECKING:
    from lanescope import Table
    from lanescope.analysis.check import Finding
    from lanescope.io.dataset.records import CaptureRecord

#: Columns of the list of runs, and what their values are.
_RUNS = {
    "run": "text", "captures": "count", "ranks": "count", "first_rank": "plain", "last_rank": "plain",
    "families": "text", "slices": "count", "lost": "count", "bytes": "bytes",
}  # fmt: skip
#: Columns of the list of findings.
_FINDINGS = {
    "code": "text", "severity": "text", "title": "text", "captures": "count", "count": "count", "ranks": "text",
    "example": "text",
}  # fmt: skip


def info(args: argparse.Namespace) -> int:
    """Print the runs of a dataset, and what could not be ingested."""
    catalog, records = selected(args)
    by_run: dict[str, list[CaptureRecord]] = {}
    for record in records:
        by_run.setdefault(record.run, []).append(record)
    runs, page = part(args, "info", [_run(name, found) for name, found in by_run.items()], of="runs")
    accounting: Counter[tuple[str, str]] = Counter()
    for record in records:
        for row in record.accounting:
            for name in ("total", "decoded", "padding", "lost"):
                accounting[row["unit"], name] += row[name]
    units = sorted({unit for unit, _ in accounting})
    summed = [
        {"unit": unit, **{name: accounting[unit, name] for name in ("total", "decoded", "padding", "lost")}}
        for unit in units
    ]
    failed = [
        {"path": each.path, "reason": each.reason, "hint": each.hint, "exit_status": each.exit_status}
        for each in catalog.failed
    ]
    if args.json:
        print_json(
            "lanescope.dataset.info/1",
            dataset=args.input,
            **page.described(),
            captures=len(records),
            runs=runs,
            accounting=summed,
            failed=failed,
        )
        return close(args, records)
    print_table(args, [column(*each) for each in _RUNS.items()], [[row[name] for name in _RUNS] for row in runs])
    page.state()
    if failed and not args.csv:
        print()
        names = ("path", "reason")
        print_table(args, [column(name, "text") for name in names], [[row[name] for name in names] for row in failed])
    size = format_bytes(sum(row["bytes"] for row in runs))
    told = f"{format_count(len(records), 'capture')}, {size}, {len(failed):,} failed"
    echo(f"{escape(args.input)}: {told}; query with 'lanescope sql'")
    return close(args, records)


def _run(name: str, records: Sequence[CaptureRecord]) -> dict[str, Any]:
    ranks = sorted({record.rank for record in records if record.rank is not None})
    return {
        "run": name,
        "captures": len(records),
        "ranks": len(ranks),
        "first_rank": ranks[0] if ranks else None,
        "last_rank": ranks[-1] if ranks else None,
        "families": ", ".join(sorted({record.family for record in records})),
        "slices": sum(record.rows.get("slices", 0) for record in records),
        "lost": sum(sum(record.losses.values()) for record in records),
        "bytes": sum(file.bytes for record in records for file in record.files),
    }


def summary(args: argparse.Namespace) -> int:
    """Print sums over all captures, or the ranks that take longer than the others."""
    from lanescope.analysis.groupings import SLICES
    from lanescope.pipeline.dataset import summaries
    from lanescope.pipeline.dataset.capture_parts import CaptureParts

    groups = (*SLICES, *summaries.OF_DATASETS, "stragglers", "collectives")
    if args.by not in groups or args.follow or args.format:
        raise UsageError(f"a dataset has no summary by {args.by}", hint=f"use --by with one of {', '.join(groups)}")
    window = parse_window(args)
    if window is not None and args.by == "collectives":
        raise UsageError(
            "summary --by collectives takes no window: whole collectives are compared", hint="use --runs or --ranks"
        )
    catalog, records = selected(args, takes_window=True)
    unit, parts = unit_of(records), CaptureParts(catalog, window)
    if args.by == "stragglers":
        table = summaries.stragglers(parts, records, unit)
        if not len(table):
            echo(f"no run with {summaries.LEAST_RANKS} ranks: stragglers cannot be told")
    elif args.by == "collectives":
        table = summaries.collectives(catalog, records, unit)
        if not len(table):
            echo("no run with whole collectives of known ranks: who is waited for cannot be told")
    else:
        table = summaries.summary(parts, records, args.by, unit)
    _print_rows(args, table, unit, records)
    state_window(args, records, parts.refused)
    return close(args, records)


def _print_rows(args: argparse.Namespace, table: Table, unit: str, records: Sequence[CaptureRecord]) -> None:
    rows, page = part(args, "summary", list(table.rows()))
    columns = [each for each in table.spec.columns if each.name != "id"]
    if args.json:
        key = {each.name: f"{each.name}_{unit}" if each.unit == unit else each.name for each in columns}
        listed = [{key[name]: row[name] for name in key} for row in rows]
        told = window_document(args) | page.described()
        print_json("lanescope.dataset.summary/1", by=args.by, unit=unit, **told, rows=listed)
        return
    values = [[row[each.name] for each in columns] for row in rows]
    about = "" if args.csv else f"{args.input}: {format_count(len(records), 'capture')}"
    print_table(args, columns_of(columns), values, about=about)
    page.state()


def check(args: argparse.Namespace) -> int:
    """Print the findings of all captures, added up by rule."""
    from lanescope.cli.commands.check import settings_of
    from lanescope.cli.settings import FAIL_ON
    from lanescope.pipeline.dataset.capture_parts import CaptureParts

    if args.show is not None or args.sarif or args.format:
        raise UsageError("a dataset takes no --show, --sarif or --format", hint="use --json, or check one capture")
    from lanescope.analysis import check as checks

    settings, limits = settings_of(args)
    catalog, records = selected(args, takes_window=True)
    parts = CaptureParts(catalog, parse_window(args))
    found: list[tuple[CaptureRecord, Finding]] = []
    for record, trace in parts.each(records):
        findings = checks.run(trace, select=settings.select, ignore=settings.ignore, thresholds=limits)
        found += [(record, finding) for finding in findings]
        del trace
    rows = _by_rule(found)
    if args.json:
        listed, page = part(args, "check", found, of="findings")
        print_json(
            "lanescope.dataset.check/1",
            dataset=args.input,
            **window_document(args),
            **page.described(),
            captures=len(records),
            rules=rows,
            findings=[_described(record, finding) for record, finding in listed],
        )
    elif rows or args.csv:
        columns = [column(*each) for each in _FINDINGS.items()]
        print_table(args, columns, [[row[name] for name in _FINDINGS] for row in rows])
    if not found:
        echo(f"All checks passed ({format_count(len(records), 'capture')}).")
    state_window(args, records, parts.refused)
    fails = FAIL_ON[FAIL_ON.index(settings.fail_on) : -1]
    return close(args, records, int(any(finding.severity in fails for _, finding in found)))


def _by_rule(found: Sequence[tuple[CaptureRecord, Finding]]) -> list[dict[str, Any]]:
    """Return the findings added up by rule, in the order of their severity."""
    by_rule: dict[tuple[str, str, str], list[tuple[CaptureRecord, Finding]]] = {}
    for record, finding in found:
        by_rule.setdefault((finding.code, finding.severity, finding.title), []).append((record, finding))
    order = ("error", "warning", "notice")
    rows = []
    for code, severity, title in sorted(by_rule, key=lambda key: (order.index(key[1]), key)):
        mine = by_rule[code, severity, title]
        ranks = sorted({record.rank for record, _ in mine if record.rank is not None})
        rows.append({
            "code": code,
            "severity": severity,
            "title": title,
            "captures": len({record.capture for record, _ in mine}),
            "count": sum(finding.count for _, finding in mine),
            "ranks": listed_ranks(ranks),
            "example": mine[0][0].path,
        })  # fmt: skip
    return rows


def _described(record: CaptureRecord, finding: Finding) -> dict[str, Any]:
    place = {"capture": record.capture, "run": record.run, "rank": record.rank, "path": record.path}
    return {**place, "finding": finding.to_dict()}
