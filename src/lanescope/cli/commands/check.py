"""Find lost data and impossible timings: overlapping slices on serial lanes, effects before their causes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lanescope.cli.arguments import add_dataset, add_format, add_input, add_window
from lanescope.cli.check_settings import CheckSettings, add_settings, check_settings
from lanescope.cli.console import echo, print_json, warn
from lanescope.cli.context import close, window_of
from lanescope.cli.paging import add_paging, counted_part, is_paged, part
from lanescope.cli.reading import is_dataset, opened, passed
from lanescope.cli.settings import FAIL_ON, Settings
from lanescope.cli.tables import add_formats, print_wrapped
from lanescope.errors import UsageError
from lanescope.families.declaration import UPDATE
from lanescope.families.family import Family
from lanescope.families.registry import Broken
from lanescope.view.formatting import format_count
from lanescope.view.table_output import is_terminal

if TYPE_CHECKING:
    from lanescope import Trace
    from lanescope.analysis.check import EvidenceRow, EvidenceRows, Finding, Rule, Totals

EXAMPLES = ("lanescope check capture.bin --show LS101", "lanescope check --explain LS101")

#: Evidence rows of one finding listed on a terminal.
_ROWS = 20


class _Report(NamedTuple):
    """What a run found.

    Attributes:
        findings: the findings.
        rules: the rules that were applied.
        settings: what was applied, from the file and the command line.
        totals: sums over all slices, and over those that are no evidence; None where they are not printed.
        evidence: the rows that ``--show`` asks for; None without it.
        unit: unit of times.
        window: the window, as JSON documents have it; empty for all of the capture.
    """

    findings: list[Finding]
    rules: Sequence[Rule]
    settings: Settings
    totals: tuple[Totals, Totals] | None
    evidence: EvidenceRows | None
    unit: str
    window: dict[str, Any]


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    if any(argument.split("=")[0] == "--explain" for argument in arguments):
        parser.add_argument("--explain", metavar="CODE", help="describe a rule and exit")
        return
    add_input(parser, families)
    add_window(parser)
    add_dataset(parser)
    parser.add_argument("--select", metavar="CODES", help="rules or prefixes to apply, e.g. LS101,LS2")
    parser.add_argument("--ignore", metavar="CODES", help="rules or prefixes to skip")
    parser.add_argument("--fail-on", choices=FAIL_ON, help="lowest severity that sets exit status 1 (default: warning)")
    add_settings(parser)
    parser.add_argument("--explain", metavar="CODE", help="describe a rule and exit")
    parser.add_argument("--show", metavar="CODES", help="print the evidence rows of the findings of these rules")
    add_paging(parser)
    parser.add_argument("--all", action="store_true", help="list every location and row, also on a terminal")
    format = parser.add_mutually_exclusive_group()
    add_formats(parser, "lanescope.check/1", group=format, is_timed=False)
    format.add_argument("--sarif", action="store_true", help="one SARIF 2.1.0 document, for code scanners")
    add_format(format)


def run(args: argparse.Namespace) -> int:
    """Print the findings."""
    if args.explain:
        _explain(args)
        return 0
    if is_dataset(args.input):
        from lanescope.cli import dataset_answers

        return dataset_answers.check(args)
    if args.show is not None and (args.sarif or args.format):
        raise UsageError("--show requires a table or --json", hint="remove --sarif or --format")
    if is_paged(args) and not args.json:
        raise UsageError("--limit and --cursor require --json", hint="add --json")
    from lanescope.analysis import check

    for name, reason in _broken_rules():
        warn(f"rules {name!r} of another package are not applied: {reason}; {UPDATE}")
    settings, limits = settings_of(args)
    shown = check.rules(_codes(args.show)) if args.show is not None else ()
    checker = check.StreamingChecker(settings.select, settings.ignore, limits)
    is_summed = args.json or not (args.sarif or args.format or args.show is not None)
    totals = check.StreamingTotals(checker) if is_summed else None
    # Only rows of ``inputs`` would show a hash.
    with opened(args.input, args, hashes=args.show is not None) as source:
        last = passed(source, args.input, observers=[checker] if totals is None else [checker, totals]).last
        findings = checker.result()
        rows = None
        if args.show is not None:
            rows = _evidence(args, [finding for finding in findings if finding.code in {rule.code for rule in shown}])
            passed(source, args.input, observers=[rows])
    report = _Report(
        findings,
        checker.rules,
        settings,
        None if totals is None else totals.result(findings),
        rows,
        last.time.time_unit,
        window_of(last),
    )
    _print(args, report, last)
    if not findings:
        echo(f"All checks passed ({format_count(len(report.rules), 'rule')}).")
    fails = FAIL_ON[FAIL_ON.index(settings.fail_on) : -1]
    return close(last, args, int(any(finding.severity in fails for finding in findings)))


def _explain(args: argparse.Namespace) -> None:
    from lanescope.analysis import check

    for rule in check.rules([args.explain]):
        for text in (f"{rule.code} {rule.title} ({rule.severity})", rule.description, f"help: {rule.help}"):
            for line in text.split("\n"):
                print_wrapped(args, line, "")
            print()


def settings_of(args: argparse.Namespace) -> CheckSettings:
    """Return what the file states, where the command line does not state something else; errors of ``load``."""
    found, limits = check_settings(args)
    return CheckSettings(
        found._replace(
            select=found.select if args.select is None else _codes(args.select),
            ignore=found.ignore if args.ignore is None else _codes(args.ignore),
            fail_on=args.fail_on or found.fail_on,
        ),
        limits,
    )


def _broken_rules() -> tuple[Broken, ...]:
    """Return the rules of other packages that cannot be used."""
    from lanescope.families.plugin_rules import plugin_rules

    return plugin_rules().broken


def _codes(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


def _evidence(args: argparse.Namespace, findings: Sequence[Finding]) -> EvidenceRows:
    """Return an observer of the rows to show: the first of each finding on a terminal, else all."""
    from lanescope.analysis import check

    is_bounded = not args.all and not args.json and not args.csv and is_terminal(sys.stdout)
    return check.EvidenceRows(findings, _ROWS if is_bounded else None)


def _print(args: argparse.Namespace, report: _Report, last: Trace) -> None:
    """Print the findings as the command line asks for them."""
    from lanescope.cli import findings_output

    if args.json:
        print_json("lanescope.check/1", **_document(args, report))
    elif args.sarif:
        findings_output.print_sarif(report.findings, report.rules, args.input, report.settings.docs_url)
    elif args.format:
        from lanescope.cli import ci_output

        ci_output.print_findings(args, report.findings, len(report.rules), last)
    elif report.evidence is not None:
        findings_output.print_evidence(args, report.evidence, report.findings, _codes(args.show), report.unit)
    elif report.findings or args.csv:
        is_all = args.all or args.csv or not is_terminal(sys.stdout)
        findings_output.print_findings(
            args, report.findings, report.totals, report.unit, rules=len(report.rules), is_all=is_all
        )


def _values(totals: Totals) -> dict[str, int]:
    """Return sums by name."""
    return {name: getattr(totals, name) for name in type(totals).__slots__}


def _document(args: argparse.Namespace, report: _Report) -> dict[str, Any]:
    assert report.totals is not None, "--json has them"
    everything, sound = report.totals
    # What is listed: the evidence where it is asked for, else the findings.
    findings = report.findings
    evidence: Iterator[EvidenceRow] | None = None
    if report.evidence is None:
        findings, page = part(args, "check", findings, of="findings")
    else:
        rows = report.evidence
        evidence, page = counted_part(args, "check", rows.result(), len(rows), of="evidence")
    content: dict[str, Any] = {
        **report.window,
        **page.described(),
        "findings": [finding.to_dict() for finding in findings],
        "totals": {"all": _values(everything), "without_affected": _values(sound)},
        "rules": [rule.code for rule in report.rules],
        "broken_rules": [broken._asdict() for broken in _broken_rules()],
        "settings": {**report.settings._asdict(), "file": report.settings.file or None},
    }
    if evidence is not None:
        content["evidence"] = (row._asdict() for row in evidence)
    return content
