"""Find lost data and impossible timings: overlapping slices on serial lanes, effects before their causes."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import lanescope
from lanescope.cli.arguments import add_input
from lanescope.cli.console import echo, print_json
from lanescope.cli.context import close
from lanescope.cli.reading import opened, passed
from lanescope.families.family import Family
from lanescope.view.formatting import escape, format_count
from lanescope.view.table_output import is_terminal, show

if TYPE_CHECKING:
    from lanescope.analysis.check import Finding, Rule

EXAMPLES = ("lanescope check capture.bin", "lanescope check --explain LS101")

_LEVELS = ("notice", "warning", "error")
#: Findings of one rule listed on a terminal.
_PLACES = 8


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    if any(argument.split("=")[0] == "--explain" for argument in arguments):
        parser.add_argument("--explain", metavar="CODE", help="describe a rule and exit")
        return
    add_input(parser, families)
    parser.add_argument("--select", metavar="CODES", default="", help="rules or prefixes to apply, e.g. LS101,LS2")
    parser.add_argument("--ignore", metavar="CODES", default="", help="rules or prefixes to skip")
    parser.add_argument(
        "--fail-on",
        choices=(*_LEVELS, "never"),
        default="warning",
        help="lowest severity that sets exit status 1 (default: warning)",
    )
    parser.add_argument("--explain", metavar="CODE", help="describe a rule and exit")
    parser.add_argument("--all", action="store_true", help="list every location, also on a terminal")
    parser.add_argument("--json", action="store_true", help="one JSON document, schema lanescope.check/1")
    parser.add_argument("--sarif", action="store_true", help="one SARIF 2.1.0 document, for code scanners")


def run(args: argparse.Namespace) -> int:
    """Print the findings."""
    from lanescope.analysis import check

    if args.explain:
        for rule in check.rules([args.explain]):
            print(f"{rule.code} {rule.title} ({rule.severity})\n\n{rule.description}\n\nhelp: {rule.help}\n")
        return 0
    select, ignore = (list(filter(None, codes.split(","))) for codes in (args.select, args.ignore))
    checker = check.StreamingChecker(select, ignore)
    totals = check.StreamingTotals(checker) if args.json else None
    with opened(args.input, args) as source:
        report = passed(source, args.input, observers=[checker] if totals is None else [checker, totals])
    findings = checker.result()
    if totals is not None:
        everything, sound = totals.result(findings)
        print_json(
            "lanescope.check/1",
            findings=[finding.to_dict() for finding in findings],
            totals={"all": asdict(everything), "without_affected": asdict(sound)},
            rules=[rule.code for rule in checker.rules],
        )
    else:
        _print(args, findings, checker.rules)
    if not findings:
        echo(f"All checks passed ({format_count(len(checker.rules), 'rule')}).")
    is_failure = any(
        args.fail_on != "never" and _LEVELS.index(finding.severity) >= _LEVELS.index(args.fail_on)
        for finding in findings
    )
    return close(report.last, args, 1 if is_failure else 0)


def _print(args: argparse.Namespace, findings: Sequence[Finding], rules: Sequence[Rule]) -> None:
    """Print the findings as SARIF, or as a table for people and pipes."""
    if args.sarif:
        import json

        from lanescope.io import sarif

        print(json.dumps(sarif.document(findings, rules, args.input, version=lanescope.__version__), indent=2))
    elif findings:
        shown = limit_per_rule(findings) if is_terminal(sys.stdout) and not args.all else findings
        columns = ("severity", "code", "location", "ts", "count", "affected_fraction", "title", "detail")
        show(
            columns,
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
        hidden = Counter(finding.code for finding in findings) - Counter(finding.code for finding in shown)
        for code, help in dict.fromkeys((finding.code, finding.help) for finding in findings):
            if hidden[code]:
                echo(f"{code}: ... {hidden[code]} more locations (use --all or --json)")
            echo(f"{code} help: {escape(help)}")


def limit_per_rule(findings: Sequence[Finding]) -> list[Finding]:
    """Return the first few findings of each rule, in order: a clock error affects every lane."""
    seen: Counter[str] = Counter()
    shown = []
    for finding in findings:
        seen[finding.code] += 1
        if seen[finding.code] <= _PLACES:
            shown.append(finding)
    return shown
