"""Answers as services of continuous integration show them: annotations of GitHub Actions, Markdown for summaries."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lanescope.cli.console import warn
from lanescope.cli.findings_output import hidden_by_rule, limit_per_rule
from lanescope.view.ci import github_annotations as github
from lanescope.view.ci.markdown import Document, code, plain, room
from lanescope.view.formatting import escape, format_count, format_duration
from lanescope.view.tables.cells import cell, headline
from lanescope.view.tables.columns import Col

if TYPE_CHECKING:
    from lanescope import ColumnSpec, TableSpec, Trace
    from lanescope.analysis.check import Finding
    from lanescope.analysis.compare.comparison import Comparison

_SEVERITIES = ("error", "warning", "notice")
#: Groups of a summary in Markdown where the command line does not say how many.
_GROUPS = 50
#: Groups of a comparison that are listed even where fewer differ.
_COMPARED = 20


def print_findings(args: argparse.Namespace, findings: Sequence[Finding], rules: int, last: Trace) -> None:
    """Print the findings of a check.

    Args:
        args: the command line.
        findings: the findings.
        rules: number of rules that were applied.
        last: the trace, or the last batch of it.
    """
    if args.format == "github":
        for line in github.lines(findings, args.input, is_all=args.all):
            print(line)
        return
    document = _document("check", args.input, last)
    if document is None:
        return
    applied = format_count(rules, "rule")
    if not findings:
        document.block(f"All checks passed ({applied}).")
        _print(document)
        return
    counts = Counter(finding.severity for finding in findings)
    listed = ", ".join(format_count(counts[severity], severity) for severity in _SEVERITIES if counts[severity])
    document.block(f"{format_count(len(findings), 'finding')}: {listed} ({applied}).")
    shown = findings if args.all else limit_per_rule(findings)
    unit = last.time.time_unit
    document.table(
        ("severity", "rule", "location", f"first at, {unit}", "count", "affected", "detail"),
        (_finding_cells(finding) for finding in shown),
        numbers=(3, 4, 5),
    )
    hidden = hidden_by_rule(findings, shown)
    for rule, help in dict.fromkeys((finding.code, finding.help) for finding in findings):
        more = f" {format_count(hidden[rule], 'more location')} (`--all` lists them)." if hidden[rule] else ""
        document.block(f"**{plain(rule)}**: {plain(help)}{more}")
    _print(document)


def _finding_cells(finding: Finding) -> list[str]:
    place = finding.location
    affected = finding.affected_fraction
    return [
        finding.severity,
        code(finding.code),
        code(place.track or place.input),
        "" if place.ts is None else f"{place.ts:,}",
        f"{finding.count:,}",
        "" if affected is None else _share(affected),
        plain("; ".join(filter(None, (finding.title, finding.detail)))),
    ]


def print_sums(
    args: argparse.Namespace,
    spec: TableSpec,
    rows: Sequence[Mapping[str, Any]],
    trace: Trace | None,
    remarks: Sequence[str] = (),
) -> None:
    """Print the sums of a summary.

    Args:
        args: the command line.
        spec: declaration of the table.
        rows: its rows.
        trace: the trace, or the last batch of it; None: there is none, and times are in ns.
        remarks: sentences that say what the table means.
    """
    unit = "ns" if trace is None else trace.time.time_unit
    columns = [column for column in spec.columns if column.name != "id"]
    # A column without any value takes the room of one that has some.
    columns = [column for column in columns if any(row[column.name] not in (None, "", 0) for row in rows)] or columns
    names = [column.name for column in columns]
    shown = rows[: args.limit or _GROUPS]
    if args.format == "github":
        texts = [[_text(row[column.name], column, unit) for column in columns] for row in shown]
        title = f"lanescope summary --by {args.by}"
        print(github.table_line(title, names, texts, len(rows), args.input))
        return
    document = _document("summary", args.input, trace)
    if document is None:
        return
    document.block(f"By {plain(args.by)}, times in {unit} where they have no unit.")
    numbers = [place for place, column in enumerate(columns) if column.type not in ("text", "utf8")]
    document.table(
        names,
        ([_cell(row[column.name], column, unit) for column in columns] for row in shown),
        numbers=numbers,
    )
    if len(rows) > len(shown):
        document.block(f"{format_count(len(rows) - len(shown), 'more row')} (`--limit` sets how many are listed).")
    for remark in remarks:
        document.block(plain(remark))
    _print(document)


def print_comparison(args: argparse.Namespace, found: Comparison, failures: Sequence[str]) -> None:
    """Print a comparison of two sides of runs.

    Args:
        args: the command line.
        found: the comparison.
        failures: what ``--fail-if`` found, a line each.
    """
    from lanescope.view.comparison import text

    artifact = found.runs[1][0]
    if args.format == "github":
        entries = [("error", "failed", "lanescope diff: failed", line) for line in failures]
        entries += [
            ("warning", one.kind, f"lanescope diff: different {one.kind}", f"{one.name}: {one.detail}")
            for one in found.conditions
        ]
        for group in found.named:
            effect = group.effects[args.metric]
            change = ", ".join(filter(None, (text.percent(effect.change), text.interval(effect))))
            line = f"{', '.join(group.key)}: {group.verdict}{f' ({args.metric} {change})' if change else ''}"
            entries.append(("notice", group.verdict, f"lanescope diff: {group.verdict}", line))
        for line in github.limited(entries, artifact, "Run 'lanescope diff' without --format to list all."):
            print(line)
        return
    document = _document("diff", artifact, None)
    if document is None:
        return
    for line in failures:
        document.block(f"**Failed**: {plain(line)}.")
    document.block(f"{plain(text.heading(found))}.")
    if found.conditions:
        document.block("Recorded under different conditions:")
        document.table(text.CONDITION_COLUMNS, ([code(each) for each in row] for row in text.condition_rows(found)))
    shown = found.groups[: args.limit or max(len(found.named), _COMPARED)]
    columns = text.group_columns(found, args.metric)
    rows = text.group_rows(found, shown, args.metric)
    document.table(
        [headline(column) for column in columns],
        ([_value(each, column) for each, column in zip(row, columns, strict=True)] for row in rows),
    )
    more = len(found.groups) - len(shown)
    if more:
        document.block(f"{format_count(more, 'more group')} (`--limit` sets how many are listed).")
    for line in text.remarks(found):
        document.block(plain(line))
    _print(document)


def _value(value: Any, column: Col) -> str:
    if value is None:
        return ""
    return code(value) if isinstance(value, str) else plain(cell(value, column))


def _document(verb: str, path: str, trace: Trace | None) -> Document | None:
    """Return a document with its heading and what was lost; None where the step of the workflow takes no more."""
    if room() <= 0:
        warn("the summary of this step is full (1 MiB): nothing is added; write it in another step")
        return None
    document = Document()
    document.block(f"## lanescope {verb}: {code(path)}")
    if trace is not None:
        from lanescope.cli.context import listed
        from lanescope.pipeline import diagnostics

        lost, wrong = diagnostics.described_losses(trace), diagnostics.described_contradictions(trace)
        for what, counts in (("Data loss", lost), ("Inconsistent data", wrong)):
            if counts:
                document.block(f"**{what}**: {plain(listed(counts))}.")
    return document


def _print(document: Document) -> None:
    print(document.text(), end="")


def _cell(value: Any, column: ColumnSpec, unit: str) -> str:
    """Return a value as a cell of Markdown."""
    text = _text(value, column, unit)
    return code(text) if isinstance(value, str) else plain(text)


def _text(value: Any, column: ColumnSpec, unit: str) -> str:
    """Return a value as text."""
    if value is None:
        return ""
    if isinstance(value, str):
        return escape(value)
    if column.unit == "ns" == unit and isinstance(value, int):
        return format_duration(value)
    if column.unit == "1" and isinstance(value, float):
        return _share(value)
    return "" if value is None else cell(value, Col(column.name, kind="count"))


def _share(share: float) -> str:
    return "<0.1%" if 0 < share < 0.001 else f"{share:.1%}"
