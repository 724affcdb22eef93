"""Findings as text: a table for people and pipes, their evidence rows, SARIF, annotations of GitHub Actions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import lanescope
from lanescope.cli.console import echo
from lanescope.view.formatting import escape, format_count, format_duration
from lanescope.view.table_output import show

if TYPE_CHECKING:
    from lanescope.analysis.check import EvidenceRow, Finding, Rule, Totals
    from lanescope.analysis.check.impact import Impact

#: Findings of one rule listed on a terminal, and at a pull request.
_PLACES = 8

_COLUMNS = ("severity", "code", "location", "ts", "count", "affected_fraction", "title", "detail")


def print_findings(
    findings: Sequence[Finding], totals: tuple[Totals, Totals] | None, unit: str, *, is_all: bool
) -> None:
    """Print findings as a table, and on standard error what they do to totals, and the help of their rules.

    Args:
        findings: the findings.
        totals: sums over all slices, and over those that are no evidence; None if they are not known.
        unit: unit of times.
        is_all: print all findings, else the first of each rule.
    """
    shown = findings if is_all else limit_per_rule(findings)
    show(
        _COLUMNS,
        (
            [
                finding.severity,
                finding.code,
                finding.location.track or finding.location.input,
                finding.location.ts,
                finding.count,
                finding.affected_fraction,
                finding.title,
                finding.detail,
            ]
            for finding in shown
        ),
    )
    for finding in shown:
        if finding.impact is not None and finding.impact.is_large:
            echo(_impact_line(finding, finding.impact, unit))
    if totals is not None and len(findings) > 1:
        _print_totals(*totals, unit)
    hidden = _hidden(findings, shown)
    for code, help in dict.fromkeys((finding.code, finding.help) for finding in findings):
        if hidden[code]:
            echo(f"{code}: ... {hidden[code]} more locations (use --all or --json)")
        echo(f"{code} help: {escape(help)}")


def _impact_line(finding: Finding, impact: Impact, unit: str) -> str:
    """Return what the totals are with and without what a finding concerns, in one line."""
    what = f"{finding.code} {escape(finding.location.track or finding.location.input)}"
    if impact.basis == "count":
        return f"{what}: at least {impact.counted_fraction or 0.0:.1%} of what was counted is concerned; lanes unknown"
    total, without, window, left = (
        format_duration(length, unit)
        for length in (impact.total, impact.total_without, impact.window, impact.window_without)
    )
    if impact.basis == "lanes":
        busy = f"{impact.busy_fraction or 0.0:.1%} of the busy time"
        return (
            f"{what}: at most {format_count(impact.lanes, 'lane')} with {busy}; without all slices there "
            f"total {total} -> {without}, window {window} -> {left}"
        )
    line = f"{what}: without these slices total {total} -> {without}"
    if impact.total_clipped is not None:
        line += f" (shortened to the next start: {format_duration(impact.total_clipped, unit)})"
    line += f", window {window} -> {left}"
    return line + ("; the largest names or lanes change order" if impact.changes_order else "")


def _print_totals(everything: Totals, sound: Totals, unit: str) -> None:
    """Print what all findings together do to the sums, if that is worth telling."""
    from lanescope.analysis.plausibility.profile import WORTH_TELLING

    pairs = {"total": (everything.total, sound.total), "covered": (everything.covered, sound.covered)}
    if any(one - other > WORTH_TELLING * one for one, other in pairs.values()):
        parts = [
            f"{name} {format_duration(one, unit)} -> {format_duration(other, unit)}"
            for name, (one, other) in pairs.items()
        ]
        count = format_count(everything.slices - sound.slices, "slice")
        echo(f"all findings: without {count} of their evidence {', '.join(parts)}")


def print_evidence(rows: Sequence[EvidenceRow], findings: Sequence[Finding], codes: Sequence[str]) -> None:
    """Print the evidence rows of the findings of some rules, and how many are not shown."""
    if rows:
        show(type(rows[0])._fields, rows)
    chosen = [finding for finding in findings if finding.code.startswith(tuple(codes))]
    if not chosen:
        echo(f"no findings of {', '.join(map(escape, codes))}")
    more = sum(len(finding.evidence.ids) for finding in chosen) - len(rows)
    if more:
        echo(f"... {format_count(more, 'more row')} (use --all, --json, or the SQL of --json)")


def print_sarif(findings: Sequence[Finding], rules: Sequence[Rule], artifact: str, docs_url: str) -> None:
    """Print a SARIF document."""
    import json

    from lanescope.io import sarif

    document = sarif.document(findings, rules, artifact, version=lanescope.__version__, docs_url=docs_url)
    print(json.dumps(document, indent=2))


def print_annotations(findings: Sequence[Finding], artifact: str, *, is_all: bool) -> None:
    """Print annotations of GitHub Actions: the first of each rule, or all."""
    from lanescope.view import github_annotations as github

    shown = findings if is_all else limit_per_rule(findings)
    for line in github.lines(shown, artifact):
        print(line)
    for code, count in _hidden(findings, shown).items():
        print(github.command("notice", f"{count} more locations (use --all or --json)", title=code))


def limit_per_rule(findings: Sequence[Finding]) -> list[Finding]:
    """Return the first few findings of each rule, in order: a clock error affects every lane."""
    seen: Counter[str] = Counter()
    shown = []
    for finding in findings:
        seen[finding.code] += 1
        if seen[finding.code] <= _PLACES:
            shown.append(finding)
    return shown


def _hidden(findings: Sequence[Finding], shown: Sequence[Finding]) -> Counter[str]:
    """Return how many findings of each rule are not shown."""
    return Counter(finding.code for finding in findings) - Counter(finding.code for finding in shown)
